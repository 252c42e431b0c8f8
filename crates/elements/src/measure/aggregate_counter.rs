// SPDX-License-Identifier: MIT OR Apache-2.0
//! AggregateCounter: counts packets or bytes by aggregate.

mod counts;
mod limits;
mod shared;
#[cfg(test)]
mod tests;

use castanet_element::prelude::*;
use castanet_spec::anno;
use limits::{CallAt, Limits, call_or_none};
use shared::{Shared, State};
use std::sync::Arc;

/// Counts packets or bytes for each value of the aggregate annotation.
///
/// Each packet adds 1 plus its extra packets annotation to the count of its aggregate. With BYTES or IP_BYTES, it adds
/// its length in bytes. While the element is frozen, it counts no new aggregates: packets of aggregates not seen before
/// leave by output 1. Even while the element is not frozen, packets on input 1 leave by output 1 if their aggregate has
/// not been seen on input 0. At most 4194304 aggregates are counted; a packet of a further aggregate freezes the
/// element.
///
/// AGGREGATE_CALL, AGGREGATE_FREEZE and AGGREGATE_STOP each give a limit on the number of aggregates. COUNT_CALL,
/// COUNT_FREEZE and COUNT_STOP each give a limit on the total count. When its limit is reached, a CALL argument writes
/// a handler once, a FREEZE argument freezes the element, and a STOP argument requests that the driver stop.
///
/// # Ports
/// Input 0: packets. Input 1 (optional): packets that are counted only if their aggregate has been seen on input 0.
/// Output 0: the same packets. Output 1 (optional): packets that were not counted; without output 1 they leave by
/// output 0.
///
/// # Example
/// ```click
/// FromIPSummaryDump(DATA "!data aggregate
/// 1
/// 2
/// 1
/// ", STOP true) -> c :: AggregateCounter -> Discard;
/// DriverManager(pause, save c.nagg -);
/// ```
#[derive(Class)]
#[class(name = "AggregateCounter", offload = none, ports = "1-2/1-2", processing = "a/a", packets = "any/same", workers = share)]
#[class(takes_state = "the counts, which limits were reached")]
#[class(build, lifecycle, handlers, effects(calls, stops))]
pub struct AggregateCounter {
    args: Args,
    shared: Arc<Shared>,
    /// The number of this worker among those that reach the element.
    worker: usize,
    /// For each packet of a batch, whether it is to leave by output 1.
    uncounted: Vec<bool>,
    passes: bool,
    inputs: usize,
}

/// Arguments of AggregateCounter.
#[derive(Args)]
#[args(
    at_most_one(aggregate_freeze, aggregate_stop, aggregate_call),
    at_most_one(count_freeze, count_stop, count_call)
)]
pub struct Args {
    /// Whether to count bytes instead of packets.
    #[arg(keyword, default = false)]
    bytes: bool,
    /// Whether to count bytes by the length in the IP header.
    #[arg(keyword, default = false)]
    ip_bytes: bool,
    /// Whether a packet also adds its extra packets annotation, the number of further packets that it stands for.
    #[arg(keyword, default = true)]
    multipacket: bool,
    /// Whether to include bytes that were not captured.
    #[arg(keyword, default = true)]
    extra_length: bool,
    /// The number of aggregates at which to freeze.
    #[arg(keyword)]
    aggregate_freeze: Option<u32>,
    /// The count at which to freeze.
    #[arg(keyword)]
    count_freeze: Option<u64>,
    /// The number of aggregates at which to stop the driver.
    #[arg(keyword)]
    aggregate_stop: Option<u32>,
    /// The count at which to stop the driver.
    #[arg(keyword)]
    count_stop: Option<u64>,
    /// A number of aggregates, and the handler to write when it is reached.
    #[arg(keyword)]
    aggregate_call: Option<CallAt>,
    /// A count, and the handler to write when the total count reaches it.
    #[arg(keyword)]
    count_call: Option<CallAt>,
    /// A text that is written after the first line of each file of counts.
    #[arg(keyword)]
    banner: Option<String>,
}

impl Build for AggregateCounter {
    fn build(mut args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let state = State {
            counts: counts::Counts::default(),
            frozen: false,
            active: true,
            banner: args.banner.take().unwrap_or_default(),
            aggregates: Limits {
                freeze: args.aggregate_freeze.map(u64::from),
                stop: args.aggregate_stop.map(u64::from),
                call: args.aggregate_call.take(),
            },
            total: Limits { freeze: args.count_freeze, stop: args.count_stop, call: args.count_call.take() },
            full: false,
            two_inputs: cx.inputs > 1,
        };
        let (worker, workers) = cx.replica;
        Ok(AggregateCounter {
            shared: cx.share(|| Shared::new(state, workers)),
            worker,
            uncounted: Vec::new(),
            passes: cx.outputs < 2,
            inputs: cx.inputs,
            args,
        })
    }
}

