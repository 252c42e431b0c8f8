// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion control of RFC 5681, as it is without CUBIC. The window is compared with the formulas after each segment.

use super::network::End;
use super::recovery::data_of;
use super::states::{ISS, happen};
use super::{named, tcp};
use castanet_prolac::program::Program;

const SMSS: u32 = 1_000;

fn program() -> Program {
    tcp(&named(&["Slow-Start", "Fast-Retransmit"]))
}

/// A sender that always has data, and the acknowledgements that it gets. Numbers count from the SYN.
struct Sender<'a> {
    end: End<'a>,
    acked: u32,
}

impl<'a> Sender<'a> {
    fn new(program: &'a Program) -> Sender<'a> {
        let mut end = End::new(program, ISS, [1000, 80], Vec::new());
        for event in ["listen", &format!("SYN 0 mss{SMSS}"), "ACK 1 1 w65535", "write 900000"] {
            happen(&mut end, event);
        }
        Sender { end, acked: 1 }
    }
    fn cwnd(&mut self) -> u32 {
        self.end.field("cwnd")
    }
    fn ssthresh(&mut self) -> u32 {
        self.end.field("ssthresh")
    }
    fn in_flight(&mut self) -> u32 {
        self.end.field("snd_max").wrapping_sub(self.end.field("snd_una"))
    }
    /// The peer acknowledges so many bytes more.
    fn acknowledge(&mut self, bytes: u32) {
        self.acked += bytes;
        happen(&mut self.end, &format!("ACK 1 {} w65535", self.acked));
    }
    /// Takes the first number and the length of each segment with data that was sent.
    fn sent(&mut self) -> Vec<(u32, u32)> {
        let (segments, _) = self.end.take_out();
        let data = segments.iter().map(|s| data_of(s)).filter(|(_, n)| *n > 0);
        data.map(|(left, n)| (left.wrapping_sub(ISS), n)).collect()
    }
    /// Lets time pass until something is sent again. Returns it.
    fn time_out(&mut self) -> Vec<(u32, u32)> {
        self.sent();
        for _ in 0..200 {
            self.end.tcp("slow-timeout");
            let sent = self.sent();
            if !sent.is_empty() {
                return sent;
            }
        }
        panic!("nothing is sent again");
    }
    /// Acknowledges everything that is in flight, segment by segment: a round trip.
    fn round_trip(&mut self) {
        for _ in 0..self.in_flight() / SMSS {
            self.acknowledge(SMSS);
        }
    }
}

/// Section 3.1, equation (2): each acknowledgement lets the window grow by what it acknowledges, but by a segment at most. So
/// it doubles in a round trip if each segment is acknowledged.
#[test]
fn slow_start() {
    let program = program();
    let mut s = Sender::new(&program);
    assert_eq!((s.cwnd(), s.in_flight()), (4 * SMSS, 4 * SMSS));
    for (acknowledged, growth) in [(SMSS, SMSS), (1, 1), (SMSS / 2, SMSS / 2), (2 * SMSS, SMSS)] {
        let before = s.cwnd();
        s.acknowledge(acknowledged);
        assert_eq!(s.cwnd(), before + growth, "{acknowledged} bytes");
    }
    let mut s = Sender::new(&program);
    for round_trips in 1..4 {
        s.round_trip();
        assert_eq!((s.cwnd(), s.in_flight()), (SMSS << (2 + round_trips), SMSS << (2 + round_trips)));
    }
}

/// Section 3.1: above the threshold each acknowledgement adds SMSS * SMSS / cwnd, equation (3), which is a segment in a round trip.
#[test]
fn congestion_avoidance() {
    let program = program();
    let mut s = Sender::new(&program);
    (0..2).for_each(|_| s.round_trip());
    s.time_out();
    // Slow start up to the threshold, and until everything was sent again.
    while s.cwnd() < s.ssthresh() || s.end.field("snd_next") != s.end.field("snd_max") {
        s.acknowledge(SMSS);
    }
    let first = s.cwnd();
    for round_trips in 1..25 {
        for _ in 0..s.in_flight() / SMSS {
            let before = s.cwnd();
            s.acknowledge(SMSS);
            assert_eq!(s.cwnd(), before + SMSS * SMSS / before);
        }
        // A little less than a segment, because the window grows meanwhile.
        let growth = s.cwnd() - first;
        assert!(
            (round_trips * 8 / 10 * SMSS..=round_trips * SMSS).contains(&growth),
            "{growth} {round_trips}"
        );
        assert!(s.in_flight() + SMSS > s.cwnd() && s.in_flight() <= s.cwnd(), "the window is used");
    }
}

/// Section 3.1, equation (4): a timeout sets the threshold to half of what is in flight, but to two segments at least, and the
/// window to one segment, the loss window. Further timeouts do not lower the threshold.
#[test]
fn timeouts() {
    let program = program();
    for round_trips in 0..4 {
        let mut s = Sender::new(&program);
        (0..round_trips).for_each(|_| s.round_trip());
        let (in_flight, first) = (s.in_flight(), s.acked);
        for _ in 0..3 {
            assert_eq!(s.time_out(), [(first, SMSS)]);
            assert_eq!((s.cwnd(), s.ssthresh()), (SMSS, in_flight / 2));
        }
        // Slow start up to the threshold.
        s.acknowledge(SMSS);
        assert_eq!(s.cwnd(), 2 * SMSS);
        assert_eq!(s.sent().len(), 2);
    }
    // With one segment in flight, half of it is less than two.
    let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
    for event in ["listen", &format!("SYN 0 mss{SMSS}"), "ACK 1 1 w65535", "write 1000"] {
        happen(&mut end, event);
    }
    let mut s = Sender { end, acked: 1 };
    s.time_out();
    assert_eq!((s.cwnd(), s.ssthresh()), (SMSS, 2 * SMSS));
}

/// Section 3.2: the third duplicate acknowledgement halves the threshold as a timeout does, and the window is the threshold and three
/// segments; each further one adds a segment, and the acknowledgement of new data takes the window back to the threshold. What limited
/// transmit has sent does not count as in flight.
#[test]
fn fast_recovery() {
    let program = program();
    for round_trips in 0..4 {
        let mut s = Sender::new(&program);
        (0..round_trips).for_each(|_| s.round_trip());
        s.sent();
        let (in_flight, window, first) = (s.in_flight(), s.cwnd(), s.acked);
        for _ in 0..2 {
            s.acknowledge(0);
            assert_eq!((s.cwnd(), s.sent().len()), (window, 1));
        }
        s.acknowledge(0);
        let threshold = (in_flight / 2).max(2 * SMSS);
        assert_eq!((s.ssthresh(), s.cwnd()), (threshold, threshold + 3 * SMSS));
        assert_eq!(s.sent()[0], (first, SMSS));
        for further in 1..4 {
            s.acknowledge(0);
            assert_eq!(s.cwnd(), threshold + (3 + further) * SMSS);
        }
        // All that was sent before the loss was noticed.
        s.acknowledge(in_flight + 2 * SMSS);
        assert_eq!((s.ssthresh(), s.cwnd()), (threshold, threshold));
    }
}

/// Section 4.1, the smaller window after a silence, needs a clock. The host of Cubic has one, so only that extension has this rule.
#[test]
fn a_silence_does_not_count_without_a_clock() {
    for (extensions, window) in [(&["Slow-Start"][..], 8 * SMSS), (&["Slow-Start", "Cubic"], 4 * SMSS)] {
        let program = tcp(&named(extensions));
        let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
        for event in ["listen", &format!("SYN 0 mss{SMSS}"), "ACK 1 1 w65535", "write 4000"] {
            happen(&mut end, event);
        }
        let mut s = Sender { end, acked: 1 };
        s.round_trip();
        assert_eq!(s.cwnd(), 8 * SMSS);
        s.end.data.borrow_mut().clock = 60_000;
        happen(&mut s.end, "wait 60");
        happen(&mut s.end, "write 400000");
        assert_eq!((s.cwnd(), s.in_flight()), (window, window), "{extensions:?}");
    }
}
