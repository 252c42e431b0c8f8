// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet net`: the examples of docs/tools.md, and a hundred routers of `castanet new ip-router` in a ring.
#![allow(clippy::unwrap_used)]

mod common;

use common::{BINARY, Bench, Ran};
use std::process::Command;

/// Returns the blocks of commands and their output (console) in a section of docs/tools.md.
fn examples(section: &str) -> Vec<String> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    let text = std::fs::read_to_string(file).unwrap();
    let start = text.find(section).unwrap() + section.len();
    let text = &text[start..];
    let text = &text[..text.find("\n## ").unwrap_or(text.len())];
    let blocks = text.split("```console\n").skip(1).filter_map(|b| Some(b.split_once("```")?.0.to_string()));
    blocks.collect()
}

#[test]
fn examples_of_the_manual() {
    let b = Bench::new();
    std::os::unix::fs::symlink(BINARY, b.path("castanet")).unwrap();
    let path = format!("{}:{}", b.folder.path().display(), std::env::var("PATH").unwrap());
    let mut commands = 0;
    for block in examples("\n## Checking a network\n") {
        let mut shown = String::new();
        for line in block.lines().filter_map(|l| l.strip_prefix("$ ")) {
            let mut sh = Command::new("sh");
            let out =
                sh.args(["-c", &format!("{line} 2>&1")]).current_dir(b.folder.path()).env("PATH", &path);
            let out = out.output().unwrap();
            shown += &format!("$ {line}\n{}", String::from_utf8(out.stdout).unwrap());
            commands += 1;
        }
        assert_eq!(shown, block);
    }
    assert!(commands >= 5, "{commands}");
}

#[test]
fn a_hundred_routers_in_a_ring() {
    let b = Bench::new();
    let run = |args: &[&str]| -> Ran {
        let ran = b.run("castanet", args, "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}\n{}", ran.out);
        ran
    };
    let n = 100;
    let mut network: Vec<String> = Vec::new();
    for r in 0..n {
        let left = (r + n - 1) % n;
        let devices =
            [format!("eth0=10.1.{r}.1/24"), format!("eth1=10.2.{r}.1/30"), format!("eth2=10.2.{left}.2/30")];
        let mut args: Vec<String> = vec!["new".into(), "ip-router".into()];
        args.extend(devices);
        for o in (0..n).filter(|&o| o != r) {
            let ahead = (o + n - r) % n <= n / 2;
            let gateway = if ahead { format!("10.2.{r}.2") } else { format!("10.2.{left}.1") };
            args.extend(["--route".into(), format!("10.1.{o}.0/24={gateway}")]);
        }
        args.extend(["-o".into(), format!("r{r}.click")]);
        run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        network.push(format!("r{r}.click"));
        network.push(format!("r{r}.eth1==r{}.eth2", (r + 1) % n));
    }
    let mut args = vec!["combine"];
    args.extend(network.iter().map(String::as_str));
    args.extend(["-o", "net.click"]);
    run(&args);
    let checked = run(&["net", "check", "net.click"]);
    assert!(
        checked.out.starts_with(
            "no loops, no black holes, no mismatched frames (routers: 100, links: 200, hosts: 100"
        )
    );
    let mut args = vec!["net", "run", "net.click", "--count", "1"];
    let names: Vec<String> = (0..n).map(|r| format!("r{r}")).collect();
    for r in 0..n {
        args.extend(["--ping", &names[r], &names[(r * 7 + 13) % n]]);
    }
    let ran = run(&args);
    assert!(ran.out.contains(" of 100 pings answered") && ran.out.contains("; 100 of 100"), "{}", ran.out);
}
