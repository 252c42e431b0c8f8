// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interpreter of scripts: its state, its run loop, and its entry points.

mod execute;

use super::instruction::{Ending, Op, Target};
use super::number::value;
use super::output::Output;
use super::program::Program;
use super::script_type::{ScriptType, stops_driver};
use castanet_element::prelude::*;
use castanet_lang::args as text;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The maximum number of jumps between two blocking instructions.
const JUMPS: u32 = 1000;
/// The maximum depth of nested runs of a script.
const DEEPEST: u32 = 32;
/// The maximum number of steps that are saved for blocking instructions still to come.
const CREDIT: u32 = 1_000_000;
/// The timer that starts a script and that ends `wait`.
const TIMER: u16 = 0;

/// The state of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has not run yet.
    Fresh,
    /// It is running.
    Running,
    /// The script waits for this many steps.
    Paused(u32),
    /// It waits until the timer expires or a step is granted.
    Waiting,
    /// It has ended.
    Finished,
    /// It was ended because it jumped too often without waiting.
    GivenUp,
}

/// How a run has stopped: it has ended, or it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The run has not ended: it waits.
    Blocked,
    Ended(Ending),
    Returned(String),
    Failed(String),
    GivenUp,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    /// The index of the next instruction.
    pub next: usize,
    /// `$0`: the handler that was called.
    pub name: Option<String>,
    /// `$write`: whether the handler was called as a write handler.
    pub write: Option<bool>,
    /// `$input`: the port of the packet.
    pub input: Option<usize>,
    /// `$args`: the arguments of the handler call.
    pub arguments: Option<String>,
}

/// A script.
pub struct Machine {
    pub(super) program: Arc<Program>,
    pub(super) kind: ScriptType,
    pub(super) variables: HashMap<String, String>,
    pub(super) frame: Frame,
    /// Names of undefined variables for which a warning was printed.
    pub(super) reported: HashSet<String>,
    /// `$?`: the status of the last write call.
    pub(super) status: i32,
    pub(super) random: Random,
    pub(super) output: Output,
    state: State,
    /// Steps that the script was granted and has not used yet. The handler `step` and requests to stop grant steps. An
    /// instruction that waits for a step uses one.
    credit: u32,
    jumps: u32,
    /// How many runs are nested in the outermost run: 0 if the script does not call itself.
    depth: u32,
    /// A jump that was requested by a call of the script's own handler `goto`.
    jump: Option<Target>,
    /// Whether the next signal starts the script: true before the first run, and after a run that ended by `end` or
    /// `return`.
    armed: bool,
    /// True while `drive` answers a request to stop.
    driving: bool,
    /// Whether the script has replaced the configuration since it last ended. If so, the end of a driver script does
    /// not stop the new router.
    pub(super) replaced: bool,
    /// Whether this is the first run of a DRIVER script.
    pub(super) starting: bool,
    /// Whether the current run has printed the line `While executing`, under which its messages stand.
    pub(super) headed: bool,
    /// The index of the first instruction whose initial value (`init`, `export`) is not computed yet.
    uninitialised: usize,
    /// True while the router is being initialised. Other elements cannot be called yet; `foreign` records whether the
    /// script tried to call one.
    pub(super) offline: bool,
    pub(super) foreign: bool,
}

/// How a run continues after an instruction.
enum Flow {
    Next,
    Jump(Target),
    Done(Outcome),
}

impl Machine {
    /// Makes a script that has not run.
    pub fn new(program: Program, kind: ScriptType, random: Random) -> Machine {
        let starting = kind == ScriptType::Driver;
        Machine {
            program: Arc::new(program),
            kind,
            variables: HashMap::new(),
            frame: Frame::default(),
            reported: HashSet::new(),
            status: 0,
            random,
            output: Output::default(),
            state: State::Fresh,
            credit: 0,
            jumps: 0,
            depth: 0,
            jump: None,
            armed: true,
            driving: false,
            replaced: false,
            starting,
            headed: false,
            uninitialised: 0,
            offline: false,
            foreign: false,
        }
    }

    /// Prints to `output` instead of standard output.
    #[cfg(test)]
    pub fn print_to(&mut self, output: Output) {
        self.output = output;
    }

    /// Computes the initial values of variables. Arranges that a script of type ACTIVE or DRIVER starts.
    pub fn initialise(&mut self, cx: &mut InitCx<'_>) {
        self.offline = true;
        cx.with_cx(|cx| self.enter(cx));
        self.offline = false;
        match self.kind {
            // A driver script starts at the first request to stop. The script itself makes this request here. Requests
            // are answered before tasks run, so the script starts before any task. Requests from other elements come
            // later, and count as steps.
            ScriptType::Driver => cx.stop(1),
            ScriptType::Active => {
                let now = cx.now();
                cx.set_timer(TIMER, now);
            }
            _ => {}
        }
    }

