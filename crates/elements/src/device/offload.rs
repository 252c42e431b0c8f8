// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pending offloads (checksums, segmentation): completes them, and converts them between the form that packets carry
//! and the virtio-net header of the kernel.

use castanet_element::prelude::*;
use castanet_io::device::{BadOffload, Segments, Start, VnetHeader, complete};
use castanet_packet::Offload;

/// Returns the virtio-net header that describes the pending offload of a packet to the kernel.
#[inline]
pub(super) fn header_of(p: &Packet) -> VnetHeader {
    p.offload().map_or(VnetHeader::NONE, header)
}

#[cold]
fn header(o: Offload) -> VnetHeader {
    let (gso_type, gso_size) = o.segments.unwrap_or((0, 0));
    let (checksum_start, checksum_offset) = o.checksum.unwrap_or((0, 0));
    let flags = if o.checksum.is_some() { VnetHeader::NEEDS_CHECKSUM } else { 0 };
    VnetHeader { flags, gso_type, header_len: 0, gso_size, checksum_start, checksum_offset }
}

/// Reads the pending offload from the kernel's virtio-net header, and records it on the packet.
///
/// # Errors
/// The error says why the offload does not fit the packet, so that it cannot be completed.
#[inline]
pub(super) fn note(p: &mut Packet, vnet: &VnetHeader, start: Start) -> Result<(), BadOffload> {
    if !vnet.needs_checksum() && !vnet.is_super() {
        return Ok(());
    }
    note_some(p, vnet, start)
}

fn note_some(p: &mut Packet, vnet: &VnetHeader, start: Start) -> Result<(), BadOffload> {
    let checksum = vnet.needs_checksum().then_some((vnet.checksum_start, vnet.checksum_offset));
    if let Some((start, offset)) = checksum
        && usize::from(start) + usize::from(offset) + 2 > p.len()
    {
        return Err(BadOffload::ChecksumOutside);
    }
    if vnet.is_super() {
        Segments::new(p.data(), vnet, start)?;
    }
    let segments = vnet.is_super().then_some((vnet.gso_type, vnet.gso_size));
    p.set_offload(Some(Offload { checksum, segments }));
    Ok(())
}

/// Completes the checksum of a packet that is not a super-packet.
///
/// # Errors
/// The error is the reason for which the packet is dropped.
pub(crate) fn complete_checksum(p: &mut Packet) -> Result<(), Reason> {
    let vnet = header_of(p);
    if vnet.is_super() {
        return Err(Reason::BadOffload);
    }
    p.set_offload(None);
    complete(p.data_mut(), &vnet).map_err(|_| Reason::BadOffload)
}

/// Completes the pending offload of a packet, and appends the result to `into`: the packet with its checksum, or one
/// packet for each segment, with the annotations of the original.
///
/// # Errors
/// The error is the reason for which the packet is dropped.
pub(crate) fn finish(mut p: Packet, into: &mut Batch) -> Result<(), Reason> {
    let vnet = header_of(&p);
    if !vnet.is_super() {
        complete_checksum(&mut p)?;
        into.push(p);
        return Ok(());
    }
    // If the network header is known, segmentation starts there. Without one, the packet is an Ethernet frame.
    let (at, start) = match p.network_offset().and_then(|o| usize::try_from(o).ok()) {
        Some(at) => (at, Start::Ip),
        None => (0, Start::Ethernet),
    };
    let prefix = u16::try_from(at).map_err(|_| Reason::BadOffload)?;
    let inner = VnetHeader { checksum_start: vnet.checksum_start.saturating_sub(prefix), ..vnet };
    let before = p.data().get(..at).unwrap_or_default();
    let network = p.data().get(at..).unwrap_or_default();
    let segments = Segments::new(network, &inner, start).map_err(|_| Reason::BadOffload)?;
    let from = into.len();
    for i in 0..segments.count() {
        let Some(mut q) = Packet::with_headroom(p.headroom(), at + segments.len_of(i)) else {
            into.as_mut_vec().truncate(from);
            return Err(Reason::NoBuffer);
        };
        let (head, rest) = q.data_mut().split_at_mut(at);
        head.copy_from_slice(before);
        segments.write(i, rest);
        q.copy_annotations(&p);
        if let Some(mac) = p.mac_offset() {
            q.set_mac_header(mac);
        }
        if p.network_offset().is_some() {
            q.set_network_header(at, p.network_header_length());
        }
        into.push(q);
    }
    Ok(())
}
