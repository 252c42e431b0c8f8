// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers that elements put into packets: IP identifications and sequence numbers, which count up, and ICMP
//! identifiers.

use castanet_element::Seed;
use castanet_element::prelude::*;
use std::sync::Arc;

/// A counter that gives each packet of an element a number. The replicas of an element use different numbers.
///
/// The identification of a packet is its number plus an offset. The offset is unpredictable: if others knew it, they
/// could forge fragments of the packets, or see how many packets the element sends (RFC 7739 section 4, on IPv6). With
/// `--seed`, the offset is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    next: u16,
    step: u16,
    offset: u16,
}

/// Returns the distance between consecutive numbers of one replica: a power of two, at least the number of replicas. As
/// a power of two divides 65,536, the replicas keep different remainders when their counters wrap around at 65,536.
fn step(replicas: usize) -> u16 {
    u16::try_from(replicas.next_power_of_two()).unwrap_or(1 << 15)
}

impl Numbers {
    /// Makes a counter. The first replica starts at `first`.
    pub(crate) fn new(cx: &BuildCx<'_>, first: u16) -> Numbers {
        let (replica, replicas) = cx.replica;
        let step = step(replicas);
        let offset = match cx.seed {
            // The offset is a multiple of the step, so that the identifications of different replicas never coincide.
            Seed::System => cx.secret().below(u64::from(u16::MAX / step)) as u16 * step,
            Seed::Fixed(_) => 0,
        };
        Numbers { next: first.wrapping_add(replica as u16), step, offset }
    }
    /// Continues with the counter of the old replica (hot swap) if that replica used the same numbers as this one.
    pub(crate) fn go_on_from(&mut self, old: Numbers) {
        if self.step == old.step && self.next % self.step == old.next % self.step {
            *self = old;
        }
    }
    /// Returns the next number, without advancing.
    #[inline]
    pub(crate) fn peek(self) -> u16 {
        self.next
    }
    /// Returns the identification of the next packet.
    #[inline]
    pub(crate) fn id(self) -> u16 {
        self.next.wrapping_add(self.offset)
    }
    /// Advances to the following number.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.next = self.next.wrapping_add(self.step);
    }
}

/// The identifier of ICMP messages. If the configuration gives none, all replicas share an unpredictable identifier, or
/// 0 with `--seed`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identifier {
    value: u16,
    named: bool,
}

/// The unpredictable identifier that the replicas of an element share.
struct Drawn(u16);

