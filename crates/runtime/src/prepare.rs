// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first phase of building a router: builds the elements of a checked graph and assigns them to workers, but does
//! not initialise them.

use crate::barrier::Barrier;
use crate::build_state::BuildState;
use crate::errors::{explain, failed};
use crate::infos::infos;
use crate::link;
use crate::mail::{Inbox, Mail};
use crate::options::{Options, Settings};
use crate::paths::PathCompiler;
use crate::ports::{FEW, pushes};
use crate::profile::Meters;
use crate::session::Session;
use crate::shared::{Held, Shared, Supervisor};
use crate::sleep::Sleeper;
use castanet_element::build::Shared as Replicas;
use castanet_element::class::{ClassDef, Classes};
use castanet_element::{BuildCx, Clock, ConfigError, Instance, Seed};
use castanet_graph::devirtualize::Unit;
use castanet_graph::offload;
use castanet_graph::placement::Placement;
use castanet_graph::quanta::{Quanta, quanta};
use castanet_graph::{Graph, PortKind};
use castanet_lang::flat::PortRef;
use castanet_lang::{Diagnostic, Sources, Span};
use castanet_spec::{Capability, Effects, Names, Origin};
use std::any::TypeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc::Receiver;

/// Returns the elements with a task, to which the run loop gives turns. Elements with a pull output have none. Of the
/// other elements, these have a task:
/// - Elements with outputs but no inputs (sources).
/// - Elements without push inputs, if their class has a task.
/// - Elements with push inputs, if their class has a task and if they have an output that packets from the inputs never
///   reach (for example, devices and sockets).
pub(crate) fn tasks_of(graph: &Graph) -> Vec<usize> {
    let pushed = |e: usize| (0..graph.inputs(e)).any(|p| graph.input_kind(e, p) == PortKind::Push);
    let pulled = |e: usize| (0..graph.outputs(e)).any(|p| graph.output_kind(e, p) == PortKind::Pull);
    let source = |e: usize| graph.inputs(e) == 0 && graph.outputs(e) > 0;
    let own = |e: usize| (0..graph.outputs(e)).any(|o| (0..graph.inputs(e)).all(|i| !graph.flows(e, i, o)));
    let task = |e: usize| graph.spec(e).is_some_and(|s| s.task);
    (0..graph.len()).filter(|&e| !pulled(e) && (task(e) && (!pushed(e) || own(e)) || source(e))).collect()
}

/// Returns the names of all elements, and the names that information elements define.
fn names_of(
    graph: &Graph,
    classes: &dyn Classes,
    workers: Option<usize>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Names {
    let mut names = Names::new();
    if let Some(workers) = workers {
        names.set_workers(workers);
    }
    if let Some(devices) = classes.devices() {
        names.set_devices(devices);
    }
    add_names(graph, classes, &mut names, diagnostics);
    names
}

/// Returns the names that a configuration defines. Names of the machine's devices have no meaning, and neither have names that
/// depend on them. For tools, whose result must not depend on the machine.
pub fn portable_names(graph: &Graph, classes: &dyn Classes) -> Names {
    let mut names = Names::new();
    // The errors appear when the configuration is checked or run.
    add_names(graph, classes, &mut names, &mut Vec::new());
    names
}

/// Adds the names of all elements, and the names that information elements define.
fn add_names(graph: &Graph, classes: &dyn Classes, names: &mut Names, diagnostics: &mut Vec<Diagnostic>) {
    names.reserve_elements(graph.len());
    for (e, element) in graph.flat.elements.iter().enumerate() {
        let class = graph.spec(e).map_or("", |s| s.name);
        names.define_element(&element.name, e, class);
    }
    let informs = graph.each_class(|class| classes.get(class).and_then(|d| d.inform));
    for (e, element) in graph.flat.elements.iter().enumerate() {
        if let Some(inform) = graph.class_number(e).and_then(|c| *informs.get(c)?)
            && let Err(errors) = inform(&element.config, element.scope(), names)
        {
            diagnostics.extend(explain(graph, e, "configuring", errors));
        }
    }
}

pub(crate) struct Built {
    /// For each worker, its elements: their numbers and instances.
    pub workers: Vec<Vec<(usize, Instance)>>,
    pub effects: Vec<Effects>,
    driver: Option<u32>,
    signals: Vec<(u32, i32)>,
    /// The states that replicas share, by element and type.
    replicas: Replicas,
}

/// The data that is needed to build an element, besides its configuration string.
pub(crate) struct Site<'a> {
    pub graph: &'a Graph,
    pub names: &'a Names,
    pub seed: Seed,
    /// The index of the replica, from 0, and the number of replicas.
    pub replica: (usize, usize),
}

