// SPDX-License-Identifier: MIT OR Apache-2.0
//! Source routes (RFC 791, section 3.1; RFC 1122, section 3.2.1.8): those of the user, and the way back along one that has arrived. The TCP
//! decides which one a connection takes: protocols/tcp/srcroute.pc has the rules.

use castanet_element::packet::Packet;
use castanet_wire::ipv4::Ipv4Header;
use castanet_wire::options::{Options, kind};
use castanet_wire::{Be16, Be32, checksum};
use std::net::Ipv4Addr;

/// The bytes of the options of an IP header.
const MOST: usize = 40;
/// A no-operation, and the type, the length and the pointer of the option come before the addresses, which begin at a whole word.
const HEAD: usize = 4;
/// The pointer to the first address (RFC 791): it counts from 1, and from the type.
const FIRST: u8 = 4;

/// The way of packets: where they go first, and the option with the rest. Without an option they go directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    first: u32,
    options: [u8; MOST],
    length: usize,
}

/// The route of a packet, as its IP options give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// It has no source route, or a malformed one.
    Directly,
    /// Its route leads on to another host.
    InTransit,
    /// Its route has ended here. This is the way back.
    Along(Route),
}

/// No route.
impl Default for Route {
    fn default() -> Route {
        Route::DIRECT
    }
}

impl Route {
    /// No route.
    pub(super) const DIRECT: Route = Route { first: 0, options: [0; MOST], length: 0 };

    /// The route to a host over other hosts, of which the first one is next. A strict one leads over no other hosts. None if it is too
    /// long for an IP header.
    pub fn over(strict: bool, hops: &[Ipv4Addr], to: Ipv4Addr) -> Option<Route> {
        let kind = if strict { kind::STRICT_SOURCE_ROUTE } else { kind::LOOSE_SOURCE_ROUTE };
        let all: Vec<u32> = hops.iter().chain([&to]).map(|a| a.to_bits()).collect();
        Route::new(kind, all.first().copied()?, all.get(1..)?)
    }
    fn new(kind: u8, first: u32, rest: &[u32]) -> Option<Route> {
        if rest.is_empty() {
            return Some(Route::DIRECT);
        }
        let mut route = Route { first, options: [0; MOST], length: HEAD + 4 * rest.len() };
        let option = route.options.get_mut(..route.length)?;
        let head = [kind::NOP, kind, (option.len() - 1) as u8, FIRST];
        let words = [head].into_iter().chain(rest.iter().map(|a| a.to_be_bytes()));
        option.chunks_exact_mut(HEAD).zip(words).for_each(|(to, word)| to.copy_from_slice(&word));
        Some(route)
    }

    /// Whether packets go directly.
    pub(super) fn is_direct(&self) -> bool {
        self.length == 0
    }
    /// The options.
    pub(super) fn options(&self) -> &[u8] {
        self.options.get(..self.length).unwrap_or(&self.options)
    }
    /// Sends a packet of this host, whose IP header has no options, along the route. The checksum of its TCP segment stays that with the
    /// address of the last host. Returns false if there is no room.
    pub(super) fn apply(&self, p: &mut Packet) -> bool {
        let options = self.options();
        for _ in 0..options.len() / HEAD {
            if p.push_header::<HEAD>().is_none() {
                return false;
            }
        }
        let end = Ipv4Header::LEN + options.len();
        let data = p.data_mut();
        if data.len() < end {
            return false;
        }
        data.copy_within(options.len()..end, 0);
        let Some((header, _)) = data.split_at_mut_checked(end) else { return false };
        header[Ipv4Header::LEN..].copy_from_slice(options);
        if let Some(ip) = Ipv4Header::from_prefix_mut(header) {
            ip.set_header_len(end);
            ip.total_len = Be16::new(ip.total_len.get().saturating_add(options.len() as u16));
            ip.dst = Be32::new(self.first);
            ip.checksum = Be16::new(0);
        }
        let sum = checksum::checksum(header);
        if let Some(ip) = Ipv4Header::from_prefix_mut(header) {
            ip.checksum = Be16::new(sum);
        }
        p.set_network_header(0, end);
        p.set_dst_ip(self.first);
        true
    }
}

/// The source route in the options of an IP header, if it has one and no other: its type, its pointer, and its addresses.
fn source_route(options: &[u8]) -> Option<(u8, usize, Vec<u32>)> {
    let is_route = |k: u8| [kind::LOOSE_SOURCE_ROUTE, kind::STRICT_SOURCE_ROUTE].contains(&k);
    let mut routes = Options::new(options).map_while(Result::ok).filter(|o| is_route(o.kind()));
    let (Some(route), None) = (routes.next(), routes.next()) else { return None };
    let (words, rest) = route.bytes.get(3..)?.as_chunks::<4>();
    let pointer = route.pointer().filter(|p| rest.is_empty() && *p >= FIRST && p % 4 == 0)?;
    Some((route.kind(), usize::from(pointer), words.iter().map(|w| u32::from_be_bytes(*w)).collect()))
}

impl Arrived {
    /// Reads the options of the IP header of a packet from this host. RFC 1122 leaves open what several routes mean; here they mean none.
    pub fn of(options: &[u8], src: Ipv4Addr) -> Arrived {
        let Some((kind, pointer, mut hops)) = source_route(options) else { return Arrived::Directly };
        if pointer < usize::from(FIRST) + 4 * hops.len() {
            return Arrived::InTransit;
        }
        // Some hosts name themselves as the first hop: case (B) of RFC 1122, section 3.2.1.8.
        let src = src.to_bits();
        hops.drain(..usize::from(hops.first() == Some(&src)));
        hops.reverse();
        hops.push(src);
        let route = hops.split_first().and_then(|(first, rest)| Route::new(kind, *first, rest));
        // As many addresses have arrived as fit.
        Arrived::Along(route.unwrap_or(Route::DIRECT))
    }
}

