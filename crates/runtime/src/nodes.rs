// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements of one worker, linked: moving packets.
//!
//! The run loop owns every element and calls one at a time with `&mut`: no recursion on push. A node is a chain of actions or
//! one element. After a node has run, the first of its outputs that has packets is followed at once; the others wait
//! on a stack, so that, as when pushing packet by packet, all of output 0's downstream runs before output 1's.

use crate::shared::{Mail, Shared};
use crate::tasks::Tasks;
use castanet_element::{
    Action, CallError, Core, Cx, Edge, Element, Messages as _, Router as _, Turn, Verdict,
};
use castanet_packet::{Batch, Packet};
use castanet_spec::Reason;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// How often one packet may go round cycles.
pub(crate) const HOPS: u16 = 1000;
/// How many calls may be carried out one because of the other.
const CALLS: u32 = 64;
/// How often packets may go round cycles for each packet of the batch that started it: copies in a cycle multiply.
pub(crate) const ROUNDS: u64 = 20_000;

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
    Chain(Box<[Member]>),
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
    /// Whether it pulls or calls handlers, so that the others must be within its reach while it runs.
    pub reaches: bool,
    /// All that it reaches, when that is one element that reaches nobody: the queue that a task pulls from.
    pub direct: Option<(u32, u32)>,
}

/// The reach of a task that pulls from one element and calls no handlers.
struct Direct<'a> {
    node: &'a mut Node,
    port: usize,
    /// Whether the pull left something to be moved on.
    left: bool,
}

impl castanet_element::Router for Direct<'_> {
    fn pull(&mut self, core: &mut Core, _: u32, _: usize, max: usize, into: &mut Batch) {
        let Body::Element(e) = &mut self.node.body else { return };
        let mut cx = Cx::new(&mut self.node.edges, core, None, self.node.me, 0);
        e.pull(self.port, max, into, &mut cx);
        self.left |= cx.touched() != 0;
    }
    fn pull_one(&mut self, core: &mut Core, _: u32, _: usize) -> Option<Packet> {
        let Body::Element(e) = &mut self.node.body else { return None };
        let mut cx = Cx::new(&mut self.node.edges, core, None, self.node.me, 0);
        let p = e.pull_one(self.port, &mut cx);
        self.left |= cx.touched() != 0;
        p
    }
    fn read(&mut self, _: &mut Core, _: Option<u32>, handler: &str, _: &str) -> Result<String, CallError> {
        Err(CallError::Busy(format!("handler '{handler}' cannot be read from here")))
    }
    fn write(&mut self, _: &mut Core, _: Option<u32>, handler: &str, _: &str) -> Result<(), CallError> {
        Err(CallError::Busy(format!("handler '{handler}' cannot be written from here")))
    }
    fn has(&self, _: &Core, _: Option<u32>, _: &str) -> (bool, bool) {
        (false, false)
    }
}

/// The elements of one worker.
pub struct Nodes {
    pub(crate) nodes: Vec<Node>,
    /// For each element of the router its node and place in the chain; `u32::MAX` where it is not on this worker.
    pub(crate) places: Vec<(u32, u32)>,
    /// Edges with packets that wait, last first.
    stack: Vec<(u32, u32)>,
    /// Edges with packets that wait until those that went back into a cycle have come to their ends, with the packets.
    suspended: Vec<Vec<(u32, u32, Batch)>>,
    /// Edges that lead to a running element.
    parked: Vec<(u32, u32)>,
    /// The batch on its way.
    current: Batch,
    /// Empty batches for pulls.
    spare: Vec<Batch>,
    rounds: u64,
    /// How many calls are being carried out, one because of the other.
    calls: u32,
    /// Scheduled tasks.
    pub(crate) tasks: Tasks,
    /// Mail from other workers.
    pub(crate) mail: Option<Receiver<Mail>>,
    pub(crate) shared: Arc<Shared>,
}

