// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves packets by push: batches, and also single packets, which need no batch.

use crate::compiled::Compiled;
use crate::lock::Purpose;
use crate::node::{Body, Member, NONE, Node, Rest, is_all, leave};
use crate::nodes::Nodes;
use crate::paths::REST;
use crate::shared::Shared;
use crate::unwind::blamed;
use castanet_element::run_loop::{Core, Edge, EdgeRange, Internals as _};
use castanet_element::{Cx, Instance, Verdict};
use castanet_packet::{Batch, Packet};
use castanet_spec::Reason;

/// The maximum number of times that one packet may go round cycles.
pub(crate) const HOPS: u16 = 1000;
/// The maximum number of rounds through cycles in one turn is this number, multiplied by the number of packets that the
/// turn may emit. The rounds of all packets of the turn, including copies, are added up. [`HOPS`] alone is not enough,
/// because copies in a cycle multiply.
pub(crate) const ROUNDS: u64 = 20_000;

/// The node and input that an edge leads to.
struct Target {
    node: usize,
    /// The input of the node's element. If the node is a chain, the index of the action to begin with.
    port: usize,
    /// The number of the element that the edge comes from.
    from: u32,
    /// The compiled path that begins at the edge, or [`NONE`].
    path: u32,
}

impl Nodes {
    /// Moves the packets on edge `x` to its node. Then follows the first edge on which this node has put packets, and
    /// so on, until a node has put packets on no edge. The other edges with packets wait on the stack.
    pub(crate) fn follow(&mut self, core: &mut Core, mut x: usize) {
        while let Some(target) = self.take_off(core, x) {
            if target.path != NONE
                && let Some(next) = self.run_path(core, x, (target.path, target.node))
            {
                match next {
                    Some(next) => x = next,
                    None => return,
                }
                continue;
            }
            let Some((n, touched)) = self.run_node(core, x, target) else { return };
            self.settle(core);
            match self.next_of(n, touched) {
                Some(next) => x = next,
                None => return,
            }
        }
    }

    /// Moves the packets of edge `x` to `current`, and returns the target of the edge.
    #[inline(always)]
    fn take_off(&mut self, core: &mut Core, x: usize) -> Option<Target> {
        let Some(edge) = self.edges.get_mut(x) else {
            if x == REST {
                self.follow_rest(core);
            }
            return None;
        };
        edge.pending = false;
        std::mem::swap(&mut self.current, &mut edge.batch);
        let target =
            Target { node: edge.node as usize, port: edge.port as usize, from: edge.from, path: edge.path };
        if core.limit() == 1 && self.current.len() > 1 {
            // The batch limit is 1, so packets must move one by one. If an element has made several packets from one,
            // put all but the first back on the edge, until the first has been stored, sent or dropped.
            edge.batch.extend(self.current.as_mut_vec().drain(1..));
            edge.pending = true;
            self.stack.push(x as u32);
        }
        if edge.back {
            let Nodes { current, rounds, shared, .. } = self;
            count_hops(current, rounds, core, target.from, shared);
            if core.limit() == 1 && !self.stack.is_empty() {
                self.suspend();
            }
        }
        Some(target)
    }

    /// Pushes the packets that came over edge `x` to a node. If the node is a chain and leaves packets only on its main
    /// output, continues with the next node immediately. Returns the last node that ran, and the edges on which it has
    /// put packets, as bits. Returns none if the packets wait or were dropped.
    #[inline(always)]
    fn run_node(&mut self, core: &mut Core, mut x: usize, mut target: Target) -> Option<(usize, u64)> {
        loop {
            let Target { node: n, port, from, .. } = target;
            let Nodes { nodes, edges, current, shared, .. } = self;
            let Some(node) = nodes.get_mut(n) else {
                shared.note_drop(core, from, Reason::NoPort, current.as_mut_vec());
                core.count_drops(from, Reason::NoPort, current.len() as u64);
                current.clear();
                return None;
            };
            let place = node.edges();
            let touched = match &mut node.body {
                Body::Chain(members) => {
                    let sides = run_chain(members.get_mut(port..).unwrap_or_default(), edges, current, core);
                    if current.is_empty() {
                        return Some((n, sides));
                    }
                    let main = edges.get_mut(node.base as usize)?;
                    if sides == 0 && main.is_free() {
                        x = node.base as usize;
                        let path = main.path;
                        target = Target {
                            node: main.node as usize,
                            port: main.port as usize,
                            from: main.from,
                            path,
                        };
                        if path != NONE {
                            std::mem::swap(&mut main.batch, current);
                            return Some((n, 1));
                        }
                        continue;
                    }
                    main.batch.append(current);
                    sides | 1
                }
                Body::Element(e) => {
                    let mut cx = Cx::over(edges, core, None, place, false);
                    blamed(&mut cx, |cx| e.push(port, current, cx));
                    let touched = cx.outputs().touched();
                    if !current.is_empty() {
                        leftover(current, core, node.me);
                    }
                    touched
                }
                Body::Reaching(..) => self.push_reaching(core, n, port).unwrap_or(0),
                Body::Locked(..) => match self.push_reaching(core, n, port) {
                    Some(touched) => touched,
                    None => {
                        // Another worker is running the element. This worker holds a lock, so it must not wait for
                        // another lock. Let the packets wait on their edge.
                        self.put_back_on(x);
                        self.contended.push(x as u32);
                        return None;
                    }
                },
                Body::Meeting(meeting) => {
                    meeting.add(current);
                    return None;
                }
                Body::Busy => {
                    // The element is still running on this worker. The edge is followed again when the element has
                    // returned.
                    self.put_back_on(x);
                    self.parked.push(x as u32);
                    return None;
                }
            };
            return Some((n, touched));
        }
    }

