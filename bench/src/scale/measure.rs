// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs configurations alternately on one and on two workers, and measures packets and time.

use super::cases::{Call, Case};
use super::meter::{LockedWork, PacketMeter};
use castanet_classes::Registry;
use castanet_element::{Remote, action, spec::Origin};
use castanet_runtime::swap::Loaded;
use castanet_runtime::{Options, Router};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a phase waits for the first packets.
const PATIENCE: Duration = Duration::from_secs(20);

/// The measurements of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Nanoseconds of worker time per packet: workers * time / packets. Time in which workers waited for a processor
    /// does not count.
    pub ns: f64,
    /// Nanoseconds of processor time per packet, summed over all workers.
    pub cpu: f64,
    /// Packets per second.
    pub rate: f64,
    /// The share of the time in which the workers waited for a processor.
    pub waited: f64,
}

/// The measurements of one round: the configuration on one worker and on two workers, and the base configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Round {
    /// The measurements with one worker.
    pub one: Sample,
    /// The measurements with two workers.
    pub two: Sample,
    /// The base configuration (`Case::base`), with one worker.
    pub base: Option<Sample>,
}

/// The clocks of a thread, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Clocks {
    real: f64,
    processor: f64,
    waited: f64,
}

/// Packets delivered so far, and the clocks of each thread.
#[derive(Default)]
struct Reading {
    packets: f64,
    threads: HashMap<u64, Clocks>,
}

fn router(text: &str, frames: &[String; 2], workers: usize) -> Result<Router, String> {
    let mut registry = Registry::new();
    registry.add(action::<PacketMeter>());
    registry.add(action::<LockedWork>());
    let [f0, f1] = frames.clone();
    let defines = vec![("FRAMES0".to_string(), f0), ("FRAMES1".to_string(), f1)];
    let loaded = Loaded::from_text("scale.click", text.as_bytes(), &defines, Arc::new(registry));
    // Messages are discarded: with one worker, a configuration for two workers warns that worker 1 does not exist.
    let options = Options { workers, printer: Box::new(|_| {}), ..Options::default() };
    let built = loaded.and_then(|(loaded, _)| loaded.build(options));
    built.map(|(router, _)| router).map_err(|e| e.to_string())
}

fn read(remote: &dyn Remote, meters: &[String]) -> Result<Reading, String> {
    let mut all = Reading::default();
    for meter in meters {
        let text = remote.read(Some(meter), "sample", "").map_err(|e| e.to_string())?;
        let numbers: Vec<f64> = text.split(' ').filter_map(|n| n.parse().ok()).collect();
        let &[thread, packets, real, processor, waited] = numbers.as_slice() else {
            return Err(format!("bad sample '{text}'"));
        };
        all.packets += packets;
        all.threads.insert(thread as u64, Clocks { real, processor, waited });
    }
    Ok(all)
}

fn write(remote: &dyn Remote, (element, handler, value): &Call) -> Result<(), String> {
    let done = remote.write(Origin::Operator, Some(element), handler, value);
    done.map(|_| ()).map_err(|e| format!("{element}.{handler}: {e}"))
}

/// Waits for some time, and writes handlers meanwhile.
fn pass(remote: &dyn Remote, writes: &[Call], length: Duration) -> Result<(), String> {
    let end = Instant::now() + length;
    // Each pass through `writes` is completed, because a later write may undo an earlier one.
    while !writes.is_empty() && Instant::now() < end {
        for call in writes {
            write(remote, call)?;
            std::thread::sleep(Duration::from_micros(450));
        }
    }
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
    Ok(())
}

