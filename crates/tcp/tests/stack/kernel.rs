// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's TCP on the other side, over a TUN or TAP device in a network namespace.

use super::{count, during, text};
use castanet_element::remote::Remote as _;
use castanet_element::spec::Origin;
use castanet_testkit::namespace::{has_tun, inside, inside_with_xdp, run};
use castanet_testkit::until;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;

/// Bytes in which each place is recognised.
pub fn data(n: usize) -> Vec<u8> {
    (0..n as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// The stack behind a TUN device, with classes on the way of packets in both directions.
pub fn host(to: &str, back: &str, applications: &str) -> String {
    format!(
        "tun :: KernelTun(10.77.0.1/24, DEVNAME tcp0) -> CheckIPHeader -> {to} tcp :: TCPStack(10.77.0.2)
            -> {back} tun;
         {applications}"
    )
}

/// A kernel's connection to a port of the stack.
pub fn connect(port: u16) -> TcpStream {
    TcpStream::connect(("10.77.0.2", port)).unwrap()
}

/// Sends data to an echo, while it reads what comes back. `middle` runs when half of it has come back.
pub fn echoed(mut stream: TcpStream, sent: &[u8], middle: impl FnOnce()) -> Vec<u8> {
    let mut writing = stream.try_clone().unwrap();
    let mut read = vec![0; sent.len() / 2];
    std::thread::scope(|s| {
        s.spawn(move || {
            writing.write_all(sent).unwrap();
            writing.shutdown(Shutdown::Write).unwrap();
        });
        stream.read_exact(&mut read).unwrap();
        middle();
        stream.read_to_end(&mut read).unwrap();
    });
    read
}

#[test]
fn the_kernel_talks_to_an_echo_over_tun_and_tap() {
    inside("kernel::the_kernel_talks_to_an_echo_over_tun_and_tap", || {
        if !has_tun() {
            return;
        }
        let tap = "tap :: KernelTap(10.77.0.1/24, DEVNAME tcp0)
                -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
            c [0] -> ARPResponder(10.77.0.2 2:0:0:0:0:2) -> tap;
            c [1] -> [1] arp :: ARPQuerier(10.77.0.2, 2:0:0:0:0:2) -> tap;
            c [2] -> Strip(14) -> CheckIPHeader -> tcp :: TCPStack(10.77.0.2) -> arp;
            c [3] -> Discard;
            echo :: TCPEcho(tcp, PORT 7);"
            .to_string();
        for router in [host("", "", "echo :: TCPEcho(tcp, PORT 7);"), tap] {
            during(&router, |r| {
                let sent = data(2_000_000);
                assert!(echoed(connect(7), &sent, || ()) == sent);
                assert_eq!(count(r, "echo", "received"), 2_000_000);
                assert_eq!((count(r, "tcp", "opened"), count(r, "echo", "opened")), (1, 1));
                // Many connections at once.
                let streams: Vec<TcpStream> = (0..50).map(|_| connect(7)).collect();
                let open = || text(r, "tcp", "connections").matches("ESTABLISHED echo").count();
                until("all connections are open", || open() == 50);
                for (n, stream) in streams.into_iter().enumerate() {
                    let sent = data(1000 * n);
                    assert!(echoed(stream, &sent, || ()) == sent);
                }
                until("all connections have ended", || count(r, "tcp", "count") == 0);
            });
        }
    });
}

#[test]
fn loss_reordering_and_corruption_cost_no_byte() {
    inside("kernel::loss_reordering_and_corruption_cost_no_byte", || {
        if !has_tun() {
            return;
        }
        // A tenth of all packets is late by 5 ms, a twentieth is lost, a hundredth comes twice, some are corrupted.
        let faults = "elementclass Faults {
                input -> RandomSample(0.95) -> t :: Tee -> late :: RandomSample(0.9) -> output;
                late [1] -> Queue -> DelayUnqueue(5ms) -> output;
                t [1] -> RandomSample(0.01) -> output;
            }";
        let to = "Faults -> RandomBitErrors(0.000002) -> CheckIPHeader ->";
        let router = format!("{faults} {}", host(to, "Faults ->", "TCPEcho(tcp, PORT 7);"));
        during(&router, |r| {
            let sent = data(300_000);
            assert!(echoed(connect(7), &sent, || ()) == sent);
            assert!(text(r, "tcp", "connections").lines().count() <= 1);
        });
    });
}

#[test]
fn a_hot_swap_keeps_connections() {
    inside("kernel::a_hot_swap_keeps_connections", || {
        if !has_tun() {
            return;
        }
        let echo = "echo :: TCPEcho(tcp, PORT 7); gone :: TCPDiscard(tcp, PORT 9);";
        let router = host("", "", echo);
        let next = host("Counter ->", "c :: Counter ->", "TCPDiscard(tcp, PORT 10); echo :: TCPEcho(tcp);");
        let messages = during(&router, |r| {
            r.write(Origin::Operator, Some("tcp"), "listen", "8 echo").unwrap();
            let (sent, mut lost) = (data(3_000_000), connect(9));
            let stream = connect(8);
            let read = echoed(stream, &sent, || {
                r.swap(Origin::Operator, "config", &next).unwrap();
            });
            assert!(read == sent);
            assert!(count(r, "c", "count") > 100, "the new router has sent packets");
            assert_eq!(count(r, "echo", "received"), 3_000_000);
            // The connection of the application that is gone was reset. The listener that a handler had added stays.
            assert_eq!(lost.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
            assert_eq!(text(r, "tcp", "listeners").lines().count(), 2);
            assert!(echoed(connect(8), b"again", || ()) == b"again");
        });
        assert!(messages.iter().all(|m| m.contains("bad IP version")), "{messages:?}");
    });
}

#[test]
fn the_stack_connects_to_the_kernel() {
    inside("kernel::the_stack_connects_to_the_kernel", || {
        if !has_tun() {
            return;
        }
        let applications =
            "source :: TCPSource(tcp, LIMIT 700000); sink :: TCPSink(tcp); echo :: TCPEcho(tcp);";
        during(&host("", "", applications), |r| {
            let write = |handler: &str, value: &str| r.write(Origin::Operator, Some("tcp"), handler, value);
            let listener = TcpListener::bind("10.77.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();

            // The source closes when it has written its data. A kernel that sends it back to a sink shows each byte.
            write("connect", &format!("10.77.0.1:{port} source")).unwrap();
            let mut read = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut read).unwrap();
            assert_eq!(read.len(), 700_000);
            write("connect", &format!("10.77.0.1:{port} sink")).unwrap();
            let mut stream = listener.accept().unwrap().0;
            stream.write_all(&read).unwrap();
            drop(stream);
            until("the sink has read", || count(r, "sink", "received") == 700_000);
            assert_eq!(count(r, "sink", "wrong"), 0);

            // A connection that a handler resets, and one to a port that is closed.
            write("connect", &format!("10.77.0.1:{port} echo")).unwrap();
            let mut stream = listener.accept().unwrap().0;
            let connections = text(r, "tcp", "connections");
            let line = connections.lines().find(|l| l.contains("ESTABLISHED echo")).unwrap();
            let ends: Vec<&str> = line.split(' ').take(2).collect();
            write("abort", &ends.join(" ")).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
            drop(listener);
            write("connect", &format!("10.77.0.1:{port} echo")).unwrap();
            until("the connection is refused", || count(r, "tcp", "refused") == 1);
            assert!(write("connect", "10.77.0.1:80 nobody").is_err());
            assert!(write("close", &ends.join(" ")).is_err());
        });
    });
}

#[test]
fn the_kernel_learns_of_closed_ports_and_half_closed_connections() {
    inside("kernel::the_kernel_learns_of_closed_ports_and_half_closed_connections", || {
        if !has_tun() {
            return;
        }
        during(&host("", "", "TCPDiscard(tcp, PORT 9); TCPSource(tcp, PORT 19, LIMIT 100000);"), |r| {
            let refused = TcpStream::connect("10.77.0.2:80").unwrap_err();
            assert_eq!((refused.kind(), count(r, "tcp", "strays")), (ErrorKind::ConnectionRefused, 1));
            let mut stream = connect(9);
            stream.write_all(&data(100_000)).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            // The source has closed its half; the kernel's half is still open.
            let (mut stream, mut read) = (connect(19), Vec::new());
            stream.read_to_end(&mut read).unwrap();
            assert!(read.iter().enumerate().all(|(n, b)| *b == (n % 251) as u8) && read.len() == 100_000);
            until("half of it is closed", || text(r, "tcp", "connections").contains("FIN-WAIT-2"));
            stream.write_all(b"still open").unwrap();
            drop(stream);
            until("the stack waits", || !text(r, "tcp", "connections").contains("FIN-WAIT-2"));
        });
    });
}

/// The stack is the TCP of the router of conf/ip-router.click itself, whose devices use a method.
fn the_ip_router_answers(method: &str) {
    run("ip link set lo up; ip link add va type veth peer name vb; ip link add vc type veth peer name vd");
    run("ip addr add 10.0.0.9/24 dev va; for d in va vb vc vd; do ip link set $d up; done");
    run("ip route add 10.0.1.0/24 via 10.0.0.1");
    if method == "XDP" {
        // XDP loses what an offload of the sender has left to do.
        run("ethtool -K va tx off");
    }
    let of = |path: &str| {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(path)).unwrap()
    };
    // The manual says how to give it to the router.
    let manual = of("docs/tcp.md").replace('\n', " ");
    let [without, with] = [
        "host :: IPClassifier(udp, icmp, -); host [1] -> nobody;",
        "host :: IPClassifier(udp, tcp or icmp, -); host [1] -> tcp :: TCPStack($DEV0:ip $DEV1:ip) -> routes; tcp [1] -> nobody;",
    ];
    assert!(manual.contains(&format!("replace `{without}` by `{with}`")));
    let mut text = of("conf/ip-router.click");
    for (from, to) in [
        ("$DEV0 eth0", "$DEV0 vb"),
        ("$DEV1 eth1", "$DEV1 vd"),
        ("FromDevice($dev)", &format!("FromDevice($dev, METHOD {method}, SNIFFER false)")),
        ("ToDevice($dev)", &format!("ToDevice($dev, METHOD {method})")),
        (without, with),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text += "TCPEcho(tcp, PORT 7);";
    during(&text, |r| {
        for address in ["10.0.0.1:7", "10.0.1.1:7"] {
            let sent = data(500_000);
            assert!(echoed(TcpStream::connect(address).unwrap(), &sent, || ()) == sent);
        }
        let refused = TcpStream::connect("10.0.1.1:80").unwrap_err();
        assert_eq!((refused.kind(), count(r, "tcp", "opened")), (ErrorKind::ConnectionRefused, 2));
    });
}

#[test]
fn the_ip_router_has_a_tcp_of_its_own() {
    inside("kernel::the_ip_router_has_a_tcp_of_its_own", || the_ip_router_answers("PACKET"));
}

#[test]
fn so_has_an_ip_router_over_xdp() {
    inside_with_xdp("kernel::so_has_an_ip_router_over_xdp", || the_ip_router_answers("XDP"));
}

/// Programs of this machine serve the connections of the stack, over TCP and over a Unix socket.
#[test]
fn a_relay_joins_connections_to_local_sockets() {
    inside("kernel::a_relay_joins_connections_to_local_sockets", || {
        if !has_tun() {
            return;
        }
        run("ip link set lo up");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (tcp, unix) = (TcpListener::bind("127.0.0.1:0").unwrap(), UnixListener::bind(&path).unwrap());
        let port = tcp.local_addr().unwrap().port();
        let relays = format!(
            "one :: TCPRelay(tcp, PORT 80, TO 127.0.0.1:{port});
             two :: TCPRelay(tcp, PORT 81, TO {});
             none :: TCPRelay(tcp, PORT 82, TO 127.0.0.1:1);",
            path.display()
        );
        let router = host("", "", &relays);
        during(&router, |r| {
            // Servers send everything back, and close when the client has.
            let server = |mut from: Box<dyn Read + Send>, mut to: Box<dyn Write + Send>| {
                std::thread::spawn(move || std::io::copy(&mut from, &mut to).unwrap())
            };
            let sent = data(3_000_000);
            let client = connect(80);
            let stream = tcp.accept().unwrap().0;
            let served = server(Box::new(stream.try_clone().unwrap()), Box::new(stream));
            let read = echoed(client, &sent, || {
                r.swap(
                    Origin::Operator,
                    "config",
                    &router.replace("-> CheckIPHeader", "-> CheckIPHeader -> Null"),
                )
                .unwrap();
            });
            assert!(read == sent);
            assert_eq!(served.join().unwrap(), 3_000_000);
            let client = connect(81);
            let stream = unix.accept().unwrap().0;
            let served = server(Box::new(stream.try_clone().unwrap()), Box::new(stream));
            assert!(echoed(client, &sent, || ()) == sent);
            assert_eq!(served.join().unwrap(), 3_000_000);
            // The peer of a socket that cannot be connected learns of it.
            let reset = TcpStream::connect("10.77.0.2:82").and_then(|mut s| s.read(&mut [0])).unwrap_err();
            assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
            assert_eq!((count(r, "none", "failed"), count(r, "one", "failed")), (1, 0));
            // A server that goes away ends its connection, and a client that does ends its socket.
            let mut client = connect(81);
            drop(unix.accept().unwrap().0);
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
            drop(client);
            let client = connect(81);
            let mut stream = unix.accept().unwrap().0;
            drop(client);
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            drop(stream);
            until("nothing is left but what waits", || {
                text(r, "tcp", "connections").lines().all(|l| l.contains("TIME-WAIT"))
            });
        });
    });
}
