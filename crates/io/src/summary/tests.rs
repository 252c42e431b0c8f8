// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use parking_lot::Mutex;
use proptest::prelude::*;
use std::io::Write;
use std::sync::Arc;

mod making;

/// The output of a writer.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);
impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const MAKING: Making = Making { checksum: false, most: 4000, part: (0, 1) };

/// A packet made from a record.
#[derive(Clone, Debug, PartialEq)]
struct Packet {
    data: Vec<u8>,
    made: Made,
}

impl Packet {
    fn view(&self) -> View<'_> {
        let m = &self.made;
        let network = (m.header > 0).then(|| self.data.get(m.link..)).flatten();
        let mac = (m.link > 0).then_some(&self.data[..]);
        let mut view = View::new(&self.data, mac, network, m.extra_length, true);
        (view.time, view.first_time) = (m.time, m.first_time);
        view.extra_packets = m.count.saturating_sub(1);
        (view.paint, view.aggregate) = (m.paint, m.aggregate);
        view
    }
}

fn read(text: &[u8]) -> (Vec<Packet>, Vec<String>) {
    let mut reader = SummaryReader::from_bytes("<data>", text).unwrap();
    read_all(&mut reader, MAKING)
}
fn read_all(reader: &mut SummaryReader, making: Making) -> (Vec<Packet>, Vec<String>) {
    let (mut packets, mut problems, mut draft) = (Vec::new(), Vec::new(), Draft::default());
    loop {
        match reader.next(&mut draft) {
            Ok(Item::Record) => {
                let mut data = Vec::new();
                let made = draft.make(reader.defaults(), making, &mut data);
                packets.push(Packet { data, made });
            }
            Ok(Item::Nothing) => {}
            Ok(Item::Problem(p)) => problems.push(p),
            Ok(Item::End) => return (packets, problems),
            Err(e) => {
                problems.push(e.to_string());
                return (packets, problems);
            }
        }
    }
}

fn fields(names: &str) -> Vec<&'static Field> {
    names.split(' ').map(|n| Field::find(n).unwrap_or_else(|| panic!("{n}"))).collect()
}

fn write(names: &str, packets: &[Packet], binary: bool) -> Vec<u8> {
    let mut records = SummaryRecords::new(fields(names), binary);
    for p in packets {
        records.push(&p.view());
    }
    [records.header(&SummaryHeader::default()).as_bytes(), records.bytes()].concat()
}

/// Reads a dump and writes its packets to another dump. Returns the records of that dump.
fn again(names: &str, text: &str) -> Vec<String> {
    let dump = format!("!IPSummaryDump 1.3\n!data {names}\n{text}\n");
    let (packets, problems) = read(dump.as_bytes());
    assert!(problems.is_empty(), "{problems:?}");
    let out = String::from_utf8(write(names, &packets, false)).unwrap();
    out.lines().skip(2).map(Into::into).collect()
}

#[test]
fn every_field_is_found_by_each_of_its_names() {
    let mut seen = std::collections::HashSet::new();
    for f in FIELDS {
        assert!(!f.doc.trim().is_empty() && !f.kind.name().is_empty());
        for name in std::iter::once(&f.name).chain(f.synonyms) {
            assert!(seen.insert(name), "{name} twice");
            assert_eq!(Field::find(name).unwrap().name, f.name);
            assert_eq!(Field::find(&name.replace('_', " ")).unwrap().name, f.name);
        }
    }
    for (name, long) in [("src", "ip_src"), ("proto", "ip_proto"), ("id", "ip_id"), ("ts", "timestamp")] {
        assert_eq!(Field::find(name).unwrap().name, long);
    }
    assert!(Field::find("foo").is_none() && Field::find("ip_foo").is_none() && Field::find("").is_none());
}

