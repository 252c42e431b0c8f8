// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for the TCP: any segments, in any state, with time and calls of the user between them.

use castanet_element::{Secret, Seed};
use castanet_tcp::application::{Application, Registered, Session, Tally};
use castanet_tcp::engine::{
    Arrived, Ecn, Engine, Flow, IcmpError, IpNotes, Listener, Route, Settings, Stream, invariants,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// The most steps of an input.
const STEPS: usize = 2_000;

/// Sends back what it receives, and writes some data of its own. It closes when the peer has.
struct User;

impl Application for User {
    fn run(&self, session: &mut Session, stream: &mut Stream<'_>) {
        stream.echo();
        if stream.is_connected() && session.written < 5_000 {
            session.written += stream.generate(5_000 - session.written as usize, |n| n as u8) as u64;
        }
        if stream.is_at_end() {
            stream.close();
        }
    }
}

/// An engine with little of everything.
fn engine() -> Engine {
    let settings = Settings {
        addresses: vec![OURS],
        connections: 6,
        backlog: 3,
        memory: 65_536,
        rcvbuf: 20_000,
        sndbuf: 20_000,
        ttl: 64,
        dscp: 0,
        keep_alive: 30,
        user_timeout: 100,
        no_delay: true,
        path_mtu: true,
        ecn: Ecn::Offer,
        super_packets: true,
    };
    let mut e = Engine::new(settings, Secret::of(Seed::Fixed(1), "tcp"));
    e.set_applications(vec![Registered {
        name: "user".into(),
        element: 0,
        application: Arc::new(User),
        tally: Tally::default(),
        ports: Vec::new(),
        peers: Vec::new(),
    }]);
    assert!(e.listen(80, Listener { application: 0, added: false }).is_ok());
    e
}

/// Takes numbers from the input; 0 after its end.
struct Input<'a>(std::slice::Iter<'a, u8>);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }
    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }
}

/// The flow that a step is about: from one of four ports of the peer to port 80, or that of a connection of this end.
fn flow(e: &Engine, n: u8) -> Flow {
    let remote = SocketAddrV4::new(PEER, 1000 + u16::from(n & 3));
    let own = e.connections().into_iter().map(|c| c.flow).find(|f| f.local.port() != 80);
    own.filter(|_| n & 4 != 0).unwrap_or(Flow { local: SocketAddrV4::new(OURS, 80), remote })
}

/// A segment whose numbers are near those that the connection waits for.
fn segment(e: &Engine, flow: Flow, input: &mut Input<'_>) -> Vec<u8> {
    let (next, max) = e.numbers(flow).unwrap_or((0, 0));
    let shift = input.byte();
    let near = |n: u32, by: u16| n.wrapping_add((i32::from(by as i16) << (shift & 15)) as u32);
    let (seq, ack) = (near(next, input.word()), near(max, input.word()));
    let (flags, window, urgent) = (input.byte(), input.word(), input.word());
    let (options, data) = (usize::from(input.byte() % 11) * 4, usize::from(input.byte()) * 6);
    let mut s = vec![0; 20];
    s[4..8].copy_from_slice(&seq.to_be_bytes());
    s[8..12].copy_from_slice(&ack.to_be_bytes());
    // Sometimes the header says that it is longer or shorter.
    let length = (20 + options) as u8 / 4;
    s[12] = if shift & 0x70 == 0x70 { input.byte() } else { length << 4 };
    s[13] = flags;
    s[14..16].copy_from_slice(&window.to_be_bytes());
    s[18..20].copy_from_slice(&urgent.to_be_bytes());
    s.extend((0..options).map(|_| input.byte()));
    s.resize(s.len() + data, 7);
    s
}

/// The notes on the IP header of a segment: a mark, and a source route.
fn notes(input: &mut Input<'_>) -> IpNotes {
    let n = input.byte();
    let options: Vec<u8> = (0..n & 31).map(|_| input.byte()).collect();
    IpNotes { marked: n & 32 != 0, route: Arrived::of(&options, PEER) }
}

/// An ICMP error about a segment that the connection has sent lately.
fn error(e: &Engine, flow: Flow, input: &mut Input<'_>) -> IcmpError {
    let (_, max) = e.numbers(flow).unwrap_or((0, 0));
    let kind = [3, 3, 4, 11, 12][usize::from(input.byte() % 5)];
    let (code, seqno) = (input.byte() % 8, max.wrapping_sub(u32::from(input.word())));
    IcmpError { flow, kind, code, seqno, size: input.word(), mtu: input.word() >> 5 }
}

/// The first byte of a step says what happens: a segment (and of which flow), time, an ICMP error, or a call of the user.
pub fn tcp(data: &[u8]) {
    let mut e = engine();
    let (mut input, mut now) = (Input(data.iter()), 1_000_000_000_000);
    e.pass_time(now);
    for _ in 0..STEPS {
        if input.0.len() == 0 {
            break;
        }
        let kind = input.byte();
        match kind >> 3 {
            0..=23 => {
                let flow = flow(&e, kind);
                let mut s = segment(&e, flow, &mut input);
                // An error is a segment that was dropped.
                let _ = e.input(flow, &mut s, now);
            }
            24..=25 => {
                let flow = flow(&e, kind);
                let notes = notes(&mut input);
                let mut s = segment(&e, flow, &mut input);
                let _ = e.input_noted(flow, &mut s, now, &notes);
            }
            26..=29 => {
                now += i64::from(input.word()) * 10_000_000;
                e.pass_time(now);
            }
            30 => {
                let hops = &[Ipv4Addr::new(10, 0, 9, 1); 9][..usize::from(kind & 7)];
                let route = Route::over(kind & 1 != 0, hops, PEER).unwrap_or_default();
                let _ = e.connect_along(route, None, SocketAddrV4::new(PEER, 80), 0, now);
            }
            _ if kind & 4 != 0 => {
                let flow = flow(&e, kind >> 1);
                let error = error(&e, flow, &mut input);
                let _ = e.icmp_error(&error, now);
            }
            _ => {
                let ends = e.connections();
                let some = ends.get(usize::from(input.byte()) % ends.len().max(1));
                let call = |s: &mut Stream<'_>| if kind & 1 == 0 { s.close() } else { s.abort() };
                if let Some(c) = some {
                    let _ = e.with_stream(c.flow, now, call);
                }
            }
        }
        drop(e.packets());
        invariants::check(&e);
        assert!(e.memory() <= 65_536 + 3_000, "{} bytes", e.memory());
    }
    for c in e.connections() {
        // A connection that has just ended cannot be aborted.
        let _ = e.with_stream(c.flow, now, |s| s.abort());
    }
    assert_eq!((e.size(), e.memory(), e.half_open()), (0, 0, 0), "{:?}", e.connections());
}

#[cfg(test)]
mod tests {
    use castanet_element::Random;

    #[test]
    fn noise_is_taken() {
        for seed in 0..300 {
            let mut random = Random::new(seed, "tcp");
            let n = random.below(6_000);
            super::tcp(&(0..n).map(|_| random.next_u64() as u8).collect::<Vec<u8>>());
        }
    }
}
