// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parser: statements, and error recovery.

use super::ast::{Args, Class, ElementClass, Statement};
use super::kind::SyntaxKind::{
    self, Arrow, BarBar, Comment, Directive, End, FatArrow, Ident, LBrace, LParen, Other, RBrace, RParen,
    Semicolon,
};
use super::lexer::{line_directive, next_line, token};
use super::parsed::{Event, Keep, Parsed};
use crate::diagnostic::Diagnostic;
use crate::look_alike;
use crate::source::{FileId, Span};
use std::ops::Range;

/// Limit on the number of elements and compound alternatives in a text, counted together. Text beyond the limit is not
/// parsed.
const MAX_WRITTEN: usize = 2_000_000;
/// Limit on reported syntax errors of a file. Further ones are only counted.
const MAX_ERRORS: usize = 200;

/// Whether a block comment is not closed.
fn is_open_comment(text: &str) -> bool {
    text.starts_with("/*") && (text.len() < 4 || !text.ends_with("*/"))
}

/// The construct that encloses a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    Top,
    Compound,
    Group,
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) file: FileId,
    /// The current token: kind and range.
    pub(super) kind: SyntaxKind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The end of the last consumed token.
    pub(super) last_end: usize,
    /// Whether a line break lies between the last consumed token and the current one.
    new_line: bool,
    keep: Keep,
    blanks: Vec<Event>,
    events: Vec<Event>,
    diagnostics: Vec<Diagnostic>,
    errors: usize,
    directives: Vec<(usize, u32, Option<String>)>,
    directive_name: Option<String>,
    /// Open compounds and groups, innermost last.
    pub(super) open: Vec<Context>,
    pub(super) unclosed: usize,
    written: usize,
}

/// Parses a text.
pub(crate) fn parse(file: FileId, text: &str, keep: Keep) -> Parsed {
    let too_long = u32::try_from(text.len()).is_err();
    let mut p = Parser {
        text: if too_long { "" } else { text },
        file,
        kind: End,
        start: 0,
        end: 0,
        last_end: 0,
        new_line: true,
        keep,
        blanks: Vec::new(),
        events: Vec::new(),
        diagnostics: Vec::new(),
        errors: 0,
        directives: Vec::new(),
        directive_name: None,
        open: Vec::new(),
        unclosed: 0,
        written: 0,
    };
    if too_long {
        p.error(Diagnostic::error("configuration is longer than 4 GB", None));
    }
    p.fetch(0);
    let statements = p.statements(Context::Top);
    p.events.append(&mut p.blanks);
    if p.errors > MAX_ERRORS {
        let more = p.errors - MAX_ERRORS;
        p.diagnostics.push(Diagnostic::error(format!("{more} more syntax errors not shown"), None));
    }
    Parsed { statements, diagnostics: p.diagnostics, directives: p.directives, events: p.events }
}

