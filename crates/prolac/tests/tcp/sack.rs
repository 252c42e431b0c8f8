// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selective acknowledgements, compared with slow and obvious models: sets of bytes.

use super::network::End;
use super::recovery::{Event, Path, data_of, number};
use super::states::{ISS, happen};
use super::{all_but, named, tcp};
use castanet_prolac::load::Extensions;
use std::collections::BTreeSet;

/// The blocks of a segment.
fn blocks(b: &[u8]) -> Vec<(u32, u32)> {
    let mut list = &b[20..usize::from(b[12] >> 4) * 4];
    while let [kind, rest @ ..] = list {
        match kind {
            1 => list = rest,
            5 => {
                return list[2..usize::from(rest[0])]
                    .chunks(8)
                    .map(|c| (number(c, 0), number(c, 4)))
                    .collect();
            }
            _ => list = &list[usize::from(rest[0])..],
        }
    }
    Vec::new()
}

/// Ranges of numbers in a set.
fn runs(numbers: &BTreeSet<u32>) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for n in numbers {
        match runs.last_mut() {
            Some(last) if last.1 == *n => last.1 += 1,
            _ => runs.push((*n, n + 1)),
        }
    }
    runs
}

/// Numbers count from the SYN of their sender.
#[derive(Default)]
struct Model {
    /// The numbers that have arrived, and the data that came last.
    here: BTreeSet<u32>,
    latest: Option<u32>,
    /// The numbers that the other end has reported, its acknowledgement, and the end of the data that was sent.
    there: BTreeSet<u32>,
    una: u32,
    max: u32,
    timeout: bool,
    /// The timestamp to echo, and the last acknowledgement that was sent.
    recent: Option<u32>,
    acked: u32,
}

impl Model {
    /// Whether the timestamp of a segment is older than the one to echo (RFC 7323, sections 4.3 and 5.3).
    fn is_old(&mut self, b: &[u8], bases: [u32; 2]) -> bool {
        if b[13] & 2 != 0 || b.get(20..24) != Some(&[1, 1, 8, 10]) {
            return false;
        }
        let (value, first) = (number(b, 24), number(b, 4).wrapping_sub(bases[1]));
        let is_old = self.recent.is_some_and(|r| (value.wrapping_sub(r) as i32) < 0);
        if !is_old && first <= self.acked.max(1) {
            self.recent = Some(value);
        }
        is_old
    }
    fn arrives(&mut self, b: &[u8], bases: [u32; 2]) {
        if self.is_old(b, bases) {
            return;
        }
        let (left, n) = data_of(b);
        let n = n + u32::from(b[13] & 1) + u32::from(b[13] & 2) / 2;
        let left = left.wrapping_sub(bases[1]);
        self.latest = (n > 0).then_some(left).or(self.latest);
        self.here.extend(left..left + n);
        self.una = self.una.max(number(b, 8).wrapping_sub(bases[0]));
        for (l, r) in blocks(b) {
            self.there.extend(l.wrapping_sub(bases[0])..r.wrapping_sub(bases[0]));
        }
        self.there.retain(|n| *n > self.una);
        self.timeout = false;
    }

    /// Returns the number of blocks in the segment.
    fn sends(&mut self, b: &[u8], bases: [u32; 2], with_timestamps: bool) -> usize {
        // Nothing is resent that the other end has, unless it is resent after a timeout.
        let (left, n) = data_of(b);
        let left = left.wrapping_sub(bases[0]);
        if n > 0 && left < self.max && self.timeout {
            self.there.clear();
        }
        assert!(self.there.range(left..left + n).next().is_none(), "{left} + {n}: {:?}", self.there);
        let ackno = number(b, 8).wrapping_sub(bases[1]);
        self.acked = ackno;
        if n > 0 && left < self.max {
            // It may have been sent while the segment that arrived was still looked at.
            return 0;
        }
        self.max = self.max.max(left + n);
        // RFC 2018, section 4: the run of the latest segment, then other runs, as many as there is room for.
        let above: BTreeSet<u32> = self.here.range(ackno..).copied().collect();
        let runs = runs(&above);
        let shown: Vec<(u32, u32)> =
            blocks(b).iter().map(|(l, r)| (l.wrapping_sub(bases[1]), r.wrapping_sub(bases[1]))).collect();
        assert_eq!(shown.len(), runs.len().min(if with_timestamps { 3 } else { 4 }), "{shown:?} of {runs:?}");
        assert!(shown.iter().all(|r| runs.contains(r)), "{shown:?} of {runs:?}");
        assert_eq!(shown.iter().collect::<BTreeSet<_>>().len(), shown.len(), "{shown:?}");
        if let (Some((l, r)), Some(latest)) = (shown.first(), self.latest.filter(|l| *l > ackno)) {
            assert!((*l..*r).contains(&latest), "{shown:?} without {latest}");
        }
        shown.len()
    }
}

