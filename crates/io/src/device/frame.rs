// SPDX-License-Identifier: MIT OR Apache-2.0
//! One received frame.

use super::vnet::VnetHeader;

/// How a frame was addressed, as the system found when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// To this host.
    Host,
    /// To all.
    Broadcast,
    /// To a group.
    Multicast,
    /// To another host.
    OtherHost,
    /// Sent by this host.
    Outgoing,
}

impl FrameKind {
    pub(super) fn from_number(n: u8) -> FrameKind {
        match n {
            1 => FrameKind::Broadcast,
            2 => FrameKind::Multicast,
            3 => FrameKind::OtherHost,
            4 => FrameKind::Outgoing,
            _ => FrameKind::Host,
        }
    }
}

/// Bytes of the two Ethernet addresses, behind which a VLAN tag stands.
const ADDRESSES: usize = 12;

/// A received frame, still in the memory that the device fills.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    data: &'a [u8],
    tag: Option<[u8; 4]>,
    wire_len: usize,
    /// When it came, in nanoseconds since 1970.
    pub time_ns: i64,
    /// How it was addressed.
    pub kind: FrameKind,
    /// What is left to be done about checksum and segments.
    pub vnet: VnetHeader,
}

impl<'a> Frame<'a> {
    /// A frame; a VLAN tag that the system took out of it is put back.
    pub(super) fn new(
        data: &'a [u8],
        wire_len: usize,
        tag: Option<[u8; 4]>,
        time_ns: i64,
        kind: FrameKind,
        vnet: VnetHeader,
    ) -> Frame<'a> {
        match tag.filter(|_| data.len() >= ADDRESSES) {
            Some(t) => {
                let wire_len = wire_len.saturating_add(t.len());
                Frame { data, tag: Some(t), wire_len, time_ns, kind, vnet: vnet.shifted(4) }
            }
            None => Frame { data, tag: None, wire_len, time_ns, kind, vnet },
        }
    }

    /// Bytes that are here.
    #[inline]
    pub fn len(&self) -> usize {
        self.data.len() + if self.tag.is_some() { 4 } else { 0 }
    }
    /// Whether no byte is here.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
    /// Bytes that the frame had on the wire.
    pub fn wire_len(&self) -> usize {
        self.wire_len
    }
    /// Whether bytes of it are missing.
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.len() < self.wire_len
    }
    /// Copies the frame, or as much of it as `out` holds.
    #[inline]
    pub fn copy_to(&self, out: &mut [u8]) {
        match self.tag {
            None => copy(self.data, out),
            Some(tag) => {
                let (addresses, rest) = self.data.split_at(ADDRESSES.min(self.data.len()));
                let mut out = out;
                for part in [addresses, &tag, rest] {
                    copy(part, out);
                    out = out.get_mut(part.len()..).unwrap_or_default();
                }
            }
        }
    }
}

#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    let n = from.len().min(to.len());
    if let (Some(to), Some(from)) = (to.get_mut(..n), from.get(..n)) {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_put_back() {
        let data: Vec<u8> = (0..20).collect();
        let vnet = VnetHeader { flags: 1, checksum_start: 34, header_len: 54, ..VnetHeader::NONE };
        let plain = Frame::new(&data, 20, None, 0, FrameKind::Host, vnet);
        let tagged = Frame::new(&data, 20, Some([0x81, 0, 0, 7]), 0, FrameKind::Host, vnet);
        let short = Frame::new(&data[..11], 20, Some([0x81, 0, 0, 7]), 0, FrameKind::Host, vnet);
        assert_eq!((plain.len(), tagged.len(), short.len()), (20, 24, 11));
        assert_eq!((plain.wire_len(), tagged.wire_len()), (20, 24));
        assert_eq!((plain.is_cut(), tagged.is_cut(), short.is_cut()), (false, false, true));
        assert_eq!((tagged.vnet.checksum_start, tagged.vnet.header_len), (38, 58));
        let whole = [&data[..12], &[0x81, 0, 0, 7], &data[12..]].concat();
        for room in 0..40 {
            let mut out = vec![0xee; room];
            tagged.copy_to(&mut out);
            let n = room.min(24);
            assert_eq!(out[..n], whole[..n]);
            assert!(out[n..].iter().all(|b| *b == 0xee));
            let mut out = vec![0xee; room];
            plain.copy_to(&mut out);
            assert_eq!(out[..room.min(20)], data[..room.min(20)]);
        }
    }
}
