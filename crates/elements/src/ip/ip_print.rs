// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPPrint: prints a line of text for each IP packet.

use super::ip_text::{Dump, Line};
use crate::handover;
use castanet_element::error::reason;
use castanet_element::prelude::*;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Prints IP packets, one line each, and passes them on.
///
/// The line has the addresses and the fields of the transport header: ports, TCP flags and numbers, ICMP types. It is
/// printed to standard error, or to `OUTFILE`. Packets without a marked network header pass without being printed.
///
/// # Ports
/// Input 0, output 0: IP packets.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000) -> IPPrint(udp, TIMESTAMP false) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "IPPrint", offload = none, ports = "1/1", processing = "a/a", packets = "ip/ip", workers = share)]
#[class(takes_state = "the open file")]
#[class(effects(prints, files), build, lifecycle)]
pub struct IpPrint {
    args: Args,
    line: Line,
    file: Arc<OutFile>,
    /// Whether this element created the file OUTFILE at initialisation.
    made: bool,
    text: String,
}

/// Arguments of IPPrint.
#[derive(Args)]
pub struct Args {
    /// A text to put at the beginning of each line.
    #[arg(default = String::new(), show = "")]
    label: String,
    /// Whether and in which format to dump the packet: no, hex or ascii.
    #[arg(keyword, default = Contents::NO, show = "no")]
    contents: Contents,
    /// Whether and in which format to dump the data after the transport header: no, hex or ascii.
    #[arg(keyword, default = Contents::NO, show = "no")]
    payload: Contents,
    /// The maximum number of bytes to dump; a negative number means all.
    #[arg(keyword, alias = "NBYTES", default = 1500)]
    maxlength: i32,
    /// Whether to print the IP identification.
    #[arg(keyword, default = false)]
    id: bool,
    /// Whether to print the timestamp annotation.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// Whether to print the paint annotation.
    #[arg(keyword, default = false)]
    paint: bool,
    /// Whether to print the type of service.
    #[arg(keyword, default = false)]
    tos: bool,
    /// Whether to print the time to live.
    #[arg(keyword, default = false)]
    ttl: bool,
    /// Whether identifier and sequence number of ICMP echo messages are read in network byte order; false for the
    /// host's byte order.
    #[arg(keyword, default = true)]
    swap: bool,
    /// Whether to print the total length field of the IP header.
    #[arg(keyword, default = false)]
    length: bool,
    /// Whether to print the aggregate annotation.
    #[arg(keyword, default = false)]
    aggregate: bool,
    /// Whether packets are printed; false to pass them silently.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
    /// The file to print to; '-' is standard output.
    #[arg(keyword)]
    outfile: Option<Filename>,
    /// The message channel to print to, in place of standard error.
    #[arg(keyword)]
    channel: Option<Word>,
}

/// The format in which bytes are dumped; none for no dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Contents(Option<Dump>);

impl Contents {
    const NO: Contents = Contents(None);
}

impl ArgValue for Contents {
    const TYPE: &'static str = "no, hex or ascii";
    const WORD: bool = true;
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Contents, ValueError> {
        match text.to_ascii_uppercase().as_str() {
            "NO" | "NONE" => Ok(Contents::NO),
            "YES" | "HEX" => Ok(Contents(Some(Dump::Hex))),
            "ASCII" => Ok(Contents(Some(Dump::Ascii))),
            _ => match bool::parse(text, cx) {
                Ok(on) => Ok(Contents(on.then_some(Dump::Hex))),
                Err(_) => {
                    Err(format!("bad contents value '{text}'; should be 'NONE', 'HEX', or 'ASCII'").into())
                }
            },
        }
    }
}

/// The output file of an element, which all its replicas print to.
#[derive(Default)]
pub(crate) struct OutFile(Mutex<Sink>);

#[derive(Default)]
enum Sink {
    /// The file is not open yet. The first write opens and empties it. A router that never runs leaves it untouched.
    #[default]
    Closed,
    Open(Box<dyn Write + Send>),
    /// Writing to the file has failed, and the error has been returned.
    Failed,
    /// The router that replaces this one has taken over the file.
    Gone,
}

impl Sink {
    /// Opens the file if it is not open yet. Clippy's ban on `File::create` is lifted here, because OUTFILE has the
    /// type `Filename`, which checks the name.
    #[allow(clippy::disallowed_methods)]
    fn open(&mut self, name: &str) -> std::io::Result<()> {
        if matches!(self, Sink::Closed) {
            let file: std::io::Result<Box<dyn Write + Send>> = match name {
                "-" => Ok(Box::new(std::io::stdout())),
                _ => File::create(name).map(|f| Box::new(BufWriter::new(f)) as _),
            };
            *self = match file {
                Ok(file) => Sink::Open(file),
                Err(e) => {
                    *self = Sink::Failed;
                    return Err(e);
                }
            };
        }
        Ok(())
    }
}

