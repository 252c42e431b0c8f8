// SPDX-License-Identifier: MIT OR Apache-2.0
//! Things of which this process has only one for each device or queue, because the kernel does.

use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// The things that are in use.
pub(super) struct Registry<T>(Mutex<Vec<Weak<T>>>);

impl<T> Registry<T> {
    pub const fn new() -> Registry<T> {
        Registry(Mutex::new(Vec::new()))
    }

    /// Returns the thing that `is` accepts, if it is in use.
    pub fn find(&self, is: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        self.0.lock().iter().filter_map(Weak::upgrade).find(|t| is(t))
    }

    /// Returns the thing that `is` accepts, or makes it if there is none.
    pub fn get<E>(&self, is: impl Fn(&T) -> bool, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let mut all = self.0.lock();
        all.retain(|t| t.strong_count() > 0);
        if let Some(found) = all.iter().filter_map(Weak::upgrade).find(|t| is(t)) {
            return Ok(found);
        }
        let made = Arc::new(make()?);
        all.push(Arc::downgrade(&made));
        Ok(made)
    }
}
