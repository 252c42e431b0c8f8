// SPDX-License-Identifier: MIT OR Apache-2.0
//! TimeSortedSched: pulls the oldest packet of all inputs.

use super::own_note::OwnNote;
use castanet_element::prelude::*;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Merges traces by time: each pull gives the packet with the smallest timestamp among the next packets of all inputs.
///
/// The element holds up to BUFFER packets of each input to choose from. If BUFFER is greater than 1, it also sorts
/// packets of one input that are slightly out of order. Of several packets with the same timestamp, the packet of the
/// lowest input goes first. Inputs whose notifiers are off are not pulled from.
///
/// # Ports
/// Inputs 0, 1, ... (pull): packets with timestamps. Output 0 (pull): the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5) -> [0] s :: TimeSortedSched(STOP true) -> Unqueue -> Discard;
/// InfiniteSource(LIMIT 7) -> [1] s;
/// ```
#[derive(Class)]
#[class(ledger(holds))]
#[class(name = "TimeSortedSched", ports = "-/1", processing = "l/l", packets = "any/same", workers = exclusive)]
#[class(takes_state = "the packets at hand, whether all were in order")]
#[class(build, lifecycle, handlers, drops(Stopped), effects(stops), capabilities(EmptyNotifier))]
pub struct TimeSortedSched {
    args: Args,
    inputs: Vec<Input>,
    held: BinaryHeap<Held>,
    entered: u64,
    /// The timestamp of the last packet that left the element.
    last: i64,
    out_of_order: bool,
    stopped: bool,
    /// The element's own notifier. It is on while a notifier upstream is on, and also while the element itself holds
    /// packets.
    note: OwnNote,
}

/// Arguments of TimeSortedSched.
#[derive(Args)]
pub struct Args {
    /// Whether to stop the driver when no input has packets and all notifiers of inputs are off.
    #[arg(keyword, default = false)]
    stop: bool,
    /// How many packets of each input are held; the earliest of all held packets goes next. At least 1.
    #[arg(keyword, default = 1, min = 1)]
    buffer: u32,
}

#[derive(Default)]
struct Input {
    signal: Signal,
    /// The number of packets of this input that the element holds.
    held: u32,
}

/// A packet that the element holds. The packet that leaves next compares as the greatest, because `BinaryHeap` gives
/// the greatest item first.
struct Held {
    time: i64,
    input: usize,
    order: u64,
    packet: Packet,
}

impl Held {
    fn key(&self) -> (i64, usize, u64) {
        (self.time, self.input, self.order)
    }
}
impl Ord for Held {
    fn cmp(&self, other: &Held) -> Ordering {
        other.key().cmp(&self.key())
    }
}
impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Held {}

impl Build for TimeSortedSched {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(TimeSortedSched {
            args,
            inputs: (0..cx.inputs).map(|_| Input::default()).collect(),
            held: BinaryHeap::with_capacity(cx.inputs),
            entered: 0,
            last: i64::MIN,
            out_of_order: false,
            stopped: false,
            note: OwnNote::default(),
        })
    }
}

impl TimeSortedSched {
    fn fill(&mut self, cx: &mut Cx<'_>) {
        for (i, input) in self.inputs.iter_mut().enumerate() {
            while input.held < self.args.buffer
                && cx.is_on(&input.signal)
                && let Some(packet) = cx.pull_one(i)
            {
                input.held += 1;
                self.entered += 1;
                self.held.push(Held { time: packet.timestamp(), input: i, order: self.entered, packet });
            }
        }
    }

    #[cold]
    fn found_empty(&mut self, cx: &mut Cx<'_>) {
        let on = |cx: &Cx<'_>| self.inputs.iter().any(|i| cx.is_on(&i.signal));
        self.note.found_empty(on, cx);
        if self.args.stop && !self.stopped && !on(cx) {
            self.stopped = true;
            cx.stop(1);
        }
    }
}

impl Element for TimeSortedSched {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..max {
            let Some(p) = self.pull_one(0, cx) else { break };
            into.push(p);
        }
    }
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        self.fill(cx);
        let Some(Held { time, input, packet, .. }) = self.held.pop() else {
            self.found_empty(cx);
            return None;
        };
        if let Some(input) = self.inputs.get_mut(input) {
            input.held -= 1;
        }
        self.out_of_order |= time < self.last;
        self.last = time;
        // If a script has kept the router running after a stop, the element requests another stop when packets run out
        // again.
        self.stopped = false;
        Some(packet)
    }
    // When a notifier upstream turns on, it schedules every element that subscribed to it. So `task` is called although
    // the class has no task.
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.note.look(self.inputs.iter().any(|i| cx.is_on(&i.signal)), cx);
        Turn::Sleep
    }
}

#[handlers]
impl TimeSortedSched {
    /// Whether all packets left in the order of their timestamps.
    #[read(checkbox)]
    fn well_ordered(&self) -> bool {
        !self.out_of_order
    }
}

