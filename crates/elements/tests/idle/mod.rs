// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that idle routers use no processor time, and that every pull ends.
//!
//! Simulated time passes only while every task sleeps. So a router with a task that polls never reaches the
//! time at which it is to stop.
#![allow(clippy::unwrap_used, missing_docs)]

use super::*;
use castanet_element::element;
use castanet_element::prelude::*;
use castanet_element::spec::codes::Processing;

/// Turns after which a puller gives up.
const MOST: u64 = 2000;
/// Number of pulls in the test of endless sources.
const PULLS: u64 = 100;
/// Number of packets after which an endless source ends, so that even an unbounded pull ends.
const ENOUGH: u64 = 200_000;
/// The most packets that one pull may take on average.
const BOUND: u64 = 400;

fn add_to(r: &mut Registry) {
    r.add(element::<Puller>());
    r.add(element::<Endless>());
}

/// Pulls one packet per turn, and sleeps as Unqueue does. It gives up after MOST turns.
#[derive(Class)]
#[class(name = "Puller", ports = "1/0", processing = "l/l", packets = "any/", workers = exclusive, task, lifecycle)]
#[class(drops(Discarded), ends(Discarded))]
pub struct Puller {
    args: PullerArgs,
    /// Turns of the task.
    #[count(unit = "turns")]
    turns: Count,
    /// Packets pulled.
    #[count(unit = "packets")]
    got: Count,
    upstream: Signal,
}

/// Arguments of Puller.
#[derive(Args)]
pub struct PullerArgs {
    /// The largest number of turns.
    most: u64,
}

impl Element for Puller {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if self.turns.get() >= self.args.most {
            return Turn::Sleep;
        }
        self.turns.add(1);
        match cx.pull_one(0) {
            Some(p) => {
                self.got.add(1);
                cx.drop(p, Reason::Discarded);
                Turn::Again
            }
            None if cx.is_on(&self.upstream) => Turn::Again,
            None => Turn::Sleep,
        }
    }
}

impl Lifecycle for Puller {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.upstream = cx.upstream(0);
        Ok(())
    }
}

/// Endlessly emits packets of one kind. The kinds, from 0 on: first fragments, later fragments, UDP packets, packets of
/// one byte, and packets in two fragments.
#[derive(Class)]
#[class(name = "Endless", ports = "0/1", processing = "l/l", packets = "/any", workers = exclusive, ledger(enters))]
pub struct Endless {
    args: EndlessArgs,
    /// Packets emitted.
    #[count(unit = "packets")]
    count: Count,
}

/// Arguments of Endless.
#[derive(Args)]
pub struct EndlessArgs {
    /// The kind of the packets, 0 to 4.
    kind: u32,
}

impl Element for Endless {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..max {
            if self.count.get() >= ENOUGH {
                break;
            }
            self.count.add(1);
            let mut d = [0; 100];
            d[..20].copy_from_slice(&[0x45, 0, 0, 100, 0, 0, 0, 0, 64, 17, 0, 0, 1, 0, 0, 1, 2, 0, 0, 2]);
            d[4..6].copy_from_slice(&(self.count.get() as u16).to_be_bytes());
            match self.args.kind {
                0 => d[6] = 0x20,
                1 => d[7] = 10,
                4 => {
                    let n = self.count.get() - 1;
                    d[4..6].copy_from_slice(&((n / 2) as u16).to_be_bytes());
                    if n.is_multiple_of(2) { d[6] = 0x20 } else { d[7] = 10 }
                }
                _ => {}
            }
            let mut p = Packet::copy_of(if self.args.kind == 3 { &d[..1] } else { &d }).unwrap();
            if self.args.kind != 3 {
                p.set_network_header(0, 20);
            }
            p.set_timestamp(1);
            cx.entered(1);
            into.push(p);
        }
    }
}

/// Returns a configuration with the element from the example of its class. In it, a puller is connected to each output
/// of this element that may be pulled. `None` if there is no such output.
fn pulled(
    spec: &ClassSpec,
    graph: &Graph,
    e: usize,
    upstream: &dyn Fn(usize) -> String,
    most: u64,
) -> Option<String> {
    let code = ProcessingCode::parse(spec.processing)?;
    let pulls = |o| code.output(o) != Processing::Push;
    let outputs = graph.outputs(e);
    if !(0..outputs).any(pulls) {
        return None;
    }
    let mut text = excerpt(graph, e, "x");
    for i in 0..graph.inputs(e) {
        let from = if code.input(i) == Processing::Push { "Idle".into() } else { upstream(i) };
        if !from.is_empty() {
            let _ = writeln!(text, "{from} -> [{i}] x;");
        }
    }
    for o in 0..outputs {
        let to = if pulls(o) { format!("p{o} :: Puller({most})") } else { "Discard".into() };
        let _ = writeln!(text, "x [{o}] -> {to};");
    }
    text.push_str("Quit(5);\n");
    Some(text)
}

