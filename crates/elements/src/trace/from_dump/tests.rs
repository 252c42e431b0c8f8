// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::Kit;
use castanet_spec::Names;
use std::path::PathBuf;
use tempfile::TempDir;

const S: i64 = 1_000_000_000;

/// One record: seconds, nanoseconds, original length, bytes.
type Record<'a> = (u32, u32, u32, &'a [u8]);

/// Builds a pcap file with times in nanoseconds, byte by byte.
fn pcap(link: u32, records: &[Record<'_>]) -> Vec<u8> {
    let words = |w: &[u32]| w.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>();
    let mut out = words(&[0xa1b2_3c4d, 0x0002_0004, 0, 0, 65535, link]);
    for (s, ns, original, data) in records {
        out.extend(words(&[*s, *ns, data.len() as u32, *original]));
        out.extend_from_slice(data);
    }
    out
}
struct Trace {
    _dir: TempDir,
    path: PathBuf,
}
fn trace(bytes: &[u8]) -> Trace {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.pcap");
    std::fs::write(&path, bytes).unwrap();
    Trace { _dir: dir, path }
}
/// A trace of packets 1, 2, ... at seconds 1, 2, ...
fn counted(n: u8) -> Trace {
    let data: Vec<[u8; 14]> = (1..=n).map(|i| [i * 2; 14]).collect();
    let records: Vec<Record<'_>> =
        (1..=n).map(|i| (u32::from(i), 0, 14, &data[usize::from(i - 1)][..])).collect();
    trace(&pcap(1, &records))
}
fn kit(t: &Trace, more: &str) -> Kit<FromDump> {
    Kit::with_ports(&format!("{}{more}", t.path.display()), 0, 2).unwrap()
}
fn number(p: &Packet) -> u8 {
    p.data()[0] / 2
}
/// Runs the task until it sleeps. Returns the numbers of the packets.
fn run(kit: &mut Kit<FromDump>) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let (turn, packets) = kit.task();
        out.extend(packets.iter().map(|(_, p)| number(p)));
        if turn == Turn::Sleep {
            return out;
        }
    }
}

#[test]
fn packets_have_what_the_trace_tells() {
    let ip = [&[0x45, 0, 0, 99, 0, 0, 0, 0, 9, 17, 0, 0, 1, 0, 0, 1, 2, 0, 0, 2][..], &[5; 8]].concat();
    let frame = [&[0xff; 6][..], &[2; 6], &[8, 0], &ip].concat();
    let t = trace(&pcap(1, &[(1, 500_000_001, 113, &frame), (2, 0, 14, &[1; 14])]));
    let mut k = kit(&t, "");
    let out = k.task().1;
    let p = &out[0].1;
    assert_eq!((p.data(), p.timestamp(), p.headroom()), (&frame[..], 1_500_000_001, DEFAULT_HEADROOM));
    assert_eq!((p.anno_u32(anno::EXTRA_LENGTH), p.packet_type()), (113 - 42, PacketType::Host));
    assert_eq!((p.mac_offset(), p.network_offset()), (Some(0), None));
    let q = &out[1].1;
    assert_eq!((q.anno_u32(anno::EXTRA_LENGTH), q.packet_type()), (0, PacketType::Host));
    let mut k = kit(&t, ", FORCE_IP true");
    let out = k.task().1;
    assert_eq!((out[0].0, out[0].1.network_offset(), out[0].1.transport_offset()), (0, Some(14), Some(34)));
    assert_eq!((out[1].0, k.read("count").unwrap()), (1, "1".into()));
    let mut k = Kit::<FromDump>::new(&format!("{}, FORCE_IP true", t.path.display())).unwrap();
    assert_eq!((k.task().1.len(), k.dropped(Reason::NotIp)), (1, 1));
    let raw = trace(&pcap(101, &[(1, 0, 28, &ip), (1, 0, 0, &[])]));
    let mut k = kit(&raw, "");
    let out = k.task().1;
    assert_eq!((out[0].1.network_offset(), out[0].1.mac_offset()), (Some(0), None));
    assert_eq!((out[1].1.len(), out[1].1.network_offset()), (0, None));
    assert_eq!(k.read("encap").unwrap(), "IP");
}

#[test]
fn every_limit_gives_the_same_and_the_end_comes_last() {
    let t = counted(7);
    for limit in [1, 2, 3, 32] {
        let mut k = kit(&t, ", STOP true").limit(limit);
        let mut out = Vec::new();
        while out.len() < 7 {
            let (turn, packets) = k.task();
            assert!(packets.len() <= limit && turn == Turn::Again && k.stops() == 0);
            out.extend(packets.iter().map(|(_, p)| number(p)));
        }
        assert_eq!((out, k.task().0, k.stops()), (vec![1, 2, 3, 4, 5, 6, 7], Turn::Sleep, 1));
        assert_eq!((k.task().0, k.stops()), (Turn::Sleep, 1), "once");
    }
    let mut names = Names::new();
    names.define_element("x", 3, "Script");
    let config = format!("{}, END_CALL x.run 5", t.path.display());
    let mut k = Kit::<FromDump>::with_names(&config, 0, 1, names).unwrap();
    assert_eq!(run(&mut k).len(), 7);
    assert_eq!(k.calls(), [(Some(3), "run".into(), "5".into())]);
}

