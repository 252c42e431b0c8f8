// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use crate::handover::testing::{hand_over, prepare};
use castanet_element::kit::{Kit, packet};
use castanet_spec::Names;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn at(ns: i64, data: &[u8]) -> Packet {
    let mut p = packet(data);
    p.set_timestamp(ns);
    p
}
fn place() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("out.pcap");
    (dir, path)
}
/// The words of a file header that matter (magic, snapshot length, link type), and its records.
type Parsed = ([u32; 3], Vec<Record>);
/// The seconds, fraction and original length of a record, and its bytes.
type Record = ([u32; 3], Vec<u8>);
/// A test case: arguments, and the file header and second record that they give.
type Case<'a> = (&'a str, [u32; 3], [u32; 3], &'a [u8]);

/// Parses a file, word by word.
fn parsed(path: &Path) -> Parsed {
    let bytes = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((bytes[4..8].to_vec(), word(8), word(12)), (vec![2, 0, 4, 0], 0, 0), "version 2.4");
    let (mut at, mut records) = (24, Vec::new());
    while at < bytes.len() {
        let n = word(at + 8) as usize;
        records.push(([word(at), word(at + 4), word(at + 12)], bytes[at + 16..at + 16 + n].to_vec()));
        at += 16 + n;
    }
    ([word(0), word(16), word(20)], records)
}
/// Returns what a configuration writes for two packets.
fn written(more: &str) -> Parsed {
    let (_dir, path) = place();
    let mut k = Kit::<ToDump>::new(&format!("{}{more}", path.display())).unwrap();
    let mut second = at(2_000_001_999, b"second packet");
    second.set_anno_u32(anno::EXTRA_LENGTH, 100);
    assert!(k.push(0, [at(1_500_000_000, b"one"), second]).is_empty());
    assert_eq!((k.read("count").unwrap(), k.dropped(Reason::Consumed)), ("2".into(), 2));
    k.cleanup().unwrap();
    parsed(&path)
}

#[test]
fn files_are_right() {
    let all = b"second packet".to_vec();
    let table: &[Case<'_>] = &[
        ("", [0xa1b2_3c4d, 2000, 1], [2, 1999, 113], &all),
        (", 5", [0xa1b2_3c4d, 5, 1], [2, 1999, 113], b"secon"),
        (", SNAPLEN 0, ENCAP IP", [0xa1b2_3c4d, 262_144, 101], [2, 1999, 113], &all),
        (", 100, 113, NANO false", [0xa1b2_c3d4, 100, 113], [2, 1, 113], &all),
        (", EXTRA_LENGTH false, UNBUFFERED true", [0xa1b2_3c4d, 2000, 1], [2, 1999, 13], &all),
    ];
    for (more, head, words, data) in table {
        let (h, records) = written(more);
        assert_eq!((h, records.len()), (*head, 2), "{more}");
        assert_eq!(records[1], (*words, data.to_vec()), "{more}");
        assert_eq!((records[0].0[0], records[0].0[2], &records[0].1[..]), (1, 3, &b"one"[..]));
    }
}

