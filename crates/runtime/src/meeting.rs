// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets of several tasks that wait for each other, and go on in the order of their turns.

use castanet_packet::{Batch, Packet};

/// Packets that wait for those of other tasks, in the order of their turns.
pub(crate) struct Meeting {
    pub batch: Batch,
    /// An empty batch, for merging.
    spare: Batch,
}

impl Meeting {
    pub fn new() -> Meeting {
        Meeting { batch: Batch::new(), spare: Batch::new() }
    }
    /// Adds packets. Of packets of the same turn, those that arrive first stay first.
    pub fn add(&mut self, batch: &mut Batch) {
        if !is_sorted(batch.as_slice()) {
            sort(batch.as_mut_slice());
        }
        let Meeting { batch: mine, spare } = self;
        let (last, first) = (mine.as_slice().last(), batch.as_slice().first());
        if last.map(Packet::turn) <= first.map(Packet::turn) || last.is_none() {
            return mine.append(batch);
        }
        let (mut a, mut b) = (mine.drain().peekable(), batch.drain().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let next = if y.turn() < x.turn() { b.next() } else { a.next() };
            spare.extend(next);
        }
        spare.extend(a.chain(b));
        std::mem::swap(mine, spare);
    }
    /// Moves the packets of all turns before turn `end` to `into`, which is empty.
    pub fn take_before(&mut self, end: usize, into: &mut Batch) {
        if self.batch.as_slice().last().is_none_or(|p| usize::from(p.turn()) < end) {
            return into.append(&mut self.batch);
        }
        let n = self.batch.as_slice().partition_point(|p| usize::from(p.turn()) < end);
        into.extend(self.batch.as_mut_vec().drain(..n));
    }
}

/// Whether packets are in the order of their turns.
#[inline]
fn is_sorted(packets: &[Packet]) -> bool {
    let (mut sorted, mut last) = (true, 0);
    for p in packets {
        sorted &= last <= p.turn();
        last = p.turn();
    }
    sorted
}

/// Puts packets in the order of their turns, without memory allocation.
#[cold]
fn sort(packets: &mut [Packet]) {
    for i in 1..packets.len() {
        let Some((p, before)) = packets.get(..=i).and_then(|s| s.split_last()) else { return };
        let to = before.partition_point(|b| b.turn() <= p.turn());
        if let Some(range) = packets.get_mut(to..=i) {
            range.rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A batch of packets, each with a turn and a byte.
    fn batch(packets: &[(u8, u8)]) -> Batch {
        let packet = |&(turn, byte): &(u8, u8)| {
            let mut p = Packet::copy_of(&[byte]).unwrap();
            p.set_turn(turn);
            p
        };
        packets.iter().map(packet).collect()
    }
    fn contents(b: &Batch) -> Vec<(u8, u8)> {
        b.iter().map(|p| (p.turn(), p.data()[0])).collect()
    }

    #[test]
    fn packets_go_on_in_the_order_of_turns_and_arrival() {
        // Compare with a stable sort of all packets in the order of their arrival.
        let mut random = castanet_element::Random::new(5, "meeting");
        for _ in 0..300 {
            let (mut meeting, mut all, mut byte) = (Meeting::new(), Vec::new(), 0u8);
            for _ in 0..random.below(5) {
                let packets: Vec<(u8, u8)> = (0..random.below(12))
                    .map(|_| {
                        byte += 1;
                        (random.below(20) as u8, byte)
                    })
                    .collect();
                let mut arriving = batch(&packets);
                meeting.add(&mut arriving);
                assert!(arriving.is_empty());
                all.extend(packets);
            }
            all.sort_by_key(|p| p.0);
            let end = random.below(25) as usize;
            let (mut early, mut late) = (Batch::new(), Batch::new());
            meeting.take_before(end, &mut early);
            meeting.take_before(usize::MAX, &mut late);
            let n = all.partition_point(|p| usize::from(p.0) < end);
            assert_eq!((contents(&early), contents(&late)), (all[..n].to_vec(), all[n..].to_vec()));
        }
    }
}
