// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles one complete test of a header expression to tests of words.

use super::value::Value;
use crate::expr::{ETHER, Expr, Field, NETWORK, Relation, TRANSPORT};

const SRC: Field = Field::bytes(NETWORK + 12, 4);
const DST: Field = Field::bytes(NETWORK + 16, 4);
const PROTO: Field = Field::bytes(NETWORK + 9, 1);
/// Flags and fragment offset (RFC 791 §3.1).
const FRAGMENT: Field = Field::bytes(NETWORK + 6, 2);
const SRC_PORT: Field = Field::bytes(TRANSPORT, 2);
const DST_PORT: Field = Field::bytes(TRANSPORT + 2, 2);
const TCP_FLAGS: Field = Field::bytes(TRANSPORT + 13, 1);
const TCP_WINDOW: Field = Field::bytes(TRANSPORT + 14, 2);
const ICMP_TYPE: Field = Field::bytes(TRANSPORT, 1);
/// Explicit congestion notification (RFC 3168 §5).
const ECN: Field = Field::part(NETWORK + 1, 0, 2);

/// Integer fields of the IP header by name.
pub(super) const IP_FIELDS: [(&str, Field); 7] = [
    ("vers", Field::part(NETWORK, 4, 4)),
    ("hl", Field::part(NETWORK, 0, 4)),
    ("tos", Field::bytes(NETWORK + 1, 1)),
    ("dscp", Field::part(NETWORK + 1, 2, 6)),
    ("len", Field::bytes(NETWORK + 2, 2)),
    ("id", Field::bytes(NETWORK + 4, 2)),
    ("ttl", Field::bytes(NETWORK + 8, 1)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Src,
    Dst,
    Either,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proto {
    Number(u8),
    TcpUdp,
    /// Any protocol with ports.
    Transport,
}

pub(super) const ICMP: Proto = Proto::Number(1);
pub(super) const TCP: Proto = Proto::Number(6);
const UDP: Proto = Proto::Number(17);
const DCCP: Proto = Proto::Number(33);
const SCTP: Proto = Proto::Number(132);

impl Proto {
    /// Whether this protocol's header begins with source and destination port.
    pub(super) fn has_ports(self) -> bool {
        matches!(self, Proto::TcpUdp | Proto::Transport) || [TCP, UDP, DCCP, SCTP].contains(&self)
    }

    pub(super) fn number(self) -> Option<u8> {
        if let Proto::Number(n) = self { Some(n) } else { None }
    }

    fn members(self) -> Vec<Proto> {
        match self {
            Proto::Number(_) => vec![self],
            Proto::TcpUdp => vec![TCP, UDP],
            Proto::Transport => vec![TCP, UDP, DCCP, SCTP],
        }
    }

    fn equals(self, mask: u32) -> Expr {
        let one = |p: Proto| PROTO.compare(mask, Relation::Equal, u32::from(p.number().unwrap_or(0)));
        Expr::Or(self.members().into_iter().map(one).collect())
    }

    /// Tests whether the packet has this protocol.
    pub(super) fn test(self) -> Expr {
        match self {
            Proto::Number(_) => self.equals(0xff),
            _ => Expr::Or(self.members().into_iter().map(Proto::test).collect()),
        }
    }
}

/// Tests without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    Frag,
    Unfrag,
    Ect,
    Ce,
}

impl Flag {
    pub(super) fn test(self) -> Expr {
        // More-fragments bit and fragment offset. The don't-fragment bit is ignored.
        const PART: u32 = 0x3fff;
        match self {
            Flag::Frag => FRAGMENT.compare(PART, Relation::NotEqual, 0),
            Flag::Unfrag => FRAGMENT.compare(PART, Relation::Equal, 0),
            Flag::Ect => ECN.compare(3, Relation::NotEqual, 0),
            Flag::Ce => ECN.compare(3, Relation::Equal, 3),
        }
    }
}

/// The quantity to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Host,
    Net,
    EtherHost,
    Port,
    Proto,
    TcpOpt,
    TcpWin,
    Icmp,
    /// A field outside the transport header.
    Field(Field),
    /// A field of the transport header.
    Transport(Field),
}

impl Type {
    /// Returns the header field that values of this type are compared with. The field gives the width of the values. A
    /// port can be compared with the source port or the destination port, which have the same width; in this case,
    /// returns the source port. Returns `None` for addresses.
    pub(super) fn field(self) -> Option<Field> {
        match self {
            Type::Host | Type::Net | Type::EtherHost => None,
            Type::Port => Some(SRC_PORT),
            Type::Proto => Some(PROTO),
            Type::TcpOpt => Some(TCP_FLAGS),
            Type::TcpWin => Some(TCP_WINDOW),
            Type::Icmp => Some(ICMP_TYPE),
            Type::Field(f) | Type::Transport(f) => Some(f),
        }
    }

