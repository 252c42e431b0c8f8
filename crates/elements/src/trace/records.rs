// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common part of FromIPSummaryDump and FromTcpdump, which make packets from records. A record lists the
//! fields of a packet.

use super::replay::{FileSize, Next, Replay, Source};
use crate::handover;
use castanet_element::prelude::*;
use castanet_io::CaptureError;
use castanet_io::summary::{Draft, Item, Making, SummaryReader};
use castanet_packet::{DEFAULT_HEADROOM, MAX_LENGTH};
use castanet_spec::anno;

/// The maximum number of lines without a packet that one turn reads. The limit lets other tasks have their turns.
const MOST_SKIPPED: u32 = 1024;
/// The maximum length of the data of a packet, in bytes.
const MOST_DATA: usize = MAX_LENGTH - DEFAULT_HEADROOM;

/// Arguments of a source that makes packets from records.
pub trait RecordArgs: castanet_spec::Args {
    /// The file, if there is one.
    fn filename(&self) -> Option<&Filename>;
    /// Whether these arguments and `other` make elements read the same records.
    fn is_same(&self, other: &Self) -> bool;
    /// Opens the records.
    fn open(&self) -> Result<SummaryReader, CaptureError>;
    /// Whether packets are emitted.
    fn is_active(&self) -> bool;
    /// Makes the element inactive.
    fn deactivate(&mut self);
    /// Whether the driver is asked to stop at the end.
    fn stops(&self) -> bool;
    /// Whether packets are emitted at the intervals of their timestamps.
    fn timing(&self) -> bool {
        false
    }
    /// Whether packets get all their bytes and correct checksums.
    fn checksum(&self) -> bool;
    /// The probability that a packet is emitted.
    fn sample(&self) -> f64;
    /// Whether a record that stands for several packets yields all these packets, and not just one.
    fn multipacket(&self) -> bool {
        false
    }
}

/// Makes packets from records.
#[derive(Counts)]
pub struct Records<A> {
    args: A,
    reader: Option<SummaryReader>,
    random: Random,
    draft: Draft,
    /// For a record that stands for several packets: the index of the next packet, and the number of packets.
    part: Option<(u32, u32)>,
    data: Vec<u8>,
    /// A packet that has been made, and waits until it is due.
    ready: Option<Packet>,
    /// With TIMING, router time minus trace time, in nanoseconds.
    shift: Option<i64>,
    replay: Replay,
    broken: bool,
}

impl<A: RecordArgs> Records<A> {
    fn reader(&self) -> Result<&SummaryReader, HandlerError> {
        self.reader.as_ref().ok_or_else(|| "the file is not open".into())
    }
    /// Finds the next record, or the next packet of the last record. Returns the packet's index in its
    /// record, and the record's number of packets; `None` at the end of the dump, or when too many lines were
    /// skipped.
    fn record(&mut self, skipped: &mut u32, cx: &mut Cx<'_>) -> Option<(u32, u32)> {
        if let Some((part, parts)) = self.part.take() {
            let next = part.saturating_add(1);
            self.part = (next < parts).then_some((next, parts));
            return Some((part, parts));
        }
        while *skipped < MOST_SKIPPED {
            *skipped = skipped.saturating_add(1);
            match self.reader.as_mut()?.next(&mut self.draft) {
                Ok(Item::Record) => {
                    let parts = if self.args.multipacket() { self.draft.count().max(1) } else { 1 };
                    self.part = (parts > 1).then_some((1, parts));
                    return Some((0, parts));
                }
                Ok(Item::Nothing) => {}
                Ok(Item::Problem(text)) => cx.message(&text),
                Ok(Item::End) => return None,
                Err(e) => {
                    cx.message(&format!("{}: {e}", cx.declaration()));
                    self.broken = true;
                    return None;
                }
            }
        }
        None
    }

    /// Makes the packet of a record; `None` if no buffer is free.
    fn make(&mut self, part: (u32, u32)) -> Option<Packet> {
        let making = Making { checksum: self.args.checksum(), most: MOST_DATA, part };
        let defaults = *self.reader.as_ref()?.defaults();
        let made = self.draft.make(&defaults, making, &mut self.data);
        let mut p = Packet::copy_of(&self.data)?;
        p.set_timestamp(made.time);
        if made.first_time != 0 && part.1 == 1 {
            p.set_anno(anno::FIRST_TIMESTAMP, made.first_time.to_ne_bytes());
        }
        if made.count > 1 && part.1 == 1 {
            p.set_anno_u32(anno::EXTRA_PACKETS, made.count - 1);
        }
        if made.extra_length > 0 {
            p.set_anno_u32(anno::EXTRA_LENGTH, made.extra_length);
        }
        if made.aggregate > 0 {
            p.set_anno_u32(anno::AGGREGATE, made.aggregate);
        }
        p.set_paint(made.paint);
        if made.link > 0 {
            p.set_mac_header(0);
        }
        if made.header > 0 {
            p.set_network_header(made.link, made.header);
            p.set_anno(anno::DST_IP, made.dst.to_be_bytes());
        }
        Some(p)
    }
}

