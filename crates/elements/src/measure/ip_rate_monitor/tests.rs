// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::{Kit, packet};

fn ip(src: [u8; 4], dst: [u8; 4], len: usize) -> Packet {
    let mut data = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 9, 17, 0, 0];
    data.extend(src);
    data.extend(dst);
    data.resize(len, 0);
    let mut p = packet(&data);
    p.set_network_header(0, 20);
    p
}
/// Sends `each` packets a second for ten seconds. Returns the rate annotations of the last packet.
fn load(kit: &mut Kit<IpRateMonitor>, port: usize, each: i64, make: impl Fn(i64) -> Packet) -> (u32, u32) {
    let mut last = (0, 0);
    for i in 0..10 * each {
        kit.at(i * 1_000_000_000 / each);
        let out = kit.push(port, [make(i)]);
        last = (out[0].1.anno_u32(anno::FWD_RATE), out[0].1.anno_u32(anno::REV_RATE));
    }
    last
}

#[test]
fn rates_get_finer_where_there_is_traffic() {
    let mut kit = Kit::<IpRateMonitor>::new("PACKETS, 1, 100").unwrap();
    let (forward, reverse) =
        load(&mut kit, 0, 1000, |i| ip([1, 2, 3, if i % 10 == 0 { 4 } else { 5 }], [9; 4], 60));
    assert!((700..1000).contains(&forward) || (50..110).contains(&forward), "{forward}");
    assert_eq!(reverse, 0);
    let look = kit.read("look").unwrap();
    let rate = |name: &str| -> f64 {
        let line = look
            .lines()
            .find(|l| l.split('\t').next() == Some(name))
            .unwrap_or_else(|| panic!("{name} in {look}"));
        line.split('\t').nth(1).unwrap().parse().unwrap()
    };
    assert!((rate("1") - 1000.0).abs() < 50.0 && (rate("1.2.3.5") - 900.0).abs() < 50.0, "{look}");
    kit.write("reset", "").unwrap();
    assert_eq!(kit.read("look").unwrap(), "0");
    let mut kit = Kit::<IpRateMonitor>::new("PACKETS, 1, 5000").unwrap();
    load(&mut kit, 0, 1000, |_| ip([1, 2, 3, 4], [9; 4], 60));
    assert_eq!(kit.read("look").unwrap().lines().count(), 2, "one prefix of one byte");
}

#[test]
fn bytes_directions_and_ratio() {
    let mut kit = Kit::<IpRateMonitor>::with_ports("BYTES, 1, 1000000", 2, 2).unwrap();
    let (forward, reverse) = load(&mut kit, 1, 1000, |_| ip([9; 4], [1, 2, 3, 4], 100));
    assert_eq!(forward, 0);
    assert!((95_000..105_000).contains(&reverse), "{reverse}");
    assert_eq!(kit.push(1, [ip([9; 4], [1; 4], 60)])[0].0, 1);
    let mut kit = Kit::<IpRateMonitor>::new("PACKETS, 0.1, 1000000").unwrap();
    load(&mut kit, 0, 2000, |_| ip([1; 4], [9; 4], 60));
    // Only one packet in ten is counted, so the rate fluctuates. On average it is right.
    let many = (0..10_000).map(|i| {
        kit.at(10_000_000_000 + i * 500_000);
        u64::from(kit.push(0, [ip([1; 4], [9; 4], 60)])[0].1.anno_u32(anno::FWD_RATE))
    });
    let average = many.sum::<u64>() / 10_000;
    assert!((1800..2200).contains(&average), "{average}");
    let mut kit = Kit::<IpRateMonitor>::new("PACKETS, 1, 0, ANNO false").unwrap();
    assert_eq!(load(&mut kit, 0, 100, |_| ip([1; 4], [9; 4], 60)), (0, 0));
}

#[test]
fn memory_and_levels() {
    let mut kit = Kit::<IpRateMonitor>::new("PACKETS, 1, 0, 16").unwrap();
    load(&mut kit, 0, 5000, |i| ip((i as u32).wrapping_mul(2_654_435_761).to_be_bytes(), [9; 4], 60));
    assert!(kit.read("mem").unwrap().parse::<usize>().unwrap() <= 16 * 1024);
    assert_eq!(kit.read("memmax").unwrap(), "16");
    kit.write("memmax", "1").unwrap();
    assert!(kit.read("mem").unwrap().parse::<usize>().unwrap() <= 1024);
    let mut kit = Kit::<IpRateMonitor>::new("PACKETS, 1, 0").unwrap();
    load(&mut kit, 0, 1000, |i| ip([1, (i % 2) as u8, 0, 0], [9; 4], 60));
    kit.write("anno_level", "1.0.0.0 1 5").unwrap();
    let rate = |kit: &mut Kit<IpRateMonitor>| {
        kit.push(0, [ip([1, 1, 0, 0], [9; 4], 60)])[0].1.anno_u32(anno::FWD_RATE)
    };
    assert!(rate(&mut kit) > 800);
    kit.at(16_000_000_000);
    assert!(rate(&mut kit) < 800, "the level has ended");
    for bad in ["", "1.2.3.4", "x 1 1", "1.2.3.4 5 1", "1.2.3.4 0 1"] {
        assert!(kit.write("anno_level", bad).is_err(), "{bad}");
    }
    for bad in ["", "FOO, 1, 1", "PACKETS, 2, 1", "PACKETS, 1", "PACKETS, 1, -1"] {
        assert!(Kit::<IpRateMonitor>::new(bad).is_err(), "{bad}");
    }
    for n in 0..60 {
        let mut p = ip([1; 4], [2; 4], 60);
        p.truncate(n);
        assert_eq!(kit.push(0, [p]).len(), 1);
    }
}
