// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers that the runtime adds to the handlers of an element's class.

use crate::driver_elements::DriverElement;
use crate::shared::Shared;
use castanet_element::{CallError, Missing};
use castanet_graph::PortKind;
use castanet_lang::PortRef;
use castanet_spec::{HandlerFlags, HandlerSpec, Merge, ValueKind};
use std::fmt::Write as _;

/// A handler that every element has, including the elements of the driver.
struct StandardHandler {
    spec: HandlerSpec,
    /// Returns the value for an element of the configuration. `None` if only the element's worker can compute the
    /// value.
    read: Option<fn(&Shared, usize) -> String>,
    /// Returns the value for an element that the driver (the program that runs the router) has added.
    read_driver: fn(&DriverElement) -> String,
}

const fn standard_handler(
    name: &'static str,
    doc: &'static str,
    read: Option<fn(&Shared, usize) -> String>,
    read_driver: fn(&DriverElement) -> String,
) -> StandardHandler {
    StandardHandler {
        spec: HandlerSpec::new(name, HandlerFlags::READ.union(HandlerFlags::CALM), doc, ValueKind::Text),
        read,
        read_driver,
    }
}

static STANDARD: [StandardHandler; 5] = [
    standard_handler(LISTING, "The element's handlers with their flags.", None, DriverElement::listing),
    standard_handler("ports", "The ports: push or pull, and their connections.", Some(Shared::ports), |_| {
        "0 inputs\n0 outputs\n".to_string()
    }),
    standard_handler("config", "The element's configuration string.", Some(Shared::element_config), |e| {
        e.config.clone()
    }),
    standard_handler("class", "The element's class.", Some(Shared::class), |e| e.class.to_string()),
    standard_handler("name", "The element's name.", Some(Shared::name), |e| e.name.clone()),
];
/// The name of the handler that lists the handlers of an element.
pub(crate) const LISTING: &str = "handlers";

/// Returns the declarations of the handlers that every element has.
pub fn standard() -> impl Iterator<Item = &'static HandlerSpec> {
    STANDARD.iter().map(|h| &h.spec)
}
/// Whether a handler is one of those that every element has.
pub(crate) fn is_standard(handler: &str) -> bool {
    standard().any(|h| h.name == handler)
}

/// The flags of the handler `config` in a class that allows live reconfiguration.
pub const LIVE: HandlerFlags = HandlerFlags::READ_WRITE.union(HandlerFlags::CALM);
/// The additional handlers of an element with a task.
pub const TASK: &[HandlerSpec] = &[HOME_THREAD, TICKETS, SCHEDULED];
/// The handler that shows which worker runs a task.
pub(crate) const HOME_THREAD: HandlerSpec = HandlerSpec::new(
    "home_thread",
    HandlerFlags::READ_WRITE,
    "The worker that runs the element's task.",
    ValueKind::Gauge,
);
/// The handler that shows and sets the number of tickets of a task.
pub(crate) const TICKETS: HandlerSpec = HandlerSpec::new(
    "tickets",
    HandlerFlags::READ_WRITE,
    "The tickets of the task: its share of turns relative to other tasks.",
    ValueKind::Gauge,
);
/// The handler that shows whether a task is scheduled.
pub(crate) const SCHEDULED: HandlerSpec = HandlerSpec::new(
    "scheduled",
    HandlerFlags::READ,
    "Whether the task is in the run queue.",
    ValueKind::Flag,
);
/// The additional handler of an element whose class may drop packets: how many packets it dropped for each reason.
pub const DROPS: &[HandlerSpec] = &[HandlerSpec {
    unit: "packets",
    merge: Merge::Sum,
    ..HandlerSpec::new(
        DROP_REASONS,
        HandlerFlags::READ.union(HandlerFlags::UNCOMMON),
        "Packets dropped, one line per reason: the reason, a tab, the number.",
        ValueKind::Table,
    )
}];
/// The name of the handler in [`DROPS`]. The global handler that covers all elements has the same name.
pub(crate) const DROP_REASONS: &str = "drop_reasons";

/// The name and the flags of a handler.
type Listed = (&'static str, HandlerFlags);
/// Returns the handlers that the runtime adds to those of an element's class: the task handlers if `task` is true, the
/// drop handler if `drops` is true, and the handlers that every element has.
pub fn provided(task: bool, drops: bool) -> impl Iterator<Item = &'static HandlerSpec> {
    let task = if task { TASK } else { &[] };
    let drops = if drops { DROPS } else { &[] };
    task.iter().chain(drops).chain(standard())
}