    pub(super) fn has_direction(self) -> bool {
        matches!(self, Type::Host | Type::Net | Type::EtherHost | Type::Port)
    }

    pub(super) fn has_order(self) -> bool {
        !matches!(self, Type::Host | Type::Net | Type::EtherHost | Type::Proto | Type::TcpOpt)
    }
}

/// A test with all omitted parts filled in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    pub(super) ty: Type,
    pub(super) direction: Direction,
    pub(super) proto: Option<Proto>,
    pub(super) mask: u64,
    pub(super) relation: Relation,
    pub(super) value: Operand,
}

/// The value to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Literal(Value),
    Proto(Proto),
}

impl Test {
    pub(super) fn compile(&self) -> Expr {
        let number = match self.value {
            Operand::Literal(Value::Number(n) | Value::Ip(n) | Value::Prefix(n, _)) => n,
            Operand::Literal(Value::Ether(_)) | Operand::Proto(_) => 0,
        };
        let mask = self.mask as u32;
        let mut all: Vec<Expr> = self.proto.iter().map(|p| p.test()).collect();
        if matches!(self.ty, Type::Port | Type::TcpOpt | Type::TcpWin | Type::Icmp | Type::Transport(_)) {
            // Later fragments have no transport header (RFC 791 §3.2).
            all.push(FRAGMENT.compare(0x1fff, Relation::Equal, 0));
        }
        all.push(match self.ty {
            Type::Host | Type::Net => self.directed(&[(SRC, mask, number)], &[(DST, mask, number)]),
            Type::Port => self.directed(&[(SRC_PORT, mask, number)], &[(DST_PORT, mask, number)]),
            Type::EtherHost => {
                let ether = if let Operand::Literal(Value::Ether(e)) = self.value { e } else { 0 };
                let (high, low) = ((ether >> 16) as u32, ether as u32 & 0xffff);
                let (high_mask, low_mask) = ((self.mask >> 16) as u32, mask & 0xffff);
                let (top, bottom) = (ether >> 32, ether as u32);
                let (top_mask, bottom_mask) = ((self.mask >> 32) as u32, mask);
                self.directed(
                    &[
                        (Field::bytes(ETHER + 6, 4), high_mask, high),
                        (Field::bytes(ETHER + 10, 2), low_mask, low),
                    ],
                    &[
                        (Field::bytes(ETHER, 2), top_mask, top as u32),
                        (Field::bytes(ETHER + 2, 4), bottom_mask, bottom),
                    ],
                )
            }
            Type::Proto => {
                let proto = if let Operand::Proto(p) = self.value { p } else { Proto::Number(number as u8) };
                match self.relation {
                    Relation::NotEqual => {
                        Expr::And(vec![Expr::Atom(PROTO.present()), proto.equals(mask).negate()])
                    }
                    _ => proto.equals(mask),
                }
            }
            // True if all given flags are set.
            Type::TcpOpt => Expr::Atom(TCP_FLAGS.equals(number, number)),
            Type::TcpWin => TCP_WINDOW.compare(mask, self.relation, number),
            Type::Icmp => ICMP_TYPE.compare(mask, self.relation, number),
            Type::Field(f) | Type::Transport(f) => f.compare(mask, self.relation, number),
        });
        Expr::And(all)
    }

    /// Combines the tests of source and destination according to the direction. `!=` negates `=` as a whole:
    /// `port != 80` means that neither port is 80. Order relations apply to each side separately.
    fn directed(&self, src: &[(Field, u32, u32)], dst: &[(Field, u32, u32)]) -> Expr {
        let unequal = self.relation == Relation::NotEqual;
        let relation = if unequal { Relation::Equal } else { self.relation };
        let side = |parts: &[(Field, u32, u32)]| {
            // An Ethernet address spans two words. The mask may clear one of them completely.
            let asked = parts.iter().map(|&(f, mask, value)| f.compare(mask, relation, value & f.max()));
            Expr::And(asked.collect())
        };
        let (test, sides): (Expr, &[&[_]]) = match self.direction {
            Direction::Src => (side(src), &[src]),
            Direction::Dst => (side(dst), &[dst]),
            Direction::Either => (Expr::Or(vec![side(src), side(dst)]), &[src, dst]),
            Direction::Both => (Expr::And(vec![side(src), side(dst)]), &[src, dst]),
        };
        if !unequal {
            return test;
        }
        let mut all: Vec<_> =
            sides.iter().flat_map(|s| s.iter()).map(|p| Expr::Atom(p.0.present())).collect();
        all.push(test.negate());
        Expr::And(all)
    }
}
