// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person wants to know after a run: packets in and out, ICMP errors sent, drops by reason, rate.

use castanet_runtime::Router;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The summary of a run.
pub struct Summary {
    /// Where packets came from: element, what it reads, packets.
    entered: Vec<(String, String, u64)>,
    /// Where packets went: element, what it writes, packets.
    left: Vec<(String, String, u64)>,
    /// ICMP errors sent, by type.
    errors: Vec<(String, u64)>,
    /// Packets dropped, by reason and then by element.
    drops: BTreeMap<&'static str, Vec<(String, u64)>>,
    /// Packets still in queues.
    held: Vec<(String, u64)>,
    elapsed: Duration,
}

/// The first words of a configuration string, to tell files and devices apart.
fn what(config: &str) -> String {
    let first = config.split(',').next().unwrap_or("").trim().trim_matches('"');
    let short: String = first.chars().take(48).collect();
    if short.len() < first.len() { format!("{short}…") } else { short }
}

impl Summary {
    /// Reads the counters of a router that has stopped.
    pub fn of(router: &mut Router, elapsed: Duration) -> Summary {
        let mut s = Summary {
            entered: Vec::new(),
            left: Vec::new(),
            errors: Vec::new(),
            drops: BTreeMap::new(),
            held: Vec::new(),
            elapsed,
        };
        let shared = router.shared().clone();
        let graph = &shared.graph;
        let mut errors: BTreeMap<String, u64> = BTreeMap::new();
        for e in 0..graph.len() {
            let Some(element) = graph.element(e) else { continue };
            let mut number = |handler: &str| {
                let v = router.read(u32::try_from(e).ok(), handler, "").ok()?;
                v.trim().parse::<u64>().ok()
            };
            let (inputs, outputs) = (graph.inputs(e), graph.outputs(e));
            let class = shared.spec(e as u32).map_or("", |s| s.name);
            let row = |n| (element.name.clone(), format!("{} {}", element.class, what(&element.config)), n);
            match class {
                "ICMPError" => {
                    let kind = element.config.split(',').nth(1).unwrap_or("").trim().to_string();
                    if let Some(n) = number("sent") {
                        *errors.entry(kind).or_default() += n;
                    }
                }
                _ if inputs == 0 && outputs > 0 => s.entered.extend(number("count").map(row)),
                "ToDump" => s.left.extend(number("count").map(row)),
                _ if inputs > 0 && outputs == 0 => s.left.extend(number("count").map(row)),
                _ if shared.spec(e as u32).is_some_and(|s| s.has(castanet_spec::Capability::Storage)) => {
                    let length = number("length").filter(|&n| n > 0);
                    s.held.extend(length.map(|n| (element.name.clone(), n)));
                }
                _ => {}
            }
        }
        s.errors = errors.into_iter().filter(|e| e.1 > 0).collect();
        for ((e, reason), n) in router.drops() {
            // What a sink discards or takes has been counted as a way out.
            let sink = graph.outputs(e as usize) == 0 && reason == castanet_spec::Reason::Consumed;
            if sink || reason == castanet_spec::Reason::Discarded {
                continue;
            }
            s.drops.entry(reason.name()).or_default().push((graph.name(e as usize).to_string(), n));
        }
        for ((name, reason), n) in router.former_drops() {
            let place = format!("{name} (swapped away)");
            s.drops.entry(reason.name()).or_default().push((place, *n));
        }
        s
    }

    fn total(&self) -> u64 {
        self.entered.iter().map(|e| e.2).sum()
    }

    /// For people: aligned, nothing that is zero but what came in and went out.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let digits = |n: u64| {
            let d = n.to_string();
            let groups: Vec<&str> =
                d.as_bytes().rchunks(3).rev().filter_map(|c| std::str::from_utf8(c).ok()).collect();
            groups.join(",")
        };
        let width = self.entered.iter().chain(&self.left).map(|r| r.0.chars().count()).max().unwrap_or(0);
        let mut section = |title: &str, rows: Vec<(String, u64, String)>| {
            if rows.is_empty() {
                return;
            }
            let _ = writeln!(out, "{title}");
            let name = rows.iter().map(|r| r.0.chars().count()).max().unwrap_or(0).max(width);
            let number = rows.iter().map(|r| digits(r.1).len()).max().unwrap_or(0);
            for (n, v, more) in rows {
                let line = format!("  {n:name$}  {:>number$}  {more}", digits(v));
                let _ = writeln!(out, "{}", line.trim_end());
            }
        };
        section("Packets in", self.entered.iter().map(|r| (r.0.clone(), r.2, r.1.clone())).collect());
        section("Packets out", self.left.iter().map(|r| (r.0.clone(), r.2, r.1.clone())).collect());
        section("ICMP errors sent", self.errors.iter().map(|r| (r.0.clone(), r.1, String::new())).collect());
        let drops = self.drops.iter().map(|(reason, who)| {
            let each: Vec<String> = who.iter().map(|w| format!("{} {}", w.0, digits(w.1))).collect();
            (reason.to_string(), who.iter().map(|w| w.1).sum(), each.join(", "))
        });
        section("Dropped", drops.collect());
        section("Still in queues", self.held.iter().map(|h| (h.0.clone(), h.1, String::new())).collect());
        let seconds = self.elapsed.as_secs_f64();
        let _ = write!(out, "{} packets in {seconds:.3} s", digits(self.total()));
        if self.total() > 0 && seconds > 0.0 {
            let _ = write!(out, ", {} a second", digits((self.total() as f64 / seconds) as u64));
        }
        out.push('\n');
        out
    }

    /// For programs.
    pub fn json(&self) -> String {
        let rows = |v: &[(String, String, u64)]| {
            v.iter()
                .map(|r| serde_json::json!({ "element": r.0, "what": r.1, "packets": r.2 }))
                .collect::<Vec<_>>()
        };
        let pairs = |v: &[(String, u64)]| v.iter().cloned().collect::<BTreeMap<String, u64>>();
        let value = serde_json::json!({
            "in": rows(&self.entered),
            "out": rows(&self.left),
            "icmp_errors": pairs(&self.errors),
            "drops": self.drops.iter().map(|(r, w)| (r.to_string(), pairs(w))).collect::<BTreeMap<_, _>>(),
            "queued": pairs(&self.held),
            "seconds": self.elapsed.as_secs_f64(),
        });
        format!("{value:#}\n")
    }
}
