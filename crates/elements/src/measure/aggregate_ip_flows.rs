// SPDX-License-Identifier: MIT OR Apache-2.0
//! AggregateIPFlows: numbers packets by TCP or UDP flow, in the aggregate annotation.

mod flows;
mod fragments;
mod lookup;
mod shared;
#[cfg(test)]
mod tests;
mod trace_info;

use crate::handover;
use castanet_element::prelude::*;
use castanet_spec::anno;
use castanet_wire::tcp::flag;
use flows::{Seen, Timeouts};
use fragments::Fragments;
use lookup::{Fate, time};
use shared::Shared;
use std::sync::Arc;
use trace_info::TraceInfo;

/// Sets the aggregate annotation to a number for each TCP or UDP flow: 1, 2, ... in the order of their first packets.
///
/// Both directions of a flow have the same number. The paint annotation is set to 0 in the direction of the
/// first packet and to 1 in the other direction. A flow ends when it has been idle for longer than its
/// timeout. A TCP flow that was reset, or closed by both ends (RFC 9293 section 3.6), ends when it has been
/// idle for TCP_DONE_TIMEOUT or when a SYN begins a new flow. Packets after the end of a flow get a new
/// number. Times are the packets' timestamps, or the current time for packets without a timestamp.
///
/// With FRAGMENTS, a later fragment (any but the first) gets the number of its first fragment if the first fragment
/// came at most FRAGMENT_TIMEOUT earlier. A later fragment that is pushed before its first fragment waits for the first
/// fragment, up to FRAGMENT_TIMEOUT. When the first fragment comes, the later one leaves just before it. With ICMP, an
/// ICMP error gets the number of the flow whose packet it quotes, and the paint of the direction opposite to that
/// packet (RFC 792). Ended flows are removed every REAP seconds. At most 1048576 flows are stored. A further flow
/// replaces a flow that has been idle longest, or nearly longest.
///
/// # Ports
/// Input 0: IP packets. Output 0: packets of flows. Output 1 (optional): all other packets; without output 1 they are
/// dropped.
///
/// # Example
/// ```click
/// FromIPSummaryDump(DATA "!data src sport dst dport
/// 1.0.0.1 10 2.0.0.2 20
/// 2.0.0.2 20 1.0.0.1 10
/// 1.0.0.1 11 2.0.0.2 20
/// ", STOP true) -> AggregateIPFlows -> IPPrint(flow, AGGREGATE true, PAINT true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AggregateIPFlows", offload = none, ports = "1/1-2", processing = "a/ah", packets = "ip/same", workers = share)]
#[class(takes_state = "the flows and their numbers, the open file")]
#[class(
    build,
    lifecycle,
    handlers,
    effects(files, calls),
    drops(NoMatch, NoIpHeader, ReassemblyTimeout, ReassemblyFull, Cleared, Stopped),
    ledger(holds)
)]
pub struct AggregateIpFlows {
    args: Args,
    shared: Arc<Shared>,
    /// Whether the TRACEINFO file, if there is one, has been opened.
    begun: bool,
    /// Whether later fragments wait for their first fragment. False if packets are pulled.
    waits: bool,
    /// Whether this element created the TRACEINFO file; false if the file existed before.
    made: bool,
}

/// Arguments of AggregateIPFlows.
#[derive(Args)]
pub struct Args {
    /// How long a TCP flow may be idle.
    #[arg(keyword, default = Nanos(86_400_000_000_000), show = "86400", min = Nanos(0))]
    tcp_timeout: Nanos,
    /// How long a TCP flow may be idle after it was reset or closed by both ends.
    #[arg(keyword, default = Nanos(30_000_000_000), show = "30", min = Nanos(0))]
    tcp_done_timeout: Nanos,
    /// How long a UDP flow may be idle.
    #[arg(keyword, default = Nanos(60_000_000_000), show = "60", min = Nanos(0))]
    udp_timeout: Nanos,
    /// How long a first fragment is remembered.
    #[arg(keyword, default = Nanos(30_000_000_000), show = "30", min = Nanos(0))]
    fragment_timeout: Nanos,
    /// The interval at which ended flows are removed.
    #[arg(keyword, default = Nanos(1_200_000_000_000), show = "1200", min = Nanos(0))]
    reap: Nanos,
    /// Whether an ICMP error belongs to the flow of the packet that it quotes.
    #[arg(keyword, default = false)]
    icmp: bool,
    /// The file to which each flow is written when it ends.
    #[arg(keyword)]
    traceinfo: Option<Filename>,
    /// The element that reads the packets from a file. The TRACEINFO file names that file as the source of the packets.
    #[arg(keyword)]
    source: Option<ElementRef>,
    /// Whether fragments belong to flows; true unless packets are pulled.
    #[arg(keyword, show = "true unless pulled")]
    fragments: Option<bool>,
}

