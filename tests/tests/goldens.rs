// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the goldens of tests/goldens. `CASTANET_BLESS=1` updates the expected output, and
//! `CASTANET_GOLDENS=TEXT` runs only the goldens with this text in their name.
#![allow(clippy::unwrap_used)]
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use castanet_tests::binary::{castanet, root};
use castanet_tests::golden::{Golden, Ran};

/// Runs a golden by name. An error describes how the result differs.
fn test(name: &Path, links: &str, bless: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(name).unwrap();
    let golden = Golden::parse(&text)?;
    let ran = run(&golden, links);
    if bless {
        std::fs::write(name, golden.blessed(&ran)).unwrap();
        return Ok(());
    }
    let differences = golden.differences(&ran);
    if differences.is_empty() { Ok(()) } else { Err(differences) }
}

/// Runs a golden in a temporary directory.
fn run(golden: &Golden, links: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let (work, out, err) = (folder.path().join("work"), folder.path().join("out"), folder.path().join("err"));
    std::fs::create_dir(&work).unwrap();
    for (name, bytes) in golden.files() {
        std::fs::create_dir_all(work.join(name).parent().unwrap()).unwrap();
        std::fs::write(work.join(name), bytes).unwrap();
    }
    let path = format!("{links}:{}", std::env::var("PATH").unwrap());
    let mut sh = Command::new("sh");
    sh.args(["-c", golden.script()])
        .current_dir(&work)
        .env("PATH", path)
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC");
    for name in ["CLICKPATH", "NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "COLUMNS", "RUST_BACKTRACE"] {
        sh.env_remove(name);
    }
    // Output goes to files, so that processes left behind by the script cannot hold a pipe open. The script
    // runs in its own process group, so that all of it can be killed.
    sh.stdin(Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .process_group(0);
    let mut child = sh.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut late = "";
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                late = "(it did not end in 60 s)\n";
                let _ = Command::new("sh").args(["-c", &format!("kill -9 -{}", child.id())]).status();
                break child.wait().unwrap();
            }
            None => std::thread::sleep(Duration::from_millis(3)),
        }
    };
    let read = |file: &PathBuf| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
    let exit = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ran { stdout: read(&out), stderr: read(&err) + late, exit }
}

#[test]
fn goldens() {
    let links = tempfile::tempdir().unwrap();
    let castanet = castanet();
    std::os::unix::fs::symlink(&castanet, links.path().join("castanet")).unwrap();
    let made = Command::new(&castanet).arg("links").arg(links.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let links = links.path().to_str().unwrap();

    let wanted = std::env::var("CASTANET_GOLDENS").unwrap_or_default();
    let bless = std::env::var_os("CASTANET_BLESS").is_some();
    let mut names: Vec<PathBuf> = std::fs::read_dir(root().join("tests/goldens"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "test"))
        .filter(|path| path.file_stem().unwrap().to_str().unwrap().contains(&wanted))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no goldens");

    // Goldens mostly wait for processes, so more of them run concurrently than there are CPUs.
    let next = AtomicUsize::new(0);
    let failed: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut failed = Vec::new();
                    while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(why) = test(name, links, bless) {
                            failed.push(format!("{}\n{why}", name.file_name().unwrap().display()));
                        }
                    }
                    failed
                })
            })
            .collect();
        workers.into_iter().flat_map(|w| w.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{} of {} goldens:\n{}", failed.len(), names.len(), failed.join("\n"));
}
