// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random routers of elements of all classes, with extreme arguments, on one or several workers, and random packets
//! through them.

use crate::fuzz::load;
use crate::fuzz::settings::{Setting, settings};
use crate::trace;
use castanet_element::Random;
use castanet_spec::ArgKind;
use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Extreme values of arguments, by type. An entry applies to the types whose names contain one of its words (first
/// list). The second list has the values.
const EXTREMES: &[(&[&str], &[&str])] = &[
    (&["bool"], &["true", "false"]),
    (
        &["int", "capacity", "anno", "fixed", "double", "real"],
        &[
            "0",
            "1",
            "-1",
            "2",
            "7",
            "47",
            "255",
            "65535",
            "65536",
            "2147483647",
            "-2147483648",
            "4294967295",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            "1e308",
            "-0.0",
            "0.000000001",
        ],
    ),
    (&["seconds", "time", "interval"], &["0", "1ns", "1us", "0.001", "1", "60s", "300d", "9223372036", "-1"]),
    (&["bandwidth", "rate"], &["1bps", "1Bps", "8kbps", "99999Gbps", "4294967295", "0"]),
    (&["ether"], &["ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "01:00:5e:00:00:01", "02:00:00:00:00:01"]),
    (
        &["ip"],
        &[
            "0.0.0.0",
            "255.255.255.255",
            "127.0.0.1",
            "224.0.0.1",
            "0.0.0.0/0",
            "10.0.0.0/8",
            "1.2.3.4/32",
            "0",
            "65535",
        ],
    ),
    (&["string", "data", "word", "pattern"], &["\"\"", "\\<>", "\\<00>", "x", "\"a b\"", "0"]),
];
/// Values for arguments of any type.
const ODD: &[&str] = &["", "-", "x", "0", "\"\"", "-", "~", "1 2 3", "0x", "%", "$"];
/// The maximum number of elements of random classes in a router.
const MOST: u64 = 6;
/// The maximum number of attempts to build an element with extreme arguments. If all fail, the element gets the
/// arguments of the example.
const TRIES: usize = 3;
/// The number of different frames of a source.
const FRAMES: u64 = 24;
/// The number of packets in a burst of a source.
const BURST: u64 = 32;

/// The number of panics in this process, once [`count_panics`] was called.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts all panics from now on. The run loop catches panics of elements, so they do not end the process.
pub fn count_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        before(info);
    }));
}

/// Sums over all routers so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of routers that ran.
    pub ran: u64,
    /// The number of these that ran on several workers.
    pub on_workers: u64,
    /// The number of elements that accepted extreme arguments.
    pub accepted: u64,
    /// The number of attempts in which an element refused extreme arguments.
    pub refused: u64,
    /// The number of packets that entered the routers or were made in them.
    pub packets: u64,
}

/// A random frame of the traces, with random changes.
fn frame(random: &mut Random) -> Vec<u8> {
    static TRACES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let all = TRACES.get_or_init(|| {
        let [a, b] = trace::ip_router(trace::SEED).interfaces;
        a.into_iter().chain(b).map(|f| f.data).collect()
    });
    let mut frame = all.get(random.below(all.len() as u64) as usize).cloned().unwrap_or_default();
    for _ in 0..random.below(4) {
        let at = random.below(frame.len().max(1) as u64) as usize;
        if let Some(byte) = frame.get_mut(at) {
            *byte = random.below(256) as u8;
        }
    }
    match random.below(8) {
        0 => frame.truncate(random.below(frame.len() as u64 + 1) as usize),
        1 => frame.extend((0..random.below(64)).map(|_| random.below(256) as u8)),
        2 => frame.drain(..frame.len().min(14)).for_each(drop),
        _ => {}
    }
    frame
}

/// A source of `packets` random frames.
fn source(packets: u64, random: &mut Random) -> String {
    let mut text = String::from("MemSource(");
    for _ in 0..FRAMES {
        text.push_str("\\<");
        for byte in frame(random) {
            let _ = write!(text, "{byte:02x}");
        }
        text.push_str("> ");
    }
    let _ = write!(text, ", LIMIT {packets}, BURST {BURST})");
    match random.below(4) {
        0 => text.push_str(" -> Strip(14) -> MarkIPHeader(0)"),
        1 => text.push_str(" -> MarkIPHeader(14)"),
        2 => text.push_str(" -> Strip(14) -> CheckIPHeader"),
        _ => {}
    }
    text
}

/// A random item of the list; `None` if the list is empty.
fn pick<'a, T: ?Sized>(list: &[&'a T], random: &mut Random) -> Option<&'a T> {
    list.get(random.below(list.len().max(1) as u64) as usize).copied()
}

/// Adds a keyword with an extreme value to the arguments of an example.
fn extreme(setting: &Setting, random: &mut Random) -> Option<String> {
    let arguments: Vec<_> = setting.spec.args.iter().filter(|a| a.kind != ArgKind::Rest).collect();
    let argument = pick(&arguments, random)?;
    // File names are not changed, because the element would open a file of that name.
    if argument.type_name == "filename" {
        return None;
    }
    let of_type = EXTREMES.iter().find(|(words, _)| words.iter().any(|w| argument.type_name.contains(w)));
    let values = of_type.filter(|_| random.below(10) > 0).map_or(ODD, |(_, values)| values);
    let value = pick(values, random)?;
    let comma = if setting.config.trim().is_empty() { "" } else { ", " };
    Some(format!("{}{comma}{} {value}", setting.config, argument.name))
}

