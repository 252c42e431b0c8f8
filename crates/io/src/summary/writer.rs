// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats and writes summary dumps, text and binary.

use super::field::Field;
use super::field_type::FieldType;
use super::view::View;
use super::words::{print_time, quote};
use crate::CaptureError;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Size of the buffer, in bytes.
const BUFFER: usize = 1 << 16;

/// The header of a dump.
#[derive(Clone, Debug, Default)]
pub struct SummaryHeader {
    /// The program that made the dump.
    pub creator: Option<String>,
    /// The name of the host that made the dump, and the time of creation in nanoseconds since 1970.
    pub origin: Option<(String, i64)>,
}

/// Formats the header and the records of a summary dump in memory.
pub struct SummaryRecords {
    fields: Vec<&'static Field>,
    binary: bool,
    /// The records, if they are text.
    text: String,
    /// The records, if they are binary.
    bytes: Vec<u8>,
}

impl SummaryRecords {
    /// Makes an empty list of records with these fields, in text or binary.
    pub fn new(fields: Vec<&'static Field>, binary: bool) -> SummaryRecords {
        SummaryRecords { fields, binary, text: String::new(), bytes: Vec::new() }
    }

    /// Returns the header lines.
    pub fn header(&self, header: &SummaryHeader) -> String {
        let mut text = format!("!IPSummaryDump {}.{}\n", super::VERSION.0, super::VERSION.1);
        if let Some(creator) = &header.creator {
            text.push_str("!creator ");
            quote(creator.as_bytes(), &mut text);
            text.push('\n');
        }
        if let Some((host, now)) = &header.origin {
            let _ = write!(text, "!host {host}\n!runtime ");
            print_time(*now, &mut text);
            let _ = writeln!(text, " ({})", super::calendar(*now));
        }
        text.push_str("!data");
        for field in &self.fields {
            text.push(' ');
            // In text, `timestamp` and `ntimestamp` have the same form. More readers support the name
            // `timestamp`.
            let nano = field.kind == FieldType::NanoTime && !self.binary;
            text.push_str(&if nano {
                field.name.replace("ntimestamp", "timestamp")
            } else {
                field.name.into()
            });
        }
        text.push('\n');
        if self.binary {
            text.push_str("!binary\n");
        }
        text
    }

    /// Adds a line that is not a record.
    pub fn note(&mut self, line: &str) {
        if self.binary {
            let length = u32::try_from(line.len().saturating_add(5)).unwrap_or(u32::MAX);
            self.bytes.extend((length | 1 << 31).to_be_bytes());
            self.bytes.extend_from_slice(line.as_bytes());
            self.bytes.push(b'\n');
        } else {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// Adds the record of a packet.
    pub fn push(&mut self, view: &View<'_>) {
        if self.binary {
            let start = self.bytes.len();
            self.bytes.extend([0; 4]);
            for field in &self.fields {
                field.kind.write(field.get(view).as_ref(), &mut self.bytes);
            }
            let length = u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX);
            if let Some(place) = self.bytes.get_mut(start..).and_then(|b| b.first_chunk_mut()) {
                *place = length.to_be_bytes();
            }
            return;
        }
        for (i, field) in self.fields.iter().enumerate() {
            if i > 0 {
                self.text.push(' ');
            }
            match field.get(view) {
                Some(value) => field.kind.print(&value, &mut self.text),
                None => self.text.push('-'),
            }
        }
        self.text.push('\n');
    }

    /// The lines and records that were added, one after the other.
    pub fn bytes(&self) -> &[u8] {
        if self.binary { &self.bytes } else { self.text.as_bytes() }
    }

    /// Removes all lines and records, and keeps at most `kept` bytes of memory.
    pub fn clear(&mut self, kept: usize) {
        self.text.clear();
        self.bytes.clear();
        self.text.shrink_to(kept);
        self.bytes.shrink_to(kept);
    }
}

/// Writes the bytes of [`SummaryRecords`] to a file, buffered.
///
/// An error is reported once, by the call in which it occurs. After that, nothing is written.
pub struct SummaryWriter {
    name: String,
    /// `None` after an error.
    sink: Option<Box<dyn Write + Send>>,
    buffer: Vec<u8>,
}

impl SummaryWriter {
    /// Creates or truncates a file; the name `-` is standard output.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return Ok(SummaryWriter::from_writer("<stdout>", io::stdout()));
        }
        let name = path.display().to_string();
        let file = File::create(path).map_err(|e| CaptureError::io(&name, e))?;
        Ok(SummaryWriter::from_writer(&name, file))
    }
    /// Writes to any sink; messages use `name` as the name of the file.
    pub fn from_writer(name: &str, writer: impl Write + Send + 'static) -> SummaryWriter {
        SummaryWriter {
            name: name.to_owned(),
            sink: Some(Box::new(writer)),
            buffer: Vec::with_capacity(BUFFER),
        }
    }

    /// Writes formatted lines or records. Returns false, and writes nothing, after an error.
    pub fn write(&mut self, bytes: &[u8]) -> Result<bool, CaptureError> {
        if self.sink.is_none() {
            return Ok(false);
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(true)
    }
    /// Writes the buffer.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        let written = sink.write_all(&self.buffer).and_then(|()| sink.flush());
        self.buffer.clear();
        written.map_err(|e| {
            self.sink = None;
            CaptureError::io(&self.name, e)
        })
    }
}

impl Drop for SummaryWriter {
    fn drop(&mut self) {
        // Errors are ignored here. A caller that needs them calls `flush` first.
        let _ = self.flush();
    }
}
