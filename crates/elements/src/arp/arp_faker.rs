// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARPFaker: sends unsolicited ARP replies.

use castanet_element::prelude::*;
use castanet_wire::arp::{ArpHeader, op};
use castanet_wire::ether::{EtherAddr, EtherHeader, ethertype};
use std::net::Ipv4Addr;

/// The length of an Ethernet frame with an ARP packet, in bytes.
const FRAME: usize = EtherHeader::LEN + ArpHeader::LEN;
/// The time between two replies, in nanoseconds.
const INTERVAL: i64 = 10_000_000_000;

/// Sends unsolicited ARP replies (RFC 826), one at the start and one every ten seconds.
///
/// The replies are sent to the host DSTIP, whose Ethernet address is DSTETH, and say that SRCIP is at SRCETH.
/// As a result, DSTIP sends its packets for SRCIP to SRCETH.
///
/// # Ports
/// Output 0 (push): Ethernet frames with ARP replies.
///
/// # Example
/// ```click
/// ARPFaker(10.0.0.9, 02:00:00:00:00:09, 10.0.0.1, 02:00:00:00:00:01) -> ARPPrint(told) -> Discard;
/// DriverManager(wait 25, stop);
/// ```
#[derive(Class)]
#[class(ledger(enters))]
#[class(name = "ARPFaker", ports = "0/1", processing = "h/h", packets = "/ether arp", workers = exclusive)]
#[class(build, lifecycle)]
pub struct ArpFaker {
    args: Args,
    frame: [u8; FRAME],
}

/// Arguments of ARPFaker.
#[derive(Args)]
pub struct Args {
    /// The IP address of the host that receives the replies.
    dstip: Ipv4Addr,
    /// The Ethernet address of the host that receives the replies.
    dsteth: EtherAddr,
    /// The IP address that the replies are about.
    srcip: Ipv4Addr,
    /// The Ethernet address that the replies give for SRCIP.
    srceth: EtherAddr,
}

impl Build for ArpFaker {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let mut frame = [0; FRAME];
        let ether = EtherHeader::new(args.dsteth, args.srceth, ethertype::ARP).to_bytes();
        let (sender, target) = ((args.srceth, args.srcip.to_bits()), (args.dsteth, args.dstip.to_bits()));
        let arp = ArpHeader::new(op::REPLY, sender, target).to_bytes();
        for (place, byte) in frame.iter_mut().zip(ether.into_iter().chain(arp)) {
            *place = byte;
        }
        Ok(ArpFaker { args, frame })
    }
}

impl Lifecycle for ArpFaker {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        let now = cx.now();
        cx.set_timer(0, now);
        Ok(())
    }
}

impl Element for ArpFaker {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        let now = cx.now();
        cx.set_timer(0, now.saturating_add(INTERVAL));
        // If no buffer is free, this reply is skipped. The next one follows in ten seconds.
        let Some(mut p) = Packet::copy_of(&self.frame) else { return };
        p.set_mac_header(0);
        p.set_network_header(EtherHeader::LEN, ArpHeader::LEN);
        p.set_timestamp(now);
        cx.entered(1);
        cx.emit(0, p);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;
    use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetFrame};

    const CONFIG: &str = "10.0.0.9, 02:00:00:00:00:09, 10.0.0.1, 02:00:00:00:00:01";

    #[test]
    fn one_at_the_start_and_every_ten_seconds() {
        let mut kit = Kit::<ArpFaker>::new(CONFIG).unwrap();
        for s in [0, 10, 20, 30] {
            assert_eq!(kit.next_timer().unwrap() / 1_000_000_000, s);
            let out = kit.expire().unwrap();
            assert_eq!((out.len(), out[0].1.timestamp() / 1_000_000_000), (1, 1000 + s));
        }
    }

    #[test]
    fn smoltcp_reads_it() {
        let out = Kit::<ArpFaker>::new(CONFIG).unwrap().expire().unwrap();
        let p = &out[0].1;
        assert_eq!((p.len(), p.mac_offset(), p.network_offset()), (42, Some(0), Some(14)));
        let frame = EthernetFrame::new_checked(p.data()).unwrap();
        assert_eq!((frame.src_addr().0[5], frame.dst_addr().0[5]), (1, 9));
        let arp = ArpRepr::parse(&ArpPacket::new_checked(frame.payload()).unwrap()).unwrap();
        let ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr,
            source_protocol_addr,
            target_hardware_addr,
            target_protocol_addr,
        } = arp
        else {
            panic!("{arp:?}")
        };
        assert_eq!(operation, ArpOperation::Reply);
        assert_eq!((source_hardware_addr.0[5], source_protocol_addr.octets()), (1, [10, 0, 0, 1]));
        assert_eq!((target_hardware_addr.0[5], target_protocol_addr.octets()), (9, [10, 0, 0, 9]));
    }

    #[test]
    fn argument_errors() {
        assert!(Kit::<ArpFaker>::new("10.0.0.9, 02:00:00:00:00:09, 10.0.0.1").is_err());
        assert!(Kit::<ArpFaker>::new("10.0.0.9, 10.0.0.9, 10.0.0.1, 02:00:00:00:00:01").is_err());
    }
}
