// SPDX-License-Identifier: MIT OR Apache-2.0
//! CompleteOffload: completes pending offloads in software: partial checksums, and the segmentation of super-packets.

use super::offload::finish;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Completes partial checksums, and splits super-packets into the segments that they stand for.
///
/// Devices may deliver TCP and UDP packets whose checksums are not computed yet, and super-packets of up to 64 kB that
/// are not cut into segments yet. The device that finally sends the packets can do this work. Elements that only look
/// at headers therefore pass such packets unchanged, and ToDevice hands them to its device. Leaving the work to the
/// device saves most of its cost. The router inserts an element of this class, named `CompleteOffload@N`, before
/// elements that must see packets as they appear on the wire (ToDump, Print, ICMPRewriter, Shaper...), so a
/// configuration seldom needs to contain one.
///
/// # Ports
/// Input 0: packets. Output 0: the packets, with complete checksums, and cut into segments.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 10, STOP true) -> CompleteOffload -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(makes, holds))]
#[class(name = "CompleteOffload", ports = "1/1", processing = "a/a", packets = "any/same")]
#[class(takes_state = "the segments that wait")]
#[class(workers = replicate, offload = aware, copies, lifecycle, kernel, drops(BadOffload, NoBuffer, Stopped))]
pub struct CompleteOffload {
    /// Super-packets that were split.
    #[count(unit = "packets")]
    split: Count,
    /// Packets and segments that were completed but have not been pulled yet.
    held: Batch,
    spare: Batch,
}

impl CompleteOffload {
    /// Completes a packet, and appends the result to `into`: the packet, or its segments.
    fn complete(&mut self, p: Packet, into: &mut Batch, cx: &mut Cx<'_>) {
        if !p.has_offload() {
            return into.push(p);
        }
        self.split.add(u64::from(p.offload().is_some_and(|o| o.segments.is_some())));
        let before = into.len();
        match finish(p, into) {
            Ok(()) => cx.made((into.len() - before).saturating_sub(1) as u64),
            Err(reason) => {
                cx.count_drops(reason, 1);
            }
        }
    }
}

impl Element for CompleteOffload {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if !batch.iter().any(Packet::has_offload) {
            return cx.forward(0, batch);
        }
        let mut whole = std::mem::take(&mut self.spare);
        for p in batch.drain() {
            self.complete(p, &mut whole, cx);
        }
        cx.forward(0, &mut whole);
        self.spare = whole;
    }

    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        cx.with_tries(|cx| self.pull_whole(max, into, cx));
    }
}

impl CompleteOffload {
    fn pull_whole(&mut self, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        let mut left = max;
        while left > 0 {
            let n = left.min(self.held.len());
            into.extend(self.held.as_mut_vec().drain(..n));
            left -= n;
            if left == 0 {
                return;
            }
            let mut got = std::mem::take(&mut self.spare);
            cx.pull(0, left, &mut got);
            let more = !got.is_empty();
            let mut held = std::mem::take(&mut self.held);
            for p in got.drain() {
                self.complete(p, &mut held, cx);
            }
            (self.held, self.spare) = (held, got);
            // Stop if nothing was pulled. If all pulled packets were dropped, pull again if `try_again` allows it.
            if !more || self.held.is_empty() && !cx.try_again() {
                return;
            }
        }
    }
}

impl Lifecycle for CompleteOffload {
    fn held(&self) -> u64 {
        self.held.len() as u64
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let mut held = std::mem::take(&mut self.held);
        cx.drop_all(&mut held, Reason::Stopped);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.held.append(&mut old.held);
        Ok(())
    }
}

impl InKernel for CompleteOffload {
    /// Frames in the kernel have no pending offloads.
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        code.next(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};
    use castanet_packet::Offload;

