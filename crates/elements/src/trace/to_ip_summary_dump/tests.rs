// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::super::from_dump::FromDump;
use super::super::from_ip_summary_dump::FromIpSummaryDump;
use super::*;
use castanet_element::kit::{Kit, packet};
use castanet_lang::args;
use castanet_spec::Names;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

struct DumpFile {
    _dir: TempDir,
    path: PathBuf,
}
fn dump_file() -> DumpFile {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x.dump");
    DumpFile { _dir: dir, path }
}
fn kit(dump_file: &DumpFile, outputs: usize, more: &str) -> Kit<ToIpSummaryDump> {
    Kit::with_ports(&format!("{}{more}", dump_file.path.display()), 1, outputs).unwrap()
}
/// Packets from a dump.
fn packets(dump: &str) -> Vec<Packet> {
    let mut kit = Kit::<FromIpSummaryDump>::new(&format!("DATA {}", args::quote(dump))).unwrap();
    let mut out = Vec::new();
    while let (Turn::Again, packets) = kit.task() {
        out.extend(packets.into_iter().map(|p| p.1));
    }
    out
}
fn text(dump_file: &DumpFile) -> String {
    std::fs::read_to_string(&dump_file.path).unwrap()
}
fn written(packets: Vec<Packet>, more: &str) -> String {
    let dump_file = dump_file();
    let mut k = kit(&dump_file, 0, more);
    k.push(0, packets);
    k.cleanup().unwrap();
    text(&dump_file)
}

#[test]
fn lines_of_every_kind() {
    let dump = "!data timestamp ip_src sport ip_proto ip_id\n1.5 1.0.0.1 10 T 1\n2.123456789 1.0.0.2 20 U 2\n3 1.0.0.3 5 47 3\n";
    let head = "!IPSummaryDump 1.3\n!data timestamp ip_src\n";
    let lines = "1.500000 1.0.0.1\n2.123456789 1.0.0.2\n3.000000 1.0.0.3\n";
    assert_eq!(written(packets(dump), ""), format!("{head}{lines}"));
    assert_eq!(written(packets(dump), ", HEADER false"), lines);
    assert_eq!(
        written(packets(dump), ", CONTENTS src sport \"ip id\" tcp_flags, BANNER 'a \"b\"'"),
        "!IPSummaryDump 1.3\n!creator \"a \\\"b\\\"\"\n!data ip_src sport ip_id tcp_flags\n1.0.0.1 10 1 .\n1.0.0.2 20 2 -\n1.0.0.3 - 3 -\n"
    );
    let verbose = written(packets(dump), ", VERBOSE true");
    let lines: Vec<_> = verbose.lines().collect();
    assert!(
        lines[1].starts_with("!host ")
            && lines[2].starts_with("!runtime 1000.0")
            && lines[2].ends_with(" (Thu Jan  1 00:16:40 1970)"),
        "{verbose}"
    );
    let bad = written(vec![packet(&[0; 30])], ", BAD_PACKETS true, HEADER false, FIELDS ip_src wire_len");
    assert_eq!(bad, "!bad no IP header\n- 30\n");
    let fails = |c: &str| Kit::<ToIpSummaryDump>::new(c).err().unwrap().join(" ");
    assert_eq!(fails("x, FIELDS foo"), "unknown content type 'foo'");
    assert_eq!(fails("x, FIELDS \"\""), "unknown content type ''");
    assert!(fails("/nonexistent/x").contains("No such file") && fails("").contains("FILENAME"));
}

