// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements of the naive interpreter, and the movement of packets between them.

use crate::global_handlers::{GlobalWrite, requests};
use crate::handlers::own_flags;
use crate::push::{HOPS, ROUNDS};
use crate::shared::Shared;
use crate::tasks::TICKETS;
use castanet_element::run_loop::{Core, Edge, Internals as _, Router};
use castanet_element::{Busy, CallError, Cx, Instance, Messages, Missing, Object, Verdict, handler};
use castanet_graph::{Graph, PortKind};
use castanet_lang::PortRef;
use castanet_packet::{Batch, Packet};
use castanet_spec::{HandlerFlags, Origin, Reason};
use castanet_tables::Stride;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The input that a push output is connected to.
#[derive(Clone, Copy)]
struct Way {
    element: usize,
    input: usize,
    /// Whether the connection closes a cycle.
    back: bool,
}

/// An element, its connections, and its waiting packets.
struct Slot {
    /// The instance. None while the element is running.
    instance: Option<Instance>,
    /// For each output, the packets that the element has emitted there.
    edges: Box<[Edge]>,
    /// For each output, the input that it pushes to. None if the output does not push.
    downstream: Vec<Option<Way>>,
    /// For each input, the element and output that it pulls from. None if the input does not pull.
    upstream: Vec<Option<(usize, usize)>>,
    /// Packets that were pushed to the element while it was running, each with its input.
    parked: Vec<(usize, Packet)>,
    /// Whether packets on outputs with higher numbers move before those on outputs with lower numbers.
    descending: bool,
}

/// All elements of the router, and the packets that wait between them.
pub(super) struct Net {
    slots: Vec<Slot>,
    pub tasks: Stride,
    pub tickets: HashMap<u32, u32>,
    /// How many times packets have crossed a connection that closes a cycle, in this turn.
    pub rounds: u64,
    pub shared: Arc<Shared>,
}

/// Makes the slots of all elements, without instances.
fn slots(graph: &Graph) -> Vec<Slot> {
    let back = graph.back_edges();
    let back: HashSet<PortRef> =
        graph.flat.connections.iter().zip(back).filter(|b| b.1).map(|b| b.0.from).collect();
    let each = (0..graph.len()).map(|e| {
        let way = |port| match graph.downstream(PortRef { element: e, port }) {
            &[to] if graph.output_kind(e, port) == PortKind::Push => {
                let back = back.contains(&PortRef { element: e, port });
                Some(Way { element: to.element, input: to.port, back })
            }
            _ => None,
        };
        let source = |port| match graph.upstream(PortRef { element: e, port }) {
            &[from] if graph.input_kind(e, port) == PortKind::Pull => Some((from.element, from.port)),
            _ => None,
        };
        Slot {
            instance: None,
            edges: (0..graph.outputs(e)).map(|_| Edge::default()).collect(),
            downstream: (0..graph.outputs(e)).map(way).collect(),
            upstream: (0..graph.inputs(e)).map(source).collect(),
            parked: Vec::new(),
            descending: graph.spec(e).is_some_and(|s| s.descending),
        }
    });
    each.collect()
}

impl Net {
    /// The number of packets that an element holds.
    pub fn held(&self, e: usize) -> u64 {
        let instance = self.slots.get(e).and_then(|s| s.instance.as_ref());
        instance.map_or(0, |i| i.common_ref().held())
    }
    /// Returns the number of packets that wait on outputs or for a running element.
    pub fn waiting(&self) -> usize {
        let of = |s: &Slot| s.parked.len() + s.edges.iter().map(|e| e.batch.len()).sum::<usize>();
        self.slots.iter().map(of).sum()
    }
    /// Makes a `Slot` for each element of a router, and puts the instances into these slots.
    pub fn new(shared: Arc<Shared>, instances: impl Iterator<Item = (usize, Instance)>) -> Net {
        let mut slots = slots(&shared.graph);
        for (e, instance) in instances {
            if let Some(s) = slots.get_mut(e) {
                s.instance = Some(instance);
            }
        }
        Net { slots, tasks: Stride::new(), tickets: HashMap::new(), rounds: 0, shared }
    }

    pub fn schedule(&mut self, element: u32) {
        if !self.tasks.contains(element) {
            self.tasks.add(element, self.tickets.get(&element).copied().unwrap_or(TICKETS));
        }
    }

