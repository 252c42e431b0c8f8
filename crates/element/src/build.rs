// SPDX-License-Identifier: MIT OR Apache-2.0
//! What elements are built and initialised with.

use crate::core::Core;
use crate::cx::Cx;
use crate::error::ElementError;
use crate::gauge::Gauge;
use crate::notify::{Note, Room, Signal};
use crate::random::{Random, Secret, Seed};
use crate::remote::Remote;
use crate::seam::Seam as _;
use crate::watch::{Interest, Watch};
use castanet_spec::{ArgCx, ArgError, Capability, ClassSpec, Names, ValueError};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Why an element could not be configured: one error for each thing wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigError(pub Vec<ArgError>);

impl From<ArgError> for ConfigError {
    fn from(e: ArgError) -> Self {
        ConfigError(vec![e])
    }
}

/// An error that concerns the configuration string as a whole.
impl From<String> for ConfigError {
    fn from(message: String) -> Self {
        ConfigError(vec![ArgError::new(message, 0..usize::MAX)])
    }
}
impl From<&str> for ConfigError {
    fn from(message: &str) -> Self {
        message.to_string().into()
    }
}

impl From<ValueError> for ConfigError {
    fn from(e: ValueError) -> Self {
        let help = e.mend().0.to_string();
        ConfigError(vec![ArgError::new(e, 0..usize::MAX).help(help)])
    }
}
impl From<ElementError> for ConfigError {
    fn from(e: ElementError) -> Self {
        e.to_string().into()
    }
}

/// State that replicas of one element share.
pub type Shared = HashMap<(u32, TypeId), Arc<dyn Any + Send + Sync>>;

/// What an element is built with.
pub struct BuildCx<'a> {
    /// Its number in the router.
    pub me: u32,
    /// Its full name.
    pub name: &'a str,
    /// The scope prefix of its name.
    pub scope: &'a str,
    /// The class it is declared with; aliases resolve to their class.
    pub spec: &'static ClassSpec,
    /// The name of the class as the configuration writes it, which may be an alias.
    pub written_class: &'a str,
    /// Its configuration string.
    pub config: &'a str,
    /// Names that the configuration defines.
    pub names: &'a Names,
    /// Number of inputs in use.
    pub inputs: usize,
    /// Number of outputs in use.
    pub outputs: usize,
    /// For each input whether it is push.
    pub input_push: &'a [bool],
    /// For each output whether it is push.
    pub output_push: &'a [bool],
    /// Where the run's random numbers come from.
    pub seed: Seed,
    /// The most packets in a batch.
    pub batch: usize,
    /// Which replica of the element this is, and of how many.
    pub replica: (usize, usize),
    /// Warnings about the configuration.
    pub warnings: Vec<ArgError>,
    /// The state that replicas share.
    pub shared: &'a mut Shared,
    /// The element that drives the stop of the router, if one has claimed it.
    pub driver: &'a mut Option<u32>,
    /// Signals of the operating system that elements watch: element and signal.
    pub signals: &'a mut Vec<(u32, i32)>,
}