#[test]
fn every_way_through() {
    let dump = "!data ip_id\n1\n2\n3\n4\n5\n";
    for batch in [1, 2, 3, 32] {
        for outputs in [0, 1] {
            let dump_file = dump_file();
            let mut k = kit(&dump_file, outputs, ", FIELDS ip_id, HEADER false");
            let mut all = packets(dump);
            let mut out = 0;
            while !all.is_empty() {
                out += k.push(0, all.drain(..batch.min(all.len()))).len();
            }
            assert_eq!((out, k.dropped(Reason::Consumed)), (5 * outputs, 5 * (1 - outputs as u64)));
            k.write("flush", "").unwrap();
            assert_eq!(text(&dump_file), "1\n2\n3\n4\n5\n");
        }
    }
    let dump_file = dump_file();
    let mut k = kit(&dump_file, 1, "");
    assert_eq!(text(&dump_file), "", "emptied and given its head when the router runs");
    k.task();
    assert_eq!(text(&dump_file).lines().count(), 2);
}

#[test]
fn one_line_for_each_of_several() {
    let dump = "!data first_ts ts count wire_len\n1 3 3 1000\n";
    let lines = |more: &str| written(packets(dump), &format!(", HEADER false{more}"));
    assert_eq!(lines(", FIELDS ts wire_len, MULTIPACKET true"), "1.000000 333\n2.000000 333\n3.000000 334\n");
    assert_eq!(lines(", FIELDS ts count, MULTIPACKET true"), "3.000000 3\n");
    assert_eq!(lines(", FIELDS ts wire_len"), "3.000000 1000\n");
    assert_eq!(lines(", FIELDS wire_len, EXTRA_LENGTH false"), "40\n");
    let many = packets("!data count\n4294967295\n");
    let dump_file = dump_file();
    let mut k = kit(&dump_file, 0, ", MULTIPACKET true, HEADER false");
    k.push(0, many);
    k.cleanup().unwrap();
    assert_eq!((text(&dump_file).lines().count(), k.messages().len()), (1 << 16, 1));
}

#[test]
fn every_length_is_written() {
    let fields: String = castanet_io::summary::FIELDS.iter().flat_map(|f| [f.name, " "]).collect();
    for more in ["", ", BINARY true", ", BAD_PACKETS true, CAREFUL_TRUNC false"] {
        let cut = (0..60).map(|n| {
            let mut p =
                packets("!data ip_len payload ip_opt\n70 \"abcdefghijklmnopqrstuvwxyz\" rr{}+3\n").remove(0);
            p.truncate(n);
            p
        });
        let dump_file = dump_file();
        let mut k = kit(&dump_file, 0, &format!(", FIELDS {fields}{more}"));
        k.push(0, cut);
        k.cleanup().unwrap();
        assert!(std::fs::metadata(&dump_file.path).unwrap().len() > 60 * 20);
    }
}

#[test]
fn a_full_disk_is_told_once() {
    let mut k = Kit::<ToIpSummaryDump>::new("/dev/full, HEADER false").unwrap();
    k.push(0, packets("!data ip_id\n1\n"));
    assert_eq!(k.write("flush", "").unwrap_err().to_string(), "/dev/full: No space left on device");
    let mut k = Kit::<ToIpSummaryDump>::new("/dev/full").unwrap();
    k.push(0, packets("!data ip_id\n1\n2\n"));
    assert_eq!((k.dropped(Reason::WriteFailed), k.messages().len()), (2, 1));
    assert!(k.cleanup().is_err());
}

#[test]
fn the_file_moves_to_a_new_router() {
    let dump_file = dump_file();
    let (mut old, mut new) = (kit(&dump_file, 0, ", FIELDS ip_id"), kit(&dump_file, 0, ", FIELDS ip_id"));
    old.push(0, packets("!data ip_id\n1\n"));
    new.with(|e, cx| e.take_over(&mut old.element, cx)).unwrap();
    new.push(0, packets("!data ip_id\n2\n"));
    new.cleanup().unwrap();
    old.cleanup().unwrap();
    assert_eq!(text(&dump_file), "!IPSummaryDump 1.3\n!data ip_id\n1\n2\n");
}

