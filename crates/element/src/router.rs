// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an element can access besides its own state: the other elements of its router, other workers, the driver, and
//! the listeners that receive messages.

use crate::call_error::CallError;
use crate::place::Place;
use crate::remote::Remote;
use crate::run_loop::Core;
use crate::shared_str::SharedStr;
use castanet_packet::{Batch, Packet};
use castanet_spec::{ClassName, scope_of};
use std::sync::Arc;

/// The description of an element for messages and tools.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// The full name of the element.
    pub name: SharedStr,
    /// The name of its class, as the configuration writes it.
    pub class: ClassName,
    /// Where the element is declared.
    pub place: Place,
}

impl Info {
    /// The scope prefix of the element's name.
    pub fn scope(&self) -> &str {
        scope_of(&self.name)
    }
}

/// The connection of one worker to other workers, to the driver, and to the listeners that receive messages.
pub trait Messages: Send + Sync {
    /// Shows one message. It may have several lines, and has no newline at its end.
    fn message(&self, text: &str);
    /// Shows one message to the listeners of a named channel. By default, a channel has no listeners.
    fn message_on(&self, _channel: &str, _text: &str) {}
    /// Records that a handler call failed in a script that the router itself started, so no caller receives the error.
    fn call_failed(&self) {}
    /// Sends `times` stop requests to the driver.
    fn stop(&self, times: u32);
    /// Wakes the task of an element on another worker.
    fn wake(&self, worker: u32, element: u32);
    /// Reports that the addresses of `_device` have changed. Returns true if the configuration uses these addresses. In
    /// that case, the router reads the configuration again.
    fn device_changed(&self, _device: &str) -> bool {
        false
    }
    /// Returns a handle by which threads that are not workers access the router. None in tests of a single element.
    fn remote(&self) -> Option<Arc<dyn Remote>> {
        None
    }
}

/// The access of a running element to the other elements of its router.
pub trait Router {
    /// Pulls at most `max` packets through an input of element `me`.
    fn pull(&mut self, core: &mut Core, me: u32, input: usize, max: usize, into: &mut Batch);
    /// Pulls one packet through an input of element `me`.
    fn pull_one(&mut self, core: &mut Core, me: u32, input: usize) -> Option<Packet> {
        let mut batch = core.spare.pop().unwrap_or_default();
        self.pull(core, me, input, 1, &mut batch);
        let p = batch.pop();
        core.spare.push(batch);
        p
    }
    /// Reads a handler of an element, or a global handler if `element` is none.
    fn read(
        &mut self,
        core: &mut Core,
        element: Option<u32>,
        handler: &str,
        parameters: &str,
    ) -> Result<String, CallError>;
    /// Writes a handler of an element, or a global handler if `element` is none.
    fn write(
        &mut self,
        core: &mut Core,
        element: Option<u32>,
        handler: &str,
        value: &str,
    ) -> Result<(), CallError>;
    /// Returns whether a handler can be read, and whether it can be written.
    fn has(&self, core: &Core, element: Option<u32>, handler: &str) -> (bool, bool);
}