    /// Computes the initial values of variables in order. Stops at the first value that needs an element that cannot be
    /// called yet.
    fn initial_values(&mut self, cx: &mut Cx<'_>) {
        cx.as_configuration(|cx| self.compute_initial_values(cx));
    }
    fn compute_initial_values(&mut self, cx: &mut Cx<'_>) {
        let program = self.program.clone();
        while let Some(i) = program.0.get(self.uninitialised) {
            if let Op::Init { variable, .. } = &i.op {
                self.foreign = false;
                let value = self.text_of(i, cx);
                if self.foreign && self.offline {
                    return;
                }
                self.variables.insert(variable.clone(), value.unwrap_or_default());
            }
            self.uninitialised += 1;
        }
    }

    /// Computes the initial values of variables that are still missing. Every entry point calls this function first.
    pub fn enter(&mut self, cx: &mut Cx<'_>) {
        if self.uninitialised < self.program.0.len() && self.depth == 0 {
            self.depth = 1;
            self.initial_values(cx);
            self.depth = 0;
        }
    }

    /// Runs until the script ends or waits. The instructions are part of the configuration, so they run with the
    /// rights of the configuration, even if a client with fewer rights started the script.
    fn go(&mut self, cx: &mut Cx<'_>) -> Outcome {
        cx.as_configuration(|cx| self.run_instructions(cx))
    }
    fn run_instructions(&mut self, cx: &mut Cx<'_>) -> Outcome {
        self.state = State::Running;
        let program = self.program.clone();
        loop {
            let flow = match self.jump.take() {
                Some(target) => Flow::Jump(target),
                None => match program.0.get(self.frame.next) {
                    Some(i) => {
                        self.frame.next += 1;
                        self.execute(i, cx)
                    }
                    None => Flow::Done(Outcome::Ended(Ending::End)),
                },
            };
            match flow {
                Flow::Next => {}
                Flow::Done(outcome) => return outcome,
                Flow::Jump(Target::End(end)) => return Outcome::Ended(end),
                Flow::Jump(Target::At(_)) if self.jumps >= JUMPS => return Outcome::GivenUp,
                Flow::Jump(Target::At(next)) => {
                    self.jumps += 1;
                    self.frame.next = next;
                }
            }
        }
    }

    /// Sets a variable.
    pub(super) fn set(&mut self, variable: &str, text: String) {
        if variable == "args" {
            self.frame.arguments = Some(text);
        } else {
            self.variables.insert(variable.to_string(), text);
        }
    }

    /// Continues the script. If it ends, carries out the effects of its end.
    fn proceed(&mut self, cx: &mut Cx<'_>) -> Outcome {
        self.jumps = 0;
        self.headed = false;
        let outcome = self.go(cx);
        if outcome == Outcome::Blocked {
            return outcome;
        }
        self.credit = 0;
        self.state = State::Finished;
        self.replaced &= outcome != Outcome::Ended(Ending::Stop);
        if outcome == Outcome::GivenUp {
            self.state = State::GivenUp;
            cx.message(&format!("{}: too many jumps, giving up", cx.declaration()));
        } else if self.kind == ScriptType::Driver {
            if !self.driving && !std::mem::take(&mut self.replaced) {
                cx.stop(1);
            }
        } else if outcome == Outcome::Ended(Ending::Stop) {
            cx.stop(1);
        }
        self.armed = matches!(outcome, Outcome::Ended(Ending::End) | Outcome::Returned(_));
        outcome
    }

    /// Like `proceed`, for a run whose value is not used. An error is reported as a message.
    fn proceed_alone(&mut self, cx: &mut Cx<'_>) {
        if let Outcome::Failed(e) = self.proceed(cx)
            && !e.is_empty()
        {
            self.report(&e, cx);
        }
        self.starting = false;
    }

    /// Prepares a new run from the start, and abandons the run that waits, if there is one.
    fn restart(&mut self, frame: Frame, cx: &mut Cx<'_>) {
        if self.state == State::Waiting {
            cx.clear_timer(TIMER);
        }
        self.frame = frame;
        self.jump = None;
    }

