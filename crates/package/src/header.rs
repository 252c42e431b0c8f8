// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the build parameters of a package from its bytes, without running any of its code.

use castanet_element::package::{BUILT, HEADER_SYMBOL, MAGIC};
use object::{Object, ObjectKind, ObjectSection, ObjectSegment, ObjectSymbol};
use std::fmt;

/// The bytes between a library and its checksum in a package file.
const SEAL: &[u8; 16] = b"castanet-checked";
/// The maximum header length, in bytes.
const LONGEST: usize = 64 << 10;

/// The reason a package is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The file, and what is wrong with it.
    pub message: String,
    /// Details, such as differing build parameters or the directories searched.
    pub notes: Vec<String>,
    /// How to fix the problem; may be empty.
    pub help: String,
}

impl Refusal {
    /// Creates a refusal without notes.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), notes: Vec::new(), help: help.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for note in &self.notes {
            write!(f, "\n  {note}")?;
        }
        if self.help.is_empty() { Ok(()) } else { write!(f, "\n  help: {}", self.help) }
    }
}

impl std::error::Error for Refusal {}

/// Why a file is not a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The file is not an object file of a known format.
    #[error("it is not a shared library")]
    NoLibrary,
    /// The file is an object file or an executable.
    #[error("it is an object or a program, not a shared library")]
    OtherKind,
    /// Bytes are missing at the end of the file.
    #[error("it is truncated")]
    Truncated,
    /// The file has no package header.
    #[error("it is a shared library, but not a package of classes")]
    NoPackage,
    /// The package header cannot be read.
    #[error("its header is broken")]
    Broken,
}

/// The build parameters of a package or of this castanet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header(Vec<(String, String)>);

/// The build parameters in which a package must agree with castanet. Each entry has the key of the parameter and its
/// name in messages.
const SAME: [(&str, &str); 6] = [
    ("compiler", "compiler"),
    ("api", "API"),
    ("target", "target"),
    ("features", "target features"),
    ("panic", "panic strategy"),
    ("profile", "profile"),
];

impl Header {
    fn parse(text: &str) -> Option<Header> {
        let lines = text.lines().filter(|l| !l.is_empty());
        let lines = lines.map(|l| l.split_once('=').map(|(k, v)| (k.to_string(), v.to_string())));
        lines.collect::<Option<_>>().map(Header)
    }

    /// The build parameters of this castanet.
    pub fn own() -> Header {
        Header::parse(BUILT).unwrap_or(Header(Vec::new()))
    }

    /// The value of a key; empty if it is missing.
    pub fn get(&self, key: &str) -> &str {
        self.0.iter().find(|v| v.0 == key).map_or("", |v| &v.1)
    }

    /// Reads the header of a shared library. The error says why the file is not a package.
    pub fn read(file: &[u8]) -> Result<Header, HeaderError> {
        let elf = object::File::parse(file).map_err(|_| HeaderError::NoLibrary)?;
        if elf.kind() != ObjectKind::Dynamic {
            return Err(HeaderError::OtherKind);
        }
        // A segment beyond the end of the file would be mapped too. Access to it would kill the process (SIGBUS).
        for s in elf.segments() {
            let (at, length) = s.file_range();
            if at.checked_add(length).is_none_or(|end| end > file.len() as u64) {
                return Err(HeaderError::Truncated);
            }
        }
        let symbol =
            elf.dynamic_symbols().find(|s| s.name() == Ok(HEADER_SYMBOL)).ok_or(HeaderError::NoPackage)?;
        let (address, size) = (symbol.address(), symbol.size());
        let data = elf
            .sections()
            .find_map(|s| s.data_range(address, size).ok().flatten())
            .ok_or(HeaderError::NoPackage)?;
        let rest = data.strip_prefix(MAGIC.as_slice()).ok_or(HeaderError::Broken)?;
        let (length, text) = rest.split_first_chunk::<4>().ok_or(HeaderError::Broken)?;
        let length = u32::from_le_bytes(*length) as usize;
        let text =
            length.checked_sub(MAGIC.len() + 4).filter(|_| length <= LONGEST).and_then(|n| text.get(..n));
        let text = text.and_then(|t| std::str::from_utf8(t).ok()).ok_or(HeaderError::Broken)?;
        Header::parse(text).ok_or(HeaderError::Broken)
    }

    /// The incompatible build parameters, with both values.
    pub fn differences(&self, own: &Header) -> Vec<String> {
        let differs = SAME.iter().filter(|(key, _)| self.get(key) != own.get(key));
        differs
            .map(|(key, name)| {
                let side = |h: &Header| match h.get(key) {
                    "" => "nothing known".to_string(),
                    v => v.to_string(),
                };
                format!("{name}: the package has {}; this castanet has {}", side(self), side(own))
            })
            .collect()
    }
}

/// 128-bit FNV-1a. It identifies contents and detects damage, but does not protect against forgery.
pub fn checksum(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, b| {
        (hash ^ u128::from(*b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

/// Appends the checksum to a compiled library.
pub fn seal(mut library: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&library);
    library.extend_from_slice(SEAL);
    library.extend_from_slice(&sum.to_le_bytes());
    library
}

/// The checksum of a sealed file, if it is correct.
pub fn sealed(file: &[u8]) -> Option<u128> {
    let (rest, sum) = file.split_last_chunk::<16>()?;
    let library = rest.strip_suffix(SEAL.as_slice())?;
    let sum = u128::from_le_bytes(*sum);
    (checksum(library) == sum).then_some(sum)
}

/// Checks that a file can be loaded: its header and its checksum.
pub fn check(name: &str, file: &[u8]) -> Result<(Header, u128), Refusal> {
    let again = "build it with 'castanet build-package DIR', where DIR is the directory of its crate";
    let header = Header::read(file)
        .map_err(|why| Refusal::new(format!("{name}: not a loadable package: {why}"), again))?;
    let differences = header.differences(&Header::own());
    if !differences.is_empty() {
        return Err(Refusal {
            message: format!("{name}: the package was built for another castanet"),
            notes: differences,
            help: "build it again with this castanet: 'castanet build-package DIR', where DIR is the directory of its crate"
                .into(),
        });
    }
    match sealed(file) {
        Some(sum) => Ok((header, sum)),
        None => Err(Refusal::new(
            format!("{name}: the package is damaged, or was not written by 'castanet build-package'"),
            again,
        )),
    }
}
