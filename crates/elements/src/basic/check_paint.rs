// SPDX-License-Identifier: MIT OR Apache-2.0
//! CheckPaint: separates packets by colour.

use castanet_element::kernel::{Code, Lowered, Size, Test};
use castanet_element::prelude::*;
use castanet_element::spec::anno;

/// Passes packets of one colour.
///
/// In the Click papers (SOSP 1999 and TOCS 2000, Figure 8) CheckPaint is another element, which passes all packets to
/// output 0 and sends copies of packets of the colour to output 1. Here that element is called PaintTee. To send
/// redirects, use PaintTee before an ICMPError.
///
/// # Ports
/// Input 0: packets. Output 0: packets painted COLOR. Output 1 (optional): other packets; without output 1 they are
/// dropped.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Paint(3) -> c :: CheckPaint(3) -> Discard;
/// c [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "CheckPaint", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = replicate)]
#[class(drops(OtherPaint), depends = packet)]
#[class(kernel)]
pub struct CheckPaint {
    args: Args,
}

/// Arguments of CheckPaint.
#[derive(Args)]
pub struct Args {
    /// The colour that passes, 0 to 255.
    #[arg(handler = "rw")]
    color: u8,
    /// The one-byte annotation that holds the colour.
    #[arg(default = Anno1(anno::PAINT), show = "PAINT")]
    anno: Anno1,
}

impl Action for CheckPaint {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if p.anno_u8(self.args.anno.0) == self.args.color {
            return Verdict::Next;
        }
        cx.out_or(1, Reason::OtherPaint)
    }

    /// A batch without packets of the colour moves to output 1 as a whole.
    fn action_batch(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let (anno, color) = (self.args.anno.0, self.args.color);
        let others = batch.iter().filter(|p| p.anno_u8(anno) != color).count();
        if others == 0 {
            return;
        }
        match others == batch.len() {
            true if cx.has_output(1) => cx.forward(1, batch),
            true => cx.drop_all(batch, Reason::OtherPaint),
            false => cx.apply(batch, |p, cx| self.action(p, cx)),
        }
    }
}

impl InKernel for CheckPaint {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let other = code.label();
        let paint = code.annotation(self.args.anno.0, Size::Byte);
        code.branch(paint, Test::Differ, u32::from(self.args.color), other);
        code.next(0);
        code.bind(other);
        code.next_or(1, Reason::OtherPaint as u16);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn painted(colour: u8) -> Packet {
        let mut p = packet(b"x");
        p.set_paint(colour);
        p
    }

    #[test]
    fn every_colour() {
        let mut with = Kit::<CheckPaint>::with_ports("7", 1, 2).unwrap();
        let mut without = Kit::<CheckPaint>::new("7").unwrap();
        let out = with.act((0..=255).map(painted));
        assert_eq!((out[0].0, out[0].1.paint(), out.len()), (0, 7, 256));
        let rest: Vec<_> = out[1..].iter().map(|(port, p)| (*port, p.paint())).collect();
        assert_eq!(rest, (0..=255).filter(|c| *c != 7).map(|c| (1, c)).collect::<Vec<_>>());
        assert_eq!(without.act((0..=255).map(painted)).len(), 1);
        assert_eq!(without.dropped(Reason::OtherPaint), 255);
        with.write("color", "9").unwrap();
        assert_eq!((with.act1(painted(9)).0, with.act1(painted(7)).0), (Verdict::Next, Verdict::Out(1)));
        let mut other = Kit::<CheckPaint>::new("0, 40").unwrap();
        assert_eq!(other.act1(painted(7)).0, Verdict::Next, "another annotation");
        assert!(Kit::<CheckPaint>::new("").is_err() && with.write("color", "x").is_err());
    }

    #[test]
    fn batches_agree_with_single_packets() {
        for outputs in [1, 2] {
            for pattern in [&[7u8][..], &[9], &[7, 9], &[9, 9, 9, 7], &[7, 7, 9]] {
                for n in [1, 2, 3, 32] {
                    let mut kit = Kit::<CheckPaint>::with_ports("7", 1, outputs).unwrap();
                    let colours: Vec<u8> = pattern.iter().copied().cycle().take(n).collect();
                    let out = kit.act(colours.iter().map(|c| painted(*c)));
                    let got: Vec<_> = out.iter().map(|(port, p)| (*port, p.paint())).collect();
                    let of = |port: usize, pass: bool| {
                        colours.iter().filter(move |c| (**c == 7) == pass).map(move |c| (port, *c))
                    };
                    let want: Vec<_> = of(0, true).chain(of(1, false).filter(|_| outputs == 2)).collect();
                    assert_eq!(got, want, "{outputs} {colours:?}");
                    assert_eq!(kit.dropped(Reason::OtherPaint), (n - want.len()) as u64);
                }
            }
        }
    }
}
