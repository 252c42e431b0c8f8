// SPDX-License-Identifier: MIT OR Apache-2.0
//! RandomSource: sends packets of random bytes.

use super::Ended;
use super::bursts::Bursts;
use super::end::EndArgs;
use super::sent_count::SentCount;
use super::source_output::SourceOutput;
use castanet_element::prelude::*;
use castanet_packet::MAX_LENGTH;

/// Sends packets of random bytes, as fast as they are accepted.
///
/// Each packet has different bytes; runs with the same seed give the same bytes. After LIMIT packets, the next turn or
/// pull stops the driver (STOP) or writes a handler (END_CALL).
///
/// # Ports
/// No inputs. Output 0: packets, push or pull.
///
/// # Example
/// ```click
/// RandomSource(LENGTH 20, LIMIT 3, STOP true) -> Print(random) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(enters))]
#[class(name = "RandomSource", ports = "0/1", processing = "a/a", packets = "/any unmarked", alignment = "4 0", workers = exclusive, build, lifecycle, handlers)]
#[class(reconfigure = restarts, takes_state = "the place in the burst and in the random numbers")]
#[class(task, capabilities(EmptyNotifier), effects(calls, stops))]
pub struct RandomSource {
    args: Args,
    #[counts]
    count: SentCount,
    random: Random,
    ended: Ended,
    bursts: Bursts,
    output: SourceOutput,
}

/// Arguments of RandomSource.
#[derive(Args)]
pub struct Args {
    /// Length of a packet in bytes.
    #[arg(max = MOST as u32, handler = "rw")]
    length: u32,
    /// How many packets to send; negative for no limit.
    #[arg(default = -1, handler = "rw")]
    limit: i64,
    /// Packets to send in a turn.
    #[arg(default = 1, handler = "rw")]
    burst: u32,
    /// When false, no packets are sent.
    #[arg(default = true, handler = "rw")]
    active: bool,
    /// Whether packets get the current time as their timestamp.
    #[arg(keyword, default = true)]
    timestamp: bool,
    #[arg(flatten)]
    end: EndArgs,
}

/// Largest length of a packet, in bytes.
const MOST: usize = MAX_LENGTH - castanet_packet::DEFAULT_HEADROOM;

impl Build for RandomSource {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(RandomSource {
            count: SentCount::default(),
            random: cx.random(),
            ended: Ended::default(),
            bursts: Bursts::new(),
            output: SourceOutput::new(cx),
            args,
        })
    }
}

/// Makes a packet of `length` random bytes; `None` if no buffer is free.
fn packet(length: u32, random: &mut Random) -> Option<Packet> {
    let mut p = Packet::new(length as usize)?;
    for piece in p.data_mut().chunks_mut(8) {
        for (to, from) in piece.iter_mut().zip(random.next_u64().to_le_bytes()) {
            *to = from;
        }
    }
    Some(p)
}

impl RandomSource {
    /// Appends at most `max` packets to `into`. Returns the number appended.
    fn fill(&mut self, max: usize, into: &mut Batch, cx: &mut Cx<'_>) -> usize {
        let n = max.min(self.count.left(self.args.limit));
        let Args { length, timestamp, .. } = self.args;
        self.count.fill(into, n, timestamp, cx, || packet(length, &mut self.random))
    }
    /// Performs STOP or END_CALL once, when the limit is reached.
    fn finish(&mut self, cx: &mut Cx<'_>) {
        self.output.sleep(cx);
        self.ended.carry_out(&self.args.end, cx);
    }
    fn can_run(&self) -> bool {
        self.args.active && !self.ended.get()
    }
    fn wake(&mut self, cx: &mut Cx<'_>) {
        self.ended.resume(self.count.has_reached(self.args.limit));
        let can_run = self.can_run();
        self.output.wake(can_run, cx);
        if !can_run {
            self.output.sleep(cx);
        }
    }
}

