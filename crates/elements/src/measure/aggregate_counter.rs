// SPDX-License-Identifier: MIT OR Apache-2.0
//! AggregateCounter: counts by aggregate.

mod counts;
#[cfg(test)]
mod tests;

use castanet_element::prelude::*;
use castanet_spec::anno;
use counts::Counts;

/// Counts packets or bytes for each value of the aggregate annotation.
///
/// A packet counts as 1 and what its extra packets annotation adds, or, with BYTES or IP_BYTES, as its bytes. While frozen
/// no new aggregates are counted, and packets of those that were not seen before leave by output 1; so do all that come by
/// input 1 of aggregates not seen on input 0. There are at most 4194304 aggregates: then it is frozen by itself.
///
/// AGGREGATE_CALL and COUNT_CALL write a handler once, when the number of aggregates or the count reaches N;
/// AGGREGATE_FREEZE and COUNT_FREEZE freeze then, AGGREGATE_STOP and COUNT_STOP ask the driver to stop.
///
/// # Ports
/// Input 0: packets. Input 1 (optional): packets that only count where input 0 has counted. Output 0: the same packets.
/// Output 1 (optional): packets that were not counted; without it they leave by output 0.
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
#[class(build, lifecycle, effects(calls, stops))]
#[handler(
    name = "aggregate_call",
    flags = "rw",
    doc = "The number of aggregates at which a handler is called, and that handler."
)]
#[handler(
    name = "count_call",
    flags = "rw",
    doc = "The count at which a handler is called, and that handler."
)]
#[handler(name = "freeze", flags = "rw", doc = "Whether no new aggregates are counted.")]
#[handler(name = "active", flags = "rw", doc = "Whether anything is counted.")]
#[handler(name = "banner", flags = "rw", doc = "Text after the first line of files.")]
#[handler(name = "count", flags = "r", doc = "All that was counted.")]
#[handler(name = "nagg", flags = "r", doc = "Aggregates with a count above zero.")]
#[handler(
    name = "write_text_file",
    flags = "wF",
    doc = "Writes a file with a line `AGGREGATE COUNT` for each."
)]
#[handler(name = "write_ascii_file", flags = "wF", doc = "The same as write_text_file.")]
#[handler(
    name = "write_file",
    flags = "wF",
    doc = "Writes a binary file: aggregates and counts, four bytes each."
)]
#[handler(name = "write_ip_file", flags = "wF", doc = "Writes a text file with aggregates as addresses.")]
#[handler(name = "write_pdf_file", flags = "wF", doc = "Writes a text file with the share of each count.")]
#[handler(name = "stop", flags = "wb", doc = "Counts no more and asks the driver to stop.")]
#[handler(
    name = "reaggregate_counts",
    flags = "wb",
    doc = "Counts now count how many aggregates had that count."
)]
#[handler(name = "counts_pdf", flags = "wb", doc = "The same as reaggregate_counts.")]
#[handler(name = "clear", flags = "wb", doc = "Sets all counts to 0.")]
pub struct AggregateCounter {
    args: Args,
    counts: Counts,
    frozen: bool,
    active: bool,
    banner: String,
    aggregate_call: Call,
    count_call: Call,
    /// Whether frozen because there was no room, which is told once.
    full: bool,
    passes: bool,
    inputs: usize,
}

/// Arguments of AggregateCounter.
#[derive(Args)]
pub struct Args {
    /// Whether bytes count, not packets.
    #[arg(keyword, default = false)]
    bytes: bool,
    /// Whether bytes of IP packets count.
    #[arg(keyword, default = false)]
    ip_bytes: bool,
    /// Whether a packet that stands for several counts as many.
    #[arg(keyword, default = true)]
    multipacket: bool,
    /// Whether bytes that were not captured count.
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
    /// A number of aggregates and the handler to write when there are so many.
    #[arg(keyword)]
    aggregate_call: Option<CallAt>,
    /// A count and the handler to write when it is reached.
    #[arg(keyword)]
    count_call: Option<CallAt>,
    /// Text after the first line of files.
    #[arg(keyword)]
    banner: Option<String>,
}

/// A number and the call to make when it is reached.
#[derive(Clone, Debug)]
pub struct CallAt {
    at: u64,
    call: HandlerRef,
}

impl ArgValue for CallAt {
    const TYPE: &'static str = "number and handler";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, String> {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (number, call) = text.split_at_checked(end).unwrap_or((text, ""));
        Ok(CallAt { at: u64::parse(number, cx)?, call: HandlerRef::parse(call, cx)? })
    }
}

