// SPDX-License-Identifier: MIT OR Apache-2.0
//! EtherMirror: exchanges the source and destination addresses of frames.

use castanet_element::kernel::{Code, Lowered, Size};
use castanet_element::prelude::*;

/// Exchanges the source and the destination address of Ethernet frames.
///
/// Packets too short for both addresses are dropped.
///
/// # Ports
/// Input 0: Ethernet frames. Output 0: the frames with exchanged addresses.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true)
///     -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> EtherMirror -> Print(mirrored) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "EtherMirror", ports = "1/1", processing = "a/a", packets = "ether/same", workers = replicate)]
#[class(drops(TooShort), depends = packet)]
#[class(kernel)]
pub struct EtherMirror {}

impl Action for EtherMirror {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        // Check the length first: `data_mut` would copy a shared buffer even if the packet is too short.
        if p.len() < 12 {
            return Verdict::Drop(Reason::TooShort);
        }
        if let Some(h) = p.data_mut().first_chunk_mut::<12>() {
            let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = *h;
            *h = [s0, s1, s2, s3, s4, s5, d0, d1, d2, d3, d4, d5];
        }
        Verdict::Next
    }
}

impl InKernel for EtherMirror {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let short = code.label();
        code.need(12, short);
        for (at, size) in [(0, Size::Word), (4, Size::Half)] {
            let (dst, src) = (code.load(at, size), code.load(6 + at, size));
            code.store(at, size, src);
            code.store(6 + at, size, dst);
        }
        code.next(0);
        code.bind(short);
        code.drop(Reason::TooShort as u16);
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
        let mut kit = Kit::<EtherMirror>::new("").unwrap();
        for len in 0..60u8 {
            let data: Vec<u8> = (0..len).collect();
            let out = kit.act([packet(&data)]);
            assert_eq!(out.len(), usize::from(len >= 12));
            for (_, p) in out {
                assert_eq!((&p.data()[..6], &p.data()[6..12]), (&data[6..12], &data[..6]));
                assert_eq!(p.data()[12..], data[12..]);
            }
        }
        assert_eq!(kit.dropped(Reason::TooShort), 12);
    }

    #[test]
    fn batches_and_clones() {
        let mut kit = Kit::<EtherMirror>::new("").unwrap();
        for n in [1, 2, 3, 32u8] {
            let mut all: Vec<_> = (0..n).map(|i| packet(&[i, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2])).collect();
            let twins: Vec<_> = all.iter_mut().map(|p| p.share().unwrap()).collect();
            let out = kit.act(all);
            assert_eq!(out.len(), usize::from(n));
            for (i, ((_, p), twin)) in (0..n).zip(out.iter().zip(&twins)) {
                assert_eq!((p.data()[6], twin.data()[0]), (i, i));
            }
        }
        assert!(Kit::<EtherMirror>::new("1").is_err());
    }
}
