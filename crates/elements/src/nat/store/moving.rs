// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves flows to the store of another router (hot swap).
//!
//! If both stores have the same rewriters, they exchange flows, index and heaps as a whole, so a million
//! flows move quickly. After such an exchange, each flow is examined only if specifications differ. If the
//! rewriters differ, flows move one by one. A flow that no input of the new router would make stays in the
//! old store, so that a failed swap can be undone.

use super::{Flow, Store};
use crate::nat::flow::{RewriterKind, bit};
use crate::nat::seq::Shift;
use crate::nat::spec::{Outs, Spec};
use std::mem::swap;

/// Returns the outputs that a specification would give to an existing flow; `None` if it would not make that
/// flow.
fn outs(spec: &Spec, f: &Flow, kind: RewriterKind) -> Option<Outs> {
    let (from, to) = (f.tuples[0], f.rewritten(false));
    match spec {
        Spec::Drop | Spec::Pass(_) => None,
        Spec::Keep(outs) => (from == to).then_some(*outs),
        Spec::Pattern(t) => t.pattern.makes(from, to, kind).then_some(t.outs),
        Spec::Mapper(m) => m.targets().iter().find(|t| t.pattern.makes(from, to, kind)).map(|t| t.outs),
    }
}

impl Store {
    /// Moves flows of rewriter number `theirs` from the store `old` to rewriter number `space` of this store. Only
    /// flows that an input of the new rewriter would also make are moved. Returns how many flows stay in `old`.
    pub fn take_over(&mut self, space: u16, old: &mut Store, theirs: u16) -> usize {
        self.forget_searches();
        old.forget_searches();
        if space == theirs && self.is_laid_out_like(old) && old.count() > self.count() {
            self.exchange(old);
        }
        let mut left = 0;
        for place in old.places(theirs) {
            let moved = match old.flow(place).and_then(|f| self.fit(space, f)) {
                Some((input, outs)) => old.flow(place).is_some_and(|f| {
                    let flow = Flow { space, input, outs, ..f.clone() };
                    self.put_in(flow, old.shifts(place).cloned())
                }),
                None => false,
            };
            if moved {
                old.remove(place);
            } else {
                left += 1;
            }
        }
        self.take_positions(space, old, theirs);
        left
    }

    /// Records how many flows of a rewriter a hot swap left in this store, because the new store could not take them.
    /// Returns true if the number is not 0 and differs from the number recorded before.
    pub fn leave(&mut self, space: u16, left: usize) -> bool {
        let before = self.spaces.get_mut(usize::from(space)).map(|s| std::mem::replace(&mut s.left, left));
        left > 0 && before != Some(left)
    }

    /// Whether both stores have the same rewriters in the same order.
    fn is_laid_out_like(&self, other: &Store) -> bool {
        self.spaces.len() == other.spaces.len()
            && self.spaces.iter().zip(&other.spaces).all(|(a, b)| a.kind == b.kind && a.label == b.label)
    }

    /// Exchanges all flows with `old`, a store that has the same rewriters in the same order. A flow from `old` goes
    /// back to `old` if no input of this store would make such a flow.
    fn exchange(&mut self, old: &mut Store) {
        swap(&mut self.flows, &mut old.flows);
        swap(&mut self.free, &mut old.free);
        swap(&mut self.index, &mut old.index);
        swap(&mut self.seed, &mut old.seed);
        swap(&mut self.shifts, &mut old.shifts);
        swap(&mut self.removals, &mut old.removals);
        let mut same = true;
        for (a, b) in self.spaces.iter_mut().zip(&mut old.spaces) {
            swap(&mut a.entries, &mut b.entries);
            for (a, b) in a.classes.iter_mut().zip(&mut b.classes) {
                swap(&mut a.heap, &mut b.heap);
                swap(&mut a.flows, &mut b.flows);
            }
            same &= a.inputs.len() == b.inputs.len()
                && a.inputs.iter().zip(&b.inputs).all(|(a, b)| a.spec.is_like(&b.spec));
            for (a, b) in a.inputs.iter_mut().zip(&mut b.inputs) {
                swap(&mut a.flows, &mut b.flows);
            }
        }
        if !same {
            old.count_inputs();
            self.refit(old);
        }
    }

