// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches of descriptors. An element waits for a socket or device until it can read from it or write to it.
//!
//! An element requests a [`Watch`] once, and calls [`wait`](Watches::wait) each time it cannot read or write. When the
//! descriptor is ready, the element's task is scheduled once. To be woken again, the element calls `wait` again. The
//! run loop passes the changes in [`Watches::changes`] to the kernel (epoll), and reports ready descriptors with
//! [`Watches::ready`].

use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The event that a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// The descriptor is readable: there is data, or the peer has closed the connection.
    Read,
    /// The descriptor is writable: its buffer has free space.
    Write,
}

/// The identifier that an element has for one of its watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    slot: u32,
    /// How many earlier watches had the same index in [`Watches`]. Distinguishes this watch from them.
    turn: u32,
}

#[derive(Debug, Default)]
struct Slot {
    turn: u32,
    used: Option<(u32, Arc<OwnedFd>, Interest)>,
    waiting: bool,
}

/// A change that the run loop must pass to the kernel.
#[derive(Debug)]
pub enum Change {
    /// Report once when the descriptor is ready. The fields are the key of the watch, the descriptor, and the event to
    /// wait for.
    Wait(u64, Arc<OwnedFd>, Interest),
    /// Stop watching the descriptor. The fields are the key of the watch and the descriptor.
    Forget(u64, Arc<OwnedFd>),
}

/// The watches of one worker.
#[derive(Debug, Default)]
pub struct Watches {
    slots: Vec<Slot>,
    free: Vec<u32>,
    changes: Vec<Change>,
    waiting: usize,
}

impl Watch {
    fn key(self) -> u64 {
        u64::from(self.turn) << 32 | u64::from(self.slot)
    }
}

impl Watches {
    /// Adds a watch of a descriptor for an element, without waiting for it yet.
    pub fn add(&mut self, element: u32, fd: Arc<OwnedFd>, interest: Interest) -> Watch {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let turn = self.slots.get_mut(slot as usize).map_or(0, |s| {
            s.used = Some((element, fd, interest));
            s.turn
        });
        Watch { slot, turn }
    }
    /// Returns the `Slot` of the watch with this key. None if the watch has ended.
    fn slot(&mut self, key: u64) -> Option<&mut Slot> {
        let slot = self.slots.get_mut((key & 0xffff_ffff) as usize)?;
        (u64::from(slot.turn) == key >> 32).then_some(slot)
    }
    /// Starts waiting for the descriptor of a watch, unless the watch is waiting already.
    pub fn wait(&mut self, watch: Watch) {
        let key = watch.key();
        let Some(slot) = self.slot(key).filter(|s| !s.waiting) else { return };
        let Some((_, fd, interest)) = &slot.used else { return };
        let change = Change::Wait(key, fd.clone(), *interest);
        slot.waiting = true;
        self.waiting += 1;
        self.changes.push(change);
    }
    /// Ends a watch.
    pub fn remove(&mut self, watch: Watch) {
        let Some(slot) = self.slot(watch.key()) else { return };
        let Some((_, fd, _)) = slot.used.take() else { return };
        let waited = std::mem::take(&mut slot.waiting);
        slot.turn = slot.turn.wrapping_add(1);
        self.waiting -= usize::from(waited);
        self.free.push(watch.slot);
        self.changes.push(Change::Forget(watch.key(), fd));
    }
    /// Whether there are changes that must be passed to the kernel.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }
    /// Whether a watch is waiting for its descriptor.
    pub fn waits(&self, watch: Watch) -> bool {
        self.slots.get(watch.slot as usize).is_some_and(|s| s.turn == watch.turn && s.waiting)
    }
    /// Takes the changes that must be passed to the kernel, in order.
    pub fn changes(&mut self) -> std::vec::Drain<'_, Change> {
        self.changes.drain(..)
    }
    /// Whether any watch is waiting for its descriptor.
    #[inline]
    pub fn any(&self) -> bool {
        self.waiting > 0
    }
    /// Reports that the descriptor of the watch with this key is ready. Returns the element whose task must be woken.
    /// None if the watch was not waiting.
    pub fn ready(&mut self, key: u64) -> Option<u32> {
        let slot = self.slot(key).filter(|s| s.waiting)?;
        slot.waiting = false;
        let element = slot.used.as_ref().map(|u| u.0);
        self.waiting -= 1;
        element
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn descriptor() -> Arc<OwnedFd> {
        Arc::new(std::fs::File::open("/dev/null").unwrap().into())
    }

    #[test]
    fn a_wait_is_answered_once() {
        let mut w = Watches::default();
        let (a, b) = (w.add(7, descriptor(), Interest::Read), w.add(8, descriptor(), Interest::Write));
        w.wait(a);
        w.wait(a);
        w.wait(b);
        let keys: Vec<u64> = w
            .changes()
            .map(|c| match c {
                Change::Wait(key, ..) | Change::Forget(key, _) => key,
            })
            .collect();
        assert_eq!(keys.len(), 2);
        assert!(w.any());
        assert_eq!((w.ready(keys[0]), w.ready(keys[0]), w.ready(keys[1])), (Some(7), None, Some(8)));
        assert!(!w.any());
    }

    #[test]
    fn news_of_a_watch_that_ended_reach_nobody() {
        let mut w = Watches::default();
        let a = w.add(7, descriptor(), Interest::Read);
        w.wait(a);
        w.remove(a);
        w.remove(a);
        let b = w.add(9, descriptor(), Interest::Read);
        w.wait(a);
        assert!(!w.any() && b.slot == a.slot);
        w.wait(b);
        let changes: Vec<Change> = w.changes().collect();
        assert!(matches!(changes[..], [Change::Wait(..), Change::Forget(..), Change::Wait(..)]));
        assert_eq!((w.ready(a.key()), w.ready(b.key())), (None, Some(9)));
    }
}
