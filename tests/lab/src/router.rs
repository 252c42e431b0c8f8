// SPDX-License-Identifier: MIT OR Apache-2.0
//! The router between the hosts: the host's kernel, or a configuration of Castanet.

use crate::lab::{Host, driver};
use crate::process::{Output, Process};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
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
        command.arg("run");
        // A router with a driver other than the default one has no packet sockets. It runs when its control socket answers.
        let control = driver().map(|driver| {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let socket = std::env::temp_dir().join(format!("castanet-lab-{}-{number}", std::process::id()));
            command.args(["--driver", &driver, "-u"]).arg(&socket);
            socket
        });
        command.args(arguments);
        let process = Process::start(command);
        // Each line below the heading is a packet socket (packet(7)).
        let table = PathBuf::from(format!("/proc/{}/net/packet", process.id()));
        let runs = || match &control {
            Some(socket) => answers(socket),
            None => std::fs::read_to_string(&table).unwrap_or_default().lines().count() > devices,
        };
        let deadline = Instant::now() + PATIENCE;
        while !runs() {
            if Instant::now() > deadline || !without_remarks(process.stderr()).is_empty() {
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
        self.process.take().map(end)
    }

    /// Stops several routers at the same time, and returns their outputs.
    #[track_caller]
    pub fn stop_all<const N: usize>(routers: [Router; N]) -> [Option<Output>; N] {
        let processes = routers.map(|mut router| router.process.take());
        std::thread::scope(|s| {
            let threads = processes.map(|process| s.spawn(|| process.map(end)));
            threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}

/// Whether the router answers at a control socket. The name of the socket is then removed.
fn answers(socket: &Path) -> bool {
    let answer = || -> std::io::Result<bool> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"READ version\r\n")?;
        let mut lines = BufReader::new(stream).lines();
        // The first line is a greeting.
        Ok(lines.nth(1).transpose()?.is_some_and(|line| line.starts_with("200")))
    };
    let answered = answer().unwrap_or(false);
    if answered {
        let _ = std::fs::remove_file(socket);
    }
    answered
}

/// Stops a router, and returns its output without remarks on devices.
#[track_caller]
fn end(process: Process) -> Output {
    let ended = process.stop();
    Output { stderr: without_remarks(ended.stderr), ..ended }
}

/// Removes the lines in which FromDevice with METHOD XDP says what to know about its device.
fn without_remarks(stderr: String) -> String {
    let remark = |line: &&str| {
        line.contains("METHOD XDP takes the frames") || line.contains("METHOD XDP cannot complete")
    };
    if driver().is_none() {
        return stderr;
    }
    stderr.split_inclusive('\n').filter(|line| !remark(line)).collect()
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
