// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of capture files, with texts for users.
use std::io;

use thiserror::Error;

/// An error of a capture file. Its text begins with the name of the file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file has no bytes. (The text is that of Click, three spaces included.)
    #[error("{file}:   empty file")]
    Empty {
        /// Name of the file.
        file: String,
    },
    /// The file ends inside its first header. (The text is that of Click, three spaces included.)
    #[error("{file}:   not a tcpdump file (too short)")]
    TooShort {
        /// Name of the file.
        file: String,
    },
    /// The file has an unknown format.
    #[error("{file}: not a pcap or pcapng file: it begins with {}", hex(magic))]
    BadMagic {
        /// Name of the file.
        file: String,
        /// Its first four bytes.
        magic: [u8; 4],
    },
    /// A header or record is invalid, so the rest of the file cannot be trusted.
    #[error("{file}: bad capture file at byte {offset}: {what}")]
    Corrupt {
        /// Name of the file.
        file: String,
        /// Where the record starts, counted in uncompressed bytes.
        offset: u64,
        /// What is invalid.
        what: String,
    },
    /// The program that decompresses this file is not installed.
    #[error("{file}: is compressed, and '{program}', which could decompress it, is not installed")]
    NoDecompressor {
        /// Name of the file.
        file: String,
        /// The missing program.
        program: &'static str,
    },
    /// The program that decompresses this file failed. The packets before the failure were read.
    #[error("{file}: '{program} -dc' could not decompress it ({status})")]
    Decompressor {
        /// Name of the file.
        file: String,
        /// The program.
        program: &'static str,
        /// The exit status of the program.
        status: String,
    },
    /// The input cannot be repositioned: a pipe, a compressed file, pcapng.
    #[error("{file}: cannot move to byte {offset}: {why}")]
    Unseekable {
        /// Name of the file.
        file: String,
        /// The requested position.
        offset: u64,
        /// Why it cannot be reached.
        why: &'static str,
    },
    /// The operating system refused to open, read or write.
    #[error("{file}: {}", system_text(source))]
    Io {
        /// Name of the file.
        file: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl CaptureError {
    pub(crate) fn io(file: &str, source: io::Error) -> CaptureError {
        CaptureError::Io { file: file.to_owned(), source }
    }

    pub(crate) fn corrupt(file: &str, offset: u64, what: impl Into<String>) -> CaptureError {
        CaptureError::Corrupt { file: file.to_owned(), offset, what: what.into() }
    }
}

/// Wraps this error in an [`io::Error`] of the matching kind.
impl From<CaptureError> for io::Error {
    fn from(e: CaptureError) -> Self {
        let kind = match &e {
            CaptureError::Empty { .. } | CaptureError::TooShort { .. } => io::ErrorKind::UnexpectedEof,
            CaptureError::BadMagic { .. } | CaptureError::Corrupt { .. } => io::ErrorKind::InvalidData,
            CaptureError::NoDecompressor { .. } => io::ErrorKind::NotFound,
            CaptureError::Decompressor { .. } => io::ErrorKind::Other,
            CaptureError::Unseekable { .. } => io::ErrorKind::NotSeekable,
            CaptureError::Io { source, .. } => source.kind(),
        };
        io::Error::new(kind, e)
    }
}

/// Returns the text of an operating system error without the suffix ` (os error N)` that Rust adds.
pub(crate) fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text.get(..end).unwrap_or(&text).to_owned(),
        None => text,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
