// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code that was compiled for one configuration, by `castanet devirtualize` (ASPLOS 2002 §6.1).
//!
//! Such code moves a single packet from element to element by direct calls, so that the compiler can inline elements
//! into each other. It replaces only the steps of the single-packet path. Elements, edges and chains are those that the
//! run loop uses, so handlers, hot swaps and the order of packets are not affected.
//!
//! Each method of [`Walk`] checks that the node has the class, or the length of the chain, that the code was compiled for.
//! If not, because the element was reconfigured, disabled or locked, the run loop pushes the packet instead. So code that
//! was compiled for another configuration is harmless, but gains nothing.

use crate::node::{Body, Member, Node, Rest, is_all, leave};
use crate::unwind::blamed;
use castanet_element::run_loop::{Edge, Internals as _};
use castanet_element::{Action, Cx, Element, Verdict};
use castanet_graph::Graph;
use castanet_packet::Packet;
use castanet_typed::{TypedAction, TypedElement};
use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// The code for an input of an element, or for a chain of actions. It moves a packet on from there until the packet is
/// stored, sent or dropped. Returns true if nothing is left to move.
pub type Entry = fn(&mut Walk<'_, '_>, Packet) -> bool;

/// The compiled code of a configuration.
pub trait Code: Send + Sync {
    /// The elements that the code pushes packets to, and the first elements of the chains. The code calls an element by its
    /// index in this list, its site.
    fn sites(&self) -> &[u32];
    /// The functions that the run loop calls, each with the site and the input that it begins at.
    fn entries(&self) -> &[(u32, u32, Entry)];
}

/// Loads the code in the archive of a configuration.
pub trait LoadCode: Send + Sync {
    /// Returns the code for a graph. None if its archive has none.
    ///
    /// # Errors
    /// The code cannot be used. The text gives the reason.
    fn load(&self, graph: &Graph) -> Result<Option<Arc<dyn Code>>, String>;
}

/// The code of a configuration, for one worker.
// INVARIANT: the first nodes of the worker are those of the sites, in the order of the code.
pub(crate) struct Compiled {
    /// An edge that leads to each input of each site, by site and input.
    doors: HashMap<(u32, u32), u32>,
    /// For each edge, the code for what it leads to, if packets start there.
    entries: Box<[Option<Entry>]>,
}

impl Compiled {
    /// Prepares the code for a worker whose nodes are in the order of the code.
    pub fn new(code: &dyn Code, edges: &[Edge]) -> Compiled {
        let doors = edges.iter().zip(0..).map(|(e, i)| ((e.node, e.port), i)).collect();
        let entries: HashMap<(u32, u32), Entry> =
            code.entries().iter().map(|&(site, input, entry)| ((site, input), entry)).collect();
        let entries = edges.iter().map(|e| entries.get(&(e.node, e.port)).copied()).collect();
        Compiled { doors, entries }
    }

    /// Returns the code for what an edge leads to, if there is any and if a packet may cross the edge now.
    #[inline(always)]
    pub fn ahead(&self, cx: &mut Cx<'_>, edge: usize) -> Option<Entry> {
        let entry = (*self.entries.get(edge)?)?;
        cx.outputs().edge_at(edge).is_some_and(|e| e.is_free()).then_some(entry)
    }

    /// Runs compiled code. Returns true if nothing is left to move. Otherwise, what is left is in `rest`.
    #[inline(always)]
    pub fn run(
        &self,
        code: Entry,
        nodes: &mut [Node],
        cx: &mut Cx<'_>,
        p: Packet,
        rest: &mut Option<Rest>,
    ) -> bool {
        let mut walk = Walk { nodes, doors: &self.doors, cx, rest, calls: &CALLS, panic: None };
        let all = code(&mut walk, p);
        if let Some(panic) = walk.panic {
            resume_unwind(panic);
        }
        all
    }
}

/// A panic of an element, on its way out of compiled code.
type Panic = Box<dyn Any + Send>;

