// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls elements that need access to other elements, because they pull or call handlers.

use crate::lock::Purpose;
use crate::node::Body;
use crate::nodes::Nodes;
use crate::unwind::{Taken, blamed};
use castanet_element::run_loop::{Core, Edge, EdgeRange, Internals as _};
use castanet_element::{AnyElement, Cx, Instance};
use castanet_packet::Packet;

/// The result of calling an element that needs access to other elements, together with what the element has emitted.
pub(crate) struct Reached<R> {
    pub out: R,
    /// The only packet that the element has emitted, with the index of the edge for it. None if the element has emitted
    /// another number of packets, or if the caller did not set `single`.
    pub emitted: Option<(usize, Packet)>,
    /// The edges of the node on which the element has put packets, as bits.
    pub touched: u64,
}

impl Nodes {
    /// Calls the element of node `n`. Returns none if the element needs no access to other elements, or is already
    /// running. If `single` is true and the element emits exactly one packet, the packet is returned and not put on its
    /// edge.
    pub(crate) fn reach<R>(
        &mut self,
        core: &mut Core,
        n: usize,
        single: bool,
        f: impl FnOnce(&mut dyn AnyElement, &mut Cx<'_>) -> R,
    ) -> Option<Reached<R>> {
        let node = self.nodes.get_mut(n)?;
        let (me, base) = (node.me, node.base as usize);
        if let Body::Locked(..) = node.body {
            let reached =
                self.visit(core, n, Purpose::Turn, single, |state, cx| match &mut state.instance {
                    Instance::Element(e) => Some(f(&mut **e, cx)),
                    Instance::Action(_) => None,
                })?;
            return reached.out.map(|out| Reached {
                out,
                emitted: reached.emitted,
                touched: reached.touched,
            });
        }
        if !matches!(node.body, Body::Reaching(..)) {
            return None;
        }
        let mut taken = Taken::new(n, &mut node.body);
        let Body::Reaching(e, outbox) = &mut taken.body else { return None };
        let own = EdgeRange { me, base: 0, count: outbox.len() as u32, skip: 0 };
        let mut cx = Cx::over(outbox, core, Some(self), own, single);
        let out = blamed(&mut cx, |cx| f(&mut **e, cx));
        let emitted = cx.outputs().take_slot().map(|(i, p)| (i + base, p));
        let touched = cx.outputs().touched();
        self.put_back(n, taken.back(), touched);
        Some(Reached { out, emitted, touched })
    }

    /// Puts the body (element or chain) of a node back after the body has run. Moves the packets in the body's outbox
    /// to the node's edges.
    pub(crate) fn put_back(&mut self, n: usize, body: Body, touched: u64) {
        let Nodes { nodes, edges, stack, parked, .. } = self;
        if let Some(node) = nodes.get_mut(n) {
            node.body = body;
            if touched != 0
                && let Body::Reaching(_, outbox) | Body::Locked(_, outbox) = &mut node.body
            {
                deliver(outbox, edges, node.base);
            }
        }
        if !parked.is_empty() {
            stack.append(parked);
        }
    }
}

/// Moves the packets in the outbox of an element to its edges. `base` is the index of its first edge.
pub(crate) fn deliver(outbox: &mut [Edge], edges: &mut [Edge], base: u32) {
    for (own, edge) in outbox.iter_mut().zip(edges.iter_mut().skip(base as usize)) {
        if !own.batch.is_empty() {
            edge.batch.append(&mut own.batch);
        }
    }
}
