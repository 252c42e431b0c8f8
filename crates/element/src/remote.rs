// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to a running router for threads that are not its workers: control sockets, mounts, the command line.

use crate::call_error::CallError;
use castanet_spec::{HandlerFlags, Origin};
use std::sync::Weak;

/// A receiver of messages.
pub trait Listener: Send + Sync {
    /// Receives one message. It may have several lines, and has no newline at its end. This function must neither block
    /// nor call the router.
    fn hear(&self, text: &str);
}

/// A handle to a running router. It stays valid across hot swaps: every call works on the configuration that runs at
/// the time of the call.
///
/// Any thread except a worker may call it. A call waits until the worker that owns the element is between two batches.
pub trait Remote: Send + Sync {
    /// The names of all elements, in the order of the configuration.
    fn elements(&self) -> Vec<String>;
    /// Reads a handler of an element, or a global handler if `element` is none. A read has no rights, whoever the
    /// caller is: it cannot open a file that its parameters name.
    ///
    /// # Errors
    /// When there is no such handler, the handler refuses the call, or the router has stopped.
    fn read(&self, element: Option<&str>, handler: &str, parameters: &str) -> Result<String, CallError>;
    /// Writes a handler of an element, or a global handler if `element` is none. The write has the rights of `origin`.
    /// A few handlers return a text: `swapplan` returns the plan, `hotconfig` the warnings about the new configuration.
    ///
    /// # Errors
    /// When there is no such handler, the handler refuses the call, the origin may not write it, or the router has
    /// stopped.
    fn write(
        &self,
        from: Origin,
        element: Option<&str>,
        handler: &str,
        value: &str,
    ) -> Result<String, CallError>;
    /// Returns the flags of a handler. None if there is no such handler.
    fn flags(&self, element: Option<&str>, handler: &str) -> Option<HandlerFlags> {
        let listing = self.read(element, "handlers", "").ok()?;
        let line = listing.lines().find_map(|l| l.split_once('\t').filter(|l| l.0 == handler));
        line.map(|l| HandlerFlags::parse(l.1))
    }
    /// Returns the number of hot swaps so far. While this number stays the same, the elements and their handlers stay
    /// the same.
    fn swaps(&self) -> u64;
    /// Whether the router has ended.
    fn has_ended(&self) -> bool;
    /// Sends the messages of a channel to a listener from now on, until the listener is dropped. `default` is the
    /// channel of messages without a channel name.
    fn listen(&self, channel: &str, listener: Weak<dyn Listener>);
}
