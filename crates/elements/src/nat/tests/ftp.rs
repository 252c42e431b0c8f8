// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests FTPPortMapper with dialogues in both directions, as client and server see them.

use super::offload::{bytes, unfinished};
use super::*;
use crate::nat::ftp_port_mapper::FtpPortMapper;
use crate::nat::tcp_rewriter::TcpRewriter;

const CLIENT: ([u8; 4], u16) = ([1, 0, 0, 1], 5000);
const SERVER: ([u8; 4], u16) = ([2, 0, 0, 2], 21);

struct Nat {
    rig: Rig,
    ftp: FtpPortMapper,
    rw: TcpRewriter,
}

impl Nat {
    fn new(pattern: &str) -> Nat {
        let mut rig = Rig::new(&[("ftp", "FTPPortMapper"), ("rw", "TCPRewriter"), ("u", "UDPRewriter")]);
        let mut ftp: FtpPortMapper = rig.build("ftp", "rw, rw, 0", (1, 1)).unwrap();
        let mut rw: TcpRewriter = rig.build("rw", pattern, (1, 2)).unwrap();
        rig.init("ftp", &mut ftp).unwrap();
        rig.init("rw", &mut rw).unwrap();
        for bad in ["u, rw, 0", "rw, u, 0", "rw, rw", "rw, rw, x"] {
            assert!(rig.build::<FtpPortMapper>("ftp", bad, (1, 1)).is_err(), "{bad}");
        }
        let mut none: FtpPortMapper = rig.build("ftp", "rw, rw, 1", (1, 1)).unwrap();
        assert!(rig.init("ftp", &mut none).is_err());
        Nat { rig, ftp, rw }
    }
    /// Sends a packet of the client, and returns it as the server sees it.
    fn out(&mut self, mut p: Packet) -> Option<Packet> {
        let verdict = self.rig.with("ftp", 1, |cx| self.ftp.action(&mut p, cx)).0;
        match verdict {
            Verdict::Next => self.rig.push("rw", &mut self.rw, 0, vec![p]).pop().map(|x| x.1),
            _ => None,
        }
    }
    fn back(&mut self, p: Packet) -> Option<Packet> {
        self.rig.push("rw", &mut self.rw, 0, vec![p]).pop().map(|x| x.1)
    }
}

/// Returns sequence number, acknowledgement and text of a segment, and verifies its checksums.
fn said(p: &Packet) -> (u32, u32, String) {
    show(p);
    let t = etherparse::TcpSlice::from_slice(&p.data()[20..]).unwrap();
    (t.sequence_number(), t.acknowledgment_number(), String::from_utf8_lossy(t.payload()).into_owned())
}

#[test]
fn a_dialogue() {
    // The outside address is longer as text, so each of the two commands grows by 7 bytes.
    for start in [100u32, u32::MAX - 10] {
        let mut nat = Nat::new("pattern 199.199.199.199 10000-20000# - - 0 1");
        let at = |n: u32| start.wrapping_add(n);
        let outside = ([199, 199, 199, 199], 10000);
        nat.out(tcp(CLIENT, SERVER, "S", start, 0, b"")).unwrap();
        nat.back(tcp(SERVER, outside, "SA", 900, at(1), b"")).unwrap();
        let command = b"PORT 1,0,0,1,19,137\r\n";
        let send = || tcp(CLIENT, SERVER, "A", at(1), 901, command);
        let p = nat.out(send()).unwrap();
        let (seq, ack, text) = said(&p);
        assert_eq!((seq, ack, text.as_str()), (at(1), 901, "PORT 199,199,199,199,39,17\r\n"));
        let (old, new) = (command.len() as u32, text.len() as u32);
        // A retransmission gives the same bytes.
        let again = nat.out(send()).unwrap();
        assert_eq!(again.data(), p.data());
        // The server acknowledges what it received. The client sees an acknowledgement of what it sent.
        let p = nat.back(tcp(SERVER, outside, "A", 901, at(1 + new), b"200 ok\r\n")).unwrap();
        assert_eq!(said(&p), (901, at(1 + old), "200 ok\r\n".into()));
        let p = nat.out(tcp(CLIENT, SERVER, "A", at(1 + old), 909, b"RETR x\r\n")).unwrap();
        assert_eq!(said(&p), (at(1 + new), 909, "RETR x\r\n".into()));
        let p = nat.back(tcp(SERVER, outside, "A", 909, at(9 + new), b"")).unwrap();
        assert_eq!(said(&p).1, at(9 + old));
        // The server opens the data connection to the address and port in the command.
        let p = nat.back(tcp((SERVER.0, 20), (outside.0, 39 * 256 + 17), "S", 1, 0, b"")).unwrap();
        assert_eq!(show(&p), "2.0.0.2:20 > 1.0.0.1:5001");
        // A second command, with more text behind it in the same segment.
        let both = b"port 1,0,0,1,19,138\r\nNOOP\r\n";
        let p = nat.out(tcp(CLIENT, SERVER, "A", at(9 + old), 909, both)).unwrap();
        let (seq, _, text) = said(&p);
        assert_eq!((seq, text.as_str()), (at(9 + new), "port 199,199,199,199,39,18\r\nNOOP\r\n"));
        let grown = new + text.len() as u32;
        let p = nat.back(tcp(SERVER, outside, "A", 909, at(9 + grown), b"200 ok\r\n")).unwrap();
        assert_eq!(said(&p).1, at(9 + old + both.len() as u32));
        assert_eq!(nat.rig.read("rw", &mut nat.rw, "size"), "3");
    }
}

