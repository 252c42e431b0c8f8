// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses one test of a header expression: the qualifiers and the value after them.

use std::ops::Range;

use super::Parser;
use super::compile::{Direction, Flag, ICMP, IP_FIELDS, Operand, Proto, TCP, Test, Type};
use super::lex::Token;
use super::operand::Given;
use super::value::{Value, literal, number};
use crate::error::Fault;
use crate::expr::{Expr, Field, NETWORK, Relation, TRANSPORT};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    Ip,
    Ether,
}

/// The qualifiers before a value, in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct Qualifiers {
    pub(super) direction: Option<(Direction, Range<usize>)>,
    pub(super) header: Option<Header>,
    pub(super) proto: Option<Proto>,
    pub(super) ty: Option<(Type, Range<usize>)>,
}

/// The last complete test. The next test takes omitted parts from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Previous {
    pub(super) ty: Type,
    pub(super) direction: Option<Direction>,
    pub(super) proto: Option<Proto>,
    pub(super) mask: Option<u64>,
}

const AFTER_DIRECTION: &str = "'host', 'net', 'port' or an address";

impl<'a> Parser<'a> {
    /// Parses one test.
    pub(super) fn term(&mut self) -> Result<Expr, Fault> {
        let mut q = Qualifiers::default();
        let mut any = false;
        loop {
            let ((token, range), behind) = self.lexer.clone_and_next();
            match token {
                // The word after 'proto' is a value even if it looks like a qualifier.
                Token::Word(_) if matches!(q.ty, Some((Type::Proto, _))) => break,
                Token::Word(word) => {
                    if let Some(flag) = flag(word) {
                        self.lexer = behind;
                        return self.flag_test(flag, &q, range);
                    }
                    if !self.qualifier(word, range, &mut q)? {
                        break;
                    }
                }
                Token::OpenBracket if q.ty.is_none() => {
                    self.lexer = behind;
                    let (ty, range) = self.bytes(&q, range)?;
                    q.ty = Some((ty, range));
                }
                _ => break,
            }
            any = true;
        }
        self.contradictions(&mut q)?;
        self.rest_of_test(q, any)
    }

    /// Consumes `word` if it is a qualifier.
    fn qualifier(&mut self, word: &str, range: Range<usize>, q: &mut Qualifiers) -> Result<bool, Fault> {
        let twice = |what: &str| Err(Fault::new(range.clone(), format!("duplicate {what}")));
        let mut behind = self.lexer.clone_and_next().1;
        match word {
            "src" | "dst" | "dest" => {
                if q.direction.is_some() {
                    return twice("direction");
                }
                let mut direction = if word == "src" { Direction::Src } else { Direction::Dst };
                let ((join, _), after) = behind.clone_and_next();
                let ((other, other_range), after) = after.clone_and_next();
                let mut end = range.end;
                let opposite = match other {
                    Token::Word("src") => word != "src",
                    Token::Word("dst" | "dest") => word == "src",
                    _ => false,
                };
                if opposite && matches!(join, Token::And | Token::Or) {
                    direction = if join == Token::Or { Direction::Either } else { Direction::Both };
                    end = other_range.end;
                    behind = after;
                }
                q.direction = Some((direction, range.start..end));
            }
            "ip" | "ether" => {
                let header = if word == "ip" { Header::Ip } else { Header::Ether };
                if q.header.is_some_and(|h| h != header) {
                    return Err(Fault::new(range, "a test cannot have both 'ip' and 'ether'"));
                }
                q.header = Some(header);
            }
            _ => {
                if let Some(proto) = proto_word(word) {
                    if q.proto.is_some_and(|p| p != proto) {
                        return Err(Fault::new(range, "a test cannot have two protocols")
                            .expected("'or' between them, or a value"));
                    }
                    q.proto = Some(proto);
                } else if let Some(ty) = type_word(word) {
                    if q.ty.is_some() {
                        return twice("field to compare");
                    }
                    q.ty = Some((ty, range));
                } else {
                    return Ok(false);
                }
            }
        }
        self.lexer = behind;
        Ok(true)
    }

