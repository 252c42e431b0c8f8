// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a part of a router in the kernel: compiles it, adds what it counts to the counts of the elements, and compiles
//! it again when a handler has changed an element.

use crate::assembly::Assembly;
use crate::kernel::{Kernel, KernelDriver, Programs, REASONS, unseen};
use crate::node::Body;
use crate::nodes::Nodes;
use crate::options::Options;
use crate::pairs::Pairs;
use crate::prepare::built;
use crate::shared::Shared;
use castanet_element::class::Classes;
use castanet_element::run_loop::{Core, Entry};
use castanet_element::{Attached, Messages as _, Object};
use castanet_graph::Graph;
use castanet_kernel::handover::Points;
use castanet_kernel::{Code, Counter, Lowered, Network, PART, Point, Refused};
use castanet_lang::flat::PortRef;
use castanet_spec::{Capability, Reason};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;

/// Returns a random number, which the network cannot guess.
fn random_mark() -> u32 {
    // The keys of this hasher come from the system's random numbers.
    std::collections::hash_map::RandomState::new().build_hasher().finish() as u32
}

/// The number of former generations of programs whose records may still arrive. Several handlers that change programs may be
/// written before a device is read again.
const GENERATIONS: usize = 32;

/// The message when the kernel refuses programs.
const AT_USER_LEVEL: &str = "the whole router runs at user level, not in the kernel";

/// The elements of a worker as the compiler sees them.
struct View<'a> {
    graph: &'a Graph,
    objects: Vec<Option<&'a dyn Object>>,
}

/// The scheduler by which a device may pull from a queue that the kernel leaves out.
pub(crate) const SCHEDULER: &str = "PrioSched";

impl View<'_> {
    fn is_storage(&self, element: usize) -> bool {
        self.graph.spec(element).is_some_and(|s| s.capabilities.contains(&Capability::Storage))
    }
    fn class(&self, element: usize) -> &'static str {
        self.graph.spec(element).map_or("", |s| s.name)
    }
    /// The only input that an output leads to.
    fn only_next(&self, element: usize) -> Option<PortRef> {
        match self.graph.downstream(PortRef { element, port: 0 }) {
            [one] => Some(*one),
            _ => None,
        }
    }
    /// Whether only a few packets a second reach an input: messages of bridges, which may have waited in a queue.
    fn is_rare(&self, input: PortRef) -> bool {
        self.graph.upstream(input).iter().all(|from| match self.class(from.element) {
            "EtherSpanTree" | "Idle" => true,
            _ => self.is_storage(from.element) && self.is_rare(PortRef { element: from.element, port: 0 }),
        })
    }
    /// Whether packets that reach this input of a scheduler need not wait for others: all others are rare.
    fn needs_no_scheduler(&self, scheduler: usize, input: usize) -> bool {
        let others = (0..self.graph.inputs(scheduler)).filter(|port| *port != input);
        others.map(|port| PortRef { element: scheduler, port }).all(|port| self.is_rare(port))
    }
    /// Why a queue cannot be left out, or none: only a device may pull from it, perhaps by a scheduler that prefers only rare
    /// packets, and nothing may watch its length.
    fn observed(&self, queue: u32) -> Option<&'static str> {
        let to = self.only_next(queue as usize);
        let device = match to {
            Some(to) if self.class(to.element) == SCHEDULER => self.only_next(to.element),
            to => to,
        };
        if device.is_none_or(|to| self.class(to.element) != "ToDevice") {
            return Some("a ToDevice must pull from it directly");
        }
        if to.is_some_and(|to| to != device.unwrap_or(to) && !self.needs_no_scheduler(to.element, to.port)) {
            return Some("its scheduler has other inputs with more than rare messages");
        }
        // These classes watch the nearest queues, wherever they are.
        let watches = |e: usize| matches!(self.class(e), "RED" | "AdaptiveRED" | "PI");
        (0..self.graph.len())
            .any(watches)
            .then_some("the router has an element that watches lengths of queues")
    }
}

