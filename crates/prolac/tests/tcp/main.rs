// SPDX-License-Identifier: MIT OR Apache-2.0
//! The TCP of protocols/tcp, interpreted: two ends exchange data over a simulated network that loses, repeats, delays and
//! corrupts segments.
#![allow(clippy::unwrap_used)]

mod compiled;
mod cubic;
mod ecn;
mod hooks;
mod host;
mod interop;
mod linux;
mod network;
mod pathmtu;
mod reassembly;
mod recovery;
mod reno;
mod sack;
mod states;
mod urgent;

use castanet_diagnostic::render::render_pretty;
use castanet_diagnostic::{Diagnostic, Sources};
use castanet_prolac::format::format;
use castanet_prolac::load::{Extensions, Files, Folder};
use castanet_prolac::optimise::{Optimisations, optimise};
use castanet_prolac::program::Program;
use castanet_prolac::rust::compile;
use castanet_prolac::stats::stats;
use castanet_prolac::syntax::{SyntaxKind, tree};
use network::{Faults, Network};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols/tcp")
}

/// The files of the TCP with their texts, in order.
fn source() -> Vec<(PathBuf, String)> {
    let mut paths: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let paths = paths.into_iter().filter(|p| p.extension().is_some_and(|e| e == "pc"));
    paths.map(|p| (p.clone(), std::fs::read_to_string(p).unwrap())).collect()
}

/// The TCP with these extensions, which must have no diagnostics.
fn tcp(extensions: &Extensions) -> Program {
    tcp_of(&Folder, extensions)
}

/// The TCP of other files.
fn tcp_of(files: &(dyn Files + Sync), extensions: &Extensions) -> Program {
    let path = folder().join("tcp.pc");
    let mut sources = Sources::new();
    let file = sources.add(path.to_string_lossy(), std::fs::read_to_string(&path).unwrap());
    let (program, diagnostics) = castanet_prolac::analyse(&mut sources, file, files, extensions);
    let problems: Vec<Diagnostic> = diagnostics;
    assert!(problems.is_empty(), "{}", render_pretty(&sources, &problems, false));
    program
}

/// The extensions, their files, and the extension that they refine, if any.
const EXTENSIONS: [(&str, &str, Option<&str>); 11] = [
    ("Delay-Ack", "delayack.pc", None),
    ("Slow-Start", "slowst.pc", None),
    ("Fast-Retransmit", "fastret.pc", None),
    ("Header-Prediction", "predict.pc", None),
    ("Window-Scale", "wscale.pc", None),
    ("Timestamps", "timestamp.pc", None),
    ("Sack", "sack.pc", Some("Fast-Retransmit")),
    ("Cubic", "cubic.pc", Some("Slow-Start")),
    ("Path-Mtu", "pathmtu.pc", None),
    ("Ecn", "ecn.pc", None),
    ("Source-Route", "srcroute.pc", None),
];

fn named(names: &[&str]) -> Extensions {
    Extensions::Named(names.iter().map(|n| n.to_string()).collect())
}

fn all_but(without: &[&str]) -> Extensions {
    let names = EXTENSIONS.iter().map(|(name, ..)| *name).filter(|n| !without.contains(n));
    named(&names.collect::<Vec<_>>())
}

/// Whether a set has an extension.
fn has(extensions: &Extensions, name: &str) -> bool {
    match extensions {
        Extensions::All => true,
        Extensions::Named(names) => names.iter().any(|n| n == name),
    }
}

/// All sets of extensions up to Path-Mtu that have what each of them refines. Two thirds of them have Ecn, and two fifths Source-Route:
/// with all sets of these two the tests would take four times as long.
fn all_subsets() -> Vec<Extensions> {
    let chosen = |bits: usize| {
        let names = EXTENSIONS[..9].iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
        names.map(|(_, (name, ..))| *name).collect::<Vec<_>>()
    };
    let complete = |set: &Vec<&str>| {
        EXTENSIONS
            .iter()
            .all(|(name, _, needs)| !set.contains(name) || needs.is_none_or(|n| set.contains(&n)))
    };
    let sets = (0..1 << 9).map(chosen).filter(complete).enumerate();
    let more = |(i, mut set): (usize, Vec<&str>)| {
        set.extend((i % 3 > 0).then_some("Ecn"));
        set.extend((i % 5 > 2).then_some("Source-Route"));
        named(&set)
    };
    sets.map(more).collect()
}

