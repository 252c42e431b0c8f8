// SPDX-License-Identifier: MIT OR Apache-2.0
//! RandomSource: sends packets of random bytes.

use super::{burst_turn, left, stamp};
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
#[class(name = "RandomSource", ports = "0/1", processing = "a/a", packets = "any/any", workers = exclusive, build, lifecycle, handlers)]
#[class(reconfigure = restarts, takes_state = "the place in the burst and in the random numbers")]
#[class(task, capabilities(EmptyNotifier), effects(calls, stops))]
pub struct RandomSource {
    args: Args,
    /// Packets sent.
    #[count(unit = "packets")]
    count: Count,
    random: Random,
    /// Packets of the current burst that have been sent.
    sent: usize,
    finished: bool,
    push: bool,
    note: Option<Note>,
    signal: Signal,
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
    /// Whether to stop the driver after LIMIT packets.
    #[arg(keyword, default = false)]
    stop: bool,
    /// A handler to write after LIMIT packets.
    #[arg(keyword)]
    end_call: Option<HandlerRef>,
}

/// Largest length of a packet, in bytes.
const MOST: usize = MAX_LENGTH - castanet_packet::DEFAULT_HEADROOM;

impl Build for RandomSource {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.stop && args.end_call.is_some() {
            return Err("specify at most one of STOP and END_CALL".into());
        }
        Ok(RandomSource {
            count: Count::default(),
            random: cx.random(),
            sent: 0,
            finished: false,
            push: cx.is_push_output(0),
            note: None,
            signal: Signal::default(),
            args,
        })
    }
}

impl RandomSource {
    fn packet(&mut self) -> Option<Packet> {
        let mut p = Packet::new(self.args.length as usize)?;
        for piece in p.data_mut().chunks_mut(8) {
            for (to, from) in piece.iter_mut().zip(self.random.next_u64().to_le_bytes()) {
                *to = from;
            }
        }
        Some(p)
    }
    /// Appends at most `max` packets to `into`. Returns the number appended.
    fn fill(&mut self, max: usize, into: &mut Batch, cx: &mut Cx<'_>) -> usize {
        let before = into.len();
        into.extend((0..max.min(left(self.args.limit, self.count))).map_while(|_| self.packet()));
        let packets = into.as_mut_slice().get_mut(before..).unwrap_or_default();
        if self.args.timestamp {
            stamp(packets, cx);
        }
        self.count.add(packets.len() as u64);
        cx.entered(packets.len() as u64);
        packets.len()
    }
    /// Performs STOP or END_CALL once, when the limit is reached.
    fn finish(&mut self, cx: &mut Cx<'_>) {
        if let Some(note) = self.note {
            cx.clear_note(note);
        }
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        if self.args.stop {
            cx.stop(1);
        }
        if let Some(call) = &self.args.end_call {
            cx.call(call);
        }
    }
    fn can_run(&self) -> bool {
        self.args.active && !self.finished
    }
    fn wake(&mut self, cx: &mut Cx<'_>) {
        self.finished &= left(self.args.limit, self.count) == 0;
        match self.note {
            Some(note) if !self.push && self.can_run() => cx.set_note(note),
            Some(note) if !self.push => cx.clear_note(note),
            _ => cx.schedule(),
        }
    }
}

impl Element for RandomSource {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if !self.push || !self.can_run() {
            return Turn::Sleep;
        }
        let left = left(self.args.limit, self.count);
        let burst = (self.args.burst as usize).max(1);
        let most = cx.limit().min(burst.saturating_sub(self.sent)).max(1);
        let most = match cx.room(&self.signal, most, self.sent > 0) {
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
        burst_turn(&mut self.sent, n, left, burst)
    }
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        if self.can_run() && self.fill(max, into, cx) == 0 && left(self.args.limit, self.count) == 0 {
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
        self.note = cx.note(Capability::EmptyNotifier);
        if self.push {
            self.signal = cx.downstream(0);
        }
        cx.scheduled = self.push && self.args.active;
        if let Some(note) = self.note.filter(|_| self.args.active) {
            cx.set_note(note);
        }
        Ok(())
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.wake(cx);
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        let if_so = |yes, effect| if yes { effect } else { Effects::empty() };
        if_so(self.args.stop, Effects::STOPS).union(if_so(self.args.end_call.is_some(), Effects::CALLS))
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        (self.sent, self.finished, self.random) = (old.sent, old.finished, old.random.clone());
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
