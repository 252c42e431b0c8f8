// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hosts of a measurement: a tester, which sends and receives, and the routers.

use super::generator::{Arrivals, Generator, Load};
use super::hosts::{self, NEXT_HOP, OF_HOST, OF_ROUTER, devices, ether, links, outside};
use super::stream::{Path, Plan, Stream, start_all};
use super::{Contender, KernelTask, Known, Settings, Subject, Traffic, Way};
use crate::launch::{Launcher, PATIENCE, connect};
use crate::process::Process;
use castanet_control::Client;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A router on its host.
struct Place {
    contender: Contender,
    host: Process,
    /// Its process; `None` for the kernel.
    router: Option<Process>,
    /// The connection to a router whose elements are read or controlled.
    client: Option<Client>,
    /// The counts of packets that arrive from this router, at all devices of the tester.
    arrivals: Arrivals,
}

/// The processes of a measurement.
pub struct World {
    launcher: Launcher,
    places: Vec<Place>,
    /// For each subject: its name, the place of its router, its traffic and its packets.
    streams: Vec<(String, usize, Traffic, Stream)>,
    /// Whether received packets are counted.
    count_received: bool,
    /// The programs that drop what arrives.
    _sinks: Vec<Process>,
    _tester: Process,
    /// The control sockets.
    _folder: TempDir,
    /// The method of packet generation.
    pub generator: Generator,
    /// The reason why live frames are not used; `None` if they are used, or if another method was requested.
    pub fallback: Option<String>,
}

/// The frames that a router in the kernel has forwarded.
#[derive(Clone, Copy, Debug)]
pub struct Redirected {
    /// The number of frames that its programs have redirected to devices.
    pub redirected: u64,
    /// The number of frames that have arrived at the receiver.
    pub arrived: u64,
}

/// The fate of the packets of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The generator's counts and times.
    pub load: Load,
    /// The number of packets that had arrived when the router had drained.
    pub arrived: u64,
    /// The number of packets that the router received, if they are counted.
    pub received: Option<u64>,
}

/// The number of runs of a program, and their time in nanoseconds, from a part that counts them.
pub(super) fn runs(counter: &mut Process) -> Result<(u64, u64), String> {
    counter.tell("")?;
    let line = counter.line(PATIENCE)?;
    let numbers = line.split_once(' ').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    numbers.ok_or_else(|| format!("counter of runs: '{line}'"))
}

/// The first or second devices of a router's pairs.
fn all_devices(pairs: usize, side: usize) -> Vec<String> {
    (1..=pairs.max(1)).filter_map(|pair| devices(pair).into_iter().nth(side)).collect()
}

/// The packets of a subject, for the router with this number.
fn plan(number: usize, subject: &Subject, place: &Place, tester: u32, cpu: [usize; 2]) -> Plan {
    let (way, traffic) = (&place.contender.way, subject.traffic);
    let directions: &[bool] = if traffic.both_ways { &[false, true] } else { &[false] };
    let all = || (1..=traffic.flows).flat_map(move |pair| directions.iter().map(move |back| (pair, *back)));
    let by = |names: [String; 2], back: bool| names.into_iter().nth(back.into()).unwrap_or_default();
    // A packet to the device on one side of the router leaves by the device on the other side.
    let offered = |(pair, back): (usize, bool)| {
        let link = links(pair)[usize::from(back)];
        let mut ip = hosts::host_addresses(pair);
        if back {
            ip.reverse();
        }
        let to =
            if place.contender.switched && !back { NEXT_HOP.into() } else { ether(number, link, OF_ROUTER) };
        Path { device: by(outside(number, pair), back), ether: [ether(number, link, OF_HOST), to], ip }
    };
    let made = |(pair, _): (usize, bool)| Path {
        device: by(devices(pair), true),
        ether: [ether(number, links(pair)[1], OF_ROUTER), NEXT_HOP.into()],
        ip: hosts::host_addresses(pair),
    };
    let behind = |(pair, back): (usize, bool)| by(outside(number, pair), !back);
    let before = |(pair, back): (usize, bool)| by(devices(pair), back);
    let (paths, arrives): (Vec<Path>, Vec<String>) = match way {
        Way::Castanet { known: Known::Sources, .. } => (Vec::new(), all().map(behind).collect()),
        Way::Kernel(KernelTask::Send) | Way::Sender => {
            (all().map(made).collect(), all().map(behind).collect())
        }
        _ if way.receives() => (all().map(offered).collect(), all().map(before).collect()),
        // One packet of several stands for all, and leaves by the first pair.
        _ if place.contender.share > 1 => (all().map(offered).collect(), vec![behind((1, false))]),
        _ => (all().map(offered).collect(), all().map(behind).collect()),
    };
    let sends = way.sends();
    Plan {
        sender: if sends { place.host.id() } else { tester },
        processor: cpu[usize::from(sends)],
        length: traffic.length,
        paths,
        receives: if sends {
            (tester, arrives.clone())
        } else {
            (place.host.id(), all().map(before).collect())
        },
        arrivals: Arrivals {
            receiver: if way.receives() { place.host.id() } else { tester },
            devices: arrives,
        },
        share: place.contender.share,
        worker: ("self", 0),
    }
}

