// SPDX-License-Identifier: MIT OR Apache-2.0
//! The test kit: runs a single element without a router, and lets a test control its surroundings.

mod around;

use self::around::{Around, OneElement, Outside};
use crate::build::{BuildCx, Shared};
use crate::class::{Action, Build, Drive, Element, Object, Turn, Verdict};
use crate::clock::Clock;
use crate::cx::Cx;
use crate::error::ElementError;
use crate::gauge::Gauge;
use crate::handler::{self, HandlerError};
use crate::notify::{Note, Notes};
use crate::random::Seed;
use crate::router::Info;
use crate::run_loop::{self, Core, Edge, Entry, Internals as _};
use castanet_packet::{Batch, Packet};
use castanet_spec::codes::{Ports, Processing, ProcessingCode};
use castanet_spec::{Args, Capability, ClassSpec, LedgerRole, Names, Origin, Reason};
use std::collections::VecDeque;
use std::sync::Arc;

/// One element of class `T`, named `e`, under simulated time that starts at 1000 s.
pub struct Kit<T: Object> {
    /// The element.
    pub element: T,
    core: Core,
    edges: Vec<Edge>,
    around: Around,
    outside: Arc<Outside>,
    warnings: Vec<String>,
    wiring: OneElement,
    first: u32,
    /// The number of packets that the test gave to the element.
    given: u64,
    /// The number of packets that the test took from the element's outputs.
    taken: u64,
    /// The number of packets by which calls of [`Kit::with`] and [`Kit::handed_over`] have put the ledger out of
    /// balance. The ledger check subtracts this number.
    beside: i64,
    spec: &'static ClassSpec,
}

/// Checks the ledger when a test ends: the element must account for each packet that it received or made.
impl<T: Object> Drop for Kit<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check_ledger();
        }
    }
}

impl<T: Object> Kit<T> {
    /// Returns the number of unaccounted packets: those that the element received or made, minus those that left it,
    /// were dropped or are still in it.
    fn missing(&self) -> i64 {
        let of = |entry| self.core.entries_of(0).filter(|e| e.0 == entry).map(|e| e.1).sum::<u64>();
        let waiting = self.edges.iter().map(|e| e.batch.len()).sum::<usize>() + self.core.behind.len();
        let begun = self.given + self.around.pulled + of(Entry::Entered) + of(Entry::Made);
        let ended = self.taken + of(Entry::Left) + self.all_dropped() + self.element.held() + waiting as u64;
        // No test moves enough packets to overflow an `i64`.
        begun as i64 - ended as i64
    }
    /// Checks that the ledger balances and that the class declares its ledger entries.
    ///
    /// # Panics
    /// When the ledger does not balance, or the class makes an entry that it does not declare.
    fn check_ledger(&self) {
        let class = self.spec.name;
        let missing = self.missing() - self.beside;
        assert_eq!(
            missing,
            0,
            "{class}: packets that are nowhere: {} given, {} pulled, {} taken, {} held, booked {:?}, dropped {:?}",
            self.given,
            self.around.pulled,
            self.taken,
            self.element.held(),
            self.core.entries_of(0).collect::<Vec<_>>(),
            self.core.drops_of(0).collect::<Vec<_>>(),
        );
        let declares = |b| self.spec.ledger_role.contains(b);
        for (entry, _) in self.core.entries_of(0) {
            assert!(declares(entry.ledger()), "{class} does not declare {entry:?}");
        }
        assert!(
            self.element.held() == 0 || declares(LedgerRole::HOLDS),
            "{class} does not declare that it holds packets"
        );
    }
    /// The number of packets that the kernel dropped before the element could read them. The element reports it at
    /// cleanup.
    pub fn missed(&self) -> u64 {
        self.core.entries_of(0).filter(|e| e.0 == Entry::Missed).map(|e| e.1).sum()
    }
    /// The number of packets dropped, for all reasons together.
    pub fn all_dropped(&self) -> u64 {
        self.core.all_drops().map(|d| d.2).sum()
    }
    /// Records that another element has taken over the packets of this element, so that the ledger check does not
    /// report them as missing.
    pub fn handed_over(&mut self) {
        self.beside = self.missing();
    }
}

/// The data from outside an element that is needed to build it.
pub struct Site {
    /// The state that replicas share.
    pub shared: Shared,
    /// The seed of the element's random numbers.
    pub seed: Seed,
    driver: Option<u32>,
    signals: Vec<(u32, i32)>,
}