    /// Puts the packets in `current` back on edge `x`, where they wait.
    #[cold]
    fn put_back_on(&mut self, x: usize) {
        if let Some(edge) = self.edges.get_mut(x) {
            edge.pending = true;
            edge.batch.append(&mut self.current);
        }
    }

    /// Finishes the work that the single-packet path has left in `rest`, then follows all edges on which packets wait.
    #[inline(never)]
    pub(crate) fn finish(&mut self, core: &mut Core) {
        match self.rest.take() {
            None => {}
            Some(Rest::Touched(n, touched)) => self.go_on(core, n, touched),
            Some(Rest::Queue(x, p)) => {
                if let Some(edge) = self.edges.get_mut(x) {
                    edge.batch.push(p);
                    if !edge.pending {
                        self.follow(core, x);
                    }
                }
            }
            Some(Rest::Nowhere(from)) => core.count_drops(from, Reason::NoPort, 1),
        }
        // The caller calls this function only if packets may wait: the single-packet path has left work, or edges are
        // on the stack. If neither holds, `drain` has nothing to do, because only `follow` suspends packets or counts
        // rounds through cycles.
        self.drain(core);
    }

    /// Called after a node has run. First makes the handler calls that its elements have deferred, then follows the
    /// edges with its packets.
    #[inline]
    pub(crate) fn go_on(&mut self, core: &mut Core, n: usize, touched: u64) {
        self.settle(core);
        if let Some(next) = self.next_of(n, touched) {
            self.follow(core, next);
        }
    }

    /// Pushes the batch in `current` to an element that is locked or needs access to other elements. Returns the edges
    /// on which the element has put packets, as bits. Returns none and leaves the batch unchanged if another worker is
    /// running the element and this worker must not wait.
    fn push_reaching(&mut self, core: &mut Core, n: usize, port: usize) -> Option<u64> {
        let Node { me, body, .. } = self.nodes.get(n)?;
        let (me, is_locked) = (*me, matches!(body, Body::Locked(..)));
        let mut batch = std::mem::replace(&mut self.current, self.spare.pop().unwrap_or_default());
        if is_locked && let Some(meter) = &self.sampler.meter {
            meter.count(me, batch.len());
        }
        let reached = if is_locked {
            self.visit(core, n, Purpose::Push, false, |state, cx| match &mut state.instance {
                Instance::Element(e) => e.push(port, &mut batch, cx),
                Instance::Action(a) => {
                    a.action_batch(&mut batch, cx);
                    cx.forward(0, &mut batch);
                }
            })
        } else {
            self.reach(core, n, false, |e, cx| e.push(port, &mut batch, cx))
        };
        if reached.is_some() {
            leftover(&mut batch, core, me);
        }
        self.spare.push(std::mem::replace(&mut self.current, batch));
        reached.map(|r| r.touched)
    }
}

/// The single-packet path. Takes the packet that node `n` has left in the slot of `cx`, and moves it from element to
/// element without a batch, as long as each element emits exactly one packet. Returns true if nothing is left to move.
/// If something is left, it is in `rest`.
#[inline(always)]
pub(crate) fn walk(
    nodes: &mut [Node],
    compiled: Option<&Compiled>,
    cx: &mut Cx<'_>,
    n: usize,
    rest: &mut Option<Rest>,
) -> bool {
    match cx.outputs().take_slot() {
        Some((x, p)) => start(nodes, compiled, cx, x, p, rest),
        None => is_all(n, cx.outputs().touched(), rest),
    }
}

