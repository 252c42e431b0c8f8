// SPDX-License-Identifier: MIT OR Apache-2.0
//! Executes the handler calls that a script makes, and calls of the script's own handlers.

use super::function::{first_word, words};
use super::machine::{Frame, Machine};
use super::script_type::ScriptType;
use super::substitute::Values;
use castanet_element::prelude::*;
use castanet_element::spec::HandlerSpec;
use castanet_element::{CallError, HandlerError, Handlers, Missing};
use castanet_lang::args as text;
use castanet_spec::HandlerFlags;

/// The value of `$?` after an attempt to add a route that exists already: `-EEXIST`.
const EXISTS: i32 = -17;
/// The value of `$?` after a new configuration was refused: `-EINVAL`. As in Click, `$?` is 0 if the element or
/// handler of a call does not exist. It is -1 after all other failures.
const INVALID: i32 = -22;

/// Returns the value of `$?` after a write.
pub(super) fn status(handler: &str, done: &Result<(), CallError>) -> i32 {
    match done {
        Ok(()) | Err(CallError::Missing(_)) => 0,
        Err(CallError::Refused(HandlerError::Exists(_))) => EXISTS,
        Err(CallError::Refused(_)) if handler == "hotconfig" => INVALID,
        Err(_) => -1,
    }
}

/// Returns the declaration of a handler that every script has.
fn declared(handler: &str) -> Option<&'static HandlerSpec> {
    Machine::METHODS.iter().find(|h| h.name == handler)
}

/// Supplies the values of variables and handler calls, for substitution in a script's texts.
pub(super) struct Scope<'m, 'c, 'x> {
    pub machine: &'m mut Machine,
    pub cx: &'c mut Cx<'x>,
}

impl Values for Scope<'_, '_, '_> {
    fn variable(&mut self, name: &str) -> Option<String> {
        self.machine.variable(name)
    }
    fn undefined(&mut self, name: &str) {
        self.machine.report_undefined(name, self.cx);
    }
    fn call(&mut self, text: &str) -> Option<String> {
        self.machine.read_call(text, self.cx)
    }
}

/// The element that a call addresses.
pub(super) enum Callee {
    Own,
    Global,
    Other(u32),
}