impl Default for Site {
    fn default() -> Self {
        Site { shared: Shared::default(), seed: Seed::Fixed(1), driver: None, signals: Vec::new() }
    }
}

impl Site {
    /// Returns the context to build element `e`, which has number 0 and is the only replica. The two slices hold, for
    /// each input and each output, whether it is push.
    pub fn cx<'a>(
        &'a mut self,
        spec: &'static ClassSpec,
        config: &'a str,
        names: &'a Names,
        input_push: &'a [bool],
        output_push: &'a [bool],
    ) -> BuildCx<'a> {
        BuildCx {
            me: 0,
            name: "e",
            scope: "",
            spec,
            written_class: spec.name,
            config,
            names,
            archive: &[],
            inputs: input_push.len(),
            outputs: output_push.len(),
            input_push,
            output_push,
            knows_queue: false,
            seed: self.seed,
            replica: (0, 1),
            warnings: Vec::new(),
            shared: &mut self.shared,
            driver: &mut self.driver,
            signals: &mut self.signals,
        }
    }
}

impl<T: Build> Kit<T> {
    /// Builds and initialises an element with the fewest ports that its class allows. Agnostic ports are push. An error
    /// lists the faults of the configuration string.
    pub fn new(config: &str) -> Result<Kit<T>, Vec<String>> {
        let ports = Ports::parse(T::SPEC.ports).unwrap_or(Ports::ANY);
        Kit::with_ports(config, ports.inputs.min, ports.outputs_for(ports.inputs.min).min)
    }

    /// Like [`Kit::new`], with the given numbers of inputs and outputs.
    pub fn with_ports(config: &str, inputs: usize, outputs: usize) -> Result<Kit<T>, Vec<String>> {
        Kit::with_names(config, inputs, outputs, Names::new())
    }

    /// Like [`Kit::new`], with random numbers from `seed`.
    pub fn with_seed(config: &str, seed: Seed) -> Result<Kit<T>, Vec<String>> {
        let ports = Ports::parse(T::SPEC.ports).unwrap_or(Ports::ANY);
        let (inputs, site) = (ports.inputs.min, Site { seed, ..Site::default() });
        Kit::on(site, config, inputs, ports.outputs_for(inputs).min, Names::new())
    }

    /// Like [`Kit::with_ports`], with `names` as the names that the configuration defines. The element `e` has number
    /// 0.
    pub fn with_names(
        config: &str,
        inputs: usize,
        outputs: usize,
        names: Names,
    ) -> Result<Kit<T>, Vec<String>> {
        Kit::on(Site::default(), config, inputs, outputs, names)
    }

    fn on(
        mut site: Site,
        config: &str,
        inputs: usize,
        outputs: usize,
        mut names: Names,
    ) -> Result<Kit<T>, Vec<String>> {
        names.set_origin(Origin::Operator);
        let code = ProcessingCode::parse(T::SPEC.processing);
        let push = |f: &dyn Fn(&ProcessingCode, usize) -> Processing, n: usize| -> Vec<bool> {
            (0..n).map(|i| code.as_ref().is_none_or(|c| f(c, i) != Processing::Pull)).collect()
        };
        let (input_push, output_push) =
            (push(&|c, i| c.input(i), inputs), push(&|c, i| c.output(i), outputs));
        let mut cx = site.cx(T::SPEC, config, &names, &input_push, &output_push);
        let (args, errors) = T::Args::parse(config, cx.arg_cx());
        let mut texts: Vec<String> = errors.iter().map(|e| e.message.clone()).collect();
        let mut element = match args {
            Some(args) => {
                T::build(args, &mut cx).map_err(|e| e.0.into_iter().map(|e| e.message).collect::<Vec<_>>())?
            }
            None => return Err(texts),
        };
        texts.extend(cx.warnings.iter().map(|w| w.message.clone()));
        let outside = Arc::new(Outside::default());
        let info = Info { name: "e".into(), class: T::SPEC.name.into(), ..Info::default() };
        let clock = Clock::simulated(1_000_000_000_000);
        let mut core =
            Core::new([info].into(), Arc::new(names), Notes::new(2 + inputs), outside.clone(), clock);
        core.begin_task(32, 32);
        let wiring = OneElement::default();
        let (done, ..) = run_loop::initialise(&mut core, 0, &wiring, false, |cx| element.initialise(cx));
        done.map_err(|e| vec![e.to_string()])?;
        let edges = (0..outputs).map(|_| Edge::default()).collect();
        let around = Around { supply: (0..inputs).map(|_| VecDeque::new()).collect(), ..Around::default() };
        Ok(Kit {
            element,
            core,
            edges,
            around,
            outside,
            warnings: texts,
            wiring,
            first: 0,
            given: 0,
            taken: 0,
            beside: 0,
            spec: T::SPEC,
        })
    }