#[test]
fn passes_packets_on_or_pulls_them() {
    let (_dir, path) = place();
    let name = path.display().to_string();
    let mut k = Kit::<ToDump>::with_ports(&name, 1, 1).unwrap();
    let out = k.push(0, [at(5, b"a"), at(0, b"b")]);
    assert_eq!((out.len(), out[0].1.data(), k.all_dropped()), (2, &b"a"[..], 0));
    k.supply(0, at(7, b"c"));
    assert_eq!(k.pull(0, 5).iter().map(|p| p.data()[0]).collect::<Vec<_>>(), [b'c']);
    assert_eq!(k.task().0, Turn::Sleep);
    k.write("reset_counts", "").unwrap();
    k.push(0, [at(5, b"d")]);
    assert_eq!((k.read("count").unwrap(), k.read("filename").unwrap()), ("1".into(), name));
    k.cleanup().unwrap();
    let records = parsed(&path).1;
    assert_eq!(records.iter().map(|r| r.1[0]).collect::<Vec<_>>(), b"abcd");
    assert_eq!(records[1].0[0], 1000, "without timestamp: now");

    let mut k = Kit::<ToDump>::new(&path.display().to_string()).unwrap().limit(2);
    k.element.push = false;
    k.element.signal = Signal::new(Vec::new(), false);
    (0..3).for_each(|n| k.supply(0, at(n, &[n as u8])));
    let turns: Vec<Turn> = (0..3).map(|_| k.task().0).collect();
    assert_eq!(turns, [Turn::Again, Turn::Again, Turn::Sleep]);
    k.cleanup().unwrap();
    assert_eq!((parsed(&path).1.len(), k.dropped(Reason::Consumed)), (3, 3));
}

#[test]
fn the_file_is_emptied_when_the_router_runs() {
    let (_dir, path) = place();
    std::fs::write(&path, [7; 1000]).unwrap();
    let mut k = Kit::<ToDump>::new(&path.display().to_string()).unwrap();
    k.cleanup().unwrap();
    assert_eq!(std::fs::read(&path).unwrap().len(), 1000, "it did not run");
    let mut k = Kit::<ToDump>::new(&path.display().to_string()).unwrap();
    k.expire().unwrap();
    assert_eq!(std::fs::read(&path).unwrap().len(), 24);
    let (_dir, path) = place();
    let mut k = Kit::<ToDump>::new(&path.display().to_string()).unwrap();
    k.cleanup().unwrap();
    assert!(!path.exists(), "it did not run");
    let mut k = Kit::<ToDump>::new(&path.display().to_string()).unwrap();
    k.expire().unwrap();
    k.cleanup().unwrap();
    assert_eq!(parsed(&path).1.len(), 0, "no packet, but a trace");
}

#[test]
fn a_prepared_router_leaves_the_file_alone() {
    let (_dir, path) = place();
    let config = path.display().to_string();
    let mut old = Kit::<ToDump>::new(&config).unwrap();
    old.push(0, [at(1, b"old")]);
    let other = path.with_extension("other").display().to_string();
    let mut new = Kit::<ToDump>::new(&other).unwrap();
    for (more, inherits) in [("", true), (", UNBUFFERED true", true), (", NANO false", false), (", 9", false)]
    {
        prepare(&mut new, &format!("{config}{more}"), 1, 0);
        assert_eq!(new.element.holds() == old.element.holds(), inherits, "{more}");
        new.cleanup().unwrap();
        assert!(path.exists());
    }
    // The new router names the same file through a symbolic link. The file is handed over to it, back to the old
    // router, and over to the new one again.
    let linked = path.with_extension("link");
    std::os::unix::fs::symlink(&path, &linked).unwrap();
    prepare(&mut new, &linked.display().to_string(), 1, 0);
    hand_over(&mut old, &mut new);
    hand_over(&mut new, &mut old);
    old.push(0, [at(2, b"on")]);
    hand_over(&mut old, &mut new);
    old.cleanup().unwrap();
    new.expire();
    new.push(0, [at(3, b"new")]);
    assert_eq!(new.read("count").unwrap(), "3");
    new.cleanup().unwrap();
    assert_eq!(parsed(&path).1.iter().map(|r| r.1.clone()).collect::<Vec<_>>(), [&b"old"[..], b"on", b"new"]);
}

#[test]
fn a_hot_swap_goes_on_in_the_file() {
    let (_dir, path) = place();
    let config = path.display().to_string();
    let mut old = Kit::<ToDump>::new(&config).unwrap();
    old.push(0, [at(1, b"old")]);
    let mut new = Kit::<ToDump>::new(&config).unwrap();
    new.with(|e, cx| e.take_over(&mut old.element, cx)).unwrap();
    old.cleanup().unwrap();
    new.push(0, [at(2, b"new")]);
    assert_eq!(new.read("count").unwrap(), "2");
    new.cleanup().unwrap();
    assert_eq!(parsed(&path).1.iter().map(|r| r.1.clone()).collect::<Vec<_>>(), [b"old", b"new"]);
}

