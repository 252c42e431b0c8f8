// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes handlers on a worker. If the element is on another worker, sends the call to that worker.

use crate::accounts;
use crate::global_handlers::{GlobalRead, GlobalWrite, requests};
use crate::handlers::{DROP_REASONS, LISTING, LIVE, is_standard, own_flags, standard, without_parameters};
use crate::ledger;
use crate::mail::{Access, Call, Mail};
use crate::node::Body;
use crate::nodes::Nodes;
use crate::quanta::Quanta;
use crate::reach::deliver;
use crate::unwind::Taken;
use castanet_element::run_loop::{Core, Edge, Internals as _, Router};
use castanet_element::{Busy, CallError, Cx, HandlerError, Missing, Object, handler};
use castanet_packet::Batch;
use castanet_spec::{Effects, HandlerFlags};
use std::fmt::Write as _;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

impl Nodes {
    /// Calls `f` with an element. During the call, the element can access all other elements. Returns none if the
    /// element is not on this worker. Returns an error if the element is already running further up the call stack, or
    /// if it panics.
    pub(crate) fn with<R>(
        &mut self,
        core: &mut Core,
        element: u32,
        f: impl FnOnce(&mut (dyn Object + 'static), &mut Cx<'_>) -> R,
    ) -> Option<Result<R, CallError>> {
        if let Some(i) = self.panicked.disabled.iter().position(|d| d.0 == element) {
            let (_, mut broken) = self.panicked.disabled.swap_remove(i);
            let out = self.guard(core, element, |nodes, core| {
                f(broken.common(), &mut Cx::new(&mut [], core, Some(nodes), element, 0))
            });
            self.panicked.disabled.push((element, broken));
            self.settle(core);
            return Some(out);
        }
        let n = self.node_of(element)?;
        let member = self.places.get(element as usize)?.1 as usize;
        let node = self.nodes.get_mut(n)?;
        let base = match &node.body {
            Body::Locked(..) => return self.with_locked(core, n, element, f),
            Body::Chain(members) => members.get(member).map_or((node.base, 0), |m| (m.base, m.count)),
            Body::Busy | Body::Meeting(_) => {
                return Some(Err(Busy::Element(core.name(element).to_string()).into()));
            }
            _ => (node.base, node.count),
        };
        let mut outbox: Vec<Edge> = (0..base.1).map(|_| Edge::default()).collect();
        let out = self.guard(core, element, |nodes, core| {
            let body = nodes.nodes.get_mut(n).map(|node| &mut node.body)?;
            let mut taken = Taken::new(n, body);
            let out = match &mut taken.body {
                Body::Element(e) | Body::Reaching(e, _) => {
                    Some(f(&mut **e, &mut Cx::new(&mut outbox, core, Some(nodes), element, 0)))
                }
                Body::Chain(members) => members
                    .get_mut(member)
                    .map(|m| f(&mut *m.action, &mut Cx::new(&mut outbox, core, Some(nodes), element, 1))),
                Body::Locked(..) | Body::Busy | Body::Meeting(_) => None,
            };
            nodes.put_back(n, taken.back(), 0);
            out
        });
        deliver(&mut outbox, &mut self.edges, base.0);
        self.defer(n);
        self.settle(core);
        let gone = || CallError::from(Missing::Replica(core.name(element).to_string()));
        Some(out.and_then(|out| out.ok_or_else(gone)))
    }

    fn flags_of(&mut self, core: &mut Core, element: u32, handler: &str) -> Option<HandlerFlags> {
        if let Some(h) = self.shared.declared(element, handler) {
            return Some(h.flags);
        }
        let own = self.with(core, element, |e, _| e.own_handlers())?.ok()?;
        match own.iter().find(|h| h.0 == handler) {
            Some(h) => Some(h.1),
            // A dynamic handler `*` accepts any name, but it must not replace a handler that the runtime provides.
            None if self.shared.provided(element).any(|s| s.0 == handler) => None,
            None => own_flags(&own, handler),
        }
    }

    /// Returns the value of the handler `handlers`: the list of an element's handlers, in the reverse order of their
    /// declaration, as clients of Click expect.
    fn listing(&mut self, core: &mut Core, element: u32) -> String {
        let mut out = String::new();
        let own = match self.with(core, element, |e, _| e.own_handlers()) {
            Some(Ok(own)) => own,
            _ => Vec::new(),
        };
        let declared: Vec<_> = self.shared.spec(element).into_iter().flat_map(|s| s.all_handlers()).collect();
        let taken = |name: &str| declared.iter().any(|h| h.name == name) || own.iter().any(|h| h.0 == name);
        let shared = self.shared.clone();
        for (n, f) in
            shared.provided(element).filter(|h| !is_standard(h.0) && (h.0 != DROP_REASONS || !taken(h.0)))
        {
            let _ = writeln!(out, "{n}\t{f}");
        }
        for (n, f) in own.iter().rev() {
            let _ = writeln!(out, "{n}\t{f}");
        }
        let live = shared.is_reconfigurable(element);
        let flags = |name: &str, flags: HandlerFlags| if live && name == "config" { LIVE } else { flags };
        for h in declared.iter().rev().filter(|h| !is_standard(h.name)) {
            let _ = writeln!(out, "{}\t{}", h.name, h.flags);
        }
        // The loop above left out the standard handlers, even those that the class declares itself, such as `config`.
        // List each of them once here.
        for h in standard() {
            let _ = writeln!(out, "{}\t{}", h.name, flags(h.name, h.flags));
        }
        out
    }

    /// Reads a handler of the element's replica on this worker.
    pub(crate) fn read_here(
        &mut self,
        core: &mut Core,
        element: u32,
        handler: &str,
        parameters: &str,
    ) -> Result<String, CallError> {
        self.add_kernel_counts(core);
        let name = self.shared.handler_name(Some(element), handler);
        match self.flags_of(core, element, handler) {
            Some(f) if !f.is_readable() => {
                return Err(Missing::OnlyWrite(name).into());
            }
            Some(f) if f.intersects(HandlerFlags::PARAMETERS | HandlerFlags::RAW) => {}
            Some(_) => without_parameters(&name, parameters)?,
            None => {
                let value =
                    self.provided(core, element, handler).ok_or_else(|| Missing::Read(name.clone()))?;
                return without_parameters(&name, parameters).map(|()| value);
            }
        }
        let read = self.with(core, element, |e, cx| handler::read(e, handler, parameters, cx));
        Ok(read.ok_or_else(|| Missing::Read(name.clone()))???)
    }

    /// Returns the value of a handler that the runtime provides for an element. None if there is no such handler.
    fn provided(&mut self, core: &mut Core, element: u32, handler: &str) -> Option<String> {
        Some(match handler {
            LISTING => self.listing(core, element),
            DROP_REASONS if self.shared.provided(element).any(|h| h.0 == handler) => {
                ledger::reasons(self.shared.spec(element), core.drops_of(element))
            }
            _ => {
                let of_task = self.read_task_handler(core, element, handler);
                return of_task.or_else(|| self.shared.standard(element, handler));
            }
        })
    }

    /// Writes a handler of the element's replica on this worker.
    pub(crate) fn write_here(
        &mut self,
        core: &mut Core,
        element: u32,
        handler: &str,
        value: &str,
    ) -> Result<(), CallError> {
        if let Some(done) = self.write_task_handler(element, handler, value) {
            return done;
        }
        let name = self.shared.handler_name(Some(element), handler);
        if handler == "config" && self.shared.is_reconfigurable(element) {
            return match core.origin().may_write(LIVE) {
                true => self.reconfigure(core, element, value),
                false => Err(CallError::Denied(name)),
            };
        }
        match self.flags_of(core, element, handler) {
            Some(f) if f.is_writable() && core.origin().may_write(f) => {}
            Some(f) if f.is_writable() => return Err(CallError::Denied(name)),
            _ => return Err(Missing::Write(name).into()),
        }
        self.add_kernel_counts(core);
        let done = self.with(core, element, |e, cx| handler::write(e, handler, value, cx));
        // Also a write that fails may have changed the element.
        self.paths.forget(element);
        done.ok_or_else(|| Missing::Write(name.clone()))???;
        self.refresh_kernel(core);
        self.check_effects(core, element);
        if self.shared.shows_config(element) {
            // The class computes the text of `config` itself. Read the handler again, because the write may have
            // changed the text.
            let config = self.with(core, element, |e, cx| handler::read(e, "config", "", cx));
            if let Some(Ok(Ok(config))) = config {
                self.shared.build_state.set_config(element, &config);
            }
        } else {
            self.shared.follow(core, element, handler, value);
        }
        Ok(())
    }

    /// Called after a write to a handler of an element. If the element has outside effects now, all tasks take their turns
    /// one by one from now on.
    fn check_effects(&mut self, core: &mut Core, element: u32) {
        let declared = self.shared.spec(element).map_or(Effects::empty(), |s| s.effects);
        if declared.is_empty() || self.quanta.is_empty() {
            return;
        }
        if let Some(Ok(effects)) = self.with(core, element, |e, _| e.effects(declared))
            && !effects.is_empty()
        {
            self.quanta = Quanta::default();
        }
    }

    /// Handles one message from the inbox.
    pub(crate) fn answer(&mut self, core: &mut Core, mail: Mail) {
        match mail {
            Mail::Call(Call { from, element, handler, access, .. }, reply) => {
                let answer = core.with_origin(from, |core| match (element, access) {
                    (Some(e), Access::Read(parameters)) => self.read_here(core, e, &handler, &parameters),
                    (None, Access::Read(parameters)) => self.read(core, None, &handler, &parameters),
                    (Some(e), Access::Write(value)) => {
                        self.write_here(core, e, &handler, &value).map(|()| String::new())
                    }
                    (None, Access::Write(value)) => {
                        self.write(core, None, &handler, &value).map(|()| String::new())
                    }
                });
                // This fails if the caller has stopped waiting for the answer.
                let _ = reply.send(answer);
            }
            Mail::Drops(reply) => drop(reply.send(Ok(core.all_drops().collect()))),
            Mail::Accounts(reply) => {
                let accounts = self.accounts(core);
                let _ = reply.send(Ok(accounts));
            }
            Mail::Wake(e) => core.schedule(e),
            Mail::Attend(e) => self.attend(core, e),
            Mail::Signal(elements, signal) => {
                for e in elements {
                    self.run(core, e, |e, cx| e.signal(signal, cx));
                }
            }
        }
    }

    /// Calls a handler of an element's replica on another worker.
    fn ask_call(
        &mut self,
        core: &mut Core,
        worker: usize,
        element: u32,
        handler: &str,
        access: Access,
    ) -> Result<String, CallError> {
        let handler = handler.to_string();
        let call = Call { from: core.origin(), urgent: true, element: Some(element), handler, access };
        self.ask(core, worker, |reply| Mail::Call(call, reply))
    }

    /// Sends a request to another worker and waits for the answer. While this worker waits, it answers calls of other
    /// workers. Otherwise two workers that wait for each other would hang.
    pub(crate) fn ask<T>(
        &mut self,
        core: &mut Core,
        worker: usize,
        mail: impl FnOnce(std::sync::mpsc::SyncSender<Result<T, CallError>>) -> Mail,
    ) -> Result<T, CallError> {
        let (tx, rx) = sync_channel(1);
        if let Some(inbox) = self.shared.inboxes.get(worker) {
            inbox.send(mail(tx));
        }
        self.begin_wait(core);
        let answer = loop {
            match rx.recv_timeout(Duration::from_millis(1)) {
                Ok(answer) => break answer,
                Err(RecvTimeoutError::Timeout) if !self.shared.is_stopped() => self.answer_urgent(core),
                Err(_) => break Err(Busy::Worker.into()),
            }
        };
        self.end_wait(core);
        answer
    }
}

impl Router for Nodes {
    fn pull(&mut self, core: &mut Core, me: u32, input: usize, max: usize, into: &mut Batch) {
        self.pull_input(core, me, input, max, into);
    }

