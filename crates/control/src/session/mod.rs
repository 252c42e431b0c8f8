// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol for one client, without sockets: it takes bytes, calls handlers, and returns bytes.

mod command;
mod input;
mod llrpc;
mod until;

use crate::access::{Access, Refusal, shown};
use crate::{Limits, Token, code};
use castanet_element::spec::{Origin, bytes};
use command::{Call, Parsed, Verb};
use input::{Input, Line};
use std::collections::VecDeque;
use std::sync::Arc;
use until::Until;

/// The first line that a client receives.
pub const GREETING: &str = "Click::ControlSocket/1.3\r\n";

/// The rules for clients of a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whether clients may only read.
    pub readonly: bool,
    /// The element that all calls go to (ControlSocket's argument PROXY).
    pub proxy: Option<String>,
    /// The token that lets a client reconfigure the router.
    pub token: Option<Arc<Token>>,
}

/// The number of unknown commands and wrong tokens after which a session ends.
const STRIKES: u32 = 3;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More input is needed.
    Hungry,
    /// The session executed a command, or waits because its output is full and replies must be sent first. There may be
    /// further commands.
    Done,
    /// The session ends when its output has been sent.
    Over,
}

/// The meaning of the next bytes.
enum State {
    /// A command line.
    Command,
    /// The rest of a line that was too long.
    LongLine,
    /// The data of a command; `left` bytes are missing.
    Data { call: Call, left: u64, data: Vec<u8> },
    /// The data to skip, of which `left` bytes have not arrived yet. `call` is answered after the data. If `call` is
    /// `None`, the reply has been sent already.
    Skip { call: Option<Call>, left: u64 },
    /// Lines up to a terminator.
    Until { call: Call, lines: Until },
}

/// The session of one client.
pub struct Session {
    limits: Limits,
    input: Input,
    state: State,
    out: VecDeque<u8>,
    over: bool,
    /// The rights of the client; a token can raise them.
    from: Origin,
    /// The number of unknown commands and wrong tokens.
    strikes: u32,
}

impl Session {
    /// A new session, with the greeting as output. The client has the rights of `from` until it sends the right token.
    pub fn new(limits: Limits, from: Origin) -> Session {
        let out = GREETING.bytes().collect();
        let (input, state) = (Input::default(), State::Command);
        Session { limits, input, state, out, over: false, from, strikes: 0 }
    }

    /// Appends bytes from the client.
    pub fn feed(&mut self, bytes: &[u8]) {
        if !self.over {
            self.input.feed(bytes);
        }
    }

    /// Whether to read more input. Returns false while too many replies wait to be sent, or too many commands wait
    /// to be executed.
    pub fn wants_input(&self) -> bool {
        !self.over && self.out.len() < self.limits.backlog && self.input.len() <= self.limits.line
    }

    /// The output to send.
    pub fn output(&self) -> &[u8] {
        self.out.as_slices().0
    }
    /// Removes output that has been sent.
    pub fn sent(&mut self, n: usize) {
        self.out.drain(..n.min(self.out.len()));
        // Free the memory of a long reply.
        if self.out.is_empty() && self.out.capacity() > self.limits.backlog {
            self.out = VecDeque::new();
        }
    }
    /// Whether a command has been received only in part.
    pub fn is_amid(&self) -> bool {
        !self.over && (!matches!(self.state, State::Command) || !self.input.is_empty())
    }
    /// The number of buffered bytes.
    pub fn held(&self) -> usize {
        let data = match &self.state {
            State::Data { data, .. } => data.capacity(),
            State::Until { lines, .. } => lines.held(),
            _ => 0,
        };
        self.input.capacity().saturating_add(self.out.capacity()).saturating_add(data)
    }

    /// Executes at most one command. Does nothing while too many replies are queued.
    pub fn step(&mut self, rules: &Rules, access: &mut Access) -> Step {
        if self.over {
            return Step::Over;
        }
        if self.out.len() >= self.limits.backlog {
            return Step::Done;
        }
        let step = match std::mem::replace(&mut self.state, State::Command) {
            State::Command => self.command(rules, access),
            State::LongLine => match self.input.skip_line() {
                true => Step::Done,
                false => {
                    self.state = State::LongLine;
                    Step::Hungry
                }
            },
            State::Skip { call, left } => {
                let left = left - self.input.skip(left);
                if left > 0 {
                    self.state = State::Skip { call, left };
                    Step::Hungry
                } else {
                    if let Some(call) = call {
                        self.execute(&call, Some(&[]), rules, access);
                    }
                    Step::Done
                }
            }
            State::Data { call, left, mut data } => {
                let left = left - self.input.take(left, &mut data);
                if left > 0 {
                    self.state = State::Data { call, left, data };
                    Step::Hungry
                } else {
                    self.execute(&call, Some(&data), rules, access);
                    Step::Done
                }
            }
            State::Until { call, mut lines } => {
                if lines.feed(&mut self.input, &self.limits) {
                    match lines.data() {
                        Some(data) => self.execute(&call, Some(data), rules, access),
                        None => self.refuse(&too_big()),
                    }
                    Step::Done
                } else {
                    self.state = State::Until { call, lines };
                    Step::Hungry
                }
            }
        };
        self.input.tidy();
        if self.over { Step::Over } else { step }
    }

