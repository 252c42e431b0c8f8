// SPDX-License-Identifier: MIT OR Apache-2.0
//! Grammar of the expressions that words or braces enclose: `let`, `try`, actions.

use super::ast::{Binding, Expr, ExprKind};
use super::exprs::{ASSIGN, THEN, above};
use super::kind::SyntaxKind::{self, Comma, End, RBrace, Semicolon, ThenArrow};
use super::parser::{Mark, Parser};
use castanet_diagnostic::Diagnostic;

impl Parser<'_> {
    /// Parses `let NAME [:> TYPE] (= | ?=) VALUE {, …} in EXPR [else EXPR] end`.
    pub(super) fn let_expr(&mut self, mark: Mark) -> Expr {
        self.bump();
        let mut bindings: Vec<Binding> = Vec::new();
        while let Some(name) = self.name("the name of a variable") {
            let ty = self.eat(SyntaxKind::TypeMark).then(|| self.ty());
            let optional = self.at(SyntaxKind::SomeEq);
            if !optional && !self.at(SyntaxKind::Eq) {
                self.unexpected("'=' and the value of the variable");
                break;
            }
            self.bump();
            bindings.push(Binding { name, ty, optional, value: self.expr(THEN) });
            if !self.eat(Comma) {
                break;
            }
        }
        if !self.eat_word("in") {
            self.unexpected("an operator or 'in'");
        }
        let body = self.sequence();
        let otherwise = self.eat_word("else").then(|| Box::new(self.sequence()));
        self.end_word();
        let mut parts: Vec<&Expr> = bindings.iter().map(|b| &b.value).collect();
        parts.push(&body);
        parts.extend(otherwise.as_deref());
        // Each binding nests the ones after it.
        let height = above(&parts).saturating_add(u16::try_from(bindings.len()).unwrap_or(u16::MAX));
        let kind = ExprKind::Let { bindings, body: Box::new(body), otherwise };
        self.finish(mark, SyntaxKind::Let, kind, height)
    }

    fn end_word(&mut self) {
        if !self.eat_word("end") {
            self.unexpected("an operator or 'end'");
        }
    }

    /// Parses `try EXPR {catch (NAME | all) ==> EXPR} end`.
    pub(super) fn try_expr(&mut self, mark: Mark) -> Expr {
        self.bump();
        let body = self.sequence();
        let mut arms = Vec::new();
        while self.eat_word("catch") {
            let name = if self.eat_word("all") { None } else { Some(self.path("the name of an exception")) };
            self.expect(ThenArrow, "'==>'");
            let arm = self.sequence();
            match name {
                Some(None) => {}
                name => arms.push((name.flatten(), arm)),
            }
        }
        if arms.is_empty() {
            self.unexpected("an operator or 'catch'");
        }
        self.end_word();
        let height = above(&arms.iter().map(|a| &a.1).chain([&body]).collect::<Vec<_>>());
        self.finish(mark, SyntaxKind::Try, ExprKind::Try { body: Box::new(body), arms }, height)
    }

    /// Skips what a reported call of an action has left, with balanced braces. Returns false at a declaration, before which
    /// the action has no end.
    fn skip_call(&mut self) -> bool {
        let mut depth = 0usize;
        loop {
            match self.kind {
                Semicolon | RBrace if depth == 0 => return true,
                End | SyntaxKind::Define | SyntaxKind::TypeMark => return false,
                SyntaxKind::LBrace => depth += 1,
                RBrace => depth -= 1,
                _ => {}
            }
            self.bump();
        }
    }

    /// Parses `{ CALL; CALL; … }`.
    pub(super) fn action(&mut self, mark: Mark) -> Expr {
        let (opened, before) = (self.bump(), self.errors);
        let (mut calls, mut value) = (Vec::new(), false);
        while !matches!(self.kind, End | RBrace) {
            if self.eat(Semicolon) {
                value = false;
                continue;
            }
            let errors = self.errors;
            let call = self.expr(ASSIGN);
            if !matches!(call.kind, ExprKind::Call { .. } | ExprKind::Missing) {
                let d = Diagnostic::error("an action calls host functions", call.span).at("no call");
                self.error(d.help("write it as an expression, outside the braces"));
            }
            calls.push(call);
            value = true;
            if !self.at(RBrace) && !self.at(Semicolon) {
                if self.errors == errors {
                    self.unexpected("an operator, ';' or '}'");
                }
                if !self.skip_call() {
                    break;
                }
            }
        }
        if !self.eat(RBrace) && self.errors == before {
            let d = Diagnostic::error("action without an end", self.here()).at("';' or '}' expected");
            self.error(d.label("the action", opened));
        }
        let height = above(&calls.iter().collect::<Vec<_>>());
        self.finish(mark, SyntaxKind::Action, ExprKind::Action(calls, value), height)
    }
}
