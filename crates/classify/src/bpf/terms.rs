// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translates terms of a capture filter to tests on bytes (pcap-filter(7)).

use super::Frames;
use super::code::{Address, Node, Number, Relation, Size};

pub const IP: u16 = 0x0800;
pub const ARP: u16 = 0x0806;
pub const RARP: u16 = 0x8035;
pub const IP6: u16 = 0x86dd;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMP6: u8 = 58;
pub const SCTP: u8 = 132;
/// The protocol number of the IPv6 fragment header.
const FRAGMENT: u8 = 44;
/// The protocols with ports, in the order in which they are tested.
const WITH_PORTS: [u8; 3] = [SCTP, TCP, UDP];
/// Ethernet types of VLAN tags.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Loads from this offset on (`SKF_AD_OFF` of Linux) read metadata of the frame instead of its bytes: the
/// VLAN tag that was removed, and whether one was removed.
const BESIDE: u32 = 0xffff_f000;
const TAG: u32 = BESIDE + 44;
const TAG_PRESENT: u32 = BESIDE + 48;

/// Which address or port of a packet to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Source,
    Destination,
    Either,
    Both,
}

impl Direction {
    fn join(self, source: impl FnOnce() -> Node, destination: impl FnOnce() -> Node) -> Node {
        match self {
            Direction::Source => source(),
            Direction::Destination => destination(),
            Direction::Either => source().or(destination()),
            Direction::Both => source().and(destination()),
        }
    }
}

/// Returns a node that tests whether the bytes at offset `at`, under `mask`, equal `value`.
pub fn masked(size: Size, at: u32, mask: u32, value: u32) -> Node {
    let full = match size {
        Size::Byte => 0xff,
        Size::Half => 0xffff,
        Size::Word => u32::MAX,
    };
    let load = Number::Load(size, Address::At(at));
    let load = if mask == full {
        load
    } else {
        Number::Binary(super::code::Operator::And, Box::new([load, Number::Constant(mask)]))
    };
    Node::Test(load, Relation::Equal, Number::Constant(value))
}
pub fn byte(at: u32, value: u8) -> Node {
    masked(Size::Byte, at, 0xff, u32::from(value))
}
fn half(at: u32, value: u16) -> Node {
    masked(Size::Half, at, 0xffff, u32::from(value))
}
fn word(at: u32, value: u32) -> Node {
    masked(Size::Word, at, u32::MAX, value)
}
pub fn compare(n: Number, relation: Relation, k: u32) -> Node {
    Node::Test(n, relation, Number::Constant(k))
}

/// The offsets of the headers in a frame. Each `vlan` term moves the offsets for all terms after it.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub frames: Frames,
    /// The length of the tags matched so far, in bytes.
    shift: u32,
    /// Whether a previous term matched the tag in the frame's metadata.
    beside: bool,
}

impl Layout {
    pub fn new(frames: Frames) -> Layout {
        Layout { frames, shift: 0, beside: false }
    }
    /// The offset of the network header.
    pub fn network(&self) -> u32 {
        if self.frames == Frames::Ip { 0 } else { self.shift.wrapping_add(14) }
    }
    pub fn ether_type(&self, kind: u16) -> Node {
        match (self.frames, kind) {
            (Frames::Ip, IP) => masked(Size::Byte, 0, 0xf0, 0x40),
            (Frames::Ip, IP6) => masked(Size::Byte, 0, 0xf0, 0x60),
            (Frames::Ip, _) => Node::Constant(false),
            _ => half(self.shift.wrapping_add(12), kind),
        }
    }
    pub fn vlan(&mut self, id: Option<u32>) -> Node {
        if self.frames == Frames::EthernetUntagged && !std::mem::replace(&mut self.beside, true) {
            let there = compare(Number::Load(Size::Byte, Address::At(TAG_PRESENT)), Relation::Equal, 1);
            return match id {
                Some(id) => there.and(masked(Size::Half, TAG, 0xfff, id)),
                None => there,
            };
        }
        let tagged = TAGS.map(|t| self.ether_type(t)).into_iter().reduce(Node::or);
        let tagged = tagged.unwrap_or(Node::Constant(false));
        let at = self.network();
        self.shift = self.shift.wrapping_add(4);
        match id {
            Some(id) => tagged.and(masked(Size::Half, at, 0xfff, id)),
            None => tagged,
        }
    }

