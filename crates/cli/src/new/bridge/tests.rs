// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the output and the errors of `castanet new bridge`.
#![allow(clippy::unwrap_used)]

use super::super::checked;
use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    bridge: Bridge,
}

fn bridge(line: &str) -> Result<Bridge, String> {
    let words = std::iter::once("new").chain(line.split_whitespace());
    Line::try_parse_from(words).map(|l| l.bridge).map_err(|e| e.to_string())
}

#[test]
fn every_size_checks_clean() {
    for n in [2, 3, 40, 255] {
        let devices: Vec<_> = (0..n).map(|i| format!("eth{i}")).collect();
        let (elements, errors) = checked(&bridge(&devices.join(" ")).unwrap().configuration().unwrap());
        assert_eq!(errors, [""; 0]);
        assert_eq!(elements, 6 * n + 4, "{n} devices");
    }
    for line in
        ["a b -p 4096 --forward-delay 4 --hello 1 --max-age 6", "a b -p 0xFFFF --max-age 28", "a b -p 0"]
    {
        assert_eq!(checked(&bridge(line).unwrap().configuration().unwrap()).1, [""; 0], "{line}");
    }
}

#[test]
fn the_configuration_in_conf_is_the_same() {
    let text = bridge("eth0 eth1 eth2").unwrap().configuration().unwrap();
    let conf = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/ethernet-switch-devices.click");
    let kept = std::fs::read_to_string(conf).unwrap();
    let body = |text: &str| text.split_once("\ndefine(").map(|(_, body)| body.to_string());
    assert!(body(&text).is_some());
    assert_eq!(body(&text), body(&kept), "{conf} is not what `castanet new bridge eth0 eth1 eth2` writes");
}

#[test]
fn what_cannot_be() {
    for (line, message) in [
        ("", "required"),
        ("a,b c", "'a,b' is not a device name"),
        ("a b -p 65536", "expected a number from 0 to 65535"),
        ("a b -p 0x", "expected a number from 0 to 65535"),
        ("a b --forward-delay 1", "1 is not in 2..=30"),
        ("a b --hello 0", "0 is not in 1..=10"),
        ("a b --max-age 41", "41 is not in 6..=40"),
    ] {
        let error = bridge(line).err().unwrap_or_default();
        assert!(error.contains(message), "{line}: {error}");
    }
    let wrong = |line| bridge(line).unwrap().configuration().unwrap_err();
    assert_eq!(wrong("a"), ["a switch has at least two devices"]);
    assert_eq!(
        wrong("a b a --forward-delay 3 --hello 3 --max-age 7"),
        [
            "the device a is given twice",
            "--max-age 7 is more than 2 * (--forward-delay 3 - 1)",
            "--max-age 7 is less than 2 * (--hello 3 + 1)",
        ]
    );
}
