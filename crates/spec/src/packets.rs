// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet type codes: what packets a class wants on its inputs and gives on its outputs.
//!
//! A code has the types of the inputs, a `/`, and the types of the outputs. Commas separate the ports of a side, and
//! the last type also applies to all further ports. A type says what the data of packets begins with, and whether the
//! IP header annotation is set:
//!
//! | input | the element wants |
//! |---|---|
//! | `any` | any packets |
//! | `ether` | Ethernet frames |
//! | `ether arp` | Ethernet frames with ARP packets |
//! | `ip` | packets whose IP header annotation is set |
//! | `ip optional` | the same, but all other packets pass unchanged |
//! | `ip at N` | packets with an IPv4 header N bytes after the start of the data |
//! | `network at N` | the same, for any network protocol |
//!
//! | output | the element gives |
//! |---|---|
//! | `any`, `ether`, `ether arp`, `network`, `ip` | packets of unknown contents; Ethernet frames, of any contents or with ARP packets; packets that begin with the header of a network protocol, or with an IPv4 header. With `marked` or `unmarked` after it: the IP header annotation is set, or not set. `ip` alone stands for `ip marked` |
//! | `same` | what came in |
//! | `changed` | packets of unknown contents, with the annotation that came in |
//! | `strip N`, `unstrip N` | what came in, with N bytes less or more at the front |
//! | `mark N` | what came in, with the annotation set to N bytes after the start of the data |
//! | `check N` | the same, but only IPv4 packets |
//! | `to network` | what came in, from the annotated header on |
//! | `framed`, `framed TYPE` | Ethernet frames, with the annotation that came in and with this EtherType |
//! | `classified` | what came in and matches the Classifier pattern of the output |
//!
//! N and TYPE are numbers or names of arguments.

mod parse;

pub use parse::packets_are_valid;

use crate::arg::Given;
use crate::codes::sides;
use parse::words;
use std::fmt;

/// The EtherTypes that matter to packet types.
pub mod ethertype {
    /// IPv4.
    pub const IP: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// Ethernet frames in Ethernet frames (transparent Ethernet bridging).
    pub const BRIDGED: u16 = 0x6558;
}

/// A number in a packet type code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number.
    Number(i64),
    /// The value of an argument.
    Arg(&'static str),
    /// A number that is not known, because the argument has no valid value.
    Unknown,
}

impl Amount {
    /// The number; `None` if it is not known.
    pub fn number(self) -> Option<i64> {
        match self {
            Amount::Number(n) => Some(n),
            Amount::Arg(_) | Amount::Unknown => None,
        }
    }
    /// Replaces the name of an argument by its value.
    fn resolved(self, given: &Given<'_>) -> Amount {
        match self {
            Amount::Arg(name) => given.number(name).map_or(Amount::Unknown, Amount::Number),
            known => known,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Number(n) => n.fmt(f),
            Amount::Arg(name) => f.write_str(name),
            Amount::Unknown => f.write_str("?"),
        }
    }
}

/// What an element wants on an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// Any packets.
    Any,
    /// Ethernet frames.
    Ether,
    /// Ethernet frames with ARP packets.
    EtherArp,
    /// Packets whose IP header annotation is set.
    Ip,
    /// Packets whose IP header annotation is set. All others pass unchanged.
    IpOptional,
    /// Packets with an IPv4 header this many bytes after the start of the data.
    IpAt(Amount),
    /// Packets with the header of a network protocol this many bytes after the start of the data.
    NetworkAt(Amount),
}

/// What the data of packets begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Anything.
    Any,
    /// An Ethernet header with this EtherType, if it is known.
    Ether(Option<u16>),
    /// The header of the network protocol with this EtherType, if it is known.
    Network(Option<u16>),
}

