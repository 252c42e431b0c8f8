// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMPPingSource: sends echo requests at a fixed interval, and receives the replies.

mod statistics;
#[cfg(test)]
mod tests;

use super::encap::{Message, word};
use super::icmp_ping_responder::answer;
use crate::ip::numbers::{Identifier, Numbers};
use crate::source::{Ended, PeriodicTimer, is_reached};
use crate::transport::segment;
use castanet_element::prelude::*;
use castanet_wire::icmp::{IcmpHeader, kind};
use castanet_wire::ipv4::protocol::ICMP;
use statistics::{RoundTrip, Statistics};
use std::net::Ipv4Addr;

/// Sends ICMP echo requests (RFC 792) and measures how long replies take.
///
/// The first request is sent one INTERVAL after the start. Sequence numbers count up from 1. The IP identification
/// counts up with them, from an unpredictable number (from 1 with `--seed`). The time to live is 255. After LIMIT
/// requests no more are sent. With STOP, the driver is stopped one INTERVAL after the last request. A reply on input 0
/// counts if it has the right identifier and its request has not been answered yet. With `VERBOSE`, a line is printed
/// for each such reply, and a summary at the end. With MIRROR and a push output, echo requests on input 0 are turned
/// into replies, which leave on output 0. All other packets on input 0 are dropped. If output 0 is pull, a request that
/// is due leaves with the next pull.
///
/// # Ports
/// Input 0 (optional): IP packets with marked network header. Output 0: echo requests.
///
/// # Example
/// ```click
/// ping :: ICMPPingSource(10.0.0.1, 10.0.0.2, INTERVAL 0.01, LIMIT 3, STOP true)
///     -> ICMPPingResponder -> [0] ping;
/// ```
#[derive(Class)]
#[class(ledger(enters))]
#[class(
    name = "ICMPPingSource",
    aliases("ICMPSendPings"),
    ports = "0-1/1",
    processing = "h/a",
    packets = "ip/ip"
)]
#[class(
    takes_state = "the round trip times, the sequence number, an identifier that is not named, the time of the next request"
)]
#[class(workers = exclusive, drops(Consumed, Discarded, NoIpHeader), effects(prints, stops), build, lifecycle, handlers)]
#[class(capabilities(EmptyNotifier))]
pub struct IcmpPingSource {
    args: Args,
    /// Requests sent.
    #[count(unit = "packets")]
    count: Count,
    #[counts]
    statistics: Statistics,
    numbers: Numbers,
    identifier: Identifier,
    timer: PeriodicTimer,
    /// The number of requests that are due but have not been pulled yet. Used on a pull output only.
    due: u64,
    push: bool,
    ended: Ended,
    /// Whether the first request has become due, in this router or, before a hot swap, in the old router.
    began: bool,
    /// The notifier for tasks that pull. It is on while a request is due.
    note: Option<Note>,
}

/// Arguments of ICMPPingSource.
#[derive(Args)]
pub struct Args {
    /// Source address.
    #[arg(handler = "rw")]
    src: Ipv4Addr,
    /// Destination address.
    #[arg(handler = "rw")]
    dst: Ipv4Addr,
    /// The time from one request to the next.
    #[arg(keyword, default = Nanos(1_000_000_000), min = Nanos::SHORTEST_PERIOD, show = "1", handler = "w")]
    interval: Nanos,
    /// Identifier of the requests; by default it is unpredictable, or 0 with `--seed`.
    #[arg(keyword)]
    identifier: Option<u16>,
    /// The data after the ICMP header of each request.
    #[arg(keyword, default = Data::default(), show = "")]
    data: Data,
    /// How many requests to send; negative for no limit.
    #[arg(keyword, default = -1, handler = "w")]
    limit: i64,
    /// Whether requests are sent.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
    /// Whether to print a line for each reply, and a summary at the end.
    #[arg(keyword, default = true)]
    verbose: bool,
    /// Whether to stop the driver one INTERVAL after the last of LIMIT requests.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Whether echo requests on input 0 are answered, which works only if output 0 is push.
    #[arg(keyword, default = false)]
    mirror: bool,
}

impl Build for IcmpPingSource {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.data.0.len() > 65_507 {
            return Err("DATA: longer than the 65507 bytes that a packet can carry".into());
        }
        let (count, statistics, timer, ended) = Default::default();
        let push = cx.is_push_output(0);
        let (numbers, identifier) = (Numbers::new(cx, 1), Identifier::new(args.identifier, cx));
        let (due, began, note) = (0, false, None);
        Ok(IcmpPingSource {
            args,
            count,
            statistics,
            numbers,
            identifier,
            timer,
            due,
            push,
            ended,
            began,
            note,
        })
    }
}

impl IcmpPingSource {
    fn is_done(&self) -> bool {
        is_reached(self.args.limit, self.count.get().saturating_add(self.due))
    }

    /// Called after a handler has changed settings or counts. Sets the timer if it is not set and more requests are to
    /// be sent.
    fn go_on(&mut self, cx: &mut Cx<'_>) {
        let is_done = self.is_done();
        self.ended.resume(is_done);
        if self.args.active && !is_done {
            self.timer.start(self.args.interval.0, cx);
        }
    }