/// Calls `look` with each class, the graph of its example, and the element of that class in the graph.
/// Returns all faults that `look` found.
fn each_example(mut look: impl FnMut(&ClassSpec, &Graph, usize) -> Vec<String>) -> Vec<String> {
    let mut bad = Vec::new();
    for s in classes() {
        // The behaviour of devices depends on the network of the machine.
        if s.module.contains("::device::") && s.name != "CompleteOffload" {
            continue;
        }
        let Some(text) = s.example() else { continue };
        let found = in_own_folder(|| {
            let Ok(Loaded { graph, .. }) = castanet_testkit::load_with(text, add_to) else {
                return Vec::new();
            };
            let e = (0..graph.len()).find(|&e| graph.spec(e).is_some_and(|u| u.name == s.name));
            e.map_or(Vec::new(), |e| look(s, &graph, e))
        });
        bad.extend(found.into_iter().map(|f| format!("{}: {f}", s.name)));
    }
    bad
}

/// Runs a router to its end. `None` if the text makes no router.
fn ran(text: &str) -> Option<Result<Router, String>> {
    let (options, _) = simulated(32);
    let mut r = try_router_with(text, options, add_to).ok()?;
    Some(if ends(&mut r) { Ok(r) } else { Err(format!("does not come to an end:\n{text}")) })
}

/// Like [`ran`], for a text that must make a router.
fn completed(text: &str) -> Router {
    let mut r = try_router_with(text, simulated(32).0, add_to).unwrap();
    assert!(ends(&mut r), "{text}");
    r
}

/// Returns the turns and packets that a puller counted, if the puller exists.
fn counted(r: &mut Router, puller: &str) -> Option<(u64, u64)> {
    r.find(puller)?;
    Some((number(r, puller, "turns"), number(r, puller, "got")))
}

/// Returns the faults of the pullers of a router that has run: too many turns without packets.
fn polls(r: &mut Router, text: &str) -> Vec<String> {
    let mut bad = Vec::new();
    for o in 0..9 {
        if let Some((turns, got)) = counted(r, &format!("p{o}"))
            && turns > 3 * got + 50
        {
            bad.push(format!("{turns} turns for {got} packets:\n{text}"));
        }
    }
    bad
}

#[test]
fn pullers_sleep_where_nothing_comes() {
    let mut tried = 0;
    let bad = each_example(|spec, graph, e| {
        let mut bad = Vec::new();
        let none = |_| String::new();
        let idle = |_| "Idle".to_string();
        let empty = |i| format!("Idle -> q{i} :: Queue");
        for upstream in [&none as &dyn Fn(usize) -> String, &idle, &empty] {
            // SimpleQueue differs from Queue in that it has no notifiers.
            if spec.name == "SimpleQueue" {
                break;
            }
            let Some(text) = pulled(spec, graph, e, upstream, MOST) else { break };
            match ran(&text) {
                Some(Ok(mut r)) => {
                    tried += 1;
                    bad.extend(polls(&mut r, &text));
                }
                Some(Err(e)) => bad.push(e),
                // Most classes need their inputs, so without them there is no router.
                None => {}
            }
        }
        bad
    });
    none(&bad);
    assert!(tried > 150, "only {tried} routers");
    for text in [
        "Idle -> Queue -> a :: AggregateCounter -> p0 :: Puller(2000);
         InfiniteSource(LIMIT 5) -> Queue -> [1] a; Quit(5);",
        "ICMPPingSource(10.0.0.1, 10.0.0.2, LIMIT 3) -> p0 :: Puller(2000); Quit(9);",
        "Idle -> Queue -> x :: Script(TYPE PACKET, return 0) -> p0 :: Puller(2000);
         RatedSource(RATE 10) -> [1] x; x [1] -> Discard; Quit(5);",
        "InfiniteSource(LIMIT 5) -> Queue -> x :: Script(TYPE PACKET, return 0) -> p0 :: Puller(2000);
         RatedSource(RATE 10) -> [1] x; x [1] -> Discard; Quit(5);",
        "RatedSource(RATE 10, LIMIT 9) -> Queue -> x :: Suppressor -> p0 :: Puller(2000);
         Script(write x.active0 false, wait 3, write x.active0 true); Quit(5);",
        "PrioSched -> [0] s :: RoundRobinSched -> p0 :: Puller(2000); Idle -> [1] s; Quit(5);",
    ] {
        let mut r = completed(text);
        assert_eq!(polls(&mut r, text), [""; 0]);
        let want = [3, 5, 9].into_iter().find(|n| text.contains(&format!("LIMIT {n}"))).unwrap_or(0);
        assert_eq!(counted(&mut r, "p0").unwrap().1, want, "{text}");
    }
}

