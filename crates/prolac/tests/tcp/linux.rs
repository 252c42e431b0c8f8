// SPDX-License-Identifier: MIT OR Apache-2.0
//! The TCP and Linux's own TCP exchange data, in a network namespace. The kernel's end of the link is a VXLAN device, whose frames
//! are datagrams of a socket of this process.

use super::host::checksum;
use super::network::End;
use super::{all_but, named, subsets, tcp};
use castanet_prolac::load::Extensions;
use castanet_prolac::program::Program;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const INSIDE: &str = "CASTANET_TEST_NAMESPACE";
const VXLAN_PORT: u16 = 4789;
/// The addresses of Linux and of the TCP.
const LINUX: [u8; 4] = [10, 9, 0, 1];
const OURS: [u8; 4] = [10, 9, 0, 2];
/// An exchange that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs the body of a test in namespaces of its own; prints SKIP if that is not possible.
fn inside(name: &str, body: impl FnOnce(UdpSocket)) {
    if std::env::var_os(INSIDE).is_some() {
        let opened = UdpSocket::bind("0.0.0.0:0").map_err(|e| e.to_string());
        let opened = opened.and_then(|s| device(s.local_addr().map_or(0, |a| a.port())).map(|()| s));
        return match opened {
            Ok(socket) => body(socket),
            Err(why) => println!("SKIP: {name}: {why}"),
        };
    }
    let out = Command::new("unshare")
        .args(["-Urn", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output();
    let out = match out {
        Ok(out) => out,
        Err(e) => return println!("SKIP: {name}: unshare: {e}"),
    };
    let (text, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if text.is_empty() {
        println!("SKIP: {name}: {}", errors.trim());
        return;
    }
    assert!(out.status.success() && text.contains("1 passed"), "in the namespace:\n{text}{errors}");
    text.lines().for_each(|l| println!("{}", l.get(l.find("SKIP").unwrap_or(0)..).unwrap_or(l)));
}

/// Creates the device, whose frames go to a port of this process. They take the way over a veth pair, because a VXLAN device sends
/// nothing to an address that the routing tables call local.
fn device(port: u16) -> Result<(), String> {
    let script = format!(
        "ip link set lo up
         ip link add va address 02:00:00:00:01:01 type veth peer name vb address 02:00:00:00:01:02
         ip address add 10.8.0.1/24 dev va
         ip address add 10.8.0.2/32 dev vb
         ip link set va up
         ip link set vb up
         echo 1 > /proc/sys/net/ipv4/conf/vb/accept_local
         echo 0 > /proc/sys/net/ipv4/conf/vb/rp_filter
         echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter
         ip rule add pref 100 lookup local
         ip rule add pref 50 iif lo to 10.8.0.2 ipproto udp dport {port} lookup 77
         ip rule del pref 0
         ip route add 10.8.0.2 dev va table 77
         ip neighbour replace 10.8.0.2 lladdr 02:00:00:00:01:02 dev va nud permanent
         ip link add vx0 address 02:00:00:00:00:01 type vxlan id 7 dstport {VXLAN_PORT} nolearning
         bridge fdb append 00:00:00:00:00:00 dev vx0 dst 10.8.0.2 port {port}
         ip link set vx0 mtu 1500 up
         ip address add 10.9.0.1/24 dev vx0
         ip neighbour replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev vx0 nud permanent"
    );
    let out = Command::new("sh").args(["-ec", &script]).output().map_err(|e| e.to_string())?;
    let errors = String::from_utf8_lossy(&out.stderr).trim().replace('\n', "; ");
    if out.status.success() { Ok(()) } else { Err(errors) }
}

/// The end of the link, with one connection.
struct Link<'a> {
    program: &'a Program,
    socket: &'a UdpSocket,
    end: Option<End<'a>>,
    peer: u16,
    start: Instant,
    ticks: u64,
    random: u64,
    /// The percentage of packets that are lost, in either direction.
    loss: u64,
    unsent: Vec<u8>,
    /// Whether the user of the TCP reads, and the size of its buffer.
    reads: bool,
    buffer: usize,
}

impl<'a> Link<'a> {
    fn new(program: &'a Program, socket: &'a UdpSocket, loss: u64) -> Link<'a> {
        socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        let (start, unsent) = (Instant::now(), Vec::new());
        let (reads, buffer) = (true, 200_000);
        Link { program, socket, end: None, peer: 0, start, ticks: 0, random: 1, loss, unsent, reads, buffer }
    }

    fn open(&mut self, peer: u16, method: &str) {
        self.peer = peer;
        let end = self.end.insert(End::new(self.program, 0xffff_f000, [1000, u64::from(peer)], Vec::new()));
        end.data.borrow_mut().buffer = Some(self.buffer);
        end.tcp(method);
        self.send();
    }

    fn is_lost(&mut self) -> bool {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % 100 < self.loss
    }

    fn send(&mut self) {
        let out = self.end.as_ref().map(|e| std::mem::take(&mut e.data.borrow_mut().out));
        for mut segment in out.into_iter().flatten() {
            let length = segment.len() as u16;
            let pseudo = [&OURS[..], &LINUX[..], &[0, 6], &length.to_be_bytes()].concat();
            segment[16..18].fill(0);
            let sum = checksum(&[&pseudo[..], &segment].concat()).to_be_bytes();
            segment[16..18].copy_from_slice(&sum);
            let mut ip =
                [&[0x45, 0], &(length + 20).to_be_bytes()[..], &[0, 0, 0, 0, 64, 6, 0, 0], &OURS, &LINUX]
                    .concat();
            let sum = checksum(&ip).to_be_bytes();
            ip[10..12].copy_from_slice(&sum);
            let vxlan = [8, 0, 0, 0, 0, 0, 7, 0];
            let ethernet = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
            if !self.is_lost() {
                let frame = [&vxlan[..], &ethernet, &ip, &segment].concat();
                self.socket.send_to(&frame, ("10.8.0.1", VXLAN_PORT)).unwrap();
            }
        }
    }

    /// A segment that Linux has sent, if one comes in time.
    fn received(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 65_536];
        let n = match self.socket.recv(&mut buffer) {
            Ok(n) => n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return None,
            Err(e) => panic!("{e}"),
        };
        let ip = buffer[..n].get(22..)?;
        let (length, header) =
            (usize::from(u16::from_be_bytes([*ip.get(2)?, *ip.get(3)?])), usize::from(ip[0] & 15) * 4);
        let is_tcp = buffer[20..22] == [8, 0] && ip[0] >> 4 == 4 && *ip.get(9)? == 6;
        let mut segment = ip.get(header..length).filter(|_| is_tcp)?.to_vec();
        // The checksums of the tests leave out the pseudo-header, and Linux may leave its own to the device.
        segment.get_mut(16..18)?.fill(0);
        let sum = checksum(&segment).to_be_bytes();
        segment[16..18].copy_from_slice(&sum);
        (!self.is_lost()).then_some(segment)
    }

    /// Runs until something has happened.
    fn until(&mut self, what: &str, mut happened: impl FnMut(&mut End<'_>) -> bool) {
        let start = Instant::now();
        loop {
            if let Some(segment) = self.received() {
                let peer = u16::from_be_bytes([segment[0], segment[1]]);
                if self.end.is_none() && segment[13] & 2 != 0 {
                    self.open(peer, "listen");
                }
                // An earlier connection may still send.
                if let Some(end) = self.end.as_mut().filter(|_| peer == self.peer) {
                    end.input(segment, false);
                }
                self.send();
            }
            let now = self.start.elapsed().as_millis() as u64;
            let (before, ticks) = (self.ticks, now / 100);
            self.ticks = ticks;
            let Some(end) = &mut self.end else {
                assert!(start.elapsed() < PATIENCE, "{what}");
                continue;
            };
            end.data.borrow_mut().clock = now;
            for (every, method) in [(5, "slow-timeout"), (2, "fast-timeout")] {
                if before / every != ticks / every {
                    end.tcp(method);
                }
            }
            {
                let mut d = end.data.borrow_mut();
                d.trace.clear();
                if self.reads {
                    let waiting = std::mem::take(&mut d.waiting);
                    d.read.extend(waiting);
                }
                let n = 100_000_usize.saturating_sub(d.send.len()).min(self.unsent.len());
                d.send.extend(self.unsent.drain(..n));
            }
            end.tcp("output");
            let done = happened(end);
            self.send();
            if done {
                return;
            }
            let end = self.end.as_ref().unwrap();
            let d = end.data.borrow();
            assert!(start.elapsed() < PATIENCE, "{what}: {} bytes, {:?}", d.read.len(), d.disconnected);
        }
    }

    fn connected(&mut self) {
        self.until("connect", |e| e.data.borrow().connected);
    }

    fn call(&mut self, method: &str) -> u64 {
        let answer = self.end.as_mut().unwrap().tcp(method).number();
        self.send();
        answer
    }
}

fn data(n: usize, seed: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 / 3 + seed) as u8).collect()
}

