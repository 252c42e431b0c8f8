// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swap: the connections of an engine move to another one.

use super::Engine;
use super::stream::Done;
use std::mem::swap;

impl Engine {
    /// Takes over the connections of the engine that this one replaces, and the listeners that handlers have added to it.
    /// Connections keep their application if one of the same name is there; the others are reset, and so are those from an
    /// address that is gone. The settings, the applications and the other listeners are those of this engine.
    pub fn take_over(&mut self, old: &mut Engine, now: i64) {
        swap(self, old);
        swap(&mut self.host.settings, &mut old.host.settings);
        swap(&mut self.listeners, &mut old.listeners);
        swap(&mut self.applications, &mut old.applications);
        swap(&mut self.counts, &mut old.counts);
        self.host.memory.set_limit(self.host.settings.memory);

        let moved: Vec<Option<usize>> = old.applications.iter().map(|a| self.application(&a.name)).collect();
        let moved = |application: usize| moved.get(application).copied().flatten();
        let added = old.listeners.iter().filter(|(_, l)| l.added).map(|(p, l)| (*p, *l)).collect::<Vec<_>>();
        for (port, mut listener) in added {
            if let Some(application) = moved(listener.application) {
                listener.application = application;
                self.listeners.entry(port).or_insert(listener);
            }
        }
        self.host.set_now(now);
        for tcb in self.connections.tcbs() {
            let addresses = &self.host.settings.addresses;
            let Some(c) = self.connections.get(tcb) else { continue };
            let to = moved(c.application).filter(|_| addresses.contains(c.flow.local.ip()));
            (c.application, c.stirred) = (to.unwrap_or(0), true);
            self.wake(tcb);
            if to.is_none() {
                self.carry_out(tcb, Done { abort: true, ..Done::default() });
            }
            self.settle(tcb);
        }
    }
    /// The index of the application with this name.
    pub fn application(&self, name: &str) -> Option<usize> {
        self.applications.iter().position(|a| a.name == name)
    }
}
