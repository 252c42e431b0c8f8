// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many flows through a table that holds few.

use crate::nat::flow::{Kind, Timeouts, class};
use crate::nat::spec::Spec;
use crate::nat::store::{Made, New, Store};
use crate::nat::tuple::Tuple;
use castanet_element::prelude::*;

/// So many flows, a microsecond apart, through a table of 4096 with so much guarantee; how many were refused.
fn flood(flows: u32, guarantee: i64) -> u32 {
    const ROOM: u32 = 4096;
    let mut store = Store::new(ROOM, Random::new(1, "flood"));
    let space = store.join(Kind::Ports, Timeouts::all(300_000_000_000, guarantee), 1, "e").unwrap();
    store.input(space, 0).unwrap().spec = Spec::Keep([0, 1]);
    let mut refused = 0;
    for i in 0..flows {
        let from = Tuple::new(0x0a00_0000 | i >> 8, i as u16, 0x0200_0002, 80);
        let now = i64::from(i) * 1000;
        let new = New { space, input: 0, proto: 6, from, class: class::TCP_NEW, anno: 0, now };
        match store.make(&new) {
            Made::Flow(_) => assert!(store.look_up(space, 6, from.reversed(), now).is_some()),
            Made::Drop(Reason::TableFull) => refused += 1,
            other => panic!("{other:?}"),
        }
        assert!(store.count() <= ROOM as usize);
    }
    let input = store.input(space, 0).unwrap();
    assert_eq!((input.failures, input.flows), (u64::from(refused), ROOM as usize));
    // Those that are there are the last ones that were taken.
    let now = i64::from(flows) * 1000;
    for place in store.places(space) {
        let f = store.flow(place).unwrap();
        assert!(guarantee > 0 || f.last >= now - i64::from(ROOM) * 1000);
    }
    store.clean(space, now + 400_000_000_000, usize::MAX);
    assert_eq!((store.count(), store.space(space).unwrap().entries), (0, 0));
    refused
}

#[test]
fn a_flood_is_bounded() {
    assert_eq!(flood(100_000, 0), 0);
    // 8192 microseconds of guarantee: half of what comes finds no room.
    let refused = flood(100_000, 8_192_000);
    assert!((45_000..55_000).contains(&refused), "{refused}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow without optimisation")]
fn ten_million_flows() {
    assert_eq!(flood(10_000_000, 0), 0);
}
