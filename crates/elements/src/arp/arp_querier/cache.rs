// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cache of Ethernet headers by next hop, so that packets to known addresses need no look-up in the table.

use castanet_element::prelude::*;
use castanet_wire::ether::{EtherAddr, EtherHeader, ethertype};

/// The value of `until` for headers that never expire.
pub const FOR_EVER: i64 = i64::MAX;

/// Returns the Ethernet header of IP packets from the address `from` to the address `to`.
pub fn header(to: EtherAddr, from: EtherAddr) -> [u8; EtherHeader::LEN] {
    EtherHeader::new(to, from, ethertype::IPV4).to_bytes()
}

/// Prepends a header to a packet. Returns false if the packet would become too long.
#[inline(always)]
pub fn put(p: &mut Packet, header: &[u8; EtherHeader::LEN]) -> bool {
    let Some(place) = p.push_header() else { return false };
    fill(place, header);
    p.set_mac_header(0);
    true
}

/// Copies a header by two loads and two stores, which overlap.
#[inline(always)]
fn fill(to: &mut [u8; EtherHeader::LEN], from: &[u8; EtherHeader::LEN]) {
    let (Some(first), Some(last)) = (from.first_chunk::<8>(), from.last_chunk::<8>()) else { return };
    let (first, last) = (*first, *last);
    if let Some(place) = to.first_chunk_mut() {
        *place = first;
    }
    if let Some(place) = to.last_chunk_mut() {
        *place = last;
    }
}

#[derive(Clone, Copy)]
struct Slot {
    ip: u32,
    /// The generation of the table from which the header was read. 0 if the slot is empty, as generations start at 1.
    generation: u32,
    until: i64,
    header: [u8; EtherHeader::LEN],
}

const _: () = assert!(size_of::<Slot>() == 32);

/// A direct-mapped cache: a hash of the IP address selects the slot, and a new address replaces the old one.
pub struct Cache(Box<[Slot; 256]>);

impl Cache {
    /// Makes an empty cache.
    pub fn new() -> Cache {
        Cache(Box::new([Slot { ip: 0, generation: 0, until: 0, header: [0; EtherHeader::LEN] }; 256]))
    }
    #[inline(always)]
    fn slot(ip: u32) -> usize {
        // Multiplicative hashing (Knuth, vol. 3, 6.4): neighbouring addresses get different slots.
        (ip.wrapping_mul(0x9e37_79b1) >> 24) as usize
    }
    /// Returns the header for the next hop of a packet. `None` if the next hop must be looked up in the table.
    #[inline(always)]
    fn header(&self, p: &Packet, generation: u32, now: i64) -> Option<&[u8; EtherHeader::LEN]> {
        let ip = p.dst_ip();
        let s = &self.0[Self::slot(ip)];
        (s.ip == ip && s.generation == generation && now < s.until).then_some(&s.header)
    }
    /// Prepends the header for the packet's next hop. Returns false, and leaves the packet unchanged, if the next hop
    /// must be looked up in the table.
    #[inline(always)]
    pub fn encapsulate(&self, p: &mut Packet, generation: u32, now: i64) -> bool {
        self.header(p, generation, now).is_some_and(|h| put(p, h))
    }
    /// As [`Cache::encapsulate`], but also returns false if the packet would have to be copied or moved in its buffer.
    #[inline(always)]
    pub fn encapsulate_in_place(&self, p: &mut Packet, generation: u32, now: i64) -> bool {
        let Some(header) = self.header(p, generation, now) else { return false };
        let Some(place) = p.push_header_in_place() else { return false };
        fill(place, header);
        p.set_mac_header(0);
        true
    }
    /// Stores the header for an IP address. It is valid until the time `until`, in nanoseconds, while the table has
    /// this generation.
    pub fn keep(&mut self, ip: u32, generation: u32, until: i64, header: [u8; EtherHeader::LEN]) {
        self.0[Self::slot(ip)] = Slot { ip, generation, until, header };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_element::kit::packet;

    /// Tries both ways to prepend a header from the cache, and returns the headers that they prepended.
    fn both(cache: &Cache, ip: u32, generation: u32, now: i64) -> [Option<Vec<u8>>; 2] {
        [Cache::encapsulate, Cache::encapsulate_in_place].map(|way| {
            let mut p = packet(&[7; 20]);
            p.set_dst_ip(ip);
            let done = way(cache, &mut p, generation, now);
            assert_eq!((p.mac_offset(), p.len()), if done { (Some(0), 34) } else { (None, 20) });
            assert!(p.data().ends_with(&[7; 20]));
            done.then(|| p.data().get(..EtherHeader::LEN).unwrap_or_default().to_vec())
        })
    }

    #[test]
    fn a_header_is_good_for_its_address_generation_and_time() {
        let mut cache = Cache::new();
        let (me, you) = (EtherAddr([2, 0, 0, 0, 0, 1]), EtherAddr([2, 0, 0, 0, 0, 9]));
        let header = header(you, me);
        assert_eq!(header, [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(both(&cache, 0, 1, 0), [None, None]);
        cache.keep(5, 3, 100, header);
        let (good, none) = ([Some(header.to_vec()), Some(header.to_vec())], [None, None]);
        for (ip, generation, now, want) in [
            (5, 3, 0, &good),
            (5, 3, 99, &good),
            (5, 3, 100, &none),
            (5, 2, 99, &none),
            (5, 4, 99, &none),
            (6, 3, 99, &none),
        ] {
            assert_eq!(&both(&cache, ip, generation, now), want, "{ip} {generation} {now}");
        }
        // Another address with the same slot replaces the first.
        let twin = (6..).find(|ip| Cache::slot(*ip) == Cache::slot(5)).unwrap_or(0);
        cache.keep(twin, 3, FOR_EVER, header);
        assert_eq!((both(&cache, 5, 3, 0), both(&cache, twin, 3, FOR_EVER - 1)), (none, good));
    }
}