/// Half of these sets: each set of the extensions before Path-Mtu once, half of them with Path-Mtu. The first sixteen are those of the first four.
fn subsets() -> Vec<Extensions> {
    let mut all = all_subsets();
    let with = all.split_off(all.len() / 2);
    let half = all.into_iter().zip(with).enumerate();
    half.map(|(i, (without, with))| if i.count_ones() % 2 == 1 { with } else { without }).collect()
}

#[test]
fn no_dynamic_dispatch_is_left() {
    for extensions in all_subsets() {
        let stats = stats(&tcp(&extensions), Optimisations::ALL);
        assert_eq!(stats.dispatches[2], 0, "{extensions:?} {stats}");
        assert!(stats.dispatches[0] > 200 && stats.dispatches[1] > 5, "{stats}");
    }
}

/// The figures of the README are those of the program with all extensions.
#[test]
fn the_readme_has_the_figures() {
    let stats = stats(&tcp(&Extensions::All), Optimisations::ALL);
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let [every, several, left] = stats.dispatches;
    for line in [
        format!("| every call of an object's method | {every} | 1022 |"),
        format!("| methods with several definitions | {several} | 62 |"),
        format!("| after class hierarchy analysis | {left} | 0 |"),
    ] {
        assert!(readme.contains(&line), "{line}");
    }
}

/// The work of the compiler grows with the size of what it prints: it makes a number of passes over the optimised program.
#[test]
fn compiling_takes_few_passes() {
    for extensions in [Extensions::none(), Extensions::All] {
        let program = tcp(&extensions);
        for set in [Optimisations::ALL, Optimisations::NONE] {
            let size: usize = optimise(&program, set).0.methods.iter().map(|m| m.body.size()).sum();
            let visits = compile(&program, set).report.visits;
            println!("{size} operations, {visits} visits");
            assert!(size > 1_000 && visits < 20 * size as u64, "{size} operations, {visits} visits");
        }
    }
}

/// At most 5 % of the lines call the host.
#[test]
fn actions_are_few() {
    let (mut lines, mut actions) = (0, 0);
    for (_, text) in source() {
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("//")) {
            lines += 1;
            let call = |after: &str| {
                let name = after.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_');
                name.len() < after.len() && name.starts_with('(')
            };
            actions += usize::from(line.split("{ ").skip(1).any(call));
        }
    }
    assert!(actions * 20 <= lines && actions > 10, "{actions} of {lines} lines");
}

/// As in the paper, nearly all methods have bodies of five lines or fewer, comments not counted.
#[test]
fn methods_are_short() {
    let (mut methods, mut long) = (0, Vec::new());
    for (path, text) in source() {
        let mut sources = Sources::new();
        let file = sources.add(path.to_string_lossy(), text.as_str());
        let (root, _) = tree(&sources, file);
        for method in root.descendants().filter(|n| n.kind() == SyntaxKind::Method) {
            methods += 1;
            let text = method.text().to_string();
            let (head, body) = text.split_once("::=").unwrap();
            let lines = body.trim().lines().filter(|l| !l.trim_start().starts_with("//")).count();
            if lines > 5 {
                let file = path.file_name().unwrap().to_string_lossy();
                long.push(format!("{file}: {} has {lines} lines", head.trim()));
            }
        }
    }
    let found = format!("{} of {methods} methods are longer\n{}", long.len(), long.join("\n"));
    println!("{found}");
    assert!(methods > 500 && long.len() <= 10, "{found}");
}

/// The files that a file includes, directly or through others, and itself.
fn included(file: &str, all: &mut BTreeSet<String>) {
    if all.insert(file.to_string()) {
        let text = std::fs::read_to_string(folder().join(file)).unwrap();
        let includes = text.lines().filter_map(|l| l.strip_prefix("include \"")?.strip_suffix("\";"));
        includes.for_each(|file| included(file, all));
    }
}

