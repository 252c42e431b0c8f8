// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bounded queue for a single owner. Batches are moved by copying memory.
#![allow(unsafe_code)]

use std::collections::TryReserveError;
use std::mem::MaybeUninit;

/// A first-in first-out queue of fixed capacity.
///
/// The capacity may be any number, 0 included. Memory is allocated once, for the next power of two.
pub struct Fifo<T> {
    cells: Box<[MaybeUninit<T>]>,
    capacity: usize,
    /// Position of the oldest item. Positions increase and wrap around.
    head: usize,
    /// Position after the newest item.
    // INVARIANT: tail - head <= capacity <= cells.len(), a power of two; exactly the cells of positions
    // head..tail hold items.
    tail: usize,
}

impl<T> Fifo<T> {
    /// Creates an empty queue for `capacity` items, at most 2^31.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.min(1 << 31);
        let cells = Box::new_uninit_slice(capacity.next_power_of_two());
        Self { cells, capacity, head: 0, tail: 0 }
    }

    /// Creates an empty queue for `capacity` items, at most 2^31.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn try_new(capacity: usize) -> Result<Self, TryReserveError> {
        let capacity = capacity.min(1 << 31);
        let mut cells = Vec::new();
        cells.try_reserve_exact(capacity.next_power_of_two())?;
        // SAFETY: the vector has room for these cells, and a `MaybeUninit` needs no value.
        unsafe { cells.set_len(capacity.next_power_of_two()) };
        Ok(Self { cells: cells.into_boxed_slice(), capacity, head: 0, tail: 0 })
    }

    /// The maximum number of items.
    #[inline]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The number of items.
    #[inline]
    pub const fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    /// Whether the queue is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    /// Whether the next push fails.
    #[inline]
    pub const fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    /// The number of items that still fit.
    #[inline]
    pub const fn room(&self) -> usize {
        self.capacity.saturating_sub(self.len())
    }

    #[inline]
    const fn index(&self, position: usize) -> usize {
        position & (self.cells.len() - 1)
    }

    /// Appends an item. Returns the item if the queue is full.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.is_full() {
            return Err(item);
        }
        let at = self.index(self.tail);
        // The index is always valid. Returning the item here, instead of panicking, means that no unwinding can
        // lose it.
        let Some(cell) = self.cells.get_mut(at) else { return Err(item) };
        cell.write(item);
        self.tail = self.tail.wrapping_add(1);
        Ok(())
    }

    /// Inserts an item before the oldest one. Returns the item if the queue is full.
    #[inline]
    pub fn push_front(&mut self, item: T) -> Result<(), T> {
        if self.is_full() {
            return Err(item);
        }
        self.head = self.head.wrapping_sub(1);
        let at = self.index(self.head);
        self.cells[at].write(item);
        Ok(())
    }

    /// Removes the oldest item.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let at = self.index(self.head);
        self.head = self.head.wrapping_add(1);
        // SAFETY: position `head` held an item by the invariant. `head` has moved past it, so the item is never
        // read again.
        Some(unsafe { self.cells[at].assume_init_read() })
    }

    /// Removes the newest item.
    #[inline]
    pub fn pop_back(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.tail = self.tail.wrapping_sub(1);
        let at = self.index(self.tail);
        // SAFETY: by the invariant, the position that is now `tail` held the newest item. This position is no longer in
        // head..tail, so the item is never read again.
        Some(unsafe { self.cells[at].assume_init_read() })
    }

    /// The oldest item.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        // SAFETY: a queue that is not empty holds an item at `head` by the invariant.
        (!self.is_empty()).then(|| unsafe { self.cells[self.index(self.head)].assume_init_ref() })
    }

    /// Moves items from the front of `items` into the queue, in order, while there is room. Returns the number
    /// moved; the rest stays in `items`.
    #[inline]
    pub fn extend_from(&mut self, items: &mut Vec<T>) -> usize {
        let (count, rest) = (items.len().min(self.room()), items.len() - items.len().min(self.room()));
        let at = self.index(self.tail);
        let first = count.min(self.cells.len() - at);
        // SAFETY: by the invariant, the `count <= capacity - len` cells from `tail` on are free. The first `first` of
        // these cells reach at most to the end of the box. The remaining ones start at the beginning of the box and do
        // not fill it. The cells are not in the allocation of `items`, which holds `count + rest` items. The first
        // `count` items are moved out, the other items move down over them, and the length is set to `rest` before
        // anything could drop the moved items.
        unsafe {
            let from = items.as_mut_ptr();
            let to = self.cells.as_mut_ptr().cast::<T>();
            to.add(at).copy_from_nonoverlapping(from, first);
            to.copy_from_nonoverlapping(from.add(first), count - first);
            from.copy_from(from.add(count), rest);
            items.set_len(rest);
        }
        self.tail = self.tail.wrapping_add(count);
        count
    }

    /// Removes up to `max` of the oldest items and appends them to `items`. Returns the number of items
    /// removed.
    #[inline]
    pub fn drain_into(&mut self, max: usize, items: &mut Vec<T>) -> usize {
        let count = self.len().min(max);
        items.reserve(count);
        let at = self.index(self.head);
        let first = count.min(self.cells.len() - at);
        // SAFETY: by the invariant, the `count <= len` cells from `head` on hold items. The first `first` of these
        // cells reach at most to the end of the box, and the remaining ones start at the beginning of the box. `items`
        // has room for `count` more items, in another allocation. `head` moves past the cells, so they are not read
        // again.
        unsafe {
            let to = items.as_mut_ptr().add(items.len());
            let from = self.cells.as_ptr().cast::<T>();
            to.copy_from_nonoverlapping(from.add(at), first);
            to.add(first).copy_from_nonoverlapping(from, count - first);
            items.set_len(items.len() + count);
        }
        self.head = self.head.wrapping_add(count);
        count
    }

    /// Changes the capacity. The oldest items stay; items that no longer fit are returned, oldest first.
    ///
    /// # Errors
    /// When there is not enough memory; in that case, the queue is unchanged.
    pub fn try_resize(&mut self, capacity: usize) -> Result<Vec<T>, TryReserveError> {
        let mut new = Self::try_new(capacity)?;
        let mut items = Vec::new();
        items.try_reserve_exact(self.len())?;
        self.drain_into(usize::MAX, &mut items);
        new.extend_from(&mut items);
        *self = new;
        Ok(items)
    }

    /// Drops all items.
    pub fn clear(&mut self) {
        while self.pop().is_some() {}
    }

    /// The items, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        // SAFETY: by the invariant the cells of positions head..tail hold items.
        (0..self.len())
            .map(|i| unsafe { self.cells[self.index(self.head.wrapping_add(i))].assume_init_ref() })
    }
}

