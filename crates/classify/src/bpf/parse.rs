// SPDX-License-Identifier: MIT OR Apache-2.0
//! The grammar of capture filters. `and` and `or` have equal precedence and associate to the left; `not`
//! binds tighter. A name without qualifiers reuses the qualifiers of the previous name.

mod literal;
mod named;
mod numbers;

use super::Frames;
use super::code::{Address, Node, Number, Relation, Size};
use super::lex::{Token, split};
use super::terms::{self, ARP, Direction, ICMP6, IP, IP6, Layout, RARP, SCTP, TCP, UDP, compare};
use crate::error::Fault;
use crate::names::Names;
use literal::number;
use std::ops::Range;

/// Limits on the nesting of parentheses and on the number of tests.
const MAX_DEPTH: usize = 100;
const MAX_TERMS: usize = 1000;

/// The kind of object that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Host,
    Net,
    Port,
    PortRange,
    Protocol,
}

/// The qualifiers before a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Qualifiers<'a> {
    protocol: Option<&'a str>,
    direction: Option<Direction>,
    kind: Option<Type>,
}

const PROTOCOLS: &[&str] = &[
    "ether", "ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp", "icmp", "icmp6", "igmp", "ah", "esp", "pim",
    "vrrp", "carp",
];

/// The number of an IP protocol keyword.
fn protocol_number(word: &str) -> Option<u8> {
    Some(match word {
        "icmp" => 1,
        "igmp" => 2,
        "tcp" => TCP,
        "udp" => UDP,
        "esp" => 50,
        "ah" => 51,
        "icmp6" => ICMP6,
        "pim" => 103,
        "vrrp" | "carp" => 112,
        "sctp" => SCTP,
        _ => return None,
    })
}

struct Parser<'a> {
    tokens: Vec<(Token<'a>, Range<usize>)>,
    at: usize,
    layout: Layout,
    names: &'a dyn Names,
    last: Qualifiers<'a>,
    depth: usize,
    terms: usize,
}

/// Parses a filter.
pub fn parse(text: &str, frames: Frames, names: &dyn Names) -> Result<Node, Fault> {
    let mut p = Parser {
        tokens: split(text),
        at: 0,
        layout: Layout::new(frames),
        names,
        last: Qualifiers::default(),
        depth: 0,
        terms: 0,
    };
    if p.peek() == Token::End {
        return Ok(Node::Constant(true));
    }
    let node = p.expression()?;
    match p.peek() {
        Token::End => Ok(node),
        Token::Sign(")") => Err(p.fault("')' without '('")),
        _ => Err(p.fault("the test is complete here").expected("'and', 'or' or the end")),
    }
}

