// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPAddrPairRewriter: rewrites pairs of addresses.

use super::args::{AddressTimeouts, Common};
use super::flow::RewriterKind;
use super::header;
use super::rewriter::{Rewriter, RewriterArgs, Settings};
use super::spec::SpecText;
use castanet_element::prelude::*;

/// Rewrites source and destination addresses, pair by pair (RFC 2663 section 4.3).
///
/// Works as IPAddrRewriter does, except that the pair of both addresses identifies a flow. So several hosts
/// may share one address if their peers differ, and destination addresses may be rewritten too.
///
/// # Ports
/// Inputs: packets; each input has its own specification. Outputs: as the specification that made the flow
/// says (FOUT for forward packets, ROUT for replies).
///
/// # Example
/// ```click
/// rw :: IPAddrPairRewriter(pattern 9.9.9.9 3.0.0.3 0 1);
/// InfiniteSource(LENGTH 20, LIMIT 5) -> UDPIPEncap(1.0.0.1, 10, 2.0.0.2, 20) -> rw;
/// rw [0] -> IPPrint(out) -> Discard;
/// rw [1] -> Discard;
/// DriverManager(wait 1, print rw.table, stop);
/// ```
#[derive(Class)]
#[class(name = "IPAddrPairRewriter", ports = "1-/1-", processing = "h/h", packets = "ip/same", workers = share)]
#[class(takes_state = "the flows that an input would make, with their times and shifts")]
#[class(offload = aware, kernel, drops(NoMapping, NotRewritable, PatternFull, TableFull, NoIpHeader, NoPort))]
pub struct IpAddrPairRewriter {
    #[engine(element)]
    rewriter: Rewriter<Args>,
}

/// Arguments of IPAddrPairRewriter.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    common: Common,
    #[arg(flatten)]
    timeouts: AddressTimeouts,
}

impl RewriterArgs for Args {
    type Family = header::AddrPair;
    fn settings(&self) -> Settings {
        self.common.settings(RewriterKind::Pair, self.timeouts.timeouts(), true)
    }
    fn specs(&self) -> &[SpecText] {
        &self.common.inputspec
    }
}
