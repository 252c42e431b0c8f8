// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests sockets against those of the standard library, over loopback and in a temporary folder.
#![allow(clippy::unwrap_used)]

use super::*;
use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(100);

fn local(port: u16) -> SocketAddress {
    SocketAddress::Inet(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
}

/// Calls `f` until it returns a value.
fn soon<T>(mut f: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(t) = f() {
            return t;
        }
        assert!(start.elapsed() < LONG, "nothing happened");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn receive(e: &mut impl Endpoint, size: usize) -> (Vec<u8>, usize) {
    let mut into = vec![0; size];
    soon(|| match e.receive(&mut into, &mut |_| true) {
        Received::Data(n, whole) => Some((into[..n].to_vec(), whole)),
        Received::Nothing => None,
        other => panic!("{other:?}"),
    })
}

fn accept(l: &mut Listener) -> (Stream, Option<SocketAddrV4>) {
    soon(|| match l.accept(|_| true) {
        Accepted::Stream(s, from) => Some((s, from)),
        Accepted::Nothing => None,
        other => panic!("{other:?}"),
    })
}

/// Sends more data than the buffers hold, first in one direction, then in the other. Checks that the data arrive
/// unchanged.
fn all_comes_through(mut ours: Stream, mut theirs: impl Read + Write + Send) {
    let data: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
    let (mut sent, mut full) = (0, 0);
    std::thread::scope(|t| {
        let data = &data;
        let reader = t.spawn(move || {
            // Start reading only after the sender has filled the buffers.
            std::thread::sleep(Duration::from_millis(30));
            let mut got = vec![0; data.len()];
            theirs.read_exact(&mut got).unwrap();
            assert!(got == *data);
            theirs.write_all(data).unwrap();
        });
        while sent < data.len() {
            match ours.send(&data[sent..]) {
                Sent::Bytes(n) => sent += n,
                Sent::Full => {
                    full += 1;
                    assert!(ours.finish(LONG).unwrap(), "writable in the end");
                }
                other => panic!("{other:?}"),
            }
        }
        let mut got = Vec::new();
        while got.len() < data.len() {
            got.extend(receive(&mut ours, 65_536).0);
        }
        assert!(got == *data);
        reader.join().unwrap();
    });
    assert!(full > 0, "the buffers never filled");
    let end = soon(|| match ours.receive(&mut [0; 9], &mut |_| true) {
        Received::Nothing => None,
        other => Some(other),
    });
    assert!(matches!(end, Received::Closed(_)) && ours.is_over());
}

#[test]
fn streams_both_ways() {
    let options = Options { nodelay: true, sndbuf: Some(20_000), rcvbuf: Some(20_000) };
    let mut server = Listener::new(&local(0), &options).unwrap();
    assert!(matches!(server.accept(|_| true), Accepted::Nothing));
    let theirs = TcpStream::connect(server.address().unwrap()).unwrap();
    let (ours, from) = accept(&mut server);
    assert_eq!(from.map(Into::into), theirs.local_addr().ok());
    all_comes_through(ours, theirs);

    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = local(server.local_addr().unwrap().port());
    let ours = Stream::connect(&address, Some(&local(0)), &options).unwrap();
    assert!(ours.finish(LONG).unwrap());
    all_comes_through(ours, server.accept().unwrap().0);

    let folder = tempfile::tempdir().unwrap();
    let address = SocketAddress::Unix(folder.path().join("s"));
    let mut server = Listener::new(&address, &Options::default()).unwrap();
    let theirs = UnixStream::connect(folder.path().join("s")).unwrap();
    all_comes_through(accept(&mut server).0, theirs);
    drop(server);
    assert!(!folder.path().join("s").exists(), "the file goes with the socket");

    let server = UnixListener::bind(folder.path().join("t")).unwrap();
    let address = SocketAddress::Unix(folder.path().join("t"));
    let ours = Stream::connect(&address, None, &Options::default()).unwrap();
    assert!(ours.finish(LONG).unwrap());
    all_comes_through(ours, server.accept().unwrap().0);
}

#[test]
fn refused_reset_and_half_closed() {
    let mut server = Listener::new(&local(0), &Options::default()).unwrap();
    let address = local(server.address().unwrap().port());
    let theirs = TcpStream::connect(server.address().unwrap()).unwrap();
    let turned_away = soon(|| match server.accept(|a| a != Ipv4Addr::LOCALHOST) {
        Accepted::Nothing => None,
        other => Some(other),
    });
    assert!(matches!(turned_away, Accepted::Refused(Some(_))));
    assert_eq!((&theirs).read(&mut [0; 1]).unwrap_or(0), 0, "and closed");

    // The client shuts down its sending side. Data in the other direction still arrive.
    let mut theirs = TcpStream::connect(server.address().unwrap()).unwrap();
    let (mut ours, _) = accept(&mut server);
    assert!(!ours.is_over());
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    let end =
        soon(|| Some(ours.receive(&mut [0; 9], &mut |_| true)).filter(|r| !matches!(r, Received::Nothing)));
    assert!(matches!(end, Received::Closed(None)));
    assert!(matches!(ours.send(b"late"), Sent::Bytes(4)));
    ours.end();
    let mut got = String::new();
    theirs.read_to_string(&mut got).unwrap();
    assert_eq!(got, "late");

    // The client closes before it has read all data, which resets the connection.
    let theirs = TcpStream::connect(server.address().unwrap()).unwrap();
    let (mut ours, _) = accept(&mut server);
    assert!(matches!(ours.send(b"unread"), Sent::Bytes(6)));
    soon(|| (theirs.peek(&mut [0; 9]).unwrap() == 6).then_some(()));
    drop(theirs);
    let end =
        soon(|| Some(ours.receive(&mut [0; 9], &mut |_| true)).filter(|r| !matches!(r, Received::Nothing)));
    assert!(matches!(end, Received::Closed(Some(_))), "{end:?}");
    let sent = soon(|| Some(ours.send(b"more")).filter(|s| !matches!(s, Sent::Bytes(_))));
    assert!(matches!(sent, Sent::Closed(_)), "no signal ends the process");

    drop(server);
    let ours = Stream::connect(&address, None, &Options::default());
    let error = match ours {
        Ok(s) => s.finish(LONG).unwrap_err().kind(),
        Err(e) => e.kind(),
    };
    assert_eq!(error, io::ErrorKind::ConnectionRefused);
}

#[test]
fn datagrams_to_the_last_peer() {
    let mut server = Datagrams::bind(&local(0), &Options::default()).unwrap();
    let to = server.address().unwrap();
    assert!(matches!(server.send(b"to whom?"), Sent::NoPeer));
    assert!(matches!(server.receive(&mut [0; 9], &mut |_| true), Received::Nothing));
    let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.2:0").unwrap());
    for s in [&a, &b] {
        s.set_read_timeout(Some(LONG)).unwrap();
        s.send_to(b"hello", to).unwrap();
        assert_eq!(receive(&mut server, 100), (b"hello".to_vec(), 5));
        assert!(matches!(server.send(b"answer"), Sent::Bytes(6)));
        let mut got = [0; 9];
        assert_eq!(s.recv(&mut got).unwrap(), 6);
    }
    // A datagram longer than the buffer, an empty one, and one from an address that is not allowed.
    a.send_to(&[7; 1000], to).unwrap();
    assert_eq!(receive(&mut server, 10), (vec![7; 10], 1000));
    a.send_to(&[], to).unwrap();
    assert_eq!(receive(&mut server, 10), (vec![], 0));
    b.send_to(b"no", to).unwrap();
    let refused = soon(|| {
        Some(server.receive(&mut [0; 9], &mut |a| a == Ipv4Addr::LOCALHOST))
            .filter(|r| !matches!(r, Received::Nothing))
    });
    assert!(matches!(refused, Received::Refused));
    assert!(matches!(server.send(b"x"), Sent::Bytes(1)));
    assert_eq!(a.recv(&mut [0; 9]).unwrap(), 1, "the last peer that was allowed");
    assert!(matches!(server.send(&vec![0; 70_000]), Sent::Rejected(_)));
}

#[test]
fn datagrams_to_one_peer() {
    let theirs = UdpSocket::bind("127.0.0.1:0").unwrap();
    theirs.set_read_timeout(Some(LONG)).unwrap();
    let address = local(theirs.local_addr().unwrap().port());
    let mut ours = Datagrams::connect(&address, Some(&local(0)), &Options::default()).unwrap();
    assert!(matches!(ours.send(b"one"), Sent::Bytes(3)));
    let (n, from) = theirs.recv_from(&mut [0; 9]).unwrap();
    assert_eq!((n, from), (3, ours.address().unwrap().into()));
    theirs.send_to(b"two", from).unwrap();
    assert_eq!(receive(&mut ours, 9).0, b"two");
    // After the peer has closed, receiving returns an error, and the socket stays usable.
    drop(theirs);
    assert!(matches!(ours.send(b"x"), Sent::Bytes(1)));
    let trouble =
        soon(|| Some(ours.receive(&mut [0; 9], &mut |_| true)).filter(|r| !matches!(r, Received::Nothing)));
    assert!(matches!(trouble, Received::Trouble(_)));
    for _ in 0..5 {
        assert!(matches!(ours.send(b"x"), Sent::Bytes(1) | Sent::Rejected(_)));
    }
}

#[test]
fn unix_datagrams() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut server = Datagrams::bind(&SocketAddress::Unix(path("s")), &Options::default()).unwrap();
    let nameless = UnixDatagram::unbound().unwrap();
    nameless.send_to(b"hi", path("s")).unwrap();
    assert_eq!(receive(&mut server, 9).0, b"hi");
    assert!(matches!(server.send(b"x"), Sent::NoPeer), "it has no name");
    let mut client = Datagrams::connect(
        &SocketAddress::Unix(path("s")),
        Some(&SocketAddress::Unix(path("c"))),
        &Options::default(),
    )
    .unwrap();
    assert!(matches!(client.send(b"question"), Sent::Bytes(8)));
    assert_eq!(receive(&mut server, 99).0, b"question");
    assert!(matches!(server.send(b"answer"), Sent::Bytes(6)));
    assert_eq!(receive(&mut client, 99).0, b"answer");
    // The kernel queues few datagrams for a slow receiver. Sending reports a full queue, and no datagram is lost.
    let fill = |e: &mut Datagrams| {
        (0..100_000u32)
            .map(|i| e.send(&i.to_be_bytes()))
            .position(|s| matches!(s, Sent::Full | Sent::Later))
            .unwrap()
    };
    let n = fill(&mut client);
    assert!(matches!(client.send(b"x"), Sent::Full));
    let m = fill(&mut server);
    assert!(matches!(server.send(b"x"), Sent::Later));
    for (e, n) in [(&mut server, n), (&mut client, m)] {
        for i in 0..n as u32 {
            assert_eq!(receive(e, 9).0, i.to_be_bytes());
        }
    }
    drop(client);
    assert!(matches!(server.send(b"x"), Sent::Rejected(_)));
}

#[test]
fn places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let address = SocketAddress::Unix(path.clone());
    // A stale file is replaced. A file in use, or a file that is not a socket, is not replaced.
    drop(UnixListener::bind(&path).unwrap());
    let first = Listener::new(&address, &Options::default()).unwrap();
    let text = Listener::new(&address, &Options::default()).unwrap_err().to_string();
    let start = format!("cannot bind to {}: Address already in use", path.display());
    assert!(text.starts_with(&start), "{text}");
    assert!(path.exists());
    drop(first);
    std::fs::write(&path, "text").unwrap();
    assert!(Listener::new(&address, &Options::default()).is_err());
    assert!(Datagrams::bind(&address, &Options::default()).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
    let long = SocketAddress::Unix(folder.path().join("x".repeat(200)));
    assert!(Listener::new(&long, &Options::default()).unwrap_err().to_string().starts_with("cannot use"));
    let foreign = SocketAddress::Inet(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 0));
    let text = Datagrams::bind(&foreign, &Options::default()).unwrap_err().to_string();
    assert!(text.ends_with("(no interface of this host has that address)"), "{text}");
    let nobody = SocketAddress::Unix(folder.path().join("nobody"));
    assert_eq!(
        Stream::connect(&nobody, None, &Options::default()).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
}

#[test]
fn a_file_that_another_socket_was_bound_to_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let address = SocketAddress::Unix(path.clone());
    let replace = || {
        std::fs::remove_file(&path).unwrap();
        UnixListener::bind(&path).unwrap()
    };
    let server = Listener::new(&address, &Options::default()).unwrap();
    let other = replace();
    drop(server);
    UnixStream::connect(&path).unwrap();
    drop(other);
    let client = Datagrams::bind(&SocketAddress::Unix(folder.path().join("d")), &Options::default()).unwrap();
    drop(client);
    assert!(!folder.path().join("d").exists());
    std::fs::remove_file(&path).unwrap();
    let datagrams = Datagrams::bind(&address, &Options::default()).unwrap();
    let _other = replace();
    drop(datagrams);
    UnixStream::connect(&path).unwrap();
    // A regular file that replaced the file of the socket stays too.
    std::fs::remove_file(&path).unwrap();
    let server = Listener::new(&address, &Options::default()).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "text").unwrap();
    drop(server);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
}

