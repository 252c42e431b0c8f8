// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disturbances of the network, and when they begin and end.

use crate::clock::FalseClock;
use crate::network::{self, Network};
use crate::schedule::{Dice, MINUTE};
use castanet_lab::{Hostile, Process, Scene};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

/// The rate of a flood in frames per second.
const RATE: u32 = 2000;
/// How long a flood lasts.
const FLOOD: Duration = Duration::from_millis(4000);
/// The time, in milliseconds, after which the test tries again to end a disturbance. For example, a link can come up
/// only after the routers have opened its devices.
const LOOK: u64 = 50;
/// How long a flood at full rate lasts.
const FULL: Duration = Duration::from_millis(1000);

/// A disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disturbance {
    /// Frames with random or mutated bytes.
    Mutated,
    /// ARP packets with false address mappings, or in the name of other hosts.
    Arp,
    /// Fragments that overlap or never become complete.
    Fragments,
    /// The three floods above together, for a second, as fast as frames can be sent.
    FullRate,
    /// The link between firewall and router goes down for 200 ms.
    Flap,
    /// The preferred link between the switches goes down for 300 ms, too short for the spanning tree to notice.
    TrunkFlap,
    /// The preferred link between the switches goes down for 9 seconds, so that the spanning tree uses the other link.
    TrunkCut,
    /// The device of the attacker is deleted and created again.
    AttackerDevice,
    /// The devices between NAT gateway and firewall are deleted and created again.
    WanDevice,
    /// A router is stopped for a second by SIGSTOP.
    Stop,
    /// The clock of all routers jumps by up to a day, back or ahead.
    Clock,
    /// A router cannot open another descriptor for 3 seconds.
    Descriptors,
}

/// For each disturbance, the seconds of a minute at which it begins, and its period in minutes.
const PLAN: [(Disturbance, &[u64], u64); 12] = [
    (Disturbance::Mutated, &[15, 20, 26, 31, 37, 42, 47], 1),
    (Disturbance::Arp, &[15, 20, 25, 30, 35, 40, 46], 1),
    (Disturbance::Fragments, &[16, 21, 27, 32, 38, 43, 47], 1),
    (Disturbance::FullRate, &[52], 1),
    (Disturbance::Flap, &[18, 28, 38, 48], 1),
    (Disturbance::TrunkCut, &[20], 5),
    (Disturbance::TrunkFlap, &[45], 1),
    (Disturbance::AttackerDevice, &[25, 36], 1),
    (Disturbance::WanDevice, &[40], 1),
    (Disturbance::Stop, &[44, 46, 50], 1),
    (Disturbance::Clock, &[22, 34, 49], 1),
    (Disturbance::Descriptors, &[41, 47], 1),
];

/// What the test must do to end a disturbance.
enum Undo {
    Up {
        link: usize,
        end: usize,
    },
    MakeAgain(usize, Range<usize>),
    /// Brings up a link whose devices were created again, as soon as the routers have opened these devices. The range
    /// has the indices of the intervals in `excused` that end at that time.
    Open(usize, Range<usize>),
    Continue(u32),
    Limit {
        process: u32,
        soft: u64,
        /// The index of the interval in `excused` that ends when the limit is raised.
        excuse: usize,
        _clients: Vec<UnixStream>,
    },
}

/// Causes the disturbances.
pub struct Disturber<'a> {
    network: &'a mut Network,
    clock: Option<&'a FalseClock>,
    start: Instant,
    seed: u64,
    /// The next second of the run to process: its disturbances have not begun yet.
    next: u64,
    undo: Vec<(Instant, Undo)>,
    floods: Vec<Process>,
    /// How often each disturbance has happened.
    pub counts: BTreeMap<Disturbance, u64>,
    /// The number of frames that floods sent.
    pub frames: u64,
    /// The intervals in which a router may refuse good swaps. The router cannot look up the addresses of devices while
    /// it has no free descriptor, or while one of its devices is missing. Each entry has the router, and the first and
    /// last second of the interval, counted from the start of the run.
    pub excused: Vec<(network::RouterKind, u64, u64)>,
}

