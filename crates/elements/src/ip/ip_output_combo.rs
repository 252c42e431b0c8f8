// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPOutputCombo: does the last steps of an IP router, before packets leave, in one element.

use super::dec_ip_ttl::DecIpTtl;
use super::drop_broadcasts::DropBroadcasts;
use super::fix_ip_src::FixIpSrc;
use super::ip_gw_options::IpGwOptions;
use super::ip_input_combo::part;
use crate::basic::paint_tee::PaintTee;
use castanet_element::prelude::*;
use std::net::Ipv4Addr;

/// Prepares IPv4 packets for the link on which they leave.
///
/// This element does the same as `DropBroadcasts -> PaintTee(COLOR) -> IPGWOptions(IPADDR) -> FixIPSrc(IPADDR) ->
/// DecIPTTL`. In addition, packets longer than MTU leave on output 4, for IPFragmenter. The network header must be
/// marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: packets that are ready to be sent. Output 1: copies of packets of colour COLOR, whose
/// senders should get an ICMP redirect. Output 2: packets with bad options. Output 3: expired packets. Output 4:
/// packets that are too long.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> out :: IPOutputCombo(1, 10.0.0.1, 1500) -> Discard;
/// out [1] -> ICMPError(10.0.0.1, redirect, host) -> Discard;
/// out [2] -> ICMPError(10.0.0.1, parameterproblem) -> Discard;
/// out [3] -> ICMPError(10.0.0.1, timeexceeded) -> Discard;
/// out [4] -> IPFragmenter(1500) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(makes))]
#[class(name = "IPOutputCombo", ports = "1/5", processing = "h/h", packets = "ip/ip", workers = replicate)]
#[class(copies, build)]
#[class(drops(LinkBroadcast, NoIpHeader, BadIpHeader, BadIpOption, TtlExpired, NoBuffer))]
pub struct IpOutputCombo {
    args: Args,
    broadcasts: DropBroadcasts,
    redirect: PaintTee,
    options: IpGwOptions,
    source: FixIpSrc,
    ttl: DecIpTtl,
}

/// Arguments of IPOutputCombo.
#[derive(Args)]
pub struct Args {
    /// The colour of packets whose senders should get an ICMP redirect, 0 to 255.
    color: u8,
    /// The router's address on the link that packets leave on.
    ipaddr: Ipv4Addr,
    /// The maximum length of a packet on the link, in bytes.
    mtu: u32,
}

impl Build for IpOutputCombo {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let address = args.ipaddr.to_string();
        Ok(IpOutputCombo {
            broadcasts: part("", cx)?,
            redirect: part(&args.color.to_string(), cx)?,
            options: part(&address, cx)?,
            source: part(&address, cx)?,
            ttl: part("", cx)?,
            args,
        })
    }
}

impl IpOutputCombo {
    #[inline]
    fn step(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        // If an action returns output 1, the later actions must not process the packet. The packet is dropped, or
        // leaves on an output of this element other than 0.
        match self.broadcasts.action(p, cx) {
            Verdict::Next => {}
            Verdict::Out(_) => return Verdict::Drop(Reason::LinkBroadcast),
            other => return other,
        }
        self.redirect.action(p, cx);
        match self.options.action(p, cx) {
            Verdict::Next => {}
            Verdict::Out(_) => return Verdict::Out(2),
            other => return other,
        }
        match self.source.action(p, cx) {
            Verdict::Next => {}
            other => return other,
        }
        match self.ttl.action(p, cx) {
            Verdict::Next => {}
            Verdict::Out(_) => return Verdict::Out(3),
            other => return other,
        }
        match p.network() {
            Some(n) if n.len() > self.args.mtu as usize => Verdict::Out(4),
            _ => Verdict::Next,
        }
    }
}

impl Element for IpOutputCombo {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let mut all = std::mem::replace(batch, Batch::empty());
        for mut p in all.drain() {
            match self.step(&mut p, cx) {
                Verdict::Next | Verdict::Several => cx.emit(0, p),
                Verdict::Out(port) => cx.emit(port.into(), p),
                Verdict::Drop(reason) => cx.drop(p, reason),
            }
        }
        *batch = all;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};
    use castanet_element::spec::anno;

    fn ip(ttl: u8, options: &[u8], payload: usize) -> Packet {
        let mut h = etherparse::Ipv4Header::new(0, ttl, etherparse::IpNumber(17), [1, 0, 0, 1], [2, 0, 0, 2])
            .unwrap();
        h.options = options.try_into().unwrap();
        h.set_payload_len(payload).unwrap();
        h.header_checksum = h.calc_header_checksum();
        let mut data = Vec::new();
        h.write(&mut data).unwrap();
        data.resize(data.len() + payload, 9);
        let mut p = packet(&data);
        p.set_network_header(0, 20 + options.len());
        p
    }

    #[test]
    fn every_way_out() {
        let mut kit = Kit::<IpOutputCombo>::new("3, 10.0.0.1, 100").unwrap();
        let ports = |out: Vec<(usize, Packet)>| out.iter().map(|o| o.0).collect::<Vec<_>>();
        let with = |f: &dyn Fn(&mut Packet)| {
            let mut p = ip(9, &[], 20);
            f(&mut p);
            p
        };
        assert_eq!(ports(kit.push(0, [ip(9, &[], 20)])), [0]);
        assert_eq!(ports(kit.push(0, [with(&|p| p.set_paint(3))])), [0, 1]);
        assert_eq!(ports(kit.push(0, [ip(9, &[7, 40, 4, 0], 0)])), [2], "an option longer than the header");
        assert_eq!(ports(kit.push(0, [ip(1, &[], 20)])), [3]);
        assert_eq!(ports(kit.push(0, [ip(9, &[], 80), ip(9, &[], 81)])), [0, 4]);
        for kind in [PacketType::Broadcast, PacketType::Multicast] {
            assert!(kit.push(0, [with(&|p| p.set_packet_type(kind))]).is_empty());
        }
        assert!(kit.push(0, [packet(&[0x45; 40])]).is_empty());
        assert_eq!((kit.dropped(Reason::LinkBroadcast), kit.all_dropped()), (2, 3));
        // The time to live is decremented, the source address is new, and the checksum is correct.
        let out = kit.push(0, [with(&|p| p.set_anno_u8(anno::FIX_IP_SRC, 1))]);
        let (h, _) = etherparse::Ipv4Header::from_slice(out[0].1.data()).unwrap();
        assert_eq!(
            (h.time_to_live, h.source, h.calc_header_checksum()),
            (8, [10, 0, 0, 1], h.header_checksum)
        );
        let out = kit.push(0, [ip(9, &[7, 7, 4, 0, 0, 0, 0, 0], 0)]);
        assert_eq!(out[0].1.data()[20..27], [7, 7, 8, 10, 0, 0, 1], "the route is recorded");
        for bad in ["", "1", "1, 10.0.0.1", "256, 10.0.0.1, 1500", "1, x, 1500", "1, 10.0.0.1, -1"] {
            assert!(Kit::<IpOutputCombo>::new(bad).is_err(), "{bad}");
        }
    }
}
