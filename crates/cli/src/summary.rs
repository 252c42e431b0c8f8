// SPDX-License-Identifier: MIT OR Apache-2.0
//! The summary of a run: packets in, made and out, ICMP errors sent, drops by reason, packets held, rate.

use castanet_runtime::Router;
use castanet_spec::LedgerRole;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The summary of a run.
pub struct Summary {
    /// Packets that entered: element, its file or device, number of packets.
    entered: Vec<(String, String, u64)>,
    /// Packets made from other packets: copies, fragments, replies.
    made: Vec<(String, String, u64)>,
    /// Packets that left: element, its file or device, number of packets.
    left: Vec<(String, String, u64)>,
    /// ICMP errors sent, by type.
    errors: Vec<(String, u64)>,
    /// Packets dropped, by reason and then by element.
    drops: BTreeMap<&'static str, Vec<(String, u64)>>,
    /// Packets that are still in the router, by element.
    held: Vec<(String, u64)>,
    /// Packets that the kernel dropped before the router read them, by element.
    missed: Vec<(String, u64)>,
    /// Number of packets that are unaccounted for; negative if there are too many packets.
    missing: i64,
    /// Number of panics of elements.
    panics: u64,
    elapsed: Duration,
}

/// Returns the first argument of a configuration string, which is usually a file or device.
fn what(config: &str) -> String {
    let first = config.split(',').next().unwrap_or("").trim().trim_matches('"');
    let short: String = first.chars().take(48).collect();
    if short.len() < first.len() { format!("{short}…") } else { short }
}

impl Summary {
    /// Reads the counters of a router that has stopped.
    pub fn of(router: &mut Router, elapsed: Duration) -> Summary {
        let ledger = router.ledger();
        let mut s = Summary {
            entered: Vec::new(),
            made: Vec::new(),
            left: Vec::new(),
            errors: Vec::new(),
            drops: BTreeMap::new(),
            held: Vec::new(),
            missed: Vec::new(),
            missing: ledger.missing(),
            panics: router.running().panics(),
            elapsed,
        };
        let shared = router.shared().clone();
        let graph = &shared.graph;
        for (e, account) in ledger.accounts.iter().enumerate() {
            let here = !account.gone;
            let name =
                if here { account.element.clone() } else { format!("{} (swapped away)", account.element) };
            let row = |n| (name.clone(), format!("{} {}", account.class, what(&account.config)), n);
            // Sources and sinks are shown even if no packet has passed them.
            let begins = here && account.ledger_role.contains(LedgerRole::ENTERS) && graph.inputs(e) == 0;
            let ends = here && account.ledger_role.contains(LedgerRole::LEAVES) && graph.outputs(e) == 0;
            let source = begins && graph.outputs(e) > 0;
            s.entered.extend((account.entered > 0 || source).then(|| row(account.entered)));
            s.made.extend((account.made > 0).then(|| row(account.made)));
            s.left.extend((account.left > 0 || ends && graph.inputs(e) > 0).then(|| row(account.left)));
            s.held.extend((account.held > 0).then(|| (name.clone(), account.held)));
            s.missed.extend((account.missed > 0).then(|| (name.clone(), account.missed)));
            for (reason, n) in &account.drops {
                s.drops.entry(reason.name()).or_default().push((name.clone(), *n));
            }
        }
        s.held.extend((ledger.waiting > 0).then(|| ("between elements".to_string(), ledger.waiting)));
        let mut errors: BTreeMap<String, u64> = BTreeMap::new();
        for e in 0..graph.len() as u32 {
            let Some(spec) = shared.spec(e) else { continue };
            let mut number = |handler: &str| {
                let v = router.read(Some(e), handler, "").ok()?;
                v.trim().parse::<u64>().ok().filter(|&n| n > 0)
            };
            if spec.name == "ICMPError" {
                let config = graph.config(e as usize);
                let kind = config.split(',').nth(1).unwrap_or("").trim().to_string();
                if let Some(n) = number("sent") {
                    *errors.entry(kind).or_default() += n;
                }
            }
            if spec.handlers.iter().any(|h| h.name == "kernel_drops")
                && let Some(n) = number("kernel_drops")
            {
                s.missed.push((graph.name(e as usize).to_string(), n));
            }
        }
        s.errors = errors.into_iter().collect();
        s
    }

    fn total(&self) -> u64 {
        self.entered.iter().map(|e| e.2).sum()
    }

