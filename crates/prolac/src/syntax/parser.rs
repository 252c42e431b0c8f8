// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parser's foundation: tokens, events of the lossless tree, errors.

use super::ast::{Item, Name, Path};
use super::kind::SyntaxKind::{self, Comment, Dot, End, Ident, Other, RBrace, Text};
use super::lexer::{is_open_text, token};
use super::{MAX_NESTING, is_reserved};
use crate::counted;
use castanet_diagnostic::{Diagnostic, FileId, Span};
use std::ops::Range;

/// Limit on reported syntax errors of a file. Further ones are only counted.
const MAX_ERRORS: usize = 100;

#[derive(Clone, Debug)]
enum Event {
    /// The start of nodes, innermost first. [`Parser::wrap`] appends outer ones.
    Start(Vec<SyntaxKind>),
    Token(SyntaxKind, usize),
    Finish,
}

/// The result of parsing a text.
pub(crate) struct Parsed {
    pub items: Vec<Item>,
    pub diagnostics: Vec<Diagnostic>,
    events: Vec<Event>,
}

impl Parsed {
    /// The lossless tree over `text`, which must be the parsed text.
    pub fn green(&self, text: &str) -> rowan::GreenNode {
        let mut builder = rowan::GreenNodeBuilder::new();
        let mut at = 0usize;
        builder.start_node(SyntaxKind::Root.into());
        for event in &self.events {
            match event {
                Event::Start(kinds) => kinds.iter().rev().for_each(|k| builder.start_node((*k).into())),
                Event::Finish => builder.finish_node(),
                Event::Token(kind, end) => {
                    builder.token((*kind).into(), text.get(at..*end).unwrap_or(""));
                    at = *end;
                }
            }
        }
        builder.finish_node();
        builder.finish()
    }
}

/// Where a node may start, for [`Parser::wrap`].
#[derive(Clone, Copy)]
pub(super) struct Mark {
    event: usize,
    /// The first byte of the node.
    pub(super) start: usize,
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    file: FileId,
    /// The current token: kind and range.
    pub(super) kind: SyntaxKind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The end of the last consumed token.
    pub(super) last_end: usize,
    blanks: Vec<Event>,
    events: Vec<Event>,
    diagnostics: Vec<Diagnostic>,
    pub(super) errors: usize,
    /// Whether the rest of the declaration is skipped after an error, and gives no other.
    pub(super) quiet: bool,
    /// Open braces and expressions.
    pub(super) depth: u16,
}

/// Parses a text.
pub(crate) fn parse(file: FileId, text: &str) -> Parsed {
    let too_long = u32::try_from(text.len()).is_err();
    let mut p = Parser {
        text: if too_long { "" } else { text },
        file,
        kind: End,
        start: 0,
        end: 0,
        last_end: 0,
        blanks: Vec::new(),
        events: Vec::new(),
        diagnostics: Vec::new(),
        errors: 0,
        quiet: false,
        depth: 0,
    };
    if too_long {
        p.error(Diagnostic::error("the program is longer than 4 GB", None));
    }
    p.fetch(0);
    let items = p.items();
    p.events.append(&mut p.blanks);
    if p.errors > MAX_ERRORS {
        let more = p.errors - MAX_ERRORS;
        let message = format!("{} not shown", counted(more, "more syntax error"));
        p.diagnostics.push(Diagnostic::error(message, None));
    }
    Parsed { items, diagnostics: p.diagnostics, events: p.events }
}

