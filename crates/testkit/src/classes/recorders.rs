// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that record the packets they see.

use super::{SOURCE, TRAIL, number};
use castanet_element::prelude::*;

/// The 32-bit FNV-1a hash of some bytes.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |h, &b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

/// The record of a packet: `ID SOURCE TRAIL NUMBER` and its contents.
fn describe(id: u32, p: &Packet) -> String {
    let (trail, all) = (p.anno_u32(TRAIL), p.annotations());
    // Simulated time advances by 1 ns with each reading, and the number of readings may differ. So timestamps
    // are rounded down to 10 µs.
    let headers = (p.network_offset(), p.mac_offset(), p.timestamp() / 10_000 * 10_000);
    let sum = hash(p.data());
    format!(
        "{id} {} {trail:08x} {} len {} data {sum:08x} {} {headers:?}",
        p.anno_u8(SOURCE),
        number(p),
        p.len(),
        hash(&all)
    )
}

/// Records packets and drops them.
#[derive(Class)]
#[class(name = "Sink", ports = "1/0", processing = "h/a", packets = "any/", workers = replicate, drops(Consumed), ends(Consumed))]
pub struct Sink {
    args: Id,
    /// Packets taken in.
    #[count(unit = "packets")]
    count: Count,
}

/// Arguments of classes that record.
#[derive(Args)]
pub struct Id {
    /// The number that records start with.
    pub(super) id: u32,
}

impl Element for Sink {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        for p in batch.iter() {
            cx.message(&describe(self.args.id, p));
        }
        cx.drop_all(batch, Reason::Consumed);
    }
}

/// Records packets and passes them on.
#[derive(Class)]
#[class(name = "Record", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
pub struct Record {
    args: Id,
}

impl Action for Record {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        cx.message(&describe(self.args.id, p));
        Verdict::Next
    }
}

/// Records packets and passes them on. Declares the recording as an outside effect.
#[derive(Class)]
#[class(name = "Say", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, effects(prints))]
pub struct Say {
    args: Id,
}

impl Action for Say {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        cx.message(&format!("say {}", describe(self.args.id, p)));
        Verdict::Next
    }
}
