// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPPrint: prints a line of text for each IP packet.

use super::ip_text::{Dump, Line};
use crate::line_output::LineOutput;
use castanet_element::prelude::*;

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
#[class(name = "IPPrint", offload = none, ports = "1/1", processing = "a/a", packets = "ip optional/same", workers = share)]
#[class(takes_state = "the open file")]
#[class(effects(prints, files), build, lifecycle)]
pub struct IpPrint {
    args: Args,
    line: Line,
    lines: LineOutput,
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
        let lines = LineOutput::new(args.outfile.clone(), args.channel.clone(), cx);
        Ok(IpPrint { args, line, lines, text: String::new() })
    }
}

impl Lifecycle for IpPrint {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.lines.initialise(cx)
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.lines.cleanup(cx)
    }
    fn holds(&self) -> Option<String> {
        self.lines.holds()
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.lines.take_over(&mut old.lines, cx)
    }
    fn effects(&self, declared: Effects) -> Effects {
        self.lines.effects(declared)
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
        self.lines.print(&mut self.text, cx);
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
