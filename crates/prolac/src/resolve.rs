// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the items of a program to its modules: names of modules, hookups, inheritance, features. Types and bodies come
//! later ([`crate::check`]), so that source order does not matter.

mod build;
mod operators;

use crate::load::Loaded;
use crate::program::{Exception, Field, ModuleId, Program, Type, View, ViewId};
use crate::syntax::ast::{FieldDecl, HostDecl, Item, Member, MethodDecl, ModuleDecl, ModuleExpr, Path};
use castanet_diagnostic::{Diagnostic, Span};
use std::collections::BTreeMap;

/// The entity that a name of the outermost namespaces denotes, by its index in the vector of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entity {
    Module(usize),
    HookName(usize),
    Alias(usize),
}

/// A declaration and the namespace around it.
pub(crate) struct Declared<T> {
    pub decl: T,
    /// The namespaces whose braces enclose the declaration, with dots.
    pub context: String,
}

struct HookName {
    name: String,
    target: ModuleExpr,
    /// The modules that hook themselves up, in order.
    chain: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Building,
    Built(Option<ModuleId>),
}

/// A method with its declaration, for [`crate::check`].
pub(crate) struct MethodSource {
    pub decl: MethodDecl,
    /// The namespace around the declaration, for names of modules.
    pub context: String,
}

pub(crate) struct Resolver {
    pub program: Program,
    pub diagnostics: Vec<Diagnostic>,
    names: BTreeMap<String, (Entity, Span)>,
    modules: Vec<Declared<Option<ModuleDecl>>>,
    states: Vec<State>,
    /// The number of ancestors of each module, by [`ModuleId`].
    ancestors: Vec<usize>,
    /// Whether a chain of modules is too long, which is reported once.
    too_long: bool,
    aliases: Vec<Declared<ModuleExpr>>,
    alias_views: Vec<Option<ViewId>>,
    hook_names: Vec<Declared<HookName>>,
    /// Methods that are defined outside their modules: the names after the module's, and the declaration.
    outside: Vec<Vec<Declared<(String, MethodDecl)>>>,
    exports: Vec<Declared<Path>>,
    pub hosts: Vec<Declared<HostDecl>>,
    /// The declarations of the methods, by [`crate::program::MethodId`].
    pub sources: Vec<MethodSource>,
    /// The declarations of the fields, by [`crate::program::FieldId`], and the namespaces around their modules.
    pub field_sources: Vec<(FieldDecl, String)>,
}

/// The namespaces that enclose a name, from the innermost to the outermost, which is empty.
pub(crate) fn enclosing(context: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(context), |c| (!c.is_empty()).then(|| c.rsplit_once('.').map_or("", |s| s.0)))
}

pub(crate) fn joined(context: &str, name: &str) -> String {
    if context.is_empty() { name.to_string() } else { format!("{context}.{name}") }
}

/// The name that is most like `name`.
pub(crate) fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let score = |other: &str| strsim::osa_distance(&name.to_lowercase(), &other.to_lowercase());
    let limit = (name.chars().count() / 3).max(1);
    all.map(|n| (score(n), n)).filter(|(d, n)| *d <= limit && *n != name).min().map(|(_, n)| n)
}

/// Resolves the modules of a program.
pub(crate) fn resolve(loaded: Loaded) -> Resolver {
    let mut r = Resolver {
        program: Program { extensions: loaded.extensions, ..Program::default() },
        diagnostics: loaded.diagnostics,
        names: BTreeMap::new(),
        modules: Vec::new(),
        states: Vec::new(),
        ancestors: Vec::new(),
        too_long: false,
        aliases: Vec::new(),
        alias_views: Vec::new(),
        hook_names: Vec::new(),
        outside: Vec::new(),
        exports: Vec::new(),
        hosts: Vec::new(),
        sources: Vec::new(),
        field_sources: Vec::new(),
    };
    let mut methods = Vec::new();
    r.collect(loaded.items, "", &mut methods);
    r.states = vec![State::Waiting; r.modules.len()];
    r.alias_views = vec![None; r.aliases.len()];
    r.outside = r.modules.iter().map(|_| Vec::new()).collect();
    r.chain_hookups();
    r.attach(methods);
    for index in 0..r.modules.len() {
        r.build(index, 0);
    }
    for index in 0..r.aliases.len() {
        r.alias_view(index, 0);
    }
    r.exports();
    r
}

impl Resolver {
    pub(crate) fn report(&mut self, d: Diagnostic) {
        self.diagnostics.push(d);
    }

    fn declare(&mut self, name: String, entity: Entity, span: Span) {
        if let Some((_, first)) = self.names.get(&name) {
            let d = Diagnostic::error(format!("'{name}' is declared twice"), span).at("declared again");
            let first = *first;
            self.report(d.label("first declared here", first));
            return;
        }
        self.names.insert(name, (entity, span));
    }

