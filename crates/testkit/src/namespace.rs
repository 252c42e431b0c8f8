// SPDX-License-Identifier: MIT OR Apache-2.0
//! Support for tests that need devices: the test runs again in a child process, in new user and network namespaces.

use crate::{real, try_router};
use std::process::Command;

const INSIDE: &str = "CASTANET_TEST_NAMESPACE";

/// Runs the body of test `name` in namespaces in which it may create devices; prints SKIP if that is not possible.
pub fn inside(name: &str, body: impl FnOnce()) {
    inside_of("-Urn", name, body);
}

/// Like [`inside`], but `flags` select the namespaces to create. They are options of unshare(1).
pub fn inside_of(flags: &str, name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let probe = Command::new("unshare").args([flags, "ip", "link"]).output();
    match probe {
        Ok(o) if o.status.success() => {}
        Ok(o) => return println!("SKIP: {name}: {}", String::from_utf8_lossy(&o.stderr).trim()),
        Err(e) => return println!("SKIP: {name}: unshare: {e}"),
    }
    let out = Command::new("unshare")
        .args([flags, "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success() && text.contains("1 passed"),
        "in the namespace:\n{text}{}",
        String::from_utf8_lossy(&out.stderr)
    );
    // SKIP may be in the middle of a line, because the test harness prints the name of the test before its output.
    text.lines().filter_map(|l| l.get(l.find("SKIP")?..)).for_each(|l| println!("{l}"));
}

/// Like [`inside`], but in the initial user namespace if this process has the rights, because only that namespace has
/// TCX, XDP and other programs of bpf(2). Otherwise in a new one, where the kernel refuses them.
pub fn inside_with_bpf(name: &str, body: impl FnOnce()) {
    let rights = Command::new("unshare").args(["-n", "true"]).output();
    inside_of(if rights.is_ok_and(|o| o.status.success()) { "-n" } else { "-Urn" }, name, body);
}

/// Like [`inside_with_bpf`], for tests of METHOD XDP. Without the rights it checks that the error names the missing capabilities, and
/// prints SKIP.
pub fn inside_with_xdp(name: &str, body: impl FnOnce()) {
    inside_with_bpf(name, || {
        run("ip link add probe type veth peer name other");
        let refused = try_router("FromDevice(probe, METHOD XDP) -> Discard;", real(1).0).err();
        run("ip link del probe");
        match refused {
            None => body(),
            Some(e) => {
                assert!(e.contains("no support for") || e.contains("grant CAP_BPF and CAP_NET_ADMIN"), "{e}");
                println!("SKIP: {e}");
            }
        }
    });
}

/// Whether TUN and TAP devices can be created here; prints SKIP if not.
pub fn has_tun() -> bool {
    match std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => true,
        Err(e) => {
            println!("SKIP: /dev/net/tun: {e}");
            false
        }
    }
}

/// Runs a command line.
///
/// # Panics
/// The command fails.
#[track_caller]
pub fn run(line: &str) -> String {
    let out = Command::new("sh").arg("-c").arg(line).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{line}: {text}{}", String::from_utf8_lossy(&out.stderr));
    text
}

/// Creates a veth pair without traffic of its own: one device receives the frames that the other sends.
pub fn pair() {
    run("ip link add va type veth peer name vb");
    for d in ["va", "vb"] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{d}/disable_ipv6"), "1");
        run(&format!("ip link set {d} up"));
    }
}
