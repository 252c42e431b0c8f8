// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes captures.
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::{CaptureError, LinkType, MAX_CAPTURED};

/// Size of the buffer, in bytes.
const BUFFER: usize = 1 << 16;

/// The format of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureFormat {
    /// Classic pcap.
    #[default]
    Pcap,
    /// pcapng: one section with one interface.
    PcapNg,
}

/// Options of a capture. The defaults are those of ToDump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// The link type.
    pub link: LinkType,
    /// Snapshot length: the largest part of a packet that is written; 0 means [`MAX_CAPTURED`].
    pub snaplen: u32,
    /// Whether time stamps are in nanoseconds instead of microseconds.
    pub nano: bool,
    /// The format.
    pub format: CaptureFormat,
    /// Whether to write each packet immediately.
    pub unbuffered: bool,
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        WriterOptions {
            link: LinkType::ETHERNET,
            snaplen: 2000,
            nano: true,
            format: CaptureFormat::Pcap,
            unbuffered: false,
        }
    }
}

/// Formats the records of a capture in memory, in native byte order.
#[derive(Clone, Debug)]
pub struct CaptureRecords {
    options: WriterOptions,
    bytes: Vec<u8>,
    /// For each record, the offset of its end in `bytes`.
    ends: Vec<usize>,
}

enum Sink {
    File(File),
    Stream(Box<dyn Write + Send>),
}

/// Writes packets to a capture file, buffered, in native byte order.
///
/// # Errors
/// A full disk or a closed pipe is reported once, by the call in which it occurs. After that, nothing is
/// written and [`write`](CaptureWriter::write) returns `false`. A regular file is truncated after its
/// last complete record (to length 0, if the file header did not fit). Such a file looks complete, so only the
/// error shows that packets are missing. A pipe cannot be truncated, so its reader sees an incomplete record.
///
/// [`close`](CaptureWriter::close) writes the buffered bytes and reports errors. Dropping a writer writes
/// them too, but cannot report errors.
pub struct CaptureWriter {
    name: String,
    /// `None` after an error.
    sink: Option<Sink>,
    buffer: CaptureRecords,
    /// Number of bytes that were written to the file before those in the buffer.
    written: u64,
    count: u64,
}

impl CaptureWriter {
    /// Creates or truncates a file (the name `-` is standard output), and writes the file header immediately.
    pub fn create(path: impl AsRef<Path>, options: WriterOptions) -> Result<CaptureWriter, CaptureError> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return CaptureWriter::new("<stdout>".to_owned(), Sink::Stream(Box::new(io::stdout())), options);
        }
        let name = path.display().to_string();
        let file = File::create(path).map_err(|e| CaptureError::io(&name, e))?;
        let regular = file.metadata().is_ok_and(|meta| meta.is_file());
        let sink = if regular { Sink::File(file) } else { Sink::Stream(Box::new(file)) };
        CaptureWriter::new(name, sink, options)
    }

    /// Writes to any sink; messages use `name` as the name of the file.
    pub fn from_writer(
        name: &str,
        writer: impl Write + Send + 'static,
        options: WriterOptions,
    ) -> Result<CaptureWriter, CaptureError> {
        CaptureWriter::new(name.to_owned(), Sink::Stream(Box::new(writer)), options)
    }

    fn new(name: String, sink: Sink, options: WriterOptions) -> Result<CaptureWriter, CaptureError> {
        let mut buffer = CaptureRecords::new(options);
        buffer.bytes.reserve(BUFFER);
        match options.format {
            CaptureFormat::Pcap => buffer.pcap_header(),
            CaptureFormat::PcapNg => buffer.pcapng_header(),
        }
        buffer.ends.push(buffer.bytes.len());
        let mut writer = CaptureWriter { name, sink: Some(sink), buffer, written: 0, count: 0 };
        writer.flush()?;
        Ok(writer)
    }

    /// Writes a packet, as [`CaptureRecords::push`] formats it. Returns false, and writes nothing, after an error.
    pub fn write(&mut self, time_ns: i64, data: &[u8], original_len: u32) -> Result<bool, CaptureError> {
        if self.sink.is_none() {
            return Ok(false);
        }
        self.buffer.push(time_ns, data, original_len);
        self.pushed()
    }

    /// Writes one record of a [`CaptureRecords`] that was made with the same options. Returns false, and writes nothing,
    /// after an error.
    pub fn write_record(&mut self, record: &[u8]) -> Result<bool, CaptureError> {
        if self.sink.is_none() {
            return Ok(false);
        }
        self.buffer.bytes.extend_from_slice(record);
        self.buffer.ends.push(self.buffer.bytes.len());
        self.pushed()
    }

    /// Counts a record that was added to the buffer, and flushes the buffer if it is full.
    fn pushed(&mut self) -> Result<bool, CaptureError> {
        self.count = self.count.saturating_add(1);
        if self.buffer.options.unbuffered || self.buffer.bytes.len() >= BUFFER {
            self.flush()?;
        }
        Ok(true)
    }

    /// Writes the buffer to the operating system.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        let out: &mut dyn Write = match sink {
            Sink::File(file) => file,
            Sink::Stream(stream) => stream.as_mut(),
        };
        let mut done = 0;
        let mut result = Ok(());
        while let Some(rest) = self.buffer.bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match out.write(rest) {
                Ok(0) => result = Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => done = done.saturating_add(n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => result = Err(e),
            }
            if result.is_err() {
                break;
            }
        }
        match result.and_then(|()| out.flush()) {
            Ok(()) => {
                self.written = self.written.saturating_add(u64::try_from(done).unwrap_or(u64::MAX));
                self.buffer.clear();
                Ok(())
            }
            Err(error) => Err(self.failed(done, error)),
        }
    }

    /// Stops writing after an error that occurred when `done` bytes of the buffer were written. A regular
    /// file is truncated after its last complete record.
    fn failed(&mut self, done: usize, error: io::Error) -> CaptureError {
        let whole = self.buffer.ends.iter().rev().find(|end| **end <= done).copied().unwrap_or(0);
        let lost = self.buffer.ends.iter().filter(|end| **end > done).count();
        self.count = self.count.saturating_sub(u64::try_from(lost).unwrap_or(u64::MAX));
        if let Some(Sink::File(file)) = self.sink.take() {
            // If this fails too, readers find the last record truncated.
            let _ = file.set_len(self.written.saturating_add(u64::try_from(whole).unwrap_or(0)));
        }
        self.buffer = CaptureRecords::new(self.buffer.options);
        CaptureError::io(&self.name, error)
    }

    /// Writes the buffer and closes the file.
    pub fn close(mut self) -> Result<(), CaptureError> {
        self.flush()
    }

    /// The number of packets written or buffered. After an error, it is the number of packets in the file.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Name of the file in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options of this capture.
    pub fn options(&self) -> &WriterOptions {
        &self.buffer.options
    }
}

