// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the classes of scripts have in common: arguments, handlers, the way from the element to its script.

use super::instruction::{Line, Program};
use super::kind::Kind;
use super::machine::Machine;
use castanet_element::prelude::*;
use castanet_element::{BuildCx, ConfigError};
use castanet_lang::args as text;

/// Functions that need nothing but their arguments.
pub const FUNCTIONS: &[&str] = &[
    "add", "sub", "mul", "div", "idiv", "mod", "rem", "neg", "abs", "min", "max", "eq", "ne", "lt", "le",
    "gt", "ge", "and", "or", "nand", "nor", "not", "if", "in", "first", "length", "unquote", "sprintf",
    "htons", "htonl", "ntohs", "ntohl",
];

/// Arguments of a script.
#[derive(Args)]
pub struct Args {
    /// Instructions, run in order.
    #[arg(rest, name = "INSTRUCTION")]
    pub instructions: Vec<Line>,
    /// What starts the script: ACTIVE, PASSIVE, PACKET (or PUSH), PROXY, DRIVER, or SIGNAL and signals.
    #[arg(keyword, name = "TYPE")]
    pub kind: Option<Kind>,
}

/// Reads the instructions of an element, and says what is wrong with them or with its ports.
pub fn machine(args: &Args, class_kind: Option<Kind>, cx: &mut BuildCx<'_>) -> Result<Machine, ConfigError> {
    let ports = cx.inputs > 0 || cx.outputs > 0;
    let usual = class_kind.unwrap_or(if ports { Kind::Packet } else { Kind::Active });
    let kind = args.kind.clone().unwrap_or(usual);
    let packet = kind == Kind::Packet;
    if packet && cx.inputs == 0 {
        return Err("a script of type PACKET needs an input".into());
    }
    if !packet && ports {
        return Err("only scripts of type PACKET have ports".into());
    }
    // The rest of the arguments comes without places: these are found again as the parser found them.
    let mut places = text::split(cx.config);
    places
        .retain(|r| cx.config.get(r.clone()).and_then(text::keyword).is_none_or(|(word, _)| word != "TYPE"));
    let lines: Vec<_> = places.into_iter().zip(args.instructions.iter().map(|l| l.0.as_str())).collect();
    let mut program = Program::parse(&lines).map_err(ConfigError)?;
    match &kind {
        Kind::Driver => {
            if !cx.claim_driver() {
                return Err("router has more than one driver script".into());
            }
            program.wait_if_empty();
        }
        Kind::Signal(all) => cx.signals.extend(all.iter().map(|&s| (cx.me, s))),
        _ => {}
    }
    Ok(Machine::new(program, kind, cx.random()))
}

