// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a class implements.

use crate::build::{BuildCx, ConfigError, InitCx};
use crate::count::{CountVisitor, Counts};
use crate::cx::Cx;
use crate::error::ElementError;
use crate::handler::{HandlerError, Handlers};
use castanet_packet::{Batch, Packet};
use castanet_spec::{Args, ClassSpec, Effects, Names, Reason};
use std::any::Any;

/// The decision about a packet after an [`Action`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on by output 0.
    Next,
    /// It leaves by a side output, 1 or above; it is dropped there if nothing is connected.
    Out(u16),
    /// It is dropped.
    Drop(Reason),
    /// It goes on, after the copies that were emitted for it and before the packets that were put behind it
    /// ([`Cx::behind`]). For classes that declare `copies`.
    Several,
}

/// What a task wants after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Another turn, when the others had theirs.
    Again,
    /// The same turn is to go on, at once: it was cut in pieces only because [`Cx::limit`] is smaller than its burst.
    More,
    /// No turn until a notifier, a timer or a handler wakes it.
    Sleep,
}

/// What a driver script wants after a request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// The router runs on.
    Continue,
    /// The router stops.
    Stop,
}

/// A class: its declaration. `#[derive(Class)]` writes this.
///
/// `#[class(...)]` takes: `name`, `aliases("A", "B")`, `ports`, `processing`, `flow` (default `x/x`), `packets`,
/// `alignment`, `workers = replicate | share | exclusive`, `offload = transparent | aware | none`,
/// `effects(prints, files, calls, stops)`, `reconfigure = keeps | restarts` (its handler `config` can be written),
/// `takes_state = "what moves"`, `drops(Reason, ...)`,
/// `books(enters, makes, leaves, holds)` and `ends(Reason, ...)` for the ledger ([`Books`](castanet_spec::Books)),
/// `capabilities(Storage, ...)`, and the flags `task`, `copies`, `descending` (packets on higher outputs go first),
/// `config_follows` (`config` shows what handlers of arguments changed),
/// `information`, `build` (the class implements [`Build`] itself), `lifecycle` (it implements [`Lifecycle`] itself), `handlers` (it has an `impl` block with
/// [`#[handlers]`](crate::handlers)). `#[count(...)]` on a field declares a number
/// that the element keeps, and the handler that shows it ([`Counts`]).
///
/// A field with `#[engine]` holds what the class shares with others: arguments, handlers and lifecycle ([`Engine`]).
pub trait Class: Object + Handlers {
    /// Its arguments.
    type Args: Args;
    /// Its declaration.
    const SPEC: &'static ClassSpec;
}

