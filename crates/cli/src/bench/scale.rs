// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench scale`: measures the cost of sharing elements between workers, and predicts the throughput of more
//! workers.

use super::results::Results;
use crate::load::{Source, complain, elaborate, load};
use castanet_bench::scale::{self, Call, Settings, Shipped, model::Machine, report};
use castanet_graph::Mode;
use castanet_lang::{Diagnostic, Unknown};
use clap::Args;
use std::collections::BTreeMap;
use std::process::Command;

/// Introductory text of `castanet bench scale --help`.
pub const ABOUT: &str = "Measures the cost of sharing elements between workers, and predicts throughput on 4 to 64 cores.

Each configuration runs on one worker and on two in turn. Its packets come from memory, so no device limits it. The first \
table has a line for each kind of sharing: the time of a worker per packet with one worker and with two, the difference, and the share \
of twice the throughput of one worker that two workers reach. The second table varies the share of the work that runs under a lock. \
Three models of the lock are fitted to some of its lines (how long it takes to hand the lock over) and checked on the others: workers always \
wait for each other (Amdahl), meet at random (queue), or take turns. The third table has the configurations that \
`castanet new` writes, with memory in place of their devices, and the elements that their workers share or lock.

The last table predicts larger numbers of cores. For elements that workers share it uses the Universal Scalability Law. Two workers \
determine only the sum of its two parameters, so it gives a range: from all loss being coherence to all loss being contention. For locks it \
uses the model with the smallest error at the lines left out. docs/scaling.md says how far to trust it, and what to change in a \
configuration when an element is the limit.";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet bench scale
  castanet bench scale --seconds 120 --rounds 15 --svg scaling.svg --csv scaling.csv
  castanet bench scale --socket-cores 16 --numa-factor 3

Two processors that nothing else uses give the best figures. Time in which a worker waits for a processor is left out, a measurement with \
much of it is repeated, and the last line says how much is left.";

/// Arguments of `castanet bench scale`.
#[derive(Args)]
pub struct Scale {
    /// Total time of all measurements, in seconds; on a busy machine up to four times as much.
    #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = super::seconds)]
    pub seconds: f64,
    /// Number of rounds; each round measures all variants of a configuration.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: u16,
    /// For the prediction: number of cores per socket.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub socket_cores: u16,
    /// For the prediction: the cost of communication between processor sockets, as a multiple of the cost within a
    /// socket.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub numa_factor: f64,
    #[command(flatten)]
    pub results: Results,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok().filter(|f| (1.0..=100.0).contains(f));
    factor.ok_or_else(|| "expected a number from 1 to 100".to_string())
}

/// A configuration that `castanet new` writes for the devices scale0 and scale1. The devices need not exist.
struct Written {
    name: &'static str,
    words: &'static [&'static str],
    /// For each device, the destination of the frames that it receives: Ethernet and IP address.
    to: [([u8; 6], [u8; 4]); 2],
    calls: &'static [(&'static str, &'static str, &'static str)],
}

/// The Ethernet addresses of scale0 and scale1.
const DEVICES: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
/// The Ethernet addresses of one neighbour on the network of each device.
const NEIGHBOURS: [[u8; 6]; 2] = [[2, 0, 1, 0, 0, 0], [2, 0, 2, 0, 0, 0]];
/// The IP addresses of these neighbours.
const HOSTS: [[u8; 4]; 2] = [[10, 0, 0, 2], [10, 0, 1, 2]];

const WRITTEN: [Written; 4] = [
    Written {
        name: "ip-router",
        words: &["ip-router", "scale0=10.0.0.1/24", "scale1=10.0.1.1/24"],
        to: [(DEVICES[0], HOSTS[1]), (DEVICES[1], HOSTS[0])],
        calls: &[
            ("interface1/arp", "insert", "10.0.0.2 02:00:01:00:00:00"),
            ("interface2/arp", "insert", "10.0.1.2 02:00:02:00:00:00"),
        ],
    },
    Written {
        name: "nat",
        words: &[
            "nat",
            "scale0=10.0.0.1/24",
            "scale1=10.0.1.1/24",
            "--gateway",
            "10.0.1.2",
            "--forward",
            "udp:53=10.0.0.2",
        ],
        to: [(DEVICES[0], [10, 9, 9, 9]), (DEVICES[1], [10, 0, 1, 1])],
        calls: &[
            ("lan/arp", "insert", "10.0.0.2 02:00:01:00:00:00"),
            ("wan/arp", "insert", "10.0.1.2 02:00:02:00:00:00"),
        ],
    },
    Written {
        name: "firewall",
        words: &["firewall", "scale0", "scale1", "--in", "allow udp"],
        to: [(NEIGHBOURS[1], HOSTS[1]), (NEIGHBOURS[0], HOSTS[0])],
        calls: &[],
    },
    Written {
        name: "bridge",
        words: &["bridge", "scale0", "scale1"],
        to: [(NEIGHBOURS[1], HOSTS[1]), (NEIGHBOURS[0], HOSTS[0])],
        calls: &[],
    },
];

/// Returns the configuration that `castanet new` writes, with fixed Ethernet addresses for the devices.
fn text(written: &Written) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let output = Command::new(program).arg("new").args(written.words).output();
    let output = output.map_err(|e| format!("castanet new: {e}"))?;
    if !output.status.success() {
        return Err(format!("castanet new: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(format!(
        "AddressInfo(scale0 02:00:00:00:00:01, scale1 02:00:00:00:00:02);\n{}",
        String::from_utf8_lossy(&output.stdout)
    )
    // The output of `castanet new` may also define scale0 and scale1. Its definitions then replace those of the first
    // line, so the Ethernet addresses are added to them too.
    .replace("scale0 10.0.0.1/24", "scale0 10.0.0.1/24 02:00:00:00:00:01")
    .replace("scale1 10.0.1.1/24", "scale1 10.0.1.1/24 02:00:00:00:00:02"))
}