impl<A: RecordArgs> Source for Records<A> {
    fn replay(&self) -> &Replay {
        &self.replay
    }
    fn is_active(&self) -> bool {
        self.args.is_active()
    }
    fn next(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut skipped = 0;
        let p = loop {
            if let Some(p) = self.ready.take() {
                break p;
            }
            let Some(part) = self.record(&mut skipped, cx) else {
                return if skipped >= MOST_SKIPPED { Next::Pause } else { Next::End };
            };
            cx.entered(1);
            let sample = self.args.sample();
            let reason = if sample < 1.0 && self.random.unit() >= sample {
                Reason::Sampled
            } else if let Some(p) = self.make(part) {
                break p;
            } else {
                Reason::NoBuffer
            };
            cx.count_drops(reason, 1);
            skipped = skipped.saturating_add(1);
            if skipped >= MOST_SKIPPED {
                return Next::Pause;
            }
        };
        if self.args.timing() {
            let now = cx.now();
            let shift = *self.shift.get_or_insert(now.saturating_sub(p.timestamp()));
            let due = p.timestamp().saturating_add(shift);
            if due > now {
                self.ready = Some(p);
                return Next::Later(due);
            }
        }
        Next::Packet(p)
    }
    fn finish(&mut self, cx: &mut Cx<'_>) {
        if self.replay.end(cx) && self.args.stops() {
            cx.stop(1);
        }
    }
}

#[handlers]
impl<A: RecordArgs> Records<A> {
    /// The link type of packets: `IP`.
    #[read]
    fn encap(&self) -> &'static str {
        "IP"
    }
    /// The name of the file; `<data>` if the configuration contains the records.
    #[read]
    fn filename(&self) -> String {
        self.args.filename().map_or("<data>", |f| &f.0).into()
    }
    /// Size of the file; `-` if it is unknown.
    #[read(unit = "bytes")]
    fn filesize(&self) -> Result<FileSize, HandlerError> {
        if self.args.filename().is_none() {
            return Ok(FileSize(None));
        }
        Ok(FileSize(self.reader()?.filesize()))
    }
    /// Byte position of the next line.
    #[read(unit = "bytes")]
    fn filepos(&self) -> Result<u64, HandlerError> {
        Ok(self.reader()?.filepos())
    }
    /// Makes the element inactive and asks the driver to stop.
    #[write(button)]
    fn stop(&mut self, cx: &mut Cx<'_>) {
        self.args.deactivate();
        self.replay.sleep(cx);
        cx.stop(1);
    }
    /// Lines and records that could not be read.
    #[read(unit = "lines")]
    fn bad_lines(&self) -> Result<Counted, HandlerError> {
        Ok(Counted(self.reader()?.bad_lines()))
    }
    /// Fields that could not be read.
    #[read(unit = "fields")]
    fn bad_fields(&self) -> Result<Counted, HandlerError> {
        Ok(Counted(self.reader()?.bad_fields()))
    }
}

impl<A: RecordArgs> Element for Records<A> {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.turn(cx)
    }
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        self.pull_into(max, into, cx);
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.wake(cx);
    }
}

impl<A: RecordArgs> Lifecycle for Records<A> {
    fn held(&self) -> u64 {
        u64::from(self.ready.is_some())
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if !cx.inherits() {
            self.reader = Some(self.args.open().map_err(ElementError::refused)?);
        }
        self.replay.initialise(self.args.is_active(), cx);
        Ok(())
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        // If the file could not be read to its end, the run has failed.
        let name = self.args.filename().map_or("<data>", |f| &f.0);
        if self.broken {
            Err(ElementError::Incomplete(format!("{name}: not read to its end")))
        } else {
            Ok(())
        }
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.wake(cx);
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        if self.args.stops() { Effects::STOPS } else { Effects::empty() }
    }
    fn holds(&self) -> Option<String> {
        self.args.filename().and_then(|name| handover::once_readable(&name.0))
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.take_state(old, cx)
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if !self.args.is_same(&old.args) || old.reader.is_none() {
            return Ok(());
        }
        self.reader = old.reader.take();
        self.ready = old.ready.take();
        self.random = old.random.clone();
        self.draft = std::mem::take(&mut old.draft);
        (self.part, self.shift, self.replay.finished) = (old.part, old.shift, old.replay.finished);
        self.broken = std::mem::take(&mut old.broken);
        self.wake(cx);
        Ok(())
    }
}

impl<A: RecordArgs> Engine for Records<A> {
    type Args = A;
    fn build(args: A, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Records {
            reader: None,
            random: cx.random(),
            draft: Draft::default(),
            part: None,
            data: Vec::new(),
            ready: None,
            shift: None,
            replay: Replay::new(cx),
            broken: false,
            args,
        })
    }
    fn args(&mut self) -> &mut A {
        &mut self.args
    }
}