    fn flag_test(&self, flag: Flag, q: &Qualifiers, range: Range<usize>) -> Result<Expr, Fault> {
        let unfit = |what: &str| Err(Fault::new(range.clone(), format!("{what} does not apply here")));
        match q {
            Qualifiers { direction: Some(_), .. } => unfit("a direction"),
            Qualifiers { header: Some(Header::Ether), .. } => unfit("'ether'"),
            Qualifiers { ty: Some(_), .. } => {
                Err(Fault::new(range.clone(), "no value before this word").expected("a value"))
            }
            _ => Ok(Expr::And(q.proto.iter().map(|p| p.test()).chain([flag.test()]).collect())),
        }
    }

    /// Parses `[POS]`, `[POS:LEN]` or `[POS,END]`. The opening bracket has been consumed.
    fn bytes(&mut self, q: &Qualifiers, open: Range<usize>) -> Result<(Type, Range<usize>), Fault> {
        const FORM: &str = "'[POS:LEN]' or '[POS,END]'";
        let Some((inside, range)) = self.lexer.bracketed() else {
            return Err(Fault::new(open, "'[' without ']'").expected(FORM));
        };
        let whole = open.start..range.end + 1;
        let fault = |message: &str| Fault::new(range.clone(), message);
        let read = |text: &str| number(text.trim_ascii()).map_err(|m| fault(m).expected(FORM));
        let (pos, len) = if let Some((pos, len)) = inside.split_once(':') {
            (read(pos)?, read(len)?)
        } else if let Some((pos, end)) = inside.split_once(',') {
            let (pos, end) = (read(pos)?, read(end)?);
            if end < pos {
                return Err(fault("END lies before POS").expected(FORM));
            }
            (pos, (end - pos).saturating_add(1))
        } else {
            (read(inside)?, 1)
        };
        if !(1..=4).contains(&len) {
            return Err(fault("LEN out of range").expected("1 to 4 bytes"));
        }
        let ether = q.header == Some(Header::Ether);
        if (pos & 3) + len > 4 && !(ether && pos < NETWORK && Field::ends_aligned(pos, len)) {
            return Err(
                fault("the bytes extend over two aligned 4-byte words").expected("bytes within one word")
            );
        }
        let (base, limit) = match (q.proto, q.header) {
            (_, Some(Header::Ether)) => (0, NETWORK - 4),
            (Some(_), _) => (TRANSPORT, 1 << 16),
            (None, Some(Header::Ip)) => (NETWORK, NETWORK),
            (None, None) => {
                return Err(Fault::new(whole, "no header named before '['")
                    .expected("'ip', 'tcp', 'udp', 'transp' ..."));
            }
        };
        if pos >= limit {
            return Err(fault("POS out of range").expected(format!("at most {}", limit - 1)));
        }
        let field = if ether { Field::ether(pos, len) } else { Field::bytes(base + pos, len) };
        Ok((if base == TRANSPORT { Type::Transport(field) } else { Type::Field(field) }, whole))
    }

    /// Checks the type against the other qualifiers, and adds the protocol that the type implies.
    pub(super) fn contradictions(&self, q: &mut Qualifiers) -> Result<(), Fault> {
        let Some((ty, range)) = &mut q.ty else { return Ok(()) };
        let against = |message: &str| Err(Fault::new(range.clone(), message));
        if q.header == Some(Header::Ether) {
            match ty {
                Type::Host => *ty = Type::EtherHost,
                Type::EtherHost | Type::Field(_) => {}
                _ => return against("not a part of the Ethernet header"),
            }
        }
        match (*ty, q.proto) {
            (Type::Port, None) => q.proto = Some(Proto::TcpUdp),
            (Type::Port, Some(p)) if !p.has_ports() => return against("this protocol has no ports"),
            (Type::TcpOpt | Type::TcpWin, None | Some(Proto::TcpUdp | Proto::Transport)) => {
                q.proto = Some(TCP)
            }
            (Type::TcpOpt | Type::TcpWin, Some(p)) if p != TCP => {
                return against("only TCP has this, but the test has another protocol");
            }
            (Type::Icmp, None) => q.proto = Some(ICMP),
            (Type::Icmp, Some(p)) if p != ICMP => {
                return against("only ICMP has this, but the test has another protocol");
            }
            // `transp` allows the header of any transport protocol, so the protocol is not tested.
            (Type::Transport(_), Some(Proto::Transport)) => q.proto = None,
            _ => {}
        }
        match &q.direction {
            Some((_, at)) if !ty.has_direction() => {
                Err(Fault::new(at.clone(), "a direction does not apply to this test")
                    .expected(AFTER_DIRECTION))
            }
            _ => Ok(()),
        }
    }

