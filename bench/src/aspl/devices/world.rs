// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hosts of the measurement between devices: a sender, a host for each router, and a receiver.

use super::super::base::Base;
use super::{Outcome, Settings};
use crate::launch::{Launcher, PATIENCE, connect};
use crate::process::Process;
use crate::veth::Generator;
use crate::veth::generator::Arrivals;
use crate::veth::hosts::{OF_HOST, OF_ROUTER, ether, join};
use crate::veth::stream::{Path as Road, Plan, Stream, start_all};
use castanet_control::Client;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The length of the frames in bytes, without their checksum: as in the paper.
const LENGTH: usize = 60;
/// The source and destination of the packets: a host behind the device `in`, and one behind the neighbour of `out`.
const FROM: &str = "1.0.0.10";
const TO: &str = "3.0.0.10";

/// A router to measure.
pub struct Subject {
    /// The name in results.
    pub name: String,
    /// The configuration or archive.
    pub configuration: Vec<u8>,
    /// Whether packets leave again.
    pub forwards: bool,
}

/// A running router.
struct Router {
    stream: Stream,
    process: Process,
    client: Client,
    name: String,
}

/// The counters of a router.
#[derive(Clone, Copy, Default)]
struct Counts {
    received: u64,
    ring: u64,
    queue: u64,
    device: u64,
}

/// The processes of a measurement.
pub struct World {
    routers: Vec<Router>,
    _hosts: Vec<Process>,
    _folder: TempDir,
    /// The method of packet generation.
    pub generator: Generator,
    /// The reason why live frames are not used; `None` if they are used, or if another method was requested.
    pub fallback: Option<String>,
}

impl World {
    /// Creates hosts and links, and starts routers and generators.
    ///
    /// # Errors
    /// The machine lacks a required feature or permission, or a configuration has errors.
    pub fn new(
        program: &Path,
        settings: &Settings,
        [generator, processor]: [usize; 2],
        base: &Base,
        subjects: &[Subject],
    ) -> Result<World, String> {
        let folder = tempfile::tempdir().map_err(|e| format!("a temporary folder: {e}"))?;
        let launcher = Launcher { program: program.to_path_buf(), part: settings.part.clone() };
        let sender = launcher.host(None)?;
        let receiver = launcher.host(Some(sender.id()))?;
        let (mut hosts, mut processes) = (Vec::new(), Vec::new());
        for (i, subject) in subjects.iter().enumerate() {
            let host = launcher.host(Some(sender.id()))?;
            join(&launcher, &host, (i, &format!("r{i}")), [&sender, &receiver])?;
            let (file, socket) =
                (folder.path().join(format!("r{i}.click")), folder.path().join(format!("r{i}.sock")));
            std::fs::write(&file, &subject.configuration).map_err(|e| format!("{}: {e}", file.display()))?;
            let (file, place) = (file.to_string_lossy(), socket.to_string_lossy());
            let mut process = launcher.castanet(
                &host,
                Some(processor),
                &["--allow-code", "--unix-socket", &place, &file],
            )?;
            let client =
                connect(&mut process, &socket).map_err(|e| format!("the router {}: {e}", subject.name))?;
            hosts.push(host);
            processes.push((process, client));
        }
        let (streams, generator, fallback) = start_all(settings.generator, |how| {
            let start = |(i, (host, (process, _))): (usize, (&Process, &(Process, Client)))| {
                let device = format!("r{i}");
                let road = Road {
                    device: device.clone(),
                    ether: [OF_HOST, OF_ROUTER].map(|end| ether(i, 1, end)),
                    ip: [FROM, TO].map(str::to_string),
                };
                let plan = Plan {
                    sender: sender.id(),
                    processor: generator,
                    length: LENGTH,
                    paths: vec![road],
                    receives: (host.id(), vec!["in".into()]),
                    arrivals: Arrivals { receiver: receiver.id(), devices: vec![device] },
                    share: 1,
                    worker: ("pid", process.id()),
                };
                Stream::start(&launcher, how, plan)
            };
            hosts.iter().zip(&processes).enumerate().map(start).collect()
        })?;
        let router = |((stream, (process, client)), subject): ((Stream, (Process, Client)), &Subject)| {
            Router { stream, process, client, name: subject.name.clone() }
        };
        let routers = streams.into_iter().zip(processes).zip(subjects).map(router).collect();
        hosts.extend([sender, receiver]);
        let mut world = World { routers, _hosts: hosts, _folder: folder, generator, fallback };
        for (who, subject) in subjects.iter().enumerate() {
            world.prepare(who, subject, base)?;
        }
        Ok(world)
    }