impl<'t> Parser<'t> {
    pub(super) fn error(&mut self, diagnostic: Diagnostic) {
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
    /// Reports `syntax error near 'X'` at the current token.
    pub(super) fn unexpected(&mut self, expected: &str) {
        let text = self.token_text();
        let short: String = if self.kind == Other { text.chars().take(20).collect() } else { text.into() };
        let at =
            if self.kind == End { format!("{expected}, found the end of the text") } else { expected.into() };
        let mut d = Diagnostic::error(format!("syntax error near '{short}'"), self.here()).at(at);
        d.helps.extend(look_alike::help(&short).or_else(|| {
            let arrow = short == "-"
                && self
                    .text
                    .get(self.start..)
                    .is_some_and(|t| t.trim_start_matches(['-', ' ']).starts_with('>'));
            match self.kind {
                RBrace => Some("remove this '}', or write the '{' that it closes".into()),
                _ if arrow => Some("write the arrow without a space: '->'".into()),
                _ => None,
            }
        }));
        self.error(d);
    }

    /// Skips trivia from byte `at` on, then reads the current token.
    fn fetch(&mut self, mut at: usize) {
        self.new_line = at == 0;
        loop {
            let (kind, end) = token(self.text, at);
            (self.kind, self.start, self.end) = (kind, at, end);
            if !kind.is_trivia() {
                return;
            }
            match kind {
                Directive => self.directive(at..end, true),
                Comment if is_open_comment(self.text.get(at..end).unwrap_or("")) => {
                    let d = Diagnostic::error("unclosed comment", self.span(at..at + 2));
                    self.error(d.at("the comment that starts here has no end").help("close it with '*/'"));
                }
                _ => {
                    let text = self.text.as_bytes().get(at..end).unwrap_or(&[]);
                    self.new_line |= text.iter().any(|&b| b == b'\n' || b == b'\r');
                }
            }
            if self.keep == Keep::Everything {
                self.blanks.push(Event::Token(kind, end as u32));
            }
            at = end;
        }
    }
    pub(super) fn directive(&mut self, range: Range<usize>, report: bool) {
        let text = self.text.get(range.clone()).unwrap_or("");
        match line_directive(text) {
            Some(d) => {
                if let Some(file) = d.file {
                    self.directive_name = Some(file).filter(|f| !f.is_empty());
                }
                let from = next_line(self.text.as_bytes(), range.end);
                self.directives.push((from, d.line, self.directive_name.clone()));
            }
            None if report => {
                let d = Diagnostic::error("unknown preprocessor directive", self.span(range));
                self.error(
                    d.at("a line that starts with '#' must be '# LINE \"FILE\"'")
                        .help("comments start with '//'"),
                );
            }
            None => {}
        }
    }
    /// Adds an event after the blanks before it.
    fn event(&mut self, event: Event) {
        if self.keep == Keep::Everything {
            self.events.append(&mut self.blanks);
            self.events.push(event);
        }
    }
    pub(super) fn open_node(&mut self, kind: SyntaxKind) {
        self.event(Event::Start(kind));
    }
    pub(super) fn close_node(&mut self) {
        // The blanks stay, because they belong to the enclosing node.
        if self.keep == Keep::Everything {
            self.events.push(Event::Finish);
        }
    }
    /// Consumes the current token and returns its position.
    pub(super) fn bump(&mut self) -> Span {
        let span = self.here();
        if self.kind != End {
            self.push_token(self.kind, self.end);
        }
        span
    }
    pub(super) fn push_token(&mut self, kind: SyntaxKind, end: usize) {
        self.event(Event::Token(kind, end as u32));
        self.last_end = end;
        self.fetch(end);
    }
    /// Consumes the current `(` and the text up to `end` after it.
    pub(super) fn push_config(&mut self, end: usize) {
        self.event(Event::Token(LParen, self.end as u32));
        if end > self.end {
            self.event(Event::Token(SyntaxKind::ConfigText, end as u32));
        }
        self.last_end = end;
        self.fetch(end);
    }
    pub(super) fn eat(&mut self, kind: SyntaxKind) -> bool {
        let yes = self.kind == kind;
        if yes {
            self.bump();
        }
        yes
    }
    /// Counts an element. At the limit, the rest of the text becomes one token.
    pub(super) fn count_element(&mut self) {
        self.written += 1;
        if self.written == MAX_WRITTEN {
            let d = Diagnostic::error(
                format!("configuration is too large: more than {MAX_WRITTEN} elements"),
                self.here(),
            );
            self.error(d.at("nothing is parsed from here on"));
            self.push_token(SyntaxKind::Skipped, self.text.len());
        }
    }
    /// Whether the current token is this word.
    fn at_word(&self, word: &str) -> bool {
        self.kind == Ident && self.token_text() == word
    }
    pub(super) fn at_reserved(&self) -> bool {
        self.kind == Ident && matches!(self.token_text(), "elementclass" | "require" | "provide" | "define")
    }
    pub(super) fn is_open(&self, place: Context) -> bool {
        self.open.contains(&place)
    }
    /// Whether the current token ends a list of statements: the end of the text, `}` or `||` in a compound, `)` in a
    /// group.
    pub(super) fn at_close(&self) -> bool {
        match self.kind {
            End => true,
            RBrace | BarBar => self.is_open(Context::Compound),
            RParen => self.is_open(Context::Group),
            _ => false,
        }
    }

    pub(super) fn statements(&mut self, place: Context) -> Vec<Statement> {
        let mut all = Vec::new();
        while !self.at_close() {
            if self.eat(Semicolon) {
                continue;
            }
            let before = self.start;
            if self.at_word("elementclass") {
                all.extend(self.element_class().map(Statement::ElementClass));
                self.eat(Semicolon);
            } else if self.at_word("require") {
                all.push(Statement::Require(self.args_statement(SyntaxKind::Require)));
                self.eat(Semicolon);
            } else if self.at_word("define") {
                all.push(Statement::Define(self.args_statement(SyntaxKind::Define)));
                self.eat(Semicolon);
            } else if self.at_element() || matches!(self.kind, Arrow | FatArrow) {
                all.push(Statement::Connection(self.connection(place)));
            } else {
                self.unexpected("expected a statement");
            }
            if self.start == before && !self.at_close() {
                self.skip(true);
            }
        }
        all
    }
    /// Skips to where the next statement may start.
    pub(super) fn recover(&mut self) {
        self.skip(false);
    }
    /// Skips to where the next statement may start. If `first`, the current token is skipped in any case.
    fn skip(&mut self, mut first: bool) {
        if !first && (self.at_close() || self.kind == Semicolon || self.at_reserved()) {
            return;
        }
        self.open_node(SyntaxKind::Error);
        let mut depth = 0usize;
        while self.kind != End {
            match self.kind {
                LBrace | LParen => depth += 1,
                RBrace | RParen if depth > 0 => depth -= 1,
                _ if first => {}
                _ if depth == 0 && (self.at_close() || self.at_reserved()) => break,
                Semicolon if depth == 0 => break,
                Ident if depth == 0 && self.new_line => break,
                _ => {}
            }
            first = false;
            self.bump();
        }
        self.close_node();
    }

    fn element_class(&mut self) -> Option<ElementClass> {
        self.open_node(SyntaxKind::ElementClass);
        self.bump();
        let parsed = if self.kind == Ident && !self.at_reserved() {
            let name = self.bump();
            let class = self.class();
            Some(ElementClass { name, class })
        } else {
            self.unexpected("expected the name of the new class");
            self.recover();
            None
        };
        self.close_node();
        parsed
    }
    /// Parses a class: `identifier | compound`.
    pub(super) fn class(&mut self) -> Class {
        match self.kind {
            Ident if !self.at_reserved() => Class::Name(self.bump()),
            LBrace => self.compound().map_or(Class::Missing, |c| Class::Compound(Box::new(c))),
            _ => {
                self.unexpected("expected a class name or '{'");
                self.recover();
                Class::Missing
            }
        }
    }
    fn args_statement(&mut self, node: SyntaxKind) -> Args {
        self.open_node(node);
        self.bump();
        let config = if self.kind == LParen {
            self.config()
        } else {
            self.unexpected("expected '('");
            self.recover();
            None
        };
        self.close_node();
        Args { config }
    }
}
