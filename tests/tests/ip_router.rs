// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the README's first command: the IP router of conf/ip-router-trace.click routes its traces, and the model checks
//! its output.
#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use castanet_tests::binary::{castanet, root};
use castanet_tests::model::{self, Evidence};

/// Runs the router, with captures in a folder. Returns its printed output.
fn run(castanet: &Path, options: &[&str], out: &Path) -> String {
    run_file(castanet, &root().join("conf/ip-router-trace.click"), options, out)
}

/// Runs a configuration of the router, with captures in a folder. Returns its printed output.
fn run_file(castanet: &Path, file: &Path, options: &[&str], out: &Path) -> String {
    let traces = root().join("conf/traces");
    let mut run = Command::new(castanet);
    run.arg("run").args(options).arg(file);
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

/// Returns the files of a folder with their contents.
fn captures(folder: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.file_name().unwrap().to_owned(), std::fs::read(&path).unwrap())).collect()
}

/// Returns the drops in a summary: reason and number of packets, without the elements.
fn drops(log: &str) -> BTreeMap<String, String> {
    let lines =
        log.lines().skip_while(|line| *line != "Dropped").skip(1).take_while(|line| line.starts_with(' '));
    let words = lines.map(|line| line.split_whitespace().map(str::to_string));
    words.filter_map(|mut words| Some((words.next()?, words.next()?))).collect()
}

#[test]
fn combination_elements_do_the_same() {
    let castanet = castanet();
    let folder = tempfile::tempdir().unwrap();
    let combined = folder.path().join("combined.click");
    let (original, traces) = (root().join("conf/ip-router-trace.click"), root().join("conf/traces"));
    let mut xform = Command::new(&castanet);
    xform.args(["xform", "--ip", "OUT=.", "-o"]).arg(&combined).arg(&original);
    let done = xform.arg(format!("TRACES={}", traces.display())).output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    let text = std::fs::read_to_string(&combined).unwrap();
    for (class, n) in
        [(":: IPInputCombo(", 2), (":: IPOutputCombo(", 2), (":: Paint(", 0), (":: DecIPTTL;", 0)]
    {
        assert_eq!(text.matches(class).count(), n, "{class}\n{text}");
    }
    for batch in ["1", "3", "32", "256"] {
        let [before, after] = [&original, &combined].map(|file| {
            let out = tempfile::tempdir().unwrap();
            let log = run_file(&castanet, file, &["--simtime", "--batch", batch], out.path());
            (captures(out.path()), drops(&log))
        });
        assert!(before.0.len() == 3 && before.1.len() > 5, "{:?}", before.1);
        assert_eq!(before.1, after.1, "batch {batch}");
        for (name, capture) in &before.0 {
            assert!(after.0.get(name) == Some(capture), "batch {batch}: {name:?} differs");
        }
    }
}

#[test]
fn every_batch_size_gives_the_same() {
    let castanet = castanet();
    let seen = ["1", "32", "256"].map(|batch| {
        let out = tempfile::tempdir().unwrap();
        let log = run(&castanet, &["--simtime", "--batch", batch], out.path());
        let captures = captures(out.path());
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
