// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves the names of each scope once, at its definition.

mod classes;

use super::body::{Body, Class, Decl, Definition, End, Formal, Link, Node};
use super::files::{Files, requirements};
use super::report::Report;
use super::{MAX_CONNECTIONS, Options};
use crate::args;
use crate::diagnostic::Diagnostic;
use crate::source::{Sources, Span};
use crate::syntax::ast::{Args, Core, Param, Statement};
use crate::syntax::lexer::is_variable;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::HashMap;

/// The meaning of a name in a scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    /// The node; `None` if the declaration has no class, which has been reported as an error.
    pub node: Option<usize>,
    pub span: Span,
    /// Whether the name has been used, but not declared so far. If so, the node is an element of unknown class.
    pub guessed: bool,
}

/// A scope while its statements are being resolved. `'a` is the lifetime of the text, `'s` that of the statements.
#[derive(Default)]
pub(super) struct Scope<'a, 's> {
    pub body: Body<'a>,
    pub names: FxHashMap<&'a str, Name>,
    /// Elements that still need a name: index, class label and preferred number.
    pub anonymous: Vec<(usize, &'a str, usize)>,
    /// The `input` and `output` nodes of the enclosing compound and groups, innermost last.
    pub ports: Vec<(usize, usize)>,
    /// The statements of the scope, without those of nested compounds.
    statements: &'s [Statement],
    /// The declarations of each name in `statements`, in the order of the text. Computed on first use.
    declared: Option<HashMap<&'a str, Vec<Span>>>,
}

impl<'a> Scope<'a, '_> {
    /// Reserves memory for the names, elements and links of statements, as if each written element were one of its own, and
    /// each link joined two ports.
    fn reserve(&mut self, statements: &[Statement]) {
        let (mut names, mut elements, mut links) = (0, 0, 0);
        for s in statements {
            let Statement::Connection(c) = s else { continue };
            links += c.links.len();
            for elem in c.lists.iter().flat_map(|l| l.iter()) {
                elements += 1;
                names += usize::from(matches!(elem.core, Core::Name { class: Some(_), .. }));
            }
        }
        self.names.reserve(names);
        self.body.decls.reserve(elements);
        self.body.nodes.reserve(elements);
        self.body.links.reserve(links);
    }
    pub fn node(&mut self, node: Node) -> usize {
        self.body.nodes.push(node);
        self.body.nodes.len() - 1
    }
    /// Adds an element; `None` as name makes it anonymous. `at` are the positions of the declaration and of the
    /// configuration string. `classes` is the number of compound classes defined so far.
    pub fn element(
        &mut self,
        name: Option<&'a str>,
        label: &'a str,
        class: Class<'a>,
        (span, config): (Span, Option<Span>),
        classes: usize,
    ) -> usize {
        let index = self.body.decls.len();
        if name.is_none() {
            self.anonymous.push((index, label, index + 1));
        }
        let name = Cow::Borrowed(name.unwrap_or(""));
        self.body.decls.push(Decl { name, class, span, config, classes });
        self.node(Node::Element(index as u32))
    }
    /// The first declaration of `name` in this scope after position `here`.
    pub fn declared_after(&mut self, sources: &'a Sources, name: &str, here: Span) -> Option<Span> {
        let statements = self.statements;
        let declared = self.declared.get_or_insert_with(|| declarations(sources, statements));
        let all = declared.get(name)?;
        all.get(all.partition_point(|span| *span <= here)).copied()
    }
    /// Names the anonymous elements `Class@N`, increasing N past names that are taken.
    fn name_anonymous(&mut self) {
        // For each class, the lowest number that may be free, and the numbers that are taken.
        let mut numbers: FxHashMap<&str, (usize, FxHashSet<usize>)> = FxHashMap::default();
        let (mut name, mut digits) = (String::new(), itoa::Buffer::new());
        for &(index, label, number) in &self.anonymous {
            let (free, taken) = numbers.entry(label).or_default();
            let mut number = number.max(*free);
            loop {
                name.clear();
                name.extend([label, "@", digits.format(number)]);
                if !self.names.contains_key(name.as_str()) && taken.insert(number) {
                    break;
                }
                number += 1;
                *free = number + 1;
            }
            if let Some(decl) = self.body.decls.get_mut(index) {
                decl.name = Cow::Owned(name.as_str().to_owned());
            }
        }
    }
}