/// Lines that must be written as they were read.
#[test]
fn lines_come_back() {
    let table: &[(&str, &str)] = &[
        ("timestamp", "1.500000"),
        ("ntimestamp", "2.123456789"),
        ("ts_sec ts_usec", "12 345678"),
        ("ts_usec1", "12345678"),
        ("first_timestamp timestamp count", "1.000000 4.000000 7"),
        ("link", "255"),
        ("paint", "17"),
        ("direction direction", "> >"),
        ("direction", "<"),
        ("direction", "9"),
        ("aggregate", "4294967295"),
        ("wire_len ip_len", "1500 1500"),
        ("eth_src eth_dst eth_type", "02-00-00-00-00-0A FF-FF-FF-FF-FF-FF 0800"),
        ("eth_type wire_len", "86DD 60"),
        ("eth_type ip_src", "8100 1.2.3.4"),
        ("ip_src ip_dst ip_tos ip_ttl ip_id ip_sum", "1.2.3.4 255.0.0.1 255 7 65535 4660"),
        ("ip_dscp ip_ecn", "46 ect1"),
        ("ip_ecn ip_ecn", "ce ce"),
        ("ip_frag ip_fragoff", ". 0"),
        ("ip_frag ip_fragoff", "! 0!"),
        ("ip_frag ip_fragoff", "F 0+"),
        ("ip_frag ip_fragoff ip_len", "f 8+ 60"),
        ("ip_fragoff", "65528+!"),
        ("ip_frag ip_len", "f 20"),
        ("ip_proto sport dport ip_len", "T 1 65535 40"),
        ("ip_proto sport dport ip_len udp_len", "U 1 65535 28 8"),
        ("ip_proto sport dport ip_len tcp_seq", "33 1 2 24 -"),
        ("ip_proto ip_len sport", "99 20 -"),
        ("ip_proto udp_len ip_len", "U 9 60"),
        ("ip_proto icmp_type icmp_code icmp_flowid icmp_seq icmp_nextmtu", "I 8 0 12 65535 -"),
        (
            "ip_proto icmp_type_name icmp_code_name icmp_flowid icmp_seq icmp_nextmtu",
            "I unreachable needfrag - - 1400",
        ),
        ("ip_proto icmp_type_name icmp_code_name", "I 77 3"),
        ("tcp_seq tcp_ack tcp_off tcp_flags tcp_window tcp_urp", "4294967295 1 20 FSRPAUECN 65535 9"),
        ("tcp_flags udp_len", ". -"),
        ("tcp_off tcp_opt", "32 mss1460;sackok"),
        ("ip_hl ip_opt ip_len", "24 148=0:0 44"),
        ("tcp_opt tcp_ntopt tcp_sack", "mss1460;wscale3;sackok;ts5:6 mss1460;wscale3;sackok sackok"),
        ("ip_opt", "rr{1.2.3.4,5.6.7.8}+2"),
        ("payload payload_len", "\"\\000\\000ab\\\"\\\\ c\" 8"),
        ("payload", "\"\\n\\r\\t\\$a\\013\\177\""),
        ("payload ip_len", "- 100"),
        (
            "ip_proto icmp_type icmp_flowid payload payload_len",
            "I 8 12 \"\\010\\000\\000\\000\\000\\014\\000\\000x\" 9",
        ),
        ("payload ip_len", "\"\" 40"),
        ("payload_len ip_len ip_capture_len", "100 140 40"),
        ("ip_len ip_capture_len", "140 60"),
        ("ip_capture_len sport dport", "20 - -"),
        (
            "payload payload_md5 payload_md5_hex",
            "\"abc\" qgauyYJ0pbR1w_tFOe_FYb 900150983cd24fb0d6963f7d28e17f72",
        ),
    ];
    for (names, line) in table {
        let line = line.to_string();
        assert_eq!(again(names, &line), [line], "{names}");
    }
}

/// Lines with many fields, as existing tools print them.
#[test]
fn lines_of_existing_tools() {
    let names = "timestamp ip_src sport ip_proto tcp_flags tcp_opt tcp_ntopt tcp_sack ip_opt ip_frag ip_fragoff ip_len";
    for line in [
        "1.000000 1.0.0.1 10 T SA mss1460;wscale3;sackok;ts5:6 mss1460;wscale3;sackok sackok . ! 0! 100",
        "2.000000 1.0.0.1 10 T FSRPAUECN . . . rr{1.2.3.4,5.6.7.8}+2 . 0 60",
        "4.000000 1.0.0.1 - U - - - - ts{1,2,!3}+1;148=0:0 f 8+ 60",
    ] {
        assert_eq!(again(names, line), [line]);
    }
}

