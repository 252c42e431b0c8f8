// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests Socket, RawSocket and McastSocket against sockets of the standard library.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::device::mcast_socket::McastSocket;
use crate::device::raw_socket::RawSocket;
use castanet_element::kit::{Kit, packet};
use castanet_element::spec::anno;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Instant;

const LONG: Duration = Duration::from_secs(100);

/// Returns a port that is free for both TCP and UDP.
fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Runs the task until `done` returns true for the packets emitted so far. Returns these packets.
fn turns<T: Build + Element>(
    kit: &mut Kit<T>,
    mut done: impl FnMut(&mut Kit<T>, &[Packet]) -> bool,
) -> Vec<Packet> {
    let (start, mut all) = (Instant::now(), Vec::new());
    loop {
        let (turn, out) = kit.task();
        assert!(out.iter().all(|o| o.0 == 0));
        all.extend(out.into_iter().map(|o| o.1));
        if done(kit, &all) {
            return all;
        }
        assert!(start.elapsed() < LONG, "nothing happened; {} packets", all.len());
        if turn == Turn::Sleep {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

fn bytes(packets: &[Packet]) -> Vec<u8> {
    packets.iter().flat_map(|p| p.data().to_vec()).collect()
}

/// Returns a Socket with these numbers of ports. Its input is push.
fn socket(config: &str, inputs: usize, outputs: usize) -> Kit<Socket> {
    Kit::with_ports(config, inputs, outputs).unwrap_or_else(|e| panic!("{config}: {e:?}"))
}

#[test]
fn a_server_serves_one_after_the_other() {
    let port = free_port();
    let mut kit = socket(&format!("TCP, 127.0.0.1, {port}, SNAPLEN 7, HEADROOM 50, VERBOSE true"), 1, 1);
    assert_eq!(kit.task().0, Turn::Sleep);
    assert!(kit.waits());
    assert!(kit.push(0, [packet(b"to whom?")]).is_empty());
    assert_eq!(kit.dropped(Reason::NotConnected), 1);
    for n in 1..=2u32 {
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut other = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.write_all(b"hello, this is a client").unwrap();
        other.write_all(b"me too").unwrap();
        let got = turns(&mut kit, |_, all| bytes(all).len() == 23);
        assert_eq!(bytes(&got), b"hello, this is a client");
        assert!(got.iter().all(|p| p.len() <= 7 && p.headroom() == 50 && p.timestamp() > 0));
        assert!(kit.push(0, [packet(b"good "), packet(b""), packet(b"day")]).is_empty());
        let mut answer = [0; 8];
        client.set_read_timeout(Some(LONG)).unwrap();
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"good day");
        drop(client);
        let got = turns(&mut kit, |_, all| bytes(all).len() == 6);
        assert_eq!(bytes(&got), b"me too");
        drop(other);
        turns(&mut kit, |k, _| k.read("connected").unwrap() == "false");
        assert_eq!(kit.read("connections").unwrap(), (2 * n).to_string());
    }
    let messages = kit.messages();
    let start = "e :: Socket: connection from 127.0.0.1:";
    assert_eq!(messages.iter().filter(|m| m.starts_with(start)).count(), 4);
    assert_eq!((kit.read("sent").unwrap(), kit.read("failures").unwrap()), ("6".into(), "0".into()));
    kit.cleanup().unwrap();
    // Dropping the kit also closes the descriptors that its run loop still held.
    drop(kit);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn nothing_is_lost_when_buffers_are_full() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    for pull in [false, true] {
        let mut kit = socket(&format!("TCP, 127.0.0.1, {port}, SNDBUF 5000"), 1, 0);
        let (mut theirs, _) = server.accept().unwrap();
        theirs.set_read_timeout(Some(LONG)).unwrap();
        let data: Vec<Vec<u8>> = (0..1000u32).map(|i| vec![i as u8; 4000]).collect();
        if pull {
            let mut other = Kit::<Socket>::with_ports(&format!("UDP, 127.0.0.1, {port}"), 1, 0).unwrap();
            other.element.pump.set_pull();
            std::mem::swap(&mut kit.element.pump, &mut other.element.pump);
            data.iter().for_each(|d| kit.supply(0, packet(d)));
        } else {
            assert!(kit.push(0, data.iter().map(|d| packet(d))).is_empty());
        }
        let reader = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            let mut got = Vec::new();
            theirs.read_to_end(&mut got).unwrap();
            got
        });
        let mut waited = false;
        turns(&mut kit, |k, _| {
            waited |= k.waits();
            k.read("sent").unwrap() == "1000"
        });
        assert!(waited && kit.all_dropped() == kit.dropped(Reason::Consumed));
        kit.cleanup().unwrap();
        assert!(reader.join().unwrap() == data.concat());
        // If more packets are pushed than may wait, the rest are dropped and counted.
        let mut kit = socket(&format!("TCP, 127.0.0.1, {port}, SNDBUF 5000"), 1, 0);
        let (mut theirs, _) = server.accept().unwrap();
        theirs.set_read_timeout(Some(LONG)).unwrap();
        kit.push(0, (0..3000).map(|_| packet(&[7; 4000])));
        let lost = kit.dropped(Reason::QueueFull);
        assert!(lost > 1000);
        kit.cleanup().unwrap();
        assert_eq!(lost + kit.dropped(Reason::Consumed) + kit.dropped(Reason::Stopped), 3000);
        let whole = kit.dropped(Reason::Consumed) as usize * 4000;
        let mut got = Vec::new();
        theirs.read_to_end(&mut got).unwrap();
        assert!(got.len() >= whole);
    }
}

