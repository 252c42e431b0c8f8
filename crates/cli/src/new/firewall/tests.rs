// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the output and the errors of `castanet new firewall`.
#![allow(clippy::unwrap_used)]

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    firewall: Firewall,
}

fn firewall(words: &[&str]) -> Result<Firewall, String> {
    let words = std::iter::once("new").chain(words.iter().copied());
    Line::try_parse_from(words).map(|l| l.firewall).map_err(|e| e.to_string())
}

#[test]
fn rules_stand_in_their_order_and_check_clean() {
    for (words, incoming, outgoing) in [
        (&["a", "b"][..], "in_rules :: IPFilter(\n    1 all);", "out_rules :: IPFilter(\n    allow all);"),
        (
            &[
                "a",
                "b",
                "--in",
                "deny src net 10.0.0.0/8",
                "--in",
                "allow (tcp or udp) and dst port 53",
                "-O",
                "allow icmp",
            ],
            "in_rules :: IPFilter(\n    deny src net 10.0.0.0/8,\n    allow (tcp or udp) and dst port 53,\n    1 all);",
            "out_rules :: IPFilter(\n    allow icmp,\n    1 all);",
        ),
        (
            &["a", "b", "-i", "allow all", "-O", " deny all "],
            "in_rules :: IPFilter(\n    allow all);",
            "out_rules :: IPFilter(\n    deny all);",
        ),
    ] {
        let text = firewall(words).unwrap().configuration().unwrap();
        assert!(text.contains(incoming) && text.contains(outgoing), "{words:?}\n{text}");
        assert_eq!(checked(&text).1, [""; 0], "{words:?}");
    }
}

#[test]
fn what_cannot_be() {
    for (words, message) in [
        (&["a"][..], "required"),
        (&["a", "b/c"], "'b/c' is not a device name"),
        (&["a", "b", "--in", "tcp"], "expected `allow` or `deny`"),
        (&["a", "b", "--in", "allow"], "expected `allow` or `deny`"),
        (&["a", "b", "--in", "1 tcp"], "expected `allow` or `deny`"),
        (&["a", "b", "--in", "allow tcp, deny all"], "a rule must not contain ','"),
        (&["a", "b", "--in", "allow tcp); Idle"], "a rule must not contain ';'"),
        (&["a", "b", "--in", "allow tcp // all"], "a rule must not contain a comment"),
        (&["a", "b", "--in", "allow tcp dst prt 80"], "prt"),
        (&["a", "b", "--in", "allow tcp) -> IPFilter(allow all"], "unbalanced parentheses"),
        (&["a", "b", "--out", "allow ((tcp)"], "unbalanced parentheses"),
        (&["a", "b", "--out", "allow src host 10.0.0.256"], "error: invalid value"),
    ] {
        let error = firewall(words).err().unwrap_or_default();
        assert!(error.contains(message), "{words:?}: {error}");
    }
    let twice = firewall(&["a", "a"]).unwrap().configuration();
    assert_eq!(twice.unwrap_err(), ["the device a is given twice"]);
}
