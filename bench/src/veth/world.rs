// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hosts of a measurement: a sender, two routers, and a receiver behind both.

use super::generator::{Arrivals, Generator};
use super::{Settings, WHO};
use crate::launch::{Launcher, PATIENCE};
use crate::process::Process;
use std::time::{Duration, Instant};

/// If no packet has arrived for this long, the packets that are still missing count as lost.
const STILL: Duration = Duration::from_millis(100);
/// The longest time that a router may take to drain.
const DRAIN: Duration = Duration::from_secs(2);

/// The Ethernet address of one end of a router's link.
fn ether(router: usize, link: usize, end: usize) -> String {
    format!("02:00:00:0{router}:0{link}:0{end}")
}

/// The Ethernet address of the next hop. No device has it, so the receiver drops packets as early as possible.
pub const NEXT_HOP: &str = "02:00:00:00:00:ff";
/// The receiver's IP address, the destination of the packets.
pub const RECEIVER: &str = "10.0.1.2";
/// The sender's IP address.
const SENDER: &str = "10.0.0.2";
/// The routers' addresses on their devices, `in` and `out`.
pub const ADDRESSES: [(&str, &str); 2] = [("in", "10.0.0.1/24"), ("out", "10.0.1.1/24")];

/// The processes of a measurement.
pub struct World {
    generators: [Process; 2],
    arrivals: [Arrivals; 2],
    router: Process,
    _hosts: Vec<Process>,
    /// The method of packet generation.
    pub generator: Generator,
    /// The reason why live frames are not used; `None` if they are used, or if another method was requested.
    pub fallback: Option<String>,
}

impl World {
    /// Creates hosts and links, and starts routers and generators.
    ///
    /// # Errors
    /// The machine lacks a required feature or permission, or the configuration has errors.
    pub fn new(settings: &Settings, [generator, processor]: [usize; 2]) -> Result<World, String> {
        let launcher = Launcher { program: settings.program.clone(), part: settings.part.clone() };
        let kernel = launcher.host(None)?;
        let [sender, castanet, receiver] = [(); 3].map(|()| launcher.host(Some(kernel.id())));
        let (sender, castanet, receiver) = (sender?, castanet?, receiver?);
        let routers = [&kernel, &castanet];
        for (i, (router, name)) in routers.iter().zip(WHO).enumerate() {
            for (link, end, device) in [(1, &sender, "in"), (2, &receiver, "out")] {
                let make = format!(
                    "link add name {name} address {} type veth peer name {device} address {} netns {}",
                    ether(i, link, 2),
                    ether(i, link, 1),
                    router.id()
                );
                launcher.ip(end, &[make, format!("link set {name} up")])?;
            }
            launcher.ip(router, &["link set in up".into(), "link set out up".into()])?;
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
        for router in routers.iter().filter(|_| settings.steer) {
            let words = ["steer", &router.id().to_string(), "in", &cpu[1]];
            launcher.part("receive processing cannot be steered", &words)?.wait(PATIENCE)?;
        }
        let router =
            launcher.castanet(&castanet, Some(processor), &["--expression", &settings.configuration])?;

        // The CPU time of a process is exact. The busy time of a CPU includes other programs, but is necessary if that
        // CPU also executes the receive path.
        let worker = |who: usize| match (settings.steer, who) {
            (true, _) => ("cpu", cpu[1].clone()),
            (false, 0) => ("self", "0".into()),
            (false, _) => ("pid", router.id().to_string()),
        };
        let arrivals = WHO.map(|name| Arrivals { receiver: receiver.id(), device: name.into() });
        let start = |how: Generator, i: usize| -> Result<Process, String> {
            let name = WHO.get(i).copied().unwrap_or_default();
            let [from, to] = [ether(i, 1, 2), ether(i, 1, 1)];
            let words = [
                &sender.id().to_string(),
                &cpu[0],
                how.name(),
                name,
                &settings.length.to_string(),
                &from,
                &to,
                SENDER,
                RECEIVER,
            ];
            let (kind, worker) = worker(i);
            let watched = [&receiver.id().to_string(), name, kind, &worker];
            let all: Vec<&str> = ["send"].into_iter().chain(words).chain(watched).collect();
            let process = launcher.part("generator", &all)?;
            process.line(PATIENCE)?;
            Ok(process)
        };
        let both = |how: Generator| -> Result<[Process; 2], String> {
            let generators = [start(how, 0)?, start(how, 1)?];
            for router in routers.iter().filter(|_| how == Generator::Live) {
                let words = ["napi", &router.id().to_string(), "in"];
                launcher.part("live frames cannot be received", &words)?.wait(PATIENCE)?;
            }
            Ok(generators)
        };
        let (generators, generator, fallback) = match settings.generator {
            Some(how) => (both(how)?, how, None),
            None => match both(Generator::Live) {
                Ok(generators) => (generators, Generator::Live, None),
                Err(why) => (both(Generator::Packet)?, Generator::Packet, Some(why)),
            },
        };
        let hosts = vec![kernel, sender, castanet, receiver];
        let mut world = World { generators, arrivals, router, _hosts: hosts, generator, fallback };
        for (i, name) in WHO.into_iter().enumerate() {
            world.await_router(i, name)?;
        }
        Ok(world)
    }

    /// Sends a few packets repeatedly, until some arrive at the receiver.
    fn await_router(&mut self, who: usize, name: &str) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while self.send(who, 1000.0, Duration::from_millis(10))?.1 == 0 {
            let complaints = self.router.complaints();
            let ended = self.router.has_ended();
            if ended || Instant::now() > deadline {
                let why = if complaints.is_empty() { "nothing comes through" } else { &complaints };
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
    pub fn send(
        &mut self,
        who: usize,
        rate: f64,
        time: Duration,
    ) -> Result<(super::generator::Load, u64), String> {
        let (Some(generator), Some(arrivals)) = (self.generators.get_mut(who), self.arrivals.get(who)) else {
            return Err("no such router".into());
        };
        generator.tell(&format!("{rate} {}", time.as_millis()))?;
        let line = generator.line(time + PATIENCE)?;
        let load = super::generator::Load::parse(&line).ok_or_else(|| format!("generator: '{line}'"))?;
        let (mut last, mut moved) = (arrivals.count()?, Instant::now());
        let deadline = moved + DRAIN;
        while last < load.before.saturating_add(load.all)
            && moved.elapsed() < STILL
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(5));
            let now = arrivals.count()?;
            if now != last {
                (last, moved) = (now, Instant::now());
            }
        }
        if self.router.has_ended() {
            return Err(format!("the router castanet has ended: {}", self.router.complaints()));
        }
        Ok((load, last.saturating_sub(load.before)))
    }
}
