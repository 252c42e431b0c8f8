// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPFilter: a firewall of rules over IP headers.

use super::patterns::{Classify, ConfigNames, PatternText, Written, of_places};
use super::rule_file::{self, Rule};
use castanet_classify::Program;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_lang::args as text;

/// Passes or drops IP packets by rules.
///
/// A rule is an action and an expression in the language of IPClassifier. The first rule that matches
/// decides. The action is `allow` (output 0), `deny` or `drop` (the packet is dropped), or the number of an
/// output. Packets that match no rule are dropped. The network header must be marked.
///
/// `file NAME` stands for the rules in a file, one a line. A file may have empty lines, and comments that begin
/// with `//`, or with `#` at the start of a line. It has at most 1 MiB, and cannot name another file. An element
/// has at most 100,000 rules.
///
/// # Ports
/// Input 0: IP packets. Outputs: as the rules say.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader
///     -> IPFilter(deny src 10.0.0.0/8, allow tcp dst port www, allow icmp) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "IPFilter", ports = "1/-", processing = "h/h", packets = "ip/same", workers = replicate)]
#[class(reconfigure = keeps, drops(NoMatch, NoIpHeader), build, handlers, depends = packet)]
#[class(kernel)]
pub struct IpFilter {
    args: Args,
    classify: Classify,
}

/// Arguments of IPFilter.
#[derive(Args)]
pub struct Args {
    /// Rules: 'ACTION EXPRESSION', where ACTION is allow, deny, drop or an output; or 'file NAME'.
    #[arg(rest)]
    rule: Vec<PatternText>,
}

impl Args {
    /// The rules as they are written; a rule `file NAME` is one of them.
    pub(super) fn texts(&self) -> Vec<&str> {
        self.rule.iter().map(|p| p.0.as_str()).collect()
    }
}

impl Build for IpFilter {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        // The file is read once, so that all workers have the same rules.
        let arg_cx = cx.arg_cx();
        let rules = cx.share(|| rule_file::rules(args.texts().into_iter(), &arg_cx));
        let rules = match rules.as_ref() {
            Ok(rules) => rules,
            Err((argument, error)) => {
                let range = text::split(cx.config).get(*argument).cloned().unwrap_or(0..usize::MAX);
                return Err(ArgError::new(error.to_string(), range).into());
            }
        };
        let texts: Vec<&str> = rules.iter().map(|r| r.text.as_str()).collect();
        let compiled = Program::from_ip_filter(&texts, &ConfigNames::new(arg_cx), cx.outputs);
        let program = of_places(compiled, cx, |i| {
            let nowhere = || Written { argument: usize::MAX, line: None };
            rules.get(i).map_or_else(nowhere, Rule::written)
        })?;
        Ok(IpFilter { args, classify: Classify::new(program, cx) })
    }
}

#[handlers]
impl IpFilter {
    /// The decision tree.
    #[read(merge = first)]
    fn program(&self) -> String {
        self.classify.program().program_text()
    }
}

impl Element for IpFilter {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.classify.push(batch, cx);
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        self.classify.push_one(p, cx);
    }
}

impl InKernel for IpFilter {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        self.classify.lower(code)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn tcp(src: [u8; 4], port: u16) -> Packet {
        let mut data = Vec::new();
        let b = etherparse::PacketBuilder::ipv4(src, [9, 9, 9, 9], 64).tcp(1000, port, 0, 0);
        b.write(&mut data, &[]).unwrap();
        let mut p = packet(&data);
        p.set_network_header(0, 20);
        p
    }

    #[test]
    fn first_rule_decides() {
        let rules = "deny src net 10.0.0.0/8, 1 tcp dst port ssh, allow tcp dst port 80";
        let mut kit = Kit::<IpFilter>::with_ports(rules, 1, 2).unwrap();
        let packets = [([10, 1, 1, 1], 80), ([1, 1, 1, 1], 80), ([1, 1, 1, 1], 22), ([1, 1, 1, 1], 23)];
        let out = kit.push(0, packets.map(|(a, p)| tcp(a, p)));
        assert_eq!(out.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(kit.dropped(Reason::NoMatch), 2);
        assert!(kit.push(0, [packet(&[0x45; 40]), packet(&[0x45; 40])]).is_empty());
        assert_eq!(kit.dropped(Reason::NoIpHeader), 2);
        assert!(kit.read("program").unwrap().contains("safe length"));
    }

    #[test]
    fn the_example() {
        let rules = "deny src 10.0.0.0/8, allow tcp dst port www, allow icmp";
        let mut kit = Kit::<IpFilter>::with_ports(rules, 1, 1).unwrap();
        let out = kit.push(0, [tcp([10, 1, 1, 1], 80), tcp([11, 1, 1, 1], 80), tcp([11, 1, 1, 1], 81)]);
        assert_eq!((out.len(), kit.warnings().len()), (1, 0));
    }

    #[test]
    fn errors_and_warnings() {
        assert!(Kit::<IpFilter>::with_ports("permit all", 1, 1).is_err());
        let kit = Kit::<IpFilter>::with_ports("allow tcp, 3 udp", 1, 1).unwrap();
        assert_eq!(kit.warnings().len(), 1, "{:?}", kit.warnings());
        let mut kit = Kit::<IpFilter>::with_ports("", 1, 1).unwrap();
        assert!(kit.push(0, [tcp([1, 1, 1, 1], 2)]).is_empty());
    }
}
