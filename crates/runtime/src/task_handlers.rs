// SPDX-License-Identifier: MIT OR Apache-2.0
//! The task handlers, which the runtime adds to elements with a task.

use crate::handlers::{HOME_THREAD, SCHEDULED, TICKETS};
use crate::nodes::Nodes;
use castanet_element::run_loop::Core;
use castanet_element::{CallError, HandlerError};

/// A task handler. All elements of a class with a task have it, even an element that gets no turns because of how it is
/// connected.
struct TaskHandler {
    name: &'static str,
    /// How a worker reads the handler: a function for an element with a task, and the value for an element without one.
    /// `None` if any thread can read the value.
    read: Option<(Read, &'static str)>,
    /// The function that writes the handler of an element with a task. `None` if the handler is read-only.
    write: Option<Write>,
}

type Read = fn(&Nodes, &Core, u32) -> String;
type Write = fn(&mut Nodes, u32, &str) -> Result<(), CallError>;

static ALL: [TaskHandler; 3] = [
    TaskHandler { name: HOME_THREAD.name, read: None, write: Some(write_home_thread) },
    TaskHandler { name: TICKETS.name, read: Some((read_tickets, "-1")), write: Some(write_tickets) },
    TaskHandler { name: SCHEDULED.name, read: Some((read_scheduled, "false")), write: None },
];

fn read_tickets(nodes: &Nodes, _: &Core, element: u32) -> String {
    nodes.tasks.tickets(element).to_string()
}

/// Returns whether the task is scheduled, as text. A task that was just woken counts, even if it is not in the run
/// queue yet.
fn read_scheduled(nodes: &Nodes, core: &Core, element: u32) -> String {
    (nodes.tasks.contains(element) || core.is_scheduled(element)).to_string()
}

/// Writes the handler `home_thread`. A task cannot move to another worker, so only the current value is accepted. The
/// handler can be written because some configurations write to it.
fn write_home_thread(nodes: &mut Nodes, element: u32, value: &str) -> Result<(), CallError> {
    let shared = &nodes.shared;
    if shared.home_thread(element as usize).to_string() == value.trim() {
        return Ok(());
    }
    let message = format!(
        "'{}' stays on worker {}: home threads are placed when the router starts",
        shared.graph.name(element as usize),
        shared.placement.task_worker(element as usize).unwrap_or(0)
    );
    Err(HandlerError::Failed(message).into())
}

fn write_tickets(nodes: &mut Nodes, element: u32, value: &str) -> Result<(), CallError> {
    let n: u32 = value.trim().parse().map_err(|_| HandlerError::Value("invalid number".into()))?;
    nodes.tasks.set_tickets(element, n);
    Ok(())
}

impl Nodes {
    /// Returns the task handler with this name. None if the element has no such handler.
    fn task_handler(&self, element: u32, handler: &str) -> Option<&'static TaskHandler> {
        ALL.iter().find(|h| h.name == handler).filter(|_| self.shared.shows_task(element))
    }

    /// Reads a task handler whose value can be read only on the task's worker. Returns none if the element has no such
    /// handler.
    pub(crate) fn read_task_handler(&self, core: &Core, element: u32, handler: &str) -> Option<String> {
        let (read, without_task) = self.task_handler(element, handler)?.read?;
        let has_task = self.shared.has_task(element);
        Some(if has_task { read(self, core, element) } else { without_task.to_string() })
    }

    /// Writes a task handler. Returns none if the element has no such handler, or if it is read-only.
    pub(crate) fn write_task_handler(
        &mut self,
        element: u32,
        handler: &str,
        value: &str,
    ) -> Option<Result<(), CallError>> {
        let write = self.task_handler(element, handler)?.write?;
        if !self.shared.has_task(element) {
            let who = self.shared.graph.name(element as usize);
            let message = format!("'{who}' has no task, because of how it is connected");
            return Some(Err(HandlerError::Failed(message).into()));
        }
        Some(write(self, element, value))
    }
}
