// SPDX-License-Identifier: MIT OR Apache-2.0
//! TimeFilter: packets of a span of time.

use castanet_element::prelude::*;

/// Passes packets whose timestamps lie from START to before END.
///
/// Other packets leave on output 1, or are dropped when that is not connected. The span is given in absolute time, from the
/// moment at which the router was initialised (`_DELAY`) or from the timestamp of the first packet (`_AFTER`); INTERVAL is
/// its length, from where it starts or else from the first packet. The first packet at or behind the end makes the call of
/// END_CALL, or with STOP the request to stop the driver; after `end` or `extend_interval` has moved the end the next one
/// does so again.
///
/// # Ports
/// Input 0: packets with timestamps. Output 0: those of the span of time. Output 1 (push, optional): the others.
///
/// # Example
/// ```click
/// RatedSource(RATE 100) -> TimeFilter(START_DELAY 0.1, INTERVAL 0.5, STOP true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "TimeFilter", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = exclusive)]
#[class(build, lifecycle, drops(OutsideTime), effects(calls, stops))]
#[handler(name = "start", flags = "rw", doc = "The first moment of the span; empty while there is none.")]
#[handler(
    name = "end",
    flags = "rw",
    doc = "The moment at which the span is over; empty while there is none."
)]
#[handler(
    name = "interval",
    flags = "r",
    doc = "Seconds from start to end; empty while one of them is open."
)]
#[handler(name = "extend_interval", flags = "w", doc = "Moves the end by so many seconds.")]
pub struct TimeFilter {
    args: Args,
    /// In nanoseconds; none where it is open, or not known before the first packet.
    start: Option<i64>,
    end: Option<i64>,
    /// By how much the end was moved before it was known.
    extended: i64,
    /// Whether a packet came.
    begun: bool,
    /// Whether a packet behind the end was told of.
    ended: bool,
}

/// Arguments of TimeFilter.
#[derive(Args)]
pub struct Args {
    /// When the span starts.
    start: Option<Nanos>,
    /// When it is over.
    end: Option<Nanos>,
    /// When it starts, counted from the initialisation of the router.
    #[arg(keyword)]
    start_delay: Option<Nanos>,
    /// When it is over, counted from the initialisation of the router.
    #[arg(keyword)]
    end_delay: Option<Nanos>,
    /// When it starts, counted from the first packet.
    #[arg(keyword)]
    start_after: Option<Nanos>,
    /// When it is over, counted from the first packet.
    #[arg(keyword)]
    end_after: Option<Nanos>,
    /// How long it is.
    #[arg(keyword)]
    interval: Option<Nanos>,
    /// Whether to stop the driver when it is over.
    #[arg(keyword, default = false)]
    stop: bool,
    /// A handler to call when it is over.
    #[arg(keyword)]
    end_call: Option<HandlerRef>,
}

impl Build for TimeFilter {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let several = |given: &[bool]| given.iter().filter(|g| **g).count() > 1;
        if several(&[args.start.is_some(), args.start_delay.is_some(), args.start_after.is_some()]) {
            return Err("specify at most one of START, START_DELAY and START_AFTER".into());
        }
        let ends = [args.end, args.end_delay, args.end_after, args.interval];
        if several(&ends.map(|e| e.is_some())) {
            return Err("specify at most one of END, END_DELAY, END_AFTER and INTERVAL".into());
        }
        if several(&[args.stop, args.end_call.is_some()]) {
            return Err("specify at most one of STOP and END_CALL".into());
        }
        Ok(TimeFilter { args, start: None, end: None, extended: 0, begun: false, ended: false })
    }
}

fn from(base: i64, span: Option<Nanos>) -> Option<i64> {
    span.map(|t| base.saturating_add(t.0))
}

impl TimeFilter {
    /// What counts from the first packet is known now.
    #[cold]
    fn begin(&mut self, first: i64) {
        self.begun = true;
        self.start = self.start.or(from(first, self.args.start_after));
        let interval = from(self.start.unwrap_or(first), self.args.interval);
        if self.end.is_none() {
            let end = from(first, self.args.end_after).or(interval);
            self.end = end.map(|e| e.saturating_add(self.extended));
        }
    }

    /// The span is over.
    #[cold]
    fn finish(&mut self, cx: &mut Cx<'_>) {
        self.ended = true;
        match &self.args.end_call {
            Some(call) => cx.call(call),
            None if self.args.stop => cx.stop(1),
            None => {}
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
            if !self.ended {
                self.finish(cx);
            }
        } else if self.start.is_none_or(|s| time >= s) {
            return Verdict::Next;
        }
        cx.out_or(1, Reason::OutsideTime)
    }
}

fn show(time: Option<i64>) -> String {
    time.map_or(String::new(), |t| Nanos(t).show())
}

