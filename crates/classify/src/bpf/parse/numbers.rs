// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numeric comparisons: `ip[8] < 5`, `tcp[tcpflags] & tcp-syn != 0`, `len > 100`.

use super::literal::{named_number, number};
use super::{PROTOCOLS, Parsed, Parser, protocol_number};
use crate::bpf::Frames;
use crate::bpf::code::{Address, MAX_NUMBER_DEPTH, Node, Number, Operator, Relation, Size};
use crate::bpf::lex::Token;
use crate::bpf::terms::{ARP, ICMP6, IP, IP6, RARP, byte};
use crate::error::Fault;

impl Parser<'_> {
    /// Parses a numeric comparison. If the next tokens are not one, returns `None` and consumes no token.
    pub(super) fn relation(&mut self) -> Parsed<Option<Node>> {
        let (at, terms) = (self.at, self.terms);
        let mut guards = Vec::new();
        // A name followed by `[` always begins a number, so an error in the number is reported. Any other text may also
        // be a test: parentheses, for example, may enclose a number or a test.
        let sure =
            matches!(self.tokens.get(at + 1), Some((Token::Sign("["), _))) && self.peek() != Token::Sign("(");
        let left = match self.sum(0, 0, &mut guards) {
            Ok(n) => n,
            Err(e) if sure => return Err(e),
            Err(_) => {
                (self.at, self.terms) = (at, terms);
                return Ok(None);
            }
        };
        const RELATIONS: [(&str, Relation, bool); 7] = [
            ("=", Relation::Equal, true),
            ("==", Relation::Equal, true),
            ("!=", Relation::Equal, false),
            (">", Relation::Greater, true),
            (">=", Relation::GreaterEqual, true),
            ("<", Relation::GreaterEqual, false),
            ("<=", Relation::Greater, false),
        ];
        let Some((_, relation, holds)) = RELATIONS.iter().find(|r| self.accept(r.0)) else {
            if !sure {
                (self.at, self.terms) = (at, terms);
                return Ok(None);
            }
            return Err(self.fault("a number is not a test").expected("'=', '!=', '<', '>', '<=' or '>='"));
        };
        let right = self.sum(0, 0, &mut guards)?;
        let test = Node::Test(left, *relation, right);
        let test = if *holds { test } else { test.negate() };
        Ok(Some(guards.into_iter().rev().fold(test, |node, guard| Node::And(vec![guard, node]))))
    }

    /// Parses numbers joined by operators of at least precedence `least`. Precedence is as in C.
    fn sum(&mut self, least: u8, depth: usize, guards: &mut Vec<Node>) -> Parsed<Number> {
        if depth > MAX_NUMBER_DEPTH {
            return Err(self.fault(format!("numbers nested deeper than {MAX_NUMBER_DEPTH} levels")));
        }
        let mut left = self.operand(depth, guards)?;
        const OPERATORS: [(&str, Operator, u8); 10] = [
            ("|", Operator::Or, 0),
            ("&", Operator::And, 2),
            ("^", Operator::Xor, 1),
            ("<<", Operator::Shl, 3),
            (">>", Operator::Shr, 3),
            ("+", Operator::Add, 4),
            ("-", Operator::Sub, 4),
            ("*", Operator::Mul, 5),
            ("/", Operator::Div, 5),
            ("%", Operator::Mod, 5),
        ];
        while let Some((_, operator, strength)) =
            OPERATORS.iter().find(|o| o.2 >= least && self.peek() == Token::Sign(o.0))
        {
            self.at += 1;
            self.count()?;
            let right = self.sum(strength + 1, depth + 1, guards)?;
            if matches!(operator, Operator::Div | Operator::Mod) && right == Number::Constant(0) {
                return Err(self.fault("division by zero"));
            }
            if matches!(operator, Operator::Shl | Operator::Shr) && matches!(right, Number::Constant(32..)) {
                return Err(self.fault("shift by more than 31 bits"));
            }
            left = Number::Binary(*operator, Box::new([left, right]));
        }
        Ok(left)
    }

    fn operand(&mut self, depth: usize, guards: &mut Vec<Node>) -> Parsed<Number> {
        if self.accept("-") {
            return Ok(Number::Negative(Box::new(self.sum(6, depth + 1, guards)?)));
        }
        if self.accept("(") {
            let n = self.sum(0, depth + 1, guards)?;
            self.expect(")")?;
            return Ok(n);
        }
        let place = self.place();
        let fault = Fault::new(place, "no number").expected("a number, 'len', or bytes such as 'ip[8]'");
        let Token::Word(w) = self.peek() else { return Err(fault) };
        let bracket = matches!(self.tokens.get(self.at + 1), Some((Token::Sign("["), _)));
        if w == "len" || w == "length" {
            self.at += 1;
            return Ok(Number::Length);
        }
        if let Some(n) = number(w).or_else(|| named_number(w)) {
            self.at += 1;
            return Ok(Number::Constant(n));
        }
        if !bracket || !PROTOCOLS.contains(&w) {
            return Err(fault);
        }
        self.at += 2;
        let offset = self.sum(0, depth + 1, guards)?;
        let size = if self.accept(":") {
            match self.number_word("1, 2 or 4")? {
                1 => Size::Byte,
                2 => Size::Half,
                4 => Size::Word,
                _ => return Err(self.fault("a number has 1, 2 or 4 bytes")),
            }
        } else {
            Size::Byte
        };
        self.expect("]")?;
        let (base, behind) = self.bytes_of(w, guards)?;
        let place = match (offset, behind) {
            (Number::Constant(k), false) => Address::At(base.wrapping_add(k)),
            (Number::Constant(offset), true) => Address::AfterIp { ip: base, offset },
            (offset, false) => Address::Computed { base, offset: Box::new(offset) },
            (offset, true) => Address::ComputedAfterIp { ip: base, offset: Box::new(offset) },
        };
        Ok(Number::Load(size, place))
    }

    /// The offset of a protocol's header, and whether it follows an IPv4 header of variable length. The tests
    /// that must hold for the header to be present are added to `guards`.
    fn bytes_of(&mut self, w: &str, guards: &mut Vec<Node>) -> Parsed<(u32, bool)> {
        let l = &self.layout;
        let ip = l.network();
        let (guard, base, behind) = match w {
            "ether" if l.frames == Frames::Ip => {
                return Err(self.fault("packets of this device have no Ethernet header"));
            }
            "ether" => (Node::Constant(true), 0, false),
            "ip" => (l.ether_type(IP), ip, false),
            "ip6" => (l.ether_type(IP6), ip, false),
            "arp" => (l.ether_type(ARP), ip, false),
            "rarp" => (l.ether_type(RARP), ip, false),
            "icmp6" => {
                let next = byte(ip.wrapping_add(6), ICMP6);
                (l.ether_type(IP6).and(next), ip.wrapping_add(40), false)
            }
            p => (l.ip_protocol(protocol_number(p).unwrap_or(0)).and(l.first_fragment()), ip, true),
        };
        guards.push(guard);
        Ok((base, behind))
    }
}
