// SPDX-License-Identifier: MIT OR Apache-2.0
//! FastUDPSource: sends UDP packets at a given rate.

use super::sent_count::SentCount;
use super::source_output::SourceOutput;
use super::{Pace, Prototype};
use castanet_element::prelude::*;
use castanet_packet::{DEFAULT_HEADROOM, MAX_LENGTH};
use castanet_wire::ether::{EtherAddr, EtherHeader, ethertype};
use castanet_wire::ipv4::{Ipv4Header, protocol};
use castanet_wire::udp::{self, UdpHeader};
use std::net::Ipv4Addr;

/// The length of the Ethernet header, in bytes. `IP` is the length of the IPv4 header, and `HEADERS` is the length of
/// the Ethernet, IPv4 and UDP headers together.
const ETHER: usize = EtherHeader::LEN;
const IP: usize = Ipv4Header::LEN;
const HEADERS: usize = ETHER + IP + UdpHeader::LEN;

/// Sends UDP packets with Ethernet and IP headers when they are pulled, at most RATE per second.
///
/// All packets are the same. Each has LENGTH bytes, at least 42 for the headers, and a payload of zeros. The
/// IP and UDP checksums are correct; with CHECKSUM false, there is no UDP checksum. The network header is
/// marked and the destination annotation is set. The source pauses after LIMIT packets, or, if INTERVAL is
/// given, after RATE times INTERVAL packets.
///
/// # Ports
/// No inputs. Output 0: packets, pull.
///
/// # Example
/// ```click
/// FastUDPSource(1000, 5, 60, 2:0:0:0:0:1, 1.0.0.1, 1234, 2:0:0:0:0:2, 2.0.0.2, 5678) -> u :: Unqueue -> c :: Counter(COUNT_CALL 5 stop)
///   -> IPPrint(udp) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(enters))]
#[class(name = "FastUDPSource", ports = "0/1", processing = "l/l", packets = "/ether marked", alignment = "4 0", workers = exclusive, build, lifecycle, handlers)]
#[class(takes_state = "the tokens, the rate")]
#[class(capabilities(EmptyNotifier))]
pub struct FastUdpSource {
    args: Args,
    #[counts]
    count: SentCount,
    proto: Prototype,
    pace: Pace,
    /// The times of the first and the last packet, in nanoseconds.
    span: Option<(i64, i64)>,
    output: SourceOutput,
}

/// Arguments of FastUDPSource.
#[derive(Args)]
pub struct Args {
    /// Packets per second.
    rate: u32,
    /// How many packets to send; negative for no limit.
    #[arg(handler = "w")]
    limit: i64,
    /// Length of a packet in bytes, including the headers.
    #[arg(max = MOST as u32)]
    length: u32,
    /// Ethernet source.
    srceth: EtherAddr,
    /// Source address.
    srcip: Ipv4Addr,
    /// Source port.
    sport: Port,
    /// Ethernet destination.
    dsteth: EtherAddr,
    /// Destination address.
    dstip: Ipv4Addr,
    /// Destination port.
    dport: Port,
    /// Whether packets have a UDP checksum.
    #[arg(default = true)]
    checksum: bool,
    /// Number of seconds for which to send; 0 for no limit.
    #[arg(default = 0)]
    interval: u32,
    /// When false, no packet is sent.
    #[arg(default = true, handler = "w")]
    active: bool,
}

/// Largest length of a packet in bytes: an Ethernet header and the longest IP packet.
const MOST: usize = ETHER + 65_535;
const _: () = assert!(MOST <= MAX_LENGTH - DEFAULT_HEADROOM);

/// A UDP port, by number or name.
#[derive(Clone, Copy, Debug)]
pub struct Port(u16);

impl ArgValue for Port {
    const TYPE: &'static str = "udp-port";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Port, ValueError> {
        let known = || cx.names.port(cx.scope, text, protocol::UDP);
        let named = || known().or_else(|| castanet_classify::names::port_number(text));
        u16::parse(text, cx).or_else(|e| named().ok_or(e)).map(Port)
    }
}

/// Builds the frame that every packet is a copy of.
fn frame(args: &Args) -> Vec<u8> {
    let length = (args.length as usize).clamp(HEADERS, MOST);
    let (total, datagram) = ((length - ETHER) as u16, (length - ETHER - IP) as u16);
    let (src, dst) = (u32::from(args.srcip), u32::from(args.dstip));
    let mut out = EtherHeader::new(args.dsteth, args.srceth, ethertype::IPV4).to_bytes().to_vec();
    out.extend(Ipv4Header::new(protocol::UDP, src, dst, total, 250).to_bytes());
    out.extend(UdpHeader::new(args.sport.0, args.dport.0, datagram).to_bytes());
    out.resize(length, 0);
    if args.checksum {
        udp::set_checksum(src, dst, out.get_mut(ETHER + IP..).unwrap_or_default());
    }
    out
}

impl Build for FastUdpSource {
    fn build(mut args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.interval > 0 {
            args.limit = i64::from(args.rate) * i64::from(args.interval);
        }
        let proto = Prototype::new(&frame(&args), -1, DEFAULT_HEADROOM)?;
        let (count, pace) = (SentCount::default(), Pace::of_rate(args.rate));
        Ok(FastUdpSource { args, count, proto, pace, span: None, output: SourceOutput::new(cx) })
    }
}