    /// Calls `f` with the element and its run-time context. The ledger check ignores what `f` changes.
    pub fn with<R>(&mut self, f: impl FnOnce(&mut T, &mut Cx<'_>) -> R) -> R {
        let before = self.missing();
        let out = self.lend(f);
        self.beside += self.missing() - before;
        out
    }
    fn lend<R>(&mut self, f: impl FnOnce(&mut T, &mut Cx<'_>) -> R) -> R {
        let skip = self.first as usize;
        let edges = self.edges.get_mut(skip..).unwrap_or_default();
        f(&mut self.element, &mut Cx::new(edges, &mut self.core, Some(&mut self.around), 0, self.first))
    }
    /// Records the handler calls that the element requested with [`Cx::call`], in order.
    fn deferred(&mut self) {
        for (_, call) in std::mem::take(&mut self.core.deferred) {
            self.around.calls.push((
                call.element.and_then(|e| u32::try_from(e).ok()),
                call.handler,
                call.value,
            ));
        }
    }
    fn outputs(&mut self) -> Vec<(usize, Packet)> {
        self.deferred();
        let each = self.edges.iter_mut().enumerate();
        let out: Vec<_> =
            each.flat_map(|(i, e)| e.batch.drain().map(move |p| (i, p)).collect::<Vec<_>>()).collect();
        self.taken += out.len() as u64;
        out
    }
    /// Sets two limits to `n`: the number of packets that a turn may move, and the number of turns whose packets one
    /// call of the task may move at once.
    pub fn limit(mut self, n: usize) -> Self {
        (self.core.budget.limit, self.core.budget.turns) = (n, n);
        self
    }
    /// Moves simulated time forward to `ns` nanoseconds after its start.
    pub fn at(&mut self, ns: i64) {
        self.core.clock.jump(1_000_000_000_000 + ns);
    }
    /// Adds a packet to those that can be pulled through an input, and turns the input's notifier on.
    pub fn supply(&mut self, input: usize, p: Packet) {
        if let Some(s) = self.around.supply.get_mut(input) {
            s.push_back(p);
        }
        self.core.set_note(Note(2 + u32::try_from(input).unwrap_or(0)));
    }
    /// Returns a gauge by the number of its storage: 0 is this element, 1 is the storage downstream, 2 is the storage
    /// upstream.
    pub fn gauge(&self, storage: usize) -> Gauge {
        self.wiring.gauges.get(storage).cloned().unwrap_or_default()
    }
    /// Whether the element is waiting for a descriptor.
    pub fn waits(&self) -> bool {
        self.core.watches.any()
    }
    /// Returns the value of a read handler.
    pub fn read(&mut self, handler: &str) -> Result<String, HandlerError> {
        self.read_with(handler, "")
    }
    /// Returns the value of a read handler, called with `parameters`.
    pub fn read_with(&mut self, handler: &str, parameters: &str) -> Result<String, HandlerError> {
        self.lend(|e, cx| handler::read(e, handler, parameters, cx))
    }
    /// Writes a handler.
    pub fn write(&mut self, handler: &str, value: &str) -> Result<(), HandlerError> {
        self.lend(|e, cx| handler::write(e, handler, value, cx))
    }
    /// Sets the value that all other elements return for the read handler `handler`.
    pub fn answer(&mut self, handler: &str, value: &str) {
        self.around.values.push((handler.into(), value.into()));
    }
    /// Returns the handler calls that the element has made since the last call of this function, in order. Each has the
    /// number of the element, the handler and the value.
    pub fn calls(&mut self) -> Vec<(Option<u32>, String, String)> {
        self.deferred();
        std::mem::take(&mut self.around.calls)
    }
    /// The number of packets dropped for `reason`.
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.core.drops(0, reason)
    }
    /// Returns the messages shown since the last call of this function.
    pub fn messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.outside.messages.lock())
    }
    /// Warnings about the configuration.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
    /// The number of stop requests to the driver so far.
    pub fn stops(&self) -> u32 {
        *self.outside.stops.lock()
    }
    /// Whether the element has requested a turn of its task since the last call of this function.
    pub fn woken(&mut self) -> bool {
        !std::mem::take(&mut self.core.wakes).is_empty()
    }
    /// When the first of the element's timers expires, in nanoseconds after the start. None if no timer is set.
    pub fn next_timer(&self) -> Option<i64> {
        self.core.timers.next().map(|(t, _)| t - 1_000_000_000_000)
    }
    /// Whether the element's notifier for `capability` is on.
    pub fn note(&self, capability: Capability) -> bool {
        self.core.notes.is_on(usize::from(capability == Capability::FullNotifier))
    }
    /// Moves counts and state from the element of `old` to this kit's element, as a hot swap does.
    pub fn take_state_of(&mut self, old: &mut Kit<T>) -> Result<(), ElementError> {
        crate::count::move_counts(&mut old.element, &mut self.element);
        self.with(|e, cx| e.take_state(&mut old.element, cx))
    }
    /// Cleans the element up.
    pub fn cleanup(&mut self) -> Result<(), ElementError> {
        self.lend(|e, cx| e.cleanup(cx))
    }
}

