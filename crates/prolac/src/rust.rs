// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints a program as safe Rust. Expressions look like the source, names are kept, and there are few temporaries.
//!
//! Objects are structs of cells in arenas, one struct for each family of modules; pointers are indices; punned modules are
//! positions in packets; exceptions are results.

mod exprs;
mod layout;
mod methods;
mod names;
mod numbers;
mod objects;
mod places;
mod scoped;
mod statements;

use crate::optimise::{Optimisations, Raises, Report, entries, reachable, with_raises};
use crate::program::{FeatureKind, FieldId, MethodId, MethodKind, ModuleId, Program, SlotId, Type};
use crate::tree::{Callee, ExprKind, Local, LocalId, visits};
use names::Names;
use scoped::Scoped;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The part that all programs have.
const RUNTIME: &str = include_str!("rust/runtime.txt");

/// The return value of the function that is being printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ret {
    /// The value itself.
    Plain,
    /// A result, because it may raise an exception.
    Result,
}

/// A program being printed.
pub(super) struct Printer<'a> {
    p: &'a Program,
    names: Names,
    raises: Raises,
    optimisations: Optimisations,
    instantiated: BTreeSet<ModuleId>,
    /// The dynamic calls, by the module of the receiver's type.
    dispatches: BTreeMap<ModuleId, BTreeSet<SlotId>>,
    /// The families whose objects know their module.
    kinds: BTreeSet<ModuleId>,
    /// The variables of the current method.
    locals: &'a [Local],
    variables: BTreeMap<LocalId, String>,
    ret: Ret,
    /// The name of the current method, and the functions that `outline` takes out of it.
    current: String,
    outlined: Vec<String>,
    /// The fields that only constructors assign to.
    fixed: BTreeSet<FieldId>,
    scoped: Scoped,
    /// The objects that fixed fields of the current method's object point to: the variable and its value. `None` where they are
    /// looked up at each use.
    held: Option<BTreeMap<String, String>>,
    /// The parameters of the current method, and of the methods in place of calls, that are references.
    references: BTreeSet<LocalId>,
}

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The Rust source.
    pub text: String,
    /// The effects of the optimisations.
    pub report: Report,
}

/// Compiles a program without errors to Rust.
pub fn compile(program: &Program, optimisations: Optimisations) -> Compiled {
    let compiled = crate::with_stack(|| {
        let before = visits();
        let (optimised, mut report, raises) = with_raises(program, optimisations);
        let scoped = if optimisations.inline { Scoped::new(program) } else { Scoped::default() };
        let text = Printer::new(&optimised, optimisations, scoped, raises).program();
        report.visits = visits() - before;
        Compiled { text, report }
    });
    compiled.unwrap_or(Compiled { text: String::new(), report: Report::default() })
}

/// The fields that only constructors assign to.
fn fixed(p: &Program) -> BTreeSet<FieldId> {
    // Bytes of packets may change at any time.
    let is_cell = |f: &FieldId| p.field(*f).place.is_none();
    let mut all: BTreeSet<FieldId> = (0..p.fields.len()).map(FieldId).filter(is_cell).collect();
    for m in p.methods.iter().filter(|m| !matches!(m.kind, MethodKind::Constructor)) {
        m.body.walk(&mut |e| {
            if let ExprKind::Assign { place, .. } | ExprKind::Step { place, .. } = &e.kind
                && let ExprKind::Field { field, .. } = &place.kind
            {
                all.remove(field);
            }
        });
    }
    all
}

impl<'a> Printer<'a> {
    fn new(p: &'a Program, optimisations: Optimisations, scoped: Scoped, raises: Raises) -> Printer<'a> {
        Printer {
            p,
            names: Names::new(p),
            optimisations,
            instantiated: raises.instantiated.clone(),
            raises,
            dispatches: BTreeMap::new(),
            kinds: BTreeSet::new(),
            locals: &[],
            variables: BTreeMap::new(),
            ret: Ret::Plain,
            current: String::new(),
            outlined: Vec::new(),
            fixed: if optimisations.inline { fixed(p) } else { BTreeSet::new() },
            scoped,
            held: None,
            references: BTreeSet::new(),
        }
    }

    fn root(&self, module: ModuleId) -> ModuleId {
        self.p.module(module).root
    }

    fn is_punned(&self, module: ModuleId) -> bool {
        self.p.module(module).punned.is_some()
    }

    /// The families whose objects are structs, with the modules that objects may have.
    fn families(&self) -> BTreeMap<ModuleId, Vec<ModuleId>> {
        let mut all: BTreeMap<ModuleId, Vec<ModuleId>> = BTreeMap::new();
        for (i, m) in self.p.modules.iter().enumerate() {
            if m.root == ModuleId(i) && !self.p.family(m.root).iter().all(|m| self.is_punned(*m)) {
                all.insert(m.root, Vec::new());
            }
        }
        for m in self.instantiated.iter().filter(|m| !self.is_punned(**m)) {
            all.entry(self.root(*m)).or_default().push(*m);
        }
        all
    }

    fn program(mut self) -> String {
        let reachable = reachable(self.p, &self.instantiated);
        self.find_dispatches(&reachable);
        let modules = self.modules(&reachable);
        let mut out =
            String::from("// Compiled from Prolac by castanet. Changes belong into the Prolac source.\n\n");
        out.push_str("pub use runtime::*;\npub use std::cell::Cell;\npub use std::convert::Infallible;\n\n");
        self.host(&mut out);
        self.exception(&mut out);
        let families = self.families();
        for (root, members) in &families {
            self.family(&mut out, *root, members);
        }
        self.state(&mut out, &families);
        out.push_str(&modules);
        let mut out = layout::indented(&out);
        out.push('\n');
        out.push_str(RUNTIME);
        out
    }

    fn find_dispatches(&mut self, reachable: &BTreeSet<MethodId>) {
        let (mut dispatches, mut kinds) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeSet::new());
        for m in reachable {
            self.p.method(*m).body.walk(&mut |e| match &e.kind {
                ExprKind::Call { callee: Callee::Dynamic(slot, module), .. } => {
                    dispatches.entry(*module).or_default().insert(*slot);
                    kinds.insert(self.root(*module));
                }
                ExprKind::Downcast(module, _) => {
                    kinds.insert(self.root(*module));
                }
                _ => {}
            });
        }
        (self.dispatches, self.kinds) = (dispatches, kinds);
    }