#[test]
fn tasks_sleep_beside_idle_neighbours() {
    let mut tried = 0;
    let bad = each_example(|spec, graph, e| {
        let mut bad = Vec::new();
        let Some(code) = ProcessingCode::parse(spec.processing) else { return bad };
        if !spec.task || graph.inputs(e) == 0 {
            return bad;
        }
        for queue in ["", " -> Queue"] {
            let mut text = excerpt(graph, e, "x");
            for i in 0..graph.inputs(e) {
                let queue = if code.input(i) == Processing::Push { "" } else { queue };
                let _ = writeln!(text, "Idle{queue} -> [{i}] x;");
            }
            for o in 0..graph.outputs(e) {
                let to = if code.output(o) == Processing::Pull { "Puller(2000)" } else { "Discard" };
                let _ = writeln!(text, "x [{o}] -> {to};");
            }
            text.push_str("Quit(5);\n");
            match ran(&text) {
                Some(Ok(_)) => tried += 1,
                Some(Err(e)) => bad.push(e),
                None => {}
            }
        }
        bad
    });
    none(&bad);
    assert!(tried > 10, "only {tried} routers");
}

#[test]
fn no_pull_goes_on_for_ever() {
    let mut tried = 0;
    let bad = each_example(|spec, graph, e| {
        let mut bad = Vec::new();
        for kind in 0..4 {
            let endless = |i| format!("e{i} :: Endless({kind})");
            let Some(text) = pulled(spec, graph, e, &endless, PULLS) else { break };
            let mut r = match ran(&text) {
                Some(Ok(r)) => r,
                Some(Err(e)) => {
                    bad.push(e);
                    continue;
                }
                None => continue,
            };
            tried += 1;
            let turns: u64 = (0..9).filter_map(|o| counted(&mut r, &format!("p{o}"))).map(|c| c.0).sum();
            for i in (0..9).map(|i| format!("e{i}")).filter(|i| r.find(i).is_some()).collect::<Vec<_>>() {
                let pulls = number(&mut r, &i, "count");
                if pulls > turns * BOUND {
                    bad.push(format!("{pulls} packets for {turns} pulls:\n{text}"));
                }
            }
        }
        bad
    });
    none(&bad);
    assert!(tried > 200, "only {tried} routers");
    // Each path has two elements that take many packets to emit one. A pull through both must still take at most
    // `BOUND` packets, not the product of the two numbers.
    for path in [
        "Endless(4) -> IPReassembler -> RED(0, 1, 1, QUEUES q, STABILITY 0)",
        "Endless(2) -> RED(0, 1, 1, QUEUES q, STABILITY 0) -> RED(0, 1, 1, QUEUES q, STABILITY 0)",
    ] {
        let text = format!(
            "InfiniteSource(LIMIT 9, BURST 9) -> q :: Queue -> Unqueue(ACTIVE false) -> Discard;
             e0 :: {path} -> p0 :: Puller({PULLS}); Quit(5);"
        );
        let mut r = completed(&text);
        let (turns, got) = counted(&mut r, "p0").unwrap();
        let pulls = number(&mut r, "e0", "count");
        assert!(turns == PULLS && got < PULLS / 2, "{turns} turns, {got} packets: {text}");
        assert!((PULLS * 100..=PULLS * BOUND).contains(&pulls), "{pulls}: {text}");
    }
    // TimedUnqueue pulls once a second. With an interval of 1 ns, the control law of CoDel requires one drop for each
    // nanosecond since the last pull. A pull must still take at most `BOUND` packets.
    let mut r = completed(
        "InfiniteSource(LIMIT 9, BURST 9) -> q :: Queue -> Unqueue(ACTIVE false) -> Discard;
         e0 :: Endless(2) -> CoDel(0, 1ns, QUEUES q) -> TimedUnqueue(1) -> Discard; Quit(5);",
    );
    let pulls = number(&mut r, "e0", "count");
    assert!((100..=6 * BOUND).contains(&pulls), "{pulls}");
}

#[test]
fn periods_that_leave_no_time_are_refused() {
    let input = "InfiniteSource(LIMIT 1) -> IPEncap(udp, 1.0.0.1, 2.0.0.2)";
    let rewriters = [
        "IPRewriter",
        "TCPRewriter",
        "UDPRewriter",
        "ICMPPingRewriter",
        "IPAddrRewriter",
        "IPAddrPairRewriter",
    ];
    let mut all = Vec::new();
    for (period, good) in [("0", true), ("0.1", true), ("0.05", false), ("-1", false), ("-0.000001", false)] {
        for class in rewriters {
            all.push((format!("{input} -> {class}(keep 0 0, REAP_INTERVAL {period}) -> Discard;"), good));
        }
    }
    for (period, good) in [("1us", true), ("999ns", false), ("0", false), ("-1", false)] {
        all.push((format!("TimedSource({period}) -> Discard;"), good));
        all.push((format!("Idle -> Queue -> TimedSink({period});"), good));
        all.push((format!("Idle -> Queue -> TimedUnqueue({period}) -> Discard;"), good));
        all.push((format!("ICMPPingSource(1.0.0.1, 1.0.0.2, INTERVAL {period}) -> Discard;"), good));
    }
    for (text, good) in all {
        let built = try_router_with(&text, simulated(1).0, add_to);
        assert_eq!(built.is_ok(), good, "{text}: {:?}", built.err());
    }
}
