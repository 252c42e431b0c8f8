// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests `castanet install` and `castanet uninstall`: a router in the background, replaced with and without its state.
#![allow(clippy::unwrap_used)]

mod common;

use common::BINARY;
use std::path::Path;
use std::process::{Command, Output};

const COUNTS: &str = "s :: TimedSource(0.001) -> c :: Counter -> Discard;";

fn castanet(command: &str, state: &Path, arguments: &[&str]) -> Output {
    Command::new(BINARY).arg(command).arg("--state").arg(state).args(arguments).output().unwrap()
}

fn said(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

fn install(state: &Path, arguments: &[&str]) -> String {
    let out = castanet("install", state, &[&["--driver", "packet"], arguments].concat());
    assert!(out.status.success(), "{}", said(&out));
    said(&out)
}

fn read(state: &Path, handler: &str) -> String {
    let out =
        Command::new(BINARY).arg("ctl").arg(state.join("control")).args(["read", handler]).output().unwrap();
    said(&out).trim().to_string()
}

#[test]
fn a_router_is_installed_replaced_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let none = castanet("uninstall", &state, &[]);
    assert!(!none.status.success() && said(&none).contains("no router is installed"), "{}", said(&none));
    let text = install(&state, &["-e", COUNTS]);
    assert!(text.contains("installed; 'castanet ctl "), "{text}");
    castanet_testkit::until("it counts", || read(&state, "c.count").parse::<u64>().unwrap() > 50);
    // A hot swap keeps the count, and a cold install does not.
    let text = install(&state, &["--hot", "-e", "s :: TimedSource(100) -> c :: Counter -> Null -> Discard;"]);
    assert!(text.contains("swapped"), "{text}");
    assert!(read(&state, "c.count").parse::<u64>().unwrap() > 50);
    let text = install(&state, &["-e", "s :: Idle -> c :: Counter -> Discard;"]);
    assert!(text.contains("uninstalled") && text.contains("installed;"), "{text}");
    assert_eq!(read(&state, "c.count"), "0");
    // Errors leave the installed router as it is.
    for arguments in [&["-e", "Nope -> Discard;"][..], &["--hot", "-e", "Nope -> Discard;"]] {
        let bad = castanet("install", &state, arguments);
        let text = said(&bad);
        assert!(!bad.status.success() && text.contains("the installed router goes on"), "{text}");
        assert!(text.contains("Nope"), "{text}");
        assert_eq!(read(&state, "c.count"), "0");
    }
    assert!(castanet("uninstall", &state, &[]).status.success());
    assert!(!castanet("uninstall", &state, &[]).status.success());
    // A router that cannot start says why.
    let bad = castanet("install", &state, &["-e", "FromDevice(nosuch0) -> Discard;"]);
    let text = said(&bad);
    assert!(!bad.status.success() && text.contains("did not start") && text.contains("nosuch0"), "{text}");
}
