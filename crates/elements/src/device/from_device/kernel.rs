// SPDX-License-Identifier: MIT OR Apache-2.0
//! FromDevice in the kernel, and the packets that come up from there.

use super::FromDevice;
use castanet_element::Attached;
use castanet_element::kernel::{Code, Lowered, Size, Test};
use castanet_element::prelude::*;

impl InKernel for FromDevice {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let args = &self.args;
        if !args.is_xdp() {
            return Err("it has no METHOD XDP".into());
        }
        if args.snaplen.is_some() || args.force_ip || args.fanout.is_some() {
            return Err("it has SNAPLEN, FORCE_IP or FANOUT".into());
        }
        // As long as the address is not known, no unicast frame is for the device.
        let mine = self.ether.unwrap_or_default();
        code.enter();
        code.count("count");
        let (short, stranger, group, multicast) = (code.label(), code.label(), code.label(), code.label());
        code.need(14, short);
        code.expect_bytes(0, &mine, stranger);
        code.set_packet_type(PacketType::Host as u8);
        code.next(0);
        code.bind(stranger);
        let first = code.load(0, Size::Byte);
        code.branch(first, Test::Common, 1u32, group);
        code.set_packet_type(PacketType::OtherHost as u8);
        code.next(0);
        code.bind(group);
        code.expect_bytes(0, &[0xff; 6], multicast);
        code.set_packet_type(PacketType::Broadcast as u8);
        code.next(0);
        code.bind(multicast);
        code.set_packet_type(PacketType::Multicast as u8);
        code.next(0);
        // The kernel delivers no frames without an Ethernet header.
        code.bind(short);
        code.drop(Reason::Truncated as u16);
        Ok(())
    }
    fn attach(&mut self, to: Attached) {
        if let Attached::Points(points) = to {
            self.points = Some(points);
        }
    }
    fn receives(&self) -> Option<&str> {
        self.args.is_xdp().then_some(self.args.devname.0.as_str())
    }
}