/// What every element can do, whatever its class; the run loop, hot swap and packages know elements by it.
/// `#[derive(Class)]` writes this.
pub trait Object: Lifecycle + Any + Send {
    /// The value of a read handler that the class declares; none if it declares no such handler.
    fn read_handler(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<String, HandlerError>>;
    /// Writes a handler that the class declares; none if it declares no such handler.
    fn write_handler(
        &mut self,
        handler: &str,
        value: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<(), HandlerError>>;
    /// Shows each count of the element, its engine's among them, with its declaration to `visit`, which may change it.
    fn each_count(&mut self, visit: &mut CountVisitor<'_>);
    /// [`Lifecycle::take_over`] from an element of the same class; nothing is done for one of another class.
    fn take_over_from(&mut self, old: &mut dyn Any, cx: &mut Cx<'_>) -> Result<(), ElementError>;
    /// [`Lifecycle::take_state`] from an element of the same class; nothing is done for one of another class.
    fn take_state_from(&mut self, old: &mut dyn Any, cx: &mut Cx<'_>) -> Result<(), ElementError>;
}

/// Makes an element from its arguments. `#[derive(Class)]` writes one that fills all other fields with their defaults,
/// unless the class says `build`.
pub trait Build: Class {
    /// Makes the element, or says what is wrong with its configuration. No outside effect may happen here.
    fn build(args: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError>;
}

/// What several classes have in common: arguments, handlers and lifecycle. A class keeps it in a field with `#[engine]`, and
/// `#[derive(Class)]` hands all three to it; what the class does with packets is its own.
pub trait Engine: Lifecycle + Handlers + Counts {
    /// The arguments of the classes.
    type Args: Args;
    /// Makes the engine, as [`Build::build`] makes an element.
    fn build(args: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError>;
    /// The arguments, for handlers that read and write them.
    fn args(&mut self) -> &mut Self::Args;
}

/// What happens to an element besides packets. `#[derive(Class)]` writes an empty one unless the class says `lifecycle`.
#[allow(unused_variables)]
pub trait Lifecycle {
    /// Called once when every element of the router is built: asks for notifiers, opens files, schedules.
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        Ok(())
    }
    /// Called once when the router has stopped: what must reach the outside goes there now.
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        Ok(())
    }
    /// Reads one of the element's [own handlers](Lifecycle::own_handlers).
    fn read(&mut self, handler: &str, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        Err("read handler not implemented".into())
    }
    /// Writes one of the element's [own handlers](Lifecycle::own_handlers).
    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        Err("write handler not implemented".into())
    }
    /// Called after an argument was changed through its handler.
    fn changed(&mut self, handler: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        Ok(())
    }
    /// Handlers of this very element beside those of its class: name and flags. [`read`](Lifecycle::read) and
    /// [`write`](Lifecycle::write) answer them; the name `*` stands for any name.
    fn own_handlers(&self) -> Vec<(String, &'static str)> {
        Vec::new()
    }
    /// The outside effects that this element has, of those its class declares.
    fn effects(&self, declared: Effects) -> Effects {
        declared
    }
    /// What this element has open outside that a router holds once: a device, a port, a file. In a hot swap, when an
    /// element of the same class holds the same, whatever its name, [`InitCx::inherits`] is true and
    /// [`initialise`](Lifecycle::initialise) leaves it closed: [`take_over`](Lifecycle::take_over) brings it.
    fn holds(&self) -> Option<String> {
        None
    }
    /// How many packets it holds now, of those that came to it or that it made. What replicas of a class that shares its state
    /// hold is asked of one. The class declares `books(holds)`.
    fn held(&self) -> u64 {
        0
    }
    /// Takes over what the element in the old router that [`holds`](Lifecycle::holds) the same has open (hot swap). Called
    /// before [`take_state`](Lifecycle::take_state). When the swap fails later, the old element takes it back in the same way.
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError>
    where
        Self: Sized,
    {
        Ok(())
    }
    /// Takes over what an element of the same class and name in the old router holds (hot swap); its counts have been moved
    /// already. With more than one old replica it is called for each. When the swap fails later, the old
    /// element takes it back in the same way.
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// One packet in, the same packet out: the ordinary element. Runs of actions are linked into chains.
pub trait Action: Object {
    /// Does what there is to do with a packet, in place.
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict;

    /// The same for all packets of a batch; those that are not to go on are taken out, in order. Worth writing out only
    /// where a whole batch is cheaper than its packets one by one.
    #[inline]
    fn action_batch(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        // The loop stands here and not in a function that is given the action, so that the action becomes part of it.
        let mut left = None;
        for (i, p) in batch.iter_mut().enumerate() {
            let v = self.action(p, cx);
            // A pattern looks at the discriminant alone; comparing values looks at what they hold too.
            if !matches!(v, Verdict::Next) {
                left = Some((i, v));
                break;
            }
        }
        if let Some((i, v)) = left {
            cx.apply_rest(batch, i, v, |p, cx| self.action(p, cx));
        }
    }
}

/// Everything else: classifiers, tables, queues, tees, sources, sinks, schedulers.
#[allow(unused_variables)]
pub trait Element: Object {
    /// Takes packets that arrive on a push input. Whatever is left in the batch is dropped as [`Reason::Discarded`].
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {}
    /// Takes one packet that arrives on a push input. Worth writing out only where it is cheaper than a batch of one.
    fn push_one(&mut self, port: usize, p: Packet, cx: &mut Cx<'_>) {
        let mut batch = cx.spare_batch();
        batch.push(p);
        self.push(port, &mut batch, cx);
        cx.return_batch(batch);
    }
    /// Puts at most `max` packets for a pull output into `into`: those that single pulls would give, up to the first pull that
    /// gives none.
    fn pull(&mut self, port: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {}
    /// Gives one packet for a pull output. Worth writing out only where it is cheaper than a batch of one.
    fn pull_one(&mut self, port: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut batch = cx.spare_batch();
        self.pull(port, 1, &mut batch, cx);
        let p = batch.pop();
        cx.return_batch(batch);
        p
    }
    /// Has a turn, if the class declares a task.
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        Turn::Sleep
    }
    /// Is told that a timer it set has expired.
    fn timer(&mut self, id: u16, cx: &mut Cx<'_>) {}
    /// Is told that a signal which it watches has arrived.
    fn signal(&mut self, signal: i32, cx: &mut Cx<'_>) {}
    /// Is asked what to do about a request to stop the driver, if it is the driver script.
    fn drive(&mut self, cx: &mut Cx<'_>) -> Drive {
        Drive::Stop
    }
}

/// An element that was built.
pub enum Instance {
    /// One that can be linked into a chain.
    Action(Box<dyn Action>),
    /// Any other.
    Element(Box<dyn Element>),
}

impl Instance {
    /// What both kinds have.
    pub fn common(&mut self) -> &mut dyn Object {
        match self {
            Instance::Action(a) => a.as_mut(),
            Instance::Element(e) => e.as_mut(),
        }
    }
    /// What both kinds have.
    pub fn common_ref(&self) -> &dyn Object {
        match self {
            Instance::Action(a) => a.as_ref(),
            Instance::Element(e) => e.as_ref(),
        }
    }
}

/// How an element is made from its configuration string. Not a plain function: one that comes from a shared library knows
/// the library.
pub type Make = dyn Fn(&str, &mut BuildCx<'_>) -> Result<Instance, ConfigError> + Sync;

/// How an information class tells what it knows: [`Information::inform`].
pub type Inform = dyn Fn(&str, &str, &mut Names) -> Result<(), ConfigError> + Sync;

/// A class as the runtime sees it.
#[derive(Clone, Copy)]
pub struct ClassDef {
    /// The declaration.
    pub spec: &'static ClassSpec,
    /// Makes an element from its configuration string.
    pub build: &'static Make,
    /// What an information class tells before any element is built.
    pub inform: Option<&'static Inform>,
}

/// The classes that a router is built from.
pub trait Classes: Send + Sync {
    /// The class of that name or alias.
    fn get(&self, name: &str) -> Option<ClassDef>;
    /// Every name, aliases included, sorted.
    fn names(&self) -> Vec<&'static str>;
    /// How names such as `eth0:eth` find the addresses of devices; none where there are no devices.
    fn devices(&self) -> Option<castanet_spec::names::Devices> {
        None
    }
}

/// A class whose elements carry no packets: they only say something that others are configured with.
pub trait Information: Build + Element {
    /// Puts what the configuration string of an element in `scope` says into `names`. Called for all such elements, in
    /// order, before any element is built; element names are known already.
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

/// Lists a class that implements [`Action`].
pub const fn action<T: Build + Action>() -> ClassDef {
    ClassDef {
        spec: T::SPEC,
        build: &|config, cx| Ok(Instance::Action(Box::new(make::<T>(config, cx)?))),
        inform: None,
    }
}

/// Lists a class that implements [`Element`].
pub const fn element<T: Build + Element>() -> ClassDef {
    ClassDef {
        spec: T::SPEC,
        build: &|config, cx| Ok(Instance::Element(Box::new(make::<T>(config, cx)?))),
        inform: None,
    }
}

/// Lists a class that implements [`Information`].
pub const fn information<T: Information>() -> ClassDef {
    ClassDef { inform: Some(&T::inform), ..element::<T>() }
}
