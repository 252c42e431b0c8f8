// SPDX-License-Identifier: MIT OR Apache-2.0
//! The linked elements of one worker, and the edges on which packets wait between them.
//!
//! The run loop owns every element and calls one at a time with `&mut`, so push does not recurse. A node is a
//! chain of actions or one element. After a node has run, its first output with packets is followed at once;
//! the other outputs wait on a stack. So everything downstream of output 0 runs before output 1, as when
//! packets are pushed one by one.

use crate::mail::Mail;
use crate::node::{Body, NONE, Node, Rest};
use crate::shared::Shared;
use crate::tasks::Tasks;
use crate::unwind::PanickedElements;
use castanet_element::Messages as _;
use castanet_element::run_loop::{Core, Edge, Router as _};
use castanet_packet::Batch;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// The maximum nesting depth of handler calls that lead to further handler calls.
const CALLS: u32 = 64;

/// The elements of one worker.
pub struct Nodes {
    pub(crate) nodes: Vec<Node>,
    /// The edges of all nodes.
    pub(crate) edges: Vec<Edge>,
    /// For each element of the router, its node and its place in the node's chain. The node is `u32::MAX` if
    /// the element is not on this worker.
    pub(crate) places: Vec<(u32, u32)>,
    /// Edges with waiting packets. The last edge is followed first.
    pub(crate) stack: Vec<u32>,
    /// Edges that are set aside, with their packets. They come back when the packets that re-entered a cycle have
    /// been stored, sent or dropped.
    suspended: Vec<Vec<(u32, Batch)>>,
    /// Edges with packets for an element that is still running.
    pub(crate) parked: Vec<u32>,
    /// Edges to locked elements that other workers are running. Their packets wait until this worker holds no lock.
    pub(crate) contended: Vec<u32>,
    /// The number of locks that this worker holds.
    pub(crate) locks: u32,
    /// The nesting depth of waits for other workers. A worker waits for a lock, or for the answer to a handler call.
    pub(crate) waits: u32,
    /// The nesting depth of the handler calls that this worker answers while it waits.
    pub(crate) answering: u32,
    /// Mail that was received but is not answered yet.
    pub(crate) inbox: VecDeque<Mail>,
    /// The batch that is being moved.
    pub(crate) current: Batch,
    /// What remains to be done when a packet cannot be moved further without a batch.
    pub(crate) rest: Option<Rest>,
    /// Empty batches for pulls.
    pub(crate) spare: Vec<Batch>,
    pub(crate) rounds: u64,
    /// The current nesting depth of handler calls.
    pub(crate) calls: u32,
    /// Elements that have panicked.
    pub(crate) panicked: PanickedElements,
    /// Scheduled tasks.
    pub(crate) tasks: Tasks,
    /// The receiver of the inbox, from which this worker takes its mail.
    pub(crate) mail: Option<Receiver<Mail>>,
    pub(crate) shared: Arc<Shared>,
}

impl Nodes {
    pub(crate) fn new(
        nodes: Vec<Node>,
        edges: Vec<Edge>,
        places: Vec<(u32, u32)>,
        shared: Arc<Shared>,
    ) -> Nodes {
        let tasks = Tasks::new(places.len());
        Nodes {
            nodes,
            edges,
            places,
            stack: Vec::with_capacity(64),
            suspended: Vec::new(),
            parked: Vec::new(),
            contended: Vec::new(),
            locks: 0,
            waits: 0,
            answering: 0,
            inbox: VecDeque::new(),
            current: Batch::new(),
            rest: None,
            spare: Vec::new(),
            rounds: 0,
            calls: 0,
            panicked: PanickedElements::default(),
            tasks,
            mail: None,
            shared,
        }
    }

    /// The node of an element.
    #[inline]
    pub(crate) fn node_of(&self, element: u32) -> Option<usize> {
        self.places.get(element as usize).filter(|p| p.0 != NONE).map(|p| p.0 as usize)
    }

    /// Whether an element is running, further up the call stack.
    pub(crate) fn is_busy(&self, element: u32) -> bool {
        self.node_of(element).and_then(|n| self.nodes.get(n)).is_some_and(|n| matches!(n.body, Body::Busy))
    }