/// Returns the flags of a handler that a single element has in addition to those of its class. `own` has the names and
/// flags of all such handlers of the element; the name `*` stands for any name.
pub(crate) fn own_flags(own: &[(String, HandlerFlags)], handler: &str) -> Option<HandlerFlags> {
    own.iter().find(|h| h.0 == handler).or_else(|| own.iter().find(|h| h.0 == "*")).map(|h| h.1)
}

/// Checks that a read call has no parameters. For read handlers that take none.
pub(crate) fn without_parameters(handler: &str, parameters: &str) -> Result<(), CallError> {
    match parameters.is_empty() {
        true => Ok(()),
        false => Err(CallError::Parameters(handler.to_string())),
    }
}

impl Shared {
    /// Returns the full name of a handler as messages show it.
    pub fn handler_name(&self, element: Option<u32>, handler: &str) -> String {
        match element {
            Some(e) => format!("{}.{handler}", self.graph.name(e as usize)),
            None => handler.to_string(),
        }
    }
    pub(crate) fn has_task(&self, element: u32) -> bool {
        self.tasks.binary_search(&(element as usize)).is_ok()
    }
    /// Whether an element has the task handlers. This is so if the element has a task, and also if its class declares a
    /// task but the element gets no turns because of how it is connected.
    pub(crate) fn shows_task(&self, element: u32) -> bool {
        self.has_task(element) || self.spec(element).is_some_and(|s| s.task)
    }
    /// Returns the name and the flags of each handler that the runtime adds to the handlers of an element's class.
    pub(crate) fn provided(&self, element: u32) -> impl Iterator<Item = Listed> {
        let drops = self.spec(element).is_some_and(|s| !s.drops.is_empty());
        provided(self.shows_task(element), drops).map(|h| (h.name, h.flags))
    }
    /// Whether a handler is the `drop_reasons` that the runtime provides. Its value must be summed over the workers.
    /// False if the class declares a handler of that name itself.
    pub(crate) fn counts_drops(&self, element: u32, handler: &str) -> bool {
        handler == DROP_REASONS && self.declared(element, handler).is_none()
    }
    pub(crate) fn declared(&self, element: u32, handler: &str) -> Option<&'static HandlerSpec> {
        self.spec(element)?.all_handlers().find(|h| h.name == handler)
    }
    /// Returns the value of a standard handler if any thread can compute it. None for all other handlers.
    pub(crate) fn standard(&self, element: u32, handler: &str) -> Option<String> {
        let e = element as usize;
        if handler == HOME_THREAD.name && self.shows_task(element) {
            return Some(self.home_thread(e).to_string());
        }
        let read = STANDARD.iter().find(|h| h.spec.name == handler)?.read?;
        self.info.get(e).map(|_| read(self, e))
    }
    fn name(&self, e: usize) -> String {
        self.info.get(e).map_or(String::new(), |i| i.name.to_string())
    }
    fn class(&self, e: usize) -> String {
        self.info.get(e).map_or(String::new(), |i| i.class.to_string())
    }
    /// Returns the configuration string of an element, after live reconfigurations.
    fn element_config(&self, e: usize) -> String {
        let changed = u32::try_from(e).ok().and_then(|e| self.build_state.config(e));
        changed.unwrap_or_else(|| self.graph.config(e).to_string())
    }
    /// Returns the value of the handler `home_thread`, normally the worker that runs the element's task.
    ///
    /// Under simulated time there is only one worker, even if the user requested more. If the configuration assigns a
    /// home to the task, and this home is below the requested number of workers, the value is this home.
    pub(crate) fn home_thread(&self, e: usize) -> usize {
        let requested = self.names.workers().unwrap_or(1);
        match self.names.home(e) {
            Some(home) if self.placement.workers() < requested && home < requested => home,
            _ => self.placement.task_worker(e).unwrap_or(0),
        }
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
}

impl DriverElement {
    /// Reads a handler of an element of the driver.
    ///
    /// # Errors
    /// When there is no such handler, or the call has parameters that the handler does not take.
    pub fn read(&self, handler: &str, parameters: &str) -> Result<String, CallError> {
        let name = format!("{}.{handler}", self.name);
        let own = || self.values.iter().find(|v| v.0 == handler).map(|v| v.1.clone());
        let standard = STANDARD.iter().find(|h| h.spec.name == handler).map(|h| (h.read_driver)(self));
        let value = standard.or_else(own).ok_or_else(|| Missing::Read(name.clone()))?;
        without_parameters(&name, parameters).map(|()| value)
    }

    fn listing(&self) -> String {
        let own = self.values.iter().map(|v| (v.0, HandlerFlags::READ));
        let all = own.chain(standard().map(|h| (h.name, h.flags)));
        all.fold(String::new(), |mut s, (n, f)| {
            let _ = writeln!(s, "{n}\t{f}");
            s
        })
    }
}
