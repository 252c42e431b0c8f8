// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDPRewriter: rewrites addresses and ports of UDP, DCCP and TCP packets.

use super::args::Common;
use super::flow::{RewriterKind, Timeouts};
use super::header;
use super::rewriter::{Rewriter, RewriterArgs, Settings};
use super::spec::SpecText;
use castanet_element::prelude::*;

/// Rewrites addresses and ports of UDP, DCCP and TCP packets, flow by flow (RFC 3022, RFC 4787).
///
/// A packet of a known flow, in either direction and on any input, is rewritten as the flow says. Its checksums are
/// updated incrementally (RFC 1624). If the flow of a packet is unknown, the specification of its input applies, and
/// may make a flow. The number of flows is bounded: when CAPACITY is reached, a new flow evicts the flow that would
/// time out first. A flow cannot be evicted until the time UDP_GUARANTEE has passed since its last packet. If no flow
/// can be evicted, the new flow is refused and counted. Protocols are not distinguished: packets with the same
/// addresses and ports belong to one flow, which has the UDP timeouts even if it carries TCP. TCPRewriter and
/// IPRewriter have timeouts for TCP. Other protocols, later fragments and truncated packets are dropped, unless the
/// input says `pass`.
///
/// # Ports
/// Inputs: packets; each input has its own specification. Outputs: as the specification that made the flow
/// says (FOUT for forward packets, ROUT for replies).
///
/// # Example
/// ```click
/// rw :: UDPRewriter(pattern 9.9.9.9 1024-65535# - - 0 1);
/// InfiniteSource(LENGTH 20, LIMIT 5) -> UDPIPEncap(1.0.0.1, 10, 2.0.0.2, 20) -> rw;
/// rw [0] -> IPPrint(out) -> Discard;
/// rw [1] -> Discard;
/// DriverManager(wait 1, print rw.table, stop);
/// ```
#[derive(Class)]
#[class(name = "UDPRewriter", ports = "1-/1-", processing = "h/h", packets = "ip/same", workers = share)]
#[class(takes_state = "the flows that an input would make, with their times and shifts")]
#[class(offload = aware, kernel, drops(NoMapping, NotRewritable, PatternFull, TableFull, NoIpHeader, NoPort))]
pub struct UdpRewriter {
    #[engine(element)]
    rewriter: Rewriter<Args>,
}

/// Arguments of UDPRewriter.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    common: Common,
    /// How long a UDP flow lives without packets.
    #[arg(keyword, alias = "TIMEOUT", default = Nanos(300_000_000_000), show = "300s", min = Nanos(0))]
    udp_timeout: Nanos,
    /// How long a UDP flow lives without packets if it has had at least three packets, at least one of them
    /// in each direction; UDP_TIMEOUT if not given.
    #[arg(keyword, alias = "STREAMING_TIMEOUT", min = Nanos(0))]
    udp_streaming_timeout: Option<Nanos>,
    /// How long a flow is protected from eviction after its last packet.
    #[arg(keyword, alias = "GUARANTEE", default = Nanos(5_000_000_000), show = "5s", min = Nanos(0))]
    udp_guarantee: Nanos,
    /// Whether the destination annotation is set to the new destination.
    #[arg(keyword, default = true)]
    dst_anno: bool,
}

impl RewriterArgs for Args {
    type Family = header::Ports<true, true, true>;
    fn settings(&self) -> Settings {
        let streaming = self.udp_streaming_timeout.unwrap_or(self.udp_timeout);
        let timeouts = Timeouts::ports([self.udp_timeout.0, streaming.0], self.udp_guarantee.0, [0; 3], 0);
        self.common.settings(RewriterKind::AnyPorts, timeouts, self.dst_anno)
    }
    fn specs(&self) -> &[SpecText] {
        &self.common.inputspec
    }
}