/// The names that statements declare, including those in groups, each with its positions in the order of the
/// text.
fn declarations<'a>(sources: &'a Sources, statements: &[Statement]) -> HashMap<&'a str, Vec<Span>> {
    let mut all: HashMap<&'a str, Vec<Span>> = HashMap::new();
    let mut open = vec![statements];
    while let Some(statements) = open.pop() {
        for statement in statements {
            let Statement::Connection(c) = statement else { continue };
            for elem in c.lists.iter().flat_map(|l| l.iter()) {
                match &elem.core {
                    Core::Name { name, class: Some(_) } => {
                        all.entry(sources.snippet(*name)).or_default().push(*name);
                    }
                    Core::Group(g) => open.push(&g.statements),
                    _ => {}
                }
            }
        }
    }
    all.values_mut().for_each(|places| places.sort_unstable());
    all
}

/// The state of name resolution for the whole configuration.
pub(super) struct Scopes<'a, 'r> {
    pub sources: &'a Sources,
    pub options: &'a Options<'a>,
    pub report: &'r mut Report,
    pub classes: Vec<Definition<'a>>,
    /// Classes visible from the current position in the text, innermost scope last.
    lexical: Vec<FxHashMap<&'a str, Class<'a>>>,
    /// The classes being defined at the current position, innermost last: name, its position, whether the `}`
    /// was found.
    within: Vec<(&'a str, Span, bool)>,
    /// Classes of Click and FastClick that castanet lacks (see `missing`), and that have been reported.
    missing: FxHashSet<&'a str>,
    /// Names that have been used as classes so far, in any scope, and where each was first used.
    used: FxHashMap<&'a str, Span>,
    /// Requirements found inside compounds.
    pub requirements: Vec<(String, String, Span)>,
    /// The number of connections that may still be added.
    pub connections_left: usize,
}

impl<'a, 'r> Scopes<'a, 'r> {
    pub fn new(sources: &'a Sources, options: &'a Options<'a>, report: &'r mut Report) -> Scopes<'a, 'r> {
        let (classes, lexical, requirements) = (Vec::new(), vec![FxHashMap::default()], Vec::new());
        Scopes {
            sources,
            options,
            report,
            classes,
            lexical,
            requirements,
            within: Vec::new(),
            missing: FxHashSet::default(),
            used: FxHashMap::default(),
            connections_left: MAX_CONNECTIONS,
        }
    }
    pub fn text(&self, span: Span) -> &'a str {
        self.sources.snippet(span)
    }
    /// Resolves the file scope.
    pub fn top(&mut self, files: &Files) -> Body<'a> {
        let mut scope = Scope::default();
        self.statements(&mut scope, &files.statements, true);
        scope.name_anonymous();
        scope.body.classes = 0..self.classes.len();
        scope.body
    }
    pub fn statements<'s>(
        &mut self,
        scope: &mut Scope<'a, 's>,
        statements: &'s [Statement],
        file_scope: bool,
    ) {
        if scope.statements.is_empty() {
            scope.statements = statements;
            scope.reserve(statements);
        }
        // Position of the previous chain if it did not end in `output`.
        let mut unfinished = None;
        for statement in statements {
            match statement {
                Statement::Connection(c) => self.connection(scope, c, &mut unfinished),
                Statement::ElementClass(c) => self.element_class(c),
                Statement::Define(d) => self.define(&mut scope.body, d),
                Statement::Require(r) if !file_scope => {
                    for (kind, name, span) in requirements(self.sources, r, self.report) {
                        if kind == "library" {
                            self.report.error(
                                "'require(library)' is allowed at file scope only",
                                span,
                                "move it out",
                            );
                        } else {
                            self.requirements.push((kind, name, span));
                        }
                    }
                }
                Statement::Require(_) => {}
            }
        }
    }

    /// Counts the ports of a compound's `input` and `output`, from their uses in the links with index `since` or higher.
    /// Reports gaps between the port numbers. Returns the counts, and whether there are gaps.
    pub fn port_counts(
        &mut self,
        body: &Body<'a>,
        ports: (usize, usize),
        since: usize,
        what: &str,
        at: Span,
    ) -> ((usize, usize), bool) {
        let links = body.links.get(since..).unwrap_or(&[]);
        let used = |end: fn(&Link) -> End, node: usize| {
            let of_node = links.iter().filter(|l| end(l).0 as usize == node);
            of_node.map(|l| (end(l).1 as usize, l.span)).collect()
        };
        let (inputs, outputs) = (used(|l| l.from, ports.0), used(|l| l.to, ports.1));
        let mut gaps = false;
        let mut count = |mut used: Vec<(usize, Span)>, side: &str| {
            used.sort_unstable();
            used.dedup_by_key(|u| u.0);
            let gap = used.iter().enumerate().find(|(i, u)| *i != u.0);
            if let Some((missing, (next, span))) = gap {
                gaps = true;
                let d = Diagnostic::error(format!("'{what}' {side} {missing} missing"), at);
                self.report.push(
                    d.at("ports must be used from 0 on, without gaps")
                        .label(format!("{side} {next} used here"), *span),
                );
            }
            used.last().map_or(0, |u| u.0 + 1)
        };
        let counts = (count(inputs, "input"), count(outputs, "output"));
        (counts, gaps)
    }

    fn params(&mut self, body: &mut Body<'a>, params: &[Param]) {
        let (mut rank, mut seen) = (0, HashMap::new());
        for p in params {
            let keyword = p.keyword.map(|k| self.text(k));
            let next = match keyword {
                None => 0,
                Some("__REST__") => 2,
                Some(_) => 1,
            };
            if next < rank || (next == 2 && rank == 2) {
                let d = Diagnostic::error(
                    "compound element parameters out of order",
                    p.keyword.unwrap_or(p.name),
                );
                self.report.push(d.at("the order is '$x', then 'KEYWORD $y', then '__REST__ $z'"));
            }
            rank = rank.max(next);
            let name = self.text(p.name).trim_start_matches('$');
            self.once(&mut seen, name, p.name);
            body.variables.insert(name);
            body.formals.push(Formal { name, keyword });
        }
    }
    /// Reports a second definition of a variable.
    fn once(&mut self, seen: &mut HashMap<&'a str, Span>, name: &'a str, at: Span) {
        if let Some(first) = seen.insert(name, at) {
            let d = Diagnostic::error(format!("variable '${name}' multiply defined"), at).at("defined again");
            self.report.push(d.label("first defined here", first));
        }
    }
    fn define(&mut self, body: &mut Body<'a>, d: &Args) {
        let Some(config) = d.config else { return };
        let text = self.text(config);
        for range in args::split(text) {
            let start = config.range().start + range.start;
            let arg = text.get(range).unwrap_or("");
            let span = Span::new(config.file, start..start + arg.len());
            let word = args::words(arg).into_iter().next().unwrap_or(0..0);
            let value = arg.get(word.end..).unwrap_or("").trim();
            let name = arg
                .get(word)
                .unwrap_or("")
                .strip_prefix('$')
                .filter(|n| !n.is_empty() && n.bytes().all(is_variable));
            let Some(name) = name else {
                let d = Diagnostic::error(format!("bad variable definition '{arg}'"), span)
                    .at("expected '$NAME VALUE'");
                let word = arg.split_whitespace().next().filter(|w| w.bytes().all(is_variable));
                self.report.push(match word {
                    Some(w) => d.help(format!("did you mean '${w}'?")),
                    None => d,
                });
                continue;
            };
            if !body.variables.insert(name) {
                let d = Diagnostic::error(format!("variable '${name}' multiply defined"), span)
                    .at("defined again");
                self.report.push(d.help("a scope defines each variable once; give one of them another name"));
            } else {
                body.defines.push((name, value));
            }
        }
    }
}
