// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the diagnostics about packet types.

use super::flow::Types;
use super::types::{Conflict, Data, ETHER, PacketType};
use crate::Graph;
use crate::check::{SHOWN, label_element, with_origin};
use crate::flow::Side;
use castanet_lang::Diagnostic;
use castanet_spec::packets::{Amount, Gives, Wants, ethertype};
use std::collections::HashSet;

/// At most this many conflicts are reported.
const MOST: usize = 500;

/// Returns the diagnostics: one for each input and kind of conflict.
pub(super) fn diagnostics(graph: &Graph, types: &Types) -> Vec<Diagnostic> {
    if types.conflicts.is_empty() {
        return Vec::new();
    }
    let mut conflicts = types.conflicts.clone();
    // The sort is stable, so the shortest path to an input stays first.
    conflicts.sort_by_key(|c| c.0);
    let mut seen = HashSet::new();
    conflicts.retain(|c| seen.insert((c.0, std::mem::discriminant(&c.2))));
    let whole = kept_whole(graph, types);
    let report = |&(input, index, conflict): &(usize, usize, Conflict)| {
        Report::new(graph, types, input, index, conflict).diagnostic(&whole)
    };
    conflicts.iter().take(MOST).filter_map(report).collect()
}

/// For each point: whether packets that pass it may go on to an element that wants Ethernet frames, without an element
/// on the way that changes where their data starts.
fn kept_whole(graph: &Graph, types: &Types) -> Vec<bool> {
    let points = &graph.points;
    let mut whole = vec![false; points.len()];
    let wants_frames = |&p: &usize| {
        let wants = types.code(points.owner(p)).input(points.port(p));
        points.side(p) == Side::Input && matches!(wants, Wants::Ether | Wants::EtherArp)
    };
    let mut open: Vec<usize> = (0..points.hub_start()).filter(wants_frames).collect();
    while let Some(point) = open.pop() {
        if whole.get_mut(point).is_none_or(|w| std::mem::replace(w, true)) {
            continue;
        }
        match points.side(point) {
            Side::Input => open.extend(graph.peers(point).map(|(p, _)| p)),
            Side::Hub => open.extend(points.backward.indices(point)),
            Side::Output => {
                let gives = types.code(points.owner(point)).output(points.port(point));
                let passes =
                    |g| matches!(g, Gives::Same | Gives::Mark(_) | Gives::Check(_) | Gives::OfType(_));
                if passes(gives) {
                    open.extend(points.backward.indices(point));
                }
            }
        }
    }
    whole
}

/// A conflict, and what its message tells about it.
struct Report<'a> {
    graph: &'a Graph,
    /// The refusing input.
    input: usize,
    /// The output that is connected to it.
    output: usize,
    /// The element where the type begins.
    source: usize,
    /// The elements between, the nearest to the refusing input first, at most [`SHOWN`].
    between: Vec<usize>,
    /// How many more elements are between.
    hidden: usize,
    packets: PacketType,
    wants: Wants,
    conflict: Conflict,
}