impl View<'_> {
    /// Compiles the programs for all devices that the elements receive from. `limit` is the size of parts of large programs.
    fn compile(&self, mark: u32, generation: u16, limit: usize) -> Programs {
        let sources: Vec<(u32, String)> = self
            .objects
            .iter()
            .enumerate()
            .filter_map(|(e, o)| Some((e as u32, o.as_ref()?.receives()?.to_string())))
            .collect();
        let mut all = Programs::default();
        (all.router.mark, all.router.generation) = (mark, generation);
        all.router.count_losses(sources.iter().map(|s| s.0), REASONS);
        for (number, (element, device)) in (0..).zip(sources) {
            match all.router.compile(self, (element, number), REASONS, limit) {
                Ok(program) => all.programs.push((element, device, program)),
                Err(Refused(why)) => {
                    // A program of its own counts the packets that cannot go up.
                    if let Ok(program) = all.router.passage(element, REASONS) {
                        all.programs.push((element, device, program));
                    }
                    all.refused.insert(element, why);
                }
            }
        }
        let elements = all.elements().into_keys();
        let named = |e: u32| {
            let class = self.graph.element(e as usize).map_or("", |x| x.class.as_str());
            (e, (self.graph.name(e as usize).to_string(), class.to_string()))
        };
        all.names = elements.map(named).collect();
        all
    }
}

/// Compiles the programs of a configuration that does not run. Returns the graph with the elements that the router inserts.
/// None if the configuration has errors.
pub fn compile(graph: Graph, classes: &dyn Classes) -> Option<(Graph, Programs)> {
    let (graph, built) = built(graph, classes, &Options::default(), &mut Vec::new())?;
    let mut objects: Vec<Option<&dyn Object>> = vec![None; graph.len()];
    for (e, instance) in built.workers.iter().flatten() {
        if let Some(object) = objects.get_mut(*e) {
            *object = Some(instance.common_ref());
        }
    }
    let programs = View { graph: &graph, objects }.compile(0, 0, PART);
    Some((graph, programs))
}

impl Network for View<'_> {
    fn lower(&self, element: u32, input: u32, code: &mut Code<'_>) -> Lowered {
        let e = element as usize;
        if self.is_storage(e)
            && let Some(why) = self.observed(element)
        {
            return Err(why.into());
        }
        if self.class(e) == SCHEDULER && !self.needs_no_scheduler(e, input as usize) {
            return Err("its other inputs have more than rare messages".into());
        }
        match self.objects.get(e).copied().flatten() {
            Some(object) => object.lower(input, code),
            None => Err("it is on another worker".into()),
        }
    }
    fn receives(&self, element: u32) -> Option<&str> {
        self.objects.get(element as usize).copied().flatten()?.receives()
    }
    fn outputs(&self, element: u32) -> usize {
        self.graph.outputs(element as usize)
    }
    fn next(&self, element: u32, output: u32) -> Option<(u32, u32)> {
        let port = PortRef { element: element as usize, port: output as usize };
        self.graph.downstream(port).first().map(|p| (p.element as u32, p.port as u32))
    }
    fn puller(&self, element: u32) -> Option<(u32, u32)> {
        let is_pulled = self.is_storage(element as usize) || self.class(element as usize) == SCHEDULER;
        if is_pulled { self.next(element, 0) } else { None }
    }
}

impl Nodes {
    /// Compiles the programs for all devices that elements of this worker receive from.
    pub(crate) fn compile_kernel(&self, mark: u32, generation: u16, driver: &dyn KernelDriver) -> Programs {
        let shared = &self.shared;
        let mut objects: Vec<Option<&dyn Object>> = vec![None; shared.graph.len()];
        for (e, object) in objects.iter_mut().enumerate() {
            let Some(&(n, member)) = self.places.get(e) else { continue };
            *object = match self.nodes.get(n as usize).map(|n| &n.body) {
                Some(Body::Chain(members)) => members.get(member as usize).map(|m| &*m.action as &dyn Object),
                Some(Body::Element(x) | Body::Reaching(x, _)) => Some(&**x),
                _ => None,
            };
        }
        View { graph: &shared.graph, objects }.compile(mark, generation, driver.part_size())
    }

    /// Loads the programs into the kernel, and gives elements what they share with them.
    pub(crate) fn start_kernel(
        &mut self,
        core: &mut Core,
        driver: Arc<dyn KernelDriver>,
    ) -> Result<(), String> {
        let mark = random_mark();
        let programs = self.compile_kernel(mark, 1, &*driver);
        if programs.programs.is_empty() && programs.refused.is_empty() {
            self.shared.message("nothing runs in the kernel, because the configuration has no FromDevice");
        }
        for (element, why) in &programs.refused {
            let who = self.shared.declared_at(*element);
            self.shared.message(&format!("{who}: its packets are processed at user level, because {why}"));
        }
        self.install_kernel(core, driver, programs, Points { mark, generations: Vec::new() }, true)?;
        // Packets must be able to come up before these elements have their first turns: clients may connect by then, and hosts send.
        self.attach_receivers(core, &Attached::Started);
        Ok(())
    }

