// SPDX-License-Identifier: MIT OR Apache-2.0
//! Header expressions as data: random generation, conversion to text, and evaluation on the packet's bytes.

use crate::packets::{ADDRESSES, ETHERS, PORTS, Rng};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dir {
    Default,
    Src,
    Dst,
    Either,
    Both,
}

/// `number REL value`; false for a missing field.
fn relate(field: Option<u32>, mask: u32, rel: &str, value: u32) -> bool {
    let Some(field) = field.map(|f| f & mask) else { return false };
    match rel {
        "<" => field < value,
        ">" => field > value,
        "<=" => field <= value,
        ">=" => field >= value,
        "!=" => field != value,
        _ => field == value,
    }
}

const ORDERS: [&str; 9] = ["", "", "", "=", "!=", "<", ">", "<=", ">="];
const EQUALS: [&str; 4] = ["", "", "==", "!="];
const IP_FIELDS: [(&str, u32); 7] =
    [("vers", 15), ("hl", 15), ("tos", 255), ("dscp", 63), ("len", 65535), ("id", 65535), ("ttl", 255)];

/// The bits that a value may have: all bits for `<`, `>`, `<=` and `>=`, and only the bits of the mask for the other
/// relations.
fn comparable(rel: &str, mask: u32) -> u32 {
    if rel.contains(['<', '>']) { u32::MAX } else { mask }
}