#[test]
fn failures_are_told_once_and_counted() {
    let none = Kit::<ToDump>::new("/nonexistent/x").err().unwrap();
    assert_eq!(none, ["/nonexistent/x: No such file or directory"]);
    let dir = TempDir::new().unwrap();
    let text = Kit::<ToDump>::new(&dir.path().display().to_string()).err().unwrap().join(" ");
    assert!(text.ends_with(": Is a directory"), "{text}");
    if !Path::new("/dev/full").exists() {
        return println!("SKIP: there is no /dev/full here");
    }
    for (outputs, through) in [(0, 0), (1, 3)] {
        let mut k = Kit::<ToDump>::with_ports("/dev/full, UNBUFFERED true", 1, outputs).unwrap();
        let out = k.push(0, [at(1, b"a"), at(2, b"b"), at(3, b"c")]);
        assert_eq!((out.len(), k.dropped(Reason::WriteFailed)), (through, 3 - through as u64));
        let messages = k.messages();
        assert_eq!(messages, ["e :: ToDump: /dev/full: No space left on device"]);
        assert_eq!((k.read("count").unwrap(), k.messages().len()), ("0".into(), 0));
        assert_eq!(k.cleanup().unwrap_err().to_string(), "/dev/full: not all packets were written");
    }
}

#[test]
fn encap_from_other_elements() {
    let (_dir, path) = place();
    let names = || {
        let mut n = Names::new();
        n.define_element("f", 1, "FromDump");
        n.define_element("g", 2, "FromDump");
        n
    };
    let config = format!("{}, USE_ENCAP_FROM f g", path.display());
    for (answer, link) in [("IP", Some(101)), ("220", Some(220)), ("what", None)] {
        let mut k = Kit::<ToDump>::with_names(&config, 1, 0, names()).unwrap();
        k.answer("encap", answer);
        k.push(0, [at(1, b"x")]);
        match link {
            Some(link) => {
                assert_eq!(k.calls().len(), 2);
                k.cleanup().unwrap();
                assert_eq!(parsed(&path).0[2], link);
            }
            None => {
                assert_eq!(k.dropped(Reason::WriteFailed), 1);
                assert!(k.messages()[0].contains("'f' tells no link type"));
                assert!(k.cleanup().unwrap_err().to_string().ends_with("not all packets were written"));
            }
        }
    }
    let fails = |c: &str| Kit::<ToDump>::with_names(c, 1, 0, names()).err().unwrap().join(" ");
    assert_eq!(fails("x, ENCAP IP, USE_ENCAP_FROM f"), "specify at most one of ENCAP and USE_ENCAP_FROM");
    assert!(fails("x, ENCAP NOPE").starts_with("ENCAP: 'NOPE' is not a link type"));
    assert!(fails("x, USE_ENCAP_FROM h").contains("'h' does not name an element"));
}

/// Returns elements of several workers that write one file.
fn several(config: &str, workers: usize, at_once: bool) -> Vec<Kit<ToDump>> {
    let file = std::sync::Arc::new(SharedFile::new(workers, at_once));
    let kit = |worker| {
        let mut kit = Kit::<ToDump>::new(config).unwrap();
        kit.element.file = Replica::new(file.clone(), worker);
        kit
    };
    (0..workers).map(kit).collect()
}

