// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of modules, methods, fields and variables in Rust: those of the source in Rust's spelling, made unique.

use crate::program::{ExceptionId, FieldId, MethodId, MethodKind, ModuleId, Program};
use crate::tree::{Local, LocalId};
use std::collections::{BTreeMap, BTreeSet};

const KEYWORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false",
    "fn", "for", "gen", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where",
    "while", "abstract", "become", "box", "do", "final", "macro", "override", "priv", "try", "typeof",
    "unsized", "virtual", "yield", "union", "dyn",
];

/// Variables that the compiler introduces, and what the prelude names.
const TAKEN: &[&str] = &["cx", "this", "place", "old", "index", "at", "attempt", "error", "runtime"];

/// A name of the source in lower case with underscores.
pub(super) fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        if c != '_' || !out.ends_with('_') {
            out.push(c);
        }
    }
    let out = out.trim_matches('_').to_string();
    match out.as_str() {
        "" => "x".into(),
        word if KEYWORDS.contains(&word) => format!("{word}_"),
        _ => out,
    }
}

/// A name of the source as a type.
pub(super) fn camel(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let out: String = words
        .map(|w| {
            let (first, rest) = w.split_at(1);
            let rest = if rest.chars().any(|c| c.is_ascii_lowercase()) {
                rest.into()
            } else {
                rest.to_ascii_lowercase()
            };
            first.to_ascii_uppercase() + &rest
        })
        .collect();
    if out.is_empty() || matches!(out.as_str(), "Self" | "Option" | "Result" | "Ok" | "Err" | "Some" | "None")
    {
        format!("{out}Module")
    } else {
        out
    }
}

/// Makes a name unique among those that are taken.
pub(super) fn unique(taken: &mut BTreeSet<String>, name: String) -> String {
    let mut out = name.clone();
    let mut n = 2;
    while !taken.insert(out.clone()) {
        out = format!("{name}{n}");
        n += 1;
    }
    out
}

/// The names of everything but variables.
pub(super) struct Names {
    pub modules: BTreeMap<ModuleId, String>,
    /// The structs of the families, by the root modules.
    pub structs: BTreeMap<ModuleId, String>,
    /// The accessors of the families in the context, by the root modules.
    pub arenas: BTreeMap<ModuleId, String>,
    pub methods: BTreeMap<MethodId, String>,
    pub fields: BTreeMap<FieldId, String>,
    /// The functions that read and write fields over bytes.
    pub accessors: BTreeMap<FieldId, (String, String)>,
    pub exceptions: BTreeMap<ExceptionId, String>,
    pub kinds: BTreeMap<ModuleId, String>,
    pub hosts: Vec<String>,
}

impl Names {
    pub fn new(p: &Program) -> Names {
        let mut n = Names {
            modules: BTreeMap::new(),
            structs: BTreeMap::new(),
            arenas: BTreeMap::new(),
            methods: BTreeMap::new(),
            fields: BTreeMap::new(),
            accessors: BTreeMap::new(),
            exceptions: BTreeMap::new(),
            kinds: BTreeMap::new(),
            hosts: Vec::new(),
        };
        let mut modules: BTreeSet<String> =
            ["runtime", "std", "core"].iter().map(|s| s.to_string()).collect();
        let reserved =
            ["Host", "Exception", "State", "Cx", "Ptr", "Bytes", "Cell", "Arena", "Scope", "Infallible"];
        let mut structs: BTreeSet<String> = reserved.iter().map(|s| s.to_string()).collect();
        let mut arenas: BTreeSet<String> =
            ["host", "state", "packets"].iter().map(|s| s.to_string()).collect();
        for (i, m) in p.modules.iter().enumerate() {
            let id = ModuleId(i);
            n.modules.insert(id, unique(&mut modules, snake(&m.name)));
            n.kinds.insert(id, camel(&m.name));
            if m.root == id {
                // A family is called by its only most derived module, or by its root.
                let leaf = p.module(p.punned_object(id)).name.clone();
                let short = leaf.rsplit('.').next().unwrap_or(&leaf).to_string();
                let name = if structs.contains(&camel(&short)) { leaf } else { short };
                n.structs.insert(id, unique(&mut structs, camel(&name)));
                n.arenas.insert(id, unique(&mut arenas, snake(&name)));
            }
        }
        n.members(p);
        let mut hosts = BTreeSet::new();
        n.hosts = p.hosts.iter().map(|h| unique(&mut hosts, snake(&h.name))).collect();
        let mut exceptions = BTreeSet::new();
        for (i, e) in p.exceptions.iter().enumerate() {
            let short = camel(&e.name);
            let name = match exceptions.contains(&short) {
                true => camel(&format!("{}.{}", p.module(e.module).name, e.name)),
                false => short,
            };
            n.exceptions.insert(ExceptionId(i), unique(&mut exceptions, name));
        }
        n
    }

    fn members(&mut self, p: &Program) {
        let mut methods: BTreeMap<ModuleId, BTreeSet<String>> = BTreeMap::new();
        let mut constants: BTreeMap<ModuleId, BTreeSet<String>> = BTreeMap::new();
        for (i, m) in p.methods.iter().enumerate() {
            // The method that answers for its namespace has the namespace's name.
            let parts: Vec<&str> = m.name.split('.').collect();
            let name = match parts.as_slice() {
                [rest @ .., a, b] if a == b => [rest, &[*a]].concat().join("."),
                _ => m.name.clone(),
            };
            let name = match m.kind {
                MethodKind::Constant => {
                    let taken = constants.entry(m.module).or_default();
                    unique(taken, snake(&name).trim_end_matches('_').to_ascii_uppercase())
                }
                _ => {
                    let taken = methods
                        .entry(m.module)
                        .or_insert_with(|| ["create"].iter().map(|s| s.to_string()).collect());
                    unique(taken, snake(&name))
                }
            };
            self.methods.insert(MethodId(i), name);
        }
        let mut fields: BTreeMap<ModuleId, BTreeSet<String>> = BTreeMap::new();
        for (i, f) in p.fields.iter().enumerate() {
            let taken = fields
                .entry(p.module(f.module).root)
                .or_insert_with(|| ["id", "live", "kind"].iter().map(|s| s.to_string()).collect());
            self.fields.insert(FieldId(i), unique(taken, snake(&f.name)));
            if f.place.is_some() {
                let (taken, name) = (methods.entry(f.module).or_default(), snake(&f.name));
                let get = unique(taken, format!("get_{}", name.trim_end_matches('_')));
                let set = unique(taken, format!("set_{}", name.trim_end_matches('_')));
                self.accessors.insert(FieldId(i), (get, set));
            }
        }
    }
}

/// The names of the variables of a method.
pub(super) fn variables(locals: &[Local], modules: &Names) -> BTreeMap<LocalId, String> {
    let mut taken: BTreeSet<String> = TAKEN.iter().map(|s| s.to_string()).collect();
    taken.extend(modules.modules.values().cloned());
    let name = |l: &Local, taken: &mut BTreeSet<String>| unique(taken, snake(&l.name));
    locals.iter().enumerate().map(|(i, l)| (LocalId(i), name(l, &mut taken))).collect()
}
