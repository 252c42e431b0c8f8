// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPOutputCombo: does the last steps of an IP router, before packets leave, in one element.

use super::dec_ip_ttl::DecIpTtl;
use super::drop_broadcasts::DropBroadcasts;
use super::fix_ip_src::FixIpSrc;
use super::ip_fragmenter::IpFragmenter;
use super::ip_gw_options::IpGwOptions;
use super::ip_input_combo::part;
use crate::basic::paint_tee::PaintTee;
use castanet_element::kernel::{Code, Lowered, Size, Test};
use castanet_element::prelude::*;
use castanet_element::spec::anno;
use std::net::Ipv4Addr;

/// Prepares IPv4 packets for the link on which they leave.
///
/// This element does the same as `DropBroadcasts -> PaintTee(COLOR) -> IPGWOptions(IPADDR) -> FixIPSrc(IPADDR) ->
/// DecIPTTL`. In addition, packets longer than MTU leave on output 4, for IPFragmenter. With `FRAGMENT true`, it also does
/// the same as `IPFragmenter(MTU)`, so that only packets that must not be fragmented leave on output 4. The network header
/// must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: packets that are ready to be sent. Output 1: copies of packets of colour COLOR, whose
/// senders should get an ICMP redirect. Output 2: packets with bad options. Output 3: expired packets. Output 4:
/// packets that are too long. Output 5 (optional): packets whose strict source route cannot be followed.
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
#[class(name = "IPOutputCombo", offload = aware, ports = "1/5-6", processing = "h/h", packets = "ip/same")]
#[class(workers = replicate, copies, effects(prints), build, lifecycle)]
#[class(drops(
    LinkBroadcast,
    NoIpHeader,
    BadIpHeader,
    BadIpOption,
    SourceRoute,
    TtlExpired,
    MustFragment,
    BadFragment,
    NoBuffer
))]
#[class(depends = packet, clock)]
#[class(kernel)]
pub struct IpOutputCombo {
    args: Args,
    broadcasts: DropBroadcasts,
    redirect: PaintTee,
    options: IpGwOptions,
    source: FixIpSrc,
    ttl: DecIpTtl,
    fragmenter: IpFragmenter,
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
    /// Further addresses of the router, as for IPGWOptions.
    otheraddrs: Option<String>,
    /// What to do with packets that have a source route, as for IPGWOptions: `pass`, `drop` or `follow`. Default: `pass`.
    #[arg(keyword)]
    source_route: Option<String>,
    /// Whether to fragment packets that are too long.
    #[arg(keyword, default = false)]
    fragment: bool,
}

/// The output of packets that are too long.
const TOO_LONG: u16 = 4;
/// The minimum MTU of the part that fragments packets, in bytes. Without FRAGMENT, MTU may be smaller.
const MIN_MTU: u32 = 8;

impl Build for IpOutputCombo {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let address = args.ipaddr.to_string();
        let mut options = address.clone();
        for (keyword, value) in [("OTHERADDRS", &args.otheraddrs), ("SOURCE_ROUTE", &args.source_route)] {
            if let Some(value) = value {
                options.push_str(&format!(", {keyword} {value}"));
            }
        }
        if args.fragment && args.mtu < MIN_MTU {
            return Err(format!("MTU: with FRAGMENT true it must be at least {MIN_MTU}").into());
        }
        let fragmenter: IpFragmenter = part(&args.mtu.max(MIN_MTU).to_string(), cx)?;
        Ok(IpOutputCombo {
            broadcasts: part("", cx)?,
            redirect: part(&args.color.to_string(), cx)?,
            options: part(&options, cx)?,
            source: part(&address, cx)?,
            ttl: part("", cx)?,
            fragmenter: fragmenter.with_output(TOO_LONG),
            args,
        })
    }
}

impl Lifecycle for IpOutputCombo {
    /// Returns the effects of the part that prints messages.
    fn effects(&self, declared: Effects) -> Effects {
        self.fragmenter.effects(declared)
    }
}

