// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contexts that elements are built and initialised with.

use crate::cx::Cx;
use crate::error::ElementError;
use crate::gauge::Gauge;
use crate::notify::{Note, Room, Signal};
use crate::place::Place;
use crate::random::{Random, Secret, Seed};
use crate::remote::Remote;
use crate::router::Info;
use crate::run_loop::Core;
use crate::run_loop::Internals as _;
use crate::watch::{Interest, Watch};
use castanet_spec::{ArgCx, ArgError, Capability, ClassSpec, Names, Parser, ValueError};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The errors in the configuration string of an element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigError(pub Vec<ArgError>);

impl From<ArgError> for ConfigError {
    fn from(e: ArgError) -> Self {
        ConfigError(vec![e])
    }
}

/// Makes an error about the configuration string as a whole.
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
        let (classic, help) = (e.classic().map(String::from), e.help().to_string());
        ConfigError(vec![ArgError { classic, help, ..ArgError::new(e.to_string(), 0..usize::MAX) }])
    }
}

/// Returns the error for a wrong value at `range` of the configuration string. Its message calls the value `name`.
fn wrong_at(range: Range<usize>, name: &str, error: &ValueError) -> ArgError {
    let (help, meant) = error.mend();
    let replacement = meant.map(String::from);
    ArgError { replacement, ..ArgError::new(error.about(name), range).help(help) }
}

/// The state that the replicas of an element share, by element number (`u32::MAX` for state of the whole router) and
/// type. See [`BuildCx::share_as`].
pub type Shared = HashMap<(u32, TypeId), Arc<dyn Any + Send + Sync>>;

/// Returns state for [`Shared`] that belongs to the whole router.
pub fn of_router<T: Send + Sync + 'static>(state: T) -> Shared {
    Shared::from([((u32::MAX, TypeId::of::<T>()), Arc::new(state) as Arc<dyn Any + Send + Sync>)])
}

/// The context that an element is built with.
pub struct BuildCx<'a> {
    /// The element's number in the router.
    pub me: u32,
    /// The element's full name.
    pub name: &'a str,
    /// The scope prefix of the element's name.
    pub scope: &'a str,
    /// The class that the element is declared with. If the configuration uses an alias, this is the class behind it.
    pub spec: &'static ClassSpec,
    /// The name of the class as the configuration writes it, which may be an alias.
    pub written_class: &'a str,
    /// The element's configuration string.
    pub config: &'a str,
    /// The names that the configuration defines: addresses, ports, annotations, elements.
    pub names: &'a Names,
    /// The members of the archive that held the configuration, except `config`, by name. Empty if it was plain text.
    pub archive: &'a [(String, Vec<u8>)],
    /// Number of inputs in use.
    pub inputs: usize,
    /// Number of outputs in use.
    pub outputs: usize,
    /// For each input, whether it is push.
    pub input_push: &'a [bool],
    /// For each output, whether it is push.
    pub output_push: &'a [bool],
    /// Whether a push element can compute the queue length that each packet of a batch finds. True if output 0 is the only
    /// output and leads directly to a queue that nothing else feeds, or if no queue is downstream of output 0. Computed
    /// only if the class declares `effects(looks)`.
    pub knows_queue: bool,
    /// The seed of all random numbers in this run of the router.
    pub seed: Seed,
    /// The index of this replica of the element, from 0, and the number of replicas.
    pub replica: (usize, usize),
    /// The warnings about the configuration string so far.
    pub warnings: Vec<ArgError>,
    /// The state that replicas share. All elements of the router use this one map.
    pub shared: &'a mut Shared,
    /// The number of the driver: the element that decides when the router stops. None if no element has claimed this
    /// role.
    pub driver: &'a mut Option<u32>,
    /// The operating-system signals that elements watch, as pairs of element and signal number.
    pub signals: &'a mut Vec<(u32, i32)>,
}

