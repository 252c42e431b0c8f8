// SPDX-License-Identifier: MIT OR Apache-2.0
//! The linked elements of one worker, and the edges between them on which packets wait.
//!
//! The run loop owns all elements and calls one at a time with `&mut`, so a push does not recurse. A node is a chain of
//! actions or a single element. After a node has run, the run loop continues along the node's first output that has
//! packets, and puts the other outputs on a stack. So everything downstream of output 0 runs before everything
//! downstream of output 1, in the same order as if packets were pushed one by one.

use crate::compiled::Compiled;
use crate::kernel::Passage;
use crate::mail::Mail;
use crate::node::{Body, NONE, Node, Rest};
use crate::observed::Observed;
use crate::paths::{Paths, REST};
use crate::profile::Sampler;
use crate::quanta::Quanta;
use crate::shared::Shared;
use crate::tasks::Tasks;
use crate::unwind::PanickedElements;
use castanet_element::Messages as _;
use castanet_element::run_loop::{Core, Edge, Router as _};
use castanet_packet::Batch;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// The maximum nesting depth of deferred handler calls. A deferred call can cause further deferred calls.
const CALLS: u32 = 64;

/// The linked elements of one worker, and the state of its packet movement.
pub struct Nodes {
    pub(crate) nodes: Vec<Node>,
    /// The edges of all nodes.
    pub(crate) edges: Vec<Edge>,
    /// For each element of the router, its node, and its index in the node's chain. The node is `u32::MAX` if the
    /// element is not on this worker.
    pub(crate) places: Vec<(u32, u32)>,
    /// The code that was compiled for the configuration.
    pub(crate) compiled: Option<Compiled>,
    /// The edges on which packets wait. The last one is followed first.
    pub(crate) stack: Vec<u32>,
    /// The edges by which packets continue that come up from the kernel.
    pub(crate) resumes: Vec<usize>,
    /// The packets that have come up and may still be in the router.
    pub(crate) passage: Passage,
    /// The packets that [`Nodes::suspend`] has taken away, with their edges: one list for each call of `suspend`. The
    /// packets wait until the packet that re-entered a cycle has been stored, sent or dropped.
    suspended: Vec<Vec<(u32, Batch)>>,
    /// Edges on which packets wait for an element that is still running on this worker.
    pub(crate) parked: Vec<u32>,
    /// Edges on which packets wait for a locked element that another worker is running. The packets wait until this
    /// worker holds no lock.
    pub(crate) contended: Vec<u32>,
    /// The number of locks that this worker holds.
    pub(crate) locks: u32,
    /// The nesting depth of waits of this worker for other workers: for a lock, or for the answer to a handler call.
    pub(crate) waits: u32,
    /// The nesting depth of handler calls that this worker is answering while it waits for another worker.
    pub(crate) answering: u32,
    /// Mail that this worker has received but not answered.
    pub(crate) inbox: VecDeque<Mail>,
    /// The batch that is on its way to the next node.
    pub(crate) current: Batch,
    /// The work that is left when the single-packet path cannot move a packet any further.
    pub(crate) rest: Option<Rest>,
    /// Empty batches, which pulls use.
    pub(crate) spare: Vec<Batch>,
    pub(crate) rounds: u64,
    /// The current nesting depth of handler calls.
    pub(crate) calls: u32,
    /// The elements that have panicked on this worker.
    pub(crate) panicked: PanickedElements,
    /// The tasks that are scheduled on this worker.
    pub(crate) tasks: Tasks,
    /// The tasks that may get several turns at once.
    pub(crate) quanta: Quanta,
    /// Measures what elements cost, when the router is profiled.
    pub(crate) sampler: Sampler,
    /// The traces and taps of this worker's packets.
    pub(crate) observed: Observed,
    /// The compiled paths.
    pub(crate) paths: Paths,
    /// The channel through which the inbox delivers mail to this worker.
    pub(crate) mail: Option<Receiver<Mail>>,
    pub(crate) shared: Arc<Shared>,
}

