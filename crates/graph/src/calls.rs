// SPDX-License-Identifier: MIT OR Apache-2.0
//! The call graph of packet movement: pushes go downstream, pulls go upstream, and a pulled packet may be
//! pushed to a side output.

use crate::csr::Csr;
use crate::flow::Side;
use crate::graph::{Graph, PortKind};

/// The call graph. Its states are the points of the graph (ports and hubs), plus a second copy of each hub for pulls
/// on their way upstream.
///
/// - A push output calls the push inputs it is connected to. Inside an element, push inputs lead to push outputs.
/// - A pull input calls the pull outputs it is connected to. Inside an element, pull outputs lead to pull inputs.
/// - A pull input leads to push outputs of its own element, because a pulled packet may leave there.
///
/// A storage class accepts pushes and answers pulls, so calls from both sides end in it.
pub(crate) struct Calls {
    next: Csr<usize>,
    owner: Vec<usize>,
    points: usize,
}

impl Calls {
    pub(crate) fn new(graph: &Graph) -> Calls {
        let points = &graph.points;
        let hubs = points.len() - points.hub_start();
        let push_output = |q: usize| points.side(q) == Side::Output && graph.kind(q) == PortKind::Push;
        let pull_input = |q: usize| points.side(q) == Side::Input && graph.kind(q) == PortKind::Pull;
        let mut edges = Vec::with_capacity(points.len());
        for p in 0..points.len() {
            let forward = points.forward.indices(p);
            let forward = forward.filter(|&q| points.side(q) == Side::Hub || push_output(q)).map(|q| (p, q));
            let backward = points.backward.indices(p);
            let backward = backward.filter(|&q| points.side(q) == Side::Hub || pull_input(q));
            // The second copies of the hubs, for pulls on their way upstream, have the numbers after all points.
            let up = |q: usize| if points.side(q) == Side::Hub { q + hubs } else { q };
            match (points.side(p), points.side(p) == Side::Hub || graph.kind(p) == PortKind::Push) {
                (Side::Input, true) => edges.extend(forward),
                (Side::Input, false) => {
                    let upstream = graph.peers(p).map(|c| c.0).filter(|&q| graph.kind(q) == PortKind::Pull);
                    edges.extend(upstream.map(|q| (p, q)));
                    edges.extend(forward);
                }
                (Side::Output, true) => {
                    let downstream = graph.peers(p).map(|c| c.0).filter(|&q| graph.kind(q) == PortKind::Push);
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
        Calls { next: Csr::new(owner.len(), edges.iter().copied()), owner, points: points.hub_start() }
    }

    /// The number of states of the call graph.
    pub(crate) fn len(&self) -> usize {
        self.owner.len()
    }
    pub(crate) fn next(&self, state: usize) -> &[usize] {
        self.next.row(state)
    }
    pub(crate) fn owner(&self, state: usize) -> usize {
        self.owner[state]
    }
    /// The nodes of the call graph (states) at which the calls of an element's task start: the element's push outputs
    /// and pull inputs.
    pub(crate) fn starts<'a>(&self, graph: &'a Graph, e: usize) -> impl Iterator<Item = usize> + 'a {
        let outputs = graph.points.outputs(e).filter(|&p| graph.kind(p) == PortKind::Push);
        outputs.chain(graph.points.inputs(e).filter(|&p| graph.kind(p) == PortKind::Pull))
    }
    /// Whether this state of the call graph is a call into an element: a push at an input, or a pull at an output.
    pub(crate) fn enters(&self, graph: &Graph, state: usize) -> bool {
        state < self.points
            && (graph.points.side(state) == Side::Input) == (graph.kind(state) == PortKind::Push)
    }
}

/// The states of the call graph that a set of tasks reaches. Each state has a parent: the state from which the search
/// reached it first.
pub(crate) struct Reach {
    parent: Vec<usize>,
    /// The beginning of the path to each reached state, so that [`Reach::path`] need not follow the whole path.
    starts: Vec<PathStart>,
    /// The reached states in breadth-first order.
    pub(crate) order: Vec<usize>,
}

/// The first two elements of a path, and the number of elements on it.
#[derive(Clone, Copy, Default)]
struct PathStart {
    first: usize,
    second: usize,
    length: usize,
}

/// Paths with more elements than this keep only the elements at both ends.
const PATH_ENDS: usize = 5;

/// The elements on a path from a task to an element. Of a long path, only two elements at each end are kept.
pub(crate) struct Path {
    pub(crate) elements: Vec<usize>,
    /// The number of elements omitted between the first two and the last two.
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

    /// The path from a task to the element that owns `state`, a node of the call graph. The middle of a long path is
    /// left out, so the cost does not depend on the length of the path.
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