impl Lifecycle for TimeSortedSched {
    fn held(&self) -> u64 {
        self.held.len() as u64
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        for (i, input) in self.inputs.iter_mut().enumerate() {
            input.signal = cx.upstream(i);
        }
        self.note.initialise(true, cx);
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        for held in self.held.drain() {
            cx.drop(held.packet, Reason::Stopped);
        }
        Ok(())
    }
    fn effects(&self, declared: Effects) -> Effects {
        if self.args.stop { declared } else { Effects::empty() }
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        (self.entered, self.last) = (self.entered.max(old.entered), old.last);
        (self.out_of_order, self.stopped) = (old.out_of_order, old.stopped);
        for held in old.held.drain() {
            if let Some(input) = self.inputs.get_mut(held.input) {
                input.held += 1;
            }
            self.held.push(held);
        }
        old.inputs.iter_mut().for_each(|i| i.held = 0);
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

    fn at(time: i64, input: usize) -> Packet {
        let mut p = packet(&[input as u8]);
        p.set_timestamp(time);
        p
    }
    fn shown(packets: &[Packet]) -> Vec<(i64, u8)> {
        packets.iter().map(|p| (p.timestamp(), p.data()[0])).collect()
    }
    /// Turns the notifiers of all inputs off.
    fn off(kit: &mut Kit<TimeSortedSched>, inputs: u32) {
        kit.with(|_, cx| (0..inputs).for_each(|i| cx.clear_note(Note::new(2 + i))));
    }

    #[test]
    fn any_batch_gives_the_least_of_what_is_next() {
        for (buffer, n) in [(1, 1), (1, 2), (2, 3), (5, 32), (1, 256), (1000, 3)] {
            for inputs in 1..4usize {
                let mut random = Random::new(4, "sorted");
                let config = format!("BUFFER {buffer}");
                let mut kit = Kit::<TimeSortedSched>::with_ports(&config, inputs, 1).unwrap();
                let mut queues = vec![VecDeque::new(); inputs];
                let (mut last, mut ordered) = (i64::MIN, true);
                for _ in 0..100 {
                    for _ in 0..random.below(9) {
                        let (input, time) =
                            (random.below(inputs as u64) as usize, random.below(50) as i64 - 9);
                        kit.supply(input, at(time, input));
                        queues[input].push_back(time);
                    }
                    let mut want = Vec::new();
                    while want.len() < n {
                        let heads = queues.iter().enumerate().flat_map(|(input, q)| {
                            q.iter().take(buffer).enumerate().map(move |(place, &time)| (time, input, place))
                        });
                        let Some((time, input, place)) = heads.min() else { break };
                        queues[input].remove(place);
                        want.push((time, input as u8));
                        ordered &= last <= time;
                        last = time;
                    }
                    assert_eq!(shown(&kit.pull(0, n)), want, "buffer {buffer}, {inputs} inputs");
                    assert_eq!(kit.read("well_ordered").unwrap(), ordered.to_string());
                }
            }
        }
    }

    #[test]
    fn stops_when_all_is_at_an_end() {
        for (config, stops) in [("STOP true", [1, 1, 1, 2]), ("", [0; 4])] {
            let mut kit = Kit::<TimeSortedSched>::with_ports(config, 2, 1).unwrap();
            kit.supply(1, at(7, 1));
            kit.supply(0, at(8, 0));
            assert_eq!(shown(&kit.pull(0, 1)), [(7, 1)]);
            assert_eq!(shown(&kit.pull(0, 9)), [(8, 0)]);
            assert_eq!(kit.stops(), 0, "notifiers are on");
            off(&mut kit, 2);
            let mut seen = Vec::new();
            for packets in [0, 0, 1, 1] {
                if packets > 0 && seen.len() == 3 {
                    kit.supply(0, at(9, 0));
                    assert_eq!(kit.pull(0, 1).len(), 1);
                    off(&mut kit, 2);
                }
                assert!(kit.pull(0, 3).is_empty());
                seen.push(kit.stops());
            }
            assert_eq!(seen, stops);
            assert!(!kit.note(Capability::EmptyNotifier));
            kit.supply(0, at(9, 0));
            assert_eq!(kit.task().0, Turn::Sleep);
            assert!(kit.note(Capability::EmptyNotifier));
            assert_eq!(kit.element.effects(Effects::STOPS).is_empty(), stops[0] == 0);
        }
    }

    #[test]
    fn packets_in_hand_count_even_when_notifiers_are_off() {
        let mut kit = Kit::<TimeSortedSched>::with_ports("STOP true, BUFFER 3", 2, 1).unwrap();
        (0..6).for_each(|i| kit.supply(i % 2, at(i as i64, i % 2)));
        assert_eq!(kit.pull(0, 1).len(), 1);
        off(&mut kit, 2);
        assert_eq!(kit.pull(0, 3).len(), 3);
        assert_eq!(kit.stops(), 0);
        assert!(kit.note(Capability::EmptyNotifier));
        kit.cleanup().unwrap();
        assert_eq!(kit.dropped(Reason::Stopped), 2);
        assert!(Kit::<TimeSortedSched>::with_ports("", 0, 1).unwrap().pull(0, 9).is_empty());
        for config in ["BUFFER 0", "BUFFER -1", "1", "STOP x"] {
            assert!(Kit::<TimeSortedSched>::with_ports(config, 1, 1).is_err(), "{config}");
        }
    }
}
