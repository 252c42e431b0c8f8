// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connected client.

use crate::access::Access;
use crate::session::{Rules, Session, Step};
use crate::{Limits, chatter};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The service for a client, with the output that waits to be sent.
pub(super) enum Talk {
    /// A control session, which also holds its replies.
    Control(Box<Session>),
    /// The queued messages of a message server.
    Chatter(VecDeque<u8>),
}

/// A client.
pub(super) struct Peer {
    pub fd: OwnedFd,
    pub talk: Talk,
    /// The events for which the client's descriptor is registered in epoll.
    pub interest: EventFlags,
    /// Whether the client is queued to be served again even if its descriptor has no event. A client with buffered
    /// commands is queued.
    pub busy: bool,
    /// The number of bytes counted for this client in the server's total: the last result of [`Peer::holds`].
    pub held: usize,
    /// Whether the client has closed its output.
    finished: bool,
    /// Whether sending to the client has failed.
    output_broken: bool,
    /// The time at which the connection is closed even if the client has not closed its output; `None` before the last
    /// reply.
    closing: Option<Instant>,
    /// When input last arrived.
    last_input: Instant,
    /// The last time at which output was sent, or at which no output was waiting.
    last_output: Instant,
}

/// What to do with a client after [`Peer::turn`].
pub(super) enum Next {
    /// Wait for an event of the client's descriptor.
    Wait,
    /// Serve the client again after the other clients.
    Again,
    /// Close the connection.
    Close,
}

/// Largest number of commands per call of [`Peer::turn`], so that no client keeps the others waiting.
const COMMANDS: usize = 8;
/// How long the server waits, after the last reply, for the client to close its output. If the server closed a TCP
/// socket with unread input, the connection would be reset (RFC 9293, section 3.10.4), and the client might lose the
/// reply.
const LINGER: Duration = Duration::from_secs(1);

impl Peer {
    pub fn new(fd: OwnedFd, talk: Talk) -> Peer {
        let now = Instant::now();
        Peer {
            fd,
            talk,
            interest: EventFlags::empty(),
            busy: false,
            held: 0,
            finished: false,
            output_broken: false,
            closing: None,
            last_input: now,
            last_output: now,
        }
    }
    pub fn chatter(fd: OwnedFd, greeting: bool) -> Peer {
        let out = if greeting { chatter::GREETING.bytes().collect() } else { VecDeque::new() };
        Peer::new(fd, Talk::Chatter(out))
    }

    fn output(&self) -> &[u8] {
        match &self.talk {
            Talk::Control(s) => s.output(),
            Talk::Chatter(out) => out.as_slices().0,
        }
    }
    fn sent(&mut self, n: usize) {
        match &mut self.talk {
            Talk::Control(s) => s.sent(n),
            Talk::Chatter(out) => drop(out.drain(..n.min(out.len()))),
        }
    }
    /// The number of bytes buffered for the client.
    pub fn holds(&self) -> usize {
        match &self.talk {
            Talk::Control(s) => s.held(),
            Talk::Chatter(out) => out.capacity(),
        }
    }
    fn wants_input(&self) -> bool {
        let wants = match &self.talk {
            Talk::Control(s) => s.wants_input() || self.closing.is_some(),
            Talk::Chatter(_) => true,
        };
        wants && !self.finished
    }

    /// Sends as much output as the socket accepts.
    pub fn flush(&mut self) {
        loop {
            let out = self.output();
            let n = out.len();
            if n == 0 {
                self.last_output = Instant::now();
                return;
            }
            if self.output_broken {
                self.sent(n);
                continue;
            }
            match send(&self.fd, out, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(n) => {
                    self.sent(n);
                    self.last_output = Instant::now();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Stop sending, but still execute the commands that have arrived.
                Err(_) => self.output_broken = true,
            }
        }
    }

    /// Reads input, at most one buffer.
    fn fill(&mut self, buffer: &mut [u8]) {
        if !self.wants_input() {
            return;
        }
        loop {
            match recv(&self.fd, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => self.finished = true,
                Ok((_, n)) => {
                    self.last_input = Instant::now();
                    if let (Talk::Control(s), None) = (&mut self.talk, self.closing) {
                        s.feed(buffer.get(..n).unwrap_or_default());
                    }
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(_) => (self.finished, self.output_broken) = (true, true),
            }
            return;
        }
    }

    /// Whether the peer is a client of a message server that has closed its sending side. The server may disconnect
    /// such a client to make room for another.
    pub fn is_gone(&self) -> bool {
        matches!(self.talk, Talk::Chatter(_)) && self.finished
    }

    /// Serves the client once: reads input, executes commands, sends output.
    pub fn turn(&mut self, buffer: &mut [u8], rules: &Rules, access: &mut Access, hung_up: bool) -> Next {
        self.flush();
        self.fill(buffer);
        let mut step = Step::Done;
        if let Talk::Control(session) = &mut self.talk {
            for _ in 0..COMMANDS {
                step = session.step(rules, access);
                if step != Step::Done {
                    break;
                }
            }
        }
        self.flush();
        let waits = !self.output().is_empty();
        match (&self.talk, step) {
            (Talk::Chatter(_), _) if self.output_broken || hung_up => Next::Close,
            (Talk::Chatter(_), _) => Next::Wait,
            (_, _) if waits => Next::Wait,
            (_, Step::Over) => self.linger(),
            (_, Step::Hungry) if self.finished => Next::Close,
            (_, Step::Hungry) => Next::Wait,
            (_, Step::Done) => Next::Again,
        }
    }

    /// Shuts down the server's output. The connection is closed when the client has closed its own output, or after
    /// [`LINGER`].
    fn linger(&mut self) -> Next {
        if self.closing.is_none() {
            self.closing = Instant::now().checked_add(LINGER);
            let _ = shutdown(&self.fd, Shutdown::Write);
        }
        if self.finished || self.closing.is_none() { Next::Close } else { Next::Wait }
    }

    /// The events for which the client's descriptor should be registered in epoll.
    pub fn wanted(&self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.wants_input());
        flags.set(EventFlags::OUT, !self.output().is_empty());
        flags
    }

    /// Queues messages. Returns false if they do not fit and are lost.
    pub fn queue(&mut self, text: &[u8], most: usize) -> bool {
        let Talk::Chatter(out) = &mut self.talk else { return true };
        let room = out.len().saturating_add(text.len()) <= most;
        if room {
            out.extend(text);
        }
        room
    }

    /// The time at which the client is disconnected; `None` if there is no time limit. Data that the
    /// client sends or receives postpones it, unless the connection is already being closed.
    pub fn deadline(&self, limits: &Limits) -> Option<Instant> {
        let Talk::Control(s) = &self.talk else { return None };
        if self.closing.is_some() {
            return self.closing;
        }
        match (self.output().is_empty(), s.is_amid()) {
            (false, _) => self.last_output.checked_add(limits.stalled),
            (true, true) => self.last_input.checked_add(limits.half),
            (true, false) => None,
        }
    }
}
