// SPDX-License-Identifier: MIT OR Apache-2.0
//! AggregateCounter: counts packets or bytes by aggregate.

mod counts;
#[cfg(test)]
mod tests;

use castanet_element::prelude::*;
use castanet_spec::anno;
use counts::Counts;

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
#[class(name = "AggregateCounter", offload = none, ports = "1-2/1-2", processing = "a/a", packets = "any/same", workers = exclusive)]
#[class(takes_state = "the counts, which limits were reached")]
#[class(build, lifecycle, handlers, effects(calls, stops))]
pub struct AggregateCounter {
    args: Args,
    counts: Counts,
    frozen: bool,
    active: bool,
    banner: String,
    aggregate_call: Call,
    count_call: Call,
    /// Whether more than `counts::MOST` aggregates have come. The message about this is printed only the first time.
    full: bool,
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

/// A number, and the handler to write when a count reaches it.
#[derive(Clone, Debug)]
pub struct CallAt {
    at: u64,
    call: HandlerRef,
}

impl ArgValue for CallAt {
    const TYPE: &'static str = "number and handler";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (number, call) = text.split_at_checked(end).unwrap_or((text, ""));
        Ok(CallAt { at: u64::parse(number, cx)?, call: HandlerRef::parse(call, cx)? })
    }
}

/// Parses a number and a handler; `None` for an empty text.
fn call_or_none(text: &str, cx: &Cx<'_>) -> Result<Option<CallAt>, HandlerError> {
    match text.trim() {
        "" => Ok(None),
        call => castanet_element::handler::parse(call, cx).map(Some),
    }
}

/// The limits on one of the two counts: on the number of aggregates, or on the total count. There is at most one limit
/// for freezing, one for stopping and one for calling a handler. A limit is removed when it is reached.
#[derive(Default)]
struct Call {
    freeze: Option<u64>,
    stop: Option<u64>,
    call: Option<CallAt>,
}

impl Call {
    /// Removes each limit that `n` has reached. If the limit of `call` is one of them, writes the handler of `call`.
    /// Returns whether `freeze` was reached, and whether `stop` was reached.
    #[inline]
    fn reached(&mut self, n: u64, cx: &mut Cx<'_>) -> (bool, bool) {
        let due = |at: &mut Option<u64>| at.take_if(|at| *at <= n).is_some();
        let (freeze, stop) = (due(&mut self.freeze), due(&mut self.stop));
        if let Some(c) = self.call.take_if(|c| c.at <= n) {
            cx.call(&c.call);
        }
        (freeze, stop)
    }
    /// Removes limits that `n` has already reached, without acting on them (hot swap).
    fn pass(&mut self, n: u64) {
        self.freeze.take_if(|at| *at <= n);
        self.stop.take_if(|at| *at <= n);
        self.call.take_if(|c| c.at <= n);
    }
    fn show(&self) -> String {
        self.call.as_ref().map_or(String::new(), |c| format!("{} {}", c.at, Show::show(&c.call)))
    }
}

