// SPDX-License-Identifier: MIT OR Apache-2.0
//! The conversation with one client, without input and output: bytes in, calls of handlers, bytes out.

mod command;
mod input;
mod until;

use crate::gate::{Gate, Refusal, shown};
use crate::{Limits, Token, code};
use castanet_element::spec::Origin;
use command::{Call, Parsed, Verb};
use input::{Input, Line};
use std::collections::VecDeque;
use std::sync::Arc;
use until::Until;

/// The first line that a client sees.
pub const GREETING: &str = "Click::ControlSocket/1.3\r\n";

/// What a client may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whether it may only read.
    pub readonly: bool,
    /// The element that stands for all others.
    pub proxy: Option<String>,
    /// The token that gives a client the rights of the operator.
    pub token: Option<Arc<Token>>,
}

/// So many verbs that do not exist, or wrong tokens, end a conversation.
const STRIKES: u32 = 3;

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More bytes are needed before there is something to do.
    Hungry,
    /// Something was done, or replies wait to be sent first; there may be more to do.
    Done,
    /// The conversation is over when its output is sent.
    Over,
}

/// What the next bytes are.
enum State {
    /// A command.
    Command,
    /// The rest of a line that was too long.
    LongLine,
    /// The data of a command: how much is still to come.
    Data { call: Call, left: u64, data: Vec<u8> },
    /// Data that is not taken; the command has been answered already if it is none.
    Skip { call: Option<Call>, left: u64 },
    /// Lines up to a terminator.
    Until { call: Call, lines: Until },
}

/// The conversation with one client.
pub struct Session {
    limits: Limits,
    input: Input,
    state: State,
    out: VecDeque<u8>,
    over: bool,
    /// What the client may do, as far as is known now.
    from: Origin,
    /// Verbs that did not exist, and wrong tokens.
    strikes: u32,
}

impl Session {
    /// One that has just begun: the greeting waits to be sent. The client has the rights of `from` until it shows a token.
    pub fn new(limits: Limits, from: Origin) -> Session {
        let out = GREETING.bytes().collect();
        let (input, state) = (Input::default(), State::Command);
        Session { limits, input, state, out, over: false, from, strikes: 0 }
    }

    /// Takes bytes that the client sent.
    pub fn feed(&mut self, bytes: &[u8]) {
        if !self.over {
            self.input.feed(bytes);
        }
    }

    /// Whether it takes more bytes: not while the client has replies to take first, or commands wait to be looked at.
    pub fn wants_input(&self) -> bool {
        !self.over && self.out.len() < self.limits.backlog && self.input.len() <= self.limits.line
    }

    /// What is to be sent.
    pub fn output(&self) -> &[u8] {
        self.out.as_slices().0
    }
    /// Forgets bytes of the output that were sent.
    pub fn sent(&mut self, n: usize) {
        self.out.drain(..n.min(self.out.len()));
        // What a long reply needed is given back.
        if self.out.is_empty() && self.out.capacity() > self.limits.backlog {
            self.out = VecDeque::new();
        }
    }
    /// Whether part of a command has come, and the rest has not.
    pub fn is_amid(&self) -> bool {
        !self.over && (!matches!(self.state, State::Command) || !self.input.is_empty())
    }
    /// Bytes that it holds.
    pub fn held(&self) -> usize {
        let data = match &self.state {
            State::Data { data, .. } => data.capacity(),
            State::Until { lines, .. } => lines.held(),
            _ => 0,
        };
        self.input.capacity().saturating_add(self.out.capacity()).saturating_add(data)
    }