impl Identifier {
    /// Returns the identifier `named` if the configuration gives one. Otherwise draws one at random; with `--seed`,
    /// uses 0.
    pub(crate) fn new(named: Option<u16>, cx: &mut BuildCx<'_>) -> Identifier {
        let value = match (named, cx.seed) {
            (Some(n), _) => n,
            (None, Seed::Fixed(_)) => 0,
            (None, Seed::System) => {
                let mut secret = cx.secret();
                let drawn: Arc<Drawn> = cx.share(|| Drawn(secret.next_u64() as u16));
                drawn.0
            }
        };
        Identifier { value, named: named.is_some() }
    }
    /// Returns the identifier.
    #[inline]
    pub(crate) fn get(self) -> u16 {
        self.value
    }
    /// Continues with the identifier of the old element (hot swap), unless the old or the new configuration gives one.
    pub(crate) fn go_on_from(&mut self, old: Identifier) {
        if !self.named && !old.named {
            *self = old;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::icmp::icmp_error::IcmpError;
    use crate::icmp::icmp_ip_encap::IcmpIpEncap;
    use crate::icmp::icmp_ping_encap::IcmpPingEncap;
    use crate::icmp::icmp_ping_source::IcmpPingSource;
    use crate::ip::ip_encap::IpEncap;
    use crate::ip::udp_ip_encap::UdpIpEncap;
    use castanet_element::Seed;
    use castanet_element::kit::{Kit, packet};
    use castanet_element::prelude::*;
    use castanet_wire::Ipv4Header;

    /// An IP packet with UDP, about which an ICMP error can be sent.
    fn datagram(id: u16) -> Packet {
        let mut h = Ipv4Header::new(17, 0x0a00_0001, 0x0a00_0002, 1020, 64);
        h.id.set(id);
        h.set_checksum20();
        let mut p = packet(&[h.as_array(), &[0; 1000][..]].concat());
        p.set_network_header(0, Ipv4Header::LEN);
        p
    }

    /// For each of three packets of an element: the bytes of the IP identification, ICMP identifier and sequence
    /// number.
    type Drawn = Vec<[u8; 6]>;

    fn marks(p: &Packet) -> [u8; 6] {
        let d = p.data();
        [d[4], d[5], d[24], d[25], d[26], d[27]]
    }

    fn acted<T: Object + Build + Action>(config: &str, seed: Seed) -> Drawn {
        let mut kit = Kit::<T>::with_seed(config, seed).unwrap();
        (0..3).map(|n| marks(&kit.act([datagram(n)])[0].1)).collect()
    }

    fn pinged(config: &str, seed: Seed) -> Drawn {
        let mut kit = Kit::<IcmpPingSource>::with_seed(config, seed).unwrap();
        kit.expire().unwrap();
        (0..3).map(|_| marks(&kit.expire().unwrap()[0].1)).collect()
    }

    #[test]
    fn replicas_never_use_the_same_identification() {
        for replicas in [1, 2, 3, 5, 8] {
            let step = super::step(replicas);
            let mut owners = vec![None; 1 << 16];
            for replica in 0..replicas {
                let mut n = super::Numbers { next: replica as u16, step, offset: 3 * step };
                for _ in 0..100_000 {
                    let owner: &mut Option<usize> = &mut owners[usize::from(n.id())];
                    assert_eq!(*owner.get_or_insert(replica), replica, "{replicas} replicas, {}", n.id());
                    n.advance();
                }
            }
        }
    }

    #[test]
    fn identifications_are_secrets_of_the_system_unless_a_seed_is_given() {
        type Run = fn(Seed) -> Drawn;
        let runs: [(&str, Run, [u8; 2]); 6] = [
            ("ICMPError", |s| acted::<IcmpError>("1.0.0.1, unreachable, host", s), [0, 1]),
            ("IPEncap", |s| acted::<IpEncap>("ipip, 1.0.0.1, 2.0.0.2", s), [0, 0]),
            ("UDPIPEncap", |s| acted::<UdpIpEncap>("1.0.0.1, 5, 2.0.0.2, 6, false", s), [0, 0]),
            ("ICMPPingEncap", |s| acted::<IcmpPingEncap>("1.0.0.1, 2.0.0.2", s), [0, 1]),
            ("ICMPIPEncap", |s| acted::<IcmpIpEncap>("1.0.0.1, 2.0.0.2, echo", s), [0, 1]),
            ("ICMPPingSource", |s| pinged("1.0.0.1, 2.0.0.2", s), [0, 1]),
        ];
        for (class, run, first) in runs {
            let id = |drawn: &Drawn| [drawn[0][0], drawn[0][1]];
            assert_eq!(run(Seed::Fixed(1)), run(Seed::Fixed(2)), "{class}");
            assert_eq!(id(&run(Seed::Fixed(1)))[0], first[0], "{class}");
            // At least 32 of 64 elements start at different numbers.
            let drawn: std::collections::HashSet<_> = (0..64).map(|_| id(&run(Seed::System))).collect();
            assert!(drawn.len() >= 32, "{class}: {drawn:?}");
        }
    }

    #[test]
    fn identifiers_of_pings_are_secrets_unless_they_are_named() {
        type Run = fn(&str, Seed) -> Drawn;
        let runs: [(&str, Run); 3] = [
            ("", |c, s| acted::<IcmpPingEncap>(&format!("1.0.0.1, 2.0.0.2{c}"), s)),
            (", echo", |c, s| acted::<IcmpIpEncap>(&format!("1.0.0.1, 2.0.0.2, echo{c}"), s)),
            (" (source)", |c, s| pinged(&format!("1.0.0.1, 2.0.0.2{c}"), s)),
        ];
        for (which, run) in runs {
            let identifier = |c: &str, s| [run(c, s)[0][2], run(c, s)[0][3]];
            assert_eq!(identifier("", Seed::Fixed(7)), [0, 0], "{which}");
            let drawn: std::collections::HashSet<_> = (0..64).map(|_| identifier("", Seed::System)).collect();
            assert!(drawn.len() >= 32, "{which}: {drawn:?}");
            for named in [0_u8, 9] {
                let config = format!(", IDENTIFIER {named}");
                for _ in 0..8 {
                    assert_eq!(identifier(&config, Seed::System), [0, named], "{which}");
                }
            }
        }
    }
}
