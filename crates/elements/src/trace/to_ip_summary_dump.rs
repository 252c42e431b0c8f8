// SPDX-License-Identifier: MIT OR Apache-2.0
//! ToIPSummaryDump: writes fields of packets to a summary dump.

#[cfg(test)]
mod tests;

use super::shared_file::{FileWriter, Replica, SharedFile, report};
use super::summary_args::FieldList;
use super::to_dump::try_file;
use crate::handover;
use castanet_element::prelude::*;
use castanet_io::CaptureError;
use castanet_io::summary::{Field, SummaryHeader, SummaryRecords, SummaryWriter, View};
use castanet_spec::anno;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum number of lines for one packet. The number is bounded, because the count in the packet's annotation may
/// be anything.
const MOST_LINES: u32 = 1 << 16;

/// The memory that an element keeps for the lines of a batch, in bytes.
const KEPT: usize = 1 << 16;

/// Writes chosen fields of each packet as a line or a binary record.
///
/// Packets need not be IP: a field that a packet does not have is `-`, or zero in binary records. Fields of IP and
/// above are read from the marked network header. With BAD_PACKETS, a line `!bad` before the line of a packet says what
/// is wrong with its headers. With MULTIPACKET, a packet that stands for n packets is written n times, at most 65536
/// times. If FIELDS has `count`, MULTIPACKET has no effect. Packets of several workers are written in the order of their
/// times, unless a worker delays a packet by more than 50 ms.
///
/// The file is emptied when the router starts to run, not before. After a hot swap, a router with the same file takes
/// over the open file and continues it. The file is complete when the router has stopped. If writing fails, there is
/// one message, and nothing more is written. The file `-` is the standard output.
///
/// # Ports
/// Input 0: packets, push or pull. Output 0 (optional, push): the same packets, after they were written.
///
/// # Example
/// ```click
/// FromIPSummaryDump(DATA "!data ip_src sport
/// 1.0.0.1 10
/// 1.0.0.3 30
/// ", STOP true) -> ToIPSummaryDump(/dev/null, FIELDS ip_src sport ip_len) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(makes), ends(Consumed))]
#[class(name = "ToIPSummaryDump", offload = none, ports = "1/0-1", processing = "a/h", packets = "any/same", workers = share, build, lifecycle, handlers)]
#[class(task, effects(files), drops(Consumed, WriteFailed), takes_state = "the open file")]
pub struct ToIpSummaryDump {
    args: Args,
    file: Replica<SummaryWriter>,
    /// Whether a message about a packet that stands for more than `MOST_LINES` packets has been printed. All replicas
    /// share this value.
    told: Arc<AtomicBool>,
    /// The lines or records of the packets of one batch.
    records: SummaryRecords,
    /// For each packet of the batch, the offset of its end in the bytes of `records`.
    ends: Vec<usize>,
    /// For each packet of the batch, its time in nanoseconds.
    times: Vec<i64>,
    /// Whether this element created the file.
    made: bool,
    signal: Signal,
    push: bool,
    passes: bool,
    scratch: Batch,
}

impl FileWriter for SummaryWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<bool, CaptureError> {
        SummaryWriter::write(self, bytes)
    }
    fn flush(&mut self) -> Result<(), CaptureError> {
        SummaryWriter::flush(self)
    }
}

/// Arguments of ToIPSummaryDump.
#[derive(Args)]
pub struct Args {
    /// The file; `-` is the standard output.
    filename: Filename,
    /// The fields to write.
    #[arg(keyword, alias = "CONTENTS", alias = "DATA", default = standard(), show = "timestamp ip_src")]
    fields: FieldList,
    /// Whether the header of the file gives the host name and the time.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// Whether the file gets a header.
    #[arg(keyword, default = true)]
    header: bool,
    /// The name of the program, for the header.
    #[arg(keyword)]
    banner: Option<String>,
    /// Whether a packet that stands for several packets is written several times.
    #[arg(keyword, default = false)]
    multipacket: bool,
    /// Whether `!bad` lines say what is wrong with packets.
    #[arg(keyword, default = false)]
    bad_packets: bool,
    /// Whether a packet counts as bad if it is shorter than its IP header says.
    #[arg(keyword, default = true)]
    careful_trunc: bool,
    /// Whether the bytes of the extra length annotation count as packet length.
    #[arg(keyword, default = true)]
    extra_length: bool,
    /// Whether to write binary records.
    #[arg(keyword, default = false)]
    binary: bool,
}

/// The fields that are written if FIELDS is not given.
fn standard() -> FieldList {
    FieldList(["timestamp", "ip_src"].into_iter().filter_map(Field::find).collect())
}

impl Build for ToIpSummaryDump {
    fn build(mut args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.fields.0.is_empty() {
            return Err("no contents specified".into());
        }
        if args.fields.0.iter().any(|f| f.name == "count") {
            args.multipacket = false;
        }
        let (worker, workers) = cx.replica;
        Ok(ToIpSummaryDump {
            file: Replica::new(cx.share(|| SharedFile::new(workers, false)), worker),
            told: cx.share(AtomicBool::default),
            times: Vec::new(),
            records: SummaryRecords::new(args.fields.0.clone(), args.binary),
            args,
            ends: Vec::new(),
            made: false,
            signal: Signal::default(),
            push: cx.is_push_input(0),
            passes: cx.outputs > 0,
            scratch: Batch::new(),
        })
    }
}

