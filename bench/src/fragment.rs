// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simple fragmentation of a packet (RFC 791 section 3.2).

use castanet_wire::{Ipv4Header, checksum, ipv4, options};

/// The fragments of an IP packet, each at most `mtu` bytes; `None` if the packet must not or cannot be
/// fragmented.
pub fn fragment(packet: &[u8], mtu: usize) -> Option<Vec<Vec<u8>>> {
    let header = *Ipv4Header::from_prefix(packet)?;
    let whole = ipv4::whole_header(packet)?;
    if header.dont_fragment() {
        return None;
    }
    let mut copied = [0; 40];
    let copied_len = options::copy_for_fragment(whole.get(Ipv4Header::LEN..)?, &mut copied);
    let mut rest = packet.get(whole.len()..)?;
    let mut offset = header.fragment_offset();
    let mut own_options = whole.get(Ipv4Header::LEN..)?;
    let mut out = Vec::new();
    loop {
        let room = mtu.checked_sub(Ipv4Header::LEN + own_options.len())? & !7;
        let (data, after) = rest.split_at(rest.len().min(room));
        if data.is_empty() {
            return None;
        }
        let header_len = Ipv4Header::LEN + own_options.len();
        let mut h = header;
        h.set_header_len(header_len);
        h.total_len.set(u16::try_from(header_len + data.len()).ok()?);
        h.set_fragment(offset, !after.is_empty() || header.more_fragments(), false);
        h.checksum.set(0);
        let mut piece = [h.as_array(), own_options, data].concat();
        let sum = checksum::checksum(piece.get(..header_len)?);
        if let Some(h) = Ipv4Header::from_prefix_mut(&mut piece) {
            h.checksum.set(sum);
        }
        out.push(piece);
        if after.is_empty() {
            return Some(out);
        }
        offset = offset.checked_add(u16::try_from(data.len()).ok()?)?;
        rest = after;
        own_options = copied.get(..copied_len)?;
    }
}
