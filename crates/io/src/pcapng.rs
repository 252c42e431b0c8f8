// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record layer of pcapng files (draft-ietf-opsawg-pcapng).
//!
//! The reader of the crate pcap-file is not sufficient. It panics on a damaged section, rejects a packet whose
//! comment is not UTF-8, and needs a buffer for whole blocks. It also misreads the time stamp of the obsolete Packet
//! Block (two words, high word first). The reader of this module streams blocks: it stores only packet data and
//! skips the rest.
use crate::pcap::{Next, Record, check_lengths, u16_at, u32_at};
use crate::source::Source;
use crate::{CaptureError, LinkType};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Largest number of interfaces in a section, to bound memory.
const MAX_INTERFACES: usize = 65_536;

/// The unit of an interface's time stamps.
#[derive(Clone, Copy)]
enum Resolution {
    /// 10^-n s.
    Decimal(u32),
    /// 2^-n s.
    Binary(u32),
}

struct Interface {
    link: LinkType,
    snaplen: u32,
    resolution: Resolution,
    offset_s: i64,
}

impl Interface {
    /// Converts a time stamp to nanoseconds since 1970. Times out of range are clamped.
    fn time_ns(&self, stamp: u64) -> i64 {
        const GIGA: u128 = 1_000_000_000;
        let scaled = u128::from(stamp) * GIGA;
        let ns = match self.resolution {
            Resolution::Decimal(n) => 10u128.checked_pow(n).map_or(0, |unit| scaled / unit),
            Resolution::Binary(n) => scaled.checked_shr(n).unwrap_or(0),
        };
        let ns = i128::try_from(ns).unwrap_or(i128::MAX);
        let total = ns.saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        i64::try_from(total).unwrap_or(if total < 0 { i64::MIN } else { i64::MAX })
    }
}

/// The result of reading one block.
enum Step {
    Record(Record),
    Other,
    End,
    Cut,
}

/// Takes the result of a read. If it is false, the input has ended, and the macro returns `Step::Cut` from the
/// surrounding function.
macro_rules! or_cut {
    ($whole:expr) => {
        if !$whole {
            return Ok(Step::Cut);
        }
    };
}

/// The state of reading a pcapng file.
pub(crate) struct PcapNgLayout {
    big: bool,
    in_section: bool,
    /// Whether the input ended inside a block.
    cut: bool,
    interfaces: Vec<Interface>,
}

impl PcapNgLayout {
    /// Whether `head` begins a pcapng file.
    pub(crate) fn recognises(head: &[u8]) -> bool {
        head.starts_with(&SECTION_HEADER.to_be_bytes())
    }

    /// Reads up to the first interface, so that the link type is known.
    pub(crate) fn read(source: &mut Source) -> Result<PcapNgLayout, CaptureError> {
        let mut layout = PcapNgLayout { big: false, in_section: false, cut: false, interfaces: Vec::new() };
        while layout.interfaces.is_empty() {
            match layout.step(source, &mut Vec::new())? {
                Step::Record(_) | Step::Other => {}
                Step::End if layout.in_section => break,
                Step::Cut if layout.in_section => {
                    layout.cut = true;
                    break;
                }
                Step::End | Step::Cut => {
                    return Err(CaptureError::TooShort { file: source.name().to_owned() });
                }
            }
        }
        Ok(layout)
    }

    /// Link type of the first interface of the current section.
    pub(crate) fn link(&self) -> Option<LinkType> {
        self.interfaces.first().map(|interface| interface.link)
    }

    /// Reads up to the next packet, and stores its bytes in `data`.
    pub(crate) fn next(&mut self, source: &mut Source, data: &mut Vec<u8>) -> Result<Next, CaptureError> {
        while !self.cut {
            match self.step(source, data)? {
                Step::Record(record) => return Ok(Next::Record(record)),
                Step::Other => {}
                Step::End => return Ok(Next::End),
                Step::Cut => self.cut = true,
            }
        }
        Ok(Next::Cut)
    }

    /// Reads one block.
    fn step(&mut self, source: &mut Source, data: &mut Vec<u8>) -> Result<Step, CaptureError> {
        let at = source.offset();
        let mut header = [0; 12];
        let (start, order) = header.split_at_mut(8);
        match source.read_full(start)? {
            0 => return Ok(Step::End),
            n => or_cut!(n == 8),
        }
        let kind = u32_at(start, 0, self.big);
        // The type of a section header is the same in both byte orders. The third word of the block shows the order.
        if kind == SECTION_HEADER {
            or_cut!(source.read_full(order)? == 4);
            self.big = match *order {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => {
                    return Err(CaptureError::corrupt(
                        source.name(),
                        at,
                        "bad byte-order magic of a section",
                    ));
                }
            };
        }
        let length = u32_at(&header, 4, self.big);
        if !length.is_multiple_of(4) || length < 12 {
            let what = format!("block length {length} is not a multiple of 4 of at least 12");
            return Err(CaptureError::corrupt(source.name(), at, what));
        }
        let mut block = Block { source, at, left: length - 12, big: self.big };
        let record = match kind {
            SECTION_HEADER => {
                or_cut!(self.section(&mut block)?);
                None
            }
            INTERFACE => {
                or_cut!(self.interface(&mut block)?);
                None
            }
            ENHANCED_PACKET | OBSOLETE_PACKET | SIMPLE_PACKET => match self.packet(kind, &mut block, data)? {
                None => return Ok(Step::Cut),
                record => record,
            },
            _ => None,
        };
        or_cut!(block.finish(length)?);
        self.in_section |= kind == SECTION_HEADER;
        Ok(record.map_or(Step::Other, Step::Record))
    }

