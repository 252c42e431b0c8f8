// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes new flows, as the specifications of inputs say.

use super::{Made, New, SEARCHES, Search, Store, Wish};
use crate::nat::flow::RewriterKind;
use crate::nat::pattern::Pattern;
use crate::nat::spec::{Outs, Spec};
use crate::nat::tuple::Tuple;
use castanet_element::prelude::*;
use std::sync::Arc;

/// The maximum number of expired flows that are removed when a new flow is made.
const CLEANED: usize = 4;

impl Store {
    /// Makes a flow as the specification of its input says.
    pub fn make(&mut self, new: &New) -> Made {
        let Some(input) = self.input(new.space, usize::from(new.input)) else {
            return Made::Drop(Reason::NoMapping);
        };
        let spec = input.spec.clone();
        if let Spec::Pass(out) = &spec {
            return Made::Pass(*out);
        }
        self.clean(new.space, new.now, CLEANED);
        let made = match &spec {
            Spec::Pass(out) => return Made::Pass(*out),
            Spec::Drop => Err(Reason::NoMapping),
            Spec::Keep(outs) => self.insert(new, new.from, *outs),
            Spec::Pattern(t) => self.make_by(&t.pattern, t.outs, new),
            Spec::Mapper(m) => {
                let mut out = Err(Reason::PatternFull);
                for t in m.order(new.from) {
                    out = self.make_by(&t.pattern, t.outs, new);
                    if out != Err(Reason::PatternFull) {
                        break;
                    }
                }
                out
            }
        };
        match made {
            Ok(place) => Made::Flow(place),
            Err(reason) => Made::Drop(reason),
        }
    }

    /// Makes a flow as a pattern says.
    fn make_by(&mut self, pattern: &Arc<Pattern>, outs: Outs, new: &New) -> Result<u32, Reason> {
        let kind = self.space(new.space).map_or(RewriterKind::Ports, |s| s.kind);
        let wish = Wish {
            pattern: Arc::as_ptr(pattern) as usize,
            key: (new.space, new.proto, pattern.decisive(new.from)),
        };
        let set = self.tag(wish.key.0, wish.key.1, wish.key.2) as usize % SEARCHES;
        let search = self.searches.get(set).and_then(|set| set.iter().flatten().find(|s| s.wish == wish));
        // If a flow was removed since the last search, a port that was tried before may be free now.
        let mut cursor =
            search.map(|s| if s.removals == self.removals { s.cursor } else { s.cursor.renewed() });
        let searched = cursor.is_some();
        // Echo requests have no destination port, whatever the pattern says.
        let real =
            |t: Tuple| if kind == RewriterKind::Ping { Tuple { ports: t.ports & 0xffff, ..t } } else { t };
        let (mut secret, mut probes) = (self.secret.clone(), 0);
        let to = pattern.choose(new.from, kind.has_ports(), &mut secret, &mut cursor, |t| {
            probes += 1;
            let reply = real(t).reversed();
            let tag = self.tag(new.space, new.proto, reply);
            let held = self.index.find(tag, |v| self.is(v, new.space, new.proto, reply));
            held.is_none_or(|v| self.is_expired(v >> 1, new.now))
        });
        self.secret = secret;
        self.probes = self.probes.saturating_add(probes);
        if (searched || to.is_none())
            && let Some(set) = self.searches.get_mut(set)
        {
            let known = set.iter().position(|s| s.is_some_and(|s| s.wish == wish));
            let last = set.len().saturating_sub(1);
            // A set holds its searches from the newest to the oldest. Move this search to the front, and the searches
            // before its old place back by one. If this search is not in the set yet, it replaces the oldest search.
            if let Some(upto) = set.get_mut(..=known.unwrap_or(last)) {
                upto.rotate_right(1);
            }
            set[0] = cursor.map(|cursor| Search { wish, cursor, removals: self.removals });
        }
        match to {
            Some(to) => self.insert(new, real(to), outs),
            None => Err(Reason::PatternFull),
        }
    }
}
