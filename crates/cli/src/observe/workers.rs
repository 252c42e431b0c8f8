// SPDX-License-Identifier: MIT OR Apache-2.0
//! The load of a router's workers, from the global handler `workers`.

use super::Handlers;
use serde_json::{Value, json};

/// A line of the global handler `workers`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worker {
    pub number: u32,
    /// Seconds in which it was awake.
    pub awake: f64,
    /// Seconds since it was made.
    pub exists: f64,
    pub tasks: u32,
    /// Seconds in which it was awake and its tasks found no packet.
    pub polled: f64,
}

/// How a worker spends its time. The shares add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// It sleeps.
    pub idle: f64,
    /// It runs tasks that find no packet.
    pub poll: f64,
    /// All else.
    pub work: f64,
}

impl Worker {
    pub fn parse(line: &str) -> Option<Worker> {
        let mut words = line.split('\t');
        let (number, awake) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (exists, tasks) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        // Earlier routers do not show this time.
        let polled = words.next().and_then(|w| w.parse().ok()).unwrap_or(0.0);
        Some(Worker { number, awake, exists, tasks, polled })
    }

    /// Returns the shares of the time since `before` (`None`: since the start). A hot swap resets the times, so after a
    /// swap these are the shares since the swap.
    pub fn load(&self, before: Option<&Worker>) -> Load {
        let [awake, exists, polled] = match before.filter(|b| b.exists < self.exists) {
            Some(b) => [self.awake - b.awake, self.exists - b.exists, self.polled - b.polled],
            None => [self.awake, self.exists, self.polled],
        };
        if exists <= 0.0 || !exists.is_finite() {
            return Load { idle: 1.0, ..Load::default() };
        }
        let busy = (awake / exists).clamp(0.0, 1.0);
        let poll = (polled / exists).clamp(0.0, busy);
        Load { idle: 1.0 - busy, poll, work: busy - poll }
    }

    /// Returns the shares of the time since the reading `before` of all workers.
    pub fn load_since(&self, before: Option<&[Worker]>) -> Load {
        self.load(before.and_then(|b| b.iter().find(|b| b.number == self.number)))
    }
}

/// Reads the workers of a router.
pub fn read<H: Handlers>(router: &mut H) -> Result<Vec<Worker>, H::Error> {
    Ok(router.read("workers")?.lines().filter_map(Worker::parse).collect())
}

/// Returns the workers as JSON. `load` is the share of the time awake.
pub fn json(workers: &[Worker], before: Option<&[Worker]>) -> Value {
    let row = |w: &Worker| {
        let l = w.load_since(before);
        json!({
            "worker": w.number, "load": l.poll + l.work, "idle": l.idle, "poll": l.poll, "work": l.work, "tasks": w.tasks,
        })
    };
    workers.iter().map(row).collect()
}

/// Returns a table of the workers, with a header.
pub fn rows(workers: &[Worker], before: Option<&[Worker]>) -> Vec<Vec<String>> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let row = |w: &Worker| {
        let l = w.load_since(before);
        vec![
            w.number.to_string(),
            percent(l.poll + l.work),
            percent(l.idle),
            percent(l.poll),
            percent(l.work),
            w.tasks.to_string(),
        ]
    };
    let header = ["WORKER", "LOAD", "IDLE", "POLL", "WORK", "TASKS"].map(String::from).to_vec();
    std::iter::once(header).chain(workers.iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_that_between_two_readings() {
        let line = |text: &str| Worker::parse(text).unwrap_or_default();
        let (first, second) = (line("1\t2.5\t10.0\t3\t1.0"), line("1\t3.0\t11.0\t3\t1.25"));
        assert_eq!((first.number, first.tasks), (1, 3));
        assert_eq!(second.load(Some(&first)), Load { idle: 0.5, poll: 0.25, work: 0.25 });
        assert_eq!(first.load(None), Load { idle: 0.75, poll: 0.1, work: 0.15 });
        assert_eq!(first.load(Some(&second)), first.load(None), "a hot swap came between");
        assert_eq!(second.load_since(Some(&[line("0\t1\t1\t1\t0"), first])), second.load(Some(&first)));
        assert_eq!(line("1\t3.0\t11.0\t3").polled, 0.0, "an earlier router");
        let wrong = line("1\t9.0\t3.0\t3\t20.0").load(None);
        assert_eq!(wrong, Load { idle: 0.0, poll: 1.0, work: 0.0 });
        for text in ["", "1\tx\t10.0\t3", "1\tinf\tinf\t1\tNaN", "1\tNaN\tNaN\t1\t1"] {
            let load = line(text).load(None);
            assert_eq!(load.idle, 1.0, "{text}");
        }
    }
}
