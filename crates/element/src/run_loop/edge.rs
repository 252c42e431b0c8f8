// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections between elements.

use castanet_packet::Batch;

/// A connection, with the packets that wait on it.
#[derive(Debug)]
pub struct Edge {
    /// Packets that wait.
    pub batch: Batch,
    /// The node of the run loop that the edge leads to, by number; `u32::MAX` if it leads nowhere.
    pub node: u32,
    /// The input that the edge leads to. If the edge leads into a chain: the number of the action to begin with.
    pub port: u32,
    /// The element that the edge comes from.
    pub from: u32,
    /// Whether the run loop has noted that packets wait on this edge.
    // INVARIANT: while packets move, an edge with packets is pending unless its element has just emitted them.
    pub pending: bool,
    /// Whether the edge closes a cycle, so that packets crossing it count a hop.
    pub back: bool,
}

impl Default for Edge {
    /// An edge that leads nowhere yet. Most edges of a large router never hold a packet, so the batch has no
    /// memory until a packet comes.
    fn default() -> Self {
        Edge { batch: Batch::empty(), node: 0, port: 0, from: 0, pending: false, back: false }
    }
}

impl Edge {
    /// Whether a packet may cross at once: no packets wait, and no hop has to be counted.
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        !(self.pending | self.back)
    }
}
