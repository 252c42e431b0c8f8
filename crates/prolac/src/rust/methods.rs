// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions: methods, constants, creation of objects, choices between definitions.

use super::exprs::Code;
use super::names::{unique, variables};
use super::{Printer, Ret, has_word};
use crate::interp::{Machine, NoHost, Value};
use crate::optimise::targets;
use crate::program::{MethodId, MethodKind, ModuleId, SlotId, Type};
use crate::tree::{Callee, Expr, ExprKind, LocalId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

impl Printer<'_> {
    /// Whether a call of a method gives a result.
    pub(super) fn may_raise(&self, callee: Callee) -> bool {
        let never = |m: MethodId| self.p.method(m).result == Type::Never;
        match callee {
            Callee::Direct(m) => never(m) || !self.raises.method(m).is_empty(),
            Callee::Dynamic(slot, module) => {
                let all = targets(self.p, &self.instantiated, slot, module);
                all.into_iter().any(|m| never(m) || !self.raises.method(m).is_empty())
            }
        }
    }

    /// The type of a function's result.
    fn signature(&self, result: &Type, raises: bool) -> String {
        match (raises, result) {
            (true, ty) => format!(" -> Result<{}, Exception>", self.ty(ty)),
            (false, Type::Void) => String::new(),
            (false, ty) => format!(" -> {}", self.ty(ty)),
        }
    }

    /// The type of the parameter for the object of a module.
    fn this_type(&self, module: ModuleId) -> String {
        match self.is_punned(module) {
            true => "Bytes".into(),
            false => format!("&{}", self.struct_type(self.root(module))),
        }
    }

    /// The head of a function: its name, the generic parameters that the parameters need, and all parameters. `cx` is the name
    /// of the context.
    fn head(&self, name: &str, cx: &str, params: &[String], result: &str) -> String {
        let (generic, lifetime) = match params.iter().any(|p| p.contains("'a")) || result.contains("'a") {
            true => ("'a, H: Host", "'a"),
            false => ("H: Host", "'_"),
        };
        let params: String = params.iter().map(|p| format!(", {p}")).collect();
        format!("fn {name}<{generic}>({cx}: &Cx<{lifetime}, H>{params}){result}")
    }

    pub(super) fn method(&mut self, out: &mut String, id: MethodId) {
        let p = self.p;
        let m = p.method(id);
        self.locals = &m.locals;
        self.variables = variables(&m.locals, &self.names);
        let raises = self.may_raise(Callee::Direct(id));
        self.ret = if raises { Ret::Result } else { Ret::Plain };
        self.references = self.references(id);
        self.current = self.names.methods[&id].clone();
        self.outlined.clear();
        let mut body = String::new();
        for n in 0..m.params.len() {
            if m.locals[n].assigned {
                let name = &self.variables[&LocalId(n)];
                let _ = writeln!(body, "let {name} = Cell::new({name});");
            }
        }
        self.held = (!matches!(m.kind, MethodKind::Constructor)).then(BTreeMap::new);
        let lines = self.lines(&m.body, Some(self.ret));
        for (name, object) in self.held.take().into_iter().flatten() {
            let _ = writeln!(body, "let {name} = {object};");
        }
        body.push_str(&lines);
        let cx = if has_word(&body, "cx") { "cx" } else { "_cx" };
        let mut params = Vec::new();
        if !matches!(m.kind, MethodKind::Static) {
            let this = if has_word(&body, "this") { "this" } else { "_this" };
            params.push(format!("{this}: {}", self.this_type(m.module)));
        }
        for (n, ty) in m.params.iter().enumerate() {
            let name = &self.variables[&LocalId(n)];
            let used = if has_word(&body, name) { "" } else { "_" };
            let ty = if self.references.contains(&LocalId(n)) { self.reference_to(ty) } else { self.ty(ty) };
            params.push(format!("{used}{name}: {ty}"));
        }
        let _ = writeln!(out, "/// `{}`.", p.full_name(id));
        if !self.optimisations.inline {
            out.push_str("#[inline(never)]\n");
        }
        let visible = if self.is_entry(id) { "pub" } else { "pub(super)" };
        let (name, result) = (&self.names.methods[&id], self.signature(&m.result, raises));
        let head = self.head(name, cx, &params, &result);
        let _ = writeln!(out, "{visible} {head} {{\n{body}}}\n");
        for f in std::mem::take(&mut self.outlined) {
            out.push_str(&f);
        }
    }

    /// Takes an expression out into a function of its own, and returns the call.
    pub(super) fn outlined(&mut self, e: &Expr) -> Code {
        let raises = e.ty == Type::Never || !self.raises.of(self.p, e).is_empty();
        let (mut used, mut bound) = (BTreeSet::new(), BTreeSet::new());
        e.walk(&mut |e| match &e.kind {
            ExprKind::Local(l) => {
                used.insert(*l);
            }
            ExprKind::Let(l, ..) | ExprKind::LetSome(l, ..) | ExprKind::LetObject { local: l, .. } => {
                bound.insert(*l);
            }
            ExprKind::Inlined { args, .. } => bound.extend(args.iter().map(|a| a.0)),
            _ => {}
        });
        let before = std::mem::replace(&mut self.ret, if raises { Ret::Result } else { Ret::Plain });
        // A function of its own has none of the variables.
        let held = self.held.take();
        let body = self.lines(e, Some(self.ret));
        self.held = held;
        self.ret = before;
        let cx = if has_word(&body, "cx") { "cx" } else { "_cx" };
        let (mut params, mut args) = (Vec::new(), vec!["cx".to_string()]);
        let mut this = None;
        e.walk(&mut |e| {
            if let (ExprKind::SelfPtr, Type::Pointer(view)) = (&e.kind, &e.ty) {
                this = Some(self.p.view(*view).module);
            }
        });
        if let Some(module) = this.filter(|_| has_word(&body, "this")) {
            params.push(format!("this: {}", self.this_type(module)));
            args.push("this".into());
        }
        for l in used.difference(&bound) {
            let (local, name) = (&self.locals[l.0], self.variables[l].clone());
            if !has_word(&body, &name) {
                continue;
            }
            params.push(match local.assigned {
                true => format!("{name}: &Cell<{}>", self.ty(&local.ty)),
                false if self.references.contains(l) => format!("{name}: {}", self.reference_to(&local.ty)),
                false => format!("{name}: {}", self.ty(&local.ty)),
            });
            args.push(if local.assigned { format!("&{name}") } else { name });
        }
        let mut taken: BTreeSet<String> = self.names.methods.values().cloned().collect();
        taken.extend(
            self.outlined.iter().filter_map(|f| f.split("fn ").nth(1)?.split('<').next().map(str::to_string)),
        );
        let name = unique(&mut taken, format!("{}_outlined", self.current));
        let result = self.signature(&e.ty, raises);
        let text = format!(
            "/// Part of `{}` that is evaluated rarely.\n#[cold]\n#[inline(never)]\n{} {{\n{body}}}\n\n",
            self.current,
            self.head(&name, cx, &params, &result)
        );
        self.outlined.push(text);
        let call = format!("{name}({})", args.join(", "));
        self.finished_call(call, raises, &e.ty)
    }

    pub(super) fn constant(&mut self, out: &mut String, id: MethodId) {
        let m = self.p.method(id);
        let mut host = NoHost;
        // A constant creates no objects.
        let mut machine = Machine::with(self.p, &mut host, 1_000_000, BTreeSet::new());
        let value = match machine.call(m.module, &m.name, Value::Void, Vec::new()) {
            Some(Ok(value)) => value.number(),
            _ => 0,
        };
        let text = match m.result {
            Type::Bool => (value != 0).to_string(),
            _ => crate::arith::signed(value, &m.result).to_string(),
        };
        let text = match m.result {
            Type::Int(i) if i.bits == 64 && !i.signed => value.to_string(),
            _ => text,
        };
        let (name, ty) = (&self.names.methods[&id], self.ty(&m.result));
        let _ = writeln!(out, "/// `{}`.\npub const {name}: {ty} = {text};\n", self.p.full_name(id));
    }

    /// The function that creates an object of a module.
    pub(super) fn creation(&mut self, out: &mut String, id: ModuleId) {
        let module = self.p.module(id);
        let arena = &self.names.arenas[&module.root];
        let constructor = module.constructor;
        let raises = constructor.is_some_and(|c| self.may_raise(Callee::Direct(c)));
        let (mut params, mut args) = (Vec::new(), Vec::new());
        if let Some(c) = constructor {
            let m = self.p.method(c);
            let variables = variables(&m.locals, &self.names);
            for (n, ty) in m.params.iter().enumerate() {
                let ty = if self.takes_reference(c, n) { self.reference_to(ty) } else { self.ty(ty) };
                params.push(format!("{}: {ty}", variables[&LocalId(n)]));
                args.push(variables[&LocalId(n)].clone());
            }
        }
        let _ = writeln!(out, "/// Creates an object of `{}`.", module.name);
        if !self.optimisations.inline {
            out.push_str("#[inline(never)]\n");
        }
        let name = &self.names.structs[&module.root];
        if self.scoped.has(module.root) {
            return self.variable(out, id, &params, &args);
        }
        let result = if raises { format!("Result<Ptr<{name}>, Exception>") } else { format!("Ptr<{name}>") };
        let _ = writeln!(out, "pub {} {{", self.head("create", "cx", &params, &format!(" -> {result}")));
        let _ = writeln!(out, "let this = cx.state.{arena}.allocate();");
        if self.kinds.contains(&module.root) {
            let _ = writeln!(out, "this.kind.set({name}Kind::{});", self.names.kinds[&id]);
        }
        if let Some(c) = constructor {
            let owner = &self.names.modules[&self.p.method(c).module];
            let args: String = args.iter().map(|a| format!(", {a}")).collect();
            let call = format!("{owner}::{}(cx, this{args})", self.names.methods[&c]);
            let _ = match raises {
                true => writeln!(
                    out,
                    "if let Err(error) = {call} {{\ncx.state.{arena}.free(this.id.get());\nreturn Err(error);\n}}"
                ),
                false => writeln!(out, "{call};"),
            };
        }
        let value = if raises { "Ok(this.id.get())" } else { "this.id.get()" };
        let _ = writeln!(out, "{value}\n}}\n");
    }

    /// The rest of the function that makes an object of a module whose objects are variables.
    fn variable(&self, out: &mut String, id: ModuleId, params: &[String], args: &[String]) {
        let module = self.p.module(id);
        let (name, ty) = (&self.names.structs[&module.root], self.struct_type(module.root));
        let raises = module.constructor.is_some_and(|c| self.may_raise(Callee::Direct(c)));
        let blank = match self.scoped.has_references(module.root) {
            true => format!("{name}::blank(cx.state)"),
            false => format!("{name}::default()"),
        };
        let mut body = format!("let this = {blank};\n");
        if self.kinds.contains(&module.root) {
            let _ = writeln!(body, "this.kind.set({name}Kind::{});", self.names.kinds[&id]);
        }
        if let Some(c) = module.constructor {
            let owner = &self.names.modules[&self.p.method(c).module];
            let args: String = args.iter().map(|a| format!(", {a}")).collect();
            let fails = if raises { "?" } else { "" };
            let _ = writeln!(body, "{owner}::{}(cx, &this{args}){fails};", self.names.methods[&c]);
        }
        let cx = if has_word(&body, "cx") { "cx" } else { "_cx" };
        let (result, value) = match raises {
            true => (format!(" -> Result<{ty}, Exception>"), "Ok(this)"),
            false => (format!(" -> {ty}"), "this"),
        };
        let _ = writeln!(out, "pub {} {{\n{body}{value}\n}}\n", self.head("create", cx, params, &result));
    }

    /// The name of the function that chooses between the definitions of a method.
    pub(super) fn dispatch_name(&self, module: ModuleId, slot: SlotId) -> String {
        format!("any_{}", self.visible_name(module, slot).trim_end_matches('_'))
    }

    /// The function that chooses between the definitions of a method by the module of the object.
    pub(super) fn dispatch(&mut self, out: &mut String, id: ModuleId, slot: SlotId) {
        let callee = Callee::Dynamic(slot, id);
        let raises = self.may_raise(callee);
        let fallback = self.p.fallback(id, &self.instantiated);
        let definition = |m: ModuleId| self.p.module(m).vtable.get(&slot).copied();
        let Some(default) = definition(fallback).or_else(|| definition(id)) else { return };
        let m = self.p.method(default);
        let args: Vec<String> = (0..m.params.len()).map(|n| format!("a{n}")).collect();
        let this = self.this_type(id);
        let params = args.iter().zip(&m.params).map(|(a, ty)| format!("{a}: {}", self.ty(ty)));
        let params: Vec<String> = std::iter::once(format!("this: {this}")).chain(params).collect();
        let passed: String = args.iter().map(|a| format!(", {a}")).collect();
        let call = |target: MethodId| {
            let owner = &self.names.modules[&self.p.method(target).module];
            let call = format!("{owner}::{}(cx, this{passed})", self.names.methods[&target]);
            if raises && !self.may_raise(Callee::Direct(target)) { format!("Ok({call})") } else { call }
        };
        let name = self.dispatch_name(id, slot);
        let result = self.signature(&m.result, raises);
        let _ = writeln!(out, "/// The definition of `{}` that the object has.", m.name);
        if !self.optimisations.inline {
            out.push_str("#[inline(never)]\n");
        }
        let _ = writeln!(out, "pub(super) {} {{", self.head(&name, "cx", &params, &result));
        let _ = writeln!(out, "match this.kind.get() {{");
        let kind = &self.names.structs[&self.root(id)];
        for module in self.instantiated.iter().filter(|m| self.p.extends(**m, id)) {
            if let Some(target) = definition(*module).filter(|t| *t != default) {
                let _ = writeln!(out, "{kind}Kind::{} => {},", self.names.kinds[module], call(target));
            }
        }
        let _ = writeln!(out, "_ => {},\n}}\n}}\n", call(default));
    }
}