impl Place {
    /// Starts a router on its host.
    fn start(&mut self, launcher: &Launcher, processor: usize, folder: &TempDir) -> Result<(), String> {
        let (pid, cpu) = (self.host.id().to_string(), processor.to_string());
        let part = |words: &[&str]| {
            let process = launcher.part(&self.contender.name, words)?;
            process.line(PATIENCE)?;
            Ok::<_, String>(Some(process))
        };
        let pairs = self.contender.pairs;
        self.router = match &self.contender.way {
            Way::Kernel(task) => {
                hosts::prepare_kernel(launcher, &self.host, *task, pairs)?;
                None
            }
            Way::Castanet { configuration, in_kernel, known } => {
                let socket = folder.path().join(&self.contender.name);
                let place = socket.to_string_lossy();
                let driver: &[&str] = if *in_kernel { &["--driver", "xdp"] } else { &[] };
                let control: &[&str] =
                    if *known == Known::Nothing { &[] } else { &["--unix-socket", &place] };
                let words = [driver, control, &["--expression", configuration]].concat();
                let mut process = launcher.castanet(&self.host, Some(processor), &words)?;
                if *known != Known::Nothing {
                    let connected = connect(&mut process, &socket);
                    self.client =
                        Some(connected.map_err(|e| format!("the router {}: {e}", self.contender.name))?);
                }
                Some(process)
            }
            Way::Forwarder => part(&["forward", &pid, &pairs.to_string()])?,
            Way::Drop => part(&["drop", &pid, &all_devices(pairs, 0).join(",")])?,
            Way::Sockets => part(&["forward-sockets", &pid, &cpu, "in", "out"])?,
            Way::Sender => None,
        };
        Ok(())
    }

    /// Whose CPU time is the cost of the packets, as for [`super::part::run`].
    ///
    /// The CPU time of a process is exact. The busy time of a CPU includes other programs, but is necessary if that CPU also executes the
    /// receive path.
    fn worker(&self, steered: Option<usize>) -> (&'static str, u32) {
        let steered = steered.filter(|_| !self.contender.way.sends()).and_then(|cpu| u32::try_from(cpu).ok());
        match (steered, &self.router) {
            (Some(cpu), _) => ("cpu", cpu),
            (None, Some(router)) if !self.contender.works_beside_generator() => ("pid", router.id()),
            _ => ("self", 0),
        }
    }

    /// The number of packets that the router has received.
    fn received(&mut self) -> Result<u64, String> {
        let pairs = self.contender.pairs.max(1);
        if let (Some(client), Way::Castanet { known: Known::Receivers, .. }) =
            (&mut self.client, &self.contender.way)
        {
            let mut sum = 0;
            for element in (1..=pairs).flat_map(|pair| [format!("from{pair}"), format!("back{pair}")]) {
                let handler = format!("{element}.count");
                match client.read_text(&handler, "") {
                    Ok(text) => {
                        let n = text.trim().parse::<u64>();
                        sum += n.map_err(|_| format!("{handler}: '{text}' is not a number"))?;
                    }
                    // The router receives in one direction only.
                    Err(e) if e.is_refusal() => {}
                    Err(e) => return Err(e.to_string()),
                }
            }
            Ok(sum)
        } else {
            let devices = (1..=pairs).flat_map(devices).collect();
            Arrivals { receiver: self.host.id(), devices }.count()
        }
    }