impl Nodes {
    pub(crate) fn new(nodes: Vec<Node>, places: Vec<(u32, u32)>, shared: Arc<Shared>) -> Nodes {
        let tasks = Tasks::new(places.len());
        Nodes {
            nodes,
            places,
            stack: Vec::with_capacity(64),
            suspended: Vec::new(),
            parked: Vec::new(),
            current: Batch::new(),
            spare: Vec::new(),
            rounds: 0,
            calls: 0,
            tasks,
            mail: None,
            shared,
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
    #[inline]
    pub(crate) fn run<R>(
        &mut self,
        core: &mut Core,
        element: u32,
        f: impl FnOnce(&mut dyn Element, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let n = self.node_of(element)?;
        let node = self.nodes.get_mut(n)?;
        let (direct, reaches) = (node.direct, node.reaches);
        let (out, touched) = if let Some((up, port)) = direct
            && let Ok([node, upstream]) = self.nodes.get_disjoint_mut([n, up as usize])
        {
            let Body::Element(e) = &mut node.body else { return None };
            let single = core.limit == 1;
            let mut reach = Direct { node: upstream, port: port as usize, left: false };
            let mut cx = Cx::one(&mut node.edges, core, Some(&mut reach), element, single);
            let out = f(e.as_mut(), &mut cx);
            let emitted = (cx.take_slot(), cx.touched());
            if reach.left {
                self.defer(up as usize);
            }
            (out, emitted)
        } else if reaches {
            let node = self.nodes.get_mut(n)?;
            let Body::Element(mut e) = std::mem::replace(&mut node.body, Body::Busy) else { return None };
            let mut edges = std::mem::take(&mut node.edges);
            let single = core.limit == 1;
            let mut cx = Cx::one(&mut edges, core, Some(self), element, single);
            let out = f(e.as_mut(), &mut cx);
            let emitted = (cx.take_slot(), cx.touched());
            self.put_back(n, Body::Element(e), edges);
            (out, emitted)
        } else {
            let node = self.nodes.get_mut(n)?;
            let Body::Element(e) = &mut node.body else { return None };
            let single = core.limit == 1;
            let mut cx = Cx::one(&mut node.edges, core, None, element, single);
            let out = f(e.as_mut(), &mut cx);
            (out, (cx.take_slot(), cx.touched()))
        };
        self.settle(core);
        match touched {
            (Some((i, p)), _) => self.follow_one(core, n, i, p),
            (None, touched) => {
                if let Some(next) = self.next_of(n, touched) {
                    self.follow(core, n, next);
                }
            }
        }
        if !self.stack.is_empty() || !self.suspended.is_empty() {
            self.drain(core);
        }
        self.rounds = 0;
        Some(out)
    }

    /// Carries out calls that elements left for after their return.
    #[inline]
    pub(crate) fn settle(&mut self, core: &mut Core) {
        if !core.deferred.is_empty() {
            self.carry_out(core);
        }
    }
    #[cold]
    fn carry_out(&mut self, core: &mut Core) {
        if self.calls >= CALLS {
            for (from, call) in core.deferred.drain(..) {
                let who = self.shared.graph.declaration(from as usize);
                self.shared.message(&format!(
                    "{who}: '{}' not called: calls lead to calls without end",
                    call.handler
                ));
            }
            return;
        }
        self.calls += 1;
        for (from, call) in std::mem::take(&mut core.deferred) {
            let element = call.element.and_then(|e| u32::try_from(e).ok());
            if let Err(e) = self.write(core, element, &call.handler, &call.value) {
                let who = self.shared.graph.declaration(from as usize);
                core.outside.message(&format!("{who}: {e}"));
            }
        }
        self.calls -= 1;
    }

    /// The output of a node to follow at once, when `touched` tells what it emitted to.
    #[inline(always)]
    fn next_of(&mut self, n: usize, touched: u64) -> Option<usize> {
        if touched == 0 {
            return None;
        }
        let i = touched.trailing_zeros() as usize;
        if touched == 1 << i && i < 63 {
            let edge = self.nodes.get_mut(n)?.edges.get_mut(i)?;
            return (!edge.pending && !edge.batch.is_empty()).then_some(i);
        }
        self.pending(n)
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
        loop {
            while let Some((n, i)) = self.stack.pop() {
                self.follow(core, n as usize, i as usize);
            }
            if !self.resume() {
                break;
            }
        }
        self.rounds = 0;
    }

    /// Takes the packets that wait off their edges, so that what goes back into a cycle does not queue up behind them:
    /// packet by packet, pushing is depth first.
    #[cold]
    fn suspend(&mut self) {
        let Nodes { nodes, stack, suspended, .. } = self;
        let edges = stack.drain(..).filter_map(|(n, i)| {
            let edge = nodes.get_mut(n as usize)?.edges.get_mut(i as usize)?;
            edge.pending = false;
            Some((n, i, std::mem::take(&mut edge.batch)))
        });
        suspended.push(edges.collect());
    }

    /// Puts the packets that were taken off last back on their edges; false when there are none.
    fn resume(&mut self) -> bool {
        let Some(edges) = self.suspended.pop() else { return false };
        for (n, i, mut batch) in edges {
            let Some(edge) = self.nodes.get_mut(n as usize).and_then(|n| n.edges.get_mut(i as usize)) else {
                continue;
            };
            edge.batch.append(&mut batch);
            if !std::mem::replace(&mut edge.pending, true) {
                self.stack.push((n, i));
            }
        }
        true
    }

    /// Follows an edge, and from there the first pending output of each node, until nothing is left there.
    fn follow(&mut self, core: &mut Core, mut n: usize, mut i: usize) {
        loop {
            // Take the packets off the edge.
            let Some(edge) = self.nodes.get_mut(n).and_then(|n| n.edges.get_mut(i)) else { return };
            edge.pending = false;
            std::mem::swap(&mut self.current, &mut edge.batch);
            let (mut to, mut port, mut from) = (edge.node as usize, edge.port as usize, edge.from);
            if core.limit == 1 && self.current.len() > 1 {
                // One at a time also where an element made several of one: each goes to its end before the next.
                edge.batch.extend(self.current.as_mut_vec().drain(1..));
                edge.pending = true;
                self.stack.push((n as u32, i as u32));
            }
            if edge.back {
                count_hops(&mut self.current, &mut self.rounds, core, from);
                if core.limit == 1 && !self.stack.is_empty() {
                    self.suspend();
                }
            }
            // Where one output alone has packets nothing is marked and looked up again.
            let touched = loop {
                let Some(node) = self.nodes.get_mut(to) else {
                    core.count_drops(from, Reason::NoPort, self.current.len() as u64);
                    self.current.clear();
                    return;
                };
                let touched = match &mut node.body {
                    Body::Chain(members) => {
                        let sides = run_chain(members, &mut node.edges, &mut self.current, core);
                        if self.current.is_empty() {
                            sides
                        } else {
                            let Some(main) = node.edges.first_mut() else { return };
                            if sides == 0 && core.deferred.is_empty() && main.batch.is_empty() && !main.back {
                                (n, i) = (to, 0);
                                (to, port, from) = (main.node as usize, main.port as usize, main.from);
                                continue;
                            }
                            main.batch.append(&mut self.current);
                            sides | 1
                        }
                    }
                    Body::Element(e) if !node.reaches => {
                        let mut cx = Cx::new(&mut node.edges, core, None, node.me, 0);
                        e.push(port, &mut self.current, &mut cx);
                        let touched = cx.touched();
                        if !self.current.is_empty() {
                            leftover(&mut self.current, core, node.me);
                        }
                        touched
                    }
                    Body::Element(_) => self.push_reaching(core, to, port),
                    Body::Busy => {
                        // Put the packets back; the edge is taken up again when the element has returned.
                        if let Some(edge) = self.nodes.get_mut(n).and_then(|n| n.edges.get_mut(i)) {
                            edge.pending = true;
                            edge.batch.append(&mut self.current);
                            self.parked.push((n as u32, i as u32));
                        }
                        return;
                    }
                };
                break touched;
            };
            self.settle(core);
            match self.next_of(to, touched) {
                Some(next) => (n, i) = (to, next),
                None => return,
            }
        }
    }

    /// Follows an edge with one packet, which needs no batch as long as each element emits one.
    fn follow_one(&mut self, core: &mut Core, mut n: usize, mut i: usize, mut p: Packet) {
        let Some(edge) = self.nodes.get_mut(n).and_then(|n| n.edges.get_mut(i)) else { return };
        if !edge.is_free() {
            return self.queue_one(core, n, i, p);
        }
        let (mut to, mut port, mut from) = (edge.node as usize, edge.port as usize, edge.from);
        loop {
            let Some(node) = self.nodes.get_mut(to) else {
                core.count_drops(from, Reason::NoPort, 1);
                return;
            };
            // The packet leaves by edge `next`, or has left; then `touched` tells where something waits.
            let (next, touched) = match &mut node.body {
                Body::Chain(members) => {
                    let mut cx = Cx::new(&mut node.edges, core, None, node.me, 1);
                    let mut verdict = Verdict::Next;
                    for m in members.iter_mut() {
                        cx.enter(m.me, m.first, m.end - m.first);
                        verdict = m.action.action(&mut p, &mut cx);
                        if !matches!(verdict, Verdict::Next) {
                            break;
                        }
                    }
                    match verdict {
                        Verdict::Next => (0, cx.touched()),
                        Verdict::Out(port) => {
                            cx.emit(port as usize, p);
                            let touched = cx.touched();
                            return self.go_on(core, to, touched);
                        }
                        Verdict::Drop(reason) => {
                            cx.drop(p, reason);
                            let touched = cx.touched();
                            return self.go_on(core, to, touched);
                        }
                    }
                }
                Body::Element(e) if !node.reaches => {
                    let mut cx = Cx::one(&mut node.edges, core, None, node.me, true);
                    e.push_one(port, p, &mut cx);
                    match (cx.take_slot(), cx.touched()) {
                        (Some((next, packet)), touched) => {
                            p = packet;
                            (next, touched)
                        }
                        (None, 0) if cx.is_settled() => return,
                        (None, touched) => return self.go_on(core, to, touched),
                    }
                }
                Body::Element(_) | Body::Busy => return self.queue_one(core, n, i, p),
            };
            let Some(edge) = node.edges.get_mut(next) else { return };
            if touched != 0 || !edge.is_free() || !core.deferred.is_empty() {
                edge.batch.push(p);
                return self.go_on(core, to, touched | 1 << next.min(63));
            }
            (n, i) = (to, next);
            (to, port, from) = (edge.node as usize, edge.port as usize, edge.from);
        }
    }

    /// Puts one packet on an edge and follows that by the batch path.
    #[cold]
    fn queue_one(&mut self, core: &mut Core, n: usize, i: usize, p: Packet) {
        let Some(edge) = self.nodes.get_mut(n).and_then(|n| n.edges.get_mut(i)) else { return };
        edge.batch.push(p);
        if !edge.pending {
            self.follow(core, n, i);
        }
    }

    /// After a node has run: calls first, then what it emitted.
    #[inline]
    fn go_on(&mut self, core: &mut Core, n: usize, touched: u64) {
        self.settle(core);
        if let Some(next) = self.next_of(n, touched) {
            self.follow(core, n, next);
        }
    }

    /// Pushes to an element that must have the others within its reach.
    fn push_reaching(&mut self, core: &mut Core, n: usize, port: usize) -> u64 {
        let Some(node) = self.nodes.get_mut(n) else { return 0 };
        let me = node.me;
        let Body::Element(mut e) = std::mem::replace(&mut node.body, Body::Busy) else { return 0 };
        let mut edges = std::mem::take(&mut node.edges);
        let mut batch = std::mem::replace(&mut self.current, self.spare.pop().unwrap_or_default());
        let mut cx = Cx::new(&mut edges, core, Some(self), me, 0);
        e.push(port, &mut batch, &mut cx);
        let touched = cx.touched();
        leftover(&mut batch, core, me);
        self.spare.push(std::mem::replace(&mut self.current, batch));
        self.put_back(n, Body::Element(e), edges);
        touched
    }

    /// Pulls through an output of a node.
    fn pull_node(&mut self, core: &mut Core, n: usize, port: usize, max: usize, into: &mut Batch) {
        let Some(node) = self.nodes.get_mut(n) else { return };
        if !node.reaches
            && let Body::Element(e) = &mut node.body
        {
            let mut cx = Cx::new(&mut node.edges, core, None, node.me, 0);
            e.pull(port, max, into, &mut cx);
            if cx.touched() != 0 || !core.deferred.is_empty() {
                self.settle(core);
                self.defer(n);
            }
            return;
        }
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
        // What left beside the pull path goes to its end before the pulled packets go on.
        self.defer(n);
        self.drain(core);
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
        if !self.parked.is_empty() {
            self.stack.append(&mut self.parked);
        }
    }

    /// The pull of [`castanet_element::Router`].
    pub(crate) fn pull_input(
        &mut self,
        core: &mut Core,
        me: u32,
        input: usize,
        max: usize,
        into: &mut Batch,
    ) {
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
        let suspended = self.suspended.iter().flatten().map(|s| s.2.len()).sum::<usize>();
        suspended + self.nodes.iter().flat_map(|n| n.edges.iter()).map(|e| e.batch.len()).sum::<usize>()
    }
}

/// Counts a round of a cycle for each packet on its way, and drops those that went round too often.
#[cold]
#[inline(never)]
fn count_hops(batch: &mut Batch, rounds: &mut u64, core: &mut Core, from: u32) {
    *rounds += batch.len() as u64;
    let over = *rounds > ROUNDS * core.limit.max(1) as u64;
    let before = batch.len();
    batch.as_mut_vec().retain_mut(|p| p.count_hop() <= HOPS && !over);
    core.count_drops(from, Reason::PushLoop, (before - batch.len()) as u64);
}

/// Drops what an element left of a batch that was pushed to it.
#[cold]
#[inline(never)]
fn leftover(batch: &mut Batch, core: &mut Core, me: u32) {
    core.count_drops(me, Reason::Discarded, batch.len() as u64);
    batch.clear();
}

/// Runs a chain over a batch; what is left in the batch goes on. The bits of edges that something left by are returned.
#[inline]
fn run_chain(members: &mut [Member], edges: &mut [Edge], batch: &mut Batch, core: &mut Core) -> u64 {
    let mut cx = Cx::new(edges, core, None, 0, 1);
    for m in members.iter_mut() {
        cx.enter(m.me, m.first, m.end - m.first);
        m.action.action_batch(batch, &mut cx);
        if batch.is_empty() {
            break;
        }
    }
    cx.touched()
}
