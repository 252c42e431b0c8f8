// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user of an end: it writes, reads, closes and aborts, as its schedule says.

use super::schedule::{self, Close};
use std::fmt;

/// A connection, as its user sees it.
pub trait Socket {
    /// Whether it is established, or was.
    fn is_connected(&self) -> bool;
    /// The number of bytes that can be read.
    fn available(&self) -> usize;
    /// Whether the peer has closed, and everything was read.
    fn is_at_end(&self) -> bool;
    fn read(&mut self, most: usize) -> Vec<u8>;
    /// Returns how many bytes were written.
    fn write(&mut self, data: &[u8]) -> usize;
    fn close(&mut self);
    fn abort(&mut self);
}

pub struct User {
    plan: schedule::User,
    /// It opens the connection.
    opens: bool,
    start: i64,
    data: Vec<u8>,
    expected: Vec<u8>,
    written: usize,
    read: usize,
    pub connected: bool,
    at_end: bool,
    closed: bool,
    pub aborted: bool,
    next_read: i64,
    next_write: i64,
    close_at: Option<i64>,
    /// When it acts by itself.
    next: Option<i64>,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let User { written, read, connected, at_end, closed, aborted, .. } = self;
        let (all, expected) = (self.data.len(), self.expected.len());
        write!(f, "{written} of {all} written, {read} of {expected} read, connected {connected}, ")?;
        write!(f, "at end {at_end}, closed {closed}, aborted {aborted}")
    }
}

impl User {
    /// The user of an end that sends `data` and is to get `expected`.
    pub fn new(plan: schedule::User, opens: bool, start: i64, data: Vec<u8>, expected: Vec<u8>) -> User {
        User {
            plan,
            opens,
            start,
            data,
            expected,
            written: 0,
            read: 0,
            connected: false,
            at_end: false,
            closed: false,
            aborted: false,
            next_read: start + plan.read.from,
            next_write: start + plan.write.from,
            close_at: None,
            next: plan.abort.map(|a| start + a),
        }
    }
    /// All that it writes.
    pub fn data(&self) -> &[u8] {
        &self.data
    }
    /// When it acts by itself. None if only after something has happened.
    pub fn next(&self) -> Option<i64> {
        self.next
    }
    /// Whether it has read everything, and knows that it has.
    pub fn has_read_all(&self) -> bool {
        self.at_end && self.read == self.expected.len()
    }
    /// Whether it takes what it has read for everything, but it is not.
    pub fn is_at_end_too_early(&self) -> bool {
        self.at_end && self.read < self.expected.len()
    }
    /// Whether it has read and written everything.
    pub fn is_served(&self) -> bool {
        self.has_read_all() && self.closed && self.written == self.data.len()
    }
    /// There is no connection any more.
    pub fn is_over(&mut self) {
        self.next = None;
    }

    /// Does what is due. If the connection may end soon, it reads everything, because what is not read then is lost.
    pub fn act(&mut self, socket: &mut dyn Socket, now: i64, ends_soon: bool) {
        self.next = None;
        if self.aborted {
            return;
        }
        self.connected |= socket.is_connected();
        if let Some(at) = self.plan.abort.map(|a| self.start + a) {
            if at <= now && (self.opens || self.connected) {
                socket.abort();
                self.aborted = true;
                return;
            }
            if at > now {
                self.at(at);
            }
        }
        if self.connected {
            if ends_soon {
                (self.next_read, self.plan.read.bytes) = (now, usize::MAX);
            }
            self.read(socket, now);
            self.write(socket, now);
            self.close(socket, now);
        }
    }
    fn at(&mut self, time: i64) {
        self.next = Some(self.next.map_or(time, |n| n.min(time)));
    }
    fn read(&mut self, socket: &mut dyn Socket, now: i64) {
        if socket.available() > 0 && self.next_read <= now {
            let data = socket.read(self.plan.read.bytes);
            let expected = self.expected.get(self.read..self.read + data.len());
            assert!(expected == Some(&data[..]), "wrong data after {} bytes", self.read);
            self.read += data.len();
            self.next_read = now + self.plan.read.pause;
        }
        if socket.available() > 0 {
            self.at(self.next_read.max(now));
        }
        self.at_end |= socket.is_at_end();
    }
    fn write(&mut self, socket: &mut dyn Socket, now: i64) {
        let left = &self.data[self.written..];
        if !left.is_empty() && self.next_write <= now {
            let n = socket.write(&left[..left.len().min(self.plan.write.bytes)]);
            self.written += n;
            if n > 0 {
                self.next_write = now + self.plan.write.pause;
            }
        }
        if self.written < self.data.len() && self.next_write > now {
            self.at(self.next_write);
        }
    }
    fn close(&mut self, socket: &mut dyn Socket, now: i64) {
        if self.closed || self.written < self.data.len() {
            return;
        }
        let due = match self.plan.close {
            Close::After(time) => *self.close_at.get_or_insert(now + time),
            Close::AfterPeer if self.at_end => now,
            Close::AfterPeer => return,
        };
        if due <= now {
            socket.close();
            self.closed = true;
        } else {
            self.at(due);
        }
    }
}
