// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configurations before any pass: the Figure 8 router from memory to memory and between devices, the simplest router, and
//! the first elements of the forwarding path.

use crate::frames::Traffic;
use crate::path::{self, GATEWAYS, PATH};
use castanet_lang::print;
use castanet_runtime::swap::Loaded;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The kinds of sources and sinks of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Sources in memory, and sinks that drop packets.
    Memory,
    /// As [`Ends::Memory`], but the sinks keep the frames, for comparison.
    Kept,
    /// The devices `in` and `out`.
    Devices,
}

/// The other end of an interface's link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The name of the element that sends to the link.
    pub sends: String,
    /// The name of the element that receives from the link.
    pub receives: String,
    /// The IP address of the neighbour.
    pub address: Ipv4Addr,
    /// The Ethernet address of the neighbour.
    pub ether: String,
}

/// A configuration to which passes are applied.
#[derive(Clone, Debug)]
pub struct Base {
    /// The flat configuration.
    pub text: String,
    /// The links of the interfaces. They lead to one neighbour each.
    pub interfaces: [Interface; 2],
}

/// The Ethernet address of the neighbour of an interface.
fn neighbour(ends: Ends, interface: usize) -> String {
    let gateway = GATEWAYS.get(interface).map_or(0, |g| g[0]);
    let [a, b, c, d, e, f] = path::ether(interface, gateway);
    match (ends, interface) {
        // The generator drops no frame that arrives there, so that it has no work with them.
        (Ends::Devices, 1) => crate::veth::NEXT_HOP.to_string(),
        _ => format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"),
    }
}

/// Returns the flat configuration of a text, with the variables replaced.
fn flat(text: &str, batch: usize) -> Result<String, String> {
    let defines = path::defines(Traffic::One, batch, crate::fig8::PACKETS);
    let (loaded, _) = Loaded::from_text("base", text.as_bytes(), &defines, Arc::new(super::classes()))
        .map_err(|e| e.to_string())?;
    Ok(print::driver(&loaded.graph.flat))
}

/// Returns the text with a part replaced.
fn replaced(text: &str, old: &str, new: &str) -> Result<String, String> {
    if text.contains(old) {
        Ok(text.replace(old, new))
    } else {
        Err(format!("the configuration lacks '{old}'"))
    }
}

/// Returns the text of the Figure 8 router between devices. Each packet that it receives is checked `burden` times first.
fn between_devices(burden: usize) -> Result<String, String> {
    let mut text = PATH.to_string();
    for (i, device) in ["in", "out"].into_iter().enumerate() {
        let source = format!(
            "source{i} :: MemSource($FRAMES{i}, LIMIT $LIMIT, BURST $BURST, RANDOM $RANDOM, STOP true)"
        );
        let receives = format!("from{i} :: FromDevice({device}, SNIFFER false){}", checks(burden));
        text = replaced(&text, &source, &receives)?;
        let sink = format!("Unqueue($BURST) -> out{i} :: Sink");
        text = replaced(&text, &sink, &format!("to{i} :: ToDevice({device})"))?;
    }
    Ok(text)
}

/// Elements that check a header `n` times.
fn checks(n: usize) -> String {
    " -> CheckIPHeader(14)".repeat(n)
}

/// The Figure 8 router between devices, which checks each header `burden` times more.
///
/// # Errors
/// The configuration has errors.
pub fn burdened(burden: usize) -> Result<String, String> {
    flat(&between_devices(burden)?, 32)
}

/// The Figure 8 router.
///
/// # Errors
/// The configuration has errors.
pub fn router(ends: Ends, batch: usize) -> Result<Base, String> {
    let mut text = PATH.to_string();
    let mut names = [0, 1].map(|i| (format!("out{i}/Discard@1"), format!("source{i}")));
    match ends {
        Ends::Memory => {}
        Ends::Kept => {
            text = replaced(
                &text,
                "elementclass Sink { input -> Discard; }",
                "elementclass Sink { input -> Collect; }",
            )?;
            for (sends, _) in &mut names {
                *sends = sends.replace("Discard", "Collect");
            }
        }
        Ends::Devices => {
            text = between_devices(0)?;
            names = [0, 1].map(|i| (format!("to{i}"), format!("from{i}")));
        }
    }
    let mut number = 0;
    let interfaces = names.map(|(sends, receives)| {
        let (i, gateway) = (number, GATEWAYS.get(number).map_or(0, |g| g[0]));
        number += 1;
        Interface { sends, receives, address: Ipv4Addr::from_bits(gateway), ether: neighbour(ends, i) }
    });
    Ok(Base { text: flat(&text, batch)?, interfaces })
}

const SOURCES: [&str; 2] = [
    "source0 :: MemSource($FRAMES0, LIMIT $LIMIT, BURST $BURST, STOP true)",
    "source1 :: MemSource($FRAMES1, LIMIT $LIMIT, BURST $BURST, STOP true)",
];
/// The definitions of the variables, whose values the tests and benchmarks give.
const VARIABLES: &str = "define($FRAMES0 x, $FRAMES1 x, $LIMIT 1, $BURST 1, $COLOR0 1, $COLOR1 2,
       $INTERFACES 1.0.0.1/8 2.0.0.1/8);\n";

