// SPDX-License-Identifier: MIT OR Apache-2.0
//! The costs of a router's elements: `castanet run --profile` and `castanet ctl ADDRESS profile`, which is Table II of TOCS
//! 2000 ("The Click Modular Router") for any configuration.

mod flame;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The name of the run loop in tables.
const RUN_LOOP: &str = "(run loop)";

/// The cost of an element in the measured rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cost {
    class: String,
    /// Nanoseconds.
    time: u64,
    packets: u64,
}

impl Cost {
    /// Nanoseconds per packet. None if no packet was counted.
    fn per_packet(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.time as f64 / self.packets as f64)
    }
}

/// The value of the global handler `profile`.
pub struct Profile {
    /// The costs by worker and element; the run loop has the name of [`RUN_LOOP`].
    costs: BTreeMap<(u32, String), Cost>,
}

impl Profile {
    /// Reads the value of the handler. Leaves out lines of another form.
    pub fn parse(text: &str) -> Profile {
        let line = |line: &str| {
            let words: Vec<&str> = line.split('\t').collect();
            let [worker, element, class, time, packets] = words[..] else { return None };
            let name = if class == "-" { RUN_LOOP } else { element };
            let cost = Cost { class: class.into(), time: time.parse().ok()?, packets: packets.parse().ok()? };
            Some(((worker.parse().ok()?, name.to_string()), cost))
        };
        Profile { costs: text.lines().filter_map(line).collect() }
    }

    /// The costs by element, added over all workers, the highest first.
    fn by_element(&self) -> Vec<(&str, Cost)> {
        let mut all: BTreeMap<&str, Cost> = BTreeMap::new();
        for ((_, name), cost) in &self.costs {
            let sum = all.entry(name).or_default();
            sum.class.clone_from(&cost.class);
            sum.time = sum.time.saturating_add(cost.time);
            sum.packets = sum.packets.saturating_add(cost.packets);
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by(|a, b| b.1.time.cmp(&a.1.time).then(a.0.cmp(b.0)));
        all
    }

    /// The nanoseconds and packets by element, added over all workers.
    pub fn costs_of_elements(&self) -> BTreeMap<String, (u64, u64)> {
        self.by_element().into_iter().map(|(name, c)| (name.to_string(), (c.time, c.packets))).collect()
    }

    fn total(&self) -> u64 {
        self.costs.values().fold(0, |sum, c| sum.saturating_add(c.time))
    }

    /// Formats a table of the elements.
    pub fn text(&self) -> String {
        let rows = self.by_element();
        if rows.is_empty() {
            return "profile: nothing ran while the router was measured\n".to_string();
        }
        let total = self.total().max(1) as f64;
        let width = |of: &dyn Fn(&(&str, Cost)) -> usize, title: &str| {
            rows.iter().map(of).max().unwrap_or(0).max(title.len())
        };
        let name = width(&|r| r.0.chars().count(), "ELEMENT");
        let class = width(&|r| r.1.class.chars().count(), "CLASS");
        let mut out = format!(
            "{:name$}  {:class$}  {:>7}  {:>10}  {:>10}\n",
            "ELEMENT", "CLASS", "SHARE", "NS/PACKET", "PACKETS"
        );
        for (element, cost) in rows {
            let share = format!("{:.1} %", 100.0 * cost.time as f64 / total);
            let each = cost.per_packet().map_or("-".to_string(), |ns| format!("{ns:.1}"));
            let packets = if cost.packets > 0 { cost.packets.to_string() } else { "-".to_string() };
            let class_name = if element == RUN_LOOP { "" } else { &cost.class };
            let _ =
                writeln!(out, "{element:name$}  {class_name:class$}  {share:>7}  {each:>10}  {packets:>10}");
        }
        let _ = writeln!(out, "measured: {:.3} ms", total / 1e6);
        out
    }

    /// The table as JSON.
    pub fn json(&self) -> Value {
        let total = self.total().max(1) as f64;
        let row = |(name, cost): (&str, Cost)| {
            let (element, class) = if name == RUN_LOOP {
                (Value::Null, Value::Null)
            } else {
                (name.into(), cost.class.clone().into())
            };
            json!({
                "element": element, "class": class, "share": cost.time as f64 / total,
                "ns_per_packet": cost.per_packet(), "ns": cost.time, "packets": cost.packets,
            })
        };
        json!({ "measured_ns": self.total(), "elements": self.by_element().into_iter().map(row).collect::<Vec<_>>() })
    }

    /// Draws a flame graph: the whole time, below it the workers, the compounds and the elements.
    pub fn flame(&self) -> String {
        flame::svg(self.costs.iter().map(|((worker, name), cost)| {
            let mut frames = vec![format!("worker {worker}")];
            if name == RUN_LOOP {
                frames.push(name.clone());
            } else {
                frames.extend(name.split('/').map(String::from));
                if let Some(last) = frames.last_mut() {
                    let _ = write!(last, " :: {}", cost.class);
                }
            }
            let each = cost.per_packet().map_or(String::new(), |ns| format!(", {ns:.1} ns per packet"));
            (frames, cost.time, each)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0\tway/ttl\tDecIPTTL\t3000\t100\n0\t-\t-\t500\t0\n1\tway/ttl\tDecIPTTL\t1000\t60\n\
                        1\t<s>\tInfiniteSource\t5500\t50\nbad line\n";

    #[test]
    fn tables_add_workers_and_begin_with_the_highest() {
        let profile = Profile::parse(TEXT);
        let want = "\
ELEMENT     CLASS             SHARE   NS/PACKET     PACKETS
<s>         InfiniteSource   55.0 %       110.0          50
way/ttl     DecIPTTL         40.0 %        25.0         160
(run loop)                    5.0 %           -           -
measured: 0.010 ms
";
        assert_eq!(profile.text(), want);
        let json = profile.json();
        assert_eq!(json["measured_ns"], 10_000);
        assert_eq!(json["elements"][1]["element"], "way/ttl");
        assert_eq!(json["elements"][1]["ns_per_packet"], 25.0);
        assert_eq!(json["elements"][2]["element"], Value::Null);
        assert_eq!(Profile::parse("").text(), "profile: nothing ran while the router was measured\n");
    }

    #[test]
    fn flames_have_frames_for_workers_and_compounds() {
        let svg = Profile::parse(TEXT).flame();
        for text in [
            "worker 0",
            "worker 1",
            "ttl :: DecIPTTL",
            "&lt;s&gt; :: InfiniteSource",
            "(run loop)",
            "30.0 ns per packet",
        ] {
            assert!(svg.contains(text), "{text}\n{svg}");
        }
        assert!(Profile::parse("").flame().contains("</svg>"));
    }
}
