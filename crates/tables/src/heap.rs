// SPDX-License-Identifier: MIT OR Apache-2.0
//! A four-ary heap that tracks the position of each of its slots.

/// Marks a slot that is not in the heap.
const ABSENT: u32 = u32::MAX;

/// Orders slots (small numbers chosen by the caller) by key. The least key is on top.
#[derive(Clone, Debug)]
pub(crate) struct Heap<K> {
    /// Pairs of a key and a slot. With four children per node, siblings are adjacent in memory and the tree is half as
    /// deep as a binary one.
    items: Vec<(K, u32)>,
    /// The index in `items` of each slot; [`ABSENT`] for a slot that is not in the heap.
    places: Vec<u32>,
}

impl<K> Default for Heap<K> {
    fn default() -> Self {
        Self { items: Vec::new(), places: Vec::new() }
    }
}

impl<K: Ord + Copy> Heap<K> {
    pub fn len(&self) -> usize {
        self.items.len()
    }

    #[inline]
    pub fn top(&self) -> Option<(K, u32)> {
        self.items.first().copied()
    }

    /// The key of a slot, if it is in the heap.
    #[inline]
    pub fn key(&self, slot: u32) -> Option<K> {
        let place = *self.places.get(slot as usize)?;
        self.items.get(place as usize).map(|&(key, _)| key)
    }

    /// Sets the key of a slot. Inserts the slot if it is not in the heap.
    #[inline]
    pub fn set(&mut self, slot: u32, key: K) {
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, ABSENT);
        }
        let place = match self.places[slot as usize] {
            ABSENT => {
                self.items.push((key, slot));
                self.items.len() - 1
            }
            place => {
                self.items[place as usize].0 = key;
                place as usize
            }
        };
        self.settle(place);
    }

    /// Replaces the key of the top slot. The new key must not be less than the old one, so the slot moves down or
    /// stays.
    #[inline]
    pub fn lower_top(&mut self, key: K) {
        match &mut self.items[..] {
            [] => {}
            [top] => top.0 = key,
            [top, ..] => {
                top.0 = key;
                let item = *top;
                self.sink(0, item);
            }
        }
    }

    /// Removes a slot. Returns its key; `None` if the slot is not in the heap.
    pub fn remove(&mut self, slot: u32) -> Option<K> {
        let place = *self.places.get(slot as usize)? as usize;
        if place >= self.items.len() {
            return None;
        }
        let (key, _) = self.items.swap_remove(place);
        self.places[slot as usize] = ABSENT;
        if place < self.items.len() {
            self.settle(place);
        }
        Some(key)
    }

    /// Applies a monotonic function to all keys.
    pub fn map_keys(&mut self, map: impl Fn(K) -> K) {
        for (key, _) in &mut self.items {
            *key = map(*key);
        }
    }

    pub fn clear(&mut self) {
        self.items.clear();
        self.places.clear();
    }

    /// Moves the item at `place` up or down to its correct position.
    #[inline]
    fn settle(&mut self, mut place: usize) {
        let item = self.items[place];
        while place > 0 {
            let parent = (place - 1) / 4;
            if self.items[parent].0 <= item.0 {
                break;
            }
            self.put(place, self.items[parent]);
            place = parent;
        }
        self.sink(place, item);
    }

    /// Puts an item at `place` or below, wherever the heap order requires.
    #[inline]
    fn sink(&mut self, mut place: usize, item: (K, u32)) {
        loop {
            let first = 4 * place + 1;
            let children = self.items.get(first..self.items.len().min(first + 4)).unwrap_or_default();
            let least = children.iter().enumerate().min_by_key(|(_, child)| child.0);
            let Some((offset, &child)) = least.filter(|(_, child)| child.0 < item.0) else { break };
            self.put(place, child);
            place = first + offset;
        }
        self.put(place, item);
    }

    #[inline]
    fn put(&mut self, place: usize, item: (K, u32)) {
        self.items[place] = item;
        self.places[item.1 as usize] = place as u32;
    }
}
