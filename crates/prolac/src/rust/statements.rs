// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expressions as lines of a block, and as statements whose value is not used.

use super::exprs::{Code, UNARY};
use super::{Printer, Ret, has_word};
use crate::program::{MethodId, Type};
use crate::tree::{BinOp, Expr, ExprKind as K, LocalId, Prefix};
use std::fmt::Write;

/// Whether an expression does nothing.
fn is_nothing(e: &Expr) -> bool {
    matches!(&e.kind, K::Seq(all) if all.is_empty())
}

/// The operands of a chain of `||`.
fn alternatives<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
    match &e.kind {
        K::Or(a, b) => {
            alternatives(a, out);
            alternatives(b, out);
        }
        _ => out.push(e),
    }
}

/// Whether an expression is always true, if it has a value.
fn always_holds(e: &Expr) -> bool {
    match &e.kind {
        _ if e.ty == Type::Never => true,
        K::Bool(b) => *b,
        K::Seq(all) => all.last().is_some_and(always_holds),
        _ => false,
    }
}

/// The comparison that holds if this one does not.
fn opposite(op: BinOp) -> Option<BinOp> {
    Some(match op {
        BinOp::Eq => BinOp::Ne,
        BinOp::Ne => BinOp::Eq,
        BinOp::Lt => BinOp::Ge,
        BinOp::Ge => BinOp::Lt,
        BinOp::Gt => BinOp::Le,
        BinOp::Le => BinOp::Gt,
        _ => return None,
    })
}

/// Whether a text is one `if` with its branches, not followed by anything.
fn is_one_if(text: &str) -> bool {
    let mut depth = 0i32;
    let lines: Vec<&str> = text.trim_end().lines().collect();
    for (i, line) in lines.iter().enumerate() {
        let (opens, closes) = (line.matches('{').count() as i32, line.matches('}').count() as i32);
        depth += opens - closes;
        if depth == 0 && i + 1 < lines.len() {
            return false;
        }
    }
    !text.contains('"')
}

