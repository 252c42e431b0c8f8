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

/// What runs.
pub(crate) enum Body {
    /// Actions in order.
    Chain(Box<[Member]>),
    /// An element that reaches nobody.
    Element(Box<dyn Element>),
    /// One that pulls or calls handlers, so that the others must be within its reach while it runs; what it emits waits on
    /// edges of its own until it has returned.
    Reaching(Box<dyn Element>, Box<[Edge]>),
    /// It is running just now, further up.
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
    /// How many of a chain's edges come before its side outputs; none for an element.
    pub mains: u32,
    /// Whether packets may leave a chain before its end: dropped, or by a side output.
    pub loses: bool,
    /// For each pull input the node and output it pulls from.
    pub sources: Box<[(u32, u32)]>,
    /// All that it reaches, when that is one element that reaches nobody: the queue that a task pulls from.
    pub direct: Option<(u32, u32)>,
}

/// What a packet that went alone has left to be done.
pub(crate) enum Rest {
    /// Something waits on the edges of a node.
    Touched(usize, u64),
    /// The packet waits before an edge that takes batches only.
    Queue(usize, Packet),
    /// There was nothing where an edge of this element leads.
    Nowhere(u32),
}

impl Member {
    #[inline(always)]
    pub(crate) fn edges(&self) -> EdgeRange {
        EdgeRange { me: self.me, base: self.base, count: self.count, skip: self.skip }
    }
}

impl Node {
    /// That of an element that stands alone.
    #[inline(always)]
    pub(crate) fn edges(&self) -> EdgeRange {
        EdgeRange { me: self.me, base: self.base, count: self.count, skip: self.mains }
    }
}