/// What an element gives on an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// Packets of these contents. The flag tells whether their IP header annotation is set, if that is known.
    Fixed(Contents, Option<bool>),
    /// What came in.
    Same,
    /// Packets of unknown contents, with the annotation that came in.
    Changed,
    /// What came in, without this many bytes at the front.
    Strip(Amount),
    /// What came in, with this many bytes more at the front.
    Unstrip(Amount),
    /// What came in, with the annotation set to this many bytes after the start of the data.
    Mark(Amount),
    /// IPv4 packets that came in, with the annotation set to this many bytes after the start of the data.
    Check(Amount),
    /// What came in, from the annotated header on.
    ToNetwork,
    /// Ethernet frames, with the annotation that came in, and with this EtherType if one is given.
    Framed(Option<Amount>),
    /// What came in and matches the Classifier pattern of the output.
    Classified,
    /// What came in, if it has this EtherType.
    OfType(Option<u16>),
}

impl Wants {
    fn resolved(self, given: &Given<'_>) -> Wants {
        match self {
            Wants::IpAt(n) => Wants::IpAt(n.resolved(given)),
            Wants::NetworkAt(n) => Wants::NetworkAt(n.resolved(given)),
            other => other,
        }
    }
}

impl fmt::Display for Wants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wants::Any => f.write_str("any"),
            Wants::Ether => f.write_str("Ethernet"),
            Wants::EtherArp => f.write_str("ARP in Ethernet"),
            Wants::Ip => f.write_str("IP, header marked"),
            Wants::IpOptional => f.write_str("IP, header marked; others pass"),
            Wants::IpAt(Amount::Number(0)) => f.write_str("IP"),
            Wants::NetworkAt(Amount::Number(0)) => f.write_str("network"),
            Wants::IpAt(n) => write!(f, "IP header at {n}"),
            Wants::NetworkAt(n) => write!(f, "network header at {n}"),
        }
    }
}

impl Gives {
    /// Replaces the names of arguments by their values.
    fn resolved(self, given: &Given<'_>) -> Gives {
        match self {
            Gives::Strip(n) => Gives::Strip(n.resolved(given)),
            Gives::Unstrip(n) => Gives::Unstrip(n.resolved(given)),
            Gives::Mark(n) => Gives::Mark(n.resolved(given)),
            Gives::Check(n) => Gives::Check(n.resolved(given)),
            Gives::Framed(n) => Gives::Framed(n.map(|n| n.resolved(given))),
            other => other,
        }
    }
}

impl fmt::Display for Gives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gives::Fixed(contents, marked) => {
                f.write_str(match contents {
                    Contents::Any => "any",
                    Contents::Ether(Some(ethertype::ARP)) => "ARP in Ethernet",
                    Contents::Ether(_) => "Ethernet",
                    Contents::Network(Some(ethertype::IP)) => "IP",
                    Contents::Network(_) => "network",
                })?;
                f.write_str(match marked {
                    Some(true) => ", header marked",
                    Some(false) => ", header not marked",
                    None => "",
                })
            }
            Gives::Same | Gives::OfType(_) => f.write_str("as input"),
            Gives::Changed => f.write_str("as input, other contents"),
            Gives::Strip(n) => write!(f, "as input, {n} bytes less"),
            Gives::Unstrip(n) => write!(f, "as input, {n} bytes more"),
            Gives::Mark(n) => write!(f, "as input, header marked at {n}"),
            Gives::Check(n) => write!(f, "IP, header marked at {n}"),
            Gives::ToNetwork => f.write_str("as input, from the marked header on"),
            Gives::Framed(_) => f.write_str("Ethernet"),
            Gives::Classified => f.write_str("as input, by pattern"),
        }
    }
}

/// A packet type code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketCode {
    inputs: Vec<Wants>,
    outputs: Vec<Gives>,
}

impl PacketCode {
    /// The code of an unknown class: it takes any packets, and gives packets of unknown contents.
    pub const ANY: PacketCode = PacketCode { inputs: Vec::new(), outputs: Vec::new() };