/// Words that are accepted and written in another form.
#[test]
fn other_words() {
    let table: &[(&str, &str, &str)] = &[
        ("timestamp", "5", "5.000000"),
        ("timestamp", "5.1234567891", "5.123456789"),
        ("timestamp", ".5", "0.500000"),
        ("timestamp", ".1", "0.100000"),
        ("timestamp", "5.", "5.000000"),
        ("timestamp", "1e3", "1000.000000"),
        ("timestamp", "1.5E-3", "0.001500"),
        ("timestamp", "1795255989123456789e-9", "1795255989.123456789"),
        ("timestamp", "00000000000000000000001.5", "1.500000"),
        ("timestamp", "0e99999", "0.000000"),
        ("ip_tos ip_id", "0xff 0x1F", "255 31"),
        ("ip_proto icmp_type icmp_code", "I 0x8 0x10", "I 8 16"),
        ("ip_proto icmp_type icmp_code", "I unreachable host", "I 3 1"),
        // The same name means different codes for different types.
        ("ip_proto icmp_type icmp_code", "I redirect tosnet", "I 5 2"),
        ("ip_proto icmp_code icmp_type", "I tosnet unreachable", "I 11 3"),
        ("ip_proto icmp_type_name icmp_code_name", "I redirect toshost", "I redirect toshost"),
        ("ip_proto icmp_type", "I echo", "I 8"),
        ("ip_proto icmp_type", "I timeexceeded", "I 11"),
        ("ip_proto icmp_type ip_id", "I nonesuch 5", "I 0 5"),
        ("ip_proto", "0x11", "U"),
        ("ip_fragoff", "0x10+", "16+"),
        ("tcp_flags", "0x12", "SA"),
        ("link", "0x7", "7"),
        ("ip_proto", "udp", "U"),
        ("ip_proto", "6", "T"),
        ("ip_ecn", "ECT(0)", "ect2"),
        ("ip_ecn", "1", "ect1"),
        ("link", "<", "1"),
        ("link", "R", "1"),
        ("direction", "L", ">"),
        ("eth_src", "2:0:0:0:0:a", "02-00-00-00-00-0A"),
        ("eth_type", "86dd", "86DD"),
        ("eth_type", "0x86dd", "86DD"),
        ("tcp_flags", "AS", "SA"),
        ("tcp_flags", "XW", "EC"),
        ("tcp_flags", "18", "SA"),
        ("ip_fragoff", "!", "0!"),
        ("ip_fragoff", "F", "0+"),
        ("payload", "ab\\c", "\"ab\\\\c\""),
        ("payload", "\"\\n\\x\" 5", "\"\\nx\""),
        ("payload", "\"\\v\\f\\a\\b\\x41\\x141z\"", "\"\\013\\014\\007\\010AAz\""),
        ("payload", "\"\\<41 42>c\\<4\"", "\"ABc\""),
        ("tcp_ntopt", "mss5", "mss5"),
        ("tcp_sack", "sackok", "sackok"),
        ("ip_hl", "19", "-"),
        ("ip_src", "1.2.3.4 surplus words", "1.2.3.4"),
        ("ip_src ip_dst", "1.2.3.4", "1.2.3.4 0.0.0.0"),
    ];
    for (names, line, want) in table {
        let want = if *want == "19" { "-" } else { want };
        assert_eq!(again(names, line), [want], "{names} {line}");
    }
}

/// Words that are not timestamps: signs, hexadecimal numbers, numbers out of range.
#[test]
fn bad_times() {
    for word in ["+1", "-1", "0x1", ".", "e3", "1e", "1e40", "1.5.2", "1e3.5", "1_0", "99999999999", "1e-"] {
        let (packets, problems) = read(format!("!data timestamp\n{word}\n").as_bytes());
        assert_eq!(
            (packets.len(), &problems[..]),
            (0, &["<data>:2: packet parse error".to_string()][..]),
            "{word}"
        );
    }
}

#[test]
fn the_header_of_a_dump() {
    let sink = Sink::default();
    let mut writer = SummaryWriter::from_writer("x", sink.clone());
    let mut records = SummaryRecords::new(fields("ntimestamp ip_src"), false);
    let header = SummaryHeader {
        creator: Some("a \"b\"".into()),
        origin: Some(("h".into(), 1_795_255_989_123_456_000)),
    };
    records.note("!bad no IP header");
    assert!(writer.write(records.header(&header).as_bytes()).unwrap());
    assert!(writer.write(records.bytes()).unwrap());
    drop(writer);
    let want = "!IPSummaryDump 1.3\n!creator \"a \\\"b\\\"\"\n!host h\n!runtime 1795255989.123456 (Sat Nov 21 10:13:09 2026)\n\
                !data timestamp ip_src\n!bad no IP header\n";
    assert_eq!(String::from_utf8(sink.0.lock().clone()).unwrap(), want);
    for (ns, text) in [
        (0, "Thu Jan  1 00:00:00 1970"),
        (951_782_400, "Tue Feb 29 00:00:00 2000"),
        (-1, "Wed Dec 31 23:59:59 1969"),
    ] {
        assert_eq!(calendar(ns * 1_000_000_000), text);
    }
}

