// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recovery of several losses in one window, over a path on which only chosen segments are lost.

use super::network::End;
use super::{all_but, has, named, tcp};
use castanet_prolac::load::Extensions;
use castanet_prolac::program::Program;
use std::collections::BTreeMap;

/// The time that a segment takes there and back, in milliseconds.
pub const ROUND_TRIP: u64 = 100;

/// Something that happened to an end.
pub enum Event {
    Sent(usize, Vec<u8>),
    Arrived(usize, Vec<u8>),
    SlowTimeout(usize),
}

/// Two ends, a path between them, and the times of what happened.
pub struct Path<'a> {
    pub ends: [End<'a>; 2],
    pub log: Vec<(u64, Event)>,
    pub now: u64,
    way: BTreeMap<(u64, usize), (usize, Vec<u8>)>,
    count: usize,
}

impl<'a> Path<'a> {
    /// The first end opens the connection. Both have this buffer.
    pub fn new(program: &'a Program, buffer: usize) -> Path<'a> {
        let end = |seqno, ports| {
            let end = End::new(program, seqno, ports, Vec::new());
            end.data.borrow_mut().buffer = Some(buffer);
            end
        };
        let ends = [end(0xffff_c000, [1000, 80]), end(0x7fff_f000, [80, 1000])];
        let mut path = Path { ends, log: Vec::new(), now: 0, way: BTreeMap::new(), count: 0 };
        path.ends[1].tcp("listen");
        path.ends[0].tcp("connect");
        path
    }

    /// Lets ten milliseconds pass. `delays` says when the copies of a segment arrive, after half a round trip or later.
    pub fn step(&mut self, delays: &mut dyn FnMut(usize, &[u8]) -> Vec<u64>) {
        self.now += 10;
        self.ends.iter().for_each(|e| e.data.borrow_mut().clock = self.now);
        while let Some(first) = self.way.first_entry().filter(|f| f.key().0 <= self.now) {
            let (to, segment) = first.remove();
            self.log.push((self.now, Event::Arrived(to, segment.clone())));
            self.ends[to].input(segment, false);
            self.flush(to, delays);
        }
        for end in 0..2 {
            for (due, method) in [(500, "slow-timeout"), (200, "fast-timeout"), (50, "output")] {
                if self.now.is_multiple_of(due) {
                    if due == 500 {
                        self.log.push((self.now, Event::SlowTimeout(end)));
                    }
                    self.ends[end].tcp(method);
                }
            }
            self.flush(end, delays);
        }
    }

    fn flush(&mut self, from: usize, delays: &mut dyn FnMut(usize, &[u8]) -> Vec<u64>) {
        let out = std::mem::take(&mut self.ends[from].data.borrow_mut().out);
        for segment in out {
            self.log.push((self.now, Event::Sent(from, segment.clone())));
            for delay in delays(from, &segment) {
                self.count += 1;
                self.way.insert((self.now + delay, self.count), (1 - from, segment.clone()));
            }
        }
    }

    /// Lets the users read.
    pub fn read(&self) {
        for end in &self.ends {
            let mut d = end.data.borrow_mut();
            let waiting = std::mem::take(&mut d.waiting);
            d.read.extend(waiting);
        }
    }

    /// Whether all has been acknowledged.
    pub fn is_quiet(&mut self) -> bool {
        let all =
            |e: &mut End<'_>| e.data.borrow().send.is_empty() && e.field("snd_una") == e.field("snd_max");
        self.way.is_empty() && self.ends.iter_mut().all(all)
    }
}

pub fn number(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(b[at..at + 4].try_into().unwrap())
}

/// The number of the first byte of data in a segment, and how many there are.
pub fn data_of(b: &[u8]) -> (u32, u32) {
    (number(b, 4), (b.len() - usize::from(b[12] >> 4) * 4) as u32)
}

/// Sends data and loses some of its segments, by the order in which they were sent first. Returns the time from the
/// first segment that was sent again until all that was lost had been acknowledged.
fn recovery(program: &Program, lost: &[usize]) -> u64 {
    let mut path = Path::new(program, 60_000);
    let data: Vec<u8> = (0..100_000u32).map(|i| (i * 7 / 5) as u8).collect();
    path.ends[0].data.borrow_mut().send.extend(&data);
    let (mut first_sent, mut missing, mut again) = (Vec::<(u32, u32)>::new(), Vec::new(), Vec::new());
    let (mut start, mut end) = (None, None);
    for _ in 0..3_000 {
        let now = path.now;
        path.step(&mut |from, segment| {
            let (left, n) = data_of(segment);
            if from == 1 || n == 0 {
                return vec![ROUND_TRIP / 2];
            }
            if first_sent.iter().any(|(l, m)| left.wrapping_sub(*l) < *m) {
                again.push((left, n));
                start.get_or_insert(now);
            } else {
                first_sent.push((left, n));
                if lost.contains(&(first_sent.len() - 1)) {
                    missing.push((left, n));
                    return Vec::new();
                }
            }
            vec![ROUND_TRIP / 2]
        });
        path.read();
        let una = path.ends[0].field("snd_una");
        if missing.len() == lost.len() && missing.iter().all(|(l, _)| una.wrapping_sub(*l) as i32 > 0) {
            end.get_or_insert(path.now);
        }
        if path.is_quiet() && path.now > 1_000 {
            break;
        }
    }
    assert!(path.ends[1].data.borrow().read == data, "{lost:?}");
    missing.sort_unstable();
    let mut resent = again.clone();
    resent.sort_unstable();
    assert_eq!(resent, missing, "sent again and lost, {lost:?}");
    end.unwrap() - start.unwrap()
}

/// RFC 6675: each hole is resent once, and all of them in one round trip. NewReno (RFC 6582) takes a round trip for each.
#[test]
fn several_losses_in_one_window() {
    let newreno =
        [named(&["Fast-Retransmit"]), named(&["Slow-Start", "Fast-Retransmit"]), all_but(&["Sack"])];
    let sack = [
        named(&["Fast-Retransmit", "Sack"]),
        named(&["Slow-Start", "Fast-Retransmit", "Sack"]),
        Extensions::All,
        all_but(&["Timestamps", "Header-Prediction"]),
    ];
    let one_by_one = newreno.iter().map(|e| (e, true)).chain(sack.iter().map(|e| (e, false)));
    for (extensions, one_by_one) in one_by_one {
        let program = tcp(extensions);
        // With delayed acknowledgements the window opens later.
        let first = if has(extensions, "Delay-Ack") { 40 } else { 22 };
        for n in [1, 2, 4, 8] {
            // All losses are in a window of 22 segments.
            for distance in (1..=3).filter(|d| (n - 1) * d < 18) {
                let lost: Vec<usize> = (0..n).map(|i| first + i * distance).collect();
                let time = recovery(&program, &lost);
                println!("{extensions:?} {n} losses, every {distance}: {time} ms");
                let round_trips = if one_by_one { n as u64..n as u64 + 1 } else { 1..2 };
                assert!(round_trips.contains(&(time / ROUND_TRIP)), "{extensions:?} {lost:?}: {time} ms");
            }
        }
    }
}

/// RFC 6675, section 4: lost segments come before new data, also where options make segments smaller.
#[test]
fn holes_are_resent_before_new_data() {
    let time = recovery(&tcp(&Extensions::All), &[22, 23]);
    assert!(time < 2 * ROUND_TRIP, "{time}");
}
