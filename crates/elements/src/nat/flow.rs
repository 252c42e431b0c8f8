// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow: the addresses and ports of its packets, how they are rewritten, and how long the flow lives.

use super::tuple::{Change, Tuple, both};

/// The kinds of rewriters. They differ in the header fields that identify a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriterKind {
    /// Addresses and ports of TCP and UDP. Each protocol has its own flows.
    Ports,
    /// Addresses and ports of TCP, UDP and DCCP, but not the protocol, so packets of several protocols may belong to
    /// one flow. All flows have the timeouts of UDP.
    AnyPorts,
    /// Addresses and identifiers of ICMP echo messages.
    Ping,
    /// Source addresses of forward packets, and destination addresses of replies.
    Addr,
    /// Source and destination addresses, as a pair.
    Pair,
}

impl RewriterKind {
    /// Whether a pattern may choose a port for flows of this kind. For pings, the port is the identifier.
    pub fn has_ports(self) -> bool {
        self.is_by_ports() || self == RewriterKind::Ping
    }
    /// Whether flows have a source and a destination port.
    #[inline(always)]
    pub fn is_by_ports(self) -> bool {
        matches!(self, RewriterKind::Ports | RewriterKind::AnyPorts)
    }
    /// Returns the protocol number to use in flow keys: 0 if flows are not kept per protocol.
    #[inline(always)]
    pub fn table(self, proto: u8) -> u8 {
        if self == RewriterKind::Ports { proto } else { 0 }
    }
    /// Returns the change of the transport checksum. New addresses do not change the ICMP checksum of a ping,
    /// because ICMP has no pseudo-header.
    pub fn transport_change(self, c: Change) -> u16 {
        match self {
            RewriterKind::Ports | RewriterKind::AnyPorts => both(c.addrs, c.ports),
            RewriterKind::Ping => c.ports,
            RewriterKind::Addr | RewriterKind::Pair => c.addrs,
        }
    }
}

/// Timeout classes of flows. Flows of one class have the same timeout and guarantee.
pub mod class {
    /// All flows except those of TCP and of streaming UDP.
    pub const PLAIN: u8 = 0;
    /// UDP after three packets, at least one of them in each direction.
    pub const STREAMING: u8 = 1;
    /// TCP that has not carried data both ways.
    pub const TCP_NEW: u8 = 2;
    /// TCP that has carried data both ways.
    pub const TCP_DATA: u8 = 3;
    /// TCP that was closed both ways, or reset.
    pub const TCP_DONE: u8 = 4;
    /// The number of classes.
    pub const COUNT: usize = 5;
}

/// For each timeout class, the timeout and the guarantee of a flow, in nanoseconds after the flow's last
/// packet. Until the guarantee is over, the flow cannot be evicted to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts(pub [(i64, i64); class::COUNT]);

impl Timeouts {
    /// Makes timeouts that are the same for all timeout classes.
    pub fn all(timeout: i64, guarantee: i64) -> Timeouts {
        Timeouts([(timeout, guarantee); class::COUNT])
    }
    /// Makes the timeouts of all timeout classes. `udp` holds the timeouts of the classes PLAIN and STREAMING. `tcp`
    /// holds those of TCP_NEW, TCP_DATA and TCP_DONE.
    pub fn ports(udp: [i64; 2], udp_guarantee: i64, tcp: [i64; 3], tcp_guarantee: i64) -> Timeouts {
        let ([plain, streaming], [new, data, done]) = (udp, tcp);
        let (u, t) = (udp_guarantee, tcp_guarantee);
        Timeouts([(plain, u), (streaming, u), (new, t), (data, t), (done, t)])
    }
}

