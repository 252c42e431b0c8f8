// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expressions with a value.

use super::Printer;
use crate::program::{MethodId, MethodKind, ModuleId, Type};
use crate::tree::{Callee, Expr, ExprKind as K, LocalId, Prefix};

/// How strongly the outermost operator of a text binds.
pub(super) const ATOM: u8 = 20;
pub(super) const UNARY: u8 = 18;
pub(super) const CAST: u8 = 17;
pub(super) const MUL: u8 = 16;
pub(super) const SHIFT: u8 = 14;
pub(super) const BITS: u8 = 11;
pub(super) const COMPARE: u8 = 10;
pub(super) const AND: u8 = 9;
pub(super) const OR: u8 = 8;
/// A block, which may stand on the right of an operator.
const BLOCK: u8 = 1;
/// `return …`, `match … {}` and the like.
const LOW: u8 = 0;

/// The text of an expression.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub text: String,
    pub strength: u8,
}

impl Code {
    pub fn atom(text: impl Into<String>) -> Code {
        Code { text: text.into(), strength: ATOM }
    }
    pub fn block(text: String) -> Code {
        Code { text, strength: BLOCK }
    }
    pub fn of(strength: u8, text: String) -> Code {
        Code { text, strength }
    }
    /// The text, in parentheses if it binds weaker.
    pub fn at_least(&self, strength: u8) -> String {
        if self.strength >= strength { self.text.clone() } else { format!("({})", self.text) }
    }
    /// The text on the right of `&&` or `||`.
    fn right(&self, strength: u8) -> String {
        match self.strength {
            BLOCK => self.text.clone(),
            LOW => format!("{{\n{}\n}}", self.text),
            _ => self.at_least(strength),
        }
    }
}