    /// Collects the declarations of a namespace.
    fn collect(&mut self, items: Vec<Item>, context: &str, methods: &mut Vec<Declared<MethodDecl>>) {
        for item in items {
            let context = context.to_string();
            match item {
                Item::Module(decl) => {
                    let (name, span) = (joined(&context, &decl.name.text()), decl.name.span);
                    self.declare(name, Entity::Module(self.modules.len()), span);
                    self.modules.push(Declared { decl: Some(decl), context });
                }
                Item::Alias(name, decl) => {
                    let full = joined(&context, &name.text());
                    self.declare(full, Entity::Alias(self.aliases.len()), name.span);
                    self.aliases.push(Declared { decl, context });
                }
                Item::HookName(name, target) => {
                    let full = joined(&context, &name.text());
                    self.declare(full.clone(), Entity::HookName(self.hook_names.len()), name.span);
                    let decl = HookName { name: full, target, chain: Vec::new() };
                    self.hook_names.push(Declared { decl, context });
                }
                Item::Namespace(name, items) => self.collect(items, &joined(&context, &name.text), methods),
                Item::Method(decl) => methods.push(Declared { decl, context }),
                Item::Export(paths) => {
                    self.exports
                        .extend(paths.into_iter().map(|decl| Declared { decl, context: context.clone() }));
                }
                Item::Host(decl) => self.hosts.push(Declared { decl, context }),
                // The loader replaces these by the items of their files.
                Item::Include(_) | Item::Extension(..) => {}
            }
        }
    }

    /// The full name and the entity that a path denotes.
    fn entity(&self, context: &str, path: &Path) -> Option<(String, Entity)> {
        let text = path.text();
        let contexts: Vec<&str> = if path.global { vec![""] } else { enclosing(context).collect() };
        contexts.into_iter().find_map(|c| {
            let full = joined(c, &text);
            self.names.get(&full).map(|(e, _)| (full, *e))
        })
    }

    /// The module, or the other name of one, in whose declaration an operator that hides stands: modules do not lie in each other.
    pub(crate) fn hidden_by(&self, operator: Span) -> String {
        let before = |span: &Span| span.file == operator.file && span.start < operator.start;
        let declared = self.names.iter().filter(|(_, (_, span))| before(span));
        let last = declared.max_by_key(|(_, (_, span))| span.start);
        last.map_or("hidden by this operator".into(), |(name, _)| format!("hidden by '{name}'"))
    }

    /// Reports that a path denotes no module.
    fn unknown_module(&mut self, path: &Path) {
        let text = path.text();
        let d = Diagnostic::error(format!("unknown module '{text}'"), path.span).at("not declared");
        let d = match nearest(&text, self.names.keys().map(String::as_str)) {
            Some(name) => d.did_you_mean(name),
            None => d.help("modules are declared by: module NAME { … }"),
        };
        self.report(d);
    }

    /// Notes which modules hook themselves up to which names, in the order of the source.
    fn chain_hookups(&mut self) {
        for index in 0..self.modules.len() {
            let declared = &self.modules[index];
            let Some(parent) = declared.decl.as_ref().and_then(|d| d.parent.as_ref()).filter(|p| p.hookup)
            else {
                continue;
            };
            let (path, context) = (parent.module.path.clone(), declared.context.clone());
            match self.entity(&context, &path) {
                Some((_, Entity::HookName(hook))) => self.add_hookup(hook, index, &path),
                Some((name, _)) => {
                    let d = Diagnostic::error(format!("'{name}' is no name to hook up to"), path.span);
                    let help = format!("declare a name for it: hookup NAME :> {name};");
                    self.report(d.at("this is a module").help(help));
                }
                None => self.unknown_module(&path),
            }
        }
    }

    fn add_hookup(&mut self, hook: usize, module: usize, path: &Path) {
        let place = |m: usize| self.modules[m].decl.as_ref().map(|d| d.span);
        let file = path.span.file;
        let same_file =
            self.hook_names[hook].decl.chain.iter().filter_map(|m| place(*m)).find(|s| s.file == file);
        if let Some(first) = same_file {
            let name = &self.hook_names[hook].decl.name;
            let d = Diagnostic::error(format!("two modules of a file hook up to '{name}'"), path.span);
            let d = d.at("hooked up again").label("hooked up here", first);
            self.report(
                d.help("the order within a file has no meaning; extend the first module by name instead"),
            );
            return;
        }
        self.hook_names[hook].decl.chain.push(module);
    }

    /// Gives the methods that are defined outside modules to their modules.
    fn attach(&mut self, methods: Vec<Declared<MethodDecl>>) {
        for method in methods {
            let parts = method.decl.path.parts.len();
            let prefix = |n: usize| {
                let mut path = method.decl.path.clone();
                path.parts.truncate(n);
                path
            };
            let found =
                (1..parts).rev().find_map(|n| self.entity(&method.context, &prefix(n)).map(|e| (n, e)));
            let span = method.decl.path.span;
            match found {
                Some((n, (_, Entity::Module(module)))) => {
                    let rest: Vec<_> =
                        method.decl.path.parts.iter().skip(n).map(|p| p.text.clone()).collect();
                    let decl = (rest.join("."), method.decl);
                    self.outside[module].push(Declared { decl, context: method.context });
                }
                Some((_, (name, _))) => {
                    let d = Diagnostic::error(format!("'{name}' is another name of a module"), span);
                    self.report(
                        d.at("a method is defined here").help("define the method in the module itself"),
                    );
                }
                None if parts == 1 => {
                    let d = Diagnostic::error("method outside a module", span).at("belongs to no module");
                    self.report(d.help(format!("write MODULE.{} ::= …", method.decl.path.text())));
                }
                None => self.unknown_module(&prefix(parts - 1)),
            }
        }
    }

