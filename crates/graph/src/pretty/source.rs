// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a source as HTML: highlighted, with links between declarations and uses, and with facts that show when the
//! pointer rests on a name, a port or an arrow.

use super::facts::{Facts, Side};
use super::names::{Names, Role, start};
use crate::graph::PortKind;
use crate::markup;
use castanet_lang::syntax::{SyntaxKind, SyntaxNode, SyntaxToken, tree};
use castanet_lang::{FileId, Sources};
use std::fmt::Write as _;
use std::ops::Range;

/// The identifier of the declaration at a position.
pub(super) fn anchor(file: FileId, start: u32) -> String {
    format!("f{}-{start}", file.0)
}

/// Appends the source of a file as the content of a `<pre>`.
pub(super) fn source(
    sources: &Sources,
    file: FileId,
    facts: &Facts<'_>,
    docs: &dyn Fn(&str) -> Option<String>,
    out: &mut String,
) {
    let mut own = Sources::new();
    let copy = own.add(sources.name(file), sources.text(file));
    let (root, _) = tree(&mut own, copy);
    let names = Names::new(&root);
    let mut writer = Writer { file, facts, docs, names: &names, links: 0, out };
    for token in root.descendants_with_tokens().filter_map(|t| t.into_token()) {
        writer.token(&token);
    }
}

struct Writer<'a> {
    file: FileId,
    facts: &'a Facts<'a>,
    docs: &'a dyn Fn(&str) -> Option<String>,
    names: &'a Names,
    /// The number of links in configuration strings that are written.
    links: usize,
    out: &'a mut String,
}

/// The nearest element before or behind an arrow.
fn beside(arrow: &SyntaxToken, before: bool) -> Option<SyntaxNode> {
    let mut at = if before { arrow.prev_sibling_or_token() } else { arrow.next_sibling_or_token() };
    while let Some(part) = at {
        if let Some(node) = part.as_node() {
            return Some(node.clone());
        }
        at = if before { part.prev_sibling_or_token() } else { part.next_sibling_or_token() };
    }
    None
}

/// The first port number on a side of an element in a chain, 0 if none is written. Returns `None` for the `input` and
/// `output` of a compound.
fn first_port(element: &SyntaxNode, side: Side) -> Option<usize> {
    let core = element
        .children_with_tokens()
        .position(|p| !matches!(p.kind(), SyntaxKind::Ports) && !p.kind().is_trivia())?;
    let ports = element
        .children_with_tokens()
        .enumerate()
        .find(|(i, p)| p.kind() == SyntaxKind::Ports && (*i < core) == (side == Side::Input));
    let Some((_, ports)) = ports else { return Some(0) };
    let numbers = ports.as_node()?.children_with_tokens().filter_map(|t| t.into_token());
    numbers.filter(|t| t.kind() == SyntaxKind::Ident).find_map(|t| t.text().parse().ok())
}

