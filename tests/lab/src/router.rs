// SPDX-License-Identifier: MIT OR Apache-2.0
//! The router between the hosts: the host's kernel, or a configuration of Castanet.

use crate::lab::Host;
use crate::process::{Output, Process};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout, longer than a router needs to start even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(200);

/// The implementation that routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterKind {
    /// The kernel, which serves as a reference for the scenarios.
    Kernel,
    /// Castanet, with this command.
    Castanet(&'static Path),
}

/// An interface of the router.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// The device name.
    pub device: &'static str,
    /// The address with prefix length.
    pub address: &'static str,
    /// The MTU.
    pub mtu: u16,
}

/// A running router.
pub struct Router {
    /// The host it runs on.
    pub host: Host,
    process: Option<Process>,
}

impl Router {
    /// Makes a host the router. Its devices must exist.
    ///
    /// # Panics
    /// The router does not start.
    #[track_caller]
    pub fn start(host: Host, kind: RouterKind, ports: &[Port], routes: &[(&str, &str)]) -> Router {
        for port in ports {
            host.ip(&format!("link set {} mtu {}", port.device, port.mtu));
        }
        let process = match kind {
            RouterKind::Kernel => {
                kernel(&host, ports, routes);
                None
            }
            RouterKind::Castanet(castanet) => {
                let text = configuration(&host, castanet, ports, routes, &[]);
                return Router::run(host, castanet, &["-e", &text], ports.len());
            }
        };
        Router { host, process }
    }

    /// Runs castanet with these arguments, and waits until it has at least `devices` packet sockets.
    ///
    /// # Panics
    /// The router does not start.
    #[track_caller]
    pub fn run(host: Host, castanet: &Path, arguments: &[&str], devices: usize) -> Router {
        let mut command = host.command(castanet);
        command.arg("run").args(arguments);
        let process = Process::start(command);
        // Each line below the heading is a packet socket (packet(7)).
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

    /// Returns the CPU time used; `None` for the kernel, which does not account for it.
    pub fn cpu(&self) -> Option<Duration> {
        self.process.as_ref().map(Process::cpu)
    }

    /// Returns the number of voluntary context switches; `None` for the kernel.
    pub fn sleeps(&self) -> Option<u64> {
        self.process.as_ref().map(Process::sleeps)
    }

    /// Waits for a line on standard error that begins with `start` and contains `what`.
    ///
    /// # Panics
    /// No such line appears in time.
    #[track_caller]
    pub fn wait_for(&self, start: &str, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        let said = || self.process.as_ref().map(Process::stderr).unwrap_or_default();
        while !said().lines().any(|line| line.starts_with(start) && line.contains(what)) {
            assert!(Instant::now() < deadline, "the router does not say '{start}... {what}':\n{}", said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the current and the maximum memory use in bytes; `None` for the kernel.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.as_ref()?.id())).ok()?;
        // The line is `VmRSS:      1234 kB` (proc_pid_status(5)).
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        Some((kilobytes("VmRSS:")? << 10, kilobytes("VmHWM:")? << 10))
    }

    /// Stops the router and returns its output; `None` for the kernel.
    #[track_caller]
    pub fn stop(mut self) -> Option<Output> {
        self.process.take().map(Process::stop)
    }

    /// Stops several routers at the same time, and returns their outputs.
    #[track_caller]
    pub fn stop_all<const N: usize>(routers: [Router; N]) -> [Option<Output>; N] {
        let processes = routers.map(|mut router| router.process.take());
        std::thread::scope(|s| {
            let threads = processes.map(|process| s.spawn(|| process.map(Process::stop)));
            threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}

/// Runs `castanet new ip-router` with further arguments on a host, and returns the configuration that it writes.
///
/// # Panics
/// The command fails.
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

/// Enables routing in the kernel, with redirects and without rate limits for ICMP.
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
