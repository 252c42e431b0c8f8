// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layout of compounds and groups. One that has a line break in the source is written over several lines.

use super::{Block, Layout, children, tokens};
use crate::format::INDENT;
use crate::format::printer::{Joint, is_line_break};
use crate::syntax::{SyntaxElement, SyntaxKind, SyntaxNode};
use rowan::NodeOrToken::{Node, Token};

/// The lines that a compound or group takes.
#[derive(Clone, Copy)]
struct Lines {
    /// Whether it has lines of its own.
    broken: bool,
    /// The indentation of the line on which it begins.
    indent: usize,
    /// What stands inside its brackets if it has no lines of its own.
    tight: Joint,
}

impl Lines {
    /// The statements of the compound or group.
    fn block(self) -> Block {
        let indent = self.indent + INDENT;
        match self.broken {
            true => Block { first: Joint::First(indent), next: Joint::Next(indent), broken: true },
            false => Block { first: self.tight, next: Joint::Blank, broken: false },
        }
    }
    /// What stands before the end of the statements.
    fn close(self) -> Joint {
        if self.broken { Joint::Close(self.indent + INDENT, self.indent) } else { self.tight }
    }
}

/// Whether a compound or group has a line break outside of configuration strings and comments.
fn is_broken(node: &SyntaxNode) -> bool {
    tokens(node).any(|t| is_line_break(&t) || t.text().starts_with("//") || t.kind() == SyntaxKind::Directive)
}

/// Whether nothing but blanks and semicolons stands between the brackets of a compound or group.
fn is_empty(node: &SyntaxNode) -> bool {
    let blank = |kind| matches!(kind, SyntaxKind::Whitespace | SyntaxKind::Semicolon);
    tokens(node).filter(|t| !blank(t.kind())).count() <= 2
}

impl Layout<'_> {
    /// Returns the layout inside a compound or group, whose opening bracket has been written.
    fn lines(&self, node: &SyntaxNode, tight: Joint) -> Lines {
        let empty = is_empty(node);
        let tight = if empty { Joint::None } else { tight };
        Lines { broken: !empty && is_broken(node), indent: self.printer.indent, tight }
    }

    pub(super) fn compound(&mut self, node: &SyntaxNode) {
        let hang = self.printer.hang;
        // Before the opening bracket is written, the indentation of its line is unknown.
        let mut lines = Lines { broken: false, indent: 0, tight: Joint::Blank };
        let mut joint = Joint::Blank;
        for part in node.children_with_tokens() {
            match part {
                Token(t) if t.kind().is_trivia() => self.printer.trivia(t),
                Token(t) => match t.kind() {
                    SyntaxKind::LBrace => {
                        self.token(&t, Joint::Blank);
                        lines = self.lines(node, Joint::Blank);
                        joint = lines.block().first;
                    }
                    SyntaxKind::Ellipsis => self.token(&t, joint),
                    _ => {
                        self.token(&t, lines.close());
                        joint = Joint::Blank;
                    }
                },
                Node(alternative) => self.alternative(&children(&alternative), lines),
            }
        }
        self.printer.hang = hang;
    }

    /// Writes the parameters and the statements of an alternative.
    fn alternative(&mut self, parts: &[SyntaxElement], lines: Lines) {
        let bar = |p: &SyntaxElement| matches!(p.kind(), SyntaxKind::Params | SyntaxKind::Bar);
        let statements = parts.iter().position(bar).map_or(0, |i| i + 1);
        let (head, body) = parts.split_at_checked(statements).unwrap_or((&[], parts));
        for part in head {
            match part {
                Token(t) if t.kind().is_trivia() => self.printer.trivia(t.clone()),
                Token(bar) => self.token(bar, Joint::Blank),
                Node(params) => self.params(params),
            }
        }
        self.statements(body, lines.block());
    }

    fn params(&mut self, node: &SyntaxNode) {
        for token in tokens(node) {
            match token.kind() {
                kind if kind.is_trivia() => self.printer.trivia(token),
                SyntaxKind::Comma => self.printer.attach(","),
                _ => self.token(&token, Joint::Blank),
            }
        }
    }

    pub(super) fn group(&mut self, node: &SyntaxNode) {
        let hang = self.printer.hang;
        let all = children(node);
        let inner = all.get(1..all.len().saturating_sub(1)).unwrap_or(&[]);
        if let Some(Token(open)) = all.first() {
            self.token(open, Joint::Blank);
        }
        let lines = self.lines(node, Joint::None);
        self.statements(inner, lines.block());
        if let Some(Token(close)) = all.last() {
            self.token(close, lines.close());
        }
        self.printer.hang = hang;
    }
}
