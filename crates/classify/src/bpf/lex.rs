// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lexer of capture filters.

use std::ops::Range;

/// A token of a capture filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A name, a number or an address.
    Word(&'a str),
    /// An operator or bracket.
    Sign(&'a str),
    /// The end of the text.
    End,
}

const SIGNS: [&str; 8] = ["&&", "||", "!=", "==", "<=", ">=", "<<", ">>"];

/// Splits a filter into tokens with their ranges. Inside brackets, `:` separates offset and size; elsewhere it
/// is part of an address.
pub fn split(text: &str) -> Vec<(Token<'_>, Range<usize>)> {
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let (mut out, mut i, mut brackets) = (Vec::new(), 0usize, 0usize);
    while i < bytes.len() {
        let start = i;
        let c = at(i);
        if c.is_ascii_whitespace() {
            i += 1;
            continue;
        }
        // A backslash marks a keyword that is used as a name. The backslash is dropped, because the grammar already
        // distinguishes names from keywords.
        if c == b'\\' {
            i += 1;
        }
        let word = i;
        let letters = at(i).is_ascii_alphabetic();
        loop {
            let c = at(i);
            let joins = c == b'-' && letters && i > word && at(i + 1).is_ascii_alphabetic();
            if !(c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_') || c == b':' && brackets == 0 || joins)
            {
                break;
            }
            i += 1;
        }
        if i > word {
            out.push((Token::Word(text.get(word..i).unwrap_or("")), start..i));
            continue;
        }
        i = start;
        let two = text.get(i..i + 2).filter(|t| SIGNS.contains(t));
        // Any other character is a token of its own.
        let one = text.get(i..).and_then(|t| t.chars().next()).map_or(1, char::len_utf8);
        i += two.map_or(one, str::len);
        match c {
            b'[' => brackets += 1,
            b']' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        out.push((Token::Sign(text.get(start..i).unwrap_or("")), start..i));
    }
    out.push((Token::End, text.len()..text.len()));
    out
}