#[test]
fn a_peer_that_half_closes_gets_the_rest_and_one_that_resets_is_counted() {
    let port = free_port();
    let mut kit = socket(&format!("TCP, 127.0.0.1, {port}, SNDBUF 5000"), 1, 1);
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    turns(&mut kit, |k, _| k.read("connected").unwrap() == "true");
    kit.push(0, (0..300).map(|_| packet(&[9; 4000])));
    client.shutdown(std::net::Shutdown::Write).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    let reader = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        got
    });
    turns(&mut kit, |k, _| k.read("connected").unwrap() == "false");
    assert_eq!(reader.join().unwrap(), vec![9; 1_200_000]);
    assert_eq!(kit.read("sent").unwrap(), "300");

    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    turns(&mut kit, |k, _| k.read("connected").unwrap() == "true");
    kit.push(0, [packet(b"never read")]);
    std::thread::sleep(Duration::from_millis(5));
    // Closing a connection with unread data resets it.
    drop(client);
    turns(&mut kit, |k, _| k.read("connected").unwrap() == "false");
    assert_eq!((kit.read("failures").unwrap(), kit.messages().len()), ("1".into(), 1));
    let again = TcpStream::connect(("127.0.0.1", port)).unwrap();
    turns(&mut kit, |k, _| k.read("connected").unwrap() == "true");
    drop(again);
}

#[test]
fn tcp_clients() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let local = free_port();
    let config = format!("TCP, 127.0.0.1, {port}, 127.0.0.1, {local}, CLIENT true, NODELAY 0");
    let mut kit = socket(&config, 1, 1);
    let (mut theirs, from) = server.accept().unwrap();
    assert_eq!(from, SocketAddr::from(([127, 0, 0, 1], local)));
    theirs.write_all(b"question").unwrap();
    assert_eq!(bytes(&turns(&mut kit, |_, all| bytes(all).len() == 8)), b"question");
    drop(theirs);
    turns(&mut kit, |k, _| k.read("connected").unwrap() == "false");
    assert!(!kit.waits(), "and that is the end of it");
    kit.push(0, [packet(b"late")]);
    assert_eq!(kit.dropped(Reason::NotConnected), 1);
    // Without an output, data is not read, but the end of the connection is noticed.
    let mut kit = socket(&format!("TCP, 127.0.0.1, {port}"), 1, 0);
    let (theirs, _) = server.accept().unwrap();
    assert_eq!((kit.task().0, kit.waits()), (Turn::Sleep, true));
    drop(theirs);
    turns(&mut kit, |k, _| k.read("connected").unwrap() == "false");
    drop(server);
    let error = Kit::<Socket>::with_ports(&format!("TCP, 127.0.0.1, {port}"), 1, 0).err().unwrap();
    assert!(
        error[0].starts_with("cannot connect to 127.0.0.1:") && error[0].contains("refused"),
        "{error:?}"
    );
}

