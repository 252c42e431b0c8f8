// SPDX-License-Identifier: MIT OR Apache-2.0
//! FromIPSummaryDump: packets from a summary dump.

#[cfg(test)]
mod tests;

use super::from_dump::args::Probability;
use super::replay::{Next, Replay, Source};
use super::summary_args::{FieldList, FlowId, Protocol};
use crate::handover;
use castanet_element::prelude::*;
use castanet_io::CaptureError;
use castanet_io::summary::{Draft, Item, Making, SummaryReader};
use castanet_packet::{DEFAULT_HEADROOM, MAX_LENGTH};
use castanet_spec::anno;

/// Lines that make no packet, in one turn, before others have theirs.
const MOST_SKIPPED: u32 = 1024;
/// The most bytes of data that a packet has.
const MOST_DATA: usize = MAX_LENGTH - DEFAULT_HEADROOM;

/// Makes packets from a summary dump: a line or binary record for each, its fields as the dump's head says.
///
/// The file may be compressed by gzip, bzip2 or xz; `-` is the standard input; DATA is a dump in the configuration.
/// Times may begin or end with a point or have an exponent; numbers may be hexadecimal, and ICMP types and codes names.
/// A packet has an IPv4 header and those of TCP, UDP or ICMP, and an Ethernet header when a field asks for one; what
/// follows them is not there, only counted by the extra length annotation, unless CHECKSUM is given. Its network header
/// is marked and its destination annotation set. What a record does not say is zero, but for the time to live, 100, and
/// what FLOWID, PROTO and the lines `!flowid`, `!proto` and `!aggregate` say.
///
/// A field that cannot be read counts as not said; a line of which no field can be read is left out. A message gives the
/// number of the first such line; `bad_lines` and `bad_fields` count all.
///
/// With TIMING packets come as far apart as their timestamps. At the end STOP asks the driver to stop, once all packets
/// were emitted.
///
/// # Ports
/// No inputs. Output 0: packets, push or pull.
///
/// # Example
/// ```click
/// FromIPSummaryDump(DATA "!data ip_src ip_dst ip_proto
/// 1.0.0.1 2.0.0.2 U
/// 1.0.0.3 2.0.0.2 T
/// ", STOP true) -> IPPrint(made) -> Discard;
/// ```
#[derive(Class)]
#[class(books(enters, holds))]
#[class(name = "FromIPSummaryDump", ports = "0/1", processing = "a/a", packets = "any/any", workers = exclusive, build, lifecycle, handlers)]
#[class(task, capabilities(EmptyNotifier), effects(stops))]
#[class(drops(Sampled, NoBuffer), takes_state = "the open file and the place in it")]
pub struct FromIpSummaryDump {
    args: Args,
    reader: Option<SummaryReader>,
    random: Random,
    draft: Draft,
    /// Of a record for several packets: the next one, and how many they are.
    part: Option<(u32, u32)>,
    data: Vec<u8>,
    /// A packet that was made but must wait for its time.
    ready: Option<Packet>,
    /// TIMING: router time minus trace time.
    shift: Option<i64>,
    replay: Replay,
    broken: bool,
}

/// Arguments of FromIPSummaryDump.
#[derive(Args)]
pub struct Args {
    /// The file; `-` is the standard input.
    #[arg(handler = "r")]
    filename: Option<Filename>,
    /// Whether the driver is asked to stop at the end.
    #[arg(keyword, default = false)]
    stop: bool,
    /// When false, no packets come.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
    /// Understood for old configurations; bytes that nothing is known of are always zero.
    #[arg(keyword, name = "ZERO", default = true)]
    _zero: bool,
    /// Whether packets come as far apart as their timestamps.
    #[arg(keyword, default = false)]
    timing: bool,
    /// Whether packets have all their bytes, and right checksums.
    #[arg(keyword, default = false)]
    checksum: bool,
    /// The probability that a packet is emitted.
    #[arg(keyword, default = Probability(1.0), show = "1", handler = "r", handler_name = "sampling_prob")]
    sample: Probability,
    /// The protocol of packets of which the dump says none.
    #[arg(keyword, default = Protocol(6), show = "TCP")]
    proto: Protocol,
    /// Whether a record that stands for several packets makes them all.
    #[arg(keyword, default = false)]
    multipacket: bool,
    /// The fields of a line until the dump says them.
    #[arg(keyword, alias = "CONTENTS", alias = "DEFAULT_CONTENTS", alias = "DEFAULT_FIELDS")]
    fields: Option<FieldList>,
    /// Addresses and ports of packets of which the dump says none.
    #[arg(keyword, alias = "DEFAULT_FLOWID")]
    flowid: Option<FlowId>,
    /// Whether a file that does not exist is an empty one.
    #[arg(keyword, default = false)]
    allow_nonexistent: bool,
    /// The dump itself, in place of a file.
    #[arg(keyword)]
    data: Option<Data>,
}

