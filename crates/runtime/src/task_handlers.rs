// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers of tasks, which the runtime adds to the elements that it gives turns to.

use crate::nodes::Nodes;
use crate::shared::Shared;
use castanet_element::CallError;
use castanet_element::run_loop::Core;
use castanet_spec::{HandlerSpec, ValueKind};

/// A handler of tasks. An element whose class has a task has these handlers even if it is connected such that it has
/// none itself.
pub(crate) struct TaskHandler {
    pub spec: HandlerSpec,
    pub read: Read,
    /// Writes the handler of an element that has a task.
    pub write: Option<Write>,
}

type Write = fn(&mut Nodes, u32, &str) -> Result<(), CallError>;

/// Where the value of the handler is known.
pub(crate) enum Read {
    /// On all threads.
    Anywhere(fn(&Shared, u32) -> String),
    /// On the worker that runs the task. `without_task` is the value for an element that has no task.
    OnWorker { of_task: fn(&Nodes, &Core, u32) -> String, without_task: &'static str },
}

const HOME_THREAD: TaskHandler = TaskHandler {
    spec: HandlerSpec::new("home_thread", "rw", "The worker that runs the element's task.", ValueKind::Gauge),
    read: Read::Anywhere(|shared, element| shared.home_thread(element as usize).to_string()),
    write: Some(write_home_thread),
};
const TICKETS: TaskHandler = TaskHandler {
    spec: HandlerSpec::new(
        "tickets",
        "rw",
        "The tickets of the task: its share of turns relative to other tasks.",
        ValueKind::Gauge,
    ),
    read: Read::OnWorker {
        of_task: |nodes, _, element| nodes.tasks.tickets(element).to_string(),
        without_task: "-1",
    },
    write: Some(write_tickets),
};
const SCHEDULED: TaskHandler = TaskHandler {
    spec: HandlerSpec::new("scheduled", "r", "Whether the task is in the run queue.", ValueKind::Flag),
    read: Read::OnWorker {
        // A task that was just woken is not in the run queue yet, but counts as scheduled.
        of_task: |nodes, core, element| {
            (nodes.tasks.contains(element) || core.is_scheduled(element)).to_string()
        },
        without_task: "false",
    },
    write: None,
};

static ALL: [TaskHandler; 3] = [HOME_THREAD, TICKETS, SCHEDULED];

/// The declarations of all handlers of tasks.
pub(crate) const SPECS: &[HandlerSpec] = &[HOME_THREAD.spec, TICKETS.spec, SCHEDULED.spec];

/// Tasks cannot move from the worker that placement assigned. The handler exists because some configurations
/// write to it.
fn write_home_thread(nodes: &mut Nodes, element: u32, value: &str) -> Result<(), CallError> {
    let shared = &nodes.shared;
    if shared.home_thread(element as usize).to_string() == value.trim() {
        return Ok(());
    }
    Err(CallError::Failed(format!(
        "'{}' stays on worker {}: home threads are placed when the router starts",
        shared.graph.name(element as usize),
        shared.placement.task_worker(element as usize).unwrap_or(0)
    )))
}

fn write_tickets(nodes: &mut Nodes, element: u32, value: &str) -> Result<(), CallError> {
    let n: u32 = value.trim().parse().map_err(|_| CallError::Failed("invalid number".into()))?;
    nodes.tasks.set_tickets(element, n);
    Ok(())
}

impl Shared {
    /// Returns the handler of tasks with this name; none if the element has no such handler.
    pub(crate) fn task_handler(&self, element: u32, handler: &str) -> Option<&'static TaskHandler> {
        ALL.iter().find(|h| h.spec.name == handler).filter(|_| self.shows_task(element))
    }
}

impl Nodes {
    /// Writes a handler of tasks; none if the element has no such handler, or if it cannot be written.
    pub(crate) fn write_task_handler(
        &mut self,
        element: u32,
        handler: &str,
        value: &str,
    ) -> Option<Result<(), CallError>> {
        let write = self.shared.task_handler(element, handler)?.write?;
        if !self.shared.has_task(element) {
            let who = self.shared.graph.name(element as usize);
            let message = format!("'{who}' has no task, because of how it is connected");
            return Some(Err(CallError::Failed(message)));
        }
        Some(write(self, element, value))
    }
}
