// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts what happens, so that the tests know that their schedules are not trivial.

use super::segment::Segment;
use castanet_wire::tcp::flag;
use std::collections::BTreeMap;

/// How often each thing has happened to an end. The first name is that of its TCP.
pub type Tally = BTreeMap<(&'static str, &'static str), u64>;

/// Why an end may send something now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Input,
    Timeout,
    User,
}

/// Watches the segments of one end. Sequence numbers are those of this end, unless it is said otherwise.
pub struct Watch {
    name: &'static str,
    /// The number after the highest one that it has sent.
    sent: Option<u32>,
    /// The number of its SYN.
    first: Option<u32>,
    /// The highest acknowledgement that has reached it.
    acknowledged: Option<u32>,
    /// The window of the last segment with that acknowledgement, and whether the last segment repeated both.
    window: u16,
    is_duplicate: bool,
    /// The highest number of the other end that has reached it.
    received: Option<u32>,
    /// The last timestamp that it has echoed.
    echoed: Option<u32>,
    /// The place of the last packet that has reached it in the order in which the packets were sent.
    last: u64,
    state: &'static str,
}

fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Watch {
    pub fn new(name: &'static str) -> Watch {
        Watch {
            name,
            sent: None,
            first: None,
            acknowledged: None,
            window: 0,
            is_duplicate: false,
            received: None,
            echoed: None,
            last: 0,
            state: "",
        }
    }
    /// The position of a segment's first byte in the data of the end, unless the other end has acknowledged it.
    pub fn position(&self, s: &Segment) -> Option<usize> {
        let is_new = self.acknowledged.is_some_and(|a| !before(s.seq(), a));
        let first = self.first.filter(|_| is_new)?.wrapping_add(1);
        Some(s.seq().wrapping_sub(first) as usize)
    }
    /// Whether a segment has the first data, or the FIN, that the other end has not acknowledged.
    pub fn is_due(&self, s: &Segment) -> bool {
        s.length() > 0 && self.acknowledged.is_none_or(|a| s.seq() == a)
    }
    /// Whether some of what the end has sent has not been acknowledged, as far as it knows.
    pub fn has_data_in_flight(&self) -> bool {
        self.acknowledged.zip(self.sent).is_some_and(|(a, sent)| before(a, sent))
    }
    pub fn count(&self, tally: &mut Tally, what: &'static str) {
        self.add(tally, what, 1);
    }
    pub fn add(&self, tally: &mut Tally, what: &'static str, n: u64) {
        *tally.entry((self.name, what)).or_default() += n;
    }
    /// The end has sent a segment.
    pub fn sends(&mut self, s: &Segment, cause: Cause, tally: &mut Tally) {
        let name = self.name;
        let mut is = |happened, what| *tally.entry((name, what)).or_default() += u64::from(happened);
        let synchronized = s.header.flags & (flag::SYN | flag::RST) == 0;
        let again = self.sent.is_some_and(|sent| before(s.seq(), sent));
        is(s.has(flag::RST), "RST");
        is(s.has(flag::SYN) && self.first == Some(s.seq()), "SYN again");
        if s.has(flag::SYN) {
            self.first = Some(s.seq());
        }
        is(s.sack, "SACK");
        is(s.timestamp.is_some() && synchronized, "timestamp");
        is(synchronized && s.header.window.get() == 0, "window closed");
        is(synchronized && s.has(flag::ECE), "congestion echoed");
        is(synchronized && s.has(flag::CWR), "window reduced");
        let acknowledged = self.acknowledged.filter(|_| synchronized);
        let before_all = acknowledged.is_some_and(|a| s.seq() == a.wrapping_sub(1));
        is(before_all && cause == Cause::Timeout, "keep-alive");
        let is_closed = acknowledged.is_some() && self.window == 0;
        is(is_closed && s.data > 0 && cause == Cause::Timeout, "window probed");
        let resent = again && !before_all && s.length() > 0 && !is_closed && synchronized;
        is(resent && cause == Cause::Timeout, "sent again after a timeout");
        is(resent && cause == Cause::Input && self.is_duplicate, "sent again after duplicates");
        let after = s.seq().wrapping_add(s.length());
        if !s.has(flag::RST) && self.sent.is_none_or(|sent| before(sent, after)) {
            is(self.sent.is_some_and(|sent| after < sent), "numbers wrapped");
            self.sent = Some(after);
        }
        if let (Some((_, echo)), true) = (s.timestamp, s.has(flag::ACK)) {
            self.echoed = Some(echo);
        }
    }
    /// A segment reaches the end.
    pub fn receives(&mut self, s: &Segment, place: u64, tally: &mut Tally) {
        let name = self.name;
        let mut is = |happened, what| *tally.entry((name, what)).or_default() += u64::from(happened);
        let old = s.timestamp.zip(self.echoed).is_some_and(|((value, _), echoed)| before(value, echoed));
        let synchronized = s.header.flags & (flag::SYN | flag::RST) == 0;
        is(old && synchronized, "old timestamp received");
        is(place < self.last, "received late");
        if self.received.is_none_or(|received| before(received, s.seq())) && synchronized {
            is(self.received.is_some_and(|received| s.seq() < received), "received wrapped numbers");
            self.received = Some(s.seq());
        }
        self.last = self.last.max(place);
        if s.has(flag::ACK) && !s.has(flag::RST) {
            let same = self.acknowledged == Some(s.ack()) && s.header.window.get() == self.window;
            self.is_duplicate = same && s.length() == 0;
            if self.acknowledged.is_none_or(|a| !before(s.ack(), a)) {
                (self.acknowledged, self.window) = (Some(s.ack()), s.header.window.get());
            }
        }
    }
    /// Records the state. Returns whether it has changed.
    pub fn state(&mut self, state: &'static str, opened: bool, tally: &mut Tally) -> bool {
        if std::mem::replace(&mut self.state, state) == state {
            return false;
        }
        match state {
            "SYN-RECEIVED" if opened => self.count(tally, "simultaneous open"),
            "CLOSING" => self.count(tally, "simultaneous close"),
            "TIME-WAIT" => self.count(tally, "TIME-WAIT"),
            _ => {}
        }
        true
    }
}