/// The declaration of a compound `name` with an element of a random class. Returns it with the numbers of inputs and
/// outputs.
fn compound(name: &str, random: &mut Random, totals: &mut Totals) -> (String, usize, usize) {
    let usable: Vec<&Setting> = settings().iter().filter(|s| !s.inputs.is_empty()).collect();
    let setting = usable[random.below(usable.len() as u64) as usize];
    let mut config = setting.config.clone();
    for _ in 0..TRIES {
        let Some(tried) = extreme(setting, random) else { continue };
        match load::router(&setting.router(&tried, 1, |_| "Idle".into()), 1) {
            Ok(mut router) => {
                router.cleanup();
                totals.accepted += 1;
                config = tried;
                break;
            }
            Err(_) => totals.refused += 1,
        }
    }
    let mut text = format!("{name} :: {{ {}x :: {}({config});\n", setting.others, setting.spec.name);
    for (i, pulled) in setting.inputs.iter().enumerate() {
        let queue = if *pulled { "-> Queue(1000) " } else { "" };
        let _ = writeln!(text, "input [{i}] {queue}-> [{i}] x;");
    }
    for (o, pulled) in setting.outputs.iter().enumerate() {
        let unqueue = if *pulled { "-> Unqueue(32) " } else { "" };
        let _ = writeln!(text, "x [{o}] {unqueue}-> [{o}] output;");
    }
    text.push_str("};\n");
    (text, setting.inputs.len(), setting.outputs.len())
}

/// The text of a router of random elements, through which sources send `packets` packets in total.
fn text(packets: u64, workers: usize, random: &mut Random, totals: &mut Totals) -> String {
    let sources = 1 + random.below(3);
    let each = packets.div_ceil(sources);
    let (mut text, mut open) = (String::new(), Vec::new());
    for s in 0..sources {
        let _ = writeln!(text, "s{s} :: Null; {} -> s{s};", source(each, random));
        open.push(format!("s{s}"));
    }
    for n in 0..1 + random.below(MOST) {
        let name = format!("e{n}");
        let (declaration, inputs, outputs) = compound(&name, random, totals);
        text.push_str(&declaration);
        for i in 0..inputs {
            let from = match open.len() as u64 {
                0 => "Idle".to_string(),
                n => open.swap_remove(random.below(n) as usize),
            };
            let _ = writeln!(text, "{from} -> [{i}] {name};");
        }
        open.extend((0..outputs).map(|o| format!("{name} [{o}]")));
    }
    for from in open {
        let _ = writeln!(text, "{from} -> Discard;");
    }
    // A source needs `each / BURST` turns. The Fuse stops the router after the given number of its own turns. On one
    // worker, it gets about as many turns as a source. With several workers, it may be alone on a worker and get more
    // turns than a source, so the number is larger. The additional turns are for queues and timers.
    let turns = each.div_ceil(BURST) * 2 + 1024;
    let _ = writeln!(text, "Fuse({});", if workers == 1 { turns } else { turns * 8 });
    text
}

/// Makes one random router, and lets it forward about `packets` packets.
///
/// # Errors
/// When the router panics, or its ledger does not balance. The error is the text of the router with the reason.
pub fn one(seed: u64, packets: u64, totals: &mut Totals) -> Result<(), String> {
    let mut random = Random::new(seed, "random routers");
    let workers = [1, 1, 2, 8][random.below(4) as usize];
    let text = text(packets, workers, &mut random, totals);
    let batch = [1, 2, 32, 256][random.below(4) as usize];
    let before = PANICS.load(Ordering::Relaxed);
    // An element that was accepted alone may be refused beside others, for example because of a second driver script.
    if let Ok(mut router) = load::router_on(&text, batch, workers) {
        load::run(&mut router);
        let ledger = router.ledger();
        totals.ran += 1;
        totals.on_workers += u64::from(workers > 1);
        totals.packets += ledger.entered() + ledger.made();
        if ledger.missing() != 0 {
            return Err(format!(
                "seed {seed}: the ledger does not balance on {workers} workers\n{ledger}\n{text}"
            ));
        }
    }
    match PANICS.load(Ordering::Relaxed) - before {
        0 => Ok(()),
        _ => Err(format!("seed {seed}: panicked on {workers} workers\n{text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_routers_run_without_a_panic() {
        count_panics();
        let mut totals = Totals::default();
        for seed in 0..40 {
            assert_eq!(one(seed, 200, &mut totals), Ok(()));
        }
        let Totals { ran, on_workers, accepted, refused, packets } = totals;
        let enough = ran > 20 && on_workers > 8 && accepted > 20 && refused > 20 && packets > 4000;
        assert!(enough, "{totals:?}");
    }
}