    /// Assigns each flow to the input that would make it. A flow goes back to `old` if no input would make it.
    fn refit(&mut self, old: &mut Store) {
        let mut strangers = Vec::new();
        for place in 0..u32::try_from(self.flows.len()).unwrap_or(u32::MAX) {
            let Some(f) = self.flow(place).filter(|f| f.bits & bit::ALIVE != 0) else { continue };
            match self.fit(f.space, f) {
                None => strangers.push(place),
                Some((input, outs)) => {
                    if let Some(f) = self.flow_mut(place) {
                        (f.input, f.outs) = (input, outs);
                    }
                }
            }
        }
        for place in strangers {
            if let Some(f) = self.flow(place) {
                old.put_in(f.clone(), self.shifts(place).cloned());
                self.remove(place);
            }
        }
        self.count_inputs();
    }

    /// Counts the flows of each input.
    fn count_inputs(&mut self) {
        for i in self.spaces.iter_mut().flat_map(|s| &mut s.inputs) {
            i.flows = 0;
        }
        for f in self.flows.iter().filter(|f| f.bits & bit::ALIVE != 0) {
            let space = self.spaces.get_mut(usize::from(f.space));
            if let Some(i) = space.and_then(|s| s.inputs.get_mut(usize::from(f.input))) {
                i.flows += 1;
            }
        }
    }

    /// Returns the number of an input whose specification would make the flow `f`, and the outputs that this
    /// specification would give to `f`. Tries the current input of `f` first.
    fn fit(&self, space: u16, f: &Flow) -> Option<(u16, Outs)> {
        let space = self.space(space)?;
        let own = space.inputs.get(usize::from(f.input)).and_then(|i| outs(&i.spec, f, space.kind));
        if let Some(outs) = own {
            return Some((f.input, outs));
        }
        (0u16..).zip(&space.inputs).find_map(|(n, i)| Some((n, outs(&i.spec, f, space.kind)?)))
    }

    /// Adds a flow unchanged. Returns false if another flow of this store has one of the flow's keys, or if
    /// there is no free index left.
    fn put_in(&mut self, f: Flow, shifts: Option<[Shift; 2]>) -> bool {
        let tags = self.tags(&f);
        let is_known = |reply: bool| {
            let (tag, tuple) = (tags[usize::from(reply)], f.tuples[usize::from(reply)]);
            f.has(reply) && self.index.find(tag, |v| self.is(v, f.space, f.proto, tuple)).is_some()
        };
        if is_known(false) || is_known(true) {
            return false;
        }
        let shifts = shifts.filter(|_| f.bits & bit::SHIFTED != 0);
        let Some(place) = self.add(f, tags) else { return false };
        if let Some(shifts) = shifts {
            self.shifts.insert(place, shifts);
        }
        true
    }