impl<'a> Disturber<'a> {
    /// Creates a disturber; nothing is disturbed yet.
    pub fn new(network: &'a mut Network, clock: Option<&'a FalseClock>, start: Instant, seed: u64) -> Self {
        let (undo, floods, counts, excused) = Default::default();
        Disturber { network, clock, start, seed, next: 0, undo, floods, counts, frames: 0, excused }
    }

    /// The network.
    pub fn network(&self) -> &Network {
        self.network
    }

    /// Ends and begins the disturbances that are due.
    pub fn step(&mut self) {
        let now = Instant::now();
        let due = self.undo.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>();
        due.into_iter().for_each(|(_, undo)| self.end(undo));
        let second = self.start.elapsed().as_secs();
        while self.next <= second {
            let (at, minute) = (self.next % MINUTE.as_secs(), self.next / MINUTE.as_secs());
            for (kind, seconds, every) in PLAN {
                if seconds.contains(&at) && minute.is_multiple_of(every) {
                    self.begin(kind);
                }
            }
            self.next += 1;
        }
        // If there are more than 8 floods, the oldest of them have ended. Waiting for 4 of these takes no time.
        if self.floods.len() > 8 {
            self.reap(4);
        }
    }

    /// Ends all disturbances.
    pub fn finish(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Some((_, undo)) = self.undo.pop().filter(|_| Instant::now() < deadline) {
            self.end(undo);
            std::thread::sleep(Duration::from_millis(10));
        }
        self.reap(0);
    }

    fn reap(&mut self, leave: usize) {
        let ended = self.floods.len().saturating_sub(leave);
        for flood in self.floods.drain(..ended) {
            let text = flood.wait(Duration::from_secs(60)).stdout;
            self.frames += text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        }
    }

    fn later(&mut self, milliseconds: u64, undo: Undo) {
        self.undo.push((Instant::now() + Duration::from_millis(milliseconds), undo));
    }

    /// Starts a flood. Does nothing while the attacker's device is deleted.
    fn flood(&mut self, kind: Disturbance, time: Duration, rate: Option<u32>, seed: u64) {
        if self.is_deleted(network::ATTACK) {
            return;
        }
        let ether = |last: [u8; 2]| [2, 0, 0, 0, last[0], last[1]];
        let attacker = Scene {
            host: (ether([8, 1]), Ipv4Addr::new(10, 66, 0, 2)),
            router: (ether([8, 2]), Ipv4Addr::new(10, 66, 0, 1)),
            beyond: Ipv4Addr::new(192, 0, 2, 2),
        };
        let storm = Scene {
            host: (ether([9, 1]), Ipv4Addr::new(203, 0, 113, 66)),
            router: (ether([4, 1]), Ipv4Addr::new(203, 0, 113, 1)),
            beyond: Ipv4Addr::new(198, 51, 100, 1),
        };
        let (host, scene) = match kind {
            Disturbance::Arp => (&self.network.storm, storm),
            _ => (&self.network.attacker, attacker),
        };
        let mut hostile = Hostile::new(scene, seed);
        let mut frames = Vec::new();
        while frames.len() < (time.as_secs() as usize + 1) * RATE as usize {
            match kind {
                Disturbance::Mutated => {
                    frames.extend([hostile.mutated(), hostile.noise(), hostile.mutated()])
                }
                Disturbance::Arp => frames.extend([hostile.arp(), hostile.arp(), hostile.spoof()]),
                _ => frames.extend(hostile.fragments()),
            }
        }
        let flood = host.flood_at("eth0", &frames, time, rate);
        self.floods.push(flood);
    }

    fn begin(&mut self, kind: Disturbance) {
        *self.counts.entry(kind).or_default() += 1;
        let mut dice = Dice::new(self.seed ^ self.next << 8, &format!("{kind:?}"));
        match kind {
            Disturbance::Mutated | Disturbance::Arp | Disturbance::Fragments => {
                self.flood(kind, FLOOD, Some(RATE), dice.number());
            }
            Disturbance::FullRate => {
                for kind in [Disturbance::Mutated, Disturbance::Arp, Disturbance::Fragments] {
                    self.flood(kind, FULL, None, dice.number());
                }
            }
            Disturbance::Flap => self.down(network::OUTER, dice.below(2), 200),
            Disturbance::TrunkFlap => self.down(network::TRUNK, dice.below(2), 300),
            Disturbance::TrunkCut => self.down(network::TRUNK, dice.below(2), 9000),
            Disturbance::AttackerDevice => self.delete(network::ATTACK),
            Disturbance::WanDevice => self.delete(network::WAN),
            Disturbance::Stop => {
                let process = self.some_router(&mut dice);
                signal(process, Signal::SIGSTOP);
                self.later(1000, Undo::Continue(process));
            }
            Disturbance::Clock => {
                let day = 86_400;
                if let Some(clock) = self.clock {
                    clock.set(dice.below(2 * day) as i64 - day as i64);
                }
            }
            Disturbance::Descriptors => self.exhaust(&mut dice),
        }
    }