impl Printer<'_> {
    /// The text of an expression where its type is known: a number needs no suffix.
    pub(super) fn bare(&mut self, e: &Expr) -> Code {
        match e.kind {
            K::Int(n) => self.number(n, &e.ty, false),
            _ => self.value(e),
        }
    }

    /// The text of an expression.
    pub(super) fn value(&mut self, e: &Expr) -> Code {
        match &e.kind {
            K::Int(n) => self.number(*n, &e.ty, true),
            K::Bool(b) => Code::atom(b.to_string()),
            K::Text(text) => Code::atom(format!("{text:?}")),
            K::NoneValue => Code::atom("None"),
            K::Some(a) => Code::atom(format!("Some({})", self.bare(a).text)),
            K::Local(local) => self.local(*local),
            K::SelfPtr => Code::atom(match self.p.target(&e.ty) {
                Some(module) if self.is_punned(module) => "this",
                _ => "this.id.get()",
            }),
            K::Field { .. } | K::ByteAt(..) => self.load(e),
            K::Length(a) => {
                let at = self.value(a).text;
                Code::of(CAST, format!("runtime::rest(&cx.packets, {at}).len() as u32"))
            }
            K::Call { callee: Callee::Direct(m), .. } if self.p.method(*m).kind == MethodKind::Constant => {
                let module = &self.names.modules[&self.p.method(*m).module];
                Code::atom(format!("{module}::{}", self.names.methods[m]))
            }
            K::Call { callee, .. } => {
                let raises = self.may_raise(*callee);
                let text = self.call_text(e);
                self.finished_call(text, raises, &e.ty)
            }
            K::Host(id, args) => {
                let args: String = args.iter().map(|a| format!(", {}", self.bare(a).text)).collect();
                Code::atom(format!("cx.host.{}(cx{args})", self.names.hosts[id.0]))
            }
            K::New { module, constructor, args } => {
                let raises = constructor.is_some_and(|c| self.may_raise(Callee::Direct(c)));
                let args = self.arguments(*constructor, args);
                let call = format!("{}::create(cx{args})", self.names.modules[module]);
                Code::atom(if raises { call + "?" } else { call })
            }
            K::Delete(a) => {
                let root = self.p.target(&a.ty).map(|m| self.root(m));
                let arena = root.map_or(String::new(), |m| self.names.arenas[&m].clone());
                let pointer = self.value(a).text;
                Code::atom(format!("cx.state.{arena}.free({pointer})"))
            }
            K::Let(..) | K::LetObject { .. } | K::LetSome(..) | K::Seq(_) | K::Inlined { .. } => {
                self.block_or_value(e)
            }
            K::Prefix(Prefix::Neg, a) => self.method_call(a, "wrapping_neg", &[]),
            K::Prefix(_, a) => Code::of(UNARY, format!("!{}", self.value(a).at_least(UNARY))),
            K::Binary(op, a, b) => self.binary(*op, a, b),
            K::Convert(a) => self.conversion(a, &e.ty),
            K::IsSome(a) => Code::atom(format!("{}.is_some()", self.value(a).at_least(ATOM))),
            K::Default(a, b) => {
                let (a, found) = (self.value(a).text, matches!(e.ty, Type::Optional(_)));
                let some = if found { "Some(value) => Some(value)" } else { "Some(value) => value" };
                let b = self.lines(b, None);
                Code::block(format!("match {a} {{\n{some},\nNone => {{\n{b}}}\n}}"))
            }
            K::Downcast(module, a) => self.downcast(*module, a),
            K::Assign { .. } | K::Step { .. } => self.assignment(e),
            K::And(a, b) => {
                let (a, b) = (self.value(a).at_least(AND), self.value(b).right(AND));
                Code::of(AND, format!("{a} && {b}"))
            }
            K::Or(a, b) => {
                let (a, b) = (self.value(a).at_least(OR), self.value(b).right(OR));
                Code::of(OR, format!("{a} || {b}"))
            }
            K::Cond(c, a, b) => {
                let c = self.value(c).text;
                let (a, b) = (self.lines(a, None), self.lines(b, None));
                Code::block(format!("if {c} {{\n{a}}} else {{\n{b}}}"))
            }
            K::Raise(exception) => {
                Code::of(LOW, format!("return Err(Exception::{})", self.names.exceptions[exception]))
            }
            K::Try(..) => Code::block(self.try_text(e, false)),
            K::Outline(inner) => self.outlined(inner),
        }
    }

    /// The text of an expression of several lines: a block, or the value alone if there is only one.
    fn block_or_value(&mut self, e: &Expr) -> Code {
        match &e.kind {
            K::Seq(all) if all.len() == 1 => match all.first() {
                Some(only) => self.value(only),
                None => self.block(e),
            },
            // An expression of one line follows the name of its method.
            K::Inlined { method, args, body } if args.is_empty() => {
                let (name, code) = (self.p.full_name(*method), self.value(body));
                match code.text.contains('\n') {
                    true if code.text.starts_with("{\n") => {
                        Code::block(format!("{{\n// {name}\n{}", code.text.trim_start_matches("{\n")))
                    }
                    true => Code::block(format!("{{\n// {name}\n{}\n}}", code.text)),
                    false => Code::of(code.strength, format!("/* {name} */ {}", code.text)),
                }
            }
            _ => self.block(e),
        }
    }

    fn local(&mut self, local: LocalId) -> Code {
        let (l, name) = (&self.locals[local.0], &self.variables[&local]);
        Code::atom(match &l.ty {
            Type::Object(view) if self.is_in_arena(self.p.view(*view).module) => format!("{name}.id.get()"),
            _ if l.assigned => format!("{name}.get()"),
            ty if self.references.contains(&local)
                && self.p.target(ty).is_some_and(|m| self.is_in_arena(m)) =>
            {
                format!("{name}.id.get()")
            }
            _ => name.clone(),
        })
    }

    /// A call that has been printed, with what becomes of its exception.
    pub(super) fn finished_call(&self, text: String, raises: bool, ty: &Type) -> Code {
        match (raises, ty) {
            (_, Type::Never) => Code::of(LOW, format!("match {text}? {{}}")),
            (true, _) => Code::atom(text + "?"),
            (false, _) => Code::atom(text),
        }
    }

    /// A call of a method, without what becomes of its exception.
    pub(super) fn call_text(&mut self, e: &Expr) -> String {
        let K::Call { callee, base, args, .. } = &e.kind else { return String::new() };
        let function = match callee {
            Callee::Direct(m) => {
                let owner = &self.names.modules[&self.p.method(*m).module];
                format!("{owner}::{}", self.names.methods[m])
            }
            Callee::Dynamic(slot, module) => {
                format!("{}::{}", self.names.modules[module], self.dispatch_name(*module, *slot))
            }
        };
        let this = match base {
            Some(base) => format!(", {}", self.object_of(base)),
            None => String::new(),
        };
        let args = match callee {
            Callee::Direct(m) => self.arguments(Some(*m), args),
            Callee::Dynamic(..) => self.arguments(None, args),
        };
        format!("{function}(cx{this}{args})")
    }

    /// The arguments of a method, each after a comma.
    fn arguments(&mut self, method: Option<MethodId>, args: &[Expr]) -> String {
        let mut out = String::new();
        for (n, arg) in args.iter().enumerate() {
            let is_reference = method.is_some_and(|m| self.takes_reference(m, n));
            let text = if is_reference { self.object_of(arg) } else { self.bare(arg).text };
            out.push_str(", ");
            out.push_str(&text);
        }
        out
    }

    /// Whether the objects of a module are in an arena, where pointers are indices.
    fn is_in_arena(&self, module: ModuleId) -> bool {
        !self.is_punned(module) && !self.scoped.has(self.root(module))
    }

    /// The object to which a pointer leads, whose look-up is given. If a fixed field of the method's object has the pointer, the
    /// look-up is done once, at the start of the method.
    fn hold(&mut self, pointer: &Expr, object: String) -> String {
        let K::Field { base, field, index: None } = &pointer.kind else { return object };
        let name = format!("this_{}", self.names.fields[field]);
        let is_own = matches!(base.kind, K::SelfPtr) && self.fixed.contains(field);
        match &mut self.held {
            Some(held) if is_own && !self.variables.values().any(|v| *v == name) => {
                held.insert(name.clone(), object);
                name
            }
            _ => object,
        }
    }

    /// The object that a pointer points to: a reference, or the position of a punned module.
    pub(super) fn object_of(&mut self, e: &Expr) -> String {
        let Some(module) = self.p.target(&e.ty) else { return self.value(e).text };
        if self.is_punned(module) {
            return self.value(e).text;
        }
        match &e.kind {
            K::SelfPtr => "this".into(),
            K::Local(l) if matches!(self.locals[l.0].ty, Type::Object(_)) => self.variables[l].clone(),
            K::Local(l) if self.references.contains(l) => self.variables[l].clone(),
            K::Convert(inner) if matches!(inner.ty, Type::Pointer(_) | Type::Object(_)) => {
                self.object_of(inner)
            }
            K::Field { base, field, index: None } if self.is_reference(self.p.field(*field)) => {
                format!("{}.{}.get()", self.object_of(base), self.names.fields[field])
            }
            _ => {
                let pointer = self.value(e).text;
                if self.scoped.has(self.root(module)) {
                    return pointer;
                }
                let object = format!("cx.{}({pointer})", self.names.arenas[&self.root(module)]);
                self.hold(e, object)
            }
        }
    }
}
