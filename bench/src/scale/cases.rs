// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configurations to measure. Each has two sources, one on each worker, and runs unchanged on one worker.

/// The model that predicts the throughput with more than two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Workers write no shared memory. Any loss against a linear speedup is due to contention.
    Nothing,
    /// Workers write shared memory, so the loss may be contention or coherence.
    Shared,
    /// Workers work in pairs, and each pair is independent of the other pairs.
    Pairs,
    /// One worker does the serial part, which is the work of the base configuration.
    SerialBase,
    /// One worker does the serial part: all work that the base configuration does not do.
    SerialRest,
    /// Workers share a lock, which protects all work except that of the base configuration.
    Lock,
}

/// A call of a write handler: element, handler, value.
pub type Call = (String, String, String);

/// A configuration to measure.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the configuration in tables.
    pub name: String,
    /// The text of the configuration.
    pub text: String,
    /// The text of the base configuration, which does only a part of the work. Its time separates the serial work from
    /// the parallel work (see [`Model`]). None if the model needs no base configuration.
    pub base: Option<String>,
    /// The model that predicts the throughput of the configuration with more than two workers.
    pub model: Model,
    /// Handlers to write when the router has started.
    pub calls: Vec<Call>,
    /// Handlers to write during a measurement, repeatedly and in this order, one every half millisecond.
    pub writes: Vec<Call>,
    /// The frames of each source, in configuration syntax.
    pub frames: [String; 2],
    /// The intended share of work under the lock, from 0 to 1; none if the case does not belong to the sweep over
    /// these shares.
    pub target: Option<f64>,
}

/// The work on an Ethernet frame: the main steps of a router.
const WORK: &str = "Strip(14) -> CheckIPHeader -> DecIPTTL -> Counter";
/// The steps of `WORK` for an IP packet without an Ethernet header.
const MORE: &str = "CheckIPHeader -> DecIPTTL -> Counter";
/// The maximum number of elements outside the lock in a case of the sweep.
const LONGEST: usize = 600;

/// Declares the two sources, one on each worker.
const SOURCES: &str = "s0 :: MemSource($FRAMES0, BURST 32); s1 :: MemSource($FRAMES1, BURST 32);
StaticThreadSched(s0 0, s1 1);
";

fn case(name: &str, model: Model, text: &str, base: Option<&str>) -> Case {
    let whole = |t: &str| {
        let t = t.replace("WORK", WORK).replace("MORE", MORE);
        // A text that declares MemSources of its own does not need `SOURCES`.
        if t.contains("MemSource") { t } else { format!("{SOURCES}{t}\n") }
    };
    Case {
        name: name.into(),
        text: whole(text),
        base: base.map(whole),
        model,
        calls: Vec::new(),
        writes: Vec::new(),
        frames: [0, 1].map(|i| crate::path::literal(&crate::frames::frames(crate::frames::Traffic::One, i))),
        target: None,
    }
}

fn call(element: &str, handler: &str, value: &str) -> Call {
    (element.into(), handler.into(), value.into())
}

/// Two chains that have no element in common.
const CHAINS: &str =
    "s0 -> WORK -> meter0 :: PacketMeter -> Discard; s1 -> WORK -> meter1 :: PacketMeter -> Discard;";
/// The name of the case in which each worker frees the buffers of the other. The cost of freeing another worker's
/// buffer is computed from this case and [`RETURN`].
pub const CROSS: &str = "queue hand-over, both ways";
/// The name of the case in which packets come back to the worker that made them.
pub const RETURN: &str = "two hand-overs, freed at home";

