// SPDX-License-Identifier: MIT OR Apache-2.0
//! InfiniteSource: sends packets as fast as they are accepted.

use super::bursts::Bursts;
use super::end::EndArgs;
use super::sent_count::SentCount;
use super::source_output::SourceOutput;
use super::{Ended, Prototype, TEXT};
use castanet_element::prelude::*;
use castanet_packet::DEFAULT_HEADROOM;

/// Sends packets with the same data, as fast as they are accepted.
///
/// With a push output, its task sends BURST packets per turn, and sleeps while every queue downstream that
/// has a notifier is full. With a pull output, each pull gets one packet. After LIMIT packets the source
/// pauses, and the next turn or pull stops the driver (STOP) or writes a handler (END_CALL). Raising `limit`
/// or writing `reset` starts the source again. Each packet gets the current time as its timestamp.
///
/// # Ports
/// Output 0: packets, push or pull.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<00 11 22>, LENGTH 60, LIMIT 1000, BURST 32, STOP true) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(enters))]
#[class(name = "InfiniteSource", ports = "0/1", processing = "a/a", packets = "/any unmarked", alignment = "4 0", workers = exclusive)]
#[class(reconfigure = restarts, takes_state = "the place in the burst")]
#[class(task, build, lifecycle, handlers, effects(stops, calls), capabilities(EmptyNotifier))]
#[class(depends = packet)]
pub struct InfiniteSource {
    args: Args,
    #[counts]
    count: SentCount,
    proto: Prototype,
    ended: Ended,
    bursts: Bursts,
    output: SourceOutput,
    batch: Batch,
}

/// Arguments of InfiniteSource.
#[derive(Args)]
pub struct Args {
    /// The data of packets.
    #[arg(default = Data(TEXT.to_vec()), show = "69 bytes of text", handler = "rw%.")]
    data: Data,
    /// How many packets to send; negative for no limit.
    #[arg(default = -1, handler = "rw.")]
    limit: i64,
    /// Packets to send in a turn.
    #[arg(default = 1, handler = "rw.")]
    burst: i32,
    /// When false, no packet is sent.
    #[arg(default = true, handler = "rw")]
    active: bool,
    /// Whether packets get the current time as their timestamp.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// Length of a packet in bytes, to which DATA is repeated or cut; negative for the length of DATA.
    #[arg(keyword, default = -1, alias = "DATASIZE", handler = "rw.")]
    length: i32,
    #[arg(flatten)]
    end: EndArgs,
}

impl Build for InfiniteSource {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(InfiniteSource {
            proto: Prototype::new(&args.data.0, args.length, DEFAULT_HEADROOM)?,
            args,
            count: SentCount::default(),
            ended: Ended::default(),
            bursts: Bursts::new(),
            output: SourceOutput::new(cx),
            batch: Batch::new(),
        })
    }
}

impl InfiniteSource {
    /// Performs STOP or END_CALL once, when the limit is reached.
    #[cold]
    fn end(&mut self, cx: &mut Cx<'_>) {
        self.ended.carry_out(&self.args.end, cx);
        self.output.sleep(cx);
    }
    /// Wakes the task that sends, or the task downstream that pulls.
    fn wake(&mut self, cx: &mut Cx<'_>) {
        self.ended.resume(self.count.has_reached(self.args.limit));
        self.output.wake(self.args.active, cx);
    }
}

