// SPDX-License-Identifier: MIT OR Apache-2.0
//! The README's first command: the IP router of conf/ip-router-trace.click routes its traces, and the model
//! agrees.
#![allow(clippy::unwrap_used)]
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use castanet_tests::binary::{castanet, root};
use castanet_tests::model::{self, Evidence};

/// Runs the router and checks its output.
fn route(castanet: &Path, options: &[&str]) {
    let (traces, out) = (root().join("conf/traces"), tempfile::tempdir().unwrap());
    let mut run = Command::new(castanet);
    run.arg("run").args(options).arg(root().join("conf/ip-router-trace.click"));
    run.arg(format!("TRACES={}", traces.display())).arg(format!("OUT={}", out.path().display()));
    let log = std::fs::File::create(out.path().join("log")).unwrap();
    run.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).current_dir(out.path());
    let mut child = run.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let log = std::fs::read_to_string(out.path().join("log")).unwrap();
    assert!(status.success(), "castanet run {options:?}: {status}\n{log}");

    let evidence = Evidence::read(&traces, out.path()).unwrap_or_else(|error| panic!("{error}\n{log}"));
    let report = model::check(&evidence);
    assert!(report.violations.is_empty(), "castanet run {options:?}\n{report}");
    // Every packet has a fate, and every packet written was expected.
    let arrived: usize = evidence.arrived.iter().map(Vec::len).sum();
    assert_eq!(report.fates.values().sum::<u64>(), u64::try_from(arrived).unwrap());
    assert!(report.fates["forwarded"] > 3000 && !report.sent.contains_key("not due"), "{report}");
}

#[test]
fn the_ip_router_does_what_the_rfcs_say() {
    let castanet = castanet();
    for options in [&[][..], &["--batch", "1"], &["--batch", "3"], &["--batch", "256"], &["-j", "2"]] {
        route(&castanet, options);
    }
}
