// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDPIPEncap: puts a UDP and an IPv4 header before packets.

use super::numbers::Numbers;
use castanet_element::prelude::*;
use castanet_spec::ValueKind;
use castanet_wire::ipv4::protocol::UDP;
use castanet_wire::{Ipv4Header, UdpHeader, checksum};
use std::net::Ipv4Addr;

/// Puts a UDP and an IPv4 header before packets.
///
/// The time to live is 250. The IP identification counts up from an unpredictable number (from 0 with `--seed`).
/// Replicas on several workers use different identifications. The network header is marked, and the destination address
/// annotation is set. A packet that would become longer than IPv4 allows is dropped.
///
/// # Ports
/// Input 0: packets. Output 0: UDP datagrams.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 5, STOP true) -> UDPIPEncap(10.0.0.1, 1234, 10.0.0.2, 53) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "UDPIPEncap", offload = none, ports = "1/1", processing = "a/a", packets = "any/ip", workers = replicate)]
#[class(reconfigure = keeps, config_follows, takes_state = "the next IP identification")]
#[class(drops(TooLong), build, lifecycle, depends = order)]
pub struct UdpIpEncap {
    args: Args,
    numbers: Numbers,
}

/// Arguments of UDPIPEncap.
#[derive(Args)]
pub struct Args {
    /// Source address.
    #[arg(handler = "rw")]
    src: Ipv4Addr,
    /// Source port.
    #[arg(handler = "rw")]
    sport: UdpPort,
    /// Destination address, or DST_ANNO for the destination address annotation.
    #[arg(handler = "rw")]
    dst: Destination,
    /// Destination port.
    #[arg(handler = "rw")]
    dport: UdpPort,
    /// Whether datagrams get a UDP checksum.
    #[arg(default = true)]
    checksum: bool,
}

/// A UDP port, given by number or name.
#[derive(Clone, Copy, Debug)]
pub struct UdpPort(u16);

impl ArgValue for UdpPort {
    const TYPE: &'static str = "udp-port";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<UdpPort, ValueError> {
        let named =
            || cx.names.port(cx.scope, text, UDP).or_else(|| castanet_classify::names::port_number(text));
        u16::parse(text, cx).or_else(|e| named().ok_or(e)).map(UdpPort)
    }
}

impl Show for UdpPort {
    const KIND: ValueKind = ValueKind::Gauge;
    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// The destination of packets; `None` if it is each packet's destination address annotation.
#[derive(Clone, Copy, Debug)]
pub struct Destination(pub(crate) Option<Ipv4Addr>);

impl ArgValue for Destination {
    const TYPE: &'static str = "ip or DST_ANNO";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Destination, ValueError> {
        if text == "DST_ANNO" {
            Ok(Destination(None))
        } else {
            Ipv4Addr::parse(text, cx).map(Some).map(Destination)
        }
    }
}

impl Show for Destination {
    fn show(&self) -> String {
        self.0.map_or("DST_ANNO".into(), |a| a.to_string())
    }
}

const HEADERS: usize = Ipv4Header::LEN + UdpHeader::LEN;

impl Build for UdpIpEncap {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(UdpIpEncap { args, numbers: Numbers::new(cx, 0) })
    }
}

impl Lifecycle for UdpIpEncap {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.numbers.go_on_from(old.numbers);
        Ok(())
    }
}