/// The functions of this program that compiled code calls to run elements whose code is not compiled into it.
///
/// A panic must not pass through the frames of a library: only the copy of the standard library that has raised a panic
/// can catch it. So these functions return it, and [`Compiled::run`] raises it again.
struct Calls {
    push_one: fn(&mut TypedElement, usize, Packet, &mut Cx<'_>) -> Result<(), Panic>,
    action: fn(&mut TypedAction, &mut Packet, &mut Cx<'_>) -> Result<Verdict, Panic>,
}

static CALLS: Calls = Calls {
    push_one: |e, input, p, cx| returned(cx, |cx| e.push_one(input, p, cx)),
    action: |a, p, cx| returned(cx, |cx| a.action(p, cx)),
};

/// Calls `f`. A panic is returned as an error.
fn returned<R>(cx: &mut Cx<'_>, f: impl FnOnce(&mut Cx<'_>) -> R) -> Result<R, Panic> {
    // `AssertUnwindSafe` is correct: the panic is raised again.
    catch_unwind(AssertUnwindSafe(|| blamed(cx, f)))
}

/// A single packet on its way through the elements of a worker. While it is on its way, no packets wait on the edges
/// between the elements.
pub struct Walk<'w, 'a> {
    nodes: &'w mut [Node],
    doors: &'w HashMap<(u32, u32), u32>,
    cx: &'w mut Cx<'a>,
    rest: &'w mut Option<Rest>,
    calls: &'static Calls,
    panic: Option<Panic>,
}

/// Why a packet does not go on through the chain.
pub struct Left(Result<(Verdict, u32), Panic>);

/// The actions of a chain.
pub struct Chain<'m, const N: usize> {
    members: &'m mut [Member; N],
    any: fn(&mut TypedAction, &mut Packet, &mut Cx<'_>) -> Result<Verdict, Panic>,
}

impl<const N: usize> Chain<'_, N> {
    /// Runs the action with index `I` of the chain, by a direct call if its class is `A`.
    ///
    /// # Errors
    /// The packet does not continue to the next action.
    #[inline(always)]
    pub fn run<A: Action + Any, const I: usize>(
        &mut self,
        p: &mut Packet,
        cx: &mut Cx<'_>,
    ) -> Result<(), Left> {
        const { assert!(I < N) };
        let Some(m) = self.members.get_mut(I) else { return Ok(()) };
        cx.outputs().enter(m.edges());
        match m.action.downcast_mut::<A>() {
            Some(action) => went(action.action(p, cx), m.resume),
            None => any(m, self.any, p, cx),
        }
    }
    /// Runs the action with index `I` of the chain, whatever its class.
    ///
    /// # Errors
    /// The packet does not continue to the next action.
    #[inline(always)]
    pub fn run_any<const I: usize>(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Result<(), Left> {
        const { assert!(I < N) };
        let Some(m) = self.members.get_mut(I) else { return Ok(()) };
        cx.outputs().enter(m.edges());
        any(m, self.any, p, cx)
    }
}

#[inline(always)]
fn went(verdict: Verdict, resume: u32) -> Result<(), Left> {
    if matches!(verdict, Verdict::Next) { Ok(()) } else { Err(Left(Ok((verdict, resume)))) }
}

/// Runs an action whose code is not compiled into the code for the configuration.
#[inline(never)]
fn any(
    m: &mut Member,
    run: fn(&mut TypedAction, &mut Packet, &mut Cx<'_>) -> Result<Verdict, Panic>,
    p: &mut Packet,
    cx: &mut Cx<'_>,
) -> Result<(), Left> {
    match run(&mut m.action, p, cx) {
        Ok(verdict) => went(verdict, m.resume),
        Err(panic) => Err(Left(Err(panic))),
    }
}

impl<'a> Walk<'_, 'a> {
    /// Pushes the packet to an element outside chains, by a direct call if its class is `E`. If the packet leaves alone,
    /// `next` moves it on: it gets the output, and the index of the edge that the packet must cross. Returns true if nothing
    /// is left to move.
    #[inline(always)]
    pub fn element<E: Element + Any>(
        &mut self,
        site: usize,
        input: usize,
        p: Packet,
        next: impl FnOnce(&mut Self, usize, usize, Packet) -> bool,
    ) -> bool {
        let Some(node) = self.nodes.get_mut(site) else { return self.through(site, input, p) };
        let own = node.edges();
        let Body::Element(e) = &mut node.body else { return self.through(site, input, p) };
        let Some(e) = e.downcast_mut::<E>() else { return self.through(site, input, p) };
        self.cx.outputs().enter_single(own);
        e.push_one(input, p, self.cx);
        self.emitted(site, own.base, next)
    }
    /// Like [`Walk::element`], for an element of any class.
    pub fn any_element(
        &mut self,
        site: usize,
        input: usize,
        p: Packet,
        next: impl FnOnce(&mut Self, usize, usize, Packet) -> bool,
    ) -> bool {
        let Some(node) = self.nodes.get_mut(site) else { return self.through(site, input, p) };
        let own = node.edges();
        let Body::Element(e) = &mut node.body else { return self.through(site, input, p) };
        self.cx.outputs().enter_single(own);
        if let Err(panic) = (self.calls.push_one)(e, input, p, self.cx) {
            return self.panicked(panic);
        }
        self.emitted(site, own.base, next)
    }

    /// Called after the element at a site has run. `base` is its first edge.
    #[inline(always)]
    fn emitted(
        &mut self,
        site: usize,
        base: u32,
        next: impl FnOnce(&mut Self, usize, usize, Packet) -> bool,
    ) -> bool {
        match self.cx.outputs().take_slot() {
            Some((edge, p)) => next(self, edge.wrapping_sub(base as usize), edge, p),
            None => is_all(site, self.cx.outputs().touched(), self.rest),
        }
    }

    /// Runs a chain of `N` actions on the packet. `run` runs each of them. If the packet leaves alone, `next` moves it on: it
    /// gets the index of the edge that the packet must cross. Returns true if nothing is left to move.
    #[inline(always)]
    pub fn chain<const N: usize>(
        &mut self,
        site: usize,
        mut p: Packet,
        run: impl FnOnce(&mut Chain<'_, N>, &mut Packet, &mut Cx<'a>) -> Result<(), Left>,
        next: impl FnOnce(&mut Self, usize, Packet) -> bool,
    ) -> bool {
        let Some(node) = self.nodes.get_mut(site) else { return self.through(site, 0, p) };
        let base = node.base as usize;
        let Body::Chain(members) = &mut node.body else { return self.through(site, 0, p) };
        let Ok(members) = <&mut [Member; N]>::try_from(&mut **members) else {
            return self.through(site, 0, p);
        };
        let mut chain = Chain { members, any: self.calls.action };
        match run(&mut chain, &mut p, self.cx) {
            Ok(()) if self.cx.outputs().touched() == 0 => return next(self, base, p),
            // An action has emitted other packets, which go first.
            Ok(()) => {
                std::hint::cold_path();
                self.cx.park_one(base, p);
            }
            Err(Left(Ok((verdict, resume)))) => leave(verdict, p, resume, self.cx),
            Err(Left(Err(panic))) => return self.panicked(panic),
        }
        is_all(site, self.cx.outputs().touched(), self.rest)
    }

    #[cold]
    fn panicked(&mut self, panic: Panic) -> bool {
        self.panic = Some(panic);
        false
    }
    /// Leaves the packet to the run loop, which pushes it to an input. Returns false: something is left to move.
    #[cold]
    #[inline(never)]
    fn through(&mut self, site: usize, input: usize, p: Packet) -> bool {
        match self.doors.get(&(site as u32, input as u32)) {
            Some(&edge) => self.pass(edge as usize, p),
            None => {
                *self.rest = Some(Rest::Nowhere(self.cx.me()));
                false
            }
        }
    }
    /// Leaves the packet to the run loop, which moves it across an edge. Returns false: something is left to move.
    #[inline(never)]
    pub fn pass(&mut self, edge: usize, p: Packet) -> bool {
        *self.rest = Some(Rest::Queue(edge, p));
        false
    }
}