#[test]
fn pulls_and_their_notifier() {
    let t = counted(5);
    let mut k = kit(&t, ", STOP true");
    let got = |k: &mut Kit<FromDump>, max| k.pull(0, max).iter().map(number).collect::<Vec<_>>();
    assert!(k.note(Capability::EmptyNotifier));
    assert_eq!((got(&mut k, 2), got(&mut k, 1), got(&mut k, 9)), (vec![1, 2], vec![3], vec![4, 5]));
    assert!(k.note(Capability::EmptyNotifier) && k.stops() == 0);
    assert_eq!((got(&mut k, 9), k.stops(), k.note(Capability::EmptyNotifier)), (vec![], 1, false));
    let k = kit(&t, ", ACTIVE false");
    assert!(!k.note(Capability::EmptyNotifier));
}

#[test]
fn spans_of_time() {
    let t = counted(9);
    let table: &[(&str, &[u8])] = &[
        ("START 3", &[3, 4, 5, 6, 7, 8, 9]),
        ("START 2.000000001", &[3, 4, 5, 6, 7, 8, 9]),
        ("START_AFTER 6", &[7, 8, 9]),
        ("END 3", &[1, 2]),
        ("END_AFTER 3", &[1, 2, 3]),
        ("INTERVAL 2", &[1, 2]),
        ("START 4, INTERVAL 2", &[4, 5]),
        ("START_AFTER 1, END 4", &[2, 3]),
        ("START 100", &[]),
        ("END 0", &[]),
    ];
    for (span, want) in table {
        let mut k = kit(&t, &format!(", {span}, STOP true"));
        assert_eq!((run(&mut k), k.stops()), (want.to_vec(), 1), "{span}");
        assert_eq!(k.read("count").unwrap(), want.len().to_string());
    }
    let mut k = kit(&t, ", INTERVAL 2, STOP true");
    assert_eq!(run(&mut k), [1, 2]);
    k.write("extend_interval", "3").unwrap();
    assert!(k.woken());
    assert_eq!((run(&mut k), k.stops()), (vec![3, 4, 5], 2));
    k.write("extend_interval", "100").unwrap();
    assert_eq!((run(&mut k), k.stops()), (vec![6, 7, 8, 9], 3));
    let mut k = kit(&t, ", INTERVAL 1");
    k.write("extend_interval", "1").unwrap();
    assert_eq!(run(&mut k), [1, 2], "before the first packet");
}

#[test]
fn sampling() {
    let t = counted(100);
    let mut k = kit(&t, ", SAMPLE 0.5");
    let out = run(&mut k);
    assert!((30..70).contains(&out.len()), "{}", out.len());
    assert_eq!(k.dropped(Reason::Sampled) as usize, 100 - out.len());
    assert_eq!(k.read("sampling_prob").unwrap(), "0.5");
    assert_eq!((run(&mut kit(&t, ", SAMPLE 0")).len(), run(&mut kit(&t, ", SAMPLE 1")).len()), (0, 100));
    let fails = |c: &str| Kit::<FromDump>::new(&format!("x, {c}")).err().unwrap().join(" ");
    assert!(fails("SAMPLE 1.5").starts_with("SAMPLE: expected a probability"));
}

#[test]
fn timing_keeps_the_distances() {
    let t = counted(3);
    let mut k = kit(&t, ", TIMING true");
    k.at(10 * S);
    let (turn, out) = k.task();
    assert_eq!((turn, out.len()), (Turn::Sleep, 1));
    let first = k.next_timer().unwrap() - S;
    assert!((10 * S..10 * S + 100).contains(&first));
    k.expire();
    assert!(k.woken());
    assert_eq!(k.task().1.iter().map(|o| number(&o.1)).collect::<Vec<_>>(), [2]);
    assert_eq!(k.next_timer(), Some(first + 2 * S));
    k.write("reset_timing", "").unwrap();
    assert_eq!(k.task().1.len(), 1, "at once");
    let mut k = kit(&t, ", true");
    k.element.replay.push = false;
    assert_eq!(k.pull(0, 5).len(), 1);
    assert!(!k.note(Capability::EmptyNotifier));
    k.expire();
    assert!(k.note(Capability::EmptyNotifier));
    assert_eq!(k.pull(0, 5).len(), 1);
}

