// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record layer of classic pcap files.
//!
//! The reader of the crate pcap-file is not sufficient. It cannot distinguish a truncated last record from an invalid
//! one. It does not return the offsets of records, although messages and repositioning need them. It refuses the
//! modified pcap format, which has longer record headers. It also rejects packets longer than the snapshot length in
//! the header, although real files contain such packets. The tests compare this reader with pcap-file.
use crate::source::Source;
use crate::{CaptureError, LinkType, MAX_CAPTURED};

/// Length of the file header, in bytes.
pub(crate) const FILE_HEADER: u64 = 24;

/// The metadata of a packet record; the bytes are in the reader's buffer.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub(crate) link: LinkType,
    pub(crate) time_ns: i64,
    pub(crate) original_len: u32,
}

/// The result of reading a record.
pub(crate) enum Next {
    Record(Record),
    End,
    /// The input ends inside a record.
    Cut,
}

/// Reads a 32-bit number at offset `at`, big-endian if `big` is set. Returns 0 if the offset is out of range.
pub(crate) fn u32_at(bytes: &[u8], at: usize, big: bool) -> u32 {
    let word: [u8; 4] = bytes.get(at..).and_then(|b| b.first_chunk()).copied().unwrap_or_default();
    if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}

/// Reads a 16-bit number; otherwise like [`u32_at`].
pub(crate) fn u16_at(bytes: &[u8], at: usize, big: bool) -> u16 {
    let half: [u8; 2] = bytes.get(at..).and_then(|b| b.first_chunk()).copied().unwrap_or_default();
    if big { u16::from_be_bytes(half) } else { u16::from_le_bytes(half) }
}

/// The format of the records of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PcapLayout {
    big: bool,
    nano: bool,
    /// Whether record headers have eight more bytes (interface, protocol, packet type), as in the modified format.
    modified: bool,
    minor: u16,
    link: LinkType,
}

impl PcapLayout {
    /// Detects a pcap file by its magic number. Returns its variant: (big-endian, nanoseconds, modified).
    fn magic(head: &[u8]) -> Option<(bool, bool, bool)> {
        let word: [u8; 4] = *head.first_chunk()?;
        [(true, u32::from_be_bytes(word)), (false, u32::from_le_bytes(word))].into_iter().find_map(
            |(big, magic)| match magic {
                0xa1b2_c3d4 => Some((big, false, false)),
                0xa1b2_3c4d => Some((big, true, false)),
                0xa1b2_cd34 => Some((big, false, true)),
                _ => None,
            },
        )
    }

    /// Whether `head` begins a pcap file.
    pub(crate) fn recognises(head: &[u8]) -> bool {
        PcapLayout::magic(head).is_some()
    }

    /// Reads the file header.
    pub(crate) fn read(source: &mut Source) -> Result<PcapLayout, CaptureError> {
        let mut header = [0; 24];
        let n = source.read_full(&mut header)?;
        let too_short = || CaptureError::TooShort { file: source.name().to_owned() };
        if n < header.len() {
            return Err(too_short());
        }
        let (big, nano, modified) = PcapLayout::magic(&header).ok_or_else(too_short)?;
        let (major, minor) = (u16_at(&header, 4, big), u16_at(&header, 6, big));
        if major != 2 {
            let what = format!("pcap version {major}.{minor} is not known, only 2.x is");
            return Err(CaptureError::corrupt(source.name(), 4, what));
        }
        // The upper six bits hold the length of the frame check sequence, if any.
        let link = LinkType(u32_at(&header, 20, big) & 0x03ff_ffff);
        Ok(PcapLayout { big, nano, modified, minor, link })
    }

    pub(crate) fn link(&self) -> LinkType {
        self.link
    }

    /// Reads the next record, and stores its packet in `data`.
    pub(crate) fn next(&self, source: &mut Source, data: &mut Vec<u8>) -> Result<Next, CaptureError> {
        let at = source.offset();
        let mut header = [0; 24];
        let length = if self.modified { 24 } else { 16 };
        match source.read_full(header.get_mut(..length).unwrap_or_default())? {
            0 => return Ok(Next::End),
            n if n < length => return Ok(Next::Cut),
            _ => {}
        }
        let word = |offset| u32_at(&header, offset, self.big);
        let (mut captured, mut original) = (word(8), word(12));
        // Before version 2.3 the captured and the original length were swapped. Files of version 2.3 have either order.
        if self.minor < 3 || self.minor == 3 && captured > original {
            (captured, original) = (original, captured);
        }
        check_lengths(source.name(), at, captured, original)?;
        data.resize(usize::try_from(captured).unwrap_or(0), 0);
        if source.read_full(data)? < data.len() {
            return Ok(Next::Cut);
        }
        // The time is less than 2^32 s + 2^32 us, so it does not overflow.
        let fraction = i64::from(word(4)) * if self.nano { 1 } else { 1000 };
        let time_ns = i64::from(word(0)) * 1_000_000_000 + fraction;
        Ok(Next::Record(Record { link: self.link, time_ns, original_len: original }))
    }
}

/// Returns an error if the captured length of a record exceeds [`MAX_CAPTURED`] or the original length.
pub(crate) fn check_lengths(file: &str, at: u64, captured: u32, original: u32) -> Result<(), CaptureError> {
    if captured > MAX_CAPTURED {
        let what = format!("captured length {captured} is over {MAX_CAPTURED}");
        return Err(CaptureError::corrupt(file, at, what));
    }
    if captured > original {
        let what = format!("captured length {captured} is over the original length {original}");
        return Err(CaptureError::corrupt(file, at, what));
    }
    Ok(())
}
