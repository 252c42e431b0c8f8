// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a script.

use super::line::{Event, Segment, TcpOption, Time, parse, setting};
use castanet_element::{Secret, Seed};
use castanet_tcp::application::{Application, Registered, Session, Tally};
use castanet_tcp::engine::{Arrived, Ecn, Engine, Flow, IpNotes, Listener, Settings, Stream, invariants};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 2000);
const PORT: u16 = 8080;
/// The initial sequence number of the peer.
const ISN: u32 = 0xffff_ff00;
/// The time at which scripts start. Timeouts are due at its multiples of a fifth and of half a second.
const START: i64 = 1_000_000_000_000;

/// The script makes all calls.
struct Scripted;

impl Application for Scripted {
    fn run(&self, _: &mut Session, _: &mut Stream<'_>) {}
}

struct Run {
    engine: Engine,
    flow: Flow,
    now: i64,
    /// Segments that were sent and not expected yet, with their times and ECN bits.
    sent: VecDeque<(i64, u8, Vec<u8>)>,
    /// The initial sequence number of the TCP, once it is known.
    iss: Option<u32>,
}

/// Runs a script. An error begins with the number of the line.
pub fn run(text: &str) -> Result<(), String> {
    let mut run = Run::new(settings(text)?);
    for (n, line) in text.lines().enumerate() {
        let at = |e: String| format!("{}: {e}", n + 1);
        if let Some((time, event)) = parse(line).map_err(at)? {
            run.event(time, &event).map_err(at)?;
        }
    }
    run.sent
        .front()
        .map_or(Ok(()), |(_, ecn, left)| Err(format!("end: sent at last: {}", run.show(*ecn, left))))
}

/// The settings of the engine, with those of the script.
fn settings(text: &str) -> Result<Settings, String> {
    let mut settings = Settings {
        addresses: vec![OURS],
        connections: 10,
        backlog: 10,
        memory: 1_000_000,
        rcvbuf: 65_535,
        sndbuf: 100_000,
        ttl: 64,
        dscp: 0,
        keep_alive: 0,
        user_timeout: 300,
        no_delay: false,
        path_mtu: false,
        ecn: Ecn::Accept,
        super_packets: false,
    };
    for (n, line) in text.lines().enumerate() {
        let at = |e: String| format!("{}: {e}", n + 1);
        match setting(line).map_err(at)? {
            None => {}
            Some(("rcvbuf", n)) => settings.rcvbuf = n as usize,
            Some(("keepalive", n)) => settings.keep_alive = n,
            Some(("timeout", n)) => settings.user_timeout = n,
            Some(("nodelay", n)) => settings.no_delay = n > 0,
            Some(("pathmtu", n)) => settings.path_mtu = n > 0,
            Some(("ecn", n)) => settings.ecn = [Ecn::Off, Ecn::Offer, Ecn::Accept][(n as usize).min(2)],
            Some((other, _)) => return Err(at(format!("'{other}' is no setting"))),
        }
    }
    Ok(settings)
}

impl Run {
    fn new(settings: Settings) -> Run {
        let mut engine = Engine::new(settings, Secret::of(Seed::Fixed(1), "tcp"));
        engine.set_applications(vec![Registered {
            name: "script".into(),
            element: 0,
            application: Arc::new(Scripted),
            tally: Tally::default(),
            ports: Vec::new(),
            peers: Vec::new(),
        }]);
        engine.pass_time(START);
        let flow = Flow { local: SocketAddrV4::new(OURS, PORT), remote: PEER };
        Run { engine, flow, now: START, sent: VecDeque::new(), iss: None }
    }

    /// Keeps what the engine has sent.
    fn keep(&mut self) {
        for p in self.engine.packets() {
            let segment = p.data()[20..].to_vec();
            if segment[13] & 2 != 0 {
                self.iss = Some(word(&segment, 4));
            }
            self.sent.push_back((self.now, p.data()[1] & 3, segment));
        }
        invariants::check(&self.engine);
    }
    fn advance(&mut self, to: i64) {
        while let Some(next) = self.engine.next_timeout().filter(|n| *n <= to) {
            self.now = self.now.max(next);
            self.engine.pass_time(next);
            self.keep();
        }
        self.now = self.now.max(to);
    }