/// Whether element `e` can compute the queue length that packets find (`BuildCx::knows_queue`).
fn knows_queue(graph: &Graph, e: usize) -> bool {
    let alone = |to: &PortRef| graph.inputs(to.element) == 1 && graph.upstream(*to).len() == 1;
    let stores = |to: &PortRef| graph.spec(to.element).is_some_and(|s| s.has(Capability::Storage));
    match graph.downstream(PortRef { element: e, port: 0 }) {
        [to] if graph.outputs(e) == 1 && alone(to) && stores(to) => true,
        _ => graph.nearest_downstream(e, Some(0), Capability::Storage).is_empty(),
    }
}

/// Builds element `e` from the configuration string `config`. The second return value holds the warnings.
pub(crate) fn build_one(
    site: &Site<'_>,
    e: usize,
    def: &ClassDef,
    config: &str,
    replicas: &mut Replicas,
    driver: &mut Option<u32>,
    signals: &mut Vec<(u32, i32)>,
) -> (Result<Instance, ConfigError>, ConfigError) {
    let &Site { graph, names, seed, replica } = site;
    let (name, scope, class) =
        graph.element(e).map_or(("", "", ""), |x| (x.name.as_str(), x.scope(), x.class.as_str()));
    let (mut few, mut many) = ([[false; FEW]; 2], [Vec::new(), Vec::new()]);
    let ([few_inputs, few_outputs], [many_inputs, many_outputs]) = (&mut few, &mut many);
    let input_push = pushes(graph.inputs(e), few_inputs, many_inputs, |p| graph.input_kind(e, p));
    let output_push = pushes(graph.outputs(e), few_outputs, many_outputs, |p| graph.output_kind(e, p));
    let mut cx = BuildCx {
        me: e as u32,
        name,
        scope,
        spec: def.spec,
        written_class: class,
        config,
        names,
        archive: &graph.flat.archive,
        inputs: graph.inputs(e),
        outputs: graph.outputs(e),
        input_push,
        output_push,
        knows_queue: def.spec.effects.contains(Effects::LOOKS) && knows_queue(graph, e),
        seed,
        replica,
        warnings: Vec::new(),
        shared: replicas,
        driver,
        signals,
    };
    let made = (def.build)(config, &mut cx);
    let warnings = std::mem::take(&mut cx.warnings);
    (made, ConfigError(warnings))
}

fn build_elements(
    graph: &Graph,
    classes: &dyn Classes,
    names: &Names,
    placement: &Placement,
    (seed, given): (Seed, Replicas),
    diagnostics: &mut Vec<Diagnostic>,
) -> Built {
    let each = graph.len() / placement.workers();
    let mut built = Built {
        workers: (0..placement.workers()).map(|_| Vec::with_capacity(each)).collect(),
        effects: vec![Effects::empty(); graph.len()],
        driver: None,
        signals: Vec::new(),
        replicas: given,
    };
    let defs = graph.each_class(|class| classes.get(class));
    for (e, element) in graph.flat.elements.iter().enumerate() {
        let Some(def) = graph.class_number(e).and_then(|c| *defs.get(c)?) else { continue };
        let workers = match placement.owners_of(e) {
            [] => &[0],
            some => some,
        };
        for (replica, &w) in workers.iter().enumerate() {
            let site = Site { graph, names, seed, replica: (replica, workers.len()) };
            let (driver, signals) = (&mut built.driver, &mut built.signals);
            let (made, warnings) =
                build_one(&site, e, &def, &element.config, &mut built.replicas, driver, signals);
            if replica == 0 {
                diagnostics.extend(explain(graph, e, "configuring", warnings));
            }
            match made {
                Ok(instance) => {
                    if let Some(x) = built.effects.get_mut(e) {
                        *x = instance.common_ref().effects(def.spec.effects);
                    }
                    if let Some(list) = built.workers.get_mut(w) {
                        list.push((e, instance));
                    }
                }
                Err(errors) => {
                    diagnostics.extend(explain(graph, e, "configuring", errors));
                    break;
                }
            }
        }
    }
    if !failed(diagnostics) {
        diagnostics.retain(|d| !d.beside_errors);
    }
    built
}

