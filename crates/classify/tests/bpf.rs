// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares capture filters with those compiled by tcpdump, on the same frames.
#![allow(clippy::unwrap_used)]

use castanet_classify::NoNames;
use castanet_classify::bpf::{Frames, Instruction, compile};
use etherparse::PacketBuilder;
use std::process::Command;

/// Interprets a program as McCanne and Jacobson (1993) describe, and returns its result for a frame.
fn run(program: &[Instruction], frame: &[u8]) -> u32 {
    let (mut a, mut x, mut m, mut pc) = (0u32, 0u32, [0u32; 16], 0usize);
    let load = |at: Option<u32>, n: usize| -> Option<u32> {
        let at = at? as usize;
        Some(frame.get(at..at.checked_add(n)?)?.iter().fold(0, |v, b| v << 8 | u32::from(*b)))
    };
    loop {
        let i = program[pc];
        pc += 1;
        let size = match i.code & 0x18 {
            0x00 => 4,
            0x08 => 2,
            _ => 1,
        };
        let source = if i.code & 8 != 0 { x } else { i.k };
        match i.code & 7 {
            0 => {
                let v = match i.code & 0xe0 {
                    0x00 => Some(i.k),
                    0x20 => load(Some(i.k), size),
                    0x40 => load(x.checked_add(i.k), size),
                    0x60 => Some(m[i.k as usize]),
                    _ => Some(frame.len() as u32),
                };
                let Some(v) = v else { return 0 };
                a = v;
            }
            1 => {
                let v = match i.code & 0xe0 {
                    0x00 => Some(i.k),
                    0x60 => Some(m[i.k as usize]),
                    0x80 => Some(frame.len() as u32),
                    _ => load(Some(i.k), 1).map(|b| (b & 15) * 4),
                };
                let Some(v) = v else { return 0 };
                x = v;
            }
            2 => m[i.k as usize] = a,
            3 => m[i.k as usize] = x,
            4 => {
                a = match i.code & 0xf0 {
                    0x00 => a.wrapping_add(source),
                    0x10 => a.wrapping_sub(source),
                    0x20 => a.wrapping_mul(source),
                    0x30 | 0x90 if source == 0 => return 0,
                    0x30 => a / source,
                    0x40 => a | source,
                    0x50 => a & source,
                    0x60 => a.checked_shl(source).unwrap_or(0),
                    0x70 => a.checked_shr(source).unwrap_or(0),
                    0x80 => a.wrapping_neg(),
                    0x90 => a % source,
                    _ => a ^ source,
                }
            }
            5 if i.code & 0xf0 == 0 => pc += i.k as usize,
            5 => {
                let yes = match i.code & 0xf0 {
                    0x10 => a == source,
                    0x20 => a > source,
                    0x30 => a >= source,
                    _ => a & source != 0,
                };
                pc += usize::from(if yes { i.jt } else { i.jf });
            }
            6 => return if i.code & 0x18 == 0x10 { a } else { i.k },
            _ if i.code & 0xf8 == 0 => x = a,
            _ => a = x,
        }
    }
}

/// Whether the kernel would accept a program. All instructions must be known, jumps must lead forward inside the
/// program, and at most 16 memory words may be used.
fn is_sound(program: &[Instruction]) -> bool {
    let n = program.len();
    (1..=4096).contains(&n)
        && program.last().is_some_and(|i| i.code & 7 == 6)
        && program.iter().enumerate().all(|(at, i)| match i.code & 7 {
            2 | 3 => i.k < 16,
            0 | 1 if i.code & 0xe0 == 0x60 => i.k < 16,
            4 if matches!(i.code, 0x34 | 0x94) => i.k != 0,
            5 if i.code & 0xf0 == 0 => at + 1 + (i.k as usize) < n,
            5 => at + 1 + usize::from(i.jt.max(i.jf)) < n,
            _ => true,
        })
}

fn tcpdump(filter: &str, link: &str) -> Option<Vec<Instruction>> {
    let out = Command::new("tcpdump").args(["-y", link, "-ddd", "--", filter]).output().ok()?;
    assert!(out.status.success(), "tcpdump: {filter}: {}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let line = |l: &str| {
        let n: Vec<u32> = l.split_whitespace().map(|w| w.parse().unwrap()).collect();
        Instruction { code: n[0] as u16, jt: n[1] as u8, jf: n[2] as u8, k: n[3] }
    };
    Some(text.lines().skip(1).map(line).collect())
}