impl Build for AggregateCounter {
    fn build(mut args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(AggregateCounter {
            counts: Counts::default(),
            frozen: false,
            active: true,
            banner: args.banner.take().unwrap_or_default(),
            aggregate_call: Call {
                freeze: args.aggregate_freeze.map(u64::from),
                stop: args.aggregate_stop.map(u64::from),
                call: args.aggregate_call.take(),
            },
            count_call: Call {
                freeze: args.count_freeze,
                stop: args.count_stop,
                call: args.count_call.take(),
            },
            full: false,
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

    /// Counts a packet, unless counting is switched off. Returns false if counting is on, but the packet's aggregate is
    /// not counted.
    #[inline]
    fn count(&mut self, port: usize, p: &Packet, cx: &mut Cx<'_>) -> bool {
        if !self.active {
            return true;
        }
        let weight = self.weight(p);
        let aggregate = p.anno_u32(anno::AGGREGATE);
        let before = self.counts.len();
        if !self.counts.add(aggregate, weight, self.frozen || port == 1) {
            if !self.frozen && port == 0 {
                self.tell_full(cx);
            }
            return false;
        }
        let (mut freeze, mut stop) = (false, false);
        if self.counts.len() != before {
            (freeze, stop) = self.aggregate_call.reached(self.counts.len() as u64, cx);
        }
        let (freeze_too, stop_too) = self.count_call.reached(self.counts.total(), cx);
        self.frozen |= freeze || freeze_too;
        if stop || stop_too {
            self.stop(cx);
        }
        true
    }
    #[cold]
    fn tell_full(&mut self, cx: &mut Cx<'_>) {
        if !std::mem::replace(&mut self.full, true) {
            let text = format!("{}: no room for more than {} aggregates", cx.declaration(), counts::MOST);
            cx.message(&text);
        }
        self.frozen = true;
    }
}

impl Element for AggregateCounter {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            let counted = self.count(port, &p, cx);
            cx.emit(usize::from(!counted && !self.passes), p);
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
        for p in into.as_slice().get(before..).unwrap_or_default() {
            self.count(input, p, cx);
        }
        into.len().saturating_sub(before)
    }
}

#[handlers]
impl AggregateCounter {
    /// The number of aggregates at which a handler is called, and that handler.
    #[read]
    fn aggregate_call(&self) -> String {
        self.aggregate_call.show()
    }
    #[write]
    fn set_aggregate_call(&mut self, call: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.aggregate_call.call = call_or_none(call, cx)?;
        Ok(())
    }
    /// The count at which a handler is called, and that handler.
    #[read]
    fn count_call(&self) -> String {
        self.count_call.show()
    }
    #[write]
    fn set_count_call(&mut self, call: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.count_call.call = call_or_none(call, cx)?;
        Ok(())
    }
    /// Whether no new aggregates are counted.
    #[read(checkbox)]
    fn freeze(&self) -> bool {
        self.frozen
    }
    #[write]
    fn set_freeze(&mut self, freeze: bool) {
        self.frozen = freeze;
    }
    /// Whether packets are counted.
    #[read(checkbox)]
    fn active(&self) -> bool {
        self.active
    }
    #[write]
    fn set_active(&mut self, active: bool) {
        self.active = active;
    }
    /// A text that is written after the first line of each file of counts.
    #[read(raw)]
    fn banner(&self) -> &str {
        &self.banner
    }
    #[write]
    fn set_banner(&mut self, banner: &str) {
        self.banner = banner.to_string();
    }
    /// The sum of all counts.
    #[read(name = "count")]
    fn total(&self) -> Counted {
        Counted(self.counts.total())
    }
    /// The number of aggregates with a count above zero.
    #[read(unit = "aggregates")]
    fn nagg(&self) -> usize {
        self.counts.len()
    }
    /// Writes a text file with a line `AGGREGATE COUNT` for each aggregate.
    #[write(files)]
    fn write_text_file(&mut self, file: Filename) -> Result<(), HandlerError> {
        Ok(self.counts.write(&file.0, &self.banner, counts::Format::Text)?)
    }
    /// The same as write_text_file.
    #[write(files)]
    fn write_ascii_file(&mut self, file: Filename) -> Result<(), HandlerError> {
        self.write_text_file(file)
    }
    /// Writes a binary file with each aggregate and its count, four bytes each.
    #[write(files)]
    fn write_file(&mut self, file: Filename) -> Result<(), HandlerError> {
        Ok(self.counts.write(&file.0, &self.banner, counts::Format::Binary)?)
    }
    /// Writes a text file with a line `ADDRESS COUNT` for each aggregate.
    #[write(files)]
    fn write_ip_file(&mut self, file: Filename) -> Result<(), HandlerError> {
        Ok(self.counts.write(&file.0, &self.banner, counts::Format::Addresses)?)
    }
    /// Writes a text file with a line `COUNT SHARE` for each count: the share of aggregates that have this count.
    #[write(files)]
    fn write_pdf_file(&mut self, file: Filename) -> Result<(), HandlerError> {
        Ok(self.counts.write(&file.0, &self.banner, counts::Format::Shares)?)
    }
    /// Stops counting and requests that the driver stop.
    #[write(button)]
    fn stop(&mut self, cx: &mut Cx<'_>) {
        self.active = false;
        cx.stop(1);
    }
    /// Replaces the counts: each old count becomes an aggregate, and its new count is the number of
    /// aggregates that had this old count.
    #[write(button)]
    fn reaggregate_counts(&mut self) {
        self.counts.reaggregate();
    }
    /// The same as reaggregate_counts.
    #[write(button)]
    fn counts_pdf(&mut self) {
        self.counts.reaggregate();
    }
    /// Sets all counts to 0.
    #[write(button)]
    fn clear(&mut self) {
        self.counts.clear();
    }
}

impl Lifecycle for AggregateCounter {
    fn effects(&self, _: Effects) -> Effects {
        let calls = [&self.aggregate_call, &self.count_call];
        let if_so = |yes, effect| if yes { effect } else { Effects::empty() };
        let stops = if_so(calls.iter().any(|c| c.stop.is_some()), Effects::STOPS);
        stops.union(if_so(calls.iter().any(|c| c.call.is_some()), Effects::CALLS))
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        std::mem::swap(&mut self.counts, &mut old.counts);
        let limits = |a: &Args| (a.aggregate_freeze, a.count_freeze, a.aggregate_stop, a.count_stop);
        if limits(&self.args) == limits(&old.args) {
            (self.frozen, self.active) = (old.frozen, old.active);
        }
        self.full = old.full;
        self.aggregate_call.pass(self.counts.len() as u64);
        self.count_call.pass(self.counts.total());
        Ok(())
    }
}