impl AggregateCounter {
    /// Returns the amount that a packet adds to the count.
    #[inline]
    fn weight(&self, p: &Packet) -> u64 {
        let extra = || if self.args.extra_length { u64::from(p.anno_u32(anno::EXTRA_LENGTH)) } else { 0 };
        if self.args.ip_bytes {
            let ip = p.ip_header().map(|h| u64::from(u16::from_be_bytes([h[2], h[3]])));
            return ip.unwrap_or_else(|| p.len() as u64 + extra());
        }
        if self.args.bytes {
            return p.len() as u64 + extra();
        }
        1 + if self.args.multipacket { u64::from(p.anno_u32(anno::EXTRA_PACKETS)) } else { 0 }
    }

    /// Counts packets. Returns false if some are not counted; `uncounted` says which.
    fn count_all(&mut self, port: usize, packets: &[Packet], cx: &mut Cx<'_>) -> bool {
        let first = match self.shared.own(self.worker) {
            Some(mut table) => {
                let room = self.shared.room();
                let added = packets.iter().take_while(|p| {
                    let known = table.len() >= room;
                    table.add(p.anno_u32(anno::AGGREGATE), self.weight(p), known)
                });
                added.count()
            }
            None => 0,
        };
        let rest = packets.get(first..).unwrap_or_default();
        if rest.is_empty() {
            return true;
        }
        self.uncounted.clear();
        self.uncounted.resize(first, false);
        let mut uncounted = std::mem::take(&mut self.uncounted);
        self.shared.main(|state| {
            uncounted.extend(rest.iter().map(|p| !self.count(state, port, p, cx)));
        });
        self.uncounted = uncounted;
        !self.uncounted.contains(&true)
    }

    /// Counts a packet in the main table, unless counting is switched off. Returns false if counting is on, but the
    /// packet's aggregate is not counted.
    #[inline]
    fn count(&self, state: &mut State, port: usize, p: &Packet, cx: &mut Cx<'_>) -> bool {
        if !state.active {
            return true;
        }
        let before = state.counts.len();
        if !state.counts.add(p.anno_u32(anno::AGGREGATE), self.weight(p), state.frozen || port == 1) {
            if !state.frozen && port == 0 {
                tell_full(state, cx);
            }
            return false;
        }
        let (mut freeze, mut stop) = (false, false);
        if state.counts.len() != before {
            (freeze, stop) = state.aggregates.reached(state.counts.len() as u64, cx);
        }
        let (freeze_too, stop_too) = state.total.reached(state.counts.total(), cx);
        state.frozen |= freeze || freeze_too;
        if stop || stop_too {
            state.active = false;
            cx.stop(1);
        }
        true
    }
}

/// Freezes the element because the table is full.
#[cold]
fn tell_full(state: &mut State, cx: &mut Cx<'_>) {
    if !std::mem::replace(&mut state.full, true) {
        let text = format!("{}: no room for more than {} aggregates", cx.declaration(), counts::MOST);
        cx.message(&text);
    }
    state.frozen = true;
}

impl Element for AggregateCounter {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if self.count_all(port, batch.as_slice(), cx) || self.passes {
            return cx.forward(0, batch);
        }
        for (p, uncounted) in batch.drain().zip(&self.uncounted) {
            cx.emit(usize::from(*uncounted), p);
        }
    }
    fn pull(&mut self, port: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        let got = self.pull_through(port, max, into, cx);
        // If output 0 is the only output, packets of input 1 also leave by output 0.
        if port == 0 && got < max && self.inputs > 1 && !cx.has_output(1) {
            self.pull_through(1, max.saturating_sub(got), into, cx);
        }
    }
}

impl AggregateCounter {
    /// Pulls packets from an input and counts them. Returns the number of packets.
    fn pull_through(&mut self, input: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) -> usize {
        let before = into.len();
        cx.pull(input, max, into);
        self.count_all(input, into.as_slice().get(before..).unwrap_or_default(), cx);
        into.len().saturating_sub(before)
    }
    /// Writes all counts to a file.
    fn write(&self, file: &Filename, format: counts::Format) -> Result<(), HandlerError> {
        Ok(self.shared.main(|s| s.counts.write(&file.0, &s.banner, format))?)
    }
}