#[test]
fn binary_records() {
    let (packets, _) = read(b"!data ntimestamp ip_src sport\n1.5 1.2.3.4 10\n");
    let out = write("ntimestamp ip_src sport", &packets, true);
    let head = b"!IPSummaryDump 1.3\n!data ntimestamp ip_src sport\n!binary\n";
    let record = [0, 0, 0, 18, 0x1d, 0xcd, 0x65, 0, 0, 0, 0, 1, 1, 2, 3, 4, 0, 10];
    assert_eq!(out, [&head[..], &record].concat());
    // The dumps below have a text line between records, a record that is too short, one that is too long, and a
    // truncated one.
    let note = b"\x80\x00\x00\x0a!data ";
    assert_eq!(note.len(), 10);
    let with_note = [&head[..], &record, b"\x80\x00\x00\x13!flowid 1.2.3.4", &record].concat();
    let (back, problems) = read(&with_note);
    assert_eq!((back.len(), problems), (2, vec!["<data>:5: bad flow ID".to_string()]));
    let (back, problems) = read(&[&head[..], &[0, 0, 0, 3], &record].concat());
    assert_eq!((back.len(), problems.len()), (0, 1));
    assert_eq!(read(&[&head[..], &record, &[0, 0x7f, 0, 0], &record].concat()).0.len(), 1);
    for n in 0..record.len() {
        let (back, problems) = read(&[&head[..], &record, &record[..n]].concat());
        // The message has the number of the last line or record. A record counts once its four length
        // bytes are complete.
        let line = if n < 4 { 4 } else { 5 };
        let cut = format!("<data>:{line}: warning: cut in its last record, which is left out");
        assert_eq!((back.len(), problems), (1, if n == 0 { vec![] } else { vec![cut] }), "{n}");
    }
    let big = [&head[..], &[0, 0x20, 0, 0], &vec![0; 0x20_0000 - 4], &record].concat();
    let (back, problems) = read(&big);
    assert_eq!((back.len(), problems.len()), (1, 1), "{problems:?}");
}

#[test]
fn what_dumps_say_beside_records() {
    let text =
        b"!IPSummaryDump 1.3\n# comment\n\n!flowid 1.0.0.1 10 2.0.0.2 20 U\n!aggregate 7\n!data ip_id\n1\n\
                 !proto T\n!contents ip_ttl sport\n9 5\n!whatever\n";
    let (packets, problems) = read(text);
    assert!(problems.is_empty());
    let out = write("src sport dst dport proto id ttl agg", &packets, false);
    let lines: Vec<_> = std::str::from_utf8(&out).unwrap().lines().skip(2).collect();
    assert_eq!(lines, ["1.0.0.1 10 2.0.0.2 20 U 1 100 7", "1.0.0.1 5 2.0.0.2 20 T 0 9 7"]);
}

#[test]
fn problems_are_told_once_with_their_line() {
    let table: &[(&str, &[&str])] = &[
        (
            "1 2\n3 4\n",
            &[
                "<data>:0: warning: missing banner line; is this an IP summary dump?",
                "<data>:1: no '!data' provided",
            ],
        ),
        ("!data ip_id\nx\ny\n5\n", &["<data>:2: packet parse error"]),
        (
            "!IPSummaryDump 2.0\n!IPSummaryDump 1.9\n",
            &["<data>:1: warning: unexpected IPSummaryDump version"],
        ),
        ("!data foo bar\n!flowid x\n", &["<data>:1: unknown content type 'foo'"]),
        ("!proto x\n!aggregate x\n", &["<data>:1: bad protocol"]),
        ("!IPSummaryDump 1.0\n7\n7\n", &["<data>:2: no '!data' provided"]),
        ("", &[]),
    ];
    for (text, want) in table {
        let got = read(text.as_bytes()).1;
        assert_eq!(got, *want, "{text}");
    }
    let mut reader =
        SummaryReader::from_bytes("x", &b"!data ip_id ip_ttl\n1 x\ny z\n70000 256\n- -\n"[..]).unwrap();
    assert_eq!(read_all(&mut reader, MAKING).0.len(), 2);
    assert_eq!((reader.bad_lines(), reader.bad_fields()), (2, 5));
    let long = [b"!data ip_id\n".to_vec(), vec![b'7'; 3 << 20], b"\n8\n".to_vec()].concat();
    let (packets, problems) = read(&long);
    assert_eq!((packets.len(), problems), (1, vec!["<data>:2: packet parse error".to_string()]));
}

