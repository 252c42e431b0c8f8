// SPDX-License-Identifier: MIT OR Apache-2.0
//! The naive interpreter: one packet at a time, recursive, obvious. It is what the fast run loop is compared with.
//!
//! Elements, their graph, their order of tasks and timers are those of the run loop; how packets move is not: an element
//! gets one packet, and each packet that it emits is taken to where it ends before the next one, output 0 first. What an
//! action emits on the side goes before the packet itself. Pulls ask for one packet at a time. There are no chains, no
//! batches and no stacks of packets that wait.

use crate::build::{Context, Prepared, explain, failed, prepare};
use crate::nodes::{HOPS, ROUNDS};
use crate::router::STACK;
use crate::shared::Shared;
use crate::tasks::TICKETS;
use crate::{Classes, Options};
use castanet_element::notify::Notes;
use castanet_element::{
    CallError, Core, Cx, Drive, Edge, InitCx, Instance, Lifecycle, Messages, Router, Turn, Verdict,
};
use castanet_graph::{Graph, Kind};
use castanet_lang::{Diagnostic, PortRef, Sources};
use castanet_packet::{Batch, Packet};
use castanet_spec::{ArgCx, Capability, Reason};
use castanet_tables::stride::{Stride, Ties};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Turns of tasks before timers are looked at again, as in the run loop.
const TURNS: usize = 128;

/// Where a push output leads.
#[derive(Clone, Copy)]
struct Way {
    element: usize,
    input: usize,
    /// Whether the connection closes a cycle.
    back: bool,
}

/// One element and what stands around it.
struct Slot {
    /// None while it runs.
    instance: Option<Instance>,
    /// By output: what it emitted.
    edges: Box<[Edge]>,
    /// By output, if that pushes.
    downstream: Vec<Option<Way>>,
    /// By input, if that pulls: element and output.
    upstream: Vec<Option<(usize, usize)>>,
    /// Packets that were pushed to it while it ran: input and packet.
    parked: Vec<(usize, Packet)>,
}

/// All elements, and the packets that move among them.
struct Net {
    slots: Vec<Slot>,
    tasks: Stride,
    tickets: HashMap<u32, u32>,
    /// How often packets went round cycles in this turn.
    rounds: u64,
    shared: Arc<Shared>,
}

/// A router that is interpreted naively, in simulated time and on one worker.
pub struct Naive {
    net: Net,
    core: Core,
}

impl Naive {
    /// Builds and initialises a router from a graph whose checks have passed. Batch size and workers of the options are
    /// of no account; time must be simulated.
    ///
    /// # Errors
    /// Those of [`crate::build()`].
    pub fn new(
        graph: Graph,
        classes: Arc<dyn Classes>,
        sources: &Sources,
        options: Options,
    ) -> Result<Naive, Vec<Diagnostic>> {
        let options = Options { workers: 1, ..options };
        let Prepared { built, shared, clock, notes, notes_of, mut diagnostics, .. } =
            prepare(graph, classes, sources, options)?;
        let mut slots = slots(&shared.graph);
        for (e, instance) in built.workers.into_iter().flatten() {
            if let Some(s) = slots.get_mut(e) {
                s.instance = Some(instance);
            }
        }
        let core = Core::new(shared.info.clone(), shared.names.clone(), notes.clone(), shared.clone(), clock);
        let net = Net { slots, tasks: Stride::new(Ties::Oldest), tickets: HashMap::new(), rounds: 0, shared };
        let mut naive = Naive { net, core };
        naive.initialise(&notes_of, &notes, &mut diagnostics);
        if failed(&diagnostics) {
            return Err(diagnostics);
        }
        Ok(naive)
    }

