// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that need devices of their own: the test runs again in a child, in fresh user and network namespaces.
#![allow(clippy::unwrap_used)]

use std::process::{Child, Command, Stdio};

const INSIDE: &str = "CASTANET_TEST_NAMESPACE";

/// Runs the body of test `name` where it may make devices; says SKIP where that is not possible.
pub fn inside(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let probe = Command::new("unshare").args(["-Urn", "ip", "link"]).output();
    match probe {
        Ok(o) if o.status.success() => {}
        Ok(o) => return println!("SKIP: {name}: {}", String::from_utf8_lossy(&o.stderr).trim()),
        Err(e) => return println!("SKIP: {name}: unshare: {e}"),
    }
    let out = Command::new("unshare")
        .args(["-Urn", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success() && text.contains("1 passed"),
        "in the namespace:\n{text}{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

/// Runs a command line.
pub fn run(line: &str) -> String {
    let out = Command::new("sh").arg("-c").arg(line).output().unwrap();
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// A pair of devices that speak only when asked: frames that one sends the other receives.
pub fn pair() {
    run("ip link add va type veth peer name vb");
    for d in ["va", "vb"] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{d}/disable_ipv6"), "1");
        run(&format!("ip link set {d} up"));
    }
}

/// A second network namespace, for as long as it lives.
pub struct Host(Child);

impl Host {
    /// An empty one.
    pub fn new() -> Host {
        let child =
            Command::new("unshare").args(["-n", "sleep", "1000"]).stdout(Stdio::null()).spawn().unwrap();
        let host = Host(child);
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        while std::fs::read_link(host.file()).map_or(true, |l| l == own) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        host
    }
    /// Its number as `ip link set DEVICE netns` takes it.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
    fn file(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }
    /// Runs a command line there.
    pub fn run(&self, line: &str) -> String {
        run(&format!("nsenter --net={} -- {line}", self.file()))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
