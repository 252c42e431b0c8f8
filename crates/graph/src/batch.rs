// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the tasks that must move one packet at a time, because batches would change the order of outside
//! effects.

use crate::calls::Calls;
use crate::graph::Graph;
use castanet_spec::Effects;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;
use std::collections::HashSet;

/// The reason a task must move one packet at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// The task reaches two elements with outside effects. Their effects alternate only if each packet moves alone.
    TwoEffects(usize, usize),
    /// The task reaches an element with outside effects by two paths.
    TwoPaths(usize),
    /// The task reaches an element with outside effects that is inside or downstream of a cycle.
    Cycle(usize),
    /// The task reaches an element that calls handlers. All earlier packets must have passed through the router before
    /// a call.
    Calls(usize),
    /// The task reaches an element that reads state which earlier packets change.
    ReadsState(usize),
}

impl Constraint {
    /// The reason as one line of text.
    pub fn describe(&self, graph: &Graph) -> String {
        match *self {
            Constraint::TwoEffects(a, b) => {
                format!("'{}' and '{}' both have outside effects", graph.declaration(a), graph.declaration(b))
            }
            Constraint::TwoPaths(e) => {
                format!("two paths lead to '{}', which has outside effects", graph.declaration(e))
            }
            Constraint::Cycle(e) => {
                format!("a cycle leads to '{}', which has outside effects", graph.declaration(e))
            }
            Constraint::Calls(e) => format!("'{}' calls handlers", graph.declaration(e)),
            Constraint::ReadsState(e) => {
                format!("'{}' reads what earlier packets change", graph.declaration(e))
            }
        }
    }
}

/// For each task, the reason it must move one packet at a time; `None` if it may move batches.
///
/// In a batch, an element may process all packets before the next element gets any. This order is observable if two
/// elements with outside effects alternate, or if packets reach one such element by two paths or repeatedly.
pub fn batch_limits(
    graph: &Graph,
    effects: &dyn Fn(usize) -> Effects,
    tasks: &[usize],
) -> Vec<(usize, Option<Constraint>)> {
    // An element without ports is reached by no path, such as a script that calls handlers when the router starts.
    let has_ports = |e: usize| graph.inputs(e) > 0 || graph.outputs(e) > 0;
    if (0..graph.len()).all(|e| effects(e).is_empty() || !has_ports(e) && !tasks.contains(&e)) {
        return tasks.iter().map(|&t| (t, None)).collect();
    }
    let calls = Calls::new(graph);
    let order = Order::new(&calls);
    let acts: Vec<bool> = (0..graph.len()).map(|e| !Effects::LOOKS.contains(effects(e))).collect();
    let alone: Vec<Option<Constraint>> = (0..graph.len())
        .map(|e| match effects(e) {
            x if x.contains(Effects::CALLS) => Some(Constraint::Calls(e)),
            x if x.contains(Effects::LOOKS) => Some(Constraint::ReadsState(e)),
            _ => None,
        })
        .collect();
    let mut paths =
        Paths { calls: &calls, order: &order, count: vec![0; calls.len()], cyclic: vec![false; calls.len()] };
    tasks.iter().map(|&t| (t, paths.constraint(graph, &acts, &alone, t))).collect()
}

/// Strongly connected components of the call graph. A component has a higher number than the components that it calls.
struct Order {
    component: Vec<usize>,
    /// For each state of the call graph (see [`Calls`]), whether it lies on a cycle.
    cyclic: Vec<bool>,
}

impl Order {
    fn new(calls: &Calls) -> Order {
        let mut graph = DiGraph::<(), (), usize>::with_capacity(calls.len(), 0);
        for _ in 0..calls.len() {
            graph.add_node(());
        }
        graph.extend_with_edges((0..calls.len()).flat_map(|s| calls.next(s).iter().map(move |&q| (s, q))));
        let mut order = Order { component: vec![0; calls.len()], cyclic: vec![false; calls.len()] };
        // petgraph has two algorithms for strongly connected components. This one is not recursive, so a long chain of
        // calls cannot overflow the stack. In its result, a component comes before the components that call it.
        for (number, states) in kosaraju_scc(&graph).into_iter().enumerate() {
            let cyclic = states.len() > 1;
            for s in states {
                order.component[s.index()] = number;
                order.cyclic[s.index()] = cyclic;
            }
        }
        order
    }
}

