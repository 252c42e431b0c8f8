// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit congestion notification (RFC 3168) and the congestion window.

use super::network::{End, MARKED};
use super::recovery::data_of;
use super::states::{ISS, happen, segment};
use super::{all_but, has, named, tcp};
use castanet_prolac::load::Extensions;

const MSS: u32 = 1000;
const ECE: u8 = 64;
const CWR: u8 = 128;

/// The number of a segment, and whether it has CWR and may be marked.
type Sent = (u32, bool, bool);

/// Lets things happen, and returns the segments with data that were sent. Numbers count from the SYN.
fn sent(end: &mut End<'_>, events: &[&str]) -> Vec<Sent> {
    end.take_out();
    for event in events {
        happen(end, event);
    }
    let (out, capable) = end.take_out();
    let data = out.iter().zip(capable).filter(|(s, _)| data_of(s).1 > 0);
    data.map(|(s, capable)| (data_of(s).0.wrapping_sub(ISS), s[13] & CWR != 0, capable)).collect()
}

/// The window in segments, in thousandths.
fn window(end: &mut End<'_>) -> u32 {
    end.field("cwnd") * 1000 / MSS
}

/// A connection with a window of ten segments, of which all are in flight: the first one has number 6001.
fn full(end: &mut End<'_>) {
    end.tcp_with("use-ecn", 0);
    for event in ["listen", "SYN+ECE+CWR 0 mss1000", "ACK 1 1 w60000", "write 30000"] {
        happen(end, event);
    }
    for ack in 1..=6 {
        happen(end, &format!("ACK 1 {} w60000", ack * MSS + 1));
    }
    assert_eq!((window(end), end.field("snd_una").wrapping_sub(ISS)), (10_000, 6001));
}

/// Section 6.1.2: marks reduce the window once for all that was in flight, and it does not grow by their acknowledgements.
#[test]
fn marks_reduce_the_window_once() {
    for (extensions, half) in [
        (named(&["Ecn", "Slow-Start"]), 5_000),
        (named(&["Ecn", "Slow-Start", "Fast-Retransmit", "Sack", "Header-Prediction"]), 5_000),
        (all_but(&["Timestamps"]), 7_000),
    ] {
        let program = tcp(&extensions);
        let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
        full(&mut end);
        // A stretch acknowledgement: the reduction counts from what was in flight before.
        sent(&mut end, &["ACK+ECE 1 9001 w60000"]);
        assert_eq!(window(&mut end), half, "{extensions:?}");
        // The window has room again. The first new segment has CWR.
        let room = sent(&mut end, &["ACK+ECE 1 13001 w60000"]);
        assert_eq!(window(&mut end), half);
        let first = room.first().copied();
        assert_eq!(first, Some((16001, true, true)), "{extensions:?} {room:?}");
        assert!(room[1..].iter().all(|(_, cwr, capable)| !cwr && *capable), "{room:?}");
        let rest = sent(&mut end, &["ACK+ECE 1 16001 w60000"]);
        assert!(rest.iter().all(|(_, cwr, _)| !cwr) && window(&mut end) == half, "{rest:?}");
        // Without a mark it grows, from there on; a mark of what was sent later reduces it again.
        sent(&mut end, &["ACK 1 17001 w60000"]);
        let grown = window(&mut end);
        assert!(grown > half && grown < half + 500, "{extensions:?} {grown}");
        sent(&mut end, &["ACK+ECE 1 18001 w60000"]);
        let window = window(&mut end);
        assert!(window < half && window >= half / 2, "{window}");
        assert!(sent(&mut end, &["ACK 1 21001 w60000"])[0].1, "another CWR");
    }
}

/// Section 6.1.2: a loss in the same window does not reduce it once more, but a timeout does. 6.1.5: what is sent again may not be marked.
#[test]
fn losses_and_marks_of_one_window_count_once() {
    for extensions in [named(&["Ecn", "Slow-Start", "Fast-Retransmit"]), all_but(&["Timestamps", "Sack"])] {
        let program = tcp(&extensions);
        let cubic = has(&extensions, "Cubic");
        let half = if cubic { 7_000 } else { 5_000 };
        let three = ["ACK 1 7001 w60000"; 3];
        let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
        full(&mut end);
        sent(&mut end, &["ACK+ECE 1 7001 w60000"]);
        let again = sent(&mut end, &three);
        assert_eq!(again.first(), Some(&(7001, false, false)), "{extensions:?} {again:?}");
        assert_eq!(end.field("ssthresh") * 1000 / MSS, half);
        let all = end.field("snd_max").wrapping_sub(ISS);
        sent(&mut end, &[&format!("ACK 1 {all} w60000")]);
        assert_eq!(window(&mut end), half);

        // The loss comes first.
        let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
        full(&mut end);
        sent(&mut end, &["ACK 1 7001 w60000"]);
        sent(&mut end, &three);
        let threshold = end.field("ssthresh");
        sent(&mut end, &["ACK+ECE 1 12001 w60000", "ACK+ECE 1 17001 w60000"]);
        assert_eq!(end.field("ssthresh"), threshold);

        // A timeout after a mark.
        let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
        full(&mut end);
        let again = sent(&mut end, &["ACK+ECE 1 7001 w60000", "wait 3"]);
        assert!(again.contains(&(7001, false, false)) && window(&mut end) == 1_000, "{again:?}");
        assert!(end.field("ssthresh") < half * MSS / 1000);
    }
}

/// RFC 3168, section 6.1.3: a segment that the host has joined of several, of which one was marked, counts as marked; so does each one with
/// header prediction on.
#[test]
fn each_mark_is_echoed() {
    for extensions in [named(&["Ecn"]), named(&["Ecn", "Header-Prediction", "Delay-Ack"]), Extensions::All] {
        let program = tcp(&extensions);
        let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
        end.tcp_with("use-ecn", 0);
        for event in ["listen", "SYN+ECE+CWR 0", "ACK 1 1"] {
            happen(&mut end, event);
        }
        let mut echo = |text: &str, notes: u64| {
            end.take_out();
            end.input_noted(segment(text), notes);
            end.tcp("fast-timeout");
            let (out, _) = end.take_out();
            assert_eq!(out.len(), 1, "{text}");
            out[0][13] & ECE != 0
        };
        assert!(!echo("ACK 1 1 +100", 0));
        assert!(echo("ACK 101 1 +3000", MARKED));
        assert!(echo("ACK 3101 1 +100", 0));
        assert!(!echo("ACK+CWR 3201 1 +100", 0));
    }
}
