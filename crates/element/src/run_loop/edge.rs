// SPDX-License-Identifier: MIT OR Apache-2.0
//! Edges: the connections between nodes of the run loop.

use castanet_packet::Batch;

/// A connection from an output of an element to a node, with the packets that wait on it.
#[derive(Debug)]
pub struct Edge {
    /// The packets that wait on the edge.
    pub batch: Batch,
    /// The number of the node that the edge leads to. `u32::MAX` if the edge leads nowhere.
    pub node: u32,
    /// The input of the element that the edge leads to. If the edge leads into a chain, this is the index of the action
    /// to begin with.
    pub port: u32,
    /// The number of the element that the edge comes from.
    pub from: u32,
    /// Whether the run loop has recorded that packets wait on this edge.
    // INVARIANT: when an edge has packets, `pending` is set or the element before the edge has just emitted them.
    pub pending: bool,
    /// Whether the edge closes a cycle. Each crossing of such an edge adds a hop to the hop count of a packet.
    pub back: bool,
    /// The number of the compiled path that begins here, or `u32::MAX`. The run loop numbers them.
    pub path: u32,
}

impl Default for Edge {
    /// An edge that is not connected yet. Its batch allocates no memory before the first packet, because most edges of
    /// a large router never hold a packet.
    fn default() -> Self {
        Edge { batch: Batch::empty(), node: 0, port: 0, from: 0, pending: false, back: false, path: u32::MAX }
    }
}

impl Edge {
    /// Whether a packet may cross the edge immediately: no packets wait on the edge, and the edge does not close a
    /// cycle (where hops are counted).
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        !(self.pending | self.back)
    }
}