    /// Installs programs. `older` are the points of former programs. Returns what these have counted.
    fn install_kernel(
        &mut self,
        core: &mut Core,
        driver: Arc<dyn KernelDriver>,
        programs: Programs,
        older: Points,
        anew: bool,
    ) -> Result<Vec<(Counter, u64)>, String> {
        let Points { mark, mut generations } = older;
        generations.truncate(GENERATIONS);
        let newest = programs.router.points.iter().cloned().map(Some).collect();
        generations.insert(0, (programs.router.generation, newest));
        let points = Points { mark, generations };
        // Elements must know the points before packets come up, and fill tables before programs look them up.
        self.attach_receivers(core, &Attached::Points(Arc::new(points.clone())));
        let counted = driver.install(&programs, anew, &mut |(element, number), table| {
            let _ = self.with(core, element, |e, cx| {
                e.attach(Attached::Time(cx.peek()));
                e.attach(Attached::Table(number, table));
            });
        })?;
        let elements = programs.elements();
        self.set_paths(elements.into_iter().filter(|(_, report)| report.states > 0).map(|(e, _)| e));
        let raised = self.shared.kernel.lock().take().map(|k| k.raised).unwrap_or_default();
        *self.shared.kernel.lock() = Some(Kernel { driver, programs, points, seen: BTreeMap::new(), raised });
        Ok(counted)
    }

    /// Attaches to all elements that receive from a device.
    fn attach_receivers(&mut self, core: &mut Core, to: &Attached) {
        for element in 0..self.shared.graph.len() as u32 {
            let _ = self.with(core, element, |e, _| {
                if e.receives().is_some() {
                    e.attach(to.clone());
                }
            });
        }
    }

    /// Adds what the programs have counted since the last call to the counts of this worker's elements.
    pub(crate) fn add_kernel_counts(&mut self, core: &mut Core) {
        let shared = self.shared.clone();
        let counts = match &*shared.kernel.lock() {
            Some(kernel) => kernel.driver.counts(),
            None => return,
        };
        self.add_new_counts(core, counts);
        self.add_losses(core);
    }

    /// Adds the packets that the kernel has lost on their way up since the last call.
    fn add_losses(&mut self, core: &mut Core) {
        for (element, refused) in self.receivers() {
            let Some(Ok(lost)) = self.with(core, element, |e, _| e.newly_lost()) else { continue };
            core.count_drops(element, Reason::NoBuffer, lost);
            if refused {
                // The program has not counted them as entered.
                core.count_entry(element, Entry::Entered, lost);
            }
        }
    }

    /// The elements that receive from devices with programs, and whether the packets of each are processed at user level.
    fn receivers(&self) -> Vec<(u32, bool)> {
        match &*self.shared.kernel.lock() {
            Some(k) => {
                let refused = |e| k.programs.refused.contains_key(&e);
                k.programs.programs.iter().map(|p| (p.0, refused(p.0))).collect()
            }
            None => Vec::new(),
        }
    }

    /// Ends the programs of a router that has stopped, and adds what they have counted. Packets on their way up are dropped.
    pub(crate) fn end_kernel(&mut self, core: &mut Core) {
        let shared = self.shared.clone();
        if shared.kernel.lock().is_none() {
            return;
        }
        // From now on, programs cannot pass packets up: they drop and count them.
        self.attach_receivers(core, &Attached::Stopped);
        let counts = match &*shared.kernel.lock() {
            Some(kernel) => kernel.driver.remove(),
            None => return,
        };
        self.add_new_counts(core, counts);
        self.add_losses(core);
        for (element, _) in self.receivers() {
            if let Some(Ok(unread)) = self.with(core, element, |e, _| e.discard_unread()) {
                core.count_drops(element, Reason::Stopped, unread);
            }
        }
    }

    /// Adds the part of counts that was not added yet.
    fn add_new_counts(&mut self, core: &mut Core, counts: Vec<(Counter, u64)>) {
        let shared = self.shared.clone();
        let new = match shared.kernel.lock().as_mut() {
            Some(kernel) => kernel.unseen(counts),
            None => counts,
        };
        for (counter, more) in new {
            self.add_count(core, counter, more);
        }
    }