    /// Parses mask, relation and value. The qualifiers have been consumed.
    fn rest_of_test(&mut self, mut q: Qualifiers, mut any: bool) -> Result<Expr, Fault> {
        let mut mask = None;
        if !any
            && self.repeats_with_mask()
            && let Some(previous) = &self.previous
        {
            let at = self.lexer.peek().1;
            q.ty = Some((previous.ty, at.clone()));
            q.direction = previous.direction.map(|d| (d, at));
            q.proto = previous.proto;
            any = true;
        }
        let ((token, sign), behind) = self.lexer.clone_and_next();
        if token == Token::Ampersand && (q.ty.is_some() || q.direction.is_some()) {
            if q.ty.is_none() {
                // A direction alone means a host: 'src & 255.0.0.0 = 10.0.0.0', 'src & ff:ff:ff:0:0:0 = 1:2:3:0:0:0'.
                let ty = match behind.peek().0 {
                    Token::Word(w) if matches!(literal(w), Ok(Some(Value::Ether(_)))) => Type::EtherHost,
                    _ => Type::Host,
                };
                q.ty = Some((ty, sign.clone()));
                self.contradictions(&mut q)?;
            }
            self.lexer = behind;
            mask = Some(self.mask(q.ty.as_ref().map(|t| t.0), sign)?);
        }
        let ((token, sign), behind) = self.lexer.clone_and_next();
        let relation = token.relation();
        if relation.is_some() {
            if !any {
                return Err(Fault::new(sign, "nothing before the relation").expected("a field to compare"));
            }
            self.lexer = behind;
        }
        let ((token, range), behind) = self.lexer.clone_and_next();
        let word = match token {
            Token::Word(word) if !matches!(word, "true" | "false" | "any" | "all" | "mask") => word,
            _ => return self.without_value(q, relation.is_some() || mask.is_some(), any, token, range),
        };
        self.lexer = behind;
        let bare = !any && mask.is_none();
        let given = self.operand(word, range.clone(), &mut q, bare)?;
        let Some((ty, _)) = q.ty else {
            return Err(Fault::new(range, "the field to compare this value with is missing"));
        };
        if relation.is_some_and(|r| !applies(ty, r)) {
            let expected = if ty == Type::TcpOpt { "a flag name" } else { "'=' or '!='" };
            return Err(Fault::new(sign, "this relation does not apply here").expected(expected));
        }
        let relation = relation.unwrap_or(Relation::Equal);
        let Given { operand, mut own_mask, inherited_mask } = given;
        if let ((Token::Word("mask"), at), behind) = self.lexer.clone_and_next() {
            self.lexer = behind;
            own_mask = Some(self.address_mask(ty, at)?);
        }
        let all = full_mask(ty);
        let inherited = inherited_mask.filter(|_| own_mask.is_none());
        let mask_given = mask.is_some() || inherited.is_some();
        let mask = match (mask, own_mask) {
            (Some((_, at)), Some(own)) if own != all => {
                return Err(Fault::new(at, "duplicate mask"));
            }
            (Some((m, _)), _) => m,
            (None, own) => inherited.or(own).unwrap_or(all),
        };
        // Order relations may compare with numbers that have bits outside the mask.
        let exact = matches!(relation, Relation::Equal | Relation::NotEqual);
        let operand = self.fit(ty, operand, mask, exact && mask_given, range.clone())?;
        self.note_redundant(ty, relation, mask, operand, sign.start..range.end);
        let direction = q.direction.as_ref().map(|d| d.0);
        let kept = (mask != all && own_mask.is_none()).then_some(mask);
        self.previous = Some(Previous { ty, direction, proto: q.proto, mask: kept });
        self.ended = self.lexer.at();
        let direction = direction.unwrap_or(Direction::Either);
        Ok(Test { ty, direction, proto: q.proto, mask, relation, value: operand }.compile())
    }

