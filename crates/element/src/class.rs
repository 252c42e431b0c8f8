// SPDX-License-Identifier: MIT OR Apache-2.0
//! The traits that a class implements.

use crate::build::{BuildCx, ConfigError, InitCx};
use crate::count::{CountVisitor, Counts};
use crate::cx::Cx;
use crate::error::ElementError;
use crate::handler::{HandlerError, Handlers};
use castanet_kernel::handover::Points;
use castanet_kernel::{Code, Lowered, Table};
use castanet_packet::{Batch, Packet};
use castanet_spec::{Args, ClassSpec, ClassSpecs, Effects, HandlerFlags, Names, Reason};
use std::any::Any;
use std::sync::Arc;

/// The decision of an [`Action`] about its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet continues through output 0.
    Next,
    /// The packet leaves by a side output, 1 or above. If nothing is connected to the output, the packet is dropped.
    Out(u16),
    /// The packet is dropped.
    Drop(Reason),
    /// The packet continues through output 0. The copies that were emitted for it go first, and the packets that were
    /// put behind it ([`Cx::behind`]) follow it. Only classes that declare `copies` may return this.
    Several,
}

/// How full a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The number of packets in the queue.
    pub packets: usize,
    /// The maximum number of packets.
    pub capacity: usize,
}

/// What a task wants next. The task returns this at the end of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The task gets another turn after the other tasks have had theirs.
    Again,
    /// The scheduler continues this turn at once. The turn was split only because [`Cx::limit`] is smaller than the
    /// task's burst.
    More,
    /// The task sleeps until a notifier, a timer or a handler wakes it.
    Sleep,
}

/// The driver script's answer to a request to stop the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// The router continues to run.
    Continue,
    /// The router stops.
    Stop,
}

/// A class and its declaration. `#[derive(Class)]` implements this trait.
///
/// `#[class(...)]` takes: `name`, `aliases("A", "B")`, `ports`, `processing`, `flow` (default `x/x`),
/// `packets` (see [`castanet_spec::packets`]), any number of `packets_if("ARG VALUE", "code")` for elements with
/// this argument, `alignment`, `workers = replicate | share | exclusive`, `offload = transparent | aware | none`,
/// `effects(prints, files, calls, stops)`, `reconfigure = keeps | restarts` (its handler `config` can be
/// written), `takes_state = "what moves"`, `drops(Reason, ...)`, `ledger(enters, makes, leaves, holds)` and
/// `ends(Reason, ...)` for the ledger ([`LedgerRole`](castanet_spec::LedgerRole)), `capabilities(Storage, ...)`,
/// `host(Receives, ...)` ([`HostUse`](castanet_spec::HostUse)), and
/// `depends = packet | order` ([`Depends`](castanet_spec::Depends)), and
/// these flags: `task`, `kernel` (the class, or its engine if that processes the packets, implements [`InKernel`]), `copies`, `descending` (packets on higher outputs go first), `fifo`, `clock`, `config_follows`
/// (a write to the handler of an argument also changes `config`), `information`, `build` (the class implements
/// [`Build`] itself), `lifecycle` (it implements [`Lifecycle`] itself), `handlers` (it has an `impl` block
/// with [`#[handlers]`](crate::handlers)).
///
/// `#[count(...)]` on a field declares a number that the element keeps, and the handler that shows it
/// ([`Counts`]).
///
/// A field with `#[engine]` holds the part that the class shares with other classes ([`Engine`]). With
/// `#[engine(handlers_first)]`, lists show the handlers of the engine before those of the class. Otherwise, the
/// handlers of the class come first. With `#[engine(element)]`, the engine also processes the packets: it implements
/// [`Element`], and the class delegates `Element` to it.
pub trait Class: Object + Handlers {
    /// The arguments of the class.
    type Args: Args;
    /// The declaration of the class.
    const SPEC: &'static ClassSpec;
}