struct Random(u64);
impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A random frame whose fields often have values that filters test.
fn frame(r: &mut Random) -> Vec<u8> {
    let mac =
        |r: &mut Random| r.pick(&[[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]]);
    let (a, b) = (mac(r), mac(r));
    let ip = |r: &mut Random| {
        r.pick(&[[10, 0, 0, 1], [10, 0, 0, 2], [10, 1, 2, 3], [192, 168, 1, 1], [224, 0, 0, 5], [255; 4]])
    };
    let (s, d) = (ip(r), ip(r));
    let ip6 = |r: &mut Random| {
        let mut x = [0; 16];
        x[..4].copy_from_slice(&r.pick(&[[0x20, 1, 0x0d, 0xb8], [0xfe, 0x80, 0, 0], [0xff, 2, 0, 0]]));
        x[15] = r.pick(&[1, 2]);
        x
    };
    let (s6, d6) = (ip6(r), ip6(r));
    let ports = [22, 53, 80, 443, 5000, 5005, 5010, 65535];
    let (sp, dp) = (r.pick(&ports), r.pick(&ports));
    let payload: Vec<u8> = (0..r.below(90)).map(|_| r.below(256) as u8).collect();
    let base = PacketBuilder::ethernet2(a, b);
    let mut out = Vec::new();
    let mut six = false;
    let net = match r.below(8) {
        0 => {
            out.extend([b, a].concat());
            out.extend(r.pick(&[0x0806u16, 0x8035, 0x88b5, 100]).to_be_bytes());
            out.extend([0, 1, 8, 0, 6, 4, 0, 1]);
            out.extend([&a[..], &s, &b, &d].concat());
            out.extend(&payload);
            None
        }
        1 | 2 => {
            six = true;
            Some(base.ipv6(s6, d6, 9))
        }
        _ => Some(base.ipv4(s, d, r.pick(&[1, 64]))),
    };
    if let Some(net) = net {
        match r.below(6) {
            0 | 1 => net.udp(sp, dp).write(&mut out, &payload).unwrap(),
            2 | 3 => {
                let mut t = etherparse::TcpHeader::new(sp, dp, 1, 2);
                (t.syn, t.ack, t.fin, t.rst) =
                    (r.below(2) > 0, r.below(2) > 0, r.below(4) == 0, r.below(4) == 0);
                net.tcp_header(t).write(&mut out, &payload).unwrap();
            }
            _ if six => net.icmpv6_echo_request(1, 2).write(&mut out, &payload).unwrap(),
            _ => net.icmpv4_echo_request(1, 2).write(&mut out, &payload).unwrap(),
        }
        // Varies protocol, fragment, options and type of service.
        if r.below(4) == 0 {
            out[if six { 20 } else { 23 }] = r.pick(&[1, 2, 6, 17, 44, 47, 50, 51, 58, 103, 112, 132]);
        }
        if !six {
            if r.below(4) == 0 {
                let flags = r.pick(&[0x2000u16, 0x4000, 0x2010, 0x0001, 0x1fff]);
                out[20..22].copy_from_slice(&flags.to_be_bytes());
            }
            if r.below(5) == 0 {
                out[14] = r.pick(&[0x46, 0x4f, 0x40]);
            }
            out[15] = r.pick(&[0, 0xb8]);
        }
    }
    for _ in 0..r.below(5).saturating_sub(2) {
        let kind = r.pick(&[0x8100u16, 0x8100, 0x88a8, 0x9100]);
        let id = r.pick(&[0u16, 5, 0x6005, 100]);
        out.splice(12..12, [kind.to_be_bytes(), id.to_be_bytes()].concat());
    }
    out
}

