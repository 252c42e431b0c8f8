// SPDX-License-Identifier: MIT OR Apache-2.0
//! HostEtherFilter: separates frames for this host from frames for other hosts.

use castanet_element::kernel::{Code, Lowered, Refused, Size, Test};
use castanet_element::prelude::*;
use castanet_wire::ether::EtherAddr;

/// Sets the packet type annotation from the destination of Ethernet frames, and separates frames for other hosts.
///
/// Frames to `ETHER` get the packet type HOST. Other frames get the packet type BROADCAST, MULTICAST or OTHERHOST.
/// Frames for other hosts leave on output 1, unless `DROP_OTHER` is false. If `DROP_OWN` is true, frames from `ETHER`
/// leave on output 1 too.
///
/// # Ports
/// Input 0: Ethernet frames. Output 0: frames for this host, broadcasts and multicasts. Output 1 (optional): frames for
/// other hosts, frames from this host if `DROP_OWN` is true, and frames that are too short.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<020000000001 020000000002 0800>, LIMIT 5, STOP true)
///     -> filter :: HostEtherFilter(02:00:00:00:00:01) -> Discard;
/// filter [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "HostEtherFilter", ports = "1/1-2", processing = "a/ah", packets = "ether/same")]
#[class(reconfigure = keeps, workers = replicate, drops(OtherHost, OwnPacket, TooShort), depends = packet)]
#[class(kernel)]
pub struct HostEtherFilter {
    args: Args,
}

/// Arguments of HostEtherFilter.
#[derive(Args)]
pub struct Args {
    /// The Ethernet address of this host.
    #[arg(handler = "rw")]
    ether: EtherAddr,
    /// Whether frames from this host leave on output 1.
    #[arg(default = false)]
    drop_own: bool,
    /// Whether frames for other hosts leave on output 1.
    #[arg(default = true)]
    drop_other: bool,
    /// Where the Ethernet header starts, in bytes from the start of the packet.
    #[arg(keyword, default = 0)]
    offset: u32,
}

impl Action for HostEtherFilter {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let header = p.data().get(self.args.offset as usize..).and_then(|d| d.first_chunk::<14>());
        let Some(&[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, _, _]) = header else {
            return cx.out_or(1, Reason::TooShort);
        };
        let (dst, src) = (EtherAddr([d0, d1, d2, d3, d4, d5]), EtherAddr([s0, s1, s2, s3, s4, s5]));
        let own = self.args.drop_own && src == self.args.ether;
        let kind = if dst == self.args.ether {
            PacketType::Host
        } else if !dst.is_group() {
            PacketType::OtherHost
        } else if dst.is_broadcast() {
            PacketType::Broadcast
        } else {
            PacketType::Multicast
        };
        p.set_packet_type(kind);
        if own {
            return cx.out_or(1, Reason::OwnPacket);
        }
        if kind == PacketType::OtherHost && self.args.drop_other {
            return cx.out_or(1, Reason::OtherHost);
        }
        Verdict::Next
    }
}

impl InKernel for HostEtherFilter {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let at = i32::try_from(self.args.offset).map_err(|_| Refused("OFFSET is too large".into()))?;
        let (short, stranger, group) = (code.label(), code.label(), code.label());
        code.need_at(at, 14, short);
        let EtherAddr(mine) = self.args.ether;
        let finish = |code: &mut Code<'_>, kind: PacketType| {
            code.set_packet_type(kind as u8);
            if self.args.drop_own {
                let other = code.label();
                code.expect_bytes(at + 6, &mine, other);
                code.next_or(1, Reason::OwnPacket as u16);
                code.bind(other);
            }
            if kind == PacketType::OtherHost && self.args.drop_other {
                code.next_or(1, Reason::OtherHost as u16);
            } else {
                code.next(0);
            }
        };
        code.expect_bytes(at, &mine, stranger);
        finish(code, PacketType::Host);
        code.bind(stranger);
        let first = code.load(at, Size::Byte);
        code.branch(first, Test::Common, 1u32, group);
        finish(code, PacketType::OtherHost);
        code.bind(group);
        let multicast = code.label();
        code.expect_bytes(at, &[0xff; 6], multicast);
        finish(code, PacketType::Broadcast);
        code.bind(multicast);
        finish(code, PacketType::Multicast);
        code.bind(short);
        code.next_or(1, Reason::TooShort as u16);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    const ME: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 9];

    fn frame(dst: [u8; 6], src: [u8; 6]) -> Vec<u8> {
        [&dst[..], &src[..], &[8, 0, 1]].concat()
    }

    #[test]
    fn types_and_outputs() {
        use PacketType::{Broadcast, Host, Multicast, OtherHost};
        // Columns: destination, source, packet type, and the output in three configurations: by default, with
        // DROP_OWN true, and with DROP_OTHER false.
        let table = [
            (ME, OTHER, Host, [0, 0, 0]),
            ([0xff; 6], OTHER, Broadcast, [0, 0, 0]),
            ([1, 0, 0x5e, 0, 0, 1], OTHER, Multicast, [0, 0, 0]),
            (OTHER, OTHER, OtherHost, [1, 1, 0]),
            ([0xff; 6], ME, Broadcast, [0, 1, 0]),
            (OTHER, ME, OtherHost, [1, 1, 0]),
            (ME, ME, Host, [0, 1, 0]),
        ];
        for (column, config) in
            ["2:0:0:0:0:1", "2:0:0:0:0:1, true", "2:0:0:0:0:1, false, false"].iter().enumerate()
        {
            let mut two = Kit::<HostEtherFilter>::with_ports(config, 1, 2).unwrap();
            let mut one = Kit::<HostEtherFilter>::with_ports(config, 1, 1).unwrap();
            for (dst, src, kind, outputs) in table {
                let out = two.act([packet(&frame(dst, src))]);
                assert_eq!((out[0].0, out[0].1.packet_type()), (outputs[column], kind), "{config} {dst:?}");
                assert_eq!(one.act([packet(&frame(dst, src))]).len(), 1 - outputs[column]);
            }
            let want: usize = table.iter().map(|t| t.3[column]).sum();
            assert_eq!(one.all_dropped(), want as u64);
        }
    }

    #[test]
    fn every_length_and_offsets() {
        for offset in [0usize, 3] {
            for len in 0..30 {
                let mut data = vec![0xee; offset];
                data.extend(frame(ME, OTHER));
                data.resize(40, 0);
                data.truncate(len);
                let config = format!("2:0:0:0:0:1, OFFSET {offset}");
                let mut kit = Kit::<HostEtherFilter>::with_ports(&config, 1, 2).unwrap();
                assert_eq!(kit.act([packet(&data)])[0].0, usize::from(len < offset + 14));
            }
        }
        let mut kit = Kit::<HostEtherFilter>::new("2:0:0:0:0:1").unwrap();
        kit.write("ether", "2:0:0:0:0:9").unwrap();
        assert_eq!(kit.read("ether").unwrap(), "02-00-00-00-00-09");
        assert!(kit.act([packet(&frame(ME, ME))]).is_empty());
    }
}