#[test]
fn udp_both_ways() {
    let port = free_port();
    let mut server = socket(&format!("UDP, 127.0.0.1, {port}, SNAPLEN 10"), 1, 1);
    let mut client = socket(&format!("UDP, 127.0.0.1, {port}, CLIENT true"), 1, 1);
    server.push(0, [packet(b"to whom?")]);
    assert_eq!(server.dropped(Reason::NotConnected), 1);
    client.push(0, [packet(b"one"), packet(b""), packet(b"longer than that")]);
    let got = turns(&mut server, |_, all| all.len() == 3);
    assert_eq!(got.iter().map(|p| p.data()).collect::<Vec<_>>(), [&b"one"[..], b"", b"longer tha"]);
    assert_eq!(got.iter().map(|p| p.anno_u32(anno::EXTRA_LENGTH)).collect::<Vec<_>>(), [0, 0, 6]);
    server.push(0, [packet(b"answer")]);
    assert_eq!(bytes(&turns(&mut client, |_, all| all.len() == 1)), b"answer");
    // Packets that are too long for a datagram are reported once, and later packets are still sent.
    client.push(0, [packet(&[0; 65_530]), packet(&[0; 65_530]), packet(b"two")]);
    assert_eq!((client.dropped(Reason::WriteFailed), client.messages().len()), (2, 1));
    assert_eq!(bytes(&turns(&mut server, |_, all| all.len() == 1)), b"two");
    // Without a receiver, the kernel reports errors, and the element continues.
    server.cleanup().unwrap();
    for _ in 0..5 {
        client.push(0, [packet(b"x")]);
        client.task();
    }
    assert_eq!(client.messages().len(), 0, "the first failure was reported already");
}

#[test]
fn unix_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut server = socket(&format!("UNIX, {}", path("s")), 1, 1);
    let mut client = UnixStream::connect(path("s")).unwrap();
    client.write_all(b"hello").unwrap();
    assert_eq!(bytes(&turns(&mut server, |_, all| bytes(all).len() == 5)), b"hello");
    server.push(0, [packet(b"good day")]);
    client.read_exact(&mut [0; 8]).unwrap();
    server.cleanup().unwrap();
    assert!(!folder.path().join("s").exists());

    let mut server = socket(&format!("UNIX_DGRAM, {}", path("d")), 1, 1);
    let mut client = socket(&format!("UNIX_DGRAM, {}, {}, CLIENT true", path("d"), path("c")), 1, 1);
    client.push(0, [packet(b"one"), packet(b"two")]);
    assert_eq!(turns(&mut server, |_, all| all.len() == 2)[1].data(), b"two");
    // The kernel does not queue all of these packets for a receiver. The rest wait in the element until the descriptor
    // is writable or a timer expires.
    let all: Vec<Vec<u8>> = (0..500u16).map(|i| i.to_be_bytes().to_vec()).collect();
    for (from, to) in [(&mut client, &mut server)] {
        from.push(0, all.iter().map(|d| packet(d)));
        assert!(from.waits());
        let mut got = Vec::new();
        while got.len() < 1000 {
            got.extend(bytes(&to.task().1.into_iter().map(|o| o.1).collect::<Vec<_>>()));
            from.task();
        }
        assert_eq!(got, all.concat());
    }
    server.push(0, all.iter().map(|d| packet(d)));
    assert!(server.next_timer().is_some(), "no descriptor tells when the other end has room");
    let mut got = Vec::new();
    while got.len() < 1000 {
        got.extend(bytes(&client.task().1.into_iter().map(|o| o.1).collect::<Vec<_>>()));
        if server.next_timer().is_some() {
            server.expire();
            assert!(server.woken());
        }
        server.task();
    }
    assert_eq!(got, all.concat());
}

