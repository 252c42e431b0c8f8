// SPDX-License-Identifier: MIT OR Apache-2.0
//! Socket at run time: makes and ends connections, receives and sends packets.

use super::{Link, Socket};
use crate::device::socket_pump::Flow;
use castanet_element::prelude::*;
use castanet_io::socket::{Accepted, Datagrams, Stream};
use std::io;
use std::time::Duration;

impl Socket {
    fn say(&self, what: std::fmt::Arguments<'_>, cx: &Cx<'_>) {
        if self.args.verbose {
            cx.message(&format!("{}: {what}", cx.declaration()));
        }
    }

    /// Closes the connection. If the connection broke off, `error` is the reason, and is reported.
    #[cold]
    fn close(&mut self, error: Option<io::Error>, cx: &mut Cx<'_>) {
        self.pump.detach(cx);
        self.pump.clear(Reason::NotConnected, cx);
        if let Link::Stream(s) | Link::Ending(s) = std::mem::replace(&mut self.link, Link::None) {
            // The descriptor itself stays open until the run loop drops it.
            s.end();
        }
        match error {
            Some(e) => {
                self.failures.add(1);
                self.pump.report(&e, self.args.verbose, cx);
            }
            None => self.say(format_args!("connection closed"), cx),
        }
    }

    /// Accepts or refuses a client that wants to connect. Returns whether there was a client.
    fn accept(&mut self, cx: &mut Cx<'_>) -> bool {
        let (Some(listener), tables) = (&mut self.listener, self.tables) else { return false };
        match listener.accept(|a| tables.let_in(a, cx)) {
            Accepted::Stream(stream, from) => {
                self.pump.detach(cx);
                self.connections.add(1);
                self.link = Link::Stream(stream);
                match from {
                    Some(a) => self.say(format_args!("connection from {a}"), cx),
                    None => self.say(format_args!("connection"), cx),
                }
                true
            }
            Accepted::Refused(from) => {
                self.refused.add(1);
                if let Some(a) = from {
                    self.say(format_args!("connection from {a} refused"), cx);
                }
                true
            }
            Accepted::Nothing => {
                self.pump.wait_for(listener.readable(), cx);
                false
            }
            Accepted::Failed(e) => {
                self.failures.add(1);
                self.pump.report(&e, self.args.verbose, cx);
                self.pump.wait_a_while(cx);
                false
            }
        }
    }

    /// Continues a connection attempt. Returns whether the connection is established now.
    fn connect(&mut self, stream: Stream, cx: &mut Cx<'_>) -> bool {
        match stream.finish(Duration::ZERO) {
            Ok(true) => {
                self.pump.detach(cx);
                self.connections.add(1);
                self.link = Link::Stream(stream);
                self.say(format_args!("connected"), cx);
                true
            }
            Ok(false) => {
                self.pump.wait_to_write(&stream, cx);
                self.link = Link::Connecting(stream);
                false
            }
            Err(e) => {
                self.close(Some(e), cx);
                false
            }
        }
    }

    /// Runs one turn on a connection: receives, pulls and sends.
    fn turn(&mut self, mut stream: Stream, ending: bool, cx: &mut Cx<'_>) -> Turn {
        let verbose = self.args.verbose;
        let received = match (ending, self.pump.has_output()) {
            (true, _) => Flow::Closed(None),
            (false, true) => self.pump.receive(&mut stream, |_, _| true, verbose, cx),
            // Without an output, data stays in the socket, but the end of the connection is still noticed.
            (false, false) if stream.is_over() => Flow::Closed(None),
            (false, false) => {
                if !stream.has_data() {
                    self.pump.wait_to_read(&stream, cx);
                }
                Flow::Idle
            }
        };
        let sent = match received {
            // Waiting packets are still sent, but nothing more is pulled.
            Flow::Closed(None) => self.pump.send(&mut stream, verbose, cx),
            Flow::Closed(error) => {
                self.link = Link::Stream(stream);
                return self.closed(error, cx);
            }
            _ => self.pump.pull_and_send(&mut stream, verbose, cx),
        };
        let over = matches!(received, Flow::Closed(_));
        self.link = if over { Link::Ending(stream) } else { Link::Stream(stream) };
        match (received, sent) {
            (_, Flow::Closed(error)) => self.closed(error, cx),
            (Flow::Closed(_), _) if self.pump.is_empty() => self.closed(None, cx),
            (Flow::Closed(_) | Flow::Idle, Flow::Idle) => Turn::Sleep,
            _ => Turn::Again,
        }
    }

    /// Closes the connection. Returns what the task does next: the task of a server runs again immediately, because the
    /// next client may be waiting.
    fn closed(&mut self, error: Option<io::Error>, cx: &mut Cx<'_>) -> Turn {
        self.close(error, cx);
        if self.listener.is_some() { Turn::Again } else { Turn::Sleep }
    }

    /// Runs one turn on a datagram socket: receives, pulls and sends.
    fn exchange(&mut self, mut datagrams: Datagrams, cx: &mut Cx<'_>) -> Turn {
        let (tables, verbose) = (self.tables, self.args.verbose);
        let received = if self.pump.has_output() {
            self.pump.receive(&mut datagrams, |a, cx| tables.let_in(a, cx), verbose, cx)
        } else {
            Flow::Idle
        };
        let sent = if datagrams.has_peer() {
            self.pump.pull_and_send(&mut datagrams, verbose, cx)
        } else {
            Flow::Idle
        };
        self.refused.add(self.pump.take_refused());
        self.link = Link::Datagrams(datagrams);
        if matches!((received, sent), (Flow::Idle, Flow::Idle)) { Turn::Sleep } else { Turn::Again }
    }
}

impl Element for Socket {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if matches!(self.link, Link::None | Link::Ending(_)) {
            return cx.drop_all(batch, Reason::NotConnected);
        }
        self.pump.store(batch, cx);
        let verbose = self.args.verbose;
        let flow = match &mut self.link {
            Link::Stream(s) => self.pump.send_stored(s, verbose, cx),
            Link::Datagrams(d) => self.pump.send_stored(d, verbose, cx),
            Link::None | Link::Connecting(_) | Link::Ending(_) => return,
        };
        if let Flow::Closed(error) = flow {
            self.close(error, cx);
            cx.schedule();
        }
    }
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        match std::mem::replace(&mut self.link, Link::None) {
            Link::None => match self.accept(cx) {
                true => Turn::Again,
                false => Turn::Sleep,
            },
            Link::Connecting(stream) => match self.connect(stream, cx) {
                true => Turn::Again,
                false => Turn::Sleep,
            },
            Link::Stream(stream) => self.turn(stream, false, cx),
            Link::Ending(stream) => self.turn(stream, true, cx),
            Link::Datagrams(d) => self.exchange(d, cx),
        }
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        cx.schedule();
    }
}
