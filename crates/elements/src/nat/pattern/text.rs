// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses patterns, and formats them for handlers.

use super::{Order, Pattern};
use crate::nat::flow::RewriterKind;
use castanet_element::prelude::*;
use castanet_lang::args;
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicU64;

/// The form of a pattern, for errors. In a specification, two outputs follow.
const FORM: &str = "a pattern is 'SADDR SPORT DADDR DPORT', and a specification is 'pattern SADDR SPORT DADDR DPORT FOUT ROUT'";

/// Splits a word such as `1024-65535#` into a range and the order that the last character (`#` or `?`) stands for.
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
            _ => {
                return Err(ValueError::from("syntax error")
                    .help(format!("{} words are too few or too many: {FORM}", words.len())));
            }
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

    /// Formats the pattern for handlers: without the order of the search (`#` or `?`), and without ports for rewriters
    /// that use none.
    pub fn show(&self, kind: RewriterKind) -> String {
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
    args::words(t).into_iter().filter_map(|r| t.get(r)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
            assert_eq!(pattern(given).unwrap().show(RewriterKind::Ports), shown, "{given}");
        }
        let shown = |text: &str, kind| pattern(text).unwrap().show(kind);
        assert_eq!(shown("1.0.0.1-1.0.0.9# -", RewriterKind::Addr), "1.0.0.1-1.0.0.9 -");
        assert_eq!(shown("1.1.1.1 2.2.2.2", RewriterKind::Pair), "1.1.1.1 2.2.2.2");
        assert_eq!(shown("9.9.9.9 5-9? - -", RewriterKind::Ping), "9.9.9.9 5-9 - -");
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
}
