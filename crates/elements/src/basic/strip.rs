// SPDX-License-Identifier: MIT OR Apache-2.0
//! Strip: removes bytes from the front of packets.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Removes bytes from the front of packets.
///
/// The bytes stay in the headroom, from which Unstrip restores them. A packet that is too short passes empty,
/// and a message is printed.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets without their first bytes.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Strip(14) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Strip", ports = "1/1", processing = "a/a", packets = "any/strip LENGTH", workers = replicate)]
#[class(depends = packet)]
#[class(kernel)]
pub struct Strip {
    args: Args,
}

/// Arguments of Strip.
#[derive(Args)]
pub struct Args {
    /// Number of bytes to remove from the front.
    length: u32,
}

#[cold]
fn too_much(p: &mut Packet, n: u32, cx: &Cx<'_>) {
    cx.message(&format!("Packet::pull {n} > length {}", p.len()));
    p.strip(p.len());
}

impl Action for Strip {
    #[inline(always)]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if !p.strip(self.args.length as usize) {
            too_much(p, self.args.length, cx);
        }
        Verdict::Next
    }
}

impl InKernel for Strip {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let short = code.label();
        code.need(self.args.length, short);
        code.strip(self.args.length);
        code.next(0);
        code.bind(short);
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
    fn every_length() {
        let data: Vec<u8> = (0..60).collect();
        for n in [0, 1, 14, 59, 60, 61] {
            let mut kit = Kit::<Strip>::new(&n.to_string()).unwrap();
            for len in 0..=60 {
                let out = kit.act([packet(&data[..len]), packet(&data[..len])]);
                assert!(out.iter().all(|(_, p)| p.data() == &data[n.min(len)..len]), "{n} of {len}");
                let message = format!("Packet::pull {n} > length {len}");
                let want = if n > len { vec![message.clone(), message] } else { Vec::new() };
                assert_eq!((out.len(), kit.messages()), (2, want));
            }
        }
        assert!(Kit::<Strip>::new("-1").is_err() && Kit::<Strip>::new("").is_err());
    }
}