    fn event(&mut self, time: Time, event: &Event) -> Result<(), String> {
        let to = match time {
            Time::At(t) => START + t,
            Time::After(t) => self.now + t,
        };
        self.advance(to);
        if let Event::Out(segment) = event {
            return self.expect(to, segment);
        }
        if let Some((_, ecn, early)) = self.sent.front() {
            return Err(format!("sent before: {}", self.show(*ecn, early)));
        }
        match event {
            Event::In(segment) => self.arrives(segment),
            Event::Icmp(icmp) => {
                let error = icmp.error(self.flow, self.iss.unwrap_or(0));
                // Drops show as well: nothing else happens.
                let _ = self.engine.icmp_error(&error, self.now);
            }
            Event::Call(name, n, result) => {
                let got = self.call(name, *n)?;
                if result.is_some_and(|r| r != got) {
                    return Err(format!("{name} returns {got}"));
                }
            }
            Event::Out(_) => {}
        }
        self.keep();
        Ok(())
    }

    fn arrives(&mut self, s: &Segment) {
        let options = s.options.as_deref().unwrap_or_default().iter().flat_map(bytes_of).collect::<Vec<u8>>();
        let mut bytes = vec![0; 20];
        bytes[..2].copy_from_slice(&self.flow.remote.port().to_be_bytes());
        bytes[2..4].copy_from_slice(&self.flow.local.port().to_be_bytes());
        bytes[4..8].copy_from_slice(&ISN.wrapping_add(s.seq).to_be_bytes());
        let ack = s.ack.map_or(0, |a| self.iss.unwrap_or(0).wrapping_add(a));
        bytes[8..12].copy_from_slice(&ack.to_be_bytes());
        bytes[12] = (((20 + options.len().next_multiple_of(4)) / 4) << 4) as u8;
        bytes[13] = flags(&s.flags);
        bytes[14..16].copy_from_slice(&(s.window.unwrap_or(0) as u16).to_be_bytes());
        bytes[18..20].copy_from_slice(&s.urgent.to_be_bytes());
        bytes.extend(&options);
        bytes.resize(20 + options.len().next_multiple_of(4) + s.length as usize, 0);
        let notes = IpNotes { marked: s.ecn == 3, route: Arrived::Directly };
        match s.ecn {
            3 => self.engine.input_noted(self.flow, &mut bytes, self.now, &notes).unwrap(),
            _ => self.engine.input(self.flow, &mut bytes, self.now).unwrap(),
        }
    }

    /// The next segment that was sent must be this one.
    fn expect(&mut self, at: i64, want: &Segment) -> Result<(), String> {
        let (time, ecn, bytes) = self.sent.pop_front().ok_or("no segment is sent")?;
        let shown = self.show(ecn, &bytes);
        if time != at {
            return Err(format!("sent {} ms earlier: {shown}", (at - time) / 1_000_000));
        }
        let got = self.segment(ecn, &bytes);
        let same = got.ecn == want.ecn
            && got.flags == want.flags
            && got.seq == want.seq
            && got.length == want.length
            && got.urgent == want.urgent
            && (want.ack.is_none() || got.ack == want.ack)
            && (want.window.is_none() || got.window == want.window)
            && want.options.as_ref().is_none_or(|o| alike(o, &got.options.unwrap_or_default()));
        if same { Ok(()) } else { Err(format!("sent instead: {shown}")) }
    }
    /// A segment that was sent.
    fn segment(&self, ecn: u8, bytes: &[u8]) -> Segment {
        let header = usize::from(bytes[12] >> 4) * 4;
        let is_ack = bytes[13] & 16 != 0;
        // A RST without a connection has the number that the peer acknowledged.
        let base = self.iss.unwrap_or(0);
        Segment {
            ecn,
            flags: FLAGS.iter().filter(|(bit, _)| bytes[13] & bit != 0).map(|t| t.1).collect(),
            seq: word(bytes, 4).wrapping_sub(base),
            length: (bytes.len() - header) as u32,
            ack: is_ack.then(|| word(bytes, 8).wrapping_sub(ISN)),
            window: Some(word(bytes, 12) & 0xffff),
            urgent: word(bytes, 16) as u16,
            options: Some(options_of(&bytes[20..header])),
        }
    }
    fn show(&self, ecn: u8, bytes: &[u8]) -> String {
        let s = self.segment(ecn, bytes);
        let ack = s.ack.map_or(String::new(), |a| format!(" ack {a}"));
        let (last, window) = (s.seq.wrapping_add(s.length), s.window.unwrap_or(0));
        format!(
            "{}{} {}:{last}({}){ack} win {window} {:?}",
            ["", "[ect1] ", "[ect0] ", "[ce] "][usize::from(ecn & 3)],
            s.flags,
            s.seq,
            s.length,
            s.options.unwrap_or_default()
        )
    }

    /// The error of the connection that has ended, by its number in Linux: refused, reset, timed out or unreachable.
    fn error(&self) -> i64 {
        let counts = self.engine.counts();
        let all = [
            (&counts.refused, 111),
            (&counts.reset, 104),
            (&counts.timed_out, 110),
            (&counts.unreachable, 113),
        ];
        all.iter().find(|(count, _)| count.get() > 0).map_or(0, |(_, error)| *error)
    }

