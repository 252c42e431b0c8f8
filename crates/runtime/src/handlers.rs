// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers that classes do not provide: the standard handlers of every element, and the global handlers.

use crate::shared::Shared;
use castanet_element::CallError;
use castanet_graph::PortKind;
use castanet_lang::PortRef;
use castanet_spec::{HandlerSpec, Workers};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

/// Handlers that every element has: name and flags.
pub const STANDARD: &[(&str, &str)] =
    &[("handlers", "r."), ("ports", "r."), ("config", "r."), ("class", "r."), ("name", "r.")];
/// The flags of the handler `config` if the class allows live reconfiguration.
pub const LIVE: &str = "rw.";
/// Handlers of elements to which the run loop gives turns.
pub const TASK: &[(&str, &str)] = &[("home_thread", "rw"), ("tickets", "rw"), ("scheduled", "r")];
/// The handler of elements whose class may drop packets: the number of dropped packets for each reason.
pub const DROPS: &[(&str, &str)] = &[(DROP_REASONS, "rU")];
/// The name of the handler in [`DROPS`], and of the global handler that covers all elements.
/// The version of Click whose language and interfaces the router follows. Clients compare it.
pub const CLICK_VERSION: &str = "2.1";

pub(crate) const DROP_REASONS: &str = "drop_reasons";
/// Global handlers: name, flags.
pub const GLOBAL: &[(&str, &str)] = &[
    ("version", "r"),
    ("driver", "r"),
    ("config", "r"),
    ("flatconfig", "r"),
    ("requirements", "r"),
    ("handlers", "r"),
    ("list", "r"),
    ("classes", "r"),
    ("packages", "r"),
    ("timewarp", "rw"),
    ("stop", "w"),
    (DROP_REASONS, "rU"),
];
/// Global handlers of a router that may be swapped.
pub const SWAP: &[(&str, &str)] = &[("hotconfig", "wR"), ("loadpackage", "wR"), ("swapplan", "wR")];

/// Returns the error for a handler that does not exist. `kind` is "read" or "write".
pub(crate) fn missing(handler: &str, kind: &str) -> CallError {
    CallError::Missing(format!("no '{handler}' {kind} handler"))
}

/// Returns how many requests to stop a write of `value` to the global handler `stop` counts as: the number in
/// `value`, or 1 if `value` is not a number.
pub(crate) fn requests(value: &str) -> u32 {
    value.trim().parse().unwrap_or(1)
}

/// Returns the error for a handler that exists but that the caller may not write.
pub(crate) fn denied(handler: &str) -> CallError {
    CallError::Denied(format!("permission denied for '{handler}'"))
}