    /// Matches IPv4 with this protocol.
    pub fn ip_protocol(&self, protocol: u8) -> Node {
        self.ether_type(IP).and(byte(self.network().wrapping_add(9), protocol))
    }
    /// Matches IPv6 with this protocol, directly or after a fragment header.
    pub fn ip6_protocol(&self, protocol: u8) -> Node {
        let at = self.network();
        let next = at.wrapping_add(6);
        let fragment = byte(next, FRAGMENT).and(byte(at.wrapping_add(40), protocol));
        self.ether_type(IP6).and(byte(next, protocol).or(fragment))
    }
    /// Matches this protocol over IPv4 or IPv6.
    pub fn protocol(&self, protocol: u8) -> Node {
        self.ip_protocol(protocol).or(self.ip6_protocol(protocol))
    }
    /// Matches all packets except later IPv4 fragments (any but the first), because these have no transport header.
    pub fn first_fragment(&self) -> Node {
        let at = self.network().wrapping_add(6);
        compare(Number::Load(Size::Half, Address::At(at)), Relation::Shares, 0x1fff).negate()
    }

    /// Matches ports in a range, of one protocol or of every protocol with ports.
    pub fn ports(&self, direction: Direction, protocol: Option<u8>, low: u16, high: u16) -> Node {
        let ip = self.network();
        let within = |place: &dyn Fn(u32) -> Address, offset: u32| {
            let load = || Number::Load(Size::Half, place(offset));
            if low == high {
                return compare(load(), Relation::Equal, u32::from(low));
            }
            compare(load(), Relation::GreaterEqual, u32::from(low))
                .and(compare(load(), Relation::Greater, u32::from(high)).negate())
        };
        let carried = |at: u32| {
            let all = WITH_PORTS.iter().filter(|p| protocol.is_none_or(|q| q == **p));
            all.map(|p| byte(at, *p)).reduce(Node::or).unwrap_or(Node::Constant(false))
        };
        let ports = |place: &dyn Fn(u32) -> Address| direction.join(|| within(place, 0), || within(place, 2));
        let six = ports(&|offset| Address::At(ip.wrapping_add(40).wrapping_add(offset)));
        let four = ports(&|offset| Address::AfterIp { ip, offset });
        let six = self.ether_type(IP6).and(carried(ip.wrapping_add(6))).and(six);
        let four = self.ether_type(IP).and(carried(ip.wrapping_add(9))).and(self.first_fragment()).and(four);
        six.or(four)
    }

    /// Matches IPv4 addresses under a mask. `kinds` are the Ethernet types to consider.
    pub fn ip_address(&self, direction: Direction, kinds: &[u16], value: u32, mask: u32) -> Node {
        let at = |kind: u16| match kind {
            IP => (12, 16),
            _ => (14, 24),
        };
        let one = |kind: &u16| {
            let (source, destination) = at(*kind);
            let equal =
                |offset: u32| masked(Size::Word, self.network().wrapping_add(offset), mask, value & mask);
            self.ether_type(*kind).and(direction.join(|| equal(source), || equal(destination)))
        };
        kinds.iter().map(one).reduce(Node::or).unwrap_or(Node::Constant(false))
    }
    /// Matches IPv6 addresses whose first `bits` bits equal those of `value`.
    pub fn ip6_address(&self, direction: Direction, value: u128, bits: u32) -> Node {
        let equal = |offset: u32| {
            let words = (0..4u32).filter(|i| i * 32 < bits).map(|i| {
                let mask = u32::MAX.checked_shl(32u32.saturating_sub(bits - i * 32)).unwrap_or(0);
                let wanted = (value >> (96 - i * 32)) as u32;
                masked(Size::Word, self.network().wrapping_add(offset + i * 4), mask, wanted & mask)
            });
            words.reduce(Node::and).unwrap_or(Node::Constant(true))
        };
        self.ether_type(IP6).and(direction.join(|| equal(8), || equal(24)))
    }
    pub fn ether_address(&self, direction: Direction, address: [u8; 6]) -> Node {
        let [a, b, c, d, e, f] = address;
        let equal = |at: u32| {
            word(at.wrapping_add(2), u32::from_be_bytes([c, d, e, f]))
                .and(half(at, u16::from_be_bytes([a, b])))
        };
        direction.join(|| equal(6), || equal(0))
    }
}
