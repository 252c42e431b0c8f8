// SPDX-License-Identifier: MIT OR Apache-2.0
//! How an element calls handlers.

use crate::call_error::{Busy, CallError};
use crate::cx::Cx;
use crate::router::Router;
use crate::run_loop::Core;
use castanet_spec::HandlerRef;

/// How deep handler calls may be nested. Without this limit, elements that call each other could exhaust the
/// stack.
const NESTING: u32 = 64;

impl Cx<'_> {
    /// Makes a handler call. Fails if calls are nested too deep, or if this context has no access to other elements. In
    /// the second case, `unreachable` makes the error.
    fn nested<T>(
        &mut self,
        handler: &str,
        unreachable: fn(String) -> Busy,
        call: impl FnOnce(&mut dyn Router, &mut Core) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let Some(router) = &mut self.router else {
            return Err(unreachable(handler.to_string()).into());
        };
        if self.core.caller.nesting >= NESTING {
            return Err(Busy::Nested { handler: handler.to_string(), limit: NESTING }.into());
        }
        self.core.caller.nesting += 1;
        let out = call(&mut **router, self.core);
        self.core.caller.nesting -= 1;
        out
    }
    /// Reads a handler of another element. If `element` is none, reads a global handler.
    pub fn read_handler(
        &mut self,
        element: Option<u32>,
        handler: &str,
        parameters: &str,
    ) -> Result<String, CallError> {
        self.nested(handler, Busy::Read, |router, core| router.read(core, element, handler, parameters))
    }
    /// Writes a handler of another element. If `element` is none, writes a global handler.
    pub fn write_handler(
        &mut self,
        element: Option<u32>,
        handler: &str,
        value: &str,
    ) -> Result<(), CallError> {
        self.nested(handler, Busy::Write, |router, core| router.write(core, element, handler, value))
    }
    /// Returns whether a handler can be read, and whether it can be written.
    pub fn has_handler(&self, element: Option<u32>, handler: &str) -> (bool, bool) {
        self.router.as_ref().map_or((false, false), |r| r.has(self.core, element, handler))
    }
    /// Performs a write call that the configuration specifies, as soon as this element has returned. The packets that
    /// it emitted continue after the call. A failure is shown as a message.
    pub fn call(&mut self, call: &HandlerRef) {
        self.out.touch(1 << 63);
        self.out.close();
        self.core.deferred.push((self.out.range.me, call.clone()));
    }
}
