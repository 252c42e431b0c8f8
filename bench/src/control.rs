// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how much a router at full rate is slowed down by clients that read its handlers.
//!
//! A worker forwards as fast as it can, in phases of equal length. In half of them a client reads a handler of the
//! worker's data path over a control socket at a fixed rate. The result is packets per second of the worker's own CPU
//! time. So it depends little on other load on the machine, and on the threads of the server and the client. Each group
//! of four phases gives one comparison. The client reads in the second and third phase of a group only, so that slow
//! drift cancels out.

use crate::path::{self, Mode};
use castanet_control::client::Address;
use castanet_control::session::Rules;
use castanet_control::{Client, ListenAddress, Server, Settings as ServerSettings};
use castanet_element::prelude::*;
use castanet_element::{Clock, Remote, action};
use rustix::time::{ClockId, clock_gettime};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The configuration: the data path of an IP router, fed by a source that always has packets.
const TEXT: &str =
    "src :: InfiniteSource(DATA \\<4500001c 00000000 401177cf 01000001 02000002 00010002 00080000>, BURST 32)
    -> CheckIPHeader -> DecIPTTL -> c :: Counter -> t :: CpuMeter -> Discard;";

/// Counts packets, and reads the CPU time of the thread that processes them.
///
/// # Ports
/// One input, one output.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> CpuMeter -> Discard;
/// ```
#[derive(Class)]
#[class(name = "CpuMeter", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, handlers)]
pub struct CpuMeter {
    /// The number of packets processed so far.
    #[count(unit = "packets", hidden)]
    count: Count,
}

#[handlers]
impl CpuMeter {
    /// The number of packets processed so far, and the CPU time of this worker in nanoseconds.
    #[read]
    fn sample(&self) -> String {
        let t = clock_gettime(ClockId::ThreadCPUTime);
        let ns = t.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec);
        format!("{} {ns}", self.count.show())
    }
}

impl Action for CpuMeter {
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        self.count.add(1);
        Verdict::Next
    }
}

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The total duration in seconds.
    pub seconds: f64,
    /// Reads per second.
    pub reads: u32,
    /// The number of groups of four phases.
    pub groups: u32,
}

/// The results.
#[derive(Clone, Debug)]
pub struct Results {
    /// Packets per second of CPU time without reads (median).
    pub off: f64,
    /// Packets per second of CPU time with reads (median).
    pub on: f64,
    /// The actual number of reads per second.
    pub reads: f64,
    /// The slowdown in each group, in percent.
    pub slowdowns: Vec<f64>,
    /// For each group, the difference between its two phases without reads, in percent: the noise of the machine.
    pub noise: Vec<f64>,
}

/// The median of the values; 0 if there are none.
fn median(values: &[f64]) -> f64 {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    v.get(v.len() / 2).copied().unwrap_or_default()
}

/// The median absolute deviation of the values.
fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    median(&values.iter().map(|v| (v - middle).abs()).collect::<Vec<_>>())
}

impl Results {
    /// The slowdown in percent: the median over all groups.
    pub fn slowdown(&self) -> f64 {
        median(&self.slowdowns)
    }
    /// The standard error of the slowdown, in percent.
    pub fn uncertainty(&self) -> f64 {
        // For normally distributed values, the standard deviation is 1.48 times the median absolute
        // deviation, and the standard error of a median is 1.25 times that of a mean.
        1.48 * 1.25 * spread(&self.slowdowns) / (self.slowdowns.len().max(1) as f64).sqrt()
    }
    /// The difference between two phases without reads, in percent: the median over all groups.
    pub fn noise(&self) -> f64 {
        median(&self.noise)
    }
    /// The results as text.
    pub fn text(&self) -> String {
        format!(
            "packets a second of the worker's processor time\n  without clients  {:>12.0}\n  {:>6.0} reads/s   {:>12.0}\n\
            slowdown {:.2} % (+-{:.2} %, {} groups of four phases)\ntwo phases without clients differ by {:.2} %\n",
            self.off,
            self.reads,
            self.on,
            self.slowdown(),
            self.uncertainty(),
            self.slowdowns.len(),
            self.noise(),
        )
    }
    /// The results as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({ "control": {
            "packets_per_cpu_second": { "off": self.off, "on": self.on },
            "reads_per_second": self.reads,
            "slowdown_percent": self.slowdown(),
            "uncertainty_percent": self.uncertainty(),
            "noise_percent": self.noise(),
            "groups": self.slowdowns,
        } })
    }
}

/// Reads the number of packets so far, and the CPU time in nanoseconds.
fn sample(remote: &dyn Remote) -> Result<(f64, f64), String> {
    let text = remote.read(Some("t"), "sample", "").map_err(|e| e.to_string())?;
    let mut numbers = text.split(' ').filter_map(|n| n.parse::<f64>().ok());
    numbers.next().zip(numbers.next()).ok_or_else(|| format!("bad sample '{text}'"))
}