impl Machine {
    /// Returns the value of a variable.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let f = &self.frame;
        let given = match name {
            "?" => Some(self.status.to_string()),
            "$" => Some(std::process::id().to_string()),
            "#" => f.arguments.as_ref().map(|a| words(a).len().to_string()),
            "0" => f.name.clone(),
            "args" => f.arguments.clone(),
            "input" => f.input.map(|i| i.to_string()),
            "write" => f.write.map(|w| w.to_string()),
            n if n.bytes().all(|b| b.is_ascii_digit()) => {
                let nth = n.parse::<usize>().ok()?.checked_sub(1)?;
                words(f.arguments.as_ref()?).get(nth).map(ToString::to_string)
            }
            _ => None,
        };
        given.or_else(|| self.variables.get(name).cloned())
    }

    /// Returns whether a handler of the script itself can be read, and whether it can be written; `None` if there is no
    /// such handler.
    fn own(&self, handler: &str) -> Option<(bool, bool)> {
        let exported = || self.program.exports().contains(&handler).then_some((true, false));
        declared(handler).map(|h| (h.readable(), h.writable())).or_else(exported)
    }

    /// Whether a call without an element addresses the script itself.
    pub(super) fn is_own(&self, handler: &str) -> bool {
        self.own(handler).is_some()
    }

    /// Returns the handlers that only this script has: its exported variables, and `*` (any name) if it is a PROXY.
    pub fn handlers(&self) -> Vec<(String, HandlerFlags)> {
        let mut all: Vec<_> =
            self.program.exports().into_iter().map(|v| (v.to_string(), HandlerFlags::READ)).collect();
        if self.kind == ScriptType::Proxy {
            all.push(("*".into(), HandlerFlags::READ_WRITE | HandlerFlags::PARAMETERS));
        }
        all
    }

    pub(super) fn callee(&self, element: &str, handler: &str, cx: &mut Cx<'_>) -> Result<Callee, CallError> {
        if element.is_empty() {
            return Ok(if self.own(handler).is_some() { Callee::Own } else { Callee::Global });
        }
        let me = cx.me();
        let scope = cx.info().map_or("", |i| i.scope());
        let found = cx.names().element(scope, element).and_then(|e| u32::try_from(e).ok());
        match found {
            Some(e) if e == me && (self.own(handler).is_some() || self.kind == ScriptType::Proxy) => {
                Ok(Callee::Own)
            }
            Some(e) => Ok(Callee::Other(e)),
            None => Err(Missing::Element(element.to_string()).into()),
        }
    }

    /// Reads a handler for the script. Reports an error as a message, and then returns `None`.
    pub(super) fn read_call(&mut self, call: &str, cx: &mut Cx<'_>) -> Option<String> {
        let (name, parameters) = first_word(call);
        self.read_named(call, name, parameters, cx)
    }

    /// Like `read_call`, but takes the handler name and the parameters separately. `call` is the call as written, for
    /// messages.
    pub(super) fn read_named(
        &mut self,
        call: &str,
        name: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Option<String> {
        let (element, handler) = name.rsplit_once('.').unwrap_or(("", name));
        let callee = self.callee(element, handler, cx);
        let function = matches!(callee, Ok(Callee::Own));
        let value = match callee {
            Ok(Callee::Own) => self.own_read(handler, parameters, cx),
            Ok(Callee::Global | Callee::Other(_)) | Err(_) if self.offline => {
                self.foreign = true;
                return None;
            }
            Ok(Callee::Global) => cx.read_handler(None, handler, parameters),
            Ok(Callee::Other(e)) => cx.read_handler(Some(e), handler, parameters),
            // Elements of the driver, such as the control sockets of the command line, have no number. Their handlers
            // are found by the whole name.
            Err(e) => cx.read_handler(None, name, parameters).map_err(|_| e),
        };
        value.map_err(|e| self.complain((!function).then_some(call), &e, cx)).ok()
    }

    /// Writes a handler for the script, and sets `$?`. Reports an error as a message.
    pub(super) fn write_call(&mut self, call: &str, unquote: bool, cx: &mut Cx<'_>) {
        let (name, value) = first_word(call);
        let value = if unquote { text::unquote(value) } else { value.to_string() };
        let (element, handler) = name.rsplit_once('.').unwrap_or(("", name));
        let done = match self.callee(element, handler, cx) {
            Ok(Callee::Own) => self.own_write(handler, &value, cx),
            Ok(Callee::Global) => {
                let done = cx.write_handler(None, handler, &value);
                self.replaced |= handler == "hotconfig" && done.is_ok();
                done
            }
            Ok(Callee::Other(e)) => cx.write_handler(Some(e), handler, &value),
            Err(e) => Err(e),
        };
        self.status = status(name, &done);
        if let Err(e) = done {
            self.complain(Some(call), &e, cx);
        }
    }

    /// Executes a call of a read handler of the script itself.
    pub(super) fn own_read(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Result<String, CallError> {
        let declared = declared(handler);
        if declared.is_some_and(|h| h.readable() && !h.takes_parameters()) && !parameters.trim().is_empty() {
            return Err(CallError::Parameters(handler.to_string()));
        }
        let value = match declared {
            Some(_) => self.read_method(handler, parameters, cx),
            None => self.read_dynamic(handler, parameters, cx),
        };
        Ok(value.ok_or_else(|| Missing::Read(handler.to_string()))??)
    }

    /// Executes a call of a write handler of the script itself.
    pub(super) fn own_write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), CallError> {
        let done = match declared(handler) {
            Some(_) => self.write_method(handler, value, cx),
            None => self.write_dynamic(handler, value, cx),
        };
        Ok(done.ok_or_else(|| Missing::Write(handler.to_string()))??)
    }

    /// Reads a handler that the class does not declare: an exported variable, or any name if the script is a PROXY.
    pub(super) fn read_dynamic(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<String, HandlerError>> {
        if self.program.exports().contains(&handler) {
            return Some(Ok(self.variables.get(handler).cloned().unwrap_or_default()));
        }
        (self.kind == ScriptType::Proxy).then(|| self.run_as(handler, parameters, false, cx))
    }

    /// Writes a handler that the class does not declare. A PROXY accepts any name except those of its exported
    /// variables; other scripts accept none.
    pub(super) fn write_dynamic(
        &mut self,
        handler: &str,
        value: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<(), HandlerError>> {
        let runs = self.kind == ScriptType::Proxy && !self.program.exports().contains(&handler);
        runs.then(|| self.run_as(handler, value, true, cx).map(drop))
    }

    /// Runs the script for a call of one of its handlers.
    pub(super) fn run_as(
        &mut self,
        handler: &str,
        arguments: &str,
        write: bool,
        cx: &mut Cx<'_>,
    ) -> Result<String, HandlerError> {
        let frame = Frame {
            name: Some(handler.into()),
            write: Some(write),
            arguments: Some(arguments.into()),
            ..Frame::default()
        };
        self.run(frame, cx)
    }

    /// Returns whether the script can read a handler, and whether it can write the handler.
    pub(super) fn has(&mut self, name: &str, cx: &mut Cx<'_>) -> (bool, bool) {
        let (element, handler) = name.rsplit_once('.').unwrap_or(("", name));
        match self.callee(element, handler, cx) {
            Ok(Callee::Own) => self.own(handler).unwrap_or((true, true)),
            Ok(_) if self.offline => {
                self.foreign = true;
                (false, false)
            }
            Ok(Callee::Global) => cx.has_handler(None, handler),
            Ok(Callee::Other(e)) => cx.has_handler(Some(e), handler),
            Err(_) => (false, false),
        }
    }
}
