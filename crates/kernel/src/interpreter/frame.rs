// SPDX-License-Identifier: MIT OR Apache-2.0
//! A frame in its buffer, with room on both sides.

use std::ops::Range;

use super::fault::Refusal;

/// Headroom of [`Frame::new`] (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// Tailroom of [`Frame::new`].
const TAILROOM: usize = 256;
/// Bytes at the start of the buffer that the kernel keeps for itself (`struct xdp_frame`).
const RESERVED: usize = 40;
/// Least length of a frame after its bounds are changed (`ETH_HLEN`).
const LEAST: i64 = 14;
/// Most bytes of metadata. Only multiples of 4 are allowed.
const METADATA: i64 = 252;
/// Content of the room. The kernel does not clear it, so a program must not rely on zeros there.
const GARBAGE: u8 = 0xa5;

/// A frame in its buffer: headroom, metadata, data, tailroom.
///
/// The bounds change as in Linux 6: the metadata always ends where the data starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    // INVARIANT: RESERVED <= meta <= start <= end <= bytes.len().
    bytes: Vec<u8>,
    meta: usize,
    start: usize,
    end: usize,
}

impl Frame {
    /// Makes a frame with 256 bytes of headroom and of tailroom.
    pub fn new(data: &[u8]) -> Frame {
        Frame::with_room(data, HEADROOM, TAILROOM)
    }
    /// Makes a frame with the given room. The headroom includes the 40 bytes that the kernel keeps for itself, and is
    /// at least as large.
    pub fn with_room(data: &[u8], headroom: usize, tailroom: usize) -> Frame {
        let start = headroom.max(RESERVED);
        let mut bytes = vec![GARBAGE; start];
        bytes.extend_from_slice(data);
        let end = bytes.len();
        bytes.resize(end + tailroom, GARBAGE);
        Frame { bytes, meta: start, start, end }
    }
    /// The data of the frame.
    pub fn data(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }
    /// The metadata before the frame.
    pub fn metadata(&self) -> &[u8] {
        self.bytes.get(self.meta..self.start).unwrap_or_default()
    }
    /// Bytes before the data, including the metadata and the bytes that the kernel keeps for itself.
    pub fn headroom(&self) -> usize {
        self.start
    }
    /// Bytes after the data.
    pub fn tailroom(&self) -> usize {
        self.bytes.len() - self.end
    }

    /// Moves the start of the data by `distance` bytes, and the metadata with it (`bpf_xdp_adjust_head`).
    pub fn adjust_head(&mut self, distance: i32) -> Result<(), Refusal> {
        let metadata = self.metadata().to_vec();
        let start = self.start as i64 + i64::from(distance);
        if start < (RESERVED + metadata.len()) as i64 || start > self.end as i64 - LEAST {
            return Err(Refusal::Invalid);
        }
        self.start = start as usize;
        self.meta = self.start - metadata.len();
        overwrite(&mut self.bytes, self.meta, &metadata);
        Ok(())
    }

    /// Moves the end of the data by `distance` bytes (`bpf_xdp_adjust_tail`). New bytes are 0.
    pub fn adjust_tail(&mut self, distance: i32) -> Result<(), Refusal> {
        let end = self.end as i64 + i64::from(distance);
        if end > self.bytes.len() as i64 || end < self.start as i64 + LEAST {
            return Err(Refusal::Invalid);
        }
        let before = self.end;
        self.end = end as usize;
        if let Some(grown) = self.bytes.get_mut(before..self.end) {
            grown.fill(0);
        }
        Ok(())
    }

    /// Moves the start of the metadata by `distance` bytes (`bpf_xdp_adjust_meta`).
    pub fn adjust_meta(&mut self, distance: i32) -> Result<(), Refusal> {
        let meta = self.meta as i64 + i64::from(distance);
        let length = self.start as i64 - meta;
        if meta < RESERVED as i64 || length < 0 {
            return Err(Refusal::Invalid);
        }
        if length % 4 != 0 || length > METADATA {
            return Err(Refusal::Access);
        }
        self.meta = meta as usize;
        Ok(())
    }

    /// Positions of the start of the metadata, the start of the data and its end in the buffer.
    pub(super) fn bounds(&self) -> [usize; 3] {
        [self.meta, self.start, self.end]
    }
    /// Copies bytes out of the metadata and the data. Returns nothing if one of them is outside.
    pub(super) fn read(&self, position: i64, out: &mut [u8]) -> Option<()> {
        let area = self.area(position, out.len())?;
        out.copy_from_slice(self.bytes.get(area)?);
        Some(())
    }
    /// Copies bytes into the metadata and the data. Returns nothing if one of them is outside.
    pub(super) fn write(&mut self, position: i64, data: &[u8]) -> Option<()> {
        let area = self.area(position, data.len())?;
        self.bytes.get_mut(area)?.copy_from_slice(data);
        Some(())
    }

    fn area(&self, position: i64, size: usize) -> Option<Range<usize>> {
        let first = usize::try_from(position).ok()?;
        let area = first..first.checked_add(size)?;
        (area.start >= self.meta && area.end <= self.end).then_some(area)
    }
}

/// Copies `data` over the bytes at `at`, if there are that many.
fn overwrite(bytes: &mut [u8], at: usize, data: &[u8]) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..data.len())) {
        place.copy_from_slice(data);
    }
}
