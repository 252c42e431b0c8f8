// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use crate::aspl::collect::Collect;
use crate::fig8::{self, Results, Row, Spread};
use crate::frames::{Traffic, frames};
use crate::instructions::Run;
use crate::monolith::{Counts, Monolith};
use crate::path::Mode;
use crate::{path, report};
use castanet_element::prelude::*;
use castanet_element::{Clock, element};
use castanet_io::CaptureReader;
use std::collections::BTreeSet;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |s, b| format!("{s}{b:02x}"))
}

fn trace(interface: usize) -> Vec<Vec<u8>> {
    let file = format!("{}/../conf/traces/ip-router-eth{interface}.pcap", env!("CARGO_MANIFEST_DIR"));
    let mut reader = CaptureReader::open(file).unwrap();
    let mut all = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        all.push(frame.data.to_vec());
    }
    all
}

/// The next hops that frames of the trace may be sent to, as interface and address: the gateways, and all
/// destinations on the two networks.
fn neighbours(frames: &[Vec<u8>]) -> BTreeSet<(usize, u32)> {
    let mut all = BTreeSet::new();
    for (i, gateways) in path::GATEWAYS.into_iter().enumerate() {
        all.extend(gateways.map(|g| (i, g)));
    }
    for f in frames.iter().filter(|f| f.len() >= 34) {
        let dst = u32::from_be_bytes([f[30], f[31], f[32], f[33]]);
        match f[30] {
            1 => all.insert((0, dst)),
            2 => all.insert((1, dst)),
            _ => false,
        };
    }
    all
}

/// Whether a frame is left out of the comparison. This is so for ICMP errors, because the monolith only counts them,
/// and for ARP frames, because the monolith sends them at other times than the configuration.
fn is_own(frame: &str) -> bool {
    let ours = path::ADDRESS.map(|a| hex(&a.to_be_bytes()));
    let from = frame.get(52..60).unwrap_or_default();
    let icmp_error = frame.get(46..48) == Some("01") && ours.iter().any(|a| a == from);
    frame.get(24..28) == Some("0806") || icmp_error
}

/// The frames that the configuration sends on both interfaces for a trace.
fn by_configuration(interface: usize, frames: &[Vec<u8>], batch: usize) -> [Vec<String>; 2] {
    let file = format!("{}/../conf/traces/ip-router-eth{interface}.pcap", env!("CARGO_MANIFEST_DIR"));
    let text = path::PATH
        .replace("elementclass Sink { input -> Discard; }", "elementclass Sink { input -> Collect; }");
    assert_ne!(text, path::PATH);
    let mut defines = path::defines(Traffic::One, batch, 0);
    for (name, value) in &mut defines {
        match name.as_str() {
            "LIMIT" => *value = frames.len().to_string(),
            name if name == format!("FRAMES{interface}") => *value = format!("FILE {file}"),
            _ => {}
        }
    }
    // The other source sends nothing. The source `after` keeps the router running after the end of the trace,
    // so that the queues drain.
    let other = format!("source{} :: MemSource(", 1 - interface);
    let text = text.replace(&other, &format!("{other}ACTIVE false, "))
        + "after :: MemSource(LIMIT 5000, BURST 1, STOP true) -> Discard; Rounds(after, ROUNDS 1);";
    let clock = Clock::simulated(0);
    let mut router =
        path::router(&text, &defines, Mode { batch, optimize: true }, &[element::<Collect>()], clock)
            .unwrap_or_else(|e| panic!("{e}"));
    for (i, address) in neighbours(frames) {
        path::insert(&mut router, i, address).unwrap();
    }
    router.run().unwrap();
    assert_eq!(router.waiting(), 0);
    ["out0", "out1"].map(|out| {
        let queue = router.find(&out.replace("out", "queue"));
        assert_eq!(router.read(queue, "length", "").unwrap(), "0", "all is sent");
        assert_eq!(router.read(queue, "drops", "").unwrap(), "0");
        let collect = (0..100).map(|i| router.find(&format!("{out}/Collect@{i}"))).find(Option::is_some);
        let sent = router.read(collect.flatten(), "frames", "").unwrap();
        sent.lines().filter(|l| !is_own(l)).map(str::to_string).collect()
    })
}

