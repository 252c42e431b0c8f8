// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that mark, change, copy or select packets by their number, or send them round a cycle.

use super::recorders::Id;
use super::{LAPS, TRAIL, mix, number};
use castanet_element::prelude::*;

/// Makes paths distinguishable: it updates the packet's trail annotation, which is a hash of the marks on the packet's
/// path.
#[derive(Class)]
#[class(name = "Mark", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
pub struct Mark {
    args: Id,
}

impl Action for Mark {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let trail = p.anno_u32(TRAIL).wrapping_mul(0x0100_0193).wrapping_add(self.args.id + 1);
        p.set_anno_u32(TRAIL, trail);
        Verdict::Next
    }
}

/// Changes the first byte of a packet by an amount that depends on the packet's number.
#[derive(Class)]
#[class(name = "Edit", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
pub struct Edit {
    args: Id,
}

impl Action for Edit {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let n = (number(p) as u8).wrapping_mul(3).wrapping_add(self.args.id as u8);
        if let Some(b) = p.data_mut().first_mut() {
            *b = b.wrapping_add(n);
        }
        Verdict::Next
    }
}

/// Sends a packet to output 1 if the hash of its number, modulo MODULUS, is REMAINDER.
#[derive(Class)]
#[class(name = "Pick", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = replicate)]
#[class(drops(OtherPaint))]
pub struct Pick {
    args: Modulo,
}

/// Arguments of Pick and Copy.
#[derive(Args)]
pub struct Modulo {
    /// The divisor of the hash.
    modulus: u32,
    /// The remainder of the hash for which a packet is selected.
    remainder: u32,
}

impl Modulo {
    fn has(&self, p: &Packet) -> bool {
        mix(number(p)).checked_rem(self.modulus) == Some(self.remainder)
    }
}

impl Action for Pick {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if self.args.has(p) { cx.out_or(1, Reason::OtherPaint) } else { Verdict::Next }
    }
}

/// Sends a copy of a packet to output 1 if the hash of its number, modulo MODULUS, is REMAINDER.
#[derive(Class)]
#[class(name = "Copy", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = replicate, copies, ledger(makes))]
pub struct Copy {
    args: Modulo,
}

impl Action for Copy {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if self.args.has(p)
            && cx.has_output(1)
            && let Some(copy) = p.share()
        {
            cx.made(1);
            cx.emit(1, copy);
            return Verdict::Several;
        }
        Verdict::Next
    }
}

/// Sends a packet twice if the hash of its number, modulo MODULUS, is REMAINDER. The two packets directly follow each
/// other.
#[derive(Class)]
#[class(name = "Twice", ports = "1/1", processing = "h/h", packets = "any/same", workers = replicate, copies, ledger(makes))]
pub struct Twice {
    args: Modulo,
}

impl Action for Twice {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if self.args.has(p)
            && let Some(copy) = p.share()
        {
            cx.made(1);
            cx.behind(copy);
            return Verdict::Several;
        }
        Verdict::Next
    }
}

/// Sends a packet to output 0 N times, then to output 1. The count is in the packet, and all Lap elements share it.
#[derive(Class)]
#[class(name = "Lap", ports = "1/2", processing = "a/ah", packets = "any/same", workers = replicate)]
pub struct Lap {
    args: LapArgs,
}

/// Arguments of Lap.
#[derive(Args)]
pub struct LapArgs {
    /// The number of laps.
    n: u8,
}

impl Action for Lap {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let laps = p.anno_u8(LAPS).saturating_add(1);
        p.set_anno_u8(LAPS, laps);
        if laps > self.args.n { Verdict::Out(1) } else { Verdict::Next }
    }
}

/// Sends each packet to one output. The packet's number determines the output.
#[derive(Class)]
#[class(name = "Split", ports = "1/1-", processing = "h/h", packets = "any/same", workers = replicate)]
pub struct Split {}

impl Element for Split {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let outputs = (0..).take_while(|&i| cx.has_output(i)).count().max(1);
        for p in batch.drain() {
            let port = (mix(number(&p)) >> 7) as usize % outputs;
            cx.emit(port, p);
        }
    }
}
