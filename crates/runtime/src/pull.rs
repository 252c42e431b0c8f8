// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves packets by pull. A pull goes upstream to the element that stores the packets.

use crate::node::{Body, NONE, Node};
use crate::nodes::Nodes;
use crate::push::run_chain;
use crate::unwind::{blamed, spoiled};
use castanet_element::run_loop::{Core, Edge, EdgeRange, Internals as _};
use castanet_element::{Busy, CallError, Cx};
use castanet_packet::{Batch, Packet};

/// The access to other elements for a task that pulls from only one element and calls no handlers.
pub(crate) struct Direct<'a> {
    pub node: &'a mut Node,
    /// Edges for the packets that the upstream element `node` emits during a pull. These packets wait here until the
    /// task has returned.
    pub outbox: &'a mut [Edge],
    pub port: usize,
    /// Whether a pull has put packets into `outbox`.
    pub left: bool,
}

impl castanet_element::run_loop::Router for Direct<'_> {
    fn pull(&mut self, core: &mut Core, _: u32, _: usize, max: usize, into: &mut Batch) {
        let own = EdgeRange { base: 0, ..self.node.edges() };
        let Body::Element(e) = &mut self.node.body else { return };
        let mut cx = Cx::over(self.outbox, core, None, own, false);
        spoiled(into, |into| blamed(&mut cx, |cx| e.pull(self.port, max, into, cx)));
        self.left |= cx.outputs().touched() != 0;
    }
    fn pull_one(&mut self, core: &mut Core, _: u32, _: usize) -> Option<Packet> {
        let own = EdgeRange { base: 0, ..self.node.edges() };
        let Body::Element(e) = &mut self.node.body else { return None };
        let mut cx = Cx::over(self.outbox, core, None, own, false);
        let p = blamed(&mut cx, |cx| e.pull_one(self.port, cx));
        self.left |= cx.outputs().touched() != 0;
        p
    }
    fn read(&mut self, _: &mut Core, _: Option<u32>, handler: &str, _: &str) -> Result<String, CallError> {
        Err(Busy::Read(handler.to_string()).into())
    }
    fn write(&mut self, _: &mut Core, _: Option<u32>, handler: &str, _: &str) -> Result<(), CallError> {
        Err(Busy::Write(handler.to_string()).into())
    }
    fn has(&self, _: &Core, _: Option<u32>, _: &str) -> (bool, bool) {
        (false, false)
    }
}

impl Nodes {
    /// Pulls at most `max` packets through an output of a node. The result is the same as that of single pulls, up to
    /// the first pull that returns none.
    fn pull_node(&mut self, core: &mut Core, n: usize, port: usize, max: usize, into: &mut Batch) {
        let Nodes { nodes, edges, .. } = self;
        let Some(node) = nodes.get_mut(n) else { return };
        if node.loses && max > 1 {
            return self.pull_singly(core, n, port, max, into);
        }
        let place = node.edges();
        match &mut node.body {
            Body::Element(e) => {
                let mut cx = Cx::over(edges, core, None, place, false);
                spoiled(into, |into| blamed(&mut cx, |cx| e.pull(port, max, into, cx)));
                if cx.outputs().touched() != 0 {
                    self.settle(core);
                    self.defer(n);
                }
                return;
            }
            Body::Chain(_) => {
                let (up, up_port) = node.sources.first().copied().unwrap_or((NONE, 0));
                if into.is_empty() {
                    self.pull_node(core, up as usize, up_port as usize, max, into);
                    self.run_pulled(core, n, into);
                } else {
                    let mut got = self.spare.pop().unwrap_or_default();
                    self.pull_node(core, up as usize, up_port as usize, max, &mut got);
                    self.run_pulled(core, n, &mut got);
                    into.append(&mut got);
                    self.spare.push(got);
                }
            }
            Body::Reaching(..) => {
                spoiled(into, |into| self.reach(core, n, false, |e, cx| e.pull(port, max, into, cx)));
            }
            Body::Locked(..) => {
                spoiled(into, |into| self.pull_locked(core, n, port, max, into));
            }
            // The node is running, further up the call stack. The graph refuses pull cycles, so the node must have
            // called a handler, and the handler pulls. This pull returns no packets.
            Body::Busy | Body::Meeting(_) => return,
        }
        self.settle(core);
        // The pull may have emitted packets to other outputs. Move each of them until it is stored, sent or dropped,
        // before the pulled packets continue.
        self.defer(n);
        self.drain(core);
    }

    /// Pulls at most `max` packets like `pull_node`, but one at a time. For chains that may drop packets: if the chain
    /// does not pass on a packet, the burst ends, and the packets behind it stay upstream.
    #[cold]
    fn pull_singly(&mut self, core: &mut Core, n: usize, port: usize, max: usize, into: &mut Batch) {
        let mut one = self.spare.pop().unwrap_or_default();
        for _ in 0..max {
            self.pull_node(core, n, port, 1, &mut one);
            if one.is_empty() {
                break;
            }
            into.append(&mut one);
        }
        self.spare.push(one);
    }

    /// Runs a chain on a batch of packets that was pulled.
    fn run_pulled(&mut self, core: &mut Core, n: usize, batch: &mut Batch) {
        let Nodes { nodes, edges, .. } = self;
        if let Some(Node { body: Body::Chain(members), .. }) = nodes.get_mut(n) {
            spoiled(batch, |batch| run_chain(members, edges, batch, core));
        }
    }

    /// Implements `pull` of [`castanet_element::run_loop::Router`].
    pub(crate) fn pull_input(
        &mut self,
        core: &mut Core,
        me: u32,
        input: usize,
        max: usize,
        into: &mut Batch,
    ) {
        // Earlier pulls of this task may have emitted packets. Move these packets first.
        if !self.stack.is_empty() {
            self.drain(core);
        }
        let Some(node) = self.node_of(me).and_then(|n| self.nodes.get(n)) else { return };
        if let Some(&(up, port)) = node.sources.get(input) {
            self.pull_node(core, up as usize, port as usize, max, into);
        }
    }
}
