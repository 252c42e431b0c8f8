// SPDX-License-Identifier: MIT OR Apache-2.0
//! The course of an exchange, drawn from a seed: the faults of the network, the settings of both ends, and what their users do.

use castanet_element::Random;
use castanet_tcp::engine::Ecn;

pub const MILLISECOND: i64 = 1_000_000;
pub const SECOND: i64 = 1_000 * MILLISECOND;

/// The other TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Castanet,
    Smoltcp,
}

impl Peer {
    /// The test of the schedules against it.
    pub fn test(self) -> &'static str {
        match self {
            Peer::Castanet => "against_itself",
            Peer::Smoltcp => "against_smoltcp",
        }
    }
}

/// The ends that open the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    End(usize),
    Both,
}

#[derive(Debug)]
pub struct Schedule {
    pub seed: u64,
    pub peer: Peer,
    pub opener: Opener,
    /// How long after the first end the second one opens, if both do: before the SYN of the first one arrives.
    pub behind: i64,
    pub path: Path,
    pub ends: [End; 2],
}

/// The network. Faults are percentages of packets.
#[derive(Debug)]
pub struct Path {
    pub lost: u64,
    pub repeated: u64,
    pub late: u64,
    pub corrupted: u64,
    /// Of the packets that may be marked: RFC 3168.
    pub marked: u64,
    /// The time that each packet takes, and the most that late ones take in addition.
    pub delay: i64,
    pub jitter: i64,
    /// When nothing begins to get through, after the start, and for how long.
    pub outage: Option<(i64, i64)>,
    /// The largest packet.
    pub mtu: usize,
    /// The kinds of options that the network takes out of SYNs, so that neither end uses them.
    pub stripped: Vec<u8>,
    /// The largest segment size that it lets SYNs announce.
    pub clamp: Option<u16>,
}

#[derive(Debug)]
pub struct End {
    pub receive_buffer: usize,
    pub send_buffer: usize,
    pub no_delay: bool,
    /// Seconds; 0 for never.
    pub keep_alive: u32,
    pub path_mtu: bool,
    pub ecn: Ecn,
    /// Whether smoltcp sends timestamps.
    pub timestamps: bool,
    /// SYNs of the peer are answered by SYN cookies.
    pub cookies: bool,
    /// The distance of the initial sequence number from 2^32, if the numbers are to wrap.
    pub before_wrap: Option<u32>,
    pub user: User,
}

#[derive(Clone, Copy, Debug)]
pub struct User {
    pub bytes: usize,
    /// The most that it writes and reads at a time.
    pub write: Pace,
    pub read: Pace,
    pub close: Close,
    /// When it aborts, after the start.
    pub abort: Option<i64>,
}

/// So many bytes at a time, and a pause afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The first time, after the start.
    pub from: i64,
    pub bytes: usize,
    pub pause: i64,
}

/// When a user closes, once it has written everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// So long afterwards.
    After(i64),
    /// When the other end has closed.
    AfterPeer,
}

/// Draws the parts of a schedule.
struct Draw(Random);

