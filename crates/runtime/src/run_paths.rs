// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves packets along compiled paths ([`crate::paths`]).

use crate::nodes::Nodes;
use crate::paths::{Exit, Paths, REST, Rest, TRY};
use castanet_element::run_loop::{Core, Edge};
use castanet_kernel::Counter;
use castanet_packet::Batch;

impl Nodes {
    /// Moves the packets in `current`, which were taken off edge `x`, along the path with this number, to its ends. `node` is the node
    /// that the edge leads to now. Returns the edge to follow next, if there is one. None, without any change, if there is no code.
    #[inline(never)]
    pub(crate) fn run_path(
        &mut self,
        core: &mut Core,
        x: usize,
        (number, node): (u32, usize),
    ) -> Option<Option<usize>> {
        if self.observed.generation != 0 || self.sampler.meter.is_some() {
            return None;
        }
        let begun = self.quanta.begun;
        let number = if number >= TRY { self.approach(x, number)? } else { number as usize };
        let Nodes { paths, current, .. } = self;
        let Paths { list, ends, .. } = paths;
        let path = list.get_mut(number)?;
        if path.node as usize != node || (path.meets && begun) || current.len() > ends.len() {
            return None;
        }
        let Some(job) = &path.job else {
            self.approach_again(number);
            return None;
        };
        let n = job.code()?.run(current.as_mut_slice(), ends, &mut path.counters);
        // INVARIANT: there is at least one packet, and an exit for each end. Otherwise, elements would process packets again.
        let ends = ends.get(..n).unwrap_or_default();
        let first = *ends.first()?;
        // Compared as two slices, which is one comparison of many bytes.
        let alike = ends.get(1..) == ends.get(..n - 1);
        let exit = path.exits.get(usize::from(first)).copied()?;
        if path.counters.iter().any(|n| *n != 0) {
            self.add_path_counts(core, number);
        }
        Some(if alike { self.leave_path(number, exit) } else { self.divide(number) })
    }

    /// Moves the whole batch on by an exit.
    #[inline]
    fn leave_path(&mut self, number: usize, exit: Exit) -> Option<usize> {
        let Nodes { paths, current, edges, .. } = self;
        let n = current.len();
        let path = paths.list.get_mut(number)?;
        match exit {
            Exit::Drop => {
                path.note(n, 0);
                current.clear();
                None
            }
            Exit::Edge { edge, alone } => {
                path.note(n, if alone { n } else { 0 });
                let to = edges.get_mut(edge as usize)?;
                to.batch.append(current);
                (!to.pending).then_some(edge as usize)
            }
        }
    }

    /// Adds what the code has counted to the counts of the elements.
    #[cold]
    fn add_path_counts(&mut self, core: &mut Core, number: usize) {
        let Some(path) = self.paths.list.get_mut(number) else { return };
        let Some(job) = path.job.clone() else { return };
        let mut counters = std::mem::take(&mut path.counters);
        for (n, together) in counters.iter_mut().zip(job.program().counters()) {
            let more = std::mem::take(n);
            if more > 0 {
                together.iter().for_each(|counter: &Counter| self.add_count(core, *counter, more));
            }
        }
        if let Some(path) = self.paths.list.get_mut(number) {
            path.counters = counters;
        }
    }

    /// Moves the packets of a batch on that leave a path by several ends. Returns the edge to follow first.
    #[inline(never)]
    fn divide(&mut self, number: usize) -> Option<usize> {
        let Nodes { paths, current, edges, stack, .. } = self;
        let path = paths.list.get_mut(number)?;
        let n = current.len();
        let ends = paths.ends.get(..n).unwrap_or_default();
        // The ends, as bits, if their numbers are small enough.
        let found = ends.iter().fold(0u64, |found, end| found | 1 << (end & 63));
        if path.exits.len() > 64 || found & path.alone_ends != 0 {
            return self.part(number);
        }
        path.note(n, 0);
        for (packet, end) in current.drain().zip(ends) {
            // Packets that are dropped are dropped here.
            if let Some(Exit::Edge { edge, .. }) = path.exits.get(usize::from(*end))
                && let Some(to) = edges.get_mut(*edge as usize)
            {
                to.batch.push(packet);
            }
        }
        let exits = &path.exits;
        let edge = |end: u32| exits.get(end as usize).and_then(Exit::edge);
        // The highest bit first.
        let mut left = found;
        let highest_first = std::iter::from_fn(|| {
            let end = left.checked_ilog2()?;
            left &= !(1 << end);
            Some(end)
        });
        wait_on(edges, stack, highest_first.filter_map(edge))
    }

