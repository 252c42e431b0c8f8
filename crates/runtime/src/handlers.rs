// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers that elements and the router have beside those of classes: the standard ones of every element, and the global ones.

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
/// The flags of `config` where the class takes another configuration while it runs.
pub const LIVE: &str = "rw.";
/// Handlers of elements whose task runs.
pub const TASK: &[(&str, &str)] = &[("home_thread", "rw"), ("tickets", "rw"), ("scheduled", "r")];
/// The handler of elements whose class may drop packets: why they dropped how many.
pub const DROPS: &[(&str, &str)] = &[(DROP_REASONS, "rU")];
/// The name of that handler, and of the global one for all elements.
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

/// There is no such handler to read or write.
pub(crate) fn missing(handler: &str, kind: &str) -> CallError {
    CallError::Missing(format!("no '{handler}' {kind} handler"))
}

/// How many requests to stop a value of the global handler `stop` stands for: a number says it, any other text is one.
pub(crate) fn requests(value: &str) -> u32 {
    value.trim().parse().unwrap_or(1)
}

/// The caller may not write a handler that is there.
pub(crate) fn denied(handler: &str) -> CallError {
    CallError::Denied(format!("permission denied for '{handler}'"))
}

impl Shared {
    /// The full name of a handler, as messages give it.
    pub fn handler_name(&self, element: Option<u32>, handler: &str) -> String {
        match element {
            Some(e) => format!("{}.{handler}", self.graph.name(e as usize)),
            None => handler.to_string(),
        }
    }
    pub(crate) fn has_task(&self, element: u32) -> bool {
        self.tasks.binary_search(&(element as usize)).is_ok()
    }
    /// Handlers that this element has beside those of its class.
    pub(crate) fn provided(
        &self,
        element: u32,
    ) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        let task = if self.has_task(element) { TASK } else { &[] };
        let drops = if self.spec(element).is_some_and(|s| !s.drops.is_empty()) { DROPS } else { &[] };
        task.iter().chain(drops).chain(STANDARD)
    }
    /// Whether a handler is the one that the runtime provides and that counts what each worker dropped.
    pub(crate) fn counts_drops(&self, element: u32, handler: &str) -> bool {
        handler == DROP_REASONS && self.declared(element, handler).is_none()
    }
    pub(crate) fn declared(&self, element: u32, handler: &str) -> Option<&'static HandlerSpec> {
        self.spec(element)?.all_handlers().find(|h| h.name == handler)
    }
    /// On how many of its workers, at most, a handler of an element is written: replicas that share their state are one, except
    /// that each has a configuration.
    pub(crate) fn written_replicas(&self, element: u32, handler: &str) -> usize {
        let share = self.spec(element).is_some_and(|s| s.workers == Workers::Share);
        if share && handler != "config" { 1 } else { usize::MAX }
    }
    /// A standard handler of an element, which needs nothing of the element itself.
    pub(crate) fn standard(&self, element: u32, handler: &str) -> Option<String> {
        let e = element as usize;
        let info = self.info.get(e)?;
        Some(match handler {
            "name" => info.name.clone(),
            "class" => info.class.to_string(),
            "config" => self.workshop.config(element).unwrap_or_else(|| info.config.clone()),
            "ports" => self.ports(e),
            "home_thread" if self.has_task(element) => self.home_thread(e).to_string(),
            _ => return None,
        })
    }
    /// The worker of an element's task. Under simulated time, where there is one worker, it is the worker that the configuration
    /// requests, if so many workers were requested.
    fn home_thread(&self, e: usize) -> usize {
        let requested = self.names.workers().unwrap_or(1);
        match self.names.home(e) {
            Some(home) if self.placement.workers() < requested && home < requested => home,
            _ => self.placement.task_worker(e).unwrap_or(0),
        }
    }
    /// The value of a handler that is the same on all workers, so that no worker need be asked.
    pub(crate) fn unasked(&self, element: u32, handler: &str) -> Option<String> {
        match self.declared(element, handler) {
            Some(_) => None,
            None => self.standard(element, handler),
        }
    }
    /// The flat configuration, as it is now.
    fn flat_config(&self) -> String {
        let configs = self.workshop.configs();
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
    /// The `ports` listing of an element.
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
    /// The value of a global read handler, as far as it needs no worker.
    pub fn global(&self, handler: &str) -> Option<String> {
        let lines = |v: Vec<String>| v.iter().fold(String::new(), |s, l| s + l + "\n");
        Some(match handler {
            "version" => env!("CARGO_PKG_VERSION").to_string(),
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
    /// Requests to stop that the driver has not answered yet.
    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
    }
}