    fn initialise(
        &mut self,
        notes_of: &HashMap<(u32, Capability), u32>,
        notes: &Notes,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let shared = self.net.shared.clone();
        let context = Context { graph: &shared.graph, notes: notes_of };
        let mut listeners: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
        for e in 0..shared.graph.len() {
            let me = e as u32;
            let done = self.net.visit(&mut self.core, e, |element, cx| {
                let mut init =
                    InitCx { core: cx.core(), me, wiring: &context, scheduled: true, listens: Vec::new() };
                let done = element.initialise(&mut init);
                (done, init.scheduled, init.listens)
            });
            let Some((done, scheduled, listens)) = done else { continue };
            for n in listens {
                listeners.entry(n).or_default().push((0, me));
            }
            if let Err(text) = done {
                diagnostics.extend(explain(&shared.graph, e, "initializing", text.into()));
            }
            if scheduled && shared.has_task(me) {
                if let Some(t) = shared.names.tickets(e) {
                    self.net.tickets.insert(me, t.max(1));
                }
                self.net.schedule(me);
            }
        }
        for (n, mut who) in listeners {
            who.dedup();
            notes.listen(n as usize, who);
        }
    }

    /// Runs until nothing is left to do, the router is stopped, or tasks and timers have had so many turns. False in the
    /// last case.
    ///
    /// # Errors
    /// When no thread with a stack deep enough can be had.
    pub fn run_until_idle(&mut self, max_turns: usize) -> std::io::Result<bool> {
        // Pushes recurse, one frame an element, and a packet may go round a cycle often.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .stack_size(4 * STACK)
                .spawn_scoped(scope, || self.run(max_turns))?;
            Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn run(&mut self, max_turns: usize) -> bool {
        let shared = self.net.shared.clone();
        let mut left = max_turns;
        while !shared.is_stopped() {
            if shared.requests() > 0 {
                self.drive(&shared);
                continue;
            }
            if left == 0 {
                return false;
            }
            let busy = self.run_tasks(&shared, &mut left);
            let fired = self.run_timers(&mut left);
            if !busy && !fired && self.core.wakes.is_empty() {
                match self.core.timers.next() {
                    Some((t, _)) => self.core.clock.jump(t),
                    None => return true,
                }
            }
        }
        true
    }

    /// Answers one request to stop.
    fn drive(&mut self, shared: &Shared) {
        shared.requests.fetch_sub(1, Ordering::SeqCst);
        let answer = match shared.driver {
            Some(d) => self.turn(d, |e, cx| e.drive(cx)).unwrap_or(Drive::Stop),
            None => Drive::Stop,
        };
        if answer == Drive::Stop {
            shared.end();
        }
    }

    /// Calls an element, and takes what it emits to where it ends.
    fn turn<R>(
        &mut self,
        element: u32,
        f: impl FnOnce(&mut dyn castanet_element::Element, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let e = element as usize;
        self.core.limit = 1;
        let out = self.net.enter(&mut self.core, e, true, |instance, cx| match instance {
            Instance::Element(x) => Some(f(x.as_mut(), cx)),
            Instance::Action(_) => None,
        });
        self.net.send(&mut self.core, e);
        self.net.rounds = 0;
        out.flatten()
    }

    fn run_tasks(&mut self, shared: &Shared, left: &mut usize) -> bool {
        for turn in 0..TURNS {
            for e in std::mem::take(&mut self.core.wakes) {
                self.net.schedule(e);
            }
            let Some(task) = self.net.tasks.turn() else { return turn > 0 };
            loop {
                *left = left.saturating_sub(1);
                match self.turn(task, |e, cx| e.task(cx)).unwrap_or(Turn::Sleep) {
                    Turn::More if !shared.is_stopped() && *left > 0 => {}
                    Turn::More | Turn::Again => break,
                    Turn::Sleep => {
                        self.net.tasks.remove(task);
                        break;
                    }
                }
            }
            if shared.requests() > 0 || shared.is_stopped() || *left == 0 {
                return true;
            }
        }
        true
    }

    fn run_timers(&mut self, left: &mut usize) -> bool {
        if self.core.timers.is_empty() {
            return false;
        }
        let now = self.core.clock.now();
        let mut fired = false;
        while let Some((_, (e, id))) = self.core.timers.pop_due(now) {
            *left = left.saturating_sub(1);
            self.turn(e, |e, cx| e.timer(id, cx));
            fired = true;
        }
        fired
    }

    /// Reads a handler that an element's class declares.
    ///
    /// # Errors
    /// When there is no such handler, or it says no.
    pub fn read(&mut self, element: u32, handler: &str) -> Result<String, CallError> {
        self.net.read(&mut self.core, Some(element), handler, "")
    }

    /// Packets dropped, by element and reason.
    pub fn drops(&self) -> BTreeMap<(u32, Reason), u64> {
        self.core.all_drops().map(|(e, r, n)| ((e, r), n)).collect()
    }

    /// The element of that name.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.net.shared.graph.find(name).and_then(|e| u32::try_from(e).ok())
    }

    /// Cleans all elements up, in order, and returns what went wrong: declaration and reason.
    pub fn cleanup(&mut self) -> Vec<(String, String)> {
        let mut errors = Vec::new();
        for e in 0..self.net.slots.len() {
            if let Some(Err(text)) = self.net.visit(&mut self.core, e, |e, cx| e.cleanup(cx)) {
                errors.push((self.net.shared.graph.declaration(e), text));
            }
        }
        errors
    }
}

/// The places of all elements, still empty.
fn slots(graph: &Graph) -> Vec<Slot> {
    let back = graph.back_edges();
    let back: HashSet<PortRef> =
        graph.flat.connections.iter().zip(back).filter(|b| b.1).map(|b| b.0.from).collect();
    let each = (0..graph.len()).map(|e| {
        let way = |port| match graph.downstream(PortRef { element: e, port }) {
            &[to] if graph.output_kind(e, port) == Kind::Push => {
                let back = back.contains(&PortRef { element: e, port });
                Some(Way { element: to.element, input: to.port, back })
            }
            _ => None,
        };
        let source = |port| match graph.upstream(PortRef { element: e, port }) {
            &[from] if graph.input_kind(e, port) == Kind::Pull => Some((from.element, from.port)),
            _ => None,
        };
        Slot {
            instance: None,
            edges: (0..graph.outputs(e)).map(|_| Edge::default()).collect(),
            downstream: (0..graph.outputs(e)).map(way).collect(),
            upstream: (0..graph.inputs(e)).map(source).collect(),
            parked: Vec::new(),
        }
    });
    each.collect()
}

impl Net {
    fn schedule(&mut self, element: u32) {
        if !self.tasks.contains(element) {
            self.tasks.add(element, self.tickets.get(&element).copied().unwrap_or(TICKETS));
        }
    }

