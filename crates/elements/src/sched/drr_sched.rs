// SPDX-License-Identifier: MIT OR Apache-2.0
//! DRRSched: gives all inputs the same number of bytes.

use super::own_note::OwnNote;
use castanet_element::prelude::*;

/// Gives all inputs that have packets the same number of bytes, by deficit round robin.
///
/// The algorithm is that of Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit Round-Robin" (1996). Inputs
/// take turns. At the beginning of its turn, an input gets QUANTUM bytes of credit, and gives packets as long as its
/// credit lasts. The rest of the credit is kept for its next turn, unless the input has no packet left. Input 0
/// begins without credit. The element holds at most one packet of each input, which waits for the turn of its input.
/// Inputs whose notifiers are off are not pulled from.
///
/// # Ports
/// Inputs 0, 1, ... (pull): packets. Output 0 (pull): the packets chosen.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 20, STOP true) -> Queue -> [0] s :: DRRSched(1500) -> Unqueue -> Discard;
/// RatedSource(LENGTH 1500, LIMIT 2) -> Queue -> [1] s;
/// ```
#[derive(Class)]
#[class(ledger(holds))]
#[class(name = "DRRSched", offload = none, ports = "-/1", processing = "l/l", packets = "any/same", workers = exclusive)]
#[class(takes_state = "the packets at hand, the credits, whose turn it is")]
#[class(build, lifecycle, drops(Stopped), capabilities(EmptyNotifier))]
pub struct DrrSched {
    args: Args,
    inputs: Vec<Input>,
    /// The input whose turn it is.
    at: usize,
    /// The element's own notifier. It is on while a notifier upstream is on, and also while the element itself holds
    /// packets.
    note: OwnNote,
}

/// Arguments of DRRSched.
#[derive(Args)]
pub struct Args {
    /// Bytes of credit that an input gets at the beginning of each turn, at least 1.
    #[arg(default = 500, min = 1)]
    quantum: u32,
}

#[derive(Default)]
struct Input {
    signal: Signal,
    head: Option<Packet>,
    /// The credit of the input, in bytes.
    deficit: u64,
}

impl Build for DrrSched {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let inputs = (0..cx.inputs).map(|_| Input::default()).collect();
        Ok(DrrSched { args, inputs, at: 0, note: OwnNote::default() })
    }
}

impl DrrSched {
    #[inline]
    fn advance(&mut self) {
        self.at = if self.at + 1 < self.inputs.len() { self.at + 1 } else { 0 };
        if let Some(input) = self.inputs.get_mut(self.at) {
            input.deficit = input.deficit.saturating_add(self.args.quantum.into());
        }
    }

    /// Skips the next rounds in which no input would have enough credit for its packet. Each input that has a packet
    /// gets the credit of all these rounds at once. With a small quantum there are many such rounds.
    #[cold]
    fn skip_rounds(&mut self) {
        let (at, quantum) = (self.at, u64::from(self.args.quantum));
        let waits = self.inputs.iter().enumerate().filter_map(|(i, input)| {
            let short = (input.head.as_ref()?.len() as u64).saturating_sub(input.deficit);
            let rounds = short.div_ceil(quantum);
            // The input whose turn it is has its credit for this round already.
            Some(if i == at { rounds } else { rounds.saturating_sub(1) })
        });
        let credit = waits.min().unwrap_or(0).saturating_mul(quantum);
        for input in self.inputs.iter_mut().filter(|i| i.head.is_some()) {
            input.deficit = input.deficit.saturating_add(credit);
        }
    }
}

