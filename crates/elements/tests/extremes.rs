// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests configurations with extreme numbers: checking them must neither panic nor take much memory. This test has a
//! file of its own, because allocation_counter replaces the allocator of the whole process.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_classes::Registry;
use castanet_element::spec::{ArgKind, ArgSpec, ClassSpec};
use castanet_lang::{NoLibrary, Sources, Unknown, args};
use castanet_runtime::Options;
use castanet_runtime::swap::Loaded;

/// Largest number of bytes that checking a small configuration may allocate.
const MOST_BYTES: u64 = 4 << 20;

const EXTREMES: [&str; 8] =
    ["0", "1", "-1", "1000000000", "2147483647", "4294967295", "9223372036854775808", "1e18"];

/// Types of arguments that are numbers.
const NUMBERS: [&str; 10] =
    ["uint8", "uint16", "uint", "uint64", "int", "int64", "real", "seconds", "bandwidth", "rate"];

/// Checks a configuration with this number of workers. Returns the number of bytes allocated, and whether
/// there were no errors.
fn check(text: &str, workers: usize) -> (u64, bool) {
    let mut well = false;
    let taken = allocation_counter::measure(|| {
        well = castanet_testkit::load(text).is_ok_and(|Loaded { graph, classes, .. }| {
            let options = Options { workers, ..Options::default() };
            !castanet_runtime::check(graph, classes, &options).iter().any(|d| d.is_error())
        });
    });
    (taken.bytes_max, well)
}

/// Returns a configuration string with another value for the argument `index`.
fn with_value(config: &str, specs: &[ArgSpec], index: usize, value: &str) -> String {
    let spec = &specs[index];
    let position = specs[..index].iter().filter(|s| s.kind == ArgKind::Positional).count();
    let mut place = 0;
    let mut all: Vec<String> = Vec::new();
    for range in args::split(config) {
        let arg = config[range].to_string();
        match args::keyword(&arg) {
            Some((word, _)) if word == spec.name => continue,
            Some((word, _)) if specs.iter().any(|s| s.name == word) => all.push(arg),
            _ => {
                let here = spec.kind == ArgKind::Positional && place == position;
                place += 1;
                all.push(if here { format!("{} {value}", spec.name) } else { arg });
            }
        }
    }
    let keyword = format!("{} {value}", spec.name);
    match spec.kind {
        ArgKind::Rest => all.push(value.to_string()),
        _ if !all.contains(&keyword) => all.push(keyword),
        _ => {}
    }
    all.join(", ")
}

/// Returns the example of a class as a flat configuration.
fn example(spec: &ClassSpec) -> Option<castanet_lang::Flat> {
    let text = spec.example()?;
    let mut registry = Registry::new();
    castanet_testkit::classes::add_to(&mut registry);
    let mut sources = Sources::new();
    let file = sources.add("example", text);
    let options = castanet_lang::Options {
        classes: &registry,
        defines: &[],
        library: &NoLibrary,
        unknown: Unknown::Error,
    };
    Some(castanet_lang::load(&mut sources, file, &options).0)
}

#[test]
fn checking_takes_little_memory_whatever_the_numbers() {
    // This first check makes the allocations that happen once in a process, so that they do not count.
    check("Idle -> Discard;", 2);
    let (mut bad, mut accepted, mut tried) = (Vec::new(), 0, 0);
    for spec in Registry::new().classes() {
        let Some(flat) = example(spec) else { continue };
        let named = |class: &str| class == spec.name || spec.aliases.contains(&class);
        let Some(e) = flat.elements.iter().position(|e| named(&e.class)) else { continue };
        for (index, arg) in spec.args.iter().enumerate().filter(|(_, a)| NUMBERS.contains(&a.type_name)) {
            for value in EXTREMES {
                let mut changed = flat.clone();
                let element = &mut changed.elements[e];
                element.config = with_value(&element.config, spec.args, index, value);
                let text = castanet_lang::print::driver(&changed);
                for workers in [1, 2] {
                    tried += 1;
                    match std::panic::catch_unwind(|| check(&text, workers)) {
                        Err(_) => bad.push(format!("{}: {} {value}: PANIC", spec.name, arg.name)),
                        Ok((bytes, _)) if bytes > MOST_BYTES => {
                            bad.push(format!("{}: {} {value}: {bytes} bytes", spec.name, arg.name));
                        }
                        Ok((_, well)) => accepted += usize::from(well),
                    }
                }
            }
        }
    }
    assert!(bad.is_empty(), "{} offenders:\n{}", bad.len(), bad.join("\n"));
    // The test would prove little if most values were rejected before they reach the element.
    assert!(tried > 2000 && accepted * 4 > tried, "{accepted} of {tried}");
}

#[test]
fn queues_of_several_workers_take_their_memory_late() {
    let shared = |capacity: &str| {
        format!(
            "q :: Queue({capacity}); InfiniteSource(LIMIT 1) -> q; InfiniteSource(LIMIT 1) -> q;
             q -> Unqueue -> Discard;"
        )
    };
    let (bytes, well) = check(&shared("16777216"), 2);
    assert!(well && bytes < MOST_BYTES, "{bytes}");
    for large in ["16777217", "400000000", "2000000000", "4294967295"] {
        let (bytes, well) = check(&shared(large), 2);
        assert!(!well && bytes < MOST_BYTES, "{large} {bytes}");
    }
}