impl<T> Drop for Fifo<T> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<T> std::fmt::Debug for Fifo<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fifo").field("len", &self.len()).field("capacity", &self.capacity).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::rc::Rc;

    use super::*;

    /// The pseudo-random generator xorshift64*.
    fn random(seed: &mut u64) -> usize {
        *seed ^= *seed >> 12;
        *seed ^= *seed << 25;
        *seed ^= *seed >> 27;
        (seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize
    }

    #[test]
    fn behaves_like_a_deque() {
        for capacity in [0, 1, 2, 3, 7, 8, 100] {
            let mut seed = 7 + capacity as u64;
            let mut fifo = Fifo::new(capacity);
            // Start close to the point where positions wrap around.
            (fifo.head, fifo.tail) = (usize::MAX - 5, usize::MAX - 5);
            let mut model: VecDeque<Rc<usize>> = VecDeque::new();
            let mut capacity = capacity;
            for step in 0..3000 {
                let n = random(&mut seed) % 12;
                match random(&mut seed) % 9 {
                    0 | 1 => {
                        let pushed = fifo.push(Rc::new(step));
                        assert_eq!(pushed.is_ok(), model.len() < capacity);
                        if pushed.is_ok() {
                            model.push_back(Rc::new(step));
                        }
                    }
                    2 => assert_eq!(fifo.pop(), model.pop_front()),
                    3 | 4 => {
                        let mut items: Vec<_> = (0..n).map(|i| Rc::new(step * 100 + i)).collect();
                        let taken = n.min(capacity - model.len());
                        model.extend(items.iter().take(taken).cloned());
                        let rest = items[taken..].to_vec();
                        assert_eq!(fifo.extend_from(&mut items), taken);
                        assert_eq!(items, rest);
                    }
                    5 | 6 => {
                        let mut items = vec![Rc::new(0)];
                        assert_eq!(fifo.drain_into(n, &mut items), n.min(model.len()));
                        let want: Vec<_> = model.drain(..n.min(model.len())).collect();
                        assert_eq!(items[1..], want);
                    }
                    7 => {
                        if n.is_multiple_of(2) {
                            assert_eq!(fifo.pop_back(), model.pop_back());
                        } else {
                            assert_eq!(fifo.push_front(Rc::new(step)).is_ok(), model.len() < capacity);
                            if model.len() < capacity {
                                model.push_front(Rc::new(step));
                            }
                        }
                    }
                    _ if step % 50 == 0 => {
                        capacity = random(&mut seed) % 20;
                        let rest = Vec::from(model.split_off(capacity.min(model.len())));
                        assert_eq!(fifo.try_resize(capacity), Ok(rest));
                    }
                    _ => {}
                }
                assert_eq!((fifo.len(), fifo.capacity()), (model.len(), capacity));
                assert_eq!((fifo.is_empty(), fifo.is_full()), (model.is_empty(), model.len() >= capacity));
                assert_eq!((fifo.front(), fifo.room()), (model.front(), capacity - model.len()));
                assert!(fifo.iter().eq(&model));
            }
        }
    }

    #[test]
    fn a_capacity_beyond_memory_is_an_error() {
        // More than any address space holds: 2^31 items of a terabyte each.
        assert!(Fifo::<[u8; 1 << 40]>::try_new(usize::MAX).is_err());
    }

    #[test]
    fn drops_each_item_once() {
        let item = Rc::new(());
        let mut fifo = Fifo::new(5);
        let mut items = vec![item.clone(); 7];
        assert_eq!(fifo.extend_from(&mut items), 5);
        assert_eq!(Rc::strong_count(&item), 8);
        drop(items);
        assert_eq!(Rc::strong_count(&item), 6);
        assert_eq!(fifo.try_resize(3).map(|rest| rest.len()), Ok(2));
        assert_eq!(Rc::strong_count(&item), 4);
        drop(fifo.pop());
        assert_eq!(Rc::strong_count(&item), 3);
        drop(fifo);
        assert_eq!(Rc::strong_count(&item), 1);
    }

    #[test]
    fn holds_items_without_size() {
        let mut fifo = Fifo::new(3);
        assert_eq!(fifo.extend_from(&mut vec![(); 5]), 3);
        assert_eq!((fifo.pop(), fifo.len()), (Some(()), 2));
    }
}
