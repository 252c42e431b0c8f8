// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lexer. It returns the kind and the end of the token that starts at a given byte of the text.

use super::kind::SyntaxKind;
use crate::text::{Unit, at_comment, byte, comment_end, is_space, unit};
use std::ops::Range;

/// For each byte, whether it may occur in a name.
static IDENT: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 128 {
        table[b] = (b as u8).is_ascii_alphanumeric() || b == b'_' as usize || b == b'@' as usize;
        b += 1;
    }
    table
};

fn is_ident(b: u8) -> bool {
    IDENT[b as usize]
}

/// The first byte from `at` on that cannot occur in a name.
fn ident_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or(&[]);
    rest.iter().position(|&b| !is_ident(b)).map_or(bytes.len(), |n| at + n)
}

/// Whether `b` may occur in a variable's name.
pub(crate) fn is_variable(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// Whether a line starts at byte `at`.
pub(crate) fn at_line_start(bytes: &[u8], at: usize) -> bool {
    at == 0 || matches!(byte(bytes, at - 1), b'\n' | b'\r')
}

/// The end of the line that contains `at`, without the line break.
pub(crate) fn line_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or(&[]);
    rest.iter().position(|&b| b == b'\n' || b == b'\r').map_or(bytes.len(), |n| at + n)
}

/// The start of the next line, given the `end` of a line.
pub(super) fn next_line(bytes: &[u8], end: usize) -> usize {
    match (byte(bytes, end), byte(bytes, end + 1)) {
        (b'\r', b'\n') => end + 2,
        (b'\r' | b'\n', _) => end + 1,
        _ => end,
    }
}

/// The token at byte `at` and its end; [`SyntaxKind::End`] past the text.
pub(super) fn token(text: &str, at: usize) -> (SyntaxKind, usize) {
    use SyntaxKind::*;
    let bytes = text.as_bytes();
    let Some(&b) = bytes.get(at) else { return (End, at) };
    let run = |f: fn(u8) -> bool| bytes.iter().skip(at).position(|&b| !f(b)).map_or(bytes.len(), |n| at + n);
    let next = byte(bytes, at + 1);
    match b {
        b if is_space(b) => (Whitespace, run(is_space)),
        b'#' if at_line_start(bytes, at) => (Directive, line_end(bytes, at)),
        b'/' if at_comment(bytes, at) => (Comment, comment_end(bytes, at)),
        b if is_ident(b) => {
            let mut end = ident_end(bytes, at + 1);
            // `/` belongs to a name only between two name characters.
            while byte(bytes, end) == b'/' && is_ident(byte(bytes, end + 1)) {
                end = ident_end(bytes, end + 2);
            }
            (Ident, end)
        }
        b'$' if is_variable(next) => (
            Variable,
            bytes.iter().skip(at + 1).position(|&b| !is_variable(b)).map_or(bytes.len(), |n| at + 1 + n),
        ),
        b'-' if next == b'>' => (Arrow, at + 2),
        b'=' if next == b'>' => (FatArrow, at + 2),
        b':' if next == b':' => (ColonColon, at + 2),
        b'|' if next == b'|' => (BarBar, at + 2),
        b'.' if next == b'.' && byte(bytes, at + 2) == b'.' => (Ellipsis, at + 3),
        b';' => (Semicolon, at + 1),
        b',' => (Comma, at + 1),
        b'(' => (LParen, at + 1),
        b')' => (RParen, at + 1),
        b'[' => (LBracket, at + 1),
        b']' => (RBracket, at + 1),
        b'{' => (LBrace, at + 1),
        b'}' => (RBrace, at + 1),
        b'|' => (Bar, at + 1),
        b'-' => (Dash, at + 1),
        // Some editors write a byte order mark first. It is skipped.
        0xef if at == 0 && text.starts_with('\u{feff}') => (Whitespace, 3),
        b if b < 0x20 => (Other, run(|b| b < 0x20 && !is_space(b))),
        b if b >= 0x80 => (Other, run(|b| b >= 0x80)),
        _ => (Other, at + 1),
    }
}

/// Where a configuration string ends. The search for the end starts at the byte after the `(`.
pub(super) struct ConfigEnd {
    /// The end of the string, before the `)`.
    pub end: usize,
    /// Whether the `)` was found. If not, `end` is the end of the text.
    pub closed: bool,
    /// The line directives in the string.
    pub directives: Vec<Range<usize>>,
}

