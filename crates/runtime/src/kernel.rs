// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a router that runs in the kernel: compiles it, adds what it counts to the counts of the elements, and compiles
//! it again when a handler has changed an element.

use crate::node::Body;
use crate::nodes::Nodes;
use crate::options::Options;
use crate::prepare::built;
use crate::shared::Shared;
use castanet_element::class::Classes;
use castanet_element::run_loop::{Core, Entry};
use castanet_element::{Attached, Messages as _, Object};
use castanet_graph::Graph;
use castanet_kernel::handover::Points;
use castanet_kernel::{Code, Counter, Lowered, Network, Program, Reasons, Refused, Report, Table};
use castanet_lang::flat::PortRef;
use castanet_spec::{Capability, Reason};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The programs of a router.
#[derive(Debug, Default)]
pub struct Programs {
    /// The program of each device that the router receives from: the element that receives, the name of the device, and the
    /// program.
    pub programs: Vec<(u32, String, Program)>,
    /// What the programs share.
    pub router: castanet_kernel::Router,
    /// The elements that receive from a device, of which the whole path is at user level: why.
    pub refused: BTreeMap<u32, String>,
}

impl Programs {
    /// How each element runs that a program reaches, over all programs.
    pub fn elements(&self) -> BTreeMap<u32, Report> {
        let mut all: BTreeMap<u32, Report> = BTreeMap::new();
        for (element, report) in self.programs.iter().flat_map(|p| &p.2.elements) {
            let sum = all.entry(*element).or_default();
            sum.states += report.states;
            sum.instructions += report.instructions;
            if sum.up.is_none() {
                sum.up.clone_from(&report.up);
            }
        }
        all
    }
}

/// Loads programs into the kernel.
pub trait KernelDriver: Send + Sync {
    /// Replaces the programs of all devices, and returns the tables that did not exist before. If it fails, the former
    /// programs go on.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn install(&self, programs: &Programs) -> Result<Vec<((u32, u32), Arc<dyn Table>)>, String>;
    /// The numbers that the programs have counted, in the order of the counters of the last [`KernelDriver::install`].
    /// They include those of former programs.
    fn counts(&self) -> Vec<(Counter, u64)>;
}

/// The programs of a configuration, while it runs.
pub(crate) struct Kernel {
    driver: Arc<dyn KernelDriver>,
    programs: Programs,
    /// The counts that were already added to those of elements.
    seen: BTreeMap<Counter, u64>,
}

/// The place of a configuration's [`Kernel`].
pub(crate) type KernelSlot = Mutex<Option<Kernel>>;

const REASONS: Reasons = Reasons { no_port: Reason::NoPort as u16, no_room: Reason::NoBuffer as u16 };

/// The elements of a worker as the compiler sees them.
struct View<'a> {
    graph: &'a Graph,
    objects: Vec<Option<&'a dyn Object>>,
}

impl View<'_> {
    /// Why a queue cannot be left out, or none: only a device may pull from it, and nothing may watch its length.
    fn observed(&self, queue: u32) -> Option<&'static str> {
        let of = |element: usize| self.graph.spec(element).map_or("", |s| s.name);
        let pulls = self.graph.downstream(PortRef { element: queue as usize, port: 0 });
        if !matches!(pulls, [one] if of(one.element) == "ToDevice") {
            return Some("a ToDevice must pull from it directly");
        }
        let pushes = self.graph.upstream(PortRef { element: queue as usize, port: 0 });
        pushes.iter().any(|p| of(p.element).contains("RED")).then_some("an element watches its length")
    }
}

impl View<'_> {
    /// Compiles the programs for all devices that the elements receive from.
    fn compile(&self, generation: u16) -> Programs {
        let sources: Vec<(u32, String)> = self
            .objects
            .iter()
            .enumerate()
            .filter_map(|(e, o)| Some((e as u32, o.as_ref()?.receives()?.to_string())))
            .collect();
        let mut all = Programs::default();
        all.router.generation = generation;
        for (element, device) in sources {
            match all.router.compile(self, element, REASONS) {
                Ok(program) => all.programs.push((element, device, program)),
                Err(Refused(why)) => {
                    all.refused.insert(element, why);
                }
            }
        }
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
    let programs = View { graph: &graph, objects }.compile(0);
    Some((graph, programs))
}

