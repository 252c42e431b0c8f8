// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the contract of every class: it is documented, its example runs, it survives any packet, it accounts for each
//! packet, and the batch size changes nothing. Each test reports all failing classes together.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

mod idle;
mod noise;
mod setting;

use castanet_classes::Registry;
use castanet_element::spec::codes::{Flow, Ports, ProcessingCode};
use castanet_element::spec::{AlignmentCode, Capability, ClassSpec, LedgerRole, PacketCode, Reason};
use castanet_graph::{Graph, PortKind, excerpt};
use castanet_runtime::swap::Loaded;
use castanet_runtime::{Options, Router};
use castanet_testkit::{Log, number, simulated, try_router, try_router_with};
use setting::in_own_folder;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn classes() -> Vec<&'static ClassSpec> {
    Registry::new().classes()
}

fn none(offenders: &[String]) {
    assert!(offenders.is_empty(), "{} offenders:\n{}", offenders.len(), offenders.join("\n"));
}

/// Runs a router. Returns false if the router had to be stopped.
fn ends(r: &mut Router) -> bool {
    let shared = r.shared().clone();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let late = wait
            .recv_timeout(Duration::from_secs(200))
            .is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Timeout);
        if late {
            shared.end();
        }
        late
    });
    let run = r.run();
    drop(done);
    let late = watch.join().unwrap();
    run.is_ok() && !late
}