impl Element for RandomSource {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if !self.output.pushes || !self.can_run() {
            return Turn::Sleep;
        }
        let left = self.count.left(self.args.limit);
        let burst = (self.args.burst as usize).max(1);
        let most = self.bursts.rest(burst, cx).max(1);
        let most = match self.bursts.room(most, cx) {
            Ok(most) => most,
            Err(turn) => return turn,
        };
        if left == 0 {
            self.finish(cx);
            return Turn::Sleep;
        }
        let mut batch = cx.spare_batch();
        let n = self.fill(most, &mut batch, cx);
        cx.forward(0, &mut batch);
        cx.return_batch(batch);
        self.bursts.end_turn(n, left, burst)
    }
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        if self.can_run() && self.fill(max, into, cx) == 0 && self.count.has_reached(self.args.limit) {
            self.finish(cx);
        }
    }
}

#[handlers]
impl RandomSource {
    /// Sets the count to 0 and starts again.
    #[write(button)]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.count.reset();
        self.wake(cx);
    }
}

impl Lifecycle for RandomSource {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.output.initialise(self.args.active, cx);
        cx.scheduled &= self.args.active;
        if self.output.pushes {
            self.bursts.initialise(cx);
        }
        Ok(())
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.wake(cx);
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        let if_so = |yes, effect| if yes { effect } else { Effects::empty() };
        let EndArgs { stop, end_call } = &self.args.end;
        if_so(*stop, Effects::STOPS).union(if_so(end_call.is_some(), Effects::CALLS))
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        (self.ended, self.random) = (old.ended, old.random.clone());
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
    fn random_bytes_and_limits() {
        let bytes = |limit: usize| {
            let mut k = Kit::<RandomSource>::new("100, 7, 3, STOP true").unwrap().limit(limit);
            let mut out = Vec::new();
            loop {
                let (turn, packets) = k.task();
                out.extend(packets.into_iter().map(|p| (p.1.data().to_vec(), p.1.timestamp() != 0)));
                if turn == Turn::Sleep {
                    break;
                }
            }
            assert_eq!((k.stops(), k.read("count").unwrap(), k.task().0), (1, "7".into(), Turn::Sleep));
            out
        };
        let all = bytes(1);
        assert!([2, 3, 32].iter().all(|n| bytes(*n) == all));
        assert!(all.iter().all(|(b, stamped)| b.len() == 100 && *stamped));
        let ones: u32 = all.iter().flat_map(|a| &a.0).map(|b| b.count_ones()).sum();
        assert!((2600..3000).contains(&ones), "{ones} of 5600 bits");
        for length in 0..60 {
            let mut k = Kit::<RandomSource>::new(&format!("{length}, TIMESTAMP false")).unwrap();
            let p = &k.pull(0, 1)[0];
            assert_eq!((p.len(), p.timestamp()), (length, 0));
        }
    }

    #[test]
    fn pulls_and_changes() {
        let mut k = Kit::<RandomSource>::new("9, 5, END_CALL go").unwrap();
        assert_eq!((k.pull(0, 3).len(), k.pull(0, 9).len(), k.calls().len()), (3, 2, 0));
        assert_eq!((k.pull(0, 9).len(), k.calls().len(), k.note(Capability::EmptyNotifier)), (0, 1, false));
        k.write("limit", "6").unwrap();
        assert_eq!(k.pull(0, 9).len(), 1);
        k.write("reset", "").unwrap();
        k.write("length", "4").unwrap();
        assert_eq!(k.pull(0, 9).iter().map(Packet::len).collect::<Vec<_>>(), [4; 6]);
        k.write("active", "false").unwrap();
        assert_eq!(k.pull(0, 9).len(), 0);
        for bad in ["", "x", "-1", "100000000", "1, STOP true, END_CALL x"] {
            assert!(Kit::<RandomSource>::new(bad).is_err(), "{bad}");
        }
    }
}