#[derive(Clone, Debug)]
pub enum Test {
    Const(bool),
    Host { dir: Dir, mask: u32, rel: &'static str, address: u32, net: bool },
    Ether { dir: Dir, rel: &'static str, address: [u8; 6] },
    Port { dir: Dir, proto: &'static str, mask: u32, rel: &'static str, value: u32 },
    Proto { rel: &'static str, name: &'static str, numbers: &'static [u8] },
    BareProto { name: &'static str, numbers: &'static [u8] },
    Opt { flags: u8 },
    Win { rel: &'static str, value: u32 },
    IcmpType { rel: &'static str, value: u32 },
    Field { field: usize, mask: u32, rel: &'static str, value: u32 },
    Flag(&'static str),
    Bytes { header: &'static str, pos: usize, len: usize, mask: u32, rel: &'static str, value: u32 },
}

#[derive(Clone, Debug)]
pub enum Tree {
    Test(Test),
    Not(Box<Tree>),
    And(Vec<Tree>),
    Or(Vec<Tree>),
    If(Box<[Tree; 3]>),
}

pub struct Packet<'a> {
    pub ether: &'a [u8],
    pub network: &'a [u8],
}

impl Packet<'_> {
    fn number(data: &[u8], pos: usize, len: usize) -> Option<u32> {
        Some(data.get(pos..pos + len)?.iter().fold(0, |n, b| n << 8 | u32::from(*b)))
    }

    fn ip(&self, pos: usize, len: usize) -> Option<u32> {
        Packet::number(self.network, pos, len)
    }

    /// The number at `pos` in the transport header; `None` in later fragments, which have no such header.
    fn transport(&self, pos: usize, len: usize) -> Option<u32> {
        let start = self.ip(0, 1)? as usize % 16 * 4;
        if self.ip(6, 2)? % 0x2000 != 0 {
            return None;
        }
        Packet::number(self.network.get(start..)?, pos, len)
    }

    fn proto(&self, numbers: &[u8]) -> bool {
        self.ip(9, 1).is_some_and(|p| numbers.contains(&(p as u8)))
    }
}

fn numbers(proto: &str) -> &'static [u8] {
    match proto {
        "tcp" => &[6],
        "udp" => &[17],
        "icmp" => &[1],
        "sctp" => &[132],
        "transp" => &[6, 17, 33, 132],
        _ => &[6, 17],
    }
}

/// Applies `ask` to the source, the destination or both, as `dir` says. `!=` negates the result as a whole, but
/// the result is false if a value that it needs is missing.
fn directed<T: Copy>(
    dir: Dir,
    rel: &str,
    src: Option<T>,
    dst: Option<T>,
    ask: impl Fn(Option<T>, &str) -> bool,
) -> bool {
    let plain = if rel == "!=" { "=" } else { rel };
    let (there, holds) = match dir {
        Dir::Src => (src.is_some(), ask(src, plain)),
        Dir::Dst => (dst.is_some(), ask(dst, plain)),
        Dir::Default | Dir::Either => (src.is_some() && dst.is_some(), ask(src, plain) || ask(dst, plain)),
        Dir::Both => (src.is_some() && dst.is_some(), ask(src, plain) && ask(dst, plain)),
    };
    if rel == "!=" { there && !holds } else { holds }
}

impl Test {
    pub fn random(rng: &mut Rng) -> Test {
        let dir = rng.pick(&[Dir::Default, Dir::Src, Dir::Dst, Dir::Either, Dir::Both]);
        let masked =
            |rng: &mut Rng, all: u32| if rng.chance(4) { all & rng.pick(&[0xf0, 0x3c, 0xff07]) } else { all };
        match rng.below(13) {
            0 if rng.chance(4) => Test::Const(rng.chance(2)),
            0..=2 => {
                let mask = rng.pick(&[u32::MAX, u32::MAX, 0xffffff00, 0xff000000, 0x80000000, 0, 0x00ff00ff]);
                let address = u32::from_be_bytes(rng.pick(&ADDRESSES));
                let net = mask == 0 || (mask != u32::MAX && rng.chance(2));
                Test::Host { dir, mask, rel: rng.pick(&EQUALS), address, net }
            }
            3 => Test::Ether { dir, rel: rng.pick(&EQUALS), address: rng.pick(&ETHERS) },
            4 | 5 => {
                let mask = masked(rng, 0xffff);
                let (proto, rel) =
                    (rng.pick(&["", "tcp", "udp", "sctp", "tcpudp", "transp"]), rng.pick(&ORDERS));
                let value = u32::from(rng.pick(&PORTS)) & comparable(rel, mask);
                Test::Port { dir, proto, mask, rel, value }
            }
            6 => {
                let name = rng.pick(&["tcp", "udp", "icmp", "6", "0x11", "tcpudp", "transp"]);
                let numbers = match name {
                    "6" => &[6],
                    "0x11" => &[17],
                    _ => numbers(name),
                };
                Test::Proto { rel: rng.pick(&EQUALS), name, numbers }
            }
            7 => {
                let name = rng.pick(&["tcp", "udp", "icmp", "tcpudp", "transp"]);
                Test::BareProto { name, numbers: numbers(name) }
            }
            8 => Test::Opt { flags: rng.pick(&[1, 2, 4, 8, 16, 32, 0x12, 0x3f]) },
            9 if rng.chance(2) => Test::Win { rel: rng.pick(&ORDERS), value: u32::from(rng.pick(&PORTS)) },
            9 => Test::IcmpType { rel: rng.pick(&ORDERS), value: rng.pick(&[0, 3, 8, 200]) },
            10 => {
                let field = rng.below(IP_FIELDS.len());
                let max = IP_FIELDS[field].1;
                let mask = Some(masked(rng, max)).filter(|m| *m != 0).unwrap_or(max);
                let rel = rng.pick(&ORDERS);
                let value = rng.pick(&[0, 4, 5, 6, 20, 40, 63, 64, 255, 1024]) & comparable(rel, mask) & max;
                Test::Field { field, mask, rel, value }
            }
            11 => Test::Flag(rng.pick(&["frag", "unfrag", "ect", "ce"])),
            _ => {
                let header = rng.pick(&["ip", "tcp", "udp", "icmp", "transp"]);
                let pos = rng.below(24);
                let len = 1 + rng.below(4 - pos % 4);
                let all = u32::MAX >> (32 - len * 8);
                let mask = Some(masked(rng, all)).filter(|m| *m != 0).unwrap_or(all);
                let rel = rng.pick(&ORDERS);
                let value = rng.pick(&[0, 1, 0x45, 0x50, 0x0102, 0x01020304, 0x0a000001]);
                let value = value & comparable(rel, mask) & all;
                Test::Bytes { header, pos, len, mask, rel, value }
            }
        }
    }

    pub fn text(&self, rng: &mut Rng) -> String {
        let dir_text = |dir: Dir| match dir {
            Dir::Default => "",
            Dir::Src => "src ",
            Dir::Dst => "dst ",
            Dir::Either => "src or dst ",
            Dir::Both => "dst and src ",
        };
        let dotted = |a: u32| a.to_be_bytes().map(|b| b.to_string()).join(".");
        let mask_text =
            |mask: u32, all: u32| if mask == all { String::new() } else { format!("& {mask:#x} ") };
        // The relation between a mask and a value may be left out.
        match self {
            Test::Const(b) => b.to_string(),
            Test::Host { dir, mask, rel, address, net } => {
                let (d, a, m) = (dir_text(*dir), dotted(address & mask), dotted(*mask));
                // Without any qualifier, a value would repeat the qualifiers of the previous test.
                let bare = *dir != Dir::Default && rel.is_empty() && rng.chance(2);
                let prefix = mask.count_zeros() == mask.trailing_zeros();
                match (mask.leading_ones(), net) {
                    (32, _) if bare => format!("{d}{a}"),
                    (32, _) => format!("ip {d}host {rel} {a}"),
                    (_, false) => format!("{d}host & {m} {rel} {a}"),
                    (n, _) if prefix && bare => format!("{d}{a}/{n}"),
                    (n, _) if prefix && rng.chance(2) => format!("{d}net {rel} {a}/{n}"),
                    _ => format!("{d}net {rel} {a} mask {m}"),
                }
            }
            Test::Ether { dir, rel, address } => {
                let a = address.map(|b| format!("{b:02x}")).join(rng.pick(&[":", "-"]));
                format!("ether {}host{rel} {a}", dir_text(*dir))
            }
            Test::Port { dir, proto, mask, rel, value } => {
                let mask = mask_text(*mask, 0xffff);
                match rng.below(2) {
                    0 => format!("{} {}port {mask}{rel} {value}", proto, dir_text(*dir)),
                    _ => format!("{}{} port {mask}{rel} {value:#x}", dir_text(*dir), proto),
                }
            }
            Test::Proto { rel, name, .. } => format!("{}proto {rel} {name}", rng.pick(&["ip ", ""])),
            Test::BareProto { name, .. } => (*name).to_owned(),
            Test::Opt { flags } => {
                let names = ["fin", "syn", "rst", "psh", "ack", "urg"];
                match names.get(flags.trailing_zeros() as usize) {
                    Some(name) if flags.is_power_of_two() => {
                        format!("{}{name}", rng.pick(&["tcp opt ", "opt ", ""]))
                    }
                    _ => format!("tcp opt {flags}"),
                }
            }
            Test::Win { rel, value } => format!("{}win {rel} {value}", rng.pick(&["tcp ", ""])),
            Test::IcmpType { rel, value } => match value {
                8 if rng.chance(2) => format!("icmp type {rel} echo"),
                3 if rel.is_empty() && rng.chance(2) => "unreachable".to_owned(),
                _ => format!("icmp type {rel} {value}"),
            },
            Test::Field { field, mask, rel, value } => {
                let (name, all) = IP_FIELDS[*field];
                format!("{}{name} {}{rel} {value}", rng.pick(&["ip ", ""]), mask_text(*mask, all))
            }
            Test::Flag(name) => format!("{}{name}", rng.pick(&["ip ", ""])),
            Test::Bytes { header, pos, len, mask, rel, value } => {
                let all = u32::MAX >> (32 - len * 8);
                let at = match rng.below(3) {
                    0 if *len == 1 => format!("{pos}"),
                    1 => format!("{pos},{}", pos + len - 1),
                    _ => format!(" {pos}:{len} "),
                };
                let value = if *len == 4 && rng.chance(2) { dotted(*value) } else { value.to_string() };
                format!("{header}[{at}] {}{rel} {value}", mask_text(*mask, all))
            }
        }
    }

    pub fn holds(&self, p: &Packet<'_>) -> bool {
        match self {
            Test::Const(b) => *b,
            Test::Host { dir, mask, rel, address, .. } => {
                directed(*dir, rel, p.ip(12, 4), p.ip(16, 4), |f, rel| relate(f, *mask, rel, address & mask))
            }
            Test::Ether { dir, rel, address } => {
                let (src, dst) = (p.ether.get(6..12), p.ether.get(..6));
                directed(*dir, rel, src, dst, |f, _| f == Some(&address[..]))
            }
            Test::Port { dir, proto, mask, rel, value } => {
                p.proto(numbers(proto))
                    && directed(*dir, rel, p.transport(0, 2), p.transport(2, 2), |f, rel| {
                        relate(f, *mask, rel, *value)
                    })
            }
            Test::Proto { rel, numbers, .. } => p.ip(9, 1).is_some() && p.proto(numbers) != (*rel == "!="),
            Test::BareProto { numbers, .. } => p.proto(numbers),
            Test::Opt { flags } => {
                p.proto(&[6]) && p.transport(13, 1).is_some_and(|f| f as u8 & flags == *flags)
            }
            Test::Win { rel, value } => p.proto(&[6]) && relate(p.transport(14, 2), u32::MAX, rel, *value),
            Test::IcmpType { rel, value } => {
                p.proto(&[1]) && relate(p.transport(0, 1), u32::MAX, rel, *value)
            }
            Test::Field { field, mask, rel, value } => {
                let field = match IP_FIELDS[*field].0 {
                    "vers" => p.ip(0, 1).map(|b| b / 16),
                    "hl" => p.ip(0, 1).map(|b| b % 16),
                    "tos" => p.ip(1, 1),
                    "dscp" => p.ip(1, 1).map(|b| b / 4),
                    "len" => p.ip(2, 2),
                    "id" => p.ip(4, 2),
                    _ => p.ip(8, 1),
                };
                relate(field, *mask, rel, *value)
            }
            Test::Flag(name) => match *name {
                "frag" => p.ip(6, 2).is_some_and(|f| f & 0x3fff != 0),
                "unfrag" => p.ip(6, 2).is_some_and(|f| f & 0x3fff == 0),
                "ect" => p.ip(1, 1).is_some_and(|t| t % 4 != 0),
                _ => p.ip(1, 1).is_some_and(|t| t % 4 == 3),
            },
            Test::Bytes { header, pos, len, mask, rel, value } => match *header {
                "ip" => relate(p.ip(*pos, *len), *mask, rel, *value),
                "transp" => relate(p.transport(*pos, *len), *mask, rel, *value),
                proto => p.proto(numbers(proto)) && relate(p.transport(*pos, *len), *mask, rel, *value),
            },
        }
    }
}

impl Tree {
    pub fn random(rng: &mut Rng, depth: usize) -> Tree {
        let many = |rng: &mut Rng| (0..2 + rng.below(2)).map(|_| Tree::random(rng, depth - 1)).collect();
        match if depth == 0 { 9 } else { rng.below(8) } {
            0 => Tree::Not(Box::new(Tree::random(rng, depth - 1))),
            1 | 2 => Tree::And(many(rng)),
            3 | 4 => Tree::Or(many(rng)),
            5 => Tree::If(Box::new([(); 3].map(|()| Tree::random(rng, depth - 1)))),
            _ => Tree::Test(Test::random(rng)),
        }
    }

    pub fn text(&self, rng: &mut Rng) -> String {
        let part = |t: &Tree, rng: &mut Rng| match t {
            Tree::Test(t) => t.text(rng),
            t => format!("({})", t.text(rng)),
        };
        match self {
            Tree::Test(t) => t.text(rng),
            Tree::Not(t) => format!("{} {}", rng.pick(&["not", "!"]), part(t, rng)),
            Tree::And(v) => {
                // Juxtaposition is not used, because `tcp tcp opt syn` would be a single test.
                let sign = rng.pick(&[" and ", " && "]);
                v.iter().map(|t| part(t, rng)).collect::<Vec<_>>().join(sign)
            }
            Tree::Or(v) => {
                v.iter().map(|t| part(t, rng)).collect::<Vec<_>>().join(rng.pick(&[" or ", " || "]))
            }
            Tree::If(v) => {
                let [c, a, b] = [0, 1, 2].map(|i| part(&v[i], rng));
                format!("{c} ? {a} : {b}")
            }
        }
    }

    pub fn holds(&self, p: &Packet<'_>) -> bool {
        match self {
            Tree::Test(t) => t.holds(p),
            Tree::Not(t) => !t.holds(p),
            Tree::And(v) => v.iter().all(|t| t.holds(p)),
            Tree::Or(v) => v.iter().any(|t| t.holds(p)),
            Tree::If(v) => if v[0].holds(p) { &v[1] } else { &v[2] }.holds(p),
        }
    }
}