/// An extension has at most 60 lines, with the files that only it includes.
#[test]
fn extensions_are_short() {
    let mut base = BTreeSet::new();
    included("tcp.pc", &mut base);
    for (_, file, _) in EXTENSIONS {
        let mut own = BTreeSet::new();
        included(file, &mut own);
        let texts = own.difference(&base).map(|f| std::fs::read_to_string(folder().join(f)).unwrap());
        let text: String = texts.collect();
        let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("//"));
        let n = lines.count();
        println!("{file}: {n} lines");
        assert!((5..=60).contains(&n), "{file} has {n} lines");
    }
}

#[test]
fn every_subset_exchanges_data() {
    let mut without = 0;
    for (i, extensions) in subsets().iter().enumerate() {
        println!("{extensions:?}");
        let program = tcp(extensions);
        let (mut corrupted, mut used) = (0, [false; 2]);
        // The first four extensions are tried longer: each loss from 0 to 20 %.
        for k in 0..if i < 16 { 11 } else { 2 } {
            let loss = if i < 16 { 2 * k } else { 5 + 5 * k };
            let faults = Faults { loss, repeat: k, jitter: k * 31 % 100, corrupt: k % 4 * 5 };
            let n = exchange(&program, 100 * i as u64 + k, faults, [12_000, 5_000]);
            corrupted += n.corrupted;
            used[0] |= n.capable > 0 && n.marked > 0;
            used[1] |= n.along > 0;
        }
        assert!(i >= 16 || corrupted > 10, "{corrupted}");
        // If the first SYN or its answer is lost, ECN is not used: in a tenth of the runs with the least loss, in a quarter of the others.
        let has = ["Ecn", "Source-Route"].map(|name| has(extensions, name));
        assert!(used == has || i >= 16 && used == [false, has[1]], "{used:?}");
        without += usize::from(used != has);
    }
    assert!(without < 10, "{without} sets");
}

#[test]
fn the_source_is_formatted() {
    for (path, text) in source() {
        let mut sources = Sources::new();
        let file = sources.add(path.to_string_lossy(), text.as_str());
        let formatted = format(&sources, file).unwrap();
        if std::env::var_os("PROLAC_FORMAT_TCP").is_some() {
            std::fs::write(&path, &formatted).unwrap();
        } else {
            assert!(formatted == text, "{path:?} is not formatted");
        }
    }
}

/// Runs one exchange and checks that each byte arrives and both ends are closed.
fn exchange(program: &Program, seed: u64, faults: Faults, sizes: [usize; 2]) -> Network<'_> {
    println!("seed {seed}, {faults:?}, {sizes:?}");
    let mut n = Network::new(program, seed, faults, sizes);
    n.run();
    n.check();
    n
}

#[test]
fn a_clean_network() {
    let program = tcp(&Extensions::none());
    let clean = Faults { loss: 0, repeat: 0, jitter: 0, corrupt: 0 };
    for (seed, sizes) in
        [[0, 0], [1, 0], [0, 1], [5, 7], [1460, 1461], [40_000, 3], [30_000, 30_000]].into_iter().enumerate()
    {
        exchange(&program, seed as u64, clean, sizes);
    }
}

/// RFC 7323, section 2: windows above 64 KiB, over a network with faults.
#[test]
fn large_windows() {
    let program = tcp(&Extensions::All);
    for (seed, loss) in [(1, 0), (2, 5)] {
        let mut n = Network::new(
            &program,
            seed,
            Faults { loss, repeat: 2, jitter: 40, corrupt: 0 },
            [150_000, 20_000],
        );
        n.ends.iter().for_each(|e| e.data.borrow_mut().buffer = Some(500_000));
        n.run();
        n.check();
        for end in 0..2 {
            let window = n.ends[end].field("max_wnd");
            assert!(window > 400_000 && window <= 500_000, "{window}");
        }
    }
}

/// `PROLAC_SCHEDULES` sets the number of schedules.
#[test]
fn loss_repetition_and_reordering() {
    let program = tcp(&Extensions::none());
    let schedules = std::env::var("PROLAC_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    for seed in 0..schedules {
        let faults = Faults { loss: seed % 20, repeat: seed % 7, jitter: seed * 13 % 150, corrupt: 0 };
        exchange(&program, seed, faults, [(seed as usize * 379) % 9_000, (seed as usize * 911) % 9_000]);
    }
}
