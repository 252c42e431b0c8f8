// SPDX-License-Identifier: MIT OR Apache-2.0
//! StoreTimestamp: writes the timestamp into the packet.

use castanet_element::prelude::*;

/// Writes the timestamp into the packet's data: seconds and nanoseconds, four bytes each in network byte order.
///
/// With OFFSET, they replace the bytes at that offset. With TAIL, they are appended to the data, which grows by 8
/// bytes. A packet that is too short for OFFSET, or that cannot grow, stays unchanged.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 1, STOP true) -> SetTimestamp(5.5) -> StoreTimestamp(0) -> Print(stored) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "StoreTimestamp", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate, build)]
pub struct StoreTimestamp {
    args: Args,
}

/// Arguments of StoreTimestamp.
#[derive(Args)]
pub struct Args {
    /// The offset at which the timestamp is written, in bytes; -1 with TAIL.
    #[arg(default = -1)]
    offset: i32,
    /// Whether the timestamp is appended to the data.
    #[arg(keyword, default = false)]
    tail: bool,
}

impl Build for StoreTimestamp {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.tail == (args.offset >= 0) {
            return Err("specify either OFFSET or TAIL".into());
        }
        Ok(StoreTimestamp { args })
    }
}

impl Action for StoreTimestamp {
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let time = p.timestamp();
        // Only the low 32 bits of the seconds fit into four bytes.
        let seconds = (time.div_euclid(1_000_000_000) & 0xffff_ffff) as u32;
        let ns = time.rem_euclid(1_000_000_000) as u32;
        let at = match usize::try_from(self.args.offset) {
            Ok(at) => at,
            Err(_) => {
                let end = p.len();
                if !p.put(8) {
                    return Verdict::Next;
                }
                end
            }
        };
        if p.len() >= at.saturating_add(8)
            && let Some(place) = p.data_mut().get_mut(at..).and_then(|d| d.first_chunk_mut::<8>())
        {
            *place = (u64::from(seconds) << 32 | u64::from(ns)).to_be_bytes();
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
    fn stores() {
        for n in 0..60 {
            let stored = |config: &str| {
                let mut p = packet(&vec![9; n]);
                p.set_timestamp(0x0102_0304 * 1_000_000_000 + 5);
                Kit::<StoreTimestamp>::new(config).unwrap().act1(p).1.data().to_vec()
            };
            let time = [1, 2, 3, 4, 0, 0, 0, 5];
            let mut want = vec![9; n];
            assert_eq!(stored("TAIL true"), [&want[..], &time].concat());
            if n >= 12 {
                want[4..12].copy_from_slice(&time);
            }
            assert_eq!(stored("4"), want);
        }
        for bad in ["", "x", "3, TAIL true"] {
            assert!(Kit::<StoreTimestamp>::new(bad).is_err(), "{bad}");
        }
    }
}
