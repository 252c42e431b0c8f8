// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet net run`: runs a network in simulated time.

use crate::combine::Routers;
use crate::load::{complain, show, write_out};
use crate::run::build;
use castanet_element::Clock;
use castanet_graph::Graph;
use castanet_net::options::HostOption;
use castanet_net::{NetError, Options, Report, Simulation, check};
use castanet_spec::value::{Bandwidth, Nanos};
use castanet_spec::{ArgCx, ArgValue, Names, Origin, Prefix};
use clap::Args;
use std::io::Write as _;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Runs a network of several routers in simulated time, on one processor and without devices.

Links carry the frames of devices, with a bandwidth and a latency. Hosts stand at the devices that no link leads to. Each host \
answers ARP requests and pings, and has the lowest address in the network of its router's device that no router has. The addresses \
of a device come from its name (AddressInfo), or from the ARPQuerier in front of it.

A host is named like the device of the router: A.eth0. A alone (or A.host) means the only host at router A. The tables that are \
printed show what each link, host and ping has sent and received, and what elements dropped. The exit code is 1 if a ping was not \
answered.";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet net run net.click --ping A.eth0 B.eth0
  castanet net run A=a.click B=b.click A.eth1==B.eth0 --ping-all --latency 5ms --bandwidth A.eth1=10Mbps
  castanet net run net.click --host A.eth2=10.7.0.9/24 --ping A.eth2 10.0.0.1 --count 100 --interval 10ms --json
  castanet net run net.click --pcap A.eth0=trace.pcap --time 60";

/// `castanet net run`.
#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    routers: Routers,
    /// Send echo requests from the host at device FROM to the host at device TO, or to an address. May be repeated.
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"])]
    ping: Vec<String>,
    /// Send echo requests from every host to every other.
    #[arg(long)]
    ping_all: bool,
    /// Number of requests of each ping.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Time between the requests of a ping.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    interval: u64,
    /// Latency of links, or of one link, which the name of the link or its sending device gives; default: 1ms.
    #[arg(long, value_name = "[LINK=]TIME", value_parser = latency)]
    latency: Vec<(Option<String>, String)>,
    /// Bandwidth of links, or of one link; default: 1Gbps.
    #[arg(long, value_name = "[LINK=]RATE", value_parser = bandwidth)]
    bandwidth: Vec<(Option<String>, String)>,
    /// The address of the host at a device, and its gateway if that is not the router at the device.
    #[arg(long, value_name = "DEVICE=ADDRESS/LENGTH[,GATEWAY]", value_parser = host)]
    host: Vec<HostOption>,
    /// Send the frames of a capture file from the host at a device, at the intervals at which they were captured.
    #[arg(long, value_name = "DEVICE=FILE", value_parser = capture)]
    pcap: Vec<(String, String)>,
    /// Simulated time to run; default: until three seconds after the last request.
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<u64>,
    /// Seed of random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the configuration of the simulation instead of running it.
    #[arg(long)]
    print_config: bool,
}

