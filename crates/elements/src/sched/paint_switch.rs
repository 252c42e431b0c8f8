// SPDX-License-Identifier: MIT OR Apache-2.0
//! PaintSwitch: chooses an output by colour.

use castanet_element::kernel::{Code, Lowered, Size, Test};
use castanet_element::prelude::*;
use castanet_element::spec::anno;

/// The colour of packets that go to all outputs.
const ALL: u8 = 255;

/// Sends packets to the output whose number is their colour.
///
/// A packet is dropped if there is no output for its colour. A packet of colour 255 goes to all outputs in order: the
/// last output gets the packet itself, the others copies. If no buffer is free, a copy is left out and counted as
/// dropped.
///
/// # Ports
/// Input 0: packets. Outputs 0, 1, ...: packets of colour 0, 1, ...
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Paint(1) -> s :: PaintSwitch -> Discard;
/// s [1] -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(makes))]
#[class(name = "PaintSwitch", ports = "1/-", processing = "h/h", packets = "any/same")]
#[class(workers = replicate, build, copies, drops(OtherPaint, NoBuffer), depends = packet)]
#[class(kernel)]
pub struct PaintSwitch {
    args: Args,
    outputs: usize,
}

/// Arguments of PaintSwitch.
#[derive(Args)]
pub struct Args {
    /// The annotation that holds the colour.
    #[arg(default = Anno1(anno::PAINT), show = "PAINT")]
    anno: Anno1,
}

impl Build for PaintSwitch {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(PaintSwitch { args, outputs: cx.outputs })
    }
}

impl PaintSwitch {
    #[cold]
    fn to_all(&self, mut p: Packet, cx: &mut Cx<'_>) {
        let last = self.outputs.saturating_sub(1);
        for port in 0..last {
            cx.emit_copy(port, &mut p);
        }
        cx.emit_or(last, p, Reason::OtherPaint);
    }
}

impl Element for PaintSwitch {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            self.push_one(0, p, cx);
        }
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        match p.anno_u8(self.args.anno.0) {
            ALL => self.to_all(p, cx),
            colour => cx.emit_or(colour.into(), p, Reason::OtherPaint),
        }
    }
}

impl InKernel for PaintSwitch {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        // XDP cannot copy a packet, so a packet for all outputs goes up.
        let all = code.label();
        let paint = code.annotation(self.args.anno.0, Size::Byte);
        code.branch(paint, Test::Equal, u32::from(ALL), all);
        for port in 0..self.outputs.min(usize::from(ALL)) {
            let other = code.label();
            code.branch(paint, Test::Differ, port as u32, other);
            code.next_or(port, Reason::OtherPaint as u16);
            code.bind(other);
        }
        code.drop(Reason::OtherPaint as u16);
        code.bind(all);
        code.up();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn painted(colour: u8) -> Packet {
        let mut p = packet(&[colour; 9]);
        p.set_paint(colour);
        p
    }

    #[test]
    fn every_colour() {
        for n in [1, 2, 3, 32, 256] {
            for outputs in [0, 1, 2, 5, 255, 256] {
                let mut kit = Kit::<PaintSwitch>::with_ports("", 1, outputs).unwrap();
                let colours: Vec<u8> = (0..=255).collect();
                let mut got = Vec::new();
                for some in colours.chunks(n) {
                    let out = kit.push(0, some.iter().map(|&c| painted(c)));
                    got.extend(out.iter().map(|(o, p)| (*o, p.data()[0])));
                }
                let own = (0..255u8).filter(|&c| usize::from(c) < outputs).map(|c| (usize::from(c), c));
                let mut want: Vec<_> = own.chain((0..outputs).map(|o| (o, 255))).collect();
                want.sort_unstable();
                got.sort_unstable();
                assert_eq!(got, want);
                let known = outputs.min(255) + usize::from(outputs > 0);
                assert_eq!(kit.dropped(Reason::OtherPaint), 256 - known as u64);
            }
        }
    }

    #[test]
    fn copies_are_independent_and_in_order() {
        let mut kit = Kit::<PaintSwitch>::with_ports("", 1, 3).unwrap();
        let mut out = kit.push(0, [painted(255), painted(1)]);
        for (i, (_, p)) in out.iter_mut().enumerate() {
            p.data_mut()[0] = i as u8;
        }
        let seen: Vec<_> = out.iter().map(|(o, p)| (*o, p.data()[..2].to_vec(), p.paint())).collect();
        let want = [(0, 0, 255), (1, 1, 255), (1, 2, 1), (2, 3, 255)];
        assert_eq!(seen, want.map(|(o, first, paint)| (o, vec![first, paint], paint)));
    }

    #[test]
    fn another_annotation() {
        let mut kit = Kit::<PaintSwitch>::with_ports("3", 1, 2).unwrap();
        let mut p = painted(0);
        p.set_anno_u8(3, 1);
        assert_eq!(kit.push(0, [p])[0].0, 1);
        assert!(Kit::<PaintSwitch>::with_ports("NOTHING", 1, 2).is_err());
    }
}
