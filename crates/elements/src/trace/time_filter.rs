// SPDX-License-Identifier: MIT OR Apache-2.0
//! TimeFilter: packets of a span of time.

use castanet_element::prelude::*;

/// Passes packets whose timestamps lie in a span of time.
///
/// The span begins at START, inclusive, and ends at END, exclusive. START_DELAY and END_DELAY count from the time when the
/// router started, START_AFTER and END_AFTER from the first packet's timestamp, INTERVAL from the start of the span; without
/// a start it begins with the first packet, without an end it does not end. The first packet at or after the end asks the
/// driver to stop, if STOP is true, or makes the END_CALL; `extend_interval` arms that again.
///
/// # Ports
/// Input 0: packets. Output 0: those inside. Output 1 (optional): those outside, which are otherwise dropped.
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
#[class(takes_state = "the span of time, when it is asked for in the same way")]
#[class(build, lifecycle, handlers, effects(calls, stops), drops(OutsideTime))]
pub struct TimeFilter {
    args: Args,
    start: Option<i64>,
    end: Option<i64>,
    begun: bool,
    /// Whether a packet has reached the end, so that STOP or END_CALL was done.
    reached: bool,
}

/// Arguments of TimeFilter.
#[derive(Args)]
pub struct Args {
    /// When the span begins.
    start: Option<Nanos>,
    /// When it ends.
    end: Option<Nanos>,
    /// The start, counted from that of the router.
    #[arg(keyword)]
    start_delay: Option<Nanos>,
    /// The end, counted from the start of the router.
    #[arg(keyword)]
    end_delay: Option<Nanos>,
    /// The start, counted from the first packet.
    #[arg(keyword)]
    start_after: Option<Nanos>,
    /// The end, counted from the first packet.
    #[arg(keyword)]
    end_after: Option<Nanos>,
    /// The end, counted from the start of the span.
    #[arg(keyword)]
    interval: Option<Nanos>,
    /// Whether the driver is asked to stop at the end.
    #[arg(keyword, default = false)]
    stop: bool,
    /// A handler to call at the end.
    #[arg(keyword)]
    end_call: Option<HandlerRef>,
}

impl Build for TimeFilter {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let too_many = |given: &[bool]| given.iter().filter(|g| **g).count() > 1;
        if too_many(&[args.start.is_some(), args.start_delay.is_some(), args.start_after.is_some()]) {
            return Err("specify at most one of START, START_DELAY and START_AFTER".into());
        }
        let ends =
            [args.end.is_some(), args.end_delay.is_some(), args.end_after.is_some(), args.interval.is_some()];
        if too_many(&ends) {
            return Err("specify at most one of END, END_DELAY, END_AFTER and INTERVAL".into());
        }
        if args.stop && args.end_call.is_some() {
            return Err("specify at most one of STOP and END_CALL".into());
        }
        let (start, end) = (args.start.map(|t| t.0), args.end.map(|t| t.0));
        Ok(TimeFilter { args, start, end, begun: false, reached: false })
    }
}

impl TimeFilter {
    /// Sets what counts from the first packet.
    #[cold]
    fn begin(&mut self, first: i64) {
        self.begun = true;
        let after = |t: Option<Nanos>| t.map(|t| first.saturating_add(t.0));
        self.start = self.start.or(after(self.args.start_after));
        self.end = self.end.or(after(self.args.end_after));
        let from = self.start.unwrap_or(first);
        self.end = self.end.or(self.args.interval.map(|t| from.saturating_add(t.0)));
    }
    #[cold]
    fn finish(&mut self, cx: &mut Cx<'_>) {
        self.reached = true;
        if self.args.stop {
            cx.stop(1);
        }
        if let Some(call) = &self.args.end_call {
            cx.call(call);
        }
    }
}

impl Action for TimeFilter {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let time = p.timestamp();
        if !self.begun {
            self.begin(time);
        }
        if self.end.is_some_and(|e| time >= e) {
            if !self.reached {
                self.finish(cx);
            }
            return cx.out_or(1, Reason::OutsideTime);
        }
        if self.start.is_some_and(|s| time < s) {
            return cx.out_or(1, Reason::OutsideTime);
        }
        Verdict::Next
    }
}