    /// Carries out the handler calls that elements have deferred until after their return.
    #[inline]
    pub(crate) fn settle(&mut self, core: &mut Core) {
        if core.has_deferred() {
            self.carry_out(core);
        }
    }
    #[cold]
    fn carry_out(&mut self, core: &mut Core) {
        if self.calls >= CALLS {
            for (from, call) in core.take_deferred() {
                let who = self.shared.graph.declaration(from as usize);
                self.shared.message(&format!(
                    "{who}: '{}' not called: calls lead to calls without end",
                    call.handler
                ));
            }
            return;
        }
        self.calls += 1;
        for (from, call) in core.take_deferred() {
            let element = call.element.and_then(|e| u32::try_from(e).ok());
            // The target is still running further up the call stack, because it pulls. Call its handler after it
            // has returned.
            if element.is_some_and(|e| self.is_busy(e)) {
                core.defer(from, call);
                continue;
            }
            // The call has the rights of the client that configured it, not of the element that makes it.
            let done =
                core.with_origin(call.origin, |core| self.write(core, element, &call.handler, &call.value));
            if let Err(e) = done {
                let who = self.shared.graph.declaration(from as usize);
                core.message(&format!("{who}: {e}"));
            }
        }
        self.calls -= 1;
    }

    /// Returns the edge of node `n` to follow next, and pushes its other edges that hold packets onto the stack. The
    /// bits of `touched` say on which of its edges the node has put packets.
    #[inline(always)]
    pub(crate) fn next_of(&mut self, n: usize, touched: u64) -> Option<usize> {
        if touched == 0 {
            return None;
        }
        let i = touched.trailing_zeros();
        if touched == 1 << i && i < 63 {
            let x = (self.nodes.get(n)?.base + i) as usize;
            let edge = self.edges.get(x)?;
            return (!edge.pending && !edge.batch.is_empty()).then_some(x);
        }
        self.pending(n)
    }

    /// Marks as pending all edges of a node that have packets. Returns the first of these edges, and puts the others on
    /// the stack.
    #[inline]
    fn pending(&mut self, n: usize) -> Option<usize> {
        let Nodes { nodes, edges, stack, .. } = self;
        let node = nodes.get(n)?;
        let mut next = None;
        let mut mark = |x: u32| {
            let Some(e) = edges.get_mut(x as usize).filter(|e| !e.batch.is_empty() && !e.pending) else {
                return;
            };
            e.pending = true;
            if let Some(later) = next.replace(x) {
                stack.push(later);
            }
        };
        // The edge that is marked last is followed first. A chain's main edges are marked first, because a
        // copy that left the chain by a side output must go before the packet itself.
        let (base, end) = (node.base, node.base + node.count);
        let sides = if node.descending { end } else { base + node.mains };
        (base..sides).for_each(&mut mark);
        (sides..end).rev().for_each(&mut mark);
        next.map(|x| x as usize)
    }

    /// Puts those edges of a node that have packets onto the stack.
    pub(crate) fn defer(&mut self, n: usize) {
        if let Some(x) = self.pending(n) {
            self.stack.push(x as u32);
        }
    }

    /// Follows the edges on the stack until no packets wait.
    pub(crate) fn drain(&mut self, core: &mut Core) {
        loop {
            while let Some(x) = self.stack.pop() {
                self.follow(core, x as usize);
            }
            if !self.resume() {
                break;
            }
        }
        self.rounds = 0;
    }

    /// Takes waiting packets off their edges, so that packets that re-enter a cycle do not queue up behind
    /// them. When packets move one by one, each packet must be stored, sent or dropped before the next one moves.
    #[cold]
    pub(crate) fn suspend(&mut self) {
        let Nodes { edges, stack, suspended, .. } = self;
        let taken = stack.drain(..).filter_map(|x| {
            let edge = edges.get_mut(x as usize)?;
            edge.pending = false;
            Some((x, std::mem::take(&mut edge.batch)))
        });
        suspended.push(taken.collect());
    }

    /// Puts the packets of the last `suspend` back on their edges. Returns false if no packets are suspended.
    fn resume(&mut self) -> bool {
        let Some(taken) = self.suspended.pop() else { return false };
        for (x, mut batch) in taken {
            let Some(edge) = self.edges.get_mut(x as usize) else { continue };
            edge.batch.append(&mut batch);
            if !std::mem::replace(&mut edge.pending, true) {
                self.stack.push(x);
            }
        }
        true
    }

    /// Returns the number of packets on edges, including suspended ones, for accounting when the router
    /// stops.
    pub fn waiting(&self) -> usize {
        let suspended = self.suspended.iter().flatten().map(|s| s.1.len()).sum::<usize>();
        suspended + self.edges.iter().map(|e| e.batch.len()).sum::<usize>()
    }
}