    fn read(
        &mut self,
        core: &mut Core,
        element: Option<u32>,
        handler: &str,
        parameters: &str,
    ) -> Result<String, CallError> {
        let shared = self.shared.clone();
        let Some(e) = element else {
            let value = match shared.global_read(handler) {
                Some(GlobalRead::Timewarp) => core.clock().describe(),
                Some(GlobalRead::Drops) => self.all_drops(core)?,
                Some(GlobalRead::Ledger) => self.live_ledger(core)?.table(),
                Some(GlobalRead::Queues) => {
                    accounts::queues(&shared, |e, handler| self.read(core, Some(e), handler, "").ok())
                }
                Some(GlobalRead::With(read)) => return Ok(read(&shared, parameters)?),
                Some(GlobalRead::Anywhere(_)) | None => {
                    shared.global(handler).ok_or_else(|| Missing::Read(handler.to_string()))?
                }
            };
            return without_parameters(handler, parameters).map(|()| value);
        };
        let here = core.worker() as usize;
        shared.read_replicas(e, handler, parameters, |w| match w == here {
            true => self.read_here(core, e, handler, parameters),
            false => self.ask_call(core, w, e, handler, Access::Read(parameters.to_string())),
        })
    }

    fn write(
        &mut self,
        core: &mut Core,
        element: Option<u32>,
        handler: &str,
        value: &str,
    ) -> Result<(), CallError> {
        let shared = self.shared.clone();
        let Some(e) = element else {
            let from = core.origin();
            return match shared.global_write(from, handler)? {
                GlobalWrite::Stop => {
                    castanet_element::Messages::stop(shared.as_ref(), requests(value));
                    Ok(())
                }
                GlobalWrite::Timewarp => match value.trim().parse::<f64>() {
                    Ok(f) if f > 0.0 && f.is_finite() && !core.clock().is_simulated() => {
                        core.clock().warp(f);
                        Ok(())
                    }
                    Ok(_) if core.clock().is_simulated() => {
                        Err(HandlerError::from("'timewarp': time is simulated").into())
                    }
                    _ => Err(HandlerError::from("'timewarp': expected a positive number").into()),
                },
                GlobalWrite::Profile => match value.trim() {
                    "true" | "1" => {
                        shared.set_profiling(true);
                        Ok(())
                    }
                    "false" | "0" => {
                        shared.set_profiling(false);
                        Ok(())
                    }
                    _ => Err(HandlerError::from("'profile': expected true or false").into()),
                },
                GlobalWrite::Request(write) => Ok(write(&shared, value)?),
                GlobalWrite::Swap(command) => {
                    shared.supervisor.command_soon(from, command, value, core.clock().clone())
                }
            };
        };
        let here = core.worker() as usize;
        shared.write_replicas(e, handler, |w| match w == here {
            true => self.write_here(core, e, handler, value),
            false => self.ask_call(core, w, e, handler, Access::Write(value.to_string())).map(drop),
        })
    }

