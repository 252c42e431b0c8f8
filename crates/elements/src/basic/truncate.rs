// SPDX-License-Identifier: MIT OR Apache-2.0
//! Truncate: shortens packets that are too long.

use castanet_element::prelude::*;
use castanet_element::spec::anno;

/// Shortens packets to at most LENGTH bytes.
///
/// Unless EXTRA_LENGTH is false, the number of bytes removed is added to the extra length annotation, so that counters
/// and dumps can tell the packet's original length.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets, at most LENGTH bytes long.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 100, LIMIT 5, STOP true) -> Truncate(64) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Truncate", offload = none, ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, depends = packet)]
pub struct Truncate {
    args: Args,
}

/// Arguments of Truncate.
#[derive(Args)]
pub struct Args {
    /// The maximum length of packets, in bytes.
    #[arg(handler = "rw", handler_name = "nbytes")]
    length: u32,
    /// Whether to add the number of bytes removed to the extra length annotation.
    #[arg(keyword, default = true)]
    extra_length: bool,
}

impl Action for Truncate {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let cut = p.len().saturating_sub(self.args.length as usize);
        if cut > 0 {
            p.take_end(cut);
            if self.args.extra_length {
                let cut = u32::try_from(cut).unwrap_or(u32::MAX);
                p.set_anno_u32(anno::EXTRA_LENGTH, p.anno_u32(anno::EXTRA_LENGTH).saturating_add(cut));
            }
        }
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_length() {
        let data: Vec<u8> = (0..60).collect();
        for extra in [true, false] {
            for max in [0, 1, 30, 59, 60, 61, u32::MAX] {
                let mut kit = Kit::<Truncate>::new(&format!("{max}, EXTRA_LENGTH {extra}")).unwrap();
                for len in 0..=60 {
                    let mut p = packet(&data[..len]);
                    p.set_anno_u32(anno::EXTRA_LENGTH, 5);
                    let out = kit.act([p]);
                    let left = len.min(max as usize);
                    assert_eq!(out[0].1.data(), &data[..left]);
                    let want = 5 + if extra { (len - left) as u32 } else { 0 };
                    assert_eq!(out[0].1.anno_u32(anno::EXTRA_LENGTH), want, "{len} to {max}");
                }
            }
        }
        let mut kit = Kit::<Truncate>::new("1").unwrap();
        kit.write("nbytes", "2").unwrap();
        assert_eq!((kit.read("nbytes").unwrap(), kit.act([packet(&data)])[0].1.len()), ("2".into(), 2));
        assert!(Kit::<Truncate>::new("-1").is_err() && Kit::<Truncate>::new("").is_err());
    }
}
