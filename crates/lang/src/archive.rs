// SPDX-License-Identifier: MIT OR Apache-2.0
//! In-memory reader and writer for `ar` archives. Such an archive holds a configuration and its packages in one file.
//!
//! Archives are untrusted input. A member name that is not a plain file name is an error, and so is a member
//! size that reaches beyond the end of the archive.

use thiserror::Error;

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;

/// The reason an archive cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArchiveError {
    /// The data does not start with `!<arch>`.
    #[error("not an archive")]
    NotAnArchive,
    /// A member header is truncated or has no end mark.
    #[error("bad member header at byte {0}")]
    BadHeader(usize),
    /// A member size is not a number, or it reaches beyond the end of the archive.
    #[error("bad member size at byte {0}")]
    BadSize(usize),
    /// A member name is empty, is not text, or could lead out of a directory.
    #[error("bad member name at byte {0}")]
    BadName(usize),
    /// A member is too large for the header's size field.
    #[error("member '{0}' is too large")]
    TooLarge(String),
}

/// Whether the bytes start with the archive magic, `!<arch>`.
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Whether a name is a plain file name: not empty, no `/`, no `\`, no control character, not `.` or `..`.
pub fn is_safe_name(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && !name.chars().any(|c| matches!(c, '/' | '\\') || c.is_control())
}

fn decimal(field: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(field).ok()?.trim_end_matches(' ');
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) { None } else { text.parse().ok() }
}

/// Reads the members of an archive as names and data, in order. Understands GNU names (`//` table, `/OFF`,
/// trailing `/`) and BSD names (`#1/LEN`). Symbol tables are skipped.
pub fn read(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, ArchiveError> {
    if !is_archive(bytes) {
        return Err(ArchiveError::NotAnArchive);
    }
    let (mut at, mut members, mut long_names) = (MAGIC.len(), Vec::new(), None);
    while at < bytes.len() {
        // Some writers add a superfluous newline of padding at the end.
        if bytes.get(at..) == Some(b"\n") {
            break;
        }
        let header = bytes.get(at..at + HEADER).ok_or(ArchiveError::BadHeader(at))?;
        let field = |from: usize, to: usize| header.get(from..to).unwrap_or(&[]);
        if field(58, 60) != b"`\n" {
            return Err(ArchiveError::BadHeader(at));
        }
        let size = decimal(field(48, 58)).ok_or(ArchiveError::BadSize(at))?;
        let start = at + HEADER;
        let end = start.checked_add(size).ok_or(ArchiveError::BadSize(at))?;
        let mut data = bytes.get(start..end).ok_or(ArchiveError::BadSize(at))?;
        let raw = field(0, 16).trim_ascii_end();
        let bad_name = ArchiveError::BadName(at);
        let name: Option<&[u8]> = match raw {
            b"//" => {
                long_names = Some(data);
                None
            }
            b"/" | b"/SYM64/" | b"__.SYMDEF" | b"__.SYMDEF SORTED" => None,
            _ => Some(match (raw.strip_prefix(b"#1/"), raw.strip_prefix(b"/")) {
                (Some(len), _) => {
                    let len = decimal(len).filter(|&l| l <= data.len()).ok_or(bad_name.clone())?;
                    let (name, rest) = data.split_at(len);
                    data = rest;
                    // BSD writers pad the name with zero bytes.
                    let text = name.iter().position(|&b| b == 0).unwrap_or(name.len());
                    name.get(..text).unwrap_or(&[])
                }
                (None, Some(offset)) => {
                    let offset = decimal(offset).ok_or(bad_name.clone())?;
                    let table: &[u8] = long_names.ok_or(bad_name.clone())?;
                    let name = table.get(offset..).ok_or(bad_name.clone())?;
                    let line = name.iter().position(|&b| b == b'\n').unwrap_or(name.len());
                    let name = name.get(..line).unwrap_or(&[]);
                    name.strip_suffix(b"/").unwrap_or(name)
                }
                (None, None) => raw.strip_suffix(b"/").unwrap_or(raw),
            }),
        };
        if let Some(name) = name {
            let name = std::str::from_utf8(name).ok().filter(|n| is_safe_name(n)).ok_or(bad_name)?;
            // A BSD symbol table can also be stored under a long name.
            if !name.starts_with("__.SYMDEF") {
                members.push((name.to_string(), data.to_vec()));
            }
        }
        at = end + (size & 1);
    }
    Ok(members)
}

/// Writes an archive. Dates and owners are zero, so that equal members give equal bytes.
pub fn write(members: &[(String, Vec<u8>)]) -> Result<Vec<u8>, ArchiveError> {
    let mut out = MAGIC.to_vec();
    for (name, data) in members {
        if !is_safe_name(name) {
            return Err(ArchiveError::BadName(out.len()));
        }
        // A name is written in the long form if it does not fit or could be misread (a leading `#` means a BSD name).
        // Non-ASCII names always take the long form: `format!` pads to 16 characters, but the field must have 16
        // bytes.
        let long = name.len() > 14
            || !name.is_ascii()
            || name.contains(' ')
            || name.starts_with('#')
            || name.starts_with("__.SYMDEF");
        let size = data.len() + if long { name.len() } else { 0 };
        if size > 9_999_999_999 {
            return Err(ArchiveError::TooLarge(name.clone()));
        }
        let field = if long { format!("#1/{}", name.len()) } else { name.clone() };
        out.extend_from_slice(
            format!("{field:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 100_644).as_bytes(),
        );
        if long {
            out.extend_from_slice(name.as_bytes());
        }
        out.extend_from_slice(data);
        if size & 1 == 1 {
            out.push(b'\n');
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