#[test]
fn hosts_that_are_kept_out() {
    // The test kit answers in place of the tables, and gives the same answer for all of them.
    let mut names = Names::new();
    for (i, name) in ["e", "table", "other"].into_iter().enumerate() {
        names.define_element(name, i, if i == 2 { "Queue" } else { "RadixIPLookup" });
    }
    for (tables, answer, let_in) in [
        ("ALLOW table", "0", true),
        ("ALLOW table", "-1", false),
        ("DENY table", "0", false),
        ("DENY table", "-1", true),
        ("ALLOW table, DENY table", "3 1.2.3.4", true),
        ("ALLOW table, DENY table", "-1", true),
        ("ALLOW table", "nonsense", false),
        ("DENY table", "nonsense", false),
    ] {
        let port = free_port();
        let kit = |kind: &str| {
            let config = format!("{kind}, 127.0.0.1, {port}, {tables}");
            let mut kit = Kit::<Socket>::with_names(&config, 1, 1, names.clone()).unwrap();
            kit.answer("lookup", answer);
            kit
        };
        let (mut tcp, mut udp) = (kit("TCP"), kit("UDP"));
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"x", ("127.0.0.1", port)).unwrap();
        if let_in {
            client.write_all(b"y").unwrap();
            assert_eq!(bytes(&turns(&mut tcp, |_, all| !all.is_empty())), b"y", "{tables} {answer}");
            assert_eq!(bytes(&turns(&mut udp, |_, all| !all.is_empty())), b"x", "{tables} {answer}");
        } else {
            turns(&mut tcp, |k, _| k.read("refused").unwrap() == "1");
            turns(&mut udp, |k, _| k.read("refused").unwrap() == "1");
            assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0, "{tables} {answer}");
        }
        assert_eq!(tcp.calls()[0].1, "lookup");
        assert_eq!(tcp.element.tables.allow.is_some(), tables.contains("ALLOW"));
    }
    let error = Kit::<Socket>::with_names("TCP, 127.0.0.1, 9, ALLOW other", 1, 1, names).err().unwrap();
    assert_eq!(error, ["ALLOW: 'other' is a Queue, not a route table such as RadixIPLookup"]);
}

#[test]
fn argument_errors() {
    for (config, error) in [
        ("SCTP, 1.2.3.4, 5", "TYPE: expected TCP, UDP, UNIX or UNIX_DGRAM"),
        ("TCP, 1.2.3.4", "PORT: required argument missing"),
        ("UDP, 1.2.3, 4", "ADDR: "),
        ("UDP, 1.2.3.4, 65536", "PORT: out of range"),
        ("UDP, 1.2.3.4, nosuch", "PORT: "),
        ("UDP, 1.2.3.4, 5, x", "LOCAL_ADDR: "),
        ("UDP, 1.2.3.4, 5, 1.2.3.4, x", "LOCAL_PORT: "),
        ("UNIX, a, b, c", "too many arguments"),
        ("TCP, 1.2.3.4, 5, SNAPLEN 0", "SNAPLEN: must be between 1 and 65535"),
        ("TCP, 1.2.3.4, 5, SNAPLEN 65536", "SNAPLEN: must be between 1 and 65535"),
        ("TCP, 1.2.3.4, 5, HEADROOM 8193", "HEADROOM: "),
        ("UDP, 192.0.2.1, 5", "cannot bind to 192.0.2.1:5: "),
    ] {
        let got = Kit::<Socket>::with_ports(config, 1, 1).err().unwrap_or_else(|| panic!("{config}"));
        assert!(got[0].starts_with(error), "{config}: {got:?}");
    }
    let kit = socket(&format!("UDP, 127.0.0.1, {}, PROPER true", free_port()), 0, 1);
    assert!(kit.warnings()[0].starts_with("PROPER: "));
}