/// Whether the IP header has a correct checksum and a possible length, as in the filter for tshark below.
fn is_sound(p: &Packet) -> bool {
    let ip = p.network().unwrap_or_default();
    let header = ip.get(..p.network_header_length()).unwrap_or_default();
    let len = ip.get(2..4).map_or(0, |l| usize::from(u16::from_be_bytes([l[0], l[1]])));
    castanet_wire::checksum::sum(header) == 0xffff
        && len >= header.len()
        && len < p.len() + p.anno_u32(anno::EXTRA_LENGTH) as usize
}

/// Compares the fields of captured packets with those that tshark prints.
#[test]
fn agrees_with_tshark() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/traces/ip-router-eth0.pcap");
    // The names of fields here and in tshark.
    let table = [
        ("timestamp", "frame.time_epoch"),
        ("ip_src", "ip.src"),
        ("ip_dst", "ip.dst"),
        ("ip_ttl", "ip.ttl"),
        ("ip_len", "ip.len"),
        ("ip_hl", "ip.hdr_len"),
        ("wire_len", "frame.len"),
        ("udp_len", "udp.length"),
        ("tcp_window", "tcp.window_size_value"),
        ("tcp_off", "tcp.hdr_len"),
        ("icmp_type", "icmp.type"),
        ("icmp_code", "icmp.code"),
    ];
    let mut command = Command::new("tshark");
    // Some packets are excluded, because tshark also shows the fields of quoted packets, and shows the last
    // address of a source route as the destination.
    let own = "!(icmp && (tcp || udp)) && !(ip.dst == 7.7.7.7)";
    let sound = format!("ip.checksum.status == 1 && ip.version == 4 && ip.len < frame.len && {own}");
    command.args([
        "-n",
        "-r",
        trace,
        "-Y",
        &sound,
        "-T",
        "fields",
        "-E",
        "separator=/s",
        "-E",
        "occurrence=f",
    ]);
    command.args(["-o", "ip.defragment:false", "-o", "ip.check_checksum:true"]);
    table.iter().for_each(|(_, name)| {
        command.args(["-e", name]);
    });
    // tshark prints a missing field as an empty one. With quotes, empty fields stay visible between the
    // separators.
    let Ok(out) = command.args(["-E", "quote=d"]).output() else {
        println!("SKIP: no tshark");
        return;
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let line = |l: &str| {
        let words = l.split(' ').map(|w| w.trim_matches('"'));
        words.map(|w| if w.is_empty() { "-" } else { w }).collect::<Vec<_>>().join(" ")
    };
    let want: Vec<_> = String::from_utf8_lossy(&out.stdout).lines().map(line).collect();
    let mut from =
        Kit::<FromDump>::with_names(&format!("{trace}, FORCE_IP true"), 0, 2, Names::new()).unwrap();
    let mut all = Vec::new();
    while let (Turn::Again, out) = from.task() {
        all.extend(out.into_iter().filter(|o| o.0 == 0 && is_sound(&o.1)).map(|o| o.1));
    }
    let fields: Vec<_> = table.iter().map(|t| t.0).collect();
    let got = written(all, &format!(", HEADER false, FIELDS {}", fields.join(" ")));
    // A few broken packets are accepted by only one of the two programs, so lines are matched by their times.
    let time = |word: &str| {
        let (s, fraction) = word.split_once('.').unwrap_or((word, ""));
        format!("{s}.{fraction:0<9}")
    };
    let by_time = |line: &str| line.split_once(' ').map(|(t, rest)| (time(t), rest.to_string()));
    let want: HashMap<String, String> = want.iter().filter_map(|l| by_time(l)).collect();
    let got: HashMap<String, String> = got.lines().filter_map(by_time).collect();
    let both: Vec<_> = got.iter().filter_map(|(t, a)| Some((t, a, want.get(t)?))).collect();
    let different: Vec<_> = both.iter().filter(|(_, a, b)| a != b).take(9).collect();
    assert!(
        both.len() > 1000 && both.len() + 5 > want.len(),
        "{} of {} and {}",
        both.len(),
        got.len(),
        want.len()
    );
    assert!(different.is_empty(), "{different:#?}");
}
