// SPDX-License-Identifier: MIT OR Apache-2.0
//! Executes the handler calls that scripts make, and calls of the handlers of scripts themselves.

use super::function::{self, first_word, truth, words};
use super::kill::kill;
use super::machine::{Frame, Machine};
use super::number::value;
use super::output;
use super::script_type::ScriptType;
use super::substitute::{Values, is_name};
use castanet_element::prelude::*;
use castanet_lang::args as text;

/// The value of `$?` after an attempt to add a route that exists already: `-EEXIST`.
const EXISTS: i32 = -17;
/// The value of `$?` after a new configuration was refused: `-EINVAL`. `$?` is 0 if the element or handler of a call
/// does not exist, and -1 after all other failures.
const INVALID: i32 = -22;

/// Returns the value of `$?` after a write.
pub(super) fn status(handler: &str, done: &Result<(), CallError>) -> i32 {
    match done {
        Ok(()) | Err(CallError::Missing(_)) => 0,
        Err(CallError::Exists(_)) => EXISTS,
        Err(CallError::Failed(_)) if handler == "hotconfig" => INVALID,
        Err(_) => -1,
    }
}

/// The handlers that every script has, each with its name, whether it can be read, and whether it can be written.
/// Functions that need only their arguments are not in this list.
const OWN: &[(&str, bool, bool)] = &[
    ("run", true, true),
    ("get", true, false),
    ("shift", true, false),
    ("now", true, false),
    ("now_steady", true, false),
    ("random", true, false),
    ("readable", true, false),
    ("writable", true, false),
    ("cat", true, false),
    ("catq", true, false),
    ("kill", true, false),
    ("step", false, true),
    ("goto", false, true),
    ("set", false, true),
];

