// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::Kit;

fn texts(out: Vec<(usize, Packet)>) -> Vec<String> {
    out.iter().map(|(_, p)| String::from_utf8_lossy(p.data()).into_owned()).collect()
}

#[test]
fn rotates_within_bursts_and_limits() {
    let mut kit = Kit::<MemSource>::new("\"a\" \"b c\" \\<64 65>, 7, 4, STOP true").unwrap().limit(3);
    let mut turns = Vec::new();
    loop {
        let (turn, out) = kit.task();
        if turn == Turn::Sleep {
            break;
        }
        assert_eq!(kit.stops(), 0);
        turns.push((texts(out).join(","), turn));
    }
    let want = [("a,b c,de", Turn::More), ("a", Turn::Again), ("b c,de,a", Turn::Again)];
    assert_eq!(turns, want.map(|(t, turn)| (t.to_string(), turn)));
    assert_eq!((kit.stops(), kit.task().0, kit.stops()), (1, Turn::Sleep, 1));
    kit.write("reset", "").unwrap();
    assert!(kit.woken());
    assert_eq!(texts(kit.task().1), ["a", "b c", "de"]);
    kit.write("active", "false").unwrap();
    assert_eq!(kit.task().0, Turn::Sleep);
    assert_eq!((kit.read("count").unwrap(), kit.read("frames").unwrap()), ("3".into(), "3".into()));
}

#[test]
fn every_length_is_copied_whole() {
    for len in 0..600usize {
        let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let config = format!("{}, BURST 2", castanet_lang::args::quote_bytes(&data));
        let mut kit = Kit::<MemSource>::new(&config).unwrap();
        for (_, p) in kit.task().1 {
            assert_eq!((p.data(), p.headroom(), p.timestamp()), (&data[..], 28, 0));
        }
    }
}

#[test]
fn random_order_takes_every_frame() {
    let mut kit = Kit::<MemSource>::new("'a' b c d, RANDOM true, BURST 300").unwrap().limit(256);
    let mut seen = texts(kit.task().1);
    assert_eq!(seen.len(), 256);
    assert_ne!(seen[..4], ["a", "b", "c", "d"]);
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["a", "b", "c", "d"]);
}

#[test]
fn the_order_of_frames_is_that_of_single_packets() {
    let long = "c".repeat(100);
    for random in [false, true] {
        let sent = |burst: usize, limit: usize| {
            let config = format!("'a' bb {long} dddd, BURST {burst}, RANDOM {random}");
            let mut kit = Kit::<MemSource>::new(&config).unwrap().limit(limit);
            (0..60 / burst.min(limit)).flat_map(|_| texts(kit.task().1)).collect::<Vec<_>>()
        };
        let one = sent(1, 1);
        assert_eq!(one.len(), 60);
        for (burst, limit) in [(1, 32), (3, 32), (5, 1), (30, 10)] {
            assert_eq!(sent(burst, limit), one, "{burst} {limit} {random}");
        }
    }
}

#[test]
fn frames_of_a_capture() {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    bytes.extend([0; 8]);
    bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    for frame in [&b"first"[..], b"second"] {
        bytes.extend([0; 8]);
        bytes.extend((frame.len() as u32).to_le_bytes().repeat(2));
        bytes.extend(frame);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let mut kit = Kit::<MemSource>::new(&format!("FILE {}, LIMIT 3", file.path().display())).unwrap();
    assert_eq!(texts(kit.task().1), ["first", "second", "first"]);
    std::fs::write(file.path(), &bytes[..24]).unwrap();
    let none = Kit::<MemSource>::new(&format!("FILE {}", file.path().display())).err().unwrap();
    assert!(none[0].ends_with("no frame"), "{none:?}");
}

#[test]
fn argument_errors() {
    for (config, error) in [
        ("a, FILE b", "specify at most one of DATA and FILE"),
        ("\"\\<00", "DATA: a quote or '\\<' is not closed"),
        ("a, x", "LIMIT: invalid number"),
    ] {
        assert_eq!(Kit::<MemSource>::new(config).err().unwrap(), [error], "{config}");
    }
    assert!(Kit::<MemSource>::new("FILE /nonexistent.pcap").is_err());
}
