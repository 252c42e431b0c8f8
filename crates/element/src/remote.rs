// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running router as those see it who stand outside its workers: control sockets, mounts, the command line.

use crate::core::CallError;
use castanet_spec::Origin;
use std::sync::Weak;

/// Hears messages.
pub trait Listener: Send + Sync {
    /// Hears one message; it may have several lines and ends without a line end. It must not block, nor call the router.
    fn hear(&self, text: &str);
}

/// A running router. It stays the same when a hot swap changes the configuration: every call is about the configuration
/// of that moment.
///
/// Calls may come from any thread but those of workers, and wait until the worker that owns the element is between two
/// batches.
pub trait Remote: Send + Sync {
    /// The names of all elements, in the order of the configuration.
    fn elements(&self) -> Vec<String>;
    /// Reads a handler; no element: a global one. A read has no rights, whoever asks: it opens no file that its parameters name.
    ///
    /// # Errors
    /// When there is no such handler, or it says no, or the router has stopped.
    fn read(&self, element: Option<&str>, handler: &str, parameters: &str) -> Result<String, CallError>;
    /// Writes a handler with the rights of an origin; no element: a global one. A few handlers answer with a text.
    ///
    /// # Errors
    /// When there is no such handler, or it says no, or the origin may not write it, or the router has stopped.
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
    /// How often the configuration has been swapped: what was learnt of elements and handlers holds while this stays.
    fn swaps(&self) -> u64;
    /// Whether the router has ended.
    fn has_ended(&self) -> bool;
    /// From now on, and as long as it exists, a listener hears the messages of a channel; `default` is the channel of messages
    /// that name none.
    fn listen(&self, channel: &str, listener: Weak<dyn Listener>);
}