impl Build for FromIpSummaryDump {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        match (&args.filename, &args.data) {
            (None, None) => return Err("FILENAME: required argument missing".into()),
            (Some(_), Some(_)) => return Err("specify at most one of FILENAME and DATA".into()),
            _ => {}
        }
        Ok(FromIpSummaryDump {
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
}

impl FromIpSummaryDump {
    fn reader(&self) -> Result<&SummaryReader, String> {
        self.reader.as_ref().ok_or_else(|| "the file is not open".into())
    }
    fn open(&self) -> Result<SummaryReader, CaptureError> {
        let mut reader = match (&self.args.filename, &self.args.data) {
            (Some(name), _) => match SummaryReader::open(&name.0) {
                Err(CaptureError::Io { source, .. })
                    if self.args.allow_nonexistent && source.kind() == std::io::ErrorKind::NotFound =>
                {
                    SummaryReader::from_bytes(&name.0, "")?
                }
                other => other?,
            },
            (None, data) => SummaryReader::from_bytes("<data>", data.clone().unwrap_or_default().0)?,
        };
        reader.defaults_mut().protocol = self.args.proto.0;
        if let Some(flow) = &self.args.flowid {
            flow.0.put(reader.defaults_mut());
        }
        if let Some(fields) = &self.args.fields {
            reader.set_fields(fields.0.clone());
        }
        Ok(reader)
    }

    /// Finds the next record, or the next packet of the last one; none at the end of the dump, or when much is left out.
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
                    let parts = if self.args.multipacket { self.draft.count().max(1) } else { 1 };
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

    /// The packet of a record; none when no buffer is free.
    fn make(&mut self, part: (u32, u32)) -> Option<Packet> {
        let making = Making { checksum: self.args.checksum, most: MOST_DATA, part };
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

impl Source for FromIpSummaryDump {
    fn replay(&self) -> &Replay {
        &self.replay
    }
    fn is_active(&self) -> bool {
        self.args.active
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
            let sample = self.args.sample.0;
            let reason = if sample < 1.0 && self.random.unit() >= sample {
                Reason::Sampled
            } else if let Some(p) = self.make(part) {
                break p;
            } else {
                Reason::NoBuffer
            };
            let me = cx.me();
            cx.core().count_drops(me, reason, 1);
            skipped = skipped.saturating_add(1);
            if skipped >= MOST_SKIPPED {
                return Next::Pause;
            }
        };
        if self.args.timing {
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
        if self.replay.end(cx) && self.args.stop {
            cx.stop(1);
        }
    }
}

impl Element for FromIpSummaryDump {
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

#[handlers]
impl FromIpSummaryDump {
    /// The link type of packets: `IP`.
    #[read]
    fn encap(&self) -> &'static str {
        "IP"
    }
    /// Bytes of the file; `-` when unknown.
    #[read(unit = "bytes")]
    fn filesize(&self) -> Result<String, String> {
        Ok(self.reader()?.filesize().map_or("-".into(), |n| n.to_string()))
    }
    /// Byte position of the next line.
    #[read(unit = "bytes")]
    fn filepos(&self) -> Result<u64, String> {
        Ok(self.reader()?.filepos())
    }
    /// Makes the element inactive and asks the driver to stop.
    #[write(button)]
    fn stop(&mut self, cx: &mut Cx<'_>) {
        self.args.active = false;
        self.replay.sleep(cx);
        cx.stop(1);
    }
    /// Lines and records that could not be read.
    #[read(unit = "lines")]
    fn bad_lines(&self) -> Result<Counted, String> {
        Ok(Counted(self.reader()?.bad_lines()))
    }
    /// Fields that could not be read.
    #[read(unit = "fields")]
    fn bad_fields(&self) -> Result<Counted, String> {
        Ok(Counted(self.reader()?.bad_fields()))
    }
}

impl Lifecycle for FromIpSummaryDump {
    fn held(&self) -> u64 {
        u64::from(self.ready.is_some())
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), String> {
        if !cx.inherits() {
            self.reader = Some(self.open().map_err(|e| e.to_string())?);
        }
        self.replay.initialise(self.args.active, cx);
        Ok(())
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), String> {
        // The output is not that of the whole file, so the run has failed.
        let name = self.args.filename.as_ref().map_or("<data>", |f| &f.0);
        if self.broken { Err(format!("{name}: not read to its end")) } else { Ok(()) }
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        self.wake(cx);
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        if self.args.stop { Effects::STOPS } else { Effects::empty() }
    }
    fn holds(&self) -> Option<String> {
        self.args.filename.as_ref().and_then(|name| handover::once_readable(&name.0))
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), String> {
        self.take_state(old, cx)
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), String> {
        if old.args.filename != self.args.filename || old.args.data != self.args.data || old.reader.is_none()
        {
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