#[test]
fn packets_of_several_workers_are_written_in_the_order_of_their_times() {
    let mut random = Random::new(7, "workers");
    let (_dir, path) = place();
    let mut kits = several(&path.display().to_string(), 3, false);
    let (mut now, mut total) = (0_i64, 0);
    for i in 0..6000 {
        now += random.below(200_000) as i64;
        let worker = random.below(3) as usize;
        kits[worker].at(now);
        kits[worker].push(0, [at(now, &now.to_be_bytes()), at(now + 5, &[7; 90])]);
        total += 2;
        if random.below(20) == 0 {
            let worker = random.below(3) as usize;
            kits[worker].at(now);
            if kits[worker].next_timer().is_some_and(|t| t <= now) {
                kits[worker].expire();
            }
        }
        if i % 100 == 0 {
            assert_eq!(kits[0].read("count").unwrap(), total.to_string());
        }
    }
    let before = parsed(&path).1.len();
    assert!(before > 2000, "records are written while the router runs: {before}");
    // When nothing more comes, the rest is written.
    now += 1_000_000_000;
    for k in &mut kits {
        k.at(now);
        while k.next_timer().is_some_and(|t| t <= now) {
            k.expire();
        }
        assert_eq!(k.next_timer(), None, "nothing is left to do");
    }
    kits[1].write("reset_counts", "").unwrap();
    assert_eq!(kits[2].read("count").unwrap(), "0");
    kits.iter_mut().for_each(|k| k.cleanup().unwrap());
    let times: Vec<_> = parsed(&path).1.iter().map(|r| (r.0[0], r.0[1])).collect();
    assert_eq!(times.len(), total);
    assert!(times.is_sorted());
}

#[test]
fn several_workers_may_write_at_once_or_fail_or_hand_over() {
    let (_dir, path) = place();
    let mut kits = several(&format!("{}, UNBUFFERED true", path.display()), 2, true);
    for (worker, time) in [(0, 9), (1, 5)] {
        kits[worker].push(0, [at(time, b"x")]);
        assert_eq!(parsed(&path).1.len(), worker + 1);
    }
    kits.iter_mut().for_each(|k| k.cleanup().unwrap());

    // A full disk: one message, then drops for failed writes, and an error at the end.
    let mut kits = several("/dev/full", 2, false);
    let mut accepted = 0;
    while kits.iter().all(|k| k.dropped(Reason::WriteFailed) == 0) {
        for k in &mut kits {
            k.push(0, [at(1, &[7; 1400])]);
        }
        accepted += 2;
        assert!(accepted < 10_000);
    }
    let failed: u64 = kits.iter().map(|k| k.dropped(Reason::WriteFailed)).sum();
    let consumed: u64 = kits.iter().map(|k| k.dropped(Reason::Consumed)).sum();
    assert_eq!(consumed + failed, accepted);
    assert_eq!(kits.iter_mut().map(|k| k.messages().len()).sum::<usize>(), 1);
    let errors = kits.iter_mut().filter_map(|k| k.cleanup().err()).count();
    assert_eq!(errors, 1);

    // A hot swap writes the packets in the buffers before the new router continues.
    let (_dir, path) = place();
    let config = path.display().to_string();
    let mut old = several(&config, 2, false);
    old[1].push(0, [at(3, b"c")]);
    old[0].push(0, [at(2, b"b")]);
    let mut new = several(&config, 3, false);
    for (from, to) in old.iter_mut().zip(&mut new) {
        to.with(|e, cx| e.take_over(&mut from.element, cx)).unwrap();
        assert!(old_is_done(from));
    }
    assert_eq!(new[2].read("count").unwrap(), "2");
    new[2].push(0, [at(4, b"d")]);
    new.iter_mut().for_each(|k| k.cleanup().unwrap());
    let records: Vec<u8> = parsed(&path).1.iter().map(|r| r.1[0]).collect();
    assert_eq!(records, b"bcd");
}

/// Whether an element has no open file any more.
fn old_is_done(kit: &mut Kit<ToDump>) -> bool {
    kit.handed_over();
    !kit.element.file.accepts() && kit.read("count").unwrap() == "0"
}
