// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client that is there.

use crate::gate::Gate;
use crate::session::{Rules, Session, Step};
use crate::{Limits, chatter};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// What is said to a client.
pub(super) enum Talk {
    /// Replies.
    Control(Box<Session>),
    /// Messages.
    Chatter(VecDeque<u8>),
}

/// A client.
pub(super) struct Peer {
    pub fd: OwnedFd,
    pub talk: Talk,
    /// What its descriptor is watched for.
    pub interest: EventFlags,
    /// Whether it has a turn without anything happening to its descriptor.
    pub busy: bool,
    /// Bytes that it was last seen to hold.
    pub held: usize,
    /// Whether it will send no more.
    finished: bool,
    /// Whether it takes no more.
    deaf: bool,
    /// Set once the last reply was sent: when the connection is closed at the latest.
    closing: Option<Instant>,
    /// When it sent something, and when it took something or had taken all.
    heard: Instant,
    taken: Instant,
}

/// What is to be done about a client after its turn.
pub(super) enum Next {
    /// It waits for its descriptor.
    Wait,
    /// It has another turn.
    Again,
    /// It goes.
    Close,
}

/// Commands of a turn, so that others have theirs.
const COMMANDS: usize = 8;
/// How long the end of a client's input is waited for after the last reply. Closing a TCP socket with unread input
/// resets the connection (RFC 9293, section 3.10.4), and the client may lose the reply.
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
            deaf: false,
            closing: None,
            heard: now,
            taken: now,
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
    /// Bytes of memory.
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

    /// Sends what it takes.
    pub fn flush(&mut self) {
        loop {
            let out = self.output();
            let n = out.len();
            if n == 0 {
                self.taken = Instant::now();
                return;
            }
            if self.deaf {
                self.sent(n);
                continue;
            }
            match send(&self.fd, out, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(n) => {
                    self.sent(n);
                    self.taken = Instant::now();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // What it has sent is still carried out.
                Err(_) => self.deaf = true,
            }
        }
    }

    /// Takes what it sent, at most one buffer of it.
    fn fill(&mut self, buffer: &mut [u8]) {
        if !self.wants_input() {
            return;
        }
        loop {
            match recv(&self.fd, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => self.finished = true,
                Ok((_, n)) => {
                    self.heard = Instant::now();
                    if let (Talk::Control(s), None) = (&mut self.talk, self.closing) {
                        s.feed(buffer.get(..n).unwrap_or_default());
                    }
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(_) => (self.finished, self.deaf) = (true, true),
            }
            return;
        }
    }

    /// Whether it is neither to be heard nor spoken to; another may have its place.
    pub fn is_gone(&self) -> bool {
        matches!(self.talk, Talk::Chatter(_)) && self.finished
    }

    /// Takes, does and sends what there is.
    pub fn turn(&mut self, buffer: &mut [u8], rules: &Rules, gate: &mut Gate, hung_up: bool) -> Next {
        self.flush();
        self.fill(buffer);
        let mut step = Step::Done;
        if let Talk::Control(session) = &mut self.talk {
            for _ in 0..COMMANDS {
                step = session.step(rules, gate);
                if step != Step::Done {
                    break;
                }
            }
        }
        self.flush();
        let waits = !self.output().is_empty();
        match (&self.talk, step) {
            (Talk::Chatter(_), _) if self.deaf || hung_up => Next::Close,
            (Talk::Chatter(_), _) => Next::Wait,
            (_, _) if waits => Next::Wait,
            (_, Step::Over) => self.linger(),
            (_, Step::Hungry) if self.finished => Next::Close,
            (_, Step::Hungry) => Next::Wait,
            (_, Step::Done) => Next::Again,
        }
    }

    /// Ends the output; the connection is closed when the client has ended its own, or after [`LINGER`].
    fn linger(&mut self) -> Next {
        if self.closing.is_none() {
            self.closing = Instant::now().checked_add(LINGER);
            let _ = shutdown(&self.fd, Shutdown::Write);
        }
        if self.finished || self.closing.is_none() { Next::Close } else { Next::Wait }
    }

    /// What its descriptor is to be watched for.
    pub fn wanted(&self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.wants_input());
        flags.set(EventFlags::OUT, !self.output().is_empty());
        flags
    }

    /// Puts messages behind those that wait; those that there is no room for are lost, and it says whether they were.
    pub fn tell(&mut self, text: &[u8], most: usize) -> bool {
        let Talk::Chatter(out) = &mut self.talk else { return true };
        let room = out.len().saturating_add(text.len()) <= most;
        if room {
            out.extend(text);
        }
        room
    }

    /// When it is sent away if nothing happens until then.
    pub fn deadline(&self, limits: &Limits) -> Option<Instant> {
        let Talk::Control(s) = &self.talk else { return None };
        if self.closing.is_some() {
            return self.closing;
        }
        match (self.output().is_empty(), s.is_amid()) {
            (false, _) => self.taken.checked_add(limits.stalled),
            (true, true) => self.heard.checked_add(limits.half),
            (true, false) => None,
        }
    }
}