#[test]
fn everything_is_documented() {
    let mut bad = Vec::new();
    for s in classes() {
        let mut say = |what: String| bad.push(format!("{}: {what}", s.name));
        if s.summary().is_empty() || !s.summary().ends_with('.') {
            say(format!("the documentation begins with a sentence, not with {:?}", s.summary()));
        }
        if !s.doc.contains("# Ports") {
            say("no part # Ports".into());
        }
        if s.example().is_none() {
            say("no part # Example with a ```click block".into());
        }
        for a in s.args {
            if a.doc.is_empty() || a.name.is_empty() || a.type_name.is_empty() {
                say(format!("argument {} lacks a name, a type or a documentation", a.name));
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        for h in s.all_handlers() {
            if h.doc.is_empty() || !(h.readable() || h.writable()) {
                say(format!("handler {} lacks a documentation, or can be neither read nor written", h.name));
            }
            if !seen.insert(h.name) {
                say(format!("handler {} is declared twice", h.name));
            }
        }
        for (code, right) in [
            (s.ports, Ports::parse(s.ports).is_some()),
            (s.processing, ProcessingCode::parse(s.processing).is_some()),
            (s.flow, Flow::parse(s.flow).is_some()),
        ] {
            if !right {
                say(format!("code '{code}' has no meaning"));
            }
        }
        for code in std::iter::once(s.packets).chain(s.packets_if.iter().map(|p| p.1)) {
            let Some(parsed) = PacketCode::parse(code) else {
                say(format!("packet types '{code}' have no meaning"));
                continue;
            };
            for arg in parsed.args().filter(|n| s.args.iter().all(|a| a.name != *n)) {
                say(format!("packet types '{code}' refer to {arg}, which is not an argument"));
            }
        }
        if AlignmentCode::parse(s.alignment).is_none() {
            say(format!("alignment '{}' has no meaning", s.alignment));
        }
        for (condition, _) in s.packets_if {
            let arg = condition.split(' ').next().unwrap_or_default();
            if s.args.iter().all(|a| a.name != arg) {
                say(format!("packet types depend on {arg}, which is not an argument"));
            }
        }
    }
    none(&bad);
}

#[test]
fn everything_is_booked() {
    let mut bad = Vec::new();
    for s in classes() {
        let Some(ports) = Ports::parse(s.ports) else { continue };
        let outputs = ports.outputs_for(ports.inputs.min);
        // Packets that an element without inputs emits enter the router at this element.
        if ports.inputs.min == 0
            && ports.inputs.max == Some(0)
            && outputs.max != Some(0)
            && !s.ledger_role.contains(LedgerRole::ENTERS)
        {
            bad.push(format!("{}: packets begin at it, but it does not declare ledger(enters)", s.name));
        }
        if s.has(Capability::Storage) && !s.ledger_role.contains(LedgerRole::HOLDS) {
            bad.push(format!("{}: it stores packets, but does not declare ledger(holds)", s.name));
        }
        if s.copies && !s.ledger_role.contains(LedgerRole::MAKES) {
            bad.push(format!("{}: it copies packets, but does not declare ledger(makes)", s.name));
        }
        for r in s.ends.iter().filter(|r| !s.drops.contains(r)) {
            bad.push(format!("{}: packets end at it by {r}, which is not among its drops", s.name));
        }
    }
    none(&bad);
}

#[test]
fn names_and_aliases_are_unique() {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for s in classes() {
        for n in std::iter::once(s.name).chain(s.aliases.iter().copied()) {
            names.entry(n).or_default().push(s.name);
        }
    }
    none(&names.iter().filter(|n| n.1.len() > 1).map(|(n, c)| format!("{n}: {c:?}")).collect::<Vec<_>>());
}

#[test]
fn lists_agree_with_files() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let src = crates.join("elements/src");
    let mut bad = Vec::new();
    let mut listed: BTreeMap<PathBuf, Vec<&str>> = BTreeMap::new();
    for s in classes() {
        let mut module = s.module.split("::");
        let mut file = crates.join(module.next().unwrap().trim_start_matches("castanet_")).join("src");
        file.extend(module);
        file.set_extension("rs");
        if !file.is_file() {
            bad.push(format!("{}: no file for module {}", s.name, s.module));
        }
        listed.entry(file).or_default().push(s.name);
    }
    let families = std::fs::read_dir(&src).unwrap().map(|f| f.unwrap().path()).filter(|f| f.is_dir());
    for family in families.chain([crates.join("control/src/control"), crates.join("tcp/src/tcp")]) {
        for file in std::fs::read_dir(&family).unwrap().map(|f| f.unwrap().path()) {
            if file.extension().is_none_or(|e| e != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let declares = text.lines().filter(|l| l.trim_start().starts_with("#[class(name = ")).count();
            let known = listed.get(&file).map_or(0, Vec::len);
            if declares > known {
                bad.push(format!("{}: {declares} classes, {known} of them listed in mod.rs", file.display()));
            }
            let module = file.file_stem().unwrap().to_string_lossy().into_owned();
            let list = std::fs::read_to_string(family.join("mod.rs")).unwrap();
            if module != "mod" && !list.contains(&format!("mod {module};")) && !module.ends_with("tests") {
                bad.push(format!("{}: mod.rs does not have it", file.display()));
            }
        }
    }
    none(&bad);
}

/// Texts that occur in messages about failed handler calls.
const CALLS: &[&str] = &["no element named", "read handler", "write handler"];

/// Classes whose purpose is to make a configuration fail. Their examples therefore fail.
const FAIL: &[&str] = &["Error"];

#[test]
fn examples_run_to_their_end() {
    let mut bad = Vec::new();
    for s in classes() {
        let Some(text) = s.example() else { continue };
        let result = in_own_folder(|| {
            let (options, log) = simulated(32);
            let mut r = try_router(text, options)?;
            if !ends(&mut r) {
                return Err("does not come to an end".to_string());
            }
            let waiting = r.waiting();
            if waiting > 0 {
                return Err(format!("{waiting} packets left between elements"));
            }
            r.ledger().check();
            let failed = r.cleanup();
            r.ledger().check();
            let used = r.shared().graph.specs.iter().flatten().any(|u| u.name == s.name);
            match (failed.as_slice(), used) {
                ([], true) => Ok(log),
                ([], false) => Err("the example does not use the class".into()),
                (f, _) => Err(format!("{f:?}")),
            }
        });
        match result {
            Ok(_) if FAIL.contains(&s.name) => bad.push(format!("{}: the example does not fail", s.name)),
            Err(_) if FAIL.contains(&s.name) => {}
            Ok(log) => {
                for l in log.lines().iter().filter(|l| CALLS.iter().any(|c| l.contains(c))) {
                    bad.push(format!("{}: {l}", s.name));
                }
            }
            Err(e) if e.contains("not permitted to") => println!("SKIP: example of {}: {e}", s.name),
            Err(e) => bad.push(format!("{}: {e}", s.name)),
        }
    }
    none(&bad);
}

/// A configuration with the element from the example of its class, a source of noise on each input, and a
/// recorder on each output.
struct Setting {
    text: String,
    inputs: usize,
    outputs: usize,
}

fn setting(graph: &Graph, e: usize, packets: usize) -> Setting {
    let (inputs, outputs) = (graph.inputs(e), graph.outputs(e));
    let mut text = excerpt(graph, e, "x");
    for i in 0..inputs {
        let queue = if graph.input_kind(e, i) == PortKind::Pull { "-> Queue(100000) " } else { "" };
        let _ = writeln!(text, "n{i} :: Noise({i}, {packets}) {queue}-> [{i}] x;");
    }
    for o in 0..outputs {
        let pull = if graph.output_kind(e, o) == PortKind::Pull { "-> Drain " } else { "" };
        let _ = writeln!(text, "x [{o}] {pull}-> o{o} :: Out({o});");
    }
    text.push_str("Quit(36000);\n");
    Setting { text, inputs, outputs }
}

/// The observable results of a run: the packets of each output, and drops.
#[derive(Debug, PartialEq)]
struct Seen {
    outputs: BTreeMap<String, Vec<String>>,
    drops: BTreeMap<(String, &'static str), u64>,
    /// The number of noise packets that came in; `out` is the number of those that went out.
    sent: u64,
    out: u64,
    dropped: u64,
    undeclared: Vec<&'static str>,
}

fn observe(setting: &Setting, batch: usize, spec: &ClassSpec) -> Result<Seen, String> {
    let (options, _) = simulated(batch);
    let log = Log::default();
    let mut r = try_router_with(&setting.text, Options { printer: log.printer(), ..options }, noise::add_to)?;
    if !ends(&mut r) {
        return Err("does not come to an end".into());
    }
    // The ledger must balance both before the cleanup, while elements still hold packets, and after it.
    r.ledger().check();
    let stopped = r.cleanup();
    if !stopped.is_empty() {
        return Err(format!("{stopped:?}"));
    }
    r.ledger().check();
    let sent = (0..setting.inputs).map(|i| number(&mut r, &format!("n{i}"), "count")).sum();
    let mut outputs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for l in log.lines() {
        if let Some((port, what)) = l.strip_prefix("out ").and_then(|l| l.split_once(' ')) {
            outputs.entry(port.to_string()).or_default().push(what.to_string());
        }
    }
    let sinks: Vec<_> = (0..setting.outputs).filter_map(|o| r.find(&format!("o{o}"))).collect();
    let (mut drops, mut dropped, mut undeclared) = (BTreeMap::new(), 0, Vec::new());
    for ((e, reason), n) in r.drops() {
        if sinks.contains(&e) {
            continue;
        }
        drops.insert((r.shared().graph.name(e as usize).to_string(), reason.name()), n);
        dropped += n;
        let always = [Reason::NoPort, Reason::Stopped, Reason::PushLoop, Reason::NoBuffer];
        if Some(e) == r.find("x") && !spec.drops.contains(&reason) && !always.contains(&reason) {
            undeclared.push(reason.name());
        }
    }
    let out = outputs.values().flatten().filter(|w| w.starts_with("noise")).count() as u64;
    Ok(Seen { outputs, drops, sent, out, dropped, undeclared })
}

/// Returns the faults in how a class treats packets.
fn faults(spec: &ClassSpec, graph: &Graph, e: usize) -> Vec<String> {
    let setting = setting(graph, e, 300);
    let run = |batch| {
        let caught = std::panic::catch_unwind(|| observe(&setting, batch, spec));
        caught
            .unwrap_or_else(|_| Err("PANIC".into()))
            .map_err(|e| format!("batch {batch}: {e}\n{}", setting.text))
    };
    let mut bad = Vec::new();
    let first = match run(1) {
        Ok(f) => f,
        Err(e) => return vec![e],
    };
    if !first.undeclared.is_empty() {
        bad.push(format!("drops for reasons that are not declared: {:?}", first.undeclared));
    }
    // An outgoing packet may be a new packet in place of an incoming one. Apart from copies, each incoming packet
    // leaves once or is dropped once.
    let all = first.outputs.values().map(|o| o.len() as u64).sum::<u64>();
    if all + first.dropped < first.sent || !spec.copies && first.out + first.dropped > first.sent {
        bad.push(format!(
            "{} in, {all} out, {} of them as they came, {} dropped: {:?}\n{}",
            first.sent, first.out, first.dropped, first.drops, setting.text
        ));
    }
    for batch in [2, 3, 32, 256] {
        match run(batch) {
            Err(e) => bad.push(e),
            Ok(other) if other != first => {
                let port = first.outputs.keys().chain(other.outputs.keys());
                let port = port.into_iter().find(|p| first.outputs.get(*p) != other.outputs.get(*p));
                let where_ = port.map(|p| {
                    let (a, b) = (first.outputs.get(p), other.outputs.get(p));
                    let at = |v: Option<&Vec<String>>, i: usize| v.and_then(|v| v.get(i)).cloned();
                    let len = a.map_or(0, Vec::len).max(b.map_or(0, Vec::len));
                    let i = (0..len).find(|&i| at(a, i) != at(b, i)).unwrap_or(0);
                    format!("output {p}, packet {i}: {:?} instead of {:?}", at(b, i), at(a, i))
                });
                let drops = format!("drops {:?} instead of {:?}", other.drops, first.drops);
                bad.push(format!(
                    "batch {batch} is unlike batch 1: {}\n{}",
                    where_.unwrap_or(drops),
                    setting.text
                ));
                break;
            }
            Ok(_) => {}
        }
    }
    bad
}

#[test]
fn any_packet_is_survived_and_accounted_for() {
    let mut bad = Vec::new();
    for s in classes() {
        let Some(text) = s.example() else { continue };
        let found = in_own_folder(|| {
            // If an example does not load, the test of examples reports it.
            let Ok(Loaded { graph, .. }) = castanet_testkit::load_with(text, noise::add_to) else {
                return Vec::new();
            };
            let e = (0..graph.len()).find(|&e| graph.spec(e).is_some_and(|u| u.name == s.name));
            match e {
                // What packets devices emit, and whether they accept a packet, depends on the network of the machine.
                Some(_) if s.module.contains("::device::") => Vec::new(),
                Some(e) if graph.inputs(e) > 0 => faults(s, &graph, e),
                _ => Vec::new(),
            }
        });
        bad.extend(found.into_iter().map(|f| format!("{}: {f}", s.name)));
    }
    none(&bad);
}