/// Assigns the tasks of a router to `workers` workers, and computes which workers reach which elements.
pub fn place(graph: &Graph, classes: &dyn Classes, workers: usize) -> (Placement, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let names = names_of(graph, classes, Some(workers), &mut diagnostics);
    (place_named(graph, &names, workers), diagnostics)
}

fn place_named(graph: &Graph, names: &Names, workers: usize) -> Placement {
    Placement::new(graph, workers, &|e| names.home(e), &tasks_of(graph))
}

/// Builds the elements of a graph, and returns all errors and warnings. Does not initialise the elements.
pub fn check(graph: Graph, classes: Arc<dyn Classes>, options: &Options) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    built(graph, classes.as_ref(), options, &mut diagnostics);
    diagnostics
}

/// Returns the graph of a configuration with the elements that the router inserts, and its units: the elements as the
/// run loop of a single worker runs them. For `castanet devirtualize`.
///
/// # Errors
/// The configuration cannot run.
pub fn units(graph: Graph, classes: &dyn Classes) -> Result<(Graph, Vec<Unit>), Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let built = built(graph, classes, &Options::default(), &mut diagnostics);
    match built {
        Some((graph, built)) if !failed(&diagnostics) => {
            let instances = built.workers.into_iter().flatten().collect();
            let units = link::units(&graph, instances, &built.effects);
            Ok((graph, units))
        }
        _ => Err(diagnostics),
    }
}

/// Returns which tasks of a configuration with one worker may have several turns at once. None if the configuration has
/// errors.
pub fn several_turns(graph: Graph, classes: &dyn Classes) -> Option<(Graph, Quanta)> {
    let (graph, built) = built(graph, classes, &Options::default(), &mut Vec::new())?;
    let effects = |e: usize| built.effects.get(e).copied().unwrap_or_default();
    let quanta = quanta(&graph, &effects, &tasks_of(&graph), true);
    Some((graph, quanta))
}

/// Builds the elements of a graph, and those that the router inserts.
pub(crate) fn built(
    graph: Graph,
    classes: &dyn Classes,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(Graph, Built)> {
    // If the class of an element cannot handle offloaded packets (super-packets, missing checksums), insert elements
    // upstream that complete the offloads.
    let (graph, more) = offload::complete(graph, classes);
    diagnostics.extend(more);
    if failed(diagnostics) {
        return None;
    }
    let mut names = names_of(&graph, classes, Some(options.workers), diagnostics);
    names.trust_devices();
    names.set_origin(Origin::Operator);
    let placement = place_named(&graph, &names, options.workers);
    let built =
        build_elements(&graph, classes, &names, &placement, (options.seed(), Replicas::new()), diagnostics);
    Some((graph, built))
}

/// Returns the errors in the arguments of all elements. In contrast to [`check`], this function accepts a graph whose
/// own checks have failed.
pub fn check_arguments(graph: Graph, classes: &dyn Classes) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut names = names_of(&graph, classes, None, &mut diagnostics);
    names.trust_devices();
    names.set_origin(Origin::Operator);
    let placement = place_named(&graph, &names, 1);
    let options = Options::default();
    build_elements(&graph, classes, &names, &placement, (options.seed(), Replicas::new()), &mut diagnostics);
    diagnostics
}

