// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common code of all classifiers: patterns, errors and warnings about patterns, and the classification of batches.

use castanet_classify::{OffsetBase, Output, PatternError, Program, Shape, Warning, names};
use castanet_element::prelude::*;
use castanet_lang::args as text;
use castanet_native::{Code, Compiler, Job};
use castanet_wire::ether::EtherAddr;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The text of one pattern or rule, as it is written.
#[derive(Clone, Debug)]
pub struct PatternText(pub(super) String);

impl ArgValue for PatternText {
    const TYPE: &'static str = "pattern";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<PatternText, ValueError> {
        Ok(PatternText(text.to_string()))
    }
}

/// Looks up names of a configuration, such as those of addresses, for the languages of classifiers and filters.
pub(crate) struct ConfigNames<'a> {
    cx: ArgCx<'a>,
    services: Services,
}

/// The use of the machine's services database for names of ports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Services {
    /// It takes precedence over the port names of the language.
    First,
    /// The port names of the language take precedence.
    Last,
    /// It is not used.
    Never,
}

impl<'a> ConfigNames<'a> {
    /// The names for a classifier. Port names of its language take precedence over the services database.
    pub(super) fn new(cx: ArgCx<'a>) -> ConfigNames<'a> {
        ConfigNames { cx, services: Services::Last }
    }
    /// The names for a classifier, without those that depend on the machine.
    pub(super) fn portable(cx: ArgCx<'a>) -> ConfigNames<'a> {
        ConfigNames { cx, services: Services::Never }
    }
    /// The names for an expression of tcpdump. The services database takes precedence over port names of the language.
    pub(crate) fn for_tcpdump(cx: ArgCx<'a>) -> ConfigNames<'a> {
        ConfigNames { cx, services: Services::First }
    }
}

impl names::Names for ConfigNames<'_> {
    fn ip(&self, name: &str) -> Option<[u8; 4]> {
        Ipv4Addr::parse(name, &self.cx).ok().map(|a| a.octets())
    }
    fn net(&self, name: &str) -> Option<([u8; 4], [u8; 4])> {
        let p = Prefix::read(name, &self.cx, false).ok()?;
        Some((p.network().octets(), p.mask().octets()))
    }
    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        EtherAddr::parse(name, &self.cx).ok().map(|a| a.0)
    }
    fn port(&self, name: &str, proto: Option<u8>) -> Option<u16> {
        let find = |p| match self.services {
            Services::First => self.cx.names.port(self.cx.scope, name, p),
            Services::Last | Services::Never => self.cx.names.defined_port(self.cx.scope, name, p),
        };
        proto.map_or_else(|| find(6).or_else(|| find(17)), find)
    }
    fn service(&self, name: &str, proto: Option<u8>) -> Option<u16> {
        let find = |p| self.cx.names.port("", name, p).filter(|_| self.services != Services::Never);
        proto.map_or_else(|| find(6).or_else(|| find(17)), find)
    }
}

/// The result of compiling patterns: the program (a decision tree) and warnings, or all errors.
pub(super) type Compiled = Result<(Program, Vec<Warning>), Vec<PatternError>>;

/// The place where a pattern is written: an argument, or a line of a file.
pub(super) struct Written {
    /// The index of the argument that contains the pattern or names its file.
    pub(super) argument: usize,
    /// `FILE:LINE` if the argument names a file. Messages about the pattern begin with this text.
    pub(super) line: Option<String>,
}

/// Returns the program of a classifier whose arguments are one pattern each, and reports the warnings. Warnings and
/// errors get their positions in the configuration string.
pub(super) fn of_config(compiled: Compiled, cx: &mut BuildCx<'_>) -> Result<Program, ConfigError> {
    of_places(compiled, cx, |argument| Written { argument, line: None })
}

/// Like [`of_config`], but `written` says for each pattern which argument or file it comes from.
pub(super) fn of_places(
    compiled: Compiled,
    cx: &mut BuildCx<'_>,
    written: impl Fn(usize) -> Written,
) -> Result<Program, ConfigError> {
    let arguments = text::split(cx.config);
    let place = |pattern: usize, range: &std::ops::Range<usize>| {
        let Written { argument, line } = written(pattern);
        match (arguments.get(argument), line) {
            (Some(a), Some(_)) => a.clone(),
            (Some(a), None) => {
                let at = |n: usize| a.start.saturating_add(n).min(a.end);
                at(range.start)..at(range.end)
            }
            (None, _) => 0..usize::MAX,
        }
    };
    let about = |pattern: usize, message: &str, numbered: String| match written(pattern).line {
        Some(line) => format!("{line}: {message}"),
        None => numbered,
    };
    match compiled {
        Ok((program, warnings)) => {
            for w in warnings {
                let message = about(w.pattern, &w.message, w.message.clone());
                cx.warn(ArgError::warning(message, place(w.pattern, &w.range)));
            }
            Ok(program)
        }
        Err(errors) => Err(ConfigError(
            errors
                .into_iter()
                .map(|e| {
                    let message = about(e.pattern, &e.message, e.to_string());
                    let error = ArgError::new(message, place(e.pattern, &e.range));
                    match e.expected {
                        Some(what) => error.help(format!("expected {what}")),
                        None => error,
                    }
                })
                .collect(),
        )),
    }
}

/// Checks that a classifier has as many patterns as outputs.
pub(super) fn one_per_output(patterns: usize, outputs: usize) -> Result<(), ConfigError> {
    if patterns == outputs {
        return Ok(());
    }
    let s = if outputs == 1 { "" } else { "s" };
    let message = format!("need {outputs} argument{s}, one per output port");
    let (is, s) = if patterns == 1 { ("is", "") } else { ("are", "s") };
    let help = format!("there {is} {patterns} pattern{s}; '-' matches all packets");
    Err(ArgError::new(message, 0..usize::MAX).help(help).into())
}

/// The number of packets after which a classifier asks for machine code. Those that see few packets are not worth it.
const BUSY: u32 = 2000;

/// The compiled decision tree of a classifier, and whether it reads the Ethernet header.
pub(super) struct Classify {
    /// The decision tree, and its machine code when there is some.
    job: Arc<Job<Program>>,
    /// Whether the program reads the Ethernet header in front of the IP header.
    looks_at_mac: bool,
    /// The number of packets that were interpreted, up to [`BUSY`].
    interpreted: u32,
    /// Makes the machine code. None if all packets are interpreted.
    compiler: Option<Arc<Compiler<Program>>>,
}

impl Classify {
    pub(super) fn new(program: Program, cx: &BuildCx<'_>) -> Classify {
        Classify::with(program, cx.shared_of::<Compiler<Program>>(u32::MAX))
    }

