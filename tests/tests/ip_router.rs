// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the README's first command: the IP router of conf/ip-router-trace.click routes its traces, and the model checks
//! its output.
#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use castanet_tests::binary::{castanet, root};
use castanet_tests::model::{self, Evidence};

/// Runs the router, with captures in a folder. Returns its printed output.
fn run(castanet: &Path, options: &[&str], out: &Path) -> String {
    let traces = root().join("conf/traces");
    let mut run = Command::new(castanet);
    run.arg("run").args(options).arg(root().join("conf/ip-router-trace.click"));
    // The summary shows the file names, so they must be the same in every folder.
    run.arg(format!("TRACES={}", traces.display())).arg("OUT=.");
    let log = tempfile::NamedTempFile::new().unwrap();
    let to = || log.reopen().unwrap();
    run.stdin(Stdio::null()).stdout(to()).stderr(to()).current_dir(out);
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
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert!(status.success(), "castanet run {options:?}: {status}\n{log}");
    log
}

/// Runs the router and checks its output.
fn route(castanet: &Path, options: &[&str]) {
    let (traces, out) = (root().join("conf/traces"), tempfile::tempdir().unwrap());
    let log = run(castanet, options, out.path());
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

#[test]
fn every_batch_size_gives_the_same() {
    let castanet = castanet();
    let seen = ["1", "32", "256"].map(|batch| {
        let out = tempfile::tempdir().unwrap();
        let log = run(&castanet, &["--simtime", "--batch", batch], out.path());
        let files = std::fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().path());
        let captures: BTreeMap<_, _> =
            files.map(|path| (path.file_name().unwrap().to_owned(), std::fs::read(&path).unwrap())).collect();
        // The last line has the time that the run took.
        let (summary, time) = log.trim_end().rsplit_once('\n').unwrap();
        assert!(time.contains(" packets in "), "{log}");
        (summary.to_string(), captures)
    });
    let [first, others @ ..] = &seen;
    assert!(first.0.contains("Packets out") && first.1.len() == 3, "{}", first.0);
    for other in others {
        assert_eq!(first.0, other.0);
        for (name, capture) in &first.1 {
            assert!(other.1.get(name) == Some(capture), "{name:?} differs");
        }
        assert_eq!(first.1.len(), other.1.len());
    }
}
