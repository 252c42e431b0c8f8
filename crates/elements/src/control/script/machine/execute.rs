// SPDX-License-Identifier: MIT OR Apache-2.0
//! Executes the instructions of a script.

use super::{Flow, Machine, Outcome, State, TIMER};
use crate::control::script::call::Scope;
use crate::control::script::function::{first_word, truth};
use crate::control::script::instruction::{Ending, File, Instruction, Op};
use crate::control::script::number::value;
use crate::control::script::script_type::ScriptType;
use crate::control::script::substitute::{self, TooLong};
use castanet_element::prelude::*;
use castanet_lang::args as text;

/// Substituted text counts against the limit on jumps: this many bytes count as one jump.
const TEXT_OF_A_JUMP: usize = 1 << 15;

impl Machine {
    /// Substitutes variables and calls in a text. If the result would be too long, reports an error and returns `None`.
    pub(in crate::control::script) fn substitute(&mut self, text: &str, cx: &mut Cx<'_>) -> Option<String> {
        let expanded = substitute::expand(text, &mut Scope { machine: self, cx });
        let length = expanded.as_ref().map_or(substitute::LONGEST, String::len);
        // Long texts take time. If they did not count as jumps, a loop with long texts would block the worker for long.
        let jumps = u32::try_from(length / TEXT_OF_A_JUMP).unwrap_or(u32::MAX);
        self.jumps = self.jumps.saturating_add(jumps);
        match expanded {
            Ok(t) => Some(t),
            Err(TooLong) => {
                let limit = substitute::LONGEST;
                cx.message(&format!(
                    "{}: text longer than {limit} bytes, instruction skipped",
                    cx.declaration()
                ));
                None
            }
        }
    }
    /// Returns the text of an instruction, substituted and, if required, unquoted.
    pub(super) fn text_of(&mut self, i: &Instruction, cx: &mut Cx<'_>) -> Option<String> {
        let t = self.substitute(&i.text, cx)?;
        Some(if i.unquote { text::unquote(&t) } else { t })
    }

    /// Executes one instruction.
    pub(super) fn execute(&mut self, i: &Instruction, cx: &mut Cx<'_>) -> Flow {
        match &i.op {
            Op::Set(variable) => {
                if let Some(t) = self.text_of(i, cx) {
                    self.set(variable, t);
                }
            }
            Op::Init { .. } | Op::Label(_) => {}
            Op::Print { file, call, newline } => self.print(i, file, *call, *newline, cx),
            Op::Save(file) => {
                if let Some(t) = self.called(&i.text, cx) {
                    self.put(file, &t, cx);
                }
            }
            Op::Read => self.show(i, cx),
            Op::Write => {
                if let Some(t) = self.substitute(&i.text, cx) {
                    self.write_call(&t, i.unquote, cx);
                }
            }
            Op::Pause => return self.pause(i, cx),
            Op::Wait => return self.wait(i, cx),
            Op::Goto(label) => return self.goto(label, &i.text, cx),
            Op::Return => return Flow::Done(Outcome::Returned(self.text_of(i, cx).unwrap_or_default())),
            Op::Error => return Flow::Done(Outcome::Failed(self.text_of(i, cx).unwrap_or_default())),
            Op::End(end) => return Flow::Done(Outcome::Ended(*end)),
        }
        Flow::Next
    }

    /// Substitutes variables in the text of a call, and returns the value of the call. Reports an error as a message.
    fn called(&mut self, call: &str, cx: &mut Cx<'_>) -> Option<String> {
        let call = self.substitute(call, cx)?;
        self.read_call(&call, cx)
    }

    fn print(&mut self, i: &Instruction, file: &File, call: bool, newline: bool, cx: &mut Cx<'_>) {
        let shown = if call {
            let value = self.called(&i.text, cx);
            value.map(|v| if i.unquote { text::unquote(&v) } else { v })
        } else {
            self.substitute(&i.text, cx).map(|t| text::unquote(&t))
        };
        let Some(mut shown) = shown else { return };
        if newline && !shown.ends_with('\n') {
            shown.push('\n');
        }
        self.put(file, &shown, cx);
    }