/// All cases except those of the sweep over work under a lock.
pub fn all() -> Vec<Case> {
    let mut all = vec![
        case("independent chains", Model::Nothing, CHAINS, None),
        case(
            "queue hand-over, one way",
            Model::Pairs,
            "s0 :: MemSource($FRAMES0, BURST 32); StaticThreadSched(s0 0, u1 1);
             s0 -> WORK -> meter0 :: PacketMeter(false) -> Queue -> u1 :: Unqueue(32) -> MORE -> meter1 :: PacketMeter -> Discard;",
            None,
        ),
        case(
            CROSS,
            Model::Pairs,
            "StaticThreadSched(u0 0, u1 1);
             s0 -> WORK -> Queue -> u1 :: Unqueue(32) -> MORE -> meter1 :: PacketMeter -> Discard;
             s1 -> WORK -> Queue -> u0 :: Unqueue(32) -> MORE -> meter0 :: PacketMeter -> Discard;",
            None,
        ),
        case(
            RETURN,
            Model::Pairs,
            "StaticThreadSched(u0 0, u1 1, v0 0, v1 1);
             s0 -> WORK -> Queue -> u1 :: Unqueue(32) -> Queue -> v0 :: Unqueue(32) -> MORE -> meter0 :: PacketMeter -> Discard;
             s1 -> WORK -> Queue -> u0 :: Unqueue(32) -> Queue -> v1 :: Unqueue(32) -> MORE -> meter1 :: PacketMeter -> Discard;",
            None,
        ),
        case(
            "several sources, one Queue",
            Model::SerialRest,
            "StaticThreadSched(u 0); q :: Queue;
             s0 -> WORK -> meter0 :: PacketMeter(false) -> q; s1 -> WORK -> meter1 :: PacketMeter(false) -> q;
             q -> u :: Unqueue(32) -> meter :: PacketMeter -> Discard;",
            Some(CHAINS),
        ),
        case(
            "one Queue, several pullers",
            Model::SerialBase,
            "s0 :: MemSource($FRAMES0, BURST 32); StaticThreadSched(s0 0, u0 0, u1 1);
             s0 -> q :: Queue; q -> u0 :: Unqueue(32) -> WORK -> WORKS -> meter0 :: PacketMeter -> Discard;
             q -> u1 :: Unqueue(32) -> WORK -> WORKS -> meter1 :: PacketMeter -> Discard;"
                .replace("WORKS", &[MORE; 4].join(" -> "))
                .as_str(),
            Some("s0 :: MemSource($FRAMES0, BURST 32); s0 -> meter0 :: PacketMeter -> Queue -> Unqueue(32) -> Discard;"),
        ),
        case(
            "locked RatedSplitter",
            Model::Lock,
            "r :: RatedSplitter(4000000000) -> Discard;
             s0 -> WORK -> meter0 :: PacketMeter -> r; s1 -> WORK -> meter1 :: PacketMeter -> r;",
            Some(CHAINS),
        ),
    ];
    let mut switch = case(
        "EtherSwitch, shared table",
        Model::Shared,
        "w :: EtherSwitch; s0 -> [0] w; s1 -> [1] w;
         w[1] -> o0 :: Null -> Discard; w[0] -> o1 :: Null -> Discard;",
        None,
    );
    // The meters are before the switch. If they were behind it, both workers would reach the same meter when the
    // switch floods a frame.
    switch.text = switch.text.replace("s0 -> [0]", "s0 -> meter0 :: PacketMeter -> [0]");
    switch.text = switch.text.replace("s1 -> [1]", "s1 -> meter1 :: PacketMeter -> [1]");
    switch.frames = stations();
    all.push(switch);

    let routes = "rt :: RadixIPLookup(3.0.0.0/8 0, 4.0.0.0/8 0, 0.0.0.0/0 1); rt[0] -> Discard; rt[1] -> Discard;
         s0 -> WORK -> meter0 :: PacketMeter -> GetIPAddress(16) -> rt; s1 -> WORK -> meter1 :: PacketMeter -> GetIPAddress(16) -> rt;";
    all.push(case("route table, read only", Model::Nothing, routes, None));
    let mut written = case("route table, 1000 changes/s", Model::Nothing, routes, None);
    written.writes = vec![call("rt", "add", "5.0.0.0/8 0"), call("rt", "remove", "5.0.0.0/8")];
    all.push(written);

    let mut arp = case(
        "ARP table",
        Model::Shared,
        "arp :: ARPQuerier(1.0.0.1/8, 00:00:c0:00:00:01); arp[0] -> Discard; Idle -> [1] arp;
         s0 -> WORK -> SetIPAddress(1.0.0.2) -> meter0 :: PacketMeter -> arp;
         s1 -> WORK -> SetIPAddress(1.0.0.3) -> meter1 :: PacketMeter -> arp;",
        None,
    );
    arp.calls = [2, 3].map(|i| call("arp", "insert", &format!("1.0.0.{i} 02:00:00:00:00:0{i}"))).into();
    all.push(arp);
    all.push(case(
        "NAT table",
        Model::Shared,
        "rw :: IPRewriter(pattern 5.0.0.1 1024-65535 - - 0 0); rw[0] -> Discard;
         s0 -> WORK -> meter0 :: PacketMeter -> rw; s1 -> WORK -> meter1 :: PacketMeter -> rw;",
        None,
    ));
    all.push(case(
        "eight replicated counters",
        Model::Nothing,
        &format!(
            "c :: Counter -> {} -> Discard;
             s0 -> WORK -> meter0 :: PacketMeter -> c; s1 -> WORK -> meter1 :: PacketMeter -> c;",
            ["Counter"; 7].join(" -> ")
        ),
        None,
    ));
    all
}

/// For each of the two sources, frames to 64 stations on the other side of a switch.
fn stations() -> [String; 2] {
    [0usize, 1].map(|i| {
        let mut frames = crate::frames::frames(crate::frames::Traffic::One, i);
        for (k, f) in frames.iter_mut().enumerate() {
            let other = [2, 0, if i == 0 { 2 } else { 1 }, 0, 0, k as u8];
            if let Some(to) = f.get_mut(..6) {
                to.copy_from_slice(&other);
            }
        }
        crate::path::literal(&frames)
    })
}

/// A case of the sweep over the share of work under a lock. On each worker, packets pass `elements` cheap elements and
/// then a LockedWork with `steps`.
pub fn locked(steps: u32, elements: usize, target: Option<f64>) -> Case {
    let chain = ["CheckIPHeader -> "].repeat(elements.min(LONGEST)).concat();
    let text = |to: &str| {
        format!(
            "w :: {to} -> Discard;
             s0 -> Strip(14) -> {chain}meter0 :: PacketMeter -> w; s1 -> Strip(14) -> {chain}meter1 :: PacketMeter -> w;"
        )
    };
    let (with, without) = (text(&format!("LockedWork({steps})")), text("Null"));
    let mut c = case("locked work", Model::Lock, &with, Some(&without));
    c.target = target;
    c
}