/// The simplest router: a queue on the way of each interface. Without `queues`, the packets go from the sources to the sinks.
///
/// # Errors
/// The configuration has errors.
pub fn simple(batch: usize, queues: bool) -> Result<String, String> {
    let mut text = VARIABLES.to_string();
    for (i, source) in SOURCES.into_iter().enumerate() {
        let queue =
            if queues { format!("queue{i} :: Queue(1000) -> Unqueue($BURST) -> ") } else { String::new() };
        let _ = writeln!(text, "{source} -> {queue}out{i} :: Discard;");
    }
    flat(&text, batch)
}

/// The simplest router between devices, from `in` to `out`, which checks each header `burden` times. Without `sends`, it drops what
/// it receives.
pub fn simple_devices(sends: bool, burden: usize) -> String {
    let end = if sends { "queue1 :: Queue(1000) -> to1 :: ToDevice(out)" } else { "sink :: Discard" };
    format!("from0 :: FromDevice(in, SNIFFER false){} -> {end};\n", checks(burden))
}

/// The elements of the forwarding path up to the queue, as TOCS Table II lists them, with their cost there in nanoseconds.
pub const ELEMENTS: [(&str, f64); 13] = [
    ("Classifier", 70.0),
    ("Paint", 77.0),
    ("Strip", 67.0),
    ("CheckIPHeader", 457.0),
    ("GetIPAddress", 120.0),
    ("LookupIPRoute", 140.0),
    ("DropBroadcasts", 77.0),
    ("CheckPaint", 67.0),
    ("IPGWOptions", 63.0),
    ("FixIPSrc", 63.0),
    ("DecIPTTL", 119.0),
    ("IPFragmenter", 29.0),
    ("ARPQuerier", 106.0),
];
/// How many of these each interface has of its own, before those that all interfaces share.
const BEFORE_IP: usize = 2;
/// How many come before the route table. Behind it, each interface has its own elements again.
const BEFORE_ROUTES: usize = 5;

// Writing to a string cannot fail, so the results of `write!` in this file are ignored.

/// Returns the part of the router's text between two marks.
fn part(after: &str, before: &str) -> Result<&'static str, String> {
    let found = PATH.split_once(after).and_then(|(_, rest)| rest.split_once(before));
    found.map(|(part, _)| part).ok_or_else(|| format!("the configuration lacks '{after}'"))
}

/// The first `n` elements of the path, for both interfaces; then the packets are dropped.
///
/// # Errors
/// The configuration has errors.
pub fn prefix(n: usize, batch: usize) -> Result<String, String> {
    let kinds = part("kind0 :: Classifier(", ");")?;
    let mut text = format!("{VARIABLES}end :: Discard;\n");
    if n > 0 {
        text += "rest :: Discard;\n";
    }
    // The connections of the outputs that these packets do not take.
    let mut sides = String::new();
    if n > BEFORE_IP {
        let check = format!("CheckIPHeader({}", part("-> CheckIPHeader(", "\n")?);
        let shared = ["Strip(14)", &check, "GetIPAddress(16)"];
        let elements = shared.into_iter().take(n - BEFORE_IP).collect::<Vec<_>>().join(" -> ");
        let _ = write!(text, "ip :: {elements} -> ");
        if n > BEFORE_ROUTES {
            let _ = writeln!(text, "routes :: StaticIPLookup({});", part("routes :: StaticIPLookup(", ");")?);
            sides += "routes [0] -> rest;\n";
            for (i, addresses) in ["1.0.0.1, 2.0.0.1", "2.0.0.1, 1.0.0.1"].into_iter().enumerate() {
                way_out(n, i, addresses, &mut text, &mut sides)?;
            }
        } else {
            text += "end;\n";
        }
    }
    let next = if n > BEFORE_IP { "ip" } else { "end" };
    for (i, source) in SOURCES.into_iter().enumerate() {
        let own = [format!("kind{i} :: Classifier({kinds}) [2]"), format!("Paint($COLOR{i})")];
        let elements = own.iter().take(n).fold(String::new(), |text, e| text + e + " -> ");
        let _ = writeln!(text, "{source} -> {elements}{next};");
        if n > 0 {
            let _ = writeln!(sides, "kind{i} [0] -> rest; kind{i} [1] -> rest; kind{i} [3] -> rest;");
        }
    }
    flat(&(text + &sides), batch)
}

/// Adds those of the first `n` elements that are behind the route table, for one interface. `addresses` are the interface's own
/// address and that of the other one.
fn way_out(n: usize, i: usize, addresses: &str, text: &mut String, sides: &mut String) -> Result<(), String> {
    let own = addresses.split(',').next().unwrap_or_default();
    let elements = [
        "DropBroadcasts".to_string(),
        format!("redirect{i} :: PaintTee({})", i + 1),
        format!("options{i} :: IPGWOptions({addresses})"),
        format!("FixIPSrc({own})"),
        format!("ttl{i} :: DecIPTTL"),
        format!("fragment{i} :: IPFragmenter(1500)"),
        format!("arp{i} :: {}", part(&format!("arp{i} :: "), " ->")?),
    ];
    let _ = write!(text, "routes [{}] -> ", i + 1);
    for element in elements.iter().take(n - BEFORE_ROUTES - 1) {
        let _ = write!(text, "{element} -> ");
        match element.split_once(" :: ") {
            Some((name, class)) if class.starts_with("ARPQuerier") => {
                let _ = writeln!(sides, "Idle -> [1] {name};");
            }
            Some((name, _)) => {
                let _ = writeln!(sides, "{name} [1] -> rest;");
            }
            None => {}
        }
    }
    text.push_str("end;\n");
    Ok(())
}
