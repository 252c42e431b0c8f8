// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the tokens of a formatted text, and the comments between them.

use crate::syntax::{SyntaxKind, SyntaxToken};

/// The distance of tab stops, by which the columns of the source are counted.
const TAB: usize = 8;
/// The minimum number of blanks before a comment that the author set apart from the text before it.
const APART: usize = 2;

/// What stands between two tokens, apart from comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// Nothing.
    None,
    /// A blank.
    Blank,
    /// A line break if the source has one, else a blank. The new line continues the statement.
    Continue,
    /// Before a statement that is not the first one of its block: a line break and at most one blank line if the source
    /// has them, else a blank. The number is the indentation of the block.
    Next(usize),
    /// Before the first statement of a block: a line break. The number is the indentation of the block.
    First(usize),
    /// Before the end of a block: a line break. The numbers are the indentation of comments before the end, and that
    /// of the token that ends the block.
    Close(usize, usize),
}

/// A formatted text under construction.
pub(super) struct Printer<'t> {
    source: &'t str,
    out: String,
    /// The line break of the text: CR LF if all lines of the source end so, else LF.
    line_break: &'static str,
    /// The column after the last character of `out`, from 0.
    column: usize,
    /// The indentation of the last line that was begun.
    pub(super) indent: usize,
    /// The indentation of lines that continue the current statement.
    pub(super) hang: usize,
    /// The blanks, comments and line directives since the last token. They are written before the next token.
    gap: Vec<SyntaxToken>,
}

/// Returns the number of line breaks in blanks.
fn line_breaks(blanks: &str) -> usize {
    let bytes = blanks.as_bytes();
    let ends = |i: usize| match bytes.get(i) {
        Some(b'\r') => bytes.get(i + 1) != Some(&b'\n'),
        other => other == Some(&b'\n'),
    };
    (0..bytes.len()).filter(|&i| ends(i)).count()
}

/// Whether a token is a line break, perhaps with blanks around it.
pub(super) fn is_line_break(token: &SyntaxToken) -> bool {
    token.kind() == SyntaxKind::Whitespace && line_breaks(token.text()) > 0
}

/// Returns the column after `text`, which begins in the given column.
fn advance(column: usize, text: &str) -> usize {
    text.chars().fold(column, |column, c| match c {
        '\n' | '\r' => 0,
        '\t' => (column / TAB + 1) * TAB,
        _ => column + 1,
    })
}

impl<'t> Printer<'t> {
    pub(super) fn new(source: &'t str) -> Printer<'t> {
        let count = |line_break| source.matches(line_break).count();
        let windows = source.contains('\n') && count("\n") == count("\r\n");
        let line_break = if windows { "\r\n" } else { "\n" };
        let out = String::with_capacity(source.len() + source.len() / 8);
        Printer { source, out, line_break, column: 0, indent: 0, hang: 0, gap: Vec::new() }
    }

    /// Adds a blank, a comment or a line directive to the gap before the next token.
    pub(super) fn trivia(&mut self, token: SyntaxToken) {
        self.gap.push(token);
    }

    /// Writes a token directly after the previous one, before the comments of the gap.
    pub(super) fn attach(&mut self, text: &str) {
        self.column = advance(self.column, text);
        self.out.push_str(text);
    }

    /// Writes the comments of the gap, what the joint says, and a token.
    pub(super) fn token(&mut self, text: &str, joint: Joint) {
        self.join(joint, true);
        self.attach(text);
    }

    /// Writes the last comments and returns the text.
    pub(super) fn finish(mut self) -> String {
        self.join(Joint::Close(0, 0), false);
        if !self.out.is_empty() {
            self.out.push_str(self.line_break);
        }
        self.out
    }

    /// Writes the gap. `more` says that a token follows.
    fn join(&mut self, joint: Joint, more: bool) {
        let gap = std::mem::take(&mut self.gap);
        let (inner, last) = match joint {
            Joint::None | Joint::Blank | Joint::Continue => (self.hang, self.hang),
            Joint::Next(block) | Joint::First(block) => (block, block),
            Joint::Close(block, end) => (block, end),
        };
        // The line breaks of the source since the last token or comment. A comment at the start of the text is on its own line.
        let mut breaks = usize::from(self.out.is_empty());
        // Whether a comment was written, whether the last one is on its own line, and whether its line must end after it.
        let (mut any, mut own, mut ends) = (false, false, false);
        for (i, trivia) in gap.iter().enumerate() {
            let text = trivia.text();
            if trivia.kind() == SyntaxKind::Whitespace {
                breaks += line_breaks(text);
                continue;
            }
            let blank_line = breaks > 1
                && match joint {
                    Joint::Next(_) | Joint::Close(..) => true,
                    Joint::First(_) => any,
                    Joint::None | Joint::Blank | Joint::Continue => false,
                };
            let directive = trivia.kind() == SyntaxKind::Directive;
            own = directive || ends || breaks > 0;
            if own {
                self.new_line(blank_line, if directive { 0 } else { inner });
            } else {
                let line_ends = match (gap.get(i + 1), joint) {
                    _ if text.starts_with("//") => true,
                    (_, Joint::None | Joint::Blank) => false,
                    (Some(next), _) => is_line_break(next),
                    (None, _) => !more,
                };
                let blanks = i.checked_sub(1).and_then(|i| gap.get(i));
                self.before_comment(trivia, blanks.filter(|_| line_ends));
            }
            self.attach(text.trim_end_matches([' ', '\t', '\x0b', '\x0c']));
            (any, ends, breaks) = (true, directive || text.starts_with("//"), 0);
        }
        let new_line = ends
            || match joint {
                Joint::None | Joint::Blank => false,
                Joint::Continue | Joint::Next(_) => breaks > 0,
                Joint::First(_) => !own || breaks > 0,
                Joint::Close(..) => true,
            };
        let blank_line = breaks > 1
            && match joint {
                Joint::Next(_) => true,
                Joint::First(_) => any,
                _ => false,
            };
        if !more || self.out.is_empty() {
        } else if new_line {
            self.new_line(blank_line, last);
        } else if any || joint != Joint::None {
            self.attach(" ");
        }
    }

    /// Begins a line.
    fn new_line(&mut self, blank_line: bool, indent: usize) {
        if !self.out.is_empty() {
            self.out.push_str(self.line_break);
            if blank_line {
                self.out.push_str(self.line_break);
            }
        }
        (self.indent, self.column) = (indent, 0);
        self.pad(indent);
    }

    /// Writes blanks up to a column.
    fn pad(&mut self, column: usize) {
        self.out.extend(std::iter::repeat_n(' ', column.saturating_sub(self.column)));
        self.column = self.column.max(column);
    }

    /// Writes the blanks before a comment that does not begin its line. If the comment ends its line, `blanks` are the
    /// blanks before it in the source. Such a comment stays in its column if the author set it apart, so that comments
    /// below each other stay aligned.
    fn before_comment(&mut self, comment: &SyntaxToken, blanks: Option<&SyntaxToken>) {
        let blanks = blanks.filter(|t| t.kind() == SyntaxKind::Whitespace).map_or("", |t| t.text());
        if blanks.len() < APART && blanks != "\t" {
            return self.attach(" ");
        }
        let before = self.source.get(..usize::from(comment.text_range().start())).unwrap_or("");
        let line = before.rfind(['\n', '\r']).map_or(0, |i| i + 1);
        let column = advance(0, before.get(line..).unwrap_or(""));
        self.pad(column.max(self.column + APART));
    }
}
