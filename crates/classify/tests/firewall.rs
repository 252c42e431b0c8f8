// SPDX-License-Identifier: MIT OR Apache-2.0
//! A screening router with 17 rules, in the form of the firewall in "Programming language optimizations for
//! modular router configurations" (ASPLOS 2002, §4). For every rule there are packets that match and packets
//! that just fail to match.
#![allow(clippy::unwrap_used)]

use castanet_classify::{Names, NoNames, Program, Target};
use etherparse::PacketBuilder;

const IN: &str = "10.1.0.1";
const RULES: [&str; 17] = [
    "deny src net 10.1.0.0/16",
    "allow dst host 10.1.0.1 and tcp dst port smtp and src port > 1023",
    "allow dst host 10.1.0.1 and tcp src port smtp and dst port > 1023 and tcp opt ack",
    "allow dst host 10.1.0.1 and tcp dst port www and src port > 1023",
    "allow dst host 10.1.0.1 and tcp src port www and dst port > 1023 and tcp opt ack",
    "allow dst host 10.1.0.1 and tcp dst port ftp and src port > 1023",
    "allow dst host 10.1.0.1 and tcp dst port ftp-data and src port > 1023 and tcp opt ack",
    "allow src host 192.100.5.9 and dst host 10.1.0.2 and tcp dst port nntp and src port > 1023",
    "allow src host 192.100.5.9 and dst host 10.1.0.2 and tcp src port nntp and dst port > 1023 and tcp opt ack",
    "allow src net 192.168.7/24 and dst host 10.1.0.1 and tcp dst port telnet",
    "allow dst host 10.1.0.1 and tcp src port telnet and dst port > 1023 and tcp opt ack",
    "allow dst host 10.1.0.1 and tcp dst port ssh",
    "allow dst host 10.1.0.1 and tcp src port ssh and tcp opt ack",
    "allow dst host 10.1.0.1 and udp dst port dns and src port > 1023",
    "allow dst host 10.1.0.1 and tcp src port dns and dst port dns",
    "allow dst host 10.1.0.1 and udp src port dns and dst port dns",
    "deny all",
];

#[derive(Clone, Copy)]
struct Flow {
    udp: bool,
    src: &'static str,
    sport: u16,
    dst: &'static str,
    dport: u16,
    ack: bool,
}

fn packet(f: Flow) -> Vec<u8> {
    let address = |a: &str| a.parse::<std::net::Ipv4Addr>().unwrap().octets();
    let ip = PacketBuilder::ipv4(address(f.src), address(f.dst), 64);
    let mut out = Vec::new();
    if f.udp {
        ip.udp(f.sport, f.dport).write(&mut out, &[1, 2, 3]).unwrap();
    } else {
        let tcp = ip.tcp(f.sport, f.dport, 1, 1000);
        let tcp = if f.ack { tcp.ack(1) } else { tcp };
        tcp.write(&mut out, &[]).unwrap();
    }
    out
}

fn flow(proto: &str, src: &'static str, sport: u16, dst: &'static str, dport: u16) -> Flow {
    Flow { udp: proto == "udp", src, sport, dst, dport, ack: proto == "ack" }
}

