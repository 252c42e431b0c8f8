// SPDX-License-Identifier: MIT OR Apache-2.0
//! Aligned tables of what a router drops, holds and does.

use super::{Reading, workers};

/// Formats a number of packets per second with a unit: `1234567.8` becomes `1.23 M/s`.
pub fn rate_text(rate: f64) -> String {
    match rate {
        r if r >= 1e9 => format!("{:.2} G/s", r / 1e9),
        r if r >= 1e6 => format!("{:.2} M/s", r / 1e6),
        r if r >= 1e4 => format!("{:.1} k/s", r / 1e3),
        r if r >= 100.0 || r == r.trunc() => format!("{r:.0} /s"),
        r => format!("{r:.1} /s"),
    }
}

/// Formats rows in columns. The first `left` columns are aligned to the left, all others to the right.
pub fn columns(rows: &[Vec<String>], left: usize) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|t| t.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(i, (text, &w))| match i < left {
            true => format!("{text:w$}"),
            false => format!("{text:>w$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    rows.iter().map(line).collect()
}

fn header(titles: &[&str]) -> Vec<Vec<String>> {
    vec![titles.iter().map(ToString::to_string).collect()]
}

/// Formats a reading: drops, queues, packets held elsewhere, and workers.
pub fn text(now: &Reading, before: Option<&Reading>) -> String {
    let mut sections = Vec::new();
    let drops = now.drops(before);
    if drops.is_empty() {
        sections.push("no packets were dropped\n".to_string());
    } else {
        let mut rows = header(&["ELEMENT", "CLASS", "REASON", "PACKETS", "RATE"]);
        rows.extend(drops.into_iter().map(|d| {
            let rate = d.rate.map_or("-".to_string(), rate_text);
            vec![d.element, d.class, d.reason, d.packets.to_string(), rate]
        }));
        sections.push(columns(&rows, 3));
    }
    if !now.queues.is_empty() {
        let mut rows = header(&["QUEUE", "LENGTH", "CAPACITY", "FULL"]);
        rows.extend(now.queues.iter().map(|q| {
            let full = match q.capacity {
                0 => "-".to_string(),
                n => format!("{:.0} %", 100.0 * q.length as f64 / n as f64),
            };
            vec![q.element.clone(), q.length.to_string(), q.capacity.to_string(), full]
        }));
        sections.push(columns(&rows, 1));
    }
    let is_queue = |name: &str| now.queues.iter().any(|q| q.element == name);
    let held: Vec<_> = now.held().into_iter().filter(|h| !is_queue(h.0)).collect();
    if !held.is_empty() {
        let mut rows = header(&["HELD BY", "PACKETS"]);
        rows.extend(held.into_iter().map(|(name, n)| {
            let name = if name == "-" { "(between elements)" } else { name };
            vec![name.to_string(), n.to_string()]
        }));
        sections.push(columns(&rows, 1));
    }
    sections.push(columns(&workers::rows(&now.workers, before.map(|b| &b.workers[..])), 0));
    sections.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::tests::reading;
    use super::*;
    use std::time::Instant;

    #[test]
    fn tables_are_aligned() {
        let start = Instant::now();
        let workers = ["0\t1.0\t2.0\t3\t0.5\n10\t0\t2\t1\t0", "0\t2.0\t4.0\t3\t1.0\n10\t0.5\t4\t1\t0.25"];
        let before = reading(start, 0, ["", "", "", workers[0]]);
        let now = reading(
            start,
            1000,
            [
                "in/q\tqueue-full\t1234567\nr\tover-rate\t9\n",
                "in/q\tQueue\t0\t0\t0\t1234567\t7\nr\tMeter\t1\t1\t1\t9\t0\narp\tARPQuerier\t0\t0\t0\t0\t2\n-\t-\t0\t0\t0\t0\t3",
                "in/q\t7\t10\nempty\t0\t0\n",
                workers[1],
            ],
        );
        let want = "\
ELEMENT  CLASS  REASON      PACKETS      RATE
in/q     Queue  queue-full  1234567  1.23 M/s
r        Meter  over-rate         9      9 /s

QUEUE  LENGTH  CAPACITY  FULL
in/q        7        10  70 %
empty       0         0     -

HELD BY             PACKETS
(between elements)        3
arp                       2

WORKER    LOAD    IDLE    POLL    WORK  TASKS
     0  50.0 %  50.0 %  25.0 %  25.0 %      3
    10  25.0 %  75.0 %  12.5 %  12.5 %      1
";
        assert_eq!(text(&now, Some(&before)), want);
        let text = text(&before, None);
        assert!(text.starts_with("no packets were dropped\n\nWORKER"), "{text}");
        for (r, want) in
            [(0.0, "0 /s"), (1.25, "1.2 /s"), (150.4, "150 /s"), (20_000.0, "20.0 k/s"), (3e9, "3.00 G/s")]
        {
            assert_eq!(rate_text(r), want);
        }
        assert_eq!(columns(&[], 1), "");
        assert_eq!(columns(&[vec!["ä".into()], vec!["b".into(), "c".into()]], 0), "ä\nb  c\n");
    }
}
