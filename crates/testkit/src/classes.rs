// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes for tests: a source of numbered packets, and elements that record, mark, select or loop packets by
//! number.

mod callers;
mod paths;
mod recorders;
mod sources;

use callers::{Ask, Busy, Quit, Restless, Tell};
use castanet_classes::Registry;
use castanet_element::prelude::*;
use castanet_element::{action, element};
use paths::{Copy, Edit, Lap, Mark, Pick, Split, Twice};
use recorders::{Record, Say, Sink};
use sources::{Numbers, Stamp};

/// The offsets of the annotations. `SOURCE` holds the source of a packet, and `NUMBER` the packet's number in that
/// source. `TRAIL` holds a hash of the elements that the packet has passed. `LAPS` holds the number of times that the
/// packet has gone round a loop.
const SOURCE: usize = 18;
const NUMBER: usize = 36;
const TRAIL: usize = 40;
const LAPS: usize = 46;

pub fn add_to(r: &mut Registry) {
    for def in [
        element::<Numbers>(),
        action::<Stamp>(),
        element::<Sink>(),
        action::<Record>(),
        action::<Say>(),
        action::<Mark>(),
        action::<Edit>(),
        action::<Pick>(),
        action::<Copy>(),
        action::<Twice>(),
        action::<Lap>(),
        element::<Split>(),
        element::<Quit>(),
        element::<Tell>(),
        element::<Ask>(),
        element::<Busy>(),
        element::<Restless>(),
    ] {
        r.add(def);
    }
}

fn number(p: &Packet) -> u32 {
    p.anno_u32(NUMBER)
}

fn mix(n: u32) -> u32 {
    let n = (n ^ (n >> 15)).wrapping_mul(0x2c1b_3c6d);
    n ^ (n >> 12)
}
