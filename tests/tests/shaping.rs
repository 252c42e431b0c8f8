// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests rates over simulated time: every class that keeps a rate keeps it at every batch size, and the traffic
//! conditioning configurations follow their ideal curves.
#![allow(clippy::unwrap_used)]

use castanet_tests::binary::{castanet, root};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const BATCHES: [u32; 5] = [1, 2, 3, 32, 256];

fn command() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(castanet)
}

/// Runs a configuration in simulated time to its end, and returns handler values.
fn run<const N: usize>(configuration: &[&str], batch: u32, handlers: [&str; N]) -> [f64; N] {
    let mut c = Command::new(command());
    c.args(["run", "-q", "--simtime", "--batch", &batch.to_string()]).args(configuration);
    handlers.iter().for_each(|h| {
        c.args(["-h", h]);
    });
    let out = c.current_dir(root()).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{configuration:?}\n{text}{}", String::from_utf8_lossy(&out.stderr));
    handlers.map(|h| {
        let mut lines = text.lines().skip_while(|l| *l != format!("{h}:")).skip(1);
        lines.next().and_then(|l| l.parse().ok()).unwrap_or_else(|| panic!("no {h} in {text}"))
    })
}

/// Whether a count differs from the expected value by at most one percent plus two packets, one for each end of the
/// interval.
fn close(got: f64, want: f64) -> bool {
    (got - want).abs() <= want / 100.0 + 2.0
}

#[test]
fn every_class_keeps_its_rate_for_a_minute() {
    let pulled =
        |x: &str| format!("InfiniteSource(LENGTH 100) -> Queue(300) -> {x} -> c :: Counter -> Discard;");
    let pushed = |x: &str| format!("RatedSource(RATE 400, LENGTH 100) -> {x} -> c :: Counter -> Discard;");
    for (text, rate) in [
        (pulled("Shaper(200) -> Unqueue(BURST 64)"), 200.0),
        (pulled("Shaper(200) -> RatedUnqueue(2000)"), 200.0),
        (pulled("Shaper(2000) -> RatedUnqueue(200)"), 200.0),
        (pulled("BandwidthShaper(20kBps) -> Unqueue(BURST 64)"), 200.0),
        (pulled("RatedUnqueue(200)"), 200.0),
        (pulled("BandwidthRatedUnqueue(160kbps)"), 200.0),
        (pulled("TimedUnqueue(0.1, 20)"), 200.0),
        (pulled("LinkUnqueue(0.05, 20kBps)"), 200.0),
        (pulled("DelayShaper(0.2) -> Shaper(150) -> Unqueue(BURST 7)"), 150.0),
        (pushed("RatedSplitter(200)"), 200.0),
        (pushed("BandwidthRatedSplitter(20kBps)"), 200.0),
        (pulled("DelayShaper(0.5) -> Unqueue(BURST 7)").replace("InfiniteSource(", "RatedSource(RATE 400, "), 400.0),
        ("InfiniteSource(LENGTH 100) -> Queue(300) -> c :: Counter -> TimedSink(0.005);".to_string(), 200.0),
        // The rate is one percent above the first limit and one percent below the second, in packets and in
        // bytes.
        (
            pushed(
                "m :: Meter(4950) [1] -> n :: Meter(5050) [0] -> o :: BandwidthMeter(495kBps) [1] -> p :: BandwidthMeter(505kBps) [0]
                -> Queue -> DelayUnqueue(0.1)",
            )
            .replace("RATE 400", "RATE 5000")
                + " m [0] -> x :: Discard; n [1] -> x; o [0] -> x; p [1] -> x;",
            5000.0,
        ),
    ] {
        let script = "DriverManager(wait 1s, write c.reset, wait 60s, stop);";
        let text = format!("{text} {script}");
        let counts = BATCHES.map(|batch| run(&["-e", &text], batch, ["c.count", "c.byte_count"])[0]);
        assert!(counts.iter().all(|&n| close(n, 60.0 * rate)), "{text}: {counts:?}");
    }
}

#[test]
fn sleeping_pullers_wake_for_late_packets() {
    // Single packets with pauses, through two elements that delay them. All must come out.
    let text = "TimedSource(0.7, LIMIT 40) -> Queue -> Shaper(10) -> DelayShaper(0.25) -> Unqueue -> c :: Counter -> Discard;
        TimedSource(0.31, LIMIT 90) -> Queue -> BandwidthShaper(1kBps) -> [1] s :: PrioSched -> Unqueue -> d :: Counter -> Discard;
        Idle -> [0] s; DriverManager(wait 60s, stop);";
    for batch in BATCHES {
        assert_eq!(run(&["-e", text], batch, ["c.count", "d.count"]), [40.0, 90.0]);
    }
}

