// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests `--pin`: the programs of a router that is killed go on, the next router takes over, and a router that ends in order leaves nothing.
#![allow(clippy::unwrap_used)]

mod common;

use castanet_testkit::host::Host;
use castanet_testkit::namespace::{inside_with_bpf, run};
use castanet_testkit::until;
use common::live_xdp::{add_host, ctl, detached, has_driver_xdp, number, router, settle, start_in_kernel};
use common::{BINARY, Live, signal};
use std::path::PathBuf;
use std::process::Command;

/// A mounted BPF file system, which is unmounted when this is dropped.
struct Mounted(tempfile::TempDir);

impl Mounted {
    /// Mounts one; prints SKIP if that is not permitted.
    fn new() -> Option<Mounted> {
        let folder = tempfile::tempdir().unwrap();
        let out = Command::new("mount").args(["-t", "bpf", "bpf"]).arg(folder.path()).output().unwrap();
        if out.status.success() {
            return Some(Mounted(folder));
        }
        println!("SKIP: no BPF file system: {}", String::from_utf8_lossy(&out.stderr));
        None
    }
    fn pins(&self) -> PathBuf {
        self.0.path().join("pins")
    }
    /// The files of the router; empty if there is no folder.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.pins()).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn works(host: &Host) {
    until("it forwards", || host.run("ping -c 1 -W 1 10.0.1.2 || true").contains("1 received"));
}

fn kill(live: Live) {
    signal(live.0.id(), "KILL");
    drop(live);
}

/// Sends a packet that needs the router: it is for the router itself.
fn ask_router(host: &Host) -> bool {
    host.run("ping -c 1 -W 0.2 10.0.0.1 || true").contains("1 received")
}

/// Pings until nothing but the programs of a dead router can answer: they forward, and drop what needs the router.
fn goes_on(host: &Host) {
    until("the router is dead", || !ask_router(host));
    // The process that opened its devices may have had its sockets open for a moment.
    assert!(!ask_router(host));
    works(host);
}

#[test]
fn programs_of_a_killed_router_go_on_until_the_next_takes_over() {
    inside_with_bpf("programs_of_a_killed_router_go_on_until_the_next_takes_over", || {
        if !has_driver_xdp() {
            return;
        }
        let Some(mounted) = Mounted::new() else { return };
        let (a, b) = (add_host(0), add_host(1));
        // No entry of ARP has to be renewed while nobody can ask for it.
        let text = router().replace("ENTRY_CAPACITY 8192", "ENTRY_CAPACITY 8192, POLL_TIMEOUT 0");
        assert!(text.contains("POLL_TIMEOUT"));
        let folder = tempfile::tempdir().unwrap();
        let pin = format!("--pin={}", mounted.pins().display());
        for (i, more) in ["--keep-privileges", "--seed=1"].into_iter().enumerate() {
            let (first, second) =
                (folder.path().join(format!("{i}-first")), folder.path().join(format!("{i}-second")));
            let live = start_in_kernel(&first, &[&pin, more], &text);
            works(&a);
            settle(&a, &first);
            assert_eq!(mounted.files(), ["counts-2", "link-r0", "link-r1"]);
            // Another router does not get the folder, and leaves it as it is.
            let mut other = Command::new(BINARY);
            other.args(["run", "-q", "--driver", "xdp", &pin, "-e", "FromDevice(lo) -> Discard;"]);
            let out = other.output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(!out.status.success() && said.contains("another router that runs uses it"), "{said}");
            // A handler and a hot swap make new programs.
            ctl(&first, &["write", "one/ttl.active", "false"]);
            ctl(&first, &["write", "one/ttl.active", "true"]);
            settle(&a, &first);
            kill(live);
            goes_on(&a);
            assert!(b.run("ping -c 1 -W 60 10.0.0.2").contains("1 received") && !ask_router(&b));
            assert_eq!(mounted.files(), ["counts-2", "link-r0", "link-r1"]);
            // The next router takes over, counts what was dropped, and answers again.
            let live = start_in_kernel(&second, &[&pin, more], &text);
            until("it answers", || ask_router(&a));
            let log = std::fs::read_to_string(second.with_extension("log")).unwrap();
            let dropped: u64 = log
                .split_once("its programs have dropped ")
                .and_then(|(_, rest)| rest.split_once(" packets"))
                .map_or(0, |(n, _)| n.parse().unwrap());
            // At least one ping of each host to the router.
            assert!(dropped >= 2, "{log}");
            settle(&a, &second);
            assert!(number(&second, "one/FromDevice@1.count") >= 20);
            // A router that ends in order leaves nothing.
            signal(live.0.id(), "TERM");
            detached();
            until("the folder is gone", || !mounted.pins().exists());
            drop(live);
        }
    });
}

