// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets through a router: the process that sends them, and the devices at which they arrive.

use super::generator::{Arrivals, Generator, Load};
use crate::launch::{Launcher, PATIENCE};
use crate::process::Process;
use std::time::{Duration, Instant};

/// If no packet has arrived for this long, the packets that are still missing count as lost.
const STILL: Duration = Duration::from_millis(100);
/// The longest time that a router may take to drain.
const DRAIN: Duration = Duration::from_secs(2);

/// A device that the generator sends on, with the addresses of the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub device: String,
    /// Ethernet source and destination.
    pub ether: [String; 2],
    /// IP source and destination.
    pub ip: [String; 2],
}

impl Path {
    /// The path as a word, which [`super::part::run`] reads.
    fn word(&self) -> String {
        let [e0, e1] = &self.ether;
        let [i0, i1] = &self.ip;
        format!("{}/{e0}/{e1}/{i0}/{i1}", self.device)
    }
}

/// The packets of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The host of the generator: the ID of a process.
    pub sender: u32,
    /// The CPU of the generator.
    pub processor: usize,
    /// The frame length in bytes.
    pub length: usize,
    /// The devices that the generator sends on, in turn. If there is none, the router makes the packets.
    pub paths: Vec<Path>,
    /// The host that receives the generator's frames, as the ID of a process, and its devices.
    pub receives: (u32, Vec<String>),
    /// The devices at which packets arrive.
    pub arrivals: Arrivals,
    /// One of this number of packets is to arrive.
    pub share: u32,
    /// Whose time is the cost of the packets, as for [`super::part::run`].
    pub worker: (&'static str, u32),
}

/// The packets through one router.
pub(crate) struct Stream {
    generator: Process,
    arrivals: Arrivals,
    share: u32,
}

impl Stream {
    /// Starts the generator.
    ///
    /// # Errors
    /// The kernel does not permit this method of generation.
    pub fn start(launcher: &Launcher, how: Generator, plan: Plan) -> Result<Stream, String> {
        let sender = plan.sender.to_string();
        let numbers = [plan.processor, plan.length].map(|n| n.to_string());
        let (at, arrives) = (plan.arrivals.receiver.to_string(), plan.arrivals.devices.join(","));
        let worker = plan.worker.1.to_string();
        let paths: Vec<String> = plan.paths.iter().map(Path::word).collect();
        let words = ["send", &sender, &numbers[0], how.name(), &numbers[1], plan.worker.0, &worker];
        let watched = [at.as_str(), &arrives];
        let paths = paths.iter().map(String::as_str);
        let all: Vec<&str> = words.into_iter().chain(watched).chain(paths).collect();
        let generator = launcher.part("generator", &all)?;
        generator.line(PATIENCE)?;
        if how == Generator::Live && !plan.paths.is_empty() {
            let words = ["napi", &plan.receives.0.to_string(), &plan.receives.1.join(",")];
            launcher.part("live frames cannot be received", &words)?.wait(PATIENCE)?;
        }
        Ok(Stream { generator, arrivals: plan.arrivals, share: plan.share })
    }

    /// One of this number of packets arrives.
    pub fn share(&self) -> f64 {
        f64::from(self.share.max(1))
    }

    /// Sends packets, and waits until no more of them arrive. Returns the generator's counts and times of the trial, and the
    /// number of packets that arrived.
    ///
    /// # Errors
    /// A process has ended.
    pub fn send(&mut self, rate: f64, time: Duration) -> Result<(Load, u64), String> {
        self.generator.tell(&format!("{rate} {}", time.as_millis()))?;
        let line = self.generator.line(time + PATIENCE)?;
        let load = Load::parse(&line).ok_or_else(|| format!("generator: '{line}'"))?;
        let (mut last, mut moved) = (self.arrivals.count()?, Instant::now());
        let deadline = moved + DRAIN;
        let expected = load.all / u64::from(self.share.max(1));
        while last < load.before.saturating_add(expected)
            && moved.elapsed() < STILL
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(5));
            let now = self.arrivals.count()?;
            if now != last {
                (last, moved) = (now, Instant::now());
            }
        }
        Ok((load, last.saturating_sub(load.before)))
    }
}

/// Starts the streams of several routers. Without a requested method, uses live frames if the kernel permits them for all.
/// Returns the streams, the method, and the reason why live frames are not used.
///
/// # Errors
/// The kernel does not permit the method.
pub(crate) fn start_all(
    requested: Option<Generator>,
    start: impl Fn(Generator) -> Result<Vec<Stream>, String>,
) -> Result<(Vec<Stream>, Generator, Option<String>), String> {
    match requested {
        Some(how) => Ok((start(how)?, how, None)),
        None => match start(Generator::Live) {
            Ok(streams) => Ok((streams, Generator::Live, None)),
            Err(why) => Ok((start(Generator::Packet)?, Generator::Packet, Some(why))),
        },
    }
}
