// SPDX-License-Identifier: MIT OR Apache-2.0
//! ToDump: writes packets to a capture file.

#[cfg(test)]
mod tests;

use super::shared_file::{FileWriter, Replica, SharedFile, report};
use crate::handover;
use castanet_element::prelude::*;
use castanet_io::{CaptureError, CaptureRecords, CaptureWriter, LinkType, WriterOptions};
use castanet_spec::anno;
use std::fs::OpenOptions;
use std::io::ErrorKind;

/// Writes packets to a capture file in pcap format.
///
/// The time of a record is the packet's timestamp, or the current time if it has none. Packets of several workers are
/// written in the order of their times, unless a worker delays a packet by more than 50 ms. The original length of
/// a record includes the bytes that were never captured, according to the extra length annotation. The file
/// `-` is the standard output.
///
/// Initialisation fails if the file cannot be written. The file is emptied when the router starts to run, not before.
/// After a hot swap, a router with the same file takes over the open file and continues it. The file is complete when
/// the router has stopped. If writing fails, one message says so, and no more packets are written. Without output 0,
/// packets that are not written are counted as drops.
///
/// # Ports
/// Input 0: packets, push or pull. Output 0 (optional): the same packets, after they were written.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 3, STOP true) -> ToDump(/dev/null, SNAPLEN 34) -> Print(written) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(makes), ends(Consumed))]
#[class(name = "ToDump", offload = none, ports = "1/0-1", processing = "a/a", packets = "any/same", workers = share, build, lifecycle, handlers)]
#[class(task, effects(files, calls), drops(Consumed, WriteFailed), takes_state = "the open file")]
pub struct ToDump {
    args: Args,
    options: WriterOptions,
    file: Replica<Trace>,
    /// The records of the packets of one batch.
    records: CaptureRecords,
    /// For each record of the batch, its time in nanoseconds.
    times: Vec<i64>,
    /// Whether this element created the file.
    made: bool,
    signal: Signal,
    push: bool,
    passes: bool,
    scratch: Batch,
}

/// An open capture file.
struct Trace {
    writer: CaptureWriter,
    /// The number of packets that were written before `count` was reset.
    forgotten: u64,
}

impl FileWriter for Trace {
    fn write(&mut self, record: &[u8]) -> Result<bool, CaptureError> {
        self.writer.write_record(record).inspect_err(|_| {
            // The packets in the buffer are lost, and the writer no longer counts them. `forgotten` must not exceed its
            // count.
            self.forgotten = self.forgotten.min(self.writer.count());
        })
    }
    fn flush(&mut self) -> Result<(), CaptureError> {
        self.writer.flush()
    }
}

/// Arguments of ToDump.
#[derive(Args)]
#[args(at_most_one(encap, use_encap_from))]
pub struct Args {
    /// The file; `-` is the standard output.
    #[arg(handler = "r")]
    filename: Filename,
    /// The maximum number of bytes to write of each packet; 0 for all bytes.
    #[arg(default = 2000)]
    snaplen: u32,
    /// The link type of packets: `ETHER`, `IP`... or its number.
    #[arg(show = "ETHER")]
    encap: Option<Encap>,
    /// Elements whose `encap` handlers give the link type; all must give the same.
    #[arg(keyword, default = Sources::default(), show = "")]
    use_encap_from: Sources,
    /// Whether the bytes of the extra length annotation count as packet length.
    #[arg(keyword, default = true)]
    extra_length: bool,
    /// Whether each packet is written to the file immediately, without buffering.
    #[arg(keyword, default = false)]
    unbuffered: bool,
    /// Whether times are written in nanoseconds instead of microseconds.
    #[arg(keyword, default = true)]
    nano: bool,
}

/// A link type, by word or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encap(LinkType);

impl ArgValue for Encap {
    const TYPE: &'static str = "link type";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Encap, ValueError> {
        Ok(LinkType::parse(text).map(Encap).ok_or_else(|| {
            let words: Vec<_> = LinkType::words().collect();
            format!("'{text}' is not a link type; expected a number or one of {}", words.join(", "))
        })?)
    }
}

