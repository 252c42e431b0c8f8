// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPAddrRewriter: rewrites source addresses of forward packets, and destination addresses of replies.

use super::args::{AddressTimeouts, Common};
use super::flow::RewriterKind;
use super::header;
use super::rewriter::{Rewriter, RewriterArgs, Settings};
use super::spec::SpecText;
use castanet_element::prelude::*;

/// Rewrites the source addresses of packets, and the destination addresses of replies (RFC 3022 section 2.1).
///
/// If the source address of a packet has a flow, that address is replaced. Otherwise, if a flow has assigned the
/// destination address to a host, the packet is a reply, and that host's own address becomes the destination. For other
/// packets the specification of their input applies. Ports do not matter, so fragments and all protocols are rewritten.
/// Checksums are updated incrementally (RFC 1624), including those of TCP, UDP, UDP-Lite and DCCP. The destination
/// annotation becomes the new destination. When CAPACITY is reached, a new flow evicts the flow that would time out
/// first. A flow cannot be evicted until the time GUARANTEE has passed since its last packet. If no flow can be
/// evicted, the new flow is refused and counted.
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
#[class(name = "IPAddrRewriter", ports = "1-/1-", processing = "h/h", packets = "ip/same", workers = share)]
#[class(takes_state = "the flows that an input would make, with their times and shifts")]
#[class(offload = aware, kernel, drops(NoMapping, NotRewritable, PatternFull, TableFull, NoIpHeader, NoPort))]
pub struct IpAddrRewriter {
    #[engine(element)]
    rewriter: Rewriter<Args>,
}

/// Arguments of IPAddrRewriter.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    common: Common,
    #[arg(flatten)]
    timeouts: AddressTimeouts,
}

impl RewriterArgs for Args {
    type Family = header::Addr;
    fn settings(&self) -> Settings {
        self.common.settings(RewriterKind::Addr, self.timeouts.timeouts(), true)
    }
    fn specs(&self) -> &[SpecText] {
        &self.common.inputspec
    }
}