impl Nodes {
    pub(crate) fn new(
        nodes: Vec<Node>,
        edges: Vec<Edge>,
        places: Vec<(u32, u32)>,
        compiled: Option<Compiled>,
        quanta: Quanta,
        shared: Arc<Shared>,
    ) -> Nodes {
        let tasks = Tasks::new(places.len());
        Nodes {
            nodes,
            edges,
            places,
            compiled,
            stack: Vec::with_capacity(64),
            resumes: Vec::new(),
            passage: Passage::default(),
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
            quanta,
            sampler: Sampler::default(),
            observed: Observed::default(),
            paths: Paths::new(shared.path_compiler.clone()),
            mail: None,
            shared,
        }
    }

    /// Returns the number of the node that has an element. None if the element is not on this worker.
    #[inline]
    pub(crate) fn node_of(&self, element: u32) -> Option<usize> {
        self.places.get(element as usize).filter(|p| p.0 != NONE).map(|p| p.0 as usize)
    }

    /// Whether an element is running, further up the call stack.
    pub(crate) fn is_busy(&self, element: u32) -> bool {
        self.node_of(element).and_then(|n| self.nodes.get(n)).is_some_and(|n| matches!(n.body, Body::Busy))
    }

    /// Makes the handler calls that elements have deferred until after their return.
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
            // The target of the call is still running, further up the call stack. Make the call after it has returned.
            if element.is_some_and(|e| self.is_busy(e)) {
                core.defer(from, call);
                continue;
            }
            // The call has the rights of the origin that specified it (the configuration, or a client that wrote an
            // argument), not those of the running element.
            let done =
                core.with_origin(call.origin, |core| self.write(core, element, &call.handler, &call.value));
            if let Err(e) = done {
                let who = self.shared.graph.declaration(from as usize);
                core.message(&format!("{who}: {e}"));
            }
        }
        self.calls -= 1;
    }

    /// Returns the edge of node `n` to follow next, and puts the node's other edges with packets on the stack. The bits
    /// of `touched` are the edges on which the node has put packets.
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

    /// Marks all edges of a node that have packets as pending. Returns the edge to follow first, and puts the others on
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
        // A copy that left a chain by a side output must move before the packet itself. The edge that is marked last is
        // followed first. So mark the edges of side outputs after the main edges.
        let (base, end) = (node.base, node.base + node.count);
        let sides = if node.descending { end } else { base + node.mains };
        (base..sides).for_each(&mut mark);
        (sides..end).rev().for_each(&mut mark);
        next.map(|x| x as usize)
    }

    /// Pushes onto the stack all edges of a node on which packets wait.
    pub(crate) fn defer(&mut self, n: usize) {
        if let Some(x) = self.pending(n) {
            self.stack.push(x as u32);
        }
    }

    /// Follows the edges on the stack until none is left. Then restores the packets that `suspend` has taken off their
    /// edges, and follows these edges too.
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

    /// Takes all waiting packets off their edges, and keeps them until `resume`. Used when packets move one by one and
    /// one of them re-enters a cycle. That packet must be stored, sent or dropped before the next packet moves, so it
    /// must not queue up behind the waiting packets.
    #[cold]
    pub(crate) fn suspend(&mut self) {
        let Nodes { edges, stack, suspended, .. } = self;
        let taken = stack.drain(..).filter_map(|x| {
            if x as usize == REST {
                return Some((x, Batch::empty()));
            }
            let edge = edges.get_mut(x as usize)?;
            edge.pending = false;
            Some((x, std::mem::take(&mut edge.batch)))
        });
        suspended.push(taken.collect());
    }

    /// Puts the packets that the last `suspend` took away back on their edges. Returns false if there are none.
    fn resume(&mut self) -> bool {
        let Some(taken) = self.suspended.pop() else { return false };
        for (x, mut batch) in taken {
            let Some(edge) = self.edges.get_mut(x as usize) else {
                self.stack.push(x);
                continue;
            };
            edge.batch.append(&mut batch);
            if !std::mem::replace(&mut edge.pending, true) {
                self.stack.push(x);
            }
        }
        true
    }

    /// Returns the number of packets on edges, including those that `suspend` has taken away. For the ledger.
    pub fn waiting(&self) -> usize {
        let suspended = self.suspended.iter().flatten().map(|s| s.1.len()).sum::<usize>();
        suspended + self.paths.waiting() + self.edges.iter().map(|e| e.batch.len()).sum::<usize>()
    }
}
