// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;

fn wanted(names: &[&str]) -> Settings {
    Settings {
        names: names.iter().map(|n| n.to_string()).collect(),
        seconds: 0.0,
        batches: vec![32, 1],
        capture: None,
        counted: None,
    }
}

#[test]
fn settings_have_a_source_for_each_input() {
    let (all, others) = settings(&wanted(&[])).unwrap();
    assert!(all.len() > 120, "{}", all.len());
    let of = |name: &str| all.iter().find(|s| s.class == name).unwrap();
    let strip = of("DecIPTTL").text(Contestants::Both);
    let mark = "STOP true) -> Strip(14) -> MarkIPHeader -> GetIPAddress(16) -> ";
    assert!(strip.contains(&format!("{mark}[0] bench_element;")), "{strip}");
    assert!(strip.contains(&format!("{mark}Null -> Discard;")), "{strip}");
    assert!(strip.contains("Rounds(bench_null0 bench_source0, ROUNDS $ROUNDS)"), "{strip}");
    // A scheduler has a queue before each input; each Null in its place has an Unqueue.
    let sched = of("RoundRobinSched");
    let text = sched.text(Contestants::Both);
    assert!(sched.sources() > 1);
    assert_eq!(text.matches("-> Queue -> Null -> Unqueue($BURST) -> Discard").count(), sched.sources());
    assert_eq!(text.matches("-> Unqueue($BURST) -> Discard").count(), sched.sources() + 1, "{text}");
    assert!(!sched.text(Contestants::Null).contains("bench_element"));
    assert!(!sched.text(Contestants::Element).contains("Null"));
    let querier = of("ARPQuerier").text(Contestants::Element);
    assert!(querier.contains("Strip(14) -> GetIPAddress(16) -> [0]"), "{querier}");
    assert!(querier.contains("STOP true) -> GetIPAddress(30) -> [1]"), "{querier}");
    // ARP goes to an input for ARP.
    assert!(of("ARPResponder").text(Contestants::Element).contains("bench_source0 :: MemSource($ARP,"));
    // Arguments that call handlers or write files are left out.
    assert_eq!(of("Counter").element(), "Counter()");
    assert_eq!(of("RED").element(), "RED(5, 50, 0.02)");
    for name in ["AggregateCounter", "AggregateIPFlows", "IPPrint", "CompleteOffload"] {
        of(name);
    }
    for (class, reason) in
        [("ToDump", "writes files"), ("KernelTun", "needs a device"), ("Script", "writes files")]
    {
        let other = others.iter().find(|o| o.0 == class).map_or("measured", |o| &o.1);
        assert!(other.contains(reason) && all.iter().all(|s| s.class != class), "{class}: {other}");
    }
}

#[test]
fn packets_reach_the_element_and_the_sinks() {
    for (class, drops) in [("Paint", 1), ("Queue", 1), ("RoundRobinSched", 2), ("DecIPTTL", 1)] {
        let (all, _) = settings(&wanted(&[class])).unwrap();
        let setting = &all[0];
        let mut router = build(&setting.text(Contestants::Element), &setting.defines(32, 1), 32).unwrap();
        assert!(ends(&mut router, 100.0).unwrap());
        // The packets of the warm-up and of one round. Those of the last burst may still be in queues.
        let all: u64 = router.drops().values().sum();
        let sent = 2 * PACKETS * drops;
        assert!(all <= sent && all > sent - 2000 * drops, "{class}: {all} of {sent}");
    }
}

#[test]
fn classes_are_measured() {
    let r = run_all(&wanted(&["Paint", "HashDemux", "Discard", "DelayUnqueue"])).unwrap();
    let names: Vec<_> = r.rows.iter().map(|row| (row.class, row.element.as_str())).collect();
    assert_eq!(names, [("HashSwitch", "HashSwitch(0, 8)"), ("Paint", "Paint(3)")]);
    for row in &r.rows {
        assert_eq!(row.costs.iter().map(|c| c.batch).collect::<Vec<_>>(), [32, 1]);
        assert!(row.costs.iter().all(|c| c.rounds as u64 >= TRIAL && c.instructions.is_none()));
    }
    assert_eq!(r.others.iter().map(|o| o.0).collect::<Vec<_>>(), ["DelayUnqueue", "Discard"]);
    let error = run_all(&wanted(&["Paint", "Pain"])).unwrap_err();
    assert_eq!(error, "no class named 'Pain'");
}

#[test]
fn a_capture_replaces_the_frames() {
    let spec = Registry::new().spec("Paint").unwrap();
    let setting = Setting::of(spec, Some(Path::new("a b.pcap"))).unwrap().unwrap();
    assert!(setting.text(Contestants::Both).contains("MemSource(FILE \"a b.pcap\","));
}

/// Results with two classes and two batch sizes.
fn results() -> Results {
    let cost = |batch, ns: f64| Cost {
        batch,
        ns: Quartiles { lower: ns - 1.0, median: ns, upper: ns + 1.0 },
        ends: Quartiles { lower: 5.0, median: 6.0, upper: 7.0 },
        rounds: 9,
        instructions: (batch == 32).then_some(10.0 * ns),
    };
    let row = |class, ns| Row {
        class,
        element: format!("{class}(1)"),
        costs: vec![cost(32, ns), cost(1, 2.0 * ns)],
    };
    Results {
        rows: vec![row("Paint", 2.0), row("AggregateCounter", 20.0)],
        others: vec![("Error", "no\nway".into())],
    }
}

#[test]
fn reports_agree() {
    let r = results();
    let table = report::table(&r);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[2].split_whitespace().collect::<Vec<_>>().join(" "),
        "Paint 2.0 (1.0 to 3.0) 20 4.0 (3.0 to 5.0) -"
    );
    assert!(lines[1].len() == lines[2].len() && lines[2].len() == lines[3].len(), "{table}");
    assert!(table.ends_with("\nnot measured:\nError: no\n"), "{table}");
    let csv = report::csv(&r);
    assert_eq!(csv.lines().nth(4).unwrap(), "AggregateCounter,1,9,40.000,39.000,41.000,6.000,");
    let json = report::json(&r);
    assert_eq!(json["classes"][1]["costs"][0]["ns"]["median"], 20.0);
    assert_eq!(json["classes"][1]["element"], "AggregateCounter(1)");
    assert_eq!(json["not_measured"][0]["class"], "Error");
    assert_eq!(report::table(&Results::default()).lines().count(), 2);
}