impl Build for AggregateIpFlows {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let with_fragments = args.fragments.unwrap_or_else(|| cx.is_push_input(0));
        let timeouts =
            Timeouts { tcp: args.tcp_timeout.0, tcp_done: args.tcp_done_timeout.0, udp: args.udp_timeout.0 };
        let workers = cx.replica.1;
        let shared = cx.share(|| {
            let fragments = with_fragments.then(|| Fragments::new(args.fragment_timeout.0));
            let info = args.traceinfo.as_ref().map(|f| TraceInfo::new(&f.0));
            Shared::new(timeouts, args.reap.0, fragments, info, workers)
        });
        let waits = with_fragments && cx.is_push_input(0);
        Ok(AggregateIpFlows { args, shared, begun: false, waits, made: false })
    }
}

/// Sets the annotations of a packet of a flow.
fn mark(p: &mut Packet, seen: Seen) {
    p.set_anno_u32(anno::AGGREGATE, seen.aggregate);
    p.set_paint(seen.paint);
}

impl AggregateIpFlows {
    /// Opens the TRACEINFO file and writes its header, if TRACEINFO is given and this was not done before.
    #[cold]
    fn begin_info(&mut self, cx: &mut Cx<'_>) {
        self.begun = true;
        if self.args.traceinfo.is_none() {
            return;
        }
        let source = self.args.source.and_then(|e| u32::try_from(e.0).ok());
        let file = source.and_then(|e| cx.read_handler(Some(e), "filename", "").ok());
        self.shared.with_info(|info| {
            if let Some(info) = info.as_mut().filter(|i| !i.has_begun()) {
                info.begin(file.as_deref());
            }
        });
    }

    /// Handles a pushed packet on the slow path. Called while fragments wait, and for a packet that does not leave by
    /// output 0 immediately.
    #[cold]
    fn handle(&mut self, mut p: Packet, fate: Fate, cx: &mut Cx<'_>) {
        let now = time(&p, cx);
        match fate {
            Fate::Other(reason) => return cx.emit_or(1, p, reason),
            Fate::Waits(now) => return self.wait(p, now, cx),
            Fate::Flow(seen) => {
                self.give_up(now, cx);
                mark(&mut p, seen);
            }
            Fate::First(seen) => {
                self.give_up(now, cx);
                let ip = p.ip_header().copied();
                let released = ip.and_then(|ip| self.shared.with_fragments(|f| f.released(&ip)));
                for mut before in released.into_iter().flatten() {
                    mark(&mut before, seen);
                    cx.emit(0, before);
                }
                mark(&mut p, seen);
            }
        }
        cx.emit(0, p);
    }
    /// Makes a later fragment wait, unless its first fragment has come in the meantime on another worker.
    fn wait(&mut self, mut p: Packet, now: i64, cx: &mut Cx<'_>) {
        let lost = self.shared.with_fragments(|f| {
            if let Some(seen) = p.ip_header().and_then(|ip| f.find(ip, now)) {
                mark(&mut p, seen);
                return (Some(p), None);
            }
            (None, f.wait(p, now))
        });
        let (found, lost) = lost.unwrap_or_default();
        found.into_iter().for_each(|p| cx.emit(0, p));
        lost.into_iter().for_each(|p| cx.emit_or(1, p, Reason::ReassemblyFull));
        self.give_up(now, cx);
    }
    /// Gives up fragments that have waited too long.
    fn give_up(&mut self, now: i64, cx: &mut Cx<'_>) {
        while self.shared.waiting() > 0
            && let Some(Some(late)) = self.shared.with_fragments(|f| f.given_up(now))
        {
            cx.emit_or(1, late, Reason::ReassemblyTimeout);
        }
    }
    /// Removes and returns the fragments that wait.
    fn drain(&self) -> Vec<Packet> {
        self.shared.with_fragments(|f| f.drain().collect()).unwrap_or_default()
    }
}