impl<'a> BuildCx<'a> {
    /// Returns the context for parsing arguments.
    pub fn arg_cx(&self) -> ArgCx<'a> {
        ArgCx { scope: self.scope, names: self.names, origin: self.names.origin() }
    }
    /// Returns the byte ranges of all values of an argument in the configuration string.
    fn places_of(&self, argument: &str) -> Vec<Range<usize>> {
        let index = self.spec.args.iter().position(|a| a.name == argument);
        index.map_or(Vec::new(), |i| Parser::new(self.config, self.spec.args, self.arg_cx()).places(i))
    }
    /// Returns the byte range of an argument in the configuration string, for errors. If the argument was not given,
    /// this is the range of the whole string.
    fn place_of(&self, argument: &str) -> Range<usize> {
        self.places_of(argument).pop().unwrap_or(0..usize::MAX)
    }
    /// Returns the errors about an argument that takes several values. Each error comes with the index of its value.
    /// Messages call a value `what`, such as `address`.
    pub fn wrong_items(&self, argument: &str, what: &str, errors: Vec<(usize, ValueError)>) -> ConfigError {
        let places = self.places_of(argument);
        let each = errors.into_iter().map(|(n, e)| {
            let range = places.get(n).cloned().unwrap_or(0..usize::MAX);
            wrong_at(range, &format!("{what} {n}"), &e)
        });
        ConfigError(each.collect())
    }
    /// Returns an error about the value of an argument. The error points to the value in the configuration string.
    pub fn wrong_value(&self, argument: &str, error: ValueError) -> ConfigError {
        wrong_at(self.place_of(argument), argument, &error).into()
    }
    /// Returns the error for an argument that requires `wanted` outputs if another number of outputs is in use.
    pub fn wrong_outputs(&self, argument: &str, wanted: u32) -> ConfigError {
        let text = format!("{argument}: {wanted} outputs wanted, but {} in use", self.outputs);
        let help = match wanted.saturating_sub(1) {
            0 => format!("write {}, or leave the argument out", self.outputs),
            last => format!("connect outputs 0 to {last}, or write {}", self.outputs),
        };
        ArgError::new(text, self.place_of(argument)).help(help).into()
    }
    /// Returns the seed for random numbers that need not be secret. The configuration may set this seed.
    pub fn random_seed(&self) -> Seed {
        self.names.seed().map_or(self.seed, Seed::Fixed)
    }
    /// Returns the element's own random number generator. With a fixed seed, all replicas of the element draw the same
    /// numbers.
    pub fn random(&self) -> Random {
        Random::of(self.random_seed(), self.name)
    }
    /// Returns the element's own random number generator. Each replica of the element draws different numbers, even
    /// with a fixed seed.
    pub fn random_of_replica(&self) -> Random {
        let seed = match self.random_seed() {
            Seed::System => Seed::System,
            Seed::Fixed(n) => Seed::Fixed(n.wrapping_add(self.replica.0 as u64)),
        };
        Random::of(seed, self.name)
    }
    /// Returns the element's own generator of numbers that an attacker must not predict from earlier ones. A seed in
    /// the configuration does not affect this generator.
    pub fn secret(&self) -> Secret {
        Secret::of(self.seed, self.name)
    }
    /// Returns the state that all replicas of this element share. The first replica to be built makes it with `make`.
    pub fn share<T: Send + Sync + 'static>(&mut self, make: impl FnOnce() -> T) -> Arc<T> {
        self.share_as(self.me, make)
    }
    /// Returns the shared state that belongs to `owner`: the number of an element, or `u32::MAX` for state of the whole
    /// router. An element may use the state of another element, for example of `other` in an argument `TABLE other`. If
    /// the state does not exist yet, `make` makes it.
    pub fn share_as<T: Send + Sync + 'static>(&mut self, owner: u32, make: impl FnOnce() -> T) -> Arc<T> {
        let any = self.shared.entry((owner, TypeId::of::<T>())).or_insert_with(|| Arc::new(make())).clone();
        match any.downcast::<T>() {
            Ok(t) => t,
            // Unreachable, because the key of the map (see `Shared`) contains the type.
            Err(_) => unreachable!("shared state is kept by type"),
        }
    }
    /// Returns the shared state that belongs to `owner`, as [`BuildCx::share_as`], if it exists. The state of the whole router may
    /// come from the program that runs it.
    pub fn shared_of<T: Send + Sync + 'static>(&self, owner: u32) -> Option<Arc<T>> {
        self.shared.get(&(owner, TypeId::of::<T>())).cloned()?.downcast::<T>().ok()
    }
    /// Makes this element the driver, which decides when the router stops. Returns false if another element is the
    /// driver already.
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
    /// Adds a message. If the configuration is refused, the message is shown together with the errors of other
    /// elements. If the configuration is accepted, the message is discarded, and the element must show it at its
    /// initialisation.
    pub fn tell_beside_errors(&mut self, text: &str) {
        let message = ArgError::warning(text, 0..usize::MAX);
        self.warnings.push(ArgError { classic: Some(text.into()), beside_errors: true, ..message });
    }
    /// Adds a warning about the configuration string.
    pub fn warn(&mut self, warning: ArgError) {
        self.warnings.push(ArgError { warning: true, ..warning });
    }
}