impl<'a> BuildCx<'a> {
    /// What arguments are read against.
    pub fn arg_cx(&self) -> ArgCx<'a> {
        ArgCx { scope: self.scope, names: self.names, origin: self.names.origin() }
    }
    /// The seed of random numbers that need not be secret: the configuration may set it.
    pub fn random_seed(&self) -> Seed {
        self.names.seed().map_or(self.seed, Seed::Fixed)
    }
    /// The element's own random numbers.
    pub fn random(&self) -> Random {
        Random::of(self.random_seed(), self.name)
    }
    /// Random numbers that differ between the replicas of the element too.
    pub fn random_of_replica(&self) -> Random {
        let seed = match self.random_seed() {
            Seed::System => Seed::System,
            Seed::Fixed(n) => Seed::Fixed(n.wrapping_add(self.replica.0 as u64)),
        };
        Random::of(seed, self.name)
    }
    /// The element's own numbers that others must not predict, though they see some of them. A seed in the configuration does
    /// not concern them.
    pub fn secret(&self) -> Secret {
        Secret::of(self.seed, self.name)
    }
    /// The state that all replicas of this element share: made by the first, handed to the others.
    pub fn share<T: Send + Sync + 'static>(&mut self, make: impl FnOnce() -> T) -> Arc<T> {
        self.share_as(self.me, make)
    }
    /// The state that is kept under another element's number: what an element with `TABLE other` works on.
    pub fn share_as<T: Send + Sync + 'static>(&mut self, owner: u32, make: impl FnOnce() -> T) -> Arc<T> {
        let any = self.shared.entry((owner, TypeId::of::<T>())).or_insert_with(|| Arc::new(make())).clone();
        match any.downcast::<T>() {
            Ok(t) => t,
            // The key holds the type, so this cannot be reached; the argument for it stands in the type of the map.
            Err(_) => unreachable!("shared state is kept by type"),
        }
    }
    /// Says that this element drives the stop of the router; false if another one does.
    pub fn claim_driver(&mut self) -> bool {
        match *self.driver {
            Some(d) if d != self.me => false,
            _ => {
                *self.driver = Some(self.me);
                true
            }
        }
    }
    /// Whether an input is push.
    pub fn is_push_input(&self, port: usize) -> bool {
        self.input_push.get(port).copied().unwrap_or(false)
    }
    /// Whether an output is push.
    pub fn is_push_output(&self, port: usize) -> bool {
        self.output_push.get(port).copied().unwrap_or(false)
    }
    /// Warns about a range of the configuration string.
    pub fn warn(&mut self, warning: ArgError) {
        self.warnings.push(ArgError { warning: true, ..warning });
    }
}

/// Flow-based router context, asked for at initialisation by capability.
pub trait Wiring {
    /// The notifier of an element's own.
    fn note(&self, element: u32, capability: Capability) -> Option<Note>;
    /// The notifiers of that capability nearest upstream of an input, and whether some path has none.
    fn upstream(&self, element: u32, input: usize, capability: Capability) -> (Vec<u32>, bool);
    /// The notifiers of that capability nearest downstream of an output, and whether some path has none.
    fn downstream(&self, element: u32, output: usize, capability: Capability) -> (Vec<u32>, bool);
    /// The gauge of an element of capability Storage; by default nobody has one.
    fn gauge(&self, _element: u32) -> Option<Gauge> {
        None
    }
    /// The storages nearest upstream of an input; by default there is none.
    fn storages_upstream(&self, _element: u32, _input: usize) -> Vec<u32> {
        Vec::new()
    }
    /// The storages nearest downstream of an output; by default there is none.
    fn storages_downstream(&self, _element: u32, _output: usize) -> Vec<u32> {
        Vec::new()
    }
}

/// What an element is initialised with.
pub struct InitCx<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) me: u32,
    pub(crate) wiring: &'a dyn Wiring,
    /// Whether the element's task is scheduled from the start.
    pub scheduled: bool,
    /// Notifiers that wake this element's task.
    pub(crate) listens: Vec<u32>,
    pub(crate) inherits: bool,
}