impl Action for IpOutputCombo {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        // If the verdict of a part is not `Next`, the later parts must not process the packet. It is then dropped, or leaves
        // on an output of this element other than 0.
        match self.broadcasts.action(p, cx) {
            Verdict::Next => {}
            Verdict::Out(_) => return Verdict::Drop(Reason::LinkBroadcast),
            other => return other,
        }
        let copied = self.redirect.action(p, cx);
        match self.options.action(p, cx) {
            Verdict::Next => {}
            Verdict::Out(1) => return Verdict::Out(2),
            Verdict::Out(_) => return cx.out_or(5, Reason::SourceRoute),
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
        if p.network().is_none_or(|n| n.len() <= self.args.mtu as usize) {
            return copied;
        }
        if !self.args.fragment {
            return Verdict::Out(TOO_LONG);
        }
        match self.fragmenter.action(p, cx) {
            Verdict::Next => copied,
            other => other,
        }
    }
}

impl InKernel for IpOutputCombo {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        if matches!(code.state().packet_type, t if t == PacketType::Broadcast as u8 || t == PacketType::Multicast as u8)
        {
            code.drop(Reason::LinkBroadcast as u16);
            return Ok(());
        }
        // Copies, options, the router's own errors, and packets that have expired or are too long are processed at user level.
        let other = code.label();
        let paint = code.annotation(anno::PAINT, Size::Byte);
        code.branch(paint, Test::Equal, u32::from(self.args.color), other);
        let own = code.annotation(anno::FIX_IP_SRC, Size::Byte);
        code.branch(own, Test::Differ, 0u32, other);
        match code.plain_header() {
            Some(at) => {
                let most = i64::from(self.args.mtu) + i64::from(at);
                code.branch_length(most, None, Some(other));
                self.ttl.lower_decrement(code, other, |code| code.next(0));
            }
            _ => code.jump(other),
        }
        code.bind(other);
        code.up();
        Ok(())
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
        assert_eq!(ports(kit.act([ip(9, &[], 20)])), [0]);
        assert_eq!(ports(kit.act([with(&|p| p.set_paint(3))])), [0, 1]);
        assert_eq!(ports(kit.act([ip(9, &[7, 40, 4, 0], 0)])), [2], "an option longer than the header");
        assert_eq!(ports(kit.act([ip(1, &[], 20)])), [3]);
        assert_eq!(ports(kit.act([ip(9, &[], 80), ip(9, &[], 81)])), [0, 4]);
        for kind in [PacketType::Broadcast, PacketType::Multicast] {
            assert!(kit.act([with(&|p| p.set_packet_type(kind))]).is_empty());
        }
        assert!(kit.act([packet(&[0x45; 40])]).is_empty());
        assert_eq!((kit.dropped(Reason::LinkBroadcast), kit.all_dropped()), (2, 3));
        // The time to live is decremented, the source address is new, and the checksum is correct.
        let out = kit.act([with(&|p| p.set_anno_u8(anno::FIX_IP_SRC, 1))]);
        let (h, _) = etherparse::Ipv4Header::from_slice(out[0].1.data()).unwrap();
        assert_eq!(
            (h.time_to_live, h.source, h.calc_header_checksum()),
            (8, [10, 0, 0, 1], h.header_checksum)
        );
        let out = kit.act([ip(9, &[7, 7, 4, 0, 0, 0, 0, 0], 0)]);
        assert_eq!(out[0].1.data()[20..27], [7, 7, 8, 10, 0, 0, 1], "the route is recorded");
        for bad in [
            "",
            "1",
            "1, 10.0.0.1",
            "256, 10.0.0.1, 1500",
            "1, x, 1500",
            "1, 10.0.0.1, -1",
            "1, 10.0.0.1, 1500, x",
            "1, 10.0.0.1, 1500, SOURCE_ROUTE x",
            "1, 10.0.0.1, 7, FRAGMENT true",
        ] {
            assert!(Kit::<IpOutputCombo>::new(bad).is_err(), "{bad}");
        }
        assert!(Kit::<IpOutputCombo>::new("1, 10.0.0.1, 7").is_ok());
    }

    /// Options that make a packet leave on different outputs: none, a record route, a malformed option, a strict source
    /// route whose next address is not the next hop.
    const OPTIONS: [&[u8]; 4] =
        [&[], &[7, 7, 4, 0, 0, 0, 0, 0], &[7, 40, 4, 0], &[137, 7, 8, 10, 0, 0, 1, 0]];

    #[test]
    fn as_its_parts_one_after_the_other() {
        const OWN: &str = "10.0.0.1";
        let rules = "10.0.0.2, SOURCE_ROUTE follow";
        for outputs in [5, 6] {
            let config = format!("3, {OWN}, 100, {rules}, FRAGMENT true");
            let mut combo = Kit::<IpOutputCombo>::with_ports(&config, 1, outputs).unwrap();
            let mut broadcasts = Kit::<DropBroadcasts>::new("").unwrap();
            let mut redirect = Kit::<PaintTee>::with_ports("3", 1, 2).unwrap();
            let mut options =
                Kit::<IpGwOptions>::with_ports(&format!("{OWN}, {rules}"), 1, outputs - 3).unwrap();
            let mut source = Kit::<FixIpSrc>::new(OWN).unwrap();
            let mut ttl = Kit::<DecIpTtl>::with_ports("", 1, 2).unwrap();
            let mut fragment = Kit::<IpFragmenter>::with_ports("100", 1, 2).unwrap();
            let mut seen = [0; 6];
            for (n, given) in OPTIONS.iter().enumerate() {
                for (ttl_value, payload, df, paint) in [
                    (9, 20, false, 0),
                    (9, 20, false, 3),
                    (1, 20, false, 3),
                    (9, 300, false, 3),
                    (9, 300, true, 0),
                ] {
                    let make = || {
                        let mut p = ip(ttl_value, given, payload);
                        p.set_paint(paint);
                        p.set_dst_ip(0x0909_0909);
                        p.set_anno_u8(anno::FIX_IP_SRC, (n & 1) as u8);
                        if df {
                            p.data_mut()[6] |= 0x40;
                        }
                        p
                    };
                    let mut want: Vec<(usize, Packet)> = Vec::new();
                    let mut on = |out: Vec<(usize, Packet)>, ports: &[usize]| {
                        let (next, left): (Vec<_>, Vec<_>) = out.into_iter().partition(|o| o.0 == 0);
                        want.extend(left.into_iter().map(|(port, p)| (ports[port - 1], p)));
                        next.into_iter().map(|o| o.1).collect::<Vec<_>>()
                    };
                    let packets = on(broadcasts.act([make()]), &[]);
                    let packets = on(redirect.act(packets), &[1]);
                    let packets = on(options.act(packets), &[2, 5]);
                    let packets = on(source.act(packets), &[]);
                    let packets = on(ttl.act(packets), &[3]);
                    let packets = on(fragment.act(packets), &[4]);
                    want.extend(packets.into_iter().map(|p| (0, p)));
                    let contents = |all: Vec<(usize, Packet)>| {
                        let mut all: Vec<_> =
                            all.iter().map(|(port, p)| (*port, p.data().to_vec())).collect();
                        all.sort_by_key(|o| o.0);
                        all
                    };
                    let got = contents(combo.act([make()]));
                    got.iter().for_each(|o| seen[o.0] += 1);
                    assert_eq!(got, contents(want), "{given:?} {ttl_value} {payload} {df} {paint}");
                }
            }
            let all =
                [redirect.all_dropped(), options.all_dropped(), ttl.all_dropped(), fragment.all_dropped()];
            assert_eq!(combo.all_dropped(), all.iter().sum::<u64>());
            assert!(seen.iter().take(outputs).all(|&n| n > 0), "{seen:?}");
        }
    }
}
