// SPDX-License-Identifier: MIT OR Apache-2.0
//! RatedSource: sends packets at a given rate.

use super::sent_count::SentCount;
use super::source_output::SourceOutput;
use super::{Ended, Pace, Prototype, TEXT};
use castanet_element::prelude::*;
use castanet_packet::DEFAULT_HEADROOM;

/// Sends packets with the same data, RATE per second.
///
/// A token bucket limits the rate. It holds one token for each packet that is due in 10 ms, but at least two, and is
/// full at the start. With a push output, the task sends one packet per turn, and sleeps until the next packet is due.
/// That time is rounded up to a whole millisecond. With a pull output, pulls get the packets that are due. The source
/// does not wait for queues downstream. After LIMIT packets the source pauses; with STOP, the next turn or pull stops
/// the driver. Each packet gets the current time as its timestamp.
///
/// # Ports
/// Output 0: packets, push or pull.
///
/// # Example
/// ```click
/// RatedSource(DATA "tick", RATE 100, LIMIT 5, STOP true) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(enters))]
#[class(name = "RatedSource", ports = "0/1", processing = "a/a", packets = "/any unmarked", alignment = "4 0", workers = exclusive)]
#[class(takes_state = "the tokens")]
#[class(task, build, lifecycle, handlers, effects(stops), capabilities(EmptyNotifier))]
pub struct RatedSource {
    args: Args,
    #[counts]
    count: SentCount,
    proto: Prototype,
    pace: Pace,
    ended: Ended,
    output: SourceOutput,
}

/// Arguments of RatedSource.
#[derive(Args)]
pub struct Args {
    /// The data of packets.
    #[arg(default = Data(TEXT.to_vec()), show = "69 bytes of text", handler = "rw%.")]
    data: Data,
    /// Packets per second.
    #[arg(default = 10, handler = "rw")]
    rate: u32,
    /// How many packets to send; negative for no limit.
    #[arg(default = -1, handler = "rw.")]
    limit: i64,
    /// When false, no packet is sent.
    #[arg(default = true, handler = "rwc")]
    active: bool,
    /// Length of a packet in bytes, to which DATA is repeated or cut; negative for the length of DATA.
    #[arg(keyword, default = -1, alias = "DATASIZE", handler = "rw")]
    length: i32,
    /// Whether to stop the driver after LIMIT packets.
    #[arg(keyword, default = false)]
    stop: bool,
    /// The rate in bytes per second, instead of RATE.
    #[arg(keyword)]
    bandwidth: Option<Bandwidth>,
}

impl Build for RatedSource {
    fn build(mut args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let proto = Prototype::new(&args.data.0, args.length, DEFAULT_HEADROOM)?;
        if let Some(b) = args.bandwidth {
            args.rate = u32::try_from(b.0 / (proto.len as u64).max(1)).unwrap_or(u32::MAX);
        }
        let (count, ended) = Default::default();
        let pace = Pace::of_rate(args.rate);
        Ok(RatedSource { args, count, proto, pace, ended, output: SourceOutput::new(cx) })
    }
}

impl RatedSource {
    /// Returns a packet if one is due. If not, the error is the `Turn` that the task must return.
    fn packet(&mut self, cx: &mut Cx<'_>) -> Result<Packet, Turn> {
        if !self.args.active {
            return Err(Turn::Sleep);
        }
        if self.count.has_reached(self.args.limit) {
            self.ended.stop(self.args.stop, cx);
            return Err(Turn::Sleep);
        }
        let now = cx.now();
        let at = self.pace.ready_or_set_timer(now, cx).ok_or(Turn::Sleep)?;
        let mut p = self.proto.packet().ok_or(Turn::Again)?;
        p.set_timestamp(cx.now());
        self.pace.went(at);
        self.count.add(1, cx);
        Ok(p)
    }
    /// Wakes the sending or pulling task after the settings or the count have changed. If packets are left to send,
    /// STOP applies again.
    fn resume(&mut self, cx: &mut Cx<'_>) {
        self.ended.resume(self.count.has_reached(self.args.limit));
        self.output.wake(self.args.active, cx);
    }
}

impl Element for RatedSource {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        match self.packet(cx) {
            Ok(p) => {
                cx.emit(0, p);
                Turn::Again
            }
            Err(turn) => turn,
        }
    }

    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        // A pull emits at most the packets that are left before LIMIT. A later pull, with none left, executes STOP.
        for _ in 0..max.min(self.count.left(self.args.limit).max(1)) {
            match self.packet(cx) {
                Ok(p) => into.push(p),
                Err(turn) => {
                    if turn == Turn::Sleep {
                        self.output.sleep(cx);
                    }
                    break;
                }
            }
        }
    }

    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.output.wake(self.args.active, cx);
    }
}

