// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of packets (addresses and ports), and how packets are rewritten.

use super::tuple::{Tuple, both, changed, is_nothing};
use castanet_element::prelude::*;
use castanet_packet::Offload;
use castanet_wire::icmp;
use castanet_wire::ipv4::protocol;

/// The key of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Addresses and ports.
    pub tuple: Tuple,
    /// IP protocol. In lookups, 0 for rewriters whose flows do not distinguish protocols.
    pub proto: u8,
    /// Length of the IP header in bytes.
    pub header: u8,
}

/// Returns a key with the addresses of an IP header, and the header's first 20 bytes.
#[inline(always)]
fn addresses(net: &[u8]) -> Option<(Key, &[u8; 20])> {
    let h: &[u8; 20] = net.first_chunk()?;
    let header = (h[0] & 15) << 2;
    if header < 20 || usize::from(header) > net.len() {
        return None;
    }
    let addrs = u64::from_le_bytes([h[12], h[13], h[14], h[15], h[16], h[17], h[18], h[19]]);
    Some((Key { tuple: Tuple { addrs, ports: 0 }, proto: h[9], header }, h))
}

/// Whether an IP header belongs to a whole packet or to a first fragment (fragment offset 0).
#[inline(always)]
fn is_first(h: &[u8; 20]) -> bool {
    u16::from_be_bytes([h[6], h[7]]) & castanet_wire::ipv4::OFFSET_MASK == 0
}

/// Returns the first eight bytes behind the IP header, if the packet has them and is not a later fragment.
#[inline(always)]
fn transport<'a>(net: &'a [u8], h: &[u8; 20], header: u8) -> Option<&'a [u8; 8]> {
    let at = usize::from(header);
    let total = usize::from(u16::from_be_bytes([h[2], h[3]]));
    if !is_first(h) || total < at + 8 {
        return None;
    }
    net.get(at..)?.first_chunk()
}

/// How a group of rewriter classes looks up packets (the keys) and rewrites them.
pub trait Family: Send + 'static {
    /// Whether TCP packets are rewritten.
    const TCP: bool = true;
    /// Whether UDP packets are rewritten.
    const UDP: bool = true;
    /// Whether rewriting changes ICMP checksums. New addresses alone do not, as ICMP has no pseudo-header
    /// (RFC 792).
    const ICMP: bool = false;
    /// Returns the key of the packet whose network header is at the start of `net`; `None` if the
    /// rewriters do not rewrite the packet.
    fn key(net: &[u8]) -> Option<Key>;
    /// Returns the key for a second lookup, after the forward key of a packet has found no flow. The second lookup
    /// treats the packet as a reply. `None` if the forward key finds flows in both directions, so that no second lookup
    /// is needed.
    #[inline(always)]
    fn reply_key(_: Key) -> Option<Tuple> {
        None
    }
    /// Returns the tuple by which forward packets are looked up, and from which a new flow is made.
    #[inline(always)]
    fn forward_key(key: Key) -> Tuple {
        key.tuple
    }
    /// Returns the new tuple of a packet. `to` is the tuple to which the flow rewrites packets of this direction.
    #[inline(always)]
    fn become_of(_: Key, to: Tuple, _reply: bool) -> Tuple {
        to
    }
    /// Whether a packet may belong to the given direction of a flow. The packet that begins a flow belongs to
    /// the forward direction.
    #[inline(always)]
    fn fits(_net: &[u8], _: Key, _reply: bool) -> bool {
        true
    }
    /// Writes the new ports into `rest`, the packet behind its IP header.
    fn set_ports(rest: &mut [u8], to: Tuple, reply: bool);
}

/// Rewriters of TCP, UDP and DCCP, by addresses and ports. Each flag enables one of the protocols.
pub struct Ports<const TCP: bool, const UDP: bool, const DCCP: bool>;

impl<const TCP: bool, const UDP: bool, const DCCP: bool> Family for Ports<TCP, UDP, DCCP> {
    const TCP: bool = TCP;
    const UDP: bool = UDP;
    #[inline(always)]
    fn key(net: &[u8]) -> Option<Key> {
        let (mut key, h) = addresses(net)?;
        let wanted = match key.proto {
            protocol::TCP => TCP,
            protocol::UDP => UDP,
            protocol::DCCP => DCCP,
            _ => false,
        };
        if !wanted {
            return None;
        }
        let [a, b, c, d, ..] = *transport(net, h, key.header)?;
        key.tuple.ports = u32::from_le_bytes([a, b, c, d]);
        Some(key)
    }
    #[inline(always)]
    fn set_ports(rest: &mut [u8], to: Tuple, _: bool) {
        if let Some(place) = rest.first_chunk_mut() {
            *place = to.ports.to_le_bytes();
        }
    }
}