    fn with(program: Program, compiler: Option<Arc<Compiler<Program>>>) -> Classify {
        let looks_at_mac = program.kind() == OffsetBase::Ip && program.safe_lengths()[0] > 0;
        // A program without tests is as fast as it can be.
        let job = match compiler.as_ref().filter(|_| !program.steps().is_empty()) {
            Some(compiler) => compiler.job(program),
            None => Arc::new(Job::interpreted(program)),
        };
        Classify { job, looks_at_mac, interpreted: 0, compiler }
    }

    /// The decision tree.
    pub(super) fn program(&self) -> &Program {
        self.job.program()
    }

    /// Continues with another program.
    pub(super) fn replace(&mut self, program: Program) {
        *self = Classify::with(program, self.compiler.take());
    }

    /// Returns the output of a packet by the interpreter, or the drop reason if the packet cannot be classified.
    #[inline(always)]
    fn interpret(&self, p: &Packet) -> Result<Output, Reason> {
        let program = self.job.program();
        if program.kind() == OffsetBase::Data {
            return Ok(program.classify(p.data()));
        }
        match p.network() {
            None => Err(Reason::NoIpHeader),
            Some(network) if self.looks_at_mac => {
                Ok(program.classify_frame(p.mac().unwrap_or_default(), network))
            }
            Some(network) => Ok(program.classify_ip(network)),
        }
    }

