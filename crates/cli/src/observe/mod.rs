// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observes a running router: what it drops and why, its queues, the packets it holds, the load of its workers.

pub mod flows;
mod handlers;
mod table;
pub mod workers;

pub use handlers::{Element, Handlers, Inside};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
pub use table::{columns, rate_text, text};
use workers::Worker;

/// The reason that is shown for packets which the kernel dropped before the router read them.
const KERNEL: &str = "(kernel)";

/// The packets of one element, from the global handler `ledger`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub element: String,
    pub class: String,
    pub entered: u64,
    pub made: u64,
    pub left: u64,
    pub dropped: u64,
    pub held: u64,
}

impl Account {
    fn parse(line: &str) -> Option<Account> {
        let words: Vec<&str> = line.split('\t').collect();
        let [element, class, counts @ ..] = &words[..] else { return None };
        let counts: Vec<u64> = counts.iter().map(|n| n.parse().ok()).collect::<Option<_>>()?;
        let [entered, made, left, dropped, held, ..] = counts[..] else { return None };
        Some(Account {
            element: element.to_string(),
            class: class.to_string(),
            entered,
            made,
            left,
            dropped,
            held,
        })
    }
}

/// A queue, from the global handler `queues`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    pub element: String,
    pub length: u64,
    pub capacity: u64,
}

impl Queue {
    fn parse(line: &str) -> Option<Queue> {
        let mut words = line.split('\t');
        let element = words.next()?.to_string();
        Some(Queue { element, length: words.next()?.parse().ok()?, capacity: words.next()?.parse().ok()? })
    }
}

/// Packets that an element dropped for a reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Drops {
    pub element: String,
    /// The class of the element. Empty if a hot swap has removed the element and nothing else is known of it.
    pub class: String,
    pub reason: String,
    pub packets: u64,
    /// Packets per second. None without an earlier reading, or if the count was reset in between.
    pub rate: Option<f64>,
}

/// One reading of a router.
pub struct Reading {
    pub at: Instant,
    pub accounts: Vec<Account>,
    pub queues: Vec<Queue>,
    pub workers: Vec<Worker>,
    /// Dropped packets, by element and reason.
    drops: BTreeMap<(String, String), u64>,
}

/// Parses lines of an element, a reason and a number. Adds up lines of the same element and reason.
fn drops(text: &str) -> BTreeMap<(String, String), u64> {
    let mut out = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split('\t');
        if let (Some(element), Some(reason), Some(Ok(n))) =
            (words.next(), words.next(), words.next().map(str::parse::<u64>))
        {
            let sum: &mut u64 = out.entry((element.to_string(), reason.to_string())).or_default();
            *sum = sum.saturating_add(n);
        }
    }
    out
}

/// Returns the elements that know how many packets the kernel dropped before the router read them.
pub fn devices(elements: &[Element]) -> Vec<String> {
    let counts = |e: &&Element| e.spec.is_some_and(|s| s.handler("kernel_drops").is_some());
    elements.iter().filter(counts).map(|e| e.name.clone()).collect()
}

impl Reading {
    /// Reads a router. `devices` are the elements that know how many packets the kernel dropped.
    ///
    /// # Errors
    /// When the router cannot be reached, or is too old to have the handlers.
    pub fn of<H: Handlers>(router: &mut H, devices: &[String]) -> Result<Reading, H::Error> {
        let mut all = drops(&router.read("drop_reasons")?);
        for device in devices {
            // A hot swap may have removed the element.
            if let Some(n) = router.try_read(&format!("{device}.kernel_drops"))? {
                all.insert((device.clone(), KERNEL.into()), n.trim().parse().unwrap_or(0));
            }
        }
        all.retain(|_, n| *n > 0);
        Ok(Reading {
            at: Instant::now(),
            accounts: router.read("ledger")?.lines().filter_map(Account::parse).collect(),
            queues: router.read("queues")?.lines().filter_map(Queue::parse).collect(),
            workers: workers::read(router)?,
            drops: all,
        })
    }

    /// Seconds since an earlier reading.
    pub fn seconds_since(&self, before: &Reading) -> f64 {
        self.at.saturating_duration_since(before.at).as_secs_f64()
    }

    /// Whether a hot swap came after an earlier reading: it makes new workers.
    pub fn is_swapped_since(&self, before: &Reading) -> bool {
        let made = |r: &Reading| r.workers.iter().map(|w| w.exists).fold(0.0, f64::max);
        made(self) < made(before)
    }

