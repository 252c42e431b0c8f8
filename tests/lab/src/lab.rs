// SPDX-License-Identifier: MIT OR Apache-2.0
//! Labs, their hosts and links.

use crate::process::{Output, Process};
use crate::wire::Wire;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

/// Timeout, longer than any command of a scenario needs even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(200);

/// Labs that may run concurrently hold this lock shared. Labs that measure hold it exclusively.
static EXCLUSION: RwLock<()> = RwLock::new(());

/// The variable that selects the driver of all routers, an argument of `castanet run --driver`.
pub const DRIVER: &str = "CASTANET_LAB_DRIVER";

/// The driver that [`DRIVER`] selects.
pub fn driver() -> Option<String> {
    std::env::var(DRIVER).ok()
}

/// A guard on [`EXCLUSION`], held until it is dropped.
enum Exclusion {
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

/// A set of hosts in one user namespace.
pub struct Lab {
    helper: PathBuf,
    holder: Process,
    links: Cell<u8>,
    /// All hosts. A host stays alive here even if its last handle outside the lab is dropped.
    hosts: RefCell<Vec<Host>>,
    _exclusion: Exclusion,
}

/// A host: a network namespace.
#[derive(Clone)]
pub struct Host(Rc<Inside>);

struct Inside {
    name: String,
    helper: PathBuf,
    holder: Process,
}

/// Returns the path of the helper command. It is in the directory of the running program, or in the parent of that
/// directory if the program is a test.
fn helper() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_else(|e| panic!("this test has no file: {e}"));
    // target/PROFILE/COMMAND or target/PROFILE/deps/TEST-HASH
    let folders = test.ancestors().skip(1).take(2);
    let mut files = folders.map(|folder| folder.join("castanet-lab"));
    files.find(|file| file.exists()).unwrap_or_else(|| panic!("castanet-lab is not built"))
}