    /// Tells a router the Ethernet addresses of its neighbours, and waits until packets come through.
    fn prepare(&mut self, who: usize, subject: &Subject, base: &Base) -> Result<(), String> {
        let Some(router) = self.routers.get_mut(who) else { return Ok(()) };
        let fail = |e: &dyn std::fmt::Display| format!("the router {}: {e}", subject.name);
        for (i, interface) in base.interfaces.iter().enumerate() {
            // A router without an ARPQuerier has no such handler.
            let handlers = router.client.read_text(&format!("arp{i}.handlers"), "").unwrap_or_default();
            if handlers.lines().any(|line| line.split_whitespace().next() == Some("insert")) {
                let value = format!("{} {}", interface.address, interface.ether);
                router.client.write(&format!("arp{i}.insert"), value.as_bytes()).map_err(|e| fail(&e))?;
            }
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let before = router.counts().map_err(|e| fail(&e))?.received;
            let (_, arrived) = router.stream.send(1000.0, Duration::from_millis(10))?;
            let received = router.counts().map_err(|e| fail(&e))?.received - before;
            if arrived > 0 || !subject.forwards && received > 0 {
                return Ok(());
            }
            if router.process.has_ended() || Instant::now() > deadline {
                let complaints = router.process.complaints();
                let why = if complaints.is_empty() { "nothing comes through" } else { &complaints };
                return Err(fail(&why));
            }
        }
    }

    /// Sends packets through a router, and returns what became of them.
    ///
    /// # Errors
    /// A process has ended.
    pub fn trial(&mut self, who: usize, rate: f64, time: Duration) -> Result<Outcome, String> {
        let router = self.routers.get_mut(who).ok_or("no such router")?;
        let before = router.counts()?;
        let (load, arrived) = router.stream.send(rate, time)?;
        let after = router.counts()?;
        if router.process.has_ended() {
            return Err(format!("the router {} has ended: {}", router.name, router.process.complaints()));
        }
        let second = load.time.as_secs_f64().max(1e-9);
        // Packets that were sent after the end of the trial also count at the end, so all rates are those of all packets, over the
        // time that sending them took.
        let time = second * load.all.max(1) as f64 / load.sent.max(1) as f64;
        let rate = |n: u64| n as f64 / time;
        let received = after.received - before.received;
        // At the end of the trial, the ring may still hold packets. They are received when the processor time has been read.
        let busy = load.busy.as_secs_f64() * 1e9;
        Ok(Outcome {
            input: rate(load.all),
            sent: rate(arrived),
            ring: rate(after.ring - before.ring),
            queue: rate(after.queue - before.queue),
            device: rate(after.device - before.device),
            received: rate(received),
            ns: busy / received.max(1) as f64,
            disturbed: load.waited.as_secs_f64() / second,
        })
    }
}

impl Router {
    fn counts(&mut self) -> Result<Counts, String> {
        let read = |client: &mut Client, handler: &str| match client.read_text(handler, "") {
            Ok(text) => text.trim().parse().map_err(|_| format!("{handler}: '{text}' is not a number")),
            // The simplest routers lack some of these elements.
            Err(e) if e.is_refusal() => Ok(0),
            Err(e) => Err(e.to_string()),
        };
        let c = &mut self.client;
        Ok(Counts {
            received: read(c, "from0.count")?,
            ring: read(c, "from0.kernel_drops")?,
            queue: read(c, "queue1.drops")?,
            device: read(c, "to1.drops")?,
        })
    }
}