    fn host(&self, out: &mut String) {
        out.push_str("/// The functions that the host provides.\npub trait Host: Sized {\n");
        for (h, name) in self.p.hosts.iter().zip(&self.names.hosts) {
            let mut taken: BTreeSet<String> = ["cx".to_string()].into();
            let params: String = h
                .params
                .iter()
                .map(|(n, ty)| {
                    format!(", {}: {}", names::unique(&mut taken, names::snake(n)), self.host_type(ty))
                })
                .collect();
            let result =
                if h.result == Type::Void { String::new() } else { format!(" -> {}", self.ty(&h.result)) };
            let _ = writeln!(out, "/// `{}`.\nfn {name}(&self, cx: &Cx<'_, Self>{params}){result};", h.name);
        }
        out.push_str("}\n\n");
    }

    /// The type of a parameter of a host function.
    fn host_type(&self, ty: &Type) -> String {
        match ty {
            Type::Text => "&str".into(),
            ty => self.ty(ty),
        }
    }

    fn exception(&self, out: &mut String) {
        out.push_str("/// The exceptions of the program.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum Exception {\n");
        for (i, e) in self.p.exceptions.iter().enumerate() {
            let name = &self.names.exceptions[&crate::program::ExceptionId(i)];
            let _ = writeln!(out, "/// `{}.{}`.\n{name},", self.p.module(e.module).name, e.name);
        }
        out.push_str("}\n\n");
    }

    /// The Rust modules: constants, creation of objects, methods, and choices between definitions.
    fn modules(&mut self, reachable: &BTreeSet<MethodId>) -> String {
        let mut out = String::new();
        for i in 0..self.p.modules.len() {
            let id = ModuleId(i);
            let mut constants = String::new();
            let mut functions = String::new();
            for f in &self.p.module(id).fields {
                self.accessors(&mut functions, *f);
            }
            let own: Vec<MethodId> =
                reachable.iter().copied().filter(|m| self.p.method(*m).module == id).collect();
            for m in own {
                match self.p.method(m).kind {
                    MethodKind::Constant => self.constant(&mut constants, m),
                    _ => self.method(&mut functions, m),
                }
            }
            if self.instantiated.contains(&id) && !self.is_punned(id) {
                self.creation(&mut functions, id);
            }
            for slot in self.dispatches.get(&id).cloned().unwrap_or_default() {
                self.dispatch(&mut functions, id, slot);
            }
            if constants.is_empty() && functions.is_empty() {
                continue;
            }
            let name = &self.p.module(id).name;
            let _ = writeln!(out, "/// The module `{name}`.\npub mod {} {{", self.names.modules[&id]);
            if !functions.is_empty() {
                out.push_str("use super::*;\n\n");
            }
            out.push_str(&constants);
            out.push_str(functions.trim_end());
            out.push_str("\n}\n\n");
        }
        out
    }

    /// A type in Rust.
    pub(super) fn ty(&self, ty: &Type) -> String {
        match ty {
            Type::Never => "Infallible".into(),
            Type::Void | Type::Unknown | Type::NoneValue => "()".into(),
            Type::Bool => "bool".into(),
            Type::Int(i) => format!("{}{}", if i.signed { "i" } else { "u" }, i.bits),
            Type::Seq => "u32".into(),
            Type::Text => "&'static str".into(),
            Type::Bytes => "Bytes".into(),
            Type::Pointer(view) | Type::Object(view) => {
                let module = self.p.view(*view).module;
                let root = self.root(module);
                match (self.is_punned(module), ty) {
                    (true, _) => "Bytes".into(),
                    (_, Type::Pointer(_)) if self.scoped.has(root) => {
                        format!("&'a {}", self.struct_type(root))
                    }
                    (_, Type::Pointer(_)) => format!("Ptr<{}>", self.names.structs[&root]),
                    _ => format!("&{}", self.struct_type(root)),
                }
            }
            Type::Optional(inner) => format!("Option<{}>", self.ty(inner)),
            Type::Array(element, n) => format!("[{}; {n}]", self.ty(element)),
        }
    }

    /// Whether the host may call a method.
    pub(super) fn is_entry(&self, id: MethodId) -> bool {
        self.p.exports.iter().any(|m| entries(self.p, *m).contains(&id))
    }

    /// The name by which the most derived definition of a method is called in its module.
    pub(super) fn visible_name(&self, module: ModuleId, slot: SlotId) -> String {
        let view = self.p.view(self.p.module(module).inner);
        let name = view.features.iter().find_map(|(k, f)| match f.kind {
            FeatureKind::Method(m) if self.p.method(m).slot == slot => Some(k.clone()),
            _ => None,
        });
        names::snake(&name.unwrap_or_else(|| format!("slot{}", slot.0)))
    }
}

/// Whether a text has a word.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word).any(|(i, _)| {
        let before = text.get(..i).and_then(|t| t.chars().next_back());
        let after = text.get(i + word.len()..).and_then(|t| t.chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}
