// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the load of a trial by the kernel's counters: the packets that arrive, and the CPU time that is used.

use std::fs;
use std::time::{Duration, Instant};

/// The devices at which forwarded packets arrive.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// The ID of a process in the network namespace of the receiving host.
    pub receiver: u32,
    /// The devices on that host.
    pub devices: Vec<String>,
}

/// The CPU or process whose CPU time counts as the cost of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// The CPU time of everything that runs on this CPU.
    Processor(usize),
    /// The CPU time of this process.
    Process(u32),
}

impl Worker {
    /// CPU time used so far; zero if the kernel does not report it.
    fn used(self) -> Duration {
        match self {
            Worker::Processor(cpu) => {
                let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
                Duration::from_millis(used(&stat, cpu).unwrap_or(0).saturating_mul(10))
            }
            Worker::Process(pid) => times(pid).0,
        }
    }

    /// The time that a process was runnable while another program occupied the CPU. Zero if `self` is a CPU, or the
    /// generator's own process.
    fn waited(self) -> Duration {
        match self {
            Worker::Process(pid) if pid != std::process::id() => times(pid).1,
            _ => Duration::ZERO,
        }
    }
}

/// The run time and waiting time of all threads of a process (Documentation/scheduler/sched-stats); zero if the
/// kernel does not report it.
fn times(pid: u32) -> (Duration, Duration) {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |t: fs::DirEntry| {
        let text = fs::read_to_string(t.path().join("schedstat")).ok()?;
        let mut words = text.split_whitespace().map_while(|w| w.parse().ok().map(Duration::from_nanos));
        Some((words.next()?, words.next()?))
    };
    threads.filter_map(of).fold(Default::default(), |a: (Duration, Duration), t| (a.0 + t.0, a.1 + t.1))
}

impl Arrivals {
    /// The number of packets that have arrived at all devices.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn count(&self) -> Result<u64, String> {
        let path = format!("/proc/{}/net/dev", self.receiver);
        let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        let of = |d: &String| received(&text, d).ok_or_else(|| format!("{path}: no device {d}"));
        self.devices.iter().map(of).sum()
    }
}

/// The number of packets that a device has received, from the text of `/proc/net/dev`.
fn received(text: &str, device: &str) -> Option<u64> {
    let of = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        if name.trim() == device { numbers.split_whitespace().nth(1)?.parse().ok() } else { None }
    };
    text.lines().find_map(of)
}

/// The busy time of a CPU in hundredths of a second, from the text of `/proc/stat` (proc_stat(5)): user, system
/// and interrupt time.
fn used(text: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = text.lines().find(|l| l.split(' ').next() == Some(&name))?;
    let numbers: Vec<u64> = line.split_whitespace().skip(1).map_while(|w| w.parse().ok()).collect();
    Some([0, 1, 2, 5, 6].into_iter().filter_map(|i| numbers.get(i)).sum())
}

/// Packets sent in a trial, and packets received by its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// The number of packets sent in total, including those sent after the end of the trial.
    pub all: u64,
    /// The number of packets sent before the end of the trial.
    pub sent: u64,
    /// The number of packets received before the end of the trial.
    pub received: u64,
    /// The duration of the trial.
    pub time: Duration,
    /// The CPU time that the [`Worker`] used during the trial.
    pub busy: Duration,
    /// The number of packets received before the trial.
    pub before: u64,
    /// The time that generator and router waited because other programs occupied their CPUs.
    pub waited: Duration,
}

impl Load {
    pub(super) fn text(&self) -> String {
        let [time, busy, waited] = [self.time, self.busy, self.waited].map(|t| t.as_nanos());
        format!("{} {} {} {time} {busy} {} {waited}", self.all, self.sent, self.received, self.before)
    }

    /// Parses the line that a generator prints.
    pub fn parse(line: &str) -> Option<Load> {
        let mut words = line.split(' ').map(|w| w.parse::<u64>().ok());
        let mut next = || words.next()?;
        let (all, sent, received) = (next()?, next()?, next()?);
        let (time, busy) = (Duration::from_nanos(next()?), Duration::from_nanos(next()?));
        Some(Load { all, sent, received, time, busy, before: next()?, waited: Duration::from_nanos(next()?) })
    }
}

/// The counters at the start of a trial.
pub(super) struct Watch<'a> {
    arrivals: &'a Arrivals,
    worker: Worker,
    pub(super) start: Instant,
    received: u64,
    used: Duration,
    waited: Duration,
}

fn waited(worker: Worker) -> Duration {
    times(std::process::id()).1 + worker.waited()
}

impl Watch<'_> {
    pub(super) fn start(arrivals: &Arrivals, worker: Worker) -> Result<Watch<'_>, String> {
        let (received, used, waited) = (arrivals.count()?, worker.used(), waited(worker));
        Ok(Watch { arrivals, worker, start: Instant::now(), received, used, waited })
    }
    /// The load of a trial that ends now, after `sent` packets.
    pub(super) fn end(&self, sent: u64) -> Result<Load, String> {
        let time = self.start.elapsed();
        let received = self.arrivals.count()?.saturating_sub(self.received);
        let busy = self.worker.used().saturating_sub(self.used);
        let waited = waited(self.worker).saturating_sub(self.waited);
        Ok(Load { all: sent, sent, received, time, busy, before: self.received, waited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells_is_read() {
        let dev = "Inter-|   Receive\n face |bytes    packets errs\n    lo: 5 7 0\n  eth0:1234 42 0 0\neth01: 9 9 9\n";
        for (device, want) in [("lo", Some(7)), ("eth0", Some(42)), ("eth01", Some(9)), ("eth", None)] {
            assert_eq!(received(dev, device), want);
        }
        let stat =
            "cpu  1 1 1 1 1 1 1 1 1 1\ncpu0 1 2 3 40 5 6 7 800 9 10\ncpu1 1 2 3 4\ncpu10 0 0 0 9 9\nintr 5\n";
        for (cpu, want) in [(0, Some(19)), (1, Some(6)), (10, Some(0)), (2, None)] {
            assert_eq!(used(stat, cpu), want);
        }
    }

    #[test]
    fn processor_time_is_told() {
        let me = Worker::Process(std::process::id());
        let mut before = me.used();
        let start = Instant::now();
        // The CPU time is a sum over threads and falls when a thread of another test ends: two readings in a row
        // are compared.
        let rises = || {
            let now = me.used();
            std::mem::replace(&mut before, now) < now
        };
        assert!(
            std::iter::repeat_with(rises)
                .take_while(|_| start.elapsed() < Duration::from_secs(100))
                .any(|up| up)
        );
        assert_eq!(Worker::Process(u32::MAX).used(), Duration::ZERO);
        assert!(Worker::Processor(0).used() > Duration::ZERO);
    }

    #[test]
    fn loads_travel_as_lines() {
        let time = Duration::from_nanos(1_234_567);
        let load = Load { all: 11, sent: 9, received: 7, time, busy: time / 2, before: 3, waited: time / 4 };
        assert_eq!(Load::parse(&load.text()), Some(load));
        for bad in ["", "1 2 3 4 5", "1 2 3 4 5 6", "1 2 3 4 5 6 x", "-1 2 3 4 5 6 7"] {
            assert_eq!(Load::parse(bad), None);
        }
    }
}
