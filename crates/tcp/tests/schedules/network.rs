// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two hosts, their users, and the network between them, in simulated time.

use super::host::{Ending, Host};
use super::middlebox::Middlebox;
use super::ours::Ours;
use super::schedule::{Opener, Peer, SECOND, Schedule};
use super::segment::Segment;
use super::theirs::Smoltcp;
use super::user::User;
use super::watch::{Cause, Tally, Watch};
use castanet_element::Random;
use castanet_wire::icmp::IcmpHeader;
use castanet_wire::ipv4::{Ipv4Header, protocol};
use castanet_wire::tcp::flag;
use std::collections::BTreeMap;

/// When exchanges begin.
const START: i64 = 1_000 * SECOND;
/// The most simulated time of an exchange, and the most steps.
const LONGEST: i64 = 20_000 * SECOND;
const MOST_STEPS: usize = 300_000;

/// Faults of smoltcp, in the tally.
pub const STALLED: &str = "stalled";
pub const MISSED: &str = "missed data";
pub const SPOILT: &str = "spoilt its data";

/// A packet on its way.
struct Sent {
    to: usize,
    packet: Vec<u8>,
    /// Its place in the order in which the packets were sent.
    place: u64,
    /// The byte that is corrupted, and the bits that change.
    corrupted: Option<(usize, u8)>,
    is_error: bool,
}

pub struct Network<'a> {
    schedule: &'a Schedule,
    hosts: [Box<dyn Host>; 2],
    users: [User; 2],
    watches: [Watch; 2],
    middlebox: Middlebox,
    way: BTreeMap<(i64, u64), Sent>,
    /// When the second end opens, if it does so after the first one.
    opens_at: Option<i64>,
    now: i64,
    /// smoltcp has sent a byte that is not its data (see `is_false_keep_alive`).
    is_spoilt: bool,
    /// When the second end has last sent what the first one waits for.
    sent_at: i64,
    random: Random,
    place: u64,
    copies: u64,
    tally: &'a mut Tally,
    verbose: bool,
}

