// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces and taps: what they show, and that they change nothing.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_runtime::Router;
use castanet_testkit::{router, simulated};

/// A line of a trace: the packet and its part, the element, the input, the event and its detail.
type Line = (u32, u32, String, String, String, String);

fn trace(r: &mut Router) -> (String, Vec<Line>) {
    let text = r.read(None, "trace", "t 0").unwrap();
    let (head, lines) = text.split_once('\n').unwrap();
    let line = |l: &str| {
        let w: Vec<&str> = l.split('\t').collect();
        (w[0].parse().unwrap(), w[1].parse().unwrap(), w[4].into(), w[5].into(), w[6].into(), w[7].into())
    };
    (head.to_string(), lines.lines().map(line).collect())
}

/// The way of packet `number`: each line as text.
fn way(lines: &[Line], number: u32) -> Vec<String> {
    let of = lines.iter().filter(|l| l.0 == number);
    of.map(|(_, part, element, input, event, detail)| {
        let part = if *part == 0 { String::new() } else { format!("{part}: ") };
        format!("{part}[{input}]{element} {event} {detail}")
    })
    .collect()
}

fn run_traced(text: &str, batch: usize, request: &str) -> (Router, String, Vec<Line>) {
    let mut r = router(text, simulated(batch).0);
    r.write(None, "trace", request).unwrap();
    r.run().unwrap();
    r.ledger().check();
    let (head, lines) = trace(&mut r);
    (r, head, lines)
}

#[test]
fn a_packet_is_followed_from_its_source_to_its_end() {
    let text = "source :: InfiniteSource(LIMIT 100, STOP false, BURST 8) -> a :: Counter -> paint :: Paint(1)
        -> tee :: Tee(2) -> queue :: Queue(200);
        tee[1] -> kinds :: Classifier(0/00, -) -> dropped :: Discard; kinds[1] -> other :: Discard;
        queue -> pulled :: Counter -> unqueue :: Unqueue -> sink :: Discard;
        DriverManager(wait 1, stop);";
    for batch in [1, 32] {
        let (mut r, head, lines) = run_traced(text, batch, "t 3");
        assert_eq!(r.read(r.find("sink"), "count", "").unwrap(), "100");
        assert_eq!(head, "0\t0\t3\t3\t0");
        for n in 1..=3 {
            let want = [
                "[-]source entered 0",
                "[0]a out 0",
                "[0]paint out 0",
                "[0]tee out 0",
                "1: [0]tee made 1",
                "[0]queue held -",
                "1: [0]kinds out 1",
                "1: [0]other ended discarded",
                "[-]queue out 0",
                "[0]pulled out 0",
                "[-]unqueue out 0",
                "[0]sink ended discarded",
            ];
            assert_eq!(way(&lines, n), want, "packet {n} at batch {batch}");
        }
    }
}

#[test]
fn packets_are_chosen_by_a_filter_wherever_their_header_is() {
    // The packets of `s` are pulled from their source.
    let text = "s :: RatedSource(DATA \\<0000 00000000 00000000 0000 0800 4500001c 00000000 40110000 0a000001 0a000002 0007 0009 0008 0000>, RATE 10, LIMIT 5)
            -> strip :: Strip(14) -> u :: Unqueue -> d :: Discard;
        o :: RatedSource(DATA \\<4500001c 00000000 40060000 0a000001 0a000002 0007 0009 0008 0000>, RATE 10, LIMIT 5)
            -> e :: Discard;
        DriverManager(wait 2, stop);";
    let (_, head, lines) = run_traced(text, 32, "t 10 udp && src port 7");
    assert_eq!(head, "0\t0\t5\t10\t0", "five of ten");
    for n in 1..=5 {
        let want = ["[-]s entered 0", "[0]strip out 0", "[-]u out 0", "[0]d ended discarded"];
        assert_eq!(way(&lines, n), want);
    }
}

#[test]
fn drops_have_their_reasons() {
    let text = "s :: InfiniteSource(LIMIT 4, DATA \\<4500>) -> ttl :: CheckIPHeader -> Discard;
        t :: InfiniteSource(LIMIT 4, BURST 4) -> q :: Queue(2);
        u :: InfiniteSource(LIMIT 4, BURST 4) -> front :: FrontDropQueue(2);
        q -> Unqueue(ACTIVE false) -> Discard; front -> Unqueue(ACTIVE false) -> Discard;
        DriverManager(wait 1, stop);";
    let (r, head, lines) = run_traced(text, 1, "t 100");
    let events = |element: &str| -> Vec<String> {
        lines.iter().filter(|l| l.2 == element).map(|l| format!("{} {}", l.4, l.5)).collect()
    };
    assert_eq!(head.split('\t').nth(2), Some("12"));
    assert_eq!(events("ttl"), ["dropped too-short"; 4]);
    assert_eq!(events("q"), ["held -", "held -", "dropped queue-full", "dropped queue-full"]);
    drop(r);
    let front = events("front");
    assert_eq!(front.iter().filter(|e| e.starts_with("dropped")).count(), 2, "{front:?}");
}

