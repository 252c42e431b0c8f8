// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPRewriter: rewrites addresses and ports of TCP and UDP packets.

use super::args::{Common, TcpTimeouts};
use super::flow::{RewriterKind, Timeouts};
use super::header;
use super::rewriter::{FlowText, Rewriter, RewriterArgs, Settings};
use super::spec::SpecText;
use castanet_element::prelude::*;
use castanet_wire::ipv4::protocol;

/// Rewrites addresses and ports of TCP and UDP packets, flow by flow (RFC 3022, RFC 4787, RFC 5382).
///
/// A packet of a known flow, in either direction and on any input, is rewritten as the flow says. Its checksums are
/// updated incrementally (RFC 1624). If the flow of a packet is unknown, the specification of its input applies, and
/// may make a flow. The number of flows is bounded: when CAPACITY is reached, a new flow evicts the flow that would
/// time out first. A flow cannot be evicted until the time GUARANTEE has passed since its last packet. If no flow can
/// be evicted, the new flow is refused and counted. Other protocols, later fragments and truncated packets are dropped,
/// unless the input says `pass`.
///
/// # Ports
/// Inputs: packets; each input has its own specification. Outputs: as the specification that made the flow
/// says (FOUT for forward packets, ROUT for replies).
///
/// # Example
/// ```click
/// rw :: IPRewriter(pattern 9.9.9.9 1024-65535 - - 0 1, drop);
/// InfiniteSource(LENGTH 20, LIMIT 5) -> UDPIPEncap(1.0.0.1, 10, 2.0.0.2, 20) -> [0] rw;
/// Idle -> [1] rw;
/// rw [0] -> IPPrint(out) -> Discard;
/// rw [1] -> Discard;
/// DriverManager(wait 1, print rw.udp_table, stop);
/// ```
#[derive(Class)]
#[class(name = "IPRewriter", ports = "1-/1-", processing = "h/h", packets = "ip/same", workers = share, handlers)]
#[class(takes_state = "the flows that an input would make, with their times and shifts")]
#[class(offload = aware, copies, ledger(makes))]
#[class(
    kernel,
    drops(NoMapping, NotRewritable, PatternFull, TableFull, NoIpHeader, NoPort, BadOffload, NoBuffer)
)]
pub struct IpRewriter {
    #[engine(element)]
    rewriter: Rewriter<Args>,
}

/// Arguments of IPRewriter.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    common: Common,
    #[arg(flatten)]
    tcp_timeouts: TcpTimeouts,
    /// How long a UDP flow lives without packets.
    #[arg(keyword, default = Nanos(300_000_000_000), show = "300s", min = Nanos(0))]
    udp_timeout: Nanos,
    /// How long a UDP flow lives without packets if it has had at least three packets, at least one of them
    /// in each direction; UDP_TIMEOUT if not given.
    #[arg(keyword, min = Nanos(0))]
    udp_streaming_timeout: Option<Nanos>,
    /// How long a UDP flow is protected from eviction after its last packet; GUARANTEE if not given.
    #[arg(keyword, show = "5s", min = Nanos(0))]
    udp_guarantee: Option<Nanos>,
    /// How long a TCP flow is protected from eviction after its last packet; GUARANTEE if not given.
    #[arg(keyword, show = "5s", min = Nanos(0))]
    tcp_guarantee: Option<Nanos>,
    /// How long a flow is protected from eviction after its last packet.
    #[arg(keyword, default = Nanos(5_000_000_000), show = "5s", min = Nanos(0))]
    guarantee: Nanos,
    /// Whether the destination annotation is set to the new destination.
    #[arg(keyword, default = true)]
    dst_anno: bool,
}

impl RewriterArgs for Args {
    // TCP and UDP have a table each.
    const ONE_TABLE: bool = false;
    type Family = header::Ports<true, true, false>;
    fn settings(&self) -> Settings {
        let streaming = self.udp_streaming_timeout.unwrap_or(self.udp_timeout);
        let guarantee = |g: Option<Nanos>| g.unwrap_or(self.guarantee).0;
        let timeouts = Timeouts::ports(
            [self.udp_timeout.0, streaming.0],
            guarantee(self.udp_guarantee),
            self.tcp_timeouts.nanos(),
            guarantee(self.tcp_guarantee),
        );
        self.common.settings(RewriterKind::Ports, timeouts, self.dst_anno)
    }
    fn specs(&self) -> &[SpecText] {
        &self.common.inputspec
    }
}

#[handlers]
impl IpRewriter {
    /// The TCP flows, one line for each direction.
    #[read]
    fn tcp_table(&self, cx: &mut Cx<'_>) -> Result<Table, HandlerError> {
        self.rewriter.list(Some(protocol::TCP), cx)
    }
    /// The UDP flows, one line for each direction.
    #[read]
    fn udp_table(&self, cx: &mut Cx<'_>) -> Result<Table, HandlerError> {
        self.rewriter.list(Some(protocol::UDP), cx)
    }
    /// The TCP flows (old name of `tcp_table`).
    #[read(deprecated)]
    fn tcp_mappings(&self, cx: &mut Cx<'_>) -> Result<Table, HandlerError> {
        self.rewriter.list(Some(protocol::TCP), cx)
    }
    /// The UDP flows (old name of `udp_table`).
    #[read(deprecated)]
    fn udp_mappings(&self, cx: &mut Cx<'_>) -> Result<Table, HandlerError> {
        self.rewriter.list(Some(protocol::UDP), cx)
    }
    /// The new addresses and ports of a TCP packet `SADDR SPORT DADDR DPORT`; empty if its flow is not known.
    #[read]
    fn tcp_lookup(&self, flow: FlowText, cx: &mut Cx<'_>) -> Result<Option<String>, HandlerError> {
        self.rewriter.look_up(&flow, cx)
    }
}
