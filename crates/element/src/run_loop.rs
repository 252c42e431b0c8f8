// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types that run loops and elements share, and the functions with which run loops make contexts. Elements do not
//! import this module. They reach the rest of the router only through the methods of [`Cx`] and [`InitCx`].

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
    /// Makes a context for element `me`. `edges` are the edges of its outputs, from output `first` on. `first` is 0 for
    /// an element. It is 1 for an action, because output 0 of an action leads to the next action of its chain.
    fn new(
        edges: &'a mut [Edge],
        core: &'a mut Core,
        router: Option<&'a mut dyn Router>,
        me: u32,
        first: u32,
    ) -> Self;
    /// Makes a context for the elements of one node, which run one after the other. `edges` are the edges of the node.
    /// [`Outputs::enter`] selects the running element and its edges. `single` means that a single packet is moved,
    /// without a batch.
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
    /// Puts a packet on the edge with index `i`, and then the packets that were put behind the packet ([`Cx::behind`]).
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
            // There is no edge `i`, so the packets cannot go on. This happens if the action's class does not declare
            // `copies`.
            None => {
                let mut rest = std::mem::replace(&mut self.core.behind, Batch::empty());
                self.drop(p, Reason::Discarded);
                self.drop_all(&mut rest, Reason::Discarded);
            }
        }
    }
}

/// Calls `f` to initialise element `me`. Returns the result of `f`, whether the element's task is scheduled from the
/// start, and the numbers of the notifiers that wake this task. `inherits` means that the running router will hand over
/// the resource that the element holds.
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
