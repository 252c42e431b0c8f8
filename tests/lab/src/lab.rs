// SPDX-License-Identifier: MIT OR Apache-2.0
//! Labs, their hosts and links.

use crate::process::{Output, Process};
use crate::wire::Wire;
use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Longer than any command of a scenario takes, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Labs that run side by side share it, one that measures has it alone.
static TURN: RwLock<()> = RwLock::new(());

/// Held, never read.
enum Turn {
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

/// A set of hosts in a user namespace of their own.
pub struct Lab {
    helper: PathBuf,
    holder: Process,
    links: Cell<u8>,
    /// All hosts: one whose last handle is dropped is still there for the others.
    hosts: RefCell<Vec<Host>>,
    _turn: Turn,
}

/// A host: a network namespace.
#[derive(Clone)]
pub struct Host(Rc<Inside>);

struct Inside {
    name: String,
    helper: PathBuf,
    holder: Process,
}

/// The helper command, built beside the test that asks.
fn helper() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_else(|e| panic!("this test has no file: {e}"));
    // target/PROFILE/deps/TEST-HASH
    test.ancestors().nth(2).unwrap_or(Path::new("")).join("castanet-lab")
}

fn hold(helper: &Path, inside: Option<u32>) -> Result<Process, String> {
    let mut command = Command::new(helper);
    command.arg("hold").args(inside.map(|pid| pid.to_string()));
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
    /// A lab that may run beside others. The error says why this machine cannot have one.
    ///
    /// # Errors
    /// When namespaces are not permitted here, or a program is missing.
    pub fn new() -> Result<Lab, String> {
        Lab::with(Turn::Shared { _guard: TURN.read().unwrap_or_else(PoisonError::into_inner) })
    }

    /// A lab for measurements: no other runs meanwhile.
    ///
    /// # Errors
    /// As [`Lab::new`].
    pub fn alone() -> Result<Lab, String> {
        Lab::with(Turn::Alone { _guard: TURN.write().unwrap_or_else(PoisonError::into_inner) })
    }

    fn with(turn: Turn) -> Result<Lab, String> {
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
        Ok(Lab { helper, holder, links: Cell::new(0), hosts: RefCell::default(), _turn: turn })
    }

    /// Makes a host. It speaks no IPv6, does not forward, and takes redirects.
    ///
    /// # Panics
    /// When the kernel refuses.
    pub fn host(&self, name: &str) -> Host {
        let holder = hold(&self.helper, Some(self.holder.id())).unwrap_or_else(|e| panic!("{name}: {e}"));
        let host = Host(Rc::new(Inside { name: name.into(), helper: self.helper.clone(), holder }));
        // What the kernel says unasked, or decides by where a packet came from, would disturb.
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

    /// Joins two devices, which it makes, by a wire. Their Ethernet addresses are 02:00:00:00:LINK:01 and ...:02, the
    /// links counted from 1. Offloads are left as they are.
    pub fn link(&self, a: (&Host, &str), b: (&Host, &str)) {
        self.links.set(self.links.get() + 1);
        self.link_again(self.links.get(), a, b);
    }

    /// Makes a link anew whose devices are gone; links are counted from 1.
    pub fn link_again(&self, link: u8, (a, a_name): (&Host, &str), (b, b_name): (&Host, &str)) {
        a.ip(&format!(
            "link add name {a_name} address 02:00:00:00:{link:02x}:01 type veth \
             peer name {b_name} address 02:00:00:00:{link:02x}:02 netns {}",
            b.0.holder.id()
        ));
        a.ip(&format!("link set {a_name} up"));
        b.ip(&format!("link set {b_name} up"));
    }

    /// Joins devices, which it makes, by a switch.
    pub fn lan(&self, devices: &[(&Host, &str)]) {
        let switch = self.host("switch");
        // Without a spanning tree its ports forward at once; without snooping it is silent itself.
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
    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// A command that will run on this host.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(&self.0.helper);
        command.arg("enter").arg(self.0.holder.id().to_string()).arg(program);
        // Programs speak one language here.
        command.env("LC_ALL", "C");
        command
    }

    /// Starts a command line, words separated by spaces.
    pub fn spawn(&self, line: &str) -> Process {
        let mut words = line.split_whitespace();
        let mut command = self.command(words.next().unwrap_or_default());
        command.args(words);
        Process::start(command)
    }

    /// Runs a command line, words separated by spaces.
    ///
    /// # Panics
    /// When it takes very long.
    #[track_caller]
    pub fn run(&self, line: &str) -> Output {
        self.spawn(line).wait(PATIENCE)
    }

    /// Runs `ip` with arguments, which must succeed.
    #[track_caller]
    pub fn ip(&self, arguments: &str) -> String {
        self.run(&format!("ip {arguments}")).good()
    }

    /// Sets a kernel parameter of this host.
    ///
    /// # Panics
    /// When the kernel refuses.
    pub fn sysctl(&self, name: &str, value: impl std::fmt::Display) {
        let mut command = self.command("sh");
        command.arg("-c").arg(format!("echo {value} > /proc/sys/{}", name.replace('.', "/")));
        Process::start(command).wait(PATIENCE).good();
    }

    /// Gives a device an address, as in `10.0.0.2/24`.
    pub fn address(&self, device: &str, address: &str) {
        self.ip(&format!("addr add {address} broadcast + dev {device}"));
    }

    /// Sends a network to a gateway.
    pub fn route(&self, network: &str, gateway: &str) {
        self.ip(&format!("route replace {network} via {gateway}"));
    }

    /// The Ethernet address of a device.
    ///
    /// # Panics
    /// When there is no such device.
    pub fn ether(&self, device: &str) -> [u8; 6] {
        let text = self.ip(&format!("-j link show dev {device}"));
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let address = parsed.pointer("/0/address").and_then(|a| a.as_str()).unwrap_or_default().to_string();
        let bytes: Vec<u8> = address.split(':').filter_map(|b| u8::from_str_radix(b, 16).ok()).collect();
        bytes.try_into().unwrap_or_else(|_| panic!("{device}: address '{address}'"))
    }

    /// A counter of a device, as in `rx/packets` or `tx/dropped`.
    ///
    /// # Panics
    /// When there is no such counter.
    pub fn statistic(&self, device: &str, counter: &str) -> u64 {
        let text = self.ip(&format!("-s -j link show dev {device}"));
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let found = parsed.pointer(&format!("/0/stats64/{counter}")).and_then(serde_json::Value::as_u64);
        found.unwrap_or_else(|| panic!("{device} has no counter {counter}:\n{text}"))
    }

    /// The state of a neighbour, as in `REACHABLE`, and its Ethernet address; none if it is not known.
    pub fn neighbour(&self, address: Ipv4Addr) -> Option<String> {
        let text = self.ip(&format!("neigh show {address}"));
        Some(text.trim().to_string()).filter(|t| !t.is_empty())
    }

    /// Looks at a device, and sends frames there.
    pub fn wire(&self, device: &str) -> Wire {
        let mut command = self.command("castanet-lab");
        command.args(["wire", device]);
        Wire::new(command)
    }

    /// Sends frames by a device, over and over at full rate for a while; it ends by itself.
    ///
    /// # Panics
    /// When the helper command does not take them.
    pub fn flood(&self, device: &str, frames: &[Vec<u8>], time: Duration) -> Process {
        let mut command = self.command("castanet-lab");
        command.args(["flood", device, &time.as_millis().to_string()]);
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