/// Rewriters of ICMP echo messages. In the keys, requests have the identifier as source port, replies as
/// destination port.
pub struct Ping;

impl Family for Ping {
    const ICMP: bool = true;
    #[inline]
    fn key(net: &[u8]) -> Option<Key> {
        let (mut key, h) = addresses(net)?;
        if key.proto != protocol::ICMP {
            return None;
        }
        let [kind, _, _, _, a, b, ..] = *transport(net, h, key.header)?;
        key.tuple.ports = match kind {
            icmp::kind::ECHO => u32::from_le_bytes([a, b, 0, 0]),
            icmp::kind::ECHO_REPLY => u32::from_le_bytes([0, 0, a, b]),
            _ => return None,
        };
        Some(key)
    }
    #[inline]
    fn fits(net: &[u8], key: Key, reply: bool) -> bool {
        // Only requests begin flows (RFC 5508 section 3.1). The type has to be checked, because requests and
        // replies with identifier 0 have the same key.
        (net.get(usize::from(key.header)) == Some(&icmp::kind::ECHO)) != reply
    }
    #[inline]
    fn set_ports(rest: &mut [u8], to: Tuple, _: bool) {
        let request = rest.first() == Some(&icmp::kind::ECHO);
        let [a, b, c, d] = to.ports.to_le_bytes();
        if let Some(place) = rest.get_mut(4..6) {
            place.copy_from_slice(&if request { [a, b] } else { [c, d] });
        }
    }
}

/// Rewriters of addresses alone: the source addresses of forward packets, and the destination addresses of replies.
pub struct Addr;

const SRC: u64 = 0xffff_ffff;

impl Family for Addr {
    #[inline(always)]
    fn key(net: &[u8]) -> Option<Key> {
        addresses(net).map(|(k, _)| k)
    }
    #[inline(always)]
    fn reply_key(key: Key) -> Option<Tuple> {
        Some(Tuple { addrs: key.tuple.addrs & !SRC, ports: 0 })
    }
    #[inline(always)]
    fn forward_key(key: Key) -> Tuple {
        Tuple { addrs: key.tuple.addrs & SRC, ports: 0 }
    }
    #[inline(always)]
    fn become_of(key: Key, to: Tuple, reply: bool) -> Tuple {
        let own = if reply { !SRC } else { SRC };
        Tuple { addrs: key.tuple.addrs & !own | to.addrs & own, ports: 0 }
    }
    #[inline(always)]
    fn set_ports(_: &mut [u8], _: Tuple, _: bool) {}
}

/// Rewriters of source and destination addresses, as a pair.
pub struct AddrPair;

impl Family for AddrPair {
    #[inline(always)]
    fn key(net: &[u8]) -> Option<Key> {
        addresses(net).map(|(k, _)| k)
    }
    #[inline(always)]
    fn set_ports(_: &mut [u8], _: Tuple, _: bool) {}
}

/// Rewrites the packet whose network header is at the start of `net`. `ip` and `transport` are the changes of
/// the IP and transport checksums; `proto` is the protocol in the IP header.
#[inline(always)]
pub fn rewrite<F: Family>(
    net: &mut [u8],
    key: Key,
    proto: u8,
    to: Tuple,
    reply: bool,
    ip: u16,
    transport: u16,
) {
    let Some((h, _)) = net.split_first_chunk_mut::<20>() else { return };
    let first = is_first(h);
    if let Some(place) = h.get_mut(12..20) {
        place.copy_from_slice(&to.addrs.to_le_bytes());
    }
    if !is_nothing(ip) {
        let sum = changed(u16::from_le_bytes([h[10], h[11]]), ip).to_le_bytes();
        [h[10], h[11]] = sum;
    }
    if !first {
        return;
    }
    let Some(rest) = net.get_mut(usize::from(key.header)..) else { return };
    F::set_ports(rest, to, reply);
    if !is_nothing(transport) && (F::ICMP || proto != protocol::ICMP) {
        mend_transport(rest, proto, transport);
    }
}