    /// Returns what was dropped, the highest rates first and then the highest numbers.
    pub fn drops(&self, before: Option<&Reading>) -> Vec<Drops> {
        let class = |element: &str| {
            let found = self.accounts.iter().find(|a| a.element == element);
            found.map(|a| a.class.clone()).unwrap_or_default()
        };
        let rate = |key: &(String, String), now: u64| {
            let before = before?;
            let grown = now.checked_sub(before.drops.get(key).copied().unwrap_or(0))?;
            let time = self.seconds_since(before);
            (time > 0.0).then(|| grown as f64 / time)
        };
        let mut out: Vec<Drops> = self
            .drops
            .iter()
            .map(|(key, &packets)| Drops {
                element: key.0.clone(),
                class: class(&key.0),
                reason: key.1.clone(),
                packets,
                rate: rate(key, packets),
            })
            .collect();
        let of = |d: &Drops| d.rate.unwrap_or(0.0);
        out.sort_by(|a, b| of(b).total_cmp(&of(a)).then(b.packets.cmp(&a.packets)));
        out
    }

    /// Returns the elements that hold packets, the fullest first. The element `-` stands for all connections.
    pub fn held(&self) -> Vec<(&str, u64)> {
        let mut out: Vec<_> =
            self.accounts.iter().filter(|a| a.held > 0).map(|a| (a.element.as_str(), a.held)).collect();
        out.sort_by_key(|h| std::cmp::Reverse(h.1));
        out
    }

    /// Returns the reading as JSON.
    pub fn json(&self, before: Option<&Reading>) -> Value {
        let drops = self.drops(before).into_iter().map(|d| {
            json!({ "element": d.element, "class": d.class, "reason": d.reason, "packets": d.packets, "rate": d.rate })
        });
        let queues = self.queues.iter();
        let queues =
            queues.map(|q| json!({ "element": q.element, "length": q.length, "capacity": q.capacity }));
        let held = self.held().into_iter().map(|(element, packets)| {
            json!({ "element": (element != "-").then_some(element), "packets": packets })
        });
        json!({
            "drops": drops.collect::<Vec<_>>(),
            "queues": queues.collect::<Vec<_>>(),
            "held": held.collect::<Vec<_>>(),
            "workers": workers::json(&self.workers, before.map(|b| &b.workers[..])),
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::time::Duration;

    /// A reading `ms` milliseconds after `start`, of these texts of `drop_reasons`, `ledger`, `queues` and `workers`.
    pub fn reading(start: Instant, ms: u64, [dropped, ledger, queues, workers]: [&str; 4]) -> Reading {
        Reading {
            at: start + Duration::from_millis(ms),
            accounts: ledger.lines().filter_map(Account::parse).collect(),
            queues: queues.lines().filter_map(Queue::parse).collect(),
            workers: workers.lines().filter_map(Worker::parse).collect(),
            drops: drops(dropped),
        }
    }

    #[test]
    fn rates_are_those_between_two_readings() {
        let start = Instant::now();
        let ledger = "q\tQueue\t0\t0\t0\t11\t7\n-\t-\t0\t0\t0\t0\t3\ns\tX\t5\t1\t2\t0\t0\nbad\nbad\tX\t1\n";
        let a = reading(
            start,
            0,
            ["q\tqueue-full\t40\nq\tqueue-full\t60\nold\tstopped\t50\nr\tover-rate\t9\n", "", "", ""],
        );
        let b = reading(
            start,
            500,
            [
                "q\tqueue-full\t1100\nold\tstopped\t50\nr\tover-rate\t3\nx\ty\nx\ty\tz\nnew\tdiscarded\t4\n",
                ledger,
                "q\t7\t10\nbad\t1\n",
                "",
            ],
        );
        let rows: Vec<_> =
            b.drops(Some(&a)).into_iter().map(|d| (d.element, d.class, d.packets, d.rate)).collect();
        let row = |element: &str, class: &str, n, rate| (element.to_string(), class.to_string(), n, rate);
        let want = [
            row("q", "Queue", 1100, Some(2000.0)),
            row("new", "", 4, Some(8.0)),
            row("old", "", 50, Some(0.0)),
            row("r", "", 3, None),
        ];
        assert_eq!(rows, want);
        assert_eq!(b.held(), [("q", 7), ("-", 3)]);
        assert_eq!(b.accounts.len(), 3);
        let json = b.json(Some(&a));
        assert_eq!(json["drops"][0]["rate"], 2000.0);
        assert_eq!(json["drops"][3]["rate"], Value::Null);
        assert_eq!(json["held"][1], json!({ "element": null, "packets": 3 }));
        assert_eq!(json["queues"], json!([{ "element": "q", "length": 7, "capacity": 10 }]));
        assert_eq!(a.drops(Some(&b)).len(), 3, "no time between the readings");
    }
}