impl<'a> Report<'a> {
    fn new(graph: &'a Graph, types: &Types, input: usize, index: usize, conflict: Conflict) -> Report<'a> {
        let points = &graph.points;
        let mut path = types.path(graph, input, index);
        let output = path.by_ref().nth(1).unwrap_or(input);
        let (mut source, mut between, mut hidden) = (points.owner(output), Vec::new(), 0);
        for e in path.map(|p| points.owner(p)) {
            if e == source {
                continue;
            }
            if between.len() < SHOWN {
                between.push(source);
            } else {
                hidden += 1;
            }
            source = e;
        }
        let packets = types.at(input).get(index).map_or(PacketType::ANY, |r| r.packets);
        let wants = types.code(points.owner(input)).input(points.port(input));
        Report { graph, input, output, source, between, hidden, packets, wants, conflict }
    }

    fn owner(&self, point: usize) -> usize {
        self.graph.points.owner(point)
    }

    fn diagnostic(&self, whole: &[bool]) -> Option<Diagnostic> {
        let g = self.graph;
        let (input, output, source) = (self.input, self.output, self.source);
        let e = self.owner(input);
        let message = format!(
            "'{}' {}, but {} from '{}' {}",
            g.declaration(e),
            self.wanted(),
            self.sent(),
            g.declaration(source),
            self.wrong()
        );
        let connection = g.peers(input).find(|&(p, _)| p == output).map(|(_, c)| c);
        let span = connection.and_then(|c| g.flat.connections.get(c)).map(|c| c.span);
        let mut d = match self.wants {
            Wants::IpOptional => Diagnostic::warning(message, span?),
            _ => Diagnostic::error(message, span),
        };
        d = d.at("these packets are of the wrong type");
        d = self.with_path(d);
        let passed_whole = g.points.outputs(e).any(|o| whole.get(o).copied().unwrap_or_default());
        let (help, inserted) = self.mend(passed_whole);
        d = d.help(match inserted {
            Some(elements) => format!("{help}: {}", self.mended(input, output, &elements)),
            None => help,
        });
        if self.hidden > 0 {
            let s = if self.hidden == 1 { "" } else { "s" };
            d = d.help(format!("before these elements, the packets pass {} more element{s}", self.hidden));
        }
        Some(with_origin(g, e, d))
    }

    /// Adds labels for the element where the type begins and for the elements between.
    fn with_path(&self, mut d: Diagnostic) -> Diagnostic {
        let g = self.graph;
        d = label_element(g, self.source, d, format!("{} begin here", self.begun()));
        for &e in self.between.iter().rev() {
            d = label_element(g, e, d, format!("'{}' passes them on", g.declaration(e)));
        }
        d
    }

    /// What the element wants, as a predicate.
    fn wanted(&self) -> String {
        match self.wants {
            Wants::Ether => "takes Ethernet frames".into(),
            Wants::EtherArp => "takes ARP packets in Ethernet frames".into(),
            Wants::IpAt(n) | Wants::NetworkAt(n) => match n {
                Amount::Number(0) => "takes packets that begin with an IP header".into(),
                n => format!("takes packets with an IP header at byte {n}"),
            },
            Wants::IpOptional => "reads IP headers that are marked".into(),
            Wants::Ip | Wants::Any => "takes IP packets with marked header".into(),
        }
    }

    /// What arrives.
    fn sent(&self) -> &'static str {
        match self.packets.data {
            Data::Frame { at: 0, .. } => "Ethernet frames",
            Data::Frame { at: ETHER, .. } => "stripped Ethernet frames",
            Data::Network { at: 0, protocol: Some(ethertype::IP) } => "IP packets",
            Data::Frame { .. } | Data::Network { .. } | Data::Any => "the packets",
        }
    }