#[handlers]
impl AggregateCounter {
    /// The number of aggregates at which a handler is called, and that handler.
    #[read]
    fn aggregate_call(&self) -> String {
        self.shared.main(|s| s.aggregates.show_call())
    }
    #[write]
    fn set_aggregate_call(&mut self, call: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let call = call_or_none(call, cx)?;
        self.shared.main(|s| s.aggregates.call = call);
        Ok(())
    }
    /// The count at which a handler is called, and that handler.
    #[read]
    fn count_call(&self) -> String {
        self.shared.main(|s| s.total.show_call())
    }
    #[write]
    fn set_count_call(&mut self, call: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let call = call_or_none(call, cx)?;
        self.shared.main(|s| s.total.call = call);
        Ok(())
    }
    /// Whether no new aggregates are counted.
    #[read(checkbox)]
    fn freeze(&self) -> bool {
        self.shared.main(|s| s.frozen)
    }
    #[write]
    fn set_freeze(&mut self, freeze: bool) {
        self.shared.main(|s| s.frozen = freeze);
    }
    /// Whether packets are counted.
    #[read(checkbox)]
    fn active(&self) -> bool {
        self.shared.main(|s| s.active)
    }
    #[write]
    fn set_active(&mut self, active: bool) {
        self.shared.main(|s| s.active = active);
    }
    /// A text that is written after the first line of each file of counts.
    #[read(raw)]
    fn banner(&self) -> String {
        self.shared.main(|s| s.banner.clone())
    }
    #[write]
    fn set_banner(&mut self, banner: &str) {
        self.shared.main(|s| s.banner = banner.to_string());
    }
    /// The sum of all counts.
    #[read(name = "count")]
    fn total(&self) -> Counted {
        Counted(self.shared.main(|s| s.counts.total()))
    }
    /// The number of aggregates with a count above zero.
    #[read(unit = "aggregates")]
    fn nagg(&self) -> usize {
        self.shared.main(|s| s.counts.len())
    }
    /// Writes a text file with a line `AGGREGATE COUNT` for each aggregate.
    #[write(files)]
    fn write_text_file(&mut self, file: Filename) -> Result<(), HandlerError> {
        self.write(&file, counts::Format::Text)
    }
    /// The same as write_text_file.
    #[write(files)]
    fn write_ascii_file(&mut self, file: Filename) -> Result<(), HandlerError> {
        self.write_text_file(file)
    }
    /// Writes a binary file with each aggregate and its count, four bytes each.
    #[write(files)]
    fn write_file(&mut self, file: Filename) -> Result<(), HandlerError> {
        self.write(&file, counts::Format::Binary)
    }
    /// Writes a text file with a line `ADDRESS COUNT` for each aggregate.
    #[write(files)]
    fn write_ip_file(&mut self, file: Filename) -> Result<(), HandlerError> {
        self.write(&file, counts::Format::Addresses)
    }
    /// Writes a text file with a line `COUNT SHARE` for each count: the share of aggregates that have this count.
    #[write(files)]
    fn write_pdf_file(&mut self, file: Filename) -> Result<(), HandlerError> {
        self.write(&file, counts::Format::Shares)
    }
    /// Stops counting and requests that the driver stop.
    #[write(button)]
    fn stop(&mut self, cx: &mut Cx<'_>) {
        self.shared.main(|s| s.active = false);
        cx.stop(1);
    }
    /// Replaces the counts: each old count becomes an aggregate, and its new count is the number of
    /// aggregates that had this old count.
    #[write(button)]
    fn reaggregate_counts(&mut self) {
        self.shared.main(|s| s.counts.reaggregate());
    }
    /// The same as reaggregate_counts.
    #[write(button)]
    fn counts_pdf(&mut self) {
        self.shared.main(|s| s.counts.reaggregate());
    }
    /// Sets all counts to 0.
    #[write(button)]
    fn clear(&mut self) {
        self.shared.main(|s| s.counts.clear());
    }
}

impl Lifecycle for AggregateCounter {
    fn effects(&self, _: Effects) -> Effects {
        let if_so = |yes, effect| if yes { effect } else { Effects::empty() };
        self.shared.main(|s| {
            let limits = [&s.aggregates, &s.total];
            let stops = if_so(limits.iter().any(|l| l.stop.is_some()), Effects::STOPS);
            stops.union(if_so(limits.iter().any(|l| l.call.is_some()), Effects::CALLS))
        })
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        if Arc::ptr_eq(&self.shared, &old.shared) {
            return Ok(());
        }
        let limits = |a: &Args| (a.aggregate_freeze, a.count_freeze, a.aggregate_stop, a.count_stop);
        let same = limits(&self.args) == limits(&old.args);
        let (mut counts, frozen, active, full) =
            old.shared.main(|s| (std::mem::take(&mut s.counts), s.frozen, s.active, s.full));
        self.shared.main(|s| {
            s.counts.take_from(&mut counts);
            if same {
                (s.frozen, s.active) = (frozen, active);
            }
            s.full = full;
            s.aggregates.pass(s.counts.len() as u64);
            s.total.pass(s.counts.total());
        });
        Ok(())
    }
}