/// Returns test packets, each with the number of the rule that decides about it.
fn cases() -> Vec<(usize, Flow)> {
    const OUT: &str = "20.1.1.7";
    const NEWS: &str = "192.100.5.9";
    vec![
        (0, flow("tcp", "10.1.255.255", 2000, IN, 25)),
        (1, flow("tcp", "10.2.0.0", 1024, IN, 25)),
        (16, flow("tcp", OUT, 1023, IN, 25)),
        (16, flow("udp", OUT, 1024, IN, 25)),
        (2, flow("ack", OUT, 25, IN, 1024)),
        (16, flow("tcp", OUT, 25, IN, 1024)),
        (16, flow("ack", OUT, 25, IN, 1023)),
        (3, flow("tcp", OUT, 65535, IN, 80)),
        (16, flow("tcp", OUT, 65535, "10.1.0.2", 80)),
        (4, flow("ack", OUT, 80, IN, 65535)),
        (5, flow("tcp", OUT, 5000, IN, 21)),
        (6, flow("ack", OUT, 5000, IN, 20)),
        (16, flow("tcp", OUT, 5000, IN, 20)),
        (7, flow("tcp", NEWS, 5000, "10.1.0.2", 119)),
        (16, flow("tcp", OUT, 5000, "10.1.0.2", 119)),
        (16, flow("tcp", NEWS, 5000, IN, 119)),
        (8, flow("ack", NEWS, 119, "10.1.0.2", 5000)),
        (16, flow("tcp", NEWS, 119, "10.1.0.2", 5000)),
        (9, flow("tcp", "192.168.7.255", 1, IN, 23)),
        (16, flow("tcp", "192.168.8.0", 1, IN, 23)),
        (10, flow("ack", OUT, 23, IN, 5000)),
        (16, flow("tcp", OUT, 23, IN, 5000)),
        (11, flow("tcp", OUT, 1, IN, 22)),
        (16, flow("tcp", OUT, 1, "10.1.0.2", 22)),
        (12, flow("ack", OUT, 22, IN, 1)),
        (16, flow("tcp", OUT, 22, IN, 1)),
        (13, flow("udp", OUT, 1024, IN, 53)),
        (16, flow("tcp", OUT, 1024, IN, 53)),
        (14, flow("tcp", OUT, 53, IN, 53)),
        (15, flow("udp", OUT, 53, IN, 53)),
        (16, flow("udp", OUT, 54, IN, 53)),
        (16, flow("udp", OUT, 53, "10.1.0.2", 53)),
    ]
}

#[test]
fn each_rule_is_hit_and_missed() {
    let tests: Vec<&str> = RULES.iter().map(|r| r.split_once(' ').unwrap().1).collect();
    let (classifier, warnings) = Program::from_ip_classifier(&tests, &NoNames).unwrap();
    assert_eq!(warnings, []);
    let (filter, warnings) = Program::from_ip_filter(&RULES, &NoNames, 1).unwrap();
    assert_eq!(warnings, []);
    let mut hit = [false; 17];
    for (rule, f) in cases() {
        let p = packet(f);
        let what = format!("{rule}: {} {} > {} {}", f.src, f.sport, f.dst, f.dport);
        assert_eq!(classifier.classify_ip(&p).port(), Some(rule), "{what}");
        let allowed = RULES[rule].starts_with("allow");
        assert_eq!(filter.classify_ip(&p).port().is_some(), allowed, "{what}");
        // Later fragments have no ports, so only the first and the last rule can match.
        let mut fragment = p.clone();
        fragment[7] = 1;
        let want = if rule == 0 { 0 } else { 16 };
        assert_eq!(classifier.classify_ip(&fragment).port(), Some(want), "{what}");
        hit[rule] = true;
    }
    assert_eq!(hit, [true; 17]);
    // The second-to-last rule is reached after few tests, not after all tests of the rules before it.
    assert!(filter.steps().len() < 120, "{}", filter.steps().len());
    assert!(longest_path(&filter) <= 24, "{}", longest_path(&filter));
}

fn longest_path(program: &Program) -> usize {
    let mut longest = vec![0; program.steps().len()];
    for (i, step) in program.steps().iter().enumerate().rev() {
        let below =
            [step.yes, step.no].map(|t| if let Target::Step(at) = t { longest[at as usize] } else { 0 });
        longest[i] = 1 + below[0].max(below[1]);
    }
    longest.first().copied().unwrap_or(0)
}

