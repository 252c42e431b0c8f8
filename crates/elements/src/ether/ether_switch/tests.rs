// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of EtherSwitch. One of them compares it with a plain model.
#![allow(clippy::unwrap_used)]

use super::*;
use castanet_element::kit::{Kit, packet};
use std::collections::HashMap;

const S: i64 = 1_000_000_000;

fn frame(dst: [u8; 6], src: [u8; 6], at: i64) -> Packet {
    let mut p = packet(&[&dst[..], &src, &[8, 0]].concat());
    p.set_timestamp(at);
    p
}

fn station(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

fn ports(out: &[(usize, Packet)]) -> Vec<usize> {
    out.iter().map(|o| o.0).collect()
}

#[test]
fn ages_by_timestamps() {
    let mut kit = Kit::<EtherSwitch>::with_ports("TIMEOUT 10", 3, 3).unwrap();
    assert_eq!(ports(&kit.push(0, [frame([0xff; 6], station(1), S)])), [1, 2]);
    assert_eq!(ports(&kit.push(1, [frame(station(1), station(2), 5 * S)])), [0]);
    assert_eq!(ports(&kit.push(1, [frame(station(1), station(2), 11 * S)])), [0], "just young enough");
    assert_eq!(ports(&kit.push(1, [frame(station(1), station(2), 20 * S)])), [0, 2]);
    assert_eq!(kit.read("table").unwrap(), "02-00-00-00-00-02 1\n");
    // If frames have no timestamps, addresses do not expire.
    let mut kit = Kit::<EtherSwitch>::with_ports("TIMEOUT 10", 3, 3).unwrap();
    kit.push(0, [frame([0xff; 6], station(1), 0)]);
    assert_eq!(ports(&kit.push(1, [frame(station(1), station(2), 0)])), [0]);
}

#[test]
fn floods_learns_and_filters() {
    // The columns are input, destination, source and outputs.
    let table = [
        (1, station(9), station(1), &[0, 2, 3][..]),
        (0, station(1), station(2), &[1]),
        (1, station(1), station(3), &[]),
        (3, [0xff; 6], station(2), &[0, 1, 2]),
        (0, station(2), station(4), &[3]),
        (2, [1, 0, 0x5e, 0, 0, 1], station(5), &[0, 1, 3]),
        // A group address as source is learnt, but as destination it still means all ports.
        (2, station(5), [3, 0, 0, 0, 0, 1], &[]),
        (0, [3, 0, 0, 0, 0, 1], station(4), &[1, 2, 3]),
    ];
    let mut kit = Kit::<EtherSwitch>::with_ports("", 4, 4).unwrap();
    for (port, dst, src, want) in table {
        assert_eq!(ports(&kit.push(port, [frame(dst, src, S)])), want, "{dst:x?}");
    }
    assert_eq!((kit.dropped(Reason::SameSegment), kit.all_dropped()), (2, 2));
    assert_eq!(kit.read("table").unwrap().lines().count(), 6);
    for len in 0..14 {
        assert!(kit.push(0, [packet(&vec![0; len])]).is_empty());
    }
    assert_eq!(kit.dropped(Reason::TooShort), 14);
}

#[test]
fn without_timeout_it_is_a_hub() {
    let mut kit = Kit::<EtherSwitch>::with_ports("TIMEOUT 0", 2, 2).unwrap();
    kit.push(0, [frame(station(2), station(1), 0)]);
    assert_eq!(ports(&kit.push(1, [frame(station(1), station(2), 0)])), [0]);
    assert_eq!(ports(&kit.push(0, [frame(station(1), station(2), 0)])), [1]);
    assert_eq!(kit.read("table").unwrap(), "");
    kit.write("timeout", "300").unwrap();
    kit.push(0, [frame(station(2), station(1), 0)]);
    assert_eq!(kit.read("table").unwrap(), "02-00-00-00-00-01 0\n");
    assert_eq!(kit.read("timeout").unwrap(), "300");
    assert!(kit.write("timeout", "-1").is_err() && kit.write("timeout", "x").is_err());
    assert!(Kit::<EtherSwitch>::with_ports("TIMEOUT -1", 2, 2).is_err());
    assert!(Kit::<EtherSwitch>::with_ports("5", 2, 2).is_err(), "TIMEOUT is a keyword");
}

/// A plain model of a bridge.
#[derive(Default)]
struct Model(HashMap<[u8; 6], (usize, i64)>);

impl Model {
    fn outputs(&mut self, from: usize, dst: [u8; 6], src: [u8; 6], now: i64, timeout: i64) -> Vec<usize> {
        self.0.insert(src, (from, now));
        match self.0.get(&dst) {
            Some(&(port, heard)) if dst[0] & 1 == 0 && now - heard <= timeout => {
                if port == from {
                    vec![]
                } else {
                    vec![port]
                }
            }
            _ => (0..5).filter(|p| *p != from).collect(),
        }
    }
}

#[test]
fn as_the_model_at_any_batch_size() {
    for size in [1, 2, 3, 32] {
        let mut random = Random::new(3, "switch");
        let mut kit = Kit::<EtherSwitch>::with_ports("TIMEOUT 2", 5, 5).unwrap();
        let (mut model, mut now, mut sent) = (Model::default(), S, 0);
        let (mut copies, mut came) = (0, 0);
        for _ in 0..2000 / size {
            let from = random.below(5) as usize;
            let mut want = vec![Vec::new(); 5];
            let mut batch = Vec::new();
            for _ in 0..size {
                now += (random.below(100) * 1_000_000) as i64;
                let [dst, src] = [0; 2].map(|_| station(random.below(20) as u8));
                let dst = if random.below(8) == 0 { [0xff; 6] } else { dst };
                let mut p = frame(dst, src, now);
                p.set_anno_u32(40, sent);
                let to = model.outputs(from, dst, src, now, 2 * S);
                copies += to.len().saturating_sub(1);
                to.iter().for_each(|o| want[*o].push(sent));
                sent += 1;
                batch.push(p);
            }
            let mut got = vec![Vec::new(); 5];
            for (o, p) in kit.push(from, batch) {
                got[o].push(p.anno_u32(40));
                came += 1;
            }
            assert_eq!(got, want);
        }
        assert_eq!(came + kit.all_dropped() as usize, sent as usize + copies);
    }
}