    /// Handles a command line.
    fn command(&mut self, rules: &Rules, access: &mut Access) -> Step {
        let line = match self.input.line(self.limits.line) {
            Line::Whole(line) => line,
            Line::Partial => return Step::Hungry,
            Line::TooLong => {
                self.state = State::LongLine;
                self.reply(code::SYNTAX, "Line too long");
                return Step::Done;
            }
        };
        match Parsed::of(&line) {
            Parsed::Nothing => {}
            Parsed::Wrong(r) => self.refuse(&r),
            Parsed::Unknown(r) => {
                self.refuse(&r);
                self.strike();
            }
            Parsed::Foreign(r) => {
                self.refuse(&r);
                self.over = true;
            }
            Parsed::Token(given) => self.authorise(&given, rules),
            Parsed::Quit => {
                self.reply(code::OK, "Goodbye!");
                self.over = true;
            }
            Parsed::Help => self.reply(code::OK, command::HELP),
            Parsed::Call(call) => self.execute(&call, None, rules, access),
            Parsed::Data(call, left) => self.data(call, left, rules, access),
            Parsed::Until(call, terminator) => {
                self.state = State::Until { call, lines: Until::new(&terminator) };
            }
        }
        Step::Done
    }

    /// Starts to receive the data of a command, or to skip it.
    fn data(&mut self, call: Call, left: u64, rules: &Rules, access: &mut Access) {
        if left > self.limits.data as u64 {
            self.refuse(&too_big());
            self.state = State::Skip { call: None, left };
            return;
        }
        // If the command will be refused, its data is skipped and not stored. The refusal is sent when all data has
        // arrived.
        let vain = match call.verb {
            _ if !self.from.may_call() => true,
            Verb::Llrpc => llrpc::is_refused(&call, rules, access),
            Verb::Write => {
                access.writable(&call.name, rules.proxy.as_deref(), rules.readonly, self.from).is_err()
            }
            _ => access.readable(&call.name, rules.proxy.as_deref()).is_err(),
        };
        self.state = match vain {
            true => State::Skip { call: Some(call), left },
            false => State::Data { call, left, data: Vec::new() },
        };
    }

    /// Executes a command. The argument of the command is the data that came after its line, if any, or else the rest
    /// of the line.
    fn execute(&mut self, call: &Call, data: Option<&[u8]>, rules: &Rules, access: &mut Access) {
        let argument = data.unwrap_or(&call.argument);
        match call.answer(argument, rules, self.from, access) {
            Ok((code, text, value)) => {
                self.reply(code, &text);
                if let Some(v) = value {
                    let v = bytes::encode(&v);
                    self.out.extend(format!("DATA {}\r\n", v.len()).as_bytes());
                    self.out.extend(v.iter());
                }
            }
            Err(r) => self.refuse(&r),
        }
    }

    /// Gives the client the rights of the token if the token is correct. If the router has no token, any token
    /// counts as correct for a client that already has these rights, and as wrong for other clients.
    fn authorise(&mut self, given: &[u8], rules: &Rules) {
        let right = match &rules.token {
            Some(token) => token.matches(given),
            None => self.from.may_reconfigure(),
        };
        if right {
            if !self.from.may_reconfigure() {
                self.from = Origin::Authorised;
            }
            self.reply(code::OK, "Authorised");
        } else {
            self.reply(code::PERMISSION, "Permission denied");
            self.strike();
        }
    }

    /// Counts an unknown command or wrong token.
    fn strike(&mut self) {
        self.strikes += 1;
        self.over |= self.strikes >= STRIKES;
    }

    fn refuse(&mut self, r: &Refusal) {
        self.reply(r.0, &r.1);
    }

    /// Appends a reply of one or more lines to the output.
    fn reply(&mut self, code: u16, text: &str) {
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let sign = if lines.peek().is_some() { '-' } else { ' ' };
            let line: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
            self.out.extend(bytes::encode(&format!("{code}{sign}{line}\r\n")).iter());
        }
        if text.is_empty() {
            self.out.extend(format!("{code} \r\n").as_bytes());
        }
    }
}

fn too_big() -> Refusal {
    Refusal(code::TOO_BIG, "Data too big".into())
}

/// The reply to an unknown command.
fn unimplemented(verb: &str) -> Refusal {
    Refusal(code::UNIMPLEMENTED, format!("Command '{}' unimplemented", shown(verb)))
}

#[cfg(test)]
pub(crate) mod tests;
