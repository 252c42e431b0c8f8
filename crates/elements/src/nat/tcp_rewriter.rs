// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCPRewriter: rewrites addresses and ports of TCP packets.

use super::args::{Common, TcpTimeouts};
use super::flow::{RewriterKind, Timeouts};
use super::header;
use super::rewriter::{FlowText, Rewriter, RewriterArgs, Settings};
use super::spec::SpecText;
use castanet_element::prelude::*;

/// Rewrites addresses and ports of TCP packets, flow by flow (RFC 3022, RFC 5382).
///
/// A packet of a known flow, in either direction and on any input, is rewritten as the flow says. Its checksums are
/// updated incrementally (RFC 1624). If the flow of a packet is unknown, the specification of its input applies, and
/// may make a flow. The number of flows is bounded: when CAPACITY is reached, a new flow evicts the flow that would
/// time out first. A flow cannot be evicted until the time TCP_GUARANTEE has passed since its last packet. If no flow
/// can be evicted, the new flow is refused and counted. If FTPPortMapper has changed the length of a command, sequence
/// and acknowledgement numbers are shifted too. Other protocols, later fragments and truncated packets are dropped,
/// unless the input says `pass`.
///
/// # Ports
/// Inputs: packets; each input has its own specification. Outputs: as the specification that made the flow
/// says (FOUT for forward packets, ROUT for replies).
///
/// # Example
/// ```click
/// rw :: TCPRewriter(pattern 9.9.9.9 1024-65535 - - 0 1);
/// MemSource(\<45000028 00010000 4006 7CCA 0A000001 02000002  000A0050 00000001 00000000 5002FFFF 00000000>, LIMIT 1)
///     -> CheckIPHeader(CHECKSUM false) -> rw;
/// rw [0] -> IPPrint(out) -> Discard;
/// rw [1] -> Discard;
/// DriverManager(wait 1, print rw.table, stop);
/// ```
#[derive(Class)]
#[class(name = "TCPRewriter", ports = "1-/1-", processing = "h/h", packets = "ip/same", workers = share, handlers)]
#[class(takes_state = "the flows that an input would make, with their times and shifts")]
#[class(offload = aware, copies, ledger(makes))]
#[class(
    kernel,
    drops(NoMapping, NotRewritable, PatternFull, TableFull, NoIpHeader, NoPort, BadOffload, NoBuffer)
)]
pub struct TcpRewriter {
    #[engine(element)]
    rewriter: Rewriter<Args>,
}

/// Arguments of TCPRewriter.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    common: Common,
    #[arg(flatten)]
    tcp_timeouts: TcpTimeouts,
    /// How long a flow is protected from eviction after its last packet.
    #[arg(keyword, alias = "GUARANTEE", default = Nanos(5_000_000_000), show = "5s", min = Nanos(0))]
    tcp_guarantee: Nanos,
    /// Whether the destination annotation is set to the new destination.
    #[arg(keyword, default = true)]
    dst_anno: bool,
}

impl RewriterArgs for Args {
    type Family = header::Ports<true, false, false>;
    fn settings(&self) -> Settings {
        let timeouts = Timeouts::ports([0; 2], 0, self.tcp_timeouts.nanos(), self.tcp_guarantee.0);
        self.common.settings(RewriterKind::Ports, timeouts, self.dst_anno)
    }
    fn specs(&self) -> &[SpecText] {
        &self.common.inputspec
    }
}

#[handlers]
impl TcpRewriter {
    /// The new addresses and ports of a packet `SADDR SPORT DADDR DPORT`; empty if its flow is not known.
    #[read]
    fn lookup(&self, flow: FlowText, cx: &mut Cx<'_>) -> Result<Option<String>, HandlerError> {
        self.rewriter.look_up(&flow, cx)
    }
}