impl Element for InfiniteSource {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if !self.args.active {
            return Turn::Sleep;
        }
        let left = self.count.left(self.args.limit);
        if left == 0 {
            // The turn after the last packet also needs free space downstream: a full queue delays STOP and END_CALL.
            if let Err(turn) = self.bursts.room_for_one(cx) {
                return turn;
            }
            self.end(cx);
            return Turn::Sleep;
        }
        let Some(burst) = usize::try_from(self.args.burst).ok().filter(|b| *b > 0) else {
            return Turn::Sleep;
        };
        if cx.quantum() > 1 {
            let n = left.min(cx.quantum());
            self.count.fill(&mut self.batch, n, self.args.timestamp, cx, || self.proto.packet());
            cx.forward(0, &mut self.batch);
            return Turn::Again;
        }
        let want = left.min(self.bursts.rest(burst, cx));
        let n = match self.bursts.room(want, cx) {
            Ok(n) => n,
            Err(turn) => return turn,
        };
        let n = self.count.fill(&mut self.batch, n, self.args.timestamp, cx, || self.proto.packet());
        cx.forward(0, &mut self.batch);
        self.bursts.end_turn(n, left, burst)
    }

    fn plain_turns(&self, cx: &Cx<'_>) -> usize {
        let Args { active, burst, limit, timestamp, .. } = self.args;
        // Under simulated time, everybody can tell when the clock was read.
        if !active || burst != 1 || timestamp && cx.is_simulated() || !self.bursts.is_plain(cx) {
            return 0;
        }
        self.count.left(limit)
    }

    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        if !self.args.active {
            return self.output.sleep(cx);
        }
        let left = self.count.left(self.args.limit);
        if left == 0 && max > 0 {
            return self.end(cx);
        }
        self.count.fill(into, left.min(max), self.args.timestamp, cx, || self.proto.packet());
    }
}

#[handlers]
impl InfiniteSource {
    /// Sets the count to 0 and starts again.
    #[write(button)]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.count.reset();
        self.ended = Ended::default();
        self.wake(cx);
    }
    /// The same as burst.
    #[read(calm, deprecated, unit = "packets")]
    fn burstsize(&self) -> i32 {
        self.args.burst
    }
    #[write]
    fn set_burstsize(&mut self, burst: i32, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.args.burst = burst;
        Ok(self.changed(Args::BURST, cx)?)
    }
    /// The same as length.
    #[read(calm, deprecated, unit = "bytes")]
    fn datasize(&self) -> i32 {
        self.args.length
    }
    #[write]
    fn set_datasize(&mut self, length: i32, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.args.length = length;
        Ok(self.changed(Args::LENGTH, cx)?)
    }
}