    /// Formats the summary as aligned text. Zeros are shown only for sources and sinks.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let digits = |n: u64| {
            let d = n.to_string();
            let groups: Vec<&str> =
                d.as_bytes().rchunks(3).rev().filter_map(|c| std::str::from_utf8(c).ok()).collect();
            groups.join(",")
        };
        let width = self
            .entered
            .iter()
            .chain(&self.made)
            .chain(&self.left)
            .map(|r| r.0.chars().count())
            .max()
            .unwrap_or(0);
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
        section("Packets made", self.made.iter().map(|r| (r.0.clone(), r.2, r.1.clone())).collect());
        section("Packets out", self.left.iter().map(|r| (r.0.clone(), r.2, r.1.clone())).collect());
        section("ICMP errors sent", self.errors.iter().map(|r| (r.0.clone(), r.1, String::new())).collect());
        let drops = self.drops.iter().map(|(reason, who)| {
            let each: Vec<String> = who.iter().map(|w| format!("{} {}", w.0, digits(w.1))).collect();
            (reason.to_string(), who.iter().map(|w| w.1).sum(), each.join(", "))
        });
        section("Dropped", drops.collect());
        section("Held", self.held.iter().map(|h| (h.0.clone(), h.1, String::new())).collect());
        let missed = self.missed.iter().map(|h| (h.0.clone(), h.1, String::new()));
        section("Dropped by the system before they came in", missed.collect());
        if self.missing != 0 {
            let n = digits(self.missing.unsigned_abs());
            let what = if self.missing > 0 { "are missing" } else { "are too many" };
            // Packets that an element had when it panicked cannot be counted.
            let why = match self.panics {
                0 => "This is a bug in Castanet.",
                _ => "An element that panicked had them.",
            };
            let _ = writeln!(out, "These numbers do not balance: {n} packets {what}. {why}");
        }
        let seconds = self.elapsed.as_secs_f64();
        let _ = write!(out, "{} packets in {seconds:.3} s", digits(self.total()));
        if self.total() > 0 && seconds > 0.0 {
            let _ = write!(out, ", {} a second", digits((self.total() as f64 / seconds) as u64));
        }
        out.push('\n');
        out
    }

    /// Formats the summary as JSON.
    pub fn json(&self) -> String {
        let rows = |v: &[(String, String, u64)]| {
            v.iter()
                .map(|r| serde_json::json!({ "element": r.0, "what": r.1, "packets": r.2 }))
                .collect::<Vec<_>>()
        };
        let pairs = |v: &[(String, u64)]| v.iter().cloned().collect::<BTreeMap<String, u64>>();
        let value = serde_json::json!({
            "in": rows(&self.entered),
            "made": rows(&self.made),
            "out": rows(&self.left),
            "icmp_errors": pairs(&self.errors),
            "drops": self.drops.iter().map(|(r, w)| (r.to_string(), pairs(w))).collect::<BTreeMap<_, _>>(),
            "held": pairs(&self.held),
            "system_drops": pairs(&self.missed),
            "missing": self.missing,
            "seconds": self.elapsed.as_secs_f64(),
        });
        format!("{value:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_dropped_is_shown_beside_the_balance() {
        let row = |name: &str, n| (name.to_string(), "FromDevice eth0".to_string(), n);
        let summary = Summary {
            entered: vec![row("in", 1_234_567)],
            made: Vec::new(),
            left: vec![row("out", 7)],
            errors: vec![("unreachable".into(), 2)],
            drops: [("over-rate", vec![("a".to_string(), 1000), ("b".to_string(), 1)])].into(),
            held: vec![("q".into(), 5)],
            missed: vec![("in".into(), 12), ("old (swapped away)".into(), 3000)],
            missing: -2,
            panics: 0,
            elapsed: Duration::from_secs(2),
        };
        let want = "Packets in
  in   1,234,567  FromDevice eth0
Packets out
  out  7  FromDevice eth0
ICMP errors sent
  unreachable  2
Dropped
  over-rate  1,001  a 1,000, b 1
Held
  q    5
Dropped by the system before they came in
  in                     12
  old (swapped away)  3,000
These numbers do not balance: 2 packets are too many. This is a bug in Castanet.
1,234,567 packets in 2.000 s, 617,283 a second
";
        assert_eq!(summary.text(), want);
        let json: serde_json::Value = serde_json::from_str(&summary.json()).unwrap_or_default();
        assert_eq!(json["system_drops"], serde_json::json!({ "in": 12, "old (swapped away)": 3000 }));
        assert_eq!((&json["missing"], &json["held"]), (&(-2).into(), &serde_json::json!({ "q": 5 })));
    }
}
