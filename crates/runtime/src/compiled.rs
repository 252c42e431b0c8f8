// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code that was compiled for one configuration, by `castanet devirtualize` (ASPLOS 2002 §6.1).
//!
//! Such code moves a single packet from element to element by direct calls, so that the compiler can inline elements
//! into each other. It replaces only the steps of the single-packet path. Elements, edges and chains are those that the
//! run loop uses, so handlers, hot swaps and the order of packets are not affected.
//!
//! Each step of [`Walk`] checks that it finds the class and the chain that it was compiled for. If not, it takes the
//! ordinary step: an element may have been reconfigured or disabled, or may be locked. So code for another configuration
//! has the same results, but brings nothing.

use crate::node::{Body, Member, NONE, Node, Rest, is_all, leave};
use crate::unwind::blamed;
use castanet_element::run_loop::{Edge, EdgeRange, Internals as _};
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
    /// The inputs that the code pushes packets to: the numbers of an element and of its input. The code calls an input by
    /// its index in this list, its door.
    fn doors(&self) -> &[(u32, u32)];
    /// The functions that the run loop calls, each with the door that it begins at.
    fn entries(&self) -> &[(u32, Entry)];
}

/// Loads the code in the archive of a configuration.
pub trait LoadCode: Send + Sync {
    /// Returns the code for a graph. None if its archive has none.
    ///
    /// # Errors
    /// The code cannot be used. The text gives the reason.
    fn load(&self, graph: &Graph) -> Result<Option<Arc<dyn Code>>, String>;
}

/// Where a door is on a worker.
#[derive(Clone, Copy)]
struct Door {
    /// The node of the element.
    node: u32,
    /// An edge that leads to the input.
    edge: u32,
}

/// The code of a configuration, for one worker.
pub(crate) struct Compiled {
    doors: Box<[Door]>,
    /// The code for each input of each node that packets start at.
    entries: Box<[Box<[Option<Entry>]>]>,
}

impl Compiled {
    /// Finds the doors among the edges of a worker. `places` has the node of each element.
    pub fn new(code: &dyn Code, edges: &[Edge], places: &[(u32, u32)]) -> Compiled {
        let leading = edges.iter().zip(0..).map(|(e, i)| ((e.node, e.port), i));
        let leading: HashMap<(u32, u32), u32> = leading.collect();
        let door = |&(element, input): &(u32, u32)| {
            let node = places.get(element as usize).map_or(NONE, |p| p.0);
            Door { node, edge: leading.get(&(node, input)).copied().unwrap_or(NONE) }
        };
        let doors: Box<[Door]> = code.doors().iter().map(door).collect();
        let mut entries: Vec<Vec<Option<Entry>>> = Vec::new();
        for &(d, entry) in code.entries() {
            let (Some(door), Some(&(_, input))) = (doors.get(d as usize), code.doors().get(d as usize))
            else {
                continue;
            };
            let (node, input) = (door.node as usize, input as usize);
            // An input without an edge is not on this worker.
            if door.edge == NONE {
                continue;
            }
            if entries.len() <= node {
                entries.resize(node + 1, Vec::new());
            }
            if let Some(of_node) = entries.get_mut(node) {
                of_node.resize(of_node.len().max(input + 1), None);
                if let Some(e) = of_node.get_mut(input) {
                    *e = Some(entry);
                }
            }
        }
        Compiled { doors, entries: entries.into_iter().map(Vec::into).collect() }
    }

