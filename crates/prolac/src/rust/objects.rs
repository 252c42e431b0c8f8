// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structs: the objects of each family, and the state of a program.

use super::Printer;
use crate::program::{Field, FieldId, MethodId, MethodKind, ModuleId, Type};
use crate::tree::{ExprKind, LocalId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

impl Printer<'_> {
    /// The type of the objects of a family.
    pub(super) fn struct_type(&self, root: ModuleId) -> String {
        let lifetime = if self.scoped.has_references(root) { "<'a>" } else { "" };
        format!("{}{lifetime}", self.names.structs[&root])
    }
    /// Whether a field is a reference, and not an index.
    pub(super) fn is_reference(&self, field: &Field) -> bool {
        self.scoped.is_reference(self.p, field.module, &field.ty)
    }

    /// Whether a method takes a reference in place of the index that a pointer is. Constructors of objects with references do.
    pub(super) fn takes_reference(&self, method: MethodId, parameter: usize) -> bool {
        let m = self.p.method(method);
        let is_constructor = m.kind == MethodKind::Constructor;
        is_constructor
            && !m.locals[parameter].assigned
            && m.params.get(parameter).is_some_and(|ty| self.scoped.is_reference(self.p, m.module, ty))
    }
    /// The parameters that are references, of a method and of the methods in place of calls.
    pub(super) fn references(&self, method: MethodId) -> BTreeSet<LocalId> {
        let m = self.p.method(method);
        let own = (0..m.params.len()).filter(|n| self.takes_reference(method, *n)).map(LocalId);
        let mut all: BTreeSet<LocalId> = own.collect();
        m.body.walk(&mut |e| {
            if let ExprKind::Inlined { method, args, .. } = &e.kind {
                // The variables of parameters follow that of the object, if it has one.
                let first = args.len() - self.p.method(*method).params.len();
                let params = args.iter().skip(first).enumerate();
                let taken = params.filter(|(n, _)| self.takes_reference(*method, *n));
                all.extend(taken.map(|(_, (local, _))| *local));
            }
        });
        all
    }
    /// The type of a reference to the objects that pointers of a type lead to.
    pub(super) fn reference_to(&self, ty: &Type) -> String {
        let root = self.p.target(ty).map(|m| self.root(m));
        root.map_or(String::new(), |root| format!("&'a {}", self.struct_type(root)))
    }

    /// The struct of a family: the fields of all modules that its objects may have.
    pub(super) fn family(&self, out: &mut String, root: ModuleId, members: &[ModuleId]) {
        let name = &self.names.structs[&root];
        let of: Vec<ModuleId> = self
            .p
            .family(root)
            .into_iter()
            .filter(|m| members.is_empty() || members.iter().any(|i| self.p.extends(*i, *m)))
            .collect();
        let fields: Vec<FieldId> = of.iter().flat_map(|m| self.p.module(*m).fields.clone()).collect();
        let list: Vec<_> = of.iter().map(|m| format!("`{}`", self.p.module(*m).name)).collect();
        let in_arena = !self.scoped.has(root);
        let _ =
            writeln!(out, "/// Objects of {}.\npub struct {} {{", list.join(", "), self.struct_type(root));
        if in_arena {
            let _ = writeln!(out, "/// The pointer to the object itself.\npub id: Cell<Ptr<{name}>>,");
            out.push_str("/// Whether the object has not ended.\npub live: Cell<bool>,\n");
        }
        let kinds = self.kinds.contains(&root);
        if kinds {
            let _ = writeln!(out, "/// The module.\npub kind: Cell<{name}Kind>,");
        }
        for f in &fields {
            let field = self.p.field(*f);
            let module = &self.p.module(field.module).name;
            let ty = self.field_type(field);
            let _ = writeln!(out, "/// `{module}.{}`.\npub {}: {ty},", field.name, self.names.fields[f]);
        }
        out.push_str("}\n\n");
        self.blank(out, root, &fields);
        if in_arena {
            self.arena_object(out, name, &fields);
        }
        if kinds {
            let _ = writeln!(
                out,
                "/// The modules of `{name}`.\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]"
            );
            let _ = writeln!(
                out,
                "pub enum {name}Kind {{\n/// None: the object was never created.\n#[default]\nBlank,"
            );
            for m in members {
                let _ = writeln!(out, "/// `{}`.\n{},", self.p.module(*m).name, self.names.kinds[m]);
            }
            out.push_str("}\n\n");
        }
    }

    fn field_type(&self, field: &Field) -> String {
        match &field.ty {
            Type::Array(element, n) => format!("[Cell<{}>; {n}]", self.ty(element)),
            Type::Pointer(view) if self.is_reference(field) => {
                format!("Cell<&'a {}>", self.struct_type(self.root(self.p.view(*view).module)))
            }
            ty => format!("Cell<{}>", self.ty(ty)),
        }
    }

    /// The function that makes an object whose fields were never set.
    fn blank(&self, out: &mut String, root: ModuleId, fields: &[FieldId]) {
        let name = &self.names.structs[&root];
        let head = match (self.scoped.has(root), self.scoped.has_references(root)) {
            (false, _) => format!("impl Object for {name} {{\nfn blank() -> {name} {{\n"),
            (true, false) => format!("impl Default for {name} {{\nfn default() -> {name} {{\n"),
            (true, true) => format!(
                "impl<'a> {name}<'a> {{\n/// An object whose fields were never set.\npub fn blank(state: &'a State) -> {name}<'a> {{\n"
            ),
        };
        let _ = writeln!(out, "{head}{name} {{");
        if !self.scoped.has(root) {
            out.push_str("id: Cell::default(),\nlive: Cell::default(),\n");
        }
        if self.kinds.contains(&root) {
            out.push_str("kind: Cell::default(),\n");
        }
        for f in fields {
            let field = self.p.field(*f);
            let value = match &field.ty {
                Type::Array(..) => "std::array::from_fn(|_| Cell::default())".to_string(),
                Type::Pointer(view) if self.is_reference(field) => {
                    let target = self.root(self.p.view(*view).module);
                    let place = &self.names.arenas[&target];
                    match self.scoped.has(target) {
                        true => format!("Cell::new(&state.{place})"),
                        false => format!("Cell::new(state.{place}.at(Ptr::default()))"),
                    }
                }
                _ => "Cell::default()".to_string(),
            };
            let _ = writeln!(out, "{}: {value},", self.names.fields[f]);
        }
        out.push_str(if self.scoped.has(root) { "}\n}\n}\n\n" } else { "}\n}\n" });
    }

    /// The rest of what makes a struct an object of an arena.
    fn arena_object(&self, out: &mut String, name: &str, fields: &[FieldId]) {
        out.push_str("fn clear(&self) {\n");
        for f in fields {
            let name = &self.names.fields[f];
            let _ = match self.p.field(*f).ty {
                Type::Array(..) => {
                    writeln!(out, "self.{name}.iter().for_each(|c| c.set(Default::default()));")
                }
                _ => writeln!(out, "self.{name}.set(Default::default());"),
            };
        }
        let _ = writeln!(out, "}}\nfn id(&self) -> &Cell<Ptr<{name}>> {{\n&self.id\n}}");
        out.push_str("fn live(&self) -> &Cell<bool> {\n&self.live\n}\n}\n\n");
    }

    pub(super) fn state(&self, out: &mut String, families: &BTreeMap<ModuleId, Vec<ModuleId>>) {
        out.push_str("/// All objects of a program.\n#[derive(Default)]\npub struct State {\n");
        for root in families.keys() {
            let (name, arena) = (&self.names.structs[root], &self.names.arenas[root]);
            let _ = match (self.scoped.has(*root), self.scoped.is_referenced(*root)) {
                (false, _) => writeln!(out, "/// Objects of `{name}`.\npub {arena}: Arena<{name}>,"),
                (_, true) => writeln!(
                    out,
                    "/// The `{name}` that pointers lead to before they are set.\npub {arena}: {name},"
                ),
                _ => Ok(()),
            };
        }
        out.push_str(
            "}\n\n/// Context of every method: the host, the objects, and the packets of the current call.\n",
        );
        out.push_str("pub struct Cx<'a, H: Host> {\n/// The host.\npub host: &'a H,\n/// The objects.\npub state: &'a State,\n");
        out.push_str("/// The packets.\npub packets: Packets<'a>,\n}\n\nimpl<'a, H: Host> Cx<'a, H> {\n");
        for root in families.keys().filter(|root| !self.scoped.has(**root)) {
            let (name, arena) = (&self.names.structs[root], &self.names.arenas[root]);
            let _ = writeln!(out, "/// The object that a pointer points to.\n#[inline]");
            let _ = writeln!(out, "pub fn {arena}(&self, pointer: Ptr<{name}>) -> &'a {name} {{");
            let _ = writeln!(out, "self.state.{arena}.at(pointer)\n}}");
        }
        out.push_str("}\n\n");
    }
}