impl<'a> Network<'a> {
    pub fn new(schedule: &'a Schedule, tally: &'a mut Tally, verbose: bool) -> Network<'a> {
        let seed = schedule.seed;
        let mut random = Random::new(seed, "network");
        let mut middlebox = Middlebox::new(&schedule.path);
        let theirs = (schedule.peer == Peer::Smoltcp).then_some(1);
        let host = |end: usize, opened_to| -> Box<dyn Host> {
            let plan = &schedule.ends[end];
            let opened_at = START + if schedule.opens(end) { 0 } else { schedule.path.delay };
            match theirs == Some(end) {
                true => Box::new(Smoltcp::new(end, seed, plan, schedule.path.mtu, START)),
                false => Box::new(Ours::new(end, seed, plan, opened_at, opened_to)),
            }
        };
        let first = if let Opener::End(end) = schedule.opener { end } else { 0 };
        let mut opener = host(first, None);
        let ports = opener.open(START);
        let both = schedule.opener == Opener::Both;
        let other = host(1 - first, (!both).then_some(ports[0]));
        if both {
            middlebox.ports = Some([ports; 2]);
        }
        if let Some(before) = schedule.ends[1].before_wrap.filter(|_| theirs.is_some()) {
            middlebox.first = Some((1, before.wrapping_add(1).wrapping_neg()));
        }
        let data = [0, 1].map(|end| {
            let mut bytes = vec![0; schedule.ends[end].user.bytes];
            bytes.iter_mut().for_each(|b| *b = random.next_u64() as u8);
            bytes
        });
        let users = [0, 1].map(|end| {
            let plan = schedule.ends[end].user;
            User::new(plan, schedule.opens(end), START, data[end].clone(), data[1 - end].clone())
        });
        let watches = [0, 1].map(|end| Watch::new(if theirs == Some(end) { "smoltcp" } else { "castanet" }));
        Network {
            schedule,
            hosts: if first == 0 { [opener, other] } else { [other, opener] },
            users,
            watches,
            middlebox,
            way: BTreeMap::new(),
            opens_at: both.then_some(START + schedule.behind),
            now: START,
            is_spoilt: false,
            sent_at: START,
            random,
            place: 0,
            copies: 0,
            tally,
            verbose,
        }
    }

    /// Runs the exchange until nothing is left to be done.
    pub fn run(&mut self) {
        self.settle(0, Cause::User);
        self.settle(1, Cause::User);
        for _ in 0..MOST_STEPS {
            let arrival = self.way.first_key_value().map(|(k, _)| k.0);
            let now = self.now;
            let timeouts = [0, 1].map(|end| self.hosts[end].next_timeout(now));
            let users = [0, 1].map(|end| self.users[end].next());
            let times = [arrival, self.opens_at, timeouts[0], timeouts[1], users[0], users[1]];
            let next = times.into_iter().flatten().min().filter(|t| *t < START + LONGEST);
            let Some(next) = next.filter(|_| !self.is_spoilt) else { return };
            self.now = next.max(self.now);
            self.step(timeouts);
        }
        panic!("the exchange takes too many steps");
    }
    fn step(&mut self, timeouts: [Option<i64>; 2]) {
        if self.opens_at.is_some_and(|at| at <= self.now) {
            self.opens_at = None;
            let ports = self.hosts[1].open(self.now);
            self.middlebox.ports.as_mut().unwrap()[1] = ports;
            self.settle(1, Cause::User);
        }
        if let Some(first) = self.way.first_entry().filter(|e| e.key().0 <= self.now) {
            let sent = first.remove();
            self.arrives(sent);
        }
        for (end, timeout) in timeouts.into_iter().enumerate() {
            if timeout.is_some_and(|at| at <= self.now) {
                self.hosts[end].pass_time(self.now);
                self.settle(end, Cause::Timeout);
            }
            if self.users[end].next().is_some_and(|at| at <= self.now) {
                self.settle(end, Cause::User);
            }
        }
    }
    /// Sends what an end has to send, lets its user act, and sends what follows from that.
    fn settle(&mut self, end: usize, cause: Cause) {
        self.flush(end, cause);
        let (user, now) = (&mut self.users[end], self.now);
        let state = self.hosts[end].state();
        // In LAST-ACK, the state after CLOSE-WAIT, smoltcp drops unread data as soon as the peer acknowledges its FIN.
        let is_theirs = self.schedule.peer == Peer::Smoltcp && end == 1;
        let ends_soon =
            matches!(state, "CLOSING" | "LAST-ACK" | "TIME-WAIT") || is_theirs && state == "CLOSE-WAIT";
        if !self.hosts[end].with(now, &mut |socket| user.act(socket, now, ends_soon)) {
            user.is_over();
        }
        self.flush(end, Cause::User);
        self.hosts[end].check();
        let state = self.hosts[end].state();
        if self.watches[end].state(state, self.schedule.opens(end), self.tally) && self.verbose {
            println!("{} {end} {state}", self.time());
        }
    }
    /// The time since the start, in seconds.
    pub fn time(&self) -> String {
        format!("{:11.6}", (self.now - START) as f64 / SECOND as f64)
    }

    /// A packet reaches its end.
    fn arrives(&mut self, sent: Sent) {
        let Sent { to, mut packet, place, corrupted, is_error } = sent;
        if is_error {
            self.watches[to].count(self.tally, "packet too large");
            self.hosts[to].input(&packet, self.now);
            return self.settle(to, Cause::Input);
        }
        self.middlebox.change(1 - to, &mut packet);
        let s = Segment::read(&packet);
        if self.verbose {
            let how = if corrupted.is_some() { "corrupted" } else { "" };
            println!("{} {to} <- {s} {how}", self.time());
        }
        match corrupted {
            Some((at, bits)) => {
                packet[at] ^= bits;
                self.watches[to].count(self.tally, "received corrupted");
            }
            None => {
                self.watches[to].receives(&s, place, self.tally);
                if s.data > 0 && self.hosts[to].state() == "FIN-WAIT-2" {
                    self.watches[to].count(self.tally, "data after its FIN");
                }
            }
        }
        self.hosts[to].input(&packet, self.now);
        self.settle(to, Cause::Input);
    }

    /// Puts the packets of an end on their way.
    fn flush(&mut self, from: usize, cause: Cause) {
        for mut packet in self.hosts[from].packets() {
            let s = Segment::read(&packet);
            self.is_spoilt |= self.is_false_keep_alive(from, &s, &packet);
            self.watches[from].sends(&s, cause, self.tally);
            if from == 1 && self.watches[1].is_due(&s) {
                self.sent_at = self.now;
            }
            if self.verbose {
                println!("{} {from} -> {s} {cause:?}", self.time());
            }
            let ip = *Ipv4Header::from_prefix(&packet).unwrap();
            if packet.len() > self.schedule.path.mtu && ip.dont_fragment() {
                let error = too_large(&packet, self.schedule.path.mtu);
                self.send(from, &error, None);
                continue;
            }
            if ip.ecn() == 2 && self.random.below(100) < self.schedule.path.marked {
                Ipv4Header::from_prefix_mut(&mut packet).unwrap().rewrite_tos(ip.tos | 3);
            }
            self.send(1 - from, &packet, Some(&s));
        }
    }
    /// Sends a segment, or an ICMP error.
    fn send(&mut self, to: usize, packet: &[u8], segment: Option<&Segment>) {
        let path = &self.schedule.path;
        self.place += 1;
        let is_fin = segment.is_some_and(|s| s.has(flag::FIN));
        let since = self.now - START;
        let is_out = path.outage.is_some_and(|(from, length)| (from..from + length).contains(&since));
        for _ in 0..1 + u64::from(self.random.below(100) < path.repeated) {
            let is_lost = self.random.below(100) < path.lost || is_out;
            let corrupts = self.random.below(100) < path.corrupted && segment.is_some();
            if is_fin && (is_lost || corrupts) {
                self.watches[1 - to].count(self.tally, "FIN lost");
            }
            if is_lost {
                if self.verbose {
                    println!("{} {} -> lost", self.time(), 1 - to);
                }
                continue;
            }
            // The checksums detect every change of one byte.
            let at = self.random.below(packet.len() as u64) as usize;
            let corrupted = corrupts.then(|| (at, 1 + self.random.below(255) as u8));
            let is_late = self.random.below(100) < path.late;
            let late = if is_late { self.random.below(path.jitter as u64) as i64 } else { 0 };
            let (place, is_error) = (self.place, segment.is_none());
            let sent = Sent { to, packet: packet.to_vec(), place, corrupted, is_error };
            self.copies += 1;
            self.way.insert((self.now + path.delay + late, self.copies), sent);
        }
    }

    /// Whether a segment is a keep-alive of smoltcp that has a byte of garbage in the place of data that was not acknowledged.
    fn is_false_keep_alive(&self, from: usize, s: &Segment, packet: &[u8]) -> bool {
        let is_theirs = self.schedule.peer == Peer::Smoltcp && from == 1;
        let position = self.watches[from].position(s).filter(|_| is_theirs && s.data == 1);
        position.is_some_and(|at| self.users[from].data().get(at) != packet.last())
    }
    /// Whether smoltcp has stopped retransmitting: it has unacknowledged data, and no timer runs, or it has not sent the first of that data for
    /// longer than any timeout. That happens now and then, if the window is closed or shrinks while data is in flight.
    fn smoltcp_stalls(&mut self) -> bool {
        let waits_for_nothing = self.way.is_empty() && self.hosts[1].next_timeout(self.now).is_none();
        let is_quiet = waits_for_nothing || self.now - self.sent_at > 600 * SECOND;
        let is_stalled = is_quiet && self.watches[1].has_data_in_flight();
        self.schedule.peer == Peer::Smoltcp && is_stalled && self.hosts[0].is_waiting()
    }

    /// Whether smoltcp has accepted the FIN of a segment of which it has not taken all data, so that it misses the rest.
    fn smoltcp_misses_data(&self) -> bool {
        let [ours, theirs] = &self.users;
        let misses = theirs.is_at_end_too_early() && self.watches[0].has_data_in_flight();
        self.schedule.peer == Peer::Smoltcp && misses && ours.has_read_all()
    }

    /// Checks that each byte has arrived, and that both ends have ended as they should.
    pub fn check(&mut self) {
        if self.is_spoilt {
            return self.watches[1].count(self.tally, SPOILT);
        }
        if self.smoltcp_stalls() {
            return self.watches[1].count(self.tally, STALLED);
        }
        if self.smoltcp_misses_data() {
            return self.watches[1].count(self.tally, MISSED);
        }
        for end in 0..2 {
            self.hosts[end].check_end();
            for (what, n) in self.hosts[end].counts() {
                self.watches[end].add(self.tally, what, n);
            }
        }
        let endings = [0, 1].map(|end| self.hosts[end].ending());
        let [first, second] = &self.users;
        let what = format!("{first}; {second}; {endings:?} after {} s", self.time());
        let Some(aborting) = self.users.iter().position(|u| u.aborted) else {
            assert_eq!(endings, [Some(Ending::Finished); 2], "{what}");
            assert!(first.is_served() && second.is_served(), "{what}");
            return;
        };
        self.watches[aborting].count(self.tally, "aborted");
        // smoltcp counts as finished if both ends have closed.
        let is_theirs = self.schedule.peer == Peer::Smoltcp && aborting == 1;
        let has_finished = is_theirs && endings[aborting] == Some(Ending::Finished);
        assert!(has_finished || endings[aborting] == Some(Ending::Reset), "{what}");
        let other = &self.users[1 - aborting];
        match endings[1 - aborting] {
            Some(Ending::Reset) => {}
            // Both ends had closed before.
            Some(Ending::Finished) => assert!(other.has_read_all(), "{what}"),
            // It was not yet open.
            Some(Ending::Failed) | None => assert!(!other.connected, "{what}"),
        }
    }
}

/// The ICMP error of a router about a packet that does not fit (RFC 1191).
fn too_large(packet: &[u8], mtu: usize) -> Vec<u8> {
    let src = Ipv4Header::from_prefix(packet).unwrap().src.get();
    let quoted = &packet[..28];
    let ip = Ipv4Header::new(protocol::ICMP, src, src, (20 + 8 + quoted.len()) as u16, 64);
    [&ip.to_bytes()[..], &IcmpHeader::new(3, 4, mtu as u32).to_bytes(), quoted].concat()
}