impl OutFile {
    fn sink(&self) -> MutexGuard<'_, Sink> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Checks at initialisation that the file can be written. Returns whether this check created the file.
    pub(crate) fn prepare(name: &str, cx: &mut InitCx<'_>) -> Result<bool, ElementError> {
        handover::watch_for_run(cx);
        if cx.inherits() { Ok(false) } else { crate::trace::try_file(name) }
    }
    /// Writes a line. After a failed write, all later lines are discarded.
    pub(crate) fn write(&self, name: &str, line: &str) -> std::io::Result<()> {
        let mut sink = self.sink();
        sink.open(name)?;
        let Sink::Open(file) = &mut *sink else { return Ok(()) };
        file.write_all(&castanet_lang::bytes::encode(line)).inspect_err(|_| *sink = Sink::Failed)
    }
    /// Flushes the file. If the router did not run, nothing is written, because the file may belong to another router.
    /// The file is then removed if `made` says that initialisation created it.
    pub(crate) fn close(&self, name: &str, made: bool, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let mut sink = self.sink();
        if matches!(*sink, Sink::Closed) && !handover::has_run(cx) {
            if made {
                handover::unmake(name);
            }
            return Ok(());
        }
        sink.open(name).map_err(ElementError::system(name))?;
        match &mut *sink {
            Sink::Open(file) => file.flush().map_err(ElementError::system(name)),
            Sink::Failed => Err(ElementError::Incomplete(format!("{name}: not all lines were written"))),
            Sink::Closed | Sink::Gone => Ok(()),
        }
    }
    /// Returns a key that is equal for all routers that print to the same file.
    pub(crate) fn key(name: &str) -> String {
        format!("lines {}", handover::file_key(name).display())
    }
    /// Takes over the file of the old router (hot swap).
    pub(crate) fn take_over(&self, old: &OutFile) {
        if std::ptr::eq(self, old) {
            return;
        }
        let theirs = {
            let mut old = old.sink();
            if matches!(*old, Sink::Gone) {
                return;
            }
            std::mem::replace(&mut *old, Sink::Gone)
        };
        *self.sink() = theirs;
    }
}

impl Build for IpPrint {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.contents.0.is_some() && args.payload.0.is_some() {
            return Err("specify at most one of PAYLOAD and CONTENTS".into());
        }
        let line = Line {
            timestamp: args.timestamp,
            aggregate: args.aggregate,
            paint: args.paint,
            id: args.id,
            ttl: args.ttl,
            tos: args.tos,
            length: args.length,
            swap: args.swap,
            contents: args.contents.0,
            payload: args.payload.0,
            max: usize::try_from(args.maxlength).unwrap_or(usize::MAX),
        };
        Ok(IpPrint { args, line, file: cx.share(OutFile::default), made: false, text: String::new() })
    }
}

impl Lifecycle for IpPrint {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if let Some(name) = &self.args.outfile {
            self.made = OutFile::prepare(&name.0, cx)?;
        }
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let Some(name) = &self.args.outfile else { return Ok(()) };
        self.file.close(&name.0, self.made, cx)
    }
    fn holds(&self) -> Option<String> {
        self.args.outfile.as_ref().map(|name| OutFile::key(&name.0))
    }
    fn take_over(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.file.take_over(&old.file);
        self.made |= std::mem::take(&mut old.made);
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        if self.args.outfile.is_some() { Effects::FILES } else { Effects::PRINTS }
    }
}

impl IpPrint {
    fn print(&mut self, p: &Packet, network: &[u8], cx: &mut Cx<'_>) {
        self.text.clear();
        if !self.args.label.is_empty() {
            self.text.push_str(&self.args.label);
            self.text.push_str(": ");
        }
        self.line.write(&mut self.text, p, network);
        if let Some(name) = &self.args.outfile {
            self.text.push('\n');
            if let Err(e) = self.file.write(&name.0, &self.text) {
                cx.message(&format!("{}: {}: {}", cx.declaration(), name.0, reason(&e)));
            }
        } else if let Some(channel) = &self.args.channel {
            cx.message_on(&channel.0, &self.text);
        } else {
            cx.message(&self.text);
        }
    }
}

impl Action for IpPrint {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if self.args.active
            && let Some(network) = p.network()
        {
            self.print(p, network, cx);
        }
        Verdict::Next
    }
}

#[cfg(test)]
#[path = "tests/ip_print.rs"]
mod tests;
