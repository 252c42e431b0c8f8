// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a worker's graph: an element or a chain of actions, and the packets between them.

use castanet_element::seam::EdgeRange;
use castanet_element::{Action, Edge, Element};
use castanet_packet::Packet;

/// No edge, no node.
pub(crate) const NONE: u32 = u32::MAX;

/// One action of a chain.
#[repr(C)]
pub(crate) struct Member {
    pub me: u32,
    /// Where the edges of its side outputs start, how many they are, and how many of its node come before them.
    pub base: u32,
    pub count: u32,
    pub skip: u32,
    pub action: Box<dyn Action>,
    /// Where the packets wait that go on after this action when it has emitted copies or put packets behind them: an edge
    /// that leads back into the chain. `NONE` for actions that do no such thing.
    pub resume: u32,
}

/// The code of a node.
pub(crate) enum Body {
    /// Actions in order.
    Chain(Box<[Member]>),
    /// An element that neither pulls nor calls handlers.
    Element(Box<dyn Element>),
    /// One that pulls or calls handlers, so that the others must be within its reach while it runs; what it emits waits on
    /// edges of its own until it has returned.
    Reaching(Box<dyn Element>, Box<[Edge]>),
    /// It is running, further up the call stack.
    Busy,
}

#[repr(C)]
pub(crate) struct Node {
    pub body: Body,
    /// The element, or the first of the chain.
    pub me: u32,
    /// Where its edges start, and how many they are. An element has one for each output. A chain has that of its last
    /// output 0, then those that lead back into it, then its side outputs.
    pub base: u32,
    pub count: u32,
    /// The number of a chain's edges before its side outputs; 0 for an element.
    pub mains: u32,
    /// Whether packets may leave a chain before its end, by a drop or a side output.
    pub loses: bool,
    /// Whether the edges of an element are followed from the last to the first.
    pub descending: bool,
    /// For each pull input the node and output it pulls from.
    pub sources: Box<[(u32, u32)]>,
    /// The only element that it reaches, if that one reaches no other: the queue that a task pulls from.
    pub direct: Option<(u32, u32)>,
}

/// Work that is left after a packet moved without a batch.
pub(crate) enum Rest {
    /// Something waits on the edges of a node.
    Touched(usize, u64),
    /// The packet waits before an edge that takes batches only.
    Queue(usize, Packet),
    /// There was nothing where an edge of this element leads.
    Nowhere(u32),
}

impl Body {
    /// An element that reaches others, with so many outputs.
    pub(crate) fn reaching(element: Box<dyn Element>, outputs: u32) -> Body {
        Body::Reaching(element, (0..outputs).map(|_| Edge::default()).collect())
    }
}

impl Member {
    #[inline(always)]
    pub(crate) fn edges(&self) -> EdgeRange {
        EdgeRange { me: self.me, base: self.base, count: self.count, skip: self.skip }
    }
}

impl Node {
    /// The edges of an element that stands alone.
    #[inline(always)]
    pub(crate) fn edges(&self) -> EdgeRange {
        EdgeRange { me: self.me, base: self.base, count: self.count, skip: self.mains }
    }
}