impl Draw {
    /// True with a probability of 1/n.
    fn once_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }
    /// A number in this range, both ends included; each power of two is as likely as the next one.
    fn scaled(&mut self, from: u64, to: u64) -> u64 {
        let bits = u64::from((to / from.max(1)).max(1).ilog2()) + 1;
        let most = (from.max(1) << self.0.below(bits + 1)).min(to);
        from + self.0.below(most.saturating_sub(from) + 1)
    }
    /// A percentage up to 20, often 0.
    fn percent(&mut self) -> u64 {
        if self.once_in(3) { 0 } else { self.scaled(1, 20) }
    }
    fn time(&mut self, from: i64, to: i64) -> i64 {
        self.scaled(from as u64, to as u64) as i64 * MILLISECOND
    }

    fn path(&mut self) -> Path {
        let delay = self.time(1, 400);
        let outage = self.once_in(8).then(|| (self.time(0, 2_000), self.time(500, 40_000)));
        let stripped = [3, 4, 8].into_iter().filter(|_| self.once_in(4)).collect();
        Path {
            lost: self.percent(),
            repeated: self.percent(),
            late: self.percent(),
            corrupted: self.percent(),
            marked: self.percent(),
            delay,
            jitter: self.time(1, 3_000),
            outage,
            mtu: if self.once_in(2) { 1500 } else { 576 + self.0.below(925) as usize },
            stripped,
            clamp: self.once_in(3).then(|| self.scaled(88, 1460) as u16),
        }
    }
    fn pace(&mut self, bytes: usize) -> Pace {
        let slow = self.once_in(3);
        // At most about twenty pauses, so that exchanges stay short, and all is read before TIME-WAIT is over.
        let least = (bytes / 20).max(1) as u64;
        let from = if self.once_in(4) { self.time(1, 30_000) } else { 0 };
        let (bytes, pause) =
            if slow { (self.scaled(least, 20_000), self.time(1, 1_000)) } else { (u64::MAX, 0) };
        Pace { from, bytes: bytes as usize, pause }
    }
    fn bytes(&mut self) -> usize {
        match self.0.below(16) {
            0..4 => 0,
            4..6 => self.0.below(4) as usize,
            6..13 => self.scaled(1, 16_000) as usize,
            13..15 => self.scaled(16_000, 60_000) as usize,
            _ => self.scaled(60_000, 400_000) as usize,
        }
    }
    /// The receive buffer of an end that reads so many bytes like this. Windows close if the user is slow and the buffer is small.
    fn receive_buffer(&mut self, bytes: usize, pace: Pace) -> usize {
        let is_slow = pace.pause > 0 || pace.from > 0;
        if is_slow && !self.once_in(4) {
            self.buffer(bytes, bytes / 2 + 600)
        } else {
            self.buffer(bytes, 200_000)
        }
    }
    fn buffer(&mut self, bytes: usize, most: usize) -> usize {
        // Small buffers make many segments, so large transfers have larger buffers.
        self.scaled(500.max(bytes as u64 / 16), most as u64) as usize
    }
    fn end(&mut self, bytes: [usize; 2], may_wait: bool) -> End {
        let [own, other] = bytes;
        let close = match self.0.below(4) {
            0 | 1 => Close::After(0),
            2 => Close::After(self.time(1, 60_000)),
            _ if may_wait => Close::AfterPeer,
            _ => Close::After(0),
        };
        let (write, read) = (self.pace(own), self.pace(other));
        let user = User { bytes: own, write, read, close, abort: None };
        let wraps = self.once_in(3);
        End {
            receive_buffer: self.receive_buffer(other, read),
            send_buffer: self.buffer(own, 200_000),
            no_delay: self.once_in(3),
            keep_alive: if self.once_in(4) { 1 + self.0.below(20) as u32 } else { 0 },
            path_mtu: self.once_in(2),
            ecn: [Ecn::Off, Ecn::Accept, Ecn::Offer][self.0.below(3) as usize],
            timestamps: !self.once_in(3),
            cookies: false,
            before_wrap: wraps.then(|| self.0.below(own as u64 + 3) as u32),
            user,
        }
    }
}

/// Whether the exchange can use SYN cookies. The end that opens must send something before the cookie is too old. No packet may be lost or
/// come late: without the segment that brings the cookie the next one is refused, and a late copy of it would open another connection.
fn has_safe_handshake(path: &Path, opener: &User) -> bool {
    let speaks = opener.bytes > 0 && opener.write.from == 0 || opener.close == Close::After(0);
    speaks && path.outage.is_none() && path.lost + path.corrupted + path.late == 0
}

impl Schedule {
    pub fn draw(seed: u64, peer: Peer) -> Schedule {
        let mut d = Draw(Random::new(seed, "schedule"));
        let path = d.path();
        // Not too many segments: smoltcp sends all of them after each timeout.
        let most = usize::from(path.clamp.unwrap_or(1460)) * 300;
        let bytes = [d.bytes().min(most), d.bytes().min(most)];
        let first = d.end(bytes, true);
        let may_wait = first.user.close != Close::AfterPeer;
        let second = d.end([bytes[1], bytes[0]], may_wait);
        let opener = match d.0.below(8) {
            // smoltcp cannot open a connection that the peer opens as well.
            0 if peer == Peer::Castanet => Opener::Both,
            n => Opener::End(n as usize % 2),
        };
        let behind = if d.once_in(2) { 0 } else { (path.delay as f64 * 0.9 * d.0.unit()) as i64 };
        let mut ends = [first, second];
        if let Opener::End(end) = opener {
            ends[1 - end].cookies = has_safe_handshake(&path, &ends[end].user);
        }
        if d.once_in(12) {
            let aborting = d.0.below(2) as usize;
            ends[aborting].user.abort = Some(d.time(0, 20_000));
            // An end that has nothing to send learns of the abort only by keep-alives, if the RST is lost.
            ends.iter_mut().for_each(|e| e.keep_alive = 5);
            // Data that follows could be the answer to a cookie, and open the connection once more.
            ends.iter_mut().for_each(|e| e.cookies = false);
        }
        Schedule { seed, peer, opener, behind, path, ends }
    }
    pub fn opens(&self, end: usize) -> bool {
        matches!(self.opener, Opener::Both) || self.opener == Opener::End(end)
    }
}