fn with_args<T>(f: impl FnOnce(&ArgCx<'_>) -> T) -> T {
    f(&ArgCx { scope: "", names: &Names::new(), origin: Origin::Operator })
}

/// Parses a time such as `10ms`. Returns nanoseconds.
fn time(text: &str) -> Result<u64, String> {
    let t = with_args(|cx| Nanos::parse(text, cx)).map_err(|e| e.to_string())?;
    u64::try_from(t.0).ok().filter(|&t| t > 0).ok_or_else(|| "expected a time above 0, as in 10ms".into())
}

/// Splits `[NAME=]VALUE`.
fn named(text: &str) -> (Option<String>, &str) {
    text.split_once('=').map_or((None, text), |(name, value)| (Some(name.into()), value))
}

fn latency(text: &str) -> Result<(Option<String>, String), String> {
    let (name, value) = named(text);
    let t = with_args(|cx| Nanos::parse(value, cx)).map_err(|e| e.to_string())?;
    if t.0 < 0 { Err("expected a time, as in 10ms".into()) } else { Ok((name, value.into())) }
}

fn bandwidth(text: &str) -> Result<(Option<String>, String), String> {
    let (name, value) = named(text);
    let b = with_args(|cx| Bandwidth::parse(value, cx)).map_err(|e| e.to_string())?;
    let has_unit = value.ends_with(|c: char| c.is_ascii_alphabetic());
    if b.0 == 0 || !has_unit {
        Err("expected a bandwidth, as in 10Mbps".into())
    } else {
        Ok((name, value.into()))
    }
}

/// Parses the address of a host: `A.eth0=10.0.0.9/24`, perhaps with a gateway.
pub fn host(text: &str) -> Result<HostOption, String> {
    let form = "expected DEVICE=ADDRESS/LENGTH[,GATEWAY], as in A.eth0=10.0.0.9/24";
    let (at, addresses) = text.split_once('=').ok_or(form)?;
    let (prefix, gateway) = addresses.split_once(',').map_or((addresses, None), |(p, g)| (p, Some(g)));
    let prefix = with_args(|cx| Prefix::read(prefix, cx, false)).map_err(|_| form)?;
    let gateway = gateway.map(|g| g.parse().map_err(|_| form)).transpose()?;
    Ok(HostOption { at: at.into(), prefix, gateway })
}

fn capture(text: &str) -> Result<(String, String), String> {
    let (at, file) = text.split_once('=').ok_or("expected DEVICE=FILE, as in A.eth0=trace.pcap")?;
    Ok((at.into(), file.into()))
}

impl Run {
    fn options(&self) -> Options {
        let pings = self.ping.chunks_exact(2).filter_map(|p| match p {
            [from, to] => Some((from.clone(), to.clone())),
            _ => None,
        });
        Options {
            latency: self.latency.clone(),
            bandwidth: self.bandwidth.clone(),
            hosts: self.host.clone(),
            pings: pings.collect(),
            ping_all: self.ping_all,
            count: self.count,
            interval: self.interval,
            captures: self.pcap.clone(),
            time: self.time,
        }
    }
}

/// Runs the network, and prints the report. Returns whether all pings were answered.
///
/// # Errors
/// The errors in the network or the options; none if all errors have been printed.
pub fn main(args: &Run) -> Result<bool, Vec<String>> {
    let loaded = super::load(&args.routers)?;
    let options = args.options();
    let lines = |e: NetError| e.0.lines().map(String::from).collect::<Vec<_>>();
    // The check finds out on which links frames have no Ethernet header.
    let raw = check(&loaded.graph, &loaded.topology, &options).map_err(lines)?.raw_links;
    let simulation =
        Simulation::new(&loaded.graph, &loaded.topology, &loaded.classes, &options, |e| !raw.contains(&e))
            .map_err(lines)?;
    simulation.notes.iter().for_each(|note| complain(note));
    if args.print_config {
        let text = castanet_lang::print::driver(&simulation.flat);
        return write_out(None, &text).map(|()| true).map_err(|e| vec![e]);
    }
    let (graph, mut diagnostics) = Graph::new(simulation.flat.clone(), loaded.classes.as_ref());
    let run = castanet_runtime::Options {
        seed: Some(args.seed),
        clock: Clock::simulated(1_000_000_000_000_000_000),
        printer: Box::new(|text| {
            let _ = std::io::stderr().lock().write_all(&castanet_lang::bytes::line(text));
        }),
        ..castanet_runtime::Options::default()
    };
    let router = build(graph, loaded.classes.clone(), &loaded.sources, run, &mut diagnostics);
    show(&loaded.sources, &diagnostics, args.routers.json);
    let Some(mut router) = router else { return Err(Vec::new()) };
    router.run().map_err(|e| vec![crate::load::reason(&e)])?;
    let report = Report::new(&simulation, &mut router, options.duration() as f64 / 1e9);
    let text = if args.routers.json {
        serde_json::to_string_pretty(&report).map_err(|e| vec![e.to_string()])? + "\n"
    } else {
        report.text()
    };
    write_out(None, &text).map_err(|e| vec![e])?;
    router.cleanup();
    Ok(report.succeeded() && router.running().panics() == 0)
}
