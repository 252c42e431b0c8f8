// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parser: configuration strings, compounds and groups.

use super::MAX_NESTING;
use super::ast::{Alternative, Compound, Group, Param};
use super::kind::SyntaxKind::{
    self, Bar, BarBar, Comma, Ellipsis, End, Ident, LBrace, LParen, RBrace, RParen, Semicolon, Skipped,
    Variable,
};
use super::lexer::{config_end, line_end, next_line, token};
use super::parser::{Context, Parser};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::text::{Unit, hex_end, quoted_end, unit};

/// The help line of an error quotes a configuration string only if it has at most this many bytes.
const SHORT: usize = 40;

/// Returns the position of the quote or `\<` that was probably left open. This is the first one that is not closed or
/// whose text is suspicious. The text of a quote is suspicious if it continues on the next line. The text of a `\<` is
/// suspicious if it contains one of `(),;`.
fn open_text(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        let (what, end) = unit(bytes, at);
        let quoted = bytes.get(at..end).unwrap_or(&[]);
        if what == Unit::Quoted && (quoted.contains(&b'\n') || !quoted_end(bytes, at).1) {
            return Some(at);
        }
        // A `\<` that was left open ends at the `>` of a later arrow (`->`). So the text of a closed `\<` is checked
        // too.
        if what == Unit::Hex && (quoted.iter().any(|b| b"(),;".contains(b)) || !hex_end(bytes, at).1) {
            return Some(at);
        }
        at = end;
    }
    None
}

/// The unclosed `(` in the first argument that has one, and the end of that argument. Commas inside the parentheses
/// of an argument are rare, so the missing `)` probably belongs before the comma.
fn open_argument(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let (mut at, mut open) = (0, Vec::new());
    while at < bytes.len() {
        let (what, end) = unit(bytes, at);
        match what {
            Unit::Byte(b'(') => open.push(at),
            Unit::Byte(b')') => drop(open.pop()),
            Unit::Byte(b',') => {
                if let Some(&paren) = open.last() {
                    return Some((paren, at));
                }
            }
            _ => {}
        }
        at = end;
    }
    None
}

