// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cleans up and frees configurations that hot swaps have replaced. This runs on a thread of its own, one configuration
//! after the other, so that packets need not wait for it.

use std::sync::mpsc::{Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

type Work<'scope> = Box<dyn FnOnce() + Send + 'scope>;

/// The thread that cleans up after hot swaps. It starts at the first swap.
pub(crate) struct Cleaner<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    thread: Option<(Sender<Work<'scope>>, ScopedJoinHandle<'scope, ()>)>,
}

impl<'scope, 'env> Cleaner<'scope, 'env> {
    pub fn new(scope: &'scope Scope<'scope, 'env>) -> Cleaner<'scope, 'env> {
        Cleaner { scope, thread: None }
    }
    /// Queues `work` for the thread, which does all work in order.
    pub fn retire(&mut self, work: impl FnOnce() + Send + 'scope) {
        if self.thread.is_none() {
            let (sender, todo) = channel::<Work<'scope>>();
            let run = move || {
                for work in todo {
                    work();
                }
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
        // The thread could not be started, or it has ended. Do the work here, although packets wait meanwhile.
        work();
    }
    /// Waits until all queued work is done.
    pub fn finish(self) {
        if let Some((sender, thread)) = self.thread {
            drop(sender);
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