    /// Runs the script for a caller, and returns its value.
    pub(super) fn run(&mut self, frame: Frame, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        let outcome = if self.state != State::Running && self.depth == 0 {
            self.restart(frame, cx);
            self.proceed(cx)
        } else if self.depth >= DEEPEST {
            return Err(format!("'{}' calls itself more than {DEEPEST} deep", cx.name()).into());
        } else if self.jumps >= JUMPS {
            return Err("too many jumps".into());
        } else {
            // A nested run counts as a jump, to bound the total number of runs. If each run called the script twice,
            // the depth limit alone would allow billions of runs.
            self.jumps += 1;
            let outer = std::mem::replace(&mut self.frame, frame);
            let (state, jump) = (self.state, self.jump.take());
            self.depth += 1;
            let outcome = self.go(cx);
            self.depth -= 1;
            self.frame = outer;
            self.state = state;
            // `stop` ends the whole script and not only the nested run.
            self.jump =
                if outcome == Outcome::Ended(Ending::Stop) { Some(Target::End(Ending::Stop)) } else { jump };
            outcome
        };
        match outcome {
            Outcome::Returned(v) => Ok(v),
            Outcome::Failed(e) => Err(e.into()),
            Outcome::Ended(Ending::Error) => Err("the script says that there is an error".into()),
            Outcome::GivenUp => Err("too many jumps".into()),
            Outcome::Blocked | Outcome::Ended(_) => Ok(String::new()),
        }
    }

    /// Jumps to a label (the handler `goto`).
    pub(super) fn go_to(&mut self, label: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let target = self.program.target(label).ok_or_else(|| format!("no such label '{label}'"))?;
        if self.state == State::Running || self.depth > 0 {
            self.jump = Some(target);
            return Ok(());
        }
        let arguments = self.frame.arguments.take();
        self.restart(Frame { arguments, ..Frame::default() }, cx);
        self.jump = Some(target);
        self.proceed_alone(cx);
        Ok(())
    }

    /// Lets the script continue past `n` blocking instructions (the handler `step`).
    pub(super) fn step(&mut self, n: u32, cx: &mut Cx<'_>) {
        self.credit = self.credit.saturating_add(n).min(CREDIT);
        match self.state {
            State::Paused(left) => {
                let used = left.min(self.credit);
                self.credit -= used;
                self.state = State::Paused(left - used);
                if used == left {
                    self.proceed_alone(cx);
                }
            }
            State::Waiting if self.credit > 0 => {
                self.credit -= 1;
                cx.clear_timer(TIMER);
                self.proceed_alone(cx);
            }
            State::Finished | State::GivenUp => self.credit = 0,
            _ => {}
        }
    }

    /// Called when the script's timer has expired.
    pub fn timer(&mut self, cx: &mut Cx<'_>) {
        self.enter(cx);
        if matches!(self.state, State::Fresh | State::Waiting) {
            self.proceed_alone(cx);
        }
    }

    /// Answers a request to stop. The first request starts the driver script.
    pub fn drive(&mut self, cx: &mut Cx<'_>) -> Drive {
        self.enter(cx);
        self.driving = true;
        match self.state {
            State::Fresh => self.proceed_alone(cx),
            State::GivenUp => self.state = State::Finished,
            _ => self.step(1, cx),
        }
        self.driving = false;
        match self.state {
            State::Finished if !std::mem::take(&mut self.replaced) => Drive::Stop,
            _ => Drive::Continue,
        }
    }

    /// Called when a signal has arrived. If the script is armed, the signal starts it. If not, SIGINT and SIGTERM
    /// request a stop of the router. Other signals are ignored until the script has ended. After its end (by `exit`,
    /// `stop` or an error) they have their default effect, which for most signals ends the process.
    pub fn signal(&mut self, signal: i32, cx: &mut Cx<'_>) {
        self.enter(cx);
        if self.armed {
            self.armed = false;
            self.restart(Frame::default(), cx);
            self.proceed_alone(cx);
        } else if stops_driver(signal) {
            cx.stop(1);
        } else if self.state == State::Finished {
            // This call fails only for signals that cannot be caught, and those never arrive here.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }

    /// Runs the script for a packet that arrived on a port. Returns the output of the packet; `None` to drop it.
    pub fn packet(&mut self, input: usize, cx: &mut Cx<'_>) -> Option<usize> {
        self.enter(cx);
        self.restart(Frame { input: Some(input), ..Frame::default() }, cx);
        match self.proceed(cx) {
            Outcome::Ended(Ending::End) => Some(0),
            Outcome::Returned(v) if v.is_empty() => Some(0),
            Outcome::Returned(v) => value(&text::unquote(&v)),
            Outcome::Failed(e) if !e.is_empty() => {
                self.report(&e, cx);
                None
            }
            _ => None,
        }
    }
}
