// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls elements from the run loop, and moves the packets that they emit.

use crate::node::{Body, is_all};
use crate::nodes::Nodes;
use crate::pull::Direct;
use crate::push::{start, walk};
use crate::reach::deliver;
use crate::unwind::blamed;
use castanet_element::run_loop::{Core, EdgeRange, Internals as _};
use castanet_element::{AnyElement, Cx, Turn};
use castanet_packet::Packet;

impl Nodes {
    /// Gives an element's task a turn. Then moves each packet that the task emitted until it is stored, sent or
    /// dropped.
    #[inline(always)]
    pub(crate) fn run_task(&mut self, core: &mut Core, element: u32) -> Turn {
        let turn = self.run(core, element, |e, cx| e.task(cx)).unwrap_or(Turn::Sleep);
        self.move_resumed(core, element);
        turn
    }

    /// Calls an element that is not in a chain. Then moves each packet that the element emitted until it is stored,
    /// sent or dropped.
    #[inline(always)]
    pub(crate) fn run<R>(
        &mut self,
        core: &mut Core,
        element: u32,
        f: impl FnOnce(&mut dyn AnyElement, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let n = self.places.get(element as usize)?.0 as usize;
        // Many tasks send a single packet in a turn, whatever their limit.
        let single = true;
        let Nodes { nodes, edges, rest, stack, compiled, .. } = self;
        // Compiled code takes no notice of packets that wait on edges.
        let compiled = compiled.as_ref().filter(|_| stack.is_empty());
        let node = nodes.get_mut(n)?;
        let (out, all) = match &mut node.body {
            Body::Element(e) => {
                let place = EdgeRange { me: node.me, base: node.base, count: node.count, skip: node.mains };
                let mut cx = Cx::over(edges, core, None, place, single);
                let out = blamed(&mut cx, |cx| f(&mut **e, cx));
                (out, blamed(&mut cx, |cx| walk(nodes, compiled, cx, n, rest)))
            }
            Body::Reaching(..) | Body::Locked(..) => match node.direct {
                Some((up, port)) => {
                    let Ok([node, upstream]) = nodes.get_disjoint_mut([n, up as usize]) else { return None };
                    let place = node.edges();
                    let Body::Reaching(e, outbox) = &mut node.body else { return None };
                    let mut reach = Direct { node: upstream, outbox, port: port as usize, left: false };
                    let (out, emitted, touched) = {
                        let mut cx = Cx::over(edges, core, Some(&mut reach), place, single);
                        let out = blamed(&mut cx, |cx| f(&mut **e, cx));
                        (out, cx.outputs().take_slot(), cx.outputs().touched())
                    };
                    if reach.left {
                        let base = reach.node.base;
                        deliver(reach.outbox, edges, base);
                        self.defer(up as usize);
                    }
                    (out, self.go(core, n, emitted, touched))
                }
                None => {
                    let reached = self.reach(core, n, single, f)?;
                    self.settle(core);
                    (reached.out, self.go(core, n, reached.emitted, reached.touched))
                }
            },
            Body::Chain(_) | Body::Busy | Body::Meeting(_) => return None,
        };
        if !all || !self.stack.is_empty() {
            self.finish(core);
        }
        Some(out)
    }

    /// Called after node `n`, which can access other elements, has run. If the node emitted exactly one packet
    /// (`emitted`), moves this packet as far as the single-packet path leads. Otherwise records the node's `touched`
    /// edges in `rest`. Returns true if nothing is left to move.
    #[inline(always)]
    fn go(&mut self, core: &mut Core, n: usize, emitted: Option<(usize, Packet)>, touched: u64) -> bool {
        let Nodes { nodes, edges, rest, stack, compiled, .. } = self;
        // Compiled code takes no notice of packets that wait on edges.
        let compiled = compiled.as_ref().filter(|_| stack.is_empty());
        match emitted {
            Some((x, p)) => {
                let mut cx = Cx::over(edges, core, None, EdgeRange::default(), false);
                blamed(&mut cx, |cx| start(nodes, compiled, cx, x, p, rest))
            }
            None => is_all(n, touched, rest),
        }
    }
}
