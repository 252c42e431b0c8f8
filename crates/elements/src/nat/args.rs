// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments that rewriters have in common.

use super::flow::{RewriterKind, Timeouts};
use super::handle::{Capacity, UNBOUNDED};
use super::rewriter::Settings;
use super::spec::SpecText;
use castanet_element::prelude::*;

/// The shortest interval between sweeps. Sweeps must be rare, because each one walks over all flows.
const SHORTEST_REAP: Nanos = Nanos(100_000_000);

/// Arguments of every rewriter.
#[derive(Args)]
pub struct Common {
    /// For each input, the rule for packets of unknown flows: `drop`, `pass OUT`, `keep FOUT ROUT`, a mapper, or
    /// `pattern SADDR SPORT DADDR DPORT FOUT ROUT`.
    #[arg(rest)]
    pub inputspec: Vec<SpecText>,
    /// A one-byte annotation that all replies of a flow copy from the packet that made the flow.
    #[arg(keyword)]
    pub reply_anno: Option<Anno1>,
    /// The maximum number of flows (4,194,304 if not given), or the name of a rewriter to share the capacity with.
    #[arg(keyword, alias = "MAPPING_CAPACITY", default = Capacity::Flows(UNBOUNDED), show = "2147483647")]
    pub capacity: Capacity,
    /// The time between sweeps that remove expired flows; packets never match an expired flow, even before the sweep.
    #[arg(keyword, deprecated = "REAP_TIME", default = Nanos(900_000_000_000), min = SHORTEST_REAP, off = Nanos(0), show = "900s")]
    pub reap_interval: Nanos,
}

impl Common {
    /// The settings of a rewriter with these arguments.
    pub fn settings(&self, kind: RewriterKind, timeouts: Timeouts, dst_anno: bool) -> Settings {
        Settings {
            kind,
            timeouts,
            capacity: self.capacity,
            reap: self.reap_interval.0,
            dst_anno,
            reply_anno: self.reply_anno.map(|a| a.0),
        }
    }
}

/// The timeouts of rewriters that only change addresses.
#[derive(Args)]
pub struct AddressTimeouts {
    /// How long a flow lives without packets.
    #[arg(keyword, default = Nanos(7_200_000_000_000), show = "7200s", min = Nanos(0))]
    timeout: Nanos,
    /// How long a flow is protected from eviction after its last packet.
    #[arg(keyword, default = Nanos(5_000_000_000), show = "5s", min = Nanos(0))]
    guarantee: Nanos,
}

impl AddressTimeouts {
    /// Returns these timeouts. They are the same for all flows.
    pub fn timeouts(&self) -> Timeouts {
        Timeouts::all(self.timeout.0, self.guarantee.0)
    }
}

/// How long TCP flows live.
#[derive(Args)]
pub struct TcpTimeouts {
    /// How long a TCP flow lives without packets if it has not carried data both ways.
    #[arg(keyword, default = Nanos(300_000_000_000), show = "300s", min = Nanos(0))]
    tcp_nodata_timeout: Nanos,
    /// How long a TCP flow lives without packets if it has carried data both ways (RFC 5382 section 5).
    #[arg(keyword, alias = "TIMEOUT", default = Nanos(86_400_000_000_000), show = "86400s", min = Nanos(0))]
    tcp_timeout: Nanos,
    /// How long a TCP flow lives without packets after it was closed or reset.
    #[arg(keyword, default = Nanos(240_000_000_000), show = "240s", min = Nanos(0))]
    tcp_done_timeout: Nanos,
}

impl TcpTimeouts {
    /// Returns the three timeouts in nanoseconds: without data, with data, closed.
    pub fn nanos(&self) -> [i64; 3] {
        [self.tcp_nodata_timeout.0, self.tcp_timeout.0, self.tcp_done_timeout.0]
    }
}
