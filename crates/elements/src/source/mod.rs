// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources: classes that make packets from text or memory, at rates or intervals.

use castanet_element::prelude::*;
use castanet_element::{ClassDef, element};
use castanet_tables::TokenBucket;

mod bursts;
mod end;
pub mod fast_udp_source;
pub mod infinite_source;
pub mod mem_source;
mod periodic_timer;
pub mod random_source;
pub mod rated_source;
mod sent_count;
mod source_output;
pub mod timed_source;

pub(crate) use end::Ended;
pub(crate) use periodic_timer::PeriodicTimer;
pub(crate) use sent_count::is_reached;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<fast_udp_source::FastUdpSource>(),
    element::<infinite_source::InfiniteSource>(),
    element::<mem_source::MemSource>(),
    element::<random_source::RandomSource>(),
    element::<rated_source::RatedSource>(),
    element::<timed_source::TimedSource>(),
];

/// The default data of packets.
const TEXT: &[u8; 69] = b"A castanet clicks; these are the sixty-nine bytes it sends by default";

/// The size of a line, in bytes. Data is copied line by line, with a few wide stores for each line.
const LINE: usize = 64;
/// The maximum number of lines (of `LINE` bytes) that are copied one by one. Longer data is copied by
/// `copy_from_slice`, or packets share its buffer.
const FEW: usize = 4;

/// Makes a packet with the first `len` bytes of `line`. This is the fast path: most data fits into `LINE` bytes, and
/// the number of bytes to copy is known at compile time.
#[inline(always)]
fn copy_line(line: &[u8; LINE], len: usize, headroom: usize) -> Option<Packet> {
    let mut p = Packet::with_headroom(headroom, LINE)?;
    fill_line(&mut p, line, len);
    Some(p)
}

/// Copies `line` into a packet that is `LINE` bytes long, and cuts the packet to `len` bytes.
#[inline(always)]
fn fill_line(p: &mut Packet, line: &[u8; LINE], len: usize) {
    if let Some(to) = p.data_mut().first_chunk_mut() {
        *to = *line;
    }
    p.truncate(len);
}

/// Makes a packet with the first `len` bytes of `lines`.
#[inline(never)]
fn copy_lines(lines: &[[u8; LINE]], len: usize, headroom: usize) -> Option<Packet> {
    let room = if lines.len() > FEW { len } else { lines.len() * LINE };
    let mut p = Packet::with_headroom(headroom, room)?;
    let data = p.data_mut();
    if lines.len() > FEW {
        // This succeeds: the packet has `len` bytes, and the lines hold at least as many.
        if let Some(from) = lines.as_flattened().get(..data.len()) {
            data.copy_from_slice(from);
        }
    } else {
        for (to, from) in data.as_chunks_mut::<LINE>().0.iter_mut().zip(lines) {
            *to = *from;
        }
        p.truncate(len);
    }
    Some(p)
}

/// Appends data to lines, padded with zeros. Returns the number of lines added.
fn append_lines(data: &[u8], lines: &mut Vec<[u8; LINE]>) -> usize {
    let before = lines.len();
    for piece in data.chunks(LINE) {
        let mut line = [0; LINE];
        for (to, from) in line.iter_mut().zip(piece) {
            *to = *from;
        }
        lines.push(line);
    }
    lines.len() - before
}

/// The packet that a source sends repeatedly.
struct Prototype {
    /// The data that the packet was made from.
    data: Vec<u8>,
    length: i32,
    lines: Vec<[u8; LINE]>,
    len: usize,
    headroom: usize,
    /// For long data, the packet whose buffer all other packets share. The sending worker makes it for the first send.
    shared: Option<Packet>,
}

impl Prototype {
    /// Makes a prototype from this data. If `length` is not negative, the data is repeated or cut to `length` bytes.
    ///
    /// # Errors
    /// When a packet cannot be that long.
    fn new(data: &[u8], length: i32, headroom: usize) -> Result<Prototype, ValueError> {
        let (name, len) = match usize::try_from(length) {
            Ok(len) => ("LENGTH", len),
            Err(_) => ("DATA", data.len()),
        };
        let most = castanet_packet::MAX_LENGTH.saturating_sub(headroom);
        if len > most {
            return Err(format!("{name}: at most {most} bytes fit into a packet, not {len}").into());
        }
        let sent: Vec<u8> = match data {
            [] => vec![0; len],
            _ => data.iter().copied().cycle().take(len).collect(),
        };
        let mut lines = Vec::new();
        append_lines(&sent, &mut lines);
        Ok(Prototype { data: data.to_vec(), length, lines, len, headroom, shared: None })
    }