    /// Parses a code; `None` if it is malformed.
    pub fn parse(code: &'static str) -> Option<PacketCode> {
        let (inputs, outputs) = sides(code.as_bytes());
        let phrases = |side: &'static [u8]| side.split(|&b| b == b',').filter(|p| !p.trim_ascii().is_empty());
        packets_are_valid(code).then(|| PacketCode {
            inputs: phrases(inputs).filter_map(|p| Wants::parse(words(p))).collect(),
            outputs: phrases(outputs).filter_map(|p| Gives::parse(words(p))).collect(),
        })
    }
    /// Whether the element takes any packets on all inputs.
    pub fn takes_any(&self) -> bool {
        self.inputs.iter().all(|w| *w == Wants::Any)
    }
    /// What an input wants.
    pub fn input(&self, port: usize) -> Wants {
        self.inputs.get(port).or(self.inputs.last()).copied().unwrap_or(Wants::Any)
    }
    /// What an output gives.
    pub fn output(&self, port: usize) -> Gives {
        let gives = self.outputs.get(port).or(self.outputs.last()).copied();
        gives.unwrap_or(Gives::Fixed(Contents::Any, None))
    }
    /// The names of the arguments that the code refers to.
    pub fn args(&self) -> impl Iterator<Item = &'static str> + '_ {
        let wanted = self.inputs.iter().filter_map(|w| match w {
            Wants::IpAt(n) | Wants::NetworkAt(n) => Some(*n),
            _ => None,
        });
        let given = self.outputs.iter().filter_map(|g| match g {
            Gives::Strip(n)
            | Gives::Unstrip(n)
            | Gives::Mark(n)
            | Gives::Check(n)
            | Gives::Framed(Some(n)) => Some(*n),
            _ => None,
        });
        wanted.chain(given).filter_map(|n| match n {
            Amount::Arg(name) => Some(name),
            _ => None,
        })
    }
    /// Whether the code depends on the arguments of an element.
    pub fn depends_on_args(&self) -> bool {
        self.args().next().is_some() || self.outputs.contains(&Gives::Classified)
    }
    /// Returns the code of an element with these arguments. It refers to no arguments.
    pub fn resolved(&self, given: &Given<'_>) -> PacketCode {
        let inputs = self.inputs.iter().map(|w| w.resolved(given)).collect();
        let outputs = match self.outputs.as_slice() {
            [Gives::Classified] => {
                let types = given.rest().into_iter().map(|pattern| Gives::OfType(ether_type(&pattern)));
                types.chain([Gives::Same]).collect()
            }
            outputs => outputs.iter().map(|g| g.resolved(given)).collect(),
        };
        PacketCode { inputs, outputs }
    }
}

impl fmt::Display for PacketCode {
    /// Shows the types of the inputs and outputs in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |f: &mut fmt::Formatter<'_>, title: &str, types: &mut dyn Iterator<Item = String>| {
            let types: Vec<String> = types.collect();
            if types.is_empty() { Ok(()) } else { write!(f, "{title} {}", types.join("; ")) }
        };
        side(f, "input", &mut self.inputs.iter().map(Wants::to_string))?;
        if !self.inputs.is_empty() && !self.outputs.is_empty() {
            f.write_str(", ")?;
        }
        side(f, "output", &mut self.outputs.iter().map(Gives::to_string))
    }
}

/// Returns the EtherType of all frames that match a Classifier pattern, if a clause of the pattern fixes it.
fn ether_type(pattern: &str) -> Option<u16> {
    pattern.split_whitespace().find_map(|clause| {
        let digits = clause.strip_prefix("12/")?.get(..4)?;
        let whole = !clause.contains('%');
        u16::from_str_radix(digits, 16).ok().filter(|_| whole)
    })
}

/// Whether an element fulfils a condition on its arguments: the name of an argument, a blank, and one or more values
/// separated by `|`. A `*` in a value stands for any text.
pub fn holds(condition: &str, given: &Given<'_>) -> bool {
    let (arg, values) = condition.split_once(' ').unwrap_or((condition, ""));
    values.split('|').any(|value| match value {
        "true" | "false" => given.flag(arg).is_some_and(|flag| flag.to_string() == value),
        pattern => given.text(arg).is_some_and(|text| matches(pattern, &text)),
    })
}

/// Whether a text matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match text.split_once(part) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests;
