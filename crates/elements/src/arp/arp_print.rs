// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARPPrint: prints a line of text for each ARP packet.

use crate::line_output::LineOutput;
use castanet_element::prelude::*;
use castanet_wire::arp::{ArpHeader, HARDWARE_ETHER, op};
use castanet_wire::ether::{EtherAddr, EtherHeader, ethertype};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// Prints ARP packets (RFC 826, 903, 2390), one line each, and passes them on.
///
/// A line shows the operation and the addresses of a packet. Lines go to standard error, or to OUTFILE. Packets without
/// a network header annotation, and ARP packets for protocols other than IPv4, pass without being printed.
///
/// # Ports
/// Input 0, output 0: ARP packets.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<0001080006040001 020000000009 0a000009 000000000000 0a000001>, LIMIT 2, STOP true)
///     -> MarkIPHeader -> ARPPrint(arp, TIMESTAMP false) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "ARPPrint", ports = "1/1", processing = "a/a", packets = "any/same", workers = share)]
#[class(takes_state = "the open file")]
#[class(effects(prints, files), build, lifecycle)]
pub struct ArpPrint {
    args: Args,
    lines: LineOutput,
    text: String,
}

/// Arguments of ARPPrint.
#[derive(Args)]
pub struct Args {
    /// A text to put at the beginning of each line.
    #[arg(default = String::new(), show = "")]
    label: String,
    /// Whether to print the timestamp annotation.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// Whether to print the Ethernet addresses of the frame.
    #[arg(keyword, default = false)]
    ether: bool,
    /// Whether packets are printed; false to pass them silently.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
    /// A file to print to; '-' is standard output.
    #[arg(keyword)]
    outfile: Option<Filename>,
}

impl Build for ArpPrint {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let lines = LineOutput::new(args.outfile.clone(), None, cx);
        Ok(ArpPrint { args, lines, text: String::new() })
    }
}

impl Lifecycle for ArpPrint {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.lines.initialise(cx)
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.lines.cleanup(cx)
    }
    fn holds(&self) -> Option<String> {
        self.lines.holds()
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.lines.take_over(&mut old.lines, cx)
    }
    fn effects(&self, declared: Effects) -> Effects {
        self.lines.effects(declared)
    }
}

/// Appends a description of an ARP packet to `out`. Returns `None` if its protocol is not IPv4.
fn said(packet: &[u8], out: &mut String) -> Option<()> {
    let Some(h) = ArpHeader::from_prefix(packet) else {
        let _ = write!(out, "truncated-arp ({})", packet.len());
        return Some(());
    };
    if h.protocol.get() != ethertype::IPV4 || h.protocol_len != 4 {
        return None;
    }
    let (sender, sender_ip) = (h.sender_ether, Ipv4Addr::from_bits(h.sender_ip.get()));
    let (target, target_ip) = (h.target_ether, Ipv4Addr::from_bits(h.target_ip.get()));
    // Writing to a string cannot fail.
    let _ = match h.op.get() {
        op::REQUEST if target == EtherAddr::ZERO => write!(out, "arp who-has {target_ip} tell {sender_ip}"),
        op::REQUEST => write!(out, "arp who-has {target_ip} ({target}) tell {sender_ip}"),
        op::REPLY => write!(out, "arp reply {sender_ip} is-at {sender}"),
        op::RARP_REQUEST => write!(out, "rarp who-is {target} tell {sender}"),
        op::RARP_REPLY => write!(out, "rarp reply {target} at {target_ip}"),
        op::INVERSE_REQUEST => write!(out, "invarp who-is {target} tell {sender}"),
        op::INVERSE_REPLY => write!(out, "invarp reply {sender} at {sender_ip}"),
        other => write!(out, "arp-#{other}"),
    };
    if h.hardware.get() != HARDWARE_ETHER {
        let _ = write!(out, "hardware #{}", h.hardware.get());
    }
    Some(())
}

impl ArpPrint {
    /// Writes the line for a packet to `self.text`. Returns `None` if the packet is not to be printed.
    fn line(&mut self, p: &Packet) -> Option<()> {
        let network = p.network()?;
        self.text.clear();
        if !self.args.label.is_empty() {
            let _ = write!(self.text, "{}: ", self.args.label);
        }
        if self.args.timestamp {
            let t = p.timestamp();
            let (s, ns) = (t.div_euclid(1_000_000_000), t.rem_euclid(1_000_000_000));
            let _ = match ns % 1000 {
                0 => write!(self.text, "{s}.{:06}: ", ns / 1000),
                _ => write!(self.text, "{s}.{ns:09}: "),
            };
        }
        if self.args.ether
            && let Some(h) = p.mac().and_then(EtherHeader::from_prefix)
        {
            let _ = write!(self.text, "{} > {}: ", h.src, h.dst);
        }
        said(network, &mut self.text)
    }
}

