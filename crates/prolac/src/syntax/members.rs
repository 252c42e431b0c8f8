// SPDX-License-Identifier: MIT OR Apache-2.0
//! Grammar of the members of a module, and of types.

use super::ast::{FieldDecl, Member, ModuleExpr, Param, Type, TypeKind};
use super::kind::SyntaxKind::{
    self, Colon, Comma, End, Ident, LBrace, LBracket, LParen, Number, Question, RBrace, RBracket, RParen,
    Semicolon, Star, TypeMark,
};
use super::parser::Parser;
use super::words::{BUILTIN, RADIXES};
use castanet_diagnostic::{Diagnostic, Span};

/// A type of another one, which is missing if that one is.
fn of(kind: fn(Box<Type>) -> TypeKind, inner: Type) -> TypeKind {
    match inner.kind {
        TypeKind::Missing => TypeKind::Missing,
        _ => kind(Box::new(inner)),
    }
}

impl Parser<'_> {
    /// Parses the braces of a module or namespace. `opened` is the position of its name.
    pub(super) fn body(&mut self, opened: Span) -> Vec<Member> {
        let mark = self.mark();
        self.bump();
        let mut all = Vec::new();
        if self.enter() {
            while !matches!(self.kind, End | RBrace) {
                all.extend(self.member());
            }
            self.leave();
        } else {
            self.recover();
        }
        self.close_brace(opened);
        self.wrap(mark, SyntaxKind::Body);
        all
    }

    /// Parses one member. It always consumes a token.
    fn member(&mut self) -> Option<Member> {
        self.quiet = false;
        let mark = self.mark();
        let word = if self.kind == Ident { self.token_text() } else { "" };
        let (kind, member) = match word {
            "field" => (SyntaxKind::Field, self.field()),
            "exception" => (SyntaxKind::Exceptions, self.exceptions()),
            "module" => {
                let d = Diagnostic::error("module inside a module", self.here()).at("not allowed here");
                self.error(
                    d.help("modules are grouped by namespaces: write 'Name.Inner' as the module's name"),
                );
                self.bump();
                self.recover();
                (SyntaxKind::Error, None)
            }
            _ if self.at_name() && self.peek() == LBrace => {
                let name = self.name("a name")?;
                let members = self.body(name.span);
                (SyntaxKind::Namespace, Some(Member::Namespace(name, members)))
            }
            _ if self.at_name() || matches!(word, "static" | "const" | "constructor") => {
                (SyntaxKind::Method, self.method(true).map(Member::Method))
            }
            _ => {
                self.unexpected("a method, field or namespace");
                self.bump();
                self.recover();
                (SyntaxKind::Error, None)
            }
        };
        self.wrap(mark, kind);
        member
    }

    fn exceptions(&mut self) -> Option<Member> {
        self.bump();
        let mut all = Vec::new();
        loop {
            all.extend(self.name("the name of an exception"));
            if !self.eat(Comma) {
                break;
            }
        }
        self.end_of_item();
        Some(Member::Exceptions(all))
    }

    /// Parses `field NAME :> TYPE [at OFFSET] [big | little] [using];`.
    fn field(&mut self) -> Option<Member> {
        let start = self.start;
        self.bump();
        let Some(name) = self.name("the name of the field") else {
            self.recover();
            return None;
        };
        if !self.expect(TypeMark, "':>' and the type of the field") {
            self.recover();
            let (ty, span) = (self.missing_type(), name.span);
            return Some(Member::Field(FieldDecl { name, ty, at: None, big: None, using: false, span }));
        }
        let ty = self.ty();
        let mut field = FieldDecl { name, ty, at: None, big: None, using: false, span: self.since(start) };
        while self.kind == Ident {
            let at = self.here();
            match self.token_text() {
                "at" => {
                    self.bump();
                    field.at = self.number("the offset in bytes").map(|n| (n, at.to(self.since(start))));
                }
                word @ ("big" | "little") => {
                    self.bump();
                    field.big = Some((word == "big", at));
                }
                "using" => {
                    self.bump();
                    field.using = true;
                }
                _ => break,
            }
        }
        field.span = self.since(start);
        if self.kind == Colon {
            self.unexpected("'at', 'big', 'little', 'using' or ';'");
            self.recover();
        } else {
            self.end_of_item();
        }
        Some(Member::Field(field))
    }

    pub(super) fn number(&mut self, expected: &str) -> Option<u64> {
        if self.kind != Number {
            self.unexpected(expected);
            return None;
        }
        let text = self.token_text().replace('_', "");
        let at = self.here();
        let radix =
            RADIXES.iter().find(|(start, _)| text.get(..2).is_some_and(|t| t.eq_ignore_ascii_case(start)));
        let value = match radix {
            Some((start, radix)) => u64::from_str_radix(text.get(start.len()..).unwrap_or(""), *radix),
            None => text.parse(),
        };
        self.bump();
        match value {
            Ok(n) => Some(n),
            Err(_) => {
                let d = Diagnostic::error(format!("bad number '{text}'"), at)
                    .at("not a number of at most 64 bits");
                self.error(d.help("numbers are decimal, or hexadecimal after 0x, or binary after 0b"));
                None
            }
        }
    }

    /// Parses parameters with their parentheses, if there are any.
    pub(super) fn params(&mut self) -> Vec<Param> {
        let mut all = Vec::new();
        if !self.at(LParen) {
            return all;
        }
        let (mark, errors) = (self.mark(), self.errors);
        self.bump();
        while !matches!(self.kind, RParen | End | Semicolon | RBrace) {
            let name = self.name("the name of a parameter");
            let typed = name.is_some() && self.expect(TypeMark, "':>' and the type of the parameter");
            let ty = if typed { self.ty() } else { self.missing_type() };
            all.extend(name.map(|name| Param { name, ty }));
            if !typed {
                self.skip_param();
            }
            if !self.eat(Comma) {
                break;
            }
        }
        if !self.eat(RParen) {
            if self.errors == errors {
                self.unexpected("',' or ')'");
            }
            self.skip_param();
            self.eat(RParen);
        }
        self.wrap(mark, SyntaxKind::Params);
        all
    }

    /// Skips what a reported parameter has left.
    fn skip_param(&mut self) {
        while !matches!(self.kind, End | Semicolon | RBrace | SyntaxKind::Define | LBrace | RParen | Comma) {
            self.bump();
        }
    }

    fn missing_type(&self) -> Type {
        Type { kind: TypeKind::Missing, span: self.here() }
    }

    pub(super) fn ty(&mut self) -> Type {
        let mark = self.mark();
        let kind = if self.enter() {
            let kind = self.type_kind();
            self.leave();
            kind
        } else {
            TypeKind::Missing
        };
        let mut ty = Type { kind, span: self.since(mark.start) };
        while self.at(LBracket) {
            self.bump();
            let length = self.number("the number of elements").unwrap_or(0);
            self.expect(RBracket, "']'");
            ty = Type { kind: TypeKind::Array(Box::new(ty), length), span: self.since(mark.start) };
        }
        self.wrap(mark, SyntaxKind::Type);
        ty
    }

    fn type_kind(&mut self) -> TypeKind {
        match self.kind {
            Star => {
                self.bump();
                of(TypeKind::Pointer, self.ty())
            }
            Question => {
                self.bump();
                of(TypeKind::Optional, self.ty())
            }
            LParen => {
                self.bump();
                let inner = match self.kind {
                    Ident if !BUILTIN.contains(&self.token_text()) => {
                        self.module_expr("a type").map_or(TypeKind::Missing, TypeKind::Name)
                    }
                    _ => self.ty().kind,
                };
                self.expect(RParen, "')'");
                inner
            }
            Ident if BUILTIN.contains(&self.token_text()) => {
                let mark = self.mark();
                let text = self.token_text().to_string();
                let span = self.bump();
                self.wrap(mark, SyntaxKind::Path);
                let parts = vec![super::ast::Name { text, span }];
                let path = super::ast::Path { global: false, parts, span };
                TypeKind::Name(ModuleExpr { path, ops: Vec::new() })
            }
            _ => match self.path("a type") {
                Some(path) => TypeKind::Name(ModuleExpr { path, ops: Vec::new() }),
                None => TypeKind::Missing,
            },
        }
    }
}