/// The operations that every element has, whatever its class. The run loop, hot swap and packages access
/// elements through this trait. `#[derive(Class)]` implements it.
pub trait Object: Lifecycle + Any + Send {
    /// Returns the value of a read handler that the class declares. Returns none if the class declares no such handler.
    fn read_handler(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<String, HandlerError>>;
    /// Writes a handler that the class declares. Returns none if the class declares no such handler.
    fn write_handler(
        &mut self,
        handler: &str,
        value: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<(), HandlerError>>;
    /// Returns names and flags of the handlers that this element has beyond those of its class:
    /// [indexed](castanet_spec::ClassSpec::indexed) and [dynamic](Lifecycle::dynamic_handlers) handlers.
    fn own_handlers(&self) -> Vec<(String, HandlerFlags)>;
    /// Calls `visit` with each count of the element and of its engine, and with the declaration of the count. `visit`
    /// may change the counts.
    fn each_count(&mut self, visit: &mut CountVisitor<'_>);
    /// Calls [`Lifecycle::take_over`] with `old`, if `old` is an element of the same class. Does nothing if it is not.
    fn take_over_from(&mut self, old: &mut dyn Any, cx: &mut Cx<'_>) -> Result<(), ElementError>;
    /// Calls [`Lifecycle::take_state`] with `old`, if `old` is an element of the same class. Does nothing if it is not.
    fn take_state_from(&mut self, old: &mut dyn Any, cx: &mut Cx<'_>) -> Result<(), ElementError>;
    /// Calls [`InKernel::lower`], if the class can run in the kernel.
    #[allow(unused_variables)]
    fn lower(&self, input: u32, code: &mut Code<'_>) -> Lowered {
        Err("its class cannot run in the kernel".into())
    }
    /// Calls [`InKernel::receives`], if the class can run in the kernel.
    fn receives(&self) -> Option<&str> {
        None
    }
    /// Calls [`InKernel::attach`], if the class can run in the kernel.
    #[allow(unused_variables)]
    fn attach(&mut self, to: Attached) {}
    /// Calls [`InKernel::counted`], if the class can run in the kernel.
    #[allow(unused_variables)]
    fn counted(&mut self, name: &str, more: u64, now: i64) {}
    /// Calls [`InKernel::finished`], if the class can run in the kernel.
    fn finished(&self) -> u64 {
        0
    }
    /// Calls [`InKernel::newly_lost`], if the class can run in the kernel.
    fn newly_lost(&mut self) -> u64 {
        0
    }
    /// Calls [`InKernel::discard_unread`], if the class can run in the kernel.
    fn discard_unread(&mut self) -> u64 {
        0
    }
}

/// Data that an element shares with its code in the kernel, or news about that code.
#[derive(Clone)]
pub enum Attached {
    /// The time of the router in nanoseconds, before tables are attached.
    Time(i64),
    /// A table that the code looks up, with its number. It is empty.
    Table(u32, Arc<dyn Table>),
    /// The points at which packets come up, for an element that [receives](InKernel::receives) them.
    Points(Arc<Points>),
    /// The code runs now, and no other router uses the device: an element that receives packets begins to receive.
    Started,
    /// The router has stopped: an element that receives packets lets no more of them come up.
    Stopped,
}

/// A class that can also run in the kernel, with the driver XDP. It declares the flag `kernel`.
///
/// A packet leaves the kernel's code with the same bytes, annotations and counts as it leaves the class's own code, or it goes
/// up unchanged, and the class's own code processes it.
pub trait InKernel {
    /// Describes what the element does with packets that arrive at an input.
    ///
    /// # Errors
    /// Why this element cannot run in the kernel, given its configuration.
    fn lower(&self, input: u32, code: &mut Code<'_>) -> Lowered;
    /// The device from which the element receives, if all its frames can be processed in the kernel.
    fn receives(&self) -> Option<&str> {
        None
    }
    /// Gives the element what it shares with its code in the kernel, before that code runs, or says that the code has started or the
    /// router has stopped.
    #[allow(unused_variables)]
    fn attach(&mut self, to: Attached) {}
    /// Called after `more` was added to the count `name`, because the code in the kernel has counted that much since the last
    /// call. `now` is the time in nanoseconds.
    #[allow(unused_variables)]
    fn counted(&mut self, name: &str, more: u64, now: i64) {}
    /// The number of packets that the element has sent or dropped at user level, if it sends packets to a device.
    fn finished(&self) -> u64 {
        0
    }
    /// The number of packets that the kernel has lost on their way up to the element since the last call.
    fn newly_lost(&mut self) -> u64 {
        0
    }
    /// Discards the packets on their way up to the element. Called when the router has stopped and the code no longer runs. Returns
    /// their number.
    fn discard_unread(&mut self) -> u64 {
        0
    }
}

/// Makes an element from its arguments. `#[derive(Class)]` implements this trait unless the class says `build`. The
/// derived implementation stores the arguments in the field `args`, and gives all other fields their default
/// values.
pub trait Build: Class {
    /// Makes the element, or returns the errors in its configuration. Building must not open files or devices, show
    /// messages or have other outside effects.
    fn build(args: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError>;
}

/// An engine is a part that several classes share: arguments, handlers and state. A class has its engine in a field
/// with `#[engine]`. `#[derive(Class)]` delegates arguments, handlers and [`Lifecycle`] to this field. With
/// `#[engine(element)]` it delegates [`Element`] too. Otherwise the class processes the packets.
pub trait Engine: Lifecycle + Handlers + Counts {
    /// The arguments of all classes that share the engine.
    type Args: Args;
    /// Makes the engine, as [`Build::build`] makes an element.
    fn build(args: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError>;
    /// The arguments, for handlers that read and write them.
    fn args(&mut self) -> &mut Self::Args;
}

/// All operations of an element except packet processing. `#[derive(Class)]` writes an empty implementation unless the
/// class says `lifecycle`.
#[allow(unused_variables)]
pub trait Lifecycle {
    /// Called once, when all elements of the router are built. Here the element requests notifiers, opens files and
    /// schedules its task.
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        Ok(())
    }
    /// Called once, when the router has stopped. Here the element writes out the data that it has buffered.
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        Ok(())
    }
    /// Returns names and flags of the handlers that this element's configuration defines, such as the handlers of a
    /// script. The name `*` means that the element accepts any handler name.
    fn dynamic_handlers(&self) -> Vec<(String, HandlerFlags)> {
        Vec::new()
    }
    /// Reads one of the [dynamic handlers](Lifecycle::dynamic_handlers).
    fn read_dynamic(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Result<String, HandlerError> {
        Err("read handler not implemented".into())
    }
    /// Writes one of the [dynamic handlers](Lifecycle::dynamic_handlers).
    fn write_dynamic(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        Err("write handler not implemented".into())
    }
    /// Called after a write to the handler of an argument has changed the argument. `handler` is the name of this
    /// handler. `#[derive(Args)]` defines a constant for each such name, for example `Args::RATE`.
    fn changed(&mut self, handler: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        Ok(())
    }
    /// Returns the outside effects of this element, given its configuration. `declared` are the effects that its class
    /// declares.
    fn effects(&self, declared: Effects) -> Effects {
        declared
    }
    /// Names the outside resource that this element has open and that a router can open only once: a device, a port, a
    /// file. In a hot swap, an element of the same class in the old router may hold the same resource, whatever that
    /// element's name. In that case, [`InitCx::inherits`] is true, and [`initialise`](Lifecycle::initialise) must not
    /// open the resource, because [`take_over`](Lifecycle::take_over) takes it from the old element.
    fn holds(&self) -> Option<String> {
        None
    }
    /// Returns how many packets the element holds now. Packets count only if the element received or made them. If the
    /// replicas of an element share their state, this method is called on only one replica. A class that implements
    /// this method must declare `ledger(holds)`.
    fn held(&self) -> u64 {
        0
    }
    /// Takes over the open resource from `old`, the element in the old router that [`holds`](Lifecycle::holds) it (hot
    /// swap). Called before [`take_state`](Lifecycle::take_state). If the swap fails later, this method is called on
    /// the old element, which takes the resource back.
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError>
    where
        Self: Sized,
    {
        Ok(())
    }
    /// Takes over the state of `old`, the element of the same class that this one replaces (hot swap). The counts have
    /// been moved already. If there are several old replicas, this method is called for each of them. If the swap fails
    /// later, this method is called on the old element, which takes the state back.
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// An element that takes one packet and passes the same packet on. Most classes are actions.
/// Consecutive actions are linked into chains.
pub trait Action: Object {
    /// Processes a packet in place.
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict;

    /// Runs the action on all packets of a batch. Packets that do not continue leave the batch, in order. Override this
    /// method only if the class can process a whole batch at less cost than its packets one by one.
    #[inline]
    fn action_batch(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        // The loop is not in a shared function, so that the compiler inlines the action into it. It counts nothing: the number of
        // the packet is computed only when the loop ends early.
        let mut packets = batch.iter_mut();
        while let Some(p) = packets.next() {
            let verdict = self.action(p, cx);
            // `matches!` reads only the discriminant. A comparison with `==` would also read the fields of the verdict.
            if !matches!(verdict, Verdict::Next) {
                let after = packets.len();
                let at = batch.len() - after - 1;
                return cx.apply_rest(batch, at, verdict, |p, cx| self.action(p, cx));
            }
        }
    }
}

/// An element that is not an [`Action`]: a classifier, table, queue, tee, source, sink or scheduler.
#[allow(unused_variables)]
pub trait Element {
    /// Takes packets that arrive on a push input. The run loop drops the packets that are still in the batch after the
    /// call, with the reason [`Reason::Discarded`].
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {}
    /// Takes one packet that arrives on a push input. Override this method only if the class can take one packet at
    /// less cost than a batch of one.
    fn push_one(&mut self, port: usize, p: Packet, cx: &mut Cx<'_>) {
        let mut batch = cx.spare_batch();
        batch.push(p);
        self.push(port, &mut batch, cx);
        cx.return_batch(batch);
    }
    /// Appends to `into` at most `max` packets from a pull output. The packets must be those that single pulls would
    /// return, up to the first pull that returns none.
    fn pull(&mut self, port: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {}
    /// Returns one packet for a pull output. Override this method only if the class can return one packet at less cost
    /// than a batch of one.
    fn pull_one(&mut self, port: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut batch = cx.spare_batch();
        self.pull(port, 1, &mut batch, cx);
        let p = batch.pop();
        cx.return_batch(batch);
        p
    }
    /// Runs one turn of the task, if the class declares a task.
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        Turn::Sleep
    }
    /// Returns how many of the task's next turns are plain. In a plain turn, the task pulls a packet from input 0 or makes
    /// one, sends it to output 0, and does nothing else. The run loop may then call the task once for up to this many
    /// turns ([`Cx::quantum`]).
    fn plain_turns(&self, cx: &Cx<'_>) -> usize {
        0
    }
    /// Returns how full the queue is, if the class declares `fifo`. None if the queue must get each push and each pull in
    /// its turn.
    fn level(&self) -> Option<Level> {
        None
    }
    /// Called when a timer that the element has set expires.
    fn timer(&mut self, id: u16, cx: &mut Cx<'_>) {}
    /// Called when a signal that the element watches arrives.
    fn signal(&mut self, signal: i32, cx: &mut Cx<'_>) {}
    /// Called on the driver script for each request to stop the router. Returns whether the router stops.
    fn drive(&mut self, cx: &mut Cx<'_>) -> Drive {
        Drive::Stop
    }
}

/// An [`Element`] with the operations of an [`Object`]. Every element has both. An [`Engine`] may implement `Element`
/// without `Object`.
pub trait AnyElement: Element + Object {}
impl<T: Element + Object> AnyElement for T {}

/// An element that was built.
pub enum Instance {
    /// An element that implements [`Action`]. It can be linked into a chain.
    Action(Box<dyn Action>),
    /// An element that implements [`Element`].
    Element(Box<dyn AnyElement>),
}

impl Instance {
    /// Returns the element as an [`Object`].
    pub fn common(&mut self) -> &mut dyn Object {
        match self {
            Instance::Action(a) => a.as_mut(),
            Instance::Element(e) => e.as_mut(),
        }
    }
    /// Returns the element as an [`Object`], read-only.
    pub fn common_ref(&self) -> &dyn Object {
        match self {
            Instance::Action(a) => a.as_ref(),
            Instance::Element(e) => e.as_ref(),
        }
    }
}

/// A function that makes an element from its configuration string. It is not a plain function pointer: for a class from
/// a shared library, the function is a closure that holds a reference to the library.
pub type Make = dyn Fn(&str, &mut BuildCx<'_>) -> Result<Instance, ConfigError> + Sync;

/// The function of an information class that defines names ([`Information::inform`]).
pub type Inform = dyn Fn(&str, &str, &mut Names) -> Result<(), ConfigError> + Sync;

/// The declaration of a class, and the functions that make its elements.
#[derive(Clone, Copy)]
pub struct ClassDef {
    /// The declaration.
    pub spec: &'static ClassSpec,
    /// Makes an element of the class from a configuration string.
    pub build: &'static Make,
    /// Defines the names that an element of an information class provides, before any element is built. None for other
    /// classes.
    pub inform: Option<&'static Inform>,
}

/// The classes that a router can be built from, sorted by name.
pub trait Classes: ClassSpecs + Send + Sync {
    /// Returns the class with this name or alias.
    fn get(&self, name: &str) -> Option<ClassDef>;
    /// Returns the function that looks up the addresses of devices, for names such as `eth0:eth`. None if there are no
    /// devices.
    fn devices(&self) -> Option<castanet_spec::names::Devices> {
        None
    }
}

/// A class whose elements carry no packets. Its elements only define names that other elements use in their
/// configuration.
pub trait Information: Build + Element {
    /// Adds to `names` what the configuration string `config` of an element in `scope` defines. Called for all
    /// information elements, in the order of the configuration, before any element is built. `names` already contains
    /// the names of all elements.
    fn inform(config: &str, scope: &str, names: &mut Names) -> Result<(), ConfigError>;
}

pub(crate) fn make<T: Build>(config: &str, cx: &mut BuildCx<'_>) -> Result<T, ConfigError> {
    let (args, errors) = T::Args::parse(config, cx.arg_cx());
    let failed = errors.iter().any(|e| !e.warning);
    match args {
        Some(args) if !failed => {
            cx.warnings.extend(errors);
            T::build(args, cx)
        }
        _ => Err(ConfigError(errors)),
    }
}

/// Returns the [`ClassDef`] of a class that implements [`Action`].
pub const fn action<T: Build + Action>() -> ClassDef {
    ClassDef {
        spec: T::SPEC,
        build: &|config, cx| Ok(Instance::Action(Box::new(make::<T>(config, cx)?))),
        inform: None,
    }
}

/// Returns the [`ClassDef`] of a class that implements [`Element`].
pub const fn element<T: Build + Element>() -> ClassDef {
    ClassDef {
        spec: T::SPEC,
        build: &|config, cx| Ok(Instance::Element(Box::new(make::<T>(config, cx)?))),
        inform: None,
    }
}

/// Returns the [`ClassDef`] of a class that implements [`Information`].
pub const fn information<T: Information>() -> ClassDef {
    ClassDef { inform: Some(&T::inform), ..element::<T>() }
}
