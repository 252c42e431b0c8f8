// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPRewriter: addresses and ports of TCP and UDP.

use super::flow::{Kind, Timeouts};
use super::handle::{Capacity, UNBOUNDED};
use super::header;
use super::rewriter::{FlowText, Rewriter, RewriterArgs, SHORTEST_REAP, Settings};
use super::spec::SpecText;
use castanet_element::prelude::*;
use castanet_wire::ipv4::protocol;

/// Rewrites addresses and ports of TCP and UDP packets, flow by flow (RFC 3022, RFC 4787, RFC 5382).
///
/// A packet of a flow that is known, in either direction and on any input, is rewritten as the flow says, its checksums updated
/// incrementally (RFC 1624). A packet of no known flow does what the specification of its input says, which may make a
/// flow. Flows are bounded: when CAPACITY is reached, the one that would be the first to time out makes room, if its
/// last packet is older than the guarantee; otherwise the new flow is refused and counted.
/// Other protocols, later fragments and packets cut short are dropped, unless the
/// input says `pass`.
///
/// # Ports
/// Each input has its input specification. Packets leave by the output that the flow was made with.
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
#[class(name = "IPRewriter", ports = "1-/1-", processing = "h/h", packets = "ip/ip", workers = share, handlers)]
#[class(takes_state = "the flows that an input would make, with their times and shifts")]
#[class(offload = aware, copies, books(makes))]
#[class(drops(NoMapping, NotRewritable, PatternFull, TableFull, NoIpHeader, NoPort, BadOffload, NoBuffer))]
pub struct IpRewriter {
    #[engine]
    rewriter: Rewriter<Args>,
}

/// Arguments of IPRewriter.
#[derive(Args)]
pub struct Args {
    /// For each input, what packets of no known flow become: `drop`, `pass OUT`, `keep FOUT ROUT`, `pattern SADDR SPORT DADDR DPORT FOUT ROUT` or a mapper.
    #[arg(rest)]
    inputspec: Vec<SpecText>,
    /// How long a UDP flow lives without packets.
    #[arg(keyword, default = Nanos(300_000_000_000), show = "300s")]
    udp_timeout: Nanos,
    /// The same once packets have gone back and forth more than once; UDP_TIMEOUT if not given.
    #[arg(keyword)]
    udp_streaming_timeout: Option<Nanos>,
    /// How long after its last packet a UDP flow is not forgotten to make room; GUARANTEE if not given.
    #[arg(keyword, show = "5s")]
    udp_guarantee: Option<Nanos>,
    /// How long a TCP flow without data lives without packets.
    #[arg(keyword, default = Nanos(300_000_000_000), show = "300s")]
    tcp_nodata_timeout: Nanos,
    /// How long a TCP flow with data both ways lives without packets (RFC 5382 section 5).
    #[arg(keyword, alias = "TIMEOUT", default = Nanos(86_400_000_000_000), show = "86400s")]
    tcp_timeout: Nanos,
    /// How long a TCP flow lives that was closed or reset.
    #[arg(keyword, default = Nanos(240_000_000_000), show = "240s")]
    tcp_done_timeout: Nanos,
    /// How long after its last packet a TCP flow is not forgotten to make room; GUARANTEE if not given.
    #[arg(keyword, show = "5s")]
    tcp_guarantee: Option<Nanos>,
    /// For how long after its last packet a flow is not forgotten to make room.
    #[arg(keyword, default = Nanos(5_000_000_000), show = "5s")]
    guarantee: Nanos,
    /// Whether the destination annotation is set to the new destination.
    #[arg(keyword, default = true)]
    dst_anno: bool,
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
    type Family = header::Ports<true, true, false>;
    fn settings(&self) -> Settings {
        let streaming = self.udp_streaming_timeout.unwrap_or(self.udp_timeout);
        let guarantee = |g: Option<Nanos>| g.unwrap_or(self.guarantee).0;
        let timeouts = Timeouts::ports(
            [self.udp_timeout.0, streaming.0],
            guarantee(self.udp_guarantee),
            [self.tcp_nodata_timeout.0, self.tcp_timeout.0, self.tcp_done_timeout.0],
            guarantee(self.tcp_guarantee),
        );
        Settings {
            kind: Kind::Ports,
            timeouts,
            capacity: self.capacity,
            reap: self.reap_interval.0,
            dst_anno: self.dst_anno,
            reply_anno: self.reply_anno.map(|a| a.0),
        }
    }
    fn specs(&self) -> &[SpecText] {
        &self.inputspec
    }
}

#[handlers]
impl IpRewriter {
    /// The TCP flows, a line for each direction.
    #[read]
    fn tcp_table(&self, cx: &mut Cx<'_>) -> Result<Table, String> {
        self.rewriter.list(Some(protocol::TCP), cx)
    }
    /// The UDP flows, a line for each direction.
    #[read]
    fn udp_table(&self, cx: &mut Cx<'_>) -> Result<Table, String> {
        self.rewriter.list(Some(protocol::UDP), cx)
    }
    /// The TCP flows, by the old name.
    #[read]
    fn tcp_mappings(&self, cx: &mut Cx<'_>) -> Result<Table, String> {
        self.rewriter.list(Some(protocol::TCP), cx)
    }
    /// The UDP flows, by the old name.
    #[read]
    fn udp_mappings(&self, cx: &mut Cx<'_>) -> Result<Table, String> {
        self.rewriter.list(Some(protocol::UDP), cx)
    }
    /// The new addresses and ports of a TCP packet `SADDR SPORT DADDR DPORT`; empty if its flow is not known.
    #[read]
    fn tcp_lookup(&self, flow: FlowText, cx: &mut Cx<'_>) -> Result<Option<String>, String> {
        self.rewriter.look_up(&flow, cx)
    }
}

impl Element for IpRewriter {
    #[inline]
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.rewriter.push(port, batch, cx);
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.rewriter.timer(cx);
    }
}
