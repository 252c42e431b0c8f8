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
    kit.element.counts.write_to(&mut out, &kit.element.banner, format).unwrap();
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
