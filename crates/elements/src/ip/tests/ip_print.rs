// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of IPPrint.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::handover::testing::{hand_over, prepare};
use castanet_element::kit::{Kit, packet};
use castanet_element::run_loop::Internals as _;

const SRC: [u8; 4] = [10, 0, 0, 1];
const DST: [u8; 4] = [10, 0, 0, 2];

/// A packet with this transport part. `fragment` is the header word with flags and fragment offset.
fn ip(protocol: u8, fragment: u16, transport: &[u8]) -> Vec<u8> {
    let total = u16::try_from(20 + transport.len()).unwrap().to_be_bytes();
    let [f0, f1] = fragment.to_be_bytes();
    let mut data = vec![0x45, 0x10, total[0], total[1], 0, 7, f0, f1, 64, protocol, 0, 0];
    data.extend(SRC.iter().chain(&DST).chain(transport));
    data
}

fn print(config: &str, data: &[u8]) -> String {
    let mut kit = Kit::<IpPrint>::new(&format!("{config}, TIMESTAMP false")).unwrap();
    let mut p = packet(data);
    p.set_network_header(0, 20);
    let out = kit.act([p]);
    assert_eq!(out[0].1.data(), data);
    kit.messages().join("|")
}

const UDP: [u8; 12] = [3, 0xe8, 7, 0xd0, 0, 12, 0, 0, b'a', b'b', b'c', b'd'];

fn tcp(flags: u8) -> Vec<u8> {
    let mut t = vec![3, 0xe8, 7, 0xd0, 0, 0, 0, 100, 0, 0, 0, 200, 0x50, flags, 0x10, 0, 0, 0, 0, 0];
    t.extend(b"abcd");
    t
}

/// An ICMP message that quotes a UDP packet from 10.0.0.3 to 10.0.0.4, port 2000.
fn icmp(kind: u8, code: u8, mtu: u8) -> Vec<u8> {
    let mut m = vec![kind, code, 0, 0, 0, 0, 5, mtu];
    let mut quoted = ip(17, 0, &UDP);
    quoted[16..20].copy_from_slice(&[10, 0, 0, 4]);
    m.extend(quoted);
    m
}

#[test]
fn bodies() {
    let ports = "10.0.0.1.1000 > 10.0.0.2.2000: ";
    let hosts = "10.0.0.1 > 10.0.0.2: ";
    let echo = [8, 0, 0, 0, 0, 1, 0, 2];
    let table: Vec<(Vec<u8>, String)> = vec![
        (ip(17, 0, &UDP), format!("{ports}udp 12")),
        (ip(17, 0, &UDP[..7]), format!("{ports}truncated-udp")),
        (ip(17, 0, &UDP[..3]), format!("{hosts}truncated-udp")),
        (ip(6, 0, &tcp(0x12)), format!("{ports}S 100:105(5,44,44) ack 200 win 4096")),
        (ip(6, 0, &tcp(0x10)), format!("{ports}. 100:104(4,44,44) ack 200 win 4096")),
        (ip(6, 0, &tcp(0x0f)), format!("{ports}SFRP 100:106(6,44,44) win 4096")),
        (ip(6, 0, &tcp(0x30)), format!("{ports}. 100:104(4,44,44) ack 200 win 4096")),
        (ip(6, 0, &tcp(0x10))[..34].to_vec(), format!("{ports}. 100:104(4,34,44) ack 200truncated-tcp")),
        (ip(6, 0, &tcp(0x10))[..33].to_vec(), format!("{ports}truncated-tcp")),
        (ip(17, 0x2000, &UDP), format!("{ports}udp 12 (frag 7:12@0+)")),
        (ip(17, 0x2001, &UDP[..8]), format!("{hosts}udp (frag 7:8@8+)")),
        (ip(17, 2, &UDP[..8]), format!("{hosts}udp (frag 7:8@16)")),
        (ip(50, 0, &UDP), format!("{hosts}ip-proto-50")),
        (ip(50, 2, &UDP), format!("{hosts}ip-proto-50 (frag 7:12@16)")),
        (ip(1, 0, &echo), format!("{hosts}icmp echo (1, 2)")),
        (ip(1, 0, &[0, 0, 0, 0, 1, 0, 0, 2]), format!("{hosts}icmp echo-reply (256, 2)")),
        (ip(1, 0, &echo[..7]), format!("{hosts}icmp echo truncated-icmp")),
        (ip(1, 0, &[8]), format!("{hosts}truncated-icmp")),
        (ip(1, 1, &echo), format!("{hosts}icmp (frag 7:8@8)")),
        (ip(1, 0, &icmp(3, 3, 0)), format!("{hosts}icmp 10.0.0.4 unreachable port udp/2000")),
        (ip(1, 0, &icmp(3, 2, 0)), format!("{hosts}icmp 10.0.0.4 unreachable protocol udp")),
        (ip(1, 0, &icmp(3, 4, 220)), format!("{hosts}icmp 10.0.0.4 unreachable needfrag (mtu 1500)")),
        (ip(1, 0, &icmp(3, 1, 0)), format!("{hosts}icmp 10.0.0.4 unreachable host")),
        (ip(1, 0, &icmp(3, 30, 0)), format!("{hosts}icmp 10.0.0.4 unreachable code 30")),
        (ip(1, 0, &icmp(3, 1, 0)[..20]), format!("{hosts}icmp unreachable host truncated-icmp")),
        (ip(1, 0, &icmp(11, 0, 0)), format!("{hosts}icmp timeexceeded transit")),
        (ip(1, 0, &icmp(11, 9, 0)), format!("{hosts}icmp timeexceeded code 9")),
        (ip(1, 0, &[13, 0]), format!("{hosts}icmp timestamp")),
        (ip(1, 0, &[77, 3]), format!("{hosts}icmp type 77 code 3")),
        (vec![0x45; 19], "truncated-ip".into()),
    ];
    for (data, want) in table {
        assert_eq!(print("l", &data), format!("l: {want}"));
    }
    let mut short = ip(17, 0, &UDP);
    short[3] = 19;
    assert_eq!(print("", &short), format!("{hosts}truncated-udp"));
    assert_eq!(print("SWAP false", &ip(1, 0, &echo)), format!("{hosts}icmp echo (256, 512)"));
}