/// The source of values for substitution in a script.
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
        if let Some(o) = OWN.iter().find(|o| o.0 == handler) {
            return Some((o.1, o.2));
        }
        let known = super::class::FUNCTIONS.contains(&handler) || self.program.exports().contains(&handler);
        known.then_some((true, false))
    }

    /// Whether a call without an element addresses the script itself.
    pub(super) fn is_own(&self, handler: &str) -> bool {
        self.own(handler).is_some()
    }

    /// Returns the handlers that only this script has: its exported variables, and `*` (any name) if it is a PROXY.
    pub fn handlers(&self) -> Vec<(String, &'static str)> {
        let mut all: Vec<_> = self.program.exports().into_iter().map(|v| (v.to_string(), "r")).collect();
        if self.kind == ScriptType::Proxy {
            all.push(("*".into(), "rw+"));
        }
        all
    }

    pub(super) fn callee(&self, element: &str, handler: &str, cx: &mut Cx<'_>) -> Result<Callee, CallError> {
        if element.is_empty() {
            return Ok(if self.own(handler).is_some() { Callee::Own } else { Callee::Global });
        }
        let me = cx.me();
        let scope = cx.info().map_or("", |i| i.scope.as_str());
        let found = cx.names().element(scope, element).and_then(|e| u32::try_from(e).ok());
        match found {
            Some(e) if e == me && (self.own(handler).is_some() || self.kind == ScriptType::Proxy) => {
                Ok(Callee::Own)
            }
            Some(e) => Ok(Callee::Other(e)),
            None => Err(CallError::Missing(format!("no element named '{element}'"))),
        }
    }

    /// Reads a handler for the script. An error is reported.
    pub(super) fn read_call(&mut self, call: &str, cx: &mut Cx<'_>) -> Option<String> {
        let (name, parameters) = first_word(call);
        self.read_named(call, name, parameters, cx)
    }

    /// Like `read_call`, with a separate name and parameters. Messages show the call as it was written.
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
            // Elements of the driver have no number. Their handlers are found by the whole name.
            Err(e) => cx.read_handler(None, name, parameters).map_err(|_| e),
        };
        value.map_err(|e| self.complain((!function).then_some(call), &e, cx)).ok()
    }

    /// Writes a handler for the script. An error is reported and sets `$?`.
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
    pub fn own_read(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Result<String, CallError> {
        match self.own(handler) {
            Some((false, _)) => Err(CallError::Missing(format!("no '{handler}' read handler"))),
            Some(_) => Ok(self.value_of(handler, parameters, cx)?),
            None if self.kind == ScriptType::Proxy => {
                Ok(self.run_as(handler, parameters, Some(false), cx)?)
            }
            None => Err(CallError::Missing(format!("no '{handler}' read handler"))),
        }
    }

    fn value_of(&mut self, handler: &str, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        match handler {
            "run" => self.run_as("run", parameters, Some(false), cx),
            "get" => {
                let name = parameters.trim();
                self.variable(name).ok_or_else(|| format!("no variable '{name}'").into())
            }
            "shift" => self.shift(parameters.trim()),
            // The router's clock is steady: setting the machine's time does not move it.
            "now" | "now_steady" if parameters.trim().is_empty() => Ok(Timestamp(cx.now()).show()),
            "now" | "now_steady" => Err(format!("'{handler}' takes no parameters").into()),
            "random" => self.random(&words(parameters)),
            "readable" => Ok(words(parameters).iter().all(|h| self.has(h, cx).0).to_string()),
            "writable" => Ok(words(parameters).iter().all(|h| self.has(h, cx).1).to_string()),
            "cat" | "catq" => {
                let name = cx.with_args(|a| Filename::parse(parameters.trim(), a))?;
                Ok(match output::read(&name.0) {
                    Ok(read) if handler == "catq" => text::quote(&read),
                    Ok(read) => read,
                    Err(e) => {
                        cx.message(&e.to_string());
                        String::new()
                    }
                })
            }
            "kill" => kill(&words(parameters)).map(|()| String::new()),
            _ => match function::call(handler, parameters) {
                Some(result) => Ok(result?),
                None => Ok(self.variables.get(handler).cloned().unwrap_or_default()),
            },
        }
    }

    /// Executes a call of a write handler of the script itself.
    pub fn own_write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), CallError> {
        match handler {
            "run" => Ok(self.run_as("run", value, Some(true), cx).map(drop)?),
            "step" => {
                let n = match value.trim() {
                    // `router` stands for a request to stop, which counts as one step.
                    "" | "router" => 1,
                    n => super::number::value(n)
                        .ok_or_else(|| CallError::Failed(format!("'{n}' is not a number of steps")))?,
                };
                self.step(n, cx);
                Ok(())
            }
            "goto" => {
                let (label, condition) = first_word(value);
                if condition.is_empty() || truth(condition).map_err(HandlerError::from)? {
                    self.go_to(label, cx)?;
                }
                Ok(())
            }
            "set" => {
                let (variable, text) = first_word(value);
                if variable.is_empty() || !variable.bytes().all(is_name) {
                    return Err(CallError::Failed("expected a variable and a text".into()));
                }
                self.set(variable, text.to_string());
                Ok(())
            }
            _ if self.kind == ScriptType::Proxy && self.own(handler).is_none() => {
                Ok(self.run_as(handler, value, Some(true), cx).map(drop)?)
            }
            _ => Err(CallError::Missing(format!("no '{handler}' write handler"))),
        }
    }

    fn run_as(
        &mut self,
        handler: &str,
        arguments: &str,
        write: Option<bool>,
        cx: &mut Cx<'_>,
    ) -> Result<String, HandlerError> {
        let frame = Frame {
            name: Some(handler.into()),
            write,
            arguments: Some(arguments.into()),
            ..Frame::default()
        };
        self.run(frame, cx)
    }

    /// Removes the first word of a variable, and returns it.
    fn shift(&mut self, variable: &str) -> Result<String, HandlerError> {
        let name = if variable.is_empty() { "args" } else { variable };
        let old = self.variable(name).ok_or_else(|| format!("no variable '{name}'"))?;
        let (first, rest) = first_word(&old);
        self.set(name, rest.to_string());
        Ok(first.to_string())
    }

    fn random(&mut self, words: &[&str]) -> Result<String, HandlerError> {
        let number = |w: &&str| value::<i64>(w).ok_or_else(|| format!("'{w}' is not an integer"));
        let numbers: Vec<i64> = words.iter().map(number).collect::<Result<_, _>>()?;
        let (low, high) = match *numbers {
            [] => (0, i64::from(i32::MAX)),
            [n] => (0, n.checked_sub(1).unwrap_or(-1)),
            [low, high] => (low, high),
            _ => return Err("expected no number, one or two".into()),
        };
        if high < low {
            return Err("there is no number in an empty range".into());
        }
        // The distance always fits in an unsigned 64-bit number, and the sum below wraps around to the right value.
        let distance = high.wrapping_sub(low).cast_unsigned();
        let n = match distance.checked_add(1) {
            Some(count) => self.random.below(count),
            None => self.random.next_u64(),
        };
        Ok(low.wrapping_add(n.cast_signed()).to_string())
    }

    /// Returns whether a handler can be read, and whether it can be written.
    fn has(&mut self, name: &str, cx: &mut Cx<'_>) -> (bool, bool) {
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