#[test]
fn groups() {
    // The loopback interface serves as a network.
    let source = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 77, 1), free);
    let member = |ways, loopback| Multicast::new(group, source, ways, loopback, &Options::default()).unwrap();
    let (mut a, mut b, mut deaf) =
        (member((true, true), true), member((true, false), true), member((false, true), false));
    assert!(matches!(b.send(b"x"), Sent::NoPeer) && b.writable().is_none());
    assert!(
        matches!(deaf.receive(&mut [0; 9], &mut |_| true), Received::Nothing) && deaf.readable().is_none()
    );
    // The loopback interface returns all packets, whatever the loopback option says. So check only the option.
    for (m, looped) in [(&a, true), (&deaf, false)] {
        assert_eq!(rustix::net::sockopt::ip_multicast_loop(m.writable().unwrap()), Ok(looped));
    }
    assert!(matches!(deaf.send(b"hi"), Sent::Bytes(2)));
    assert_eq!((receive(&mut a, 99).0, receive(&mut b, 99).0), (b"hi".to_vec(), b"hi".to_vec()));
    // A sender with a source address does not receive its own datagrams, but receives those of other senders
    // on the same host.
    assert!(matches!(a.send(b"to all"), Sent::Bytes(6)));
    assert_eq!(receive(&mut b, 99).0, b"to all".to_vec());
    assert!(matches!(a.receive(&mut [0; 9], &mut |_| true), Received::Refused));
    assert!(matches!(a.receive(&mut [0; 9], &mut |_| true), Received::Nothing));
    let no_group = SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 9);
    assert!(Multicast::new(no_group, source, (true, false), true, &Options::default()).is_err());
}

