// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPAddrPairRewriter: pairs of addresses.

use super::flow::{Kind, Timeouts};
use super::handle::{Capacity, UNBOUNDED};
use super::header;
use super::rewriter::{Rewriter, RewriterArgs, SHORTEST_REAP, Settings};
use super::spec::SpecText;
use castanet_element::prelude::*;

/// Rewrites source and destination addresses, pair by pair (RFC 2663 section 4.3).
///
/// As IPAddrRewriter, but both addresses distinguish flows. So several hosts may share one address if their peers differ, and
/// destinations may be rewritten too.
///
/// # Ports
/// Each input has its input specification. Packets leave by the output that the flow was made with.
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
#[class(name = "IPAddrPairRewriter", ports = "1-/1-", processing = "h/h", packets = "ip/ip", workers = share, handlers)]
#[class(takes_state = "the flows that an input would make, with their times and shifts")]
#[class(offload = aware, drops(NoMapping, NotRewritable, PatternFull, TableFull, NoIpHeader, NoPort))]
pub struct IpAddrPairRewriter {
    #[engine]
    rewriter: Rewriter<Args>,
}

/// Arguments of IPAddrPairRewriter.
#[derive(Args)]
pub struct Args {
    /// For each input, what packets of no known flow become: `drop`, `pass OUT`, `keep FOUT ROUT`, `pattern SADDR SPORT DADDR DPORT FOUT ROUT` or a mapper.
    #[arg(rest)]
    inputspec: Vec<SpecText>,
    /// How long a flow lives without packets.
    #[arg(keyword, default = Nanos(7_200_000_000_000), show = "7200s")]
    timeout: Nanos,
    /// For how long after its last packet a flow is not forgotten to make room.
    #[arg(keyword, default = Nanos(5_000_000_000), show = "5s")]
    guarantee: Nanos,
    /// The annotation of one byte whose value in the packet that made a flow its replies get.
    #[arg(keyword)]
    reply_anno: Option<Anno1>,
    /// The most flows, or a rewriter to share them with; 4,194,304 at most if not given.
    #[arg(keyword, alias = "MAPPING_CAPACITY", default = Capacity::Flows(UNBOUNDED), show = "2147483647")]
    capacity: Capacity,
    /// The time between sweeps that remove flows that are too old. Between sweeps no packet finds them either.
    #[arg(keyword, alias = "REAP_TIME", default = Nanos(900_000_000_000), min = SHORTEST_REAP, off = Nanos(0), show = "900s")]
    reap_interval: Nanos,
}

impl RewriterArgs for Args {
    type Family = header::AddrPair;
    fn settings(&self) -> Settings {
        let timeouts = Timeouts::all(self.timeout.0, self.guarantee.0);
        Settings {
            kind: Kind::Pair,
            timeouts,
            capacity: self.capacity,
            reap: self.reap_interval.0,
            dst_anno: true,
            reply_anno: self.reply_anno.map(|a| a.0),
        }
    }
    fn specs(&self) -> &[SpecText] {
        &self.inputspec
    }
}

#[handlers]
impl IpAddrPairRewriter {
    /// The flows, a line for each direction.
    #[read]
    fn table(&self, cx: &mut Cx<'_>) -> Result<Table, String> {
        self.rewriter.list(None, cx)
    }
    /// The same, by its old name.
    #[read]
    fn mappings(&self, cx: &mut Cx<'_>) -> Result<Table, String> {
        self.rewriter.list(None, cx)
    }
}

impl Element for IpAddrPairRewriter {
    #[inline]
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.rewriter.push(port, batch, cx);
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.rewriter.timer(cx);
    }
}
