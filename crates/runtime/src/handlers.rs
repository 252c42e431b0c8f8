// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers that classes do not provide: the standard handlers of every element, and the global handlers.

use crate::driver_elements::DriverElement;
use crate::shared::Shared;
use castanet_element::CallError;
use castanet_graph::PortKind;
use castanet_lang::PortRef;
use castanet_spec::{HandlerSpec, Merge, ValueKind};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

/// Handlers that every element has.
pub const ELEMENT: [HandlerSpec; 5] = [
    HandlerSpec::new("handlers", "r.", "The element's handlers with their flags.", ValueKind::Text),
    HandlerSpec::new("ports", "r.", "The ports: push or pull, and their connections.", ValueKind::Text),
    HandlerSpec::new("config", "r.", "The element's configuration string.", ValueKind::Text),
    HandlerSpec::new("class", "r.", "The element's class.", ValueKind::Text),
    HandlerSpec::new("name", "r.", "The element's name.", ValueKind::Text),
];
/// The flags of the handler `config` if the class allows live reconfiguration.
pub const LIVE: &str = "rw.";
/// Handlers of elements to which the run loop gives turns.
pub const TASK: &[HandlerSpec] = &[HOME_THREAD, TICKETS, SCHEDULED];
/// The handler for the worker of a task.
pub(crate) const HOME_THREAD: HandlerSpec =
    HandlerSpec::new("home_thread", "rw", "The worker that runs the element's task.", ValueKind::Gauge);
/// The handler for the tickets of a task.
pub(crate) const TICKETS: HandlerSpec = HandlerSpec::new(
    "tickets",
    "rw",
    "The tickets of the task: its share of turns relative to other tasks.",
    ValueKind::Gauge,
);
/// The handler that shows whether a task is scheduled.
pub(crate) const SCHEDULED: HandlerSpec =
    HandlerSpec::new("scheduled", "r", "Whether the task is in the run queue.", ValueKind::Flag);
/// The handler of elements whose class may drop packets: the number of dropped packets for each reason.
pub const DROPS: &[HandlerSpec] = &[HandlerSpec {
    unit: "packets",
    merge: Merge::Sum,
    ..HandlerSpec::new(
        DROP_REASONS,
        "rU",
        "Packets dropped, one line per reason: the reason, a tab, the number.",
        ValueKind::Table,
    )
}];
/// The name of the handler in [`DROPS`], and of the global handler that covers all elements.
pub(crate) const DROP_REASONS: &str = "drop_reasons";
/// The version of Click whose language and interfaces the router follows. Clients compare it.
pub const CLICK_VERSION: &str = "2.1";
/// Global handlers.
pub const GLOBAL: &[HandlerSpec] = &[
    HandlerSpec::new(
        "version",
        "r",
        "The version of Click whose language and interfaces this program has.",
        ValueKind::Text,
    ),
    HandlerSpec::new("driver", "r", "The kind of driver: always userlevel.", ValueKind::Text),
    HandlerSpec::new("config", "r", "The configuration as it was read.", ValueKind::Text),
    HandlerSpec::new("flatconfig", "r", "The configuration with compounds expanded.", ValueKind::Text),
    HandlerSpec::new(
        "requirements",
        "r",
        "The requirements of the configuration, one per line.",
        ValueKind::Text,
    ),
    HandlerSpec::new("handlers", "r", "The global handlers with their flags.", ValueKind::Text),
    HandlerSpec::new("list", "r", "The number of elements, then their names, one per line.", ValueKind::Text),
    HandlerSpec::new("classes", "r", "The names of all classes, one per line.", ValueKind::Text),
    HandlerSpec::new("packages", "r", "The loaded packages, one per line.", ValueKind::Text),
    HandlerSpec::new(
        "workers",
        "r",
        "Workers, one line each: the number, the seconds that it was awake, the seconds that it exists, the number of \
         its tasks, separated by tabs.",
        ValueKind::Table,
    ),
    HandlerSpec::new("timewarp", "rw", "The speed of the router's clock: 1 is real time.", ValueKind::Gauge),
    HandlerSpec::new(
        "stop",
        "w",
        "Sends the driver requests to stop; the value is their number.",
        ValueKind::Text,
    ),
    HandlerSpec {
        unit: "packets",
        merge: Merge::Sum,
        ..HandlerSpec::new(
            DROP_REASONS,
            "rU",
            "Packets dropped, one line per element and reason: the element, the reason, the number, separated by \
             tabs.",
            ValueKind::Table,
        )
    },
];
/// The additional global handlers of a router that allows hot swaps.
pub const HOT_SWAP: [HandlerSpec; 3] = [
    HandlerSpec::new(
        "hotconfig",
        "wR",
        "Replaces the configuration by the written one, if hot swaps are allowed.",
        ValueKind::Text,
    ),
    HandlerSpec::new(
        "loadpackage",
        "wR",
        "Loads a package of classes, by name or file, for later configurations.",
        ValueKind::Text,
    ),
    HandlerSpec::new(
        "swapplan",
        "wR",
        "Returns the changes that a hot swap to the written configuration would make.",
        ValueKind::Text,
    ),
];

