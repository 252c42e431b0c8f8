// SPDX-License-Identifier: MIT OR Apache-2.0
//! CheckAlign: separates packets by how their data is aligned in memory.

use super::align::Args;
use castanet_element::prelude::*;

/// Passes packets whose data is aligned: its memory address modulo MODULUS is OFFSET.
///
/// `castanet align --assertions` inserts CheckAlign in place of Align, to find out where packets are not aligned.
///
/// # Ports
/// Input 0: packets. Output 0: aligned packets. Output 1 (optional): other packets; without output 1 they are dropped.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Strip(3) -> c :: CheckAlign(4, 0) -> Discard;
/// c [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "CheckAlign", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = replicate)]
#[class(build, drops(Misaligned), depends = packet)]
pub struct CheckAlign {
    args: Args,
}

impl Build for CheckAlign {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(CheckAlign { args: args.checked()? })
    }
}

impl Action for CheckAlign {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if self.args.missing(p) == 0 {
            return Verdict::Next;
        }
        cx.out_or(1, Reason::Misaligned)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_address() {
        for (modulus, offset) in [(1, 0), (2, 1), (4, 0), (4, 2), (64, 5)] {
            let config = format!("{modulus}, {offset}");
            let mut with = Kit::<CheckAlign>::with_ports(&config, 1, 2).unwrap();
            let mut without = Kit::<CheckAlign>::new(&config).unwrap();
            for strip in 0..80 {
                let stripped = || {
                    let mut p = packet(&[7; 100]);
                    p.strip(strip);
                    p
                };
                let p = stripped();
                let aligned = p.data().as_ptr() as usize % modulus == offset;
                let (verdict, p) = with.act1(p);
                assert_eq!(verdict, if aligned { Verdict::Next } else { Verdict::Out(1) });
                assert_eq!(p.len(), 100 - strip);
                let dropped = without.dropped(Reason::Misaligned);
                let p = stripped();
                let aligned = p.data().as_ptr() as usize % modulus == offset;
                assert_eq!(without.act([p]).len(), usize::from(aligned));
                assert_eq!(without.dropped(Reason::Misaligned), dropped + u64::from(!aligned));
            }
        }
        assert_eq!(Kit::<CheckAlign>::new("4, 4").err().unwrap(), ["OFFSET: must be between 0 and 3"]);
    }
}
