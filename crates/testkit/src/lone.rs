// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes for tests of several workers. Each class allows one instance only. Together they cover what a locked
//! element may do: process, push and pull packets, set timers, have a task, and call handlers.

use castanet_classes::Registry;
use castanet_element::prelude::*;
use castanet_element::{action, element};

pub fn add_to(r: &mut Registry) {
    for def in [
        action::<Lone>(),
        element::<LonePush>(),
        element::<LonePull>(),
        element::<LoneTimer>(),
        element::<LoneTask>(),
        element::<LoneAsk>(),
    ] {
        r.add(def);
    }
}

/// Panics if time runs backwards for an element. `last` is the time of the previous call.
fn check_time(last: &mut i64, cx: &mut Cx<'_>) {
    let recent = cx.recent();
    assert!(recent >= *last, "time runs backwards, by {} ns", *last - recent);
    *last = recent;
}

/// An action that counts packets.
#[derive(Class)]
#[class(name = "Lone", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive)]
pub struct Lone {
    /// Packets that went through.
    #[count(unit = "packets")]
    count: Count,
    time: i64,
}

impl Action for Lone {
    fn action(&mut self, _: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.count.add(1);
        check_time(&mut self.time, cx);
        Verdict::Next
    }
}

/// An element that packets are pushed through.
#[derive(Class)]
#[class(name = "LonePush", ports = "1/1", processing = "h/h", packets = "any/same", workers = exclusive)]
pub struct LonePush {
    /// Packets that went through.
    #[count(unit = "packets")]
    count: Count,
    time: i64,
}

impl Element for LonePush {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        check_time(&mut self.time, cx);
        cx.forward(0, batch);
    }
}

/// An element that packets are pulled through.
#[derive(Class)]
#[class(name = "LonePull", ports = "1/1", processing = "l/l", packets = "any/same", workers = exclusive)]
pub struct LonePull {
    /// Packets that went through.
    #[count(unit = "packets")]
    count: Count,
    time: i64,
}

impl Element for LonePull {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        check_time(&mut self.time, cx);
        let before = into.len();
        cx.pull(0, max, into);
        self.count.add((into.len() - before) as u64);
    }
}

/// Holds packets until a timer expires.
#[derive(Class)]
#[class(name = "LoneTimer", ports = "1/1", processing = "h/h", packets = "any/same", workers = exclusive)]
#[class(lifecycle, ledger(holds))]
pub struct LoneTimer {
    /// Packets that went through.
    #[count(unit = "packets")]
    count: Count,
    held: Batch,
}

impl Element for LoneTimer {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        self.held.append(batch);
        if cx.timer(1).is_none() {
            let at = cx.now() + 200_000;
            cx.set_timer(1, at);
        }
    }
    fn timer(&mut self, id: u16, cx: &mut Cx<'_>) {
        assert_eq!(id, 1);
        cx.forward(0, &mut self.held);
    }
}

impl Lifecycle for LoneTimer {
    fn held(&self) -> u64 {
        self.held.len() as u64
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.held = std::mem::take(&mut old.held);
        if !self.held.is_empty() {
            let at = cx.now();
            cx.set_timer(1, at);
        }
        Ok(())
    }
}

/// Holds packets until its task runs.
#[derive(Class)]
#[class(name = "LoneTask", ports = "1/1", processing = "h/h", flow = "x/y", packets = "any/same", workers = exclusive)]
#[class(lifecycle, task, ledger(holds))]
pub struct LoneTask {
    /// Packets that went through.
    #[count(unit = "packets")]
    count: Count,
    held: Batch,
}

impl Element for LoneTask {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        self.held.append(batch);
        cx.schedule();
    }
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        cx.forward(0, &mut self.held);
        Turn::Sleep
    }
}

impl Lifecycle for LoneTask {
    fn held(&self) -> u64 {
        self.held.len() as u64
    }
}

/// Reads a handler before it passes packets on.
#[derive(Class)]
#[class(name = "LoneAsk", ports = "1/1", processing = "h/h", packets = "any/same", workers = exclusive)]
#[class(effects(calls))]
pub struct LoneAsk {
    args: LoneAskArgs,
    /// Packets that went through.
    #[count(unit = "packets")]
    count: Count,
    time: i64,
}

/// Arguments of LoneAsk.
#[derive(Args)]
pub struct LoneAskArgs {
    /// The handler to read.
    handler: HandlerRef,
}

impl Element for LoneAsk {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        check_time(&mut self.time, cx);
        let element = self.args.handler.element.and_then(|e| u32::try_from(e).ok());
        match cx.read_handler(element, &self.args.handler.handler, "") {
            // `Busy` is not a failure: the element may be running, on this worker or on another one.
            Ok(_) | Err(CallError::Busy(_)) => {}
            Err(e) => panic!("{e}"),
        }
        cx.forward(0, batch);
    }
}