impl Element for DrrSched {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..max {
            let Some(p) = self.pull_one(0, cx) else { break };
            into.push(p);
        }
    }
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        loop {
            let mut any = false;
            for _ in 0..self.inputs.len() {
                let input = self.inputs.get_mut(self.at)?;
                if input.head.is_none() && cx.is_on(&input.signal) {
                    input.head = cx.pull_one(self.at);
                }
                match &input.head {
                    None => input.deficit = 0,
                    Some(p) if p.len() as u64 <= input.deficit => {
                        input.deficit -= p.len() as u64;
                        return input.head.take();
                    }
                    Some(_) => any = true,
                }
                self.advance();
            }
            if !any {
                self.note.found_empty(|cx| self.inputs.iter().any(|i| cx.is_on(&i.signal)), cx);
                return None;
            }
            self.skip_rounds();
        }
    }
    // When a notifier upstream turns on, it schedules every element that subscribed to it. So `task` is called although
    // the class has no task.
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.note.look(self.inputs.iter().any(|i| cx.is_on(&i.signal)), cx);
        Turn::Sleep
    }
}

impl Lifecycle for DrrSched {
    fn held(&self) -> u64 {
        self.inputs.iter().filter(|i| i.head.is_some()).count() as u64
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        for (i, input) in self.inputs.iter_mut().enumerate() {
            input.signal = cx.upstream(i);
        }
        self.note.initialise(true, cx);
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        for p in self.inputs.iter_mut().filter_map(|i| i.head.take()) {
            cx.drop(p, Reason::Stopped);
        }
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        // If an input no longer exists, its held packet is dropped with the old router.
        for (mine, theirs) in self.inputs.iter_mut().zip(&mut old.inputs) {
            (mine.head, mine.deficit) = (theirs.head.take(), theirs.deficit);
        }
        self.at = if old.at < self.inputs.len() { old.at } else { 0 };
        self.note.look(true, cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};
    use std::collections::VecDeque;

    /// A model of the element that runs the rounds one by one. It has lengths in place of packets.
    struct Model {
        queues: Vec<VecDeque<usize>>,
        deficits: Vec<usize>,
        at: usize,
        quantum: usize,
    }

    impl Model {
        fn pull(&mut self) -> Option<(usize, usize)> {
            if self.queues.iter().all(VecDeque::is_empty) {
                // A pull that finds no packet only resets the credits.
                self.deficits.iter_mut().for_each(|d| *d = 0);
                self.deficits[self.at] = self.quantum;
                return None;
            }
            loop {
                let at = self.at;
                match self.queues[at].front() {
                    None => self.deficits[at] = 0,
                    Some(&l) if l <= self.deficits[at] => {
                        self.deficits[at] -= l;
                        self.queues[at].pop_front();
                        return Some((at, l));
                    }
                    Some(_) => {}
                }
                self.at = (at + 1) % self.queues.len();
                self.deficits[self.at] += self.quantum;
            }
        }
    }

    fn sized(input: usize, length: usize) -> Packet {
        packet(&vec![input as u8; length])
    }
    fn shown(p: &Packet) -> (usize, usize) {
        (usize::from(p.data()[0]), p.len())
    }

    #[test]
    fn any_batch_gives_what_rounds_one_by_one_give() {
        for (quantum, n) in [(1, 1), (7, 2), (500, 3), (64, 32), (1500, 256), (4_000_000_000, 5)] {
            for inputs in 1..5usize {
                let mut random = Random::new(7, "drr");
                let mut kit = Kit::<DrrSched>::with_ports(&quantum.to_string(), inputs, 1).unwrap();
                let (queues, deficits) = (vec![VecDeque::new(); inputs], vec![0; inputs]);
                let mut model = Model { queues, deficits, at: 0, quantum };
                let (mut given, mut taken) = (0, 0);
                for _ in 0..60 {
                    for _ in 0..random.below(14) {
                        let input = random.below(inputs as u64) as usize;
                        let most = [60, 1500][random.below(2) as usize];
                        let length = 1 + random.below(most) as usize;
                        kit.supply(input, sized(input, length));
                        model.queues[input].push_back(length);
                        given += 1;
                    }
                    let want: Vec<_> = std::iter::from_fn(|| model.pull()).take(n).collect();
                    let got: Vec<_> = kit.pull(0, n).iter().map(shown).collect();
                    assert_eq!(got, want, "quantum {quantum}, {inputs} inputs");
                    taken += got.len();
                }
                taken += std::iter::from_fn(|| kit.pull(0, 1).pop()).count();
                assert_eq!(given, taken);
            }
        }
    }

    #[test]
    fn small_packets_come_in_runs_beginning_with_input_one() {
        let mut kit = Kit::<DrrSched>::with_ports("", 2, 1).unwrap();
        (0..24).for_each(|i| kit.supply(i % 2, sized(i % 2, 2)));
        let got: Vec<_> = kit.pull(0, 24).iter().map(|p| p.data()[0]).collect();
        assert_eq!(got, [[1; 12], [0; 12]].concat());
    }

    #[test]
    fn bytes_are_shared_evenly() {
        let mut kit = Kit::<DrrSched>::with_ports("100", 3, 1).unwrap();
        let lengths = [40, 300, 1500];
        let mut bytes = [0; 3];
        for _ in 0..20_000 {
            for (input, &length) in lengths.iter().enumerate() {
                kit.supply(input, sized(input, length));
            }
            let (input, length) = shown(&kit.pull(0, 1)[0]);
            bytes[input] += length;
            assert!(bytes.iter().max().unwrap() - bytes.iter().min().unwrap() <= 1500 + 200, "{bytes:?}");
            // At most one packet of each input is held.
            assert!(kit.element.inputs.iter().filter(|i| i.head.is_some()).count() <= 2);
        }
    }

    #[test]
    fn the_notifier_knows_of_packets_in_hand() {
        let mut kit = Kit::<DrrSched>::with_ports("10", 2, 1).unwrap();
        let on = |kit: &Kit<DrrSched>| kit.note(Capability::EmptyNotifier);
        kit.supply(0, sized(0, 100));
        kit.supply(1, sized(1, 1000));
        assert!(on(&kit) && kit.pull(0, 1).len() == 1);
        kit.with(|_, cx| (2..4).for_each(|n| cx.clear_note(Note::new(n))));
        assert!(on(&kit), "one is in hand");
        assert_eq!((kit.pull(0, 1).len(), kit.pull(0, 1).len()), (1, 0));
        assert!(!on(&kit));
        kit.task();
        assert!(!on(&kit));
        kit.supply(1, sized(1, 9));
        assert_eq!(kit.task().0, Turn::Sleep);
        assert!(on(&kit));
    }

    #[test]
    fn packets_in_hand_are_counted_when_the_router_stops() {
        let mut kit = Kit::<DrrSched>::with_ports("10", 2, 1).unwrap();
        kit.supply(0, sized(0, 100));
        kit.supply(1, sized(1, 1000));
        assert_eq!(kit.pull(0, 1).len(), 1);
        kit.cleanup().unwrap();
        assert_eq!(kit.dropped(Reason::Stopped), 1);
        assert!(kit.pull(0, 9).is_empty());
    }

    #[test]
    fn inputs_that_are_off_are_not_asked_and_empty_packets_pass() {
        let mut kit = Kit::<DrrSched>::with_ports("", 2, 1).unwrap();
        kit.supply(0, sized(0, 1));
        kit.supply(1, packet(&[]));
        kit.with(|_, cx| cx.clear_note(Note::new(2)));
        assert_eq!(kit.pull(0, 9).iter().map(Packet::len).collect::<Vec<_>>(), [0]);
        assert!(Kit::<DrrSched>::with_ports("", 0, 1).unwrap().pull(0, 9).is_empty());
        assert_eq!(Kit::<DrrSched>::with_ports("0", 1, 1).err().unwrap(), ["QUANTUM: must be at least 1"]);
        assert!(Kit::<DrrSched>::with_ports("-5", 1, 1).is_err());
        assert!(Kit::<DrrSched>::with_ports("x", 1, 1).is_err());
    }
}