/// State of a flow, as bits.
pub mod bit {
    /// The table has a key for forward packets.
    pub const FORWARD: u8 = 1;
    /// The table has a key for replies.
    pub const REPLY: u8 = 2;
    /// The mask of `FORWARD` and `REPLY`. A flow is alive if at least one of these bits is set.
    pub const ALIVE: u8 = FORWARD | REPLY;
    /// TCP: the forward direction was closed by FIN or RST. Shifted left by one, the bit stands for replies.
    pub const DONE: u8 = 4;
    /// UDP: the mask of the two bits that count packets. The count stops at 3. The lower bit is `DONE`.
    pub const THREE: u8 = BOTH_DONE;
    /// `DONE` for both directions.
    pub const BOTH_DONE: u8 = DONE | DONE << 1;
    /// Data (for UDP: a packet) was seen in the forward direction. Shifted left by one, the bit stands for replies.
    pub const DATA: u8 = 16;
    /// `DATA` for both directions.
    pub const BOTH_DATA: u8 = DATA | DATA << 1;
    /// TCP: FTPPortMapper changed the length of a command, so later sequence numbers are shifted.
    pub const SHIFTED: u8 = 64;
}

/// A flow, in one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Flow {
    /// The tuple of arriving forward packets, and that of arriving replies.
    pub tuples: [Tuple; 2],
    /// The time of the last packet, in nanoseconds.
    pub last: i64,
    /// The change of the IP header checksum in forward packets.
    pub ip_change: u16,
    /// The change of the transport checksum in forward packets.
    pub transport_change: u16,
    /// How many flows have used this index of the store before. A heap entry with another generation belongs to an
    /// earlier flow.
    pub generation: u32,
    /// The outputs of forward packets and of replies.
    pub outs: [u16; 2],
    /// The number, in the store, of the rewriter that the flow belongs to.
    pub space: u16,
    /// The number of the rewriter's input whose specification made the flow.
    pub input: u16,
    /// IP protocol.
    pub proto: u8,
    /// The timeout class: a constant of [`class`].
    pub class: u8,
    /// The state: bits of [`bit`].
    pub bits: u8,
    /// The value that replies get in the annotation REPLY_ANNO.
    pub anno: u8,
    /// The directions of which the kernel has a copy: [`bit::FORWARD`] and [`bit::REPLY`].
    pub copied: u8,
}

const _: () = assert!(size_of::<Flow>() == 64);

impl Flow {
    /// Returns the tuple to which packets of a direction are rewritten.
    #[inline(always)]
    pub fn rewritten(&self, reply: bool) -> Tuple {
        self.tuples[usize::from(!reply)].reversed()
    }
    /// Whether packets of a direction leave the state as it is, except for the time: all packets, or those without FIN, SYN and
    /// RST in a TCP flow.
    pub fn is_settled(&self, reply: bool, kind: RewriterKind) -> bool {
        let data = self.bits & bit::DATA << u8::from(reply) != 0;
        match self.class {
            _ if self.bits & bit::SHIFTED != 0 => false,
            class::TCP_NEW..=class::TCP_DONE => data,
            class::STREAMING => true,
            _ if kind.is_by_ports() => data && self.bits & bit::THREE == bit::THREE,
            _ => true,
        }
    }
    /// Whether the table has a key for packets of a direction.
    #[inline(always)]
    pub fn has(&self, reply: bool) -> bool {
        self.bits & (bit::FORWARD << u8::from(reply)) != 0
    }
}

/// Returns the new state bits (module `bit`) and the new timeout class of a TCP flow after a segment (RFC 9293 section
/// 3.3.2, as a middlebox sees it).
#[inline]
pub fn after_segment(bits: u8, reply: bool, flags: u8, payload: bool) -> (u8, u8) {
    use castanet_wire::tcp::flag::{ACK, FIN, RST, SYN};
    let (mut bits, own) = (bits, u8::from(reply));
    let other_data = bit::DATA << (1 - own);
    if flags & RST != 0 {
        bits |= bit::BOTH_DONE;
    } else if flags & (SYN | ACK) == SYN && bits & bit::BOTH_DONE == bit::BOTH_DONE {
        // A new connection begins with the same addresses and ports.
        bits &= !(bit::BOTH_DONE | bit::BOTH_DATA);
    } else if flags & FIN != 0 {
        bits |= bit::DONE << own;
    }
    // An ACK of data counts as data. Otherwise a one-way transfer would get the short timeout of a flow
    // without data.
    if payload || (flags & (SYN | ACK) == ACK && bits & other_data != 0) {
        bits |= bit::DATA << own;
    }
    let class = if bits & bit::BOTH_DONE == bit::BOTH_DONE {
        class::TCP_DONE
    } else if bits & bit::BOTH_DATA == bit::BOTH_DATA {
        class::TCP_DATA
    } else {
        class::TCP_NEW
    };
    (bits, class)
}

