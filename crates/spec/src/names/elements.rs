// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of elements.

use std::sync::OnceLock;

/// The elements of a configuration by full name. The names are in one text, because a configuration may have very many of
/// them, and most configurations look up only a few.
#[derive(Clone, Debug, Default)]
pub(super) struct ElementNames {
    /// All names, one after the other.
    text: String,
    all: Vec<Entry>,
    /// Indices in `all`, sorted by name; of equal names, the one that was added last comes last. Made on first use.
    sorted: OnceLock<Vec<u32>>,
}

// INVARIANT: the limits of the configuration language on elements and on their names keep both numbers far below 2^32.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The end of the name in the text. It begins where the previous one ends.
    end: u32,
    /// The index of the element.
    element: u32,
    class: &'static str,
}

impl ElementNames {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
    /// Reserves memory for more elements.
    pub(super) fn reserve(&mut self, more: usize) {
        self.all.reserve(more);
    }
    /// Adds an element. If the name is known, it stands for the new element from now on.
    pub(super) fn add(&mut self, name: &str, element: usize, class: &'static str) {
        self.sorted.take();
        self.text.push_str(name);
        self.all.push(Entry { end: self.text.len() as u32, element: element as u32, class });
    }
    fn name(&self, i: usize) -> &str {
        let end_of = |i: usize| self.all.get(i).map_or(0, |e| e.end as usize);
        let start = i.checked_sub(1).map_or(0, end_of);
        self.text.get(start..end_of(i)).unwrap_or("")
    }
    /// The index and class of the element with this name.
    pub(super) fn get(&self, name: &str) -> Option<(usize, &'static str)> {
        let sorted = self.sorted.get_or_init(|| {
            let mut all: Vec<u32> = (0..self.all.len() as u32).collect();
            all.sort_by_key(|&i| self.name(i as usize));
            all
        });
        let last = sorted.partition_point(|&i| self.name(i as usize) <= name).checked_sub(1)?;
        let i = sorted.get(last).map(|&i| i as usize).filter(|&i| self.name(i) == name)?;
        self.all.get(i).map(|e| (e.element as usize, e.class))
    }
    /// All names in the order in which they were added, with the indices of the elements.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.all.iter().enumerate().map(|(i, e)| (self.name(i), e.element as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_after_each_addition() {
        let mut names = ElementNames::default();
        assert_eq!(names.get("a"), None);
        names.add("b", 7, "Queue");
        names.add("", 8, "Idle");
        assert_eq!(
            [names.get("b"), names.get(""), names.get("a")],
            [Some((7, "Queue")), Some((8, "Idle")), None]
        );
        names.add("a/é", 9, "Tee");
        names.add("b", 10, "Discard");
        assert_eq!([names.get("b"), names.get("a/é")], [Some((10, "Discard")), Some((9, "Tee"))]);
        let all: Vec<_> = names.iter().collect();
        assert_eq!(all, [("b", 7), ("", 8), ("a/é", 9), ("b", 10)]);
    }
}