fn first_error(diagnostics: &[Diagnostic]) -> Result<(), String> {
    diagnostics.iter().find(|d| d.is_error()).map_or(Ok(()), |d| Err(d.message.clone()))
}

/// Lists the classes of the elements that two workers share or lock, as in `castanet explain -j 2`.
fn sharing(text: &str) -> Result<String, String> {
    let loaded = load(&Source::text("new", text, Vec::new()), None, Unknown::Error);
    first_error(&loaded.diagnostics)?;
    let (graph, _) = castanet_graph::offload::complete(loaded.graph, loaded.classes.as_ref());
    let (placement, _) = castanet_runtime::place(&graph, loaded.classes.as_ref(), 2);
    let list = |wanted: fn(Mode) -> bool| {
        let mut classes = BTreeMap::<&str, usize>::new();
        for e in (0..graph.len()).filter(|&e| wanted(placement.mode(e))) {
            *classes.entry(graph.element(e).map_or("", |e| e.class.as_str())).or_default() += 1;
        }
        let words = classes.into_iter().map(|(c, n)| if n == 1 { c.to_string() } else { format!("{n} {c}") });
        let words: Vec<String> = words.collect();
        if words.is_empty() { "none".to_string() } else { words.join(", ") }
    };
    let (shared, locked) = (list(|m| m == Mode::Shared), list(|m| matches!(m, Mode::Locked(_))));
    Ok(format!("shared: {shared}; locked: {locked}"))
}

/// A compound that replaces the bridge's EtherSpanTree, which would keep the ports closed for the first 30 seconds.
const NO_TREE: &str = "elementclass NoTree { input[0] -> Discard; input[1] -> Discard; Idle -> [0] output; Idle -> [1] output; }\n";

/// Returns the configuration with [`NO_TREE`] in place of its EtherSpanTree. A configuration without an EtherSpanTree
/// stays unchanged.
fn without_tree(text: &str) -> String {
    let tree = text.split_once("tree :: EtherSpanTree(");
    let parts = tree.and_then(|(before, tree)| Some((before, tree.split_once(");")?.1)));
    parts.map_or(text.to_string(), |(before, after)| format!("{NO_TREE}{before}tree :: NoTree;{after}"))
}

/// Returns the configuration with compounds expanded, a source in place of each FromDevice, and a sink with a meter in
/// place of each ToDevice. The sink for one device runs on the worker of the other device's source, because that
/// source fills the queue from which the sink pulls.
fn without_devices(text: &str) -> Result<String, String> {
    let text = without_tree(text);
    let (flat, _, diagnostics, _) = elaborate(&Source::text("new", &text, Vec::new()), None, Unknown::Opaque);
    first_error(&diagnostics)?;
    let mut out = String::from(
        "elementclass Sink { input -> Unqueue(BURST 32) -> meter :: PacketMeter -> Discard; }\n",
    );
    for line in castanet_lang::print::driver(&flat).lines() {
        let device =
            |class: &str| [0, 1].into_iter().find(|i| line.contains(&format!(":: {class}(scale{i}")));
        let name = line.split(" :: ").next().unwrap_or_default();
        out += &match (device("FromDevice"), device("ToDevice")) {
            (Some(i), _) => {
                format!("{name} :: MemSource($FRAMES{i}, BURST 32); StaticThreadSched({name} {i});")
            }
            (_, Some(i)) => format!("{name} :: Sink; StaticThreadSched({name} {});", 1 - i),
            _ => line.to_string(),
        };
        out.push('\n');
    }
    Ok(out)
}

fn shipped(written: &Written) -> Result<Shipped, String> {
    let fail = |e: String| format!("{}: {e}", written.name);
    let text = text(written).map_err(fail)?;
    let own = |c: &(&str, &str, &str)| -> Call { (c.0.into(), c.1.into(), c.2.into()) };
    let mut side = 0;
    let frames = written.to.map(|(ether, to)| {
        side += 1;
        let [a, b, c, _] = HOSTS[side - 1];
        (0..64).map(|i| scale::frame(ether, [2, 0, side as u8, 0, 1, i], [a, b, c, 10 + i], to)).collect()
    });
    let calls = written.calls.iter().map(own).collect();
    let plain = without_devices(&text).map_err(fail)?;
    Ok(Shipped::new(written.name, plain, frames, calls, sharing(&text).map_err(fail)?))
}

/// Runs the benchmark, then prints the results and writes the requested files.
pub fn main(a: &Scale) -> Result<(), String> {
    if std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
        complain(
            "this process may use one processor only, so two workers take turns and the figures are not meaningful",
        );
    }
    let settings = Settings {
        seconds: a.seconds,
        rounds: a.rounds.into(),
        machine: Machine { socket: a.socket_cores.into(), factor: a.numa_factor },
        shipped: WRITTEN.iter().map(shipped).collect::<Result<_, _>>()?,
    };
    let results = scale::run(&settings, |_| {})?;
    a.results.show(
        || report::csv(&results),
        || scale::svg(&results),
        || report::json(&results),
        || report::table(&results),
    )
}