impl Parser<'_> {
    /// Parses a configuration string with its parentheses. The current token is the `(`.
    pub(super) fn config(&mut self) -> Option<Span> {
        self.open_node(SyntaxKind::Config);
        let paren = self.here();
        let mut found = config_end(self.text, self.end);
        let text_start = self.end;
        if !found.closed {
            let d = self.unclosed_config(paren);
            self.error(d);
            // Resuming a few lines below finds more errors. But each attempt reads the rest of the text, so
            // the number of attempts is bounded.
            self.unclosed += 1;
            if self.unclosed <= 8 {
                found.end = self.restart_after(text_start);
                found.directives.retain(|d| d.end <= found.end);
            }
        }
        for d in found.directives {
            self.directive(d, found.closed);
        }
        self.push_config(found.end);
        if found.closed {
            self.bump();
        }
        self.close_node();
        Some(self.span(text_start..found.end))
    }
    /// The error for a configuration string without an end. It names the open quote or `\<` if there is one, else the
    /// `(`.
    fn unclosed_config(&self, paren: Span) -> Diagnostic {
        let (text, from) = (self.text, paren.range().end);
        if let Some(quote) = open_text(text, from) {
            if text.get(quote..).is_some_and(|t| t.starts_with('\\')) {
                return Diagnostic::error("'\\<' without '>'", self.span(quote..quote + 2))
                    .at("the data that starts here has no end")
                    .help("close it with >");
            }
            let sign = text.get(quote..=quote).unwrap_or("");
            return Diagnostic::error("unclosed quote", self.span(quote..quote + 1))
                .at("the text in quotes that starts here has no end")
                .help(format!("close it with {sign}"));
        }
        let end = text.len();
        let d = Diagnostic::error("expected ')'", self.span(end..end))
            .at("the text ends inside a configuration string")
            .label("this '(' is not closed", paren);
        let line = text.get(from..line_end(text.as_bytes(), from)).unwrap_or("");
        let before = [";", "->", "=>"].into_iter().filter_map(|stop| line.find(stop)).min();
        match before.and_then(|n| line.get(..n)).map(str::trim_end) {
            Some(config) if config.len() <= SHORT && !config.contains(['"', '\'', '/']) => {
                if let Some((inner, at)) = open_argument(config) {
                    let (inner, at) = (from + inner, from + at);
                    let part = text.get(inner..at).unwrap_or("");
                    let mut d = d
                        .label("this '(' has no ')' before the comma", self.span(inner..inner + 1))
                        .help(format!("write ')' after '{part}'"));
                    d.replacement = Some((self.span(at..at), ")".into()));
                    return d;
                }
                let at = from + config.len();
                let mut d =
                    d.help(format!("write ')' after '{}'", text.get(paren.range().start..at).unwrap_or("")));
                d.replacement = Some((self.span(at..at), ")".into()));
                d
            }
            _ => d.help("add the missing ')'"),
        }
    }
    /// Searches for the next line that starts with a declaration or a reserved word. Returns the end of the line
    /// before it, or the end of the text if there is none.
    fn restart_after(&self, from: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = line_end(bytes, from);
        while end < bytes.len() {
            let start = next_line(bytes, end);
            let (kind, name_end) = token(self.text, start);
            if kind == Ident {
                let name = self.text.get(start..name_end).unwrap_or("");
                let rest = self.text.get(name_end..).unwrap_or("").trim_start_matches([' ', '\t']);
                if rest.starts_with("::") || matches!(name, "elementclass" | "require" | "define") {
                    return end;
                }
            }
            end = line_end(bytes, start);
        }
        end
    }

    /// Enters the compound or group that the current token opens. If it is nested too deeply, reports this, skips it,
    /// and returns false.
    fn enter(&mut self, place: Context) -> bool {
        if self.open.len() < MAX_NESTING {
            self.open.push(place);
            return true;
        }
        let d = Diagnostic::error("maximum compound element nesting depth exceeded", self.here());
        self.error(d.at(format!("compounds and groups nest at most {MAX_NESTING} deep")));
        let (mut at, mut depth) = (self.start, 0usize);
        loop {
            let (kind, end) = token(self.text, at);
            at = end;
            match kind {
                LBrace | LParen => depth += 1,
                RBrace | RParen if depth <= 1 => break,
                RBrace | RParen => depth -= 1,
                End => break,
                _ => {}
            }
        }
        self.push_token(Skipped, at);
        false
    }
    /// Parses `{ … }`. The current token is the `{`.
    pub(super) fn compound(&mut self) -> Option<Compound> {
        self.open_node(SyntaxKind::Compound);
        let brace = self.here();
        if !self.enter(Context::Compound) {
            self.close_node();
            return None;
        }
        self.bump();
        let (mut alternatives, mut extends, mut closed) = (Vec::new(), None, true);
        loop {
            if self.kind == Ellipsis {
                extends = Some(self.bump());
                if self.kind == BarBar {
                    self.unexpected("'...' must be the last alternative");
                    self.bump();
                    continue;
                }
            } else {
                alternatives.push(self.alternative());
            }
            if !self.eat(BarBar) {
                break;
            }
        }
        if !self.eat(RBrace) {
            let d = Diagnostic::error("expected '}'", self.here()).at("the compound must end here");
            self.error(d.label("this '{' is not closed", brace).help("add '}' where the compound ends"));
            closed = false;
            if !self.at_close() {
                self.recover();
            }
        }
        self.open.pop();
        self.close_node();
        Some(Compound { span: self.since(brace.range().start), alternatives, extends, closed })
    }
    fn alternative(&mut self) -> Alternative {
        self.count_element();
        self.open_node(SyntaxKind::Alternative);
        let start = self.start;
        let params = self.params();
        let statements = self.statements(Context::Compound);
        self.close_node();
        Alternative { span: self.since(start), params, statements }
    }
    /// Parses `[KEYWORD] $var, … |`, if it is there.
    fn params(&mut self) -> Vec<Param> {
        let mut all = Vec::new();
        if self.kind == Bar {
            self.bump();
            return all;
        }
        if self.kind != Variable && !(self.kind == Ident && self.second() == Variable) {
            return all;
        }
        self.open_node(SyntaxKind::Params);
        loop {
            let keyword = if self.kind == Ident { Some(self.bump()) } else { None };
            if self.kind != Variable {
                self.unexpected("expected a parameter such as '$x'");
                break;
            }
            all.push(Param { keyword, name: self.bump() });
            if !self.eat(Comma) {
                break;
            }
        }
        if !self.eat(Bar) {
            self.unexpected("expected '|' after the parameters");
            while !matches!(self.kind, Bar | Semicolon) && !self.at_close() {
                self.bump();
            }
            self.eat(Bar);
        }
        self.close_node();
        all
    }
    /// The kind of the token after the current one.
    fn second(&self) -> SyntaxKind {
        let mut at = self.end;
        loop {
            let (kind, end) = token(self.text, at);
            if !kind.is_trivia() {
                return kind;
            }
            at = end;
        }
    }
    /// Parses `( … )` in a chain. The current token is the `(`.
    pub(super) fn group(&mut self) -> Option<Group> {
        self.open_node(SyntaxKind::Group);
        let paren = self.here();
        if !self.enter(Context::Group) {
            self.close_node();
            return None;
        }
        self.bump();
        let statements = self.statements(Context::Group);
        if !self.eat(RParen) {
            let d = Diagnostic::error("expected ')'", self.here()).at("the group must end here");
            self.error(d.label("this '(' is not closed", paren));
        }
        self.open.pop();
        self.close_node();
        Some(Group { span: self.since(paren.range().start), statements })
    }
}