    fn some_router(&self, dice: &mut Dice) -> u32 {
        self.network.nodes[dice.below(self.network.nodes.len())].process.id()
    }

    fn down(&mut self, link: usize, end: usize, milliseconds: u64) {
        self.network.set_end(link, end, "down");
        self.later(milliseconds, Undo::Up { link, end });
    }

    fn is_deleted(&self, link: usize) -> bool {
        self.undo
            .iter()
            .any(|(_, undo)| matches!(undo, Undo::MakeAgain(l, _) | Undo::Open(l, _) if *l == link))
    }

    fn delete(&mut self, link: usize) {
        if self.is_deleted(link) {
            return;
        }
        let now = self.start.elapsed().as_secs();
        let first = self.excused.len();
        self.excused.extend(self.network.routers_at(link).map(|kind| (kind, now, u64::MAX)));
        self.network.delete(link);
        self.later(500, Undo::MakeAgain(link, first..self.excused.len()));
    }

    /// Lowers a router's limit of descriptors to two more than it has open. Clients then take these two.
    fn exhaust(&mut self, dice: &mut Dice) {
        let node = &self.network.nodes[dice.below(self.network.nodes.len())];
        let process = node.process.id();
        let open = network::descriptors(process);
        let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap_or_default();
        // The line is `Max open files  SOFT  HARD  files` (proc_pid_limits(5)).
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let soft = line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(1024);
        let now = self.start.elapsed().as_secs();
        if !limit(process, open + 2) {
            self.counts.entry(Disturbance::Descriptors).and_modify(|n| *n -= 1);
            return;
        }
        let excuse = self.excused.len();
        self.excused.push((node.kind, now, u64::MAX));
        let clients = (0..20).filter_map(|_| UnixStream::connect(&node.socket).ok()).collect();
        self.later(3000, Undo::Limit { process, soft, excuse, _clients: clients });
    }

    fn end(&mut self, undo: Undo) {
        match undo {
            Undo::Up { link, end } => self.network.set_end(link, end, "up"),
            Undo::MakeAgain(link, excuses) => {
                self.network.make_again(link);
                self.later(LOOK, Undo::Open(link, excuses));
            }
            Undo::Open(link, _) if !self.network.is_open(link) => self.later(LOOK, undo),
            Undo::Open(link, excuses) => {
                self.network.set(link, "up");
                if link == network::ATTACK {
                    self.network.address_attacker();
                }
                let now = self.start.elapsed().as_secs();
                for excuse in excuses {
                    if let Some((_, _, to)) = self.excused.get_mut(excuse) {
                        *to = now + 1;
                    }
                }
            }
            Undo::Continue(process) => signal(process, Signal::SIGCONT),
            // If the limit cannot be raised yet, the test tries again later. Swaps that are refused until then remain
            // excused.
            Undo::Limit { process, soft, .. } if !limit(process, soft) => self.later(LOOK, undo),
            Undo::Limit { excuse, .. } => {
                let now = self.start.elapsed().as_secs();
                if let Some((_, _, to)) = self.excused.get_mut(excuse) {
                    *to = now + 1;
                }
            }
        }
    }
}

fn signal(process: u32, signal: Signal) {
    if let Ok(id) = i32::try_from(process) {
        // The router may have ended. The checks at the end of the run report that.
        let _ = kill(Pid::from_raw(id), signal);
    }
}

/// Sets the soft limit of a router's descriptors. Returns whether that was permitted.
fn limit(process: u32, soft: u64) -> bool {
    let mut command = Command::new("prlimit");
    command.args(["--pid", &process.to_string(), &format!("--nofile={soft}:")]);
    Process::start(command).wait(Duration::from_secs(60)).ok()
}