    /// Changes data, length or headroom. If a packet cannot be that long, nothing changes, and `data` and
    /// `length` are set back to the old values.
    fn change(&mut self, data: &mut Data, length: &mut i32, headroom: usize) -> Result<(), ValueError> {
        match Prototype::new(&data.0, *length, headroom) {
            Ok(new) => {
                *self = new;
                Ok(())
            }
            Err(e) => {
                (data.0, *length) = (self.data.clone(), self.length);
                Err(e)
            }
        }
    }

    /// Returns a packet to send; `None` if no buffer is free.
    #[inline]
    fn packet(&mut self) -> Option<Packet> {
        if let [line] = &self.lines[..] {
            return copy_line(line, self.len, self.headroom);
        }
        if self.lines.len() <= FEW {
            return copy_lines(&self.lines, self.len, self.headroom);
        }
        self.share()
    }
    #[inline(never)]
    fn share(&mut self) -> Option<Packet> {
        if self.shared.is_none() {
            self.shared = copy_lines(&self.lines, self.len, self.headroom);
        }
        self.shared.as_mut()?.share()
    }
}

/// Paces packets at a rate, with timers that expire on whole milliseconds.
pub(crate) struct Pace {
    bucket: TokenBucket,
    /// The bucket in its initial state. Two paces have the same rate and burst if their initial buckets are equal.
    new: TokenBucket,
    /// When the packet that the timer waits for is due, in nanoseconds.
    due: i64,
}

const JIFFY: i64 = 1_000_000;