    /// The view that a path to a module denotes, with operators applied. Reports errors.
    pub(crate) fn module_view(&mut self, context: &str, module: &ModuleExpr, depth: usize) -> Option<ViewId> {
        let Some((_, entity)) = self.entity(context, &module.path) else {
            self.unknown_module(&module.path);
            return None;
        };
        let view = self.entity_view(entity, depth)?;
        Some(self.with_operators(view, &module.ops))
    }

    /// The view that a path of a whole name denotes, if it denotes a module.
    pub(crate) fn find_module(&mut self, context: &str, path: &Path) -> Option<ViewId> {
        let (_, entity) = self.entity(context, path)?;
        self.entity_view(entity, 0)
    }

    /// Whether a path is the name of a module, even of one that errors have left out.
    pub(crate) fn is_declared(&self, context: &str, path: &Path) -> bool {
        self.entity(context, path).is_some()
    }

    /// Whether some module's name begins with this path.
    pub(crate) fn is_namespace(&self, context: &str, path: &Path) -> bool {
        let text = path.text();
        let contexts: Vec<&str> = if path.global { vec![""] } else { enclosing(context).collect() };
        contexts.into_iter().any(|c| {
            let prefix = format!("{}.", joined(c, &text));
            self.names.range(prefix.clone()..).next().is_some_and(|(name, _)| name.starts_with(&prefix))
        })
    }

    fn entity_view(&mut self, entity: Entity, depth: usize) -> Option<ViewId> {
        match entity {
            Entity::Module(index) => self.build(index, depth).map(|m| self.program.module(m).outer),
            Entity::Alias(index) => self.alias_view(index, depth),
            Entity::HookName(index) => match self.hook_names[index].decl.chain.last() {
                Some(last) => self.build(*last, depth).map(|m| self.program.module(m).outer),
                None => self.hook_target(index, depth),
            },
        }
    }

    /// The module that a name to hook up to denotes before any module hooks up.
    fn hook_target(&mut self, index: usize, depth: usize) -> Option<ViewId> {
        let (target, context) =
            (self.hook_names[index].decl.target.clone(), self.hook_names[index].context.clone());
        if self.too_deep(depth, target.path.span) {
            return None;
        }
        self.module_view(&context, &target, depth + 1)
    }

    fn alias_view(&mut self, index: usize, depth: usize) -> Option<ViewId> {
        if let Some(view) = self.alias_views[index] {
            return Some(view);
        }
        let (module, context) = (self.aliases[index].decl.clone(), self.aliases[index].context.clone());
        if self.too_deep(depth, module.path.span) {
            return None;
        }
        let view = self.module_view(&context, &module, depth + 1)?;
        self.alias_views[index] = Some(view);
        Some(view)
    }

    fn exports(&mut self) {
        let exports = std::mem::take(&mut self.exports);
        for e in &exports {
            let module = ModuleExpr { path: e.decl.clone(), ops: Vec::new() };
            if let Some(view) = self.module_view(&e.context, &module, 0) {
                let id = self.program.view(view).module;
                if !self.program.exports.contains(&id) {
                    self.program.exports.push(id);
                }
            }
        }
        if exports.is_empty() {
            let leaves =
                (0..self.program.modules.len()).filter(|m| self.program.modules[*m].children.is_empty());
            self.program.exports = leaves.map(ModuleId).collect();
        }
    }

    pub(crate) fn add_view(&mut self, view: View) -> ViewId {
        self.program.views.push(view);
        ViewId(self.program.views.len() - 1)
    }
}

/// The members of a module with their full names.
fn flatten(members: Vec<Member>, context: &str, out: &mut Vec<(String, Member)>) {
    for member in members {
        match member {
            Member::Namespace(name, members) => flatten(members, &joined(context, &name.text), out),
            Member::Exceptions(names) => {
                for name in names {
                    out.push((joined(context, &name.text), Member::Exceptions(vec![name])));
                }
            }
            Member::Field(f) => out.push((joined(context, &f.name.text), Member::Field(f))),
            Member::Method(m) => out.push((joined(context, &m.path.text()), Member::Method(m))),
        }
    }
}

fn new_field(name: &str, module: ModuleId, span: Span) -> Field {
    Field { name: name.into(), module, ty: Type::Unknown, span, place: None }
}

fn new_exception(name: &str, module: ModuleId, span: Span) -> Exception {
    Exception { name: name.into(), module, span }
}
