// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counts of an engine.

use castanet_element::{Count, Counts};

/// The counts of an engine.
#[derive(Clone, Copy, Counts, Debug, Default)]
pub struct EngineCounts {
    /// Connections that were established.
    #[count(unit = "connections")]
    pub opened: Count,
    /// Connections that ended because both ends have closed.
    #[count(unit = "connections")]
    pub finished: Count,
    /// Connections that ended by a RST of either end.
    #[count(unit = "connections")]
    pub reset: Count,
    /// Connections that a peer refused.
    #[count(unit = "connections")]
    pub refused: Count,
    /// Connections that ended because the peer did not answer.
    #[count(unit = "connections")]
    pub timed_out: Count,
    /// Times that a peer did not answer three retransmissions in a row (R1 of RFC 9293, section 3.8.3).
    #[count(unit = "times")]
    pub unanswered: Count,
    /// Connections that ended because the peer did not answer, and an ICMP error said why.
    #[count(unit = "connections")]
    pub unreachable: Count,
    /// SYNs that were answered by a SYN cookie.
    #[count(unit = "segments")]
    pub cookies: Count,
    /// Connections whose SYN cookie came back.
    #[count(unit = "connections")]
    pub cookies_accepted: Count,
    /// Segments that belonged to no connection.
    #[count(unit = "segments")]
    pub strays: Count,
    /// Packets that routers had marked because they met congestion (RFC 3168). A super-packet is one.
    #[count(unit = "packets")]
    pub marked: Count,
    /// Packets that came along a source route. A super-packet is one.
    #[count(unit = "packets")]
    pub routed: Count,
    /// ICMP errors that did not end their connection.
    #[count(unit = "packets")]
    pub soft_errors: Count,
    /// ICMP errors that ended a connection before it was established.
    #[count(unit = "packets")]
    pub hard_errors: Count,
    /// ICMP errors that made segments smaller, or will do so if the segment times out.
    #[count(unit = "packets")]
    pub size_errors: Count,
    /// ICMP source quenches, which are ignored.
    #[count(unit = "packets")]
    pub quenches: Count,
}