/// Pairs of equivalent expressions.
const SAME: &[(&str, &str)] = &[
    ("tcp", "ip proto 6"),
    ("tcp", "proto tcp"),
    ("ospf", "ip proto 89"),
    ("tcpudp", "tcp or udp"),
    ("transp", "ip proto tcp or udp or dccp or sctp"),
    ("ip proto 6 or 17", "tcp or udp"),
    ("syn", "tcp opt syn"),
    ("tcp syn", "tcp opt 2"),
    ("tcp opt syn or ack", "tcp opt syn or tcp opt ack"),
    ("tcp opt 18", "opt syn and opt ack"),
    ("1.2.3.4", "src or dst host 1.2.3.4"),
    ("ip host 1.2.3.4", "dst or src host 1.2.3.4"),
    ("10/8", "net 10.0.0.0 mask 255.0.0.0"),
    ("src 10.9.9.9/8", "src net 10.0.0.0/255.0.0.0"),
    ("net 1.2.3.4", "host 1.2.3.4"),
    ("src host 10.0.0.0 mask 255.0.0.0", "src host & 255.0.0.0 = 10.0.0.0"),
    ("src port 80 or 81", "src port 80 or src port 81"),
    ("src tcp port 80 or 81", "(tcp src port 80) || (tcp src port 81)"),
    ("src port 80 or dst 81", "src port 80 or dst port 81"),
    ("tcp port 80 or udp 53", "tcp port 80 or udp port 53"),
    ("src 1.2.3.4 or 1.2.3.5", "src host 1.2.3.4 or src host 1.2.3.5"),
    ("src 1.2.3.4 or 10/8", "src host 1.2.3.4 or src net 10/8"),
    ("src host 1.2.3.4 1.2.3.5", "src host 1.2.3.4 and src host 1.2.3.5"),
    ("dst port 80 1.2.3.4", "dst port 80 and host 1.2.3.4"),
    ("ip tos & 0xf0 = 0x10 or 0x20", "ip tos & 0xf0 = 16 or ip tos & 240 = 32"),
    ("icmp type echo or echo-reply", "icmp type 8 or icmp type 0"),
    ("icmp echo", "icmp type 8"),
    ("udp echo", "udp port 7"),
    ("unreachable", "icmp type unreachable"),
    ("icmp type echo or tcp syn", "icmp type 8 or tcp opt syn"),
    ("port www", "tcpudp port 80"),
    ("www", "port 80"),
    ("not not tcp", "tcp"),
    ("tcp and (udp or true)", "tcp"),
    ("tcp ? udp : icmp", "icmp"),
    ("tcp ? frag : true", "not tcp or frag"),
    ("tcp ? true : udp ? true : false", "tcp or udp"),
    ("any", "true"),
    ("-", "all"),
    ("ip[9] 6", "tcp"),
    ("ip[12:4] = 1.2.3.4", "src 1.2.3.4"),
    ("ip[12,15] 1.2.3.4", "src 1.2.3.4"),
    ("ip[ 0 : 1 ] & 0xf0 == 0x40", "ip vers 4"),
    ("! tcp", "not proto 6"),
    ("tcp[13] & 2 = 2", "tcp opt syn"),
    ("tcp[14:2] = 5", "tcp win 5"),
    ("ip ttl<5", "not ip ttl >= 5"),
    ("src port>=1024", "src port > 1023"),
    ("not frag", "unfrag"),
    ("ip ce", "ip tos & 3 = 3"),
    ("ether src 0:1:2:3:4:5", "ether src host 00-01-02-03-04-05"),
    ("ether host 0:1:2:3:4:5 or ff:ff:ff:ff:ff:ff", "ether host 0:1:2:3:4:5 or ether host ff:ff:ff:ff:ff:ff"),
    ("host 9:A:B:C:D:E", "ether host 9:a:b:c:d:e"),
    ("src host 0:1:2:3:4:5", "ether src host 0:1:2:3:4:5"),
    ("src 0:1:2:3:4:5", "ether src host 0:1:2:3:4:5"),
    ("src & 8.0.0.0 = 8.0.0.0", "ip[12:4] & 0x8000000 = 0x8000000"),
    ("dst host & 8.0.0.0 = 8.0.0.0", "dst & 8.0.0.0 = 8.0.0.0"),
    ("src 10.0.0.0 & 8.0.0.0 = 8.0.0.0", "src 10.0.0.0 and src & 8.0.0.0 = 8.0.0.0"),
    ("src net 10.0.0.0/8 & 0.0.0.255 = 0.0.0.1", "src 10.0.0.0/8 and src & 0.0.0.255 = 0.0.0.1"),
    ("not src 10.0.0.0/8 & 1.0.0.0 = 1.0.0.0", "not src 10.0.0.0/8 and src & 1.0.0.0 = 1.0.0.0"),
    ("dst port > 79 & 1 = 0", "dst port > 79 and dst port & 1 = 0"),
    ("ether dst host & 1:0:0:0:0:0 = 1:0:0:0:0:0", "ether[0] & 1 = 1 and ether[4:2] >= 0"),
];