    /// Takes over from the old store the position at which each sequential pattern continues.
    fn take_positions(&self, space: u16, old: &Store, theirs: u16) {
        let mine = self.spaces.get(usize::from(space));
        let (Some(mine), Some(theirs)) = (mine, old.spaces.get(usize::from(theirs))) else { return };
        for (to, from) in mine.inputs.iter().zip(&theirs.inputs) {
            to.spec.go_on_from(&from.spec);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::nat::flow::{Timeouts, class};
    use crate::nat::handle::UNBOUNDED;
    use crate::nat::store::New;
    use crate::nat::tuple::Tuple;
    use castanet_element::{Secret, Seed};

    fn store(label: &str, spec: Spec) -> Store {
        let mut store = Store::new(UNBOUNDED, Secret::of(Seed::Fixed(1), label));
        let space = store.join(RewriterKind::Ports, Timeouts::all(100_000, 0), 1, label).unwrap();
        store.set_spec(space, 0, spec);
        store
    }

    fn fill(store: &mut Store, flows: u32) {
        for i in 0..flows {
            let from = Tuple::new(i, 1, 2, 3);
            let new =
                New { space: 0, input: 0, proto: 17, from, class: class::PLAIN, anno: 0, now: i.into() };
            store.make(&new);
        }
    }

    #[test]
    fn many_flows_stay_where_they_are_in_memory() {
        for (label, spec) in [("rw", Spec::Keep([0, 1])), ("rw", Spec::Keep([1, 0]))] {
            let (mut old, mut new) = (store("rw", Spec::Keep([0, 1])), store(label, spec.clone()));
            fill(&mut old, 20_000);
            let place = old.flows.as_ptr();
            assert_eq!(new.take_over(0, &mut old, 0), 0);
            assert_eq!((new.flows.as_ptr(), new.count(), old.count()), (place, 20_000, 0));
            let found = new.look_up(0, 17, Tuple::new(2, 3, 19_999, 1), 20_000).unwrap();
            assert_eq!(
                new.flow(found >> 1).unwrap().outs,
                if spec.is_like(&Spec::Keep([0, 1])) { [0, 1] } else { [1, 0] }
            );
            assert_eq!((new.input(0, 0).unwrap().flows, old.input(0, 0).unwrap().flows), (20_000, 0));
            // The moved flows expire when they would have expired in the old store.
            new.clean(0, 115_000, usize::MAX);
            assert_eq!(new.count(), 20_000 - 15_001);
            assert_eq!(old.take_over(0, &mut new, 0), 0);
            assert_eq!((old.flows.as_ptr(), old.count()), (place, 4999));
        }
    }

    #[test]
    fn another_rewriter_gets_them_one_by_one() {
        let (mut old, mut new) = (store("one", Spec::Keep([0, 1])), store("other", Spec::Keep([0, 1])));
        fill(&mut old, 500);
        old.shift(7, true).unwrap().add(5, 6);
        let mine = New {
            space: 0,
            input: 0,
            proto: 17,
            from: Tuple::new(3, 1, 2, 3),
            class: class::PLAIN,
            anno: 0,
            now: 0,
        };
        new.make(&mine);
        assert_eq!(new.take_over(0, &mut old, 0), 1, "one is known there already");
        assert_eq!((new.count(), old.count(), new.shifts.len(), old.shifts.len()), (500, 1, 1, 0));
        let gone = store("none", Spec::Drop).take_over(0, &mut new, 0);
        assert_eq!((gone, new.count()), (500, 500), "what nobody would make stays");
    }

    fn flows_of_inputs(store: &Store, space: u16) -> Vec<usize> {
        store.space(space).unwrap().inputs.iter().map(|i| i.flows).collect()
    }

    #[test]
    fn flows_belong_to_the_rewriter_and_the_input_that_would_make_them() {
        let mut old = store("rw", Spec::Keep([0, 1]));
        fill(&mut old, 100);
        // In the new store the rewriter has number 1, because another one joined first. Its input 2 makes flows like
        // those of the old store.
        let mut new = store("other", Spec::Keep([7, 7]));
        assert_eq!(new.join(RewriterKind::Ports, Timeouts::all(100_000, 0), 3, "rw"), Some(1));
        new.set_spec(1, 2, Spec::Keep([3, 4]));
        assert_eq!(new.take_over(1, &mut old, 0), 0);
        for reply in [false, true] {
            let t = Tuple::new(50, 1, 2, 3);
            let found = new.look_up(1, 17, if reply { t.reversed() } else { t }, 100).unwrap();
            let f = new.flow(found >> 1).unwrap();
            assert_eq!((f.space, f.input, f.outs), (1, 2, [3, 4]));
        }
        assert_eq!((flows_of_inputs(&new, 0), flows_of_inputs(&new, 1)), (vec![0], vec![0, 0, 100]));
        let entries = |s: &Store, space| s.space(space).unwrap().entries;
        assert_eq!((entries(&new, 0), entries(&new, 1), entries(&old, 0)), (0, 200, 0));
    }

    #[test]
    fn inputs_count_their_flows_when_all_flows_are_exchanged() {
        let of = |specs: [Spec; 2]| {
            let mut store = Store::new(UNBOUNDED, Secret::of(Seed::Fixed(1), "rw"));
            let space = store.join(RewriterKind::Ports, Timeouts::all(100_000, 0), 2, "rw").unwrap();
            (0..).zip(specs).for_each(|(i, spec)| store.set_spec(space, i, spec));
            store
        };
        let keep = || Spec::Keep([0, 1]);
        let (mut old, mut new) = (of([keep(), Spec::Drop]), of([Spec::Drop, keep()]));
        fill(&mut old, 100);
        assert_eq!(new.take_over(0, &mut old, 0), 0);
        assert_eq!((flows_of_inputs(&old, 0), flows_of_inputs(&new, 0)), (vec![0, 0], vec![0, 100]));
        let found = new.look_up(0, 17, Tuple::new(50, 1, 2, 3), 100).unwrap();
        assert_eq!(new.flow(found >> 1).unwrap().input, 1);
        // Flows stay in the old store, at their input, if no input of the new store would make them.
        let mut none = of([Spec::Drop, Spec::Drop]);
        assert_eq!(none.take_over(0, &mut new, 0), 100);
        assert_eq!((flows_of_inputs(&new, 0), flows_of_inputs(&none, 0)), (vec![0, 100], vec![0, 0]));
    }
}