impl Action for ArpPrint {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if self.args.active && self.line(p).is_some() {
            self.lines.print(&mut self.text, cx);
        }
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    const ME: EtherAddr = EtherAddr([2, 0, 0, 0, 0, 1]);
    const YOU: EtherAddr = EtherAddr([2, 0, 0, 0, 0, 9]);

    fn arp(op: u16, target: EtherAddr) -> [u8; 28] {
        ArpHeader::new(op, (ME, 0x0a00_0001), (target, 0x0a00_0002)).to_bytes()
    }

    fn frame(arp: &[u8]) -> Packet {
        let ether = EtherHeader::new(EtherAddr::BROADCAST, ME, ethertype::ARP).to_bytes();
        let mut p = packet(&[&ether, arp].concat());
        p.set_mac_header(0);
        p.set_network_header(14, arp.len().min(28));
        p
    }

    #[test]
    fn lines() {
        for (op, target, line) in [
            (1, EtherAddr::ZERO, "arp who-has 10.0.0.2 tell 10.0.0.1"),
            (1, YOU, "arp who-has 10.0.0.2 (02-00-00-00-00-09) tell 10.0.0.1"),
            (2, YOU, "arp reply 10.0.0.1 is-at 02-00-00-00-00-01"),
            (3, YOU, "rarp who-is 02-00-00-00-00-09 tell 02-00-00-00-00-01"),
            (4, YOU, "rarp reply 02-00-00-00-00-09 at 10.0.0.2"),
            (8, YOU, "invarp who-is 02-00-00-00-00-09 tell 02-00-00-00-00-01"),
            (9, YOU, "invarp reply 02-00-00-00-00-01 at 10.0.0.1"),
            (7, YOU, "arp-#7"),
        ] {
            let mut kit = Kit::<ArpPrint>::new("A, TIMESTAMP false").unwrap();
            assert_eq!(kit.act([frame(&arp(op, target))]).len(), 1);
            assert_eq!(kit.messages(), [format!("A: {line}")]);
            // The same packet for hardware other than Ethernet.
            let mut other = arp(op, target);
            other[1] = 6;
            kit.act([frame(&other)]);
            assert_eq!(kit.messages(), [format!("A: {line}hardware #6")]);
        }
    }

    #[test]
    fn every_length_and_other_protocols() {
        let mut kit = Kit::<ArpPrint>::new("TIMESTAMP false").unwrap();
        for len in 0..28 {
            assert_eq!(kit.act([frame(&arp(1, YOU)[..len])]).len(), 1);
            assert_eq!(kit.messages(), [format!("truncated-arp ({len})")]);
        }
        for (at, value) in [(2, 9), (3, 1), (5, 5)] {
            let mut other = arp(1, YOU);
            other[at] = value;
            assert_eq!(kit.act([frame(&other)]).len(), 1);
        }
        kit.act([packet(&arp(1, YOU))]);
        assert!(kit.messages().is_empty(), "nothing for other protocols or without a network header");
    }

    #[test]
    fn prefixes_and_activity() {
        let mut kit = Kit::<ArpPrint>::new("E, ETHER true").unwrap();
        for (time, text) in [(1_500_000_000, "1.500000"), (7, "0.000000007")] {
            let mut p = frame(&arp(2, YOU));
            p.set_timestamp(time);
            kit.act([p]);
            let line = "02-00-00-00-00-01 > FF-FF-FF-FF-FF-FF: arp reply 10.0.0.1 is-at 02-00-00-00-00-01";
            assert_eq!(kit.messages(), [format!("E: {text}: {line}")]);
        }
        kit.write("active", "false").unwrap();
        assert_eq!(kit.act((0..3).map(|_| frame(&arp(2, YOU)))).len(), 3);
        assert!(kit.messages().is_empty());
        assert_eq!(kit.read("active").unwrap(), "false");
    }

    #[test]
    fn to_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out");
        let config = format!("A, TIMESTAMP false, OUTFILE {}", file.display());
        let mut kit = Kit::<ArpPrint>::new(&config).unwrap();
        kit.act((0..3).map(|_| frame(&arp(2, YOU))));
        kit.cleanup().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text, "A: arp reply 10.0.0.1 is-at 02-00-00-00-00-01\n".repeat(3));
        assert!(kit.messages().is_empty());
        assert!(Kit::<ArpPrint>::new("OUTFILE /nonexistent/out").is_err());
        assert!(Kit::<ArpPrint>::new("CHANNEL x").is_err());
    }

    #[test]
    fn effects_are_where_the_lines_go() {
        let effects = |config: &str| {
            Kit::<ArpPrint>::new(config).unwrap().element.effects(Effects::from_bits_truncate(15))
        };
        assert_eq!((effects("A"), effects("OUTFILE -")), (Effects::PRINTS, Effects::FILES));
    }
}
