// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench streams`: TCP across the IP router and the NAT gateway, for each driver.

use super::results::Results;
use super::veth::{Driver, with_driver};
use castanet_bench::streams::{Offloads, Router, Settings, report, run, svg};
use castanet_bench::veth;
use clap::{Args, ValueEnum};
use std::net::Ipv4Addr;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Measures TCP streams and round trips between two hosts across the IP router of `castanet new ip-router`, or the NAT gateway \
of `castanet new nat`, over veth between network namespaces, beside the kernel's router:

  kernel   the IP router of Linux
  packet   packet sockets
  af-xdp   AF_XDP sockets (METHOD XDP)
  xdp      the kernel, as far as possible (--driver xdp)

Offloads matter more than the router: with the defaults of Linux, hosts leave checksums and segmentation to \
their devices, and one super-packet crosses the router in place of many. METHOD XDP needs hosts that complete their packets. The routers take turns.";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet bench streams --seconds 60
  castanet bench streams --driver packet --task route,nat
  castanet bench streams --svg streams.svg --csv streams.csv";

/// `castanet bench streams`.
#[derive(Args)]
pub struct Streams {
    /// Total time of all measurements, in seconds; each router is measured three times at least.
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = super::seconds)]
    seconds: f64,
    /// How the routers receive and send; all but `packet` need root.
    #[arg(long = "driver", value_name = "DRIVER,...", value_enum, value_delimiter = ',', default_values_t = Driver::value_variants().to_vec())]
    drivers: Vec<Driver>,
    /// The task of the routers.
    #[arg(
        long = "task",
        value_name = "TASK,...",
        value_enum,
        value_delimiter = ',',
        default_value = "route"
    )]
    tasks: Vec<Task>,
    #[command(flatten)]
    results: Results,
}

/// The configuration of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Task {
    /// The IP router.
    Route,
    /// The NAT gateway, with the client on the inner network.
    Nat,
}

impl Task {
    fn configuration(self) -> Result<String, String> {
        let interfaces = veth::interfaces(1);
        let interfaces: Vec<(&str, &str)> =
            interfaces.iter().map(|(d, a)| (d.as_str(), a.as_str())).collect();
        match (self, &interfaces[..]) {
            (Task::Nat, [inside, outside]) => {
                let gateway: Ipv4Addr = veth::RECEIVER.parse().map_err(|e| format!("the gateway: {e}"))?;
                crate::new::nat(*inside, *outside, gateway)
            }
            _ => crate::new::ip_router(&interfaces, false),
        }
    }
}

/// The routers: the kernel's with the defaults, to which all others are compared, first.
fn routers(drivers: &[Driver], tasks: &[Task]) -> Result<Vec<Router>, String> {
    let mut routers = Vec::new();
    for offloads in [Offloads::Defaults, Offloads::Completed, Offloads::Off] {
        routers.push(Router { name: "kernel".into(), configuration: None, in_kernel: false, offloads });
        for task in tasks {
            let text = task.configuration()?;
            let can = |driver: &&Driver| **driver == Driver::Packet || offloads == Offloads::Completed;
            for driver in drivers.iter().filter(can) {
                let name =
                    driver.to_possible_value().map(|name| name.get_name().to_string()).unwrap_or_default();
                routers.push(Router {
                    name: if *task == Task::Nat { format!("{name}-nat") } else { name },
                    configuration: Some(with_driver(&text, *driver, false)),
                    in_kernel: *driver == Driver::Xdp,
                    offloads,
                });
            }
        }
    }
    Ok(routers)
}

/// Runs the benchmark, then prints the results and writes the requested files.
pub fn main(a: &Streams) -> Result<(), String> {
    let settings = Settings {
        program: std::env::current_exe().map_err(|e| format!("this program: {e}"))?,
        part: ["bench", "veth-part"].map(str::to_string).into(),
        routers: routers(&a.drivers, &a.tasks)?,
        seconds: a.seconds,
    };
    let results = run(&settings)?;
    a.results.show(
        || report::csv(&results),
        || svg(&results),
        || report::json(&results),
        || report::table(&results),
    )
}