/// Reported blocks and retransmissions, over a network with faults.
#[test]
fn blocks_are_those_of_a_model() {
    let sets = [named(&["Fast-Retransmit", "Sack"]), all_but(&["Timestamps"]), Extensions::All];
    for (extensions, with_timestamps) in sets.iter().zip([false, false, true]) {
        let program = tcp(extensions);
        let mut most = 0;
        for seed in 0..20u64 {
            let mut random = seed * 7 + 1;
            let mut path = Path::new(&program, 25_000);
            let data: Vec<u8> = (0..70_000u32).map(|i| (i * 5 / 3) as u8).collect();
            for end in &path.ends[..=(seed % 2) as usize] {
                end.data.borrow_mut().send.extend(&data);
            }
            for _ in 0..60_000 {
                path.step(&mut |_, _| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let n = (random >> 33) as u32;
                    let delay = 50 + u64::from(n / 100 % 4 * (n / 400 % 3) * 10);
                    match n % 100 {
                        0..20 => Vec::new(),
                        20..23 => vec![delay, 90],
                        _ => vec![delay],
                    }
                });
                path.read();
                if path.is_quiet() && path.now > 1_000 {
                    break;
                }
            }
            assert!(path.is_quiet() && path.ends[1].data.borrow().read == data, "{seed}");
            let bases = [0, 1].map(|i| path.ends[i].field("iss"));
            let mut models = [Model::default(), Model::default()];
            for (_, event) in &path.log {
                match event {
                    Event::SlowTimeout(end) => models[*end].timeout = true,
                    Event::Arrived(to, b) => models[*to].arrives(b, [bases[*to], bases[1 - *to]]),
                    Event::Sent(_, b) if b[13] & 2 != 0 => {}
                    Event::Sent(from, b) => {
                        let bases = [bases[*from], bases[1 - *from]];
                        most = most.max(models[*from].sends(b, bases, with_timestamps));
                    }
                }
            }
        }
        assert_eq!(most, if with_timestamps { 3 } else { 4 });
    }
}

const MSS: u32 = 536;

/// The scoreboard of RFC 6675, section 4, byte by byte.
struct Scoreboard {
    sacked: BTreeSet<u32>,
    una: u32,
    max: u32,
}

impl Scoreboard {
    fn is_lost(&self, n: u32) -> bool {
        let above: BTreeSet<u32> = self.sacked.range(n..).copied().collect();
        above.len() as u32 > 2 * MSS || runs(&above).len() >= 3
    }

    fn pipe(&self, resent: u32) -> u32 {
        // The answer is the same within a hole.
        let holes: BTreeSet<u32> = (self.una..self.max).filter(|n| !self.sacked.contains(n)).collect();
        let count = |(l, r): (u32, u32)| {
            let lost = self.is_lost(l);
            (l..r).map(|n| u32::from(!lost) + u32::from(lost && n < resent)).sum::<u32>()
        };
        runs(&holes).into_iter().map(count).sum()
    }

    /// The segments that are resent where the window is this, the first one of them at `resent`.
    fn resends(&self, mut resent: u32, window: u32, nothing_new: bool) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        let mut pipe = self.pipe(resent);
        while let Some(l) = (resent..self.max).find(|n| !self.sacked.contains(n)) {
            let next = self.sacked.range(l..).next().copied();
            if l > self.una && (next.is_none() || !(self.is_lost(l) || nothing_new) || pipe + MSS > window) {
                break;
            }
            let r = next.unwrap_or(self.max).min(l + MSS);
            out.push((l, r - l));
            pipe += if self.is_lost(l) { r - l } else { 0 };
            resent = r;
        }
        out
    }
}

