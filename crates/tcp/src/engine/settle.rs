// SPDX-License-Identifier: MIT OR Apache-2.0
//! What follows a call of the TCP: applications run, connections that have ended are removed, and those that wait for time
//! to pass get timeouts.

use super::connections::Entry;
use super::stream::Done;
use super::{Connection, Ecn, End, Engine, Flow, Stream};
use crate::application::{Application, Session};
use crate::protocol::{Ptr, Tcb, delay_ack_f, f, s, tcp_interface};

impl Engine {
    /// Whether there is a place for one more connection. The oldest one in TIME-WAIT gives way.
    pub(super) fn has_place(&mut self) -> bool {
        while self.flows.len() >= self.host.settings.connections {
            let Some(oldest) = self.waiting.pop_front() else { return false };
            let tcb = self.flows.get(&oldest).copied();
            if let Some(tcb) = tcb.filter(|t| self.tcb(*t).state.get() == s::TIME_WAIT) {
                self.remove(tcb);
            }
        }
        true
    }
    /// Adds a connection, which is closed.
    pub(super) fn add(&mut self, mut connection: Connection) -> Ptr<Tcb> {
        connection.service = connection.service.with_dscp(self.host.settings.dscp);
        let flow = connection.flow;
        let (local, remote) = (flow.local.port(), flow.remote.port());
        let tcb = self.call(Ptr::new(0), |cx, this| tcp_interface::connection(cx, this, local, remote));
        self.connections.add(tcb, connection);
        self.flows.insert(flow, tcb);
        let (keep_alive, timeout) = (self.host.settings.keep_alive, self.host.settings.user_timeout);
        let (no_delay, path_mtu) = (self.host.settings.no_delay, self.host.settings.path_mtu);
        let ecn = self.host.settings.ecn;
        self.call(tcb, |cx, this| {
            tcp_interface::keep_alive_after(cx, this, tcb, keep_alive);
            tcp_interface::user_timeout(cx, this, tcb, timeout);
            if no_delay {
                tcp_interface::no_delay(cx, this, tcb);
            }
            if path_mtu {
                tcp_interface::discover_path_mtu(cx, this, tcb);
            }
            if ecn != Ecn::Off {
                tcp_interface::use_ecn(cx, this, tcb, ecn == Ecn::Offer);
            }
        });
        tcb
    }
    /// Removes a connection, whatever its state.
    pub(super) fn remove(&mut self, tcb: Ptr<Tcb>) {
        // The program forgets the segments and ranges of the connection, which have objects of their own.
        let flags = &self.tcb(tcb).flags;
        flags.set(flags.get() & !f::PASSIVE);
        self.host.muted.set(true);
        self.call(tcb, |cx, this| {
            tcp_interface::abort(cx, this, tcb);
            tcp_interface::remove(cx, this, tcb);
        });
        self.host.muted.set(false);
        if let Some(connection) = self.connections.remove(tcb, &self.host.memory) {
            self.flows.remove(&connection.flow);
            self.last_found.set(None);
            self.half_open -= usize::from(connection.half_open);
        }
    }

    /// Brings everything up to date after a call of the TCP with a connection.
    pub(super) fn settle(&mut self, tcb: Ptr<Tcb>) {
        let state = loop {
            let state = self.tcb(tcb).state.get();
            let Some(c) = self.connections.get(tcb) else { return };
            let fresh = c.half_open || c.connected != c.counted;
            let (ended, stirred) = (c.ended, std::mem::take(&mut c.stirred));
            if ended.is_some() || state == s::CLOSED || state == s::LISTEN {
                self.count_end(ended);
                return self.remove(tcb);
            }
            if !stirred {
                break state;
            }
            if fresh {
                self.established(tcb, state);
            }
            if !self.run(tcb) {
                break state;
            }
        };
        if state == s::TIME_WAIT {
            self.waits(tcb);
        }
        self.schedule(tcb);
    }
    fn count_end(&mut self, ended: Option<End>) {
        let counts = &mut self.counts;
        match ended {
            Some(End::Finished) => counts.finished.add(1),
            Some(End::Reset) => counts.reset.add(1),
            Some(End::Refused) => counts.refused.add(1),
            Some(End::Timeout) => counts.timed_out.add(1),
            Some(End::Unreachable) => counts.unreachable.add(1),
            None => {}
        }
    }
    /// Counts a connection that was established just now.
    fn established(&mut self, tcb: Ptr<Tcb>, state: i32) {
        let Some(c) = self.connections.get(tcb) else { return };
        let was_half_open = state != s::SYN_RECEIVED && std::mem::take(&mut c.half_open);
        let fresh = c.connected && !std::mem::replace(&mut c.counted, c.connected);
        let opened = fresh.then_some(c.application);
        self.half_open -= usize::from(was_half_open);
        if let Some(application) = opened {
            self.counts.opened.add(1);
            if let Some(a) = self.applications.get(application) {
                a.tally.opened.add(1);
            }
        }
    }
    /// A connection in TIME-WAIT keeps no data, and may give way to others.
    fn waits(&mut self, tcb: Ptr<Tcb>) {
        if let Some(c) = self.connections.get(tcb)
            && !std::mem::replace(&mut c.waits, true)
        {
            self.waiting.push_back(c.flow);
        }
        // Flows whose connection has ended leave the list before it is longer than twice what it must hold.
        if self.waiting.len() > 64 + 2 * self.flows.len() {
            let flows = &self.flows;
            self.waiting.retain(|f| flows.contains_key(f));
        }
    }