fn hold(helper: &Path, inside: Option<u32>) -> Result<Process, String> {
    let mut command = Command::new(helper);
    // XDP programs can be loaded only in the initial user namespace.
    let origin = driver().map(|_| "callers".to_string());
    command.arg("hold").args(inside.map(|pid| pid.to_string()).or(origin));
    let mut holder = Process::start(command);
    let deadline = std::time::Instant::now() + PATIENCE;
    while holder.stdout() != "ready\n" {
        if !holder.stderr().is_empty() || std::time::Instant::now() > deadline {
            drop(holder.stdin());
            return Err(holder.stderr().trim_end().to_string());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(holder)
}

impl Lab {
    /// Creates a lab that may run concurrently with others. The error says why this machine cannot run one.
    ///
    /// # Errors
    /// Namespaces are not permitted, or a program is missing.
    pub fn new() -> Result<Lab, String> {
        Lab::with(Exclusion::Shared { _guard: EXCLUSION.read() })
    }

    /// Creates a lab for measurements; no other lab runs at the same time.
    ///
    /// # Errors
    /// As for [`Lab::new`].
    pub fn alone() -> Result<Lab, String> {
        Lab::with(Exclusion::Alone { _guard: EXCLUSION.write() })
    }

    fn with(turn: Exclusion) -> Result<Lab, String> {
        for program in ["ip", "ping", "traceroute", "iperf3"] {
            let found = std::env::var_os("PATH").is_some_and(|path| {
                let mut folders = std::env::split_paths(&path);
                folders.any(|f| f.join(program).exists())
            });
            if !found {
                return Err(format!("the program {program} is not installed"));
            }
        }
        let helper = helper();
        let holder = hold(&helper, None)?;
        Ok(Lab { helper, holder, links: Cell::new(0), hosts: RefCell::default(), _exclusion: turn })
    }

    /// Creates a host. It has no IPv6, does not forward packets, and accepts redirects.
    ///
    /// # Panics
    /// A system call failed.
    pub fn host(&self, name: &str) -> Host {
        let holder = hold(&self.helper, Some(self.holder.id())).unwrap_or_else(|e| panic!("{name}: {e}"));
        let host = Host(Rc::new(Inside { name: name.into(), helper: self.helper.clone(), holder }));
        // Disables kernel features that would send unsolicited packets or filter packets by source address.
        host.sysctl("net.ipv6.conf.all.disable_ipv6", 1);
        host.sysctl("net.ipv6.conf.default.disable_ipv6", 1);
        for scope in ["all", "default"] {
            host.sysctl(&format!("net.ipv4.conf.{scope}.rp_filter"), 0);
            host.sysctl(&format!("net.ipv4.conf.{scope}.accept_redirects"), 1);
            host.sysctl(&format!("net.ipv4.conf.{scope}.secure_redirects"), 0);
        }
        host.sysctl("net.ipv4.ip_forward", 0);
        host.ip("link set lo up");
        self.hosts.borrow_mut().push(host.clone());
        host
    }

    /// Creates two devices that are connected by a link. Their Ethernet addresses are 02:00:00:00:LINK:01 and
    /// ...:02, with links counted from 1. Offloads keep the kernel's defaults.
    pub fn link(&self, a: (&Host, &str), b: (&Host, &str)) {
        self.links.set(self.links.get() + 1);
        self.link_again(self.links.get(), a, b);
    }

    /// Creates a link again after its devices were deleted. Links are counted from 1.
    pub fn link_again(&self, link: u8, (a, a_name): (&Host, &str), (b, b_name): (&Host, &str)) {
        self.link_down(link, (a, a_name), (b, b_name));
        if driver().is_some() {
            // With METHOD XDP, the sender must complete its packets. A redirected frame reaches the other end of a veth device only
            // if that receives by NAPI.
            for (host, device) in [(a, a_name), (b, b_name)] {
                host.run(&format!("ethtool -K {device} tx off txvlan off gro on")).good();
            }
        }
        a.ip(&format!("link set {a_name} up"));
        b.ip(&format!("link set {b_name} up"));
    }

    /// As [`Lab::link_again`], but the devices stay down.
    pub fn link_down(&self, link: u8, (a, a_name): (&Host, &str), (b, b_name): (&Host, &str)) {
        a.ip(&format!(
            "link add name {a_name} address 02:00:00:00:{link:02x}:01 type veth \
             peer name {b_name} address 02:00:00:00:{link:02x}:02 netns {}",
            b.0.holder.id()
        ));
    }

    /// Creates devices that are connected by a switch.
    pub fn lan(&self, devices: &[(&Host, &str)]) {
        let switch = self.host("switch");
        // Without spanning tree the ports forward immediately. Without multicast snooping the switch sends no packets
        // of its own.
        switch.ip("link add name bridge type bridge stp_state 0 mcast_snooping 0");
        switch.ip("link set bridge up");
        for (i, (host, device)) in devices.iter().enumerate() {
            let port = format!("port{i}");
            self.link((host, device), (&switch, &port));
            switch.ip(&format!("link set {port} master bridge"));
        }
    }
}

impl Host {
    /// The host's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns a command that will run on this host.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(&self.0.helper);
        command.arg("enter").arg(self.0.holder.id().to_string()).arg(program);
        // Makes program output independent of the locale.
        command.env("LC_ALL", "C");
        command
    }

    /// Starts a command line; words are separated by spaces.
    pub fn spawn(&self, line: &str) -> Process {
        let mut words = line.split_whitespace();
        let mut command = self.command(words.next().unwrap_or_default());
        command.args(words);
        Process::start(command)
    }

    /// Runs a command line; words are separated by spaces.
    ///
    /// # Panics
    /// The command exceeds the timeout.
    #[track_caller]
    pub fn run(&self, line: &str) -> Output {
        self.spawn(line).wait(PATIENCE)
    }

    /// Sends all echo requests at once, and waits for all replies. The arguments are those of `ping`.
    ///
    /// # Panics
    /// A reply is missing after a minute.
    #[track_caller]
    pub fn ping(&self, requests: usize, arguments: &str) -> String {
        // After the first reply, `ping -W` waits for the other replies only as long as its interval (`-i`). So the
        // interval is a minute, and `-l` sends all requests at once. `ping` ends earlier if all replies have arrived.
        let text = self.run(&format!("ping -c {requests} -l {requests} -i 60 -W 60 {arguments}")).good();
        let complete = format!("{requests} packets transmitted, {requests} received,");
        assert!(text.contains(&complete), "{text}");
        text
    }

    /// Runs `ip` with these arguments, which must succeed.
    #[track_caller]
    pub fn ip(&self, arguments: &str) -> String {
        self.run(&format!("ip {arguments}")).good()
    }

    /// Sets a kernel parameter of this host.
    ///
    /// # Panics
    /// The kernel rejected it.
    pub fn sysctl(&self, name: &str, value: impl std::fmt::Display) {
        let mut command = self.command("sh");
        command.arg("-c").arg(format!("echo {value} > /proc/sys/{}", name.replace('.', "/")));
        Process::start(command).wait(PATIENCE).good();
    }

    /// Adds an address such as `10.0.0.2/24` to a device.
    pub fn address(&self, device: &str, address: &str) {
        self.ip(&format!("addr add {address} broadcast + dev {device}"));
    }

    /// Sets the route to a network through a gateway. An existing route to that network is replaced.
    pub fn route(&self, network: &str, gateway: &str) {
        self.ip(&format!("route replace {network} via {gateway}"));
    }

    /// The Ethernet address of a device.
    ///
    /// # Panics
    /// The device does not exist.
    pub fn ether(&self, device: &str) -> [u8; 6] {
        let text = self.ip(&format!("-j link show dev {device}"));
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let address = parsed.pointer("/0/address").and_then(|a| a.as_str()).unwrap_or_default().to_string();
        let bytes: Vec<u8> = address.split(':').filter_map(|b| u8::from_str_radix(b, 16).ok()).collect();
        bytes.try_into().unwrap_or_else(|_| panic!("{device}: address '{address}'"))
    }

    /// A counter of a device, such as `rx/packets` or `tx/dropped`.
    ///
    /// # Panics
    /// The counter does not exist.
    pub fn statistic(&self, device: &str, counter: &str) -> u64 {
        let text = self.ip(&format!("-s -j link show dev {device}"));
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let found = parsed.pointer(&format!("/0/stats64/{counter}")).and_then(serde_json::Value::as_u64);
        found.unwrap_or_else(|| panic!("{device} has no counter {counter}:\n{text}"))
    }

    /// Returns the neighbour entry of an address with its state, such as `REACHABLE`, and Ethernet address;
    /// `None` if there is none.
    pub fn neighbour(&self, address: Ipv4Addr) -> Option<String> {
        let text = self.ip(&format!("neigh show {address}"));
        Some(text.trim().to_string()).filter(|t| !t.is_empty())
    }

    /// Opens a device to capture and send frames.
    pub fn wire(&self, device: &str) -> Wire {
        let mut command = self.command("castanet-lab");
        command.args(["wire", device]);
        Wire::new(command)
    }

    /// Sends frames on a device repeatedly, at full rate, for a limited time.
    ///
    /// # Panics
    /// The helper command does not accept the frames.
    pub fn flood(&self, device: &str, frames: &[Vec<u8>], time: Duration) -> Process {
        self.flood_at(device, frames, time, None)
    }

    /// As [`Host::flood`], with at most `per_second` frames per second if that is given.
    ///
    /// # Panics
    /// The helper command does not accept the frames.
    pub fn flood_at(
        &self,
        device: &str,
        frames: &[Vec<u8>],
        time: Duration,
        per_second: Option<u32>,
    ) -> Process {
        let mut command = self.command("castanet-lab");
        command.args(["flood", device, &time.as_millis().to_string()]);
        command.args(per_second.map(|n| n.to_string()));
        let mut process = Process::start(command);
        let mut input = process.stdin().unwrap_or_else(|| panic!("the input is taken"));
        for frame in frames {
            let length = u16::try_from(frame.len()).unwrap_or_else(|e| panic!("{} bytes: {e}", frame.len()));
            let all = [&length.to_be_bytes()[..], frame].concat();
            input.write_all(&all).unwrap_or_else(|e| panic!("{e}\n{}", process.stderr()));
        }
        process
    }
}