/// The argument USE_ENCAP_FROM: elements by number and name.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<(u32, String)>);

impl ArgValue for Sources {
    const TYPE: &'static str = "list of element";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Sources, ValueError> {
        let words = castanet_lang::args::words(text);
        let element = |name: &str| {
            let found = ElementRef::parse(name, cx)?;
            Ok((u32::try_from(found.0).map_err(|_| "no such element".to_string())?, name.to_string()))
        };
        words.into_iter().map(|r| element(text.get(r).unwrap_or(""))).collect::<Result<_, _>>().map(Sources)
    }
}

impl Build for ToDump {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let options = WriterOptions {
            link: args.encap.map_or(LinkType::ETHERNET, |e| e.0),
            snaplen: args.snaplen,
            nano: args.nano,
            unbuffered: args.unbuffered,
            ..WriterOptions::default()
        };
        let (worker, workers) = cx.replica;
        let file = cx.share(|| SharedFile::new(workers, args.unbuffered));
        Ok(ToDump {
            args,
            options,
            file: Replica::new(file, worker),
            times: Vec::new(),
            records: CaptureRecords::new(options),
            made: false,
            signal: Signal::default(),
            push: cx.is_push_input(0),
            passes: cx.outputs > 0,
            scratch: Batch::new(),
        })
    }
}

/// Checks that a file can be written, as far as that is possible without changing it. A missing file is
/// created. Returns whether the file was created. `name` must come from a `Filename` argument, because that
/// type checks the file names that clients give.
#[allow(clippy::disallowed_methods)]
pub(crate) fn try_file(name: &str) -> Result<bool, ElementError> {
    // Opening a pipe would wait for its reader.
    let special = std::fs::metadata(name).is_ok_and(|m| !m.is_file() && !m.is_dir());
    if name == "-" || special {
        return Ok(false);
    }
    let opened = match OpenOptions::new().write(true).create_new(true).open(name) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            OpenOptions::new().write(true).open(name).map(|_| false)
        }
        made => made.map(|_| true),
    };
    opened.map_err(ElementError::system(name))
}

impl ToDump {
    /// Returns the link type that all elements in USE_ENCAP_FROM report.
    fn told_link(&self, cx: &mut Cx<'_>) -> Result<LinkType, ElementError> {
        let mut told: Option<(LinkType, &str)> = None;
        for (element, name) in &self.args.use_encap_from.0 {
            let text =
                cx.read_handler(Some(*element), "encap", "").map_err(|e| format!("USE_ENCAP_FROM: {e}"))?;
            let link = LinkType::parse(text.trim());
            let link = link.ok_or_else(|| {
                format!("USE_ENCAP_FROM: '{name}' tells no link type, but '{}'", text.trim())
            })?;
            match told {
                Some((other, before)) if other != link => {
                    return Err(format!(
                        "USE_ENCAP_FROM: '{before}' and '{name}' do not agree, {other} against {link}"
                    )
                    .into());
                }
                _ => told = Some((link, name)),
            }
        }
        Ok(told.map_or(self.options.link, |t| t.0))
    }

    /// Opens and empties the file, unless it has been opened before. Returns whether the file is open.
    fn open(&self, cx: &mut Cx<'_>) -> bool {
        if self.file.accepts() {
            return true;
        }
        // Get the link type from the other elements before the file is locked.
        let link = match self.file.is_fresh() {
            true => self.told_link(cx),
            false => Ok(self.options.link),
        };
        let (open, error) = self.file.open(|| {
            let options = WriterOptions { link: link?, ..self.options };
            let writer =
                CaptureWriter::create(&self.args.filename.0, options).map_err(ElementError::refused)?;
            Ok::<_, ElementError>(Trace { writer, forgotten: 0 })
        });
        if let Some(e) = error {
            report(&e, cx);
        }
        open
    }

