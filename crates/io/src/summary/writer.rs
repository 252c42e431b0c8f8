// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes summary dumps, text and binary.

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

/// Writes a summary dump, buffered.
///
/// An error is reported once, by the call in which it occurs. After that, nothing is written.
pub struct SummaryWriter {
    name: String,
    /// `None` after an error.
    sink: Option<Box<dyn Write + Send>>,
    fields: Vec<&'static Field>,
    binary: bool,
    buffer: Vec<u8>,
    text: String,
}

impl SummaryWriter {
    /// Creates or truncates a file; the name `-` is standard output.
    pub fn create(
        path: impl AsRef<Path>,
        fields: Vec<&'static Field>,
        binary: bool,
    ) -> Result<Self, CaptureError> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return Ok(SummaryWriter::from_writer("<stdout>", io::stdout(), fields, binary));
        }
        let name = path.display().to_string();
        let file = File::create(path).map_err(|e| CaptureError::io(&name, e))?;
        Ok(SummaryWriter::from_writer(&name, file, fields, binary))
    }
    /// Writes to any sink; messages use `name` as the name of the file.
    pub fn from_writer(
        name: &str,
        writer: impl Write + Send + 'static,
        fields: Vec<&'static Field>,
        binary: bool,
    ) -> SummaryWriter {
        SummaryWriter {
            name: name.to_owned(),
            sink: Some(Box::new(writer)),
            fields,
            binary,
            buffer: Vec::with_capacity(BUFFER),
            text: String::new(),
        }
    }

    /// Writes the header lines.
    pub fn header(&mut self, header: &SummaryHeader) -> Result<(), CaptureError> {
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
        self.append(text.as_bytes())
    }

    /// Writes a line that is not a record.
    pub fn note(&mut self, line: &str) -> Result<(), CaptureError> {
        let bytes = [line.as_bytes(), b"\n"].concat();
        if self.binary {
            let length = u32::try_from(bytes.len().saturating_add(4)).unwrap_or(u32::MAX);
            self.append(&(length | 1 << 31).to_be_bytes())?;
        }
        self.append(&bytes)
    }

    /// Writes the record of a packet. Returns false, and writes nothing, after an error.
    pub fn write(&mut self, view: &View<'_>) -> Result<bool, CaptureError> {
        if self.sink.is_none() {
            return Ok(false);
        }
        if self.binary {
            let start = self.buffer.len();
            self.buffer.extend([0; 4]);
            for field in &self.fields {
                field.kind.write(field.get(view).as_ref(), &mut self.buffer);
            }
            let length = u32::try_from(self.buffer.len() - start).unwrap_or(u32::MAX);
            if let Some(place) = self.buffer.get_mut(start..).and_then(|b| b.first_chunk_mut()) {
                *place = length.to_be_bytes();
            }
        } else {
            let mut text = std::mem::take(&mut self.text);
            text.clear();
            for (i, field) in self.fields.iter().enumerate() {
                if i > 0 {
                    text.push(' ');
                }
                match field.get(view) {
                    Some(value) => field.kind.print(&value, &mut text),
                    None => text.push('-'),
                }
            }
            text.push('\n');
            self.buffer.extend_from_slice(text.as_bytes());
            self.text = text;
        }
        self.flush_if_full()?;
        Ok(true)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        if self.sink.is_some() {
            self.buffer.extend_from_slice(bytes);
        }
        self.flush_if_full()
    }
    fn flush_if_full(&mut self) -> Result<(), CaptureError> {
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
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