/// What is to happen once a number is reached.
#[derive(Default)]
struct Call {
    freeze: Option<u64>,
    stop: Option<u64>,
    call: Option<CallAt>,
}

impl Call {
    /// Does what is due at `n`; whether to freeze, and whether to stop counting.
    #[inline]
    fn reached(&mut self, n: u64, cx: &mut Cx<'_>) -> (bool, bool) {
        let due = |at: &mut Option<u64>| at.take_if(|at| *at <= n).is_some();
        let (freeze, stop) = (due(&mut self.freeze), due(&mut self.stop));
        if let Some(c) = self.call.take_if(|c| c.at <= n) {
            cx.call(&c.call);
        }
        (freeze, stop)
    }
    /// Forgets what was reached before (hot swap).
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
        if args.aggregate_call.is_some() && (args.aggregate_stop.is_some() || args.aggregate_freeze.is_some())
            || args.aggregate_stop.is_some() && args.aggregate_freeze.is_some()
        {
            return Err("specify at most one of AGGREGATE_FREEZE, AGGREGATE_STOP and AGGREGATE_CALL".into());
        }
        if args.count_call.is_some() && (args.count_stop.is_some() || args.count_freeze.is_some())
            || args.count_stop.is_some() && args.count_freeze.is_some()
        {
            return Err("specify at most one of COUNT_FREEZE, COUNT_STOP and COUNT_CALL".into());
        }
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
    /// What a packet counts.
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

    /// Counts a packet; whether it did.
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
    fn stop(&mut self, cx: &mut Cx<'_>) {
        self.active = false;
        cx.stop(1);
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
        // What came by input 1 leaves by output 0 where that is the only one.
        if port == 0 && got < max && self.inputs > 1 && !cx.has_output(1) {
            self.pull_through(1, max.saturating_sub(got), into, cx);
        }
    }
}

impl AggregateCounter {
    /// Pulls and counts packets of an input; how many.
    fn pull_through(&mut self, input: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) -> usize {
        let before = into.len();
        cx.pull(input, max, into);
        for p in into.as_slice().get(before..).unwrap_or_default() {
            self.count(input, p, cx);
        }
        into.len().saturating_sub(before)
    }
}

impl Lifecycle for AggregateCounter {
    fn read(&mut self, handler: &str, _: &str, _: &mut Cx<'_>) -> Result<String, String> {
        Ok(match handler {
            "aggregate_call" => self.aggregate_call.show(),
            "count_call" => self.count_call.show(),
            "freeze" => self.frozen.to_string(),
            "active" => self.active.to_string(),
            "banner" => self.banner.clone(),
            "count" => self.counts.total().to_string(),
            "nagg" => self.counts.len().to_string(),
            _ => return Err(format!("no '{handler}' read handler")),
        })
    }
    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        let text = value.trim();
        let call = |cx: &Cx<'_>| {
            if text.is_empty() { Ok(None) } else { cx.with_args(|a| CallAt::parse(text, a)).map(Some) }
        };
        match handler {
            "aggregate_call" => self.aggregate_call.call = call(cx)?,
            "count_call" => self.count_call.call = call(cx)?,
            "freeze" => self.frozen = cx.with_args(|a| bool::parse(text, a))?,
            "active" => self.active = cx.with_args(|a| bool::parse(text, a))?,
            "banner" => self.banner = value.to_string(),
            "stop" => self.stop(cx),
            "clear" => self.counts.clear(),
            "reaggregate_counts" | "counts_pdf" => self.counts.reaggregate(),
            _ => {
                let name = cx.with_args(|a| Filename::parse(text, a))?.0;
                let format = match handler {
                    "write_ip_file" => counts::Format::Addresses,
                    "write_file" => counts::Format::Binary,
                    "write_pdf_file" => counts::Format::Shares,
                    _ => counts::Format::Text,
                };
                self.counts.write(&name, &self.banner, format)?;
            }
        }
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        let calls = [&self.aggregate_call, &self.count_call];
        let if_so = |yes, effect| if yes { effect } else { Effects::NONE };
        let stops = if_so(calls.iter().any(|c| c.stop.is_some()), Effects::STOPS);
        stops.and(if_so(calls.iter().any(|c| c.call.is_some()), Effects::CALLS))
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), String> {
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
