// SPDX-License-Identifier: MIT OR Apache-2.0
//! The router between the hosts: the kernel of its host, or a configuration of Castanet.

use crate::lab::Host;
use crate::process::{Output, Process};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer than a router takes to start, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// What routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel, to which scenarios are held too.
    Kernel,
    /// This castanet command.
    Castanet(&'static Path),
}

/// An interface of the router.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// Its device.
    pub device: &'static str,
    /// Its address with the length of the prefix.
    pub address: &'static str,
    /// The longest packet.
    pub mtu: u16,
}

/// A router that runs.
pub struct Router {
    /// The host that it runs on.
    pub host: Host,
    process: Option<Process>,
}

impl Router {
    /// Makes a host the router, once its devices exist.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    pub fn start(host: Host, kind: Kind, ports: &[Port], routes: &[(&str, &str)]) -> Router {
        for port in ports {
            host.ip(&format!("link set {} mtu {}", port.device, port.mtu));
        }
        let process = match kind {
            Kind::Kernel => {
                kernel(&host, ports, routes);
                None
            }
            Kind::Castanet(castanet) => {
                let text = configuration(&host, castanet, ports, routes, &[]);
                return Router::run(host, castanet, &["-e", &text], ports.len());
            }
        };
        Router { host, process }
    }

    /// Runs castanet with arguments, until it listens on that many devices.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    pub fn run(host: Host, castanet: &Path, arguments: &[&str], devices: usize) -> Router {
        let mut command = host.command(castanet);
        command.arg("run").args(arguments);
        let process = Process::start(command);
        // Its packet sockets, one a line below the heading (packet(7)).
        let table = PathBuf::from(format!("/proc/{}/net/packet", process.id()));
        let deadline = Instant::now() + PATIENCE;
        while std::fs::read_to_string(&table).unwrap_or_default().lines().count() <= devices {
            if Instant::now() > deadline || !process.stderr().is_empty() {
                panic!("the router does not listen\n{}{}", process.stdout(), process.stop().stderr);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Router { host, process: Some(process) }
    }

    /// Processor time that it has used; none for the kernel, which does not say.
    pub fn cpu(&self) -> Option<Duration> {
        self.process.as_ref().map(Process::cpu)
    }

    /// How often its threads have gone to sleep; none for the kernel.
    pub fn sleeps(&self) -> Option<u64> {
        self.process.as_ref().map(Process::sleeps)
    }

    /// Waits until it has said something in a line that begins in a certain way.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn wait_for(&self, start: &str, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        let said = || self.process.as_ref().map(Process::stderr).unwrap_or_default();
        while !said().lines().any(|line| line.starts_with(start) && line.contains(what)) {
            assert!(Instant::now() < deadline, "the router does not say '{start}... {what}':\n{}", said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The memory that it has in use, and the most that it ever had, in bytes; none for the kernel.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.as_ref()?.id())).ok()?;
        // As in `VmRSS:      1234 kB` (proc_pid_status(5)).
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        Some((kilobytes("VmRSS:")? << 10, kilobytes("VmHWM:")? << 10))
    }

    /// Ends it, and returns what it printed; nothing for the kernel.
    #[track_caller]
    pub fn stop(mut self) -> Option<Output> {
        self.process.take().map(Process::stop)
    }
}

/// The configuration that `castanet new ip-router` writes for a host, with further arguments.
///
/// # Panics
/// When it writes none.
#[track_caller]
pub fn configuration(
    host: &Host,
    castanet: &Path,
    ports: &[Port],
    routes: &[(&str, &str)],
    further: &[&str],
) -> String {
    let mut command = host.command(castanet);
    command.args(["new", "ip-router"]).args(further);
    command.args(ports.iter().map(|p| format!("{}={}", p.device, p.address)));
    for (network, gateway) in routes {
        command.args(["--route".into(), format!("{network}={gateway}")]);
    }
    for p in ports.iter().filter(|p| p.mtu != 1500) {
        command.args(["--mtu".into(), format!("{}={}", p.device, p.mtu)]);
    }
    Process::start(command).wait(PATIENCE).good()
}

/// Lets the kernel route, and say all that a router says, as often as it has reason to.
fn kernel(host: &Host, ports: &[Port], routes: &[(&str, &str)]) {
    host.sysctl("net.ipv4.icmp_ratelimit", 0);
    host.sysctl("net.ipv4.conf.all.send_redirects", 1);
    for port in ports {
        host.address(port.device, port.address);
        host.sysctl(&format!("net.ipv4.conf.{}.send_redirects", port.device), 1);
    }
    for (network, gateway) in routes {
        host.route(network, gateway);
    }
    host.sysctl("net.ipv4.ip_forward", 1);
}