/// A user of Linux's TCP that writes and ends, and gives what it has read.
fn linux_user(stream: TcpStream, sent: Vec<u8>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut writing = stream.try_clone().unwrap();
        let writer = std::thread::spawn(move || {
            writing.write_all(&sent).unwrap();
            writing.shutdown(Shutdown::Write).unwrap();
        });
        let (mut stream, mut read) = (stream, Vec::new());
        stream.read_to_end(&mut read).unwrap();
        writer.join().unwrap();
        read
    })
}

fn exchange(program: &Program, socket: &UdpSocket, active: bool, loss: u64, size: usize) -> [u32; 3] {
    let (ours, theirs) = (data(size, 1), data(size + 777, 2));
    let mut link = Link::new(program, socket, loss);
    link.unsent = ours.clone();
    let user = if active {
        let listener = TcpListener::bind("10.9.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sent = theirs.clone();
        let user = std::thread::spawn(move || linux_user(listener.accept().unwrap().0, sent).join().unwrap());
        link.open(port, "connect");
        user
    } else {
        let sent = theirs.clone();
        std::thread::spawn(move || {
            linux_user(TcpStream::connect("10.9.0.2:1000").unwrap(), sent).join().unwrap()
        })
    };
    link.connected();
    let options = ["sack", "scaling", "timestamps"].map(|name| link.end.as_mut().unwrap().field_if(name));
    let mut closed = false;
    while !link.unsent.is_empty() {
        link.until("send", |e| e.data.borrow().send.len() < 100_000);
    }
    link.until("exchange", |e| {
        if !closed {
            closed = true;
            assert_eq!(e.tcp("close").number(), 0);
        }
        e.data.borrow().end_of_data && matches!(e.field("state"), 0 | 10)
    });
    // Retransmissions of Linux are answered.
    link.until("end", |_| user.is_finished());
    assert!(user.join().unwrap() == ours, "what Linux has read");
    let d = link.end.as_ref().unwrap().data.borrow();
    assert!(d.read == theirs, "what Linux has sent: {} of {}", d.read.len(), theirs.len());
    options
}

#[test]
fn data_is_exchanged_with_linux() {
    inside("linux::data_is_exchanged_with_linux", |socket| {
        // The sixteen sets of the extensions after RFC 5681, and sets with options.
        let sixteen = subsets().into_iter().take(16).map(|set| (set, [0, 0, 0]));
        let more = [
            (named(&["Slow-Start", "Fast-Retransmit", "Sack"]), [1, 0, 0]),
            (all_but(&["Sack", "Cubic"]), [0, 1, 1]),
            (Extensions::All, [1, 1, 1]),
        ];
        for (i, (extensions, negotiated)) in sixteen.chain(more).enumerate() {
            let program = tcp(&extensions);
            for (active, loss) in [(true, 0), (false, 0), (i % 2 == 0, 3)] {
                let size = if loss > 0 { 30_000 } else { 200_000 };
                let options = exchange(&program, &socket, active, loss, size);
                println!("{extensions:?}, active {active}, {loss} % lost: {options:?}");
                assert_eq!(options, negotiated, "{extensions:?}");
            }
        }
    });
}

/// A RST of either end, a port that nobody listens on, and urgent data.
#[test]
fn linux_learns_of_resets_and_urgent_data() {
    inside("linux::linux_learns_of_resets_and_urgent_data", |socket| {
        for extensions in subsets().into_iter().take(16).chain([Extensions::All]) {
            let program = tcp(&extensions);
            let listener = TcpListener::bind("10.9.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();

            let mut link = Link::new(&program, &socket, 0);
            link.open(port, "connect");
            link.connected();
            let (mut stream, _) = listener.accept().unwrap();
            link.call("abort");
            assert_eq!(
                stream.read(&mut [0; 10]).unwrap_err().kind(),
                ErrorKind::ConnectionReset,
                "{extensions:?}"
            );

            // Linux takes the last byte of urgent data out of the stream, unless its user asks otherwise.
            let mut link = Link::new(&program, &socket, 0);
            link.open(port, "connect");
            link.connected();
            let (mut stream, _) = listener.accept().unwrap();
            for (text, method) in [("before ", "output"), ("urgenT", "send-urgent"), (" after", "output")] {
                link.end.as_mut().unwrap().data.borrow_mut().send.extend(text.as_bytes());
                link.call(method);
                link.until("acknowledgement", |e| e.data.borrow().send.is_empty());
            }
            link.call("close");
            let reader = std::thread::spawn(move || {
                let mut read = String::new();
                stream.read_to_string(&mut read).unwrap();
                read
            });
            link.until("end", |_| reader.is_finished());
            assert_eq!(reader.join().unwrap(), "before urgen after", "{extensions:?}");

            drop(listener);
            let mut link = Link::new(&program, &socket, 0);
            link.open(port, "connect");
            link.until("refusal", |e| e.data.borrow().disconnected.is_some());
            assert_eq!(link.end.as_ref().unwrap().data.borrow().disconnected, Some(2));
        }
    });
}

/// Both users read nothing until both windows are closed. The buffers of both ends are smaller than two segments, and then one is smaller
/// than one.
#[test]
fn windows_close_and_are_tiny() {
    inside("linux::windows_close_and_are_tiny", |socket| {
        std::fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 4096 4096").unwrap();
        for extensions in subsets().into_iter().take(16).chain([Extensions::All]) {
            let program = tcp(&extensions);
            for buffer in [2_500, 700] {
                let (ours, theirs) = (data(20_000, 1), data(8 * buffer, 2));
                let listener = TcpListener::bind("10.9.0.1:0").unwrap();
                let mut link = Link::new(&program, &socket, 0);
                (link.reads, link.buffer, link.unsent) = (false, buffer, ours.clone());
                link.open(listener.local_addr().unwrap().port(), "connect");
                link.connected();
                let (mut stream, _) = listener.accept().unwrap();
                let (mut writing, sent) = (stream.try_clone().unwrap(), theirs.clone());
                let writer = std::thread::spawn(move || {
                    writing.write_all(&sent).unwrap();
                    writing.shutdown(Shutdown::Write).unwrap();
                });
                link.until("closed windows", |e| {
                    e.field("snd_wnd") == 0 && e.data.borrow().waiting.len() == buffer
                });
                link.reads = true;
                let reader = std::thread::spawn(move || {
                    let mut read = Vec::new();
                    stream.read_to_end(&mut read).unwrap();
                    read
                });
                link.until("data", |e| e.data.borrow().send.is_empty() && e.data.borrow().end_of_data);
                link.call("close");
                link.until("end", |_| reader.is_finished() && writer.is_finished());
                assert!(reader.join().unwrap() == ours, "{extensions:?}: what Linux has read");
                let read = &link.end.as_ref().unwrap().data.borrow().read;
                assert!(*read == theirs, "{extensions:?}: what Linux has sent: {}", read.len());
            }
        }
    });
}
