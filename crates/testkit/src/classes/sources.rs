// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources of numbered packets.

use super::recorders::Id;
use super::{NUMBER, SOURCE, mix};
use castanet_element::prelude::*;

/// Emits TOTAL numbered packets, BURST per turn. Sleeps while all queues downstream are full.
#[derive(Class)]
#[class(name = "Numbers", ports = "0/1", processing = "a/h", packets = "/any", workers = exclusive, task, lifecycle)]
#[class(ledger(enters))]
pub struct Numbers {
    args: NumbersArgs,
    /// Packets emitted.
    #[count(unit = "packets")]
    count: Count,
    /// The number of packets still to emit in this turn.
    rest: u32,
    downstream: Signal,
}

/// Arguments of Numbers.
#[derive(Args)]
pub struct NumbersArgs {
    /// The source number that the packets carry.
    id: u8,
    /// The number of packets.
    total: u32,
    /// Packets per turn.
    #[arg(default = 1)]
    burst: u32,
    /// Stop the driver after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
}

impl Element for Numbers {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let left = self.args.total.saturating_sub(self.count.get() as u32);
        if left == 0 {
            if self.args.stop {
                cx.stop(1);
            }
            return Turn::Sleep;
        }
        if self.rest == 0 {
            let want = self.args.burst.min(left) as usize;
            match cx.room(&self.downstream, want, false) {
                Ok(room) => self.rest = room as u32,
                Err(turn) => return turn,
            }
        }
        for _ in 0..self.rest.min(cx.limit() as u32) {
            let n = self.count.get() as u32;
            let mut p = castanet_element::kit::packet(&vec![(n ^ 0x5a) as u8; 20 + (mix(n) % 60) as usize]);
            p.set_anno_u8(SOURCE, self.args.id);
            p.set_anno_u32(NUMBER, n);
            cx.entered(1);
            cx.emit(0, p);
            self.count.add(1);
            self.rest -= 1;
        }
        if self.rest > 0 { Turn::More } else { Turn::Again }
    }
}

impl Lifecycle for Numbers {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.downstream = cx.downstream(0);
        Ok(())
    }
}

/// Numbers the packets of another source in the same way as `Numbers` numbers its own packets.
#[derive(Class)]
#[class(name = "Stamp", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive)]
pub struct Stamp {
    args: Id,
    next: u32,
}

impl Action for Stamp {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        p.set_anno_u8(SOURCE, self.args.id as u8);
        p.set_anno_u32(NUMBER, self.next);
        self.next += 1;
        Verdict::Next
    }
}