/// The name and the flags of a handler.
type Listed = (&'static str, &'static str);
/// Returns the handlers that the runtime adds to those of an element's class: the task handlers if `task`, the drop
/// handlers if `drops`, and the handlers of every element.
pub fn provided(task: bool, drops: bool) -> impl Iterator<Item = &'static HandlerSpec> {
    let task = if task { TASK } else { &[] };
    let drops = if drops { DROPS } else { &[] };
    task.iter().chain(drops).chain(&ELEMENT)
}

/// Returns the error for a handler that does not exist. `kind` is "read" or "write".
pub(crate) fn missing(handler: &str, kind: &str) -> CallError {
    CallError::Missing(format!("no '{handler}' {kind} handler"))
}

/// Returns how many stop requests a write of `value` to the global handler `stop` makes: the number in `value`, or 1 if
/// `value` is not a number.
pub(crate) fn requests(value: &str) -> u32 {
    value.trim().parse().unwrap_or(1)
}

/// Checks that a call of a read handler that takes no parameters has none.
pub(crate) fn without_parameters(handler: &str, parameters: &str) -> Result<(), CallError> {
    match parameters.is_empty() {
        true => Ok(()),
        false => Err(CallError::Failed(format!("read handler '{handler}' does not take parameters"))),
    }
}

