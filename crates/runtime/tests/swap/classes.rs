// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes for tests of hot swaps. They notice lost, duplicate and reordered packets, make steps of a swap
//! fail, or wait.

use castanet_classes::Registry;
use castanet_element::prelude::*;
use castanet_element::{action, element};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// Consumes numbered packets. The packets of each source must come in order, complete, and once.
#[derive(Class)]
#[class(name = "Track", ports = "1/0", processing = "h/a", packets = "any/", workers = exclusive, lifecycle, handlers)]
#[class(takes_state = "the next number of each source", drops(Consumed), ends(Consumed))]
pub struct Track {
    /// Packets taken in.
    #[count(unit = "packets")]
    count: Count,
    /// Packets whose number was not the next one expected from their source.
    #[count(unit = "packets")]
    wrong: Count,
    next: BTreeMap<u8, u32>,
}

impl Element for Track {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            let next = self.next.entry(p.anno_u8(18)).or_default();
            if p.anno_u32(36) != *next {
                self.wrong.add(1);
            }
            *next = p.anno_u32(36) + 1;
            self.count.add(1);
            cx.drop(p, Reason::Consumed);
        }
    }
}

#[handlers]
impl Track {
    /// The next number of each source.
    #[read]
    fn next(&self) -> String {
        format!("{:?}", self.next)
    }
}

impl Lifecycle for Track {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        std::mem::swap(&mut self.next, &mut old.next);
        Ok(())
    }
}

/// The number of open doors.
pub static OPEN: AtomicU32 = AtomicU32::new(0);

/// Opens a resource outside the router (a door) that can be open only once; FAULT makes a step of the swap fail.
#[derive(Class)]
#[class(name = "Door", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, lifecycle, handlers, build)]
#[class(takes_state = "nothing but its mood")]
pub struct Door {
    args: DoorArgs,
    opened: Option<String>,
    me: String,
}

/// Arguments of Door.
#[derive(Args)]
pub struct DoorArgs {
    /// The key of the door.
    key: String,
    /// Names the step of the swap that fails; empty if none.
    #[arg(default = String::new())]
    fault: String,
}

impl Build for Door {
    fn build(args: DoorArgs, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Door { args, opened: None, me: cx.name.to_string() })
    }
}

impl Element for Door {}

#[handlers]
impl Door {
    /// The name of the element that opened the door.
    #[read]
    fn opened(&self) -> Option<String> {
        self.opened.clone()
    }
}

impl Lifecycle for Door {
    fn holds(&self) -> Option<String> {
        Some(self.args.key.clone())
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if self.args.fault == "stuck" {
            return Err("the door is stuck".into());
        }
        if !cx.inherits() {
            OPEN.fetch_add(1, Ordering::SeqCst);
            self.opened = Some(self.me.clone());
        }
        Ok(())
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        if self.opened.take().is_some() {
            OPEN.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    }
    fn take_over(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.opened = old.opened.take();
        if self.args.fault == "jammed" { Err("jammed half way".into()) } else { Ok(()) }
    }
    fn take_state(&mut self, _: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        match self.args.fault.as_str() {
            "moody" => Err("it is in no mood".into()),
            "broken" => panic!("the hinge broke"),
            _ => Ok(()),
        }
    }
}

/// The number of packets that have passed gates, by the keys of the gates.
pub static PASSED: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
/// The functions that gates call when they are cleaned up or take state, by the keys of the gates.
pub static CALLS: Mutex<BTreeMap<String, Call>> = Mutex::new(BTreeMap::new());
type Call = Box<dyn FnOnce() + Send>;

/// Counts packets in a static variable, which swaps do not change. Tests choose a function that it calls during
/// a swap.
#[derive(Class)]
#[class(name = "Gate", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, lifecycle)]
#[class(takes_state = "nothing")]
pub struct Gate {
    args: GateArgs,
}

/// Arguments of Gate.
#[derive(Args)]
pub struct GateArgs {
    /// The key under which it counts.
    key: String,
    /// Cleanup waits until this number of packets have passed the gates with this key.
    #[arg(keyword, default = 0)]
    wait: u64,
}

impl Gate {
    fn call(&self, when: &str) {
        let call = CALLS.lock().remove(&format!("{} {when}", self.args.key));
        if let Some(call) = call {
            call();
        }
    }
}

impl Action for Gate {
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        *PASSED.lock().entry(self.args.key.clone()).or_default() += 1;
        Verdict::Next
    }
}

impl Lifecycle for Gate {
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.call("cleanup");
        if self.args.wait > 0 {
            PASSED.lock().insert(self.args.key.clone(), 0);
        }
        while PASSED.lock().get(&self.args.key).is_some_and(|n| *n < self.args.wait) {
            std::thread::yield_now();
        }
        Ok(())
    }
    fn take_state(&mut self, _: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.call("state");
        Ok(())
    }
}

/// Reads a handler in each of its turns.
#[derive(Class)]
#[class(name = "Insist", ports = "0/1", processing = "a/h", packets = "/any", workers = exclusive, task)]
#[class(effects(calls))]
pub struct Insist {
    args: InsistArgs,
}

/// The number of answers that it got.
pub static ANSWERS: AtomicU32 = AtomicU32::new(0);

/// Arguments of Insist.
#[derive(Args)]
pub struct InsistArgs {
    /// The handler to read.
    handler: HandlerRef,
}

impl Element for Insist {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let element = self.args.handler.element.and_then(|e| u32::try_from(e).ok());
        if cx.read_handler(element, &self.args.handler.handler, "").is_ok() {
            ANSWERS.fetch_add(1, Ordering::SeqCst);
        }
        Turn::Again
    }
}

/// At cleanup, counts packets that the kernel dropped before the element could read them.
#[derive(Class)]
#[class(name = "Deaf", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, lifecycle, ledger(enters))]
pub struct Deaf {}

impl Element for Deaf {}

impl Lifecycle for Deaf {
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        cx.missed(3);
        Ok(())
    }
}

pub fn more(r: &mut Registry) {
    r.add(element::<Track>());
    r.add(element::<Door>());
    r.add(action::<Gate>());
    r.add(element::<Insist>());
    r.add(element::<Deaf>());
}