const FILTERS: &[&str] = &[
    "",
    "ip",
    "ip6",
    "arp",
    "rarp",
    "tcp",
    "udp",
    "sctp",
    "icmp",
    "icmp6",
    "igmp",
    "ah",
    "esp",
    "pim",
    "ip proto 17",
    "ip proto \\tcp",
    "ip6 proto 58",
    "proto 6",
    "proto \\udp",
    "ether proto 0x88b5",
    "ether proto \\arp",
    "ether proto \\ip6",
    "host 10.0.0.1",
    "src host 10.0.0.1",
    "dst host 10.0.0.2",
    "src 10.0.0.1",
    "ip host 10.0.0.1",
    "arp host 10.0.0.1",
    "src or dst host 10.0.0.1",
    "src and dst host 10.0.0.1",
    "not host 10.0.0.1",
    "host 2001:db8::1",
    "src host 2001:db8::1",
    "ip6 dst host fe80::2",
    "net 2001:db8::/32",
    "src net fe80::/10",
    "net ::/0",
    "net 10.0.0.0/8",
    "net 10",
    "src net 10.0",
    "dst net 10.0.0.0 mask 255.255.255.0",
    "net 192.168.1.0/24",
    "net 0.0.0.0/0",
    "net 10.1.2.3",
    "port 80",
    "src port 80",
    "dst port 80",
    "tcp port 80",
    "udp port 53",
    "tcp dst port 443",
    "src or dst port 22",
    "src and dst port 80",
    "portrange 5000-5010",
    "tcp src portrange 5000-5005",
    "udp dst portrange 20-80",
    "port domain",
    "tcp port https",
    "not port 22",
    "sctp port 80",
    "ether host 02:00:00:00:00:01",
    "ether src 2:0:0:0:0:2",
    "ether dst ff:ff:ff:ff:ff:ff",
    "broadcast",
    "ether broadcast",
    "multicast",
    "ether multicast",
    "ip multicast",
    "ip6 multicast",
    "not broadcast and not multicast",
    "less 80",
    "greater 80",
    "len > 100",
    "len <= 64",
    "len - 10 < 60",
    "100 > len",
    "len = 60 or len != 60",
    "ip[0] & 0xf != 5",
    "ip[6:2] & 0x1fff = 0",
    "ip[8] < 5",
    "ip[2:2] > 60",
    "ip[12:4] = 0x0a000001",
    "ether[0] & 1 = 0",
    "ether[12:2] > 1500",
    "tcp[13] & 2 != 0",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "tcp[tcpflags] == tcp-syn",
    "tcp[(tcp[12] >> 4) * 4] > 100",
    "udp[4:2] > 20",
    "udp[8:4] & 0xff00 = 0x1200 or udp[4:2]<40",
    "icmp[icmptype] = icmp-echo",
    "icmp[0] == 8 and icmp[1] = 0",
    "ip6[6] = 17",
    "arp[6:2] = 1",
    "icmp6[0] = 128",
    "not tcp[13] & 2 != 0",
    "ip[8] * 2 + 1 > ip[9]",
    "ip[9] - ip[8] > 5",
    "ip[8] + ip[9] = ip[15] ^ 3",
    "ip[2:2] % 7 = 3",
    "ip[2:2] / 10 > 6",
    "ip[ip[0] & 0xf] = 0",
    "ip[9] << 2 > 40",
    "-ip[8] > 5",
    "1 + 2 * 3 = 7",
    "(1 + 2) * 3 = 9",
    "1 | 2 & 2 = 3",
    "(6 ^ 3) & 1 = 1",
    "ip[0] + ip[1] + ip[2] + ip[3] + ip[8] + ip[9] + ip[10] + ip[11] + ip[12] + ip[13] + ip[14] + ip[15] + ip[16] + ip[17] + ip[18] > 900",
    "ip[8] > ip[9]",
    "ip[9] >= ip[8]",
    "ip[8] != ip[9]",
    "tcp[0:2] < tcp[2:2]",
    "udp[0:2] = 80 and ip[9] = 17",
    "tcp and port 80",
    "tcp or udp and port 80",
    "tcp port 80 or 443",
    "host 10.0.0.1 or 10.0.0.2 and tcp",
    "port 80 and not (src host 10.0.0.1 or 192.168.1.1)",
    "host (10.0.0.1 or 10.0.0.2)",
    "tcp port (80 or 443)",
    "not (tcp or udp)",
    "! tcp && ! udp",
    "not not tcp",
    "tcp dst port 80 and not src net 10.0.0.0/8",
    "((((ip))))",
    "dst port (22 or 53 or 80) and ip[8] > 1",
    "ip and (tcp[13] & 1 != 0 or udp port 53)",
    "(ip[8] + 1) * 2 > 100",
    "vlan",
    "vlan 5",
    "vlan and ip",
    "vlan 5 and tcp port 80",
    "vlan and vlan 5",
    "vlan 5 and vlan and host 10.0.0.1",
    "not vlan",
    "vlan 100 or ip",
    "(vlan 5 and ip) or arp",
];