#[test]
fn a_router_with_other_devices_ends_the_other_programs() {
    inside_with_bpf("a_router_with_other_devices_ends_the_other_programs", || {
        if !has_driver_xdp() {
            return;
        }
        let Some(mounted) = Mounted::new() else { return };
        let (a, _b) = (add_host(0), add_host(1));
        let folder = tempfile::tempdir().unwrap();
        let pin = format!("--pin={}", mounted.pins().display());
        let first = folder.path().join("first");
        let live = start_in_kernel(&first, &[&pin], &router());
        works(&a);
        settle(&a, &first);
        kill(live);
        // A router that cannot start leaves the programs alone; so does one that does not know of them.
        let mut bad = Command::new(BINARY);
        bad.args([
            "run",
            "-q",
            "--driver",
            "xdp",
            &pin,
            "-e",
            "FromDevice(r0) -> Discard; FromDevice(no) -> Discard",
        ]);
        assert!(!bad.output().unwrap().status.success());
        let mut unaware = Command::new(BINARY);
        unaware.args(["run", "-q", "--driver", "xdp", "-e", "FromDevice(r0) -> Discard;"]);
        let out = unaware.output().unwrap();
        assert!(String::from_utf8_lossy(&out.stderr).contains("another XDP program is attached"));
        goes_on(&a);
        // The whole path of the second router is at user level, and it has only one of the devices.
        let second = folder.path().join("second");
        let text = "FromDevice(r0, SNAPLEN 2000) -> c :: Counter -> Discard;";
        let live = start_in_kernel(&second, &[&pin], text);
        assert_eq!(mounted.files(), ["counts-1", "link-r0"]);
        assert!(!run("ip link show r1").contains("xdp"));
        until("packets arrive", || {
            a.run("ping -c 1 -W 0.1 10.0.1.2 || true");
            number(&second, "c.count") > 0
        });
        kill(live);
        // Its frames are dropped, and not passed to the host.
        run("ip address add 10.0.0.1/24 dev r0");
        assert!(!ask_router(&a));
    });
}

#[test]
fn programs_in_parts_go_on_too() {
    inside_with_bpf("programs_in_parts_go_on_too", || {
        if !has_driver_xdp() {
            return;
        }
        let Some(mounted) = Mounted::new() else { return };
        let (a, _b) = (add_host(0), add_host(1));
        let rules: String =
            (0..1500).map(|n| format!("deny src net 10.{}.{}.0/24, ", 100 + n / 256, n % 256)).collect();
        let text = router().replace("martians :: IPFilter(", &format!("martians :: IPFilter({rules}"));
        let folder = tempfile::tempdir().unwrap();
        let pin = format!("--pin={}", mounted.pins().display());
        let all = ["counts-2", "link-r0", "link-r1", "parts-r0", "parts-r1"];
        let first = folder.path().join("first");
        let live = start_in_kernel(&first, &[&pin], &text);
        works(&a);
        settle(&a, &first);
        assert_eq!(mounted.files(), all);
        kill(live);
        goes_on(&a);
        // The next router has no parts, and one after it has them again.
        let second = folder.path().join("second");
        let live = start_in_kernel(&second, &[&pin], &router());
        works(&a);
        settle(&a, &second);
        assert_eq!(mounted.files(), all[..3]);
        let file = folder.path().join("next.click");
        std::fs::write(&file, &text).unwrap();
        ctl(&second, &["swap", file.to_str().unwrap()]);
        assert_eq!(mounted.files(), all);
        settle(&a, &second);
        kill(live);
        goes_on(&a);
    });
}

#[test]
fn an_installed_router_that_is_killed_can_be_uninstalled() {
    inside_with_bpf("an_installed_router_that_is_killed_can_be_uninstalled", || {
        if !has_driver_xdp() {
            return;
        }
        let Some(mounted) = Mounted::new() else { return };
        let (a, _b) = (add_host(0), add_host(1));
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let castanet = |command: &str, more: &[&str]| {
            let out =
                Command::new(BINARY).arg(command).arg("--state").arg(&state).args(more).output().unwrap();
            (out.status.success(), format!("{out:?}"))
        };
        let pin = format!("--pin={}", mounted.pins().display());
        let install = [&pin, "-e", &router()];
        let (ok, said) = castanet("install", &install);
        assert!(ok, "{said}");
        works(&a);
        let killed = || {
            settle(&a, &state.join("control"));
            let pid = std::fs::read_to_string(state.join("pid")).unwrap().trim().parse().unwrap();
            signal(pid, "KILL");
            goes_on(&a);
        };
        killed();
        let (ok, said) = castanet("uninstall", &[]);
        assert!(ok && said.contains("the router had died") && !said.contains("dropped 0 packets"), "{said}");
        assert!(!run("ip link show r0; ip link show r1").contains("xdp") && !mounted.pins().exists());
        let (ok, said) = castanet("uninstall", &[]);
        assert!(!ok && said.contains("no router is installed"), "{said}");
        // Installed again after its death, it takes over; then it ends in order.
        assert!(castanet("install", &install).0);
        works(&a);
        killed();
        let (ok, said) = castanet("install", &install);
        assert!(ok && said.contains("took over from a router that has died"), "{said}");
        works(&a);
        assert!(castanet("uninstall", &[]).0);
        detached();
        assert_eq!(mounted.files(), [""; 0]);
    });
}
