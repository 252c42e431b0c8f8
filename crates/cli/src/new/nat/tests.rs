// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the output and the errors of `castanet new nat`.
#![allow(clippy::unwrap_used)]

use super::super::checked;
use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    nat: Nat,
}

fn nat(line: &str) -> Result<Nat, String> {
    let words = std::iter::once("new").chain(line.split_whitespace());
    Line::try_parse_from(words).map(|l| l.nat).map_err(|e| e.to_string())
}

#[test]
fn every_number_of_forwarded_ports_checks_clean() {
    for n in [0, 1, 2, 30] {
        let forwards: String = (1..=n).map(|i| format!(" --forward udp:{i}=10.0.0.{}:7", 1 + i)).collect();
        let line = format!("eth0=10.0.0.1/24 eth1=192.0.2.2/24 -g 192.0.2.1{forwards}");
        let (elements, errors) = checked(&nat(&line).unwrap().configuration().unwrap());
        assert_eq!(errors, [""; 0], "{line}");
        assert_eq!(elements, 53, "{line}");
    }
    for line in [
        "a=10.0.0.1/8 b=192.0.2.2/31 -g 192.0.2.3 -m 9000 --icmp-errors 5",
        "a=10.0.0.1/31 b=192.0.2.2/30 -g 192.0.2.1 -f tcp:65535=10.0.0.0",
    ] {
        assert_eq!(checked(&nat(line).unwrap().configuration().unwrap()).1, [""; 0], "{line}");
    }
}

#[test]
fn the_configuration_in_conf_is_the_same() {
    let line = "eth0=10.0.0.1/24 eth1=192.0.2.2/24 --gateway 192.0.2.1 --forward tcp:80=10.0.0.80";
    let text = nat(line).unwrap().configuration().unwrap();
    let conf = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/nat-gateway.click");
    let kept = std::fs::read_to_string(conf).unwrap();
    let body = |text: &str| text.split_once("\ndefine(").map(|(_, body)| body.to_string());
    assert!(body(&text).is_some());
    assert_eq!(body(&text), body(&kept), "{conf} is not what new/nat.click makes");
}

#[test]
fn words_that_cannot_be() {
    for (line, message) in [
        ("a=10.0.0.1/24", "required"),
        ("a=10.0.0.1/24 b=192.0.2.2/24", "--gateway <ADDRESS>"),
        ("a=10.0.0.1/24 b=192.0.2.2/24 -g x", "invalid IPv4 address"),
        ("a=10.0.0.1/24 b=192.0.2.2/24 -g 192.0.2.1 -m 67", "expected 68 to 65535 bytes"),
        ("a=10.0.0.1/24 b=192.0.2.2/24 -g 192.0.2.1 -f 80=10.0.0.2", "expected PROTOCOL:PORT=SERVER"),
        ("a=10.0.0.1/24 b=192.0.2.2/24 -g 192.0.2.1 -f tcp:80", "expected PROTOCOL:PORT=SERVER"),
        ("a=10.0.0.1/24 b=192.0.2.2/24 -g 192.0.2.1 -f icmp:80=10.0.0.2", "cannot forward ports of 'icmp'"),
        ("a=10.0.0.1/24 b=192.0.2.2/24 -g 192.0.2.1 -f tcp:0=10.0.0.2", "the port '0' is not a number"),
        ("a=10.0.0.1/24 b=192.0.2.2/24 -g 192.0.2.1 -f tcp:8=10.0.0.2:65536", "the port '65536' is not"),
        ("a=10.0.0.1/24 b=192.0.2.2/24 -g 192.0.2.1 -f tcp:8=web", "'web' is not an IPv4 address"),
    ] {
        let error = nat(line).err().unwrap_or_default();
        assert!(error.contains(message), "{line}: {error}");
    }
}

#[test]
fn contradictions_are_told_all_at_once() {
    let line = "a=10.0.0.1/24 a=10.0.0.9/25 -g 10.0.0.127 -f tcp:80=10.0.1.1 -f tcp:80=10.0.0.1 -f udp:80=10.0.0.255";
    assert_eq!(
        nat(line).unwrap().configuration().unwrap_err(),
        [
            "the device a is given twice",
            "the networks of a=10.0.0.1/24 and a=10.0.0.9/25 overlap, so inner and outer hosts cannot be distinguished",
            "the gateway 10.0.0.127 is not in the outer network 10.0.0.9/25",
            "the server 10.0.1.1 of tcp:80 is not a host of the inner network 10.0.0.1/24",
            "tcp:80 is forwarded twice",
            "the server 10.0.0.1 of tcp:80 is not a host of the inner network 10.0.0.1/24",
            "the server 10.0.0.255 of udp:80 is not a host of the inner network 10.0.0.1/24",
        ]
    );
    let line = "a=10.0.0.1/32 b=192.0.2.2/24 -g 192.0.2.2";
    assert_eq!(
        nat(line).unwrap().configuration().unwrap_err(),
        [
            "10.0.0.1/32 has no addresses for inner hosts",
            "the gateway 192.0.2.2 is the address of this gateway itself"
        ]
    );
}
