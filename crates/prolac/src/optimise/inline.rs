// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inlining: calls are replaced by the bodies of their methods.

use super::{Inlining, Report};
use crate::program::{Hint, MethodId, MethodKind, Program, Type};
use crate::tree::{Callee, Expr, ExprKind as K, Local, LocalId};

/// Bodies of at most this many operations replace calls without a hint.
const SMALL: usize = 30;
/// A method stops growing at this many operations.
const LARGEST: usize = 6_000;

/// A body stands in place of a call at most this deep inside other ones. Without a limit, a chain of methods that call the
/// next one would be written out in each of them.
const DEEPEST: usize = 24;

struct Inliner<'a> {
    program: &'a Program,
    path_inline: bool,
    report: &'a mut Report,
    /// The method that is being changed, and its variables.
    into: MethodId,
    locals: Vec<Local>,
    /// The methods whose bodies enclose the current expression.
    stack: Vec<MethodId>,
    size: usize,
}

/// Replaces calls in all methods.
pub(super) fn inline(program: &mut Program, path_inline: bool, report: &mut Report) {
    let before = program.clone();
    for (n, m) in program.methods.iter_mut().enumerate() {
        if m.kind == MethodKind::Constant {
            continue;
        }
        let (into, locals) = (MethodId(n), std::mem::take(&mut m.locals));
        let size = m.body.size();
        let mut i = Inliner { program: &before, path_inline, report, into, locals, stack: vec![into], size };
        i.expand(&mut m.body, false);
        m.locals = i.locals;
    }
}

impl Inliner<'_> {
    /// Replaces the calls in an expression. On a path, all calls are replaced.
    fn expand(&mut self, e: &mut Expr, path: bool) {
        e.operands_mut().into_iter().for_each(|e| self.expand(e, path));
        let K::Call { callee: Callee::Direct(method), hint, .. } = &e.kind else { return };
        let (method, hint) = (*method, *hint);
        let m = self.program.method(method);
        if m.kind == MethodKind::Constant || self.stack.contains(&method) {
            return;
        }
        let size = m.body.size();
        let wanted = match hint {
            Some(Hint::NoInline | Hint::Outline) => false,
            Some(Hint::Inline | Hint::PathInline) => true,
            None => path || size <= SMALL,
        };
        if !wanted || self.size + size > LARGEST || self.stack.len() > DEEPEST {
            return;
        }
        self.size += size;
        let path = path || (hint == Some(Hint::PathInline) && self.path_inline);
        self.report.inlined.push(Inlining { into: self.into, body: method, depth: self.stack.len() - 1 });
        self.replace(e, method, path);
    }

    fn replace(&mut self, e: &mut Expr, method: MethodId, path: bool) {
        let K::Call { base, args, .. } = &mut e.kind else { return };
        let m = self.program.method(method);
        let (base, values) = (base.take(), std::mem::take(args));
        let mut body = m.body.clone();
        let first = self.locals.len();
        self.locals.extend(m.locals.iter().cloned());
        let mut args = Vec::new();
        // The object of the method becomes a variable, unless it is named already.
        let this = base.map(|base| match &base.kind {
            K::SelfPtr => (K::SelfPtr, None),
            K::Local(local) if matches!(self.locals[local.0].ty, Type::Object(_)) => (K::Local(*local), None),
            kind if self.may_repeat(kind, &m.body) => (kind.clone(), None),
            _ => {
                let view = match &base.ty {
                    Type::Pointer(view) | Type::Object(view) => *view,
                    _ => self.program.module(m.module).inner,
                };
                let name =
                    self.program.module(m.module).name.rsplit('.').next().unwrap_or("object").to_string();
                let local = LocalId(self.locals.len());
                self.locals.push(Local { name, ty: Type::Object(view), assigned: false });
                (K::Local(local), Some((local, *base)))
            }
        });
        let this = this.map(|(kind, arg)| {
            args.extend(arg);
            kind
        });
        args.extend(values.into_iter().enumerate().map(|(i, value)| (LocalId(first + i), value)));
        renamed(&mut body, first, this.as_ref());
        self.stack.push(method);
        self.expand(&mut body, path);
        self.stack.pop();
        e.kind = K::Inlined { method, args, body: Box::new(body) };
    }
}

impl Inliner<'_> {
    /// Whether the pointer to the object of a method may stand wherever the body needs the object: it is a field, and the
    /// body is a short expression that cannot change the field.
    fn may_repeat(&self, base: &K, body: &Expr) -> bool {
        let K::Field { base, field, index: None } = base else { return false };
        let named = match &base.kind {
            K::SelfPtr => true,
            K::Local(local) => matches!(self.locals[local.0].ty, Type::Object(_)),
            _ => false,
        };
        let (mut uses, mut quiet) = (0, self.program.field(*field).place.is_none());
        body.walk(&mut |e| match &e.kind {
            K::SelfPtr => uses += 1,
            K::Call { callee: Callee::Direct(m), .. }
                if self.program.method(*m).kind == MethodKind::Constant => {}
            K::Call { .. }
            | K::Host(..)
            | K::New { .. }
            | K::Delete(_)
            | K::Assign { .. }
            | K::Step { .. } => {
                quiet = false;
            }
            _ => {}
        });
        named && quiet && uses <= 2
    }
}

/// Moves the variables of a body to those from `first` on, and replaces its object.
fn renamed(e: &mut Expr, first: usize, this: Option<&K>) {
    let moved = |LocalId(n): LocalId| LocalId(first + n);
    match &mut e.kind {
        K::Local(local) | K::Let(local, ..) | K::LetSome(local, ..) | K::LetObject { local, .. } => {
            *local = moved(*local);
        }
        K::Inlined { args, .. } => args.iter_mut().for_each(|(local, _)| *local = moved(*local)),
        _ => {}
    }
    e.operands_mut().into_iter().for_each(|e| renamed(e, first, this));
    if let (K::SelfPtr, Some(this)) = (&e.kind, this) {
        e.kind = this.clone();
    }
}
