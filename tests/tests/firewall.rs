// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that each of the 17 rules of conf/firewall.click decides the packet designed for it, and does not decide a
//! similar packet that just fails to match.
#![allow(clippy::unwrap_used)]

use castanet_tests::binary::{castanet, root};
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

const RULES: usize = 17;
const DEFAULT: usize = 16;
const FIELDS: &str = "ip_src sport ip_dst dport ip_proto tcp_flags";

/// For each packet in the configuration, in order: the index of the rule that decides it.
const DECIDES: [usize; 33] = [
    0, 1, DEFAULT, 2, DEFAULT, 3, DEFAULT, 4, DEFAULT, 5, DEFAULT, 6, DEFAULT, 7, DEFAULT, 8, DEFAULT, 9,
    DEFAULT, 10, DEFAULT, 11, DEFAULT, 12, DEFAULT, 13, DEFAULT, 14, DEFAULT, 15, DEFAULT, DEFAULT, DEFAULT,
];

/// Returns the text between two others.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    text.split_once(from).and_then(|(_, rest)| rest.split_once(to)).unwrap().0
}

/// Returns the rules of the configuration, without their comments.
fn rules(conf: &str) -> Vec<String> {
    let lines = between(conf, "rules :: IPFilter(\n", "\n\n").lines();
    let lines = lines.map(|l| l.split("//").next().unwrap().trim().trim_end_matches([',', ';']).to_string());
    let mut all: Vec<String> = lines.collect();
    let last = all.last_mut().unwrap();
    *last = last.trim_end_matches(')').to_string();
    all
}

#[test]
fn each_rule_is_hit_and_missed() {
    let conf = fs::read_to_string(root().join("conf/firewall.click")).unwrap();
    let rules = rules(&conf);
    assert_eq!(rules.len(), RULES);
    let packets: Vec<&str> = between(&conf, "tcp_flags\n", "\n\"").lines().collect();
    assert_eq!(packets.len(), DECIDES.len());
    for batch in ["1", "2", "32"] {
        // Each rule gets its own output, where packets are recorded.
        let folder = tempfile::tempdir().unwrap();
        let numbered = rules.iter().enumerate().map(|(i, r)| format!("{i} {}", r.split_once(' ').unwrap().1));
        let mut text = format!(
            "FromIPSummaryDump(DATA \"!data {FIELDS}\n{}\n\", STOP true) -> rules :: IPFilter({});\n",
            packets.join("\n"),
            numbered.collect::<Vec<_>>().join(",\n")
        );
        for i in 0..RULES {
            let file = folder.path().join(i.to_string());
            writeln!(text, "rules [{i}] -> ToIPSummaryDump({}, FIELDS {FIELDS});", file.display()).unwrap();
        }
        let mut run = Command::new(castanet());
        run.args(["run", "-q", "--simtime", "--batch", batch, "-e", &text]);
        let ran = run.stdin(Stdio::null()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        for i in 0..RULES {
            let written = fs::read_to_string(folder.path().join(i.to_string())).unwrap();
            let got: Vec<&str> = written.lines().filter(|l| !l.starts_with('!')).collect();
            let decided = packets.iter().zip(DECIDES).filter(|(_, rule)| *rule == i);
            let want: Vec<&str> = decided.map(|(packet, _)| *packet).collect();
            assert!(!want.is_empty() && got == want, "rule {i}, batch {batch}: {got:?} instead of {want:?}");
        }
    }
}

#[test]
fn pages_show_their_configurations() {
    for name in ["firewall", "nat-gateway", "home-node", "mobile-node"] {
        let mut graph = Command::new(castanet());
        let drawn =
            graph.args(["graph", &format!("conf/{name}.click")]).current_dir(root()).output().unwrap();
        assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
        let file = root().join(format!("docs/{name}.svg"));
        if std::env::var_os("CASTANET_BLESS").is_some() {
            fs::write(&file, &drawn.stdout).unwrap();
        }
        let same = fs::read(&file).is_ok_and(|kept| kept == drawn.stdout);
        assert!(same, "out of date: castanet graph conf/{name}.click -o docs/{name}.svg");
        let page = if name == "mobile-node" { "home-node" } else { name };
        let page = fs::read_to_string(root().join(format!("docs/{page}.md"))).unwrap();
        assert!(page.contains(&format!("({name}.svg)")) && page.contains(&format!("../conf/{name}.click")));
    }
}
