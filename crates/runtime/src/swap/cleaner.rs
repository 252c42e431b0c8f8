// SPDX-License-Identifier: MIT OR Apache-2.0
//! What need not be done while packets wait: routers that gave way are cleaned up and freed, one after the other.

use crate::router::Drops;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

type Work<'scope> = Box<dyn FnOnce() -> Drops + Send + 'scope>;

/// The thread that cleans up after hot swaps; it starts with the first of them.
pub(crate) struct Cleaner<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    thread: Option<(Sender<Work<'scope>>, ScopedJoinHandle<'scope, Drops>)>,
    /// What work dropped that was done here.
    drops: Drops,
}

fn add(to: &mut Drops, more: Drops) {
    for (key, n) in more {
        *to.entry(key).or_insert(0) += n;
    }
}

impl<'scope, 'env> Cleaner<'scope, 'env> {
    pub fn new(scope: &'scope Scope<'scope, 'env>) -> Cleaner<'scope, 'env> {
        Cleaner { scope, thread: None, drops: Drops::new() }
    }
    /// Does work after that which was given before; its result are the packets that it dropped.
    pub fn retire(&mut self, work: impl FnOnce() -> Drops + Send + 'scope) {
        if self.thread.is_none() {
            let (sender, todo) = channel::<Work<'scope>>();
            let run = move || {
                let mut drops = Drops::new();
                for work in todo {
                    add(&mut drops, work());
                }
                drops
            };
            let named = std::thread::Builder::new().name("swapped".into());
            self.thread = named.spawn_scoped(self.scope, run).ok().map(|thread| (sender, thread));
        }
        let mut work: Work<'scope> = Box::new(work);
        if let Some((sender, _)) = &self.thread {
            match sender.send(work) {
                Ok(()) => return,
                Err(back) => work = back.0,
            }
        }
        // Without a thread packets wait for it.
        add(&mut self.drops, work());
    }
    /// Waits until all work is done; the packets that it dropped.
    pub fn finish(self) -> Drops {
        let mut drops = self.drops;
        if let Some((sender, thread)) = self.thread {
            drop(sender);
            match thread.join() {
                Ok(more) => add(&mut drops, more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        drops
    }
}
