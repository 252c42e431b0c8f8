// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hosts of a measurement: a sender, the routers, and a receiver behind all of them.

use super::generator::{Arrivals, Generator, Load};
use super::{Contender, KERNEL, Settings, Way};
use crate::launch::{Launcher, PATIENCE};
use crate::process::Process;
use std::time::{Duration, Instant};

/// If no packet has arrived for this long, the packets that are still missing count as lost.
const STILL: Duration = Duration::from_millis(100);
/// The longest time that a router may take to drain.
const DRAIN: Duration = Duration::from_secs(2);

/// The Ethernet address of one end of a router's link.
fn ether(router: usize, link: usize, end: usize) -> String {
    format!("02:00:00:{router:02x}:{link:02x}:{end:02x}")
}

/// The name of the devices of sender and receiver for a router.
fn device(router: usize) -> String {
    format!("to{router}")
}

/// The Ethernet address of the next hop. No device has it, so the receiver drops packets as early as possible.
pub const NEXT_HOP: &str = "02:00:00:00:00:ff";
/// The receiver's IP address, the destination of the packets.
pub const RECEIVER: &str = "10.0.1.2";
/// The sender's IP address.
pub(super) const SENDER: &str = "10.0.0.2";
/// The routers' addresses on their devices, `in` and `out`.
pub const ADDRESSES: [(&str, &str); 2] = [("in", "10.0.0.1/24"), ("out", "10.0.1.1/24")];

/// The devices of one pair of interfaces, counted from 1. Packets arrive at the first device and leave by the second.
fn pair(number: usize) -> [String; 2] {
    ["in", "out"].map(|name| if number < 2 { name.to_string() } else { format!("{name}{number}") })
}

/// The interfaces of a router with this number of pairs: devices and addresses. Those of the first pair are [`ADDRESSES`].
pub fn interfaces(pairs: usize) -> Vec<(String, String)> {
    let of_pair = |number: usize| {
        let subnets = [2 * number - 2, 2 * number - 1];
        pair(number).into_iter().zip(subnets.map(|subnet| format!("10.0.{subnet}.1/24")))
    };
    (1..=pairs.max(1)).flat_map(of_pair).collect()
}

/// The processes of a measurement.
pub struct World {
    launcher: Launcher,
    /// The names of the routers, and the packets through each.
    streams: Vec<(String, Stream)>,
    /// The processes of all routers but the kernel's.
    routers: Vec<Process>,
    /// The hosts of these routers, as process IDs, and whether the routers are Castanet's in the kernel.
    places: Vec<(u32, bool)>,
    /// The programs that drop what arrives.
    _sinks: Vec<Process>,
    _hosts: Vec<Process>,
    /// The method of packet generation.
    pub generator: Generator,
    /// The reason why live frames are not used; `None` if they are used, or if another method was requested.
    pub fallback: Option<String>,
}

/// The addresses of the packets through all routers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow<'a> {
    /// The CPU of the generator.
    pub processor: &'a str,
    /// The frame length in bytes.
    pub length: usize,
    /// The source IP address.
    pub from: &'a str,
    /// The destination IP address.
    pub to: &'a str,
    /// Whether the packets end at the router's device `in`. Then this is where they arrive, not at the receiver.
    pub ends_at_router: bool,
}

/// Connects the devices `in` and `out` of a router to the sender and the receiver. Both call their devices `name`.
///
/// # Errors
/// The kernel does not permit it.
pub(crate) fn join(
    launcher: &Launcher,
    router: &Process,
    (number, name): (usize, &str),
    ends: [&Process; 2],
) -> Result<(), String> {
    join_pair(launcher, router, (number, name), 1, ends)
}

