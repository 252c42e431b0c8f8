// SPDX-License-Identifier: MIT OR Apache-2.0
//! Echo and bulk between network namespaces, over veth: the kernel's TCP with itself, and with Castanet's. The client always has the
//! kernel's TCP. Trials alternate between the two servers.

pub mod ends;

use crate::aspl::measure::Quartiles;
use crate::launch::{Launcher, PATIENCE};
use crate::process::Process;
use ends::{DISCARD, ECHO, Request, SOURCE};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The servers, in the order of results.
pub const SERVERS: [&str; 2] = ["kernel", "castanet"];
/// The end-to-end latencies of the paper in microseconds, in this order.
pub const PAPER: [f64; 2] = [184.0, 181.0];
/// The directions of bulk transfers, as seen from the server.
pub const DIRECTIONS: [&str; 2] = ["receives", "sends"];
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 1, 1)];
/// The Ethernet address of Castanet's server.
const ETHER: &str = "02:00:00:00:01:01";
/// The round trips of a trial, as in the paper.
const TRIPS: usize = 1000;
/// The duration of a bulk transfer.
const TIME: Duration = Duration::from_millis(200);

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of this program.
    pub program: PathBuf,
    /// The subcommand, as words, that performs a part of the measurement: it must call [`crate::veth::part::run`].
    pub part: Vec<String>,
    /// The CPUs of client and servers; by default the first two.
    pub processors: Option<[usize; 2]>,
}

/// The results.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The number of trials.
    pub trials: usize,
    /// The CPUs of client and servers.
    pub processors: [usize; 2],
    /// The microseconds of a round trip with each server, over all trials.
    pub latency: [Quartiles; 2],
    /// The ratio of the second server's latency to the first one's in the same trial.
    pub latency_ratio: Quartiles,
    /// The rates of bulk transfers in each of the [`DIRECTIONS`], with each server, in Gb/s.
    pub rates: [[Quartiles; 2]; 2],
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// The configuration of Castanet's server.
pub fn configuration() -> String {
    let address = ADDRESSES[1];
    format!(
        "FromDevice(in, SNIFFER false) -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
         out :: Queue(4096) -> ToDevice(in);
         c [0] -> ARPResponder({address} {ETHER}) -> out;
         c [1] -> [1] arp :: ARPQuerier({address}, {ETHER}) -> out;
         c [2] -> Strip(14) -> CheckIPHeader -> tcp :: TCPStack({address}) -> arp;
         c [3] -> Discard;
         TCPEcho(tcp, PORT {ECHO}); TCPDiscard(tcp, PORT {DISCARD}); TCPSource(tcp, PORT {SOURCE});"
    )
}

/// The processes of a measurement.
struct World {
    client: Process,
    router: Process,
    /// The hosts, and the kernel's server.
    _others: Vec<Process>,
}

impl World {
    fn new(settings: &Settings, processors: [usize; 2]) -> Result<World, String> {
        let launcher = Launcher { program: settings.program.clone(), part: settings.part.clone() };
        let host = launcher.host(None)?;
        let [kernel, castanet] = [(); 2].map(|()| launcher.host(Some(host.id())));
        let (kernel, castanet) = (kernel?, castanet?);
        for (i, server) in [&kernel, &castanet].into_iter().enumerate() {
            let make = format!(
                "link add name to{i} type veth peer name in address 02:00:00:00:0{i}:01 netns {}",
                server.id()
            );
            let address = format!("address add 10.0.{i}.2/24 dev to{i}");
            launcher.ip(&host, &[make, address, format!("link set to{i} up")])?;
            launcher.ip(server, &["link set in up".into()])?;
        }
        launcher.ip(&kernel, &[format!("address add {}/24 dev in", ADDRESSES[0])])?;
        let [client, server] = processors.map(|cpu| cpu.to_string());
        let serves =
            launcher.part("the kernel's server", &["tcp-serve", &kernel.id().to_string(), &server])?;
        serves.line(PATIENCE)?;
        let text = configuration();
        let router = launcher.castanet(&castanet, Some(processors[1]), &["--expression", &text])?;
        let client = launcher.part("client", &["tcp-measure", &host.id().to_string(), &client])?;
        let mut world = World { client, router, _others: vec![host, kernel, castanet, serves] };
        let deadline = Instant::now() + PATIENCE;
        while let Err(e) = world.ask(1, Request::Echo(1)) {
            if world.router.has_ended() || Instant::now() > deadline {
                return Err(e);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(world)
    }

    /// Lets the client measure with one of the servers.
    fn ask(&mut self, server: usize, request: Request) -> Result<f64, String> {
        let address = ADDRESSES.get(server).copied().unwrap_or(Ipv4Addr::UNSPECIFIED);
        self.client.tell(&request.line(address))?;
        let line = self.client.line(PATIENCE)?;
        line.parse().map_err(|_| {
            let complaints = if server == 1 { self.router.complaints() } else { String::new() };
            let name = SERVERS.get(server).unwrap_or(&"");
            format!("{name}: {line} {complaints}").trim_end().to_string()
        })
    }
}

/// Measures for about `seconds`, at least three trials.
///
/// # Errors
/// The machine lacks a required feature or permission.
pub fn run(settings: &Settings, seconds: f64) -> Result<Results, String> {
    let processors = settings.processors.or_else(|| match castanet_io::namespace::processors()[..] {
        [one] => Some([one, one]),
        [a, b, ..] => Some([a, b]),
        [] => None,
    });
    let processors = processors.ok_or("the kernel does not report its CPUs")?;
    let mut world = World::new(settings, processors)?;
    let (started, mut trials) = (Instant::now(), 0);
    let requests = [Request::Echo(TRIPS), Request::Send(TIME), Request::Receive(TIME)];
    let mut all: [[Vec<f64>; 2]; 3] = Default::default();
    while trials < 3 || started.elapsed().as_secs_f64() < seconds {
        for (request, servers) in requests.into_iter().zip(&mut all) {
            for i in 0..2 {
                let server = (i + trials) % 2;
                let answer = world.ask(server, request)?;
                servers.get_mut(server).map(|values| values.push(answer)).unwrap_or_default();
            }
        }
        trials += 1;
    }
    let [latency, receives, sends] = all;
    let ratios = latency[1].iter().zip(&latency[0]).map(|(a, b)| a / b.max(1.0));
    let scaled =
        |values: [Vec<f64>; 2], by: f64| values.map(|v| Quartiles::of(v.into_iter().map(|v| v / by)));
    let mut notes = Vec::new();
    if processors[0] == processors[1] {
        notes.push("client and servers share one processor".to_string());
    }
    Ok(Results {
        trials,
        processors,
        latency_ratio: Quartiles::of(ratios),
        latency: scaled(latency, 1e3),
        rates: [scaled(receives, 1e9), scaled(sends, 1e9)],
        notes,
    })
}
