// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads captures: one interface for pcap and pcapng.
use std::path::Path;

use crate::pcap::{FILE_HEADER, Next, PcapLayout};
use crate::pcapng::PcapNgLayout;
use crate::source::Source;
use crate::{CaptureError, LinkType};

/// One captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The link type. In pcapng it may differ between packets.
    pub link: LinkType,
    /// Time of capture in nanoseconds since 1970. It may be earlier than the time of the previous packet.
    pub time_ns: i64,
    /// The bytes captured, at most [`MAX_CAPTURED`](crate::MAX_CAPTURED).
    pub data: &'a [u8],
    /// The length of the packet on the link, in bytes; never less than `data.len()`.
    pub original_len: u32,
}

enum Layout {
    Pcap(PcapLayout),
    PcapNg(PcapNgLayout),
}

/// Reads packets from a pcap or pcapng file: both byte orders, micro- and nanoseconds, the modified pcap format, gzip,
/// bzip2 and xz (through the programs of these names).
///
/// If a file ends inside a record, reading ends before that record, and
/// [`truncated`](CaptureReader::truncated) returns true. An invalid record is an error, after which the
/// reader returns no more packets.
pub struct CaptureReader {
    source: Source,
    layout: Layout,
    data: Vec<u8>,
    packet_pos: u64,
    done: bool,
    truncated: bool,
}

impl CaptureReader {
    /// Opens a file, or standard input for the name `-`, and reads its header.
    pub fn open(path: impl AsRef<Path>) -> Result<CaptureReader, CaptureError> {
        CaptureReader::new(Source::open(path.as_ref())?)
    }

    /// Reads a capture in memory; messages use `name` as the name of the file.
    pub fn from_bytes(name: &str, bytes: impl Into<Vec<u8>>) -> Result<CaptureReader, CaptureError> {
        CaptureReader::new(Source::bytes(name, bytes.into())?)
    }

    fn new(mut source: Source) -> Result<CaptureReader, CaptureError> {
        let file = source.name().to_owned();
        let layout = match *source.head() {
            [] => return Err(CaptureError::Empty { file }),
            [a, b, c, d, ..] => {
                if PcapLayout::recognises(source.head()) {
                    Layout::Pcap(PcapLayout::read(&mut source)?)
                } else if PcapNgLayout::recognises(source.head()) {
                    Layout::PcapNg(PcapNgLayout::read(&mut source)?)
                } else {
                    return Err(CaptureError::BadMagic { file, magic: [a, b, c, d] });
                }
            }
            _ => return Err(CaptureError::TooShort { file }),
        };
        let packet_pos = source.offset();
        Ok(CaptureReader { source, layout, data: Vec::new(), packet_pos, done: false, truncated: false })
    }

    /// Returns the next packet, or `None` at the end and after an error.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        if self.done {
            return Ok(None);
        }
        let at = self.source.offset();
        let next = match &mut self.layout {
            Layout::Pcap(layout) => layout.next(&mut self.source, &mut self.data),
            Layout::PcapNg(layout) => layout.next(&mut self.source, &mut self.data),
        };
        match next {
            Ok(Next::Record(record)) => {
                self.packet_pos = at;
                Ok(Some(Frame {
                    link: record.link,
                    time_ns: record.time_ns,
                    data: &self.data,
                    original_len: record.original_len,
                }))
            }
            Ok(end) => {
                self.done = true;
                self.truncated = matches!(end, Next::Cut);
                Ok(None)
            }
            Err(error) => {
                self.done = true;
                Err(error)
            }
        }
    }

    /// Returns the link type. In pcapng this is the link type of the first interface of the current section, or
    /// `None` if no interface was read yet.
    pub fn link(&self) -> Option<LinkType> {
        match &self.layout {
            Layout::Pcap(layout) => Some(layout.link()),
            Layout::PcapNg(layout) => layout.link(),
        }
    }

    /// Name of the file in messages.
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// Whether the input ended inside a record, so that the last record is missing.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Byte position of the next record (in uncompressed bytes).
    pub fn filepos(&self) -> u64 {
        self.source.offset()
    }

    /// Byte position of the record that holds the last returned packet. In pcapng it may be the position of a skipped
    /// block before that record.
    pub fn packet_filepos(&self) -> u64 {
        self.packet_pos
    }

    /// Length of a plain file or of memory, in bytes; `None` for pipes and compressed files.
    pub fn filesize(&self) -> Option<u64> {
        self.source.size()
    }

    /// Continues with the record at byte `offset`, a position that
    /// [`packet_filepos`](CaptureReader::packet_filepos) returned. Only uncompressed pcap captures in a regular file
    /// or in memory can be repositioned. Positions inside the file header mean the first record. If no record starts
    /// at `offset`, the bytes there are checked as if they were a record.
    pub fn seek(&mut self, offset: u64) -> Result<(), CaptureError> {
        if let Layout::PcapNg(_) = self.layout {
            let file = self.source.name().to_owned();
            return Err(CaptureError::Unseekable {
                file,
                offset,
                why: "pcapng files can only be read in order",
            });
        }
        self.source.seek(offset.max(FILE_HEADER))?;
        self.packet_pos = self.source.offset();
        (self.done, self.truncated) = (false, false);
        Ok(())
    }
}