#[test]
fn what_stands_before_the_body() {
    let data = ip(17, 0, &UDP);
    let body = "10.0.0.1.1000 > 10.0.0.2.2000: udp 12";
    assert_eq!(
        print("LENGTH true, TOS true, TTL true, ID true", &data),
        format!("id 7 ttl 64 tos 16 length 32 {body}")
    );
    assert_eq!(print("ID true", &data[..19]), "truncated-ip");
    for (config, time, want) in [
        ("a, AGGREGATE true", 1_500_000_000, "a: 1.500000: #7: "),
        ("a, PAINT true", 2_123_456_789, "a: 2.123456789: paint 3: "),
        ("AGGREGATE true, PAINT true", 0, "0.000000: #7.3: "),
    ] {
        let mut kit = Kit::<IpPrint>::new(config).unwrap();
        let mut p = packet(&data);
        p.set_network_header(0, 20);
        p.set_paint(3);
        p.set_anno_u32(castanet_spec::anno::AGGREGATE, 7);
        p.set_timestamp(time);
        kit.act([p]);
        assert_eq!(kit.messages(), [format!("{want}{body}")]);
    }
}

#[test]
fn dumps() {
    let data = ip(17, 0, &UDP);
    let body = "10.0.0.1.1000 > 10.0.0.2.2000: udp 12";
    let hex = "\n  45100020 00070000 40110000 0a000001 0a000002 03e807d0\n  000c0000 61626364";
    assert_eq!(print("CONTENTS HEX", &data), format!("{body}{hex}"));
    assert_eq!(print("CONTENTS true", &data), format!("{body}{hex}"));
    assert_eq!(print("CONTENTS ASCII, MAXLENGTH 10", &data), format!("{body}\n  E.. .... @."));
    assert_eq!(print("PAYLOAD ASCII", &data), format!("{body}\n  abcd"));
    assert_eq!(print("PAYLOAD hex, NBYTES 2", &data), format!("{body}\n  6162"));
    assert_eq!(print("PAYLOAD ASCII", &ip(6, 0, &tcp(0x10))).lines().nth(1), Some("  abcd"));
    assert_eq!(print("PAYLOAD ASCII", &ip(17, 0, &UDP[..8])).lines().count(), 1);
    assert_eq!(
        print("CONTENTS ASCII", &ip(50, 0, &[b'x'; 60])).lines().nth(2),
        Some("  xxxxxxxx xxxxxxxx xxxxxxxx xxxxxxxx")
    );
    let error = |config: &str| Kit::<IpPrint>::new(config).err().unwrap();
    assert_eq!(error("PAYLOAD HEX, CONTENTS HEX"), ["specify at most one of PAYLOAD and CONTENTS"]);
    let bad = "CONTENTS: bad contents value 'FOO'; should be 'NONE', 'HEX', or 'ASCII'";
    assert_eq!(error("CONTENTS FOO"), [bad]);
}

