// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMPPingRewriter: rewrites addresses and identifiers of ICMP echo messages.

use super::args::Common;
use super::flow::{RewriterKind, Timeouts};
use super::header;
use super::rewriter::{Rewriter, RewriterArgs, Settings};
use super::spec::SpecText;
use castanet_element::prelude::*;

/// Rewrites addresses and identifiers of ICMP echo requests and replies, flow by flow (RFC 5508 section 3).
///
/// A packet of a known flow, in either direction and on any input, is rewritten as the flow says. Its checksums are
/// updated incrementally (RFC 1624). If the flow of a packet is unknown, the specification of its input applies, and
/// may make a flow. The number of flows is bounded: when CAPACITY is reached, a new flow evicts the flow that would
/// time out first. A flow cannot be evicted until the time GUARANTEE has passed since its last packet. If no flow can
/// be evicted, the new flow is refused and counted. In patterns the source port stands for the identifier. Tables show
/// the identifier as one port and 0 as the other. Other packets, later fragments and truncated packets are dropped,
/// unless the input says `pass`.
///
/// # Ports
/// Inputs: packets; each input has its own specification. Outputs: as the specification that made the flow
/// says (FOUT for forward packets, ROUT for replies).
///
/// # Example
/// ```click
/// rw :: ICMPPingRewriter(pattern 9.9.9.9 1024-65535 - - 0 1);
/// MemSource(\<4500001C 00010000 40017CDB 0A000001 02000002  0800F7F6 00070002>, LIMIT 1)
///     -> CheckIPHeader(CHECKSUM false) -> rw;
/// rw [0] -> IPPrint(out) -> Discard;
/// rw [1] -> Discard;
/// DriverManager(wait 1, print rw.table, stop);
/// ```
#[derive(Class)]
#[class(name = "ICMPPingRewriter", ports = "1-/1-", processing = "h/h", packets = "ip/same", workers = share)]
#[class(takes_state = "the flows that an input would make, with their times and shifts")]
#[class(offload = aware, kernel, drops(NoMapping, NotRewritable, PatternFull, TableFull, NoIpHeader, NoPort))]
pub struct IcmpPingRewriter {
    #[engine(element)]
    rewriter: Rewriter<Args>,
}

/// Arguments of ICMPPingRewriter.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    common: Common,
    /// How long a flow lives without packets.
    #[arg(keyword, default = Nanos(300_000_000_000), show = "300s", min = Nanos(0))]
    timeout: Nanos,
    /// How long a flow is protected from eviction after its last packet.
    #[arg(keyword, default = Nanos(5_000_000_000), show = "5s", min = Nanos(0))]
    guarantee: Nanos,
    /// Whether the destination annotation is set to the new destination.
    #[arg(keyword, default = true)]
    dst_anno: bool,
}

impl RewriterArgs for Args {
    type Family = header::Ping;
    fn settings(&self) -> Settings {
        let timeouts = Timeouts::all(self.timeout.0, self.guarantee.0);
        self.common.settings(RewriterKind::Ping, timeouts, self.dst_anno)
    }
    fn specs(&self) -> &[SpecText] {
        &self.common.inputspec
    }
}
