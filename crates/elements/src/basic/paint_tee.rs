// SPDX-License-Identifier: MIT OR Apache-2.0
//! PaintTee: copies packets of one colour.

use castanet_element::kernel::{Code, Lowered, Size, Test};
use castanet_element::prelude::*;
use castanet_element::spec::anno;

/// Passes all packets, and sends copies of packets of one colour to output 1.
///
/// In an IP router, PaintTee finds packets that leave by the interface on which they arrived. Their senders should get
/// a redirect (RFC 1812 section 5.2.7.2). The copy is sent before the packet itself. If no buffer is free, the copy is
/// omitted and counted as dropped.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets. Output 1: copies of packets painted COLOR.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Paint(3) -> t :: PaintTee(3) -> Discard;
/// t [1] -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(makes))]
#[class(name = "PaintTee", ports = "1/2", processing = "a/ah", packets = "any/same", workers = replicate)]
#[class(copies, drops(NoBuffer), depends = packet)]
#[class(kernel)]
pub struct PaintTee {
    args: Args,
}

/// Arguments of PaintTee.
#[derive(Args)]
pub struct Args {
    /// The colour of packets to copy, 0 to 255.
    #[arg(handler = "rw")]
    color: u8,
    /// The one-byte annotation that holds the colour.
    #[arg(default = Anno1(anno::PAINT), show = "PAINT")]
    anno: Anno1,
}

#[cold]
#[inline(never)]
fn copy(p: &mut Packet, cx: &mut Cx<'_>) {
    cx.emit_copy(1, p);
}

impl Action for PaintTee {
    #[inline(always)]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if p.anno_u8(self.args.anno.0) == self.args.color {
            copy(p, cx);
            return Verdict::Several;
        }
        Verdict::Next
    }
}

impl InKernel for PaintTee {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        // XDP cannot copy a packet, so a packet of the colour goes up whole.
        let same = code.label();
        let paint = code.annotation(self.args.anno.0, Size::Byte);
        code.branch(paint, Test::Equal, u32::from(self.args.color), same);
        code.next(0);
        code.bind(same);
        code.up();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn copies_one_colour() {
        for n in [1, 2, 3, 32u8] {
            let mut kit = Kit::<PaintTee>::new("1").unwrap();
            let painted = |i: u8| {
                let mut p = packet(&[i; 9]);
                p.set_paint(i % 3);
                p
            };
            let out = kit.act((0..n).map(painted));
            let of =
                |port: usize| out.iter().filter(|o| o.0 == port).map(|o| o.1.data()[8]).collect::<Vec<_>>();
            assert_eq!(of(0), (0..n).collect::<Vec<_>>());
            assert_eq!(of(1), (0..n).filter(|i| i % 3 == 1).collect::<Vec<_>>());
            kit.write("color", "0").unwrap();
            assert_eq!(kit.act([painted(0)]).len(), 2);
        }
        assert!(Kit::<PaintTee>::new("red").is_err());
    }
}