/// Declares a class of scripts: documentation, struct, name, and the type that it has when the configuration says none.
macro_rules! script_class {
    ($(#[$doc:meta])* $name:ident, $class:literal, $kind:expr) => {
        $(#[$doc])*
        #[derive(Class)]
        #[class(name = $class, ports = "-/-", processing = "ah/ah", packets = "any/same", workers = exclusive)]
        #[class(effects(prints, files, calls, stops), drops(Script), build, lifecycle, capabilities(EmptyNotifier))]
        #[handler(name = "step", flags = "w", doc = "Passes so many blocking instructions (1).")]
        #[handler(name = "goto", flags = "w", doc = "Goes to a label, if no condition follows or it is true, and runs.")]
        #[handler(name = "run", flags = "rw+", doc = "Runs the script with these arguments; the value is what it returns.")]
        #[handler(name = "set", flags = "w", doc = "Sets a variable: its name and a text.")]
        #[handler(name = "get", flags = "r+", doc = "The value of a variable.")]
        #[handler(name = "shift", flags = "r+", doc = "Takes the first word off a variable (args) and returns it.")]
        #[handler(name = "add", flags = "r+", doc = "The sum of numbers.")]
        #[handler(name = "sub", flags = "r+", doc = "The first number less the others.")]
        #[handler(name = "min", flags = "r+", doc = "The least of numbers.")]
        #[handler(name = "max", flags = "r+", doc = "The greatest of numbers.")]
        #[handler(name = "mul", flags = "r+", doc = "The product of numbers.")]
        #[handler(name = "div", flags = "r+", doc = "The first number divided by the others, as a real number.")]
        #[handler(name = "idiv", flags = "r+", doc = "The whole part of the quotient of two integers.")]
        #[handler(name = "mod", flags = "r+", doc = "The remainder of two integers; it has the sign of the first.")]
        #[handler(name = "rem", flags = "r+", doc = "The remainder of two numbers; it has the sign of the first.")]
        #[handler(name = "neg", flags = "r+", doc = "The number with the other sign.")]
        #[handler(name = "abs", flags = "r+", doc = "The number without its sign.")]
        #[handler(name = "eq", flags = "r+", doc = "Whether two values are equal, as numbers if they are numbers.")]
        #[handler(name = "ne", flags = "r+", doc = "Whether two values differ.")]
        #[handler(name = "gt", flags = "r+", doc = "Whether the first value is greater than the second.")]
        #[handler(name = "ge", flags = "r+", doc = "Whether the first value is greater than the second or equal.")]
        #[handler(name = "lt", flags = "r+", doc = "Whether the first value is less than the second.")]
        #[handler(name = "le", flags = "r+", doc = "Whether the first value is less than the second or equal.")]
        #[handler(name = "not", flags = "r+", doc = "The other truth value.")]
        #[handler(name = "sprintf", flags = "r+", doc = "Words formatted after a format.")]
        #[handler(name = "first", flags = "r+", doc = "The first word.")]
        #[handler(name = "random", flags = "r+", doc = "A random integer: below N, or from LOW to HIGH.")]
        #[handler(name = "and", flags = "r+", doc = "Whether all are true.")]
        #[handler(name = "or", flags = "r+", doc = "Whether one is true.")]
        #[handler(name = "nand", flags = "r+", doc = "Whether one is false.")]
        #[handler(name = "nor", flags = "r+", doc = "Whether all are false.")]
        #[handler(name = "if", flags = "r+", doc = "The second word if the first is true, else the third.")]
        #[handler(name = "in", flags = "r+", doc = "Whether the first word is among the others.")]
        #[handler(name = "now", flags = "r", doc = "The time in seconds since 1970.")]
        #[handler(name = "readable", flags = "r+", doc = "Whether all these handlers can be read.")]
        #[handler(name = "writable", flags = "r+", doc = "Whether all these handlers can be written.")]
        #[handler(name = "length", flags = "r+", doc = "The length of the text in bytes.")]
        #[handler(name = "unquote", flags = "r+", doc = "The text without quotes, its escapes expanded.")]
        #[handler(name = "htons", flags = "r+", doc = "A 16-bit number in network byte order.")]
        #[handler(name = "htonl", flags = "r+", doc = "A 32-bit number in network byte order.")]
        #[handler(name = "ntohs", flags = "r+", doc = "A 16-bit number from network byte order.")]
        #[handler(name = "ntohl", flags = "r+", doc = "A 32-bit number from network byte order.")]
        #[handler(name = "cat", flags = "r+p", doc = "The text of a file; private.")]
        #[handler(name = "catq", flags = "r+p", doc = "The text of a file, quoted; private.")]
        #[handler(name = "kill", flags = "r+p", doc = "Sends a signal to processes; private.")]
        pub struct $name {
            args: Args,
            machine: Machine,
            /// What is pulled comes from input 0 alone: packets that are pushed to other inputs are none of its puller's business.
            upstream: Option<Signal>,
            note: OwnNote,
        }

        impl Build for $name {
            fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
                let machine = machine(&args, $kind, cx)?;
                let pulls = cx.inputs > 0 && !cx.is_push_input(0);
                let upstream = pulls.then(Signal::default);
                Ok(Self { args, machine, upstream, note: OwnNote::default() })
            }
        }

        impl Lifecycle for $name {
            fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), String> {
                self.machine.initialise(cx);
                if let Some(upstream) = &mut self.upstream {
                    *upstream = cx.upstream(0);
                    self.note.initialise(true, cx);
                }
                Ok(())
            }
            fn read(&mut self, handler: &str, parameters: &str, cx: &mut Cx<'_>) -> Result<String, String> {
                self.machine.enter(cx);
                self.machine.own_read(handler, parameters, cx).map_err(|e| e.to_string())
            }
            fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
                self.machine.enter(cx);
                self.machine.own_write(handler, value, cx).map_err(|e| e.to_string())
            }
            fn own_handlers(&self) -> Vec<(String, &'static str)> {
                self.machine.handlers()
            }
        }

        impl Element for $name {
            fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
                for p in batch.drain() {
                    match self.machine.packet(port, cx) {
                        Some(out) => cx.emit_or(out, p, Reason::Script),
                        None => cx.drop(p, Reason::Script),
                    }
                }
            }
            fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
                let mut one = Batch::empty();
                for _ in 0..max {
                    cx.pull(0, 1, &mut one);
                    let Some(p) = one.pop() else {
                        let on = |cx: &Cx<'_>| self.upstream.as_ref().is_some_and(|s| cx.is_on(s));
                        self.note.found_empty(on, cx);
                        break;
                    };
                    match self.machine.packet(0, cx) {
                        Some(0) => into.push(p),
                        Some(out) => cx.emit_or(out, p, Reason::Script),
                        None => cx.drop(p, Reason::Script),
                    }
                }
            }
            // A notifier upstream that goes on gives a turn to all who asked for it, whether their class has a task or not.
            fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
                let on = self.upstream.as_ref().is_some_and(|s| cx.is_on(s));
                self.note.look(on, cx);
                Turn::Sleep
            }
            fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
                self.machine.timer(cx);
            }
            fn signal(&mut self, signal: i32, cx: &mut Cx<'_>) {
                self.machine.signal(signal, cx);
            }
            fn drive(&mut self, cx: &mut Cx<'_>) -> Drive {
                self.machine.drive(cx)
            }
        }
    };
}
pub(crate) use script_class;