impl FastUdpSource {
    /// Returns a packet if one is due.
    fn packet(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if !self.args.active || self.count.has_reached(self.args.limit) {
            self.output.sleep(cx);
            return None;
        }
        let now = cx.now();
        let Some(at) = self.pace.ready_or_set_timer(now, cx) else {
            self.output.sleep(cx);
            return None;
        };
        let mut p = self.proto.packet()?;
        p.set_timestamp(now);
        p.set_mac_header(0);
        p.set_network_header(ETHER, IP);
        p.set_dst_ip(self.args.dstip.into());
        self.pace.went(at);
        self.count.add(1, cx);
        self.span = Some((self.span.map_or(now, |s| s.0), now));
        Some(p)
    }
    fn wake(&self, cx: &mut Cx<'_>) {
        self.output.wake(self.args.active, cx);
    }
}

impl Element for FastUdpSource {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..max {
            let Some(p) = self.packet(cx) else { break };
            into.push(p);
        }
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.wake(cx);
    }
}

#[handlers]
impl FastUdpSource {
    /// Packets per second from the first packet to the last; a write sets RATE.
    #[read(unit = "packets/s")]
    fn rate(&self) -> Rate {
        let ms = self.span.map_or(0, |(first, last)| last.saturating_sub(first) / 1_000_000);
        // Between n packets there are n - 1 gaps.
        let gaps = self.count.get().saturating_sub(1);
        Rate(if ms > 0 { (gaps * 1000 / ms.unsigned_abs()) as f64 } else { 0.0 })
    }
    #[write]
    fn set_rate(&mut self, rate: u32, cx: &mut Cx<'_>) {
        self.args.rate = rate;
        self.pace.change_rate(rate, cx.now());
        self.wake(cx);
    }
    /// Sets the count to 0 and starts again.
    #[write(button)]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.count.reset();
        self.span = None;
        self.wake(cx);
    }
}

impl Lifecycle for FastUdpSource {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.output.initialise(self.args.active, cx);
        Ok(())
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.wake(cx);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.pace.go_on_from(&mut old.pace, cx.now());
        self.span = old.span;
        self.wake(cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    const ENDS: &str = "2:0:0:0:0:1, 1.0.0.1, 1234, 2:0:0:0:0:2, 2.0.0.2, domain";

    fn kit(rate: u32, limit: i64, length: u32, more: &str) -> Kit<FastUdpSource> {
        Kit::new(&format!("{rate}, {limit}, {length}, {ENDS}{more}")).unwrap()
    }

    #[test]
    fn packets_are_what_they_should_be() {
        for length in [0, 42, 43, 60, 1500, 2000] {
            let p = kit(1000, 1, length, "").pull(0, 1).remove(0);
            assert_eq!(p.len(), (length as usize).max(HEADERS));
            assert_eq!(
                (p.network_offset(), p.transport_offset(), p.dst_addr()),
                (Some(14), Some(34), [2, 0, 0, 2].into())
            );
            let sliced = etherparse::SlicedPacket::from_ethernet(p.data()).unwrap();
            let etherparse::NetSlice::Ipv4(ip) = sliced.net.unwrap() else { panic!("IPv4") };
            let header = ip.header().to_header();
            assert_eq!(
                (header.header_checksum, header.source),
                (header.calc_header_checksum(), [1, 0, 0, 1])
            );
            let Some(etherparse::TransportSlice::Udp(udp)) = sliced.transport else { panic!("UDP") };
            let sum = udp.to_header().calc_checksum_ipv4(&header, udp.payload()).unwrap();
            assert_eq!((udp.checksum(), udp.source_port(), udp.destination_port()), (sum, 1234, 53));
        }
        let p = kit(1000, 1, 60, ", false").pull(0, 1).remove(0);
        assert_eq!(p.data()[40..42], [0, 0]);
    }

    #[test]
    fn rate_limit_and_interval() {
        for max in [1, 2, 3, 32] {
            let mut k = kit(100, -1, 60, ", true, 3");
            let mut n = 0;
            for ms in 0..10_000 {
                k.at(ms * 1_000_000);
                n += k.pull(0, max).len();
            }
            assert_eq!((n, k.read("count").unwrap()), (300, "300".into()));
            let rate: u32 = k.read("rate").unwrap().parse().unwrap();
            assert!((98..=102).contains(&rate), "{rate}");
            assert!(!k.note(Capability::EmptyNotifier));
        }
        let mut k = kit(1_000_000, 5, 60, "");
        assert_eq!((k.pull(0, 32).len(), k.pull(0, 32).len()), (5, 0));
        k.write("limit", "7").unwrap();
        assert!(k.note(Capability::EmptyNotifier));
        assert_eq!(k.pull(0, 32).len(), 2);
        k.write("reset", "").unwrap();
        k.write("active", "false").unwrap();
        assert_eq!((k.pull(0, 32).len(), k.read("rate").unwrap()), (0, "0".into()));
        assert!(
            Kit::<FastUdpSource>::new("1, 2, 3").is_err()
                && Kit::<FastUdpSource>::new(&format!("1, 2, 99999999, {ENDS}")).is_err()
        );
    }
}
