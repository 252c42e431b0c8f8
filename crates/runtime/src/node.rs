// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nodes that a worker runs. A node is a single element or a chain of actions.

use crate::lock::Locked;
use crate::meeting::Meeting;
use castanet_element::run_loop::{Edge, EdgeRange, Internals as _};
use castanet_element::{Cx, Verdict};
use castanet_packet::Packet;
use castanet_typed::{TypedAction, TypedElement};
use std::sync::Arc;

/// Stands for "no edge" or "no node".
pub(crate) const NONE: u32 = u32::MAX;

/// An action of a chain, and its edges.
#[repr(C)]
pub(crate) struct Member {
    pub me: u32,
    /// The index of the first edge of the action's side outputs, among all edges of the worker.
    pub base: u32,
    /// The number of edges of the action's side outputs.
    pub count: u32,
    /// The number of edges of the node that come before the edges of the action's side outputs.
    pub skip: u32,
    pub action: TypedAction,
    /// The index of the edge that leads to the next action of the chain. The packets of the chain wait on this edge in
    /// two cases. If the action has emitted copies, the packets wait until the copies have moved. If the action has
    /// added packets to the batch ([`Verdict::Several`](castanet_element::Verdict::Several)), the packets wait because
    /// they may have to move one by one. `NONE` if the class does neither, or if packets are pulled through the chain.
    pub resume: u32,
}

/// The element or the chain that a node runs.
pub(crate) enum Body {
    /// The actions of a chain, in order.
    Chain(Box<[Member]>),
    /// An element that neither pulls nor calls handlers, so that it needs no access to other elements.
    Element(TypedElement),
    /// An element that pulls or calls handlers, so that it needs access to other elements while it runs. The edges are
    /// its outbox: packets that it emits wait there until it has returned.
    Reaching(TypedElement, Box<[Edge]>),
    /// A locked element, which several workers share. The edges are its outbox: packets that it emits wait there until
    /// it has returned.
    Locked(Arc<Locked>, Box<[Edge]>),
    /// The node is running, further up the call stack. The function that runs it holds its body.
    Busy,
    /// A place where packets of several tasks wait until all these tasks have had their turns ([`crate::quanta`]). It is
    /// linked only during these turns.
    Meeting(Meeting),
}

/// A reference to the instance of an element inside its node.
pub(crate) enum InstanceMut<'a> {
    Action(&'a mut TypedAction),
    Element(&'a mut TypedElement),
}

#[repr(C)]
pub(crate) struct Node {
    pub body: Body,
    /// The number of the element, or of the first action of the chain.
    pub me: u32,
    /// The index of the node's first edge, among all edges of the worker. An element has one edge for each output. The
    /// edges of a chain are, in this order: the edge for output 0 of its last action, the edges that lead back into the
    /// chain, and the edges of its side outputs.
    pub base: u32,
    /// The number of edges of the node.
    pub count: u32,
    /// The number of edges of a chain that come before those of its side outputs. 0 for a single element.
    pub mains: u32,
    /// Whether packets may leave the chain before its end, by a drop or a side output.
    pub loses: bool,
    /// Whether packets on the last output of the element move first.
    pub descending: bool,
    /// For each pull input, the node and the output that it pulls from.
    pub sources: Box<[(u32, u32)]>,
    /// The node and the output that this node pulls from directly. Set only if this node accesses only the node that it
    /// pulls from, and that node accesses no other node. Typically, this node is a task that pulls from a queue.
    pub direct: Option<(u32, u32)>,
}

/// The work that is left when the single-packet path cannot move a packet any further.
pub(crate) enum Rest {
    /// Packets wait on edges of a node. The fields are the number of the node, and a bit for each of these edges.
    Touched(usize, u64),
    /// A packet that must be put on an edge, because it can cross this edge only in a batch. The fields are the index
    /// of the edge, and the packet.
    Queue(usize, Packet),
    /// A packet was lost, because an edge of this element leads nowhere. It must be counted as dropped.
    Nowhere(u32),
}

impl Body {
    /// Makes the body of an element that needs access to other elements. `outputs` is its number of outputs.
    pub(crate) fn reaching(element: TypedElement, outputs: u32) -> Body {
        Body::Reaching(element, outbox(outputs))
    }
    /// Makes the body of a locked element. `outputs` is its number of outputs.
    pub(crate) fn locked(element: Arc<Locked>, outputs: u32) -> Body {
        Body::Locked(element, outbox(outputs))
    }
}

fn outbox(outputs: u32) -> Box<[Edge]> {
    (0..outputs).map(|_| Edge::default()).collect()
}

impl Member {
    #[inline(always)]
    pub(crate) fn edges(&self) -> EdgeRange {
        EdgeRange { me: self.me, base: self.base, count: self.count, skip: self.skip }
    }
}

impl Node {
    /// A node without an element.
    pub(crate) fn empty() -> Node {
        Node {
            body: Body::Busy,
            me: NONE,
            base: 0,
            count: 0,
            mains: 0,
            loses: false,
            descending: false,
            sources: Box::default(),
            direct: None,
        }
    }
    /// Calls `f` with the number and the instance of each element that only this worker runs.
    pub(crate) fn each_instance(&mut self, mut f: impl FnMut(u32, InstanceMut<'_>)) {
        match &mut self.body {
            Body::Element(e) | Body::Reaching(e, _) => f(self.me, InstanceMut::Element(e)),
            Body::Chain(members) => {
                members.iter_mut().for_each(|m| f(m.me, InstanceMut::Action(&mut m.action)));
            }
            Body::Locked(..) | Body::Busy | Body::Meeting(_) => {}
        }
    }
    /// The range of edges of an element that is not in a chain.
    #[inline(always)]
    pub(crate) fn edges(&self) -> EdgeRange {
        EdgeRange { me: self.me, base: self.base, count: self.count, skip: self.mains }
    }
}

/// Ends the single-packet path at node `n`. `touched` has a bit for each edge on which the node has put packets.
/// Returns true if there are none. Otherwise stores them in `rest` and returns false.
// The edges are stored in memory, because a return value would occupy registers on the whole path.
#[inline(always)]
pub(crate) fn is_all(n: usize, touched: u64, rest: &mut Option<Rest>) -> bool {
    if touched != 0 {
        std::hint::cold_path();
        *rest = Some(Rest::Touched(n, touched));
        return false;
    }
    true
}

/// Carries out a verdict that ends the single-packet path. `resume` is the edge that leads to the next action.
#[inline(never)]
pub(crate) fn leave(verdict: Verdict, p: Packet, resume: u32, cx: &mut Cx<'_>) {
    match verdict {
        Verdict::Next | Verdict::Several => cx.park_one(resume as usize, p),
        Verdict::Out(port) => cx.emit(port as usize, p),
        Verdict::Drop(reason) => cx.drop(p, reason),
    }
}
