// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spreads packet types along connections and through elements: a data-flow analysis.
//!
//! Each point keeps the types of all paths that lead to it. So a wrong path is found even where it has joined right
//! ones. Where packets of several types enter an element that tells packets apart (a switch, or an element that drops
//! some), it may send each type another way. After such an element only what the types have in common is known.

use super::PacketType;
use super::types::Conflict;
use crate::Graph;
use crate::flow::Side;
use castanet_lang::PortRef;
use castanet_spec::packets::{PacketCode, Wants};
use castanet_spec::{ClassSpec, Reason};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A point keeps at most this many types. If there are more, the others count as unknown.
const MOST: usize = 8;

/// The code of unknown classes.
const ANY: &PacketCode = &PacketCode::ANY;

/// A type that reaches a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// The type.
    pub(super) packets: PacketType,
    /// The point that the packets come from, and the index of their type there. `None` where the type begins.
    pub(super) from: Option<(usize, usize)>,
}

/// The types that reach one point: at most points, a single one.
#[derive(Clone, Debug, Default)]
enum Reaches {
    #[default]
    None,
    One(Reach),
    Several(Vec<Reach>),
}

impl Reaches {
    fn as_slice(&self) -> &[Reach] {
        match self {
            Reaches::None => &[],
            Reaches::One(one) => std::slice::from_ref(one),
            Reaches::Several(all) => all,
        }
    }
    fn push(&mut self, new: Reach) {
        match self {
            Reaches::None => *self = Reaches::One(new),
            Reaches::One(one) => *self = Reaches::Several(vec![*one, new]),
            Reaches::Several(all) => all.push(new),
        }
    }
}

/// The packet types at all points of a graph.
pub struct Types {
    /// By number: the packet type codes. Elements of a class share one, or those with equal arguments, if it depends on them.
    codes: Vec<PacketCode>,
    /// By element: the number of its code.
    code: Vec<usize>,
    /// By point: the types that reach it.
    reach: Vec<Reaches>,
    /// The inputs that refuse packets, in the order in which they were found: the point, the index of the type there, and
    /// the conflict.
    pub(super) conflicts: Vec<(usize, usize, Conflict)>,
}

impl Types {
    /// Analyses a graph.
    pub fn new(graph: &Graph) -> Types {
        let mut types = Types::unspread(graph);
        // The first pass finds where several types meet.
        types.spread(graph, &FxHashMap::default());
        let tells_apart: Vec<bool> = (0..graph.len()).map(|e| tells_apart(graph, e)).collect();
        let meet = |point: usize| -> Option<PacketType> {
            let e = graph.points.owner(point);
            let [first, others @ ..] = types.at(point) else { return None };
            (!others.is_empty() && graph.points.side(point) == Side::Input && *tells_apart.get(e)?)
                .then(|| others.iter().fold(first.packets, |all, r| all.join(r.packets)))
        };
        let mixed: FxHashMap<usize, PacketType> =
            (0..graph.points.len()).filter_map(|p| Some((p, meet(p)?))).collect();
        if !mixed.is_empty() {
            types.spread(graph, &mixed);
        }
        types
    }

    /// Returns no types, only what the elements of a graph want and give.
    fn unspread(graph: &Graph) -> Types {
        let (codes, code) = codes(graph);
        Types { codes, code, reach: Vec::new(), conflicts: Vec::new() }
    }
    /// Whether all elements of a graph take any packets. In such a graph, no input refuses packets.
    pub(super) fn are_free(graph: &Graph) -> bool {
        Types::unspread(graph).codes.iter().all(PacketCode::takes_any)
    }