#[test]
fn switched_off_unmarked_and_of_any_length() {
    let mut kit = Kit::<IpPrint>::new("ACTIVE false").unwrap();
    let marked = |data: &[u8]| {
        let mut p = packet(data);
        p.set_network_header(0, 60);
        p
    };
    assert_eq!(kit.act([marked(&ip(17, 0, &UDP))]).len(), 1);
    assert!(kit.messages().is_empty());
    kit.write("active", "true").unwrap();
    assert_eq!(kit.act([packet(&ip(17, 0, &UDP))]).len(), 1);
    assert!(kit.messages().is_empty(), "no network header");
    for protocol in [1, 6, 17, 50] {
        for first in [0x45, 0x4f, 0x40] {
            let mut data = ip(protocol, 0, &icmp(3, 3, 0));
            data[0] = first;
            for len in 0..data.len() {
                assert_eq!(kit.act([marked(&data[..len])]).len(), 1);
            }
        }
    }
}

#[test]
fn a_channel_is_not_the_standard_error() {
    assert_eq!(print("CHANNEL other", &ip(50, 0, &[])), "");
}

#[test]
fn to_a_file() {
    let folder = std::env::temp_dir().join(format!("castanet-ip-print-{}", std::process::id()));
    let name = folder.join("out").display().to_string();
    assert!(Kit::<IpPrint>::new(&format!("OUTFILE {name}")).is_err());
    std::fs::create_dir_all(&folder).unwrap();
    let mut kit = Kit::<IpPrint>::new(&format!("x, TIMESTAMP false, OUTFILE {name}")).unwrap();
    for _ in 0..2 {
        let mut p = packet(&ip(50, 0, &[]));
        p.set_network_header(0, 20);
        kit.act([p]);
    }
    kit.cleanup().unwrap();
    assert!(kit.messages().is_empty());
    let line = "x: 10.0.0.1 > 10.0.0.2: ip-proto-50\n";
    assert_eq!(std::fs::read_to_string(&name).unwrap(), line.repeat(2));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(kit.element.effects(Effects::empty()), Effects::FILES);
}

#[test]
fn a_file_is_emptied_when_the_router_runs_and_moves_to_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let config = format!("x, TIMESTAMP false, OUTFILE {}", path.display());
    let text = || std::fs::read_to_string(&path).unwrap();
    let line = |kit: &mut Kit<IpPrint>| {
        let mut p = packet(&ip(50, 0, &[]));
        p.set_network_header(0, 20);
        kit.act([p]);
    };
    // The router did not run.
    let mut kit = Kit::<IpPrint>::new(&config).unwrap();
    kit.cleanup().unwrap();
    assert!(!path.exists());
    std::fs::write(&path, "what was there before").unwrap();
    let mut kit = Kit::<IpPrint>::new(&config).unwrap();
    kit.cleanup().unwrap();
    assert_eq!(text(), "what was there before");
    // The router ran and printed nothing.
    let mut kit = Kit::<IpPrint>::new(&config).unwrap();
    kit.with(|_, cx| cx.core().timers().clear());
    kit.cleanup().unwrap();
    assert_eq!(text(), "");
    let mut old = Kit::<IpPrint>::new(&config).unwrap();
    old.with(|_, cx| cx.core().timers().clear());
    line(&mut old);
    let mut new = Kit::<IpPrint>::new("").unwrap();
    prepare(&mut new, &config, 1, 1);
    new.cleanup().unwrap();
    prepare(&mut new, &config, 1, 1);
    hand_over(&mut old, &mut new);
    hand_over(&mut new, &mut old);
    line(&mut old);
    hand_over(&mut old, &mut new);
    old.cleanup().unwrap();
    line(&mut new);
    new.cleanup().unwrap();
    assert_eq!(text(), "x: 10.0.0.1 > 10.0.0.2: ip-proto-50\n".repeat(3));
}