#[handlers]
impl RatedSource {
    /// Sets the count to 0 and starts again.
    #[write(button)]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.count.reset();
        self.resume(cx);
    }
    /// The same as length.
    #[read(deprecated, unit = "bytes")]
    fn datasize(&self) -> i32 {
        self.args.length
    }
    #[write]
    fn set_datasize(&mut self, length: i32, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.args.length = length;
        Ok(self.changed(Args::LENGTH, cx)?)
    }
}

impl Lifecycle for RatedSource {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.output.initialise(self.args.active, cx);
        Ok(())
    }
    fn changed(&mut self, handler: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        match handler {
            Args::DATA | Args::LENGTH => {
                self.proto.change(&mut self.args.data, &mut self.args.length, DEFAULT_HEADROOM)?;
            }
            Args::RATE => self.pace.change_rate(self.args.rate, cx.now()),
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
        self.pace.go_on_from(&mut old.pace, cx.now());
        self.ended.go_on_from(old.ended, self.count.has_reached(self.args.limit));
        self.output.wake(self.args.active, cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    /// Runs the source until it sleeps without a timer. Returns the times at which packets left, in
    /// milliseconds.
    fn times(kit: &mut Kit<RatedSource>) -> Vec<i64> {
        let (mut times, mut now) = (Vec::new(), 0);
        loop {
            let (turn, out) = kit.task();
            times.extend(out.iter().map(|_| now / 1_000_000));
            assert!(out.iter().all(|(_, p)| p.timestamp() / 1_000_000 == 1_000_000 + now / 1_000_000));
            if turn == Turn::Sleep {
                let Some(next) = kit.next_timer() else { return times };
                now = next;
                assert!(kit.expire().unwrap().is_empty() && kit.woken());
            }
        }
    }

    #[test]
    fn keeps_the_rate_and_stops() {
        for (config, want) in [
            ("RATE 5, LIMIT 5", &[0, 0, 201, 401, 601][..]),
            ("LIMIT 3", &[0, 0, 101]),
            ("BANDWIDTH 345, LIMIT 3", &[0, 0, 201]),
            ("LENGTH 10, BANDWIDTH 50, LIMIT 3", &[0, 0, 201]),
            ("RATE 300, LIMIT 5", &[0, 0, 0, 4, 7]),
            ("LIMIT 0", &[]),
            ("RATE 0, LIMIT 9", &[0, 0]),
        ] {
            let mut kit = Kit::<RatedSource>::new(&format!("{config}, STOP true")).unwrap();
            assert_eq!(times(&mut kit), want, "{config}");
            assert_eq!(kit.stops(), u32::from(!config.contains("RATE 0")));
            assert_eq!(kit.read("count").unwrap(), want.len().to_string());
        }
    }

    #[test]
    fn handlers() {
        let mut kit = Kit::<RatedSource>::new("x, 1, 2").unwrap();
        assert_eq!(times(&mut kit), [0, 0]);
        kit.write("rate", "1000000").unwrap();
        kit.write("datasize", "3").unwrap();
        kit.write("reset", "").unwrap();
        assert!(kit.woken());
        kit.at(2_000_000_000);
        assert_eq!(kit.task().1[0].1.data(), b"xxx");
        kit.write("active", "false").unwrap();
        assert_eq!(kit.task().0, Turn::Sleep);
        assert_eq!(
            ["rate", "active", "length", "datasize", "limit"].map(|h| kit.read(h).unwrap()),
            ["1000000", "false", "3", "3", "2"]
        );
        assert_eq!(Kit::<RatedSource>::new("x, fast").err().unwrap(), ["RATE: invalid number"]);
    }

    #[test]
    fn pulls_give_what_is_due() {
        let mut kit = Kit::<RatedSource>::new("RATE 5").unwrap();
        kit.element.output.pushes = false;
        assert_eq!(kit.pull(0, 1).len(), 1);
        assert_eq!(kit.pull(0, 9).len(), 1);
        assert!(!kit.note(Capability::EmptyNotifier));
        kit.expire().unwrap();
        assert!(kit.note(Capability::EmptyNotifier), "the timer tells that a packet is due");
        assert_eq!(kit.pull(0, 9).len(), 1);
    }

    #[test]
    fn lengths_that_no_packet_has() {
        assert!(Kit::<RatedSource>::new("LENGTH 66021").is_err());
        let mut kit = Kit::<RatedSource>::new("LENGTH 66020").unwrap();
        assert!(kit.write("length", "66021").is_err() && kit.write("data", &"x".repeat(99)).is_ok());
        assert_eq!(kit.task().1[0].1.len(), 66_020);
    }
}