/// Returns the view of a packet that fields are read from.
fn view<'a>(p: &'a Packet, args: &Args) -> View<'a> {
    let extra = if args.extra_length { p.anno_u32(anno::EXTRA_LENGTH) } else { 0 };
    let mut view = View::new(p.data(), p.mac(), p.network(), extra, args.careful_trunc);
    view.time = p.timestamp();
    view.first_time = i64::from_ne_bytes(p.anno(anno::FIRST_TIMESTAMP));
    view.extra_packets = p.anno_u32(anno::EXTRA_PACKETS);
    (view.paint, view.aggregate) = (p.paint(), p.anno_u32(anno::AGGREGATE));
    view
}

/// Adds the lines or records of a packet.
fn add(records: &mut SummaryRecords, p: &Packet, args: &Args) {
    let mut view = view(p, args);
    if args.bad_packets
        && let Some(bad) = view.bad()
    {
        records.note(&format!("!bad {bad}"));
    }
    let count = if args.multipacket { view.extra_packets.saturating_add(1).min(MOST_LINES) } else { 1 };
    if count == 1 {
        return records.push(&view);
    }
    // The length of the packet is divided among the lines. Their times are evenly spaced from the packet's
    // FIRST_TIMESTAMP to its timestamp.
    let (first, last) = (view.first_time, view.time);
    let step = if first > 0 && first < last { (last - first) / i64::from(count - 1) } else { 0 };
    let (captured, mut left) = (p.len(), view.wire_len());
    view.extra_packets = 0;
    for i in (0..count).rev() {
        view.time = last.saturating_sub(step.saturating_mul(i.into()));
        let length = left / (i as usize + 1);
        left = left.saturating_sub(length);
        view.extra_length = u32::try_from(length.saturating_sub(captured)).unwrap_or(u32::MAX);
        records.push(&view);
    }
}

impl ToIpSummaryDump {
    /// Creates or empties the file, and writes the header.
    // Every file name here comes from a `Filename` argument, except one constant: the path of the host name.
    #[allow(clippy::disallowed_methods)]
    fn create(&self, cx: &mut Cx<'_>) -> Result<SummaryWriter, CaptureError> {
        let args = &self.args;
        let mut w = SummaryWriter::create(&args.filename.0)?;
        if args.header {
            let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            let origin = args.verbose.then(|| (host().trim().to_string(), cx.now()));
            let header = SummaryHeader { creator: args.banner.clone(), origin };
            w.write(self.records.header(&header).as_bytes())?;
            w.flush()?;
        }
        Ok(w)
    }
    /// Opens and empties the file, unless it has been opened before. Returns whether the file is open.
    fn open(&self, cx: &mut Cx<'_>) -> bool {
        let (open, error) = self.file.open(|| self.create(cx));
        if let Some(e) = error {
            report(&e, cx);
        }
        open
    }
    #[cold]
    fn tell_of_many(&self, cx: &mut Cx<'_>) {
        if !self.told.swap(true, Ordering::Relaxed) {
            let declaration = cx.declaration();
            cx.message(&format!(
                "{declaration}: a packet stands for more than {MOST_LINES}, which are written"
            ));
        }
    }

    /// Writes packets until a write fails. Returns the number of packets written.
    fn write_all(&mut self, packets: &[Packet], cx: &mut Cx<'_>) -> usize {
        if !self.open(cx) {
            return 0;
        }
        // A packet that stands for many others has many lines. Do not keep their memory.
        self.records.clear(KEPT);
        self.ends.clear();
        self.times.clear();
        for p in packets {
            if self.args.multipacket && p.anno_u32(anno::EXTRA_PACKETS) >= MOST_LINES {
                self.tell_of_many(cx);
            }
            add(&mut self.records, p, &self.args);
            self.ends.push(self.records.bytes().len());
            self.times.push(if p.timestamp() == 0 { cx.recent() } else { p.timestamp() });
        }
        self.file.write(self.records.bytes(), &self.ends, &self.times, cx)
    }

    /// Writes packets, then forwards or drops them.
    fn take(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let written = self.write_all(batch.as_slice(), cx);
        if self.passes {
            // The ledger counts the written packets as copies.
            cx.made(written as u64);
            cx.left(written as u64);
            return cx.forward(0, batch);
        }
        for (i, p) in batch.drain().enumerate() {
            cx.drop(p, if i < written { Reason::Consumed } else { Reason::WriteFailed });
        }
    }
}

impl Element for ToIpSummaryDump {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.take(batch, cx);
    }
    fn timer(&mut self, timer: u16, cx: &mut Cx<'_>) {
        self.open(cx);
        if timer == Replica::<SummaryWriter>::TIMER {
            self.file.timer(cx);
        }
    }
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.open(cx);
        if self.push {
            return Turn::Sleep;
        }
        let mut batch = std::mem::replace(&mut self.scratch, Batch::empty());
        cx.pull(0, cx.turns(), &mut batch);
        cx.took_turns(batch.len().max(1));
        let some = !batch.is_empty();
        self.take(&mut batch, cx);
        self.scratch = batch;
        if some || cx.is_on(&self.signal) { Turn::Again } else { Turn::Sleep }
    }
}

#[handlers]
impl ToIpSummaryDump {
    /// Writes buffered data to the file.
    #[write]
    fn flush(&mut self, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let flushed = self.file.with(cx, SummaryWriter::flush).unwrap_or(Ok(()));
        Ok(flushed.map_err(ElementError::refused)?)
    }
}

impl Lifecycle for ToIpSummaryDump {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if !self.push {
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
    fn holds(&self) -> Option<String> {
        let file = handover::file_key(&self.args.filename.0);
        let fields: Vec<&str> = self.args.fields.0.iter().map(|f| f.name).collect();
        Some(format!("summary {} {fields:?} {}", file.display(), self.args.binary))
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.file.take_over(&old.file, cx);
        self.told.fetch_or(old.told.load(Ordering::Relaxed), Ordering::Relaxed);
        self.made |= std::mem::take(&mut old.made);
        Ok(())
    }
}