    /// Compiles qualifiers that no value follows. They are a complete test only if they name a protocol.
    fn without_value(
        &self,
        q: Qualifiers,
        compared: bool,
        any: bool,
        token: Token<'_>,
        range: Range<usize>,
    ) -> Result<Expr, Fault> {
        if !any {
            let message = match token {
                Token::End => "expression ends early",
                Token::And | Token::Or => "nothing before the operator",
                Token::Close => "nothing between the parentheses",
                _ => "expected a test",
            };
            return Err(
                Fault::new(range, message).expected("a test such as 'tcp', 'src port 80' or '10.0.0.0/8'")
            );
        }
        match (q.proto, &q.ty, &q.direction) {
            (Some(proto), None, None) if !compared && q.header != Some(Header::Ether) => Ok(proto.test()),
            (_, Some((ty, _)), _) => Err(Fault::new(range, "value missing").expected(wants(*ty))),
            (_, None, Some(_)) => Err(Fault::new(range, "value missing").expected(AFTER_DIRECTION)),
            _ => Err(Fault::new(range, "incomplete test").expected("a field to compare, and a value")),
        }
    }
}

fn applies(ty: Type, relation: Relation) -> bool {
    match relation {
        _ if ty == Type::TcpOpt => false,
        Relation::Equal | Relation::NotEqual => true,
        _ => ty.has_order(),
    }
}

/// The mask with all bits of the type set.
pub(super) fn full_mask(ty: Type) -> u64 {
    match ty.field() {
        Some(field) => u64::from(field.max()),
        None if ty == Type::EtherHost => (1 << 48) - 1,
        None => u64::from(u32::MAX),
    }
}

/// A description of valid values of this type.
pub(super) fn wants(ty: Type) -> String {
    match ty {
        Type::Host => "an IP address or host name".into(),
        Type::Net => "a prefix such as 10.0.0.0/8".into(),
        Type::EtherHost => "an Ethernet address".into(),
        Type::Port => "a port number or name".into(),
        Type::Proto => "a protocol number or name".into(),
        Type::TcpOpt => "'ack', 'fin', 'psh', 'rst', 'syn', 'urg' or a number up to 255".into(),
        Type::Icmp => "an ICMP type number or name".into(),
        Type::TcpWin => "a number up to 65535".into(),
        Type::Field(f) | Type::Transport(f) => format!("a number up to {}", f.max()),
    }
}

fn flag(word: &str) -> Option<Flag> {
    Some(match word {
        "frag" => Flag::Frag,
        "unfrag" => Flag::Unfrag,
        "ect" => Flag::Ect,
        "ce" => Flag::Ce,
        _ => return None,
    })
}

fn proto_word(word: &str) -> Option<Proto> {
    Some(match word {
        "tcp" | "udp" | "icmp" | "igmp" | "ipip" | "gre" | "sctp" | "dccp" => {
            Proto::Number(crate::names::ip_proto_number(word)?)
        }
        "tcpudp" => Proto::TcpUdp,
        "transp" => Proto::Transport,
        _ => return None,
    })
}

fn type_word(word: &str) -> Option<Type> {
    Some(match word {
        "host" => Type::Host,
        "net" => Type::Net,
        "port" => Type::Port,
        "proto" => Type::Proto,
        "opt" => Type::TcpOpt,
        "win" => Type::TcpWin,
        "type" => Type::Icmp,
        _ => Type::Field(IP_FIELDS.iter().find(|f| f.0 == word)?.1),
    })
}

/// The operand for a protocol name or number.
pub(super) fn proto_value(word: &str) -> Option<Operand> {
    let known = proto_word(word).or_else(|| crate::names::ip_proto_number(word).map(Proto::Number))?;
    Some(match known {
        Proto::Number(n) => Operand::Literal(Value::Number(u32::from(n))),
        several => Operand::Proto(several),
    })
}