/// Runs a configuration for a while.
///
/// # Errors
/// The configuration does not run, or delivers no packets.
fn phase(case: &Case, text: &str, workers: usize, length: Duration) -> Result<Sample, String> {
    let fail = |e: String| format!("{}, {workers} workers: {}", case.name, e.trim_end());
    let mut router = router(text, &case.frames, workers).map_err(fail)?;
    let running = router.running().clone();
    let ours = |name: &String| name.rsplit('/').next().is_some_and(|n| n.starts_with("meter"));
    let meters: Vec<String> = running.elements().into_iter().filter(ours).collect();
    let base = text != case.text;
    let measured = std::thread::scope(|scope| {
        let forwarding = scope.spawn(|| router.run().map_err(|e| e.to_string()));
        let measured = (|| {
            if !base {
                case.calls.iter().try_for_each(|call| write(running.as_ref(), call))?;
            }
            let writes = if base { &[][..] } else { &case.writes };
            pass(running.as_ref(), writes, (length / 4).max(Duration::from_millis(2)))?;
            let before = read(running.as_ref(), &meters)?;
            let patience = Instant::now() + PATIENCE;
            let mut after;
            // On a busy machine, a worker may get no processor time at all in a short phase. So the phase is extended
            // until packets have arrived.
            loop {
                pass(running.as_ref(), writes, length)?;
                after = read(running.as_ref(), &meters)?;
                if after.packets > before.packets || Instant::now() > patience {
                    return Ok((before, after));
                }
            }
        })();
        let _ = running.write(Origin::Operator, None, "stop", "1");
        let forwarded = forwarding.join().unwrap_or_else(|_| Err("the router failed".into()));
        // If the router has failed, its error is returned, because the failure also made the calls fail.
        forwarded.and(measured)
    });
    let (before, after) = measured.map_err(fail)?;
    sample(&before, &after, workers).map_err(fail)
}

fn sample(before: &Reading, after: &Reading, workers: usize) -> Result<Sample, String> {
    let packets = after.packets - before.packets;
    if packets <= 0.0 {
        return Err("no packet arrives".into());
    }
    let threads = after.threads.iter().filter_map(|(thread, now)| Some((before.threads.get(thread)?, now)));
    let passed: Vec<Clocks> = threads
        .map(|(then, now)| Clocks {
            real: now.real - then.real,
            processor: now.processor - then.processor,
            waited: now.waited - then.waited,
        })
        .collect();
    if passed.len() != workers {
        return Err(format!("{} threads have meters", passed.len()));
    }
    let sum = |f: &dyn Fn(&Clocks) -> f64| passed.iter().map(f).sum::<f64>();
    let (real, processor, waited) = (sum(&|c| c.real), sum(&|c| c.processor), sum(&|c| c.waited));
    let waited = waited.clamp(0.0, real * 0.99);
    let ns = (real - waited) / packets;
    Ok(Sample { ns, cpu: processor / packets, rate: workers as f64 * 1e9 / ns, waited: waited / real })
}

/// Runs a configuration for a while. If other programs kept the workers waiting for a processor much of the time,
/// repeats the run up to three times. Returns the measurements of the run with the least waiting.
pub fn quiet(case: &Case, text: &str, workers: usize, length: Duration) -> Result<Sample, String> {
    const TRIES: usize = 4;
    const LITTLE: f64 = 0.05;
    let mut best = phase(case, text, workers, length)?;
    for _ in 1..TRIES {
        if best.waited <= LITTLE {
            break;
        }
        let next = phase(case, text, workers, length)?;
        if next.waited < best.waited {
            best = next;
        }
    }
    Ok(best)
}

/// Measures a configuration in a number of rounds. Each round measures one worker, two workers and the base
/// configuration. Every other round begins with two workers.
///
/// # Errors
/// The configuration does not run.
pub fn rounds(case: &Case, rounds: usize, length: Duration) -> Result<Vec<Round>, String> {
    let one = |i: usize| {
        let mut r = Round::default();
        let order = if i.is_multiple_of(2) { [1, 2] } else { [2, 1] };
        for workers in order {
            let s = quiet(case, &case.text, workers, length)?;
            if workers == 1 { r.one = s } else { r.two = s }
        }
        if let Some(base) = &case.base {
            r.base = Some(quiet(case, base, 1, length)?);
        }
        Ok(r)
    };
    (0..rounds.max(1)).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(packets: f64, clocks: [[f64; 3]; 2]) -> Reading {
        let clocks = clocks.map(|[real, processor, waited]| Clocks { real, processor, waited });
        Reading { packets, threads: (1..).zip(clocks).collect() }
    }

    #[test]
    fn figures() {
        let before = reading(10.0, [[0.0, 0.0, 0.0], [500.0, 0.0, 0.0]]);
        let after = reading(30.0, [[1000.0, 600.0, 400.0], [1500.0, 1000.0, 0.0]]);
        // The two workers took 2000 ns together for 20 packets, and waited in the run queue for 400 ns of this.
        let found = sample(&before, &after, 2);
        assert_eq!(found, Ok(Sample { ns: 80.0, cpu: 80.0, rate: 2e9 / 80.0, waited: 0.2 }));
        assert_eq!(sample(&before, &after, 1), Err("2 threads have meters".into()));
        assert_eq!(sample(&after, &after, 2), Err("no packet arrives".into()));
    }
}
