// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timers in order of expiry.

use std::collections::HashMap;
use std::hash::Hash;

use crate::heap::Heap;

/// Timers that are identified by keys. Each timer is scheduled for at most one time. Timers with equal times
/// expire in the order in which they were scheduled. Every change takes logarithmic time.
#[derive(Clone, Debug)]
pub struct TimerQueue<K> {
    heap: Heap<(i64, u64)>,
    slots: HashMap<K, u32>,
    keys: Vec<Option<K>>,
    free: Vec<u32>,
    scheduled: u64,
}

impl<K> Default for TimerQueue<K> {
    fn default() -> Self {
        Self {
            heap: Heap::default(),
            slots: HashMap::new(),
            keys: Vec::new(),
            free: Vec::new(),
            scheduled: 0,
        }
    }
}

impl<K: Copy + Eq + Hash> TimerQueue<K> {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of timers.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no timer is scheduled.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Schedules a timer for a time in nanoseconds. A timer that is already scheduled moves to the new time,
    /// after other timers with that time.
    pub fn schedule(&mut self, key: K, time: i64) {
        let keys = &mut self.keys;
        let slot = *self.slots.entry(key).or_insert_with(|| match self.free.pop() {
            Some(slot) => {
                keys[slot as usize] = Some(key);
                slot
            }
            None => {
                keys.push(Some(key));
                (keys.len() - 1) as u32
            }
        });
        self.heap.set(slot, (time, self.scheduled));
        self.scheduled += 1;
    }

    /// Unschedules a timer. Returns the time it was scheduled for.
    pub fn cancel(&mut self, key: K) -> Option<i64> {
        let slot = self.slots.remove(&key)?;
        self.release(slot)
    }

    fn release(&mut self, slot: u32) -> Option<i64> {
        self.keys[slot as usize] = None;
        self.free.push(slot);
        self.heap.remove(slot).map(|(time, _)| time)
    }

    /// The time that a timer is scheduled for.
    pub fn time(&self, key: K) -> Option<i64> {
        self.heap.key(*self.slots.get(&key)?).map(|(time, _)| time)
    }

    /// The time of the next expiry.
    #[inline]
    pub fn next_time(&self) -> Option<i64> {
        self.heap.top().map(|((time, _), _)| time)
    }

    /// The next timer to expire and its time.
    pub fn next(&self) -> Option<(i64, K)> {
        let ((time, _), slot) = self.heap.top()?;
        Some((time, (*self.keys.get(slot as usize)?)?))
    }

    /// Removes and returns the next timer if its time is `now` or earlier.
    #[inline]
    pub fn pop_due(&mut self, now: i64) -> Option<(i64, K)> {
        if self.next_time()? > now {
            return None;
        }
        let (time, key) = self.next()?;
        self.cancel(key);
        Some((time, key))
    }

    /// Unschedules all timers.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::{BTreeMap, HashMap};

    use super::*;

    #[test]
    fn same_times_expire_in_schedule_order() {
        let mut queue = TimerQueue::new();
        for key in ["a", "b", "c"] {
            queue.schedule(key, 5);
        }
        queue.schedule("a", 5);
        queue.schedule("d", 4);
        assert_eq!(queue.next(), Some((4, "d")));
        assert_eq!(queue.pop_due(3), None);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_due(5)).collect();
        assert_eq!(order, [(4, "d"), (5, "b"), (5, "c"), (5, "a")]);
        assert!(queue.is_empty() && queue.next().is_none() && queue.pop_due(i64::MAX).is_none());
    }

    #[test]
    fn extreme_times() {
        let mut queue = TimerQueue::new();
        queue.schedule(1, i64::MAX);
        queue.schedule(2, i64::MIN);
        queue.schedule(3, 0);
        assert_eq!(queue.pop_due(i64::MIN), Some((i64::MIN, 2)));
        assert_eq!(queue.time(1), Some(i64::MAX));
        assert_eq!((queue.cancel(1), queue.cancel(1), queue.len()), (Some(i64::MAX), None, 1));
        queue.clear();
        assert_eq!((queue.next_time(), queue.time(3)), (None, None));
    }

    #[test]
    fn a_hundred_thousand_timers_agree_with_a_map() {
        let mut seed = 99_u64;
        let mut random = || {
            seed ^= seed >> 12;
            seed ^= seed << 25;
            seed ^= seed >> 27;
            seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 24
        };
        let mut queue = TimerQueue::new();
        // Maps from (time, order) to key, and back.
        let (mut model, mut keys) = (BTreeMap::new(), HashMap::<u64, (i64, u64)>::new());
        let mut order = 0;
        let mut now = 0;
        for step in 0..220_000_u64 {
            let choice = random() % 16;
            if step < 100_000 || choice < 7 {
                let key = if step < 100_000 { step } else { random() % 100_000 };
                let time = now + (random() % 50_000) as i64;
                if let Some(old) = keys.insert(key, (time, order)) {
                    model.remove(&old);
                }
                model.insert((time, order), key);
                order += 1;
                queue.schedule(key, time);
            } else if choice < 10 {
                let key = random() % 100_000;
                let old = keys.remove(&key);
                old.map(|old| model.remove(&old));
                assert_eq!(queue.cancel(key), old.map(|(time, _)| time));
            } else {
                now += (random() % 2) as i64;
                while let Some((&(time, order), &key)) = model.first_key_value()
                    && time <= now
                {
                    assert_eq!(queue.pop_due(now), Some((time, key)));
                    model.remove(&(time, order));
                    keys.remove(&key);
                }
                assert_eq!(queue.pop_due(now), None);
            }
            assert_eq!(queue.len(), model.len());
            assert_eq!(queue.next(), model.first_key_value().map(|(&(time, _), &key)| (time, key)));
        }
        assert!(queue.len() > 1000);
        while let Some(((time, _), key)) = model.pop_first() {
            assert_eq!(queue.pop_due(i64::MAX), Some((time, key)));
        }
        assert!(queue.is_empty());
    }
}
