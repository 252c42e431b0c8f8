// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who calls whom while packets move: pushes go downstream, pulls go upstream, and what a pull brings may be pushed aside.

use crate::csr::Csr;
use crate::flow::Side;
use crate::graph::{Graph, Kind};

/// The graph of calls. Its states are the points of the graph, and each hub a second time for pulls on their way upstream.
///
/// - From a push output over its connections to push inputs; from there inside the element to its push outputs.
/// - From a pull input over its connections to pull outputs; from there inside the element to its pull inputs.
/// - From a pull input inside its element to push outputs: what was pulled may leave there.
///
/// A storage class takes pushes and answers pulls, so calls end in it from both sides.
pub(crate) struct Calls {
    next: Csr<usize>,
    owner: Vec<usize>,
    points: usize,
}

impl Calls {
    pub(crate) fn new(graph: &Graph) -> Calls {
        let points = &graph.points;
        let hubs = points.len() - points.hub_start();
        let push_output = |q: usize| points.side(q) == Side::Output && graph.kind(q) == Kind::Push;
        let pull_input = |q: usize| points.side(q) == Side::Input && graph.kind(q) == Kind::Pull;
        let mut edges = Vec::new();
        for p in 0..points.len() {
            let forward = points.forward.row(p).iter().copied();
            let forward = forward.filter(|&q| points.side(q) == Side::Hub || push_output(q)).map(|q| (p, q));
            let backward = points.backward.row(p).iter().copied();
            let backward = backward.filter(|&q| points.side(q) == Side::Hub || pull_input(q));
            // Where a state is a hub on the way up, it is counted after all points.
            let up = |q: usize| if points.side(q) == Side::Hub { q + hubs } else { q };
            match (points.side(p), points.side(p) == Side::Hub || graph.kind(p) == Kind::Push) {
                (Side::Input, true) => edges.extend(forward),
                (Side::Input, false) => {
                    let upstream = graph.peers(p).map(|c| c.0).filter(|&q| graph.kind(q) == Kind::Pull);
                    edges.extend(upstream.map(|q| (p, q)));
                    edges.extend(forward);
                }
                (Side::Output, true) => {
                    let downstream = graph.peers(p).map(|c| c.0).filter(|&q| graph.kind(q) == Kind::Push);
                    edges.extend(downstream.map(|q| (p, q)));
                }
                (Side::Output, false) => edges.extend(backward.map(|q| (p, up(q)))),
                (Side::Hub, _) => {
                    edges.extend(forward);
                    edges.extend(backward.map(|q| (up(p), up(q))));
                }
            }
        }
        let mut owner: Vec<_> = (0..points.len()).map(|p| points.owner(p)).collect();
        owner.extend((points.hub_start()..points.len()).map(|p| points.owner(p)));
        Calls { next: Csr::new(owner.len(), &edges), owner, points: points.hub_start() }
    }

    /// How many states there are.
    pub(crate) fn len(&self) -> usize {
        self.owner.len()
    }
    pub(crate) fn next(&self, state: usize) -> &[usize] {
        self.next.row(state)
    }
    pub(crate) fn owner(&self, state: usize) -> usize {
        self.owner[state]
    }
    /// Where a task of an element starts: its push outputs and its pull inputs.
    pub(crate) fn starts<'a>(&self, graph: &'a Graph, e: usize) -> impl Iterator<Item = usize> + 'a {
        let outputs = graph.points.outputs(e).filter(|&p| graph.kind(p) == Kind::Push);
        outputs.chain(graph.points.inputs(e).filter(|&p| graph.kind(p) == Kind::Pull))
    }
    /// Whether a call enters its element there: a push at an input or a pull at an output.
    pub(crate) fn enters(&self, graph: &Graph, state: usize) -> bool {
        state < self.points && (graph.points.side(state) == Side::Input) == (graph.kind(state) == Kind::Push)
    }
}

/// What a set of tasks reaches, with the call by which each state was first reached.
pub(crate) struct Reach {
    parent: Vec<usize>,
    /// For each state that was reached the beginning of its path, so that no path needs to be walked as a whole.
    starts: Vec<PathStart>,
    /// The states, in breadth-first order.
    pub(crate) order: Vec<usize>,
}

/// The beginning of a path of elements, and how many elements the path has.
#[derive(Clone, Copy, Default)]
struct PathStart {
    first: usize,
    second: usize,
    length: usize,
}

/// The most elements of a path that are kept: those at its ends, if it has more.
const PATH_ENDS: usize = 5;

/// The elements from a task to an element; of a long path two at each end.
pub(crate) struct Path {
    pub(crate) elements: Vec<usize>,
    /// How many are left out between the first two and the last two.
    pub(crate) left_out: usize,
}

const UNSEEN: usize = usize::MAX;
const START: usize = usize::MAX - 1;

impl Reach {
    pub(crate) fn new(graph: &Graph, calls: &Calls, tasks: &[usize]) -> Reach {
        let mut parent = vec![UNSEEN; calls.len()];
        let mut starts = vec![PathStart::default(); calls.len()];
        let mut order = Vec::new();
        for p in tasks.iter().flat_map(|&t| calls.starts(graph, t)) {
            if parent[p] == UNSEEN {
                parent[p] = START;
                starts[p] = PathStart { first: calls.owner(p), second: 0, length: 1 };
                order.push(p);
            }
        }
        let mut at = 0;
        while let Some(&state) = order.get(at) {
            at += 1;
            for &q in calls.next(state) {
                if parent[q] == UNSEEN {
                    parent[q] = state;
                    let mut start = starts[state];
                    if calls.owner(q) != calls.owner(state) {
                        start.length += 1;
                        start.second = if start.length == 2 { calls.owner(q) } else { start.second };
                    }
                    starts[q] = start;
                    order.push(q);
                }
            }
        }
        Reach { parent, starts, order }
    }

    /// The elements from a task to the one that owns a state. The work does not depend on the length of the path.
    pub(crate) fn path(&self, calls: &Calls, state: usize) -> Path {
        let start = self.starts[state];
        let short = start.length <= PATH_ENDS;
        let wanted = if short { start.length } else { 2 };
        let back = std::iter::successors(Some(state), |&s| {
            self.parent.get(s).copied().filter(|&p| p != START && p != UNSEEN)
        });
        let mut elements: Vec<usize> = Vec::with_capacity(PATH_ENDS);
        for e in back.map(|s| calls.owner(s)) {
            if elements.last() == Some(&e) {
                continue;
            }
            if elements.len() == wanted {
                break;
            }
            elements.push(e);
        }
        if !short {
            elements.extend([start.second, start.first]);
        }
        elements.reverse();
        Path { left_out: start.length - elements.len(), elements }
    }
}