/// Segments before and behind a command whose length changed are shifted by different amounts, even in one
/// super-packet.
#[test]
fn super_packets_are_shifted_by_segments() {
    let mut nat = Nat::new("pattern 199.199.199.199 10000-20000# - - 0 1");
    nat.out(tcp(CLIENT, SERVER, "S", 100, 0, b"")).unwrap();
    nat.out(tcp(CLIENT, SERVER, "A", 101, 901, b"PORT 1,0,0,1,19,137\r\n")).unwrap();
    let whole = tcp(CLIENT, SERVER, "A", 101, 901, &[7; 50]);
    for (size, expected) in [(21, &[(101, 21), (129, 21), (150, 8)][..]), (0, &[(101, 50)])] {
        let got = nat.rig.push("rw", &mut nat.rw, 0, vec![unfinished(whole.data(), 0, size)]);
        let got: Vec<_> = got.into_iter().map(|(_, p)| p).collect();
        assert!(got.iter().all(|p| !p.has_offload()));
        let said = bytes(&got).iter().map(|b| said(&ip(b))).map(|s| (s.0, s.2.len())).collect::<Vec<_>>();
        assert_eq!(said, expected);
    }
    // A super-packet of an unknown kind is dropped and counted.
    let mut bad = unfinished(whole.data(), 0, 21);
    bad.set_offload(Some(castanet_packet::Offload { checksum: Some((20, 16)), segments: Some((77, 21)) }));
    assert!(nat.rig.push("rw", &mut nat.rw, 0, vec![bad]).is_empty());
    assert_eq!(nat.rig.dropped("rw", Reason::BadOffload), 1);
}

#[test]
fn extended_commands() {
    let mut nat = Nat::new("pattern 199.199.199.199 10000-20000# - - 0 1");
    let outside = ([199, 199, 199, 199], 10000);
    nat.out(tcp(CLIENT, SERVER, "S", 0, 0, b"")).unwrap();
    // The command is in the middle of its segment.
    let (before, command, behind) = ("NOOP\r\n", "EPRT |1|1.0.0.1|5001|\r\n", "RETR x\r\n");
    let all = format!("{before}{command}{behind}");
    let p = nat.out(tcp(CLIENT, SERVER, "A", 1, 1, all.as_bytes())).unwrap();
    let (seq, _, text) = said(&p);
    assert_eq!((seq, text.as_str()), (1, "NOOP\r\nEPRT |1|199.199.199.199|10001|\r\nRETR x\r\n"));
    // The server acknowledges the text before the command, and then everything.
    let p = nat.back(tcp(SERVER, outside, "A", 1, 7, b"")).unwrap();
    assert_eq!(said(&p).1, 7);
    let p = nat.back(tcp(SERVER, outside, "A", 1, 1 + text.len() as u32, b"")).unwrap();
    assert_eq!(said(&p).1, 1 + all.len() as u32);
    let p = nat.out(tcp(CLIENT, SERVER, "A", 1 + all.len() as u32, 1, b"NOOP\r\n")).unwrap();
    assert_eq!(said(&p).0, 1 + text.len() as u32);
    let p = nat.back(tcp((SERVER.0, 20), (outside.0, 10001), "S", 1, 0, b"")).unwrap();
    assert_eq!(show(&p), "2.0.0.2:20 > 1.0.0.1:5001");
}