#[test]
fn differentiated_services_follow_the_ideal_curves() {
    // SOSP 1999, Figure 18: the output rate of each of four streams by its input rate.
    const HANDLERS: [&str; 4] = ["a.count", "b.count", "c.count", "d.count"];
    let ideal = |rate: f64| {
        let (a, b) = (if rate < 7_500.0 { rate } else { 0.0 }, rate.min(10_000.0));
        let (c, reclassified) = if rate < 12_500.0 { (rate, 0.0) } else { (0.0, rate) };
        [a, b, c, (rate + reclassified).min(100_000.0 - a - b - c)]
    };
    let check = |rate: f64, batch: u32| {
        let got = run(&["conf/diffserv.click", &format!("RATE={rate}")], batch, HANDLERS);
        let want = ideal(rate);
        let right = got.iter().zip(want).all(|(&got, want)| close(got, want));
        assert!(right, "{got:?} instead of {want:?} at {rate}, batch {batch}");
    };
    for rate in [2_000, 7_000, 8_000, 9_500, 10_500, 12_000, 13_000, 60_000] {
        check(f64::from(rate), 32);
    }
    for batch in BATCHES {
        check(14_000.0, batch);
    }
}

#[test]
fn strict_priority_late_and_early_follow_the_ideal_curves() {
    // TOCS 2000, Figure 20 and section 6.5. The count covers half a second.
    const HANDLERS: [&str; 3] = ["high.count", "medium.count", "low.count"];
    let ideal = |arrived: f64| {
        let high = arrived.min(30_000.0);
        let medium = arrived.min(144_000.0 - high);
        [high, medium, arrived.min(144_000.0 - high - medium)].map(|n| n / 2.0)
    };
    let check = |file: &str, rate: f64, arrived: f64, batch: u32| {
        let got = run(&[file, &format!("RATE={rate}")], batch, HANDLERS);
        let want = ideal(arrived);
        let right = got.iter().zip(want).all(|(&got, want)| close(got, want));
        assert!(right, "{file}: {got:?} instead of {want:?} at {rate}, batch {batch}");
    };
    for rate in [20_000, 40_000, 56_000, 70_000, 95_000, 120_000] {
        let rate = f64::from(rate);
        // The CPU takes 300,000 packets per second, from three controllers in turn: at most 100,000 from each.
        check("conf/priority-late.click", rate, rate.min(100_000.0), 32);
        check("conf/priority-early.click", rate, rate, 32);
    }
    for batch in BATCHES {
        check("conf/priority-late.click", 50_000.0, 50_000.0, batch);
        check("conf/priority-early.click", 50_000.0, 50_000.0, batch);
    }
}

#[test]
fn the_generator_and_the_counter_count_alike() {
    for (rate, count) in [(1_000, 2_500), (148_800, 297_600)] {
        let options = [format!("RATE={rate}"), format!("COUNT={count}")];
        for batch in [1, 32] {
            let [generator, counter] = ["conf/udpgen.click", "conf/udpcount.click"].map(|file| {
                let name = if file.contains("gen") { "sent" } else { "udp" };
                let handlers = [format!("{name}.count"), format!("{name}.byte_count"), "rate.rate".into()];
                run(&[file, &options[0], &options[1]], batch, handlers.each_ref().map(String::as_str))
            });
            assert_eq!(generator, counter);
            assert_eq!(generator[..2], [f64::from(count), 60.0 * f64::from(count)]);
            assert!((generator[2] / f64::from(rate) - 1.0).abs() < 0.01, "{generator:?}");
        }
    }
}

/// Reproduces HPSR 2005, section IV-D.
#[test]
fn each_port_forwards_to_its_partner() {
    let names = ["to0", "to1", "to2", "to3"];
    for (rate, count) in [(1_000, 1_500), (148_800, 40_000)] {
        let options = [format!("RATE={rate}"), format!("COUNT={count}")];
        for batch in BATCHES {
            let handlers = names.map(|n| [format!("{n}/sent.count"), format!("{n}/sent.byte_count")]);
            let all: Vec<&str> = handlers.as_flattened().iter().map(String::as_str).collect();
            let seen: [f64; 8] =
                run(&["conf/transfer.click", &options[0], &options[1]], batch, all.try_into().unwrap());
            for pair in seen.chunks(2) {
                assert_eq!(pair, [f64::from(count), 60.0 * f64::from(count)], "{rate}, batch {batch}");
            }
        }
    }
}

#[test]
fn pages_show_their_configurations() {
    for name in ["diffserv", "priority-late", "priority-early", "udpgen", "udpcount", "transfer"] {
        let out = Command::new(command())
            .args(["graph", &format!("conf/{name}.click")])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let file = root().join(format!("docs/{name}.svg"));
        if std::env::var_os("CASTANET_BLESS").is_some() {
            fs::write(&file, &out.stdout).unwrap();
        }
        let same = fs::read(&file).is_ok_and(|kept| kept == out.stdout);
        assert!(same, "out of date: castanet graph conf/{name}.click -o docs/{name}.svg");
        let page = fs::read_to_string(root().join(format!("docs/{name}.md"))).unwrap();
        assert!(page.contains(&format!("({name}.svg)")) && page.contains(&format!("../conf/{name}.click")));
    }
}
