// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run: starts everything, causes disturbances, waits for the end, and collects the results.

use crate::checks;
use crate::clock::FalseClock;
use crate::disturbances::{Disturbance, Disturber};
use crate::final_counts::FinalCounts;
use crate::network::{Network, Node, RouterKind};
use crate::readers::{self, Reads};
use crate::schedule;
use crate::swaps::{self, Swaps, Target};
use castanet_lab::{Host, Process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Short connections per minute.
pub const CONNECTIONS: u64 = 50_000;
/// The number of long streams, and the rate of each in each direction, in bytes per second.
const STREAMS: (u64, u64) = (4, 400_000);
/// Datagrams per second.
const DATAGRAMS: u64 = 400;
/// Handler reads per second, of all routers together.
pub const READS: u32 = 1000;
/// Timeout of the start, and of the reports at the end: clients may need this long after the last disturbance.
const PATIENCE: Duration = Duration::from_secs(200);
/// The interval between two samples of memory.
const SAMPLE: Duration = Duration::from_secs(5);

/// The results of a run.
pub struct Results {
    /// The duration in minutes.
    pub minutes: u64,
    /// The counts of the routers.
    pub counts: Vec<FinalCounts>,
    /// The swaps by router.
    pub swaps: Vec<Swaps>,
    /// The reads by router.
    pub reads: Vec<Reads>,
    /// The number of attacks by hostile control clients.
    pub attacks: u64,
    /// Samples of memory: seconds after the start, and the memory of each router in KiB.
    pub memory: Vec<(u64, Vec<u64>)>,
    /// The number of open descriptors of each router, before the first client and after the last one.
    pub descriptors: [Vec<u64>; 2],
    /// How often each disturbance happened.
    pub disturbances: BTreeMap<Disturbance, u64>,
    /// The intervals in which a router had no free descriptor or lacked a device: the router, and the first and last
    /// second of the interval, counted from the start.
    pub excused: Vec<(RouterKind, u64, u64)>,
    /// The number of frames that floods sent.
    pub frames: u64,
    /// Whether the library that makes the clock jump was available.
    pub clock: bool,
    /// Report of the server.
    pub server: Value,
    /// Report of the short connections.
    pub connections: Value,
    /// Report of the streams.
    pub streams: Value,
    /// Report of the datagrams.
    pub datagrams: Value,
    /// What the server and the clients printed on standard error.
    pub complaints: Vec<String>,
}

/// A folder for sockets and configurations, deleted at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts this program on a host in another role, such as `serve`.
fn role(host: &Host, words: &[&str], numbers: &[u64]) -> Process {
    let own = std::env::current_exe().unwrap_or_else(|e| panic!("this command has no file: {e}"));
    let mut command: Command = host.command(own);
    command.args(words).args(numbers.iter().map(u64::to_string));
    Process::start(command)
}

/// Runs the soak test and prints the table. Returns true if no check has the result `MISS`.
pub fn run(minutes: u64, castanet: &'static Path, seed: u64) -> Result<bool, String> {
    let folder = Folder(std::env::temp_dir().join(format!("castanet-soak-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).map_err(|e| format!("{}: {e}", folder.0.display()))?;
    let clock = FalseClock::new(&folder.0);
    let preload = clock.as_ref().map(|c| (c.library.as_path(), c.path.as_path()));
    let mut network = Network::new(castanet, &folder.0, preload)?;
    eprintln!("the network runs; {minutes} minutes, seed {seed}");
    let results = results(&mut network, clock.as_ref(), minutes, seed);
    let Network { nodes, .. } = network;
    let results = Results { counts: close(nodes), ..results };
    Ok(checks::table(&results).print())
}

/// Stops the routers one after the other, and reads their counts.
fn close(nodes: Vec<Node>) -> Vec<FinalCounts> {
    nodes.into_iter().map(FinalCounts::close).collect()
}

/// Waits for the report of a process, the last line of its output. Returns `null` if the process hangs or has failed.
fn report(name: &str, mut process: Process, complaints: &mut Vec<String>) -> Value {
    drop(process.stdin());
    let deadline = Instant::now() + PATIENCE;
    let said = loop {
        let said = process.stdout();
        if said.ends_with("}\n") || Instant::now() > deadline {
            break said;
        }
        thread::sleep(Duration::from_millis(10));
    };
    complaints.extend(process.stderr().lines().map(|line| format!("{name}: {line}")));
    let value = serde_json::from_str(said.lines().last().unwrap_or_default());
    value.unwrap_or_else(|_| {
        complaints.push(format!("{name}: no report"));
        Value::Null
    })
}

fn results(network: &mut Network, clock: Option<&FalseClock>, minutes: u64, seed: u64) -> Results {
    let mut server = role(&network.server, &["serve"], &[]);
    server.wait_for("ready", PATIENCE);
    wait_for_tree(network);
    let seconds = minutes * 60;
    let (start, start_ms) = (Instant::now(), schedule::unix_ms());
    let end = start + Duration::from_secs(seconds);
    let client = network.client.clone();
    let connect = role(&client, &["connect"], &[start_ms, seconds, CONNECTIONS, seed]);
    let streams = role(&client, &["streams"], &[start_ms, seconds, STREAMS.0, STREAMS.1]);
    let datagrams = role(&client, &["datagrams"], &[start_ms, seconds, DATAGRAMS, seed]);
    let target = |node: &Node| Target {
        name: node.kind.name(),
        socket: node.socket.clone(),
        first: node.text.clone(),
        process: node.process.id(),
    };
    let targets: Vec<Target> = network.nodes.iter().map(target).collect();
    let sockets: Vec<PathBuf> = targets.iter().map(|t| t.socket.clone()).collect();
    let share = READS / targets.len() as u32;
    let mut memory = Vec::new();
    let before = descriptors(network);
    let mut disturber = Disturber::new(network, clock, start, seed);
    let (swaps, reads, attacks) = thread::scope(|s| {
        let swaps: Vec<_> =
            targets.iter().map(|t| s.spawn(move || swaps::run(t, seed, start, end))).collect();
        let reads: Vec<_> = targets
            .iter()
            .map(|t| s.spawn(move || readers::read(t.name, &t.socket, share, start, end)))
            .collect();
        let attacks = s.spawn(|| readers::attack(&sockets, seed, end));
        let mut sample = start;
        while Instant::now() < end {
            disturber.step();
            if Instant::now() >= sample {
                let used = disturber.network().nodes.iter().map(|n| n.memory().unwrap_or(0)).collect();
                memory.push((start.elapsed().as_secs(), used));
                progress(start, memory.last());
                sample += SAMPLE;
            }
            thread::sleep(Duration::from_millis(10));
        }
        disturber.finish();
        let joined = "a thread of this command panicked";
        (
            swaps.into_iter().map(|t| t.join().unwrap_or_else(|_| panic!("{joined}"))).collect(),
            reads.into_iter().map(|t| t.join().unwrap_or_else(|_| panic!("{joined}"))).collect(),
            attacks.join().unwrap_or_else(|_| panic!("{joined}")),
        )
    });
    let Disturber { counts: disturbances, frames, excused, .. } = disturber;
    let mut complaints = Vec::new();
    let connections = report("connections", connect, &mut complaints);
    let streams = report("streams", streams, &mut complaints);
    let datagrams = report("datagrams", datagrams, &mut complaints);
    let server = report("server", server, &mut complaints);
    thread::sleep(Duration::from_secs(1));
    let after = descriptors(network);
    network.quiesce();
    thread::sleep(Duration::from_secs(1));
    Results {
        minutes,
        counts: Vec::new(),
        swaps,
        reads,
        attacks,
        memory,
        descriptors: [before, after],
        disturbances,
        excused,
        frames,
        clock: clock.is_some(),
        server,
        connections,
        streams,
        datagrams,
        complaints,
    }
}

/// The number of descriptors that each router has open.
fn descriptors(network: &Network) -> Vec<u64> {
    network.nodes.iter().map(|n| crate::network::descriptors(n.process.id())).collect()
}

/// Waits until the client reaches the server, that is, until the switches forward.
fn wait_for_tree(network: &Network) {
    let deadline = Instant::now() + PATIENCE;
    while !network.client.run("ping -c 1 -W 1 198.51.100.1").ok() {
        assert!(Instant::now() < deadline, "the client does not reach the server");
    }
}

/// Prints the minute and the memory of the routers, once a minute.
fn progress(start: Instant, memory: Option<&(u64, Vec<u64>)>) {
    let elapsed = start.elapsed().as_secs();
    if let Some((_, used)) = memory.filter(|_| elapsed % 60 < SAMPLE.as_secs()) {
        let used: Vec<String> = used.iter().map(|kib| format!("{}", kib / 1024)).collect();
        eprintln!("minute {}: memory of the routers {} MiB", elapsed / 60, used.join(" "));
    }
}