/// Returns the offset of the checksum in a protocol's header.
fn checksum_at(proto: u8) -> Option<usize> {
    match proto {
        protocol::TCP => Some(16),
        protocol::UDP | protocol::DCCP | protocol::UDP_LITE => Some(6),
        protocol::ICMP => Some(2),
        _ => None,
    }
}

/// Updates the transport checksum in `rest`, the packet behind its IP header, if `rest` contains the checksum
/// field.
#[inline(always)]
fn mend_transport(rest: &mut [u8], proto: u8, change: u16) {
    let Some(at) = checksum_at(proto) else { return };
    let Some(place) = rest.get_mut(at..).and_then(|r| r.first_chunk_mut::<2>()) else { return };
    let old = u16::from_le_bytes(*place);
    if proto == protocol::UDP || proto == protocol::UDP_LITE {
        // A checksum of 0 means that there is none, and stays 0 (RFC 768). UDP-Lite never sends 0 (RFC 3828
        // section 3.1).
        if old != 0 {
            let new = changed(old, change);
            *place = if new == 0 { u16::MAX } else { new }.to_le_bytes();
        }
        return;
    }
    *place = changed(old, change).to_le_bytes();
    if proto == protocol::ICMP {
        icmp::settle_checksum(rest);
    }
}

/// Whether the transport checksum is partial: a device will complete it by summing from the transport header
/// on.
#[cold]
pub fn is_partial(p: &Packet) -> bool {
    let Some(Offload { checksum: Some((start, field)), .. }) = p.offload() else { return false };
    let Some((key, h)) = p.network().and_then(addresses) else { return false };
    let transport = p.network_offset().and_then(|at| at.checked_add_unsigned(key.header.into()));
    is_first(h)
        && transport == Some(usize::from(start).cast_signed())
        && checksum_at(key.proto) == Some(usize::from(field))
}

/// Updates a partial checksum for new addresses. The checksum field holds the sum of the pseudo-header, not
/// the complement of that sum, and 0 has no special meaning. The ports are summed later, when the checksum is
/// completed.
#[cold]
pub fn mend_partial(net: &mut [u8], key: Key, proto: u8, change: u16) {
    // ICMP has no pseudo-header (RFC 792).
    if is_nothing(change) || proto == protocol::ICMP {
        return;
    }
    let Some(at) = checksum_at(proto).map(|at| at + usize::from(key.header)) else { return };
    if let Some(place) = net.get_mut(at..).and_then(|r| r.first_chunk_mut::<2>()) {
        *place = both(u16::from_le_bytes(*place), change).to_le_bytes();
    }
}

/// Returns the flags of a TCP segment, and whether it has data according to the total length in the IP
/// header.
#[inline(always)]
pub fn segment(net: &[u8], header: u8) -> Option<(u8, bool)> {
    let at = usize::from(header);
    let (offset, flags) = (*net.get(at + 12)?, *net.get(at + 13)?);
    let total = usize::from(u16::from_be_bytes([*net.get(2)?, *net.get(3)?]));
    Some((flags, total > at + (usize::from(offset >> 4) << 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 768: a UDP checksum of 0 is sent as all ones, because 0 means that there is no checksum. TCP sends
    /// 0 as it is.
    #[test]
    fn a_udp_checksum_that_becomes_zero_is_sent_as_all_ones() {
        let mended = |proto, old: u16, change| {
            let mut rest = [0; 20];
            let at = checksum_at(proto).unwrap_or(0);
            rest[at..at + 2].copy_from_slice(&old.to_le_bytes());
            mend_transport(&mut rest, proto, change);
            u16::from_le_bytes([rest[at], rest[at + 1]])
        };
        // Changing a checksum by its own value gives 0.
        assert_eq!(changed(0x1234, 0x1234), 0);
        assert_eq!(mended(protocol::UDP, 0x1234, 0x1234), 0xffff);
        assert_eq!(mended(protocol::UDP, 0x1234, 0x1233), 1);
        assert_eq!(mended(protocol::UDP, 0, 0x1234), 0, "none stays none");
        assert_eq!(mended(protocol::UDP_LITE, 0x1234, 0x1234), 0xffff);
        assert_eq!(mended(protocol::TCP, 0x1234, 0x1234), 0);
        assert_eq!(mended(protocol::ICMP, 0x1234, 0x1234), 0xffff, "of zeros alone");
    }
}
