// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes how packet data is aligned at each point of a configuration: a forward data-flow analysis.

use super::alignment::Alignment;
use super::{ALIGN, CHECK};
use crate::Graph;
use crate::flow::Side;
use crate::packets::{Data, Types};
use castanet_lang::PortRef;
use castanet_spec::packets::{Contents, Gives, Wants};
use castanet_spec::{AlignmentCode, Given};
use std::collections::VecDeque;

/// The modulus to which IP headers are to be aligned, in bytes.
const IP: u32 = 4;
/// The length of an Ethernet header, in bytes.
const ETHER: i64 = 14;

/// The alignment of packet data at each point.
pub(super) struct Flow<'a> {
    graph: &'a Graph,
    types: &'a Types,
    /// By element: the arguments of an Align.
    aligns: Vec<Option<Alignment>>,
    /// By element: the arguments of a CheckAlign.
    checks: Vec<Option<Alignment>>,
    /// By point: the alignment; `None` where no packets come.
    at: Vec<Option<Alignment>>,
    /// By point: the alignment that the element wants on this input.
    wanted: Vec<Option<Alignment>>,
}

impl<'a> Flow<'a> {
    /// Analyses a graph. If an input does not get the alignment that it wants, the analysis goes on as if an Align stood
    /// before the input.
    pub(super) fn new(graph: &'a Graph, types: &'a Types) -> Flow<'a> {
        let points = &graph.points;
        let [aligns, checks] =
            [ALIGN, CHECK].map(|class| (0..graph.len()).map(|e| arguments(graph, e, class)).collect());
        let none = vec![None; points.len()];
        let mut flow = Flow { graph, types, aligns, checks, at: none.clone(), wanted: none };
        for e in 0..points.elements() {
            for input in points.inputs(e) {
                let wanted = flow.wants(e, points.port(input));
                if let Some(slot) = flow.wanted.get_mut(input) {
                    *slot = wanted;
                }
            }
        }
        flow.spread();
        flow
    }

    /// The alignment of packets that arrive at an input or leave at an output; `None` if there are none.
    pub(super) fn at(&self, point: usize) -> Option<Alignment> {
        self.at.get(point).copied().flatten()
    }
    /// The alignment that an input wants.
    pub(super) fn wanted(&self, input: usize) -> Option<Alignment> {
        self.wanted.get(input).copied().flatten()
    }
    /// The arguments of an element, if it is an Align.
    pub(super) fn align(&self, e: usize) -> Option<Alignment> {
        self.aligns.get(e).copied().flatten()
    }
    /// By how many bytes an element moves the start of the data from an input to an output. `None` if that is not known,
    /// or if the alignment of the output does not depend on the input.
    pub(super) fn moves(&self, output: usize) -> Option<i64> {
        let points = &self.graph.points;
        let e = points.owner(output);
        if self.align(e).is_some() {
            return None;
        }
        if alignment_code(self.graph, e) != AlignmentCode::Passed {
            return None;
        }
        match self.types.code(e).output(points.port(output)) {
            Gives::Same | Gives::Mark(_) | Gives::Check(_) | Gives::OfType(_) | Gives::Classified => Some(0),
            Gives::Strip(n) => n.number(),
            Gives::Unstrip(n) => n.number()?.checked_neg(),
            Gives::Fixed(..) | Gives::Changed | Gives::ToNetwork | Gives::Framed(_) => None,
        }
    }

    /// The alignment of packets that begin at an output, or whose alignment an element sets. `None` if it depends on the
    /// input.
    fn begins(&self, output: usize) -> Option<Alignment> {
        let points = &self.graph.points;
        let e = points.owner(output);
        if let Some(align) = self.align(e) {
            return Some(align);
        }
        // Other packets leave on output 1.
        if let Some(check) = self.checks.get(e).copied().flatten().filter(|_| points.port(output) == 0) {
            return Some(check);
        }
        let gives = self.types.code(e).output(points.port(output));
        let own_headroom = || {
            let element = self.graph.element(e).zip(self.graph.spec(e));
            element.is_some_and(|(e, spec)| Given::new(&e.config, spec.args).is_given("HEADROOM"))
        };
        match (alignment_code(self.graph, e), gives) {
            (AlignmentCode::Data(..) | AlignmentCode::Network(_), _) if own_headroom() => {
                Some(Alignment::ANY)
            }
            (AlignmentCode::Data(m, o), _) => Alignment::new(m, o),
            (AlignmentCode::Network(m), Gives::Fixed(Contents::Ether(_), _)) => {
                Alignment::new(m, 0).map(|a| a.moved(-ETHER))
            }
            (AlignmentCode::Network(m), Gives::Fixed(Contents::Network(_), _)) => Alignment::new(m, 0),
            (AlignmentCode::Network(_), _) => Some(Alignment::ANY),
            (AlignmentCode::Passed, _) if self.moves(output).is_none() => Some(Alignment::ANY),
            (AlignmentCode::Passed, _) => None,
        }
    }

    /// The alignment that an element wants on an input: the one that aligns IP headers.
    fn wants(&self, e: usize, port: usize) -> Option<Alignment> {
        let aligned = Alignment::new(IP, 0)?;
        match self.types.code(e).input(port) {
            Wants::IpAt(n) => Some(aligned.moved(n.number()?.checked_neg()?)),
            Wants::Ip | Wants::IpOptional => {
                // Where nothing is known, the data is taken to begin with the IP header.
                let start = |data: Data| match data {
                    Data::Frame { at, .. } => at - ETHER,
                    Data::Network { at, .. } => at,
                    Data::Any => 0,
                };
                let input = PortRef { element: e, port };
                let mut all = self.types.input(self.graph, input).map(|t| aligned.moved(start(t.data)));
                let first = all.next().unwrap_or(aligned);
                all.all(|a| a == first).then_some(first)
            }
            Wants::Any | Wants::Ether | Wants::EtherArp | Wants::NetworkAt(_) => None,
        }
    }

    fn spread(&mut self) {
        let points = &self.graph.points;
        let mut queue = VecDeque::new();
        for output in (0..points.elements()).flat_map(|e| points.outputs(e)) {
            if let Some(begins) = self.begins(output) {
                self.add(output, begins, &mut queue);
            }
        }
        while let Some(point) = queue.pop_front() {
            let Some(here) = self.at(point) else { continue };
            if points.side(point) == Side::Output {
                for (input, _) in self.graph.peers(point) {
                    self.add(input, here, &mut queue);
                }
                continue;
            }
            let here = match self.wanted(point) {
                Some(wanted) if !here.satisfies(wanted) => wanted,
                _ => here,
            };
            for to in points.forward.indices(point) {
                if points.side(to) == Side::Hub {
                    self.add(to, here, &mut queue);
                } else if self.begins(to).is_none() {
                    let by = self.moves(to);
                    self.add(to, by.map_or(Alignment::ANY, |by| here.moved(by)), &mut queue);
                }
            }
        }
    }

    /// Joins an alignment with that of a point.
    fn add(&mut self, point: usize, new: Alignment, queue: &mut VecDeque<usize>) {
        let Some(slot) = self.at.get_mut(point) else { return };
        let joined = slot.map_or(new, |old| old.join(new));
        if *slot != Some(joined) {
            *slot = Some(joined);
            queue.push_back(point);
        }
    }
}

fn alignment_code(graph: &Graph, e: usize) -> AlignmentCode {
    let code = graph.spec(e).and_then(|s| AlignmentCode::parse(s.alignment));
    code.unwrap_or(AlignmentCode::Passed)
}

/// The alignment in the arguments of an Align or CheckAlign; `None` if the element is not of this class, or if its arguments are not
/// valid.
fn arguments(graph: &Graph, e: usize, class: &str) -> Option<Alignment> {
    let spec = graph.spec(e).filter(|s| s.name == class)?;
    let given = Given::new(&graph.element(e)?.config, spec.args);
    let number = |name| u32::try_from(given.number(name)?).ok();
    Alignment::new(number("MODULUS")?, number("OFFSET")?)
}
