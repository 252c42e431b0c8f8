// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fake router with the elements and handlers that a test needs. It records writes.

use castanet_element::remote::{Listener, Remote};
use castanet_element::spec::Origin;
use castanet_element::{CallError, Missing};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// The handlers of every element, and the global ones.
const LOCAL: &str = "handlers\tr.\nname\tr.\nvalue\trw\nexact\trw%\nreset\tw\nlong\tr\nslow\tr\nno\trw\n";
const GLOBAL: &str = "handlers\tr.\nlist\tr\nstop\tw\nvalue\tr\n";

#[derive(Default)]
pub struct Fake {
    elements: Mutex<Vec<String>>,
    known: Mutex<BTreeSet<String>>,
    values: Mutex<BTreeMap<String, String>>,
    swaps: AtomicU64,
    ended: AtomicBool,
    /// Every write: the full name of the handler, and the text.
    pub written: Mutex<Vec<(String, String)>>,
    /// Whether `slow` may return, and the number of threads waiting in it.
    gate: Mutex<(bool, usize)>,
    changed: Condvar,
}

fn full(element: Option<&str>, handler: &str) -> String {
    element.map_or(handler.to_string(), |e| format!("{e}.{handler}"))
}

impl Fake {
    pub fn new(elements: &[&str]) -> Arc<Fake> {
        let fake = Fake::default();
        fake.configure(&mut fake.elements.lock(), elements.iter().map(ToString::to_string).collect());
        Arc::new(fake)
    }
    /// Switches to another configuration.
    pub fn swap(&self, elements: Vec<String>) {
        // As in a real router, a reader that sees the new swap count also sees the new elements.
        let mut now = self.elements.lock();
        self.swaps.fetch_add(1, Ordering::SeqCst);
        self.configure(&mut now, elements);
    }
    fn configure(&self, now: &mut Vec<String>, elements: Vec<String>) {
        *self.known.lock() = elements.iter().cloned().collect();
        *now = elements;
    }
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }
    /// Lets `slow` return.
    pub fn open_gate(&self) {
        self.gate.lock().0 = true;
        self.changed.notify_all();
    }
    /// Waits until `waiting` threads are in `slow`.
    pub fn wait_for(&self, waiting: usize) {
        let mut gate = self.gate.lock();
        while gate.1 < waiting {
            self.changed.wait(&mut gate);
        }
    }
    /// The number of writes since the last [`Fake::take`].
    pub fn written(&self) -> usize {
        self.written.lock().len()
    }
    /// Removes and returns the writes recorded so far.
    pub fn take(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *self.written.lock())
    }
    fn check(&self, element: Option<&str>) -> Result<(), CallError> {
        if self.has_ended() {
            return Err(CallError::Missing(Missing::Router));
        }
        let known = element.is_none_or(|e| self.known.lock().contains(e));
        if known { Ok(()) } else { Err(Missing::Element(format!("{element:?}")).into()) }
    }
}

impl Remote for Fake {
    fn elements(&self) -> Vec<String> {
        self.elements.lock().clone()
    }
    fn read(&self, element: Option<&str>, handler: &str, _: &str) -> Result<String, CallError> {
        self.check(element)?;
        let name = full(element, handler);
        Ok(match handler {
            "handlers" => if element.is_some() { LOCAL } else { GLOBAL }.into(),
            "name" => element.unwrap_or_default().into(),
            "list" => self.elements.lock().join("\n"),
            "long" => format!("{name} ").repeat(100_000),
            "no" => return Err(CallError::Refused("not without parameters".into())),
            "slow" => {
                let mut gate = self.gate.lock();
                gate.1 += 1;
                self.changed.notify_all();
                while !gate.0 && !self.has_ended() {
                    self.changed.wait(&mut gate);
                }
                "at last".into()
            }
            _ => self.values.lock().get(&name).cloned().unwrap_or(format!("first of {name}")),
        })
    }
    fn write(
        &self,
        _: Origin,
        element: Option<&str>,
        handler: &str,
        value: &str,
    ) -> Result<String, CallError> {
        self.check(element)?;
        if handler == "no" {
            return Err(CallError::Refused("no means no".into()));
        }
        let name = full(element, handler);
        self.written.lock().push((name.clone(), value.to_string()));
        self.values.lock().insert(name, value.to_string());
        Ok(String::new())
    }
    fn swaps(&self) -> u64 {
        self.swaps.load(Ordering::SeqCst)
    }
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
    fn listen(&self, _: &str, _: Weak<dyn Listener>) {}
}
