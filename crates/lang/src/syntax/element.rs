// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parser: chains, element lists, elements and ports.

use super::ast::{Connection, Core, Elem, List, PortItem, Ports};
use super::kind::SyntaxKind::{
    self, Arrow, ColonColon, Comma, Dash, FatArrow, Ident, LBrace, LBracket, LParen, Other, RBracket,
    Semicolon, Variable,
};
use super::parser::{Context, Parser};
use crate::diagnostic::Diagnostic;

/// The largest port number. Far above any real use, and small enough that a list of all ports is cheap.
const MAX_PORT: usize = 65_535;

impl Parser<'_> {
    /// Whether an element starts here. An element whose name is left out, such as the implicit `input` in `[0] -> a`,
    /// starts with the bracket of a port.
    pub(super) fn at_element(&self) -> bool {
        match self.kind {
            Ident => !self.at_reserved(),
            LBrace | LParen | LBracket => true,
            _ => false,
        }
    }
    fn at_link(&self) -> bool {
        matches!(self.kind, Arrow | FatArrow)
    }
    /// Parses a connection: lists of elements with arrows between them, or a single list.
    pub(super) fn connection(&mut self, place: Context) -> Connection {
        self.open_node(SyntaxKind::Connection);
        // Most statements have one list.
        let (mut lists, mut links) = (Vec::with_capacity(1), Vec::new());
        let mut ok = true;
        loop {
            let list = self.list(place, lists.is_empty(), &mut ok);
            lists.push(list);
            if ok
                && matches!(self.kind, Dash | Other)
                && matches!(self.token_text(), "-" | "=" | ">" | "→" | "–" | "—")
            {
                // Parsing continues as if an arrow stood here.
                let text = self.token_text();
                // A typographic dash and the '>' after it are reported as one mistake.
                let two =
                    matches!(text, "–" | "—") && self.text.get(self.end..).unwrap_or("").starts_with('>');
                let token = self.span(self.start..self.end + usize::from(two));
                let mut d = Diagnostic::error(format!("syntax error near '{text}'"), token)
                    .at("expected '->'")
                    .help("write '->' to connect two elements");
                d.replacement = Some((token, "->".into()));
                self.error(d);
                if two {
                    self.bump();
                }
            } else if !ok || !self.at_link() {
                break;
            }
            links.push((self.kind == FatArrow, self.bump()));
        }
        if !ok {
            self.recover();
        }
        self.eat(Semicolon);
        self.close_node();
        Connection { lists, links }
    }
    fn list(&mut self, place: Context, first: bool, ok: &mut bool) -> List {
        let mut before = Vec::new();
        loop {
            let mut elem = self.element();
            let alone = before.is_empty() && self.kind != Comma;
            if matches!(elem.core, Core::Implicit) {
                // An implicit element means `input` before the first link and `output` after the last one.
                let fits = alone && place != Context::Top && first == self.at_link();
                if !fits {
                    self.unexpected("expected an element");
                    elem.core = Core::Missing;
                    *ok = first && alone && self.at_link();
                    return List::new(before, elem);
                }
            }
            if self.kind != Comma {
                return List::new(before, elem);
            }
            before.push(elem);
            self.bump();
        }
    }
    /// Reports and skips one colon where two must stand.
    fn one_colon(&mut self) -> bool {
        let yes = self.token_text() == ":";
        if yes {
            let colon = self.here();
            let mut d = Diagnostic::error("syntax error near ':'", colon)
                .at("expected '::'")
                .help("write '::' between the name and the class");
            d.replacement = Some((colon, "::".into()));
            self.error(d);
            self.bump();
        }
        yes
    }
    /// Parses one element. Its `core` is [`Core::Implicit`] if the element consists of ports only, or is empty.
    fn element(&mut self) -> Elem {
        self.count_element();
        self.open_node(SyntaxKind::Element);
        let start = self.start;
        let mut inputs = self.ports();
        let core = match self.kind {
            Ident if !self.at_reserved() => {
                let name = self.bump();
                let class = if self.eat(ColonColon) || self.one_colon() { Some(self.class()) } else { None };
                Core::Name { name, class }
            }
            LBrace => self.compound().map_or(Core::Missing, |c| Core::Compound(Box::new(c))),
            LParen => self.group().map_or(Core::Missing, |g| Core::Group(Box::new(g))),
            _ => Core::Implicit,
        };
        let mut outputs = None;
        let mut config = None;
        if matches!(core, Core::Implicit) {
            // Ports without a name before an arrow are outputs, because the implicit element is an `input`.
            if self.at_link() {
                outputs = inputs.take();
            }
        } else {
            if self.kind == LParen {
                config = self.config();
            }
            outputs = self.ports();
        }
        self.close_node();
        let span = if self.last_end > start { self.since(start) } else { self.span(start..start) };
        Elem { span, inputs, core, config, outputs }
    }
    /// Parses a port list if there is one.
    fn ports(&mut self) -> Option<Box<Ports>> {
        if self.kind != LBracket {
            return None;
        }
        self.open_node(SyntaxKind::Ports);
        let start = self.start;
        self.bump();
        let mut items = Vec::new();
        if self.kind == RBracket {
            items.push(PortItem::From(0));
        } else {
            while let Some(first) = self.port() {
                if !self.eat(Dash) {
                    items.push(PortItem::Range(first, first));
                } else if matches!(self.kind, RBracket | Comma) {
                    items.push(PortItem::From(first));
                } else if let Some(last) = self.port() {
                    if last < first {
                        let span = self.since(start + 1);
                        self.error(
                            Diagnostic::error(format!("bad port range '{first}-{last}'"), span)
                                .at("the range is empty"),
                        );
                    }
                    items.push(PortItem::Range(first, last.max(first)));
                } else {
                    break;
                }
                if !self.eat(Comma) {
                    break;
                }
            }
        }
        if !self.eat(RBracket) {
            let d = Diagnostic::error("expected ']'", self.here());
            self.error(
                d.at("the port list must end here")
                    .label("this '[' is not closed", self.span(start..start + 1)),
            );
            // Skips the tokens that may be the rest of the port list.
            while matches!(self.kind, Other | Variable | Comma | Dash) {
                self.bump();
            }
            self.eat(RBracket);
        }
        self.close_node();
        Some(Box::new(Ports { span: self.since(start), items }))
    }
    fn port(&mut self) -> Option<usize> {
        let text = self.token_text();
        let number = text.parse::<usize>().ok().filter(|_| self.kind == Ident);
        match number {
            Some(n) if n <= MAX_PORT => {
                self.bump();
                Some(n)
            }
            _ if self.kind == Ident && text.bytes().all(|b| b.is_ascii_digit()) => {
                let d = Diagnostic::error(format!("port number '{text}' too large"), self.here());
                self.error(d.at(format!("ports go up to {MAX_PORT}")));
                self.bump();
                Some(MAX_PORT)
            }
            _ if matches!(self.kind, Ident | Variable | Other | Dash) => {
                let start = self.start;
                let sign = self.kind == Dash;
                self.bump();
                if sign && self.kind == Ident {
                    self.bump();
                }
                let span = self.since(start);
                let text = self.text.get(span.range()).unwrap_or("");
                let d = Diagnostic::error(format!("bad port '{text}'"), span);
                self.error(d.at("port numbers are integers >= 0"));
                Some(0)
            }
            _ => {
                self.unexpected("expected a port number");
                None
            }
        }
    }
}
