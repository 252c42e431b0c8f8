// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers that nobody may guess: initial sequence numbers (RFC 6528), ports (RFC 6056), SYN cookies (RFC 4987).

use super::Flow;
use castanet_element::Secret;
use std::net::SocketAddrV4;

/// The segment sizes that a cookie can stand for, in ascending order. They are usual ones: of the smallest packets, of
/// tunnels, and of Ethernet.
const SIZES: [u16; 8] = [64, 536, 1024, 1220, 1360, 1400, 1440, 1460];
/// A cookie holds for the period that it was made in and the next one, in nanoseconds.
const PERIOD: i64 = 64_000_000_000;
/// The ports of connections that this end opens (RFC 6335, section 6).
const EPHEMERAL: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// A cookie that has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cookie {
    /// The largest segment that the peer takes.
    pub(super) mss: u16,
}

/// Computes the numbers from a secret.
pub(super) struct Sequence(Secret);

/// The uses of the secret, so that no number of one use says anything about those of another.
#[derive(Clone, Copy)]
enum Use {
    Initial,
    Port,
    Cookie,
    Identification,
    Table,
}

impl Sequence {
    pub(super) fn new(secret: Secret) -> Sequence {
        Sequence(secret)
    }
    fn hash(&self, what: Use, flow: Flow, more: &[u64]) -> u64 {
        let [local, remote] = flow.words();
        self.0.hash_of(what as u64, local, &[&[remote], more].concat())
    }
    pub(super) fn first_identification(&self) -> u16 {
        self.0.hash_of(Use::Identification as u64, 0, &[]) as u16
    }

    /// The seed of the hashes of a table of flows.
    pub(super) fn table_seed(&self) -> [u64; 2] {
        [0, 1].map(|n| self.0.hash_of(Use::Table as u64, n, &[]))
    }

    /// The initial sequence number: a clock of 4 microseconds, and a hash of the flow (RFC 6528, section 3).
    pub(super) fn initial(&self, flow: Flow, now: i64) -> u32 {
        ((now / 4_000) as u32).wrapping_add(self.hash(Use::Initial, flow, &[]) as u32)
    }

    /// The ports to try for a connection, of which `tried` were tried before: they begin at one that depends on the
    /// addresses (RFC 6056, section 3.3.3).
    pub(super) fn ports(
        &self,
        from: SocketAddrV4,
        to: SocketAddrV4,
        tried: u32,
    ) -> impl Iterator<Item = u16> {
        let count = u32::from(*EPHEMERAL.end() - *EPHEMERAL.start()) + 1;
        let flow = Flow { local: SocketAddrV4::new(*from.ip(), 0), remote: to };
        let first = (self.hash(Use::Port, flow, &[]) as u32).wrapping_add(tried);
        (0..count).map(move |n| *EPHEMERAL.start() + (first.wrapping_add(n) % count) as u16)
    }

    fn bits(&self, flow: Flow, peer: u32, period: i64, size: usize) -> u32 {
        let hash = self.hash(Use::Cookie, flow, &[u64::from(peer), period as u64, size as u64]);
        (size as u32) << 29 | (hash >> 35) as u32
    }
    /// The initial sequence number that answers a SYN with the sequence number `peer` and this segment size.
    pub(super) fn cookie(&self, flow: Flow, peer: u32, mss: u16, now: i64) -> u32 {
        let size = SIZES.iter().rposition(|s| *s <= mss).unwrap_or(0);
        self.bits(flow, peer, now / PERIOD, size)
    }
    /// Whether `cookie` was made for the SYN with the sequence number `peer`, in this period or the last one.
    pub(super) fn read(&self, flow: Flow, peer: u32, cookie: u32, now: i64) -> Option<Cookie> {
        let size = (cookie >> 29) as usize;
        let period = now / PERIOD;
        let made = [period, period - 1].into_iter().any(|p| self.bits(flow, peer, p, size) == cookie);
        SIZES.get(size).filter(|_| made).map(|mss| Cookie { mss: *mss })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_element::Seed;
    use std::net::Ipv4Addr;

    fn sequence(seed: u64) -> Sequence {
        Sequence::new(Secret::of(Seed::Fixed(seed), "tcp"))
    }
    fn flow(port: u16) -> Flow {
        let end = |n, port| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, n), port);
        Flow { local: end(1, 80), remote: end(2, port) }
    }

    /// RFC 6528: the numbers of one flow follow a clock, and those of another flow say nothing about them.
    #[test]
    fn initial_numbers_follow_the_clock() {
        let s = sequence(1);
        let first = s.initial(flow(1000), 0);
        assert_eq!(s.initial(flow(1000), 4_000_000_000).wrapping_sub(first), 1_000_000);
        assert_ne!(s.initial(flow(1001), 0).wrapping_sub(first) >> 16, 0);
        assert_ne!(sequence(2).initial(flow(1000), 0), first);
    }

    #[test]
    fn cookies_hold_for_their_flow_and_two_periods() {
        let s = sequence(1);
        for (mss, read) in [(0, 64), (535, 64), (536, 536), (1459, 1440), (1460, 1460), (9000, 1460)] {
            let cookie = s.cookie(flow(1000), 7, mss, PERIOD * 5);
            assert_eq!(s.read(flow(1000), 7, cookie, PERIOD * 7 - 1), Some(Cookie { mss: read }), "{mss}");
            for (flow, peer, cookie, now) in [
                (flow(1001), 7, cookie, 5),
                (flow(1000), 8, cookie, 5),
                (flow(1000), 7, cookie ^ 1, 5),
                (flow(1000), 7, cookie ^ 1 << 29, 5),
                (flow(1000), 7, cookie, 7),
                (flow(1000), 7, cookie, 4),
            ] {
                assert_eq!(s.read(flow, peer, cookie, PERIOD * now), None);
            }
        }
    }

    #[test]
    fn ports_are_those_for_connections_each_once() {
        let (from, to) = (flow(1).local, flow(1).remote);
        let all: Vec<u16> = sequence(1).ports(from, to, 3).collect();
        let different: std::collections::HashSet<u16> = all.iter().copied().collect();
        assert_eq!((all.len(), different.len()), (16_384, 16_384));
        assert!(all.iter().all(|p| EPHEMERAL.contains(p)));
        assert_eq!(all[0], sequence(1).ports(from, to, 2).nth(1).unwrap_or(0));
        assert_ne!(all[0], sequence(2).ports(from, to, 3).next().unwrap_or(0));
    }
}
