// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running router as seen from outside its workers: from control sockets, mounts, the command line.

use crate::handler::CallError;
use castanet_spec::Origin;
use std::sync::Weak;

/// A receiver of messages.
pub trait Listener: Send + Sync {
    /// Receives one message, which may have several lines and ends without a line end. Must not block, nor
    /// call the router.
    fn hear(&self, text: &str);
}

/// A running router. It stays valid across hot swaps: every call concerns the configuration that runs at the
/// time of the call.
///
/// Calls may come from any thread except workers. They wait until the worker that owns the element is between
/// two batches.
pub trait Remote: Send + Sync {
    /// The names of all elements, in the order of the configuration.
    fn elements(&self) -> Vec<String>;
    /// Reads a handler of an element, or a global handler if `element` is none. A read has no rights, whoever
    /// the caller is: it opens no file that its parameters name.
    ///
    /// # Errors
    /// When there is no such handler, or it refuses, or the router has stopped.
    fn read(&self, element: Option<&str>, handler: &str, parameters: &str) -> Result<String, CallError>;
    /// Writes a handler of an element, or a global handler if `element` is none, with the rights of an origin. A few
    /// handlers return a text: `swapplan` the plan, `hotconfig` the warnings about the new configuration.
    ///
    /// # Errors
    /// When there is no such handler, or it refuses, or the origin may not write it, or the router has
    /// stopped.
    fn write(
        &self,
        from: Origin,
        element: Option<&str>,
        handler: &str,
        value: &str,
    ) -> Result<String, CallError>;
    /// The flags of a handler as the `handlers` listing shows them; none if there is no such handler.
    fn flags(&self, element: Option<&str>, handler: &str) -> Option<String> {
        let listing = self.read(element, "handlers", "").ok()?;
        let line = listing.lines().find_map(|l| l.split_once('\t').filter(|l| l.0 == handler));
        line.map(|l| l.1.to_string())
    }
    /// Returns how often the configuration has been swapped. While this number stays the same, facts about
    /// elements and handlers stay valid.
    fn swaps(&self) -> u64;
    /// Whether the router has ended.
    fn has_ended(&self) -> bool;
    /// Sends the messages of a channel to a listener from now on, as long as the listener exists. `default`
    /// is the channel of messages that name no channel.
    fn listen(&self, channel: &str, listener: Weak<dyn Listener>);
}