    fn call(&mut self, name: &str, n: Option<u32>) -> Result<i64, String> {
        let now = self.now;
        let mut done = -1;
        match name {
            "socket" => return Ok(3),
            "bind" | "setsockopt" => return Ok(0),
            "accept" => {
                let all = self.engine.connections();
                let open = all.iter().any(|c| c.flow == self.flow && c.state != "SYN-RECEIVED");
                return Ok(if open { 4 } else { -1 });
            }
            "getsockopt" => return Ok(self.error()),
            "listen" => {
                let listener = Listener { application: 0, added: false };
                return Ok(self.engine.listen(PORT, listener).map_or(-1, |()| 0));
            }
            "connect" => {
                self.flow = self.engine.connect(None, PEER, 0, now).map_err(|e| e.to_string())?;
                return Ok(0);
            }
            "close" | "shutdown" | "abort" | "write" | "write_urgent" | "read" | "urgent" | "unanswered" => {}
            other => return Err(format!("'{other}' is no call")),
        }
        let n = n.unwrap_or(0) as usize;
        let result = self.engine.with_stream(self.flow, now, |s| match name {
            "write" => done = s.generate(n, |i| i as u8) as i64,
            "write_urgent" => {
                done = s.generate(n, |i| i as u8) as i64;
                s.mark_urgent();
            }
            "urgent" => done = s.urgent() as i64,
            "unanswered" => done = i64::from(s.is_unanswered()),
            "read" if s.available() > 0 => done = s.consume(n) as i64,
            "read" => done = if s.is_at_end() { 0 } else { -1 },
            "abort" => {
                s.abort();
                done = 0;
            }
            _ => {
                s.close();
                done = 0;
            }
        });
        Ok(result.map_or(-1, |()| done))
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |n, b| n << 8 | u32::from(*b))
}

/// The flags, by their letters in packetdrill.
const FLAGS: [(u8, char); 8] =
    [(1, 'F'), (2, 'S'), (4, 'R'), (8, 'P'), (16, '.'), (32, 'U'), (64, 'E'), (128, 'W')];

fn flags(text: &str) -> u8 {
    FLAGS.iter().filter(|(_, letter)| text.contains(*letter)).map(|(bit, _)| bit).sum()
}

/// Whether options are those that are wanted, where the value of a timestamp may be any.
fn alike(want: &[TcpOption], got: &[TcpOption]) -> bool {
    want.len() == got.len()
        && want.iter().zip(got).all(|(w, g)| match (w, g) {
            (TcpOption::Timestamp(None, a), TcpOption::Timestamp(_, b)) => a == b,
            _ => w == g,
        })
}

fn bytes_of(o: &TcpOption) -> Vec<u8> {
    match o {
        TcpOption::Nop => vec![1],
        TcpOption::Raw(bytes) => bytes.clone(),
        TcpOption::Mss(n) => [&[2, 4], &n.to_be_bytes()[..]].concat(),
        TcpOption::Scale(n) => vec![3, 3, *n],
        TcpOption::SackOk => vec![4, 2],
        TcpOption::Sack(ranges) => {
            let ends = ranges.iter().flat_map(|(a, b)| [*a, *b]);
            let mut out = vec![5, 2 + 8 * ranges.len() as u8];
            out.extend(ends.flat_map(|n| n.to_be_bytes()));
            out
        }
        TcpOption::Timestamp(value, echo) => {
            [&[8, 10], &value.unwrap_or(0).to_be_bytes()[..], &echo.to_be_bytes()].concat()
        }
    }
}

/// Reads options. The ranges of selective acknowledgements count from the peer's initial number.
fn options_of(mut list: &[u8]) -> Vec<TcpOption> {
    let mut out = Vec::new();
    while let [kind, rest @ ..] = list {
        if *kind == 1 {
            out.push(TcpOption::Nop);
            list = rest;
            continue;
        }
        if *kind == 0 {
            break;
        }
        let (option, after) = list.split_at(usize::from(list[1]));
        out.push(match *kind {
            2 => TcpOption::Mss(u16::from_be_bytes([option[2], option[3]])),
            3 => TcpOption::Scale(option[2]),
            4 => TcpOption::SackOk,
            5 => {
                let ends = option[2..].chunks(4).map(|w| word(w, 0).wrapping_sub(ISN)).collect::<Vec<_>>();
                TcpOption::Sack(ends.chunks(2).map(|r| (r[0], r[1])).collect())
            }
            _ => TcpOption::Timestamp(Some(word(option, 2)), word(option, 6)),
        });
        list = after;
    }
    out
}