    /// Starts or stops the router's own sources.
    fn activate(&mut self, flows: usize, active: bool) -> Result<(), String> {
        if let (Some(client), Way::Castanet { known: Known::Sources, .. }) =
            (&mut self.client, &self.contender.way)
        {
            for pair in 1..=flows {
                let done = client.write(&format!("source{pair}.active"), active.to_string().as_bytes());
                done.map_err(|e| format!("the router {}: {e}", self.contender.name))?;
            }
        }
        Ok(())
    }
}

impl World {
    /// Creates hosts and links, and starts routers and generators.
    ///
    /// # Errors
    /// The machine lacks a required feature or permission, or the configuration has errors.
    pub fn new(settings: &Settings, cpu: [usize; 2]) -> Result<World, String> {
        let launcher = Launcher { program: settings.program.clone(), part: settings.part.clone() };
        let folder = tempfile::tempdir().map_err(|e| format!("a temporary folder: {e}"))?;
        let tester = launcher.host(None)?;
        let mut places = Vec::new();
        for (number, contender) in settings.contenders().into_iter().enumerate() {
            let host = launcher.host(Some(tester.id()))?;
            let pairs = contender.pairs.max(1);
            for pair in 1..=pairs {
                let names = outside(number, pair);
                hosts::join_pair(&launcher, &host, (number, pair), names, [&tester, &tester])?;
            }
            let devices = (1..=pairs).flat_map(|pair| outside(number, pair)).collect();
            let arrivals = Arrivals { receiver: tester.id(), devices };
            places.push(Place { contender, host, router: None, client: None, arrivals });
        }
        for place in places.iter().filter(|_| settings.steer) {
            let devices = all_devices(place.contender.pairs, 0).join(",");
            let words = ["steer", &place.host.id().to_string(), &devices, &cpu[1].to_string()];
            launcher.part("receive processing cannot be steered", &words)?.wait(PATIENCE)?;
        }
        for place in &mut places {
            place.start(&launcher, cpu[1], &folder)?;
        }
        let sinks = sinks(&launcher, settings, &places)?;
        let subjects = settings.subjects();
        let steered = settings.steer.then_some(cpu[1]);
        let workers: Vec<_> = places.iter().map(|place| place.worker(steered)).collect();
        let (streams, generator, fallback) = start_all(settings.generator, |how| {
            let start = |(number, subject): &(usize, Subject)| {
                let place = places.get(*number).ok_or("no such router")?;
                let worker = workers.get(*number).copied().unwrap_or(("self", 0));
                let plan = Plan { worker, ..plan(*number, subject, place, tester.id(), cpu) };
                let how = if place.contender.way == Way::Sender { Generator::Packet } else { how };
                Stream::start(&launcher, how, plan)
            };
            subjects.iter().map(start).collect()
        })?;
        let streams = subjects.into_iter().zip(streams);
        let streams = streams.map(|((place, s), stream)| (s.name, place, s.traffic, stream)).collect();
        let mut world = World {
            launcher,
            places,
            streams,
            count_received: settings.count_received,
            _sinks: sinks,
            _tester: tester,
            _folder: folder,
            generator,
            fallback,
        };
        for who in 0..world.len() {
            world.await_router(who)?;
        }
        Ok(world)
    }

    /// The number of subjects.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// A router forwards one of this number of packets.
    pub fn share(&self, who: usize) -> f64 {
        self.streams.get(who).map_or(1.0, |s| s.3.share())
    }

