// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types that run loops and elements share, and the functions with which run loops make contexts. Elements do not
//! import this module: they reach the rest of the router only through the methods of [`Cx`] and [`InitCx`].

mod accounts;
mod core;
mod edge;
mod outputs;

pub use self::accounts::Entry;
pub use self::core::{Caller, Core};
pub use self::edge::Edge;
pub use self::outputs::{EdgeRange, Outputs};
pub use crate::router::Router;

use crate::build::{InitCx, Wiring};
use crate::cx::Cx;
use castanet_packet::{Batch, Packet};
use castanet_spec::Reason;

/// The methods of contexts that only run loops use.
pub trait Internals<'a>: Sized {
    /// Makes a context for element `me`. The first of `edges` belongs to output `first`: 0, or 1 for an
    /// action.
    fn new(
        edges: &'a mut [Edge],
        core: &'a mut Core,
        router: Option<&'a mut dyn Router>,
        me: u32,
        first: u32,
    ) -> Self;
    /// Makes a context for several elements that run one after the other. [`Outputs::enter`] selects the
    /// running element and those of `edges` that belong to it. With `single`, a single packet is moved, without
    /// a batch.
    fn over(
        edges: &'a mut [Edge],
        core: &'a mut Core,
        router: Option<&'a mut dyn Router>,
        range: EdgeRange,
        single: bool,
    ) -> Self;
    /// The outputs of the running element.
    fn outputs(&mut self) -> &mut Outputs<'a>;
    /// The state that the elements of a worker share.
    fn core(&mut self) -> &mut Core;
    /// Puts a packet on the edge with index `i`, followed by the packets that were put behind it.
    fn park_one(&mut self, i: usize, p: Packet);
}

impl<'a> Internals<'a> for Cx<'a> {
    #[inline(always)]
    fn new(
        edges: &'a mut [Edge],
        core: &'a mut Core,
        router: Option<&'a mut dyn Router>,
        me: u32,
        first: u32,
    ) -> Cx<'a> {
        let range = EdgeRange { me, base: 0, count: edges.len() as u32, skip: first };
        Cx::over(edges, core, router, range, false)
    }
    #[inline(always)]
    fn over(
        edges: &'a mut [Edge],
        core: &'a mut Core,
        router: Option<&'a mut dyn Router>,
        range: EdgeRange,
        single: bool,
    ) -> Cx<'a> {
        Cx { core, router, out: Outputs::new(edges, range, single) }
    }
    #[inline(always)]
    fn outputs(&mut self) -> &mut Outputs<'a> {
        &mut self.out
    }
    #[inline(always)]
    fn core(&mut self) -> &mut Core {
        self.core
    }
    #[cold]
    fn park_one(&mut self, i: usize, p: Packet) {
        match self.out.touch_edge(i) {
            Some(e) => {
                e.batch.push(p);
                e.batch.append(&mut self.core.behind);
            }
            // Without an edge `i`, the packets have nowhere to go. This happens if the action's class does
            // not declare `copies`.
            None => {
                let mut rest = std::mem::replace(&mut self.core.behind, Batch::empty());
                self.drop(p, Reason::Discarded);
                self.drop_all(&mut rest, Reason::Discarded);
            }
        }
    }
}

/// Initialises element `me` by calling `f`. Returns the result of `f`, whether the element's task is
/// scheduled from the start, and the notifiers that wake this task. With `inherits`, the running router will
/// hand over what the element holds.
pub fn initialise<R>(
    core: &mut Core,
    me: u32,
    wiring: &dyn Wiring,
    inherits: bool,
    f: impl FnOnce(&mut InitCx<'_>) -> R,
) -> (R, bool, Vec<u32>) {
    let mut cx = InitCx { core, me, wiring, scheduled: true, listens: Vec::new(), inherits };
    let done = f(&mut cx);
    (done, cx.scheduled, cx.listens)
}
