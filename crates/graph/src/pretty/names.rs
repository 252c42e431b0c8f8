// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds what each name of a source refers to. Names are resolved as in the elaboration of the language, but in the
//! syntax tree.

use castanet_lang::syntax::{SyntaxElement, SyntaxKind, SyntaxNode, SyntaxToken};
use std::collections::HashMap;
use std::ops::Range;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It declares an element.
    Declares,
    /// It refers to the element that is declared at this position.
    Refers(u32),
    /// It defines a class.
    Defines,
    /// It is the class that is defined at this position. `true` if an element without a name is declared here.
    Compound(u32, bool),
    /// It is a class defined outside the file. `true` if an element without a name is declared here.
    Class(bool),
    /// It is the `input` or `output` of a compound or group.
    Pseudo,
}

/// The names of a source.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The roles of names, by their positions.
    pub(super) roles: HashMap<u32, Role>,
    /// For each element in a chain, by the position where it begins: the position of its declaration.
    pub(super) declared: HashMap<u32, u32>,
    /// Names of elements in configuration strings, in order, and the positions of their declarations.
    pub(super) in_configs: Vec<(Range<usize>, u32)>,
}

pub(super) fn start(token: &SyntaxToken) -> u32 {
    token.text_range().start().into()
}

fn tokens(node: &SyntaxNode) -> impl Iterator<Item = SyntaxToken> {
    node.children_with_tokens().filter_map(SyntaxElement::into_token)
}

impl Names {
    /// Resolves the names of a file.
    pub(super) fn new(root: &SyntaxNode) -> Names {
        let mut resolver =
            Resolver { names: Names::default(), elements: Vec::new(), classes: Vec::new(), depth: 0 };
        resolver.scope(root);
        resolver.names.in_configs.sort_by_key(|c| c.0.start);
        resolver.names
    }
}

struct Resolver {
    names: Names,
    /// The elements of each enclosing scope, innermost last, by name.
    elements: Vec<HashMap<String, u32>>,
    /// The classes of each enclosing scope that are defined so far.
    classes: Vec<HashMap<String, u32>>,
    /// The number of enclosing compounds and groups.
    depth: usize,
}

/// The elements of a statement: those of its chain, each with whether it declares a name. In `a, b :: C`, all do.
fn elements(connection: &SyntaxNode) -> Vec<(SyntaxNode, bool)> {
    let all: Vec<SyntaxNode> = connection.children().filter(|n| n.kind() == SyntaxKind::Element).collect();
    let with_class = |e: &SyntaxNode| tokens(e).any(|t| t.kind() == SyntaxKind::ColonColon);
    let chain = tokens(connection).any(|t| matches!(t.kind(), SyntaxKind::Arrow | SyntaxKind::FatArrow));
    let list = !chain && all.last().is_some_and(with_class);
    all.into_iter().map(|e| (e.clone(), list || with_class(&e))).collect()
}

fn first_name(node: &SyntaxNode) -> Option<SyntaxToken> {
    tokens(node).find(|t| t.kind() == SyntaxKind::Ident)
}

impl Resolver {
    /// Resolves the names of a file or of an alternative. The recursion is bounded, because the language limits how
    /// deep compounds nest.
    fn scope(&mut self, node: &SyntaxNode) {
        let mut declared = HashMap::new();
        declarations(node, &mut declared);
        self.elements.push(declared);
        self.classes.push(HashMap::new());
        self.statements(node);
        self.elements.pop();
        self.classes.pop();
    }

    fn statements(&mut self, node: &SyntaxNode) {
        for statement in node.children() {
            match statement.kind() {
                SyntaxKind::Connection => {
                    for (element, declares) in elements(&statement) {
                        self.element(&element, declares);
                    }
                }
                SyntaxKind::ElementClass => self.class(&statement),
                _ => {}
            }
        }
    }