/// The frames that the monolith sends.
fn by_monolith(interface: usize, frames: &[Vec<u8>], batch: usize) -> ([Vec<String>; 2], Counts) {
    let mut all: [&[Vec<u8>]; 2] = [&[], &[]];
    all[interface] = frames;
    let mut m = Monolith::new(all, false, [1, 2]);
    for (i, address) in neighbours(frames) {
        m.learn(i, address, path::ether(i, address));
    }
    let mut sent = [Vec::new(), Vec::new()];
    let mut left = frames.len();
    while left > 0 {
        let n = left.min(batch);
        m.receive(interface, n);
        left -= n;
        for (out, sent) in sent.iter_mut().enumerate() {
            m.send(out, usize::MAX, |p| sent.push(hex(p.data())));
        }
    }
    (sent.map(|s| s.into_iter().filter(|f| !is_own(f)).collect()), m.counts())
}

#[test]
fn the_monolith_sends_what_the_configuration_sends() {
    for interface in 0..2 {
        let frames = trace(interface);
        for batch in [1, 32] {
            let theirs = by_configuration(interface, &frames, batch);
            let (ours, counts) = by_monolith(interface, &frames, batch);
            for (out, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
                for (n, (t, o)) in theirs.iter().zip(ours).enumerate() {
                    assert_eq!(t, o, "frame {n} from eth{interface} to eth{out}, batch {batch}");
                }
                assert_eq!(theirs.len(), ours.len(), "from eth{interface} to eth{out}, batch {batch}");
            }
            // The trace contains every kind of packet.
            let c = counts;
            let kinds = [c.answered, c.learned, c.other, c.bad, c.host, c.bad_options, c.expired, c.too_big];
            assert!(c.queued > 500 && kinds.iter().all(|n| *n > 0) && c.overflowed == 0, "{c:?}");
        }
    }
}

#[test]
fn all_frames_of_the_patterns_are_ordinary() {
    for traffic in Traffic::ALL {
        let all = [frames(traffic, 0), frames(traffic, 1)];
        assert!(all.iter().flatten().all(|f| (60..=64).contains(&f.len())));
        for batch in [1, 32, 128] {
            let random = traffic == Traffic::Four;
            let mut m = Monolith::new([&all[0], &all[1]], random, traffic.colors());
            for _ in 0..100 {
                m.turn(batch);
            }
            let queued = 200 * batch as u64;
            assert_eq!(
                (m.counts().queued, m.counts().overflowed),
                (queued - m.counts().overflowed, m.counts().overflowed)
            );
            let rest = Counts { queued: 0, overflowed: 0, ..m.counts() };
            assert_eq!(rest, Counts::default(), "{traffic}");
        }
    }
}

#[test]
fn the_configuration_forwards_every_frame_of_the_patterns() {
    for traffic in Traffic::ALL {
        let mut router =
            fig8::router("source0+source1 monolith", traffic, Mode { batch: 32, optimize: true }, 2)
                .unwrap_or_else(|e| panic!("{e}"));
        router.run().unwrap();
        let drops: Vec<_> =
            router.drops().into_iter().filter(|((_, r), _)| *r != Reason::Discarded).collect();
        assert_eq!(drops, [], "{traffic}");
        let times = router.read(router.find("rounds"), "times", "").unwrap();
        assert_eq!(times.lines().count(), 2);
        assert!(times.lines().all(|l| l.split(' ').count() == 2));
    }
}

#[test]
fn spreads() {
    assert_eq!(Spread::of([]), Spread::default());
    assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
    assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).median, 2.5);
}

#[test]
fn runs_as_text() {
    for text in ["castanet,one,32,true,5", "monolith,four,1,false,0"] {
        assert_eq!(Run::parse(text).unwrap().text(), text);
    }
    for text in [
        "",
        "castanet,one,0,true,5",
        "castanet,two,1,true,5",
        "x,one,1,true,1",
        "castanet,one,1,1,1",
        "castanet,one,1,true,1,1",
        "castanet,one,257,true,1",
    ] {
        assert!(Run::parse(text).is_none(), "{text}");
    }
}

#[test]
fn reports_show_every_row() {
    let s = Spread { median: 40.0, min: 39.0, max: 50.0 };
    let row = |traffic, batch| Row {
        traffic,
        batch,
        rounds: 3,
        castanet: s,
        monolith: s,
        ratio: s,
        instructions: None,
    };
    let rows = Traffic::ALL.into_iter().flat_map(|t| [row(t, 1), row(t, 32)]).collect();
    let results = Results { rows, queue: Vec::new() };
    assert_eq!(report::table(&results).matches("40.0 (39.0 to 50.0)").count(), 8);
    assert_eq!(report::csv(&results).lines().count(), 13);
    assert_eq!(report::svg(&results).matches("<title>").count(), 9, "one for the figure");
    assert_eq!(report::json(&results)["fig8"].as_array().unwrap().len(), 4);
}