#[test]
fn packets_are_followed_across_workers_and_locks() {
    // Two workers push to the queriers, which are locked, and a third one pulls from the queue.
    let text = "a :: InfiniteSource(LIMIT 40, ACTIVE false, DATA \\<4500>) -> [0] q :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1) -> lost :: Discard;
        b :: InfiniteSource(LIMIT 40, ACTIVE false) -> red :: RED(1000, 2000, 0.1) -> queue :: ThreadSafeQueue -> u :: Unqueue -> sink :: Discard;
        c :: InfiniteSource(LIMIT 40, ACTIVE false) -> red; Idle -> [1] q; d :: InfiniteSource(LIMIT 40, ACTIVE false) -> [0] q;
        StaticThreadSched(a 0, b 0, c 1, d 1, u 2);
        DriverManager(wait 0.05, write a.active true, write b.active true, write c.active true, write d.active true, wait 0.3, stop);";
    let mut r = router(text, castanet_testkit::real(3).0);
    r.write(None, "trace", "t 1000").unwrap();
    r.run().unwrap();
    r.ledger().check();
    let (head, lines) = trace(&mut r);
    assert_eq!(head.split('\t').nth(2), Some("160"));
    let count = |element: &str, event: &str| lines.iter().filter(|l| l.2 == element && l.4 == event).count();
    assert_eq!((count("red", "out"), count("queue", "out"), count("u", "out")), (80, 80, 80));
    // A packet that the third worker has pulled and ended before the push returns is no longer followed then.
    assert!(count("queue", "held") <= 80);
    assert_eq!(count("sink", "ended"), 80);
    assert_eq!(count("q", "dropped"), 80, "packets that are no IP packets");
}

fn tapped(text: &str, request: &str) -> Vec<String> {
    let mut r = router(text, simulated(32).0);
    r.write(None, "tap", request).unwrap();
    r.run().unwrap();
    let text = r.read(None, "tap", "x 0").unwrap();
    text.lines().skip(1).map(|l| l.split('\t').skip(3).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn taps_show_the_packets_of_a_port() {
    let text = "s :: InfiniteSource(DATA \\<010203>, LIMIT 3) -> a :: Counter -> kinds :: Classifier(0/01, -)
            -> strip :: Strip(1) -> q :: Queue -> after :: Counter -> u :: Unqueue -> d :: Discard;
        kinds[1] -> Discard; DriverManager(wait 1, stop);";
    let (whole, cut) = (vec!["3 010203"; 3], vec!["2 0203"; 3]);
    for (point, want) in [
        ("s", &whole),
        ("a[0]", &whole),
        ("[0]kinds", &whole),
        ("kinds", &whole),
        ("[0]strip", &whole),
        ("strip", &cut),
        ("[0]q", &cut),
        ("q", &cut),
        ("[0]u", &cut),
        ("u[0]", &cut),
        ("[0]d", &cut),
    ] {
        assert_eq!(tapped(text, &format!("x {point} 0 0")), *want, "{point}");
    }
    assert!(tapped(text, "x kinds[1] 0 0").is_empty());
    assert!(tapped(text, "x a 0 0 tcp").is_empty());
    assert_eq!(tapped(text, "x a 2 1"), ["3 01"; 2], "two packets, a byte each");
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let mut r = router("s :: InfiniteSource(LIMIT 1) -> d :: Discard;", simulated(1).0);
    for (handler, value, why) in [
        ("trace", "", "expected a number"),
        ("trace", "t many", "'many'"),
        ("trace", "t 5 frob 7", "frob"),
        ("tap", "x nowhere 0 0", "no element named 'nowhere'"),
        ("tap", "x s[1] 0 0", "'s' has no output 1"),
        ("tap", "x [1]d 0 0", "'d' has no input 1"),
        ("tap", "x [d 0 0", "expected ELEMENT[OUTPUT]"),
        ("tap", "x s few 0", "'few'"),
    ] {
        let error = r.write(None, handler, value).unwrap_err().to_string();
        assert!(error.contains(why), "{handler} {value}: {error}");
    }
    assert!(r.read(None, "trace", "t 0").unwrap_err().to_string().contains("no trace 't'"));
    assert!(r.read(None, "tap", "x 0").unwrap_err().to_string().contains("no tap 'x'"));
    for i in 0..16 {
        r.write(None, "tap", &format!("x{i} s 0 0")).unwrap();
    }
    assert!(r.write(None, "tap", "more s 0 0").unwrap_err().to_string().contains("16 clients"));
    r.write(None, "tap", "x3 end").unwrap();
    r.write(None, "tap", "more s 0 0").unwrap();
}