    /// A TCP super-packet of `n` bytes of payload as a frame, with a partial checksum.
    fn super_packet(n: usize, size: u16) -> Packet {
        let payload: Vec<u8> = (0..n).map(|i| i as u8).collect();
        let mut data = Vec::new();
        etherparse::PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
            .tcp(1, 2, 3, 4)
            .write(&mut data, &payload)
            .unwrap();
        let length = u16::try_from(n + 20).unwrap();
        let words = [&data[26..34], &[0, 6], &length.to_be_bytes()].concat();
        let sum: u32 = words.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        data[50..52].copy_from_slice(&((sum & 0xffff) as u16 + (sum >> 16) as u16).to_be_bytes());
        let mut p = packet(&data);
        p.set_paint(7);
        let segments = (size > 0).then_some((1, size));
        p.set_offload(Some(Offload { checksum: Some((34, 16)), segments }));
        p
    }

    /// Returns the payload of a frame, after checking its headers and checksums with etherparse.
    fn payload(p: &Packet, stripped: usize) -> Vec<u8> {
        let whole = [&[1; 6][..], &[2; 6], &[8, 0]].concat();
        let frame = [&whole[..stripped], p.data()].concat();
        let sliced = etherparse::SlicedPacket::from_ethernet(&frame).unwrap();
        let ip = sliced.net.as_ref().unwrap().ipv4_ref().unwrap().header().to_header();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let Some(etherparse::TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("no TCP") };
        assert_eq!(tcp.checksum(), tcp.calc_checksum_ipv4(ip.source, ip.destination).unwrap());
        assert_eq!((p.paint(), p.offload()), (7, None));
        tcp.payload().to_vec()
    }

    #[test]
    fn super_packets_become_their_segments() {
        for (n, size, count) in
            [(100, 0, 1), (100, 100, 1), (101, 100, 2), (2000, 700, 3), (60_000, 1448, 42)]
        {
            for stripped in [0, 14] {
                let mut kit = Kit::<CompleteOffload>::new("").unwrap();
                let mut p = super_packet(n, size);
                if stripped > 0 {
                    p.set_network_header(14, 20);
                    assert!(p.strip(stripped));
                }
                let out = kit.push(0, [packet(b"plain"), p]);
                assert_eq!(out.len(), 1 + count);
                let all: Vec<u8> = out[1..].iter().flat_map(|o| payload(&o.1, stripped)).collect();
                assert_eq!(all, (0..n).map(|i| i as u8).collect::<Vec<_>>());
                assert_eq!(kit.read("split").unwrap(), u32::from(size > 0).to_string());
            }
        }
    }

    #[test]
    fn what_cannot_be_done_is_a_counted_drop() {
        for offload in [
            Offload { checksum: Some((100, 16)), segments: None },
            Offload { checksum: Some((34, 16)), segments: Some((1, 0)) },
            Offload { checksum: Some((34, 16)), segments: Some((4, 10)) },
            Offload { checksum: Some((34, 16)), segments: Some((99, 10)) },
        ] {
            let mut kit = Kit::<CompleteOffload>::new("").unwrap();
            let mut p = super_packet(50, 9);
            p.set_offload(Some(offload));
            assert_eq!((kit.push(0, [p]).len(), kit.dropped(Reason::BadOffload)), (0, 1), "{offload:?}");
        }
    }

    #[test]
    fn pulled_segments_wait_their_turn() {
        for batch in [1, 2, 3, 32] {
            let mut kit = Kit::<CompleteOffload>::new("").unwrap();
            for n in [950, 10, 200] {
                kit.supply(0, super_packet(n, 100));
            }
            let mut sizes = Vec::new();
            loop {
                let got = kit.pull(0, batch);
                assert!(got.len() <= batch);
                if got.is_empty() {
                    break;
                }
                sizes.extend(got.iter().map(|p| payload(p, 0).len()));
            }
            assert_eq!(sizes, [100, 100, 100, 100, 100, 100, 100, 100, 100, 50, 10, 100, 100]);
            kit.supply(0, super_packet(300, 100));
            assert_eq!(kit.pull(0, 1).len(), 1);
            kit.cleanup().unwrap();
            assert_eq!(kit.dropped(Reason::Stopped), 2);
        }
    }
}
