// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP errors about segments of connections (RFC 9293, section 3.9.2.2). The TCP decides about them: protocols/tcp/errors.pc and
//! pathmtu.pc have the rules.

use super::route::destination;
use super::{Engine, Flow};
use crate::protocol::{effect, tcp_interface};
use castanet_element::spec::Reason;
use castanet_wire::icmp::{IcmpHeader, kind, unreachable};
use castanet_wire::ipv4::{Ipv4Header, protocol};
use std::net::{Ipv4Addr, SocketAddrV4};

/// An ICMP error about a segment of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// The connection of the segment: the source of the segment is its local end.
    pub flow: Flow,
    /// The ICMP type and code.
    pub kind: u8,
    /// See `kind`.
    pub code: u8,
    /// The sequence number of the segment.
    pub seqno: u32,
    /// The length of the IP packet of the segment, without IP options.
    pub size: u16,
    /// The next-hop MTU, without IP options as well, or 0 (RFC 1191, section 4).
    pub mtu: u16,
}

impl IcmpError {
    /// Reads an ICMP message. None if it is no error about a TCP segment, or quotes less than eight bytes of the segment (RFC 792).
    /// The checksum is not verified.
    pub fn read(message: &[u8]) -> Option<IcmpError> {
        let (icmp, quoted) = IcmpHeader::split(message)?;
        let is_error = [kind::UNREACHABLE, kind::SOURCE_QUENCH, kind::TIME_EXCEEDED, kind::PARAMETER_PROBLEM]
            .contains(&icmp.kind);
        let ip = Ipv4Header::from_prefix(quoted)?;
        let is_segment = ip.version() == 4
            && ip.header_len() >= Ipv4Header::LEN
            && ip.protocol == protocol::TCP
            && ip.is_first_fragment();
        if !(is_error && is_segment) {
            return None;
        }
        let (header, segment) = quoted.split_at_checked(ip.header_len())?;
        let [a, b, c, d, seqno @ ..] = *segment.first_chunk::<8>()?;
        // The TCP knows nothing of IP options.
        let options = header.get(Ipv4Header::LEN..)?;
        let without = |n: u16| n.saturating_sub(options.len() as u16);
        let remote = destination(options, ip.dst.get());
        let end = |ip: u32, port| SocketAddrV4::new(Ipv4Addr::from_bits(ip), u16::from_be_bytes(port));
        let too_large = (icmp.kind, icmp.code) == (kind::UNREACHABLE, unreachable::NEED_FRAGMENT);
        Some(IcmpError {
            flow: Flow { local: end(ip.src.get(), [a, b]), remote: end(remote, [c, d]) },
            kind: icmp.kind,
            code: icmp.code,
            seqno: u32::from_be_bytes(seqno),
            size: without(ip.total_len.get()),
            mtu: if too_large && icmp.next_mtu() > 0 { without(icmp.next_mtu()).max(1) } else { 0 },
        })
    }
}

impl Engine {
    /// Takes an ICMP error. It is dropped if its segment is not in flight, or of no connection.
    pub fn icmp_error(&mut self, error: &IcmpError, now: i64) -> Result<(), Reason> {
        self.set_time(now);
        let tcb = self.find(error.flow).ok_or(Reason::StaleError)?;
        self.wake(tcb);
        let IcmpError { kind, code, seqno, size, mtu, .. } = *error;
        let effect = self.call(tcb, |cx, this| {
            let (kind, code) = (u32::from(kind), u32::from(code));
            tcp_interface::icmp_error(cx, this, tcb, kind, code, seqno, u32::from(size), u32::from(mtu))
        });
        self.settle(tcb);
        let count = match effect {
            effect::IGNORED => &mut self.counts.quenches,
            effect::NOTED => &mut self.counts.soft_errors,
            effect::ABORTED => &mut self.counts.hard_errors,
            effect::RESIZED => &mut self.counts.size_errors,
            _ => return Err(Reason::StaleError),
        };
        count.add(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::Be16;

    /// An error that quotes a packet of 1500 bytes, of which `n` are there.
    fn message(kind: u8, code: u8, rest: u32, n: usize, change: impl Fn(&mut Ipv4Header)) -> Vec<u8> {
        let mut ip = Ipv4Header::new(protocol::TCP, 0x0a00_0001, 0x0a00_0002, 1500, 64);
        change(&mut ip);
        let segment = [3, 232, 0, 80, 0x89, 0xab, 0xcd, 0xef, 1, 2];
        let options = vec![1; ip.header_len().saturating_sub(Ipv4Header::LEN)];
        let quoted = [&ip.to_bytes()[..], &options, &segment].concat();
        [&IcmpHeader::new(kind, code, rest).to_bytes()[..], &quoted[..n]].concat()
    }

    #[test]
    fn errors_are_read() {
        let end = |n, port| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, n), port);
        let flow = Flow { local: end(1, 1000), remote: end(2, 80) };
        let (seqno, size) = (0x89ab_cdef, 1500);
        let want = |kind, code, mtu| Some(IcmpError { flow, kind, code, seqno, size, mtu });
        // The MTU stands in the second half of the word, and only in one message.
        assert_eq!(IcmpError::read(&message(3, 4, 0xffff_0515, 28, |_| ())), want(3, 4, 0x515));
        assert_eq!(IcmpError::read(&message(3, 1, 0x515, 30, |_| ())), want(3, 1, 0));
        for kind in [4, 11, 12] {
            assert_eq!(IcmpError::read(&message(kind, 0, 7, 28, |_| ())), want(kind, 0, 0));
        }
        let options = |ip: &mut Ipv4Header| ip.set_header_len(28);
        // Sizes leave out IP options.
        let without = |kind, code, mtu| want(kind, code, mtu).map(|e| IcmpError { size: 1492, ..e });
        assert_eq!(IcmpError::read(&message(3, 0, 0, 36, options)), without(3, 0, 0));
        for (said, mtu) in [(0x515, 0x50d), (5, 1), (0, 0)] {
            assert_eq!(IcmpError::read(&message(3, 4, said, 36, options)), without(3, 4, mtu));
        }
        assert_eq!(IcmpError::read(&message(3, 0, 0, 35, options)), None);
        // Other messages, and errors about other packets.
        for kind in [0, 5, 8, 13] {
            assert_eq!(IcmpError::read(&message(kind, 0, 0, 28, |_| ())), None, "{kind}");
        }
        let others: [fn(&mut Ipv4Header); 4] = [
            |ip| ip.protocol = protocol::UDP,
            |ip| ip.version_ihl = 0x65,
            |ip| ip.version_ihl = 0x44,
            |ip| ip.fragment = Be16::new(1),
        ];
        for change in others {
            assert_eq!(IcmpError::read(&message(3, 0, 0, 28, change)), None);
        }
        // Nothing that is cut off is read.
        let whole = message(3, 4, 1400, 28, |_| ());
        assert!((0..whole.len()).all(|n| IcmpError::read(&whole[..n]).is_none()));
    }
}
