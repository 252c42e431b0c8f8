// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench streams`: TCP across the IP router, for each driver.

use super::results::Results;
use super::veth::{Driver, with_driver};
use castanet_bench::streams::{Offloads, Router, Settings, report, run, svg};
use castanet_bench::veth;
use clap::{Args, ValueEnum};

/// Introductory text of `--help`.
pub const ABOUT: &str = "Measures TCP streams and round trips between two hosts across the IP router of `castanet new ip-router`, over veth \
between network namespaces, beside the kernel's router:

  kernel   the IP router of Linux
  packet   packet sockets
  af-xdp   AF_XDP sockets (METHOD XDP)
  xdp      the kernel, as far as possible (--driver xdp)

Offloads matter more than the router: with the defaults of Linux, hosts leave checksums and segmentation to \
their devices, and one super-packet crosses the router in place of many. METHOD XDP needs hosts that complete their packets. The routers take turns.";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet bench streams --seconds 60
  castanet bench streams --driver packet
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
    #[command(flatten)]
    results: Results,
}

/// The routers: the kernel's with the defaults, to which all others are compared, first.
fn routers(drivers: &[Driver]) -> Result<Vec<Router>, String> {
    let interfaces = veth::interfaces(1);
    let interfaces: Vec<(&str, &str)> = interfaces.iter().map(|(d, a)| (d.as_str(), a.as_str())).collect();
    let text = crate::new::ip_router(&interfaces, false)?;
    let mut routers = Vec::new();
    for offloads in [Offloads::Defaults, Offloads::Completed, Offloads::Off] {
        let can = |driver: &Driver| *driver == Driver::Packet || offloads == Offloads::Completed;
        for driver in [None].into_iter().chain(drivers.iter().copied().filter(can).map(Some)) {
            let name = driver.and_then(|driver| driver.to_possible_value());
            routers.push(Router {
                name: name.map_or("kernel".into(), |name| name.get_name().into()),
                configuration: driver.map(|driver| with_driver(&text, driver, false)),
                in_kernel: driver == Some(Driver::Xdp),
                offloads,
            });
        }
    }
    Ok(routers)
}

/// Runs the benchmark, then prints the results and writes the requested files.
pub fn main(a: &Streams) -> Result<(), String> {
    let settings = Settings {
        program: std::env::current_exe().map_err(|e| format!("this program: {e}"))?,
        part: ["bench", "veth-part"].map(str::to_string).into(),
        routers: routers(&a.drivers)?,
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
