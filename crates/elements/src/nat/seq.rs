// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shifts the sequence numbers of TCP connections in which text was replaced by longer or shorter text.

use castanet_wire::TcpHeader;
use castanet_wire::checksum;
use castanet_wire::tcp::flag;
use std::collections::VecDeque;

/// The maximum number of places where the shift changes, for one direction. A TCP window contains far fewer, because
/// FTP clients wait for the reply to each command.
const MOST: usize = 64;
/// When the sequence numbers of the sender are this many bytes beyond a place where the shift changes, the place is
/// discarded. No TCP window is larger than this (RFC 7323 section 2.3), so no segment from before the place can still
/// arrive. Besides, sequence numbers can be compared only within half their range.
const FAR: u32 = 1 << 30;

/// How the sequence numbers of one direction are shifted, with the places in the stream where the shift
/// changes.
///
/// A place is kept as long as segments around it may be retransmitted, so that retransmissions are shifted as
/// the original segments were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// The shift before the first place.
    before: u32,
    /// Places (sequence numbers of the sender) in stream order, each with the shift that applies from there
    /// on.
    places: VecDeque<(u32, u32)>,
}

/// Whether sequence number `a` is `b` or later (RFC 9293 section 3.4).
fn reaches(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) < 1 << 31
}

impl Shift {
    /// Adds `by` to the shift of sequence number `from` and of all later numbers. If `from` is not beyond the last
    /// place where the shift changes, the segment is a retransmission, and the shifts stay as they are.
    pub fn add(&mut self, from: u32, by: u32) {
        let last = self.places.back();
        if last.is_some_and(|l| reaches(l.0, from)) {
            return;
        }
        let after = last.map_or(self.before, |l| l.1).wrapping_add(by);
        if self.places.len() >= MOST {
            self.forget_first();
        }
        self.places.push_back((from, after));
    }
    fn forget_first(&mut self) {
        if let Some((_, after)) = self.places.pop_front() {
            self.before = after;
        }
    }
    /// Discards the places (where the shift changes) that are at least [`FAR`] bytes before `seq`.
    fn pass(&mut self, seq: u32) {
        while self.places.front().is_some_and(|p| (FAR..1 << 31).contains(&seq.wrapping_sub(p.0))) {
            self.forget_first();
        }
    }
    /// Returns the sequence number that the receiver sees for `seq`, a sequence number of the sender.
    pub fn forth(&self, seq: u32) -> u32 {
        let place = self.places.iter().rev().find(|p| reaches(seq, p.0));
        seq.wrapping_add(place.map_or(self.before, |p| p.1))
    }
    /// Returns the sender's sequence number for `seq`, a number that the receiver saw. If `seq` is inside text that was
    /// lengthened, the result is at most the number of the last byte of the original text. So acknowledging a part of
    /// the new text does not acknowledge the end of the original text.
    pub fn back(&self, seq: u32) -> u32 {
        let mut next = None;
        let mut shift = self.before;
        for &(from, after) in self.places.iter().rev() {
            if reaches(seq, from.wrapping_add(after)) {
                shift = after;
                break;
            }
            next = Some(from);
        }
        let seq = seq.wrapping_sub(shift);
        match next {
            Some(next) if reaches(seq, next) => next.wrapping_sub(1),
            _ => seq,
        }
    }
}

/// Shifts the numbers of a segment: the sequence number by `own`, and acknowledgement numbers by `other`,
/// including selective acknowledgements (RFC 2018). Numbers that a truncated packet lacks are skipped.
pub fn apply(segment: &mut [u8], own: &mut Shift, other: &Shift) {
    let Some(h) = TcpHeader::from_prefix_mut(segment) else { return };
    let seq = h.seq.get();
    own.pass(seq);
    checksum::update_field32(&mut h.checksum, seq, own.forth(seq));
    h.seq.set(own.forth(seq));
    if !h.has(flag::ACK) {
        return;
    }
    let ack = h.ack.get();
    checksum::update_field32(&mut h.checksum, ack, other.back(ack));
    h.ack.set(other.back(ack));
    let end = h.header_len();
    if end > TcpHeader::LEN && end <= segment.len() {
        selective(segment, end, other);
    }
}

