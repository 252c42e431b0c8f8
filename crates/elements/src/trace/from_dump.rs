// SPDX-License-Identifier: MIT OR Apache-2.0
//! FromDump: emits the packets of a capture file.

pub(super) mod args;
mod handlers;
mod link;
#[cfg(test)]
mod tests;

use super::replay::{Next, Replay, Source};
use crate::handover;
use castanet_element::prelude::*;
use castanet_io::{CaptureReader, LinkType};
use castanet_packet::{DEFAULT_HEADROOM, MAX_LENGTH};
use castanet_spec::anno;

/// The maximum number of frames that are skipped in one turn. The limit lets other tasks have their turns.
const MOST_SKIPPED: u32 = 1024;

/// Emits the packets of a capture file.
///
/// The file is pcap (both byte orders, micro- and nanoseconds) or pcapng, plain or compressed by gzip, bzip2 or xz; `-`
/// is the standard input.
///
/// The timestamp of a packet is the time of its capture. The extra length annotation counts the bytes that were not
/// captured. The MAC header is marked if the link type has one, and the IPv4 network header is marked for raw IP or
/// with FORCE_IP. In a Linux "cooked" capture, the packet type annotation comes from the link header. In all other
/// captures it is "to this host"; HostEtherFilter sets it from Ethernet addresses.
///
/// Without TIMING, packets are emitted as fast as possible. With TIMING, they are emitted at the intervals at which
/// they were captured. START skips all packets before the first one that was captured at that time or later. At END the
/// element stops, as it does at the end of the file. A write to `extend_interval` moves END, and the element continues.
/// If a file is cut off within its last record, that record is left out, with a message. At the end, after all packets
/// were emitted, STOP requests a stop of the router, or END_CALL is called.
///
/// # Ports
/// No inputs. Output 0: packets, push or pull. Output 1 (optional): with FORCE_IP, packets that are not IPv4. Without
/// output 1 they are dropped.
///
/// # Example
/// ```click
/// FromDump(conf/traces/ip-router-eth0.pcap, STOP true, FORCE_IP true) -> IPPrint(read) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(enters, holds))]
#[class(name = "FromDump", ports = "0/1-2", processing = "a/ah", packets = "/any", workers = exclusive, build, lifecycle, handlers)]
#[class(task, capabilities(EmptyNotifier), effects(calls, stops))]
#[class(
    drops(Sampled, OutsideTime, NotIp, TooLong, NoBuffer, Cleared),
    takes_state = "the open file and the place in it"
)]
#[class(packets_if("FORCE_IP true", "/any marked, any"))]
pub struct FromDump {
    args: args::Args,
    /// Packets emitted.
    #[count(unit = "packets")]
    count: Count,
    reader: Option<CaptureReader>,
    random: Random,
    /// A packet that was read but must wait until it is due, or until END is moved.
    ready: Option<Packet>,
    /// Whether the first packet of the file was seen. Relative times count from that packet.
    begun: bool,
    start: Option<i64>,
    end: Option<i64>,
    /// By how much END was moved before the first packet was seen, in nanoseconds.
    extended: i64,
    /// With TIMING, router time minus trace time, in nanoseconds.
    shift: Option<i64>,
    replay: Replay,
    /// Whether the file could not be read to its end.
    broken: bool,
    /// Whether a message has said that the file is cut off.
    cut_reported: bool,
}

impl Build for FromDump {
    fn build(args: args::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(FromDump {
            count: Count::default(),
            reader: None,
            random: cx.random(),
            ready: None,
            begun: false,
            start: None,
            end: None,
            extended: 0,
            shift: None,
            replay: Replay::new(cx),
            broken: false,
            cut_reported: false,
            args,
        })
    }
}

impl FromDump {
    /// Sets `start` and `end`. `first` is the time of the first packet of the file.
    fn begin(&mut self, first: i64) {
        let after = |t: Option<Nanos>| t.map(|t| first.saturating_add(t.0));
        let at = |t: Option<Nanos>| t.map(|t| t.0);
        self.begun = true;
        self.start = at(self.args.start).or(after(self.args.start_after));
        let interval = self.args.interval.map(|t| self.start.unwrap_or(first).saturating_add(t.0));
        self.end = at(self.args.end).or(after(self.args.end_after)).or(interval);
        self.end = self.end.map(|e| e.saturating_add(self.extended));
    }

    /// Returns the reason why a packet is skipped; `None` if it is to be emitted.
    fn left_out(&mut self, time: i64) -> Option<Reason> {
        if self.start.is_some_and(|s| time < s) {
            return Some(Reason::OutsideTime);
        }
        // Once a packet has reached START, later packets are accepted even if their timestamps are before START.
        self.start = None;
        let sample = self.args.sample.0;
        (sample < 1.0 && self.random.unit() >= sample).then_some(Reason::Sampled)
    }

