// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements of one worker, linked: moving packets (DESIGN section "the hot path").
//!
//! The run loop owns every element and calls one at a time with `&mut`: no recursion on push. A node is a chain of actions or
//! one element. After a node has run, the first of its outputs that has packets is followed at once; the others wait
//! on a stack, so that, as when pushing packet by packet, all of output 0's downstream runs before output 1's.

use crate::shared::{Mail, Shared};
use castanet_element::{Action, Core, Cx, Edge, Element, Router as _, Turn, Verdict};
use castanet_packet::Batch;
use castanet_spec::Reason;
use castanet_tables::stride::{Stride, Ties};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// The tickets of a task that nobody gave others.
pub const TICKETS: u32 = 1024;
/// How often one packet may go round cycles.
const HOPS: u16 = 1000;
/// How often packets may go round cycles for each packet of the batch that started it: copies in a cycle multiply.
const ROUNDS: u64 = 20_000;

/// One action of a chain.
pub(crate) struct Member {
    pub action: Box<dyn Action>,
    pub me: u32,
    /// Its side outputs among the node's edges.
    pub first: u32,
    pub end: u32,
}

/// What runs.
pub(crate) enum Body {
    /// Actions in order; edge 0 is where the last one leads.
    Chain(Vec<Member>),
    /// An element; edge `i` is output `i`.
    Element(Box<dyn Element>),
    /// It is running just now, further up.
    Busy,
}

pub(crate) struct Node {
    pub body: Body,
    pub edges: Box<[Edge]>,
    /// The element, or the first of the chain.
    pub me: u32,
    /// For each pull input the node and output it pulls from.
    pub sources: Box<[(u32, u32)]>,
}

/// The elements of one worker.
pub struct Nodes {
    pub(crate) nodes: Vec<Node>,
    /// For each element of the router its node and place in the chain; `u32::MAX` where it is not on this worker.
    pub(crate) places: Vec<(u32, u32)>,
    /// Edges with packets that wait, last first.
    stack: Vec<(u32, u32)>,
    /// Edges that lead to a running element.
    parked: Vec<(u32, u32)>,
    /// The batch on its way.
    current: Batch,
    /// Empty batches for pulls.
    spare: Vec<Batch>,
    rounds: u64,
    /// Scheduled tasks, by element.
    pub(crate) tasks: Stride,
    /// Tickets of tasks that have other than [`TICKETS`].
    tickets: HashMap<u32, u32>,
    /// Mail from other workers.
    pub(crate) mail: Option<Receiver<Mail>>,
    pub(crate) shared: Arc<Shared>,
}

impl Nodes {
    pub(crate) fn new(nodes: Vec<Node>, places: Vec<(u32, u32)>, shared: Arc<Shared>) -> Nodes {
        Nodes {
            nodes,
            places,
            stack: Vec::with_capacity(64),
            parked: Vec::new(),
            current: Batch::new(),
            spare: Vec::new(),
            rounds: 0,
            tasks: Stride::new(Ties::Oldest),
            tickets: HashMap::new(),
            mail: None,
            shared,
        }
    }

    /// The share of the processor that an element's task has.
    pub(crate) fn tickets_of(&self, element: u32) -> u32 {
        self.tickets.get(&element).copied().unwrap_or(TICKETS)
    }
    pub(crate) fn set_tickets(&mut self, element: u32, tickets: u32) {
        let tickets = tickets.max(1);
        self.tickets.insert(element, tickets);
        self.tasks.set_tickets(element, tickets);
    }
    /// Schedules the task of an element, if it is not scheduled already.
    pub(crate) fn schedule(&mut self, element: u32) {
        if !self.tasks.contains(element) {
            self.tasks.add(element, self.tickets_of(element));
        }
    }

    /// The node of an element.
    pub(crate) fn node_of(&self, element: u32) -> Option<usize> {
        self.places.get(element as usize).filter(|p| p.0 != u32::MAX).map(|p| p.0 as usize)
    }

    /// Gives an element's task a turn and moves what it emits to where it ends.
    pub(crate) fn run_task(&mut self, core: &mut Core, element: u32) -> Turn {
        self.run(core, element, |e, cx| e.task(cx)).unwrap_or(Turn::Sleep)
    }

