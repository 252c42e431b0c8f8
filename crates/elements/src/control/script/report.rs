// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of scripts about what went wrong.
//!
//! Before the first message of a run, the line `While executing 'NAME :: CLASS':` is printed. As an exception, the
//! first run of a DRIVER script has no such line before its first wait.

use super::call::Callee;
use super::function::first_word;
use super::machine::Machine;
use super::script_type::ScriptType;
use castanet_element::prelude::*;

/// If a handler refuses a configuration, each line of its error begins with this text and a line number: `config:3: `.
const CONFIG: &str = "config:";
/// A `While calling` message about `hotconfig` quotes the refused configuration. Each line of this message begins with
/// this text.
const PLACE: &str = "config:1: ";

/// Indents each line. In a line that begins with a position (`config:3: `), indents the text after the position.
fn indented(text: &str, by: &str) -> String {
    let line = |line: &str| {
        let number = line.strip_prefix(CONFIG).and_then(|rest| rest.split_once(": "));
        match number.filter(|n| n.0.bytes().all(|b| b.is_ascii_digit())) {
            Some((number, rest)) => format!("{CONFIG}{number}: {by}{rest}"),
            None => format!("{by}{line}"),
        }
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

impl Machine {
    /// Prints an error of the current run.
    pub(super) fn report(&mut self, text: &str, cx: &mut Cx<'_>) {
        if self.starting {
            return cx.message(text);
        }
        let mut shown = match std::mem::replace(&mut self.headed, true) {
            true => String::new(),
            false => format!("While executing '{}':\n", cx.declaration()),
        };
        shown.push_str(&indented(text, "  "));
        cx.message(&shown);
    }

    /// Reports a variable that is not defined, once.
    pub(super) fn report_undefined(&mut self, name: &str, cx: &mut Cx<'_>) {
        if cx.names().reports_undefined() && self.reported.insert(name.to_string()) {
            cx.message(&format!("{}: warning: variable '${name}' is not defined", cx.declaration()));
        }
    }

    /// Prints the error of a call, after a line `While calling` with the text of the call. For functions, `call` is
    /// `None`, and this line is left out.
    pub(super) fn complain(&mut self, call: Option<&str>, e: &CallError, cx: &mut Cx<'_>) {
        // The error counts as a failure of the router only if the router itself started the script. An error in a run
        // that a caller, a packet or a signal started does not count.
        let alone =
            matches!(self.kind, ScriptType::Active | ScriptType::Driver) && self.frame.arguments.is_none();
        if self.offline && self.foreign {
            return;
        }
        if alone {
            cx.call_failed();
        }
        match (e, call) {
            (CallError::Missing(missing), call) => {
                let suggestion = call.map_or_else(String::new, |call| self.suggestion(call, cx));
                self.report(&format!("{missing}{suggestion}"), cx);
            }
            (e, None) => self.report(e.to_string().trim_end(), cx),
            (e, Some(call)) => {
                let inner = indented(e.to_string().trim_end(), "  ");
                let calling = format!("While calling '{call}':");
                // The message quotes the configuration, so each line of the message begins with a file and a line
                // number, as the lines of the error do.
                let calling = match first_word(call).0 {
                    "hotconfig" => format!("{PLACE}{}", calling.replace('\n', &format!("\n{PLACE}"))),
                    _ => calling,
                };
                self.report(&format!("{calling}\n{inner}"), cx);
            }
        }
    }

    /// Returns the end of a message about a call of an element or handler that does not exist: a suggestion, or nothing
    /// if no name is similar.
    fn suggestion(&self, call: &str, cx: &mut Cx<'_>) -> String {
        let (name, _) = first_word(call);
        let Some((element, handler)) = name.rsplit_once('.') else { return String::new() };
        let meant = match self.callee(element, handler, cx) {
            Ok(Callee::Other(e)) => {
                // Each line that the handler `handlers` returns begins with the name of a handler.
                let list = cx.read_handler(Some(e), "handlers", "").unwrap_or_default();
                let names = list.lines().filter_map(|line| line.split_whitespace().next());
                castanet_lang::nearest(handler, names).map(|near| format!("{element}.{near}"))
            }
            Err(_) => cx.names().nearest_element(element).map(|near| format!("{near}.{handler}")),
            Ok(_) => None,
        };
        meant.map_or_else(String::new, |m| format!("; did you mean '{m}'?"))
    }
}
