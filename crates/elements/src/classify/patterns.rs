// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common code of all classifiers: patterns, errors and warnings about patterns, and the classification of batches.

use castanet_classify::{OffsetBase, Output, PatternError, Program, Shape, Warning, names};
use castanet_element::prelude::*;
use castanet_lang::args as text;
use castanet_wire::ether::EtherAddr;
use std::net::Ipv4Addr;

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

/// The compiled decision tree of a classifier, and whether it reads the Ethernet header.
pub(super) struct Classify {
    pub(super) program: Program,
    /// Whether the program reads the Ethernet header in front of the IP header.
    looks_at_mac: bool,
}

impl Classify {
    pub(super) fn new(program: Program) -> Classify {
        let looks_at_mac = program.kind() == OffsetBase::Ip && program.safe_lengths()[0] > 0;
        Classify { program, looks_at_mac }
    }

    /// Returns the output of a packet, or the drop reason if the packet cannot be classified.
    #[inline(always)]
    fn output(&self, p: &Packet) -> Result<Output, Reason> {
        if self.program.kind() == OffsetBase::Data {
            return Ok(self.program.classify(p.data()));
        }
        match p.network() {
            None => Err(Reason::NoIpHeader),
            Some(network) if self.looks_at_mac => {
                Ok(self.program.classify_frame(p.mac().unwrap_or_default(), network))
            }
            Some(network) => Ok(self.program.classify_ip(network)),
        }
    }

    /// Sends one packet to its output.
    #[inline]
    pub(super) fn push_one(&self, p: Packet, cx: &mut Cx<'_>) {
        match self.output(&p) {
            Ok(o) => cx.emit_or(port(o), p, Reason::NoMatch),
            Err(reason) => cx.drop(p, reason),
        }
    }

    /// Sends each packet to its output. Packets for the same output leave as one batch.
    #[inline]
    pub(super) fn push(&self, batch: &mut Batch, cx: &mut Cx<'_>) {
        if let (OffsetBase::Data, Shape::Always(o)) = (self.program.kind(), self.program.shape()) {
            return send_all(batch, o, cx);
        }
        // Most batches go to one output as a whole, so look for the first packet with another output. The packets
        // before it are not classified again.
        let Some(first) = batch.as_slice().first().map(|p| self.output(p)) else { return };
        let other = match first {
            Ok(o) => batch.iter().position(|p| self.output(p) != Ok(o)),
            Err(_) => Some(0),
        };
        match (first, other) {
            (Ok(o), None) => send_all(batch, o, cx),
            (_, other) => self.push_each(batch, first, other.unwrap_or(0), cx),
        }
    }

    /// Sends each packet to its output. The first `alike` packets have the same result as the first packet.
    #[inline(never)]
    fn push_each(&self, batch: &mut Batch, first: Result<Output, Reason>, alike: usize, cx: &mut Cx<'_>) {
        for (i, p) in batch.drain().enumerate() {
            match if i < alike { first } else { self.output(&p) } {
                Ok(o) => cx.emit_beside(port(o), p, Reason::NoMatch),
                Err(reason) => cx.drop(p, reason),
            }
        }
    }
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