#[test]
fn filters_accept_the_same_frames_as_tcpdump() {
    if tcpdump("ip", "EN10MB").is_none() {
        return println!("SKIP: tcpdump is not installed");
    }
    let mut r = Random(0x1234_5678_9abc);
    let frames: Vec<Vec<u8>> = (0..1500).map(|_| frame(&mut r)).collect();
    for filter in FILTERS {
        let program = compile(filter, Frames::Ethernet, &NoNames).unwrap_or_else(|e| panic!("{filter}: {e}"));
        assert!(is_sound(&program), "{filter}: {program:?}");
        let other = tcpdump(filter, "EN10MB").unwrap();
        let mut taken = 0;
        for f in &frames {
            let (got, want) = (run(&program, f) != 0, run(&other, f) != 0);
            assert_eq!(got, want, "{filter} on {f:02x?}");
            taken += usize::from(got);
        }
        assert!(
            taken > 0 || filter.contains("sctp"),
            "{filter} takes none of the frames: the test shows nothing"
        );
    }
}

#[test]
fn filters_without_link_header_accept_the_same_packets_as_tcpdump() {
    if tcpdump("ip", "RAW").is_none() {
        return println!("SKIP: tcpdump is not installed");
    }
    let mut r = Random(0x9876_5432_1abc);
    let frames: Vec<Vec<u8>> = (0..1000)
        .map(|_| frame(&mut r))
        .filter(|f| matches!(f[12..14], [8, 0] | [0x86, 0xdd]))
        .map(|f| f[14..].to_vec())
        .collect();
    for filter in FILTERS {
        let link = ["ether", "vlan", "arp", "cast", "02:"].iter().any(|w| filter.contains(w))
            && *filter != "ip multicast";
        if link {
            continue;
        }
        let program = compile(filter, Frames::Ip, &NoNames).unwrap_or_else(|e| panic!("{filter}: {e}"));
        assert!(is_sound(&program), "{filter}");
        let other = tcpdump(filter, "RAW").unwrap();
        for f in &frames {
            assert_eq!(run(&program, f) != 0, run(&other, f) != 0, "{filter} on {f:02x?}");
        }
    }
}

#[test]
fn truncated_frames_are_rejected_by_filters_that_read_beyond_the_end() {
    let mut r = Random(77);
    for filter in FILTERS {
        let program = compile(filter, Frames::Ethernet, &NoNames).unwrap();
        for _ in 0..20 {
            let f = frame(&mut r);
            for len in 0..f.len().min(64) {
                run(&program, &f[..len]);
            }
        }
    }
    let takes = |filter: &str, f: &[u8]| run(&compile(filter, Frames::Ethernet, &NoNames).unwrap(), f) != 0;
    assert!(takes("", &[]) && takes("less 10", &[]) && !takes("ip", &[0; 13]) && !takes("not ip", &[0; 13]));
}

#[test]
fn the_tag_in_the_metadata_is_tested_first() {
    let program = |f| compile(f, Frames::EthernetUntagged, &NoNames).unwrap();
    let loads: Vec<u32> = program("vlan 5 and ip").iter().filter(|i| i.code & 7 == 0).map(|i| i.k).collect();
    assert_eq!(loads, [0xffff_f030, 0xffff_f02c, 12], "the frame itself is as without tag");
    let loads: Vec<u32> =
        program("vlan and vlan 5 and ip").iter().filter(|i| i.code & 0xe7 == 0x20).map(|i| i.k).collect();
    assert_eq!(loads, [0xffff_f030, 12, 12, 12, 14, 16]);
}