    fn has(&self, core: &Core, element: Option<u32>, handler: &str) -> (bool, bool) {
        let _ = core;
        let Some(e) = element else {
            let global = self.shared.globals().find(|h| h.name == handler);
            return global.map_or((false, false), |h| h.flags.access());
        };
        if handler == "config" && self.shared.is_reconfigurable(e) {
            return LIVE.access();
        }
        if let Some(h) = self.shared.declared(e, handler) {
            return h.flags.access();
        }
        if let Some(h) = self.shared.provided(e).find(|h| h.0 == handler) {
            return h.1.access();
        }
        // The class does not declare this handler, so search the element's own handlers. If the element is running, its
        // own handlers cannot be listed, so it counts as having none.
        let member = self.places.get(e as usize).map_or(0, |p| p.1 as usize);
        let own = match self.node_of(e).and_then(|n| self.nodes.get(n)).map(|n| &n.body) {
            Some(Body::Element(x) | Body::Reaching(x, _)) => x.own_handlers(),
            Some(Body::Chain(members)) => members.get(member).map_or(Vec::new(), |m| m.action.own_handlers()),
            Some(Body::Locked(lock, _)) => {
                lock.state().map_or(Vec::new(), |s| s.instance.common_ref().own_handlers())
            }
            Some(Body::Busy | Body::Meeting(_)) | None => Vec::new(),
        };
        own_flags(&own, handler).map_or((false, false), HandlerFlags::access)
    }
}