#[test]
fn multicast() {
    let port = free_port();
    let config = format!("239.255.77.2, {port}, 127.0.0.1");
    let mut a = Kit::<McastSocket>::with_ports(&config, 1, 1).unwrap();
    let mut b = Kit::<McastSocket>::with_ports(&format!("{config}, SNAPLEN 4"), 0, 1).unwrap();
    let mut c = Kit::<McastSocket>::with_ports(&config, 1, 0).unwrap();
    // A member does not receive what it has sent itself.
    a.push(0, [packet(b"own")]);
    c.push(0, [packet(b"hello"), packet(b"all")]);
    for (kit, want) in [(&mut a, &[&b"hello"[..], b"all"][..]), (&mut b, &[b"own", b"hell", b"all"])] {
        let got = turns(kit, |_, all| all.len() == want.len());
        assert_eq!(got.iter().map(Packet::data).collect::<Vec<_>>(), want);
        assert!(got[0].timestamp() > 0 && kit.waits());
        assert_eq!(kit.read("received").unwrap(), want.len().to_string());
    }
    assert_eq!((a.read("sent").unwrap(), a.dropped(Reason::Consumed)), ("1".into(), 1));
    assert_eq!((c.read("sent").unwrap(), c.dropped(Reason::Consumed)), ("2".into(), 2));
    a.cleanup().unwrap();
    for (config, error) in [
        ("10.0.0.1, 5", "MCASTIP: "),
        ("239.0.0.1, x", "MCASTPORT: "),
        ("239.0.0.1, 5, 1.2.3.4, x", "SOURCEPORT: "),
    ] {
        let got = Kit::<McastSocket>::with_ports(config, 0, 1).err().unwrap();
        assert!(got[0].starts_with(error), "{got:?}");
    }
}

#[test]
fn raw() {
    let mut kit = match Kit::<RawSocket>::with_ports("icmp", 1, 1) {
        Ok(kit) => kit,
        Err(e) => {
            assert!(e[0].contains("CAP_NET_RAW"), "{e:?}");
            return println!("SKIP: {}", e[0]);
        }
    };
    let mut request = Vec::new();
    let b = etherparse::PacketBuilder::ipv4([127, 0, 0, 1], [127, 0, 0, 77], 64).icmpv4_echo_request(7, 9);
    b.write(&mut request, b"from the element").unwrap();
    kit.supply(0, packet(&request));
    kit.supply(0, packet(b"no IP"));
    let is_reply = |p: &Packet| p.data()[12..16] == [127, 0, 0, 77] && p.data()[20] == 0;
    let got = turns(&mut kit, |_, all| all.iter().any(is_reply));
    let reply = got.iter().find(|p| is_reply(p)).unwrap();
    assert!(reply.data().ends_with(b"from the element"));
    assert_eq!((reply.network_header_length(), reply.dst_addr()), (20, Ipv4Addr::LOCALHOST));
    assert_eq!((kit.dropped(Reason::Consumed), kit.dropped(Reason::WriteFailed)), (1, 1));
    assert_eq!(kit.read("sent").unwrap(), "1");
    kit.cleanup().unwrap();
    assert!(Kit::<RawSocket>::with_ports("udp, nosuch", 0, 1).is_err());
    assert!(Kit::<RawSocket>::with_ports("nosuch", 0, 1).is_err());
}
