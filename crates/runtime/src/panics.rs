// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panics of elements. They are caught around a worker's run loop. The worker counts the lost packets as dropped, and
//! [`OnPanic`] decides whether the router continues.

use crate::disabled::Disabled;
use crate::node::{Body, InstanceMut, Rest};
use crate::nodes::Nodes;
use crate::options::OnPanic;
use crate::reach::deliver;
use crate::unwind::{PanicReport, caught};
use crate::worker::Worker;
use castanet_element::run_loop::Core;
use castanet_element::{CallError, Instance};
use castanet_packet::pool;
use castanet_spec::Reason;
use castanet_typed::Typed;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;

impl Nodes {
    /// Puts the bodies (elements or chains) of the nodes that were running during the panic back into the nodes, and
    /// counts the lost packets as dropped. Returns the element that panicked, the number of lost packets, and the panic
    /// message. If the report names no element, `caller` is assumed to have panicked.
    fn collect(
        &mut self,
        core: &mut Core,
        report: PanicReport,
        caller: Option<u32>,
    ) -> (Option<u32>, u64, String) {
        let culprit = report.culprit.or(caller);
        let mut lost = report.dropped.map_or(0, |before| pool::dropped().wrapping_sub(before)) as u64;
        for (n, body) in report.bodies {
            // This locked element did not panic itself, but called the element that did. It is intact, so workers may
            // use it again.
            if let Body::Locked(lock, _) = &body
                && Some(lock.element) != culprit
            {
                lock.recover();
            }
            self.put_back(n, body, 1);
        }
        lost += self.abandon(core);
        if let Some(c) = culprit {
            core.count_drops(c, Reason::Panicked, lost);
        }
        self.shared.session.panics.fetch_add(1, Ordering::Relaxed);
        (culprit, lost, report.message)
    }

    /// Drops the packets that were on their way between two elements when the panic left the run loop, and returns
    /// their number. Packets that wait on edges stay there.
    fn abandon(&mut self, core: &mut Core) -> u64 {
        let mut lost = self.current.len() + core.abandon();
        self.current.clear();
        if let Some(Rest::Queue(..)) = self.rest.take() {
            lost += 1;
        }
        for n in 0..self.nodes.len() {
            let Nodes { nodes, edges, .. } = self;
            if let Some(node) = nodes.get_mut(n)
                && let Body::Reaching(_, outbox) | Body::Locked(_, outbox) = &mut node.body
            {
                deliver(outbox, edges, node.base);
            }
            self.defer(n);
        }
        lost as u64
    }

    /// Calls `f` for element `me` and turns a panic into an error. For calls outside the packet path: handlers,
    /// initialisation, cleanup and hot swaps.
    pub(crate) fn guard<R>(
        &mut self,
        core: &mut Core,
        me: u32,
        f: impl FnOnce(&mut Nodes, &mut Core) -> R,
    ) -> Result<R, CallError> {
        let (caller, calls) = (core.caller(), self.calls);
        let (locks, waits, answering) = (self.locks, self.waits, self.answering);
        caught(|| f(self, core)).map_err(|(report, _)| {
            // The panic has interrupted a handler call. Restore the rights from before this call, so that the next call
            // does not run with the rights of the interrupted call.
            core.restore_caller(Some(caller));
            self.calls = calls;
            // The panic has also released the locks that this call took. So restore the numbers of locks and waits from
            // before the call.
            self.unwind_to(core, (locks, waits, answering));
            let (culprit, _, what) = self.collect(core, report, Some(me));
            self.recover(culprit.unwrap_or(me));
            let element = self.shared.declared_at(culprit.unwrap_or(me));
            CallError::Panicked { element, message: what }
        })
    }

    /// Disables an element: from now on, its packets are dropped, and its task and timers do nothing.
    fn disable(&mut self, element: u32) {
        let inputs = self.shared.graph.inputs(element as usize);
        if self.disable_locked(element, || Box::new(Disabled { inputs })) {
            return;
        }
        let instance = match self.instance_mut(element) {
            Some(InstanceMut::Element(e)) => Instance::Element(
                std::mem::replace(e, Typed::new(Box::new(Disabled { inputs }))).into_inner(),
            ),
            Some(InstanceMut::Action(a)) => {
                Instance::Action(std::mem::replace(a, Typed::new(Box::new(Disabled { inputs }))).into_inner())
            }
            None => return,
        };
        self.panicked.disabled.push((element, instance));
        self.paths.forget(element);
        self.tasks.remove(element);
    }
}

impl Worker {
    /// Runs until the router has ended, or until all workers wait at the barrier for a hot swap. If an element panics,
    /// [`OnPanic`] decides how to continue.
    pub(crate) fn run(&mut self) {
        while let Err((report, panic)) = caught(|| self.run_loop()) {
            self.nodes.unwind_to(&self.core, (0, 0, 0));
            let (culprit, lost, what) = self.nodes.collect(&mut self.core, report, None);
            self.nodes.end_sample();
            let shared = self.nodes.shared.clone();
            let Some(culprit) = culprit else {
                shared.session.print(&format!("the run loop panicked: {what}"));
                resume_unwind(panic);
            };
            let policy = shared.session.on_panic;
            let times = self.nodes.panicked.count(culprit);
            // A sender may send the packet that causes the panic again and again. So print a message only for the 1st,
            // 2nd, 4th, 8th panic of an element, and so on.
            if times.is_power_of_two() {
                let who = shared.declared_at(culprit);
                let again = if times > 1 { format!(" {times} times, the last time") } else { String::new() };
                let next = match policy {
                    OnPanic::Stop => "the router stops",
                    OnPanic::Disable => "it is disabled and drops its packets from now on",
                    OnPanic::Continue => "it goes on",
                };
                let text = format!("{who} panicked{again}: {what}; packets dropped: {lost}; {next}");
                shared.session.print(&text);
            }
            match policy {
                OnPanic::Stop => shared.end(),
                OnPanic::Disable => self.nodes.disable(culprit),
                OnPanic::Continue => {}
            }
            self.nodes.recover(culprit);
            self.core.restore_caller(None);
            self.nodes.calls = 0;
        }
    }
}