/// Returns the error for a call of an element that is running already.
pub(crate) fn busy(element: &str) -> CallError {
    CallError::Busy(format!("element '{element}' is busy"))
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
    /// Whether an element has the handlers of tasks. True if it has a task, or if its class declares a task but this
    /// element gets no turns because of how it is connected.
    pub(crate) fn shows_task(&self, element: u32) -> bool {
        self.has_task(element) || self.spec(element).is_some_and(|s| s.task)
    }
    /// Returns the name and the flags of each handler that the runtime adds to those of the element's class.
    pub(crate) fn provided(&self, element: u32) -> impl Iterator<Item = Listed> {
        let drops = self.spec(element).is_some_and(|s| !s.drops.is_empty());
        provided(self.shows_task(element), drops).map(|h| (h.name, h.flags))
    }
    /// Whether a handler is the `drop_reasons` of the runtime, which counts the drops on each worker separately. False
    /// if the class declares a handler of that name.
    pub(crate) fn counts_drops(&self, element: u32, handler: &str) -> bool {
        handler == DROP_REASONS && self.declared(element, handler).is_none()
    }
    pub(crate) fn declared(&self, element: u32, handler: &str) -> Option<&'static HandlerSpec> {
        self.spec(element)?.all_handlers().find(|h| h.name == handler)
    }
    /// Returns the value of a standard handler that can be computed without calling the element; none for any other
    /// handler.
    pub(crate) fn standard(&self, element: u32, handler: &str) -> Option<String> {
        let e = element as usize;
        let info = self.info.get(e)?;
        Some(match handler {
            "name" => info.name.clone(),
            "class" => info.class.to_string(),
            "config" => self.build_state.config(element).unwrap_or_else(|| info.config.clone()),
            "ports" => self.ports(e),
            h if h == HOME_THREAD.name && self.shows_task(element) => self.home_thread(e).to_string(),
            _ => return None,
        })
    }
    /// Returns the value of the handler `home_thread`, which is normally the worker that runs the element's task. Under
    /// simulated time there is only one worker, even if more were requested. In that case, returns the home that the
    /// configuration assigns, if its number is below the requested number of workers.
    pub(crate) fn home_thread(&self, e: usize) -> usize {
        let requested = self.names.workers().unwrap_or(1);
        match self.names.home(e) {
            Some(home) if self.placement.workers() < requested && home < requested => home,
            _ => self.placement.task_worker(e).unwrap_or(0),
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
    /// Returns the value of the handler `workers`.
    fn workers(&self) -> String {
        let mut out = String::new();
        for (w, inbox) in self.inboxes.iter().enumerate() {
            let (awake, exists) = inbox.waker.times();
            let tasks = self.placement.tasks_of(w).len();
            let _ = writeln!(out, "{w}\t{:.6}\t{:.6}\t{tasks}", awake.as_secs_f64(), exists.as_secs_f64());
        }
        out
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
    /// Returns the name and the flags of each global handler.
    pub fn globals(&self) -> impl Iterator<Item = Listed> {
        let swap = if self.supervisor.allows_swaps() { &HOT_SWAP[..] } else { &[] };
        GLOBAL.iter().chain(swap).map(|h| (h.name, h.flags))
    }
    /// Returns the names of the configuration's elements, then those of the driver's elements.
    pub(crate) fn all_names(&self) -> Vec<String> {
        let mut names: Vec<_> = (0..self.graph.len()).map(|e| self.graph.name(e).to_string()).collect();
        names.extend(self.driver_elements().into_iter().map(|e| e.name));
        names
    }
    /// Returns the elements of the driver that no element of the configuration hides.
    pub fn driver_elements(&self) -> Vec<DriverElement> {
        let all = self.supervisor.driver_elements().into_iter();
        all.filter(|e| self.find(&e.name).is_none()).collect()
    }
    /// Returns the value of `ELEMENT.HANDLER` for an element of the driver; none if there is no such handler.
    fn of_driver(&self, name: &str) -> Option<String> {
        let (element, handler) = name.rsplit_once('.')?;
        self.driver_elements().iter().find(|e| e.name == element)?.read(handler, "").ok()
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
            "workers" => self.workers(),
            "packages" => lines(self.supervisor.packages()),
            "list" => {
                let names = self.all_names();
                format!("{}\n{}", names.len(), lines(names))
            }
            "classes" => lines(self.classes.names().iter().map(ToString::to_string).collect()),
            "handlers" => self.globals().fold(String::new(), |s, (n, f)| s + n + "\t" + f + "\n"),
            name => return self.of_driver(name),
        })
    }
}

impl DriverElement {
    /// Reads a handler.
    ///
    /// # Errors
    /// When there is no such handler, or it takes no parameters.
    pub fn read(&self, handler: &str, parameters: &str) -> Result<String, CallError> {
        let name = format!("{}.{handler}", self.name);
        let value = match handler {
            "name" => self.name.clone(),
            "class" => self.class.to_string(),
            "config" => self.config.clone(),
            "ports" => "0 inputs\n0 outputs\n".to_string(),
            "handlers" => {
                let own = self.values.iter().map(|v| (v.0, "r"));
                own.chain(ELEMENT.iter().map(|h| (h.name, h.flags))).fold(String::new(), |mut s, (n, f)| {
                    let _ = writeln!(s, "{n}\t{f}");
                    s
                })
            }
            _ => {
                let own = self.values.iter().find(|v| v.0 == handler);
                own.ok_or_else(|| missing(&name, "read"))?.1.clone()
            }
        };
        without_parameters(&name, parameters).map(|()| value)
    }
}

impl Shared {
    /// Returns the number of requests to stop that the driver has not answered yet.
    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
    }
}
