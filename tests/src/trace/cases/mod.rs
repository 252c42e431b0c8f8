// SPDX-License-Identifier: MIT OR Apache-2.0
//! The special cases of the traces: everything other than forwarding a plain packet.
use std::net::Ipv4Addr;

use super::build::{Ipv4, ether, fix_checksum};
use super::hosts::{ANSWERING, ROUTER_MAC, mac, near};
use super::{Random, Wire};

mod errors;
mod headers;
mod link;
mod options;

const BROADCAST: [u8; 6] = [0xff; 6];
const EVERYBODY: Ipv4Addr = Ipv4Addr::BROADCAST;

/// Creates the cases for one interface.
struct Maker<'a> {
    interface: usize,
    random: &'a mut Random,
    ids: &'a mut u16,
    /// Each case is a group of frames that stay together.
    cases: Vec<Vec<Wire>>,
}

/// Creates all special cases for an interface.
pub(super) fn all(interface: usize, random: &mut Random, ids: &mut u16) -> Vec<Vec<Wire>> {
    let mut maker = Maker { interface, random, ids, cases: Vec::new() };
    maker.address_resolution();
    maker.times_to_live();
    maker.bad_headers();
    maker.padding();
    maker.record_route();
    maker.timestamps();
    maker.source_routes();
    maker.too_big();
    maker.fragments();
    maker.icmp();
    maker.redirects();
    maker.broadcasts();
    maker.martians();
    maker.for_the_router();
    maker.unreachable();
    maker.not_for_the_router();
    maker.cases
}

impl Maker<'_> {
    fn id(&mut self) -> u16 {
        *self.ids += 1;
        *self.ids
    }

    /// Picks a host on the network of this interface.
    fn here(&mut self) -> Ipv4Addr {
        near(self.interface, self.random.pick(&ANSWERING))
    }

    /// Picks a host on the network of the other interface.
    fn there(&mut self) -> Ipv4Addr {
        near(1 - self.interface, self.random.pick(&ANSWERING))
    }

    fn data(&mut self, size: usize) -> Vec<u8> {
        (0..size).map(|_| self.random.next().to_le_bytes()[0]).collect()
    }

    fn udp_between(&mut self, src: Ipv4Addr, dst: Ipv4Addr, size: usize) -> Ipv4 {
        let (id, data) = (self.id(), self.data(size));
        let port = 2000 + u16::try_from(self.random.below(40)).unwrap_or(0);
        Ipv4::udp(src, dst, id, (port, 4000), &data)
    }

    /// Makes a datagram from a host on this interface's network to a host on the other interface's network.
    fn udp(&mut self, size: usize) -> Ipv4 {
        let (src, dst) = (self.here(), self.there());
        self.udp_between(src, dst, size)
    }

    /// Makes a frame to the router with this packet.
    fn framed(&self, src: Ipv4Addr, packet: &[u8]) -> Wire {
        ether(ROUTER_MAC[self.interface], mac(self.interface, src), 0x0800, packet).into()
    }

    fn push(&mut self, packet: &Ipv4) {
        let frame = self.framed(packet.src, &packet.bytes());
        self.cases.push(vec![frame]);
    }

    /// Adds a packet whose bytes are changed after its checksum was computed. With `mend` the checksum is
    /// computed again.
    fn push_changed(&mut self, packet: &Ipv4, mend: bool, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = packet.bytes();
        change(&mut bytes);
        if mend {
            fix_checksum(&mut bytes);
        }
        let frame = self.framed(packet.src, &bytes);
        self.cases.push(vec![frame]);
    }

    fn push_frame(&mut self, dst: [u8; 6], src: [u8; 6], kind: u16, payload: &[u8]) {
        self.cases.push(vec![ether(dst, src, kind, payload).into()]);
    }
}