impl Shared {
    /// Returns the full name of a handler, for messages.
    pub fn handler_name(&self, element: Option<u32>, handler: &str) -> String {
        match element {
            Some(e) => format!("{}.{handler}", self.graph.name(e as usize)),
            None => handler.to_string(),
        }
    }
    pub(crate) fn has_task(&self, element: u32) -> bool {
        self.tasks.binary_search(&(element as usize)).is_ok()
    }
    /// Returns the handlers that the runtime adds to those of the element's class.
    pub(crate) fn provided(
        &self,
        element: u32,
    ) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        let task = if self.has_task(element) { TASK } else { &[] };
        let drops = if self.spec(element).is_some_and(|s| !s.drops.is_empty()) { DROPS } else { &[] };
        task.iter().chain(drops).chain(STANDARD)
    }
    /// Whether a handler is the runtime's own `drop_reasons`, which counts the drops on each worker
    /// separately.
    pub(crate) fn counts_drops(&self, element: u32, handler: &str) -> bool {
        handler == DROP_REASONS && self.declared(element, handler).is_none()
    }
    pub(crate) fn declared(&self, element: u32, handler: &str) -> Option<&'static HandlerSpec> {
        self.spec(element)?.all_handlers().find(|h| h.name == handler)
    }
    /// Returns the workers whose answers make the value of a read handler. Replicas that share their state give
    /// the same answer, so one is asked. Drops are counted on each worker that runs the element.
    pub(crate) fn readers_of(&self, element: u32, handler: &str) -> &[usize] {
        let owners = self.workers_of(element);
        if self.counts_drops(element, handler) {
            return match self.placement.workers_of(element as usize) {
                [] => owners,
                all => all,
            };
        }
        match self.spec(element).map(|s| s.workers) {
            Some(Workers::Share) => owners.get(..1).unwrap_or(owners),
            _ => owners,
        }
    }
    /// Returns the maximum number of replicas to which a write to a handler must go. If the replicas share
    /// their state, one write is enough, except to `config`, because each replica has its own configuration.
    pub(crate) fn written_replicas(&self, element: u32, handler: &str) -> usize {
        let share = self.spec(element).is_some_and(|s| s.workers == Workers::Share);
        if share && handler != "config" { 1 } else { usize::MAX }
    }
    /// Returns the value of a standard handler, for which the element need not be called; none for any other
    /// handler.
    pub(crate) fn standard(&self, element: u32, handler: &str) -> Option<String> {
        let e = element as usize;
        let info = self.info.get(e)?;
        Some(match handler {
            "name" => info.name.clone(),
            "class" => info.class.to_string(),
            "config" => self.build_state.config(element).unwrap_or_else(|| info.config.clone()),
            "ports" => self.ports(e),
            "home_thread" if self.has_task(element) => self.home_thread(e).to_string(),
            _ => return None,
        })
    }
    /// Returns the value of the handler `home_thread`: the worker that runs an element's task. Under
    /// simulated time only one worker runs, whatever number was requested. The value is then the home that
    /// the configuration assigns, if that is one of the requested workers.
    fn home_thread(&self, e: usize) -> usize {
        let requested = self.names.workers().unwrap_or(1);
        match self.names.home(e) {
            Some(home) if self.placement.workers() < requested && home < requested => home,
            _ => self.placement.task_worker(e).unwrap_or(0),
        }
    }
    /// Returns the value of a handler if it is the same on all workers, so that no request to a worker is
    /// needed.
    pub(crate) fn unasked(&self, element: u32, handler: &str) -> Option<String> {
        match self.declared(element, handler) {
            Some(_) => None,
            None => self.standard(element, handler),
        }
    }
    /// Returns the flat configuration, including live reconfigurations.
    fn flat_config(&self) -> String {
        let configs = self.build_state.configs();
        if configs.is_empty() {
            return castanet_lang::print::driver(&self.graph.flat);
        }
        let mut flat = self.graph.flat.clone();
        for (e, text) in configs {
            if let Some(element) = flat.elements.get_mut(e as usize) {
                element.config = text;
            }
        }
        castanet_lang::print::driver(&flat)
    }
    /// Returns the value of the handler `ports` of an element.
    fn ports(&self, e: usize) -> String {
        let g = &self.graph;
        let mut out = String::new();
        let word = |n: usize, w: &str| format!("{n} {w}{}\n", if n == 1 { "" } else { "s" });
        let mut side = |n: usize, input: bool| {
            for port in 0..n {
                let here = PortRef { element: e, port };
                let (kind, agnostic, peers) = if input {
                    (g.input_kind(e, port), g.input_is_agnostic(e, port), g.upstream(here))
                } else {
                    (g.output_kind(e, port), g.output_is_agnostic(e, port), g.downstream(here))
                };
                let kind = if kind == PortKind::Push { "push" } else { "pull" };
                let peers: Vec<String> = peers
                    .iter()
                    .map(|p| {
                        let name = g.name(p.element);
                        if input { format!("{name} [{}]", p.port) } else { format!("[{}] {name}", p.port) }
                    })
                    .collect();
                let tilde = if agnostic { "~" } else { "" };
                let _ = writeln!(out, "{kind}{tilde}\t-\t{}", peers.join(", "));
            }
            std::mem::take(&mut out)
        };
        let inputs = side(g.inputs(e), true);
        let outputs = side(g.outputs(e), false);
        format!("{}{inputs}{}{outputs}", word(g.inputs(e), "input"), word(g.outputs(e), "output"))
    }
    /// The global handlers, with their flags.
    pub fn globals(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        GLOBAL.iter().chain(SWAP.iter().filter(|_| self.supervisor.allows_swaps()))
    }
    /// Returns the value of a global read handler; none if it does not exist or needs a worker.
    pub fn global(&self, handler: &str) -> Option<String> {
        let lines = |v: Vec<String>| v.iter().fold(String::new(), |s, l| s + l + "\n");
        Some(match handler {
            "version" => CLICK_VERSION.to_string(),
            "driver" => "userlevel".to_string(),
            "config" => self.config.clone(),
            "flatconfig" => self.flat_config(),
            "requirements" => {
                lines(self.graph.flat.requirements.iter().map(|r| format!("{} {}", r.0, r.1)).collect())
            }
            "packages" => lines(self.supervisor.packages()),
            "list" => {
                let names = (0..self.graph.len()).map(|e| self.graph.name(e).to_string());
                format!("{}\n{}", self.graph.len(), lines(names.collect()))
            }
            "classes" => lines(self.classes.names().iter().map(ToString::to_string).collect()),
            "handlers" => self.globals().fold(String::new(), |s, (n, f)| s + n + "\t" + f + "\n"),
            _ => return None,
        })
    }
}

impl Shared {
    /// Returns the number of requests to stop that the driver has not answered yet.
    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
    }
}
