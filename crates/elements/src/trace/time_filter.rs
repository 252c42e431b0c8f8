// SPDX-License-Identifier: MIT OR Apache-2.0
//! TimeFilter: passes packets within a span of time.

#[cfg(test)]
mod tests;

use castanet_element::prelude::*;
use castanet_io::summary::print_time;
use std::collections::VecDeque;

/// Passes packets whose timestamps lie in a span of time.
///
/// The span begins at START, inclusive, and ends at END, exclusive. START_DELAY and END_DELAY count from the time when
/// the router started, START_AFTER and END_AFTER from the first packet's timestamp, and INTERVAL from the start of the
/// span. A span without a start begins with the first packet, and a span without an end does not end. At the first
/// packet at or after the end, STOP asks the driver to stop, or END_CALL is called. After a write to `extend_interval`
/// or `end`, STOP or END_CALL takes effect once more at the new end. In the value of END_CALL, `$t` is replaced by the
/// timestamp of the packet that reached the end. If the call moves the end, the packet is tested again, so no packet is
/// lost between two spans.
///
/// # Ports
/// Input 0: packets. Output 0: packets inside the span. Output 1 (optional): packets outside the span.
/// Without output 1 they are dropped.
///
/// # Example
/// ```click
/// FromIPSummaryDump(DATA "!data timestamp
/// 1
/// 2
/// 3
/// ", STOP true) -> TimeFilter(2, 3) -> Print(two, TIMESTAMP true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "TimeFilter", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = exclusive)]
#[class(
    takes_state = "the span of time, when it is asked for in the same way, and packets that wait for END_CALL"
)]
#[class(build, lifecycle, handlers, effects(calls, stops), drops(OutsideTime, Stopped), ledger(holds))]
pub struct TimeFilter {
    args: Args,
    start: Option<i64>,
    end: Option<i64>,
    begun: bool,
    /// Whether a packet at or after the end has arrived. STOP or END_CALL, if given, was executed for this packet.
    reached: bool,
    /// Packets that wait until END_CALL has been executed. The first of them caused the call.
    waiting: VecDeque<Packet>,
    /// Whether packets are pushed. If they are, a write to the handler `resume` lets waiting packets continue. If
    /// packets are pulled, the next pull lets them continue.
    push: bool,
}

/// The value of the handler `end` for a span without an end, in nanoseconds.
const NO_END: i64 = 2_147_483_647_000_000_000;

/// Arguments of TimeFilter.
#[derive(Args)]
#[args(
    at_most_one(start, start_delay, start_after),
    at_most_one(end, end_delay, end_after, interval),
    at_most_one(stop, end_call)
)]
pub struct Args {
    /// When the span begins.
    start: Option<Nanos>,
    /// When the span ends.
    end: Option<Nanos>,
    /// When the span begins, counted from the time when the router started.
    #[arg(keyword)]
    start_delay: Option<Nanos>,
    /// When the span ends, counted from the time when the router started.
    #[arg(keyword)]
    end_delay: Option<Nanos>,
    /// When the span begins, counted from the first packet's timestamp.
    #[arg(keyword)]
    start_after: Option<Nanos>,
    /// When the span ends, counted from the first packet's timestamp.
    #[arg(keyword)]
    end_after: Option<Nanos>,
    /// When the span ends, counted from its beginning.
    #[arg(keyword)]
    interval: Option<Nanos>,
    /// Whether the driver is asked to stop at the first packet at or after the end.
    #[arg(keyword, default = false)]
    stop: bool,
    /// A handler to call at the first packet at or after the end.
    #[arg(keyword)]
    end_call: Option<HandlerRef>,
}

impl Build for TimeFilter {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let (start, end) = (args.start.map(|t| t.0), args.end.map(|t| t.0));
        let push = cx.is_push_input(0);
        Ok(TimeFilter { args, start, end, begun: false, reached: false, waiting: VecDeque::new(), push })
    }
}

impl TimeFilter {
    /// Sets the limits that count from the first packet.
    #[cold]
    fn begin(&mut self, first: i64) {
        self.begun = true;
        let after = |t: Option<Nanos>| t.map(|t| first.saturating_add(t.0));
        self.start = self.start.or(after(self.args.start_after));
        self.end = self.end.or(after(self.args.end_after));
        let from = self.start.unwrap_or(first);
        self.end = self.end.or(self.args.interval.map(|t| from.saturating_add(t.0)));
    }
    /// Acts on the first packet at or after the end. Returns true if END_CALL may move the end, so that the
    /// packet has to wait for the call.
    #[cold]
    fn finish(&mut self, time: i64, cx: &mut Cx<'_>) -> bool {
        self.reached = true;
        if self.args.stop {
            cx.stop(1);
        }
        let Some(call) = &self.args.end_call else { return false };
        cx.call(&HandlerRef { value: with_time(&call.value, time), ..call.clone() });
        // A global handler has no way to move the end of this filter.
        if call.element.is_none() {
            return false;
        }
        if self.push {
            // Calls are executed in the order in which they were made, so `resume` follows END_CALL.
            cx.call(&HandlerRef {
                element: usize::try_from(cx.me()).ok(),
                element_name: cx.name().to_string(),
                handler: "resume".into(),
                value: String::new(),
                origin: call.origin,
            });
        }
        true
    }

    /// Returns where a time lies: inside the span, at or after its end, or before its start.
    #[inline]
    fn relation(&mut self, time: i64) -> TimeRelation {
        if !self.begun {
            self.begin(time);
        }
        if self.end.is_some_and(|e| time >= e) {
            TimeRelation::After
        } else if self.start.is_some_and(|s| time < s) {
            TimeRelation::Before
        } else {
            TimeRelation::Inside
        }
    }