    /// Returns the output of packet data by machine code, like [`Classify::interpret`].
    #[inline(always)]
    fn run_data(&self, code: &Code, p: &Packet) -> Result<Output, Reason> {
        code.run(p.data()).map_or_else(|| self.leave(p), |number| Ok(Output::from_number(number)))
    }

    /// Returns the output of an IP packet by machine code, like [`Classify::interpret`].
    #[inline(always)]
    fn run_ip(&self, code: &Code, p: &Packet) -> Result<Output, Reason> {
        let Some(network) = p.network() else { return Err(Reason::NoIpHeader) };
        code.run(network).map_or_else(|| self.leave(p), |number| Ok(Output::from_number(number)))
    }

    /// Returns the output of a packet that is too short for machine code.
    #[cold]
    fn leave(&self, p: &Packet) -> Result<Output, Reason> {
        self.interpret(p)
    }

    /// Counts packets that were interpreted, and asks for machine code when there are many.
    #[inline(always)]
    fn count(&mut self, packets: usize) {
        if self.interpreted < BUSY {
            self.interpreted = self.interpreted.saturating_add(packets as u32);
            if self.interpreted >= BUSY {
                self.job.want();
            }
        }
    }

    /// Sends one packet to its output.
    #[inline]
    pub(super) fn push_one(&mut self, p: Packet, cx: &mut Cx<'_>) {
        let output = match (self.job.code(), self.job.program().kind()) {
            (None, _) => {
                self.count(1);
                self.interpret(&p)
            }
            (Some(code), OffsetBase::Data) => self.run_data(code, &p),
            (Some(code), OffsetBase::Ip) => self.run_ip(code, &p),
        };
        match output {
            Ok(o) => cx.emit_or(port(o), p, Reason::NoMatch),
            Err(reason) => cx.drop(p, reason),
        }
    }

    /// Sends each packet to its output. Packets for the same output leave as one batch.
    #[inline]
    pub(super) fn push(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        if let (OffsetBase::Data, Shape::Always(o)) = (self.program().kind(), self.program().shape()) {
            return send_all(batch, o, cx);
        }
        match (self.job.code(), self.program().kind()) {
            (None, _) => {
                self.count(batch.len());
                push_by(batch, cx, |p| self.interpret(p));
            }
            (Some(code), OffsetBase::Data) => push_by(batch, cx, |p| self.run_data(code, p)),
            (Some(code), OffsetBase::Ip) => push_by(batch, cx, |p| self.run_ip(code, p)),
        }
    }
}

/// Sends each packet to the output that `classify` returns.
#[inline(always)]
fn push_by(batch: &mut Batch, cx: &mut Cx<'_>, classify: impl Fn(&Packet) -> Result<Output, Reason>) {
    // Most batches go to one output as a whole, so look for the first packet with another output. The packets
    // before it are not classified again.
    let Some(first) = batch.as_slice().first().map(&classify) else { return };
    let other = match first {
        Ok(o) => batch.iter().position(|p| classify(p) != Ok(o)),
        Err(_) => Some(0),
    };
    match (first, other) {
        (Ok(o), None) => send_all(batch, o, cx),
        (_, other) => push_each(batch, first, other.unwrap_or(0), cx, classify),
    }
}

/// Sends each packet to its output. The first `alike` packets have the same result as the first packet.
#[inline(never)]
fn push_each(
    batch: &mut Batch,
    first: Result<Output, Reason>,
    alike: usize,
    cx: &mut Cx<'_>,
    classify: impl Fn(&Packet) -> Result<Output, Reason>,
) {
    let mut number = 0;
    cx.emit_each(batch, Reason::NoMatch, |p| {
        number += 1;
        if number <= alike { first } else { classify(p) }.map(port)
    });
}

/// Returns the port number of an output. For a packet that matches nothing, the number is larger than that of any port.
#[inline(always)]
fn port(output: Output) -> usize {
    output.number() as usize
}

fn send_all(batch: &mut Batch, output: Output, cx: &mut Cx<'_>) {
    match output.port() {
        Some(port) if cx.has_output(port) => cx.forward(port, batch),
        _ => cx.drop_all(batch, Reason::NoMatch),
    }
}
