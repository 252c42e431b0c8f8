// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common part of the script classes: arguments, lifecycle, and the calls by which the element runs its script.

use super::instruction::Line;
use super::machine::Machine;
use super::program::Program;
use super::script_type::ScriptType;
use crate::sched::own_note::OwnNote;
use castanet_element::prelude::*;
use castanet_element::spec::HandlerSpec;
use castanet_element::{BuildCx, ConfigError, Handlers};
use castanet_lang::args as text;
use castanet_spec::HandlerFlags;

/// Arguments of a script.
#[derive(Args)]
pub struct Args {
    /// Instructions, run in order.
    #[arg(rest, name = "INSTRUCTION")]
    pub instructions: Vec<Line>,
    /// The event that starts the script: ACTIVE, PASSIVE, PACKET (or PUSH), PROXY, DRIVER, or SIGNAL with its signals.
    #[arg(keyword, name = "TYPE")]
    pub kind: Option<ScriptType>,
}

/// Makes the script of an element. The errors say what is wrong with its instructions or its ports.
fn machine(
    args: &Args,
    class_kind: Option<ScriptType>,
    cx: &mut BuildCx<'_>,
) -> Result<Machine, ConfigError> {
    let ports = cx.inputs > 0 || cx.outputs > 0;
    let usual = class_kind.unwrap_or(if ports { ScriptType::Packet } else { ScriptType::Active });
    let kind = args.kind.clone().unwrap_or(usual);
    let packet = kind == ScriptType::Packet;
    if packet && cx.inputs == 0 {
        return Err("a script of type PACKET needs an input".into());
    }
    if !packet && ports {
        return Err("only scripts of type PACKET have ports".into());
    }
    // Parsed instructions do not record their positions. To find the positions, split the configuration string as
    // the parser did.
    let mut places = text::split(cx.config);
    places
        .retain(|r| cx.config.get(r.clone()).and_then(text::keyword).is_none_or(|(word, _)| word != "TYPE"));
    let lines: Vec<_> = places.into_iter().zip(args.instructions.iter().map(|l| l.0.as_str())).collect();
    let mut program = Program::parse(&lines).map_err(ConfigError)?;
    match &kind {
        ScriptType::Driver => {
            if !cx.claim_driver() {
                let error = ArgError::new("router has more than one driver script", 0..usize::MAX);
                let help = "remove one; a script that need not end the router can be of TYPE ACTIVE: Script(TYPE ACTIVE, ...)";
                return Err(error.help(help).into());
            }
            program.wait_if_empty();
        }
        ScriptType::Signal(all) => cx.signals.extend(all.iter().map(|&s| (cx.me, s))),
        _ => {}
    }
    Ok(Machine::new(program, kind, cx.random()))
}

/// The engine of the script classes. If the const parameter `DRIVER` is true, the default of the argument TYPE is
/// DRIVER.
#[derive(Counts)]
pub struct Scripted<const DRIVER: bool> {
    args: Args,
    pub(in crate::control) machine: Machine,
    /// The notifiers upstream of input 0, if that is a pull input. Packets are pulled from input 0 only.
    upstream: Option<Signal>,
    note: OwnNote,
}

impl<const DRIVER: bool> Engine for Scripted<DRIVER> {
    type Args = Args;
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let machine = machine(&args, DRIVER.then_some(ScriptType::Driver), cx)?;
        let pulls = cx.inputs > 0 && !cx.is_push_input(0);
        let upstream = pulls.then(Signal::default);
        Ok(Scripted { args, machine, upstream, note: OwnNote::default() })
    }
    fn args(&mut self) -> &mut Args {
        &mut self.args
    }
}

impl<const DRIVER: bool> Lifecycle for Scripted<DRIVER> {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.machine.initialise(cx);
        if let Some(upstream) = &mut self.upstream {
            *upstream = cx.upstream(0);
            self.note.initialise(true, cx);
        }
        Ok(())
    }
    fn read_dynamic(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Result<String, HandlerError> {
        self.machine.enter(cx);
        Ok(self.machine.own_read(handler, parameters, cx)?)
    }
    fn write_dynamic(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.machine.enter(cx);
        Ok(self.machine.own_write(handler, value, cx)?)
    }
    fn dynamic_handlers(&self) -> Vec<(String, HandlerFlags)> {
        self.machine.handlers()
    }
}

impl<const DRIVER: bool> Element for Scripted<DRIVER> {
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
                self.note.found_empty(|cx| self.may_have_packets(cx), cx);
                break;
            };
            match self.machine.packet(0, cx) {
                Some(0) => into.push(p),
                Some(out) => cx.emit_or(out, p, Reason::Script),
                None => cx.drop(p, Reason::Script),
            }
        }
    }
    /// Called when a notifier upstream turns on. The class declares no task, but a notifier wakes every element that
    /// requested the notifier.
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.note.look(self.may_have_packets(cx), cx);
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

/// The handlers of the class are those of the script (`Machine`). Before each call, `enter` computes the initial
/// values of variables that are still missing.
impl<const DRIVER: bool> Handlers for Scripted<DRIVER> {
    const METHODS: &'static [HandlerSpec] = Machine::METHODS;
    fn read_method(
        &mut self,
        handler: &str,
        parameters: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<String, HandlerError>> {
        self.machine.enter(cx);
        self.machine.read_method(handler, parameters, cx)
    }
    fn write_method(
        &mut self,
        handler: &str,
        value: &str,
        cx: &mut Cx<'_>,
    ) -> Option<Result<(), HandlerError>> {
        self.machine.enter(cx);
        self.machine.write_method(handler, value, cx)
    }
}

impl<const DRIVER: bool> Scripted<DRIVER> {
    fn may_have_packets(&self, cx: &Cx<'_>) -> bool {
        self.upstream.as_ref().is_some_and(|s| cx.is_on(s))
    }
}
