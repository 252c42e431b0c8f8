// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts that elements keep.

use crate::class::Object;
use castanet_spec::{CountSpec, HandlerSpec, Show, ValueKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of packets, bytes or events. It wraps at 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count(u64);

impl Count {
    /// Adds `n`.
    #[inline(always)]
    pub fn add(&mut self, n: u64) {
        self.0 = self.0.wrapping_add(n);
    }
    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
    /// Adds the value of another count, and resets the other count to 0.
    pub fn take(&mut self, from: &mut Count) {
        self.add(std::mem::take(from).0);
    }
    /// Resets the count to 0.
    pub fn reset(&mut self) {
        self.0 = 0;
    }
}

impl Show for Count {
    const KIND: ValueKind = ValueKind::Counter;
    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A count that several replicas of an element add to. All clones share one number. If each replica can have a number
/// of its own, use a [`Count`], which is cheaper.
#[derive(Clone, Debug, Default)]
pub struct SharedCount(Arc<AtomicU64>);

impl SharedCount {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    /// Resets the count to 0.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
    /// Calls `visit` with the number, which `visit` may change. Additions by other workers during the call are not
    /// lost.
    pub fn with(&self, visit: impl FnOnce(&mut Count)) {
        let mut count = Count(self.0.swap(0, Ordering::Relaxed));
        visit(&mut count);
        self.add(count.0);
    }
}

impl Show for SharedCount {
    const KIND: ValueKind = ValueKind::Counter;
    fn show(&self) -> String {
        self.get().to_string()
    }
}

/// A function that is called for each count of an element, with the declaration and the numbers of the count. A count
/// with a label has one number for each value of the label. Any other count has one number.
pub type CountVisitor<'a> = dyn FnMut(&'static CountSpec, &mut [Count]) + 'a;

/// The counts of a class, of an engine, or of another struct that elements contain. `#[derive(Counts)]` and
/// `#[derive(Class)]` implement this trait.
///
/// `#[count(unit = "packets")]` marks a field of type [`Count`] or [`SharedCount`] as a count. A field of type `[Count;
/// N]` also needs a label with its values: `label(reason = REASONS)`. Each count has a read handler, unless it is
/// `hidden`. The handler has the name of the field, or the name in `name = "..."`. `#[counts]` marks a field whose own
/// counts belong to the element too.
#[allow(unused_variables)]
pub trait Counts {
    /// The declarations of the counts, in the order of the fields.
    const COUNTS: &'static [CountSpec] = &[];
    /// The handlers that show the counts.
    const COUNT_HANDLERS: &'static [HandlerSpec] = &[];
    /// Calls `visit` with each count of this struct. `visit` may change the counts.
    fn own_counts(&mut self, visit: &mut CountVisitor<'_>) {}
    /// Returns the value of the handler `handler` that shows a count. None if there is no such handler.
    fn read_count(&self, handler: &str) -> Option<String> {
        None
    }
}

/// Formats the counts of a label as text. Each line has a count, a tab and the value of the label.
pub fn table(counts: &[Count], values: &[&str]) -> String {
    counts.iter().zip(values).map(|(n, value)| format!("{}\t{value}\n", n.get())).collect()
}

/// Adds the counts of `from` to those of `to`, and resets those of `from` to 0. Counts that `to` does not have stay in
/// `from`.
pub fn move_counts(from: &mut dyn Object, to: &mut dyn Object) {
    let mut wanted = Vec::new();
    to.each_count(&mut |spec, cells| wanted.push((spec, vec![Count::default(); cells.len()])));
    from.each_count(&mut |spec, cells| {
        if let Some((_, moved)) = wanted.iter_mut().find(|w| *w.0 == *spec) {
            moved.iter_mut().zip(cells).for_each(|(to, from)| to.take(from));
        }
    });
    let mut moved = wanted.into_iter();
    to.each_count(&mut |_, cells| {
        let (_, moved) = moved.next().unwrap_or((&CountSpec::EMPTY, Vec::new()));
        cells.iter_mut().zip(moved).for_each(|(to, mut from)| to.take(&mut from));
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::prelude::*;

    /// A part with two counts.
    #[derive(Counts, Default)]
    struct Part {
        /// Bad packets.
        #[count(name = "drops", unit = "packets", label(reason = &["short", "long"]))]
        bad: [Count; 2],
    }

    /// Counts packets that are too short or too long.
    #[derive(Class)]
    #[class(name = "Sizes", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
    struct Sizes {
        /// Bytes so far.
        #[count(unit = "bytes")]
        bytes: Count,
        #[counts]
        part: Part,
        /// Packets so far.
        #[count(unit = "packets", hidden)]
        packets: Count,
    }

    impl Action for Sizes {
        fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
            self.packets.add(1);
            self.bytes.add(p.len() as u64);
            self.part.bad[usize::from(p.len() > 10)].add(1);
            Verdict::Next
        }
    }

    fn numbers(e: &mut Sizes) -> Vec<(&'static str, &'static str, Vec<u64>)> {
        let mut all = Vec::new();
        e.each_count(&mut |spec, cells| {
            all.push((spec.name, spec.unit, cells.iter().map(|c| c.get()).collect()))
        });
        all
    }

    #[test]
    fn a_declaration_makes_handlers_and_says_what_is_counted() {
        let mut kit = crate::kit::Kit::<Sizes>::new("").unwrap();
        kit.act([4, 5, 11].map(|n| crate::kit::packet(&vec![0; n])));
        assert_eq!(kit.read("bytes").unwrap(), "20");
        assert_eq!(kit.read("drops").unwrap(), "2\tshort\n1\tlong\n");
        assert!(kit.read("packets").is_err(), "hidden");
        let all =
            [("bytes", "bytes", vec![20]), ("packets", "packets", vec![3]), ("drops", "packets", vec![2, 1])];
        assert_eq!(numbers(&mut kit.element), all);
        let declared: Vec<_> = Sizes::SPEC.counts.iter().map(|c| (c.name, c.label, c.values)).collect();
        let reasons: &[&str] = &["short", "long"];
        assert_eq!(declared, [("bytes", "", &[][..]), ("packets", "", &[]), ("drops", "reason", reasons)]);
        let handlers: Vec<_> = Sizes::SPEC.handlers.iter().map(|h| (h.name, h.kind, h.unit)).collect();
        assert_eq!(
            handlers,
            [("bytes", ValueKind::Counter, "bytes"), ("drops", ValueKind::Table, "packets")]
        );
    }

    /// Counts packets. All replicas share the number.
    #[derive(Class)]
    #[class(name = "Shared", ports = "1/1", processing = "a/a", packets = "any/same", workers = share, build)]
    struct SharedSizes {
        /// Packets so far.
        #[count(unit = "packets")]
        packets: SharedCount,
    }

    impl Build for SharedSizes {
        fn build(_: castanet_spec::NoArgs, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
            Ok(SharedSizes { packets: (*cx.share(SharedCount::default)).clone() })
        }
    }

    impl Action for SharedSizes {
        fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
            self.packets.add(1);
            Verdict::Next
        }
    }

    #[test]
    fn shared_counts_move_once() {
        let [mut old, mut new] = [3, 2].map(|n| {
            let mut kit = crate::kit::Kit::<SharedSizes>::new("").unwrap();
            kit.act((0..n).map(|_| crate::kit::packet(b"x")));
            kit
        });
        assert_eq!(old.read("packets").unwrap(), "3");
        let spec = SharedSizes::SPEC.handlers.iter().find(|h| h.name == "packets").unwrap();
        assert_eq!((spec.merge, spec.unit), (castanet_spec::Merge::First, "packets"));
        // Each of two replicas moves the number that they share.
        for _ in 0..2 {
            move_counts(&mut old.element, &mut new.element);
        }
        assert_eq!((old.read("packets").unwrap(), new.read("packets").unwrap()), ("0".into(), "5".into()));
    }

    #[test]
    fn counts_move_and_are_added() {
        let [mut old, mut new] = [3, 2].map(|n| {
            let mut kit = crate::kit::Kit::<Sizes>::new("").unwrap();
            kit.act((0..n).map(|i| crate::kit::packet(&[0; 20][..10 + i])));
            kit
        });
        move_counts(&mut old.element, &mut new.element);
        let moved =
            [("bytes", "bytes", vec![54]), ("packets", "packets", vec![5]), ("drops", "packets", vec![2, 3])];
        assert_eq!(numbers(&mut new.element), moved);
        assert!(numbers(&mut old.element).iter().all(|c| c.2.iter().all(|n| *n == 0)));
    }

    /// Counts bytes in another unit.
    #[derive(Class)]
    #[class(name = "Sizes", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
    struct Other {
        /// Octets so far.
        #[count(name = "bytes", unit = "octets")]
        bytes: Count,
    }

    impl Action for Other {
        fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
            Verdict::Next
        }
    }

    #[test]
    fn what_the_other_does_not_count_stays() {
        let mut old = crate::kit::Kit::<Sizes>::new("").unwrap();
        old.act1(crate::kit::packet(&[0; 7]));
        let mut new = crate::kit::Kit::<Other>::new("").unwrap();
        move_counts(&mut old.element, &mut new.element);
        assert_eq!((old.read("bytes").unwrap(), new.read("bytes").unwrap()), ("7".into(), "0".into()));
    }
}
