// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that sockets move to another router without their peers noticing.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::device::mcast_socket::McastSocket;
use crate::handover::testing::{hand_over, prepare};
use castanet_element::kit::{Kit, packet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns a kit with `config`, whose element will take over an open socket. The kit is first built with
/// another configuration, which only serves as a placeholder.
fn inheriting(folder: &tempfile::TempDir, config: &str) -> Kit<Socket> {
    let other = folder.path().join("other");
    let mut kit = Kit::with_ports(&format!("UNIX_DGRAM, {}, CLIENT false", other.display()), 1, 1).unwrap();
    prepare(&mut kit, config, 1, 1);
    kit
}

/// Runs the task until the socket has received at least `n` bytes. Returns these bytes.
fn received(kit: &mut Kit<Socket>, n: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for _ in 0..500_000 {
        all.extend(kit.task().1.into_iter().flat_map(|(_, p)| p.data().to_vec()));
        if all.len() >= n {
            break;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    all
}

#[test]
fn a_connection_stays_with_all_that_is_on_its_way() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let config = format!("TCP, 127.0.0.1, {port}, CLIENT false, SNAPLEN 3");
    let mut old = Kit::<Socket>::with_ports(&format!("{config}, SNDBUF 5000"), 1, 1).unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
    client.write_all(b"abc").unwrap();
    assert_eq!(received(&mut old, 3), b"abc");
    // Send more than the kernel takes, so that some packets wait here, and one of them is half sent.
    let sent: Vec<u8> = (0..1000u32).flat_map(|i| vec![i as u8; 4000]).collect();
    old.push(0, sent.chunks(4000).map(packet));
    let waiting = old.element.pump.waiting();
    assert!(waiting > 500, "{waiting} wait");
    client.write_all(b"def").unwrap();
    let counted = old.read("sent").unwrap();
    let mut new = inheriting(&folder, &format!("{config}, SNDBUF 5000"));
    assert_eq!(new.task().0, Turn::Sleep, "nothing is open yet");
    hand_over(&mut old, &mut new);
    assert_eq!((new.element.pump.waiting(), old.element.pump.waiting()), (waiting, 0));
    assert_eq!((new.read("sent").unwrap(), new.read("connected").unwrap()), (counted, "true".into()));
    // The swap fails, and `old` takes the connection back. A second swap succeeds.
    hand_over(&mut new, &mut old);
    assert_eq!((old.element.pump.waiting(), old.read("connections").unwrap()), (waiting, "1".into()));
    hand_over(&mut old, &mut new);
    assert!(new.woken());
    old.cleanup().unwrap();
    drop(old);
    let reader = std::thread::spawn(move || {
        let mut got = vec![0; 4_000_000];
        client.read_exact(&mut got).unwrap();
        (client, got)
    });
    let mut all = Vec::new();
    for _ in 0..2_000_000 {
        all.extend(new.task().1.into_iter().flat_map(|(_, p)| p.data().to_vec()));
        if new.element.pump.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    let (mut client, got) = reader.join().unwrap();
    assert!(got == sent, "in order, nothing twice");
    assert_eq!((all, new.read("sent").unwrap()), (b"def".to_vec(), "1000".into()));
    assert_eq!(new.dropped(Reason::Consumed) + new.dropped(Reason::Stopped), waiting as u64);
    // The next client can connect to the same address.
    client.write_all(b"!").unwrap();
    assert_eq!(received(&mut new, 1), b"!");
    drop(client);
    let mut next = TcpStream::connect(("127.0.0.1", port)).unwrap();
    next.write_all(b"next").unwrap();
    assert_eq!(received(&mut new, 4), b"next");
    assert_eq!(new.read("connections").unwrap(), "2");
}

#[test]
fn datagrams_that_wait_and_the_file_of_a_socket_move() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("server");
    let config = format!("UNIX_DGRAM, {}, CLIENT false", place.display());
    let mut old = Kit::<Socket>::with_ports(&config, 1, 1).unwrap();
    let client = std::os::unix::net::UnixDatagram::unbound().unwrap();
    client.send_to(b"one", &place).unwrap();
    let mut new = inheriting(&folder, &config);
    // A prepared router that is discarded does not remove the file, because it does not own the socket.
    new.cleanup().unwrap();
    assert!(place.exists());
    let mut new = inheriting(&folder, &config);
    hand_over(&mut old, &mut new);
    old.cleanup().unwrap();
    drop(old);
    client.send_to(b"two", &place).unwrap();
    assert_eq!(received(&mut new, 6), b"onetwo");
    new.cleanup().unwrap();
    drop(new);
    assert!(!place.exists());
}

#[test]
fn what_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let holds = |config: &str| Kit::<Socket>::with_ports(config, 1, 1).unwrap().element.holds().unwrap();
    let udp = format!("UDP, 127.0.0.1, {port}, CLIENT true");
    assert_eq!(holds(&udp), holds(&format!("{udp}, SNAPLEN 99, RCVBUF 4000, VERBOSE true")));
    for other in [format!("UDP, 127.0.0.2, {port}, CLIENT true"), format!("UDP, 127.0.0.1, {}", free_port())]
    {
        assert_ne!(holds(&udp), holds(&other), "{other}");
    }
    // A client whose connection is lost has no socket for the next router to take over.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = format!("TCP, 127.0.0.1, {}, CLIENT true", server.local_addr().unwrap().port());
    let mut client = Kit::<Socket>::with_ports(&config, 1, 1).unwrap();
    let new = inheriting(&folder, &config);
    assert!(client.element.holds().is_some());
    drop(server.accept().unwrap());
    let closed = (0..100_000).any(|_| {
        client.task();
        std::thread::sleep(Duration::from_millis(1));
        client.element.holds().is_none()
    });
    assert!(closed, "the connection was never found to be closed");
    drop(new);
}

#[test]
fn members_of_a_group_stay_members() {
    let config = |port: u16| format!("239.255.0.17, {port}, 127.0.0.1");
    let port = free_port();
    let Ok(mut old) = Kit::<McastSocket>::with_ports(&config(port), 1, 1) else {
        return println!("SKIP: no multicast on the loopback device");
    };
    let mut new = Kit::<McastSocket>::with_ports(&config(free_port()), 1, 1).unwrap();
    prepare(&mut new, &config(port), 1, 1);
    let mut other = Kit::<McastSocket>::with_ports(&config(port), 1, 0).unwrap();
    other.push(0, [packet(b"one")]);
    old.push(0, [packet(b"own")]);
    hand_over(&mut old, &mut new);
    old.cleanup().unwrap();
    other.push(0, [packet(b"two")]);
    new.push(0, [packet(b"own")]);
    assert_eq!(new.read("sent").unwrap(), "2");
    let mut got = Vec::new();
    for _ in 0..100_000 {
        got.extend(new.task().1.into_iter().map(|(_, p)| p.data().to_vec()));
        if got.len() == 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(got, [b"one", b"two"]);
}