impl Lifecycle for TimeFilter {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), String> {
        let now = if self.args.start_delay.or(self.args.end_delay).is_some() { cx.now() } else { 0 };
        self.start = self.args.start.map(|t| t.0).or(from(now, self.args.start_delay));
        self.end = self.args.end.map(|t| t.0).or(from(now, self.args.end_delay));
        Ok(())
    }
    fn read(&mut self, handler: &str, _: &str, _: &mut Cx<'_>) -> Result<String, String> {
        Ok(match handler {
            "start" => show(self.start),
            "end" => show(self.end),
            _ => show(self.start.zip(self.end).map(|(s, e)| e.saturating_sub(s))),
        })
    }
    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        let time = cx.with_args(|a| Nanos::parse(value.trim(), a))?.0;
        match handler {
            "start" => self.start = Some(time),
            "end" => (self.end, self.ended) = (Some(time), false),
            _ => {
                match &mut self.end {
                    Some(end) => *end = end.saturating_add(time),
                    None => self.extended = self.extended.saturating_add(time),
                }
                self.ended = false;
            }
        }
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        match (&self.args.end_call, self.args.stop) {
            (Some(_), _) => Effects::CALLS,
            (None, true) => Effects::STOPS,
            (None, false) => Effects::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    /// The router is initialised at 1000 s.
    fn at(seconds: f64) -> Packet {
        let mut p = packet(b"x");
        p.set_timestamp((seconds * 1e9) as i64);
        p
    }
    const TIMES: [f64; 8] = [999.0, 1000.0, 1000.5, 1001.0, 1002.0, 1003.0, 1004.0, 5000.0];

    #[test]
    fn spans_of_time() {
        for (config, passed) in [
            ("", 0..8),
            ("1001", 3..8),
            ("1001, 1003", 3..5),
            ("END 1000", 0..1),
            ("START_DELAY 1.5", 4..8),
            ("START_DELAY 0.9, END_DELAY 2.9", 3..5),
            ("START_AFTER 1.1", 2..8),
            ("END_AFTER 2", 0..3),
            ("START_AFTER 1, END_AFTER 2.5", 1..4),
            ("INTERVAL 1.5", 0..2),
            ("START 1000.2, INTERVAL 1.8", 2..4),
            ("START_AFTER 2, INTERVAL 1", 3..4),
            ("1003, 1001", 0..0),
        ] {
            for (n, outputs) in [(1, 2), (2, 1), (3, 2), (32, 1)] {
                let mut kit = Kit::<TimeFilter>::with_ports(config, 1, outputs).unwrap();
                let mut got = Vec::new();
                for part in TIMES.chunks(n) {
                    let out = kit.act(part.iter().map(|&t| at(t)));
                    got.extend(out.iter().filter(|o| o.0 == 0).map(|o| o.1.timestamp() as f64 / 1e9));
                    assert!(outputs == 1 || out.len() == part.len());
                }
                assert_eq!(got, TIMES[passed.clone()], "{config}");
                let others = (TIMES.len() - got.len()) as u64;
                assert_eq!(kit.dropped(Reason::OutsideTime), if outputs == 1 { others } else { 0 });
            }
        }
    }

    #[test]
    fn the_end_is_told_once() {
        let mut kit = Kit::<TimeFilter>::new("END 1001, STOP true").unwrap();
        kit.act([at(1000.0)]);
        assert_eq!(kit.stops(), 0);
        kit.act([at(1001.0), at(1002.0)]);
        assert_eq!(kit.stops(), 1);
        kit.write("extend_interval", "2").unwrap();
        assert_eq!((kit.act([at(1002.0)]).len(), kit.stops()), (1, 1));
        assert_eq!((kit.act([at(1003.0)]).len(), kit.stops()), (0, 2));
        let mut kit = Kit::<TimeFilter>::new("INTERVAL 1, END_CALL stop").unwrap();
        kit.act([at(1.0), at(2.0), at(3.0)]);
        assert_eq!(kit.calls().len(), 1);
    }

    #[test]
    fn handlers_and_errors() {
        let mut kit = Kit::<TimeFilter>::new("START 1.5, INTERVAL 3").unwrap();
        let read = |k: &mut Kit<TimeFilter>| ["start", "end", "interval"].map(|h| k.read(h).unwrap());
        assert_eq!(read(&mut kit), ["1.5", "", ""]);
        kit.write("extend_interval", "1").unwrap();
        kit.act([at(9.0)]);
        assert_eq!(read(&mut kit), ["1.5", "5.5", "4"]);
        kit.write("start", "2").unwrap();
        kit.write("end", "10").unwrap();
        assert_eq!(read(&mut kit), ["2", "10", "8"]);
        assert_eq!(kit.act([at(9.0)]).len(), 1);
        assert!(kit.write("end", "soon").is_err());
        for config in ["1, START_DELAY 1", "END 1, INTERVAL 2", "STOP true, END_CALL stop", "soon"] {
            assert!(Kit::<TimeFilter>::new(config).is_err(), "{config}");
        }
    }
}