    /// Calls `f` with an element, then makes the handler calls that the element has deferred. The packets that the
    /// element emits stay on its outputs. Returns none if the element is already running.
    pub fn enter<R>(
        &mut self,
        core: &mut Core,
        e: usize,
        reaches_others: bool,
        f: impl FnOnce(&mut Instance, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let out = self.call(core, e, reaches_others, f);
        for (from, call) in core.take_deferred() {
            let element = call.element.and_then(|e| u32::try_from(e).ok());
            // The target of the call is still running, further up the call stack. Make the call after it has returned.
            if element.and_then(|e| self.slots.get(e as usize)).is_some_and(|s| s.instance.is_none()) {
                core.defer(from, call);
                continue;
            }
            let done =
                core.with_origin(call.origin, |core| self.write(core, element, &call.handler, &call.value));
            if let Err(e) = done {
                let who = self.shared.graph.declaration(from as usize);
                core.message(&format!("{who}: {e}"));
            }
        }
        out
    }

    fn call<R>(
        &mut self,
        core: &mut Core,
        e: usize,
        reaches_others: bool,
        f: impl FnOnce(&mut Instance, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let slot = self.slots.get_mut(e)?;
        let mut instance = slot.instance.take()?;
        let mut edges = std::mem::take(&mut slot.edges);
        // An action emits only to side outputs, which begin with output 1. The packet that it passes on takes output 0.
        let first = usize::from(matches!(instance, Instance::Action(_)));
        let side = edges.get_mut(first..).unwrap_or_default();
        let router: Option<&mut dyn Router> = if reaches_others { Some(self) } else { None };
        let out = f(&mut instance, &mut Cx::new(side, core, router, e as u32, first as u32));
        if let Some(slot) = self.slots.get_mut(e) {
            slot.instance = Some(instance);
            slot.edges = edges;
        }
        Some(out)
    }

    /// Calls `f` with an element as an [`Object`](castanet_element::Object), whether it is an action or not.
    pub fn visit<R>(
        &mut self,
        core: &mut Core,
        e: usize,
        f: impl FnOnce(&mut dyn Object, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        self.call(core, e, true, |instance, cx| f(instance.common(), cx))
    }

    /// Moves each packet that an element has emitted until it is stored, sent or dropped. Then delivers the packets
    /// that were pushed to the element while it was running.
    pub fn send(&mut self, core: &mut Core, e: usize) {
        let Some(slot) = self.slots.get_mut(e) else { return };
        let mut out = Vec::new();
        for (port, edge) in slot.edges.iter_mut().enumerate() {
            out.extend(edge.batch.drain().map(|p| (port, p)));
        }
        if slot.descending {
            // The sort is stable, so packets of the same output keep their order.
            out.sort_by_key(|(port, _)| std::cmp::Reverse(*port));
        }
        let parked = std::mem::take(&mut slot.parked);
        for (port, p) in out {
            self.push(core, e, port, p);
        }
        for (input, p) in parked {
            self.arrive(core, e, input, p);
        }
    }

    /// Moves a packet from an output to the input that it pushes to.
    fn push(&mut self, core: &mut Core, from: usize, port: usize, mut p: Packet) {
        let way = self.slots.get(from).and_then(|s| s.downstream.get(port).copied()).flatten();
        let Some(way) = way else { return core.count_drops(from as u32, Reason::NoPort, 1) };
        if way.back {
            self.rounds += 1;
            if p.count_hop() > HOPS || self.rounds > ROUNDS {
                return core.count_drops(from as u32, Reason::PushLoop, 1);
            }
        }
        self.arrive(core, way.element, way.input, p);
    }

    /// Delivers a packet to an input of an element.
    fn arrive(&mut self, core: &mut Core, e: usize, input: usize, p: Packet) {
        let Some(slot) = self.slots.get_mut(e) else { return };
        if slot.instance.is_none() {
            return slot.parked.push((input, p));
        }
        let reaches = matches!(slot.instance, Some(Instance::Element(_)));
        let goes_on = self.enter(core, e, reaches, |instance, cx| take(instance, input, p, cx)).flatten();
        self.send(core, e);
        let mut behind = std::mem::replace(core.behind(), Batch::empty());
        if let Some(p) = goes_on {
            self.push(core, e, 0, p);
        }
        for p in behind.drain() {
            self.push(core, e, 0, p);
        }
    }

    /// Pulls one packet from an output of an element.
    fn pull_one(&mut self, core: &mut Core, e: usize, port: usize) -> Option<Packet> {
        let slot = self.slots.get(e)?;
        let got = match slot.instance.as_ref()? {
            Instance::Action(_) => {
                let (up, up_port) = slot.upstream.first().copied().flatten()?;
                let p = self.pull_one(core, up, up_port)?;
                self.enter(core, e, false, |instance, cx| take(instance, 0, p, cx)).flatten()
            }
            Instance::Element(_) => {
                let mut batch = Batch::new();
                self.enter(core, e, true, |instance, cx| {
                    if let Instance::Element(x) = instance {
                        x.pull(port, 1, &mut batch, cx);
                    }
                });
                batch.pop()
            }
        };
        self.send(core, e);
        got
    }
}

/// Gives a packet to an element. Returns the packet if the element is an action and passes it on by output 0.
fn take(instance: &mut Instance, input: usize, mut p: Packet, cx: &mut Cx<'_>) -> Option<Packet> {
    match instance {
        Instance::Action(a) => match a.action(&mut p, cx) {
            Verdict::Next | Verdict::Several => return Some(p),
            Verdict::Out(port) => cx.emit(port as usize, p),
            Verdict::Drop(reason) => cx.drop(p, reason),
        },
        Instance::Element(x) => {
            let mut batch: Batch = std::iter::once(p).collect();
            x.push(input, &mut batch, cx);
            cx.drop_all(&mut batch, Reason::Discarded);
        }
    }
    None
}

impl Router for Net {
    fn pull(&mut self, core: &mut Core, me: u32, input: usize, max: usize, into: &mut Batch) {
        let up = self.slots.get(me as usize).and_then(|s| s.upstream.get(input).copied()).flatten();
        let Some((up, port)) = up else { return };
        for _ in 0..max.min(Batch::MAX) {
            into.extend(self.pull_one(core, up, port));
        }
    }

    fn read(
        &mut self,
        core: &mut Core,
        element: Option<u32>,
        handler: &str,
        parameters: &str,
    ) -> Result<String, CallError> {
        let missing = CallError::from(Missing::Read(self.shared.handler_name(element, handler)));
        let Some(e) = element else { return self.shared.global(handler).ok_or(missing) };
        if !self.has(core, element, handler).0 {
            return Err(missing);
        }
        let value = self.visit(core, e as usize, |e, cx| handler::read(e, handler, parameters, cx));
        Ok(value.ok_or_else(|| Busy::Element(core.name(e).to_string()))??)
    }

    fn write(
        &mut self,
        core: &mut Core,
        element: Option<u32>,
        handler: &str,
        value: &str,
    ) -> Result<(), CallError> {
        let missing = CallError::from(Missing::Write(self.shared.handler_name(element, handler)));
        let Some(e) = element else {
            return match self.shared.global_write(core.origin(), handler)? {
                GlobalWrite::Stop => {
                    self.shared.stop(requests(value));
                    Ok(())
                }
                GlobalWrite::Timewarp
                | GlobalWrite::Profile
                | GlobalWrite::Request(_)
                | GlobalWrite::Swap(_) => Err(missing),
            };
        };
        if !self.has(core, element, handler).1 {
            return Err(missing);
        }
        let done = self.visit(core, e as usize, |e, cx| handler::write(e, handler, value, cx));
        Ok(done.ok_or_else(|| Busy::Element(core.name(e).to_string()))??)
    }

    fn has(&self, _: &Core, element: Option<u32>, handler: &str) -> (bool, bool) {
        let Some(e) = element else {
            let stop = self.shared.global_write(Origin::Operator, handler);
            return (self.shared.global(handler).is_some(), matches!(stop, Ok(GlobalWrite::Stop)));
        };
        if let Some(h) = self.shared.spec(e).and_then(|s| s.all_handlers().find(|h| h.name == handler)) {
            return h.flags.access();
        }
        let own = self
            .slots
            .get(e as usize)
            .and_then(|s| s.instance.as_ref())
            .map(|i| i.common_ref().own_handlers());
        let own = own.unwrap_or_default();
        own_flags(&own, handler).map_or((false, false), HandlerFlags::access)
    }
}