#[test]
fn positions_and_switches() {
    let t = counted(4);
    let mut k = kit(&t, ", STOP true").limit(1);
    let size = 24 + 4 * 30;
    assert_eq!((k.read("filesize").unwrap(), k.read("filepos").unwrap()), (size.to_string(), "24".into()));
    k.task();
    k.task();
    assert_eq!((k.read("filepos").unwrap(), k.read("packet_filepos").unwrap()), ("84".into(), "54".into()));
    assert_eq!(
        (k.read("filename").unwrap(), k.read("encap").unwrap()),
        (t.path.display().to_string(), "ETHER".into())
    );
    k.write("active", "false").unwrap();
    assert_eq!(run(&mut k), []);
    k.write("active", "true").unwrap();
    assert_eq!(run(&mut k), [3, 4]);
    k.write("filepos", "54").unwrap();
    k.write("reset_counts", "").unwrap();
    assert_eq!((run(&mut k), k.stops(), k.read("count").unwrap()), (vec![2, 3, 4], 2, "3".into()));
    k.write("filepos", "0").unwrap();
    k.write("stop", "").unwrap();
    assert_eq!((run(&mut k), k.stops(), k.read("active").unwrap()), (vec![], 3, "false".into()));
    assert_eq!(run(&mut kit(&t, ", FILEPOS 84")), [3, 4]);
    assert!(k.write("filepos", "x").is_err() && k.write("extend_interval", "x").is_err());
}

#[test]
fn bad_files() {
    let open = |bytes: &[u8]| {
        Kit::<FromDump>::new(&trace(bytes).path.display().to_string()).err().unwrap().join(" ")
    };
    assert!(open(b"").ends_with(":   empty file"));
    assert!(open(&[0xa1, 0xb2, 0xc3]).ends_with(":   not a tcpdump file (too short)"));
    assert_eq!(
        Kit::<FromDump>::new("/nonexistent/x").err().unwrap(),
        ["/nonexistent/x: No such file or directory"]
    );
    let good = pcap(1, &[(1, 0, 14, &[2; 14]), (2, 0, 14, &[4; 14])]);
    for n in 24..good.len() {
        let t = trace(&good[..n]);
        let mut k = kit(&t, ", STOP true");
        let whole = (n - 24) / 30;
        assert_eq!((run(&mut k).len(), k.stops()), (whole, 1), "{n}: a cut record ends the file");
        let at_record = (n - 24) % 30 == 0;
        let cut = format!(
            "e :: FromDump: warning: {}: cut in its last record, which is left out",
            t.path.display()
        );
        assert_eq!(k.messages(), if at_record { vec![] } else { vec![cut] }, "{n}");
    }
    let mut bad = good.clone();
    bad[24 + 30 + 8] = 0x7f;
    let t = trace(&bad);
    let mut k = kit(&t, ", STOP true");
    assert_eq!((run(&mut k), k.stops()), (vec![1], 1));
    assert!(k.messages()[0].starts_with("e :: FromDump: "));
    let long = vec![0; 100_000];
    let t = trace(&pcap(1, &[(1, 0, 100_000, &long), (2, 0, 14, &[4; 14])]));
    let mut k = kit(&t, "");
    assert_eq!((run(&mut k), k.dropped(Reason::TooLong)), (vec![2], 1));
}

#[test]
fn many_packets_left_out_do_not_take_one_turn() {
    let records: Vec<Record<'_>> = (0..3000).map(|i| (i, 0, 2, &[2, 2][..])).collect();
    let t = trace(&pcap(1, &records));
    let mut k = kit(&t, ", START 2999");
    assert_eq!((k.task().1.len(), k.task().1.len(), k.task().1.len()), (0, 0, 1));
    assert_eq!(k.dropped(Reason::OutsideTime), 2999);
}

#[test]
fn arguments_effects_and_state() {
    let fails = |c: &str| Kit::<FromDump>::new(&format!("x, {c}")).err().unwrap().join(" ");
    assert_eq!(fails("START 1, START_AFTER 1"), "specify at most one of START and START_AFTER");
    assert_eq!(fails("END 1, INTERVAL 1"), "specify at most one of END, END_AFTER and INTERVAL");
    assert_eq!(fails("STOP true, END_CALL stop"), "specify at most one of STOP and END_CALL");
    let t = counted(5);
    let effects = |more: &str| kit(&t, more).element.effects(Effects::from_bits_truncate(15));
    assert_eq!((effects(", MMAP true"), effects(", STOP true")), (Effects::empty(), Effects::STOPS));
    assert_eq!(effects(", END_CALL stop"), Effects::CALLS);
    let mut old = kit(&t, ", END 4").limit(1);
    old.task();
    run(&mut old);
    let mut new = kit(&t, "");
    new.take_state_of(&mut old).unwrap();
    assert_eq!(new.read("count").unwrap(), "3");
    old.take_state_of(&mut new).unwrap();
    assert_eq!((old.read("count").unwrap(), run(&mut old).len()), ("3".into(), 0), "back at its end");
    new.take_state_of(&mut old).unwrap();
    old.handed_over();
    new.handed_over();
    assert_eq!(run(&mut new), [4, 5], "it goes on where the old one was, without an end");
    let held = |c: &str| Kit::<FromDump>::new(c).map(|k| k.element.holds());
    assert!(old.element.holds().is_none() && held("/dev/null").is_err());
}
