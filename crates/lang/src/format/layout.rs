// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks over the syntax tree and decides what stands between two tokens.

mod nest;

use super::INDENT;
use super::printer::{Joint, Printer, is_line_break};
use crate::syntax::{SyntaxElement, SyntaxKind, SyntaxNode, SyntaxToken};
use rowan::NodeOrToken::{Node, Token};

/// Returns the formatted text of a tree without syntax errors. `source` is the text of the tree.
pub(super) fn lay_out(root: &SyntaxNode, source: &str) -> String {
    let mut layout = Layout { printer: Printer::new(source), lead: None };
    let file = Block { first: Joint::Next(0), next: Joint::Next(0), broken: true };
    layout.statements(&children(root), file);
    layout.printer.finish()
}

/// The layout of a list of statements.
#[derive(Clone, Copy)]
struct Block {
    /// What stands before the first statement.
    first: Joint,
    /// What stands before each other statement.
    next: Joint,
    /// Whether the block has lines of its own. Otherwise, it stands within the line of another statement.
    broken: bool,
}

/// What stands before a token if the statement or chain around it decides this.
#[derive(Clone, Copy)]
struct Lead {
    joint: Joint,
    /// Whether the token begins a statement of a block that has lines of its own.
    begins: bool,
}

/// The formatter's state.
struct Layout<'t> {
    printer: Printer<'t>,
    /// What stands before the next token; `None` if the token's place in its node decides this.
    lead: Option<Lead>,
}

fn children(node: &SyntaxNode) -> Vec<SyntaxElement> {
    node.children_with_tokens().collect()
}

fn is_statement(part: &SyntaxElement) -> bool {
    use SyntaxKind::{Connection, Define, ElementClass, Require};
    matches!(part.kind(), Connection | Define | ElementClass | Require)
}

/// All tokens of a node.
fn tokens(node: &SyntaxNode) -> impl Iterator<Item = SyntaxToken> {
    node.descendants_with_tokens().filter_map(SyntaxElement::into_token)
}

/// Whether an element has no text. Such an element stands for `input` at the start of a chain, and for `output` at its end.
fn is_implicit(element: &SyntaxNode) -> bool {
    element.text_range().is_empty()
}

/// Whether a statement is a chain that ends with an arrow, so that it leads to `output`.
fn leads_out(statement: &SyntaxNode) -> bool {
    statement.kind() == SyntaxKind::Connection && statement.children().last().is_some_and(|e| is_implicit(&e))
}

/// Whether a statement ends with a compound, so that it needs no semicolon.
fn defines_compound(statement: &SyntaxNode) -> bool {
    statement.kind() == SyntaxKind::ElementClass && statement.children().next().is_some()
}

/// Whether a semicolon follows the statement at index `at` of a list in the source.
fn has_semicolon(list: &[SyntaxElement], at: usize) -> bool {
    let is_semicolon = |kind| kind == SyntaxKind::Semicolon;
    let inside = list.get(at).and_then(SyntaxElement::as_node).and_then(SyntaxNode::last_token);
    let behind = list.iter().skip(at + 1).map(SyntaxElement::kind).find(|kind| !kind.is_trivia());
    inside.is_some_and(|t| is_semicolon(t.kind())) || behind.is_some_and(is_semicolon)
}

/// Returns the blanks and comments before the next element of a chain if there is a line break among them. Returns nothing if no
/// element follows.
fn line_break(parts: &[SyntaxElement]) -> Vec<&SyntaxToken> {
    let all = parts.iter().map_while(SyntaxElement::as_token);
    let blanks: Vec<&SyntaxToken> = all.take_while(|t| t.kind().is_trivia()).collect();
    let element = parts.get(blanks.len()).and_then(SyntaxElement::as_node);
    let broken = element.is_some_and(|e| !is_implicit(e)) && blanks.iter().any(|t| is_line_break(t));
    if broken { blanks } else { Vec::new() }
}

impl Layout<'_> {
    fn token(&mut self, token: &SyntaxToken, joint: Joint) {
        let lead = self.lead.take().unwrap_or(Lead { joint, begins: false });
        self.printer.token(token.text(), lead.joint);
        if lead.begins {
            self.printer.hang = self.printer.indent + INDENT;
        }
    }

    /// Writes the statements of a list.
    fn statements(&mut self, list: &[SyntaxElement], block: Block) {
        let last = list.iter().rposition(is_statement);
        let mut joint = block.first;
        for (i, part) in list.iter().enumerate() {
            match part {
                Token(t) if t.kind().is_trivia() => self.printer.trivia(t.clone()),
                // The semicolons of the source are replaced by those written below.
                Token(_) => {}
                Node(statement) => {
                    self.lead = Some(Lead { joint, begins: block.broken });
                    joint = block.next;
                    match statement.kind() {
                        SyntaxKind::Connection => self.connection(&children(statement)),
                        _ => self.parts(statement),
                    }
                    let semicolon = match Some(i) == last {
                        _ if defines_compound(statement) => false,
                        false => true,
                        true => (block.broken && !leads_out(statement)) || has_semicolon(list, i),
                    };
                    if semicolon {
                        self.printer.attach(";");
                    }
                }
            }
        }
    }

    /// Writes a chain. A line break behind an arrow is moved before the arrow.
    fn connection(&mut self, parts: &[SyntaxElement]) {
        let mut at = 0;
        while let Some(part) = parts.get(at) {
            at += 1;
            match part {
                Node(element) => self.parts(element),
                Token(t) if t.kind().is_trivia() => self.printer.trivia(t.clone()),
                Token(t) if t.kind() == SyntaxKind::Semicolon => {}
                Token(t) if t.kind() == SyntaxKind::Comma => {
                    self.printer.attach(",");
                    self.lead = Some(Lead { joint: Joint::Continue, begins: false });
                }
                Token(arrow) => {
                    for blank in line_break(parts.get(at..).unwrap_or(&[])) {
                        self.printer.trivia(blank.clone());
                        at += 1;
                    }
                    self.token(arrow, Joint::Continue);
                }
            }
        }
    }

    /// Writes an element, or a statement other than a chain.
    fn parts(&mut self, node: &SyntaxNode) {
        for part in node.children_with_tokens() {
            match part {
                Token(t) if t.kind().is_trivia() => self.printer.trivia(t),
                Token(t) => self.token(&t, Joint::Blank),
                Node(n) => match n.kind() {
                    SyntaxKind::Compound => self.compound(&n),
                    SyntaxKind::Group => self.group(&n),
                    SyntaxKind::Ports => self.ports(&n),
                    _ => self.config(&n),
                },
            }
        }
    }

    fn ports(&mut self, node: &SyntaxNode) {
        let mut joint = Joint::Blank;
        for token in tokens(node) {
            match token.kind() {
                kind if kind.is_trivia() => self.printer.trivia(token),
                SyntaxKind::Comma => {
                    self.printer.attach(",");
                    joint = Joint::Blank;
                }
                _ => {
                    self.token(&token, joint);
                    joint = Joint::None;
                }
            }
        }
    }

    fn config(&mut self, node: &SyntaxNode) {
        tokens(node).for_each(|t| self.token(&t, Joint::None));
    }
}