#[test]
fn raw_packets() {
    let header = |protocol: u8, payload: &[u8]| {
        let mut p = Vec::new();
        let b = etherparse::PacketBuilder::ipv4([127, 0, 0, 1], [127, 0, 0, 9], 64);
        match protocol {
            17 => b.udp(1000, u16::from_be_bytes([payload[0], payload[1]])).write(&mut p, payload).unwrap(),
            _ => b.icmpv4_echo_request(7, 9).write(&mut p, payload).unwrap(),
        }
        p
    };
    let mut raw = match RawIp::new(1, None, (true, true), &Options::default()) {
        Ok(raw) => raw,
        Err(e) => {
            // Without the right to open raw sockets only the message can be tested.
            assert!(e.to_string().contains("CAP_NET_RAW"), "{e}");
            return println!("SKIP: raw_packets: {e}");
        }
    };
    let mut request = header(1, b"ping");
    // The kernel sets the checksum of the header.
    request[10..12].fill(0);
    assert!(matches!(raw.send(&request), Sent::Bytes(32)));
    let replies = soon(|| {
        let (p, whole) = receive(&mut raw, 1000);
        (p.len() == whole && p[12..16] == [127, 0, 0, 9] && p[20] == 0 && p.ends_with(b"ping")).then_some(p)
    });
    assert!(etherparse::Ipv4Slice::from_slice(&replies).is_ok());
    for n in 0..20 {
        assert!(matches!(raw.send(&request[..n]), Sent::Rejected(_)), "{n}");
    }
    // With a port: packets to other ports are not accepted, and no other socket can bind the port.
    let port = UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
    let mut udp = RawIp::new(17, Some(port), (true, false), &Options::default()).unwrap();
    assert!(UdpSocket::bind(("0.0.0.0", port)).is_err());
    for to in [port ^ 1, port] {
        assert!(matches!(raw.send(&header(17, &to.to_be_bytes())), Sent::Bytes(30)));
    }
    let mut into = [0; 100];
    let got = soon(|| match udp.receive(&mut into, &mut |_| true) {
        Received::Data(n, _) => Some(n),
        _ => None,
    });
    assert_eq!((got, into[22..24].to_vec()), (30, port.to_be_bytes().to_vec()));
    assert!(matches!(udp.send(&request), Sent::NoPeer));
    for n in 0..60 {
        // Packets of any length are handled.
        udp.is_wanted(&[0x4f; 60][..n]);
        assert!(udp.is_wanted(&[&[0x45, 0, 0, 0, 0, 0, 0, 1][..], &vec![0; n]].concat()), "a later fragment");
    }
}
