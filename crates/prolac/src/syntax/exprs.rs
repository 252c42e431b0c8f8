// SPDX-License-Identifier: MIT OR Apache-2.0
//! Grammar of expressions, by operator precedence.

use super::MAX_NESTING;
use super::ast::{Expr, ExprKind, Name, Path};
use super::items::unquoted;
use super::kind::SyntaxKind::{
    self, Arrow, Comma, Dot, End, Ident, LBrace, LBracket, LParen, MinusMinus, Number, PlusPlus, RBrace,
    RBracket, RParen, Semicolon, Text, ThenArrow,
};
use super::parser::{Mark, Parser};
use super::words::{BUILTIN, HINTS, PREFIX, assignment, binary};
use castanet_diagnostic::Diagnostic;

/// Binding strengths, weakest first. Sequences (`,`) bind weaker than all of them.
pub(super) const THEN: u8 = 1;
pub(super) const ASSIGN: u8 = 2;
const COND: u8 = 3;
const DEFAULT: u8 = 4;
const OR: u8 = 5;
const AND: u8 = 6;

/// The height of an expression with these operands.
pub(super) fn above(operands: &[&Expr]) -> u16 {
    operands.iter().map(|e| e.height).max().unwrap_or(0).saturating_add(1)
}

impl Parser<'_> {
    /// Parses the body of a method, which may be empty.
    pub(super) fn body_expr(&mut self) -> Expr {
        if self.at(Semicolon) {
            return Expr { kind: ExprKind::Empty, span: self.here(), height: 1 };
        }
        self.sequence()
    }

    /// Parses `EXPR {, EXPR}`.
    pub(super) fn sequence(&mut self) -> Expr {
        let mark = self.mark();
        let first = self.expr(THEN);
        if !self.at(Comma) {
            return first;
        }
        let mut all = vec![first];
        while self.eat(Comma) {
            all.push(self.expr(THEN));
        }
        let height = above(&all.iter().collect::<Vec<_>>());
        self.finish(mark, SyntaxKind::Binary, ExprKind::Seq(all), height)
    }

    pub(super) fn finish(&mut self, mark: Mark, node: SyntaxKind, kind: ExprKind, height: u16) -> Expr {
        self.wrap(mark, node);
        Expr { kind, span: self.since(mark.start), height }
    }

    pub(super) fn missing(&self) -> Expr {
        Expr { kind: ExprKind::Missing, span: self.here(), height: 1 }
    }

    /// Whether a chain of operators has become too high. Reports it.
    fn too_high(&mut self, left: &Expr) -> bool {
        let yes = left.height >= MAX_NESTING;
        if yes {
            let d = Diagnostic::error(format!("more than {MAX_NESTING} operators in a chain"), self.here());
            self.error(
                d.at("too many operators").help("name a part of the expression by a method of its own"),
            );
            self.quiet = true;
        }
        yes
    }

    /// Parses an expression of operators that bind at least this strongly.
    pub(super) fn expr(&mut self, least: u8) -> Expr {
        if !self.enter() {
            self.skip_expr();
            return self.missing();
        }
        let mark = self.mark();
        let mut left = self.unary();
        while !self.too_high(&left) {
            match self.infix(mark, left, least) {
                Ok(e) => left = e,
                Err(e) => {
                    left = e;
                    break;
                }
            }
        }
        self.leave();
        left
    }

    /// Skips what a reported expression has left.
    fn skip_expr(&mut self) {
        let mark = self.mark();
        while !matches!(self.kind, End | Semicolon | RBrace) {
            self.bump();
        }
        self.wrap(mark, SyntaxKind::Error);
    }

    /// Extends `left` by one infix operator. Returns `Err(left)` if none of sufficient strength follows.
    fn infix(&mut self, mark: Mark, left: Expr, least: u8) -> Result<Expr, Expr> {
        let kind = self.kind;
        let op: Option<(u8, u8)> = match kind {
            ThenArrow => Some((THEN, THEN)),
            SyntaxKind::Question => Some((COND, COND)),
            SyntaxKind::Default => Some((DEFAULT, DEFAULT)),
            SyntaxKind::OrOr => Some((OR, OR + 1)),
            SyntaxKind::AndAnd => Some((AND, AND + 1)),
            _ if assignment(kind).is_some() => Some((ASSIGN, ASSIGN)),
            _ => binary(kind).map(|(strength, _)| (strength, strength + 1)),
        };
        let Some((strength, right_strength)) = op.filter(|(s, _)| *s >= least) else { return Err(left) };
        self.bump();
        if kind == SyntaxKind::Question {
            let yes = self.sequence();
            self.expect(SyntaxKind::Colon, "':'");
            let no = self.expr(COND);
            let height = above(&[&left, &yes, &no]);
            let kind = ExprKind::Cond(Box::new(left), Box::new(yes), Box::new(no));
            return Ok(self.finish(mark, SyntaxKind::Binary, kind, height));
        }
        let right = self.expr(right_strength);
        let height = above(&[&left, &right]);
        let (l, r) = (Box::new(left), Box::new(right));
        let kind = match kind {
            ThenArrow => ExprKind::Then(l, r),
            SyntaxKind::Default => ExprKind::Default(l, r),
            SyntaxKind::OrOr => ExprKind::OrOr(l, r),
            SyntaxKind::AndAnd => ExprKind::AndAnd(l, r),
            kind => match (binary(kind), strength) {
                (Some((_, op)), s) if s > AND => ExprKind::Binary(op, l, r),
                _ => ExprKind::Assign(assignment(kind).flatten(), l, r),
            },
        };
        Ok(self.finish(mark, SyntaxKind::Binary, kind, height))
    }

    fn unary(&mut self) -> Expr {
        let (current, word) = (self.kind, if self.kind == Ident { self.token_text() } else { "" });
        let hint = HINTS.iter().find(|(name, _)| *name == word).map(|(_, hint)| *hint);
        let op = PREFIX.iter().find(|(kind, _)| *kind == current).map(|(_, op)| *op);
        let delete = self.at_word("delete");
        if hint.is_none() && op.is_none() && !delete {
            return self.postfix();
        }
        let mark = self.mark();
        self.bump();
        if !self.enter() {
            self.skip_expr();
            return self.missing();
        }
        let operand = self.unary();
        self.leave();
        let height = above(&[&operand]);
        let operand = Box::new(operand);
        let kind = match (hint, op) {
            (Some(hint), _) => ExprKind::Hint(hint, operand),
            (_, Some(op)) => ExprKind::Unary(op, operand),
            _ => ExprKind::Delete(operand),
        };
        self.finish(mark, SyntaxKind::Unary, kind, height)
    }

    fn postfix(&mut self) -> Expr {
        let mark = self.mark();
        let mut e = self.primary();
        while !self.too_high(&e) {
            let (node, kind, height) = match self.kind {
                LParen => {
                    let args = self.args();
                    let height = above(&args.iter().chain([&e]).collect::<Vec<_>>());
                    (SyntaxKind::Call, ExprKind::Call { callee: Box::new(e), args }, height)
                }
                Dot | Arrow => {
                    let arrow = self.kind == Arrow;
                    self.bump();
                    let constructor = self.at_word("constructor");
                    let name = match constructor {
                        true => Some(Name { text: "constructor".into(), span: self.bump() }),
                        false => self.name("the name of a member"),
                    };
                    let Some(name) = name else { return e };
                    let height = above(&[&e]);
                    (SyntaxKind::Member, ExprKind::Member { base: Box::new(e), name, arrow }, height)
                }
                LBracket => {
                    self.bump();
                    let index = self.sequence();
                    self.expect(RBracket, "']'");
                    let height = above(&[&e, &index]);
                    (
                        SyntaxKind::Postfix,
                        ExprKind::Index { base: Box::new(e), index: Box::new(index) },
                        height,
                    )
                }
                PlusPlus | MinusMinus => {
                    let up = self.kind == PlusPlus;
                    self.bump();
                    let height = above(&[&e]);
                    (SyntaxKind::Postfix, ExprKind::Postfix(up, Box::new(e)), height)
                }
                Ident if self.at_word("as") => {
                    self.bump();
                    let ty = self.ty();
                    let height = above(&[&e]);
                    (SyntaxKind::Postfix, ExprKind::Cast(ty, Box::new(e)), height)
                }
                _ => break,
            };
            e = self.finish(mark, node, kind, height);
        }
        e
    }

    /// Parses arguments with their parentheses.
    fn args(&mut self) -> Vec<Expr> {
        self.bump();
        let mut all = Vec::new();
        while !matches!(self.kind, RParen | End | Semicolon | RBrace) {
            all.push(self.expr(THEN));
            if !self.eat(Comma) {
                break;
            }
        }
        self.expect(RParen, "an operator, ',' or ')'");
        all
    }

    fn primary(&mut self) -> Expr {
        let mark = self.mark();
        let word = if self.kind == Ident { self.token_text() } else { "" };
        let kind = match (self.kind, word) {
            (Number, _) => ExprKind::Number(self.number("a number").unwrap_or(0)),
            (Text, _) => {
                let text = unquoted(self.token_text());
                self.bump();
                ExprKind::Text(text)
            }
            (_, "true") => self.atom(ExprKind::Bool(true)),
            (_, "false") => self.atom(ExprKind::Bool(false)),
            (_, "none") => self.atom(ExprKind::None),
            (_, "self") => self.atom(ExprKind::SelfPtr),
            (_, "super") => self.atom(ExprKind::Super),
            (_, "let") => return self.let_expr(mark),
            (_, "try") => return self.try_expr(mark),
            (_, "new") => {
                self.bump();
                let Some(path) = self.path("the name of a module") else { return self.missing() };
                let args = if self.at(LParen) { self.args() } else { Vec::new() };
                let height = above(&args.iter().collect::<Vec<_>>());
                return self.finish(mark, SyntaxKind::Call, ExprKind::New(path, args), height);
            }
            (_, "sizeof") => {
                self.bump();
                if !self.expect(LParen, "'(' and a type") {
                    return self.missing();
                }
                let ty = self.ty();
                self.expect(RParen, "')'");
                return self.finish(mark, SyntaxKind::Call, ExprKind::SizeOf(ty), 1);
            }
            (LParen, _) => return self.paren(mark),
            (LBrace, _) => return self.action(mark),
            (Dot, _) => {
                self.bump();
                let Some(name) = self.name("a name") else { return self.missing() };
                let path = Path { global: true, parts: vec![name], span: self.since(mark.start) };
                ExprKind::Name(path)
            }
            _ if self.at_name() => {
                let Some(name) = self.name("a name") else { return self.missing() };
                ExprKind::Name(Path { global: false, span: name.span, parts: vec![name] })
            }
            _ => {
                self.unexpected("an expression");
                return self.missing();
            }
        };
        self.finish(mark, SyntaxKind::Atom, kind, 1)
    }

    fn atom(&mut self, kind: ExprKind) -> ExprKind {
        self.bump();
        kind
    }

    /// Parses `( EXPR )`, or the cast `(TYPE) OPERAND` to a built-in type.
    fn paren(&mut self, mark: Mark) -> Expr {
        self.bump();
        if self.kind == Ident && BUILTIN.contains(&self.token_text()) {
            let ty = self.ty();
            self.expect(RParen, "')'");
            if !self.enter() {
                self.skip_expr();
                return self.missing();
            }
            let operand = self.unary();
            self.leave();
            let height = above(&[&operand]);
            return self.finish(mark, SyntaxKind::Unary, ExprKind::Cast(ty, Box::new(operand)), height);
        }
        let inner = self.sequence();
        if !self.eat(RParen) {
            self.unexpected("an operator or ')'");
        }
        let height = above(&[&inner]);
        self.finish(mark, SyntaxKind::Paren, ExprKind::Paren(Box::new(inner)), height)
    }
}
