// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known about packets at one point of a configuration, and what elements do to it.

use castanet_spec::packets::{Amount, Contents, Gives, Wants, ethertype};

/// The length of an Ethernet header, in bytes.
pub(crate) const ETHER: i64 = 14;
/// The shortest length of an IPv4 header, in bytes.
const IP: i64 = 20;
/// The data of packets starts at most this many bytes before or after a header. Beyond that, contents are unknown, so
/// that there are finitely many types.
const FARTHEST: i64 = 256;

/// Where the data of packets starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// It is not known.
    Any,
    /// `at` bytes after the start of an Ethernet frame with this EtherType, if it is known.
    Frame {
        /// The position.
        at: i64,
        /// The EtherType.
        protocol: Option<u16>,
    },
    /// `at` bytes after the start of the header of the network protocol with this EtherType, if it is known. What
    /// comes before that header is not known.
    Network {
        /// The position; negative before the header.
        at: i64,
        /// The EtherType.
        protocol: Option<u16>,
    },
}

/// What is known about the packets at one point of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketType {
    /// Where their data starts.
    pub data: Data,
    /// Whether their IP header annotation is set, if that is known.
    pub marked: Option<bool>,
}

/// Why packets are not what an element wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// The IP header annotation is not set.
    Unmarked,
    /// An Ethernet header is where the header of a network protocol is wanted.
    Frame,
    /// The wanted place is inside a network header.
    InHeader,
    /// The data does not begin with an Ethernet header.
    NoFrame,
    /// The packets are of the network protocol with this EtherType, and not of the wanted one.
    Protocol(u16),
}

fn join_protocols(a: Option<u16>, b: Option<u16>) -> Option<u16> {
    a.filter(|_| a == b)
}

impl Data {
    fn of(contents: Contents) -> Data {
        match contents {
            Contents::Any => Data::Any,
            Contents::Ether(protocol) => Data::Frame { at: 0, protocol },
            Contents::Network(protocol) => Data::Network { at: 0, protocol },
        }
    }
    /// Moves the start of the data; `None` stands for an unknown number of bytes.
    fn moved(self, by: Option<i64>) -> Data {
        let to =
            |at: i64| by.and_then(|by| at.checked_add(by)).filter(|at| (-FARTHEST..=FARTHEST).contains(at));
        match self {
            Data::Frame { at, protocol } => to(at).map(|at| Data::Frame { at, protocol }),
            Data::Network { at, protocol } => to(at).map(|at| Data::Network { at, protocol }),
            Data::Any => None,
        }
        .unwrap_or(Data::Any)
    }
    /// The position of the data relative to the network header, and the network protocol.
    fn network(self) -> Option<(i64, Option<u16>)> {
        match self {
            Data::Any => None,
            Data::Frame { at, protocol } => Some((at - ETHER, protocol)),
            Data::Network { at, protocol } => Some((at, protocol)),
        }
    }
    fn join(self, other: Data) -> Data {
        match (self, other) {
            (Data::Frame { at, protocol }, Data::Frame { at: b, protocol: other }) if at == b => {
                Data::Frame { at, protocol: join_protocols(protocol, other) }
            }
            _ => match (self.network(), other.network()) {
                (Some((at, a)), Some((same, b))) if at == same && at >= 0 => {
                    Data::Network { at, protocol: join_protocols(a, b) }
                }
                _ => Data::Any,
            },
        }
    }
    /// Sets the network protocol, if it is not known yet.
    fn with_protocol(self, new: Option<u16>) -> Data {
        match self {
            Data::Any => Data::Any,
            Data::Frame { at, protocol } => Data::Frame { at, protocol: protocol.or(new) },
            Data::Network { at, protocol } => Data::Network { at, protocol: protocol.or(new) },
        }
    }
}

impl PacketType {
    /// The type of packets about which nothing is known.
    pub const ANY: PacketType = PacketType { data: Data::Any, marked: None };

    /// Returns the type of all packets of both types.
    pub(crate) fn join(self, other: PacketType) -> PacketType {
        let marked = self.marked.filter(|_| self.marked == other.marked);
        PacketType { data: self.data.join(other.data), marked }
    }

