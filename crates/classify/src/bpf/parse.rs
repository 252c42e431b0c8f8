// SPDX-License-Identifier: MIT OR Apache-2.0
//! The grammar of capture filters: `and` and `or` bind equally and from the left, `not` binds tighter; a bare name repeats
//! the qualifiers of the one before.

use super::Frames;
use super::code::{MAX_NUMBER_DEPTH, Node, Number, Operator, Place, Relation, Size};
use super::lex::{Token, split};
use super::terms::{self, ARP, Direction, ICMP6, IP, IP6, Layout, RARP, SCTP, TCP, UDP, compare, masked};
use crate::error::Fault;
use crate::names::{self, Names};
use std::net::Ipv6Addr;
use std::ops::Range;

/// How deep parentheses may nest, and how many tests a filter may have.
const MAX_DEPTH: usize = 100;
const MAX_TERMS: usize = 1000;

/// What a name is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Host,
    Net,
    Port,
    PortRange,
    Protocol,
}

/// The words before a name.
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

/// IP protocols by the words of the language.
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

/// Reads a filter.
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

    /// Bounds how long a filter may be: what is made of it is walked recursively.
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

    /// The rest of an expression in parentheses.
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

    /// Qualifiers and a name, or a word that is a test by itself.
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

    /// Whether a name follows, and not a word of the language.
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

    /// A word that is a test by itself, or a name that repeats the qualifiers before.
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
                    return Err(Fault::new(start, "VLANs are numbered up to 4095"));
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
                Ok(compare(Number::Load(Size::Byte, Place::At(0)), Relation::Shares, 1))
            }
            (Some("ip"), true) => {
                let first = Number::Load(Size::Byte, Place::At(l.network().wrapping_add(16)));
                Ok(l.ether_type(IP).and(compare(first, Relation::GreaterEqual, 224)))
            }
            (Some("ip6"), true) => Ok(l.ether_type(IP6).and(terms::byte(l.network().wrapping_add(24), 255))),
            (Some("ip"), false) => {
                Err(Fault::new(start, "'ip broadcast' needs a network mask, which is not known here")
                    .expected("'dst host' and the broadcast address"))
            }
            (Some(p), _) => Err(Fault::new(start, format!("'{p}' has no broadcast or multicast"))),
        }
    }

    /// A name behind qualifiers.
    fn name(&mut self, q: Qualifiers<'a>) -> Parsed<Node> {
        let place = self.place();
        let Token::Word(w) = self.next() else { return Err(Fault::new(place, "a name is missing")) };
        self.last = q;
        let direction = q.direction.unwrap_or(Direction::Either);
        let wrong =
            |what: &str| Fault::new(place.clone(), format!("'{w}' is no {what}")).expected(what.to_string());
        match q.kind.unwrap_or(Type::Host) {
            Type::Port | Type::PortRange => {
                let protocol = match q.protocol {
                    None => None,
                    Some(p @ ("tcp" | "udp" | "sctp")) => protocol_number(p),
                    Some(p) => return Err(Fault::new(place, format!("'{p}' has no ports"))),
                };
                let port = |w: &str| {
                    let n = number(w).and_then(|n| u16::try_from(n).ok());
                    n.or_else(|| self.names.port(w, protocol)).or_else(|| names::port_number(w))
                };
                let low = port(w).ok_or_else(|| wrong("port"))?;
                let high = if q.kind == Some(Type::PortRange) {
                    self.expect("-")?;
                    let place = self.place();
                    let Token::Word(w) = self.next() else {
                        return Err(Fault::new(place, "a port is missing"));
                    };
                    let n = number(w).and_then(|n| u16::try_from(n).ok());
                    let n = n.or_else(|| self.names.port(w, protocol)).or_else(|| names::port_number(w));
                    n.ok_or_else(|| Fault::new(place, format!("'{w}' is no port")))?
                } else {
                    low
                };
                Ok(self.layout.ports(direction, protocol, low.min(high), low.max(high)))
            }
            Type::Protocol => self.protocol_name(q, w, place.clone()),
            kind => self.address(q, w, place.clone(), direction, kind == Type::Net),
        }
    }

    fn protocol_name(&mut self, q: Qualifiers<'a>, w: &str, place: Range<usize>) -> Parsed<Node> {
        let l = &self.layout;
        if q.protocol == Some("ether") {
            let known = match w {
                "ip" => Some(IP),
                "ip6" => Some(IP6),
                "arp" => Some(ARP),
                "rarp" => Some(RARP),
                w => number(w).and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 1500),
            };
            let kind = known.ok_or_else(|| Fault::new(place, format!("'{w}' is no Ethernet type")))?;
            return Ok(l.ether_type(kind));
        }
        let known = number(w).and_then(|n| u8::try_from(n).ok()).or_else(|| protocol_number(w));
        let n = known.or_else(|| names::ip_proto_number(w));
        let n = n.ok_or_else(|| Fault::new(place.clone(), format!("'{w}' is no IP protocol")))?;
        match q.protocol {
            None => Ok(l.protocol(n)),
            Some("ip") => Ok(l.ip_protocol(n)),
            Some("ip6") => Ok(l.ip6_protocol(n)),
            Some(p) => Err(Fault::new(place, format!("'{p}' carries no IP protocols"))),
        }
    }

    fn address(
        &mut self,
        q: Qualifiers<'a>,
        w: &str,
        place: Range<usize>,
        direction: Direction,
        net: bool,
    ) -> Parsed<Node> {
        let unknown = |what: &str| Fault::new(place.clone(), format!("'{w}' is no {what}"));
        if q.protocol == Some("ether") || q.protocol.is_none() && !net && ether(w).is_some() {
            if self.layout.frames == Frames::Ip {
                return Err(Fault::new(place, "packets of this device have no Ethernet header"));
            }
            let address =
                ether(w).or_else(|| self.names.ether(w)).ok_or_else(|| unknown("Ethernet address"))?;
            return Ok(self.layout.ether_address(direction, address));
        }
        let kinds: &[u16] = match q.protocol {
            None => &[IP, ARP, RARP],
            Some("ip") => &[IP],
            Some("arp") => &[ARP],
            Some("rarp") => &[RARP],
            Some("ip6") => &[],
            Some(p) => return Err(Fault::new(place, format!("'{p}' has no addresses"))),
        };
        if let Ok(a) = w.parse::<Ipv6Addr>() {
            if !matches!(q.protocol, None | Some("ip6")) {
                return Err(unknown("IPv4 address"));
            }
            let bits = if self.accept("/") { self.number_word("a prefix length")? } else { 128 };
            if bits > 128 {
                return Err(Fault::new(place, "a prefix of IPv6 has 128 bits at most"));
            }
            return Ok(self.layout.ip6_address(direction, a.to_bits(), bits));
        }
        let dotted = dotted(w).or_else(|| {
            let (a, m) = if net { self.names.net(w)? } else { (self.names.ip(w)?, [255; 4]) };
            Some((u32::from_be_bytes(a), u32::from_be_bytes(m)))
        });
        let (value, own) = dotted.ok_or_else(|| unknown("address"))?;
        if !net && own != u32::MAX {
            return Err(unknown("whole address").expected("four numbers, or 'net'"));
        }
        let mask = if self.accept("/") {
            let bits = self.number_word("a prefix length")?;
            u32::MAX
                .checked_shl(32u32.checked_sub(bits).ok_or_else(|| self.fault("more than 32 bits"))?)
                .unwrap_or(0)
        } else if self.accept("mask") {
            let Token::Word(m) = self.next() else { return Err(unknown("mask")) };
            dotted_whole(m).ok_or_else(|| unknown("mask"))?
        } else {
            own
        };
        if value & !mask != 0 {
            return Err(Fault::new(place, format!("'{w}' has bits outside of its mask")));
        }
        if kinds.is_empty() {
            return Err(unknown("IPv6 address"));
        }
        Ok(self.layout.ip_address(direction, kinds, value, mask))
    }

    /// A comparison of numbers; none, and nothing read, when there is none here.
    fn relation(&mut self) -> Parsed<Option<Node>> {
        let (at, terms) = (self.at, self.terms);
        let mut guards = Vec::new();
        // Parentheses may hold tests as well as numbers; a name before a bracket is the start of a number for sure.
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
            return Err(self.fault("a number is no test").expected("'=', '!=', '<', '>', '<=' or '>='"));
        };
        let right = self.sum(0, 0, &mut guards)?;
        let test = Node::Test(left, *relation, right);
        let test = if *holds { test } else { test.negate() };
        Ok(Some(guards.into_iter().rev().fold(test, |node, guard| Node::And(vec![guard, node]))))
    }

    /// Numbers joined by operators of at least the strength `least`, which are ordered as in C.
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
            (Number::Constant(k), false) => Place::At(base.wrapping_add(k)),
            (Number::Constant(offset), true) => Place::Behind { ip: base, offset },
            (offset, false) => Place::Computed { base, offset: Box::new(offset) },
            (offset, true) => Place::ComputedBehind { ip: base, offset: Box::new(offset) },
        };
        Ok(Number::Load(size, place))
    }

    /// Where the bytes of a protocol start, and whether that is behind an IPv4 header; what must hold goes to `guards`.
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
                let next = masked(Size::Byte, ip.wrapping_add(6), 0xff, u32::from(ICMP6));
                (l.ether_type(IP6).and(next), ip.wrapping_add(40), false)
            }
            p => (l.ip_protocol(protocol_number(p).unwrap_or(0)).and(l.first_fragment()), ip, true),
        };
        guards.push(guard);
        Ok((base, behind))
    }
}