    /// Reads the next packet that is to be emitted, without regard to END and TIMING. Returns `None` at the
    /// end of the file, or when too many frames were skipped.
    fn read(&mut self, skipped: &mut u32, cx: &mut Cx<'_>) -> Option<Packet> {
        while *skipped < MOST_SKIPPED {
            let frame = match self.reader.as_mut()?.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    self.report_cut(cx);
                    return None;
                }
                Err(e) => {
                    cx.message(&format!("{}: {e}", cx.declaration()));
                    self.broken = true;
                    return None;
                }
            };
            let (link, time, original) = (frame.link, frame.time_ns, frame.original_len);
            let packet = match Packet::copy_of(frame.data) {
                Some(p) => Ok(p),
                None if frame.data.len() + DEFAULT_HEADROOM > MAX_LENGTH => Err(Reason::TooLong),
                None => Err(Reason::NoBuffer),
            };
            if !self.begun {
                self.begin(time);
            }
            cx.entered(1);
            let reason = match (self.left_out(time), packet) {
                (Some(reason), _) | (None, Err(reason)) => reason,
                (None, Ok(mut p)) => {
                    annotate(&mut p, link, time, original);
                    if !self.args.force_ip || mark_ip(&mut p, link) {
                        return Some(p);
                    }
                    *skipped = skipped.saturating_add(1);
                    cx.emit_or(1, p, Reason::NotIp);
                    continue;
                }
            };
            *skipped = skipped.saturating_add(1);
            cx.count_drops(reason, 1);
        }
        None
    }

    /// If the file ends inside a record, prints a message, but only the first time.
    fn report_cut(&mut self, cx: &Cx<'_>) {
        let Some(reader) = self.reader.as_ref().filter(|r| r.truncated()) else { return };
        if !std::mem::replace(&mut self.cut_reported, true) {
            let (who, file) = (cx.declaration(), reader.name());
            cx.message(&format!("{who}: warning: {file}: cut in its last record, which is left out"));
        }
    }
}

/// Sets the annotations of a packet from its record in the trace.
fn annotate(p: &mut Packet, link: LinkType, time: i64, original: u32) {
    p.set_timestamp(time);
    let missing = original.saturating_sub(u32::try_from(p.len()).unwrap_or(u32::MAX));
    if missing > 0 {
        p.set_anno_u32(anno::EXTRA_LENGTH, missing);
    }
    let kind = link::packet_type(link, p.data());
    p.set_packet_type(kind);
    if link.is_raw_ip() {
        mark_ip(p, link);
    } else {
        p.set_mac_header(0);
    }
}

/// Marks the IPv4 header. Returns false if there is none.
fn mark_ip(p: &mut Packet, link: LinkType) -> bool {
    let Some((offset, length)) = link::ipv4_header(link, p.data()) else { return false };
    p.set_network_header(offset, length);
    true
}

impl Source for FromDump {
    fn replay(&self) -> &Replay {
        &self.replay
    }
    fn is_active(&self) -> bool {
        self.args.active
    }
    fn next(&mut self, cx: &mut Cx<'_>) -> Next {
        let mut skipped = 0;
        let p = match self.ready.take() {
            Some(p) => p,
            None => match self.read(&mut skipped, cx) {
                Some(p) => p,
                None if skipped >= MOST_SKIPPED => return Next::Pause,
                None => return Next::End,
            },
        };
        if self.end.is_some_and(|e| p.timestamp() >= e) {
            self.ready = Some(p);
            return Next::End;
        }
        if self.args.timing {
            let now = cx.now();
            let shift = *self.shift.get_or_insert(now.saturating_sub(p.timestamp()));
            let due = p.timestamp().saturating_add(shift);
            if due > now {
                self.ready = Some(p);
                return Next::Later(due);
            }
        }
        self.count.add(1);
        Next::Packet(p)
    }
    fn finish(&mut self, cx: &mut Cx<'_>) {
        if !self.replay.end(cx) {
            return;
        }
        if self.args.stop {
            cx.stop(1);
        }
        if let Some(call) = &self.args.end_call {
            cx.call(call);
        }
    }
}

impl Element for FromDump {
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

impl Lifecycle for FromDump {
    fn held(&self) -> u64 {
        u64::from(self.ready.is_some())
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if !cx.inherits() {
            let mut reader = CaptureReader::open(&self.args.filename.0).map_err(ElementError::refused)?;
            if self.args.filepos > 0 {
                reader.seek(self.args.filepos).map_err(ElementError::refused)?;
            }
            self.reader = Some(reader);
        }
        self.replay.initialise(self.args.active, cx);
        Ok(())
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        // The file could not be read to its end, so the run has failed.
        if self.broken {
            Err(ElementError::Incomplete(format!("{}: not read to its end", self.args.filename.0)))
        } else {
            Ok(())
        }
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.wake(cx);
        Ok(())
    }
    fn effects(&self, _: Effects) -> Effects {
        let if_so = |yes, effect| if yes { effect } else { Effects::empty() };
        if_so(self.args.stop, Effects::STOPS).union(if_so(self.args.end_call.is_some(), Effects::CALLS))
    }
    fn holds(&self) -> Option<String> {
        handover::once_readable(&self.args.filename.0)
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.take_state(old, cx)
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if old.args.filename != self.args.filename || old.reader.is_none() {
            return Ok(());
        }
        self.reader = old.reader.take();
        self.ready = old.ready.take();
        self.random = old.random.clone();
        let asked = |a: &args::Args| [a.start, a.start_after, a.end, a.end_after, a.interval];
        if asked(&self.args) == asked(&old.args) {
            (self.begun, self.start, self.end) = (old.begun, old.start, old.end);
            (self.extended, self.replay.finished) = (old.extended, old.replay.finished);
        }
        self.shift = old.shift;
        self.broken = std::mem::take(&mut old.broken);
        self.wake(cx);
        Ok(())
    }
}