impl CaptureRecords {
    /// Makes an empty list of records.
    pub fn new(options: WriterOptions) -> CaptureRecords {
        CaptureRecords { options, bytes: Vec::new(), ends: Vec::new() }
    }

    /// Adds a packet, truncated to the snapshot length. The time is in nanoseconds since 1970 and is clamped to the
    /// range of the format (from 1970, in pcap up to 2106). `original_len` is raised to the packet's length if it is
    /// less.
    pub fn push(&mut self, time_ns: i64, data: &[u8], original_len: u32) {
        let original = original_len.max(u32::try_from(data.len()).unwrap_or(u32::MAX));
        let kept = usize::try_from(self.snaplen()).unwrap_or(usize::MAX);
        let data = data.get(..kept).unwrap_or(data);
        let captured = u32::try_from(data.len()).unwrap_or(u32::MAX);
        match self.options.format {
            CaptureFormat::Pcap => self.pcap_record(time_ns, data, captured, original),
            CaptureFormat::PcapNg => self.pcapng_record(time_ns, data, captured, original),
        }
        self.ends.push(self.bytes.len());
    }

    /// The bytes of all records, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// For each record, the offset of its end in [`bytes`](CaptureRecords::bytes).
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn snaplen(&self) -> u32 {
        if self.options.snaplen == 0 { MAX_CAPTURED } else { self.options.snaplen.min(MAX_CAPTURED) }
    }

    fn put_u32(&mut self, number: u32) {
        self.bytes.extend_from_slice(&number.to_ne_bytes());
    }

    fn put_u16(&mut self, number: u16) {
        self.bytes.extend_from_slice(&number.to_ne_bytes());
    }

    fn pcap_header(&mut self) {
        self.put_u32(if self.options.nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
        self.put_u16(2);
        self.put_u16(4);
        self.put_u32(0);
        self.put_u32(0);
        self.put_u32(self.snaplen());
        self.put_u32(self.options.link.0);
    }

    fn pcap_record(&mut self, time_ns: i64, data: &[u8], captured: u32, original: u32) {
        let last = i64::from(u32::MAX) * 1_000_000_000 + 999_999_999;
        let time = time_ns.clamp(0, last);
        let fraction = if self.options.nano { time % 1_000_000_000 } else { time % 1_000_000_000 / 1000 };
        self.put_u32(u32::try_from(time / 1_000_000_000).unwrap_or(u32::MAX));
        self.put_u32(u32::try_from(fraction).unwrap_or(0));
        self.put_u32(captured);
        self.put_u32(original);
        self.bytes.extend_from_slice(data);
    }

    fn pcapng_header(&mut self) {
        // Section header: type, length, byte order, version 1.0, unknown section length, length.
        self.put_u32(0x0a0d_0d0a);
        self.put_u32(28);
        self.put_u32(0x1a2b_3c4d);
        self.put_u16(1);
        self.put_u16(0);
        self.put_u32(u32::MAX);
        self.put_u32(u32::MAX);
        self.put_u32(28);
        // Interface: type, length, link type, reserved, snapshot length, if_tsresol, end of options, length.
        self.put_u32(1);
        self.put_u32(32);
        self.put_u16(u16::try_from(self.options.link.0).unwrap_or(u16::MAX));
        self.put_u16(0);
        self.put_u32(self.snaplen());
        self.put_u16(9);
        self.put_u16(1);
        self.bytes.extend_from_slice(&[if self.options.nano { 9 } else { 6 }, 0, 0, 0]);
        self.put_u32(0);
        self.put_u32(32);
    }

    fn pcapng_record(&mut self, time_ns: i64, data: &[u8], captured: u32, original: u32) {
        let stamp = u64::try_from(time_ns).unwrap_or(0) / if self.options.nano { 1 } else { 1000 };
        // The length is at most MAX_CAPTURED + 35, so it does not overflow.
        let length = 32 + captured.next_multiple_of(4);
        self.put_u32(6);
        self.put_u32(length);
        self.put_u32(0);
        self.put_u32(u32::try_from(stamp >> 32).unwrap_or(u32::MAX));
        self.put_u32(u32::try_from(stamp & 0xffff_ffff).unwrap_or(u32::MAX));
        self.put_u32(captured);
        self.put_u32(original);
        self.bytes.extend_from_slice(data);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self.put_u32(length);
    }
}

impl Drop for CaptureWriter {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}
