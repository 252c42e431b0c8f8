// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::{Kit, packet};

fn of(aggregate: u32, len: usize, extra_packets: u32, extra_length: u32) -> Packet {
    let mut p = packet(&vec![0; len]);
    p.set_anno_u32(anno::AGGREGATE, aggregate);
    p.set_anno_u32(anno::EXTRA_PACKETS, extra_packets);
    p.set_anno_u32(anno::EXTRA_LENGTH, extra_length);
    p
}

fn text(kit: &Kit<AggregateCounter>, format: counts::Format) -> String {
    let mut out = Vec::new();
    kit.element.shared.main(|s| s.counts.write_to(&mut out, &s.banner, format)).unwrap();
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn counts_what_is_asked_for() {
    let table = [
        ("", 4, "1 3\n2 1\n"),
        ("MULTIPACKET false", 3, "1 2\n2 1\n"),
        ("BYTES true", 137, "1 37\n2 100\n"),
        ("BYTES true, EXTRA_LENGTH false", 130, "1 30\n2 100\n"),
        ("IP_BYTES true", 137, "1 37\n2 100\n"),
    ];
    for (config, count, lines) in table {
        for batch in [1, 2, 3] {
            let mut kit = Kit::<AggregateCounter>::new(config).unwrap();
            let mut all = vec![of(1, 10, 1, 0), of(2, 100, 0, 0), of(1, 20, 0, 7)];
            while !all.is_empty() {
                let n = batch.min(all.len());
                assert_eq!(kit.push(0, all.drain(..n)).len(), n);
            }
            let want = format!("!IPAggregate 1.0\n!num_nonzero 2\n{lines}");
            assert_eq!(
                (text(&kit, counts::Format::Text), kit.read("count").unwrap()),
                (want, count.to_string())
            );
            assert_eq!(kit.read("nagg").unwrap(), "2");
        }
    }
    let mut p = of(9, 40, 0, 0);
    p.data_mut()[..4].copy_from_slice(&[0x45, 0, 1, 0]);
    p.set_network_header(0, 20);
    let mut kit = Kit::<AggregateCounter>::new("IP_BYTES true").unwrap();
    kit.push(0, [p]);
    assert_eq!(kit.read("count").unwrap(), "256");
}

#[test]
fn freezing_and_the_second_ports() {
    let mut kit = Kit::<AggregateCounter>::with_ports("AGGREGATE_FREEZE 2", 2, 2).unwrap();
    let outputs = |out: Vec<(usize, Packet)>| out.iter().map(|o| o.0).collect::<Vec<_>>();
    assert_eq!(outputs(kit.push(1, [of(1, 1, 0, 0)])), [1], "not seen on input 0");
    assert_eq!(
        outputs(kit.push(0, [of(1, 1, 0, 0), of(2, 1, 0, 0), of(1, 1, 0, 0), of(3, 1, 0, 0)])),
        [0, 0, 0, 1]
    );
    assert_eq!(outputs(kit.push(1, [of(1, 1, 0, 0)])), [0]);
    assert_eq!((kit.read("freeze").unwrap(), kit.read("count").unwrap()), ("true".into(), "4".into()));
    kit.write("freeze", "false").unwrap();
    assert_eq!(outputs(kit.push(0, [of(3, 1, 0, 0)])), [0]);
    let mut kit = Kit::<AggregateCounter>::new("COUNT_FREEZE 1").unwrap();
    assert_eq!(outputs(kit.push(0, [of(1, 1, 0, 0), of(2, 1, 0, 0)])), [0, 0], "one output takes all");
    assert_eq!(kit.read("nagg").unwrap(), "1");
}

#[test]
fn calls_and_stops() {
    let mut kit = Kit::<AggregateCounter>::new("AGGREGATE_CALL 2 go, COUNT_STOP 4").unwrap();
    kit.push(0, [of(1, 1, 0, 0), of(1, 1, 0, 0)]);
    assert_eq!((kit.calls().len(), kit.read("aggregate_call").unwrap()), (0, "2 go".into()));
    kit.push(0, [of(2, 1, 0, 0)]);
    assert_eq!(kit.calls(), [(None, "go".into(), String::new())]);
    assert_eq!((kit.stops(), kit.read("aggregate_call").unwrap()), (0, String::new()));
    kit.push(0, [of(2, 1, 0, 0), of(2, 1, 0, 0)]);
    assert_eq!(
        (kit.stops(), kit.read("count").unwrap(), kit.read("active").unwrap()),
        (1, "4".into(), "false".into())
    );
    kit.write("active", "true").unwrap();
    kit.write("count_call", "6 now 3").unwrap();
    kit.push(0, [of(2, 1, 0, 0), of(2, 1, 0, 0), of(2, 1, 0, 0)]);
    assert_eq!(kit.calls(), [(None, "now".into(), "3".into())]);
    kit.write("stop", "").unwrap();
    assert_eq!(kit.stops(), 2);
    let effects =
        |c: &str| Kit::<AggregateCounter>::new(c).unwrap().element.effects(Effects::from_bits_truncate(15));
    assert_eq!((effects(""), effects("COUNT_STOP 1")), (Effects::empty(), Effects::STOPS));
    for bad in [
        "COUNT_CALL x",
        "COUNT_CALL 1",
        "COUNT_STOP 1, COUNT_FREEZE 1",
        "AGGREGATE_CALL 1 a, AGGREGATE_STOP 1",
    ] {
        assert!(Kit::<AggregateCounter>::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn files() {
    let mut kit = Kit::<AggregateCounter>::new("BANNER hello").unwrap();
    kit.push(0, [of(0x0100_0001, 1, 0, 0), of(7, 1, 3, 0), of(8, 1, 0, 0)]);
    let head = "!IPAggregate 1.0\nhello\n!num_nonzero 3\n";
    assert_eq!(
        text(&kit, counts::Format::Addresses),
        format!("{head}!ip\n0.0.0.7 4\n0.0.0.8 1\n1.0.0.1 1\n")
    );
    assert_eq!(text(&kit, counts::Format::Shares), format!("{head}1 0.666666666667\n4 0.333333333333\n"));
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("x");
    kit.write("write_file", path.to_str().unwrap()).unwrap();
    let want =
        [head.as_bytes(), b"!packed_be\n\0\0\0\x07\0\0\0\x04\0\0\0\x08\0\0\0\x01\x01\0\0\x01\0\0\0\x01"]
            .concat();
    assert_eq!(std::fs::read(&path).unwrap(), want);
    assert!(kit.write("write_text_file", "/nonexistent/x").unwrap_err().to_string().contains("No such file"));
    kit.write("reaggregate_counts", "").unwrap();
    kit.write("banner", "").unwrap();
    assert_eq!(text(&kit, counts::Format::Text), "!IPAggregate 1.0\n!num_nonzero 2\n1 2\n4 1\n");
    kit.write("clear", "").unwrap();
    assert_eq!((kit.read("nagg").unwrap(), kit.read("count").unwrap()), ("0".into(), "0".into()));
}

/// Returns one element for each of several workers.
fn several(config: &str, workers: usize) -> Vec<Kit<AggregateCounter>> {
    let mut kits: Vec<_> = (0..workers).map(|_| Kit::<AggregateCounter>::new(config).unwrap()).collect();
    let state = kits[0].element.shared.main(|s| {
        let (aggregates, total) = (std::mem::take(&mut s.aggregates), std::mem::take(&mut s.total));
        State { counts: counts::Counts::default(), banner: String::new(), aggregates, total, ..*s }
    });
    let shared = Arc::new(Shared::new(state, workers));
    for (worker, kit) in kits.iter_mut().enumerate() {
        (kit.element.shared, kit.element.worker) = (shared.clone(), worker);
    }
    kits
}

#[test]
fn several_workers_count_as_one_does() {
    for config in ["", "COUNT_FREEZE 3000", "AGGREGATE_STOP 40", "BYTES true, AGGREGATE_FREEZE 20"] {
        let mut random = Random::new(6, config);
        let mut kits = several(config, 3);
        let mut one = Kit::<AggregateCounter>::new(config).unwrap();
        for i in 0..2000 {
            let worker = random.below(3) as usize;
            let packets: Vec<u32> = (0..random.below(5)).map(|_| random.below(60) as u32).collect();
            let new = || packets.iter().map(|a| of(*a, 7, 0, 0));
            assert_eq!(kits[worker].push(0, new()).len(), one.push(0, new()).len());
            let write = match random.below(200) {
                0 => ("freeze", "true"),
                1 => ("freeze", "false"),
                2 => ("active", "false"),
                3..=6 => ("active", "true"),
                7 => ("reaggregate_counts", ""),
                8 if i < 1000 => ("clear", ""),
                _ => continue,
            };
            kits[random.below(3) as usize].write(write.0, write.1).unwrap();
            one.write(write.0, write.1).unwrap();
            for handler in ["count", "nagg", "freeze", "active"] {
                assert_eq!(kits[0].read(handler), one.read(handler), "{handler} {config}");
            }
        }
        assert_eq!(text(&kits[1], counts::Format::Text), text(&one, counts::Format::Text), "{config}");
        assert_ne!(one.read("count").unwrap(), "0");
        assert_eq!(kits.iter().map(Kit::stops).sum::<u32>(), one.stops(), "{config}");
    }
}

#[test]
fn workers_use_their_own_tables_until_a_packet_depends_on_others() {
    let mut kits = several("", 2);
    let apart = |kits: &[Kit<AggregateCounter>]| kits[0].element.shared.own(0).is_some();
    for worker in [0, 1, 0] {
        kits[worker].push(0, [of(7, 1, 0, 0)]);
    }
    assert_eq!(kits[0].element.shared.own(0).unwrap().total(), 2);
    assert_eq!(kits[0].element.shared.own(1).unwrap().total(), 1);
    assert_eq!(kits[0].read("count").unwrap(), "3");
    assert!(apart(&kits));
    kits[1].write("freeze", "true").unwrap();
    assert!(!apart(&kits));
    kits[1].write("freeze", "false").unwrap();
    assert!(apart(&kits));
    assert!(!apart(&several("COUNT_STOP 9", 2)));
}

#[test]
fn no_packet_is_lost_while_handlers_collect_the_counts() {
    let shared = several("", 3)[0].element.shared.clone();
    std::thread::scope(|s| {
        for worker in 0..3 {
            let shared = &shared;
            s.spawn(move || {
                for i in 0..20_000 {
                    match shared.own(worker) {
                        Some(mut table) => drop(table.add(i % 50, 1, false)),
                        None => drop(shared.main(|s| s.counts.add(i % 50, 1, false))),
                    }
                }
            });
        }
        for i in 0..200 {
            shared.main(|s| s.frozen = i % 2 == 0);
        }
        shared.main(|s| s.frozen = false);
    });
    assert_eq!(shared.main(|s| (s.counts.total(), s.counts.len())), (60_000, 50));
}