impl Writer<'_> {
    fn token(&mut self, token: &SyntaxToken) {
        let text = token.text();
        let parent = token.parent().map(|n| n.kind());
        match token.kind() {
            SyntaxKind::Comment => self.span("s-comment", text),
            SyntaxKind::Directive => self.span("s-line", text),
            SyntaxKind::Variable => self.span("s-variable", text),
            SyntaxKind::Arrow | SyntaxKind::FatArrow => self.arrow(token),
            SyntaxKind::ConfigText => self.config(token),
            SyntaxKind::Ident if parent == Some(SyntaxKind::Ports) => self.port(token),
            SyntaxKind::Ident => self.name(token),
            _ => self.out.push_str(&markup::text(text)),
        }
    }

    fn span(&mut self, class: &str, text: &str) {
        let _ = write!(self.out, "<span class=\"{class}\">{}</span>", markup::text(text));
    }

    /// Writes text with a description.
    fn described(&mut self, class: &str, title: &str, text: &str) {
        let (title, text) = (markup::attribute(title), markup::text(text));
        let _ = write!(self.out, "<span class=\"{class}\" title=\"{title}\">{text}</span>");
    }

    fn name(&mut self, token: &SyntaxToken) {
        let (at, text) = (start(token), token.text());
        let Some(&role) = self.names.roles.get(&at) else {
            let word = matches!(text, "elementclass" | "require" | "define");
            return match word {
                true => self.span("s-word", text),
                false => self.out.push_str(&markup::text(text)),
            };
        };
        let (id, href, class, element) = match role {
            Role::Pseudo => return self.span("s-word", text),
            Role::Declares => (true, None, "s-name", Some(at)),
            Role::Refers(to) => (false, Some(self.link(to)), "s-ref", Some(to)),
            Role::Defines => (true, None, "s-class", None),
            Role::Compound(to, declares) => {
                (declares, Some(self.link(to)), "s-class", declares.then_some(at))
            }
            Role::Class(declares) => (declares, (self.docs)(text), "s-class", declares.then_some(at)),
        };
        let _ = write!(self.out, "<a class=\"{class}\"");
        if id {
            let _ = write!(self.out, " id=\"{}\"", anchor(self.file, at));
        }
        if let Some(href) = href {
            let _ = write!(self.out, " href=\"{}\"", markup::attribute(&href));
        }
        if let Some(title) = element.and_then(|e| self.facts.at(self.file, e)) {
            let _ = write!(self.out, " title=\"{}\"", markup::attribute(&title));
        }
        let _ = write!(self.out, ">{}</a>", markup::text(text));
    }

    fn link(&self, to: u32) -> String {
        format!("#{}", anchor(self.file, to))
    }

    /// Writes a port number.
    fn port(&mut self, token: &SyntaxToken) {
        let ports = token.parent();
        let element = ports.as_ref().and_then(SyntaxNode::parent);
        let fact = ports.zip(element).and_then(|(ports, element)| {
            let first = ports.text_range().start() == element.text_range().start();
            let side = if first { Side::Input } else { Side::Output };
            self.facts.port(self.file, self.declared(&element)?, side, token.text().parse().ok()?)
        });
        match fact {
            Some((_, fact)) => self.described("s-port", &fact, token.text()),
            None => self.out.push_str(&markup::text(token.text())),
        }
    }

    /// The position where an element of a chain is declared.
    fn declared(&self, element: &SyntaxNode) -> Option<u32> {
        self.names.declared.get(&element.text_range().start().into()).copied()
    }

    /// Writes an arrow. A connection through the boundary of a compound is described by the port of the element at
    /// either end.
    fn arrow(&mut self, token: &SyntaxToken) {
        let ends = beside(token, true).zip(beside(token, false));
        let fact = ends.and_then(|(from, to)| {
            let (start, end) = (from.text_range().start().into(), to.text_range().end().into());
            let port = |element: &SyntaxNode, side: Side| {
                let port = first_port(element, side)?;
                self.facts.port(self.file, self.declared(element)?, side, port)
            };
            let whole = self.facts.connection(self.file, start, end);
            whole.or_else(|| port(&to, Side::Input)).or_else(|| port(&from, Side::Output))
        });
        match fact {
            Some((PortKind::Push, fact)) => self.described("s-push", &fact, token.text()),
            Some((PortKind::Pull, fact)) => self.described("s-pull", &fact, token.text()),
            None => self.out.push_str(&markup::text(token.text())),
        }
    }

    /// Writes a configuration string: texts in quotes, comments, variables, and names of elements before handlers.
    fn config(&mut self, token: &SyntaxToken) {
        let (text, base) = (token.text(), start(token) as usize);
        let piece = |range: Range<usize>| markup::text(text.get(range).unwrap_or(""));
        let (mut at, mut plain, mut quote) = (0, 0, None);
        while let Some(c) = text.get(at..).and_then(|t| t.chars().next()) {
            let rest = text.get(at..).unwrap_or("");
            // Names in comments are no links.
            while self.names.in_configs.get(self.links).is_some_and(|l| l.0.start < base + at) {
                self.links += 1;
            }
            let link = self.names.in_configs.get(self.links).filter(|l| l.0.start == base + at).cloned();
            let end = match c {
                _ if link.is_some() => link.as_ref().map_or(at, |l| l.0.end - base),
                '/' if quote.is_none() && rest.starts_with("//") => {
                    rest.find(['\n', '\r']).map_or(text.len(), |n| at + n)
                }
                '/' if quote.is_none() && rest.starts_with("/*") => {
                    rest.find("*/").map_or(text.len(), |n| at + n + 2)
                }
                '$' if quote != Some('\'') => at + variable(rest),
                _ => at,
            };
            if end > at {
                self.out.push_str(&piece(plain..at));
                let inner = piece(at..end);
                let _ = match (&link, c) {
                    (Some((_, to)), _) => {
                        self.links += 1;
                        write!(self.out, "<a class=\"s-ref\" href=\"{}\">{inner}</a>", self.link(*to))
                    }
                    (None, '$') => write!(self.out, "<span class=\"s-variable\">{inner}</span>"),
                    (None, _) => write!(self.out, "<span class=\"s-comment\">{inner}</span>"),
                };
                (at, plain) = (end, end);
                continue;
            }
            let next = at + c.len_utf8();
            match (c, quote) {
                ('\\', Some('"')) => {
                    at = next + text.get(next..).and_then(|t| t.chars().next()).map_or(0, char::len_utf8)
                }
                ('"' | '\'', None) => {
                    self.out.push_str(&piece(plain..at));
                    self.out.push_str("<span class=\"s-text-string\">");
                    (at, plain, quote) = (next, at, Some(c));
                }
                (c, Some(q)) if c == q => {
                    self.out.push_str(&piece(plain..next));
                    self.out.push_str("</span>");
                    (at, plain, quote) = (next, next, None);
                }
                _ => at = next,
            }
        }
        self.out.push_str(&piece(plain..text.len()));
        if quote.is_some() {
            self.out.push_str("</span>");
        }
    }
}

/// The length of the use of a variable that `text` begins with; 0 if it is none.
fn variable(text: &str) -> usize {
    let name = |from: usize| {
        let rest = text.get(from..).unwrap_or("");
        rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
    };
    match name(1) {
        0 if text.starts_with("${") => text.find('}').map_or(0, |n| n + 1),
        0 => 0,
        n => n + 1,
    }
}