/// Like [`pass`], but runs compiled code if there is any.
#[inline(always)]
pub(crate) fn start(
    nodes: &mut [Node],
    compiled: Option<&Compiled>,
    cx: &mut Cx<'_>,
    x: usize,
    p: Packet,
    rest: &mut Option<Rest>,
) -> bool {
    if let Some(compiled) = compiled
        && let Some(code) = compiled.ahead(cx, x)
    {
        return compiled.run(code, nodes, cx, p, rest);
    }
    pass(nodes, cx, x, p, rest)
}

/// Like [`walk`], but starts with packet `p`, which must cross edge `x`.
#[inline(always)]
pub(crate) fn pass(
    nodes: &mut [Node],
    cx: &mut Cx<'_>,
    mut x: usize,
    mut p: Packet,
    rest: &mut Option<Rest>,
) -> bool {
    loop {
        let Some(edge) = cx.outputs().edge_at(x) else { return true };
        if !edge.is_free() {
            *rest = Some(Rest::Queue(x, p));
            return false;
        }
        let port = edge.port as usize;
        let n = edge.node as usize;
        let Some(node) = nodes.get_mut(n) else {
            // The edge leads nowhere: the packet is dropped when the edge is followed.
            *rest = Some(Rest::Queue(x, p));
            return false;
        };
        match &mut node.body {
            Body::Element(e) => {
                let place = EdgeRange { me: node.me, base: node.base, count: node.count, skip: node.mains };
                cx.outputs().enter_single(place);
                e.push_one(port, p, cx);
                let Some(emitted) = cx.outputs().take_slot() else {
                    return is_all(n, cx.outputs().touched(), rest);
                };
                (x, p) = emitted;
            }
            Body::Chain(members) => {
                x = node.base as usize;
                for m in members.get_mut(port..).unwrap_or_default() {
                    cx.outputs().enter(m.edges());
                    let verdict = m.action.action(&mut p, cx);
                    if !matches!(verdict, Verdict::Next) {
                        leave(verdict, p, m.resume, cx);
                        return is_all(n, cx.outputs().touched(), rest);
                    }
                }
                if cx.outputs().touched() != 0 {
                    std::hint::cold_path();
                    cx.park_one(x, p);
                    return is_all(n, cx.outputs().touched(), rest);
                }
            }
            Body::Reaching(..) | Body::Locked(..) | Body::Busy | Body::Meeting(_) => {
                *rest = Some(Rest::Queue(x, p));
                return false;
            }
        }
    }
}

/// Counts a hop for each packet of a batch that crosses an edge closing a cycle. Drops packets that have gone round too
/// often.
#[cold]
#[inline(never)]
fn count_hops(batch: &mut Batch, rounds: &mut u64, core: &mut Core, from: u32, shared: &Shared) {
    *rounds += batch.len() as u64;
    let over = *rounds > ROUNDS * core.limit().max(1) as u64;
    let before = batch.len();
    batch.as_mut_vec().retain_mut(|p| {
        let goes_on = p.count_hop() <= HOPS && !over;
        if !goes_on {
            shared.note_drop(core, from, Reason::PushLoop, std::slice::from_ref(p));
        }
        goes_on
    });
    core.count_drops(from, Reason::PushLoop, (before - batch.len()) as u64);
}

/// Drops the packets that an element has left in the batch that was pushed to it.
#[cold]
#[inline(never)]
fn leftover(batch: &mut Batch, core: &mut Core, me: u32) {
    core.count_drops(me, Reason::Discarded, batch.len() as u64);
    batch.clear();
}

/// Runs the actions of a chain on a batch. The packets that are left in the batch continue through output 0 of the last
/// action. Returns the other edges on which actions have put packets, as bits.
#[inline]
pub(crate) fn run_chain(
    members: &mut [Member],
    edges: &mut [Edge],
    batch: &mut Batch,
    core: &mut Core,
) -> u64 {
    let mut cx = Cx::over(edges, core, None, EdgeRange::default(), false);
    blamed(&mut cx, |cx| {
        for m in members {
            cx.outputs().enter(m.edges());
            if m.resume == NONE {
                m.action.action_batch(batch, cx);
            } else if copied(m, batch, cx) {
                break;
            }
            if batch.is_empty() {
                break;
            }
        }
    });
    cx.outputs().touched()
}

/// Runs an action that may emit copies or add packets to the batch. If it has done so, puts the batch on the edge that
/// leads to the next action and returns true. The batch must wait there: copies move before the batch, and a batch with
/// added packets may have to continue one packet at a time.
fn copied(m: &mut Member, batch: &mut Batch, cx: &mut Cx<'_>) -> bool {
    let (before, len) = (cx.outputs().take_touched(), batch.len());
    m.action.action_batch(batch, cx);
    let copied = cx.outputs().touched() != 0 || batch.len() > len;
    cx.outputs().touch(before);
    if copied {
        cx.outputs().park(m.resume as usize, batch);
    }
    copied
}
