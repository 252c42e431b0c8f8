// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of a router, and the rows of elements that two samples give.

use crate::observe::workers::Load;
use crate::observe::{Element, Handlers, Reading, devices};
use crate::profile::Profile;
use castanet_spec::ValueKind;
use std::collections::{BTreeMap, HashMap};

/// The state of a router at one time.
pub struct Sample {
    pub reading: Reading,
    pub elements: Vec<Element>,
    /// Packets of elements that count them in a handler `count`.
    counts: BTreeMap<String, u64>,
    /// Nanoseconds and packets of elements in the measured rounds; empty if no profile has begun.
    costs: BTreeMap<String, (u64, u64)>,
}

/// An element, as a row of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub element: String,
    pub class: String,
    /// Packets, and packets per second. None if the element counts none.
    pub packets: Option<u64>,
    pub packet_rate: Option<f64>,
    pub drops: u64,
    pub drop_rate: f64,
    /// Packets that it holds, and the capacity if it is a queue.
    pub held: u64,
    pub capacity: Option<u64>,
    /// The share of the measured time, from 0 to 1, and nanoseconds per packet. None without a profile.
    pub time: Option<f64>,
    pub cost: Option<f64>,
}

/// Whether the class of an element counts its packets in a handler `count`.
fn counts_packets(e: &Element) -> bool {
    let handler = e.spec.and_then(|s| s.handler("count"));
    handler.is_some_and(|h| h.readable() && h.kind == ValueKind::Counter && h.unit == "packets")
}

impl Sample {
    /// Reads a router. `before` is the sample before, whose list of elements is used again if it still holds.
    ///
    /// # Errors
    /// When the router cannot be reached.
    pub fn of<H: Handlers>(router: &mut H, before: Option<&Sample>) -> Result<Sample, H::Error> {
        let names = router.read("list")?;
        let same = |s: &&Sample| s.elements.iter().map(|e| e.name.as_str()).eq(names.lines().skip(1));
        let mut elements = match before.filter(same) {
            Some(s) => s.elements.clone(),
            None => router.elements()?,
        };
        let reading = Reading::of(router, &devices(&elements))?;
        // A hot swap may have given the same name to an element of another class.
        if before.is_some_and(|s| reading.is_swapped_since(&s.reading)) {
            elements = router.elements()?;
        }
        let mut counts = BTreeMap::new();
        for e in elements.iter().filter(|e| counts_packets(e)) {
            let text = router.try_read(&format!("{}.count", e.name))?;
            if let Some(n) = text.and_then(|t| t.trim().parse().ok()) {
                counts.insert(e.name.clone(), n);
            }
        }
        let costs = Profile::parse(&router.read("profile")?).costs_of_elements();
        Ok(Sample { reading, elements, counts, costs })
    }

    /// Whether the router measures the time of elements, or has done so.
    pub fn has_profile(&self) -> bool {
        !self.costs.is_empty()
    }

    /// Returns the packets of elements: those that they count, or those that begin or end there.
    fn packets(&self) -> HashMap<&str, u64> {
        let counted = self.counts.iter().map(|(element, &n)| (element.as_str(), n));
        let mut out: HashMap<&str, u64> = counted.collect();
        for a in &self.reading.accounts {
            let n = a.entered.max(a.made).max(a.left);
            if n > 0 {
                let packets = out.entry(&a.element).or_default();
                *packets = n.max(*packets);
            }
        }
        out
    }

    /// Returns a row for each element, in the order of the configuration.
    pub fn rows(&self, before: Option<&Sample>) -> Vec<Row> {
        let seconds = before.map_or(0.0, |b| self.reading.seconds_since(&b.reading));
        let rate = |now: u64, then: u64| (seconds > 0.0).then(|| now.saturating_sub(then) as f64 / seconds);
        let mut drops: BTreeMap<String, (u64, f64)> = BTreeMap::new();
        for d in self.reading.drops(before.map(|b| &b.reading)) {
            let sum = drops.entry(d.element).or_default();
            sum.0 = sum.0.saturating_add(d.packets);
            sum.1 += d.rate.unwrap_or(0.0);
        }
        // The costs since the sample before. A new profile begins at 0.
        let cost = |element: &str| {
            let now = *self.costs.get(element)?;
            let then = before.and_then(|b| b.costs.get(element)).copied().unwrap_or_default();
            Some((now.0.checked_sub(then.0).unwrap_or(now.0), now.1.checked_sub(then.1).unwrap_or(now.1)))
        };
        let total: u64 = self.costs.keys().filter_map(|e| cost(e)).map(|c| c.0).fold(0, u64::saturating_add);
        let (all, all_then) = (self.packets(), before.map(Sample::packets).unwrap_or_default());
        let queues: HashMap<_, _> = self.reading.queues.iter().map(|q| (&q.element, q)).collect();
        let accounts: HashMap<_, _> = self.reading.accounts.iter().map(|a| (&a.element, a)).collect();
        let row = |e: &Element| {
            let packets = all.get(e.name.as_str()).copied();
            let then = all_then.get(e.name.as_str()).copied().unwrap_or(0);
            let (queue, account) = (queues.get(&e.name), accounts.get(&e.name));
            let (drops, drop_rate) = drops.get(&e.name).copied().unwrap_or_default();
            let cost = cost(&e.name);
            Row {
                element: e.name.clone(),
                class: e.class.clone(),
                packets,
                packet_rate: packets.and_then(|n| rate(n, then)),
                drops,
                drop_rate,
                held: queue.map_or(account.map_or(0, |a| a.held), |q| q.length),
                capacity: queue.map(|q| q.capacity),
                time: cost.filter(|_| total > 0).map(|c| c.0 as f64 / total as f64),
                cost: cost.filter(|c| c.1 > 0).map(|c| c.0 as f64 / c.1 as f64),
            }
        };
        // Control sockets of the command line are no part of the configuration.
        self.elements.iter().filter(|e| !e.name.starts_with("click_driver@@")).map(row).collect()
    }