    /// Calls an element that stands alone, then moves what it emitted to where it ends.
    pub(crate) fn run<R>(
        &mut self,
        core: &mut Core,
        element: u32,
        f: impl FnOnce(&mut dyn Element, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let n = self.node_of(element)?;
        let node = self.nodes.get_mut(n)?;
        let Body::Element(mut e) = std::mem::replace(&mut node.body, Body::Busy) else {
            return None;
        };
        let mut edges = std::mem::take(&mut node.edges);
        let out = f(e.as_mut(), &mut Cx::new(&mut edges, core, Some(self), element, 0));
        self.put_back(n, Body::Element(e), edges);
        self.settle(core);
        if let Some(next) = self.pending(n) {
            self.follow(core, n, next);
        }
        self.drain(core);
        Some(out)
    }

    /// Carries out calls that elements left for after their return.
    #[inline]
    fn settle(&mut self, core: &mut Core) {
        if !core.deferred.is_empty() {
            self.carry_out(core);
        }
    }
    #[cold]
    fn carry_out(&mut self, core: &mut Core) {
        for (from, call) in std::mem::take(&mut core.deferred) {
            let element = call.element.and_then(|e| u32::try_from(e).ok());
            if let Err(e) = self.write(core, element, &call.handler, &call.value) {
                let who = self.shared.graph.declaration(from as usize);
                core.outside.message(&format!("{who}: {e}"));
            }
        }
    }

    /// Marks the outputs of a node that have packets; the first of them is returned, the others go on the stack.
    #[inline]
    fn pending(&mut self, n: usize) -> Option<usize> {
        let Nodes { nodes, stack, .. } = self;
        let node = nodes.get_mut(n)?;
        let mut next: Option<usize> = None;
        let mut mark = |i: usize, edges: &mut [Edge]| {
            let Some(e) = edges.get_mut(i) else { return };
            if e.batch.is_empty() || e.pending {
                return;
            }
            e.pending = true;
            if let Some(later) = next.replace(i) {
                stack.push((n as u32, later as u32));
            }
        };
        let len = node.edges.len();
        if matches!(node.body, Body::Chain(_)) {
            // A copy that left by a side output goes before the packet itself.
            mark(0, &mut node.edges);
            for i in (1..len).rev() {
                mark(i, &mut node.edges);
            }
        } else {
            for i in (0..len).rev() {
                mark(i, &mut node.edges);
            }
        }
        next
    }

    /// Runs whatever waits on the stack.
    pub(crate) fn drain(&mut self, core: &mut Core) {
        while let Some((n, i)) = self.stack.pop() {
            self.follow(core, n as usize, i as usize);
        }
        self.rounds = 0;
    }

    /// Follows an edge, and from there the first pending output of each node, until nothing is left there.
    fn follow(&mut self, core: &mut Core, mut n: usize, mut i: usize) {
        loop {
            // Take the packets off the edge.
            let Some(edge) = self.nodes.get_mut(n).and_then(|n| n.edges.get_mut(i)) else { return };
            edge.pending = false;
            std::mem::swap(&mut self.current, &mut edge.batch);
            let (mut to, mut port, mut from, back) = (edge.node as usize, edge.port as usize, edge.from, edge.back);
            if back {
                self.count_hops(core, from);
            }
            // Along chains that lead into one another nothing is looked up twice.
            loop {
                let Some(node) = self.nodes.get_mut(to) else {
                    let n = self.current.len() as u64;
                    core.count_drops(from, Reason::NoPort, n);
                    self.current.clear();
                    return;
                };
                match &mut node.body {
                    Body::Chain(members) => {
                        let sides = run_chain(members, &mut node.edges, &mut self.current, core);
                        let Some(main) = node.edges.first_mut() else { return };
                        if !sides && core.deferred.is_empty() && main.batch.is_empty() && !main.back {
                            if self.current.is_empty() {
                                return;
                            }
                            (n, i) = (to, 0);
                            (to, port, from) = (main.node as usize, main.port as usize, main.from);
                            continue;
                        }
                        main.batch.append(&mut self.current);
                    }
                    Body::Element(e) => {
                        e.push(port, &mut self.current, &mut Cx::new(&mut node.edges, core, None, node.me, 0));
                        if !self.current.is_empty() {
                            core.count_drops(node.me, Reason::Discarded, self.current.len() as u64);
                            self.current.clear();
                        }
                    }
                    Body::Busy => {
                        // Put the packets back; the edge is taken up again when the element has returned.
                        if let Some(edge) = self.nodes.get_mut(n).and_then(|n| n.edges.get_mut(i)) {
                            edge.pending = true;
                            edge.batch.append(&mut self.current);
                            self.parked.push((n as u32, i as u32));
                        }
                        return;
                    }
                }
                break;
            }
            self.settle(core);
            match self.pending(to) {
                Some(next) => (n, i) = (to, next),
                None => return,
            }
        }
    }

    /// Counts a round of a cycle for each packet on its way, and drops those that went round too often.
    #[cold]
    #[inline(never)]
    fn count_hops(&mut self, core: &mut Core, from: u32) {
        self.rounds += self.current.len() as u64;
        let over = self.rounds > ROUNDS * core.limit.max(1) as u64;
        let before = self.current.len();
        self.current.as_mut_vec().retain_mut(|p| p.count_hop() <= HOPS && !over);
        core.count_drops(from, Reason::PushLoop, (before - self.current.len()) as u64);
    }

    /// Pulls through an output of a node.
    fn pull_node(&mut self, core: &mut Core, n: usize, port: usize, max: usize, into: &mut Batch) {
        let Some(node) = self.nodes.get_mut(n) else { return };
        match std::mem::replace(&mut node.body, Body::Busy) {
            Body::Element(mut e) => {
                let me = node.me;
                let mut edges = std::mem::take(&mut node.edges);
                e.pull(port, max, into, &mut Cx::new(&mut edges, core, Some(self), me, 0));
                self.put_back(n, Body::Element(e), edges);
            }
            Body::Chain(mut members) => {
                let (up, up_port) = node.sources.first().copied().unwrap_or((u32::MAX, 0));
                let mut edges = std::mem::take(&mut node.edges);
                if into.is_empty() {
                    self.pull_node(core, up as usize, up_port as usize, max, into);
                    run_chain(&mut members, &mut edges, into, core);
                } else {
                    let mut got = self.spare.pop().unwrap_or_default();
                    self.pull_node(core, up as usize, up_port as usize, max, &mut got);
                    run_chain(&mut members, &mut edges, &mut got, core);
                    into.append(&mut got);
                    self.spare.push(got);
                }
                self.put_back(n, Body::Chain(members), edges);
            }
            // The graph refuses pull cycles; a handler that pulls while its element runs finds nothing.
            Body::Busy => return,
        }
        self.settle(core);
        // Push outputs beside the pull path wait until the task drains.
        self.defer(n);
    }

    /// Puts the outputs of a node that have packets on the stack.
    pub(crate) fn defer(&mut self, n: usize) {
        if let Some(i) = self.pending(n) {
            self.stack.push((n as u32, i as u32));
        }
    }

    pub(crate) fn put_back(&mut self, n: usize, body: Body, edges: Box<[Edge]>) {
        if let Some(node) = self.nodes.get_mut(n) {
            node.body = body;
            node.edges = edges;
        }
        self.stack.append(&mut self.parked);
    }

    /// The pull of [`castanet_element::Router`].
    pub(crate) fn pull_input(&mut self, core: &mut Core, me: u32, input: usize, max: usize, into: &mut Batch) {
        // What earlier pulls pushed aside is moved on before the next one.
        if !self.stack.is_empty() {
            self.drain(core);
        }
        let Some(node) = self.node_of(me).and_then(|n| self.nodes.get(n)) else { return };
        if let Some(&(up, port)) = node.sources.get(input) {
            self.pull_node(core, up as usize, port as usize, max, into);
        }
    }

    /// Packets on edges and stacks, for accounting when the router stops.
    pub fn waiting(&self) -> usize {
        self.nodes.iter().flat_map(|n| n.edges.iter()).map(|e| e.batch.len()).sum()
    }
}

/// Runs a chain over a batch; what is left in the batch goes on. True when something may have left by a side output.
#[inline]
fn run_chain(members: &mut [Member], edges: &mut [Edge], batch: &mut Batch, core: &mut Core) -> bool {
    let mut sides = false;
    if batch.len() == 1 {
        // The direct path: most configurations move one packet at a time.
        let Some(mut p) = batch.pop() else { return false };
        for m in members {
            let side = edges.get_mut(m.first as usize..m.end as usize).unwrap_or_default();
            let mut cx = Cx::new(side, core, None, m.me, 1);
            match m.action.action(&mut p, &mut cx) {
                Verdict::Next => {}
                Verdict::Out(port) => {
                    cx.emit(port as usize, p);
                    return true;
                }
                Verdict::Drop(reason) => {
                    cx.drop(p, reason);
                    return sides;
                }
            }
            sides |= m.end > m.first && side.iter().any(|e| !e.batch.is_empty());
        }
        batch.push(p);
        return sides;
    }
    for m in members {
        if batch.is_empty() {
            break;
        }
        let side = edges.get_mut(m.first as usize..m.end as usize).unwrap_or_default();
        m.action.action_batch(batch, &mut Cx::new(side, core, None, m.me, 1));
        sides |= m.end > m.first && side.iter().any(|e| !e.batch.is_empty());
    }
    sides
}
