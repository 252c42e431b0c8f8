// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tasks of a worker that may get several turns at once, and where their packets wait for each other. `run_quanta` gives
//! them these turns.

use crate::meeting::Meeting;
use crate::node::{Body, NONE, Node};
use castanet_element::run_loop::Edge;
use castanet_graph::Graph;
use castanet_graph::quanta::{Meets, quanta};
use castanet_spec::Effects;
use std::collections::BTreeMap;

/// In [`Quanta::numbers`] and [`Quanta::positions`]: no task, or no position.
pub(crate) const NO: u8 = u8::MAX;

/// A task that may get quanta.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub node: u32,
    /// The node of the queue that the task pulls from, or [`NONE`].
    pub queue: u32,
}

/// An input where packets meet.
pub(crate) struct Place {
    pub meets: Meets,
    /// The node of the input.
    pub node: u32,
    /// The node that takes its place while packets wait.
    pub waiting: u32,
    /// The edges that lead to the input.
    pub edges: Box<[u32]>,
    /// For a queue, the number of the task that pulls from it.
    pub puller: u8,
    /// For a queue, the maximum number of packets in it during the quanta.
    pub peak: usize,
}

/// A scheduled task.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub task: Task,
    /// The number of the next turn whose packet waits at a meeting.
    pub next: usize,
}

/// The tasks of a worker that may get quanta, and where their packets meet.
#[derive(Default)]
pub(crate) struct Quanta {
    pub tasks: Box<[Task]>,
    /// For each element, the number of its task in `tasks`, or [`NO`].
    pub numbers: Box<[u8]>,
    /// The meetings, by [`Meets`].
    pub places: Box<[Place]>,
    /// The scheduled tasks, in the order of their turns.
    pub order: Vec<Position>,
    /// For each task, its index in `order`, or [`NO`] if the task sleeps.
    pub positions: Box<[u8]>,
    /// Whether quanta have begun and packets may wait at meetings.
    pub begun: bool,
    /// The number of times that all scheduled tasks have got quanta.
    pub count: u64,
}

impl Quanta {
    /// Whether no task may get several turns at once.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
    /// Finds the tasks and meetings of a worker that has the whole configuration. Adds nodes to `nodes`, at which packets
    /// wait.
    pub fn new(
        (graph, tasks): (&Graph, &[usize]),
        effects: &[Effects],
        timed: bool,
        places: &[(u32, u32)],
        (nodes, edges): (&mut Vec<Node>, &[Edge]),
    ) -> Quanta {
        let effects_of = |e: usize| effects.get(e).copied().unwrap_or_default();
        let found = quanta(graph, &effects_of, tasks, timed);
        let node_of = |e: usize| places.get(e).map_or(NONE, |p| p.0);
        let mut numbers = vec![NO; graph.len()];
        for (t, number) in found.tasks.iter().zip(0..) {
            numbers.get_mut(t.task).into_iter().for_each(|n| *n = number);
        }
        let mut meetings: Vec<Place> = Vec::new();
        for m in &found.meetings {
            let node = node_of(m.element);
            if meetings.iter().any(|p| p.node == node) {
                // Another element of the same chain.
                continue;
            }
            let puller = found.tasks.iter().zip(0..).find(|t| t.0.queue == Some(m.element));
            let mut inputs: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (x, edge) in (0..).zip(edges).filter(|e| e.1.node == node) {
                inputs.entry(edge.port).or_default().push(x);
            }
            // Packets enter a chain at its first action. The other edges into it come from the chain itself.
            let is_chain = nodes.get(node as usize).is_some_and(|n| matches!(n.body, Body::Chain(_)));
            for (_, edges) in inputs.into_iter().filter(|i| i.0 == 0 || !is_chain) {
                let waiting = nodes.len() as u32;
                let meeting = Meeting::new();
                nodes.push(Node { body: Body::Meeting(meeting), ..Node::empty() });
                let (edges, puller) = (edges.into(), puller.map_or(NO, |p| p.1));
                meetings.push(Place { meets: m.meets, node, waiting, edges, puller, peak: 0 });
            }
        }
        let task = |t: &castanet_graph::quanta::Quantum| Task {
            node: node_of(t.task),
            queue: t.queue.map_or(NONE, node_of),
        };
        let tasks: Box<[Task]> = found.tasks.iter().map(task).collect();
        if tasks.iter().any(|t| t.node == NONE) {
            return Quanta::default();
        }
        let positions = vec![NO; tasks.len()].into();
        Quanta { tasks, numbers: numbers.into(), places: meetings.into(), positions, ..Quanta::default() }
    }
}