    /// The frames that each router has forwarded; `None` for all but those of Castanet in the kernel.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn redirected_all(&self) -> Result<Vec<Option<Redirected>>, String> {
        let redirected = |place: &Place| {
            if !matches!(place.contender.way, Way::Castanet { in_kernel: true, .. }) {
                return Ok(None);
            }
            let pairs = 1..=place.contender.pairs.max(1);
            let devices = pairs.flat_map(devices).collect::<Vec<_>>().join(",");
            let words = ["redirected", &place.host.id().to_string(), &devices];
            let part = self.launcher.part("the counters of devices", &words)?;
            let line = part.line(PATIENCE)?;
            let redirected = line.parse().map_err(|_| format!("the counters of devices: '{line}'"))?;
            Ok(Some(Redirected { redirected, arrived: place.arrivals.count()? }))
        };
        self.places.iter().map(redirected).collect()
    }

    /// Starts to count the runs of the program of a router's first device (see [`runs`]).
    ///
    /// # Errors
    /// The router has none, or the kernel does not permit it.
    pub fn count_runs(&self, place: usize) -> Result<Process, String> {
        let place = self.places.get(place).ok_or("no such router")?;
        let words = ["runs", &place.host.id().to_string(), "in"];
        let part = self.launcher.part("the runs of a program cannot be counted", &words)?;
        part.line(PATIENCE)?;
        Ok(part)
    }

    /// Returns what a router has complained about, if it has ended.
    fn end_of(&mut self, place: usize) -> Option<String> {
        let router = self.places.get_mut(place)?.router.as_mut()?;
        router.has_ended().then(|| router.complaints())
    }

    /// Sends a few packets repeatedly, until some arrive at the receiver.
    fn await_router(&mut self, who: usize) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        let (name, place) = self.streams.get(who).map(|s| (s.0.clone(), s.1)).unwrap_or_default();
        while self.send(who, 64_000.0, Duration::from_millis(10))?.arrived == 0 {
            let ended = self.end_of(place).is_some();
            if ended || Instant::now() > deadline {
                let router = self.places.get(place).and_then(|p| p.router.as_ref());
                let complaints = router.map_or(String::new(), Process::complaints);
                let why = if complaints.is_empty() { "nothing comes through" } else { &complaints };
                return Err(format!("the router {name}: {why}"));
            }
        }
        Ok(())
    }

    /// Sends packets through one of the routers, and waits until that router has drained.
    ///
    /// # Errors
    /// A process has ended.
    pub fn send(&mut self, who: usize, rate: f64, time: Duration) -> Result<Sent, String> {
        let (name, number, traffic, stream) = self.streams.get_mut(who).ok_or("no such router")?;
        let (name, number, flows) = (name.clone(), *number, traffic.flows);
        let place = self.places.get_mut(number).ok_or("no such router")?;
        let count = self.count_received && !place.contender.way.sends();
        let before = if count { Some(place.received()?) } else { None };
        place.activate(flows, true)?;
        let (load, arrived) = stream.send(rate, time)?;
        place.activate(flows, false)?;
        let received = match before {
            Some(before) => Some(place.received()?.saturating_sub(before)),
            None => None,
        };
        if let Some(complaints) = self.end_of(number) {
            return Err(format!("the router {name} has ended: {complaints}"));
        }
        Ok(Sent { load, arrived, received })
    }
}

/// Starts the programs that drop what arrives behind routers whose programs redirect frames.
///
/// A veth accepts redirected frames only if its other end receives by NAPI, as it does with a program. The program is also the earliest
/// place at which the receiver can drop frames. The kernel's router is compared with programs, so it gets the same receiver as they,
/// which makes it faster.
fn sinks(launcher: &Launcher, settings: &Settings, places: &[Place]) -> Result<Vec<Process>, String> {
    let redirects = |way: &Way| way.is_program() && *way != Way::Drop;
    let any = settings.routers.iter().any(|r| redirects(&r.way));
    let gets = |place: &&Place| match &place.contender.way {
        Way::Kernel(KernelTask::Route | KernelTask::Transfer) => any,
        way => redirects(way),
    };
    let start = |place: &Place| {
        let (tester, devices) = (place.arrivals.receiver.to_string(), place.arrivals.devices.join(","));
        let sink = launcher.part("redirected frames cannot be received", &["drop", &tester, &devices])?;
        sink.line(PATIENCE)?;
        Ok(sink)
    };
    places.iter().filter(gets).map(start).collect()
}
