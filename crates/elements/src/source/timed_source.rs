// SPDX-License-Identifier: MIT OR Apache-2.0
//! TimedSource: sends packets at regular intervals.

use super::sent_count::SentCount;
use super::{Ended, PeriodicTimer, Prototype, TEXT};
use castanet_element::prelude::*;
use castanet_packet::MAX_HEADROOM;

/// Sends packets with the same data, one every INTERVAL.
///
/// The first packet leaves one INTERVAL after the start. After LIMIT packets the source pauses; with STOP, it
/// stops the driver one INTERVAL after the last packet. Each packet gets the current time as its timestamp.
///
/// # Ports
/// Output 0 (push): packets.
///
/// # Example
/// ```click
/// TimedSource(0.01, "tick", LIMIT 3, STOP true) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(enters))]
#[class(name = "TimedSource", ports = "0/1", processing = "h/h", packets = "/any unmarked", alignment = "4 0", workers = exclusive)]
#[class(takes_state = "the time of the next packet")]
#[class(build, lifecycle, handlers, effects(stops))]
pub struct TimedSource {
    args: Args,
    #[counts]
    count: SentCount,
    proto: Prototype,
    timer: PeriodicTimer,
    ended: Ended,
}

/// Arguments of TimedSource.
#[derive(Args)]
pub struct Args {
    /// The time between packets.
    #[arg(default = Interval(500_000_000), min = Interval::SHORTEST_PERIOD, show = "0.5", handler = "rw")]
    interval: Interval,
    /// The data of packets.
    #[arg(default = Data(TEXT.to_vec()), show = "69 bytes of text", handler = "rw")]
    data: Data,
    /// How many packets to send; negative for no limit.
    #[arg(keyword, default = -1, handler = "rw")]
    limit: i64,
    /// When false, no packet is sent.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
    /// Whether to stop the driver after LIMIT packets.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Free bytes before the data.
    #[arg(keyword, default = castanet_packet::DEFAULT_HEADROOM as u32, max = MAX_HEADROOM, show = "28", handler = "rw")]
    headroom: u32,
}

impl Build for TimedSource {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(TimedSource {
            proto: Prototype::new(&args.data.0, -1, args.headroom as usize)?,
            args,
            count: SentCount::default(),
            timer: PeriodicTimer::default(),
            ended: Ended::default(),
        })
    }
}

impl Element for TimedSource {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        let Some(due) = self.timer.expired().filter(|_| self.args.active) else { return };
        if self.count.has_reached(self.args.limit) {
            return self.ended.stop(self.args.stop, cx);
        }
        if let Some(mut p) = self.proto.packet() {
            p.set_timestamp(cx.now());
            self.count.add(1, cx);
            cx.emit(0, p);
        }
        self.timer.set_after(due, self.args.interval.0, cx);
    }
}

impl TimedSource {
    /// Called after the settings or the count have changed. If packets are left to send, STOP applies again, and an
    /// active source sets its timer.
    fn resume(&mut self, cx: &mut Cx<'_>) {
        let is_done = self.count.has_reached(self.args.limit);
        self.ended.resume(is_done);
        if self.args.active && !is_done {
            self.timer.start(self.args.interval.0, cx);
        }
    }
}

#[handlers]
impl TimedSource {
    /// Sets the count to 0 and starts again.
    #[write(button)]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.count.reset();
        self.resume(cx);
    }
}

impl Lifecycle for TimedSource {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if self.args.active {
            cx.with_cx(|cx| self.timer.start(self.args.interval.0, cx));
        }
        Ok(())
    }
    fn changed(&mut self, handler: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        match handler {
            Args::DATA | Args::HEADROOM => {
                let headroom = self.args.headroom as usize;
                let changed = self.proto.change(&mut self.args.data, &mut -1, headroom);
                self.args.headroom = u32::try_from(self.proto.headroom).unwrap_or(MAX_HEADROOM);
                changed?;
            }
            _ => {}
        }
        self.resume(cx);
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        // STOP takes effect in a turn without packets, so the size of batches does not matter to it.
        Effects::empty()
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.ended.go_on_from(old.ended, self.count.has_reached(self.args.limit));
        if self.args.active {
            self.timer.go_on_from(&old.timer, cx);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    #[test]
    fn one_every_interval() {
        let mut kit = Kit::<TimedSource>::new("0.2, LIMIT 3, STOP true").unwrap();
        for i in 1..=3 {
            assert_eq!((kit.next_timer().unwrap() / 1_000_000, kit.stops()), (200 * i, 0));
            let out = kit.expire().unwrap();
            assert_eq!((out.len(), out[0].1.len(), out[0].1.headroom()), (1, 69, 28));
            assert_eq!(out[0].1.timestamp() / 1_000_000, 1_000_000 + 200 * i);
        }
        assert_eq!(kit.next_timer().unwrap() / 1_000_000, 800, "the request comes one interval later");
        assert!(kit.expire().unwrap().is_empty());
        assert_eq!((kit.stops(), kit.next_timer()), (1, None));
        kit.write("limit", "4").unwrap();
        assert_eq!(kit.expire().unwrap().len(), 1);
        assert_eq!(kit.read("count").unwrap(), "4");
    }

    #[test]
    fn handlers() {
        let mut kit = Kit::<TimedSource>::new("1, HEADROOM 100").unwrap();
        kit.write("data", r#""\<0102>""#).unwrap();
        kit.write("headroom", "7").unwrap();
        kit.write("interval", "2").unwrap();
        let out = kit.expire().unwrap();
        assert_eq!((out[0].1.data(), out[0].1.headroom()), (&[1, 2][..], 7));
        assert_eq!(kit.next_timer().unwrap() / 1_000_000, 3000);
        kit.write("active", "false").unwrap();
        assert!(kit.expire().unwrap().is_empty());
        assert_eq!(kit.next_timer(), None);
        kit.write("active", "true").unwrap();
        kit.write("reset", "").unwrap();
        assert_eq!(kit.next_timer().unwrap() / 1_000_000, 5000);
        assert_eq!(["count", "interval", "headroom"].map(|h| kit.read(h).unwrap()), ["0", "2s", "7"]);
        assert!(kit.write("interval", "0").is_err());
        assert_eq!(kit.read("interval").unwrap(), "2s");
        assert_eq!(Kit::<TimedSource>::new("0").err().unwrap(), ["INTERVAL: must be at least 1us"]);
        assert_eq!(
            Kit::<TimedSource>::new("1, HEADROOM 8193").err().unwrap(),
            ["HEADROOM: must be at most 8192"]
        );
        let long = "x".repeat(66_000);
        assert!(Kit::<TimedSource>::new(&format!("1, {long}, HEADROOM 100")).is_err());
        let before = ["data", "headroom"].map(|h| kit.read(h).unwrap());
        assert!(kit.write("headroom", "8193").is_err() && kit.write("data", &"x".repeat(66_100)).is_err());
        assert_eq!(["data", "headroom"].map(|h| kit.read(h).unwrap()), before);
        kit.write("data", &long).unwrap();
        assert!(kit.write("headroom", "100").is_err());
        assert_eq!(kit.read("headroom").unwrap(), "7", "nothing changes");
        assert_eq!(kit.expire().unwrap()[0].1.len(), 66_000);
        assert_eq!(Kit::<TimedSource>::new("1, ACTIVE false").unwrap().next_timer(), None);
    }
}