impl Network for View<'_> {
    fn lower(&self, element: u32, input: u32, code: &mut Code<'_>) -> Lowered {
        let e = element as usize;
        if self.graph.spec(e).is_some_and(|s| s.capabilities.contains(&Capability::Storage))
            && let Some(why) = self.observed(element)
        {
            return Err(why.into());
        }
        match self.objects.get(e).copied().flatten() {
            Some(object) => object.lower(input, code),
            None => Err("it is on another worker".into()),
        }
    }
    fn outputs(&self, element: u32) -> usize {
        self.graph.outputs(element as usize)
    }
    fn next(&self, element: u32, output: u32) -> Option<(u32, u32)> {
        let port = PortRef { element: element as usize, port: output as usize };
        self.graph.downstream(port).first().map(|p| (p.element as u32, p.port as u32))
    }
}

impl Nodes {
    /// Compiles the programs for all devices that elements of this worker receive from.
    pub(crate) fn compile_kernel(&self, generation: u16) -> Programs {
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
        View { graph: &shared.graph, objects }.compile(generation)
    }

    /// Loads the programs into the kernel, and gives elements what they share with them.
    pub(crate) fn start_kernel(
        &mut self,
        core: &mut Core,
        driver: Arc<dyn KernelDriver>,
    ) -> Result<(), String> {
        let programs = self.compile_kernel(1);
        self.install_kernel(core, driver, programs)
    }

    fn install_kernel(
        &mut self,
        core: &mut Core,
        driver: Arc<dyn KernelDriver>,
        programs: Programs,
    ) -> Result<(), String> {
        let points = Arc::new(Points {
            generation: programs.router.generation,
            points: programs.router.points.clone(),
        });
        // Elements must know the points before packets come up.
        for (element, ..) in &programs.programs {
            let points = points.clone();
            let _ = self.with(core, *element, |e, _| e.attach(Attached::Points(points)));
        }
        let tables = driver.install(&programs)?;
        for ((element, number), table) in tables {
            let _ = self.with(core, element, |e, _| e.attach(Attached::Table(number, table)));
        }
        let mut kernel = self.shared.kernel.lock();
        let seen = kernel.take().map(|k| k.seen).unwrap_or_default();
        *kernel = Some(Kernel { driver, programs, seen });
        Ok(())
    }

    /// Adds what the programs have counted since the last call to the counts of this worker's elements.
    pub(crate) fn add_kernel_counts(&mut self, core: &mut Core) {
        let shared = self.shared.clone();
        let mut new = Vec::new();
        {
            let mut slot = shared.kernel.lock();
            let Some(kernel) = slot.as_mut() else { return };
            for (counter, count) in kernel.driver.counts() {
                let seen = kernel.seen.entry(counter).or_default();
                let more = count.wrapping_sub(*seen);
                *seen = count;
                if more > 0 {
                    new.push((counter, more));
                }
            }
        }
        for (counter, more) in new {
            match counter {
                Counter::Entered(e) => core.count_entry(e, Entry::Entered, more),
                Counter::Left(e) => core.count_entry(e, Entry::Left, more),
                Counter::Dropped(e, reason) => {
                    let reason = Reason::ALL.get(usize::from(reason)).copied().unwrap_or(Reason::Discarded);
                    core.count_drops(e, reason, more);
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
    }

    /// Compiles the programs again after a handler of an element was written. If they differ, they replace the former ones.
    pub(crate) fn refresh_kernel(&mut self, core: &mut Core) {
        let shared = self.shared.clone();
        let (driver, generation) = match &*shared.kernel.lock() {
            None => return,
            Some(kernel) => (kernel.driver.clone(), kernel.programs.router.generation),
        };
        let same = |programs: &Programs| {
            let slot = shared.kernel.lock();
            let before = slot.as_ref().map(|k| k.programs.programs.iter().map(|p| &p.2.instructions));
            before.is_some_and(|b| b.eq(programs.programs.iter().map(|p| &p.2.instructions)))
        };
        if same(&self.compile_kernel(generation)) {
            return;
        }
        self.add_kernel_counts(core);
        let programs = self.compile_kernel(generation.wrapping_add(1));
        if let Err(why) = self.install_kernel(core, driver, programs) {
            shared.message(&format!("the kernel goes on with the former program: {why}"));
        }
    }

    /// Moves the packets that element `from` lets continue at other elements.
    #[inline]
    pub(crate) fn move_resumed(&mut self, core: &mut Core, from: u32) {
        if core.has_resumed() {
            self.resume_all(core, from);
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
    /// How the elements run, if a part of the router runs in the kernel.
    pub fn kernel_report(&self) -> Option<BTreeMap<u32, Report>> {
        self.kernel.lock().as_ref().map(|k| k.programs.elements())
    }
}