#[test]
fn shorter_text() {
    let mut nat = Nat::new("pattern 9.9.9.9 1024# - - 0 1");
    let (client, server) = (([100, 100, 100, 100], 5000), SERVER);
    nat.out(tcp(client, server, "S", 0, 0, b"")).unwrap();
    let command = b"PORT 100,100,100,100,200,200\r\n";
    let mut p = tcp(client, server, "A", 1, 1, command);
    // Padding, as Ethernet adds it, is removed.
    assert!(p.put(6));
    let p = nat.out(p).unwrap();
    let text = said(&p).2;
    assert_eq!((text.as_str(), p.len()), ("PORT 9,9,9,9,4,0\r\n", 40 + text.len()));
    let p = nat.out(tcp(client, server, "A", 1 + command.len() as u32, 1, b"NOOP\r\n")).unwrap();
    assert_eq!(said(&p).0, 1 + text.len() as u32);
}

#[test]
fn refused_and_left_alone() {
    let mut nat = Nat::new("pattern 9.9.9.9 1024-2000# - - 0 1");
    // Packets of an unknown connection pass unchanged.
    let early = tcp(CLIENT, SERVER, "A", 1, 1, b"PORT 7,7,7,7,19,137\r\n");
    let before = early.data().to_vec();
    let mut p = early;
    assert_eq!(nat.rig.with("ftp", 1, |cx| nat.ftp.action(&mut p, cx)).0, Verdict::Next);
    assert_eq!(p.data(), before);
    nat.out(tcp(CLIENT, SERVER, "S", 0, 0, b"")).unwrap();
    for refused in [
        "PORT 7,7,7,7,19,137\r\n",
        "PORT 1,0,0,1,3,255\r\n",
        "PORT 1,0,0,2,4,0\n",
        "port 0,0,0,0,0,0\r\n",
        "NOOP\r\nPORT 7,7,7,7,19,137\r\n",
        "PORT 1,0,0,1,19,137\r\nPORT 7,7,7,7,19,137\r\n",
        "EPRT |1|7.7.7.7|5001|\r\n",
        "EPRT |1|1.0.0.1|1023|\r\n",
        "EPRT |2|::ffff:1.0.0.1|5001|\r\n",
        "EPRT |2|::ffff:7.7.7.7|25|\r\n",
    ] {
        let mut p = tcp(CLIENT, SERVER, "A", 1, 1, refused.as_bytes());
        let v = nat.rig.with("ftp", 1, |cx| nat.ftp.action(&mut p, cx)).0;
        assert_eq!(v, Verdict::Drop(Reason::RefusedCommand), "{refused}");
    }
    for other in [
        "",
        "P",
        "PORT ",
        "PORT 1,0,0,1,19,137",
        "PORT 1,0,0,1,19\r\n",
        "PORT 1,0,0,1,19,137,1\r\n",
        "PORT 1,0,0,256,19,137\r\n",
        "PORT 1,0,,1,19,137\r\n",
        "PORT +1,0,0,1,19,137\r\n",
        "USER x\r\n",
        "XPORT 1,0,0,1,4,0\r\n",
        "EPRT |1|1.0.0.1|5001|",
        "EPRT |1|1.0.0.1|5001\r\n",
        "EPRT |3|7.7.7.7|5001|\r\n",
        "EPSV\r\n",
        "PASV\r\n",
    ] {
        let mut p = tcp(CLIENT, SERVER, "A", 1, 1, other.as_bytes());
        let before = p.data().to_vec();
        let v = nat.rig.with("ftp", 1, |cx| nat.ftp.action(&mut p, cx)).0;
        assert!(v == Verdict::Next && p.data() == before, "{other}");
    }
    let whole = tcp(CLIENT, SERVER, "A", 1, 1, b"PORT 1,0,0,1,19,137\r\n");
    for n in 0..whole.len() {
        let mut p = packet(&whole.data()[..n]);
        p.set_network_header(0, 20.min(n));
        assert_eq!(nat.rig.with("ftp", 1, |cx| nat.ftp.action(&mut p, cx)).0, Verdict::Next, "{n}");
    }
}