/// Connects one pair of devices of a router to the sender and the receiver.
fn join_pair(
    launcher: &Launcher,
    router: &Process,
    (number, name): (usize, &str),
    number_of_pair: usize,
    [sender, receiver]: [&Process; 2],
) -> Result<(), String> {
    let [first, second] = pair(number_of_pair);
    let link = 2 * number_of_pair - 1;
    for (link, end, device) in [(link, sender, &first), (link + 1, receiver, &second)] {
        let make = format!(
            "link add name {name} address {} type veth peer name {device} address {} netns {}",
            ether(number, link, 2),
            ether(number, link, 1),
            router.id()
        );
        launcher.ip(end, &[make, format!("link set {name} up")])?;
    }
    launcher.ip(router, &[format!("link set {first} up"), format!("link set {second} up")])
}

/// The packets through one router: the process that sends them, and the device at which they arrive.
pub(crate) struct Stream {
    generator: Process,
    arrivals: Arrivals,
    /// One of this number of packets is to arrive.
    share: u32,
}

/// The frames that a router in the kernel has forwarded.
#[derive(Clone, Copy, Debug)]
pub struct Redirected {
    /// The number of frames that its program has redirected to the device `out`.
    pub redirected: u64,
    /// The number of frames that have arrived at the receiver.
    pub arrived: u64,
}

/// The number of runs of a program, and their time in nanoseconds, from a part that counts them.
pub(super) fn runs(counter: &mut Process) -> Result<(u64, u64), String> {
    counter.tell("")?;
    let line = counter.line(PATIENCE)?;
    let numbers = line.split_once(' ').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    numbers.ok_or_else(|| format!("counter of runs: '{line}'"))
}

/// Starts a router on a host.
fn start_router(
    launcher: &Launcher,
    host: &Process,
    processor: usize,
    router: &Contender,
) -> Result<Process, String> {
    let (pid, cpu) = (host.id().to_string(), processor.to_string());
    let part = |words: &[&str]| {
        let process = launcher.part(&router.name, words)?;
        process.line(PATIENCE)?;
        Ok(process)
    };
    match &router.way {
        Way::Castanet { configuration, in_kernel } => {
            let driver: &[&str] = if *in_kernel { &["--driver", "xdp"] } else { &[] };
            let words = [driver, &["--expression", configuration]].concat();
            launcher.castanet(host, Some(processor), &words)
        }
        Way::Forwarder => part(&["forward", &pid, "in", "out"]),
        Way::Drop => part(&["drop", &pid, "in"]),
        Way::Sockets => part(&["forward-sockets", &pid, &cpu, "in", "out"]),
    }
}

