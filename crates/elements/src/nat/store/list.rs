// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists flows for handlers.

use super::Store;
use crate::nat::flow::{Flow, RewriterKind};
use crate::nat::tuple::Tuple;

impl Store {
    /// Seconds until a flow times out, rounded.
    fn seconds_left(&self, f: &Flow, now: i64) -> i64 {
        let left = self.class_of(f).map_or(0, |c| f.last.saturating_add(c.timeout).saturating_sub(now));
        left.max(0).saturating_add(500_000_000) / 1_000_000_000
    }

    /// Lists a rewriter's flows, one line for each direction. With `proto`, lists only the flows of that protocol.
    pub fn list(&mut self, space: u16, proto: Option<u8>, now: i64) -> String {
        use std::fmt::Write as _;
        self.clean(space, now, usize::MAX);
        let kind = self.space(space).map_or(RewriterKind::Ports, |s| s.kind);
        let mut out = String::new();
        for place in self.places(space) {
            self.refresh(place, now);
            let Some(f) = self.flow(place) else { continue };
            if proto.is_some_and(|p| p != f.proto) {
                continue;
            }
            for reply in [false, true].into_iter().filter(|r| f.has(*r)) {
                let (from, to) = (f.tuples[usize::from(reply)], f.rewritten(reply));
                let _ = match kind {
                    RewriterKind::Ports | RewriterKind::AnyPorts | RewriterKind::Ping => {
                        write!(out, "{from} => {to}")
                    }
                    RewriterKind::Pair => write!(out, "{} => {}", Pair(from), Pair(to)),
                    RewriterKind::Addr => {
                        let end = |t: Tuple| ip(if reply { t.dst() } else { t.src() });
                        write!(out, "{} => {}", end(from), end(to))
                    }
                };
                let star = |r: bool| if r == reply { "*" } else { "" };
                let [a, b] = f.outs;
                let left = self.seconds_left(f, now);
                let _ = writeln!(out, " [{}{a} {}{b}] i{} exp{left}", star(false), star(true), f.input);
            }
        }
        out
    }
}

fn ip(a: u32) -> std::net::Ipv4Addr {
    std::net::Ipv4Addr::from_bits(a)
}

/// A pair of addresses as tables show it.
struct Pair(Tuple);

impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({}, {})", ip(self.0.src()), ip(self.0.dst()))
    }
}
