// SPDX-License-Identifier: MIT OR Apache-2.0
//! CheckLength: separates packets that are too long.

use castanet_element::kernel::{Arithmetic, Code, Lowered, Size, Test};
use castanet_element::prelude::*;
use castanet_element::spec::anno;

/// Passes packets of at most LENGTH bytes.
///
/// # Ports
/// Input 0: packets. Output 0: packets of at most LENGTH bytes. Output 1 (optional): longer packets; without output 1
/// they are dropped.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 100, LIMIT 5, STOP true) -> check :: CheckLength(1500) -> Discard;
/// check [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "CheckLength", offload = none, ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = replicate)]
#[class(drops(TooLong), depends = packet)]
#[class(kernel)]
pub struct CheckLength {
    args: Args,
}

/// Arguments of CheckLength.
#[derive(Args)]
pub struct Args {
    /// The maximum length of packets that pass, in bytes.
    #[arg(handler = "rw")]
    length: u32,
    /// Whether the extra length annotation counts towards a packet's length.
    #[arg(keyword, default = false)]
    extra_length: bool,
}

impl Action for CheckLength {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let extra = if self.args.extra_length { p.anno_u32(anno::EXTRA_LENGTH) as usize } else { 0 };
        if p.len().saturating_add(extra) <= self.args.length as usize {
            return Verdict::Next;
        }
        cx.out_or(1, Reason::TooLong)
    }
}

impl InKernel for CheckLength {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let most = self.args.length;
        let long = code.label();
        if self.args.extra_length {
            let length = code.length();
            let extra = code.annotation(anno::EXTRA_LENGTH, Size::Word);
            let length = code.compute(Arithmetic::Add, length, extra);
            code.branch_wide(length, Test::Greater, most, long);
        } else if most < 0xffff {
            code.branch_length(most, None, Some(long));
        }
        code.next(0);
        code.bind(long);
        code.next_or(1, Reason::TooLong as u16);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_length() {
        let all = || (0..60).map(|n| packet(&vec![7; n]));
        let mut kit = Kit::<CheckLength>::with_ports("30", 1, 2).unwrap();
        let out: Vec<_> = kit.act(all()).iter().map(|(port, p)| (*port, p.len())).collect();
        let want: Vec<_> = (0..=30).map(|n| (0, n)).chain((31..60).map(|n| (1, n))).collect();
        assert_eq!(out, want);
        let mut kit = Kit::<CheckLength>::new("30").unwrap();
        assert_eq!((kit.act(all()).len(), kit.dropped(Reason::TooLong)), (31, 29));
        kit.write("length", "0").unwrap();
        assert_eq!((kit.act(all()).len(), kit.read("length").unwrap()), (1, "0".into()));
        let mut kit = Kit::<CheckLength>::new("30, EXTRA_LENGTH true").unwrap();
        let extra = |n| {
            let mut p = packet(&[7; 20]);
            p.set_anno_u32(anno::EXTRA_LENGTH, n);
            p
        };
        assert_eq!(kit.act([extra(10), extra(11), extra(u32::MAX)]).len(), 1);
        assert!(Kit::<CheckLength>::new("").is_err() && Kit::<CheckLength>::new("-1").is_err());
    }
}