/// Returns the new state bits (module `bit`) and the new timeout class of a UDP flow after a datagram. A flow is
/// streaming after three packets, at least one of them in each direction.
#[inline]
pub fn after_datagram(bits: u8, class: u8, reply: bool) -> (u8, u8) {
    if class == class::STREAMING {
        return (bits, class);
    }
    let mut bits = bits | bit::DATA << u8::from(reply);
    if bits & bit::THREE != bit::THREE {
        bits += bit::DONE;
    }
    let streams = bits & (bit::THREE | bit::BOTH_DATA) == bit::THREE | bit::BOTH_DATA;
    (bits, if streams { class::STREAMING } else { class })
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::tcp::flag::{ACK, FIN, RST, SYN};

    #[test]
    fn connections() {
        let run = |segments: &[(bool, u8, bool)]| {
            segments
                .iter()
                .fold((bit::ALIVE, class::TCP_NEW), |(b, _), &(r, f, p)| after_segment(b, r, f, p))
                .1
        };
        let open = [(false, SYN, false), (true, SYN | ACK, false), (false, ACK, false)];
        let with = |more: &[(bool, u8, bool)]| run(&[&open[..], more].concat());
        assert_eq!(with(&[]), class::TCP_NEW);
        assert_eq!(with(&[(false, ACK, true)]), class::TCP_NEW);
        assert_eq!(with(&[(false, ACK, true), (true, ACK, false)]), class::TCP_DATA, "one way");
        assert_eq!(with(&[(false, ACK, true), (true, ACK, true)]), class::TCP_DATA);
        assert_eq!(
            with(&[(false, ACK, true), (true, ACK, true), (true, FIN | ACK, false)]),
            class::TCP_DATA,
            "half closed"
        );
        let closed = [(true, FIN | ACK, false), (false, FIN | ACK, false)];
        assert_eq!(with(&closed), class::TCP_DONE);
        assert_eq!(with(&[closed[0], closed[1], (true, ACK, false)]), class::TCP_DONE);
        assert_eq!(with(&[closed[0], closed[1], (false, SYN, false)]), class::TCP_NEW, "once more");
        assert_eq!(with(&[(true, RST, false)]), class::TCP_DONE);
        assert_eq!(run(&[(false, SYN, false); 9]), class::TCP_NEW, "SYNs alone");
        assert_eq!(run(&[(false, ACK, false); 9]), class::TCP_NEW, "ACKs alone");
        assert_eq!(with(&[(true, ACK, false), (false, ACK, false)]), class::TCP_NEW, "ACKs of no data");
        let answered = [(false, SYN, true), (true, SYN | ACK, false)];
        assert_eq!(run(&answered), class::TCP_NEW, "a handshake answers the SYN, not its data");
    }

    #[test]
    fn datagrams() {
        let run =
            |d: &[bool]| d.iter().fold((bit::ALIVE, class::PLAIN), |(b, c), &r| after_datagram(b, c, r)).1;
        assert_eq!(run(&[false, false, false]), class::PLAIN);
        assert_eq!(run(&[false; 9]), class::PLAIN, "one direction alone");
        assert_eq!(run(&[true; 9]), class::PLAIN, "one direction alone");
        assert_eq!(run(&[false, true]), class::PLAIN);
        assert_eq!(run(&[false, true, true]), class::STREAMING);
        assert_eq!(run(&[false, true, false]), class::STREAMING);
        assert_eq!(run(&[false, false, true]), class::STREAMING);
        assert_eq!(run(&[false, true, false, true]), class::STREAMING);
        assert_eq!(run(&[[false; 9].as_slice(), &[true]].concat()), class::STREAMING, "a late reply");
    }
}
