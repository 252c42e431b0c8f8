// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes the routes of tables while packets are forwarded. A write may change several routes: each packet must see all of
//! its changes or none.
#![allow(clippy::unwrap_used, missing_docs)]

use castanet_element::element;
use castanet_element::prelude::*;
use castanet_element::{Random, Remote as _};
use castanet_testkit::{number, real, try_router_with};
use std::fmt::Write as _;

/// The number of writes.
const WRITES: usize = 1000;

/// Expects packets to two destinations in turn, and counts pairs whose packets took different outputs of the table.
#[derive(Class)]
#[class(name = "Pairs", ports = "1/0", processing = "h/a", packets = "any/", workers = exclusive)]
#[class(drops(Consumed), ends(Consumed))]
pub struct Pairs {
    /// Pairs whose packets took one output.
    #[count(unit = "pairs")]
    equal: Count,
    /// Pairs whose packets took different outputs, and packets out of turn.
    #[count(unit = "pairs")]
    mixed: Count,
    /// Pairs that took output 1.
    #[count(unit = "pairs")]
    changed: Count,
    first: Option<u8>,
}

impl Element for Pairs {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.iter() {
            let is_second = p.data().last() == Some(&2);
            match (self.first.take(), is_second) {
                (None, false) => self.first = Some(p.paint()),
                (Some(paint), true) if paint == p.paint() => {
                    self.equal.add(1);
                    self.changed.add(u64::from(paint == 1));
                }
                _ => self.mixed.add(1),
            }
        }
        cx.drop_all(batch, Reason::Consumed);
    }
}

fn no_packet_sees_half_a_change(class: &str, others: usize) {
    // Two packets of 20 bytes, to 10.1.0.1 and 77.2.0.2. Both destinations have a default route to output 0.
    let header = "4500001400000000401100000a000001";
    let text = format!(
        "MemSource(\\<{header}0a010001> \\<{header}4d020002>, BURST 32) -> GetIPAddress(16)
             -> routes :: {class}(0/0 0);
         routes [0] -> Paint(0) -> pairs :: Pairs;
         routes [1] -> Paint(1) -> pairs;"
    );
    let (options, _) = real(1);
    let mut router = try_router_with(&text, options, |r| r.add(element::<Pairs>())).unwrap();
    // Routes of other networks fill the table. None of them contains the two destinations.
    let (mut random, mut lines) = (Random::new(5, class), String::new());
    for _ in 0..others {
        let addr = 0xc000_0000 | random.next_u32() >> 2;
        let len = 16 + random.below(17) as u8;
        let _ = writeln!(lines, "set {}/{len} 1", std::net::Ipv4Addr::from_bits(addr));
    }
    let table = router.find("routes");
    router.write(table, "ctrl", &lines).unwrap();
    let running = router.running().clone();
    std::thread::scope(|scope| {
        let forwarding = scope.spawn(|| router.run());
        for i in 0..WRITES {
            let (a, b) = [("10.1.0.0/16", "77.2.0.2/32"), ("10.0.0.0/9", "77.2.0.0/25")][i / 4 % 2];
            let change = match i % 4 {
                0 => format!("add {a} 1\nadd {b} 1"),
                1 => format!("set {a} 0\nset {b} 0"),
                2 => format!("set {b} 1\nset {a} 1"),
                _ => format!("remove {a}\nremove {b}"),
            };
            running.write(Origin::Operator, Some("routes"), "ctrl", &change).unwrap();
        }
        running.write(Origin::Operator, None, "stop", "1").unwrap();
        forwarding.join().unwrap().unwrap();
    });
    let counts = ["equal", "mixed", "changed"].map(|h| number(&mut router, "pairs", h));
    assert_eq!(counts[1], 0, "{class}: {counts:?}");
    // Packets came both before and after changes.
    assert!(counts[2] > 0 && counts[2] < counts[0], "{class}: {counts:?}");
    assert_eq!(router.read(table, "lookup", "10.1.0.1").unwrap(), "0");
    router.ledger().check();
}

#[test]
fn no_packet_sees_half_a_change_of_a_large_table() {
    no_packet_sees_half_a_change("RadixIPLookup", 30_000);
    no_packet_sees_half_a_change("DirectIPLookup", 30_000);
    no_packet_sees_half_a_change("RangeIPLookup", 100);
}

#[test]
fn no_packet_sees_half_a_change_of_a_small_table() {
    no_packet_sees_half_a_change("LinearIPLookup", 10);
}
