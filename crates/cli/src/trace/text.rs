// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traced packets as text and as JSON.

use super::change::{Change, changes};
use super::step::{Bytes, Event, Step};
use crate::observe::columns;
use castanet_graph::filter::network_of;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// The classes of elements, by name.
pub type Classes = HashMap<String, String>;

/// A step with what the element changed.
struct Told<'s> {
    step: &'s Step,
    /// Nanoseconds since the packet entered.
    since: i64,
    /// How long the element held the packet before this step, in nanoseconds.
    held: Option<i64>,
    changes: Vec<Change>,
}

/// Compares the steps of a packet with each other.
fn told(steps: &[Step]) -> Vec<Told<'_>> {
    let began = steps.first().map_or(0, |s| s.time);
    let mut last: BTreeMap<u64, &Bytes> = BTreeMap::new();
    let mut held: BTreeMap<u64, (&str, i64)> = BTreeMap::new();
    let mut out = Vec::with_capacity(steps.len());
    for step in steps {
        let Step { part, time, element, event, bytes, .. } = step;
        let before = match event {
            Event::Made(_) => None,
            _ => last.get(part).copied(),
        };
        let changes = before.zip(bytes.as_ref()).map(|(b, a)| changes(b, a)).unwrap_or_default();
        let waited = held.remove(part).filter(|h| h.0 == element.as_str()).map(|h| time - h.1);
        if *event == Event::Held {
            held.insert(*part, (element, *time));
        }
        if let Some(bytes) = bytes {
            last.insert(*part, bytes);
        }
        out.push(Told { step, since: time - began, held: waited, changes });
    }
    out
}

/// Formats nanoseconds.
fn duration(ns: i64) -> String {
    match ns.unsigned_abs() {
        n if n < 10_000 => format!("{ns} ns"),
        n if n < 10_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        n if n < 10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    const MOST: usize = 8;
    let mut out = bytes.iter().take(MOST).fold(String::new(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    });
    if bytes.len() > MOST {
        out.push_str("..");
    }
    out
}

fn bytes(n: u64) -> String {
    if n == 1 { "1 byte".to_string() } else { format!("{n} bytes") }
}

impl Change {
    fn text(&self) -> String {
        match self {
            Change::Stripped(n) => format!("{} stripped", bytes(*n)),
            Change::Prepended(n) => format!("{} prepended", bytes(*n)),
            Change::Length(before, after) => format!("length {before} -> {after}"),
            Change::Bytes(range, before, after) => {
                let place = match range.len() {
                    1 => format!("byte {}", range.start),
                    _ => format!("bytes {}-{}", range.start, range.end - 1),
                };
                format!("{place}: {} -> {}", hexadecimal(before), hexadecimal(after))
            }
            Change::Header(None) => "IP header no longer marked".to_string(),
            Change::Header(Some(at)) => format!("IP header at {at}"),
            Change::Paint(color) => format!("paint {color}"),
            Change::Destination(address) => format!("destination {address}"),
            Change::Annotation(at, value) => format!("annotation {at}: {}", hexadecimal(value)),
        }
    }
    fn json(&self) -> Value {
        match self {
            Change::Stripped(n) => json!({ "stripped": n }),
            Change::Prepended(n) => json!({ "prepended": n }),
            Change::Length(before, after) => json!({ "length": [before, after] }),
            Change::Bytes(range, before, after) => {
                json!({ "bytes": range.start, "from": all_hex(before), "to": all_hex(after) })
            }
            Change::Header(at) => json!({ "ip_header": at }),
            Change::Paint(color) => json!({ "paint": color }),
            Change::Destination(address) => json!({ "destination": address.to_string() }),
            Change::Annotation(at, value) => json!({ "annotation": at, "to": all_hex(value) }),
        }
    }
}

fn all_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The text of a step's event.
fn event(step: &Step) -> String {
    match &step.event {
        Event::Entered(port) => format!("entered, to [{port}]"),
        Event::Made(port) => format!("made, to [{port}]"),
        Event::Out(port) => format!("to [{port}]"),
        Event::Held => "held".to_string(),
        Event::Left => "left the router".to_string(),
        Event::Ended(reason) => format!("ended: {reason}"),
        Event::Dropped(reason) => format!("DROPPED: {reason}"),
        Event::Gone => "kept or used up".to_string(),
        Event::Cut => "followed no further: too many steps".to_string(),
    }
}

/// Describes a packet in a few words: its length and, for IPv4, its addresses and protocol.
pub fn summary(length: u64, data: &[u8], network: Option<i64>) -> String {
    let mut out = bytes(length);
    let marked = network.and_then(|n| usize::try_from(n).ok()).and_then(|n| data.get(n..));
    let Some(header) = marked.unwrap_or_else(|| network_of(data)).first_chunk::<20>() else { return out };
    let address = |at: usize| {
        let octets = header.get(at..).and_then(|h| h.first_chunk::<4>()).copied();
        Ipv4Addr::from(octets.unwrap_or_default())
    };
    let [.., protocol, _, _, _, _, _, _, _, _, _, _] = *header;
    let protocol = castanet_classify::names::ip_proto_name(protocol)
        .map_or_else(|| format!("protocol {protocol}"), str::to_string);
    let _ = write!(out, ", {} -> {}, {protocol}", address(12), address(16));
    out
}

fn of(steps: &[Step]) -> String {
    let first = steps.first().and_then(|s| s.bytes.as_ref());
    first.map_or(String::new(), |b| summary(b.length, &b.data, b.network))
}

/// A step in a line: what the element did, and the changes.
pub fn line(step: &Step, changes: &[Change]) -> String {
    let changes = changes.iter().map(|c| format!("; {}", c.text())).collect::<String>();
    format!("{}{changes}", event(step))
}

/// A step in a line, with how long the element held the packet before.
fn described(t: &Told<'_>) -> String {
    let held = t.held.map_or(String::new(), |ns| format!("; held for {}", duration(ns)));
    format!("{}{held}", line(t.step, &t.changes))
}

/// Returns comments for the steps of a packet, as captures have them.
pub fn comments(steps: &[Step], classes: &Classes) -> Vec<String> {
    let told = told(steps);
    let comment = |t: &Told<'_>| {
        let class = classes.get(&t.step.element).map_or(String::new(), |c| format!(" :: {c}"));
        let part = if t.step.part == 0 { String::new() } else { format!(".{}", t.step.part) };
        format!("packet {}{part}: {}{class} {}", t.step.packet, t.step.element, line(t.step, &t.changes))
    };
    told.iter().map(comment).collect()
}