impl<T: Build + Action> Kit<T> {
    /// Runs the action on packets. Returns each packet with the number of its output, in the order of the outputs.
    pub fn act(&mut self, packets: impl IntoIterator<Item = Packet>) -> Vec<(usize, Packet)> {
        let mut batch: Batch = packets.into_iter().collect();
        self.given += batch.len() as u64;
        self.first = 1;
        self.lend(|e, cx| e.action_batch(&mut batch, cx));
        self.first = 0;
        if let Some(e) = self.edges.first_mut() {
            e.batch.append(&mut batch);
        }
        self.outputs()
    }
    /// Runs the action on one packet. Returns its verdict and the packet.
    pub fn act1(&mut self, mut p: Packet) -> (Verdict, Packet) {
        self.first = 1;
        // The ledger check does not count this packet as given, because the caller gets it back, even if the verdict is
        // to drop it.
        let v = self.lend(|e, cx| e.action(&mut p, cx));
        self.first = 0;
        (v, p)
    }
}

impl<T: Build + Element> Kit<T> {
    /// Pushes packets to an input. Returns each emitted packet with the number of its output, in the order of the
    /// outputs.
    pub fn push(&mut self, port: usize, packets: impl IntoIterator<Item = Packet>) -> Vec<(usize, Packet)> {
        let mut batch: Batch = packets.into_iter().collect();
        self.given += batch.len() as u64;
        self.lend(|e, cx| e.push(port, &mut batch, cx));
        // As in the run loop, packets left in the batch are dropped.
        self.core.count_drops(0, Reason::Discarded, batch.len() as u64);
        self.outputs()
    }
    /// Pulls at most `max` packets from an output, and returns them.
    pub fn pull(&mut self, port: usize, max: usize) -> Vec<Packet> {
        let mut batch = Batch::new();
        self.lend(|e, cx| e.pull(port, max, &mut batch, cx));
        self.deferred();
        self.taken += batch.len() as u64;
        batch.drain().collect()
    }
    /// Runs one turn of the task. Returns its result, and each emitted packet with the number of its output.
    pub fn task(&mut self) -> (Turn, Vec<(usize, Packet)>) {
        let turn = self.lend(|e, cx| e.task(cx));
        (turn, self.outputs())
    }
    /// Sends a request to stop to the element, which must be the driver script. Returns the element's decision.
    pub fn drive(&mut self) -> Drive {
        self.lend(|e, cx| e.drive(cx))
    }
    /// Sends operating-system signal `signal` to the element.
    pub fn signal(&mut self, signal: i32) {
        self.lend(|e, cx| e.signal(signal, cx));
    }
    /// Moves time forward to the element's next timer and lets the timer expire. Returns the emitted packets. None if
    /// no timer is set.
    pub fn expire(&mut self) -> Option<Vec<(usize, Packet)>> {
        let (t, _) = self.core.timers.next()?;
        self.core.clock.jump(t);
        let (_, (_, id)) = self.core.timers.pop_due(t)?;
        self.lend(|e, cx| e.timer(id, cx));
        Some(self.outputs())
    }
}

/// A packet with these bytes, for tests.
///
/// # Panics
/// When the pool is exhausted.
pub fn packet(data: &[u8]) -> Packet {
    match Packet::copy_of(data) {
        Some(p) => p,
        None => panic!("no buffer for {} bytes", data.len()),
    }
}