    /// Tests a packet. Returns a packet inside the span; a packet outside leaves by output 1. A packet that has to
    /// wait for END_CALL is put before all other waiting packets. `again` is true for the packet that has already
    /// caused END_CALL, so that it does not cause the call twice.
    fn test(&mut self, p: Packet, again: bool, cx: &mut Cx<'_>) -> Option<Packet> {
        match self.relation(p.timestamp()) {
            TimeRelation::Inside => return Some(p),
            TimeRelation::After if !again && !self.reached && self.finish(p.timestamp(), cx) => {
                self.waiting.push_front(p)
            }
            TimeRelation::After | TimeRelation::Before => cx.emit_or(1, p, Reason::OutsideTime),
        }
        None
    }

    /// Tests the packets that have waited for END_CALL. The first of them, which caused the call, is tested for
    /// the second time.
    fn go_on(&mut self, cx: &mut Cx<'_>) {
        let mut again = true;
        while let Some(p) = self.waiting.pop_front() {
            let before = self.waiting.len();
            if let Some(p) = self.test(p, again, cx) {
                cx.emit(0, p);
            }
            if self.waiting.len() > before {
                return;
            }
            again = false;
        }
    }
}

/// Where the time of a packet lies, relative to the span.
enum TimeRelation {
    Before,
    Inside,
    After,
}

/// Returns the value of a call, in which `$t` and `${t}` are replaced by a time.
fn with_time(value: &str, time: i64) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let whole = after.strip_prefix('t').filter(|a| !a.starts_with(is_name));
        rest = match whole.or_else(|| after.strip_prefix("{t}")) {
            Some(rest) => {
                print_time(time, &mut out);
                rest
            }
            None => {
                out.push('$');
                after
            }
        };
    }
    out + rest
}

impl Element for TimeFilter {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if !self.waiting.is_empty() {
            return self.waiting.extend(batch.drain());
        }
        let mut rest = batch.drain();
        while let Some(p) = rest.next() {
            if let Some(p) = self.test(p, false, cx) {
                cx.emit(0, p);
            }
            if !self.waiting.is_empty() {
                self.waiting.extend(rest);
                return;
            }
        }
    }
    #[inline]
    fn push_one(&mut self, port: usize, p: Packet, cx: &mut Cx<'_>) {
        if !self.waiting.is_empty() {
            return self.waiting.push_back(p);
        }
        let _ = port;
        if let Some(p) = self.test(p, false, cx) {
            cx.emit(0, p);
        }
    }
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..max {
            let Some(p) = self.pull_one(0, cx) else { break };
            into.push(p);
        }
    }
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        if let Some(p) = self.waiting.pop_front()
            && let Some(p) = self.test(p, true, cx)
        {
            return Some(p);
        }
        cx.with_tries(|cx| {
            loop {
                let p = cx.pull_one(0)?;
                let inside = self.test(p, false, cx);
                // If the packet is in `waiting`, the next pull tests it again, after END_CALL has been executed.
                if inside.is_some() || !self.waiting.is_empty() || !cx.try_again() {
                    return inside;
                }
            }
        })
    }
}

#[handlers]
impl TimeFilter {
    /// The start of the span.
    #[read(unit = "seconds")]
    fn start(&self) -> Timestamp {
        Timestamp(self.start.unwrap_or(0))
    }
    #[write]
    fn set_start(&mut self, time: Nanos) {
        self.start = Some(time.0);
    }
    /// The end of the span.
    #[read(unit = "seconds")]
    fn end(&self) -> Timestamp {
        Timestamp(self.end.unwrap_or(NO_END))
    }
    #[write]
    fn set_end(&mut self, time: Nanos) {
        (self.end, self.reached) = (Some(time.0), false);
    }
    /// The length of the span.
    #[read(unit = "seconds")]
    fn interval(&self) -> Option<Nanos> {
        let length = |(start, end): (i64, i64)| Nanos(end.saturating_sub(start));
        self.start.zip(self.end).map(length).or(self.args.interval)
    }
    /// Tests the packets that have waited for END_CALL (the element itself calls this).
    #[write(button)]
    fn resume(&mut self, cx: &mut Cx<'_>) {
        if self.push {
            self.go_on(cx);
        }
    }
    /// Moves the end by a number of seconds.
    #[write]
    fn extend_interval(&mut self, by: Nanos) {
        self.end = self.end.map(|e| e.saturating_add(by.0));
        self.args.interval = self.args.interval.map(|i| Nanos(i.0.saturating_add(by.0)));
        self.reached = false;
    }
}

impl Lifecycle for TimeFilter {
    fn held(&self) -> u64 {
        self.waiting.len() as u64
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.waiting.drain(..).for_each(|p| cx.drop(p, Reason::Stopped));
        Ok(())
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        let now = cx.now();
        let after = |t: Option<Nanos>| t.map(|t| now.saturating_add(t.0));
        self.start = self.start.or(after(self.args.start_delay));
        self.end = self.end.or(after(self.args.end_delay));
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        let if_so = |yes, effect| if yes { effect } else { Effects::empty() };
        if_so(self.args.stop, Effects::STOPS).union(if_so(self.args.end_call.is_some(), Effects::CALLS))
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        let asked =
            |a: &Args| [a.start, a.end, a.start_delay, a.end_delay, a.start_after, a.end_after, a.interval];
        if asked(&self.args) == asked(&old.args) {
            (self.start, self.end) = (old.start, old.end);
            (self.begun, self.reached) = (old.begun, old.reached);
        }
        // The old router has executed END_CALL for the waiting packets. This router tests them as if they had just
        // arrived.
        self.waiting.append(&mut old.waiting);
        Ok(())
    }
}