/// The built elements of a router, and everything else that run loops need.
pub(crate) struct Prepared {
    pub built: Built,
    pub shared: Arc<Shared>,
    pub clock: Clock,
    pub batch: usize,
    pub sleepers: Vec<Sleeper>,
    pub mails: Vec<Receiver<Mail>>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Returns the resources outside the router that elements have open, or will open at initialisation.
fn held(graph: &Graph, built: &Built) -> Held {
    let mut held = Held::new();
    for (e, instance) in built.workers.iter().flatten() {
        if let (Some(spec), Some(key)) = (graph.spec(*e), instance.common_ref().holds()) {
            held.entry((spec.name, key)).or_default().push(*e as u32);
        }
    }
    for elements in held.values_mut() {
        // All replicas of an element together count as one element.
        elements.sort_unstable();
        elements.dedup();
    }
    held
}

/// Builds the elements of a graph whose checks have passed. Does not initialise the elements.
pub(crate) fn prepare(
    graph: Graph,
    classes: Arc<dyn Classes>,
    sources: &Sources,
    (session, supervisor): (Arc<Session>, Arc<dyn Supervisor>),
    settings: Settings,
    config: Arc<str>,
) -> Result<Prepared, Vec<Diagnostic>> {
    // If the class of an element cannot handle offloaded packets (super-packets, missing checksums), insert elements
    // upstream that complete the offloads.
    let (graph, mut diagnostics) = offload::complete(graph, classes.as_ref());
    if failed(&diagnostics) {
        return Err(diagnostics);
    }
    let mut names = names_of(&graph, classes.as_ref(), Some(settings.requested), &mut diagnostics);
    names.set_origin(settings.origin);
    names.set_folder(settings.folder.clone());
    if settings.report_undefined {
        names.report_undefined();
    }
    if settings.seed_given {
        names.set_seed(None);
    }
    let tasks = tasks_of(&graph);
    let Settings { workers, batch, seed, clock, origin, optimize, code: loader, given, .. } = settings;
    let placement = place_named(&graph, &names, workers);
    if failed(&diagnostics) {
        return Err(diagnostics);
    }
    let path_compiler = given.get(&(u32::MAX, TypeId::of::<PathCompiler>())).cloned();
    let path_compiler = path_compiler.and_then(|c| c.downcast().ok()).filter(|_| optimize);
    let mut built =
        build_elements(&graph, classes.as_ref(), &names, &placement, (seed, given), &mut diagnostics);
    if failed(&diagnostics) {
        return Err(diagnostics);
    }
    let sleepers: Vec<Sleeper> = (0..workers)
        .map(|_| Sleeper::new())
        .collect::<Result<_, _>>()
        .map_err(|e| vec![Diagnostic::error(format!("cannot start a worker: {e}"), Span::default())])?;
    let (inboxes, mails) = sleepers.iter().map(|s| Inbox::new(s.waker())).unzip();
    let compact = graph.flat.requirements.iter().any(|r| r.0 == "compact_config");
    let config = if compact { castanet_lang::print::compact(&graph.flat).into() } else { config };
    let held = held(&graph, &built);
    // Code comes from the operator only.
    let loader = loader.filter(|_| origin == Origin::Operator);
    let code = loader.and_then(|loader| {
        let refused = |why| diagnostics.push(Diagnostic::warning(why, Span::default()));
        loader.load(&graph).map_err(refused).ok()?
    });
    let build_state = BuildState::new(&graph, &tasks, (seed, batch), built.effects.clone(), &built.replicas);
    let info = infos(&graph, sources);
    // Drop these references, so that shared state is freed with the last element that uses it.
    built.replicas.clear();
    let shared = Arc::new(Shared {
        graph,
        info,
        names: Arc::new(names),
        placement,
        config,
        tasks,
        build_state,
        optimize,
        is_simulated: clock.is_simulated(),
        driver: built.driver,
        signals: std::mem::take(&mut built.signals),
        classes,
        code,
        inboxes,
        requests: AtomicU32::new(0),
        halted: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        retired: AtomicBool::new(false),
        barrier: Barrier::default(),
        held,
        meters: Meters::new(workers),
        kernel: Default::default(),
        path_compiler,
        path_accounts: Default::default(),
        session,
        supervisor,
    });
    Ok(Prepared { built, shared, clock, batch, sleepers, mails, diagnostics })
}
