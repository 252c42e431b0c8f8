// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sequence numbers of TCP connections in which text was replaced by longer or shorter text.

use castanet_wire::TcpHeader;
use castanet_wire::checksum;
use castanet_wire::tcp::flag;

/// By how much sequence numbers of one direction are shifted: before a place in the stream, and from there on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// The first sequence number, as the sender counts, that the later shift holds for; none: nothing is shifted.
    from: Option<u32>,
    before: u32,
    after: u32,
}

/// Whether sequence number `a` is `b` or later (RFC 9293 section 3.4).
fn reaches(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) < 1 << 31
}

impl Shift {
    /// From `from` on everything moves by `by` more. The same place again is the same text sent again, and one that lies
    /// before it is too old to matter.
    pub fn add(&mut self, from: u32, by: u32) {
        if self.from.is_some_and(|old| reaches(old, from)) {
            return;
        }
        *self = Shift { from: Some(from), before: self.after, after: self.after.wrapping_add(by) };
    }
    /// The sequence number that the receiver sees.
    pub fn forth(&self, seq: u32) -> u32 {
        match self.from {
            Some(from) if reaches(seq, from) => seq.wrapping_add(self.after),
            _ => seq.wrapping_add(self.before),
        }
    }
    /// The sequence number of the sender for one that the receiver saw. Inside the replaced text, that its end is not there.
    pub fn back(&self, seq: u32) -> u32 {
        let Some(from) = self.from else { return seq };
        if reaches(seq, from.wrapping_add(self.after)) {
            return seq.wrapping_sub(self.after);
        }
        let seq = seq.wrapping_sub(self.before);
        if reaches(seq, from) { from.wrapping_sub(1) } else { seq }
    }
}

/// Shifts the numbers of a segment: its own by `own`, those that acknowledge by `other`. Selective acknowledgements
/// (RFC 2018) count too; nothing happens to numbers that are not in the packet.
pub fn apply(segment: &mut [u8], own: &Shift, other: &Shift) {
    let Some(h) = TcpHeader::from_prefix_mut(segment) else { return };
    let seq = h.seq.get();
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

/// Mends the checksum for four bytes that changed at any place, odd ones too.
fn mend(segment: &mut [u8], at: usize, old: [u8; 4], new: [u8; 4]) {
    let swap = |b: [u8; 4]| {
        let n = u32::from_be_bytes(b);
        // At an odd place bytes are in the other half of their words (RFC 1071 section 2(B)).
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
        apply(&mut b, &Shift::default(), &shift);
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
            apply(&mut b, &Shift::default(), &shift);
            assert!(tcp::checksum_ok(1, 2, &b), "{padding:?}");
            let at = 20 + padding.len() + 2;
            assert_eq!(b[8..12], 143u32.to_be_bytes());
            assert_eq!(b[at..at + 8], [193u32.to_be_bytes(), 293u32.to_be_bytes()].concat());
            for n in 0..b.len() {
                apply(&mut b[..n].to_vec(), &shift, &shift);
            }
        }
    }
}
