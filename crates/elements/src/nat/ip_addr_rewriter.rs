// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPAddrRewriter: rewrites source addresses of forward packets, and destination addresses of replies.

use super::args::Common;
use super::flow::{RewriterKind, Timeouts};
use super::header;
use super::rewriter::{Rewriter, RewriterArgs, Settings};
use super::spec::SpecText;
use castanet_element::prelude::*;

/// Rewrites the source addresses of packets, and the destination addresses of replies (RFC 3022 section 2.1).
///
/// If the source address of a packet has a flow, that address is replaced. Otherwise, if a flow has assigned the
/// destination address to a host, the packet is a reply, and that host's own address becomes the destination. For
/// other packets the specification of their input applies. Ports do not matter, so fragments and all protocols are
/// rewritten. Checksums are updated incrementally (RFC 1624), including those of TCP, UDP, UDP-Lite and DCCP. The
/// destination annotation becomes the new destination. When CAPACITY is reached, a new flow evicts the flow that
/// would time out first. For the time GUARANTEE after its last packet, a flow cannot be evicted. If this protects all
/// flows, the new flow is refused and counted.
///
/// # Ports
/// Inputs: packets; each input has its own specification. Outputs: as the specification that made the flow
/// says (FOUT for forward packets, ROUT for replies).
///
/// # Example
/// ```click
/// rw :: IPAddrRewriter(pattern 9.9.9.1-9.9.9.8 - 0 1);
/// InfiniteSource(LENGTH 20, LIMIT 5) -> UDPIPEncap(1.0.0.1, 10, 2.0.0.2, 20) -> rw;
/// rw [0] -> IPPrint(out) -> Discard;
/// rw [1] -> Discard;
/// DriverManager(wait 1, print rw.table, stop);
/// ```
#[derive(Class)]
#[class(name = "IPAddrRewriter", ports = "1-/1-", processing = "h/h", packets = "ip/ip", workers = share)]
#[class(takes_state = "the flows that an input would make, with their times and shifts")]
#[class(offload = aware, drops(NoMapping, NotRewritable, PatternFull, TableFull, NoIpHeader, NoPort))]
pub struct IpAddrRewriter {
    #[engine]
    rewriter: Rewriter<Args>,
}

/// Arguments of IPAddrRewriter.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    common: Common,
    /// How long a flow lives without packets.
    #[arg(keyword, default = Nanos(7_200_000_000_000), show = "7200s", min = Nanos(0))]
    timeout: Nanos,
    /// How long after its last packet a flow cannot be evicted to make room.
    #[arg(keyword, default = Nanos(5_000_000_000), show = "5s", min = Nanos(0))]
    guarantee: Nanos,
}

impl RewriterArgs for Args {
    type Family = header::Addr;
    fn settings(&self) -> Settings {
        let timeouts = Timeouts::all(self.timeout.0, self.guarantee.0);
        self.common.settings(RewriterKind::Addr, timeouts, true)
    }
    fn specs(&self) -> &[SpecText] {
        &self.common.inputspec
    }
}

impl Element for IpAddrRewriter {
    #[inline]
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.rewriter.push(port, batch, cx);
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.rewriter.timer(cx);
    }
}
