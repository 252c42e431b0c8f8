// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of FromDump.

use castanet_element::prelude::*;
use castanet_spec::ValueKind;

/// Arguments of FromDump.
#[derive(Args)]
#[args(at_most_one(start, start_after), at_most_one(end, end_after, interval), at_most_one(stop, end_call))]
pub struct Args {
    /// The file; `-` is the standard input.
    #[arg(handler = "r")]
    pub(super) filename: Filename,
    /// Whether packets are emitted at the intervals at which they were captured.
    #[arg(default = false)]
    pub(super) timing: bool,
    /// Whether the driver is asked to stop at the end.
    #[arg(keyword, default = false)]
    pub(super) stop: bool,
    /// When false, no packets are emitted.
    #[arg(keyword, default = true, handler = "rw")]
    pub(super) active: bool,
    /// The probability that a packet is emitted.
    #[arg(keyword, default = Probability(1.0), show = "1", handler = "r", handler_name = "sampling_prob")]
    pub(super) sample: Probability,
    /// Whether output 0 gets only IPv4 packets, with their network header marked.
    #[arg(keyword, default = false)]
    pub(super) force_ip: bool,
    /// Skip packets before this time.
    #[arg(keyword)]
    pub(super) start: Option<Nanos>,
    /// As START, but counted from the first packet of the file.
    #[arg(keyword)]
    pub(super) start_after: Option<Nanos>,
    /// Stop before the first packet at or after this time.
    #[arg(keyword)]
    pub(super) end: Option<Nanos>,
    /// As END, but counted from the first packet of the file.
    #[arg(keyword)]
    pub(super) end_after: Option<Nanos>,
    /// As END, but counted from START or START_AFTER, or from the first packet if neither is given.
    #[arg(keyword)]
    pub(super) interval: Option<Nanos>,
    /// A handler to call at the end.
    #[arg(keyword)]
    pub(super) end_call: Option<HandlerRef>,
    /// The byte position of the first record to read.
    #[arg(keyword, default = 0)]
    pub(super) filepos: u64,
    /// Accepted for old configurations; it has no effect.
    #[arg(keyword, name = "MMAP")]
    _mmap: Option<bool>,
}

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability(pub f64);

impl ArgValue for Probability {
    const TYPE: &'static str = "probability";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Probability, ValueError> {
        match f64::parse(text, cx) {
            Ok(p) if (0.0..=1.0).contains(&p) => Ok(Probability(p)),
            _ => Err("expected a probability between 0 and 1".into()),
        }
    }
}

impl Show for Probability {
    const KIND: ValueKind = ValueKind::Gauge;
    fn show(&self) -> String {
        self.0.to_string()
    }
}