    /// Adds to a count that compiled code has counted for an element.
    pub(crate) fn add_count(&mut self, core: &mut Core, counter: Counter, more: u64) {
        match counter {
            Counter::Entered(e) => core.count_entry(e, Entry::Entered, more),
            Counter::Left(e) => core.count_entry(e, Entry::Left, more),
            Counter::Dropped(e, reason) => {
                let reason = Reason::ALL.get(usize::from(reason)).copied().unwrap_or(Reason::Discarded);
                core.count_drops(e, reason, more);
            }
            Counter::Raised(e) => {
                if let Some(kernel) = self.shared.kernel.lock().as_mut() {
                    let raised = kernel.raised.entry(e).or_default();
                    *raised = raised.wrapping_add(more);
                }
            }
            Counter::Own(e, name, at) => {
                let _ = self.with(core, e, |object, cx| {
                    object.each_count(&mut |spec, cells| {
                        if spec.name == name
                            && let Some(cell) = cells.get_mut(at as usize)
                        {
                            cell.add(more);
                        }
                    });
                    object.counted(name, more, cx.peek());
                });
            }
        }
    }

    /// Compiles the programs again after a handler of an element was written. If they differ, they replace the former ones.
    pub(crate) fn refresh_kernel(&mut self, core: &mut Core) {
        let shared = self.shared.clone();
        let (driver, mark, generation) = match &*shared.kernel.lock() {
            None => return,
            Some(k) => (k.driver.clone(), k.points.mark, k.programs.router.generation),
        };
        let now = self.compile_kernel(mark, generation, &*driver);
        let same = shared.kernel.lock().as_ref().is_some_and(|k| k.programs.is_same(&now));
        if !same {
            self.renew_kernel(core);
        }
    }

    /// Compiles and installs the programs again.
    #[cold]
    pub(crate) fn renew_kernel(&mut self, core: &mut Core) {
        let shared = self.shared.clone();
        let (driver, generation, older) = match &*shared.kernel.lock() {
            None => return,
            Some(k) => (k.driver.clone(), k.programs.router.generation, k.points.clone()),
        };
        let programs = self.compile_kernel(older.mark, generation.wrapping_add(1), &*driver);
        self.add_kernel_counts(core);
        let seen = shared.kernel.lock().as_mut().map(|k| std::mem::take(&mut k.seen)).unwrap_or_default();
        match self.install_kernel(core, driver.clone(), programs, older, false) {
            Ok(counted) => {
                for (counter, more) in unseen(&seen, counted) {
                    self.add_count(core, counter, more);
                }
            }
            // The former programs do not know what has changed.
            Err(why) => {
                shared.message(&format!("{AT_USER_LEVEL}: {why}"));
                for (counter, more) in unseen(&seen, driver.remove()) {
                    self.add_count(core, counter, more);
                }
                self.add_losses(core);
                *shared.kernel.lock() = None;
            }
        }
    }

    /// Moves the packets that element `from` lets continue at other elements.
    #[inline]
    pub(crate) fn move_resumed(&mut self, core: &mut Core, from: u32) {
        if core.has_resumed() {
            self.resume_all(core, from);
        }
        if core.has_tickets() || self.awaits_tickets() {
            self.pass_tickets(core);
        }
        if core.take_stale() {
            self.paths.forget_all();
            self.renew_kernel(core);
        }
    }

    #[cold]
    fn resume_all(&mut self, core: &mut Core, from: u32) {
        for (element, input, p) in core.take_resumed() {
            let Some(&(node, member)) = self.places.get(element as usize) else { continue };
            let is_chain = self.nodes.get(node as usize).is_some_and(|n| matches!(n.body, Body::Chain(_)));
            let port = if is_chain { member } else { input };
            let place = |e: &castanet_element::run_loop::Edge| (e.node, e.port, e.from) == (node, port, from);
            let at = self.resumes.iter().copied().find(|x| self.edges.get(*x).is_some_and(place));
            let at = at.unwrap_or_else(|| {
                let edge = castanet_element::run_loop::Edge { node, port, from, ..Default::default() };
                self.edges.push(edge);
                self.resumes.push(self.edges.len() - 1);
                self.edges.len() - 1
            });
            if let Some(edge) = self.edges.get_mut(at) {
                edge.batch.push(p);
                if !edge.pending {
                    self.follow(core, at);
                    self.drain(core);
                }
            }
        }
    }
}

