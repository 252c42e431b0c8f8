// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats a program. Line breaks stay where the author set them, except that each declaration starts a line; blanks and
//! indentation follow from the syntax tree. Formatting twice gives the same text.

use crate::syntax::{SyntaxKind as K, SyntaxNode, SyntaxToken, stay_apart, tree};
use castanet_diagnostic::{Diagnostic, FileId, Sources};

/// The blanks of one level of indentation.
const INDENT: usize = 4;

/// The formatted text of a file, or its syntax errors.
pub fn format(sources: &Sources, file: FileId) -> Result<String, Vec<Diagnostic>> {
    let (root, diagnostics) = tree(sources, file);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let mut f = Formatter {
        out: String::new(),
        line: 0,
        opened: Vec::new(),
        previous: None,
        lines: 0,
        comment: false,
    };
    let tokens = root.descendants_with_tokens().filter_map(|e| e.into_token());
    for token in tokens {
        f.token(&token);
    }
    let mut out = f.out.trim_end().to_string();
    if !out.is_empty() {
        out.push('\n');
    }
    Ok(out)
}

struct Formatter {
    out: String,
    /// The line breaks in `out`.
    line: usize,
    /// The open brackets: for each line that opened some, how many. A line indents once.
    opened: Vec<(usize, usize)>,
    /// The last token that is no blank.
    previous: Option<SyntaxToken>,
    /// The line breaks since then.
    lines: usize,
    /// Whether the last token is a comment that ends with its line.
    comment: bool,
}

fn parent(token: &SyntaxToken) -> K {
    token.parent().map_or(K::Root, |n| n.kind())
}

/// Whether a node is a declaration, which starts a line.
fn is_declaration(kind: K) -> bool {
    matches!(
        kind,
        K::Module
            | K::Namespace
            | K::Method
            | K::Field
            | K::Exceptions
            | K::Include
            | K::Hookup
            | K::Export
            | K::Host
    )
}

/// Whether a token is the first one of a declaration.
fn starts_declaration(token: &SyntaxToken) -> bool {
    let first = |n: &SyntaxNode| {
        let tokens = n.descendants_with_tokens().filter_map(|e| e.into_token());
        tokens.into_iter().find(|t| !t.kind().is_trivia())
    };
    let ancestors = token.parent_ancestors().take(3);
    ancestors.into_iter().any(|n| is_declaration(n.kind()) && first(&n).as_ref() == Some(token))
}

/// Whether a brace belongs to a module or namespace, not to an action.
fn is_block_brace(token: &SyntaxToken) -> bool {
    matches!(token.kind(), K::LBrace | K::RBrace) && parent(token) == K::Body
}

impl Formatter {
    fn token(&mut self, token: &SyntaxToken) {
        let kind = token.kind();
        if kind == K::Whitespace {
            self.lines += token.text().bytes().filter(|b| *b == b'\n').count();
            return;
        }
        let first = self.out.is_empty();
        let declaration = kind != K::Comment && starts_declaration(token);
        let closes = is_block_brace(token) && kind == K::RBrace;
        let empty = closes && self.previous.as_ref().is_some_and(|p| p.kind() == K::LBrace);
        let after_open = self.previous.as_ref().is_some_and(|p| is_block_brace(p) && p.kind() == K::LBrace);
        let new_line = self.comment
            || self.lines > 0
            || (declaration && !self.follows_comment())
            || (closes && !empty)
            || (after_open && kind != K::Comment && !closes);
        if first {
            // Nothing stands before the first token.
        } else if new_line && (self.comment || !empty) {
            // At most one blank line, and none at the start or end of a block.
            if self.lines > 1 && !closes && !after_open {
                self.push("\n");
            }
            self.push("\n");
            let depth = self.depth(token);
            self.push(&" ".repeat(depth * INDENT));
        } else if self.blank(token)
            || !self.previous.as_ref().is_none_or(|p| stay_apart(p.text(), token.text()))
        {
            self.push(" ");
        }
        self.push(token.text().trim_end());
        self.brackets(token);
        self.comment = kind == K::Comment && token.text().starts_with("//");
        self.lines = 0;
        self.previous = Some(token.clone());
    }

