// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nodes of a worker's graph. A node is an element or a chain of actions.

use crate::lock::Locked;
use castanet_element::run_loop::{Edge, EdgeRange};
use castanet_element::{Action, AnyElement};
use castanet_packet::Packet;
use std::sync::Arc;

/// Stands for no edge or no node.
pub(crate) const NONE: u32 = u32::MAX;

/// One action of a chain.
#[repr(C)]
pub(crate) struct Member {
    pub me: u32,
    /// The index of the first edge of its side outputs.
    pub base: u32,
    /// The number of edges of its side outputs.
    pub count: u32,
    /// The number of the node's edges that come before the edges of this action's side outputs.
    pub skip: u32,
    pub action: Box<dyn Action>,
    /// The edge that leads to the next action of the chain. The packets that continue in the chain wait on this edge in
    /// two cases. If this action has emitted copies, the copies go first. If it has added packets to the batch
    /// ([`Verdict::Several`](castanet_element::Verdict::Several)), the packets may have to go on one by one. `NONE` if
    /// the class does neither, or if packets are pulled through the chain.
    pub resume: u32,
}

/// What a node runs.
pub(crate) enum Body {
    /// The actions of a chain, in order.
    Chain(Box<[Member]>),
    /// An element that neither pulls nor calls handlers.
    Element(Box<dyn AnyElement>),
    /// An element that pulls or calls handlers, so that it must reach the other elements while it runs.
    /// Packets that it emits wait on edges of its own until it has returned.
    Reaching(Box<dyn AnyElement>, Box<[Edge]>),
    /// An element that several workers share under a lock, and its packets that wait until it has returned.
    Locked(Arc<Locked>, Box<[Edge]>),
    /// The node is running, further up the call stack.
    Busy,
}

#[repr(C)]
pub(crate) struct Node {
    pub body: Body,
    /// The element, or the first action of the chain.
    pub me: u32,
    /// The index of its first edge. An element has one edge for each output. A chain has first the edge for
    /// output 0 of its last action, then the edges that lead back into the chain, then those of its side
    /// outputs.
    pub base: u32,
    /// The number of its edges.
    pub count: u32,
    /// The number of a chain's edges that come before those of its side outputs; 0 for an element.
    pub mains: u32,
    /// Whether packets may leave a chain before its end, by a drop or a side output.
    pub loses: bool,
    /// Whether the edges of an element are followed from the last to the first.
    pub descending: bool,
    /// For each pull input, the node and output that it pulls from.
    pub sources: Box<[(u32, u32)]>,
    /// The node and output that this node pulls from directly. Set only if this node reaches just that one node, and
    /// that node reaches none. Typically, this node is a task that pulls from a queue.
    pub direct: Option<(u32, u32)>,
}

/// What remains to be done when a packet cannot be moved further without a batch.
pub(crate) enum Rest {
    /// Packets wait on edges of a node: the node, and a bit for each of its edges.
    Touched(usize, u64),
    /// A packet waits for an edge that it cannot cross without a batch: the edge, and the packet.
    Queue(usize, Packet),
    /// A packet was lost, because an edge of this element leads nowhere.
    Nowhere(u32),
}

impl Body {
    /// Makes the body of an element that reaches others and has the given number of outputs.
    pub(crate) fn reaching(element: Box<dyn AnyElement>, outputs: u32) -> Body {
        Body::Reaching(element, outbox(outputs))
    }
    /// Makes the body of a locked element.
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
    /// The edges of an element that is not in a chain.
    #[inline(always)]
    pub(crate) fn edges(&self) -> EdgeRange {
        EdgeRange { me: self.me, base: self.base, count: self.count, skip: self.mains }
    }
}