#[test]
fn shorter_and_longer_forms_are_the_same_program() {
    let compile = |text: &str| Program::from_ip_classifier(&[text], &NoNames).map(|p| p.0.program_text());
    for (short, long) in SAME {
        assert_eq!(compile(short), compile(long), "{short} = {long}");
        assert!(compile(short).is_ok(), "{short}");
    }
}

struct Table;

impl Names for Table {
    fn ip(&self, name: &str) -> Option<[u8; 4]> {
        ["gate", "gate:ip", "www"].contains(&name).then_some([10, 0, 0, 1])
    }
    fn net(&self, name: &str) -> Option<([u8; 4], [u8; 4])> {
        ["gate", "lan"].contains(&name).then_some(([10, 0, 0, 0], [255, 0, 0, 0]))
    }
    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        ["gate", "nic"].contains(&name).then_some([0, 1, 2, 3, 4, 5])
    }
    fn port(&self, name: &str, proto: Option<u8>) -> Option<u16> {
        match (name, proto) {
            ("syslog", Some(17)) => Some(514),
            ("syslog", _) => Some(601),
            ("ssh", _) => Some(2222),
            _ => None,
        }
    }
    fn service(&self, name: &str, proto: Option<u8>) -> Option<u16> {
        match (name, proto) {
            ("ldap", Some(17)) => Some(390),
            ("ldap", _) => Some(389),
            ("gate", _) => Some(9),
            ("ssh" | "www", _) => Some(1),
            _ => None,
        }
    }
}

#[test]
fn names_from_outside() {
    let compile = |text: &str| Program::from_ip_classifier(&[text], &Table).map(|p| p.0.program_text());
    for (name, literal) in [
        ("src gate", "src host 10.0.0.1"),
        ("gate:ip", "host 10.0.0.1"),
        ("net gate", "net 10/8"),
        ("src lan", "src net 10/8"),
        ("src host gate or lan", "src host 10.0.0.1 or src net 10/8"),
        ("ether src gate", "ether src 0:1:2:3:4:5"),
        ("nic", "ether host 0:1:2:3:4:5"),
        ("udp port syslog", "udp port 514"),
        ("tcp port syslog", "tcp port 601"),
        ("port ssh", "port 2222"),
        ("port www", "port 80"),
        ("src port ldap", "src port 389"),
        ("src ldap or udp ldap", "src port 389 or udp src port 390"),
        ("gate or port gate", "host 10.0.0.1 or port 9"),
    ] {
        assert_eq!(compile(name), compile(literal), "{name}");
    }
    let error = compile("www").unwrap_err().remove(0);
    assert_eq!(error.expected.as_deref(), Some("'host www' or 'port www'"));
}

#[test]
fn fragments_as_the_reference_has_them() {
    let first = packet(flow("tcp", "1.0.0.1", 1, "2.0.0.2", 80));
    let mut later = first.clone();
    later[6..8].copy_from_slice(&[0x00, 0x05]);
    let mut other = first.clone();
    other[22..24].copy_from_slice(&[0, 81]);
    let out = |rules: &[&str], p: &[u8]| {
        Program::from_ip_filter(rules, &NoNames, 1).unwrap().0.classify_ip(p).port()
    };
    let rules = ["deny tcp port 80", "allow all"];
    assert_eq!([out(&rules, &first), out(&rules, &later), out(&rules, &other)], [None, Some(0), Some(0)]);
    let rules = ["allow not tcp port 80"];
    assert_eq!([out(&rules, &first), out(&rules, &later), out(&rules, &other)], [None, Some(0), Some(0)]);
    let rules = ["allow port != 80"];
    assert_eq!([out(&rules, &first), out(&rules, &later), out(&rules, &other)], [None, None, Some(0)]);
}