    /// What leaves the element where the type begins.
    fn begun(&self) -> &'static str {
        match self.packets.data {
            Data::Frame { .. } => "Ethernet frames",
            Data::Network { protocol: Some(ethertype::IP), .. } => "IP packets",
            Data::Network { .. } | Data::Any => "packets",
        }
    }

    /// What is wrong with what arrives, as a predicate.
    fn wrong(&self) -> String {
        match self.conflict {
            Conflict::Unmarked => "have no marked IP header".into(),
            Conflict::Frame => "have their Ethernet header there".into(),
            Conflict::InHeader => "begin with their IP header".into(),
            Conflict::NoFrame => "have no Ethernet header".into(),
            Conflict::Protocol(ethertype::ARP) => "are ARP packets".into(),
            Conflict::Protocol(ethertype::IP) => "are IP packets".into(),
            Conflict::Protocol(other) => format!("have the EtherType 0x{other:04x}"),
        }
    }

    /// Returns advice, and the elements to insert on the connection to the refusing element, if that mends it.
    /// `passed_whole` says that the packets go on to an element that wants Ethernet frames.
    fn mend(&self, passed_whole: bool) -> (String, Option<String>) {
        let at = match self.packets.data {
            Data::Frame { at, .. } => Some(ETHER - at),
            Data::Network { at, .. } => at.checked_neg(),
            Data::Any => None,
        };
        let strip = |n: i64| if n == 0 { String::new() } else { format!("Strip({n}) -> ") };
        match (self.conflict, self.wants, at) {
            (Conflict::Unmarked, _, Some(n)) if n > 0 && passed_whole => (
                format!("mark the IP header, and keep the {}", self.sent()),
                Some(format!("MarkIPHeader({n})")),
            ),
            (Conflict::Unmarked, _, Some(n)) if n > 0 => (
                "strip the Ethernet header, check the IP header and mark it".into(),
                Some(format!("{}CheckIPHeader", strip(n))),
            ),
            (Conflict::Unmarked, _, Some(0)) => {
                ("check the IP header and mark it".into(), Some("CheckIPHeader".into()))
            }
            (Conflict::Unmarked, _, Some(_)) => (
                "mark the IP header with CheckIPHeader or MarkIPHeader before it is stripped".into(),
                None,
            ),
            (Conflict::Unmarked, _, None) => (
                "check the IP header and mark it; if the packets have an Ethernet header, Strip(14) removes it first".into(),
                Some("CheckIPHeader".into()),
            ),
            (Conflict::Frame, Wants::IpAt(_), Some(n)) if passed_whole => {
                (format!("the IP header is {n} bytes after the start of the data: CheckIPHeader({n})"), None)
            }
            (Conflict::Frame, Wants::NetworkAt(_), Some(n)) if passed_whole => {
                (format!("the IP header is {n} bytes after the start of the data: MarkIPHeader({n})"), None)
            }
            (Conflict::Frame, _, Some(n)) => {
                ("strip the Ethernet header".into(), Some(format!("Strip({n})")))
            }
            (Conflict::InHeader, ..) => {
                ("an Ethernet header has been stripped, or there was none: the IP header is at byte 0".into(), None)
            }
            (Conflict::NoFrame, _, Some(n)) if n < ETHER && matches!(self.packets.data, Data::Frame { .. }) => (
                "restore the Ethernet header, or make a new one with EtherEncap or ARPQuerier".into(),
                Some(format!("Unstrip({})", ETHER - n)),
            ),
            (Conflict::NoFrame, ..) => (
                "put an Ethernet header before them, with EtherEncap, or with ARPQuerier if addresses are to be found by ARP".into(),
                Some("EtherEncap(0x0800, SRC, DST)".into()),
            ),
            (Conflict::Protocol(_), Wants::EtherArp, _) => {
                ("the Classifier pattern of ARP packets is 12/0806".into(), None)
            }
            _ => ("the Classifier pattern of IP packets is 12/0800".into(), None),
        }
    }

    /// The connection with these elements inserted.
    fn mended(&self, input: usize, output: usize, elements: &str) -> String {
        let points = &self.graph.points;
        let port = |n: usize| if n == 0 { String::new() } else { format!("[{n}] ") };
        let (from, to) = (self.written(self.owner(output)), self.written(self.owner(input)));
        let (o, i) = (port(points.port(output)), port(points.port(input)));
        format!("{from} {o}-> {elements} -> {i}{to}")
    }

    /// An element as a configuration names it: by its name, or by class and arguments if it has no name of its own.
    fn written(&self, e: usize) -> String {
        let Some(element) = self.graph.element(e) else { return String::new() };
        match element.name.rsplit('/').next().and_then(|n| n.split_once('@')) {
            None => element.name.clone(),
            Some(_) if element.config.trim().is_empty() => element.class.to_string(),
            Some(_) if element.config.len() <= 20 => format!("{}({})", element.class, element.config.trim()),
            Some(_) => format!("{}(...)", element.class),
        }
    }
}
