// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of header tests: parses words as values, infers their types, and reads masks.

use std::ops::Range;

use super::Parser;
use super::compile::{ICMP, Operand, Proto, TCP, Type};
use super::lex::Token;
use super::term::{Header, Qualifiers, full_mask, proto_value, wants};
use super::value::{Value, literal};
use crate::error::Fault;
use crate::expr::Relation;
use crate::names;

/// A value, with the masks that apply to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) operand: Operand,
    /// The mask of a value with a prefix length, such as `10.0.0.0/8`.
    pub(super) own_mask: Option<u64>,
    /// The mask of the previous test, if this test consists of a value only and takes its other parts from that test.
    pub(super) inherited_mask: Option<u64>,
}

impl Parser<'_> {
    /// Parses `word` as a value of the type that the qualifiers give. If they give no type, the type of the previous
    /// test is tried. If `word` is not a value of that type, its type is inferred from `word` alone. `bare` means that
    /// the value stands alone: no qualifier, mask or relation precedes it.
    pub(super) fn operand(
        &self,
        word: &str,
        range: Range<usize>,
        q: &mut Qualifiers,
        bare: bool,
    ) -> Result<Given, Fault> {
        let shape = literal(word).map_err(|e| Fault::new(range.clone(), e.message).expected(e.form))?;
        let mut inherited_mask = None;
        if q.ty.is_none() {
            if let Some(ty) = self.repeated(word, shape, q) {
                q.ty = Some((ty, range.clone()));
                if let Some(previous) = &self.previous {
                    q.direction = q.direction.take().or(previous.direction.map(|d| (d, range.clone())));
                    q.proto = q.proto.or(previous.proto);
                    inherited_mask = previous.mask.filter(|_| bare);
                }
            } else {
                let ty = self.implied(word, shape, q, range.clone())?;
                q.ty = Some((ty, range.clone()));
            }
            self.contradictions(q)?;
        }
        if let (Some((ty @ Type::Host, _)), Some(Value::Ether(_))) = (&mut q.ty, shape)
            && q.header != Some(Header::Ip)
        {
            *ty = Type::EtherHost;
        }
        let ty = q.ty.as_ref().map_or(Type::Host, |t| t.0);
        let Some(operand) = self.read(ty, word, shape, q.proto) else {
            let message = match (shape, ty) {
                (Some(Value::Prefix(..)), Type::Host) => "a prefix is not a single host".to_owned(),
                (Some(_), _) => format!("'{word}' does not fit here"),
                (None, _) => format!("unknown name '{word}'"),
            };
            return Err(Fault::new(range, message).expected(wants(ty)));
        };
        let own_mask = match operand {
            Operand::Literal(Value::Prefix(_, mask)) => Some(u64::from(mask)),
            _ => None,
        };
        Ok(Given { operand, own_mask, inherited_mask })
    }

    /// The type that `word` takes from the previous test; `None` if `word` cannot be a value of that type.
    fn repeated(&self, word: &str, shape: Option<Value>, q: &Qualifiers) -> Option<Type> {
        let previous = self.previous.as_ref()?;
        let reads = |ty: Type| self.read(ty, word, shape, q.proto.or(previous.proto)).is_some();
        // In a list, a host may follow a network, and a network may follow a host.
        let also = match previous.ty {
            Type::Host => Some(Type::Net),
            Type::Net => Some(Type::Host),
            _ => None,
        };
        let ty = [Some(previous.ty), also].into_iter().flatten().find(|ty| reads(*ty))?;
        let header_fits = match q.header {
            None => true,
            Some(Header::Ether) => ty == Type::EtherHost,
            Some(Header::Ip) => ty != Type::EtherHost,
        };
        let proto_fits = match (q.proto, ty) {
            (None, _) => true,
            (Some(p), Type::Port) => p.has_ports(),
            (Some(p), Type::TcpOpt | Type::TcpWin) => p == TCP,
            (Some(p), Type::Icmp) => p == ICMP,
            (Some(_), Type::Host | Type::Net | Type::EtherHost) => true,
            (Some(_), Type::Proto | Type::Field(_) | Type::Transport(_)) => false,
        };
        let fits = header_fits && proto_fits && (q.direction.is_none() || ty.has_direction());
        fits.then_some(ty)
    }

    /// The type inferred from a value alone.
    fn implied(
        &self,
        word: &str,
        shape: Option<Value>,
        q: &Qualifiers,
        range: Range<usize>,
    ) -> Result<Type, Fault> {
        match shape {
            Some(Value::Ip(_)) => return Ok(Type::Host),
            Some(Value::Prefix(..)) => return Ok(Type::Net),
            Some(Value::Ether(_)) if q.header != Some(Header::Ip) => return Ok(Type::EtherHost),
            Some(Value::Ether(_)) => {
                return Err(Fault::new(range, "an Ethernet address is not in the IP header"));
            }
            Some(Value::Number(_)) => {
                return Err(Fault::new(range, format!("the type of {word} is unknown"))
                    .expected("a word such as 'port' before the number"));
            }
            None => {}
        }
        let undirected = q.direction.is_none();
        let proto = |wanted: Proto| q.proto.is_none_or(|p| p == wanted);
        let no_header = q.header.is_none();
        let ip = q.header != Some(Header::Ether);
        let candidates = [
            ("host", Type::Host, ip),
            ("net", Type::Net, ip),
            ("ether host", Type::EtherHost, q.header != Some(Header::Ip)),
            ("port", Type::Port, no_header && q.proto.is_none_or(Proto::has_ports)),
            ("tcp opt", Type::TcpOpt, no_header && undirected && proto(TCP)),
            ("icmp type", Type::Icmp, no_header && undirected && proto(ICMP)),
            ("ip proto", Type::Proto, ip && undirected && q.proto.is_none()),
        ];
        let mut fitting: Vec<(&str, Type)> = Vec::new();
        for (name, ty, possible) in candidates {
            // A host name is often also the name of its network and of its Ethernet address. The host takes
            // precedence over these, and over a service of that name in the machine's services database.
            let shadowed = !fitting.is_empty()
                && match ty {
                    Type::Net | Type::EtherHost => true,
                    Type::Port => {
                        let port = self.names.port(word, q.proto.and_then(Proto::number));
                        port.is_none() && names::port_number(word).is_none()
                    }
                    _ => false,
                };
            if possible && !shadowed && self.read(ty, word, None, q.proto).is_some() {
                fitting.push((name, ty));
            }
        }
        match fitting[..] {
            [(_, ty)] => Ok(ty),
            [] => {
                let fault = Fault::new(range, format!("unknown name '{word}'"));
                Err(match close_to(word) {
                    Some(near) => fault.expected(format!("'{near}', perhaps")),
                    None => fault.expected("a test such as 'tcp', 'src port 80' or '10.0.0.0/8'"),
                })
            }
            _ => {
                let all: Vec<_> = fitting.iter().map(|f| format!("'{} {word}'", f.0)).collect();
                Err(Fault::new(range, format!("'{word}' is ambiguous")).expected(all.join(" or ")))
            }
        }
    }

    /// Parses `word` as a value of type `ty`.
    fn read(&self, ty: Type, word: &str, shape: Option<Value>, proto: Option<Proto>) -> Option<Operand> {
        let n = self.names;
        let be = u32::from_be_bytes;
        let number = |found: Option<u32>| found.map(Value::Number);
        let value = match (ty, shape) {
            (Type::Host, Some(Value::Ip(_))) => shape,
            (Type::Host, None) => n.ip(word).map(|a| Value::Ip(be(a))),
            (Type::Net, Some(Value::Ip(a))) => Some(Value::Prefix(a, u32::MAX)),
            (Type::Net, Some(Value::Prefix(..))) => shape,
            (Type::Net, None) => n.net(word).map(|(a, m)| Value::Prefix(be(a), be(m))),
            (Type::EtherHost, Some(Value::Ether(_))) => shape,
            (Type::EtherHost, None) => {
                n.ether(word).map(|a| Value::Ether(a.iter().fold(0, |all, b| all << 8 | u64::from(*b))))
            }
            (Type::Host | Type::Net | Type::EtherHost, Some(_)) => None,
            (Type::Proto, None) => return proto_value(word),
            (Type::Field(f) | Type::Transport(f), Some(Value::Ip(a))) if f.bits == 32 => {
                Some(Value::Number(a))
            }
            (_, Some(Value::Number(_))) => shape,
            (_, Some(_)) => None,
            (Type::Port, None) => {
                let proto = proto.and_then(Proto::number);
                let found = n.port(word, proto).or_else(|| names::port_number(word));
                number(found.or_else(|| n.service(word, proto)).map(u32::from))
            }
            (Type::TcpOpt, None) => number(names::tcp_flag(word).map(u32::from)),
            (Type::Icmp, None) => number(names::icmp_type_number(word).map(u32::from)),
            (Type::TcpWin | Type::Field(_) | Type::Transport(_), None) => None,
        };
        value.map(Operand::Literal)
    }

    /// Parses the mask after `&`.
    pub(super) fn mask(
        &mut self,
        ty: Option<Type>,
        sign: Range<usize>,
    ) -> Result<(u64, Range<usize>), Fault> {
        let ty = ty.unwrap_or(Type::Host);
        if ty == Type::TcpOpt {
            return Err(Fault::new(sign, "TCP flags take no mask").expected(wants(ty)));
        }
        let (token, range) = self.lexer.next();
        let Token::Word(word) = token else {
            return Err(Fault::new(range, "mask missing after '&'").expected("a number or an address"));
        };
        let mask = self.mask_value(ty, word, range.clone())?;
        if mask == 0 {
            return Err(Fault::new(range, "a zero mask leaves nothing to compare"));
        }
        Ok((mask, range))
    }

    /// Parses the mask after the word `mask`. `at` is the range of that word.
    pub(super) fn address_mask(&mut self, ty: Type, at: Range<usize>) -> Result<u64, Fault> {
        if !matches!(ty, Type::Host | Type::Net | Type::EtherHost) {
            return Err(Fault::new(at, "'mask' follows addresses only").expected("'& MASK' before '='"));
        }
        let (token, range) = self.lexer.next();
        match token {
            Token::Word(word) => self.mask_value(ty, word, range),
            _ => Err(Fault::new(range, "mask missing after 'mask'").expected("a mask such as 255.255.0.0")),
        }
    }

    fn mask_value(&self, ty: Type, word: &str, range: Range<usize>) -> Result<u64, Fault> {
        let value = literal(word).map_err(|e| Fault::new(range.clone(), e.message).expected(e.form))?;
        let wide = matches!(ty, Type::Host | Type::Net) || ty.field().is_some_and(|f| f.bits == 32);
        let mask = match value {
            Some(Value::Number(n)) if ty != Type::EtherHost => u64::from(n),
            Some(Value::Ip(a)) if wide => u64::from(a),
            Some(Value::Ether(e)) if ty == Type::EtherHost => e,
            _ => {
                let kind =
                    if ty == Type::EtherHost { "an Ethernet address" } else { "a number or an address" };
                return Err(Fault::new(range, format!("bad mask '{word}'")).expected(kind));
            }
        };
        if mask > full_mask(ty) {
            let most = format!("at most {:#x}", full_mask(ty));
            return Err(Fault::new(range, "mask out of range").expected(most));
        }
        Ok(mask)
    }

    /// Checks that the value fits its field, and with `within_mask` also its mask.
    pub(super) fn fit(
        &self,
        ty: Type,
        operand: Operand,
        mask: u64,
        within_mask: bool,
        range: Range<usize>,
    ) -> Result<Operand, Fault> {
        let Operand::Literal(literal) = operand else {
            if mask != full_mask(ty) {
                return Err(Fault::new(range, "a mask needs one protocol").expected("a protocol number"));
            }
            return Ok(operand);
        };
        let bits = match literal {
            Value::Number(n) | Value::Ip(n) | Value::Prefix(n, _) => u64::from(n),
            Value::Ether(e) => e,
        };
        if bits > full_mask(ty) {
            return Err(Fault::new(range, format!("{bits} is out of range")).expected(wants(ty)));
        }
        if ty == Type::TcpOpt && bits == 0 {
            return Err(Fault::new(range, "no flag is given").expected(wants(ty)));
        }
        if within_mask && bits & !mask != 0 {
            return Err(Fault::new(range, "the value has bits outside the mask, so it can never match")
                .expected(format!("only bits of {mask:#x}")));
        }
        Ok(Operand::Literal(match literal {
            Value::Number(_) => literal,
            Value::Ip(a) | Value::Prefix(a, _) => Value::Ip(a & mask as u32),
            Value::Ether(e) => Value::Ether(e & mask),
        }))
    }

    /// Adds a warning to `notes` if an order relation is always true or always false.
    pub(super) fn note_redundant(
        &mut self,
        ty: Type,
        relation: Relation,
        mask: u64,
        operand: Operand,
        range: Range<usize>,
    ) {
        let Operand::Literal(Value::Number(value)) = operand else { return };
        if !ty.has_order() {
            return;
        }
        let value = u64::from(value);
        let (sign, outcome) = match relation {
            Relation::Less if value == 0 => ("<", false),
            Relation::GreaterEqual if value == 0 => (">=", true),
            Relation::Greater if value >= mask => (">", false),
            Relation::LessEqual if value >= mask => ("<=", true),
            Relation::Less if value > mask => ("<", true),
            Relation::GreaterEqual if value > mask => (">=", false),
            _ => return,
        };
        self.notes.push(Fault::new(range, format!("relation '{sign} {value}' is always {outcome}")));
    }
}

/// The keyword that `word` is probably a misspelling of.
fn close_to(word: &str) -> Option<&'static str> {
    const WORDS: [&str; 27] = [
        "src", "dst", "ip", "ether", "host", "net", "port", "proto", "opt", "type", "tos", "dscp", "ttl",
        "vers", "frag", "unfrag", "tcp", "udp", "icmp", "igmp", "tcpudp", "transp", "true", "false", "and",
        "or", "not",
    ];
    let all = WORDS.iter().chain(names::PORTS.iter().map(|p| &p.0)).copied();
    all.filter(|w| w.len() > 2 && strsim::osa_distance(word, w) == 1).min()
}
