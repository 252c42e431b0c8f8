// SPDX-License-Identifier: MIT OR Apache-2.0
//! Escapes text for XML and HTML.

use castanet_lang::bytes;
use std::fmt::Write as _;

/// Escapes text between tags. Characters that XML does not allow, and bytes that are not UTF-8, become replacement
/// characters.
pub fn text(text: &str) -> String {
    escape(&bytes::replaced(text), false)
}

/// Escapes an attribute's value for double quotes. Blanks other than spaces are written as numbers, because a reader
/// would make spaces of them. Bytes that are not UTF-8 are written as the numbers of the characters that stand for them
/// ([`castanet_lang::bytes`]), so that a reader gets the same text.
pub fn attribute(text: &str) -> String {
    escape(text, true)
}

/// Whether XML allows all characters of a text.
pub fn is_allowed(text: &str) -> bool {
    text.chars().all(allowed)
}

/// Whether XML 1.0 allows a character (section 2.2).
fn allowed(c: char) -> bool {
    !matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}

fn escape(text: &str, attribute: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if attribute => out.push_str("&quot;"),
            '\n' | '\t' if !attribute => out.push(c),
            // Readers turn a CR into a LF, unless it is written as a number.
            '\n' | '\t' | '\r' | '\u{7f}'..='\u{9f}' | '\u{10ff80}'..='\u{10ffff}' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c if allowed(c) => out.push(c),
            _ => out.push('\u{fffd}'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let all = "a&<>\"'\n\t\r\u{1}\u{7f}é\u{ffff}\u{10ff80}";
        assert_eq!(text(all), "a&amp;&lt;&gt;\"'\n\t&#13;\u{fffd}&#127;é\u{fffd}\u{fffd}");
        assert_eq!(attribute(all), "a&amp;&lt;&gt;&quot;'&#10;&#9;&#13;\u{fffd}&#127;é\u{fffd}&#1113984;");
        assert!(is_allowed("a\r\n\t\u{10ffff}") && !is_allowed("\u{1}"));
    }
}