impl Element for AggregateIpFlows {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        // Fast path: as long as all packets belong to flows and no fragments wait, the packets stay in the
        // batch.
        let mut other = None;
        if self.shared.waiting() > 0 {
            other = Some((0, None));
        } else {
            for (i, p) in batch.iter_mut().enumerate() {
                match self.judge(p, cx) {
                    Fate::Flow(seen) => mark(p, seen),
                    fate => {
                        other = Some((i, Some(fate)));
                        break;
                    }
                }
            }
        }
        let Some((from, mut fate)) = other else { return cx.forward(0, batch) };
        let mut rest = cx.spare_batch();
        rest.extend(batch.as_mut_vec().drain(from..));
        if !batch.is_empty() {
            cx.forward(0, batch);
        }
        for p in rest.drain() {
            let fate = fate.take().unwrap_or_else(|| self.judge(&p, cx));
            self.handle(p, fate, cx);
        }
        cx.return_batch(rest);
    }
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..max {
            let Some(p) = self.pull_one(0, cx) else { break };
            into.push(p);
        }
    }
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        cx.pull_until(0, |mut p, cx| match self.judge(&p, cx) {
            Fate::Flow(seen) | Fate::First(seen) => {
                mark(&mut p, seen);
                Some(p)
            }
            Fate::Other(reason) => {
                cx.emit_or(1, p, reason);
                None
            }
            Fate::Waits(_) => {
                cx.emit_or(1, p, Reason::NoMatch);
                None
            }
        })
    }
}

#[handlers]
impl AggregateIpFlows {
    /// Forgets all flows. Fragments that wait leave by output 1; if there is no output 1, they are dropped.
    #[write(button)]
    fn clear(&mut self, cx: &mut Cx<'_>) {
        self.shared.forget_all();
        self.drain().into_iter().for_each(|p| cx.emit_or(1, p, Reason::Cleared));
        self.shared.with_fragments(Fragments::clear);
    }
    /// The number of flows that are stored.
    #[read(unit = "flows")]
    fn nflows(&self) -> usize {
        self.shared.flows()
    }
}

impl Lifecycle for AggregateIpFlows {
    fn held(&self) -> u64 {
        self.shared.waiting() as u64
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if let Some(name) = &self.args.traceinfo {
            handover::watch_for_run(cx);
            if !cx.inherits() {
                self.made = crate::trace::try_file(&name.0)?;
            }
        }
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.drain().into_iter().for_each(|p| cx.drop(p, Reason::Stopped));
        let fresh = self.shared.with_info(|info| info.as_ref().is_some_and(|i| !i.has_begun()));
        if fresh && !handover::has_run(cx) {
            // The router never ran. If this element created the file, remove it. A file that existed before may belong
            // to another router.
            if let Some(name) = self.args.traceinfo.as_ref().filter(|_| self.made) {
                handover::unmake(&name.0);
            }
            return Ok(());
        }
        self.begin_info(cx);
        self.shared.forget_all();
        self.shared.with_info(Option::take).map_or(Ok(()), TraceInfo::write)
    }
    fn holds(&self) -> Option<String> {
        let name = self.args.traceinfo.as_ref()?;
        Some(format!("file {}", handover::file_key(&name.0).display()))
    }
    fn take_over(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        if let Some(info) = old.shared.with_info(Option::take) {
            self.shared.with_info(|mine| *mine = Some(info));
        }
        self.made |= std::mem::take(&mut old.made);
        Ok(())
    }
    fn effects(&self, declared: Effects) -> Effects {
        // On the first packet, the element opens the file and, with SOURCE, also reads a handler.
        match (&self.args.traceinfo, self.args.source) {
            (None, _) => Effects::empty(),
            (Some(_), None) => Effects::FILES,
            _ => declared,
        }
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.shared.take_from(&old.shared);
        Ok(())
    }
}

/// Whether these TCP flags begin a connection: SYN without ACK.
fn begins(flags: u8) -> bool {
    flags & (flag::SYN | flag::ACK) == flag::SYN
}
