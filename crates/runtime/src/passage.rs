// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes when packets that have come up from the kernel have left the router, so that no later packet overtakes them there
//! ([`castanet_kernel::order`]).

use crate::in_kernel::SCHEDULER;
use crate::kernel::{Path, Waiting};
use crate::nodes::Nodes;
use castanet_element::run_loop::Core;
use castanet_lang::flat::PortRef;
use castanet_spec::Capability;

/// More packets than a scheduler prefers while others wait: it prefers only rare ones.
const PREFERRED: u64 = 256;

impl Nodes {
    /// Notes the queues that the programs leave out. Forgets tickets: later ones of the same slots stand for them.
    pub(crate) fn set_paths(&mut self, lowered: impl Iterator<Item = u32>) {
        let graph = &self.shared.graph;
        let path = |queue: u32| {
            let stores = graph.spec(queue as usize)?.capabilities.contains(&Capability::Storage);
            let next = |element| graph.downstream(PortRef { element, port: 0 }).first().map(|to| to.element);
            let to = next(queue as usize)?;
            let by_scheduler = graph.spec(to).is_some_and(|s| s.name == SCHEDULER);
            let last = if by_scheduler { next(to)? } else { to } as u32;
            stores.then_some(Path { queue, last, by_scheduler })
        };
        self.passage.paths = lowered.filter_map(path).collect();
        self.passage.waiting.clear();
    }

    /// The number of packets that the last element of a path has finished, of those that wait in the queue and in this element,
    /// and a number that the path has surely finished of its own.
    fn progress(&mut self, core: &mut Core, Path { queue, last, by_scheduler }: Path) -> (u64, u64, u64) {
        let stored = self.with(core, queue, |e, _| e.held()).and_then(Result::ok).unwrap_or(0);
        let (finished, held) =
            self.with(core, last, |e, _| (e.finished(), e.held())).and_then(Result::ok).unwrap_or((0, 0));
        let waiting = stored.saturating_add(held);
        // Packets that a scheduler prefers may have been finished before those of the queue.
        let preferred = if by_scheduler && waiting > 0 { PREFERRED } else { 0 };
        (finished, waiting, finished.wrapping_sub(preferred))
    }

    /// Takes the tickets of packets that have been passed on, and notes those that have left the router.
    #[cold]
    pub(crate) fn pass_tickets(&mut self, core: &mut Core) {
        let paths = std::mem::take(&mut self.passage.paths);
        let progress: Vec<(u64, u64, u64)> = paths.iter().map(|p| self.progress(core, *p)).collect();
        self.passage.paths = paths;
        let tickets = core.take_tickets();
        if !tickets.is_empty() {
            let until = progress.iter().map(|(finished, held, _)| finished.wrapping_add(*held)).collect();
            self.passage.waiting.push_back(Waiting { tickets, until });
        }
        let is_past =
            |((.., own), until): (&(u64, u64, u64), &u64)| own.wrapping_sub(*until).cast_signed() >= 0;
        while let Some(Waiting { tickets, .. }) =
            self.passage.waiting.pop_front_if(|w| progress.iter().zip(&w.until).all(is_past))
        {
            if let Some(kernel) = &*self.shared.kernel.lock() {
                kernel.driver.finish(&tickets);
            }
        }
    }

    /// Whether packets with tickets may still be in the router.
    #[inline]
    pub(crate) fn awaits_tickets(&self) -> bool {
        !self.passage.waiting.is_empty()
    }
}
