// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration strings: splitting into arguments and words, quoting, keywords.
//!
//! ```
//! use castanet_lang::args;
//! let config = "eth0, BURST 4 /* slow */, \"a, b\"";
//! let all: Vec<_> = args::split(config).into_iter().map(|r| args::cleaned(config, r)).collect();
//! assert_eq!(all, ["eth0", "BURST 4", "\"a, b\""]);
//! assert_eq!(args::keyword(&all[1]), Some(("BURST", 6..7)));
//! assert_eq!(args::unquote(&all[2]), "a, b");
//! ```

use crate::bytes::{decode_vec, encode};
use crate::text::{Unit, at_comment, byte, comment_end, hex_end, is_space, quoted_end, unit};
use std::borrow::Cow;
use std::ops::Range;

/// Returns the byte range of each argument of a configuration string. Commas separate arguments, even inside
/// parentheses. Commas inside quotes, comments and `\<…>` do not. Blanks and comments around an argument are not part
/// of its range. An empty argument at the end is dropped, but other empty arguments are kept.
pub fn split(config: &str) -> Vec<Range<usize>> {
    each(config).collect()
}

/// Returns the ranges of [`split`] one by one.
pub fn each(config: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let (bytes, mut next) = (config.as_bytes(), 0);
    std::iter::from_fn(move || {
        // Where the first significant byte of the argument starts, and where its last one ends.
        let (mut first, mut last) = (None, 0);
        while next < bytes.len() {
            let (at, (what, end)) = (next, unit(bytes, next));
            next = end;
            match what {
                Unit::Byte(b',') => return Some(first.map_or(at..at, |f| f..last)),
                Unit::Blank | Unit::Comment => {}
                _ => {
                    first = first.or(Some(at));
                    last = end;
                }
            }
        }
        first.map(|f| f..last)
    })
}

/// Part of a configuration string, with each comment replaced by one space.
pub fn cleaned(config: &str, range: Range<usize>) -> Cow<'_, str> {
    let text = config.get(range).unwrap_or("");
    let bytes = text.as_bytes();
    let (mut at, mut kept, mut out) = (0, 0, String::new());
    while at < bytes.len() {
        let (what, end) = unit(bytes, at);
        if what == Unit::Comment {
            out.push_str(text.get(kept..at).unwrap_or(""));
            out.push(' ');
            kept = end;
        }
        at = end;
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(kept..).unwrap_or(""));
    Cow::Owned(out)
}

/// Returns the byte range of each word of an argument. Blanks and comments separate words, except inside quotes and
/// `\<…>`.
pub fn words(arg: &str) -> Vec<Range<usize>> {
    let bytes = arg.as_bytes();
    let (mut all, mut first, mut at) = (Vec::new(), None, 0);
    while at < bytes.len() {
        let (what, end) = unit(bytes, at);
        if matches!(what, Unit::Blank | Unit::Comment) {
            all.extend(first.take().map(|f| f..at));
        } else {
            first = first.or(Some(at));
        }
        at = end;
    }
    all.extend(first.map(|f| f..bytes.len()));
    all
}

/// Splits an argument into its leading keyword and the byte range of the rest. Returns `None` if there is no keyword.
/// A keyword is a letter or `_`, followed by any number of `A-Za-z0-9_:.?!`. Blanks or comments and more text must
/// follow it. The class decides whether the word really is one of its keywords.
pub fn keyword(arg: &str) -> Option<(&str, Range<usize>)> {
    let bytes = arg.as_bytes();
    let start = bytes.iter().position(|&b| !is_space(b))?;
    let first = byte(bytes, start);
    if !(first.is_ascii_alphabetic() || first == b'_') {
        return None;
    }
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'.' | b'?' | b'!');
    let mut end = start;
    while is_part(byte(bytes, end)) {
        end += 1;
    }
    let mut rest = end;
    loop {
        if at_comment(bytes, rest) {
            rest = comment_end(bytes, rest);
        } else if is_space(byte(bytes, rest)) {
            rest += 1;
        } else {
            break;
        }
    }
    let tail = bytes.get(rest..)?;
    let stop = rest + tail.iter().rposition(|&b| !is_space(b))? + 1;
    (rest > end).then(|| arg.get(start..end)).flatten().map(|k| (k, rest..stop))
}