    /// Resolves the definition of a class.
    fn class(&mut self, statement: &SyntaxNode) {
        let mut names = tokens(statement).filter(|t| t.kind() == SyntaxKind::Ident).skip(1);
        let Some(name) = names.next() else { return };
        self.names.roles.insert(start(&name), Role::Defines);
        if let Some(other) = names.next() {
            self.use_class(&other, false);
        }
        statement.children().for_each(|n| self.part(&n));
        if let Some(classes) = self.classes.last_mut() {
            classes.insert(name.text().to_string(), start(&name));
        }
    }

    fn use_class(&mut self, name: &SyntaxToken, declares: bool) {
        let known = self.classes.iter().rev().find_map(|c| c.get(name.text()).copied());
        let role = known.map_or(Role::Class(declares), |at| Role::Compound(at, declares));
        self.names.roles.insert(start(name), role);
    }

    fn element(&mut self, element: &SyntaxNode, declares: bool) {
        let begin: u32 = element.text_range().start().into();
        let mut declared = None;
        if let Some(name) = first_name(element) {
            let at = start(&name);
            let known = self.elements.last().and_then(|e| e.get(name.text()).copied());
            match known {
                _ if declares => {
                    self.names.roles.insert(at, Role::Declares);
                    declared = Some(at);
                }
                Some(declaration) => {
                    self.names.roles.insert(at, Role::Refers(declaration));
                    declared = Some(declaration);
                }
                None if matches!(name.text(), "input" | "output") && self.depth > 0 => {
                    self.names.roles.insert(at, Role::Pseudo);
                }
                None => {
                    self.use_class(&name, true);
                    declared = Some(at);
                }
            }
            let class = tokens(element).filter(|t| t.kind() == SyntaxKind::Ident).nth(1);
            if let Some(class) = class {
                self.use_class(&class, false);
            }
        }
        self.names.declared.extend(declared.map(|d| (begin, d)));
        element.children().for_each(|n| self.part(&n));
    }

    fn part(&mut self, node: &SyntaxNode) {
        self.depth += 1;
        match node.kind() {
            SyntaxKind::Compound => node.children().for_each(|alternative| self.scope(&alternative)),
            SyntaxKind::Group => self.statements(node),
            SyntaxKind::Config => {
                if let Some(text) = tokens(node).find(|t| t.kind() == SyntaxKind::ConfigText) {
                    self.config(&text);
                }
            }
            _ => {}
        }
        self.depth -= 1;
    }

    /// Finds the names of handlers, such as `counter.count`, whose element is declared in this scope or around it.
    fn config(&mut self, token: &SyntaxToken) {
        let (text, base) = (token.text(), start(token) as usize);
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '@');
        let mut at = 0;
        while let Some(first) = text.get(at..).and_then(|t| t.find(part)).map(|n| at + n) {
            let end = text.get(first..).and_then(|t| t.find(|c| !part(c))).map_or(text.len(), |n| first + n);
            let before = text.get(..first).and_then(|t| t.chars().next_back());
            let behind = text.get(end..).unwrap_or("");
            let call = behind
                .strip_prefix(['.', '/'])
                .is_some_and(|t| t.starts_with(|c: char| c.is_ascii_alphabetic()));
            if call && !matches!(before, Some('.' | '/' | '$' | '{')) {
                let name = text.get(first..end).unwrap_or("");
                let known = self.elements.iter().rev().find_map(|e| e.get(name).copied());
                self.names.in_configs.extend(known.map(|k| (base + first..base + end, k)));
            }
            at = end;
        }
    }
}

/// The elements that the statements of a scope declare, including those in groups.
fn declarations(node: &SyntaxNode, all: &mut HashMap<String, u32>) {
    for connection in node.children().filter(|n| n.kind() == SyntaxKind::Connection) {
        for (element, declares) in elements(&connection) {
            if let Some(name) = first_name(&element).filter(|_| declares) {
                all.entry(name.text().to_string()).or_insert(start(&name));
            }
            element.children().filter(|n| n.kind() == SyntaxKind::Group).for_each(|g| declarations(&g, all));
        }
    }
}