impl Printer<'_> {
    /// The lines of a block that has the value of the expression. With `ret` it is the body of a function, whose value is
    /// wrapped if the function returns a result.
    pub(super) fn lines(&mut self, e: &Expr, ret: Option<Ret>) -> String {
        let result = ret == Some(Ret::Result);
        match &e.kind {
            K::Seq(all) => {
                let Some((last, before)) = all.split_last() else {
                    return if result { "Ok(())\n".into() } else { String::new() };
                };
                let mut out = String::new();
                before.iter().for_each(|e| out.push_str(&self.statement(e)));
                out.push_str(&self.lines(last, ret));
                out
            }
            K::Let(local, value, body) => {
                let body = self.lines(body, ret);
                self.binding(*local, value, &body) + &body
            }
            K::LetObject { local, object, body } => {
                let body = self.lines(body, ret);
                self.object(*local, object, &body) + &body
            }
            K::Inlined { method, args, body } => {
                let body = self.lines(body, ret);
                self.inlined(*method, args, &body)
            }
            K::Cond(c, a, b) if e.ty != Type::Void || result => {
                let c = self.value(c).text;
                format!("if {c} {{\n{}}} else {{\n{}}}\n", self.lines(a, ret), self.lines(b, ret))
            }
            K::LetSome(local, value, body, otherwise) if e.ty != Type::Void || result => {
                let (head, body) = self.let_some(*local, value, body, &|s, e| s.lines(e, ret));
                format!("{head}{body}}} else {{\n{}}}\n", self.lines(otherwise, ret))
            }
            K::Raise(exception) if result => {
                format!("Err(Exception::{})\n", self.names.exceptions[exception])
            }
            _ if e.ty == Type::Void => {
                let mut out = self.statement(e);
                if result {
                    out.push_str("Ok(())\n");
                }
                out
            }
            K::Call { callee, .. } if result && e.ty != Type::Never && self.may_raise(*callee) => {
                self.call_text(e) + "\n"
            }
            _ => {
                let text = if ret.is_some() { self.bare(e).text } else { self.value(e).text };
                if result && e.ty != Type::Never { format!("Ok({text})\n") } else { text + "\n" }
            }
        }
    }

    /// A block with the value of the expression.
    pub(super) fn block(&mut self, e: &Expr) -> Code {
        Code::block(format!("{{\n{}}}", self.lines(e, None)))
    }

    /// The body of a method in place of a call, with its variables.
    fn inlined(&mut self, method: MethodId, args: &[(LocalId, Expr)], body: &str) -> String {
        let bindings: Vec<String> =
            args.iter().map(|(local, value)| self.binding(*local, value, body)).collect();
        format!("// {}\n{}{body}", self.p.full_name(method), bindings.concat())
    }

    /// The declaration of a variable; only the effect of the value, if the printed body does not use it.
    fn binding(&mut self, local: LocalId, value: &Expr, body: &str) -> String {
        let name = self.variables[&local].clone();
        if !has_word(body, &name) {
            return self.statement(value);
        }
        let l = &self.locals[local.0];
        if matches!(l.ty, Type::Object(_)) || self.references.contains(&local) {
            let object = self.object_of(value);
            return format!("let {name} = {object};\n");
        }
        if l.ty == Type::Void {
            // Only a parameter of a method whose types are not known.
            return self.statement(value);
        }
        let ty = self.ty(&l.ty);
        let numeric = matches!(l.ty, Type::Int(_) | Type::Seq | Type::Optional(_));
        let code = self.bare(value).text;
        match (l.assigned, numeric) {
            (true, _) => format!("let {name}: Cell<{ty}> = Cell::new({code});\n"),
            (false, true) => format!("let {name}: {ty} = {code};\n"),
            (false, false) => format!("let {name} = {code};\n"),
        }
    }

    /// The declaration of an object that ends with the block.
    fn object(&mut self, local: LocalId, object: &Expr, body: &str) -> String {
        let name = self.variables[&local].clone();
        let module = self.p.target(&object.ty).map(|m| self.root(m));
        let arena = module.map_or(String::new(), |m| self.names.arenas[&m].clone());
        let value = self.value(object).text;
        if module.is_some_and(|m| self.scoped.has(m)) {
            return match has_word(body, &name) {
                true => format!("let {name} = &{value};\n"),
                false => format!("{value};\n"),
            };
        }
        match has_word(body, &name) {
            true => format!(
                "let {name}_scope = Scope::new(&cx.state.{arena}, {value});\nlet {name} = {name}_scope.object();\n"
            ),
            false => format!("let _{name} = Scope::new(&cx.state.{arena}, {value});\n"),
        }
    }

    /// The head `if let Some(x) = value {` and the body.
    fn let_some(
        &mut self,
        local: LocalId,
        value: &Expr,
        body: &Expr,
        lines: &dyn Fn(&mut Self, &Expr) -> String,
    ) -> (String, String) {
        let value = self.value(value).text;
        let mut text = lines(self, body);
        let name = match has_word(&text, &self.variables[&local]) {
            true => self.variables[&local].clone(),
            false => "_".to_string(),
        };
        if self.locals[local.0].assigned && name != "_" {
            text = format!("let {name} = Cell::new({name});\n{text}");
        }
        (format!("if let Some({name}) = {value} {{\n"), text)
    }

    /// The condition that an expression does not hold.
    fn negated(&mut self, e: &Expr) -> String {
        match &e.kind {
            K::Prefix(Prefix::Not, inner) => self.value(inner).text,
            K::Binary(op, a, b) if opposite(*op).is_some() && a.ty != Type::Seq => {
                let op = opposite(*op).unwrap_or(*op);
                let e = Expr::new(Type::Bool, K::Binary(op, a.clone(), b.clone()), e.span);
                self.value(&e).text
            }
            _ => format!("!{}", self.value(e).at_least(UNARY)),
        }
    }

    /// A chain of `||` whose value is not used: `a ==> b || c` is `if a { b } else { c }`.
    fn cases(&mut self, all: &[&Expr]) -> String {
        let Some((first, rest)) = all.split_first() else { return String::new() };
        let rest = self.cases(rest);
        if let K::And(condition, effect) = &first.kind
            && always_holds(effect)
        {
            let condition = self.value(condition).text;
            let effect = self.statement(effect);
            return match (rest.as_str(), rest.starts_with("if ")) {
                ("", _) => format!("if {condition} {{\n{effect}}}\n"),
                (_, true) if is_one_if(&rest) => {
                    format!("if {condition} {{\n{effect}}} else {rest}")
                }
                _ => format!("if {condition} {{\n{effect}}} else {{\n{rest}}}\n"),
            };
        }
        match rest.is_empty() {
            true => self.statement(first),
            false => format!("if {} {{\n{rest}}}\n", self.negated(first)),
        }
    }

    /// An expression whose value is not used, as statements.
    pub(super) fn statement(&mut self, e: &Expr) -> String {
        match &e.kind {
            K::Seq(all) => all.iter().map(|e| self.statement(e)).collect(),
            K::Let(local, value, body) => {
                let body = self.statement(body);
                self.binding(*local, value, &body) + &body
            }
            K::LetObject { local, object, body } => {
                let body = self.statement(body);
                let before = self.object(*local, object, &body);
                format!("{{\n{before}{body}}}\n")
            }
            K::Inlined { method, args, body } => {
                let body = self.statement(body);
                self.inlined(*method, args, &body)
            }
            K::Cond(c, a, b) => {
                let (yes, no) = (self.statement(a), self.statement(b));
                match (yes.is_empty(), no.is_empty()) {
                    (true, true) => self.statement(c),
                    (false, true) => format!("if {} {{\n{yes}}}\n", self.value(c).text),
                    (true, false) => format!("if {} {{\n{no}}}\n", self.negated(c)),
                    (false, false) => format!("if {} {{\n{yes}}} else {{\n{no}}}\n", self.value(c).text),
                }
            }
            K::And(a, b) => match self.statement(b) {
                effect if effect.is_empty() => self.statement(a),
                effect => format!("if {} {{\n{effect}}}\n", self.value(a).text),
            },
            K::Or(..) => {
                let mut cases = Vec::new();
                alternatives(e, &mut cases);
                self.cases(&cases)
            }
            K::LetSome(local, value, body, otherwise) => {
                let (head, body) = self.let_some(*local, value, body, &|s, e| s.statement(e));
                match self.statement(otherwise) {
                    no if no.is_empty() => format!("{head}{body}}}\n"),
                    no => format!("{head}{body}}} else {{\n{no}}}\n"),
                }
            }
            K::Default(a, b) => match self.statement(b) {
                effect if effect.is_empty() => self.statement(a),
                effect => {
                    format!("if {}.is_none() {{\n{effect}}}\n", self.value(a).at_least(super::exprs::ATOM))
                }
            },
            K::Assign { .. } | K::Step { .. } => self.assignment_statement(e),
            K::Raise(_) => self.value(e).text + ";\n",
            K::Call { callee: crate::tree::Callee::Direct(m), .. }
                if self.p.method(*m).kind == crate::program::MethodKind::Constant =>
            {
                String::new()
            }
            K::Call { .. } | K::Host(..) | K::New { .. } | K::Delete(_) | K::Outline(_) => {
                let text = self.value(e).text;
                // `match … {}` is a statement of its own, as is a call that has a value of no interest.
                if e.ty == Type::Never { text + "\n" } else { text + ";\n" }
            }
            K::Try(..) => self.try_text(e, true) + "\n",
            _ if is_nothing(e) => String::new(),
            // The operation has no effect of its own.
            _ => e.operands().into_iter().map(|e| self.statement(e)).collect(),
        }
    }

    /// An expression with the arms that catch its exceptions.
    pub(super) fn try_text(&mut self, e: &Expr, statement: bool) -> String {
        let K::Try(body, arms) = &e.kind else { return String::new() };
        let raised = self.raises.of(self.p, body);
        let print = |s: &mut Self, e: &Expr| if statement { s.statement(e) } else { s.lines(e, None) };
        if raised.is_empty() {
            return format!("{{\n{}}}", print(self, body));
        }
        let before = std::mem::replace(&mut self.ret, Ret::Result);
        let lines = self.lines(body, Some(Ret::Result));
        self.ret = before;
        let ty = self.ty(&body.ty);
        let mut out =
            format!("{{\nlet attempt = || -> Result<{ty}, Exception> {{\n{lines}}};\nmatch attempt() {{\n");
        out.push_str(match (&body.ty, statement) {
            (Type::Never, _) => "Ok(never) => match never {},\n",
            (_, true) => "Ok(_) => {}\n",
            (Type::Void, _) => "Ok(()) => {}\n",
            _ => "Ok(value) => value,\n",
        });
        let mut left = raised.clone();
        for (exception, arm) in arms {
            let pattern = match exception {
                Some(e) if left.remove(e) => match left.is_empty() {
                    true => "_".to_string(),
                    false => format!("Exception::{}", self.names.exceptions[e]),
                },
                None if !left.is_empty() => {
                    left.clear();
                    "_".to_string()
                }
                _ => continue,
            };
            let _ = writeln!(out, "Err({pattern}) => {{\n{}}}", print(self, arm));
        }
        if !left.is_empty() {
            out.push_str("Err(error) => return Err(error),\n");
        }
        out + "}\n}"
    }
}
