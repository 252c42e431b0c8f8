// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPAddrPairRewriter: pairs of addresses.

use super::declare::rewriter_element;
use super::flow::{Kind, Timeouts};
use super::handle::{Capacity, UNBOUNDED};
use super::header;
use super::rewriter::{Rewriter, SHORTEST_REAP, Settings};
use super::spec::SpecText;
use castanet_element::prelude::*;

/// Rewrites source and destination addresses, pair by pair (RFC 2663 section 4.3).
///
/// As IPAddrRewriter, but flows are told apart by both addresses, so that one address may serve several hosts as long as they speak
/// with different ones, and destinations may be rewritten too.
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
#[class(name = "IPAddrPairRewriter", ports = "1-/1-", processing = "h/h", packets = "ip/ip", workers = share, build, lifecycle)]
#[class(takes_state = "the flows that an input would make, with their times and shifts")]
#[class(offload = aware, drops(NoMapping, NotRewritable, PatternFull, TableFull, NoIpHeader, NoPort))]
#[handler(name = "table", flags = "r", doc = "The flows, a line for each direction.")]
#[handler(name = "mappings", flags = "r", doc = "The same, by its old name.")]
#[handler(
    name = "table_size",
    flags = "r",
    doc = "Directions that are looked for: as good as always twice the flows."
)]
#[handler(name = "nmappings", flags = "r", doc = "The same, by its old name.")]
#[handler(
    name = "mapping_failures",
    flags = "r",
    doc = "Packets that should have made a flow and could not."
)]
#[handler(
    name = "patterns",
    flags = "r",
    doc = "What each input does with new flows, and how many there are from it."
)]
#[handler(name = "size", flags = "r", doc = "Flows, with those of others that share the capacity.")]
#[handler(name = "capacity", flags = "rw", doc = "The most flows.")]
#[handler(name = "clear", flags = "wb", doc = "Forgets all flows.")]
pub struct IpAddrPairRewriter {
    args: Args,
    rewriter: Rewriter<header::AddrPair>,
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
    /// How long after its last packet a flow is not forgotten to make room.
    #[arg(keyword, default = Nanos(5_000_000_000), show = "5s")]
    guarantee: Nanos,
    /// The annotation of one byte whose value in the packet that made a flow its replies get.
    #[arg(keyword)]
    reply_anno: Option<Anno1>,
    /// The most flows, or a rewriter to share them with; 4,194,304 at most if not given.
    #[arg(keyword, alias = "MAPPING_CAPACITY", default = Capacity::Flows(UNBOUNDED), show = "2147483647")]
    capacity: Capacity,
    /// How often flows that are too old are looked for, though nobody finds them before either.
    #[arg(keyword, alias = "REAP_TIME", default = Nanos(900_000_000_000), min = SHORTEST_REAP, off = Nanos(0), show = "900s")]
    reap_interval: Nanos,
}

impl Build for IpAddrPairRewriter {
    fn build(mut args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let timeouts = Timeouts::all(args.timeout.0, args.guarantee.0);
        let settings = Settings {
            kind: Kind::Pair,
            timeouts,
            capacity: args.capacity,
            reap: args.reap_interval.0,
            dst_anno: true,
            reply_anno: args.reply_anno.map(|a| a.0),
        };
        let rewriter = Rewriter::build(settings, std::mem::take(&mut args.inputspec), cx)?;
        Ok(IpAddrPairRewriter { args, rewriter })
    }
}

rewriter_element!(IpAddrPairRewriter);