/// The option kind of selective acknowledgements.
const SACK: u8 = 5;

#[cold]
fn selective(segment: &mut [u8], end: usize, other: &Shift) {
    let mut at = TcpHeader::LEN;
    while at < end {
        let length = match segment.get(at..end) {
            Some([0, ..]) | None => break,
            Some([1, ..]) => 1,
            Some([_, n, ..]) if *n >= 2 => usize::from(*n),
            Some(_) => break,
        };
        if segment.get(at) == Some(&SACK) {
            let mut edge = at + 2;
            while edge + 4 <= (at + length).min(end) {
                if let Some(&b) = segment.get(edge..).and_then(|s| s.first_chunk::<4>()) {
                    let new = other.back(u32::from_be_bytes(b)).to_be_bytes();
                    if let Some(place) = segment.get_mut(edge..edge + 4) {
                        place.copy_from_slice(&new);
                    }
                    mend(segment, edge, b, new);
                }
                edge += 4;
            }
        }
        at += length;
    }
}

/// Updates the checksum for four bytes that changed at any offset, even or odd.
fn mend(segment: &mut [u8], at: usize, old: [u8; 4], new: [u8; 4]) {
    let swap = |b: [u8; 4]| {
        let n = u32::from_be_bytes(b);
        // At an odd offset each byte is in the other half of its 16-bit word (RFC 1071 section 2(B)).
        if at % 2 == 1 { n.rotate_left(8) } else { n }
    };
    if let Some(h) = TcpHeader::from_prefix_mut(segment) {
        checksum::update_field32(&mut h.checksum, swap(old), swap(new));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_wire::tcp;

    #[test]
    fn there_and_back() {
        for start in [1000u32, u32::MAX - 5] {
            let mut s = Shift::default();
            assert_eq!((s.forth(start), s.back(start)), (start, start));
            // 10 bytes became 13 at `start`, and later 10 became 8 at `start` + 20.
            s.add(start.wrapping_add(10), 3);
            s.add(start.wrapping_add(10), 3);
            assert_eq!(s.forth(start), start, "the text itself starts where it did");
            assert_eq!(s.forth(start.wrapping_add(10)), start.wrapping_add(13));
            assert_eq!(s.back(start.wrapping_add(13)), start.wrapping_add(10));
            for inside in 10..13 {
                assert_eq!(s.back(start.wrapping_add(inside)), start.wrapping_add(9), "{inside}");
            }
            assert_eq!(s.back(start.wrapping_add(5)), start.wrapping_add(5));
            s.add(start.wrapping_add(30), 2u32.wrapping_neg());
            s.add(start.wrapping_add(10), 99);
            for n in 10..30 {
                assert_eq!(s.forth(start.wrapping_add(n)), start.wrapping_add(n + 3));
            }
            assert_eq!(s.forth(start.wrapping_add(30)), start.wrapping_add(31));
            assert_eq!(s.back(start.wrapping_add(31)), start.wrapping_add(30));
        }
    }

    /// Each shift applies to the text between its place and the next one, however often that text is sent
    /// again.
    #[test]
    fn retransmissions_come_out_as_the_originals() {
        for start in [1000u32, u32::MAX - 50] {
            let place = |n: u32| start.wrapping_add(n);
            let mut s = Shift::default();
            // One command becomes 2 bytes longer, one 5 bytes longer, and one 4 bytes shorter.
            for (n, by) in [(10, 2), (30, 5), (50, 4u32.wrapping_neg())] {
                s.add(place(n), by);
            }
            for (n, by) in [(0, 0), (9, 0), (10, 2), (29, 2), (30, 7), (49, 7), (50, 3), (999, 3)] {
                assert_eq!(s.forth(place(n)), place(n + by), "{n}");
                // The last 4 bytes of the third command have no counterpart in what the receiver saw.
                let heard = if n == 49 { 53 } else { n };
                assert_eq!(s.back(place(n + by)), place(heard), "{n}");
            }
            // For the receiver the second command is 5 bytes longer. For numbers inside these bytes, `back` returns the
            // number of the last byte of the original command.
            assert_eq!(s.back(place(34)), place(29));
            s.pass(place(10 + FAR - 1));
            assert_eq!(s.forth(place(9)), place(9), "not far enough");
            s.pass(place(30 + FAR));
            assert_eq!(
                (s.forth(place(9)), s.places.len()),
                (place(9 + 7), 1),
                "what is far behind is forgotten"
            );
            s.pass(place(49));
            assert_eq!(s.places.len(), 1, "an old segment forgets nothing");
            s.pass(place(50 + FAR));
            let far = place(3 << 30);
            assert_eq!(
                (s.forth(far), s.back(far)),
                (far.wrapping_add(3), far.wrapping_sub(3)),
                "beyond half of all numbers"
            );
        }
    }

    #[test]
    fn the_number_of_shifts_is_bounded() {
        let mut s = Shift::default();
        for n in 0..1000 {
            s.add(n * 20, 1);
        }
        assert_eq!(s.places.len(), MOST);
        assert_eq!((s.forth(999 * 20), s.back(999 * 20 + 1000)), (999 * 20 + 1000, 999 * 20));
        assert_eq!(s.forth(999 * 20 - 1), 999 * 20 - 1 + 999);
    }

    #[test]
    fn options_behind_selective_acknowledgements_stay() {
        let mut shift = Shift::default();
        shift.add(100, 7);
        // Timestamps (RFC 7323 section 3.2), whose values look like sequence numbers.
        let stamps = [8, 10, 0, 0, 1, 44, 0, 0, 1, 144];
        let mut b = vec![0u8; 20];
        (b[12], b[13]) = (10 << 4, flag::ACK);
        b.extend([SACK, 10]);
        b.extend([200u32.to_be_bytes(), 300u32.to_be_bytes()].concat());
        b.extend(stamps);
        tcp::set_checksum(1, 2, &mut b);
        apply(&mut b, &mut Shift::default(), &shift);
        assert!(tcp::checksum_ok(1, 2, &b));
        assert_eq!(b[22..30], [193u32.to_be_bytes(), 293u32.to_be_bytes()].concat());
        assert_eq!(b[30..], stamps);
    }

    #[test]
    fn selective_acknowledgements_and_checksum() {
        let mut shift = Shift::default();
        shift.add(100, 7);
        for padding in [vec![], vec![1u8], vec![1, 1], vec![8, 10, 0, 0, 0, 1, 0, 0, 0, 2]] {
            let mut options = padding.clone();
            options.extend([SACK, 10]);
            options.extend(200u32.to_be_bytes());
            options.extend(300u32.to_be_bytes());
            while options.len() % 4 != 0 {
                options.push(0);
            }
            let mut b = vec![0u8; 20];
            b[12] = (((20 + options.len()) / 4) << 4) as u8;
            b[13] = flag::ACK;
            b[8..12].copy_from_slice(&150u32.to_be_bytes());
            b.extend(&options);
            tcp::set_checksum(1, 2, &mut b);
            apply(&mut b, &mut Shift::default(), &shift);
            assert!(tcp::checksum_ok(1, 2, &b), "{padding:?}");
            let at = 20 + padding.len() + 2;
            assert_eq!(b[8..12], 143u32.to_be_bytes());
            assert_eq!(b[at..at + 8], [193u32.to_be_bytes(), 293u32.to_be_bytes()].concat());
            for n in 0..b.len() {
                apply(&mut b[..n].to_vec(), &mut shift.clone(), &shift);
            }
        }
    }
}
