// SPDX-License-Identifier: MIT OR Apache-2.0
//! The texts of a sample: the cells of rows, one table for scripts, and JSON.

use super::sample::{Row, Sample};
use crate::observe::{columns, rate_text, workers};
use serde_json::{Value, json};

/// The titles of the columns.
pub const TITLES: [&str; 7] = ["ELEMENT", "CLASS", "PACKETS", "DROPS", "HELD", "TIME", "NS/PKT"];

/// Returns the cells of a row, in the order of [`TITLES`].
pub fn cells(row: &Row) -> [String; 7] {
    let rate = |r: f64| if r == 0.0 { "0".to_string() } else { rate_text(r) };
    let dash = || "-".to_string();
    let held = match row.capacity {
        Some(capacity) => format!("{}/{capacity}", row.held),
        None if row.held == 0 => dash(),
        None => row.held.to_string(),
    };
    let packets = row.packet_rate.map_or_else(dash, rate);
    let drops = if row.drops == 0 { dash() } else { rate(row.drop_rate) };
    let time = row.time.map_or_else(dash, |t| format!("{:.1} %", 100.0 * t));
    let cost = row.cost.map_or_else(dash, |c| format!("{c:.1}"));
    [row.element.clone(), row.class.clone(), packets, drops, held, time, cost]
}

/// Formats the rows and the workers.
pub fn text(rows: &[Row], now: &Sample, before: Option<&Sample>) -> String {
    let mut all = vec![TITLES.map(String::from).to_vec()];
    all.extend(rows.iter().map(|r| cells(r).to_vec()));
    let before = before.map(|b| &b.reading.workers[..]);
    columns(&all, 2) + "\n" + &columns(&workers::rows(&now.reading.workers, before), 0)
}

/// Returns the rows, the drops by reason and the workers as JSON.
pub fn json(rows: &[Row], now: &Sample, before: Option<&Sample>) -> Value {
    let row = |r: &Row| {
        json!({
            "element": r.element, "class": r.class, "packets": r.packets, "packet_rate": r.packet_rate,
            "drops": r.drops, "drop_rate": r.drop_rate, "held": r.held, "capacity": r.capacity,
            "time_share": r.time, "ns_per_packet": r.cost,
        })
    };
    let mut value = now.reading.json(before.map(|b| &b.reading));
    value["elements"] = rows.iter().map(row).collect();
    value["seconds"] = before.map(|b| now.reading.seconds_since(&b.reading)).into();
    value
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::sample;
    use super::*;
    use std::time::Instant;

    #[test]
    fn one_table_for_scripts() {
        let start = Instant::now();
        let (before, now) = (sample(start, 500, 1), sample(start, 1000, 3));
        let rows = now.rows(Some(&before));
        let want = "\
ELEMENT  CLASS       PACKETS   DROPS      HELD    TIME  NS/PKT
in       FromDevice   400 /s       -         -       -       -
c        Counter      392 /s       -         -       -       -
q        Queue             -  200 /s  300/1000       -       -
ttl      DecIPTTL          -    8 /s         -  75.0 %    30.0
out      ToDevice     192 /s       -         3       -       -

WORKER    LOAD    IDLE    POLL    WORK  TASKS
     0  75.0 %  25.0 %  25.0 %  50.0 %      2
";
        assert_eq!(text(&rows, &now, Some(&before)), want);
        let json = json(&rows, &now, Some(&before));
        assert_eq!(json["elements"][2]["drop_rate"], 200.0);
        assert_eq!(json["elements"][2]["packets"], Value::Null);
        assert_eq!(json["drops"][0]["reason"], "queue-full");
        assert_eq!((&json["seconds"], &json["workers"][0]["work"]), (&0.5.into(), &0.5.into()));
    }
}