    /// Returns the number and the load of each worker.
    pub fn loads(&self, before: Option<&Sample>) -> Vec<(u32, Load)> {
        let before = before.map(|b| &b.reading.workers[..]);
        self.reading.workers.iter().map(|w| (w.number, w.load_since(before))).collect()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::observe::tests::reading;
    use std::time::Instant;

    /// A sample `ms` milliseconds after `start`, in which everything has happened `n` times.
    pub fn sample(start: Instant, ms: u64, n: u64) -> Sample {
        let element =
            |(name, class): (&str, &str)| Element { name: name.into(), class: class.into(), spec: None };
        let elements = [
            ("in", "FromDevice"),
            ("c", "Counter"),
            ("q", "Queue"),
            ("ttl", "DecIPTTL"),
            ("out", "ToDevice"),
        ];
        let drops = format!("q\tqueue-full\t{}\nttl\tttl-expired\t{n}\nttl\tbad-header\t{n}\n", 50 * n);
        let ledger =
            format!("in\tFromDevice\t{}\t0\t0\t0\t0\nout\tToDevice\t0\t0\t{}\t0\t3\n", 100 * n, 48 * n);
        let queues = format!("q\t{}\t1000\n", 100 * n);
        let seconds = ms as f64 / 1000.0;
        let workers = format!("0\t{}\t{}\t2\t{}\n", 0.75 * seconds, seconds, 0.25 * seconds);
        Sample {
            reading: reading(start, ms, [&drops, &ledger, &queues, &workers]),
            elements: elements.map(element).to_vec(),
            counts: [("c".to_string(), 98 * n)].into(),
            costs: [("ttl".to_string(), (3000 * n, 100 * n)), ("(run loop)".to_string(), (1000 * n, 0))]
                .into(),
        }
    }

    #[test]
    fn rows_are_what_happened_between_two_samples() {
        let start = Instant::now();
        let (before, now) = (sample(start, 500, 1), sample(start, 1000, 3));
        let rows = now.rows(Some(&before));
        let row = |name: &str| rows.iter().find(|r| r.element == name).cloned().unwrap_or_default();
        assert_eq!((row("in").packets, row("in").packet_rate, row("in").drops), (Some(300), Some(400.0), 0));
        assert_eq!((row("c").packets, row("c").packet_rate), (Some(294), Some(392.0)));
        assert_eq!((row("out").packet_rate, row("out").held, row("out").capacity), (Some(192.0), 3, None));
        assert_eq!((row("q").drops, row("q").drop_rate), (150, 200.0));
        assert_eq!((row("q").packets, row("q").held, row("q").capacity), (None, 300, Some(1000)));
        assert_eq!((row("ttl").drops, row("ttl").drop_rate), (6, 8.0), "both reasons");
        assert_eq!((row("ttl").time, row("ttl").cost, row("q").time), (Some(0.75), Some(30.0), None));
        assert_eq!(now.loads(Some(&before)), [(0, Load { idle: 0.25, poll: 0.25, work: 0.5 })]);
        let mut ended = sample(start, 1500, 4);
        ended.costs = now.costs.clone();
        assert!(ended.rows(Some(&now)).iter().all(|r| r.time.is_none()), "the profile has ended");
        let again = before.rows(Some(&now));
        assert!(again.iter().all(|r| r.packet_rate.unwrap_or(0.0) == 0.0), "no time, and counts were reset");
        assert!(now.rows(None).iter().all(|r| r.packet_rate.is_none() && r.drop_rate == 0.0));
    }
}