    /// Begins to move the packets of a batch on of which elements of the path must process some. Returns the edge to follow first.
    #[cold]
    #[inline(never)]
    fn part(&mut self, number: usize) -> Option<usize> {
        let Nodes { paths, current, .. } = self;
        let mut rest = paths.spare.pop().unwrap_or_else(|| Rest {
            path: 0,
            packets: Batch::new(),
            ends: Vec::with_capacity(Batch::MAX),
            gone: 0,
        });
        rest.path = number;
        rest.gone = 0;
        rest.ends.clear();
        rest.ends.extend_from_slice(paths.ends.get(..current.len()).unwrap_or_default());
        rest.packets.append(current);
        // From the end, packets are taken in order.
        rest.packets.as_mut_slice().reverse();
        if let Some(path) = paths.list.get_mut(number) {
            let exits = &path.exits;
            let is_alone = |e: &&u16| exits.get(usize::from(**e)).is_some_and(Exit::is_alone);
            let alone = rest.ends.iter().filter(is_alone).count();
            path.note(rest.ends.len(), alone);
        }
        paths.rests.push(rest);
        self.part_on()
    }

    /// Follows the next edge for the newest rest. Called for the entry of the stack that stands for a rest.
    #[cold]
    pub(crate) fn follow_rest(&mut self, core: &mut Core) {
        if let Some(next) = self.part_on() {
            self.follow(core, next);
        }
    }

    /// Moves the next packets of the newest rest to edges, and puts the edges and the rest on the stack. Returns the edge to follow
    /// first.
    fn part_on(&mut self) -> Option<usize> {
        let Nodes { paths, edges, stack, .. } = self;
        let Paths { list, rests, spare, found, .. } = paths;
        let mut rest = rests.pop()?;
        let exits = list.get(rest.path).map(|p| &p.exits[..]).unwrap_or_default();
        let exit = |end: &u16| exits.get(usize::from(*end)).copied().unwrap_or(Exit::Drop);
        let left = rest.ends.get(rest.gone..).unwrap_or_default();
        // Either packets with one end that elements of the path process, or packets with other ends.
        let same = |end: &u16| match (left.first().map(exit), exit(end)) {
            (Some(Exit::Edge { edge: a, alone: true }), Exit::Edge { edge: b, alone: true }) => a == b,
            (Some(Exit::Edge { alone: true, .. }), _) | (_, Exit::Edge { alone: true, .. }) => false,
            _ => true,
        };
        let n = left.iter().position(|e| !same(e)).unwrap_or(left.len());
        found.clear();
        for end in left.iter().take(n) {
            let Some(packet) = rest.packets.pop() else { break };
            let Exit::Edge { edge, .. } = exit(end) else { continue };
            let Some(to) = edges.get_mut(edge as usize) else { continue };
            to.batch.push(packet);
            if !found.contains(end) {
                found.push(*end);
            }
        }
        rest.gone += n;
        if rest.packets.is_empty() {
            spare.push(rest);
        } else {
            rests.push(rest);
            stack.push(REST as u32);
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        let next = wait_on(edges, stack, found.iter().filter_map(|end| exit(end).edge()));
        match next {
            Some(edge) => Some(edge),
            // All packets were dropped, or wait on edges that are followed later.
            None if stack.last() == Some(&(REST as u32)) && !paths.rests.is_empty() => {
                stack.pop();
                self.part_on()
            }
            None => None,
        }
    }
}

/// Notes that packets wait on edges, and puts these on the stack, except the last one, which is returned: it is followed first.
fn wait_on(edges: &mut [Edge], stack: &mut Vec<u32>, on: impl Iterator<Item = u32>) -> Option<usize> {
    let mut next = None;
    for x in on {
        let Some(edge) = edges.get_mut(x as usize).filter(|e| !e.pending && !e.batch.is_empty()) else {
            continue;
        };
        edge.pending = true;
        if let Some(later) = next.replace(x) {
            stack.push(later);
        }
    }
    next.map(|x| x as usize)
}