/// All fields that are independent of each other.
const ALL: &str = "ntimestamp first_ntimestamp count paint aggregate wire_len ip_src ip_dst ip_dscp ip_ecn ip_ttl \
    ip_frag ip_fragoff ip_id ip_sum ip_proto ip_hl ip_len ip_capture_len ip_opt sport dport icmp_type icmp_code icmp_flowid \
    icmp_seq icmp_nextmtu payload_len tcp_seq tcp_ack tcp_off tcp_flags tcp_window tcp_urp tcp_opt udp_len";

prop_compose! {
    /// The columns of a dump, and the line of a packet whose fields do not contradict each other.
    fn good_line()(
        (time, first, count, paint, aggregate) in (0..i64::from(u32::MAX), 0..i64::from(u32::MAX), 1..u32::MAX, any::<u8>(), any::<u32>()),
        (src, dst, dscp, ecn, ttl, id, sum) in (any::<[u8; 4]>(), any::<[u8; 4]>(), 0..64u8, 0..4u8, any::<u8>(), any::<u16>(), any::<u16>()),
        (sport, dport, extra) in (any::<u16>(), any::<u16>(), 0..20_000_u32),
        protocol in prop_oneof![Just("T".to_string()), Just("U".into()), Just("I".into()), (137..=255u8).prop_map(|n| n.to_string())],
        (kind, code, rest) in (any::<u8>(), any::<u8>(), any::<(u16, u16)>()),
        (seq, ack, flags, window, urgent) in (any::<u32>(), any::<u32>(), 0..256u16, any::<u16>(), any::<u16>()),
        fragment in prop_oneof![Just("0".to_string()), Just("0!".into()), Just("0+".into()), (1..8191u32).prop_map(|n| format!("{}", n * 8))],
        tcp_opt in prop_oneof![Just("."), Just("mss1460;sackok"), Just("ts1:2;wscale7")],
        ip_opt in prop_oneof![Just("."), Just("148=0:0"), Just("rr{1.2.3.4}+2")],
    ) -> (String, String) {
        let headers = match (&protocol[..], fragment.starts_with('0')) {
            (_, false) => 0,
            // The longest of the options take 16 bytes.
            ("T", _) => 36,
            ("U" | "I", _) => 8,
            _ => 0,
        };
        let options = match ip_opt { "." => 0, "148=0:0" => 4, _ => 16 };
        let len = 20 + options + headers + extra;
        let names = "ntimestamp first_ntimestamp count paint aggregate src dst dscp ecn ttl id sum sport dport len proto icmp_type \
            icmp_code icmp_flowid icmp_seq tcp_seq tcp_ack tcp_flags tcp_window tcp_urp ip_fragoff tcp_opt ip_opt";
        let address = |a: [u8; 4]| std::net::Ipv4Addr::from(a);
        // For other ICMP messages, no field holds the four bytes after the checksum, so they are zero.
        let icmp = match (kind, code) {
            (0 | 8 | 13..=18, _) => rest,
            (3, 4) => (0, rest.1),
            _ => (0, 0),
        };
        let line = format!(
            "{}.{:09} {}.5 {count} {paint} {aggregate} {} {} {dscp} {ecn} {ttl} {id} {sum} {sport} {dport} {len} {protocol} {kind} \
             {code} {} {} {seq} {ack} {flags} {window} {urgent} {fragment} {tcp_opt} {ip_opt}",
            time, time % 1_000_000_000, first, address(src), address(dst), icmp.0, icmp.1);
        (names.to_string(), line)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// When the dump of a packet is read again, text or binary, the same packet is made.
    #[test]
    fn written_and_read_again((names, line) in good_line()) {
        let (packets, problems) = read(format!("!data {names}\n{line}\n").as_bytes());
        prop_assert_eq!((packets.len(), problems.len()), (1, 0));
        for binary in [false, true] {
            let dump = write(ALL, &packets, binary);
            let (back, problems) = read(&dump);
            prop_assert!(problems.is_empty(), "{:?}", problems);
            prop_assert_eq!(&back, &packets);
            prop_assert_eq!(write(ALL, &back, binary), dump);
        }
    }

    /// Invalid values in any column cause no panic, and the resulting packet can be written.
    #[test]
    fn nonsense(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), b' '..b':'], 0..300), binary: bool) {
        let mut names: String = FIELDS.iter().flat_map(|f| [f.name, " "]).collect();
        names.truncate(names.len() - 1);
        let head = format!("!data {names}\n{}", if binary { "!binary\n" } else { "" });
        let (packets, _) = read(&[head.as_bytes(), &bytes].concat());
        for p in &packets {
            prop_assert!(p.data.len() <= MAKING.most);
        }
        write(&names, &packets, true);
        write(&names, &packets, false);
    }
}