impl Shared {
    /// A table of the elements that packets reach in the kernel: the name, the class, the number of instructions, the number of
    /// packets that came up there, and why packets come up.
    pub(crate) fn kernel_table(&self) -> String {
        let slot = self.kernel.lock();
        let Some(kernel) = slot.as_ref() else { return String::new() };
        let new: BTreeMap<Counter, u64> = unseen(&kernel.seen, kernel.driver.counts()).into_iter().collect();
        let mut out = String::new();
        for (e, report) in kernel.programs.elements() {
            let raised = kernel.raised.get(&e).copied().unwrap_or(0);
            let raised = raised.wrapping_add(new.get(&Counter::Raised(e)).copied().unwrap_or(0));
            let name = self.graph.name(e as usize);
            let class = self.graph.element(e as usize).map_or("", |x| x.class.as_str());
            let why = report.up.as_deref().unwrap_or("");
            let instructions = match report.states {
                0 => "-".to_string(),
                _ => report.instructions.to_string(),
            };
            let _ = writeln!(out, "{name}\t{class}\t{instructions}\t{raised}\t{why}");
        }
        out
    }
}

/// The same counter of the element that replaces its element. None if the element is gone.
fn paired(counter: Counter, pairs: &Pairs) -> Option<Counter> {
    Some(match counter {
        Counter::Own(e, name, at) => Counter::Own(pairs.new_of(e)?, name, at),
        Counter::Dropped(e, reason) => Counter::Dropped(pairs.new_of(e)?, reason),
        Counter::Raised(e) => Counter::Raised(pairs.new_of(e)?),
        Counter::Entered(e) => Counter::Entered(pairs.new_of(e)?),
        Counter::Left(e) => Counter::Left(pairs.new_of(e)?),
    })
}

/// Checks that the kernel accepts the programs of a configuration that is to replace another one.
///
/// # Errors
/// Why the kernel refuses.
pub(crate) fn check_candidate(old: &Shared, new: &Assembly) -> Result<(), String> {
    let (driver, generation) = match &*old.kernel.lock() {
        None => return Ok(()),
        Some(kernel) => (kernel.driver.clone(), kernel.programs.router.generation),
    };
    let programs =
        new.workers.first().map(|w| w.nodes.compile_kernel(0, generation.wrapping_add(1), &*driver));
    programs.map_or(Ok(()), |programs| driver.check(&programs))
}

/// Adds what the programs of a router have counted to the counts of its elements.
pub(crate) fn add_counts(assembly: &mut Assembly) {
    for w in &mut assembly.workers {
        w.nodes.add_kernel_counts(&mut w.core);
    }
}

/// Replaces the programs of an old router by those of the new one, to which resources and state have moved.
pub(crate) fn hand_over(old: &mut Assembly, new: &mut Assembly, pairs: &Pairs) {
    let Some(Kernel { driver, programs, points, seen, raised }) = old.shared.kernel.lock().take() else {
        return;
    };
    let Some(w) = new.workers.first_mut() else { return };
    let renumber = |p: Option<Point>| {
        let p = p?;
        Some(Point { element: pairs.new_of(p.element)?, ..p })
    };
    let renumbered = |(g, points): (u16, Vec<_>)| (g, points.into_iter().map(renumber).collect());
    let generations = points.generations.into_iter().map(renumbered).collect();
    let older = Points { mark: points.mark, generations };
    let generation = programs.router.generation.wrapping_add(1);
    let next = w.nodes.compile_kernel(older.mark, generation, &*driver);
    let counted = match w.nodes.install_kernel(&mut w.core, driver.clone(), next, older.clone(), true) {
        Ok(counted) => counted,
        Err(why) => {
            new.shared.message(&format!("{AT_USER_LEVEL}: {why}"));
            w.nodes.attach_receivers(&mut w.core, &Attached::Points(Arc::new(older)));
            driver.remove()
        }
    };
    if let Some(kernel) = w.nodes.shared.kernel.lock().as_mut() {
        kernel.raised = raised.into_iter().filter_map(|(e, n)| Some((pairs.new_of(e)?, n))).collect();
    }
    for (counter, more) in unseen(&seen, counted) {
        // Counts of a removed element since the swap began are not shown anywhere.
        if let Some(counter) = paired(counter, pairs) {
            w.nodes.add_count(&mut w.core, counter, more);
        }
    }
}