    /// Does the next thing there is to do: answers one command at most. Nothing is done while replies wait.
    pub fn step(&mut self, rules: &Rules, gate: &mut Gate) -> Step {
        if self.over {
            return Step::Over;
        }
        if self.out.len() >= self.limits.backlog {
            return Step::Done;
        }
        let step = match std::mem::replace(&mut self.state, State::Command) {
            State::Command => self.command(rules, gate),
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
                        self.execute(&call, Some(&[]), rules, gate);
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
                    self.execute(&call, Some(&data), rules, gate);
                    Step::Done
                }
            }
            State::Until { call, mut lines } => {
                if lines.feed(&mut self.input, &self.limits) {
                    match lines.data() {
                        Some(data) => self.execute(&call, Some(data), rules, gate),
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

    /// Reads the line of a command.
    fn command(&mut self, rules: &Rules, gate: &mut Gate) -> Step {
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
            Parsed::Call(call) => self.execute(&call, None, rules, gate),
            Parsed::Data(call, left) => self.data(call, left, rules, gate),
            Parsed::Until(call, terminator) => {
                self.state = State::Until { call, lines: Until::new(&terminator) };
            }
        }
        Step::Done
    }

    /// Begins with the data of a command, as far as it is wanted.
    fn data(&mut self, call: Call, left: u64, rules: &Rules, gate: &mut Gate) {
        if left > self.limits.data as u64 {
            self.refuse(&too_big());
            self.state = State::Skip { call: None, left };
            return;
        }
        // What will be refused anyway is not kept; it is refused when its data is through, like all others.
        let vain = match call.verb {
            Verb::Llrpc => true,
            Verb::Write => {
                gate.writable(&call.name, rules.proxy.as_deref(), rules.readonly, self.from).is_err()
            }
            _ => gate.readable(&call.name, rules.proxy.as_deref()).is_err(),
        };
        self.state = match vain {
            true => State::Skip { call: Some(call), left },
            false => State::Data { call, left, data: Vec::new() },
        };
    }

    /// Answers a command. Its argument stands in its line, or came as data.
    fn execute(&mut self, call: &Call, data: Option<&[u8]>, rules: &Rules, gate: &mut Gate) {
        let argument = data.unwrap_or(&call.argument);
        match call.answer(argument, rules, self.from, gate) {
            Ok((text, value)) => {
                self.reply(code::OK, &text);
                if let Some(v) = value {
                    self.out.extend(format!("DATA {}\r\n", v.len()).as_bytes());
                    self.out.extend(v.as_bytes());
                }
            }
            Err(r) => self.refuse(&r),
        }
    }

    /// Gives the client the rights of the operator if it shows the token. Without a token there is nothing to show: a client
    /// that has these rights by its user is not kept from saying more.
    fn authorise(&mut self, given: &[u8], rules: &Rules) {
        let right = match &rules.token {
            Some(token) => token.matches(given),
            None => self.from != Origin::Anonymous,
        };
        if right {
            self.from = Origin::Authorised;
            self.reply(code::OK, "Authorised");
        } else {
            self.reply(code::PERMISSION, "Permission denied");
            self.strike();
        }
    }

    /// Counts against a client that does not speak the protocol, or guesses tokens.
    fn strike(&mut self) {
        self.strikes += 1;
        self.over |= self.strikes >= STRIKES;
    }

    fn refuse(&mut self, r: &Refusal) {
        self.reply(r.0, &r.1);
    }

    /// Puts a reply of one or several lines into the output.
    fn reply(&mut self, code: u16, text: &str) {
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let sign = if lines.peek().is_some() { '-' } else { ' ' };
            let line: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
            self.out.extend(format!("{code}{sign}{line}\r\n").as_bytes());
        }
        if text.is_empty() {
            self.out.extend(format!("{code} \r\n").as_bytes());
        }
    }
}

fn too_big() -> Refusal {
    Refusal(code::TOO_BIG, "Data too big".into())
}

/// The reply to a command that does not exist.
fn unimplemented(verb: &str) -> Refusal {
    Refusal(code::UNIMPLEMENTED, format!("Command '{}' unimplemented", shown(verb)))
}

#[cfg(test)]
pub(crate) mod tests;
