// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares packets made from the text of tcpdump with the packets that tcpdump printed.
#![allow(clippy::unwrap_used)]

use castanet_io::summary::{Draft, Item, Making, SummaryReader};
use std::path::PathBuf;

fn trace(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conf/traces").join(name)
}

/// The packets of a text (time in microseconds, and bytes), and the number of lines that could not be parsed.
fn packets(name: &str) -> (Vec<(i64, Vec<u8>)>, u64) {
    packets_of(SummaryReader::open_tcpdump(trace(name)).unwrap())
}

fn packets_of(mut reader: SummaryReader) -> (Vec<(i64, Vec<u8>)>, u64) {
    let (mut draft, mut out) = (Draft::default(), Vec::new());
    loop {
        match reader.next(&mut draft).unwrap() {
            Item::Record => {
                let mut data = Vec::new();
                let making = Making { checksum: false, most: 4000, part: (0, 1) };
                let made = draft.make(reader.defaults(), making, &mut data);
                out.push((made.time / 1000, data));
            }
            Item::End => return (out, reader.bad_lines()),
            Item::Nothing | Item::Problem(_) => {}
        }
    }
}

/// Asserts that both packets have the same bytes in each of the ranges.
fn same(what: &str, time: i64, made: &[u8], real: &[u8], ranges: &[(usize, usize)]) {
    for &(from, to) in ranges {
        assert_eq!(made.get(from..to), real.get(from..to), "{what} at {time}: bytes {from} to {to}");
    }
}

#[test]
fn packets_are_those_that_were_printed() {
    let mut reader = castanet_io::CaptureReader::open(trace("ip-router-eth0.pcap")).unwrap();
    let mut frames = std::collections::HashMap::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        frames.insert(frame.time_ns / 1000, frame.data.to_vec());
    }
    for (file, detailed) in [("tcpdump.txt", false), ("tcpdump-v.txt", true)] {
        let (made, bad) = packets(file);
        let (mut compared, mut segments) = (0, 0);
        for (time, made) in made {
            let real = &frames[&time][14..];
            let total = usize::from(u16::from_be_bytes([real[2], real[3]]));
            // Skip packets with IP options, which the text does not show, and packets that are truncated or
            // malformed.
            if real[0] != 0x45 || total > real.len() || total < 28 {
                continue;
            }
            let first = u16::from_be_bytes([real[6], real[7]]) & 0x1fff == 0;
            compared += 1;
            same(file, time, &made, real, &[(9, 10), (12, 20)]);
            if detailed {
                same(file, time, &made, real, &[(0, 9)]);
            } else if first && real[6] & 0x20 == 0 && made[2..4] != [0, 28] {
                // For some application protocols, tcpdump does not print the length.
                same(file, time, &made, real, &[(2, 4)]);
            }
            match real[9] {
                6 if first && total >= 40 => {
                    segments += 1;
                    same(file, time, &made, real, &[(20, 24), (28, 36)]);
                    // The sequence number is not printed if the segment has no data and none of the flags
                    // FIN, SYN and RST.
                    if total > 40 || real[33] & 7 != 0 {
                        same(file, time, &made, real, &[(24, 28)]);
                    }
                }
                17 if first => same(file, time, &made, real, &[(20, 24)]),
                1 if first && matches!(real[20], 0 | 8) => {
                    same(file, time, &made, real, &[(20, 22), (24, 28)])
                }
                1 if first => same(file, time, &made, real, &[(20, 22)]),
                _ => {}
            }
        }
        assert!(compared > 80 && segments > 20 && bad < 5, "{file}: {compared} {segments} {bad}");
    }
}

/// The packets of some lines, and the number of lines that could not be parsed.
fn read(text: &str) -> (Vec<(i64, Vec<u8>)>, u64) {
    packets_of(SummaryReader::tcpdump_from_bytes("text", text).unwrap())
}

/// Bytes from hexadecimal digits.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|d| (d[0] << 4 | d[1]) as u8).collect()
}

