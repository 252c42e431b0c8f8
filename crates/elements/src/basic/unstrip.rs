// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unstrip: restores bytes at the front of packets.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Restores bytes from the headroom to the front of packets.
///
/// Bytes that were stripped earlier reappear; other new bytes are zero. If there is too little headroom, the packet's
/// data is moved within its buffer.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets with additional bytes at the front.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Strip(14) -> Unstrip(14) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Unstrip", ports = "1/1", processing = "a/a", packets = "any/unstrip LENGTH", workers = replicate)]
#[class(drops(NoHeadroom), depends = packet)]
#[class(kernel)]
pub struct Unstrip {
    args: Args,
}

/// Arguments of Unstrip.
#[derive(Args)]
pub struct Args {
    /// Number of bytes to restore at the front.
    length: u32,
}

/// The largest LENGTH in the kernel.
const HEADROOM: u32 = 128;

impl Action for Unstrip {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        if p.unstrip(self.args.length as usize) { Verdict::Next } else { Verdict::Drop(Reason::NoHeadroom) }
    }
}

impl InKernel for Unstrip {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let n = self.args.length;
        if n > HEADROOM {
            return Err("it restores too many bytes".into());
        }
        // Bytes before the start of the frame are zero.
        let new = n.saturating_sub(code.state().data.unsigned_abs());
        code.unstrip(n);
        code.store_bytes(0, &vec![0; new as usize]);
        code.next(0);
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
        let data: Vec<u8> = (1..=60).collect();
        for n in [0, 1, 14, 28, 29, 200usize] {
            let mut kit = Kit::<Unstrip>::new(&n.to_string()).unwrap();
            for stripped in 0..=60usize {
                let mut p = packet(&data);
                p.strip(stripped);
                let out = kit.act([p]);
                let mut want = vec![0; n.saturating_sub(stripped)];
                want.extend(&data[stripped.saturating_sub(n)..]);
                assert_eq!(out[0].1.data(), want, "{n} after {stripped}");
            }
        }
    }

    #[test]
    fn no_room() {
        let mut kit = Kit::<Unstrip>::new("4294967295").unwrap();
        assert!(kit.act((0..3).map(|_| packet(b"x"))).is_empty());
        assert_eq!(kit.dropped(Reason::NoHeadroom), 3);
        assert!(Kit::<Unstrip>::new("x").is_err());
    }
}