/// Finds the elements with a capability that are nearest to an element, upstream or downstream (flow-based router
/// context).
pub trait Wiring {
    /// Returns the notifier of an element for a capability, if the element has one.
    fn note(&self, element: u32, capability: Capability) -> Option<Note>;
    /// Returns the numbers of the notifiers of `capability` that are nearest upstream of an input. The second value is
    /// true if some path to the input has no such notifier.
    fn upstream(&self, element: u32, input: usize, capability: Capability) -> (Vec<u32>, bool);
    /// Returns the numbers of the notifiers of `capability` that are nearest downstream of an output. The second value
    /// is true if some path from the output has no such notifier.
    fn downstream(&self, element: u32, output: usize, capability: Capability) -> (Vec<u32>, bool);
    /// Returns the gauge of an element with capability Storage: the number of packets that it stores. By default, no
    /// element has a gauge.
    fn gauge(&self, _element: u32) -> Option<Gauge> {
        None
    }
    /// Returns the numbers of the nearest elements with capability Storage upstream of an input. By default, there are
    /// none.
    fn storages_upstream(&self, _element: u32, _input: usize) -> Vec<u32> {
        Vec::new()
    }
    /// Returns the numbers of the nearest elements with capability Storage downstream of an output. By default, there
    /// are none.
    fn storages_downstream(&self, _element: u32, _output: usize) -> Vec<u32> {
        Vec::new()
    }
}

/// The context that an element is initialised with.
pub struct InitCx<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) me: u32,
    pub(crate) wiring: &'a dyn Wiring,
    /// Whether the element's task is scheduled from the start.
    pub scheduled: bool,
    /// The numbers of the notifiers that wake this element's task.
    pub(crate) listens: Vec<u32>,
    pub(crate) inherits: bool,
}

