// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that a connection takes while it is idle. A file of its own, because allocation_counter replaces the allocator of the whole
//! process.
#![allow(clippy::unwrap_used)]

use castanet_element::{Secret, Seed};
use castanet_tcp::application::{Application, Registered, Session, Tally};
use castanet_tcp::engine::{Ecn, Engine, Flow, Listener, Settings, Stream};
use castanet_wire::ipv4::Ipv4Header;
use castanet_wire::tcp::{TcpHeader, flag};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// The number of connections. Tables whose size is a power of two are filled to about three quarters by it.
const CONNECTIONS: u32 = 100_000;
const NOW: i64 = 1_000_000_000_000;

struct Echo;

impl Application for Echo {
    fn run(&self, _: &mut Session, stream: &mut Stream<'_>) {
        stream.echo();
    }
}

fn engine() -> Engine {
    let settings = Settings {
        addresses: vec![Ipv4Addr::new(10, 0, 0, 1)],
        connections: CONNECTIONS as usize,
        backlog: 1000,
        memory: 10_000_000,
        rcvbuf: 100_000,
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
    let mut e = Engine::new(settings, Secret::of(Seed::Fixed(1), "tcp"));
    e.set_applications(vec![Registered {
        name: "echo".into(),
        element: 0,
        application: Arc::new(Echo),
        tally: Tally::default(),
        ports: vec![],
        peers: vec![],
    }]);
    e.listen(7, Listener { application: 0, added: false }).unwrap();
    e
}

/// Gives a segment to the engine. Returns the number of its last answer.
fn give(e: &mut Engine, flow: Flow, flags: u8, [seq, ack]: [u32; 2], data: &[u8]) -> Option<u32> {
    let header = TcpHeader {
        src_port: flow.remote.port().into(),
        dst_port: flow.local.port().into(),
        seq: seq.into(),
        ack: ack.into(),
        offset: 5 << 4,
        flags,
        window: 60_000.into(),
        checksum: 0.into(),
        urgent: 0.into(),
    };
    let mut segment = [&header.to_bytes()[..], data].concat();
    e.input(flow, &mut segment, NOW).unwrap();
    let last = e.packets().next_back()?;
    Some(TcpHeader::from_prefix(&last.data()[Ipv4Header::LEN..]).unwrap().seq.get())
}

/// Opens connections, each of which echoes this data. Then all of them are idle.
fn open(e: &mut Engine, connections: u32, data: &[u8]) {
    for n in 0..connections {
        let remote = Ipv4Addr::from_bits(0x0a01_0000 + n);
        let flow = Flow {
            local: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7),
            remote: SocketAddrV4::new(remote, 1000),
        };
        let first = give(e, flow, flag::SYN, [1000, 0], b"").unwrap().wrapping_add(1);
        give(e, flow, flag::ACK, [1001, first], data);
        let after = [1001, first].map(|n| n.wrapping_add(data.len() as u32));
        give(e, flow, flag::ACK, after, b"");
    }
    e.pass_time(NOW + 500_000_000);
    e.pass_time(NOW + 1_000_000_000);
    assert_eq!(e.packets().count(), 0);
    assert_eq!((e.size(), e.half_open(), e.memory(), e.next_timeout()), (connections as usize, 0, 0, None));
}

/// The bytes that each connection takes while it is idle, with its part of all tables.
fn bytes(data: &[u8]) -> i64 {
    // What a thread keeps for all packets does not count.
    open(&mut engine(), 10, data);
    let mut kept = None;
    let taken = allocation_counter::measure(|| {
        let mut e = engine();
        open(&mut e, CONNECTIONS, data);
        kept = Some(e);
    });
    let released = allocation_counter::measure(|| drop(kept));
    assert_eq!(taken.bytes_current, -released.bytes_current, "nothing is left of the connections");
    taken.bytes_current / i64::from(CONNECTIONS)
}

/// docs/tcp.md says what a connection takes: a little more than it does.
#[test]
fn an_idle_connection_takes_what_the_manual_says() {
    let manual = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tcp.md")).unwrap();
    let manual = manual.split_whitespace().collect::<Vec<_>>().join(" ");
    for (what, data) in [("bytes of memory", &b""[..]), ("bytes after an exchange of data", b"ping")] {
        let (before, _) = manual.split_once(what).expect(what);
        let number = before.split_whitespace().next_back().unwrap().replace(',', "");
        let (most, bytes): (i64, i64) = (number.parse().unwrap(), bytes(data));
        println!("{bytes} of {most} {what}");
        assert!((most - 100..=most).contains(&bytes), "{bytes}, but docs/tcp.md says {most} {what}");
    }
}