/// Finds the end of a configuration string.
pub(super) fn config_end(text: &str, from: usize) -> ConfigEnd {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut directives) = (from, 0usize, Vec::new());
    while at < bytes.len() {
        let (what, end) = unit(bytes, at);
        match what {
            Unit::Byte(b'(') => depth += 1,
            Unit::Byte(b')') if depth == 0 => return ConfigEnd { end: at, closed: true, directives },
            Unit::Byte(b')') => depth -= 1,
            Unit::Byte(b'#') if at_line_start(bytes, at) => directives.push(at..line_end(bytes, at)),
            _ => {}
        }
        at = end;
    }
    ConfigEnd { end: bytes.len(), closed: false, directives }
}

/// A line directive. It sets the line number and file name of the next line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineDirective {
    pub line: u32,
    /// `None` keeps the current name. An empty name restores the file's own name.
    pub file: Option<String>,
}

/// Reads `# N "file"` or `#line N "file"`.
pub(super) fn line_directive(text: &str) -> Option<LineDirective> {
    let rest = text.strip_prefix('#')?.trim();
    let rest = match rest.strip_prefix("line") {
        Some(r) if r.starts_with([' ', '\t']) => r.trim_start(),
        Some(_) => return None,
        None => rest,
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let line = rest.get(..digits)?.parse().ok()?;
    let rest = rest.get(digits..)?;
    if rest.is_empty() {
        return Some(LineDirective { line, file: None });
    }
    let name = rest.strip_prefix([' ', '\t'])?.trim_start().strip_prefix('"')?;
    // Compilers write flags after the name. They are ignored.
    let name = name.get(..name.find('"')?)?;
    Some(LineDirective { line, file: Some(name.to_string()) })
}

#[cfg(test)]
mod tests {
    use super::SyntaxKind::*;
    use super::*;

    fn kinds(text: &str) -> Vec<(SyntaxKind, &str)> {
        let (mut at, mut all) = (0, Vec::new());
        while at < text.len() {
            let (kind, end) = token(text, at);
            all.push((kind, text.get(at..end).unwrap_or("?")));
            at = end;
        }
        all
    }

    #[test]
    fn tokens() {
        assert_eq!(kinds("a/b@1"), [(Ident, "a/b@1")]);
        assert_eq!(kinds("a/"), [(Ident, "a"), (Other, "/")]);
        assert_eq!(kinds("/a"), [(Other, "/"), (Ident, "a")]);
        assert_eq!(kinds("a//b"), [(Ident, "a"), (Comment, "//b")]);
        assert_eq!(kinds("a/**/b"), [(Ident, "a"), (Comment, "/**/"), (Ident, "b")]);
        assert_eq!(kinds("/*/**/"), [(Comment, "/*/**/")]);
        assert_eq!(kinds("$a_1$ $"), [(Variable, "$a_1"), (Other, "$"), (Whitespace, " "), (Other, "$")]);
        assert_eq!(
            kinds("->=>::||...."),
            [
                (Arrow, "->"),
                (FatArrow, "=>"),
                (ColonColon, "::"),
                (BarBar, "||"),
                (Ellipsis, "..."),
                (Other, ".")
            ]
        );
        assert_eq!(kinds("#1\r\n#"), [(Directive, "#1"), (Whitespace, "\r\n"), (Directive, "#")]);
        assert_eq!(kinds(" #"), [(Whitespace, " "), (Other, "#")]);
        assert_eq!(kinds("\u{feff}é"), [(Whitespace, "\u{feff}"), (Other, "é")]);
    }

    #[test]
    fn config_ends() {
        let end = |t: &str| {
            let c = config_end(t, 0);
            (c.end, c.closed)
        };
        assert_eq!(end("a)b"), (1, true));
        assert_eq!(end("(a))"), (3, true));
        assert_eq!(end("')')"), (3, true));
        assert_eq!(end("'\\')"), (3, true));
        assert_eq!(end("\"\\\")\")"), (5, true));
        assert_eq!(end("//)\n)"), (4, true));
        assert_eq!(end("/*)*/)"), (5, true));
        assert_eq!(end("\\<29)>)"), (6, true));
        assert_eq!(end("\\))"), (1, true));
        assert_eq!(end("(a)"), (3, false));
        assert_eq!(end("'a)"), (3, false));
    }

    #[test]
    fn directives() {
        let d = |line, file: Option<&str>| Some(LineDirective { line, file: file.map(str::to_string) });
        assert_eq!(line_directive("# 5"), d(5, None));
        assert_eq!(line_directive("#5 \"f\""), d(5, Some("f")));
        assert_eq!(line_directive("#line 7 \"\""), d(7, Some("")));
        assert_eq!(line_directive("# line\t7"), d(7, None));
        assert_eq!(line_directive("# 7 \"a b\" 1 2"), d(7, Some("a b")));
        for bad in ["#", "#include", "# x", "#line", "#line7", "# 5\"f\"", "# 5 \"f", "# 99999999999", "# -1"]
        {
            assert_eq!(line_directive(bad), None, "{bad}");
        }
    }
}