    /// Turns the notifier on if a request is due, and off if not.
    fn notify(&self, cx: &mut Cx<'_>) {
        match self.note {
            Some(note) if self.due > 0 => cx.set_note(note),
            Some(note) => cx.clear_note(note),
            None => {}
        }
    }

    /// Makes the next request, and records the current time as its sending time. None if no buffer is free, or if the
    /// request would be too long.
    fn request(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let Args { src, dst, data, .. } = &self.args;
        let mut p = Packet::copy_of(&data.0)?;
        let sequence = self.numbers.peek();
        let word = word(kind::ECHO, self.identifier.get(), sequence);
        let message = Message { src: *src, dst: *dst, kind: (kind::ECHO, 0), word, id: self.numbers.id() };
        if !message.wrap(&mut p) {
            return None;
        }
        let now = cx.now();
        p.set_timestamp(now);
        self.statistics.sent(sequence, now);
        self.numbers.advance();
        self.count.add(1);
        cx.entered(1);
        Some(p)
    }

    /// If a packet is a reply to a request that was not answered yet, records the reply and prints a line about it.
    /// Returns false for any other packet.
    fn received(&mut self, p: &Packet, cx: &mut Cx<'_>) -> bool {
        let Some((ip, message)) = p.network().and_then(segment) else { return false };
        let Some(h) = IcmpHeader::from_prefix(message).filter(|h| h.kind == kind::ECHO_REPLY) else {
            return false;
        };
        if ip.protocol != ICMP || ip.is_fragment() || h.id() != self.identifier.get() {
            return false;
        }
        let now = cx.now();
        let Some(trip) = self.statistics.received(h.sequence(), now) else { return false };
        if self.args.verbose {
            let (bytes, from) =
                (message.len().saturating_sub(IcmpHeader::LEN), Ipv4Addr::from_bits(ip.src.get()));
            cx.message(&format!(
                "{}: {bytes} bytes from {from}: icmp_seq={} ttl={} time={:.3} ms",
                cx.declaration(),
                h.sequence(),
                ip.ttl,
                trip as f64 / 1e6
            ));
        }
        true
    }
}

#[handlers]
impl IcmpPingSource {
    /// Numbers of requests sent and replies received, and the round trip times.
    #[read]
    fn summary(&self) -> Table {
        Table(self.statistics.summary(self.count.get()))
    }
    /// The shortest round trip time.
    #[read]
    fn rtt_min(&self) -> RoundTrip {
        RoundTrip(self.statistics.min())
    }
    /// The mean round trip time.
    #[read]
    fn rtt_avg(&self) -> RoundTrip {
        RoundTrip(self.statistics.mean())
    }
    /// The longest round trip time.
    #[read]
    fn rtt_max(&self) -> RoundTrip {
        RoundTrip(self.statistics.max())
    }
    /// Sets all counts to 0, and ignores replies to the requests sent so far.
    #[write(button)]
    fn reset_counts(&mut self, cx: &mut Cx<'_>) {
        self.count.reset();
        self.statistics = Statistics::default();
        self.go_on(cx);
    }
}

impl Lifecycle for IcmpPingSource {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.note = cx.note(Capability::EmptyNotifier);
        if self.args.active {
            cx.with_cx(|cx| self.timer.start(self.args.interval.0, cx));
        }
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        // After a hot swap, the new router prints the summary. A router that never ran prints none.
        if self.args.verbose && self.began {
            for line in self.statistics.summary(self.count.get()).lines() {
                cx.message(&format!("{}: {line}", cx.declaration()));
            }
        }
        Ok(())
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.go_on(cx);
        Ok(())
    }
    /// Only printing requires that packets be processed one by one. The other declared effect is to stop the driver,
    /// which happens in the timer and not while packets are processed.
    fn effects(&self, _: Effects) -> Effects {
        if self.args.verbose { Effects::PRINTS } else { Effects::empty() }
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.statistics.take(&mut old.statistics);
        self.due = old.due;
        self.numbers.go_on_from(old.numbers);
        self.identifier.go_on_from(old.identifier);
        self.began |= std::mem::take(&mut old.began);
        self.notify(cx);
        let is_done = self.is_done();
        self.ended.go_on_from(old.ended, is_done);
        if self.args.active {
            self.timer.go_on_from(&old.timer, cx);
        }
        Ok(())
    }
}

impl Element for IcmpPingSource {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.began = true;
        let Some(due) = self.timer.expired().filter(|_| self.args.active) else { return };
        if self.is_done() {
            return self.ended.stop(self.args.stop, cx);
        }
        if !self.push {
            self.due += 1;
            self.notify(cx);
        } else if let Some(p) = self.request(cx) {
            cx.emit(0, p);
        }
        self.timer.set_after(due, self.args.interval.0, cx);
    }
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let mut all = std::mem::replace(batch, Batch::empty());
        for mut p in all.drain() {
            if self.received(&p, cx) {
                cx.drop(p, Reason::Consumed);
            } else if self.args.mirror && self.push && answer(&mut p, cx).is_ok() {
                cx.emit(0, p);
            } else {
                cx.drop(p, Reason::Discarded);
            }
        }
        *batch = all;
    }
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..max {
            if self.due == 0 {
                break;
            }
            self.due -= 1;
            into.extend(self.request(cx));
        }
        self.notify(cx);
    }
}
