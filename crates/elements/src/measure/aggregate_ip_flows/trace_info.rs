// SPDX-License-Identifier: MIT OR Apache-2.0
//! The XML file that describes flows (argument TRACEINFO of AggregateIPFlows).

use super::flows::Flow;
use castanet_element::ElementError;
use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;

/// Size of the buffer, in bytes: text is written when it reaches this size.
const BUFFER: usize = 1 << 16;

/// Writes the XML file. The file is truncated when the first packet comes, or at the end if no packet came.
pub struct TraceInfo {
    name: String,
    /// Whether the header of the file was written.
    begun: bool,
    /// `None` for standard output, and before the file is opened.
    file: Option<File>,
    /// Text of flows that has not been written to the file yet.
    buffer: Vec<u8>,
    failure: Option<io::Error>,
}

/// Formats a time as seconds with nine decimal places.
fn seconds(ns: i64) -> String {
    format!("{}.{:09}", ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000))
}

/// Escapes text for an XML attribute in single quotes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}

impl TraceInfo {
    /// Makes a writer for the file `name`, without opening the file.
    pub fn new(name: &str) -> TraceInfo {
        TraceInfo { name: name.into(), begun: false, file: None, buffer: Vec::new(), failure: None }
    }

    /// Appends the description of a flow.
    pub fn flow(&mut self, flow: &Flow) {
        if self.failure.is_some() {
            return;
        }
        let ((src, sport), (dst, dport)) = (flow.src(), flow.dst());
        let (begin, duration) = (seconds(flow.first), seconds(flow.last.saturating_sub(flow.first)));
        let mut text = format!(
            "<flow aggregate='{}' src='{}' sport='{sport}' dst='{}' dport='{dport}' begin='{begin}' duration='{duration}'>\n",
            flow.aggregate,
            Ipv4Addr::from(src),
            Ipv4Addr::from(dst),
        );
        let streams =
            flow.packets.iter().enumerate().map(|(dir, n)| format!("<stream dir='{dir}' packets='{n}' />"));
        text.push_str("  ");
        text.extend(streams);
        text.push_str("\n</flow>\n");
        self.buffer.extend_from_slice(text.as_bytes());
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    /// Whether the header was written.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Opens the file and writes its header. `source` is the file that the packets come from. The name of the
    /// file comes from the `Filename` argument TRACEINFO.
    #[allow(clippy::disallowed_methods)]
    pub fn begin(&mut self, source: Option<&str>) {
        self.begun = true;
        let source = source.map_or(String::new(), |s| format!(" file='{}'", escaped(s.trim())));
        let head = format!("<?xml version='1.0' standalone='yes'?>\n<trace{source}>\n");
        let opened = if self.name == "-" {
            io::stdout().write_all(head.as_bytes()).map(|()| None)
        } else {
            File::create(&self.name).and_then(|mut f| f.write_all(head.as_bytes()).map(|()| Some(f)))
        };
        match opened {
            Ok(file) => self.file = file,
            Err(e) => self.failure = Some(e),
        }
    }
    fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.buffer);
        let written = match &mut self.file {
            _ if self.failure.is_some() => return,
            Some(file) => file.write_all(&bytes),
            None => io::stdout().write_all(&bytes),
        };
        self.failure = written.err();
    }

    /// Writes the end of the file. Returns the first error of all writes to the file, including earlier ones.
    pub fn write(mut self) -> Result<(), ElementError> {
        self.buffer.extend_from_slice(b"</trace>\n");
        self.flush();
        self.failure.map_or(Ok(()), |e| Err(ElementError::system(self.name)(e)))
    }
}
