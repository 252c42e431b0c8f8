// SPDX-License-Identifier: MIT OR Apache-2.0
//! Patterns: which addresses and ports a new flow gets.

use super::flow::Kind;
use super::tuple::Tuple;
use castanet_element::prelude::*;
use castanet_lang::args as text;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most combinations of address and port that are tried for one packet. If 1 in 100 of 64,512 ports is
/// free, 9 of 10 searches succeed within this limit. The others continue with the next packet.
pub const MOST_TRIES: u64 = 256;

/// The place where the next packet continues a search. Combinations of address and port are numbered, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The next combination to try.
    at: u64,
    /// The step from one try to the next.
    stride: u64,
    /// How many combinations are left to try; 0 means that all are taken.
    left: u64,
}

/// Returns a random stride. Steps of this length, modulo `count`, reach every number below `count`. Steps of 1
/// would often find nothing for a long time, because taken ports tend to form long runs.
fn stride(count: u64, secret: &mut Secret) -> u64 {
    let most = count.saturating_sub(1).max(1);
    let mut stride = secret.below(most) + 1;
    let shares_no_factor = |mut a: u64, mut b: u64| {
        while let Some(rest) = a.checked_rem(b) {
            (a, b) = (b, rest);
        }
        a == 1
    };
    // Ends at stride 1 at the latest, which shares no factor with any count.
    while !shares_no_factor(count, stride) {
        stride = stride % most + 1;
    }
    stride
}

impl Cursor {
    /// Returns a cursor at the same place, from which the whole range is tried again, because a combination
    /// may have become free.
    pub fn renewed(self) -> Cursor {
        Cursor { left: u64::MAX, ..self }
    }
    /// Whether everything was tried.
    pub fn is_exhausted(self) -> bool {
        self.left == 0
    }
}

/// The order in which a range is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The packet's own port first, if it is in the range; then from a random place.
    Keep,
    /// `#`: one after the other.
    Sequential,
    /// `?`: from a random place.
    Random,
}

/// A pattern `SADDR SPORT DADDR DPORT`.
#[derive(Debug)]
pub struct Pattern {
    /// First and last source address; `None` leaves it unchanged.
    addrs: Option<(u32, u32)>,
    /// First and last source port; `None` leaves it unchanged.
    ports: Option<(u16, u16)>,
    order: Order,
    daddr: Option<u32>,
    dport: Option<u16>,
    /// Where the search for the next flow starts in sequential order. All users of the pattern share it.
    next: AtomicU64,
}

/// Splits a word into a range and its order, which is given by the character behind the range.
fn order_of(word: &str) -> (&str, Order) {
    match (word.strip_suffix('#'), word.strip_suffix('?')) {
        (Some(w), _) => (w, Order::Sequential),
        (_, Some(w)) => (w, Order::Random),
        _ => (word, Order::Keep),
    }
}

fn addresses(word: &str, cx: &ArgCx<'_>) -> Result<Option<(u32, u32)>, ValueError> {
    let bad = |e: ValueError| ValueError::from("bad source address").help(format!("'{word}': {e}"));
    if word == "-" {
        return Ok(None);
    }
    if word.contains('/') {
        let p = Prefix::read(word, cx, false).map_err(bad)?;
        let (lo, hi) = (p.network().to_bits(), p.broadcast().to_bits());
        // Leaves out the network and broadcast addresses. Prefixes of 31 and 32 bits have none (RFC 3021).
        return Ok(Some(if p.len < 31 { (lo + 1, hi - 1) } else { (lo, hi) }));
    }
    if let Ok(a) = Ipv4Addr::parse(word, cx) {
        return Ok(Some((a.to_bits(), a.to_bits())));
    }
    let (a, b) = word.split_once('-').ok_or_else(|| bad("parse error".into()))?;
    let (lo, hi) = (Ipv4Addr::parse(a, cx).map_err(bad)?, Ipv4Addr::parse(b, cx).map_err(bad)?);
    if lo > hi {
        return Err(bad("the range is empty".into()));
    }
    Ok(Some((lo.to_bits(), hi.to_bits())))
}

