// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lexical units that the quoting rules distinguish: quoted strings, hex strings, comments, blanks.

/// The kind of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// `'…'` or `"…"`; extends to the end of the text if it is not closed.
    Quoted,
    /// `\<…>`.
    Hex,
    /// `//…` or `/*…*/`.
    Comment,
    /// One blank or line break.
    Blank,
    /// Any other byte.
    Byte(u8),
}

/// C's `isspace`.
pub(crate) fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// The byte at `i`; zero past the end.
pub(crate) fn byte(bytes: &[u8], i: usize) -> u8 {
    bytes.get(i).copied().unwrap_or(0)
}

/// Whether a comment starts at `i`.
pub(crate) fn at_comment(bytes: &[u8], i: usize) -> bool {
    byte(bytes, i) == b'/' && matches!(byte(bytes, i + 1), b'/' | b'*')
}

/// The end of the comment that starts at `i`: before the line break, or after `*/`.
pub(crate) fn comment_end(bytes: &[u8], i: usize) -> usize {
    let from = (i + 2).min(bytes.len());
    let rest = bytes.get(from..).unwrap_or(&[]);
    let end = if byte(bytes, i + 1) == b'/' {
        rest.iter().position(|&b| b == b'\n' || b == b'\r')
    } else {
        rest.windows(2).position(|w| w == b"*/").map(|n| n + 2)
    };
    end.map_or(bytes.len(), |n| from + n)
}

/// The end of the quoted string that starts at `i`, and whether it is closed.
pub(crate) fn quoted_end(bytes: &[u8], i: usize) -> (usize, bool) {
    let quote = byte(bytes, i);
    let mut n = i + 1;
    while let Some(&b) = bytes.get(n) {
        match b {
            _ if b == quote => return (n + 1, true),
            b'\\' if quote == b'"' => n += 2,
            _ => n += 1,
        }
    }
    (bytes.len(), false)
}

/// The end of the `\<…>` that starts at `i`, and whether it is closed.
pub(crate) fn hex_end(bytes: &[u8], i: usize) -> (usize, bool) {
    let mut n = i + 2;
    while let Some(&b) = bytes.get(n) {
        if b == b'>' {
            return (n + 1, true);
        }
        n = if at_comment(bytes, n) { comment_end(bytes, n) } else { n + 1 };
    }
    (bytes.len(), false)
}

/// The unit at `i` and its end. `i` must lie inside the text and must not be in the middle of a unit.
pub(crate) fn unit(bytes: &[u8], i: usize) -> (Unit, usize) {
    match byte(bytes, i) {
        b'\'' | b'"' => (Unit::Quoted, quoted_end(bytes, i).0),
        b'\\' if byte(bytes, i + 1) == b'<' => (Unit::Hex, hex_end(bytes, i).0),
        b'/' if at_comment(bytes, i) => (Unit::Comment, comment_end(bytes, i)),
        b if is_space(b) => (Unit::Blank, i + 1),
        b => (Unit::Byte(b), i + 1),
    }
}