    fn put(&mut self, file: &File, shown: &str, cx: &mut Cx<'_>) {
        let Some(name) = self.substitute(&file.name, cx) else { return };
        let done = match cx.with_args(|a| Filename::parse(&name, a)) {
            Ok(name) => self.output.put(&name.0, file.append, shown),
            Err(e) => Err(e.into()),
        };
        if let Err(e) = done {
            cx.message(&e.to_string());
        }
    }

    /// Executes `read`: shows the name and the value of a handler as a message.
    fn show(&mut self, i: &Instruction, cx: &mut Cx<'_>) {
        let Some(call) = self.substitute(&i.text, cx) else { return };
        let (name, arguments) = first_word(&call);
        let arguments = if i.unquote { text::unquote(arguments) } else { arguments.to_string() };
        if let Some(v) = self.read_named(&call, name, &arguments, cx) {
            // The name of a handler of the script itself may lack the element. The message adds the element's name.
            let own = !name.contains('.') && self.is_own(name);
            let element = if own { format!("{}.", cx.name()) } else { String::new() };
            cx.message(&format!("{element}{name}:\n{v}"));
        }
    }

    /// Whether this run can wait. A run for a packet, a run for a caller of a PROXY script, and a nested run cannot.
    fn can_wait(&self) -> bool {
        self.depth == 0 && !matches!(self.kind, ScriptType::Packet | ScriptType::Proxy)
    }

    fn pause(&mut self, i: &Instruction, cx: &mut Cx<'_>) -> Flow {
        let Some(count) = self.substitute(&i.text, cx) else { return Flow::Next };
        let count = text::unquote(&count);
        let n: u32 = match (count.is_empty(), value(&count)) {
            (true, _) => 1,
            (false, Some(n)) => n,
            (false, None) => {
                cx.message(&format!("{}: 'pause {count}': invalid number", cx.declaration()));
                return Flow::Next;
            }
        };
        let used = n.min(self.credit);
        self.credit -= used;
        if used == n {
            self.jumps = 0;
            return Flow::Next;
        }
        if !self.can_wait() {
            return Flow::Done(Outcome::Ended(Ending::Exit));
        }
        self.state = State::Paused(n - used);
        Flow::Done(Outcome::Blocked)
    }

    fn wait(&mut self, i: &Instruction, cx: &mut Cx<'_>) -> Flow {
        if i.text.is_empty() {
            return self.pause(i, cx);
        }
        let Some(time) = self.substitute(&i.text, cx) else { return Flow::Next };
        let Some(Nanos(time)) = value(&text::unquote(&time)) else {
            cx.message(&format!("{}: 'wait {time}': expected time in seconds", cx.declaration()));
            return Flow::Next;
        };
        if self.credit > 0 {
            self.credit -= 1;
            self.jumps = 0;
            return Flow::Next;
        }
        if !self.can_wait() {
            return Flow::Done(Outcome::Ended(Ending::Exit));
        }
        let now = cx.now();
        cx.set_timer(TIMER, now.saturating_add(time.max(0)));
        self.state = State::Waiting;
        Flow::Done(Outcome::Blocked)
    }

    fn goto(&mut self, label: &str, condition: &str, cx: &mut Cx<'_>) -> Flow {
        let Some(condition) = self.substitute(condition, cx) else { return Flow::Next };
        match if condition.is_empty() { Ok(true) } else { truth(&condition) } {
            Ok(true) => {}
            Ok(false) => return Flow::Next,
            Err(e) => {
                cx.message(&format!("{}: 'goto {label}': {e}", cx.declaration()));
                return Flow::Next;
            }
        }
        let Some(label) = self.substitute(label, cx) else { return Flow::Next };
        match self.program.target(&label) {
            Some(target) => Flow::Jump(target),
            None => {
                cx.message(&format!("{}: no such label '{label}'", cx.declaration()));
                Flow::Next
            }
        }
    }
}