#[test]
fn errors_have_a_position() {
    for (filter, place, message) in [
        ("tcp prot 80", 4..8, "'tcp' has no addresses"),
        ("frobnicate", 0..10, "unknown word 'frobnicate'"),
        ("10.0.0.1", 0..8, "unknown word '10.0.0.1'"),
        ("host", 4..4, "a name is missing"),
        ("port http-or-so", 5..15, "'http-or-so' is not a valid port"),
        ("tcp port 70000", 9..14, "'70000' is not a valid port"),
        ("icmp port 80", 10..12, "'icmp' has no ports"),
        ("(tcp", 4..4, "unexpected"),
        ("tcp)", 3..4, "')' without '('"),
        ("net 10.0.0.1/8", 4..12, "'10.0.0.1' has bits outside of its mask"),
        ("net 10.0.0.0/33", 15..15, "more than 32 bits"),
        ("host 10.0.0", 5..11, "'10.0.0' is not a valid complete address"),
        ("ip[0:3] = 1", 7..7, "a number has 1, 2 or 4 bytes"),
        ("ip[0]", 5..5, "a number is not a test"),
        ("ip[0] / 0 = 1", 10..11, "division by zero"),
        ("ip[0 = 1", 5..6, "unexpected"),
        ("ip broadcast", 0..12, "'ip broadcast' needs a network mask"),
        ("tcp and", 7..7, "the filter ends here"),
        ("vlan 5000", 0..4, "VLAN numbers go up to 4095"),
        ("ether", 0..5, "'ether' needs a test"),
        ("tcp \u{fc} udp", 4..6, "the test is complete here"),
        ("host 1.2.3.4.5", 5..14, "'1.2.3.4.5' is not a valid address"),
    ] {
        let e = compile(filter, Frames::Ethernet, &NoNames).unwrap_err();
        assert!(e.message.contains(message), "{filter}: {e}");
        assert!(e.range.start <= place.end && e.range.end >= place.start, "{filter}: {e} at {:?}", e.range);
    }
    for filter in ["vlan", "ether host 1:2:3:4:5:6", "broadcast", "ether[0] = 1"] {
        assert!(compile(filter, Frames::Ip, &NoNames).is_err(), "{filter}");
    }
}

#[test]
fn long_filters_work_or_are_refused() {
    let many = |n: usize, f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<Vec<_>>().join(" or ");
    let ports =
        compile(&many(150, &|i| format!("tcp dst port {}", 1000 + i)), Frames::Ethernet, &NoNames).unwrap();
    assert!(is_sound(&ports) && ports.len() > 255);
    let mut f = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4([1; 4], [2; 4], 9)
        .tcp(1, 1149, 1, 1)
        .write(&mut f, &[])
        .unwrap();
    assert_ne!(run(&ports, &f), 0);
    f[37] = f[37].wrapping_add(1);
    assert_eq!(run(&ports, &f), 0);
    assert!(compile(&many(900, &|i| format!("port {i}")), Frames::Ethernet, &NoNames).is_err());
    assert!(compile(&many(5000, &|_| "ip".into()), Frames::Ethernet, &NoNames).is_err());
    assert!(compile(&("(".repeat(5000) + "ip"), Frames::Ethernet, &NoNames).is_err());
    assert!(compile(&("not ".repeat(5000) + "ip"), Frames::Ethernet, &NoNames).is_ok());
    assert!(compile(&("-".repeat(5000) + "1 = 1"), Frames::Ethernet, &NoNames).is_err());
    assert!(compile(&format!("{} 1 = 1", "1 + ".repeat(5000)), Frames::Ethernet, &NoNames).is_err());
}

#[test]
fn nothing_panics() {
    let mut r = Random(5);
    let words: Vec<&str> =
        FILTERS.iter().flat_map(|f| f.split_inclusive([' ', '[', ']', ':', '(', ')', '&'])).collect();
    let mut good = 0;
    for _ in 0..20_000 {
        let text: String = (0..1 + r.below(8)).map(|_| r.pick(&words)).collect();
        for frames in [Frames::Ethernet, Frames::EthernetUntagged, Frames::Ip] {
            if let Ok(p) = compile(&text, frames, &NoNames) {
                assert!(is_sound(&p), "{text}: {p:?}");
                good += 1;
            }
        }
    }
    assert!(good > 500, "{good}");
}