/// The qualifiers with nothing but their protocol.
fn only_protocol(q: Qualifiers<'_>) -> Qualifiers<'_> {
    Qualifiers { protocol: q.protocol, ..Qualifiers::default() }
}

/// A number as the language writes it: decimal, hexadecimal behind 0x, octal behind 0.
fn number(w: &str) -> Option<u32> {
    match w.strip_prefix("0x").or_else(|| w.strip_prefix("0X")) {
        Some(hex) if !hex.starts_with('+') => u32::from_str_radix(hex, 16).ok(),
        _ if !w.bytes().all(|b| b.is_ascii_digit()) => None,
        _ if w.len() > 1 && w.starts_with('0') => u32::from_str_radix(w, 8).ok(),
        _ => w.parse().ok(),
    }
}

/// Offsets and values that have names.
fn named_number(w: &str) -> Option<u32> {
    const NAMES: [(&str, u32); 24] = [
        ("icmptype", 0),
        ("icmpcode", 1),
        ("icmp6type", 0),
        ("icmp6code", 1),
        ("tcpflags", 13),
        ("icmp-echoreply", 0),
        ("icmp-unreach", 3),
        ("icmp-sourcequench", 4),
        ("icmp-redirect", 5),
        ("icmp-echo", 8),
        ("icmp-routeradvert", 9),
        ("icmp-routersolicit", 10),
        ("icmp-timxceed", 11),
        ("icmp-paramprob", 12),
        ("icmp-tstamp", 13),
        ("icmp-tstampreply", 14),
        ("tcp-fin", 1),
        ("tcp-syn", 2),
        ("tcp-rst", 4),
        ("tcp-push", 8),
        ("tcp-ack", 16),
        ("tcp-urg", 32),
        ("tcp-ece", 64),
        ("tcp-cwr", 128),
    ];
    NAMES.iter().find(|n| n.0 == w).map(|n| n.1)
}

/// One to four decimal numbers with dots: the value, and the mask of as many bytes as there are.
fn dotted(w: &str) -> Option<(u32, u32)> {
    let mut value = 0u32;
    let mut n = 0u32;
    for part in w.split('.') {
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) || n == 4 {
            return None;
        }
        value = value << 8 | u32::from(part.parse::<u8>().ok()?);
        n += 1;
    }
    let rest = 32 - 8 * n;
    let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
    Some((value.checked_shl(rest).unwrap_or(0), mask))
}
fn dotted_whole(w: &str) -> Option<u32> {
    dotted(w).filter(|d| d.1 == u32::MAX).map(|d| d.0)
}

/// Six hexadecimal bytes with colons.
fn ether(w: &str) -> Option<[u8; 6]> {
    let mut out = [0; 6];
    let mut parts = w.split(':');
    for b in &mut out {
        let part = parts.next()?;
        *b = (part.len() <= 2).then(|| u8::from_str_radix(part, 16).ok())??;
    }
    parts.next().is_none().then_some(out)
}