/// Lets the router run for `length`. Returns the number of packets per second of CPU time.
pub(crate) fn phase(remote: &dyn Remote, length: Duration) -> Result<f64, String> {
    let (packets, time) = sample(remote)?;
    std::thread::sleep(length);
    let (p, t) = sample(remote)?;
    if t > time {
        Ok((p - packets) / (t - time) * 1e9)
    } else {
        Err("the worker has had no processor time".into())
    }
}

/// Runs the client until `end` is set: it reads at a steady rate while `on` is set, and counts the reads.
fn client(
    address: &Address,
    reads: u32,
    on: &AtomicBool,
    end: &AtomicBool,
    count: &AtomicU64,
) -> Result<(), String> {
    let mut client = Client::connect(address, Duration::from_secs(10)).map_err(|e| e.to_string())?;
    let pause = Duration::from_secs(1) / reads.max(1);
    let mut due = Instant::now();
    while !end.load(Ordering::Relaxed) {
        if on.load(Ordering::Relaxed) {
            client.read("c.count", "").map_err(|e| e.to_string())?;
            count.fetch_add(1, Ordering::Relaxed);
        }
        due += pause;
        let now = Instant::now();
        match due.checked_duration_since(now) {
            Some(left) => std::thread::sleep(left),
            // The client is late, for example for lack of CPU time. It catches up on the reads missed in the last tenth
            // of a second, and skips older ones.
            None => due = due.max(now.checked_sub(Duration::from_millis(100)).unwrap_or(now)),
        }
    }
    Ok(())
}

/// Runs the measurement.
///
/// # Errors
/// The router does not run, or its control socket fails.
pub fn run(settings: &Settings) -> Result<Results, String> {
    let mut router =
        path::router(TEXT, &Vec::new(), Mode::plain(32), &[action::<CpuMeter>()], Clock::real())?;
    let running = router.running().clone();
    let place = ListenAddress::Tcp { address: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 0, following: false };
    let server = Server::start(&place, ServerSettings::control(Rules::default()), running.clone());
    let server = server.map_err(|e| e.to_string())?;
    let address = Address::Tcp("127.0.0.1".into(), server.port().unwrap_or_default());
    let (on, end, count) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let length =
        Duration::from_secs_f64((settings.seconds / f64::from(settings.groups.max(1) * 4)).max(0.01));
    std::thread::scope(|scope| {
        let forwarding = scope.spawn(|| router.run());
        let asking = scope.spawn(|| client(&address, settings.reads, &on, &end, &count));
        let mut all: [Vec<f64>; 4] = Default::default();
        let mut reading = Duration::ZERO;
        let measured = (|| {
            // This phase is a warm-up: its result is not used.
            phase(running.as_ref(), length)?;
            for _ in 0..settings.groups {
                for (i, values) in all.iter_mut().enumerate() {
                    let reads = matches!(i, 1 | 2);
                    on.store(reads, Ordering::Relaxed);
                    let start = Instant::now();
                    values.push(phase(running.as_ref(), length)?);
                    if reads {
                        reading += start.elapsed();
                    }
                }
            }
            Ok(())
        })();
        end.store(true, Ordering::Relaxed);
        let asked = asking.join().unwrap_or_else(|_| Err("the client failed".into()));
        let _ = running.write(Origin::Operator, None, "stop", "1");
        let forwarded = forwarding.join().map_err(|_| "the router failed".to_string())?;
        forwarded.map_err(|e| e.to_string())?;
        measured.and(asked).map(|()| results(&all, count.load(Ordering::Relaxed), reading))
    })
}

fn results(all: &[Vec<f64>; 4], count: u64, reading: Duration) -> Results {
    let [a, b, c, d] = all;
    let groups = a.iter().zip(b).zip(c).zip(d).map(|(((a, b), c), d)| (*a, *b, *c, *d));
    Results {
        off: median(&[a.as_slice(), d].concat()),
        on: median(&[b.as_slice(), c].concat()),
        reads: count as f64 / reading.as_secs_f64().max(1e-9),
        slowdowns: groups.clone().map(|(a, b, c, d)| (1.0 - (b + c) / (a + d)) * 100.0).collect(),
        noise: groups.map(|(a, _, _, d)| (2.0 * (a - d) / (a + d)).abs() * 100.0).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let all = [vec![100.0, 100.0], vec![99.0, 98.0], vec![97.0, 98.0], vec![100.0, 96.0]];
        let r = results(&all, 500, Duration::from_millis(500));
        assert_eq!((r.off, r.on, r.reads), (100.0, 98.0, 1000.0));
        assert_eq!(r.slowdowns.first().map(|s| (s * 100.0).round()), Some(200.0));
        assert_eq!(r.slowdowns.get(1).map(|s| s.abs() < 1e-9), Some(true), "drift cancels");
        assert!(r.noise() > 4.0 && r.text().contains("1000 reads/s"));
    }

    #[test]
    fn it_measures() -> Result<(), String> {
        let r = run(&Settings { seconds: 0.4, reads: 200, groups: 2 })?;
        assert!(r.off > 1000.0 && r.on > 1000.0 && r.reads > 1.0, "{r:?}");
        assert_eq!((r.slowdowns.len(), r.noise.len()), (2, 2));
        Ok(())
    }
}