#[handlers]
impl TimeFilter {
    /// The start of the span.
    #[read(unit = "seconds")]
    fn start(&self) -> Option<Nanos> {
        self.start.map(Nanos)
    }
    #[write]
    fn set_start(&mut self, time: Nanos) {
        self.start = Some(time.0);
    }
    /// The end of the span.
    #[read(unit = "seconds")]
    fn end(&self) -> Option<Nanos> {
        self.end.map(Nanos)
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
    /// Moves the end by so many seconds.
    #[write]
    fn extend_interval(&mut self, by: Nanos) {
        self.end = self.end.map(|e| e.saturating_add(by.0));
        self.args.interval = self.args.interval.map(|i| Nanos(i.0.saturating_add(by.0)));
        self.reached = false;
    }
}

impl Lifecycle for TimeFilter {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), String> {
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
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), String> {
        let asked =
            |a: &Args| [a.start, a.end, a.start_delay, a.end_delay, a.start_after, a.end_after, a.interval];
        if asked(&self.args) == asked(&old.args) {
            (self.start, self.end) = (old.start, old.end);
            (self.begun, self.reached) = (old.begun, old.reached);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    const S: i64 = 1_000_000_000;

    fn at(second: i64) -> Packet {
        let mut p = packet(b"x");
        p.set_timestamp(second * S);
        p
    }
    /// Seconds of the packets that pass.
    fn inside(kit: &mut Kit<TimeFilter>, seconds: &[i64]) -> Vec<i64> {
        let out = kit.act(seconds.iter().map(|s| at(*s)));
        out.iter().filter(|o| o.0 == 0).map(|o| o.1.timestamp() / S).collect()
    }

    #[test]
    fn spans() {
        let all: Vec<i64> = (10..20).collect();
        for (config, want) in [
            ("", 10..20),
            ("12", 12..20),
            ("12, 15", 12..15),
            ("END 13", 10..13),
            ("START_AFTER 3, END_AFTER 5", 13..15),
            ("START_AFTER 3, INTERVAL 2", 13..15),
            ("INTERVAL 2", 10..12),
            ("START 25", 0..0),
        ] {
            for batch in [1, 2, 3, 32] {
                let mut kit = Kit::<TimeFilter>::with_ports(config, 1, 2).unwrap();
                let got: Vec<i64> = all.chunks(batch).flat_map(|c| inside(&mut kit, c)).collect();
                assert_eq!(got, want.clone().collect::<Vec<_>>(), "{config}");
            }
        }
        let mut kit = Kit::<TimeFilter>::new("START_DELAY 0.5, END_DELAY 2.5").unwrap();
        assert_eq!(inside(&mut kit, &[1000, 1001, 1002, 1003]), [1001, 1002], "the kit starts at 1000 s");
        assert_eq!(kit.dropped(Reason::OutsideTime), 2);
    }

    #[test]
    fn the_end_is_reached_once() {
        let mut kit = Kit::<TimeFilter>::new("END 5, STOP true").unwrap();
        inside(&mut kit, &[4]);
        assert_eq!(kit.stops(), 0);
        inside(&mut kit, &[5, 6]);
        assert_eq!(kit.stops(), 1);
        kit.write("extend_interval", "5").unwrap();
        assert_eq!((inside(&mut kit, &[9]), kit.read("end").unwrap()), (vec![9], "10".into()));
        inside(&mut kit, &[10]);
        assert_eq!(kit.stops(), 2);
        let mut kit = Kit::<TimeFilter>::new("1, 5, END_CALL go 3").unwrap();
        inside(&mut kit, &[7]);
        assert_eq!(kit.calls(), [(None, "go".into(), "3".into())]);
        assert_eq!((kit.read("start").unwrap(), kit.read("interval").unwrap()), ("1".into(), "4".into()));
        for bad in ["1, START_AFTER 2", "END 1, INTERVAL 2", "STOP true, END_CALL x", "x"] {
            assert!(Kit::<TimeFilter>::new(bad).is_err(), "{bad}");
        }
    }
}
