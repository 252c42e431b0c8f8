// SPDX-License-Identifier: MIT OR Apache-2.0
//! Grammar of a file: modules, namespaces, inclusions, and what the program exchanges with its host.

use super::ast::{
    HostDecl, Item, MethodKind, ModuleDecl, ModuleExpr, Name, Operator, OperatorKind, Parent, Path, Text,
};
use super::kind::SyntaxKind::{
    self, Comma, Dot, End, Eq, Ident, LBrace, LParen, RBrace, RParen, Semicolon, TypeMark,
};
use super::parser::Parser;
use super::words::OPERATORS;
use castanet_diagnostic::Diagnostic;

impl Parser<'_> {
    pub(super) fn items(&mut self) -> Vec<Item> {
        let mut all = Vec::new();
        while self.kind != End {
            if self.kind == RBrace {
                self.unexpected("a declaration");
                self.bump();
                continue;
            }
            all.extend(self.item());
        }
        all
    }

    /// Parses one item. It always consumes a token.
    fn item(&mut self) -> Option<Item> {
        self.quiet = false;
        let (mark, next) = (self.mark(), self.peek());
        let word = if self.kind == Ident { self.token_text() } else { "" };
        let (kind, item) = match word {
            "module" => (SyntaxKind::Module, self.module()),
            "include" if next == SyntaxKind::Text => (SyntaxKind::Include, self.include()),
            "hookup" if matches!(next, Ident | Dot) => (SyntaxKind::Hookup, self.hookup()),
            "export" if matches!(next, Ident | Dot) => (SyntaxKind::Export, self.export()),
            "host" if next == Ident => (SyntaxKind::Host, self.host()),
            _ if self.at_name() && next == LBrace => (SyntaxKind::Namespace, self.top_namespace()),
            _ if self.at_name() || word == "static" || word == "const" => {
                (SyntaxKind::Method, self.method(false).map(Item::Method))
            }
            _ => {
                self.unexpected("a module, namespace or method");
                self.bump();
                self.recover();
                (SyntaxKind::Error, None)
            }
        };
        self.wrap(mark, kind);
        item
    }

    fn top_namespace(&mut self) -> Option<Item> {
        let name = self.name("a name")?;
        let body = self.mark();
        self.bump();
        let mut items = Vec::new();
        if self.enter() {
            while !matches!(self.kind, End | RBrace) {
                items.extend(self.item());
            }
            self.leave();
        } else {
            self.recover();
        }
        self.close_brace(name.span);
        self.wrap(body, SyntaxKind::Body);
        Some(Item::Namespace(name, items))
    }

    /// Consumes the `}` of a block whose name is at `opened`.
    pub(super) fn close_brace(&mut self, opened: castanet_diagnostic::Span) {
        if self.kind == End {
            let d = Diagnostic::error("block without an end", self.here()).at("'}' expected");
            self.error(d.label("its name", opened));
        } else {
            self.eat(RBrace);
        }
    }

    /// Parses `module PATH = MODULE ;`, or `module PATH [:> [hookup] MODULE] { … } [OPERATORS] [;]`.
    fn module(&mut self) -> Option<Item> {
        let start = self.start;
        self.bump();
        let Some(name) = self.path("the name of the module") else {
            self.recover();
            return None;
        };
        if self.eat(Eq) {
            let module = self.module_expr("the module that gets a new name");
            self.end_of_item();
            return module.map(|module| Item::Alias(name, module));
        }
        let mut parent = None;
        if self.eat(TypeMark) {
            let hookup =
                self.at_word("hookup") && matches!(self.peek(), Ident | Dot) && self.eat_word("hookup");
            parent =
                self.module_expr("the module that this one extends").map(|module| Parent { hookup, module });
        }
        let span = self.since(start);
        if !self.at(LBrace) {
            self.unexpected("'{'");
            self.recover();
            return Some(Item::Module(ModuleDecl {
                name,
                parent,
                members: Vec::new(),
                after: Vec::new(),
                span,
            }));
        }
        let members = self.body(name.span);
        let after = self.operators();
        self.eat(Semicolon);
        Some(Item::Module(ModuleDecl { name, parent, members, after, span }))
    }

    /// Reports the end of a method without a semicolon: after the last token, if the next one is on another line.
    fn missing_semicolon(&mut self) {
        let between = self.text.get(self.last_end..self.start).unwrap_or("");
        if self.kind == End || !between.contains('\n') {
            self.unexpected("an operator or ';'");
            return;
        }
        let end = self.span(self.last_end..self.last_end);
        let d = Diagnostic::error("missing ';'", end).at("an operator or ';' expected");
        self.error(d.label("the next declaration", self.here()));
    }

    pub(super) fn end_of_item(&mut self) {
        if !self.eat(Semicolon) {
            self.unexpected("';'");
            self.recover();
        }
    }

    /// Parses `PATH {OPERATOR}`.
    pub(super) fn module_expr(&mut self, expected: &str) -> Option<ModuleExpr> {
        let Some(path) = self.path(expected) else {
            self.recover();
            return None;
        };
        Some(ModuleExpr { path, ops: self.operators() })
    }

    pub(super) fn operators(&mut self) -> Vec<Operator> {
        let mut all = Vec::new();
        while self.kind == Ident {
            let word = self.token_text();
            let Some((_, kind)) = OPERATORS.iter().find(|(name, _)| *name == word) else { break };
            // A method that is named like an operator follows the module.
            if !matches!(self.peek(), Ident | LParen | Dot) || self.starts_method() {
                break;
            }
            let mark = self.mark();
            self.bump();
            let names = self.operator_names(*kind);
            self.wrap(mark, SyntaxKind::Operator);
            all.push(Operator { kind: *kind, names, span: self.since(mark.start) });
        }
        all
    }

    /// Whether the current word starts a declaration, as it seems.
    fn starts_declaration(&self) -> bool {
        let word = if self.kind == Ident { self.token_text() } else { "" };
        matches!(word, "field" | "static" | "const" | "constructor" | "exception" | "module")
            || (self.at_name() && matches!(self.peek(), SyntaxKind::Define | TypeMark))
            || (self.at_name() && self.starts_method())
    }

    /// Whether the current word and a `(` start the definition of a method: `::=` or `:>` follows the `)`.
    fn starts_method(&self) -> bool {
        let rest = self.text.get(self.end..).unwrap_or("").trim_start();
        let Some(inner) = rest.strip_prefix('(') else { return false };
        // Parameters contain none of the other characters, which end the search.
        let Some(end) = inner.find([')', ';', '{', '}']) else { return false };
        let Some(after) = inner.get(end..).and_then(|rest| rest.strip_prefix(')')) else { return false };
        let after = after.trim_start();
        after.starts_with("::=") || after.starts_with(":>")
    }

    /// Parses `all`, one name, or names in parentheses; with `rename`, each is `OLD = NEW`.
    fn operator_names(&mut self, kind: OperatorKind) -> Option<Vec<(Path, Option<Name>)>> {
        if self.at_word("all") && kind != OperatorKind::Rename {
            self.bump();
            return None;
        }
        let mut names = Vec::new();
        let parens = self.eat(LParen);
        loop {
            if parens && self.at(RParen) {
                break;
            }
            let Some(path) = self.path("a name") else { break };
            let mut new = None;
            if kind == OperatorKind::Rename && self.expect(Eq, "'=' and the new name") {
                new = self.name("the new name");
            }
            names.push((path, new));
            if !parens || !self.eat(Comma) {
                break;
            }
        }
        if parens {
            self.expect(RParen, "',' or ')'");
        }
        Some(names)
    }

    fn string(&mut self) -> Option<Text> {
        if !self.at(SyntaxKind::Text) {
            self.unexpected("the name of a file in quotes");
            return None;
        }
        let text = unquoted(self.token_text());
        Some(Text { text, span: self.bump() })
    }

    fn include(&mut self) -> Option<Item> {
        self.bump();
        let file = self.string();
        self.end_of_item();
        file.map(Item::Include)
    }

    /// Parses `hookup NAME "FILE";` or `hookup NAME :> MODULE;`.
    fn hookup(&mut self) -> Option<Item> {
        self.bump();
        let path = self.path("a name")?;
        let item = if self.eat(TypeMark) {
            self.module_expr("the module that the name denotes").map(|m| Item::HookName(path, m))
        } else if let (SyntaxKind::Text, false, [name]) = (self.kind, path.global, path.parts.as_slice()) {
            let name = name.clone();
            self.string().map(|file| Item::Extension(name, file))
        } else {
            self.unexpected("a file in quotes, or ':>' and a module,");
            None
        };
        self.end_of_item();
        item
    }

    fn export(&mut self) -> Option<Item> {
        self.bump();
        let mut all = Vec::new();
        loop {
            all.extend(self.path("the name of a module"));
            if !self.eat(Comma) {
                break;
            }
        }
        self.end_of_item();
        Some(Item::Export(all))
    }

    /// Parses `host NAME [(PARAMS)] [:> TYPE];`.
    fn host(&mut self) -> Option<Item> {
        self.bump();
        let name = self.name("the name of a function")?;
        let params = self.params();
        let result = self.eat(TypeMark).then(|| self.ty());
        self.end_of_item();
        Some(Item::Host(HostDecl { name, params, result }))
    }

    /// Parses a method, constant or constructor. Constructors only occur inside modules.
    pub(super) fn method(&mut self, inside: bool) -> Option<super::ast::MethodDecl> {
        let errors = self.errors;
        let kind = match self.token_text() {
            "static" => MethodKind::Static,
            "const" => MethodKind::Constant,
            "constructor" if inside => MethodKind::Constructor,
            _ => MethodKind::Method,
        };
        let path = match kind {
            MethodKind::Constructor => {
                let name = Name { text: "constructor".into(), span: self.bump() };
                Some(Path { global: false, span: name.span, parts: vec![name] })
            }
            MethodKind::Method => self.path("a name"),
            _ => {
                self.bump();
                self.path("a name")
            }
        };
        let Some(path) = path else {
            self.recover();
            return None;
        };
        let constructor = path.parts.last().is_some_and(|n| n.text == "constructor");
        let kind = if constructor { MethodKind::Constructor } else { kind };
        let params = self.params();
        let result = self.eat(TypeMark).then(|| self.ty());
        let broken = |p: &Self| p.errors > errors;
        let mut body = self.missing();
        if self.eat(SyntaxKind::Define) {
            body = self.body_expr();
            if !self.eat(Semicolon) {
                if !broken(self) {
                    self.missing_semicolon();
                }
                if !self.starts_declaration() {
                    self.recover();
                }
            }
        } else {
            if !broken(self) {
                self.unexpected(if result.is_some() { "'::='" } else { "'::=' or ':>'" });
            }
            self.recover();
        }
        let broken = broken(self);
        let body = if broken { self.missing() } else { body };
        Some(super::ast::MethodDecl { kind, path, params, result, body, broken })
    }
}

/// The text of a string token without its quotes and with its escapes replaced.
pub(super) fn unquoted(token: &str) -> String {
    let inner = token.strip_prefix('"').unwrap_or(token);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let (mut out, mut chars) = (String::new(), inner.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('0') => out.push('\0'),
                Some(c) => out.push(c),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}