    /// Returns the type that an output always has; `None` if it depends on the input.
    pub(crate) fn fixed(gives: Gives) -> Option<PacketType> {
        match gives {
            Gives::Fixed(contents, marked) => Some(PacketType { data: Data::of(contents), marked }),
            _ => None,
        }
    }

    /// Returns the type of packets of this type after they have passed an element.
    pub(crate) fn after(self, gives: Gives) -> PacketType {
        let PacketType { data, marked } = self;
        let number = |n: Amount| n.number();
        match gives {
            Gives::Fixed(contents, marked) => PacketType { data: Data::of(contents), marked },
            Gives::Same | Gives::Classified => self,
            Gives::Changed => PacketType { data: Data::Any, marked },
            Gives::Strip(n) => PacketType { data: data.moved(number(n)), marked },
            Gives::Unstrip(n) => {
                PacketType { data: data.moved(number(n).and_then(i64::checked_neg)), marked }
            }
            Gives::Mark(_) => PacketType { data, marked: Some(true) },
            Gives::Check(n) => PacketType { data: checked(data, number(n)), marked: Some(true) },
            Gives::ToNetwork => match marked {
                Some(false) => self,
                Some(true) => PacketType { data: Data::Network { at: 0, protocol: None }, marked },
                None => PacketType::ANY,
            },
            Gives::Framed(ether_type) => {
                let protocol = ether_type.and_then(number).and_then(|n| u16::try_from(n).ok());
                PacketType { data: Data::Frame { at: 0, protocol }, marked }
            }
            Gives::OfType(protocol) => match data {
                Data::Frame { at: 0, .. } => PacketType { data: data.with_protocol(protocol), marked },
                _ => self,
            },
        }
    }

    /// Returns why packets of this type are not what an input wants; `None` if they may be.
    pub(crate) fn conflict(self, wants: Wants) -> Option<Conflict> {
        let frame = matches!(self.data, Data::Frame { at: 0, .. });
        match wants {
            Wants::Any => None,
            Wants::Ether => self.no_frame(),
            Wants::EtherArp => self.no_frame().or(match self.data {
                Data::Frame { at: 0, protocol: Some(other) } if other != ethertype::ARP => {
                    Some(Conflict::Protocol(other))
                }
                _ => None,
            }),
            Wants::Ip => (self.marked == Some(false)).then_some(Conflict::Unmarked),
            Wants::IpOptional => (self.marked == Some(false) && frame).then_some(Conflict::Unmarked),
            Wants::IpAt(n) => self.no_network(n.number()?).or(match self.data.network()? {
                (at, Some(other)) if at + n.number()? == 0 && other != ethertype::IP => {
                    Some(Conflict::Protocol(other))
                }
                _ => None,
            }),
            Wants::NetworkAt(n) => self.no_network(n.number()?),
        }
    }

    /// The conflict with a wanted Ethernet header.
    fn no_frame(self) -> Option<Conflict> {
        let no = match self.data {
            // The payload may be another frame.
            Data::Frame { at: ETHER, protocol } => protocol != Some(ethertype::BRIDGED),
            Data::Frame { at, .. } => (1..ETHER).contains(&at),
            Data::Network { at, .. } => at == 0,
            Data::Any => false,
        };
        no.then_some(Conflict::NoFrame)
    }

    /// The conflict with a network header that is wanted `n` bytes after the start of the data.
    fn no_network(self, n: i64) -> Option<Conflict> {
        match self.data {
            Data::Frame { at, .. } => (0..ETHER).contains(&at.checked_add(n)?).then_some(Conflict::Frame),
            Data::Network { at, .. } => (1..IP).contains(&at.checked_add(n)?).then_some(Conflict::InHeader),
            Data::Any => None,
        }
    }
}

/// What is known about the data of packets that have an IPv4 header `offset` bytes after the start of their data.
fn checked(data: Data, offset: Option<i64>) -> Data {
    let Some(offset) = offset.filter(|n| (0..=FARTHEST).contains(n)) else { return data };
    match data.network() {
        Some((at, _)) if at + offset == 0 => data.with_protocol(Some(ethertype::IP)),
        Some(_) => data,
        None => Data::Network { at: -offset, protocol: Some(ethertype::IP) },
    }
}