#[test]
fn every_form_of_a_line() {
    for (line, bytes) in [
        // The form before version 4.
        (
            "1.0.0.1.1024 > 2.0.0.2.80: S 7:7(0) ack 9 win 512 <mss 1460,nop,wscale 7> (DF) [tos 0x12] (ttl 64, id 5, len 48)",
            "45120030 00054000 40060000 01000001 02000002 0400 0050 00000007 00000009 7012 0200 0000 0000 020405b4 01 030307",
        ),
        (
            "1.0.0.1.1024 > 2.0.0.2.80: FP 1:1(0) win 5 urg 3",
            "45000028 00000000 64060000 01000001 02000002 0400 0050 00000001 00000000 5009 0005 0000 0003",
        ),
        (
            "1.0.0.1.1024 > 2.0.0.2.80: . ack 9 win 5",
            "45000028 00000000 64060000 01000001 02000002 0400 0050 00000000 00000009 5010 0005 0000 0000",
        ),
        (
            "1.0.0.1.53 > 2.0.0.2.53:  udp 0 (ttl 3, id 1)",
            "4500001c 00010000 03110000 01000001 02000002 00350035 00080000",
        ),
        ("1.0.0.1 > 2.0.0.2: (frag 9:0@1480+)", "45000014 000920b9 64ff0000 01000001 02000002"),
        (
            "1.0.0.1 > 2.0.0.2: icmp: echo reply",
            "4500001c 00000000 64010000 01000001 02000002 00000000 00000000",
        ),
        // The current form.
        (
            "IP 1.0.0.1.1024 > 2.0.0.2.domain: Flags [SEW], seq 7, win 5, options [sackOK,TS val 1 ecr 2,nop,nop], length 0",
            "45000038 00000000 64060000 01000001 02000002 0400 0035 00000007 00000000 90c2 0005 0000 0000 0402 080a 00000001 00000002 01 01 0000",
        ),
        (
            "IP 1.0.0.1.1024 > 2.0.0.2.80: Flags [R.], ack 9, win 0, options [sack 1 {5:6}], length 0",
            "45000034 00000000 64060000 01000001 02000002 0400 0050 00000000 00000009 8014 0000 0000 0000 050a 00000005 00000006 0000",
        ),
        (
            "IP 1.0.0.1.7 > 2.0.0.2.7: tcp 0",
            "45000028 00000000 64060000 01000001 02000002 00070007 00000000 00000000 50000000 00000000",
        ),
        (
            "IP 1.0.0.1 > 2.0.0.2: ICMP 3.0.0.3 udp port 9 unreachable, length 8",
            "4500001c 00000000 64010000 01000001 02000002 03030000 00000000",
        ),
        (
            "IP 1.0.0.1 > 2.0.0.2: ICMP echo request, id 1, seq 2, length 8",
            "4500001c 00000000 64010000 01000001 02000002 08000000 00010002",
        ),
        ("IP 1.0.0.1 > 2.0.0.2: GREv0, length 0", "45000014 00000000 642f0000 01000001 02000002"),
        ("IP 1.0.0.1 > 2.0.0.2: ip-proto-99 0", "45000014 00000000 64630000 01000001 02000002"),
        (
            "IP (tos 0x3,CE, ttl 2, id 1, offset 8, flags [+, DF], proto UDP (17), length 20, options (NOP))\n    1.0.0.1 > 2.0.0.2: ip-proto-17",
            "45030014 00016001 02110000 01000001 02000002",
        ),
    ] {
        let (packets, bad) = read(line);
        assert_eq!((packets.len(), bad), (1, 0), "{line}");
        assert_eq!(packets[0].1, hex(bytes), "{line}");
    }
}

#[test]
fn every_form_of_a_time() {
    let times = |text: &str| read(text).0.iter().map(|p| p.0).collect::<Vec<_>>();
    let packet = "IP 1.0.0.1 > 2.0.0.2: ICMP echo reply, id 1, seq 2, length 8";
    assert_eq!(times(&format!("12.000034 {packet}\n{packet}")), [12_000_034, 0]);
    assert_eq!(times(&format!("2000-03-01 00:00:01.5 {packet}")), [951_868_801_500_000]);
    assert_eq!(times(&format!("1970-01-01 01:00:00.000000 {packet}")), [3_600_000_000]);
    // If the time of day goes back by more than 12 hours, times without a date belong to the next day.
    let day = 86_400_000_000_i64;
    let text = ["23:59:59.000001", "00:00:01.000002", "00:00:00.9", "23:00:00", "01:00:00"];
    let text: String = text.iter().map(|t| format!("{t} {packet}\n")).collect();
    let hour = day / 24;
    assert_eq!(
        times(&text),
        [day - 999_999, day + 1_000_002, day + 900_000, day + 23 * hour, 2 * day + hour]
    );
}

#[test]
fn other_lines_are_left_out_and_bad_ones_are_counted() {
    for (text, bad) in [
        ("1.0 ARP, Request who-has 1.0.0.1 tell 1.0.0.5, length 28\n1.0 IP6 ::1.7 > ::1.7: UDP, length 3", 0),
        ("\t0x0000:  4500 0014\n    1.0.0.1 > 2.0.0.2: details of nothing\n\n", 0),
        ("1.0 IP (tos 0x0, ttl 1, id 1, offset 0, flags [none], proto UDP (17), length 20)", 0),
        (
            "nonsense\n1.0 IP a.b > c.d: tcp 3\n1.0 IP 1.0.0.1.nosuchport > 2.0.0.2.3: tcp 3\n1.0 IP 1.0.0.1 > 2.0.0.2",
            4,
        ),
        ("1.0 IP 1.0.0 > 2.0.0.2: tcp 3\n1.0 IP 1.0.0.1.65536 > 2.0.0.2.1: tcp 1\n1.0 (", 3),
    ] {
        assert_eq!(read(text), (Vec::new(), bad), "{text}");
    }
}