/// Random blocks: what has left the network, what counts as lost, and what is resent.
#[test]
fn the_scoreboard_is_that_of_a_model() {
    let program = tcp(&named(&["Slow-Start", "Fast-Retransmit", "Sack"]));
    let mut random = 1u64;
    let mut next = |n: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as u32 % n
    };
    let (mut resent, mut lost) = (0, 0);
    for _ in 0..150 {
        let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
        for event in ["listen", "SYN 0 sackok", "ACK 1 1", "write 9000"] {
            happen(&mut end, event);
        }
        let offset = |n: u32| n.wrapping_sub(ISS);
        // The window opens until all that is left is in flight.
        for _ in 0..1 + next(3) {
            let all = offset(end.field("snd_max"));
            happen(&mut end, &format!("ACK 1 {all}"));
        }
        if next(2) == 0 {
            happen(&mut end, "write 9000");
        }
        let [una, max] = ["snd_una", "snd_max"].map(|f| offset(end.field(f)));
        let mut board = Scoreboard { sacked: BTreeSet::new(), una, max };
        for _ in 0..12 {
            let from = una + next(max - una);
            let (l, r) = match next(4) {
                0 => (next(10_000), next(12_000)),
                1 => (from, from + 1 + next(20)),
                _ => (una + (from - una) / MSS * MSS, una + (from - una) / MSS * MSS + MSS),
            };
            if una < l && l < r && r <= board.max {
                board.sacked.extend(l..r);
            }
            let before = end.ask("Sack.TCB", "resent-up-to", &[]);
            let was_recovering = end.field("recovering") != 0;
            end.data.borrow_mut().out.clear();
            happen(&mut end, &format!("ACK 1 {una} sack{l}:{r}"));
            let sent: Vec<(u32, u32)> = end.data.borrow().out.iter().map(|b| data_of(b)).collect();
            let again: Vec<(u32, u32)> = sent
                .into_iter()
                .map(|(l, n)| (offset(l), n))
                .filter(|(l, n)| *n > 0 && *l < board.max)
                .collect();
            let recovering = end.field("recovering") != 0;
            if recovering {
                let start = if was_recovering { offset(before) } else { una };
                let in_flight = board.max - una;
                let nothing_new = end.data.borrow().send.len() as u32 == in_flight || in_flight >= 8_000;
                let window = end.field("cwnd");
                assert_eq!(window, end.field("ssthresh"), "RFC 6675, section 5, step 4.2");
                let want = board.resends(start, window, nothing_new);
                assert_eq!(again, want, "{l}-{r} after {start}");
            } else {
                assert!(again.is_empty() && !board.is_lost(una));
            }
            resent += again.len();
            board.max = offset(end.field("snd_max"));
            let upto = offset(end.ask("Sack.TCB", "resent-up-to", &[]));
            let left = board.max - una - board.pipe(upto);
            assert_eq!(end.ask("Sack.TCB", "left-network", &[]), left);
            for n in (una..board.max).step_by(97).filter(|n| !board.sacked.contains(n)) {
                let is = end.ask("Sack.TCB", "is-lost", &[ISS.wrapping_add(n)]) != 0;
                lost += usize::from(is);
                assert_eq!(is, board.is_lost(n), "{n}");
            }
        }
    }
    assert!(resent > 150 && lost > 1_000, "{resent} {lost}");
}

/// However small the blocks are that a peer sends, the ranges are bounded.
#[test]
fn ranges_are_bounded() {
    let program = tcp(&Extensions::All);
    let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
    for event in ["listen", "SYN 0 sackok", "ACK 1 1", "write 2000"] {
        happen(&mut end, event);
    }
    for i in 0..200 {
        happen(&mut end, &format!("ACK 1 1 sack{}:{}", 10 + 2 * i, 11 + 2 * i));
    }
    assert_eq!(end.ask("Sack.TCB", "is-lost", &[ISS.wrapping_add(10 + 2 * 61)]), 0);
    assert_eq!(end.ask("Sack.TCB", "is-lost", &[ISS.wrapping_add(10 + 2 * 60)]), 1);
    assert_eq!(end.live("Range"), 64);
    happen(&mut end, "ACK 1 21 sack30:31");
    assert_eq!(end.live("Range"), 58);
    happen(&mut end, "abort");
    assert_eq!(end.live("Range"), 0);
}

/// After a timeout, what the peer has does not make the window larger, which begins with one segment.
#[test]
fn slow_start_after_a_timeout() {
    let program = tcp(&named(&["Slow-Start", "Fast-Retransmit", "Sack"]));
    let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
    for event in ["listen", "SYN 0 sackok", "ACK 1 1", "write 4288"] {
        happen(&mut end, event);
    }
    for i in 1..=8 {
        happen(&mut end, &format!("ACK 1 {}", 1 + i * MSS));
    }
    let mut sent = |event: &str| {
        end.data.borrow_mut().out.clear();
        happen(&mut end, event);
        let d = end.data.borrow();
        d.out.iter().map(|b| data_of(b).0.wrapping_sub(ISS)).collect::<Vec<_>>()
    };
    assert_eq!(sent("write 4288"), [4289, 4825, 5361, 5897, 6433, 6969, 7505, 8041]);
    assert_eq!(sent("wait 2"), [4289]);
    assert_eq!(sent("ACK 1 4825 sack8041:8577"), [4825, 5361]);
}