    /// Writes packets until a write fails. Returns the number of packets written.
    fn write_all(&mut self, packets: &[Packet], cx: &mut Cx<'_>) -> usize {
        if !self.open(cx) {
            return 0;
        }
        self.records.clear();
        self.times.clear();
        for p in packets {
            let time = match p.timestamp() {
                0 => cx.now(),
                t => t,
            };
            let extra = if self.args.extra_length { p.anno_u32(anno::EXTRA_LENGTH) } else { 0 };
            let length = u32::try_from(p.len()).unwrap_or(u32::MAX).saturating_add(extra);
            self.records.push(time, p.data(), length);
            self.times.push(time);
        }
        self.file.write(self.records.bytes(), self.records.ends(), &self.times, cx)
    }

    /// Writes packets that are also forwarded. The ledger counts the written packets as copies.
    fn copy(&mut self, packets: &[Packet], cx: &mut Cx<'_>) {
        let written = self.write_all(packets, cx) as u64;
        cx.made(written);
        cx.left(written);
    }

    /// Writes packets and drops them.
    fn consume(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let written = self.write_all(batch.as_slice(), cx);
        for (i, p) in batch.drain().enumerate() {
            cx.drop(p, if i < written { Reason::Consumed } else { Reason::WriteFailed });
        }
    }
}

impl Element for ToDump {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if self.passes {
            self.copy(batch.as_slice(), cx);
            cx.forward(0, batch);
        } else {
            self.consume(batch, cx);
        }
    }
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        let before = into.len();
        cx.pull(0, max, into);
        self.copy(into.as_slice().get(before..).unwrap_or_default(), cx);
    }
    fn timer(&mut self, timer: u16, cx: &mut Cx<'_>) {
        self.open(cx);
        if timer == Replica::<Trace>::TIMER {
            self.file.timer(cx);
        }
    }
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.open(cx);
        if self.push || self.passes {
            return Turn::Sleep;
        }
        let mut batch = std::mem::replace(&mut self.scratch, Batch::empty());
        cx.pull(0, cx.turns(), &mut batch);
        cx.took_turns(batch.len().max(1));
        let some = !batch.is_empty();
        self.consume(&mut batch, cx);
        self.scratch = batch;
        if some || cx.is_on(&self.signal) { Turn::Again } else { Turn::Sleep }
    }
}

#[handlers]
impl ToDump {
    /// Packets written.
    #[read(unit = "packets")]
    fn count(&self) -> Counted {
        let count = |t: &Trace, waiting: usize| t.writer.count().saturating_add(waiting as u64);
        Counted(self.file.peek(|t, waiting| count(t, waiting).saturating_sub(t.forgotten)).unwrap_or(0))
    }
    /// Sets `count` to 0.
    #[write(button)]
    fn reset_counts(&mut self, cx: &mut Cx<'_>) {
        self.file.with(cx, |t| t.forgotten = t.writer.count());
    }
}

impl Lifecycle for ToDump {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if !self.push && !self.passes {
            self.signal = cx.upstream(0);
        }
        // The timer opens and empties the file as soon as the router runs. A router that is built but never runs does
        // not empty it.
        let now = cx.now();
        cx.set_timer(0, now);
        if !cx.inherits() {
            self.made = try_file(&self.args.filename.0)?;
        }
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.file.close(&self.args.filename.0, self.made, cx)
    }
    fn effects(&self, declared: Effects) -> Effects {
        // With USE_ENCAP_FROM, the first packet may open the file, and opening the file reads handlers.
        if self.args.use_encap_from.0.is_empty() { Effects::FILES } else { declared }
    }
    fn holds(&self) -> Option<String> {
        let Args { filename, snaplen, encap, use_encap_from, nano, .. } = &self.args;
        let (file, encap) = (handover::file_key(&filename.0), encap.map(|e| e.0.0));
        let from: Vec<&str> = use_encap_from.0.iter().map(|s| s.1.as_str()).collect();
        Some(format!("trace {} {snaplen} {encap:?} {from:?} {nano}", file.display()))
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.file.take_over(&old.file, cx);
        self.made |= std::mem::take(&mut old.made);
        Ok(())
    }
}