    /// Runs the application of a connection, and does what it asks for. Returns false if it asks for nothing.
    fn run(&mut self, tcb: Ptr<Tcb>) -> bool {
        let done = self.with_stream_of(tcb, |application, session, stream| {
            application.run(session, stream);
        });
        done.is_some_and(|done| self.carry_out(tcb, done))
    }
    /// Calls `f` with the application, the session and the stream of a connection.
    pub(super) fn with_stream_of(
        &mut self,
        tcb: Ptr<Tcb>,
        f: impl FnOnce(&dyn Application, &mut Session, &mut Stream<'_>),
    ) -> Option<Done> {
        let Entry { connection, session } = self.connections.entry(tcb)?;
        let registered = self.applications.get(connection.application)?;
        if std::mem::take(&mut connection.alarmed) {
            registered.tally.urgent.add(1);
        }
        let mut stream = Stream {
            connection,
            memory: &self.host.memory,
            tally: &registered.tally,
            sndbuf: self.host.settings.sndbuf,
            done: Done::default(),
            poller: &self.host.poller,
            number: tcb.0,
        };
        f(&*registered.application, session, &mut stream);
        Some(stream.done)
    }
    /// Does what an application asks for. Returns false if it asks for nothing.
    pub(super) fn carry_out(&mut self, tcb: Ptr<Tcb>, done: Done) -> bool {
        if !(done.abort || done.close || done.moved || done.urgent) {
            return false;
        }
        self.call(tcb, |cx, this| {
            if done.urgent && !done.abort {
                tcp_interface::send_urgent(cx, this, tcb);
            }
            if done.abort {
                tcp_interface::abort(cx, this, tcb);
            } else if done.close {
                tcp_interface::close(cx, this, tcb);
            } else {
                tcp_interface::output(cx, this, tcb);
            }
        });
        true
    }

    /// Puts a connection on the lists of those that wait for timeouts.
    fn schedule(&mut self, tcb: Ptr<Tcb>) {
        let Some(c) = self.connections.get(tcb) else { return };
        let t = self.state.tcb.at(tcb);
        if !c.ticks && (is_busy(t) || c.starved) {
            c.ticks = true;
            self.ticking.push(tcb);
        }
        if !c.delays && t.flags.get() & delay_ack_f::DELAY_ACK != 0 {
            c.delays = true;
            self.delaying.push(tcb);
        }
    }
    /// The connection of a flow. The next segment often belongs to the same connection as the last one, so that is remembered, as
    /// 4.4BSD does.
    #[inline]
    pub(super) fn find(&self, flow: Flow) -> Option<Ptr<Tcb>> {
        match self.last_found.get() {
            Some((last, tcb)) if last == flow => Some(tcb),
            _ => self.look_up(flow),
        }
    }
    fn look_up(&self, flow: Flow) -> Option<Ptr<Tcb>> {
        let tcb = self.flows.get(&flow).copied()?;
        self.last_found.set(Some((flow, tcb)));
        Some(tcb)
    }
}

/// Whether a connection waits for time to pass: one of its timers runs.
pub(super) fn is_busy(t: &Tcb) -> bool {
    let timers = [
        &t.retransmit_ticks,
        &t.persist_ticks,
        &t.time_wait_ticks,
        &t.keep_alive_ticks,
        &t.challenges,
        &t.rtt_ticks,
    ];
    timers.iter().fold(0, |all, n| all | n.get()) != 0
}
