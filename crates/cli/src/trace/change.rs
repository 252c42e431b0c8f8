// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between two steps of a packet.

use super::step::Bytes;
use std::net::Ipv4Addr;
use std::ops::Range;

/// A change of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This many bytes were taken off the front.
    Stripped(u64),
    /// This many bytes were put in front.
    Prepended(u64),
    /// The length changed from the first to the second number of bytes, at the end.
    Length(u64, u64),
    /// Bytes of the data changed, from the first to the second value.
    Bytes(Range<usize>, Vec<u8>, Vec<u8>),
    /// The IP header was marked at this offset, or the mark was removed.
    Header(Option<i64>),
    /// The paint annotation has this value.
    Paint(u8),
    /// The destination address annotation has this value.
    Destination(Ipv4Addr),
    /// Annotation bytes from this offset on have these values.
    Annotation(usize, Vec<u8>),
}

/// The places of annotations that have a name.
const DESTINATION: Range<usize> = 0..4;
const PAINT: usize = 16;

fn byte(bytes: &[u8], i: usize) -> u8 {
    bytes.get(i).copied().unwrap_or(0)
}

/// The ranges of indices below `len` where `differs` holds.
fn ranges(len: usize, differs: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for i in (0..len).filter(|i| differs(*i)) {
        match out.last_mut() {
            Some(last) if last.end == i => last.end = i + 1,
            _ => out.push(i..i + 1),
        }
    }
    out
}

fn slice(bytes: &[u8], range: Range<usize>) -> Vec<u8> {
    range.map(|i| byte(bytes, i)).collect()
}

/// Returns the number of bytes removed from the front of `before`; negative if bytes were prepended. The offset in the buffer
/// alone is not enough, because data moves when the headroom is too small.
fn stripped(before: &Bytes, after: &Bytes) -> i64 {
    let moved = after.start as i64 - before.start as i64;
    let shrunk = before.length as i64 - after.length as i64;
    let fits = |n: i64| {
        let (a, b) = if n >= 0 { (n as usize, 0) } else { (0, n.unsigned_abs() as usize) };
        let (a, b) = (before.data.get(a..).unwrap_or_default(), after.data.get(b..).unwrap_or_default());
        let common = a.len().min(b.len());
        common > 0 && a.iter().zip(b).filter(|(a, b)| a == b).count() * 2 > common
    };
    match moved {
        0 if shrunk == 0 => 0,
        _ if moved == shrunk => moved,
        _ if shrunk != 0 && fits(shrunk) => shrunk,
        _ if fits(0) => 0,
        _ => moved,
    }
}

/// Returns what changed between two steps of a packet.
pub fn changes(before: &Bytes, after: &Bytes) -> Vec<Change> {
    let mut out = Vec::new();
    let front = stripped(before, after);
    match front {
        0 => {}
        n if n > 0 => out.push(Change::Stripped(n as u64)),
        n => out.push(Change::Prepended(n.unsigned_abs())),
    }
    let kept = (before.length as i64 - front).max(0) as u64;
    if kept != after.length {
        out.push(Change::Length(kept, after.length));
    }
    let old = |i: usize| usize::try_from(i as i64 + front).ok().and_then(|i| before.data.get(i)).copied();
    for range in ranges(after.data.len(), |i| old(i).is_some_and(|b| b != byte(&after.data, i))) {
        let was = range.clone().map(|i| old(i).unwrap_or(0)).collect();
        out.push(Change::Bytes(range.clone(), was, slice(&after.data, range)));
    }
    let place = |b: &Bytes| b.network.map(|n| n + b.start as i64);
    let shifted = before.network.map(|n| n - front);
    if shifted != after.network && place(before) != place(after) {
        out.push(Change::Header(after.network));
    }
    let (old, new) = (&before.annotations, &after.annotations);
    for range in ranges(old.len().max(new.len()), |i| byte(old, i) != byte(new, i)) {
        let mut rest = range.clone();
        if range.start < DESTINATION.end {
            let bytes = [0, 1, 2, 3].map(|i| byte(new, i));
            out.push(Change::Destination(Ipv4Addr::from(bytes)));
            rest.start = rest.end.min(DESTINATION.end);
        }
        if rest.contains(&PAINT) && rest.len() == 1 {
            out.push(Change::Paint(byte(new, PAINT)));
        } else if !rest.is_empty() {
            out.push(Change::Annotation(rest.start, slice(new, rest)));
        }
    }
    // The four bytes of an address may have changed in two ranges.
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: u64, data: &[u8]) -> Bytes {
        Bytes { start, length: data.len() as u64, data: data.to_vec(), ..Bytes::default() }
    }

    #[test]
    fn changes_of_the_data_are_found() {
        let before = at(28, &[1, 2, 3, 4, 5, 6]);
        for (after, want) in [
            (before.clone(), vec![]),
            (at(30, &[3, 4, 5, 6]), vec![Change::Stripped(2)]),
            (at(26, &[9, 9, 1, 2, 3, 4, 5, 6]), vec![Change::Prepended(2)]),
            // The buffer had no room in front, so that the data was moved.
            (at(100, &[9, 9, 1, 2, 3, 4, 5, 6]), vec![Change::Prepended(2)]),
            (at(28, &[1, 2, 3, 4]), vec![Change::Length(6, 4)]),
            (at(28, &[1, 2, 3, 4, 5, 6, 0, 0]), vec![Change::Length(6, 8)]),
            (
                at(28, &[1, 8, 9, 4, 5, 7]),
                vec![Change::Bytes(1..3, vec![2, 3], vec![8, 9]), Change::Bytes(5..6, vec![6], vec![7])],
            ),
            (
                at(30, &[3, 0, 5]),
                vec![Change::Stripped(2), Change::Length(4, 3), Change::Bytes(1..2, vec![4], vec![0])],
            ),
        ] {
            assert_eq!(changes(&before, &after), want, "{after:?}");
        }
    }

    #[test]
    fn annotations_have_their_names() {
        let before = at(28, &[1; 20]);
        let with = |network, annotations: &[u8]| Bytes {
            network,
            annotations: annotations.to_vec(),
            ..before.clone()
        };
        assert_eq!(changes(&before, &with(Some(14), &[])), [Change::Header(Some(14))]);
        let mut paint = vec![0; 17];
        paint[16] = 3;
        assert_eq!(changes(&before, &with(None, &paint)), [Change::Paint(3)]);
        let address = with(None, &[10, 0, 0, 7]);
        assert_eq!(changes(&before, &address), [Change::Destination(Ipv4Addr::new(10, 0, 0, 7))]);
        let other = with(None, &[10, 0, 0, 7, 0, 0, 0, 0, 5]);
        assert_eq!(changes(&address, &other), [Change::Annotation(8, vec![5])]);
        // The header stays where it is, whatever is stripped in front of it.
        let marked = with(Some(14), &[]);
        let stripped = Bytes { start: 42, length: 6, network: Some(0), data: vec![1; 6], ..before.clone() };
        assert_eq!(changes(&marked, &stripped), [Change::Stripped(14)]);
    }
}
