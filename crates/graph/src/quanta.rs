// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the tasks that may have several turns at once, and the elements at which their packets wait for each other.
//!
//! While these tasks take turns one after the other, each turn moves one packet. The run loop may instead give the first
//! task 32 turns, whose packets move as one batch, then the second task 32 turns, and so on. Nobody can tell the
//! difference if queues, and elements whose work depends on the order of their packets, get the packets in the order of
//! the turns. So packets wait at these elements until all tasks have had their turns.

use crate::graph::{Graph, PortKind};
use crate::placement::table;
use castanet_lang::PortRef;
use castanet_spec::{Depends, Effects};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;
use std::collections::BTreeSet;

/// The maximum number of tasks.
const TASKS: usize = 64;

/// A task that may have several turns at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantum {
    /// The element.
    pub task: usize,
    /// The queue that the task pulls from. None if the task makes packets.
    pub queue: Option<usize>,
}

/// Which tasks reach an element at which packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meets {
    /// Only tasks without inputs.
    Sources,
    /// The element is a queue.
    Queue,
    /// Also tasks that pull from a queue.
    Pullers,
}

/// An element at which packets wait: a queue, or an element whose work depends on the order of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The element.
    pub element: usize,
    /// Which tasks reach it.
    pub meets: Meets,
}

/// Why a task must have its turns one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The class of an element that the packets reach does not declare that its work depends only on its packets.
    Depends(usize),
    /// An element that the packets reach has outside effects.
    Effects(usize),
    /// The task pulls from this queue, and its packets reach another one.
    Queue(usize),
    /// The task that pulls from this queue must have its turns one by one.
    Puller(usize),
    /// The element is neither a source with one push output nor does it pull from a queue only.
    Kind,
    /// Too many tasks come before it.
    Number,
}

impl Refusal {
    fn describe(self, graph: &Graph) -> String {
        let name = |e| graph.declaration(e);
        match self {
            Refusal::Depends(e) => format!("what {} does may depend on more than its packets", name(e)),
            Refusal::Effects(e) => format!("{} has outside effects", name(e)),
            Refusal::Queue(q) => format!("its packets reach another queue, {}", name(q)),
            Refusal::Puller(q) => format!("the task that pulls from {} takes turns one by one", name(q)),
            Refusal::Kind => "it is neither a source nor does it pull from a queue only".to_string(),
            Refusal::Number => format!("only {TASKS} tasks may have several turns at once"),
        }
    }
}

/// The tasks of a router that may have several turns at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quanta {
    /// The tasks.
    pub tasks: Vec<Quantum>,
    /// The other tasks.
    pub refused: Vec<(usize, Refusal)>,
    /// The elements at which their packets wait. Except in cycles, an element comes after those from which packets reach it.
    pub meetings: Vec<Meeting>,
}

/// Finds the tasks among `tasks` that may have several turns at once. `effects` are the outside effects of an element.
/// `timed` says whether elements may use the time: under simulated time they must not, because their readings of the clock
/// would come in another order.
pub fn quanta(graph: &Graph, effects: &dyn Fn(usize) -> Effects, tasks: &[usize], timed: bool) -> Quanta {
    let finder = Finder { graph, effects, timed };
    let (mut all, mut refused) = (Vec::new(), Vec::new());
    let mut seen = Seen { round: vec![0; graph.len()], now: 0 };
    for &task in tasks {
        match finder.task(task, &mut seen) {
            Ok(_) if all.len() == TASKS => refused.push((task, Refusal::Number)),
            Ok(found) => all.push(found),
            Err(why) => refused.push((task, why)),
        }
    }
    // A source needs queues whose tasks may have several turns, too.
    let pulled: BTreeSet<usize> = all.iter().filter_map(|t| t.0.queue).collect();
    all.retain(|(task, reach)| {
        let other = reach.queues.difference(&pulled).next();
        refused.extend(other.map(|&q| (task.task, Refusal::Puller(q))));
        other.is_none()
    });
    Quanta { meetings: meetings(graph, &all), tasks: all.into_iter().map(|t| t.0).collect(), refused }
}

impl Quanta {
    /// Returns a table of the tasks: which get several turns at once, and why the others do not.
    pub fn explain(&self, graph: &Graph) -> String {
        let mut rows = vec![["TASK", "TURNS", "WHY"].map(String::from).to_vec()];
        for t in &self.tasks {
            let why = "nobody can tell the order of its turns and those of other tasks".to_string();
            rows.push(vec![graph.declaration(t.task), "several at once".into(), why]);
        }
        for (t, why) in &self.refused {
            rows.push(vec![graph.declaration(*t), "one by one".into(), why.describe(graph)]);
        }
        table(&rows)
    }
}

/// What the packets of a task reach.
#[derive(Default)]
struct Reach {
    /// The elements, except queues and the task itself.
    elements: Vec<usize>,
    queues: BTreeSet<usize>,
    /// The connections that the packets cross, each with the elements before and after it.
    connections: Vec<(usize, usize)>,
}

/// The elements that the current search has seen. All searches use the same array.
struct Seen {
    /// For each element, the number of the last search that has seen it.
    round: Vec<usize>,
    /// The number of the current search, from 1.
    now: usize,
}