    /// Returns the code for what an edge leads to, if there is any and if a packet may cross the edge now.
    #[inline(always)]
    pub fn ahead(&self, cx: &mut Cx<'_>, edge: usize) -> Option<Entry> {
        let edge = cx.outputs().edge_at(edge).filter(|e| e.is_free())?;
        *self.entries.get(edge.node as usize)?.get(edge.port as usize)?
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
        let mut walk = Walk { nodes, doors: &self.doors, cx, rest, calls: CALLS, panic: None };
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

const CALLS: Calls = Calls {
    push_one: |e, input, p, cx| returned(cx, |cx| e.push_one(input, p, cx)),
    action: |a, p, cx| returned(cx, |cx| a.action(p, cx)),
};

/// Calls `f`, and returns its panic.
fn returned<R>(cx: &mut Cx<'_>, f: impl FnOnce(&mut Cx<'_>) -> R) -> Result<R, Panic> {
    // `AssertUnwindSafe` is correct: the panic is raised again.
    catch_unwind(AssertUnwindSafe(|| blamed(cx, f)))
}

/// A single packet on its way through the elements of a worker. While it is on its way, no packets wait on the edges
/// between the elements.
pub struct Walk<'w, 'a> {
    nodes: &'w mut [Node],
    doors: &'w [Door],
    cx: &'w mut Cx<'a>,
    rest: &'w mut Option<Rest>,
    calls: Calls,
    panic: Option<Panic>,
}

/// The result of a step.
pub enum Step {
    /// The packet leaves through this output of the element, and must cross the edge with this index.
    Out(usize, usize, Packet),
    /// The packet does not go on alone. True if nothing is left to move.
    End(bool),
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
    /// Pushes the packet to an element outside chains, by a direct call if its class is `E`. `input` is the input that the
    /// door leads to.
    #[inline(always)]
    pub fn element<E: Element + Any>(&mut self, door: usize, input: usize, p: Packet) -> Step {
        let Some(&Door { node: n, .. }) = self.doors.get(door) else { return self.through(door, p) };
        let Some(node) = self.nodes.get_mut(n as usize) else { return self.through(door, p) };
        let own = EdgeRange { me: node.me, base: node.base, count: node.count, skip: node.mains };
        let Body::Element(e) = &mut node.body else { return self.through(door, p) };
        let Some(e) = e.downcast_mut::<E>() else { return self.through(door, p) };
        self.cx.outputs().enter_single(own);
        e.push_one(input, p, self.cx);
        self.emitted(n as usize, own.base)
    }
    /// Pushes the packet to an element outside chains, whatever its class.
    pub fn any_element(&mut self, door: usize, input: usize, p: Packet) -> Step {
        let Some(&Door { node: n, .. }) = self.doors.get(door) else { return self.through(door, p) };
        let Some(node) = self.nodes.get_mut(n as usize) else { return self.through(door, p) };
        let own = EdgeRange { me: node.me, base: node.base, count: node.count, skip: node.mains };
        let Body::Element(e) = &mut node.body else { return self.through(door, p) };
        self.cx.outputs().enter_single(own);
        match (self.calls.push_one)(e, input, p, self.cx) {
            Ok(()) => self.emitted(n as usize, own.base),
            Err(panic) => self.panicked(panic),
        }
    }
    /// The step of node `n` after its element has run. `base` is its first edge.
    #[inline(always)]
    fn emitted(&mut self, n: usize, base: u32) -> Step {
        match self.cx.outputs().take_slot() {
            Some((edge, p)) => Step::Out(edge.wrapping_sub(base as usize), edge, p),
            None => Step::End(is_all(n, self.cx.outputs().touched(), self.rest)),
        }
    }

    /// Runs a chain of `N` actions on the packet. `run` runs each of them.
    #[inline(always)]
    pub fn chain<const N: usize>(
        &mut self,
        door: usize,
        mut p: Packet,
        run: impl FnOnce(&mut Chain<'_, N>, &mut Packet, &mut Cx<'a>) -> Result<(), Left>,
    ) -> Step {
        let Some(&Door { node: n, .. }) = self.doors.get(door) else { return self.through(door, p) };
        let Some(node) = self.nodes.get_mut(n as usize) else { return self.through(door, p) };
        let base = node.base as usize;
        let Body::Chain(members) = &mut node.body else { return self.through(door, p) };
        let Ok(members) = <&mut [Member; N]>::try_from(&mut **members) else { return self.through(door, p) };
        let mut chain = Chain { members, any: self.calls.action };
        match run(&mut chain, &mut p, self.cx) {
            Ok(()) if self.cx.outputs().touched() == 0 => return Step::Out(0, base, p),
            Ok(()) => {
                std::hint::cold_path();
                self.cx.park_one(base, p);
            }
            Err(Left(Ok((verdict, resume)))) => leave(verdict, p, resume, self.cx),
            Err(Left(Err(panic))) => return self.panicked(panic),
        }
        Step::End(is_all(n as usize, self.cx.outputs().touched(), self.rest))
    }

    #[cold]
    fn panicked(&mut self, panic: Panic) -> Step {
        self.panic = Some(panic);
        Step::End(false)
    }
    /// Leaves the packet to the run loop, which moves it through a door.
    #[cold]
    #[inline(never)]
    fn through(&mut self, door: usize, p: Packet) -> Step {
        Step::End(match self.doors.get(door) {
            Some(door) if door.edge != NONE => self.pass(door.edge as usize, p),
            _ => {
                *self.rest = Some(Rest::Nowhere(self.cx.me()));
                false
            }
        })
    }
    /// Leaves the packet to the run loop, which moves it across an edge. Returns false: something is left to move.
    #[inline(never)]
    pub fn pass(&mut self, edge: usize, p: Packet) -> bool {
        *self.rest = Some(Rest::Queue(edge, p));
        false
    }
}
