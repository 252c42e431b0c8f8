// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order in which flows expire or are evicted.

use super::{New, Store, class};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;

impl Store {
    /// Moves a flow to another timeout class.
    #[cold]
    pub fn reclass(&mut self, place: u32, to: u8) {
        let Some(f) = self.flows.get_mut(place as usize) else { return };
        let (space, from) = (f.space, std::mem::replace(&mut f.class, to));
        let due = Reverse((f.last, place, f.generation));
        if let Some(s) = self.spaces.get_mut(usize::from(space)) {
            if let Some(c) = s.classes.get_mut(usize::from(from)) {
                c.flows = c.flows.saturating_sub(1);
            }
            if let Some(c) = s.classes.get_mut(usize::from(to)) {
                c.flows += 1;
                c.heap.push(due);
            }
        }
        self.trim(space, to);
    }

    /// Rebuilds the heap of a timeout class if most entries of the heap are obsolete.
    pub(super) fn trim(&mut self, space: u16, class: u8) {
        let flows = &self.flows;
        let spaces = &mut self.spaces;
        let Some(c) = spaces.get_mut(usize::from(space)).and_then(|s| s.classes.get_mut(usize::from(class)))
        else {
            return;
        };
        if c.heap.len() <= c.flows * 2 + 64 {
            return;
        }
        let mut all = std::mem::take(&mut c.heap).into_vec();
        all.retain(|Reverse((_, place, generation))| {
            flows.get(*place as usize).is_some_and(|f| {
                f.generation == *generation && f.bits != 0 && f.class == class && f.space == space
            })
        });
        all.sort_unstable_by_key(|d| d.0.1);
        all.dedup_by_key(|d| d.0.1);
        c.heap = all.into();
    }

    /// Among the flows of a class, finds the one with the oldest last packet. Returns the time of that packet and
    /// the index of the flow.
    fn oldest(&mut self, space: usize, class: usize) -> Option<(i64, u32)> {
        let c = self.spaces.get_mut(space)?.classes.get_mut(class)?;
        loop {
            let mut top = c.heap.peek_mut()?;
            let Reverse((last, place, generation)) = *top;
            match self.flows.get(place as usize) {
                Some(f)
                    if f.generation == generation
                        && f.bits != 0
                        && usize::from(f.class) == class
                        && usize::from(f.space) == space =>
                {
                    if f.last == last {
                        return Some((last, place));
                    }
                    *top = Reverse((f.last, place, generation));
                }
                _ => {
                    PeekMut::pop(top);
                }
            }
        }
    }

    /// Returns the time at which a new flow would time out, or `i64::MAX` if it has a guarantee. Only flows that
    /// time out at this time or earlier may be evicted to make room for the new flow.
    pub(super) fn expiry_of_newcomer(&self, new: &New) -> i64 {
        let class = self.space(new.space).and_then(|s| s.classes.get(usize::from(new.class)));
        match class {
            Some(c) if c.guarantee <= 0 => new.now.saturating_add(c.timeout),
            _ => i64::MAX,
        }
    }

    /// Among the flows whose guarantee is over, removes the one that would time out first. `newcomer` is the
    /// result of [`Store::expiry_of_newcomer`] for the flow that needs room. Returns false, and removes
    /// nothing, in two cases: no flow's guarantee is over, or the flow to remove would time out after `newcomer`.
    pub(super) fn evict(&mut self, now: i64, newcomer: i64) -> bool {
        let mut first: Option<(i64, u32)> = None;
        for space in 0..self.spaces.len() {
            for class in 0..class::COUNT {
                let mut oldest = self.oldest(space, class);
                while oldest.is_some_and(|(_, place)| self.refresh(place, now)) {
                    oldest = self.oldest(space, class);
                }
                let Some((last, place)) = oldest else { continue };
                let Some(c) = self.spaces.get(space).and_then(|s| s.classes.get(class)) else { continue };
                let expiry = last.saturating_add(c.timeout);
                if last.saturating_add(c.guarantee) <= now && first.is_none_or(|f| expiry < f.0) {
                    first = Some((expiry, place));
                }
            }
        }
        first.filter(|f| f.0 <= newcomer).is_some_and(|(_, place)| {
            self.remove(place);
            true
        })
    }

    /// Removes at most `most` expired flows of a rewriter.
    pub fn clean(&mut self, space: u16, now: i64, most: usize) {
        let mut left = most;
        for class in 0..class::COUNT {
            while left > 0
                && let Some((last, place)) = self.oldest(usize::from(space), class)
                && self.flow(place).is_none_or(|f| self.is_over(f, last, now))
            {
                // The kernel may have rewritten packets of the flow since.
                if !self.refresh(place, now) {
                    self.remove(place);
                    left -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nat::flow::{RewriterKind, Timeouts};
    use crate::nat::handle::UNBOUNDED;
    use crate::nat::spec::Spec;
    use crate::nat::store::Made;
    use crate::nat::tuple::Tuple;
    use castanet_element::{Secret, Seed};

    /// A removed flow leaves its entry in the heap, so the heap is rebuilt when most of its entries are
    /// obsolete.
    #[test]
    fn heaps_do_not_outgrow_their_flows() {
        let mut store = Store::new(UNBOUNDED, Secret::of(Seed::Fixed(1), "rw"));
        assert_eq!(store.join(RewriterKind::Ports, Timeouts::all(100_000, 0), 1, "rw"), Some(0));
        store.set_spec(0, 0, Spec::Keep([0, 1]));
        for i in 0..5000 {
            let from = Tuple::new(i, 1, 2, 3);
            let made = store.make(&New {
                space: 0,
                input: 0,
                proto: 17,
                from,
                class: class::PLAIN,
                anno: 0,
                now: i.into(),
            });
            let c = &store.spaces[0].classes[usize::from(class::PLAIN)];
            assert!(c.heap.len() <= c.flows * 2 + 64, "{} entries for {} flows", c.heap.len(), c.flows);
            // One flow of ten stays.
            if let Made::Flow(place) = made
                && i % 10 != 0
            {
                store.remove(place);
            }
        }
        assert_eq!(store.count(), 500);
        store.clean(0, 102_490, usize::MAX);
        assert_eq!(store.count(), 250, "a rebuilt heap has the order of ages");
    }
}
