// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connection, as its application sees it.

use super::{Connection, Flow, Memory};
use crate::application::Tally;
use crate::local::{Local, Place, Poller};
use std::cell::OnceCell;
use std::io;

/// The calls that an application has made on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// It has read or written, so there may be something to send.
    pub(super) moved: bool,
    pub(super) close: bool,
    /// The data that it has written ends with urgent data.
    pub(super) urgent: bool,
    pub(super) abort: bool,
}

/// A connection, as its application sees it.
pub struct Stream<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) memory: &'a Memory,
    pub(super) tally: &'a Tally,
    /// The size of the send buffer.
    pub(super) sndbuf: usize,
    pub(super) done: Done,
    pub(super) poller: &'a OnceCell<Poller>,
    /// The number of the connection.
    pub(super) number: u32,
}

impl Stream<'_> {
    /// The addresses and ports.
    pub fn flow(&self) -> Flow {
        self.connection.flow
    }
    /// Whether the connection is established, or was.
    pub fn is_connected(&self) -> bool {
        self.connection.connected
    }
    /// The bytes that can be read, in two parts.
    pub fn data(&self) -> (&[u8], &[u8]) {
        self.connection.receive.as_slices()
    }
    /// The number of bytes that can be read.
    pub fn available(&self) -> usize {
        self.connection.receive.len()
    }
    /// Whether the peer has no more data and all of it was read.
    pub fn is_at_end(&self) -> bool {
        self.connection.at_end && self.connection.receive.is_empty()
    }
    /// Removes the first bytes of the data, at most as many as there are. Returns their number.
    pub fn consume(&mut self, n: usize) -> usize {
        let n = self.connection.receive.consume(n, self.memory);
        self.connection.urgent = self.connection.urgent.saturating_sub(n);
        self.memory.give_back(n);
        self.tally.received.add(n as u64);
        self.done.moved |= n > 0;
        if self.connection.receive.is_empty() {
            self.done.close |= std::mem::take(&mut self.connection.closes_later);
        }
        n
    }
    /// How many bytes can be written now. The application runs again when there is room for more.
    pub fn room(&mut self) -> usize {
        if self.connection.closed {
            return 0;
        }
        let room = self.sndbuf.saturating_sub(self.connection.send.len());
        let left = self.memory.left();
        self.connection.starved = left < room;
        room.min(left)
    }
    /// Writes the first bytes of `data`, as many as there is room for. Returns their number.
    pub fn write(&mut self, data: &[u8]) -> usize {
        let n = data.len().min(self.room());
        self.connection.send.write(data.get(..n).unwrap_or_default(), self.memory);
        self.wrote(n);
        n
    }
    /// Writes `n` bytes, as many of them as there is room for, by a function of their positions. Returns their number.
    pub fn generate(&mut self, n: usize, byte: impl Fn(usize) -> u8) -> usize {
        let n = n.min(self.room());
        self.connection.send.generate(n, byte, self.memory);
        self.wrote(n);
        n
    }
    /// Writes the data that can be read, as much as there is room for.
    pub fn echo(&mut self) {
        let n = self.available().min(self.room());
        let Connection { send, receive, .. } = &mut *self.connection;
        let (first, second) = receive.as_slices();
        let (from_first, from_second) = (n.min(first.len()), n.saturating_sub(first.len()));
        send.write(first.get(..from_first).unwrap_or_default(), self.memory);
        if from_second > 0 {
            send.write(second.get(..from_second).unwrap_or_default(), self.memory);
        }
        self.wrote(n);
        self.consume(n);
    }
    fn wrote(&mut self, n: usize) {
        self.memory.take(n);
        self.tally.sent.add(n as u64);
        self.done.moved |= n > 0;
    }
    /// The number of bytes, from the first one that can be read, up to the end of the urgent data, which may not have arrived
    /// yet; 0 if there is none (RFC 9293, section 3.8.5). Urgent data stays in the stream (RFC 6093).
    pub fn urgent(&self) -> usize {
        self.connection.urgent
    }
    /// Tells the peer that what was written so far ends with urgent data. RFC 6093 advises new applications against it.
    pub fn mark_urgent(&mut self) {
        self.done.urgent = true;
    }
    /// Whether the peer leaves retransmissions unanswered (R1 of RFC 9293, section 3.8.3). The application runs when this begins; the
    /// connection goes on until the user timeout.
    pub fn is_unanswered(&self) -> bool {
        self.connection.unanswered
    }
    /// Sets the Differentiated Services codepoint of the packets from now on, of which the lowest six bits count.
    pub fn set_dscp(&mut self, dscp: u8) {
        self.connection.service = self.connection.service.with_dscp(dscp);
    }
    /// The bytes that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.connection.send.len()
    }
    /// Ends the data of this end. What was written is still sent, and what the peer sends can be read: all of it if the peer has closed
    /// before, and else until TIME-WAIT is over.
    pub fn close(&mut self) {
        let c = &mut *self.connection;
        if !std::mem::replace(&mut c.closed, true) {
            c.closes_later = c.at_end && !c.receive.is_empty();
            self.done.close |= !c.closes_later;
        }
    }
    /// Begins to connect a local socket. The application runs whenever it is ready.
    pub fn connect_local(&mut self, to: &Place) -> io::Result<Local> {
        let poller = match self.poller.get() {
            Some(poller) => poller,
            None => {
                let new = Poller::new()?;
                self.poller.get_or_init(|| new)
            }
        };
        Local::connect(to, poller, self.number)
    }
    /// Ends the connection at once. The peer gets a RST.
    pub fn abort(&mut self) {
        self.done.abort = true;
    }
}