impl<'t> Parser<'t> {
    pub(super) fn error(&mut self, diagnostic: Diagnostic) {
        if self.quiet {
            return;
        }
        // A second error at the same token, or at the next one, is a consequence of the first.
        if let (Some(last), Some(here)) = (self.diagnostics.last().and_then(|d| d.span), diagnostic.span) {
            let between = self.text.get(last.end as usize..here.start as usize);
            if last == here || between.is_some_and(|text| text.chars().all(|c| matches!(c, ' ' | '\t'))) {
                return;
            }
        }
        self.errors += 1;
        if self.errors <= MAX_ERRORS {
            self.diagnostics.push(diagnostic);
        }
    }
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.file, range)
    }
    /// The span from `start` to the end of the last consumed token.
    pub(super) fn since(&self, start: usize) -> Span {
        self.span(start..self.last_end.max(start))
    }
    pub(super) fn here(&self) -> Span {
        self.span(self.start..self.end)
    }
    pub(super) fn token_text(&self) -> &'t str {
        self.text.get(self.start..self.end).unwrap_or("")
    }
    /// Reports that the current token does not continue the text.
    pub(super) fn unexpected(&mut self, expected: &str) {
        let text = self.token_text();
        let short: String = if self.kind == Other { text.chars().take(20).collect() } else { text.into() };
        let (message, at) = match self.kind {
            End => ("unexpected end of the text".to_string(), format!("{expected} expected")),
            _ => (format!("unexpected '{short}'"), format!("{expected} expected")),
        };
        let mut d = Diagnostic::error(message, self.here()).at(at);
        match self.kind {
            SyntaxKind::ColonEq if !expected.contains("':>'") => {
                d.replacement = Some((self.here(), "=".into()));
                d = d.help("write '=' before a value");
            }
            SyntaxKind::ColonEq => {
                d.replacement = Some((self.here(), ":>".into()));
                d = d.help("write ':>' before a type, and '::=' before the body of a method");
            }
            RBrace => d = d.help("remove this '}', or write the '{' that it closes"),
            Ident if is_reserved(&short) => d = d.help(format!("'{short}' is a reserved word")),
            _ => {}
        }
        self.error(d);
    }

    /// Skips trivia from byte `at` on, then reads the current token.
    fn fetch(&mut self, mut at: usize) {
        loop {
            let (kind, end) = token(self.text, at);
            (self.kind, self.start, self.end) = (kind, at, end);
            let text = self.text.get(at..end).unwrap_or("");
            if kind == Text && is_open_text(text) {
                let d = Diagnostic::error("string without an end", self.span(at..end));
                self.error(d.at("a string ends in its line").help("close it with '\"'"));
            }
            if !kind.is_trivia() {
                return;
            }
            if kind == Comment && text.starts_with("/*") && (text.len() < 4 || !text.ends_with("*/")) {
                let d = Diagnostic::error("comment without an end", self.span(at..at + 2));
                self.error(d.at("the comment that starts here has no end").help("close it with '*/'"));
            }
            self.blanks.push(Event::Token(kind, end));
            at = end;
        }
    }
    /// The kind of the token after the current one.
    pub(super) fn peek(&self) -> SyntaxKind {
        let mut at = self.end;
        loop {
            let (kind, end) = token(self.text, at);
            if !kind.is_trivia() {
                return kind;
            }
            at = end;
        }
    }
    /// Marks where a node may start.
    pub(super) fn mark(&mut self) -> Mark {
        self.events.append(&mut self.blanks);
        self.events.push(Event::Start(Vec::new()));
        Mark { event: self.events.len() - 1, start: self.start }
    }
    /// Makes a node of everything since the mark.
    pub(super) fn wrap(&mut self, mark: Mark, kind: SyntaxKind) {
        if let Some(Event::Start(kinds)) = self.events.get_mut(mark.event) {
            kinds.push(kind);
            self.events.push(Event::Finish);
        }
    }
    /// Consumes the current token and returns its position.
    pub(super) fn bump(&mut self) -> Span {
        let span = self.here();
        if self.kind != End {
            self.events.append(&mut self.blanks);
            self.events.push(Event::Token(self.kind, self.end));
            self.last_end = self.end;
            self.fetch(self.end);
        }
        span
    }
    pub(super) fn at(&self, kind: SyntaxKind) -> bool {
        self.kind == kind
    }
    pub(super) fn eat(&mut self, kind: SyntaxKind) -> bool {
        let yes = self.kind == kind;
        if yes {
            self.bump();
        }
        yes
    }
    /// Consumes a token of this kind, or reports that it is missing.
    pub(super) fn expect(&mut self, kind: SyntaxKind, name: &str) -> bool {
        let yes = self.eat(kind);
        if !yes {
            self.unexpected(name);
        }
        yes
    }
    /// Whether the current token is this word.
    pub(super) fn at_word(&self, word: &str) -> bool {
        self.kind == Ident && self.token_text() == word
    }
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let yes = self.at_word(word);
        if yes {
            self.bump();
        }
        yes
    }
    pub(super) fn at_name(&self) -> bool {
        self.kind == Ident && !is_reserved(self.token_text())
    }
    pub(super) fn name(&mut self, expected: &str) -> Option<Name> {
        if !self.at_name() {
            self.unexpected(expected);
            return None;
        }
        let text = self.token_text().to_string();
        Some(Name { text, span: self.bump() })
    }
    /// Parses `[.] NAME {. NAME}`.
    pub(super) fn path(&mut self, expected: &str) -> Option<Path> {
        let mark = self.mark();
        let global = self.eat(Dot);
        let parts = self.path_parts(expected);
        self.wrap(mark, SyntaxKind::Path);
        (!parts.is_empty()).then(|| Path { global, parts, span: self.since(mark.start) })
    }
    fn path_parts(&mut self, expected: &str) -> Vec<Name> {
        let mut parts = Vec::new();
        loop {
            // `constructor` may stand at the end of a path.
            let name = match self.at_word("constructor") && !parts.is_empty() {
                true => Some(Name { text: "constructor".into(), span: self.bump() }),
                false => self.name(expected),
            };
            let Some(name) = name else { return parts };
            parts.push(name);
            if !self.eat(Dot) {
                return parts;
            }
        }
    }
    /// Enters a nested construct. Returns false, after an error, at the maximum depth.
    pub(super) fn enter(&mut self) -> bool {
        if self.depth >= MAX_NESTING {
            let d = Diagnostic::error(format!("more than {MAX_NESTING} levels of nesting"), self.here());
            self.error(d.at("nested too deeply").help("name a part of it by a method of its own"));
            self.quiet = true;
            return false;
        }
        self.depth += 1;
        true
    }
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
    /// Skips to the `;` that ends the current declaration, which it consumes, or before the `}` that closes the block.
    /// Skips balanced braces.
    pub(super) fn recover(&mut self) {
        let mark = self.mark();
        let mut depth = 0usize;
        loop {
            match self.kind {
                End => break,
                RBrace if depth == 0 => break,
                RBrace => depth -= 1,
                SyntaxKind::LBrace => depth += 1,
                SyntaxKind::Semicolon if depth == 0 => {
                    self.bump();
                    break;
                }
                _ => {}
            }
            let closes = self.kind == RBrace && depth == 0;
            self.bump();
            if closes {
                self.eat(SyntaxKind::Semicolon);
                break;
            }
        }
        self.wrap(mark, SyntaxKind::Error);
    }
}