    /// Returns the types of the packets that may arrive at an input. Packets that an element upstream refuses are left
    /// out.
    pub fn input(&self, graph: &Graph, input: PortRef) -> impl Iterator<Item = PacketType> + '_ {
        let point = graph.points.input(input.element, input.port);
        point.map_or(&[][..], |p| self.at(p)).iter().map(|r| r.packets)
    }
    /// Returns the inputs that refuse packets, or pass wrong packets on. An input may occur several times.
    pub fn refused<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = PortRef> + 'a {
        let port = |p| PortRef { element: graph.points.owner(p), port: graph.points.port(p) };
        self.conflicts.iter().map(move |c| port(c.0))
    }
    /// The code of an element.
    pub(crate) fn code(&self, e: usize) -> &PacketCode {
        self.code.get(e).and_then(|&n| self.codes.get(n)).unwrap_or(ANY)
    }
    /// The types that reach a point.
    pub(super) fn at(&self, point: usize) -> &[Reach] {
        self.reach.get(point).map_or(&[], Reaches::as_slice)
    }
    /// The points on the way of a type to a point, from this point back to where the type begins. Hubs are left out.
    pub(super) fn path<'a>(
        &'a self,
        graph: &'a Graph,
        point: usize,
        index: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let back = |&(p, i): &(usize, usize)| self.at(p).get(i).and_then(|r| r.from);
        let walk = std::iter::successors(Some((point, index)), back);
        walk.map(|(p, _)| p).filter(|&p| graph.points.side(p) != Side::Hub)
    }

    /// Spreads types from the outputs that always have the same one. Packets do not go beyond an input that refuses
    /// them, unless the element passes them on. `mixed` has the inputs after which packets are of a common type.
    fn spread(&mut self, graph: &Graph, mixed: &FxHashMap<usize, PacketType>) {
        let points = &graph.points;
        self.reach = vec![Reaches::default(); points.len()];
        self.conflicts.clear();
        let (mut queue, mut next) = (VecDeque::new(), Vec::new());
        for output in (0..points.elements()).flat_map(|e| points.outputs(e)) {
            let gives = self.code(points.owner(output)).output(points.port(output));
            if let Some(packets) = PacketType::fixed(gives) {
                self.add(output, Reach { packets, from: None }, &mut queue);
            }
        }
        while let Some((point, index)) = queue.pop_front() {
            let Some(&Reach { packets, .. }) = self.at(point).get(index) else { continue };
            let from = Some((point, index));
            let side = points.side(point);
            if side == Side::Output {
                for (input, _) in graph.peers(point) {
                    self.add(input, Reach { packets, from }, &mut queue);
                }
                continue;
            }
            let code = self.code(points.owner(point));
            if side == Side::Input {
                let wants = code.input(points.port(point));
                if let Some(conflict) = packets.conflict(wants) {
                    self.conflicts.push((point, index, conflict));
                    if wants != Wants::IpOptional {
                        continue;
                    }
                }
            }
            let code = self.code(points.owner(point));
            let packets = mixed.get(&point).map_or(packets, |common| packets.join(*common));
            for to in points.forward.indices(point) {
                if points.side(to) == Side::Hub {
                    next.push((to, packets));
                    continue;
                }
                let gives = code.output(points.port(to));
                if PacketType::fixed(gives).is_none() {
                    next.push((to, packets.after(gives)));
                }
            }
            for (to, packets) in next.drain(..) {
                self.add(to, Reach { packets, from }, &mut queue);
            }
        }
    }

    /// Adds a type to a point, unless it is there.
    fn add(&mut self, point: usize, new: Reach, queue: &mut VecDeque<(usize, usize)>) {
        let Some(here) = self.reach.get_mut(point) else { return };
        let known = here.as_slice();
        let packets = if known.len() < MOST { new.packets } else { PacketType::ANY };
        if known.len() <= MOST && known.iter().all(|r| r.packets != packets) {
            queue.push_back((point, known.len()));
            here.push(Reach { packets, ..new });
        }
    }
}

/// Returns the packet type codes, and the number of the code of each element.
fn codes(graph: &Graph) -> (Vec<PacketCode>, Vec<usize>) {
    let mut codes = vec![PacketCode::ANY];
    let mut of_class: FxHashMap<&str, Option<usize>> = FxHashMap::default();
    let mut of_config: FxHashMap<(&str, &str), usize> = FxHashMap::default();
    let mut numbers = Vec::with_capacity(graph.len());
    for (e, element) in graph.flat.elements.iter().enumerate() {
        let Some(spec) = graph.spec(e) else {
            numbers.push(0);
            continue;
        };
        let fixed = *of_class.entry(spec.name).or_insert_with(|| {
            (!spec.packet_code_varies()).then(|| {
                codes.push(spec.packet_code(""));
                codes.len() - 1
            })
        });
        numbers.push(fixed.unwrap_or_else(|| {
            *of_config.entry((spec.name, element.config.as_str())).or_insert_with(|| {
                codes.push(spec.packet_code(&element.config));
                codes.len() - 1
            })
        }));
    }
    (codes, numbers)
}

/// Whether an element may treat packets of different types differently: send them to different outputs, or drop some.
fn tells_apart(graph: &Graph, e: usize) -> bool {
    let by_content = |spec: &ClassSpec| {
        spec.drops.iter().any(|r| {
            !matches!(
                r,
                Reason::QueueFull
                    | Reason::NoBuffer
                    | Reason::NoHeadroom
                    | Reason::Stopped
                    | Reason::Cleared
                    | Reason::SendFailed
            )
        })
    };
    graph.outputs(e) > 1 || graph.spec(e).is_none_or(by_content)
}