fn bad_port(what: &str, word: &str, why: &str) -> ValueError {
    ValueError::from(format!("bad {what} port")).help(format!("'{word}': {why}"))
}

fn port(word: &str, what: &str, cx: &ArgCx<'_>) -> Result<u16, ValueError> {
    // Port names belong to a protocol. Names of TCP (6) come first, then those of UDP (17).
    if let Some(p) = cx.names.port(cx.scope, word, 6).or_else(|| cx.names.port(cx.scope, word, 17)) {
        return Ok(p);
    }
    u16::parse(word, cx).map_err(|e| bad_port(what, word, &e.to_string()))
}

fn ports(word: &str, cx: &ArgCx<'_>) -> Result<Option<(u16, u16)>, ValueError> {
    if word == "-" {
        return Ok(None);
    }
    let (lo, hi) = match word.split_once('-') {
        Some((a, b)) => (port(a, "source", cx)?, port(b, "source", cx)?),
        None => (port(word, "source", cx)?, port(word, "source", cx)?),
    };
    if lo > hi {
        return Err(bad_port("source", word, "the range is empty"));
    }
    Ok(Some((lo, hi)))
}

impl Pattern {
    /// Parses the words of a pattern: all four parts, or three (source address, destination address, source
    /// port), or two (the addresses).
    pub fn parse(words: &[&str], cx: &ArgCx<'_>) -> Result<Pattern, ValueError> {
        let (saddr, sport, daddr, dport) = match *words {
            [sa, sp, da, dp] => (sa, sp, da, dp),
            [sa, da, sp] => (sa, sp, da, "-"),
            [sa, da] => (sa, "-", da, "-"),
            _ => return Err(ValueError::from("syntax error").help("write 'SADDR SPORT DADDR DPORT'")),
        };
        let ((saddr, a_order), (sport, p_order)) = (order_of(saddr), order_of(sport));
        let order = if p_order == Order::Keep { a_order } else { p_order };
        let bad = |e: ValueError| ValueError::from("bad destination address").help(format!("'{daddr}': {e}"));
        Ok(Pattern {
            addrs: addresses(saddr, cx)?,
            ports: ports(sport, cx)?,
            order,
            daddr: match daddr {
                "-" => None,
                a => Some(Ipv4Addr::parse(a, cx).map_err(bad)?.to_bits()),
            },
            dport: match dport {
                "-" => None,
                p => Some(port(p, "destination", cx)?),
            },
            next: AtomicU64::new(0),
        })
    }

    /// Whether the destination address is set.
    pub fn sets_destination(&self) -> bool {
        self.daddr.is_some()
    }