/// Path counts saturate at this value. It is 3, so that a saturated count still stands for several paths
/// after one path has been subtracted.
const MANY: u8 = 3;
/// Temporary path count of a state that has been reached, but whose paths have not been counted yet.
const REACHED: u8 = u8::MAX;

struct Paths<'a> {
    calls: &'a Calls,
    order: &'a Order,
    /// The number of paths that lead to each state of the call graph, up to `MANY`.
    count: Vec<u8>,
    /// For each state of the call graph, whether a path that leads to it contains a cycle.
    cyclic: Vec<bool>,
}

impl Paths<'_> {
    /// The reason why `task` must move one packet at a time; `None` if it may move batches.
    fn constraint(
        &mut self,
        graph: &Graph,
        acts: &[bool],
        alone: &[Option<Constraint>],
        task: usize,
    ) -> Option<Constraint> {
        let starts: HashSet<usize> = self.calls.starts(graph, task).collect();
        let mut reached = self.reach(&starts);
        self.count_paths(graph, task, &starts, &reached);
        let entered = reached.iter().filter(|&&s| self.calls.enters(graph, s));
        let caller = entered.map(|&s| self.calls.owner(s)).find_map(|e| alone.get(e).copied()?);
        let why = self.judge(graph, acts, task, &mut reached).or(caller);
        for s in reached {
            self.count[s] = 0;
            self.cyclic[s] = false;
        }
        why
    }

    /// Returns the states of the call graph that can be reached from `starts`. Outside cycles, each state comes before
    /// the states that it calls.
    fn reach(&mut self, starts: &HashSet<usize>) -> Vec<usize> {
        let mut reached = Vec::new();
        let mut stack: Vec<usize> = starts.iter().copied().collect();
        for &s in starts {
            self.count[s] = REACHED;
        }
        while let Some(s) = stack.pop() {
            reached.push(s);
            for &q in self.calls.next(s) {
                if self.count[q] == 0 {
                    self.count[q] = REACHED;
                    stack.push(q);
                }
            }
        }
        for &s in &reached {
            self.count[s] = 0;
        }
        // Outside cycles, a caller has a higher component number than the states that it calls. So descending order
        // puts callers first.
        reached.sort_unstable_by_key(|&s| std::cmp::Reverse(self.order.component[s]));
        reached
    }

    /// Counts the paths from `starts` to each state of `reached`, which is the result of [`Paths::reach`].
    fn count_paths(&mut self, graph: &Graph, task: usize, starts: &HashSet<usize>, reached: &[usize]) {
        for &s in starts {
            self.count[s] = 1;
        }
        for &s in reached {
            if self.order.cyclic[s] {
                self.count[s] = MANY;
                self.cyclic[s] = true;
            }
            for &q in self.calls.next(s) {
                // A packet that the task pulls may leave by a push output of the task's own element. `starts` contains
                // this output too. So the path through it has been counted already, and is subtracted here.
                let aside =
                    starts.contains(&s) && self.calls.owner(q) == task && !self.calls.enters(graph, q);
                let more = self.count[s].saturating_sub(u8::from(aside));
                self.count[q] = self.count[q].saturating_add(more).min(MANY);
                self.cyclic[q] |= self.cyclic[s] && more > 0;
            }
        }
    }

    /// Returns why the task must move one packet at a time, as far as this follows from the reached elements with
    /// outside effects. Returns `None` if these elements allow batches. An effect of the task's own element counts too.
    fn judge(&self, graph: &Graph, acts: &[bool], task: usize, reached: &mut [usize]) -> Option<Constraint> {
        reached.sort_unstable_by_key(|&s| (self.calls.owner(s), s));
        let mut first: Option<(usize, u8, bool)> =
            acts.get(task).copied().unwrap_or(false).then_some((task, 1, false));
        let mut other = None;
        for &s in reached.iter() {
            let e = self.calls.owner(s);
            if !acts.get(e).copied().unwrap_or(false) || !self.calls.enters(graph, s) {
                continue;
            }
            match &mut first {
                None => first = Some((e, self.count[s], self.cyclic[s])),
                Some((f, count, cyclic)) if *f == e => {
                    *count = count.saturating_add(self.count[s]);
                    *cyclic |= self.cyclic[s];
                }
                Some(_) => other = other.or(Some(e)),
            }
        }
        match (first?, other) {
            ((a, ..), Some(b)) => Some(Constraint::TwoEffects(a.min(b), a.max(b))),
            ((e, _, true), None) => Some(Constraint::Cycle(e)),
            ((e, 2.., false), None) => Some(Constraint::TwoPaths(e)),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