impl InitCx<'_> {
    /// The time in nanoseconds since 1970.
    pub fn now(&mut self) -> i64 {
        self.core.clock.now()
    }
    /// This element's notifier, if its class declares the capability.
    pub fn note(&self, capability: Capability) -> Option<Note> {
        self.wiring.note(self.me, capability)
    }
    /// What a task that pulls from an input sleeps on. Each of these notifiers, when it goes on, gives the element a turn
    /// ([`Element::task`](crate::Element::task)), whether its class declares a task or not: one that delays packets on a pull path
    /// and has a notifier of its own turns that on then. The signal is never on where nothing can come, and always where some
    /// path leads to an element that may have packets and has no notifier.
    pub fn upstream(&mut self, input: usize) -> Signal {
        let (notes, open) = self.wiring.upstream(self.me, input, Capability::EmptyNotifier);
        self.listens.extend(&notes);
        Signal::new(notes, open)
    }
    /// The signal of [`InitCx::upstream`] without the turns: to look at.
    pub fn signal_of(&self, input: usize) -> Signal {
        let (notes, open) = self.wiring.upstream(self.me, input, Capability::EmptyNotifier);
        Signal::new(notes, open)
    }
    /// Whether a notifier wakes this element's task.
    pub fn is_woken_by(&self, note: Note) -> bool {
        self.listens.iter().any(|&n| Note::new(n) == note)
    }
    /// What a source that pushes to an output sleeps on: it is off while everything downstream is full.
    pub fn downstream(&mut self, output: usize) -> Signal {
        let (notes, _) = self.wiring.downstream(self.me, output, Capability::FullNotifier);
        let always = notes.is_empty();
        self.listens.extend(&notes);
        Signal::new(notes, always)
    }
    /// This element's gauge, if its class declares the capability Storage: it is to be kept right.
    pub fn gauge(&self) -> Gauge {
        self.gauge_of(self.me).unwrap_or_default()
    }
    /// The gauge of another element, if its class declares the capability Storage.
    pub fn gauge_of(&self, element: u32) -> Option<Gauge> {
        self.wiring.gauge(element)
    }
    /// The elements of capability Storage nearest upstream of an input.
    pub fn storages_upstream(&self, input: usize) -> Vec<u32> {
        self.wiring.storages_upstream(self.me, input)
    }
    /// The elements of capability Storage nearest downstream of an output.
    pub fn storages_downstream(&self, output: usize) -> Vec<u32> {
        self.wiring.storages_downstream(self.me, output)
    }
    /// Watches a descriptor; nothing happens until [`InitCx::wait`] or [`Cx::wait`](crate::Cx::wait).
    pub fn watch(&mut self, fd: Arc<OwnedFd>, interest: Interest) -> Watch {
        self.core.watches.add(self.me, fd, interest)
    }
    /// Has this element's task scheduled, once, as soon as the descriptor is ready.
    pub fn wait(&mut self, watch: Watch) {
        self.core.watches.wait(watch);
    }
    /// Sets timer `id` of this element.
    pub fn set_timer(&mut self, id: u16, at: i64) {
        self.core.timers.schedule((self.me, id), at);
    }
    /// Turns a notifier of this element on.
    pub fn set_note(&mut self, note: Note) {
        self.core.set_note(note);
    }
    /// Says which queue of several workers a notifier of this element tells of room in, see [`Cx::room`](crate::Cx::room).
    pub fn measure(&mut self, note: Note, queue: Arc<dyn Room>) {
        self.core.notes.measure(note, queue);
    }
    /// The element's number.
    pub fn me(&self) -> u32 {
        self.me
    }
    /// The element's full name.
    pub fn name(&self) -> &str {
        self.core.name(self.me)
    }
    /// Where the element is declared: `FILE:LINE`. Empty if that is not known.
    pub fn place(&self) -> &str {
        self.core.place(self.me)
    }
    /// How messages name the element: `name :: Class`.
    pub fn declaration(&self) -> String {
        self.core.declaration(self.me)
    }
    /// The full name of another element.
    pub fn name_of(&self, element: u32) -> &str {
        self.core.name(element)
    }
    /// Calls `f` with what arguments are read against, with the rights of the configuration.
    pub fn with_args<R>(&mut self, f: impl FnOnce(&ArgCx<'_>) -> R) -> R {
        let scope = self.core.info.get(self.me as usize).map_or("", |i| &i.scope);
        f(&ArgCx { scope, names: &self.core.names, origin: self.core.home })
    }
    /// Calls `f` with the context that the element has when it runs, but without the rest of the router.
    pub fn with_cx<R>(&mut self, f: impl FnOnce(&mut Cx<'_>) -> R) -> R {
        f(&mut Cx::new(&mut [], self.core, None, self.me, 0))
    }
    /// Shows a message.
    pub fn message(&self, text: &str) {
        self.core.outside.message(text);
    }
    /// Requests that the router stops, so many times; the driver answers.
    pub fn stop(&self, times: u32) {
        self.core.outside.stop(times);
    }
    /// Schedules the element's task, also if its class has none that is scheduled from the start.
    pub fn schedule(&mut self) {
        self.core.wakes.push(self.me);
    }
    /// Whether what this element [`holds`](crate::Lifecycle::holds) is open in the running router, which hands it over when
    /// this one takes its place: it must not be opened now.
    pub fn inherits(&self) -> bool {
        self.inherits
    }
    /// The router as threads see it that an element starts; none where the element stands alone.
    pub fn remote(&self) -> Option<Arc<dyn Remote>> {
        self.core.outside.remote()
    }
}