impl Seen {
    /// Records that the current search has seen an element. Returns false if it had seen the element before.
    fn insert(&mut self, e: usize) -> bool {
        self.round.get_mut(e).is_some_and(|round| std::mem::replace(round, self.now) != self.now)
    }
}

struct Finder<'a> {
    graph: &'a Graph,
    effects: &'a dyn Fn(usize) -> Effects,
    timed: bool,
}

impl Finder<'_> {
    /// Checks that an element does the same if it gets the packets of several turns at once.
    fn plain(&self, e: usize) -> Result<(), Refusal> {
        let depends = self.graph.spec(e).map_or(Depends::Anything, |s| s.depends);
        let clock = self.graph.spec(e).is_some_and(|s| s.clock);
        match depends != Depends::Anything && (self.timed || !clock) {
            false => Err(Refusal::Depends(e)),
            true if !(self.effects)(e).is_empty() => Err(Refusal::Effects(e)),
            true => Ok(()),
        }
    }
    fn is_queue(&self, e: usize) -> bool {
        self.graph.spec(e).is_some_and(|s| s.fifo) && self.graph.outputs(e) == 1
    }

    /// Returns a task that may have several turns at once, and what its packets reach.
    fn task(&self, task: usize, seen: &mut Seen) -> Result<(Quantum, Reach), Refusal> {
        let graph = self.graph;
        self.plain(task)?;
        if graph.outputs(task) > 1 {
            return Err(Refusal::Kind);
        }
        let queue = match graph.inputs(task) {
            0 => None,
            1 => match graph.upstream(PortRef { element: task, port: 0 }) {
                &[from] if graph.input_kind(task, 0) == PortKind::Pull && self.is_queue(from.element) => {
                    Some(from.element)
                }
                _ => return Err(Refusal::Kind),
            },
            _ => return Err(Refusal::Kind),
        };
        let reach = self.reach(task, seen)?;
        // Packets that a task has pulled must not reach another queue, because the turns of the task that pulls from
        // that queue would depend on those of this task.
        match reach.queues.first() {
            Some(&other) if queue.is_some() => Err(Refusal::Queue(other)),
            _ => Ok((Quantum { task, queue }, reach)),
        }
    }

    /// Returns what the packets of a task reach.
    fn reach(&self, task: usize, seen: &mut Seen) -> Result<Reach, Refusal> {
        seen.now += 1;
        let graph = self.graph;
        let mut reach = Reach::default();
        let mut next = vec![task];
        while let Some(e) = next.pop() {
            for port in 0..graph.outputs(e) {
                let from = PortRef { element: e, port };
                if graph.output_kind(e, port) != PortKind::Push {
                    return Err(Refusal::Kind);
                }
                for &to in graph.downstream(from) {
                    reach.connections.push((e, to.element));
                    if self.is_queue(to.element) {
                        reach.queues.insert(to.element);
                    } else if seen.insert(to.element) {
                        reach.elements.push(to.element);
                        self.plain(to.element)?;
                        next.push(to.element);
                    }
                }
            }
        }
        Ok(reach)
    }
}

/// Returns the elements at which packets must wait.
fn meetings(graph: &Graph, tasks: &[(Quantum, Reach)]) -> Vec<Meeting> {
    let pulled: BTreeSet<usize> =
        tasks.iter().filter(|t| t.0.queue.is_some()).flat_map(|t| t.1.elements.iter().copied()).collect();
    let mut waits: Vec<(Meets, usize)> = Vec::new();
    for (_, reach) in tasks {
        waits.extend(reach.queues.iter().map(|&q| (Meets::Queue, q)));
        let ordered = |e: &usize| graph.spec(*e).is_some_and(|s| s.depends == Depends::Order);
        let meets = |e: usize| if pulled.contains(&e) { Meets::Pullers } else { Meets::Sources };
        waits.extend(reach.elements.iter().copied().filter(ordered).map(|e| (meets(e), e)));
    }
    waits.sort_unstable();
    waits.dedup();
    if waits.len() > 1 {
        let rank = ranks(graph, tasks);
        waits.sort_by_key(|&(meets, e)| (meets, rank.get(e).copied().unwrap_or(0), e));
    }
    waits.into_iter().map(|(meets, element)| Meeting { element, meets }).collect()
}

/// Returns a number for each element. Except in cycles, an element has a higher number than those from which packets of the
/// tasks reach it.
fn ranks(graph: &Graph, tasks: &[(Quantum, Reach)]) -> Vec<usize> {
    let mut downstream = DiGraph::<(), (), usize>::with_capacity(graph.len(), 0);
    for _ in 0..graph.len() {
        downstream.add_node(());
    }
    downstream.extend_with_edges(tasks.iter().flat_map(|t| &t.1.connections).copied());
    // In the result of the algorithm, a component comes after the components that it reaches. Reversed, it comes first.
    let mut rank = vec![0; graph.len()];
    for (number, elements) in kosaraju_scc(&downstream).into_iter().rev().enumerate() {
        for e in elements {
            if let Some(rank) = rank.get_mut(e.index()) {
                *rank = number;
            }
        }
    }
    rank
}

#[cfg(test)]
#[path = "quanta_tests.rs"]
mod tests;