impl Lifecycle for InfiniteSource {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.output.initialise(self.args.active, cx);
        if self.output.pushes {
            self.bursts.initialise(cx);
        }
        Ok(())
    }

    fn changed(&mut self, handler: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        match handler {
            Args::DATA | Args::LENGTH => {
                self.proto.change(&mut self.args.data, &mut self.args.length, DEFAULT_HEADROOM)?;
            }
            Args::BURST => self.bursts.restart(),
            _ => {}
        }
        self.wake(cx);
        Ok(())
    }

    fn effects(&self, _: Effects) -> Effects {
        // STOP and END_CALL act only in a turn or pull that makes no packets, so their effects do not depend on the
        // batch size.
        Effects::empty()
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.ended = old.ended;
        self.bursts.go_on_from(&old.bursts);
        self.wake(cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::Kit;

    #[test]
    fn bursts_limits_and_stops_in_the_turn_after_the_last_packet() {
        for (config, turns) in [
            ("LIMIT 3", &[1, 1, 1, 0, 0][..]),
            ("LIMIT 10, BURST 4", &[4, 4, 2, 0]),
            ("LIMIT 0", &[0]),
            ("LIMIT 20, BURST 11", &[8, 3, 8, 1, 0]),
            ("BURST -1", &[0]),
            ("ACTIVE false", &[0]),
        ] {
            let mut kit = Kit::<InfiniteSource>::new(&format!("{config}, STOP true")).unwrap().limit(8);
            for (i, &n) in turns.iter().enumerate() {
                let stops = kit.stops();
                let (turn, out) = kit.task();
                assert_eq!((out.len(), turn == Turn::Sleep), (n, n == 0), "{config} turn {i}");
                assert_eq!(turn == Turn::More, config.contains("BURST 11") && n == 8, "{config} turn {i}");
                let ends = config.contains("LIMIT") && n == 0 && (i == 0 || turns[i - 1] > 0);
                assert_eq!(kit.stops() - stops, u32::from(ends), "{config} turn {i}");
            }
            assert_eq!(kit.read("count").unwrap(), turns.iter().sum::<usize>().to_string());
        }
    }

    #[test]
    fn pulls_until_the_limit() {
        for n in [1, 2, 3, 32] {
            let mut kit = Kit::<InfiniteSource>::new("LIMIT 5, STOP true").unwrap();
            kit.element.output.pushes = false;
            kit.write("active", "true").unwrap();
            assert!(kit.note(Capability::EmptyNotifier) && !kit.woken());
            let mut got = 0;
            while got < 5 {
                let pulled = kit.pull(0, n).len();
                assert_eq!((pulled, kit.stops()), (n.min(5 - got), 0));
                got += pulled;
            }
            assert!(kit.pull(0, n).is_empty() && kit.pull(0, n).is_empty());
            assert_eq!(
                (kit.stops(), kit.note(Capability::EmptyNotifier)),
                (1, false),
                "the notifier rests after the end"
            );
        }
    }

    #[test]
    fn data_and_time() {
        let mut kit = Kit::<InfiniteSource>::new("").unwrap();
        let (_, out) = kit.task();
        assert_eq!((out[0].1.len(), out[0].1.timestamp() / 1_000_000_000), (69, 1000));
        kit.write("data", "\\<01 02>").unwrap();
        assert_eq!(kit.task().1[0].1.data(), [1, 2]);
        kit.write("length", "3").unwrap();
        assert_eq!(kit.task().1[0].1.data(), [1, 2, 1]);
        kit.write("datasize", "1").unwrap();
        assert_eq!((kit.task().1[0].1.len(), kit.read("datasize").unwrap()), (1, "1".into()));
        kit.write("burstsize", "7").unwrap();
        assert_eq!((kit.task().1.len(), kit.read("burst").unwrap()), (7, "7".into()));
        let mut kit = Kit::<InfiniteSource>::new("LENGTH 2000, TIMESTAMP false, BURST 3").unwrap();
        let (_, out) = kit.task();
        assert!(out.iter().all(|(_, p)| p.len() == 2000 && p.timestamp() == 0));
    }

    #[test]
    fn reset_and_limit_start_it_again() {
        let mut kit = Kit::<InfiniteSource>::new("LIMIT 2, END_CALL bell").unwrap();
        for (handler, value, n) in [("active", "true", 2), ("reset", "", 2), ("limit", "3", 1)] {
            kit.write(handler, value).unwrap();
            assert!(kit.woken());
            for _ in 0..n {
                assert_eq!(kit.task().1.len(), 1);
                assert!(kit.calls().is_empty());
            }
            assert_eq!(kit.task().0, Turn::Sleep);
            assert_eq!(kit.calls().len(), 1, "{handler}");
            assert_eq!(kit.task().0, Turn::Sleep);
            assert!(kit.calls().is_empty());
        }
        let both = Kit::<InfiniteSource>::new("STOP true, END_CALL bell").err().unwrap();
        assert_eq!(both, ["specify at most one of STOP and END_CALL"]);
    }

    #[test]
    fn lengths_that_no_packet_has() {
        let wrong = |config: &str| Kit::<InfiniteSource>::new(config).err().unwrap();
        assert_eq!(wrong("LENGTH 66021"), ["LENGTH: at most 66020 bytes fit into a packet, not 66021"]);
        assert!(wrong(&"x".repeat(66_021))[0].starts_with("DATA: at most 66020"));
        let mut kit = Kit::<InfiniteSource>::new("LENGTH 66020, LIMIT 9").unwrap();
        assert_eq!(kit.task().1[0].1.len(), 66_020);
        for (handler, value) in [("length", "66021"), ("datasize", "2000000000")] {
            assert!(kit.write(handler, value).is_err());
            assert_eq!(kit.read("length").unwrap(), "66020", "nothing changes");
            assert_eq!(kit.task().1[0].1.len(), 66_020);
        }
    }
}