/// The host that a packet with these options reaches at last, where `dst` is its next one.
pub(super) fn destination(options: &[u8], dst: u32) -> u32 {
    match source_route(options) {
        Some((_, pointer, hops)) if pointer < usize::from(FIRST) + 4 * hops.len() => {
            hops.last().copied().unwrap_or(dst)
        }
        _ => dst,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn host(n: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, n)
    }
    /// An option with this pointer and these hosts.
    fn option(kind: u8, pointer: u8, hops: &[u8]) -> Vec<u8> {
        let addresses = hops.iter().flat_map(|n| host(*n).octets());
        [kind, 3 + 4 * hops.len() as u8, pointer].into_iter().chain(addresses).collect()
    }

    #[test]
    fn routes_of_the_user() {
        for (strict, kind) in [(false, 131), (true, 137)] {
            let route = Route::over(strict, &[host(1), host(2)], host(9)).unwrap();
            assert_eq!(route.first, host(1).to_bits());
            assert_eq!(route.options(), [vec![1], option(kind, 4, &[2, 9])].concat());
        }
        assert!(Route::over(false, &[], host(9)).unwrap().is_direct());
        let hops: Vec<Ipv4Addr> = (0..10).map(host).collect();
        assert_eq!(Route::over(false, &hops[..9], host(9)).unwrap().options().len(), MOST);
        assert_eq!(Route::over(false, &hops, host(9)), None);
    }

    /// RFC 1122, section 3.2.1.8: {G1, G2, G3 >>} from S becomes {>> G2, G1, S}, to G3; S counts once.
    #[test]
    fn the_way_back() {
        let src = host(9);
        let back = |strict, hops: &[u8]| {
            let hops: Vec<Ipv4Addr> = hops.iter().map(|n| host(*n)).collect();
            Arrived::Along(Route::over(strict, &hops, src).unwrap())
        };
        for (arrived, want) in [
            (option(131, 16, &[1, 2, 3]), back(false, &[3, 2, 1])),
            (option(137, 16, &[1, 2, 3]), back(true, &[3, 2, 1])),
            (option(131, 16, &[9, 2, 3]), back(false, &[3, 2])),
            (option(131, 8, &[1]), back(false, &[1])),
            // After other options; a pointer that is larger than it has to be.
            ([vec![1, 7, 3, 4], option(131, 200, &[1]), vec![0]].concat(), back(false, &[1])),
            // The longest route. None of its hosts is left out.
            (option(131, 40, &[1, 2, 3, 4, 5, 6, 7, 8, 1]), back(false, &[1, 8, 7, 6, 5, 4, 3, 2, 1])),
            // Nothing was recorded.
            (option(131, 4, &[]), back(false, &[])),
            (option(131, 8, &[9]), back(false, &[])),
            (vec![], Arrived::Directly),
            (vec![7, 7, 8, 10, 0, 0, 1], Arrived::Directly),
            // The route leads on.
            (option(131, 4, &[1]), Arrived::InTransit),
            (option(137, 12, &[1, 2, 3]), Arrived::InTransit),
            // Malformed ones: a pointer into the head, or into an address, and half an address.
            (option(131, 3, &[1]), Arrived::Directly),
            (option(131, 6, &[1]), Arrived::Directly),
            (vec![131, 5, 8, 10, 0], Arrived::Directly),
            (vec![131, 2, 4, 0], Arrived::Directly),
            (vec![131, 11, 12, 10, 0, 0, 1], Arrived::Directly),
            // Two of them.
            ([option(131, 8, &[1]), option(131, 8, &[2])].concat(), Arrived::Directly),
            ([option(131, 8, &[1]), option(137, 4, &[2])].concat(), Arrived::Directly),
        ] {
            assert_eq!(Arrived::of(&arrived, src), want, "{arrived:?}");
        }
    }

    #[test]
    fn destinations() {
        let dst = host(1).to_bits();
        for (options, want) in [
            (vec![], 1),
            (option(131, 4, &[2, 3]), 3),
            (option(137, 8, &[2, 3]), 3),
            (option(131, 12, &[2, 3]), 1),
            (vec![131, 2], 1),
        ] {
            assert_eq!(destination(&options, dst), host(want).to_bits(), "{options:?}");
        }
    }

    #[test]
    fn packets_take_the_route() {
        let route = Route::over(false, &[host(1), host(2)], host(9)).unwrap();
        let ip = Ipv4Header::new(6, host(8).to_bits(), host(9).to_bits(), 24, 64);
        let mut p = Packet::copy_of(&[&ip.to_bytes()[..], &[1, 2, 3, 4]].concat()).unwrap();
        assert!(route.apply(&mut p));
        assert_eq!((p.len(), p.dst_ip(), p.network_header_length()), (36, host(1).to_bits(), 32));
        let ip = Ipv4Header::checked(p.data(), true).unwrap();
        assert_eq!((ip.header_len(), ip.total_len.get(), ip.dst.get()), (32, 36, host(1).to_bits()));
        assert_eq!(p.data()[20..32], *route.options());
        assert_eq!(p.data()[32..], [1, 2, 3, 4]);
    }
}
