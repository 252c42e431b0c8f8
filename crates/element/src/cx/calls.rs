// SPDX-License-Identifier: MIT OR Apache-2.0
//! How an element calls handlers.

use crate::cx::Cx;
use crate::handler::CallError;
use castanet_spec::HandlerRef;

/// How deep handler calls may be nested. Without this limit, elements that call each other could exhaust the
/// stack.
const NESTING: u32 = 64;

#[cold]
fn nested(handler: &str) -> CallError {
    CallError::Busy(format!("handler '{handler}': more than {NESTING} calls one within the other"))
}

impl Cx<'_> {
    /// Reads a handler of another element, or a global one.
    pub fn read_handler(
        &mut self,
        element: Option<u32>,
        handler: &str,
        parameters: &str,
    ) -> Result<String, CallError> {
        match &mut self.router {
            Some(_) if self.core.caller.nesting >= NESTING => Err(nested(handler)),
            Some(r) => {
                self.core.caller.nesting += 1;
                let out = r.read(self.core, element, handler, parameters);
                self.core.caller.nesting -= 1;
                out
            }
            None => Err(CallError::Busy(format!("handler '{handler}' cannot be read from here"))),
        }
    }
    /// Writes a handler of another element, or a global one.
    pub fn write_handler(
        &mut self,
        element: Option<u32>,
        handler: &str,
        value: &str,
    ) -> Result<(), CallError> {
        match &mut self.router {
            Some(_) if self.core.caller.nesting >= NESTING => Err(nested(handler)),
            Some(r) => {
                self.core.caller.nesting += 1;
                let out = r.write(self.core, element, handler, value);
                self.core.caller.nesting -= 1;
                out
            }
            None => Err(CallError::Busy(format!("handler '{handler}' cannot be written from here"))),
        }
    }
    /// Returns whether a handler can be read, and whether it can be written.
    pub fn has_handler(&self, element: Option<u32>, handler: &str) -> (bool, bool) {
        self.router.as_ref().map_or((false, false), |r| r.has(self.core, element, handler))
    }
    /// Performs a write call that the configuration specifies, after this element has returned and before its
    /// packets continue. A failure is shown as a message.
    pub fn call(&mut self, call: &HandlerRef) {
        self.out.touch(1 << 63);
        self.out.close();
        self.core.deferred.push((self.out.range.me, call.clone()));
    }
}