    fn push(&mut self, text: &str) {
        self.line += text.bytes().filter(|b| *b == b'\n').count();
        self.out.push_str(text);
    }

    /// Whether the previous token is a block comment on the line of this one.
    fn follows_comment(&self) -> bool {
        self.previous.as_ref().is_some_and(|p| p.kind() == K::Comment) && self.lines == 0
    }

    /// The indentation of a line that starts with this token.
    fn depth(&self, token: &SyntaxToken) -> usize {
        let mut depth = self.opened.len();
        if matches!(token.kind(), K::RBrace | K::RParen | K::RBracket)
            || is_word(token, &["end", "in", "else", "catch"])
        {
            depth = depth.saturating_sub(1);
        }
        // A line that continues a declaration is indented, unless a bracket indents it already.
        depth + usize::from(self.continues(token))
    }

    /// Whether the line continues a declaration that the enclosing block begins.
    fn continues(&self, token: &SyntaxToken) -> bool {
        if token.kind() == K::Comment {
            let done = self.previous.as_ref().is_none_or(|p| p.kind() == K::Semicolon || is_block_brace(p));
            let after_comment = self.previous.as_ref().is_some_and(|p| p.kind() == K::Comment);
            return !done && !after_comment && self.inside_declaration(token);
        }
        !is_block_brace(token) && !starts_declaration(token) && self.inside_declaration(token)
    }

    fn inside_declaration(&self, token: &SyntaxToken) -> bool {
        let kinds = token.parent_ancestors().map(|n| n.kind());
        let inner = kinds.take_while(|k| *k != K::Body && *k != K::Root).collect::<Vec<_>>();
        inner.iter().any(|k| is_declaration(*k))
    }

    fn brackets(&mut self, token: &SyntaxToken) {
        let line = self.line;
        let opens =
            matches!(token.kind(), K::LBrace | K::LParen | K::LBracket) || is_word(token, &["let", "try"]);
        let closes = matches!(token.kind(), K::RBrace | K::RParen | K::RBracket) || is_word(token, &["end"]);
        if opens {
            match self.opened.last_mut() {
                Some((at, n)) if *at == line => *n += 1,
                _ => self.opened.push((line, 1)),
            }
        }
        if closes && let Some((_, n)) = self.opened.last_mut() {
            *n -= 1;
            if *n == 0 {
                self.opened.pop();
            }
        }
    }

    /// Whether a blank stands between the previous token and this one, on one line.
    fn blank(&self, token: &SyntaxToken) -> bool {
        let Some(previous) = &self.previous else { return false };
        let (before, kind) = (previous.kind(), token.kind());
        let (outer, node) = (parent(previous), parent(token));
        if before == K::Comment || kind == K::Comment {
            return true;
        }
        match (before, kind) {
            (_, K::Semicolon | K::Comma | K::RParen | K::RBracket) => false,
            (K::LParen | K::LBracket, _) => false,
            (_, K::Dot | K::Arrow) if matches!(node, K::Member | K::Path) && node != K::Atom => {
                // A path that begins with a dot stands apart from what precedes it.
                !(node == K::Member || token.prev_sibling_or_token().is_some())
            }
            (K::Dot | K::Arrow, _) => false,
            (_, K::LBracket) => false,
            (before, _) if outer == K::Unary && !matches!(before, K::Ident | K::RParen) => false,
            (_, K::LParen) => !matches!(node, K::Call | K::Params) || is_word(previous, &["new"]),
            (K::Star | K::Question, _) if outer == K::Type => false,
            (_, K::PlusPlus | K::MinusMinus) if node == K::Postfix => false,
            (K::RParen, _) if outer == K::Unary => true,
            (K::LBrace, K::RBrace) => node == K::Action,
            (_, K::Colon) => node == K::Binary,
            _ => true,
        }
    }
}

fn is_word(token: &SyntaxToken, words: &[&str]) -> bool {
    token.kind() == K::Ident && words.contains(&token.text())
}

#[cfg(test)]
mod tests;
