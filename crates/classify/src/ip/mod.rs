// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boolean grammar of header expressions, used by `IPClassifier` and `IPFilter`.
//!
//! Precedence from lowest to highest: `C ? A : B`; `or`; `and` and juxtaposition; `not`; parentheses and tests.

mod compile;
mod lex;
mod operand;
mod term;
mod value;

use std::ops::Range;

use crate::dag::MAX_NODES;
use crate::error::Fault;
use crate::expr::Expr;
use crate::names::Names;
use lex::{Lexer, Token};
use term::Previous;

/// Limit on the nesting of parentheses and ternaries, so that recursion cannot overflow the stack.
const MAX_DEPTH: usize = 200;

/// A rule of `IPFilter`.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The output; `None` for a drop.
    pub(crate) port: Option<u32>,
    /// The range of the action in the text.
    pub(crate) action: Range<usize>,
    pub(crate) expr: Expr,
    pub(crate) notes: Vec<Fault>,
}

/// Parses a whole pattern. Also returns a warning for each relation that is always true or always false.
pub(crate) fn parse_pattern(text: &str, names: &dyn Names) -> Result<(Expr, Vec<Fault>), Fault> {
    parse_from(text, 0, names)
}

/// Parses `ACTION EXPRESSION`.
pub(crate) fn parse_rule(text: &str, names: &dyn Names) -> Result<Rule, Fault> {
    const ACTIONS: &str = "'allow', 'deny', 'drop' or an output number";
    let ((token, action), _) = Lexer::new(text, 0).clone_and_next();
    let port = match token {
        Token::Word("allow") => Some(0),
        Token::Word("deny" | "drop") => None,
        Token::Word(w) if w.bytes().all(|b| b.is_ascii_digit()) => match w.parse::<u32>() {
            Ok(port) if port < crate::dag::DROP => Some(port),
            _ => return Err(Fault::new(action, "output number too large").expected(ACTIONS)),
        },
        Token::End => return Err(Fault::new(action, "empty rule").expected("'ACTION EXPRESSION'")),
        _ => return Err(Fault::new(action, "unknown action").expected(ACTIONS)),
    };
    let (expr, notes) = parse_from(text, action.end, names)?;
    Ok(Rule { port, action, expr, notes })
}

fn parse_from(text: &str, at: usize, names: &dyn Names) -> Result<(Expr, Vec<Fault>), Fault> {
    if text.get(at..).unwrap_or_default().trim_ascii() == "-" {
        return Ok((Expr::Const(true), Vec::new()));
    }
    let lexer = Lexer::new(text, at);
    let mut parser = Parser { lexer, names, previous: None, ended: 0, notes: Vec::new(), depth: 0, tests: 0 };
    let expr = parser.expression()?;
    let (token, range) = parser.lexer.next();
    match token {
        Token::End => Ok((expr, parser.notes)),
        Token::Close => Err(Fault::new(range, "')' without '('")),
        Token::Ampersand => Err(Fault::new(range, "'&' after a complete test").expected("'&&' or 'and'")),
        Token::Stray("|") => Err(Fault::new(range, "'|' is not an operator").expected("'||' or 'or'")),
        Token::Colon => Err(Fault::new(range, "':' without '?'")),
        _ => Err(Fault::new(range, "test is complete here").expected("'and', 'or', '?' or the end")),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    names: &'a dyn Names,
    /// The last test with a value. The next test may omit the parts that it has in common with this one.
    previous: Option<Previous>,
    /// The position in the text at which the last test with a value ends.
    ended: usize,
    notes: Vec<Fault>,
    depth: usize,
    tests: usize,
}

impl<'a> Parser<'a> {
    /// Consumes the next token if it is `wanted`.
    fn accept(&mut self, wanted: Token<'_>) -> bool {
        let ((token, _), behind) = self.lexer.clone_and_next();
        let found = token == wanted;
        if found {
            self.lexer = behind;
        }
        found
    }

    fn expression(&mut self) -> Result<Expr, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let range = self.lexer.peek().1;
            return Err(Fault::new(range, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let condition = self.disjunction()?;
        let expr = if self.accept(Token::Question) {
            let then = self.expression()?;
            let (token, range) = self.lexer.next();
            if token != Token::Colon {
                return Err(Fault::new(range, "'?' without ':'").expected("':' between spaces"));
            }
            let otherwise = self.expression()?;
            Expr::If(Box::new([condition, then, otherwise]))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn disjunction(&mut self) -> Result<Expr, Fault> {
        let mut all = vec![self.conjunction()?];
        while self.accept(Token::Or) {
            all.push(self.conjunction()?);
        }
        Ok(one_or(all, Expr::Or))
    }

    fn conjunction(&mut self) -> Result<Expr, Fault> {
        let mut all = vec![self.negation()?];
        loop {
            if !self.accept(Token::And)
                && !matches!(
                    self.lexer.peek().0,
                    Token::Word(_) | Token::Open | Token::Not | Token::OpenBracket
                )
                && !self.repeats_with_mask()
            {
                return Ok(one_or(all, Expr::And));
            }
            all.push(self.negation()?);
        }
    }

    /// Whether the next test repeats the field of the previous test and begins with a mask.
    /// Example: `src 10.0.0.0 & 8.0.0.0 = 8.0.0.0`.
    fn repeats_with_mask(&self) -> bool {
        let ((token, _), behind) = self.lexer.clone_and_next();
        let ((mask, _), behind) = behind.clone_and_next();
        self.lexer.at() == self.ended
            && token == Token::Ampersand
            && matches!(mask, Token::Word(_))
            && behind.peek().0.relation().is_some()
    }

    fn negation(&mut self) -> Result<Expr, Fault> {
        let mut negated = false;
        while self.accept(Token::Not) {
            negated = !negated;
        }
        let expr = self.primary()?;
        Ok(if negated { expr.negate() } else { expr })
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        let ((token, range), behind) = self.lexer.clone_and_next();
        match token {
            Token::Open => {
                self.lexer = behind;
                let expr = self.expression()?;
                let (token, end) = self.lexer.next();
                match token {
                    Token::Close => Ok(expr),
                    Token::End => Err(Fault::new(range, "'(' without ')'")),
                    _ => Err(Fault::new(end, "test is complete here").expected("')', 'and' or 'or'")),
                }
            }
            Token::Word("true" | "any" | "all") => {
                self.lexer = behind;
                Ok(Expr::Const(true))
            }
            Token::Word("false") => {
                self.lexer = behind;
                Ok(Expr::Const(false))
            }
            _ => {
                let expr = self.term()?;
                self.tests += expr.size();
                if self.tests > MAX_NODES {
                    let message = format!("the pattern needs more than {MAX_NODES} tests");
                    return Err(Fault::new(range, message));
                }
                Ok(expr)
            }
        }
    }
}

fn one_or(mut all: Vec<Expr>, combine: fn(Vec<Expr>) -> Expr) -> Expr {
    match (all.pop(), all.is_empty()) {
        (Some(last), true) => last,
        (Some(last), false) => {
            all.push(last);
            combine(all)
        }
        (None, _) => combine(all),
    }
}
