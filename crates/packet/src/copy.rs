// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of packets: a second handle on the same buffer, or a second buffer.

use crate::chunk::{CLASSES, Meta, OFFLOAD, SHARED, TRACED};
use crate::packet::Packet;
use crate::pool;
use std::sync::atomic::Ordering;

/// The maximum length of data that [`Packet::copy`] copies. Eight moves of 16 bytes cost less than counting handles.
const SHORT: u32 = 128;

impl Packet {
    /// Creates a second handle on the same buffer, with the same annotations. Returns `None` if the pool has
    /// reached its limit.
    pub fn share(&mut self) -> Option<Packet> {
        let mut other = Packet(pool::take(0, true)?);
        // SAFETY: both handles own their chunks, so the pools are alive.
        let (mine, others) = unsafe { (self.0.shared(), other.0.shared()) };
        let is_first = self.meta().flags & SHARED == 0;
        let owner = if is_first { self.0 } else { mine.link()? };
        // The metadata is copied before the flag SHARED is set here. A processor cannot forward the store of that one byte
        // to a load that includes the bytes beside it, and would wait for the store.
        let (m, o) = (self.meta(), other.meta_mut());
        copy_meta(m, o);
        o.flags |= SHARED;
        (o.buf, o.cap) = (m.buf, m.cap);
        others.set_link(Some(owner));
        if is_first {
            mine.set_link(Some(owner));
            // No other handle has access to the count yet, so it is stored: this handle and the new one.
            mine.refs.store(2, Ordering::Relaxed);
            self.meta_mut().flags |= SHARED;
        } else {
            // SAFETY: the owner lives until its count is zero, and the count includes this handle.
            unsafe { owner.shared() }.refs.fetch_add(1, Ordering::Relaxed);
        }
        Some(other)
    }

    /// Creates a second packet with the same data and annotations. Copies up to 128 bytes, counted from the first stripped
    /// byte or the MAC header, if the buffer is an ordinary one that is not shared, and the packet is not traced and has no
    /// offloads. Otherwise the packets share the buffer, as with [`Packet::share`]. Returns `None` if the pool has reached its
    /// limit.
    #[inline]
    pub fn copy(&mut self) -> Option<Packet> {
        let m = self.meta();
        // A marked MAC header may lie before the bytes of this packet. UNSET is larger than any position.
        let first = m.floor.min(m.data).min(m.mac);
        let is_short = m.data + m.len - first <= SHORT && first + SHORT <= m.cap;
        if m.flags & (SHARED | OFFLOAD | TRACED) != 0 || !is_short || m.cap != CLASSES[0].cap {
            return self.share();
        }
        let mut other = Packet(pool::take(0, true)?);
        let o = other.meta_mut();
        copy_meta(m, o);
        // SAFETY: `first + SHORT <= cap`, and both buffers have this size: the new chunk has size class 0 and, as it comes from
        // the pool, uses its own buffer. So both ranges lie in their buffers, and the buffers differ. Slabs are zeroed when
        // allocated, so every byte is initialised. SHARED is clear in both, so no other handle uses either buffer.
        unsafe {
            let (from, to) = (m.buf.add(first as usize), o.buf.add(first as usize));
            from.copy_to_nonoverlapping(to, SHORT as usize);
        }
        Some(other)
    }
}

/// Copies all metadata except for the buffer.
#[inline(always)]
fn copy_meta(m: &Meta, o: &mut Meta) {
    (o.data, o.len, o.floor) = (m.data, m.len, m.floor);
    (o.mac, o.network, o.transport) = (m.mac, m.network, m.transport);
    (o.flags, o.turn, o.hops) = (m.flags, m.turn, m.hops);
    o.offload_start = m.offload_start;
    o.copy_offload(m);
    o.anno = m.anno;
    o.timestamp = m.timestamp;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A packet of `len` bytes behind `stripped` bytes that have been stripped, with annotations.
    fn original(stripped: usize, len: usize, headroom: usize) -> Packet {
        let data: Vec<u8> = (0..stripped + len).map(|i| i as u8).collect();
        let mut p = Packet::copy_with_headroom(headroom, &data).unwrap();
        p.set_mac_header(0);
        p.set_network_header(stripped, 20);
        assert!(p.strip(stripped));
        p.set_anno_u32(4, 0x0102_0304);
        p.set_anno_u32(40, 0x0506_0708);
        p.set_timestamp(77);
        p
    }

    #[test]
    fn copies_are_equal_and_independent() {
        for (stripped, len, headroom, is_copied) in [
            (14, 46, 64, true),
            (0, 0, 0, true),
            (14, 114, 64, true),
            (14, 115, 64, false),
            (0, 128, 64, true),
            (0, 129, 64, false),
            (0, 60, CLASSES[0].cap as usize - 128, true),
            (0, 60, CLASSES[0].cap as usize - 127, false),
            (0, 60, CLASSES[0].cap as usize, false),
        ] {
            let mut p = original(stripped, len, headroom);
            let mut copy = p.copy().unwrap();
            assert_eq!(p.is_shared(), !is_copied, "{stripped} {len} {headroom}");
            let mut again = copy.copy().unwrap();
            for q in [&mut copy, &mut again] {
                assert_eq!((q.data(), q.mac(), q.network()), (p.data(), p.mac(), p.network()));
                assert_eq!((q.headroom(), q.tailroom()), (p.headroom(), p.tailroom()));
                assert_eq!((q.annotations(), q.timestamp()), (p.annotations(), 77));
                q.data_mut().fill(0xee);
            }
            assert!(p.data().iter().enumerate().all(|(i, b)| *b == (i + stripped) as u8));
            assert!(copy.unstrip(stripped) && again.unstrip(stripped));
            assert!(copy.data()[..stripped].iter().enumerate().all(|(i, b)| *b == i as u8));
            assert_eq!(copy.data(), again.data());
        }
    }

    #[test]
    fn a_copy_of_a_shared_packet_is_shared() {
        let mut p = original(0, 60, 64);
        let shared = p.share().unwrap();
        let copy = p.copy().unwrap();
        assert!(copy.is_shared());
        drop((p, shared));
        assert_eq!(copy.data().len(), 60);
        assert!(!copy.is_shared());
    }
}