impl InitCx<'_> {
    /// The time in nanoseconds since 1970.
    pub fn now(&mut self) -> i64 {
        self.core.clock.now()
    }
    /// Returns this element's notifier for a capability. None if the class does not declare the capability.
    pub fn note(&self, capability: Capability) -> Option<Note> {
        self.wiring.note(self.me, capability)
    }
    /// Returns the signal for a task that pulls from this input: the task sleeps until the signal is on. When one of
    /// the signal's notifiers is turned on, the element gets a turn ([`Element::task`](crate::Element::task)), even if
    /// its class declares no task. Some elements delay packets on a pull path and have a notifier of their own. Such an
    /// element must turn its notifier on in this turn, to wake the task that pulls from it.
    ///
    /// The signal is never on if no packets can arrive. It is always on if a path leads to an element that may have
    /// packets but has no notifier.
    pub fn upstream(&mut self, input: usize) -> Signal {
        let (notes, open) = self.wiring.upstream(self.me, input, Capability::EmptyNotifier);
        self.listens.extend(&notes);
        Signal::new(notes, open)
    }
    /// Returns the same signal as [`InitCx::upstream`], but the signal's notifiers do not wake this element's task.
    pub fn signal_of(&self, input: usize) -> Signal {
        let (notes, open) = self.wiring.upstream(self.me, input, Capability::EmptyNotifier);
        Signal::new(notes, open)
    }
    /// Whether a notifier wakes this element's task.
    pub fn is_woken_by(&self, note: Note) -> bool {
        self.listens.iter().any(|&n| Note::new(n) == note)
    }
    /// Returns the signal for a source that pushes to this output: the source sleeps until the signal is on. The signal
    /// is off while all queues downstream are full. If no element downstream has a notifier, the signal is always on.
    pub fn downstream(&mut self, output: usize) -> Signal {
        let (notes, _) = self.wiring.downstream(self.me, output, Capability::FullNotifier);
        let always = notes.is_empty();
        self.listens.extend(&notes);
        Signal::new(notes, always)
    }
    /// Returns this element's gauge: the number of packets that the element stores. The element must keep the gauge up
    /// to date. Only for classes that declare the capability Storage.
    pub fn gauge(&self) -> Gauge {
        self.gauge_of(self.me).unwrap_or_default()
    }
    /// Returns the gauge of another element. None if its class does not declare the capability Storage.
    pub fn gauge_of(&self, element: u32) -> Option<Gauge> {
        self.wiring.gauge(element)
    }
    /// Returns the numbers of the nearest elements with capability Storage upstream of an input.
    pub fn storages_upstream(&self, input: usize) -> Vec<u32> {
        self.wiring.storages_upstream(self.me, input)
    }
    /// Returns the numbers of the nearest elements with capability Storage downstream of an output.
    pub fn storages_downstream(&self, output: usize) -> Vec<u32> {
        self.wiring.storages_downstream(self.me, output)
    }
    /// Registers a descriptor, without waiting for it. Call [`InitCx::wait`] or [`Cx::wait`](crate::Cx::wait) to wait.
    pub fn watch(&mut self, fd: Arc<OwnedFd>, interest: Interest) -> Watch {
        self.core.watches.add(self.me, fd, interest)
    }
    /// Schedules this element's task once, as soon as the descriptor is ready.
    pub fn wait(&mut self, watch: Watch) {
        self.core.watches.wait(watch);
    }
    /// Sets timer `id` of this element to expire at router time `at`, in nanoseconds since 1970.
    pub fn set_timer(&mut self, id: u16, at: i64) {
        self.core.timers.schedule((self.me, id), at);
    }
    /// Turns a notifier of this element on.
    pub fn set_note(&mut self, note: Note) {
        self.core.set_note(note);
    }
    /// Sets the queue for notifier `note` of this element. The notifier reports the free space of this queue. Needed
    /// only if several workers share the queue. See [`Cx::room`](crate::Cx::room).
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
    /// Where the element is declared.
    pub fn place(&self) -> Place {
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
    /// Calls `f` with the context for parsing arguments. `f` has the rights of the configuration.
    pub fn with_args<R>(&mut self, f: impl FnOnce(&ArgCx<'_>) -> R) -> R {
        let scope = self.core.info.get(self.me as usize).map_or("", Info::scope);
        f(&ArgCx { scope, names: &self.core.names, origin: self.core.home })
    }
    /// Calls `f` with the run-time context of the element. This context has no access to the rest of the router.
    pub fn with_cx<R>(&mut self, f: impl FnOnce(&mut Cx<'_>) -> R) -> R {
        f(&mut Cx::new(&mut [], self.core, None, self.me, 0))
    }
    /// Shows a message.
    pub fn message(&self, text: &str) {
        self.core.outside.message(text);
    }
    /// Sends the driver `times` requests to stop the router. The driver decides whether the router stops.
    pub fn stop(&self, times: u32) {
        self.core.outside.stop(times);
    }
    /// Schedules the element's task, regardless of the field `scheduled`.
    pub fn schedule(&mut self) {
        self.core.wakes.push(self.me);
    }
    /// Whether the running router already has the resource of this element ([`holds`](crate::Lifecycle::holds)) open.
    /// If so, this element must not open it, because the hot swap will hand it over.
    pub fn inherits(&self) -> bool {
        self.inherits
    }
    /// Returns a handle by which threads that the element starts access the router. None in tests of a single
    /// element.
    pub fn remote(&self) -> Option<Arc<dyn Remote>> {
        self.core.outside.remote()
    }
}