    fn section(&mut self, block: &mut Block<'_>) -> Result<bool, CaptureError> {
        // The byte-order magic is already read.
        block.left = block.left.checked_sub(4).ok_or_else(|| block.error("section header too short"))?;
        let mut fixed = [0; 12];
        if !block.read(&mut fixed)? {
            return Ok(false);
        }
        let major = u16_at(&fixed, 0, self.big);
        if major != 1 {
            return Err(block.error(format!("pcapng version {major} is not known, only 1 is")));
        }
        self.interfaces.clear();
        Ok(true)
    }

    fn interface(&mut self, block: &mut Block<'_>) -> Result<bool, CaptureError> {
        let mut fixed = [0; 8];
        if !block.read(&mut fixed)? {
            return Ok(false);
        }
        let mut interface = Interface {
            link: LinkType(u32::from(u16_at(&fixed, 0, self.big))),
            snaplen: u32_at(&fixed, 4, self.big),
            resolution: Resolution::Decimal(6),
            offset_s: 0,
        };
        while block.left >= 4 {
            let mut option = [0; 4];
            if !block.read(&mut option)? {
                return Ok(false);
            }
            let (code, length) = (u16_at(&option, 0, self.big), u16_at(&option, 2, self.big));
            if code == 0 {
                break;
            }
            let mut value = [0; 8];
            let kept = usize::from(length).min(value.len());
            let padded = u32::from(length).next_multiple_of(4);
            let unread = padded.saturating_sub(u32::try_from(kept).unwrap_or(0));
            if !block.read(value.get_mut(..kept).unwrap_or_default())? || !block.skip(unread)? {
                return Ok(false);
            }
            match (code, length) {
                // if_tsresol: the top bit chooses powers of two.
                (9, 1) if value[0] & 0x80 != 0 => {
                    interface.resolution = Resolution::Binary(u32::from(value[0] & 0x7f));
                }
                (9, 1) => interface.resolution = Resolution::Decimal(u32::from(value[0])),
                // if_tsoffset: an offset in seconds that is added to all time stamps.
                (14, 8) if self.big => interface.offset_s = i64::from_be_bytes(value),
                (14, 8) => interface.offset_s = i64::from_le_bytes(value),
                _ => {}
            }
        }
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(block.error(format!("more than {MAX_INTERFACES} interfaces in a section")));
        }
        self.interfaces.push(interface);
        Ok(true)
    }

    /// Reads a packet block of any of the three kinds. Returns `None` if the input ends inside the block.
    fn packet(
        &self,
        kind: u32,
        block: &mut Block<'_>,
        data: &mut Vec<u8>,
    ) -> Result<Option<Record>, CaptureError> {
        let mut fixed = [0; 20];
        let length = if kind == SIMPLE_PACKET { 4 } else { 20 };
        if !block.read(fixed.get_mut(..length).unwrap_or_default())? {
            return Ok(None);
        }
        let word = |offset| u32_at(&fixed, offset, self.big);
        let id = match kind {
            SIMPLE_PACKET => 0,
            OBSOLETE_PACKET => u32::from(u16_at(&fixed, 0, self.big)),
            _ => word(0),
        };
        let interface = usize::try_from(id).ok().and_then(|id| self.interfaces.get(id));
        let interface = interface.ok_or_else(|| {
            block.error(format!("packet of interface {id}, which is not described in the section"))
        })?;
        let (time_ns, captured, original) = if kind == SIMPLE_PACKET {
            let limit = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
            (0, word(0).min(limit), word(0))
        } else {
            // In both kinds of block (Enhanced Packet and the obsolete Packet), the time stamp is two words, the
            // high word first.
            let stamp = u64::from(word(4)) << 32 | u64::from(word(8));
            (interface.time_ns(stamp), word(12), word(16))
        };
        check_lengths(block.source.name(), block.at, captured, original)?;
        if captured > block.left {
            return Err(block.error(format!("captured length {captured} is over the block's {}", block.left)));
        }
        data.resize(usize::try_from(captured).unwrap_or(0), 0);
        if !block.read(data)? {
            return Ok(None);
        }
        Ok(Some(Record { link: interface.link, time_ns, original_len: original }))
    }
}

/// The part of a block's body that has not been read yet.
struct Block<'a> {
    source: &'a mut Source,
    at: u64,
    left: u32,
    big: bool,
}

impl Block<'_> {
    fn error(&self, what: impl Into<String>) -> CaptureError {
        CaptureError::corrupt(self.source.name(), self.at, what)
    }

    fn take(&mut self, count: usize) -> Result<(), CaptureError> {
        let left = u32::try_from(count).ok().and_then(|count| self.left.checked_sub(count));
        self.left = left.ok_or_else(|| self.error("block shorter than its content"))?;
        Ok(())
    }

    /// Fills `buf` from the body. Returns false if the input ends first.
    fn read(&mut self, buf: &mut [u8]) -> Result<bool, CaptureError> {
        self.take(buf.len())?;
        Ok(self.source.read_full(buf)? == buf.len())
    }

    fn skip(&mut self, count: u32) -> Result<bool, CaptureError> {
        self.take(usize::try_from(count).unwrap_or(usize::MAX))?;
        self.source.skip(u64::from(count))
    }

    /// Skips the rest of the body and checks the second copy of the block's length.
    /// Returns false if the input ends first.
    fn finish(&mut self, length: u32) -> Result<bool, CaptureError> {
        let mut trailer = [0; 4];
        if !self.source.skip(u64::from(self.left))? || self.source.read_full(&mut trailer)? < 4 {
            return Ok(false);
        }
        let second = u32_at(&trailer, 0, self.big);
        if second == length {
            return Ok(true);
        }
        Err(self.error(format!("block length {length} at its start, {second} at its end")))
    }
}