/// Formats a packet as a table of its steps.
pub fn text(steps: &[Step], classes: &Classes) -> String {
    let Some(first) = steps.first() else { return String::new() };
    let has_parts = steps.iter().any(|s| s.part > 0);
    let rows: Vec<Vec<String>> = told(steps)
        .iter()
        .map(|t| {
            let class = classes.get(&t.step.element).map_or("", String::as_str);
            // Elements without a name of their own have that of their class.
            let own = t.step.element.rsplit('/').next().unwrap_or_default();
            let element = match own.split_once('@') {
                Some((name, _)) if name == class => t.step.element.clone(),
                _ => format!("{} :: {class}", t.step.element),
            };
            let mut row = vec![format!("  {:>9}", duration(t.since))];
            if has_parts {
                row.push(match t.step.part {
                    0 => String::new(),
                    n => format!("part {n}"),
                });
            }
            row.extend([element, described(t)]);
            row
        })
        .collect();
    format!("packet {}: {}\n{}", first.packet, of(steps), columns(&rows, usize::MAX))
}

/// The packet as JSON.
/// `is_whole` is false if the packet is still in the router.
pub fn json(steps: &[Step], classes: &Classes, is_whole: bool) -> Value {
    let step = |t: &Told<'_>| {
        let s = t.step;
        let (what, port, reason) = match &s.event {
            Event::Entered(port) => ("entered", Some(port), None),
            Event::Made(port) => ("made", Some(port), None),
            Event::Out(port) => ("out", Some(port), None),
            Event::Held => ("held", None, None),
            Event::Left => ("left", None, None),
            Event::Ended(reason) => ("ended", None, Some(reason)),
            Event::Dropped(reason) => ("dropped", None, Some(reason)),
            Event::Gone => ("gone", None, None),
            Event::Cut => ("cut", None, None),
        };
        json!({
            "part": s.part, "time": s.time, "worker": s.worker,
            "element": s.element, "class": classes.get(&s.element),
            "input": s.input, "event": what, "output": port, "reason": reason, "held_ns": t.held, "text": described(t),
            "changes": t.changes.iter().map(Change::json).collect::<Vec<_>>(),
            "length": s.bytes.as_ref().map(|b| b.length),
            "data": s.bytes.as_ref().map(|b| all_hex(&b.data)),
        })
    };
    let told = told(steps);
    json!({
        "packet": steps.first().map(|s| s.packet),
        "summary": of(steps),
        "is_whole": is_whole,
        "steps": told.iter().map(step).collect::<Vec<_>>(),
    })
}