    /// Runs `f` on an element; none when it runs already. What it emits stays on its outputs. Handlers that it wanted
    /// called after its return are called.
    fn enter<R>(
        &mut self,
        core: &mut Core,
        e: usize,
        reaches_others: bool,
        f: impl FnOnce(&mut Instance, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let out = self.call(core, e, reaches_others, f);
        for (from, call) in std::mem::take(&mut core.deferred) {
            let element = call.element.and_then(|e| u32::try_from(e).ok());
            if let Err(e) = self.write(core, element, &call.handler, &call.value) {
                let who = self.shared.graph.declaration(from as usize);
                core.outside.message(&format!("{who}: {e}"));
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
        // Output 0 of an action is the packet's own way, not one to emit to.
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

    /// Runs `f` on what all elements have in common.
    fn visit<R>(
        &mut self,
        core: &mut Core,
        e: usize,
        f: impl FnOnce(&mut dyn Lifecycle, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        self.call(core, e, true, |instance, cx| f(instance.common(), cx))
    }

    /// Takes everything that an element has emitted to where it ends, and then what came to it while it ran.
    fn send(&mut self, core: &mut Core, e: usize) {
        let Some(slot) = self.slots.get_mut(e) else { return };
        let mut out = Vec::new();
        for (port, edge) in slot.edges.iter_mut().enumerate() {
            out.extend(edge.batch.drain().map(|p| (port, p)));
        }
        let parked = std::mem::take(&mut slot.parked);
        for (port, p) in out {
            self.push(core, e, port, p);
        }
        for (input, p) in parked {
            self.arrive(core, e, input, p);
        }
    }

    /// Pushes a packet out of an output.
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

    /// Takes a packet in by an input.
    fn arrive(&mut self, core: &mut Core, e: usize, input: usize, p: Packet) {
        let Some(slot) = self.slots.get_mut(e) else { return };
        if slot.instance.is_none() {
            return slot.parked.push((input, p));
        }
        let reaches = matches!(slot.instance, Some(Instance::Element(_)));
        let goes_on = self.enter(core, e, reaches, |instance, cx| take(instance, input, p, cx)).flatten();
        self.send(core, e);
        if let Some(p) = goes_on {
            self.push(core, e, 0, p);
        }
    }

    /// Pulls one packet out of an output.
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

/// Gives an element one packet; returned if it goes on by output 0 of an action.
fn take(instance: &mut Instance, input: usize, mut p: Packet, cx: &mut Cx<'_>) -> Option<Packet> {
    match instance {
        Instance::Action(a) => match a.action(&mut p, cx) {
            Verdict::Next => return Some(p),
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
        let missing = || {
            CallError::Missing(format!("no '{}' read handler", self.shared.handler_name(element, handler)))
        };
        let missing = missing();
        let Some(e) = element else { return self.shared.global(handler).ok_or(missing) };
        if !self.has(core, element, handler).0 {
            return Err(missing);
        }
        let value = self.visit(core, e as usize, |e, cx| match e.read_field(handler) {
            Some(v) => Ok(v),
            None => e.read(handler, parameters, cx),
        });
        value.ok_or_else(|| busy(core, e))?.map_err(CallError::Failed)
    }

    fn write(
        &mut self,
        core: &mut Core,
        element: Option<u32>,
        handler: &str,
        value: &str,
    ) -> Result<(), CallError> {
        let missing = || {
            CallError::Missing(format!("no '{}' write handler", self.shared.handler_name(element, handler)))
        };
        let missing = missing();
        let Some(e) = element else {
            if handler != "stop" {
                return Err(missing);
            }
            let n = if value.trim().is_empty() { Ok(1) } else { value.trim().parse() };
            self.shared.stop(n.map_err(|_| CallError::Failed("'stop': invalid number".into()))?);
            return Ok(());
        };
        if !self.has(core, element, handler).1 {
            return Err(missing);
        }
        let names = core.names.clone();
        let scope = core.info.get(e as usize).map_or(String::new(), |i| i.scope.clone());
        let done = self.visit(core, e as usize, |e, cx| {
            match e.write_field(handler, value, &ArgCx { scope: &scope, names: &names }) {
                Some(r) => r.and_then(|()| e.changed(handler, cx)),
                None => e.write(handler, value, cx),
            }
        });
        done.ok_or_else(|| busy(core, e))?.map_err(CallError::Failed)
    }

    fn has(&self, _: &Core, element: Option<u32>, handler: &str) -> (bool, bool) {
        let of = |f: &str| (f.contains('r'), f.contains('w'));
        let Some(e) = element else { return (self.shared.global(handler).is_some(), handler == "stop") };
        if let Some(h) = self.shared.spec(e).and_then(|s| s.all_handlers().find(|h| h.name == handler)) {
            return of(h.flags);
        }
        let own = self
            .slots
            .get(e as usize)
            .and_then(|s| s.instance.as_ref())
            .map(|i| i.common_ref().own_handlers());
        let own = own.unwrap_or_default();
        let found = own.iter().find(|h| h.0 == handler).or_else(|| own.iter().find(|h| h.0 == "*"));
        found.map_or((false, false), |h| of(h.1))
    }
}

fn busy(core: &Core, e: u32) -> CallError {
    CallError::Busy(format!("element '{}' is busy", core.name(e)))
}