impl Pace {
    pub(crate) fn new(bucket: TokenBucket) -> Pace {
        Pace { bucket, new: bucket, due: i64::MIN }
    }
    /// The pace of a source that sends `rate` packets per second.
    fn of_rate(rate: u32) -> Pace {
        Pace::new(TokenBucket::for_rated_source(rate.into()))
    }
    /// Changes the rate of a source to `rate` packets per second.
    fn change_rate(&mut self, rate: u32, now: i64) {
        self.change(TokenBucket::for_rated_source(rate.into()), now);
    }
    /// If the next packet may be sent now, returns the time at which it was due. If that time was two milliseconds ago
    /// or earlier, returns `now` in its place. If the packet must wait, the error is the time for which to set the
    /// timer, or `None` if no packet may ever be sent.
    ///
    /// The timer may expire later than the packet was due. Pass the returned time to [`Pace::went`], so that tokens
    /// which arrive between the two times are not lost to a full bucket.
    pub(crate) fn ready(&mut self, now: i64) -> Result<i64, Option<i64>> {
        let late = now.saturating_sub(self.due);
        let at = if (0..2 * JIFFY).contains(&late) { self.due } else { now };
        match self.bucket.time_until(1, at) {
            Some(0) => Ok(at),
            Some(ns) => {
                self.due = at.saturating_add_unsigned(ns);
                if self.due <= now {
                    return Ok(self.due);
                }
                Err(Some(self.due.saturating_add((JIFFY - self.due.rem_euclid(JIFFY)) % JIFFY)))
            }
            None => Err(None),
        }
    }
    /// Like `ready`. If the packet must wait, sets timer 0 of the element and returns `None`.
    pub(crate) fn ready_or_set_timer(&mut self, now: i64, cx: &mut Cx<'_>) -> Option<i64> {
        let ready = self.ready(now);
        if let Err(Some(timer)) = ready {
            cx.set_timer(0, timer);
        }
        ready.ok()
    }
    /// Takes a token for a packet that was sent at `at`, the time that `ready` returned.
    pub(crate) fn went(&mut self, at: i64) {
        self.paid(1, at);
    }
    /// Like `went`, but the packet costs `tokens` tokens. If the bucket has fewer tokens, it owes the rest.
    pub(crate) fn paid(&mut self, tokens: u64, at: i64) {
        self.bucket.remove(tokens, at);
    }
    /// Continues from the state of an old pace (hot swap). If rate or burst differ, the new bucket gets at most as
    /// many tokens as the old bucket has.
    pub(crate) fn go_on_from(&mut self, old: &mut Pace, now: i64) {
        if self.new == old.new {
            (self.bucket, self.due) = (old.bucket, old.due);
        } else {
            let bucket = std::mem::replace(&mut self.bucket, old.bucket);
            self.change(bucket, now);
        }
    }
    /// Replaces the bucket. The new bucket starts with at most as many tokens as the old one has now.
    pub(crate) fn change(&mut self, bucket: TokenBucket, now: i64) {
        let before = self.bucket.available(now);
        *self = Pace::new(bucket);
        let surplus = self.bucket.available(now).saturating_sub(before);
        self.bucket.remove(surplus, now);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn prototypes_of_every_length() {
        for len in (0..600).chain([2000, 2020, 2021, 9000]) {
            let data: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            let mut proto = Prototype::new(&data, -1, 28).unwrap();
            for _ in 0..2 {
                let p = proto.packet().unwrap();
                assert_eq!((p.data(), p.headroom(), p.timestamp()), (&data[..], 28, 0));
            }
            let cut = Prototype::new(&data, 5, 0).unwrap().packet().unwrap();
            let want: Vec<u8> = if len == 0 { vec![0; 5] } else { (0..5).map(|i| data[i % len]).collect() };
            assert_eq!(cut.data(), want);
        }
        assert_eq!(Prototype::new(b"abc", 8, 28).unwrap().packet().unwrap().data(), b"abcabcab");
    }

    #[test]
    fn every_prototype_fits_into_a_packet() {
        let most = castanet_packet::MAX_LENGTH as i32;
        for headroom in [0, 28, 100, castanet_packet::MAX_HEADROOM as usize] {
            let fits = most - headroom as i32;
            assert_eq!(Prototype::new(b"x", fits, headroom).unwrap().packet().unwrap().len(), fits as usize);
            for length in [0, 1, 64, 65, 256, 257] {
                assert!(Prototype::new(b"x", length, headroom).unwrap().packet().is_some());
            }
            let error = |r: Result<Prototype, ValueError>| r.err().unwrap().to_string();
            let long = error(Prototype::new(b"x", fits + 1, headroom));
            assert_eq!(long, format!("LENGTH: at most {fits} bytes fit into a packet, not {}", fits + 1));
            let data = vec![1; fits as usize + 1];
            assert!(error(Prototype::new(&data, -1, headroom)).starts_with("DATA: at most"));
            assert!(Prototype::new(&data, 9, headroom).is_ok(), "the rest of the data is not used");
        }
        assert!(Prototype::new(b"x", i32::MAX, 0).is_err());
    }

    #[test]
    fn the_text_is_text() {
        assert!(TEXT.iter().all(|b| b.is_ascii_graphic() || *b == b' '));
    }

    #[test]
    fn paces_keep_the_rate_in_the_long_run() {
        for (rate, capacity) in [(1, 1), (5, 1), (7, 2), (333, 1), (10_000, 200)] {
            let mut pace = Pace::new(TokenBucket::new(rate, capacity));
            let (mut now, mut went) = (3, 0);
            while now < 10_000_000_000 {
                match pace.ready(now) {
                    Ok(at) => {
                        assert!(at <= now);
                        pace.went(at);
                        went += 1;
                    }
                    Err(at) => now = at.unwrap() + 1,
                }
            }
            // Packets that were due in the last millisecond may still wait for the timer.
            let most = rate * 10 + capacity;
            assert!((most - rate / 1000 - 2..=most).contains(&went), "{went} at {rate}");
        }
        assert_eq!(Pace::new(TokenBucket::new(0, 0)).ready(i64::MAX), Err(None));
        let mut pace = Pace::new(TokenBucket::new(1, 5));
        pace.change(TokenBucket::new(100, 9), 7);
        assert_eq!(pace.bucket.available(7), 5);
    }
}
