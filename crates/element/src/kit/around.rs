// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replacements for the graph, the driver and the neighbours of the single element in a test kit.

use crate::build::Wiring;
use crate::call_error::{CallError, Missing};
use crate::gauge::Gauge;
use crate::notify::Note;
use crate::router::{Messages, Router};
use crate::run_loop::Core;
use castanet_packet::{Batch, Packet};
use castanet_spec::Capability;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// The flow-based router context of the single element. Notifier 0 is its empty notifier, and notifier 1 its full
/// notifier. Input `i` has notifier 2 + `i`. Storage 0 is the element, storage 1 the only one downstream, and storage 2
/// the only one upstream.
#[derive(Clone, Default)]
pub(super) struct OneElement {
    pub(super) gauges: [Gauge; 3],
}

impl Wiring for OneElement {
    fn note(&self, _: u32, capability: Capability) -> Option<Note> {
        Some(Note(u32::from(capability == Capability::FullNotifier)))
    }
    fn upstream(&self, _: u32, input: usize, _: Capability) -> (Vec<u32>, bool) {
        (vec![2 + u32::try_from(input).unwrap_or(0)], false)
    }
    fn downstream(&self, _: u32, _: usize, _: Capability) -> (Vec<u32>, bool) {
        (Vec::new(), true)
    }
    fn gauge(&self, element: u32) -> Option<Gauge> {
        self.gauges.get(element as usize).cloned()
    }
    fn storages_upstream(&self, _: u32, _: usize) -> Vec<u32> {
        vec![2]
    }
    fn storages_downstream(&self, _: u32, _: usize) -> Vec<u32> {
        vec![1]
    }
}

/// The messages that the element has shown, and the number of its stop requests to the driver.
#[derive(Default)]
pub(super) struct Outside {
    pub(super) messages: Mutex<Vec<String>>,
    pub(super) stops: Mutex<u32>,
}

impl Messages for Outside {
    fn message(&self, text: &str) {
        self.messages.lock().push(text.to_string());
    }
    fn stop(&self, times: u32) {
        *self.stops.lock() += times;
    }
    fn wake(&self, _: u32, _: u32) {}
}

/// The neighbours of the single element: packets that it can pull, by input (`supply`), values that it can read from
/// handlers (`values`), and the handler calls that it has made (`calls`).
#[derive(Default)]
pub(super) struct Around {
    pub(super) supply: Vec<VecDeque<Packet>>,
    /// The number of packets pulled from `supply`.
    pub(super) pulled: u64,
    pub(super) calls: Vec<(Option<u32>, String, String)>,
    pub(super) values: Vec<(String, String)>,
}

impl Router for Around {
    fn pull(&mut self, _: &mut Core, _: u32, input: usize, max: usize, into: &mut Batch) {
        if let Some(s) = self.supply.get_mut(input) {
            let n = max.min(s.len());
            self.pulled += n as u64;
            into.extend(s.drain(..n));
        }
    }
    fn read(
        &mut self,
        _: &mut Core,
        element: Option<u32>,
        handler: &str,
        text: &str,
    ) -> Result<String, CallError> {
        self.calls.push((element, handler.into(), text.into()));
        let found = self.values.iter().find(|v| v.0 == handler);
        Ok(found.map(|v| v.1.clone()).ok_or_else(|| Missing::Read(handler.to_string()))?)
    }
    fn write(
        &mut self,
        _: &mut Core,
        element: Option<u32>,
        handler: &str,
        text: &str,
    ) -> Result<(), CallError> {
        self.calls.push((element, handler.into(), text.into()));
        Ok(())
    }
    fn has(&self, _: &Core, _: Option<u32>, handler: &str) -> (bool, bool) {
        (self.values.iter().any(|v| v.0 == handler), true)
    }
}