/// Removes quotes and expands escapes. Bytes that are not UTF-8 become characters as [`crate::bytes`] says; [`data`]
/// returns them unchanged.
pub fn unquote(arg: &str) -> String {
    decode_vec(unquoted(arg).0)
}

/// Like [`unquote`], but returns bytes. Returns `None` when a quote or `\<` is not closed.
pub fn data(arg: &str) -> Option<Vec<u8>> {
    let (bytes, closed) = unquoted(arg);
    closed.then_some(bytes)
}

fn unquoted(arg: &str) -> (Vec<u8>, bool) {
    let bytes = &*encode(arg);
    let (mut out, mut at, mut closed) = (Vec::with_capacity(bytes.len()), 0, true);
    while at < bytes.len() {
        let slice = |a: usize, b: usize| bytes.get(a..b.max(a)).unwrap_or(&[]);
        at = match byte(bytes, at) {
            quote @ (b'\'' | b'"') => {
                let (end, ok) = quoted_end(bytes, at);
                closed &= ok;
                let inner = slice(at + 1, end - usize::from(ok));
                if quote == b'\'' {
                    out.extend_from_slice(inner)
                } else {
                    closed &= escapes(inner, &mut out)
                }
                end
            }
            b'\\' if byte(bytes, at + 1) == b'<' => {
                let (end, ok) = hex_end(bytes, at);
                closed &= ok;
                hex(slice(at + 2, end - usize::from(ok)), &mut out);
                end
            }
            b => {
                out.push(b);
                at + 1
            }
        };
    }
    (out, closed)
}

/// Expands the escapes inside double quotes. Returns whether each `\<` is closed.
fn escapes(text: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut at, mut closed) = (0, true);
    while let Some(&b) = text.get(at) {
        if b != b'\\' || at + 1 == text.len() {
            out.push(b);
            at += 1;
            continue;
        }
        let c = byte(text, at + 1);
        at += 2;
        match c {
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let mut value = u32::from(c - b'0');
                for _ in 0..2 {
                    let d = byte(text, at);
                    if (b'0'..=b'7').contains(&d) {
                        value = value * 8 + u32::from(d - b'0');
                        at += 1;
                    }
                }
                out.push((value & 0xff) as u8);
            }
            b'x' if byte(text, at).is_ascii_hexdigit() => {
                // `\x` accepts any number of digits; the last two give the byte.
                let mut value = 0u8;
                while let Some(d) = (byte(text, at) as char).to_digit(16) {
                    value = (value << 4) | d as u8;
                    at += 1;
                }
                out.push(value);
            }
            b'<' => {
                let (end, ok) = hex_end(text, at - 2);
                closed &= ok;
                hex(text.get(at..(end - usize::from(ok)).max(at)).unwrap_or(&[]), out);
                at = end;
            }
            b'\r' if byte(text, at) == b'\n' => at += 1,
            b'\n' | b'\r' => {}
            c => out.push(c),
        }
    }
    closed
}

/// Decodes the hex digits between `\<` and `>` in pairs. Other characters are skipped, and a trailing odd digit
/// is dropped.
fn hex(text: &[u8], out: &mut Vec<u8>) {
    let (mut at, mut high) = (0, None);
    while let Some(&b) = text.get(at) {
        if at_comment(text, at) {
            at = comment_end(text, at);
            continue;
        }
        if let Some(d) = (b as char).to_digit(16) {
            match high.take() {
                Some(h) => out.push((h << 4) | d as u8),
                None => high = Some(d as u8),
            }
        }
        at += 1;
    }
}

/// Quotes text. [`unquote`] is the inverse.
pub fn quote(text: &str) -> String {
    quote_bytes(&encode(text))
}

/// Quotes bytes. [`data`] is the inverse.
pub fn quote_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for &b in bytes {
        match b {
            b'\\' | b'"' | b'$' => {
                out.push('\\');
                out.push(b as char);
            }
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            32..=126 => out.push(b as char),
            _ => out.push_str(&format!("\\{b:03o}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