impl Stream {
    /// Starts the generator for the router with this number. `name` is the device of sender and receiver, and `worker` says
    /// what the cost of the packets is, as for [`super::part::run`].
    ///
    /// # Errors
    /// The kernel does not permit this method of generation.
    pub fn start(
        launcher: &Launcher,
        how: Generator,
        (number, name): (usize, &str),
        [sender, receiver, router]: [&Process; 3],
        flow: Flow<'_>,
        (kind, worker): (&str, &str),
    ) -> Result<Stream, String> {
        let [from, to] = [ether(number, 1, 2), ether(number, 1, 1)];
        let (end, arrives) = if flow.ends_at_router { (router, "in") } else { (receiver, name) };
        let (sender, at) = (sender.id().to_string(), end.id().to_string());
        let length = flow.length.to_string();
        let words =
            ["send", &sender, flow.processor, how.name(), name, &length, &from, &to, flow.from, flow.to];
        let watched = [&at, arrives, kind, worker];
        let all: Vec<&str> = words.into_iter().chain(watched).collect();
        let generator = launcher.part("generator", &all)?;
        generator.line(PATIENCE)?;
        if how == Generator::Live {
            let words = ["napi", &router.id().to_string(), "in"];
            launcher.part("live frames cannot be received", &words)?.wait(PATIENCE)?;
        }
        let arrivals = Arrivals { receiver: end.id(), device: arrives.into() };
        Ok(Stream { generator, arrivals, share: 1 })
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

impl World {
    /// Creates hosts and links, and starts routers and generators.
    ///
    /// # Errors
    /// The machine lacks a required feature or permission, or the configuration has errors.
    pub fn new(settings: &Settings, [generator, processor]: [usize; 2]) -> Result<World, String> {
        let launcher = Launcher { program: settings.program.clone(), part: settings.part.clone() };
        let kernel = launcher.host(None)?;
        let [sender, receiver] = [(); 2].map(|()| launcher.host(Some(kernel.id())));
        let (sender, receiver) = (sender?, receiver?);
        let others = settings.routers.iter().map(|_| launcher.host(Some(kernel.id())));
        let others = others.collect::<Result<Vec<Process>, String>>()?;
        let names: Vec<&str> =
            std::iter::once(KERNEL).chain(settings.routers.iter().map(|r| r.name.as_str())).collect();
        let hosts: Vec<&Process> = std::iter::once(&kernel).chain(&others).collect();
        for (number, router) in hosts.iter().enumerate() {
            join(&launcher, router, (number, &device(number)), [&sender, &receiver])?;
        }
        // The further pairs of a router carry no packets, but its devices exist and are up.
        for (number, (host, router)) in (1..).zip(others.iter().zip(&settings.routers)) {
            for idle in 2..=router.pairs {
                let name = format!("to{number}p{idle}");
                join_pair(&launcher, host, (number, &name), idle, [&sender, &receiver])?;
            }
        }
        let mut lines = Vec::new();
        for (device, address) in ADDRESSES {
            lines.push(format!("address add {address} dev {device}"));
        }
        lines.push(format!("neighbour add {SENDER} lladdr {} dev in", ether(0, 1, 2)));
        lines.push(format!("neighbour add {RECEIVER} lladdr {NEXT_HOP} dev out"));
        launcher.ip(&kernel, &lines)?;
        launcher.shell(&kernel, "echo 1 > /proc/sys/net/ipv4/ip_forward")?;

        let cpu = [generator, processor].map(|cpu| cpu.to_string());
        for router in hosts.iter().filter(|_| settings.steer) {
            let words = ["steer", &router.id().to_string(), "in", &cpu[1]];
            launcher.part("receive processing cannot be steered", &words)?.wait(PATIENCE)?;
        }
        let routers = others.iter().zip(&settings.routers);
        let routers = routers.map(|(host, router)| start_router(&launcher, host, processor, router));
        let routers = routers.collect::<Result<Vec<Process>, String>>()?;
        // A veth accepts redirected frames only if its other end receives by NAPI, as it does with a program. The program is
        // also the earliest place at which the receiver can drop frames. The kernel's router is compared with programs, so it
        // gets the same receiver as they, which makes it faster.
        let redirects = |r: &Contender| r.way.is_program() && r.way != Way::Drop;
        let any = settings.routers.iter().any(redirects);
        let in_kernel = std::iter::once(any).chain(settings.routers.iter().map(redirects));
        let sinks = (0..).zip(in_kernel).filter(|(_, in_kernel)| *in_kernel).map(|(number, _)| {
            let words = ["drop", &receiver.id().to_string(), &device(number)];
            let sink = launcher.part("redirected frames cannot be received", &words)?;
            sink.line(PATIENCE)?;
            Ok(sink)
        });
        let sinks = sinks.collect::<Result<Vec<Process>, String>>()?;

        // The CPU time of a process is exact. The busy time of a CPU includes other programs, but is necessary if that
        // CPU also executes the receive path.
        let contender = |who: usize| who.checked_sub(1).and_then(|i| settings.routers.get(i));
        let worker = |who: usize| match who.checked_sub(1).and_then(|i| routers.get(i)) {
            _ if settings.steer => ("cpu", cpu[1].clone()),
            Some(router) if contender(who).is_some_and(|c| !c.way.is_program()) => {
                ("pid", router.id().to_string())
            }
            _ => ("self", "0".into()),
        };
        let (streams, generator, fallback) = start_all(settings.generator, |how| {
            let start = |(number, host): (usize, &&Process)| {
                let (kind, worker) = worker(number);
                let name = device(number);
                let ends = [&sender, &receiver, *host];
                let contender = contender(number);
                let flow = Flow {
                    processor: &cpu[0],
                    length: settings.length,
                    from: SENDER,
                    to: RECEIVER,
                    ends_at_router: contender.is_some_and(|c| c.way == Way::Drop),
                };
                let share = contender.map_or(1, |c| c.share);
                let stream = Stream::start(&launcher, how, (number, &name), ends, flow, (kind, &worker))?;
                Ok(Stream { share, ..stream })
            };
            hosts.iter().enumerate().map(start).collect()
        })?;
        let streams = names.iter().map(ToString::to_string).zip(streams).collect();
        let is_ours = |r: &Contender| matches!(r.way, Way::Castanet { in_kernel: true, .. });
        let places = others.iter().map(Process::id).zip(settings.routers.iter().map(is_ours)).collect();
        let mut all = vec![kernel, sender, receiver];
        all.extend(others);
        let mut world =
            World { launcher, streams, routers, places, _sinks: sinks, _hosts: all, generator, fallback };
        for who in 0..world.streams.len() {
            world.await_router(who)?;
        }
        Ok(world)
    }

    /// The names of the routers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.streams.iter().map(|s| s.0.as_str())
    }

    /// A router forwards one of this number of packets.
    pub fn share(&self, who: usize) -> f64 {
        self.streams.get(who).map_or(1.0, |s| f64::from(s.1.share.max(1)))
    }

    /// The frames that a router of Castanet in the kernel has forwarded; `None` for other routers.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn redirected(&self, who: usize) -> Result<Option<Redirected>, String> {
        let place = who.checked_sub(1).and_then(|i| self.places.get(i));
        let (Some((pid, true)), Some((_, stream))) = (place, self.streams.get(who)) else { return Ok(None) };
        let part = self.launcher.part("the counters of out", &["redirected", &pid.to_string(), "out"])?;
        let line = part.line(PATIENCE)?;
        let redirected = line.parse().map_err(|_| format!("the counters of out: '{line}'"))?;
        Ok(Some(Redirected { redirected, arrived: stream.arrivals.count()? }))
    }