impl Action for UdpIpEncap {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let total = p.len() + HEADERS;
        let Ok(total_len) = u16::try_from(total) else { return Verdict::Drop(Reason::TooLong) };
        let src = self.args.src.to_bits();
        let dst = self.args.dst.0.map_or(p.dst_ip(), Ipv4Addr::to_bits);
        let mut ip = Ipv4Header::new(UDP, src, dst, 0, 250);
        ip.total_len.set(total_len);
        ip.id.set(self.numbers.id());
        ip.set_checksum20();
        let udp_len = total_len - Ipv4Header::LEN as u16;
        let udp = UdpHeader::new(self.args.sport.0, self.args.dport.0, udp_len);
        let Some(space) = p.push_header::<HEADERS>() else { return Verdict::Drop(Reason::TooLong) };
        let (to_ip, to_udp) = space.split_at_mut(Ipv4Header::LEN);
        to_ip.copy_from_slice(ip.as_array());
        to_udp.copy_from_slice(udp.as_array());
        self.numbers.advance();
        p.set_network_header(0, Ipv4Header::LEN);
        p.set_dst_ip(dst);
        if self.args.checksum
            && let Some(datagram) = p.transport_mut()
            && let Some(sum) = checksum::transport_checksum(src, dst, UDP, datagram)
            && let Some(h) = UdpHeader::from_prefix_mut(datagram)
        {
            h.checksum.set(sum);
        }
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn datagrams_of_every_length() {
        let mut kit = Kit::<UdpIpEncap>::new("10.0.0.1, 1234, 10.0.0.2, domain").unwrap();
        for len in 0..70u8 {
            let data: Vec<u8> = (0..len).collect();
            let out = kit.act([packet(&data)]);
            let p = &out[0].1;
            let (h, rest) = etherparse::Ipv4Header::from_slice(p.data()).unwrap();
            assert_eq!((h.source, h.destination), ([10, 0, 0, 1], [10, 0, 0, 2]));
            assert_eq!((h.identification, h.time_to_live, h.dont_fragment), (u16::from(len), 250, false));
            assert_eq!((usize::from(h.total_len), h.calc_header_checksum()), (p.len(), h.header_checksum));
            let (u, got) = etherparse::UdpHeader::from_slice(rest).unwrap();
            assert_eq!((u.source_port, u.destination_port, got), (1234, 53, &data[..]));
            assert_eq!(u.calc_checksum_ipv4(&h, got).unwrap(), u.checksum);
            assert_eq!((p.dst_ip(), p.network_header_length()), (0x0a000002, 20));
        }
    }

    /// RFC 768: a checksum that is computed as zero is sent as 0xffff.
    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        let mut kit = Kit::<UdpIpEncap>::new("10.0.0.1, 1, 10.0.0.2, 2").unwrap();
        let mut zeros = 0;
        for n in 0..=u16::MAX {
            let out = kit.act([packet(&n.to_be_bytes())]);
            let sum = &out[0].1.data()[26..28];
            assert_ne!(sum, [0, 0], "{n}");
            zeros += usize::from(sum == [255, 255]);
        }
        assert!(zeros > 0);
    }

    #[test]
    fn destination_from_the_annotation_and_handlers() {
        let mut kit = Kit::<UdpIpEncap>::new("10.0.0.1, 1, DST_ANNO, 2, false").unwrap();
        let mut p = packet(&[1, 2, 3]);
        p.set_dst_ip(0x01020304);
        let out = kit.act([p]);
        assert_eq!((&out[0].1.data()[16..20], &out[0].1.data()[26..28]), (&[1, 2, 3, 4][..], &[0, 0][..]));
        assert_eq!(kit.read("dst").unwrap(), "DST_ANNO");
        for (handler, value) in [("src", "1.1.1.1"), ("sport", "77"), ("dst", "2.2.2.2"), ("dport", "88")] {
            kit.write(handler, value).unwrap();
            assert_eq!(kit.read(handler).unwrap(), value);
        }
        assert_eq!(kit.act([packet(&[])])[0].1.data()[12..24], [1, 1, 1, 1, 2, 2, 2, 2, 0, 77, 0, 88]);
        assert!(kit.write("dport", "no such port").is_err());
    }

    #[test]
    fn too_long() {
        let mut kit = Kit::<UdpIpEncap>::new("10.0.0.1, 1, 10.0.0.2, 2").unwrap();
        let p = Packet::with_headroom(100, 65_508).unwrap();
        assert!(kit.act([p]).is_empty());
        assert_eq!(kit.dropped(Reason::TooLong), 1);
        assert!(Kit::<UdpIpEncap>::new("10.0.0.1, 65536, 10.0.0.2, 2").is_err());
    }
}