type Parsed<T> = Result<T, Fault>;

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).map_or(Token::End, |t| t.0)
    }
    fn next(&mut self) -> Token<'a> {
        let t = self.peek();
        self.at = self.at.saturating_add(1);
        t
    }
    fn accept(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(w) | Token::Sign(w) if w == wanted);
        self.at += usize::from(found);
        found
    }
    fn place(&self) -> Range<usize> {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(0..0, |t| t.1.clone())
    }
    fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.place(), message)
    }
    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.accept(sign) { Ok(()) } else { Err(self.fault("unexpected").expected(format!("'{sign}'"))) }
    }

    fn expression(&mut self) -> Parsed<Node> {
        let mut node = self.term()?;
        loop {
            if self.accept("and") || self.accept("&&") {
                node = node.and(self.term()?);
            } else if self.accept("or") || self.accept("||") {
                node = node.or(self.term()?);
            } else {
                return Ok(node);
            }
        }
    }

    /// Counts one test or operator. Fails above a limit, because later steps process the filter recursively.
    fn count(&mut self) -> Parsed<()> {
        self.terms += 1;
        if self.terms > MAX_TERMS {
            return Err(self.fault(format!("more than {MAX_TERMS} tests and operators")));
        }
        Ok(())
    }

    fn term(&mut self) -> Parsed<Node> {
        let mut negated = false;
        while self.accept("not") || self.accept("!") {
            negated = !negated;
        }
        self.count()?;
        let node = self.primary()?;
        Ok(if negated { node.negate() } else { node })
    }

    fn primary(&mut self) -> Parsed<Node> {
        if let Some(node) = self.relation()? {
            return Ok(node);
        }
        if self.accept("(") {
            return self.parenthesis();
        }
        self.test()
    }

    /// Parses the rest of a parenthesised expression.
    fn parenthesis(&mut self) -> Parsed<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fault(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let node = self.expression()?;
        self.expect(")")?;
        self.depth -= 1;
        Ok(node)
    }

    /// Parses qualifiers with a name, or a keyword that is a complete test.
    fn test(&mut self) -> Parsed<Node> {
        let start = self.place();
        let q = self.qualifiers()?;
        match self.peek() {
            _ if q != Qualifiers::default() && self.is_name() => self.name(q),
            Token::Sign("(") if q != Qualifiers::default() && q != only_protocol(q) => {
                self.at += 1;
                self.last = q;
                self.parenthesis()
            }
            Token::Word(w @ ("broadcast" | "multicast")) => {
                self.at += 1;
                self.group_address(q, w == "multicast", start)
            }
            _ if q.direction.is_some() || q.kind.is_some() => {
                Err(self.fault("a name is missing").expected("an address, a port, or '('"))
            }
            _ if let Some(p) = q.protocol => self.protocol(p, start),
            Token::Word(w) => self.word(w, start),
            Token::End => Err(self.fault("the filter ends here").expected("a test")),
            _ => Err(self.fault("no test").expected("a test such as 'tcp port 80'")),
        }
    }

    /// Whether the next token is a name and not a keyword.
    fn is_name(&self) -> bool {
        match self.peek() {
            Token::Word("and" | "or" | "not" | "broadcast" | "multicast") | Token::Sign(_) | Token::End => {
                false
            }
            Token::Word(_) => true,
        }
    }

    fn qualifiers(&mut self) -> Parsed<Qualifiers<'a>> {
        let mut q = Qualifiers::default();
        if let Token::Word(w) = self.peek()
            && PROTOCOLS.contains(&w)
        {
            self.at += 1;
            q.protocol = Some(w);
        }
        let side = |p: &mut Self| {
            if p.accept("src") {
                Some(Direction::Source)
            } else {
                p.accept("dst").then_some(Direction::Destination)
            }
        };
        q.direction = side(self);
        if let Some(first) = q.direction {
            let back = self.at;
            let joined = if self.accept("or") {
                Some(Direction::Either)
            } else {
                self.accept("and").then_some(Direction::Both)
            };
            match (joined, side(self)) {
                (Some(both), Some(second)) if second != first => q.direction = Some(both),
                _ => self.at = back,
            }
        }
        let kinds = [
            ("host", Type::Host),
            ("net", Type::Net),
            ("portrange", Type::PortRange),
            ("port", Type::Port),
            ("proto", Type::Protocol),
        ];
        q.kind = kinds.into_iter().find(|k| self.accept(k.0)).map(|k| k.1);
        Ok(q)
    }

    /// Parses a keyword that is a complete test, or a name that reuses the previous qualifiers.
    fn word(&mut self, w: &'a str, start: Range<usize>) -> Parsed<Node> {
        let word = |size, p: &mut Self| {
            p.at += 1;
            let n = p.number_word("a length")?;
            Ok(compare(Number::Length, size, n))
        };
        match w {
            "less" => return Ok(word(Relation::Greater, self)?.negate()),
            "greater" => return word(Relation::GreaterEqual, self),
            "vlan" => {
                self.at += 1;
                if self.layout.frames == Frames::Ip {
                    return Err(Fault::new(start, "packets of this device have no VLAN tags"));
                }
                let id = match self.peek() {
                    Token::Word(w) if number(w).is_some() => Some(self.number_word("a VLAN")?),
                    _ => None,
                };
                if id.is_some_and(|id| id > 0xfff) {
                    return Err(Fault::new(start, "VLAN numbers go up to 4095"));
                }
                return Ok(self.layout.vlan(id));
            }
            _ => {}
        }
        if self.last == Qualifiers::default() {
            return Err(
                Fault::new(start, format!("unknown word '{w}'")).expected("a test such as 'tcp port 80'")
            );
        }
        self.name(self.last)
    }

    fn number_word(&mut self, what: &str) -> Parsed<u32> {
        match self.peek() {
            Token::Word(w) if let Some(n) = number(w) => {
                self.at += 1;
                Ok(n)
            }
            _ => Err(self.fault("a number is missing").expected(what)),
        }
    }

    fn protocol(&mut self, p: &str, start: Range<usize>) -> Parsed<Node> {
        let l = &self.layout;
        Ok(match p {
            "ip" => l.ether_type(IP),
            "ip6" => l.ether_type(IP6),
            "arp" => l.ether_type(ARP),
            "rarp" => l.ether_type(RARP),
            "ether" => {
                return Err(
                    Fault::new(start, "'ether' needs a test").expected("'host', 'proto' or an address")
                );
            }
            "icmp" | "igmp" | "vrrp" | "carp" => l.ip_protocol(protocol_number(p).unwrap_or(0)),
            "icmp6" => l.ip6_protocol(ICMP6),
            p => l.protocol(protocol_number(p).unwrap_or(0)),
        })
    }

    fn group_address(&mut self, q: Qualifiers<'a>, group: bool, start: Range<usize>) -> Parsed<Node> {
        let l = &self.layout;
        let ether = l.frames != Frames::Ip;
        match (q.protocol, group) {
            (None | Some("ether"), _) if !ether => {
                Err(Fault::new(start, "packets of this device have no Ethernet header"))
            }
            (None | Some("ether"), false) => Ok(l.ether_address(Direction::Destination, [0xff; 6])),
            (None | Some("ether"), true) => {
                Ok(compare(Number::Load(Size::Byte, Address::At(0)), Relation::Shares, 1))
            }
            (Some("ip"), true) => {
                let first = Number::Load(Size::Byte, Address::At(l.network().wrapping_add(16)));
                Ok(l.ether_type(IP).and(compare(first, Relation::GreaterEqual, 224)))
            }
            (Some("ip6"), true) => Ok(l.ether_type(IP6).and(terms::byte(l.network().wrapping_add(24), 255))),
            (Some("ip"), false) => {
                Err(Fault::new(start, "'ip broadcast' needs a network mask, which is not known here")
                    .expected("'dst host' and the broadcast address"))
            }
            (Some(p), _) => Err(Fault::new(start, format!("'{p}' has no broadcast or multicast addresses"))),
        }
    }
}

/// Keeps only the protocol of the qualifiers.
fn only_protocol(q: Qualifiers<'_>) -> Qualifiers<'_> {
    Qualifiers { protocol: q.protocol, ..Qualifiers::default() }
}