    /// Starts to count the runs of a router's program (see [`runs`]).
    ///
    /// # Errors
    /// The router has none, or the kernel does not permit it.
    pub fn count_runs(&self, who: usize) -> Result<Process, String> {
        let place = who.checked_sub(1).and_then(|i| self.places.get(i)).ok_or("no such router")?;
        let words = ["runs", &place.0.to_string(), "in"];
        let part = self.launcher.part("the runs of a program cannot be counted", &words)?;
        part.line(PATIENCE)?;
        Ok(part)
    }

    /// Returns what a router has complained about, if it has ended.
    fn end_of(&mut self, who: usize) -> Option<String> {
        let router = self.routers.get_mut(who.checked_sub(1)?)?;
        router.has_ended().then(|| router.complaints())
    }

    /// Sends a few packets repeatedly, until some arrive at the receiver.
    fn await_router(&mut self, who: usize) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while self.send(who, 1000.0, Duration::from_millis(10))?.1 == 0 {
            let ended = self.end_of(who).is_some();
            if ended || Instant::now() > deadline {
                let router = who.checked_sub(1).and_then(|i| self.routers.get_mut(i));
                let complaints = router.map_or(String::new(), |r| r.complaints());
                let why = if complaints.is_empty() { "nothing comes through" } else { &complaints };
                let name = self.names().nth(who).unwrap_or_default();
                return Err(format!("the router {name}: {why}"));
            }
        }
        Ok(())
    }

    /// Sends packets through one of the routers, and waits until that router has drained. Returns the generator's
    /// counts and times of the trial, and the number of packets that arrived by the time the router had drained.
    ///
    /// # Errors
    /// A process has ended.
    pub fn send(&mut self, who: usize, rate: f64, time: Duration) -> Result<(Load, u64), String> {
        let (name, stream) = self.streams.get_mut(who).ok_or("no such router")?;
        let (name, done) = (name.clone(), stream.send(rate, time)?);
        if let Some(complaints) = self.end_of(who) {
            return Err(format!("the router {name} has ended: {complaints}"));
        }
        Ok(done)
    }
}