    /// Whether the pattern could have made a flow that rewrites `from` to `to`.
    pub fn makes(&self, from: Tuple, to: Tuple, kind: Kind) -> bool {
        let (src, sport) = (to.src(), to.sport());
        let with_ports = kind.has_ports();
        self.addrs.map_or(src == from.src(), |(lo, hi)| (lo..=hi).contains(&src))
            && to.dst() == self.daddr.unwrap_or(from.dst())
            && self.ports.filter(|_| with_ports).map_or(sport == from.sport(), |(lo, hi)| (lo..=hi).contains(&sport))
            // Echo requests have no destination port, whatever the pattern says.
            && (kind == Kind::Ping || to.dport() == self.dport.filter(|_| with_ports).unwrap_or(from.dport()))
    }
    /// Whether another pattern has the same definition.
    pub fn is_like(&self, other: &Pattern) -> bool {
        let all = |p: &Pattern| (p.addrs, p.ports, p.order, p.daddr, p.dport);
        all(self) == all(other)
    }
    /// Continues the sequence of another pattern, if both are alike.
    pub fn go_on_from(&self, other: &Pattern) {
        if self.is_like(other) {
            self.next.store(other.next.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Returns the parts of a tuple that decide which ports are free for it. Source parts that the pattern
    /// replaces are 0.
    pub fn decisive(&self, t: Tuple) -> Tuple {
        let src = if self.addrs.is_some() { 0 } else { t.src() };
        let sport = if self.ports.is_some() { 0 } else { t.sport() };
        Tuple::new(src, sport, t.dst(), t.dport())
    }

    /// Chooses the tuple that a new flow rewrites to. If no free one was found, returns `None`, and `cursor`
    /// notes where the next packet continues the search. `with_ports` is false for rewriters that use no
    /// ports.
    pub fn choose(
        &self,
        t: Tuple,
        with_ports: bool,
        secret: &mut Secret,
        cursor: &mut Option<Cursor>,
        mut free: impl FnMut(Tuple) -> bool,
    ) -> Option<Tuple> {
        let (first, last) = self.addrs.unwrap_or((t.src(), t.src()));
        let (low, high) = self.ports.filter(|_| with_ports).unwrap_or((t.sport(), t.sport()));
        let (dst, dport) =
            (self.daddr.unwrap_or(t.dst()), self.dport.filter(|_| with_ports).unwrap_or(t.dport()));
        let ports = u64::from(high.saturating_sub(low)) + 1;
        let count = (u64::from(last.saturating_sub(first)) + 1).saturating_mul(ports);
        // The casts lose nothing: the quotient is below the number of addresses, the remainder below the
        // number of ports.
        let at = |v: u64| {
            let (a, p) = ((v / ports) as u32, (v % ports) as u16);
            Tuple::new(first.wrapping_add(a), low.wrapping_add(p), dst, dport)
        };
        if count == 1 {
            // There is only one choice. If another flow to the same destination already uses it, replies from
            // there will belong to the new flow.
            return Some(at(0));
        }
        if cursor.is_some_and(Cursor::is_exhausted) {
            return None;
        }
        let start = match self.order {
            Order::Sequential => self.next.load(Ordering::Relaxed) % count,
            Order::Random => secret.below(count),
            Order::Keep => {
                let any = secret.below(count);
                let own = (low..=high).contains(&t.sport()).then(|| u64::from(t.sport() - low));
                match own {
                    // The packet's own port, on a random address.
                    Some(own) if ports > 1 && free(at(any - any % ports + own)) => {
                        return Some(at(any - any % ports + own));
                    }
                    _ => any,
                }
            }
        };
        let (mut v, left) = cursor.map_or((start, count), |c| (c.at % count, c.left.min(count)));
        let mut way = cursor.map(|c| c.stride);
        let tries = left.min(MOST_TRIES);
        for _ in 0..tries {
            let free = free(at(v));
            if free && cursor.is_none() {
                if self.order == Order::Sequential {
                    self.next.store(v + 1, Ordering::Relaxed);
                }
                return Some(at(v));
            }
            let stride = *way.get_or_insert_with(|| match self.order {
                Order::Sequential => 1,
                Order::Random | Order::Keep => stride(count, secret),
            });
            // No overflow: `v` and `stride` are below `count`, which is at most 2^48.
            let next = (v + stride) % count;
            if free {
                if self.order == Order::Sequential {
                    self.next.store(next, Ordering::Relaxed);
                }
                // Earlier packets have tried the places before this one in vain. So the search for the next
                // flow starts after this place.
                *cursor = Some(Cursor { at: next, stride, left: count });
                return Some(at(v));
            }
            v = next;
        }
        *cursor = Some(Cursor { at: v, stride: way.unwrap_or(1), left: left - tries });
        None
    }
}

impl Pattern {
    /// Formats the pattern for handlers: without the order, and without ports for rewriters that use none.
    pub fn show(&self, kind: Kind) -> String {
        let mut out = match self.addrs {
            None => "-".to_string(),
            Some((a, b)) if a == b => Ipv4Addr::from_bits(a).to_string(),
            Some((a, b)) => format!("{}-{}", Ipv4Addr::from_bits(a), Ipv4Addr::from_bits(b)),
        };
        if kind.has_ports() {
            out += &match self.ports {
                None => " -".to_string(),
                Some((a, b)) if a == b => format!(" {a}"),
                Some((a, b)) => format!(" {a}-{b}"),
            };
        }
        out += &self.daddr.map_or(" -".into(), |a| format!(" {}", Ipv4Addr::from_bits(a)));
        if kind.has_ports() {
            out += &self.dport.map_or(" -".into(), |p| format!(" {p}"));
        }
        out
    }
}

/// Splits an argument into its words.
pub fn words(t: &str) -> Vec<&str> {
    text::words(t).into_iter().filter_map(|r| t.get(r)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::Seed;
    use std::collections::HashSet;

    fn secret() -> Secret {
        Secret::of(Seed::Fixed(1), "p")
    }

    fn pattern(t: &str) -> Result<Pattern, ValueError> {
        let names = Names::new();
        Pattern::parse(&words(t), &ArgCx { scope: "", names: &names, origin: Origin::Operator })
    }

    #[test]
    fn texts() {
        for (given, shown) in [
            ("- - - -", "- - - -"),
            ("9.9.9.9 1024-1026 - -", "9.9.9.9 1024-1026 - -"),
            ("9.9.9.9 1024-65535# 1.2.3.4 80", "9.9.9.9 1024-65535 1.2.3.4 80"),
            ("9.9.9.9 5?  - -", "9.9.9.9 5 - -"),
            ("1.0.0.1-1.0.0.9# -", "1.0.0.1-1.0.0.9 - - -"),
            ("1.0.0.0/29 - - -", "1.0.0.1-1.0.0.6 - - -"),
            ("1.0.0.0/31 -", "1.0.0.0-1.0.0.1 - - -"),
            ("1.0.0.7/32 -", "1.0.0.7 - - -"),
            ("9.9.9.9 2.2.2.2 77", "9.9.9.9 77 2.2.2.2 -"),
        ] {
            assert_eq!(pattern(given).unwrap().show(Kind::Ports), shown, "{given}");
        }
        let shown = |text: &str, kind| pattern(text).unwrap().show(kind);
        assert_eq!(shown("1.0.0.1-1.0.0.9# -", Kind::Addr), "1.0.0.1-1.0.0.9 -");
        assert_eq!(shown("1.1.1.1 2.2.2.2", Kind::Pair), "1.1.1.1 2.2.2.2");
        assert_eq!(shown("9.9.9.9 5-9? - -", Kind::Ping), "9.9.9.9 5-9 - -");
        for t in [
            "",
            "-",
            "1.2.3 - - -",
            "1.0.0.9-1.0.0.1 -",
            "- 9-8 - -",
            "- 65536 - -",
            "- - - x",
            "- - 1 -",
            "- - - - -",
            "- -1 - -",
            "- 1- - -",
            "/ -",
            "1.2.3.4/33 -",
        ] {
            assert!(pattern(t).is_err(), "{t}");
        }
    }

    #[test]
    fn ranges_are_used_up_and_not_beyond() {
        let mut secret = secret();
        for t in [
            "9.9.9.9 1024-1026 - -",
            "9.9.9.9 1024-1026# - -",
            "9.9.9.9 1024-1026? - -",
            "9.9.9.1-9.9.9.3 7 - -",
            "9.9.9.0/30 1-2 - -",
        ] {
            let (p, mut taken) = (pattern(t).unwrap(), HashSet::new());
            let flow = Tuple::new(1, 1025, 2, 80);
            while let Some(to) = p.choose(flow, true, &mut secret, &mut None, |t| !taken.contains(&t)) {
                assert!(taken.insert(to), "{t}");
                assert_eq!((to.dst(), to.dport()), (2, 80));
            }
            assert_eq!(taken.len(), if t.contains('/') { 4 } else { 3 }, "{t}");
        }
    }

    #[test]
    fn own_port_first_and_sequence_goes_on() {
        let mut secret = secret();
        let p = pattern("9.9.9.9 1024-2000 - -").unwrap();
        let mut get = |p: &Pattern, port| {
            p.choose(Tuple::new(1, port, 2, 80), true, &mut secret, &mut None, |_| true).unwrap().sport()
        };
        assert_eq!((get(&p, 1024), get(&p, 2000)), (1024, 2000));
        assert!((1024..=2000).contains(&get(&p, 2001)));
        let p = pattern("9.9.9.9 1024-1026# - -").unwrap();
        assert_eq!([0; 5].map(|_| get(&p, 1026)), [1024, 1025, 1026, 1024, 1025]);
    }

    #[test]
    fn a_search_is_bounded_and_goes_on_with_the_next_packet() {
        let mut secret = secret();
        for t in ["9.9.9.9 1024-2023 - -", "9.9.9.9 1024-2023# - -", "9.9.9.9 1024-2023? - -"] {
            let (p, flow) = (pattern(t).unwrap(), Tuple::new(1, 7, 2, 80));
            let (mut cursor, mut tried) = (None, Vec::new());
            for packet in 1..=6_u64 {
                let none = p.choose(flow, true, &mut secret, &mut cursor, |to| {
                    tried.push(to.sport());
                    false
                });
                assert_eq!((none, tried.len() as u64), (None, (packet * MOST_TRIES).min(1000)), "{t}");
                assert_eq!(cursor.unwrap().is_exhausted(), packet >= 4, "{t}");
            }
            // Everything was tried, once.
            tried.sort_unstable();
            assert_eq!(tried, (1024..2024).collect::<Vec<_>>(), "{t}");
            // A port that has become free since is found within four packets, and the next search starts
            // behind it.
            cursor = cursor.map(Cursor::renewed);
            let mut find = |free: u16, cursor: &mut Option<Cursor>| {
                let mut one = || p.choose(flow, true, &mut secret, cursor, |to| to.sport() == free);
                (0..4).find_map(|_| one()).map(Tuple::sport)
            };
            assert_eq!(find(1500, &mut cursor), Some(1500), "{t}");
            let stride = cursor.unwrap().stride;
            assert_eq!(cursor, Some(Cursor { at: (476 + stride) % 1000, stride, left: 1000 }), "{t}");
            assert_eq!(stride == 1, t.contains('#'), "{t}");
            assert_eq!(find(1499, &mut cursor), Some(1499), "{t}");
        }
    }

    #[test]
    fn strides_reach_every_place() {
        let mut secret = secret();
        for count in (2..60).chain([64_512, 65_536, 3 << 40, 6 * 64_512]) {
            for _ in 0..20 {
                let stride = stride(count, &mut secret);
                assert!((1..count).contains(&stride));
                assert!(
                    (2..100_000).filter(|n| count % n == 0).all(|n| !stride.is_multiple_of(n)),
                    "{count} {stride}"
                );
            }
        }
        let strides: HashSet<_> = (0..20).map(|_| stride(64_512, &mut secret)).collect();
        assert!(strides.len() > 15, "{strides:?}");
    }

    #[test]
    fn ports_in_a_row_do_not_end_a_search() {
        let (p, mut secret) = (pattern("9.9.9.9 1024-65535 - -").unwrap(), secret());
        let taken = 2000..2000 + 2 * MOST_TRIES as u16;
        for port in taken.clone() {
            let flow = Tuple::new(1, port, 2, 80);
            let to = p.choose(flow, true, &mut secret, &mut None, |to| !taken.contains(&to.sport()));
            assert!(to.is_some(), "{port}");
        }
    }

    #[test]
    fn widest_range_ends() {
        let mut secret = secret();
        let p = pattern("0.0.0.0-255.255.255.255 0-65535 - -").unwrap();
        let mut tries = 0u64;
        for _ in 0..3 {
            let none = p.choose(Tuple::default(), true, &mut secret, &mut None, |_| {
                tries += 1;
                false
            });
            assert_eq!(none, None);
        }
        // Each search first tries the packet's own port, on a random address.
        assert_eq!(tries, 3 * (MOST_TRIES + 1));
        assert!(p.choose(Tuple::default(), false, &mut secret, &mut None, |_| true).is_some());
    }
}