#[test]
fn whatever_clients_say_nobody_else_is_named() {
    use crate::nat::ftp_command::{Found, find};
    const PIECES: [&[u8]; 16] = [
        b"PORT ",
        b"EPRT ",
        b"port ",
        b"|1|",
        b"|2|",
        b"|",
        b"1,0,0,1,",
        b"1.0.0.1",
        b"7,7,7,7,",
        b"7.7.7.7",
        b"19,137",
        b"5001",
        b"\r\n",
        b"\n",
        b"NOOP\r\n",
        b"\xff,0",
    ];
    let mut nat = Nat::new("pattern 199.199.199.199 10000-60000# - - 0 1");
    nat.out(tcp(CLIENT, SERVER, "S", 0, 0, b"")).unwrap();
    let mut random = Random::new(1, "ftp");
    let (mut seq, mut passed, mut translated, mut refused) = (1, 0, 0, 0);
    for i in 0..4000u64 {
        // Most texts start as commands, because purely random text would hardly ever be one.
        let mut text = match i % 5 {
            0 => b"PORT 1,0,0,1,19,137\r\n".to_vec(),
            1 => b"EPRT |1|1.0.0.1|5001|\r\n".to_vec(),
            2 => b"PORT 7,7,7,7,19,137\r\n".to_vec(),
            3 => b"EPRT |1|7.7.7.7|5001|\r\n".to_vec(),
            _ => Vec::new(),
        };
        for _ in 0..random.below(5) {
            let at = random.below(text.len() as u64 + 1) as usize;
            let piece = PIECES[random.below(16) as usize];
            let at = if random.below(2) == 0 { at } else { text.len() };
            text.splice(at..at, piece.iter().copied());
        }
        let Some(p) = nat.out(tcp(CLIENT, SERVER, "A", seq, 1, &text)) else {
            refused += 1;
            continue;
        };
        // Verifies checksums and lengths.
        said(&p);
        let data = p.data().get(40..).unwrap();
        match find(data) {
            Found::One(c) => {
                assert_eq!(
                    c.names.map(|n| n.0),
                    Some(u32::from_be_bytes([199; 4])),
                    "{}",
                    text.escape_ascii()
                );
                translated += 1;
            }
            other => assert_eq!((other, data), (Found::Nothing, &text[..])),
        }
        passed += 1;
        seq += text.len() as u32;
    }
    assert!(passed > 1000 && translated > 300 && refused > 300, "{passed} {translated} {refused}");
}

/// Only the argument of a command is replaced: verb, white space and line end stay as the client wrote them.
#[test]
fn what_stands_around_the_argument_stays() {
    for (said_by_client, want) in [
        ("PORT 1,0,0,1,19,137\n", "PORT 199,199,199,199,39,17\n"),
        ("port  1,0,0,1,19,137 \t\r\nNOOP\n", "port  199,199,199,199,39,17 \t\r\nNOOP\n"),
        ("Eprt |1|1.0.0.1|5001|\n", "Eprt |1|199.199.199.199|10001|\n"),
    ] {
        let mut nat = Nat::new("pattern 199.199.199.199 10000-20000# - - 0 1");
        nat.out(tcp(CLIENT, SERVER, "S", 100, 0, b"")).unwrap();
        let p = nat.out(tcp(CLIENT, SERVER, "A", 101, 901, said_by_client.as_bytes())).unwrap();
        assert_eq!(said(&p), (101, 901, want.into()));
        // Later data is shifted by the change of the length, including a line end that is retransmitted on its own.
        let by = want.len() as u32 - said_by_client.len() as u32;
        let end = 101 + said_by_client.len() as u32;
        let p = nat.out(tcp(CLIENT, SERVER, "A", end, 901, b"x")).unwrap();
        assert_eq!(said(&p).0, end + by);
        let p = nat.out(tcp(CLIENT, SERVER, "A", end - 1, 901, b"\n")).unwrap();
        assert_eq!(said(&p).0, end - 1 + by);
    }
}

/// A segment that is retransmitted after several commands is rewritten exactly as it was the first time.
#[test]
fn retransmissions_after_several_commands() {
    let mut nat = Nat::new("pattern 199.199.199.199 10000-20000# - - 0 1");
    nat.out(tcp(CLIENT, SERVER, "S", 100, 0, b"")).unwrap();
    let outside = ([199, 199, 199, 199], 10000);
    let (mut seq, mut sent) = (101, Vec::new());
    for n in 0..4 {
        for text in [format!("PORT 1,0,0,1,19,{}\r\n", 137 + n), format!("RETR {n}\r\n")] {
            let segment = || tcp(CLIENT, SERVER, "A", seq, 901, text.as_bytes());
            let out = nat.out(segment()).unwrap();
            sent.push((segment(), seq, out));
            seq += text.len() as u32;
        }
    }
    for (again, seq, first) in sent {
        let out = nat.out(again).unwrap();
        assert_eq!(out.data(), first.data(), "{seq}");
        // The server acknowledges up to the start of the segment.
        let (outside_seq, _, _) = said(&out);
        let p = nat.back(tcp(SERVER, outside, "A", 901, outside_seq, b"")).unwrap();
        assert_eq!(said(&p).1, seq);
    }
}
