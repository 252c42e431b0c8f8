// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lexer. It returns the kind and the end of the token that starts at a given byte of the text.

use super::kind::{PUNCTUATION, SyntaxKind};

fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

fn starts_name(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_'
}

fn in_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// The end of the name that starts at `at`. A hyphen belongs to the name if a letter, a digit or `_` follows it, so that
/// `fin-wait-1` is a name, and `seg->left` and `n--` are operators on `seg` and `n`.
fn name_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    loop {
        match byte(bytes, end) {
            b if in_name(b) => end += 1,
            b'-' if in_name(byte(bytes, end + 1)) => end += 2,
            _ => return end,
        }
    }
}

/// The end of the comment that starts at `at`: before the line break, or after `*/`.
fn comment_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at + 2..).unwrap_or(&[]);
    let end = if byte(bytes, at + 1) == b'/' {
        rest.iter().position(|&b| b == b'\n' || b == b'\r')
    } else {
        rest.windows(2).position(|w| w == b"*/").map(|n| n + 2)
    };
    end.map_or(bytes.len(), |n| at + 2 + n)
}

/// The end of the string that starts at `at`, and whether its closing quote is there. A string ends with its line.
fn text_end(bytes: &[u8], at: usize) -> (usize, bool) {
    let mut end = at + 1;
    loop {
        match bytes.get(end) {
            Some(b'"') => return (end + 1, true),
            Some(b'\\') if !matches!(bytes.get(end + 1), None | Some(b'\n' | b'\r')) => end += 2,
            None | Some(b'\n' | b'\r') => return (end.min(bytes.len()), false),
            Some(_) => end += 1,
        }
    }
}

/// The first end of a character at or after `at`.
fn char_end(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// Whether the text of a string token lacks its closing quote.
pub(super) fn is_open_text(text: &str) -> bool {
    !text_end(text.as_bytes(), 0).1
}

/// The token at byte `at` and its end; [`SyntaxKind::End`] past the text.
pub(super) fn token(text: &str, at: usize) -> (SyntaxKind, usize) {
    let bytes = text.as_bytes();
    let Some(&b) = bytes.get(at) else { return (SyntaxKind::End, at) };
    let run = |f: fn(u8) -> bool| bytes.iter().skip(at).position(|&b| !f(b)).map_or(bytes.len(), |n| at + n);
    if b.is_ascii_whitespace() {
        return (SyntaxKind::Whitespace, run(|b| b.is_ascii_whitespace()));
    }
    if b == b'/' && matches!(byte(bytes, at + 1), b'/' | b'*') {
        return (SyntaxKind::Comment, comment_end(bytes, at));
    }
    let rest = bytes.get(at..).unwrap_or(&[]);
    if starts_name(b) {
        for (word, kind) in [("max=", SyntaxKind::MaxEq), ("min=", SyntaxKind::MinEq)] {
            // `max == 0` compares a name.
            if rest.starts_with(word.as_bytes()) && byte(bytes, at + 4) != b'=' {
                return (kind, at + 4);
            }
        }
        return (SyntaxKind::Ident, name_end(bytes, at));
    }
    if b.is_ascii_digit() {
        return (SyntaxKind::Number, run(in_name));
    }
    if b == b'"' {
        return (SyntaxKind::Text, char_end(text, text_end(bytes, at).0));
    }
    if let Some((text, kind)) = PUNCTUATION.iter().find(|(text, _)| rest.starts_with(text.as_bytes())) {
        return (*kind, at + text.len());
    }
    // Some editors write a byte order mark first. It is skipped.
    if at == 0 && text.starts_with('\u{feff}') {
        return (SyntaxKind::Whitespace, 3);
    }
    match b {
        b if b >= 0x80 => (SyntaxKind::Other, run(|b| b >= 0x80)),
        _ => (SyntaxKind::Other, at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::SyntaxKind::*;
    use super::*;

    fn kinds(text: &str) -> Vec<(SyntaxKind, &str)> {
        let (mut at, mut all) = (0, Vec::new());
        while at < text.len() {
            let (kind, end) = token(text, at);
            if kind != Whitespace {
                all.push((kind, text.get(at..end).unwrap_or("?")));
            }
            at = end;
        }
        all
    }

    #[test]
    fn names_with_hyphens() {
        assert_eq!(kinds("receive-window-left"), [(Ident, "receive-window-left")]);
        assert_eq!(kinds("seg->left"), [(Ident, "seg"), (Arrow, "->"), (Ident, "left")]);
        assert_eq!(kinds("fin-wait-1 - 1"), [(Ident, "fin-wait-1"), (Minus, "-"), (Number, "1")]);
        assert_eq!(kinds("n--"), [(Ident, "n"), (MinusMinus, "--")]);
        assert_eq!(kinds("a-_b a - b"), [(Ident, "a-_b"), (Ident, "a"), (Minus, "-"), (Ident, "b")]);
    }

    #[test]
    fn operators() {
        assert_eq!(kinds("a max= b"), [(Ident, "a"), (MaxEq, "max="), (Ident, "b")]);
        assert_eq!(kinds("max==b"), [(Ident, "max"), (EqEq, "=="), (Ident, "b")]);
        assert_eq!(
            kinds("x==>y::=:>:="),
            [
                (Ident, "x"),
                (ThenArrow, "==>"),
                (Ident, "y"),
                (Define, "::="),
                (TypeMark, ":>"),
                (ColonEq, ":=")
            ]
        );
        assert_eq!(
            kinds("a<<=b??c"),
            [(Ident, "a"), (ShlEq, "<<="), (Ident, "b"), (Default, "??"), (Ident, "c")]
        );
    }

    #[test]
    fn texts_and_comments() {
        assert_eq!(
            kinds("\"a\\\"b\" // c\n/**/d"),
            [(Text, "\"a\\\"b\""), (Comment, "// c"), (Comment, "/**/"), (Ident, "d")]
        );
        assert_eq!(kinds("\"a\nb"), [(Text, "\"a"), (Ident, "b")]);
        for (text, open) in
            [("\"\"", false), ("\"a", true), ("\"", true), ("\"\\\"", true), ("\"\\\\\"", false)]
        {
            assert_eq!(is_open_text(text), open, "{text}");
        }
        assert_eq!(kinds("é\u{1}$"), [(Other, "é"), (Other, "\u{1}"), (Other, "$")]);
    }
}
