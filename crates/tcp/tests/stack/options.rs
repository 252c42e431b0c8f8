// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's TCP with its options on and off, with small and closed windows, with urgent data, keep-alives and resets.

use super::kernel::{connect, data, echoed, host};
use super::{count, during, text};
use castanet_element::remote::Remote as _;
use castanet_element::spec::Origin;
use castanet_testkit::namespace::{has_tun, inside, run};
use castanet_testkit::{Watchdog, until};
use rustix::net::{SendFlags, send, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// The kernel's description of its connections with the stack.
fn sockets() -> String {
    run("ss -Htino state established dst 10.77.0.2:7")
}

/// Each subset of the options, whichever end opens, over a line that loses every fiftieth packet.
#[test]
fn options_are_used_if_the_kernel_has_them() {
    inside("options::options_are_used_if_the_kernel_has_them", || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        let lossy = "RandomSample(0.98) ->";
        let applications = "TCPEcho(tcp, PORT 7); source :: TCPSource(tcp, LIMIT 300000);";
        for set in 0..8 {
            let names = ["sack", "timestamps", "window_scaling"];
            for (i, name) in names.iter().enumerate() {
                let file = format!("/proc/sys/net/ipv4/tcp_{name}");
                std::fs::write(file, (set >> i & 1).to_string()).unwrap();
            }
            during(&host(lossy, lossy, applications), |r| {
                let sent = data(300_000);
                let stream = connect(7);
                let shown = sockets();
                for (i, word) in [" sack ", " ts ", " wscale:"].iter().enumerate() {
                    assert_eq!(shown.contains(word), set >> i & 1 == 1, "{word} {set:#b}: {shown}");
                }
                assert!(echoed(stream, &sent, || ()) == sent, "{set:#b}");
                let (listener, mut read) = (TcpListener::bind("10.77.0.1:9").unwrap(), Vec::new());
                r.write(Origin::Operator, Some("tcp"), "connect", "10.77.0.1:9 source").unwrap();
                listener.accept().unwrap().0.read_to_end(&mut read).unwrap();
                let right = read.iter().enumerate().all(|(n, b)| *b == (n % 251) as u8);
                assert!(right && read.len() == 300_000, "{set:#b}");
            });
        }
    });
}

/// A kernel that does not read closes its window. The stack probes it, and sends the rest when the kernel reads.
#[test]
fn the_window_of_the_kernel_closes() {
    inside("options::the_window_of_the_kernel_closes", || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        during(&host("", "", "source :: TCPSource(tcp, PORT 19, LIMIT 8000000);"), |r| {
            let mut stream = connect(19);
            let waiting = || text(r, "tcp", "connections").contains("ESTABLISHED source 262144 0");
            until("the send buffer is full", waiting);
            // The kernel answers each probe, and nothing else happens.
            let (mut before, mut probes) = (count(r, "tcp", "sent"), 0);
            until("three probes are sent", || {
                let now = count(r, "tcp", "sent");
                probes = if waiting() && now > before { probes + 1 } else { probes };
                before = now;
                probes >= 3 && waiting()
            });
            let mut read = Vec::new();
            stream.read_to_end(&mut read).unwrap();
            let right = read.iter().enumerate().all(|(n, b)| *b == (n % 251) as u8);
            assert!(right && read.len() == 8_000_000);
        });
    });
}

/// An echo whose data is not read stops to read. The kernel probes its closed window, and each byte comes back at last.
#[test]
fn the_window_of_the_stack_closes() {
    inside("options::the_window_of_the_stack_closes", || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        during(&host("", "", "TCPEcho(tcp, PORT 7);"), |_| {
            let sent = data(16_000_000);
            let mut stream = connect(7);
            let mut writing = stream.try_clone().unwrap();
            std::thread::scope(|s| {
                s.spawn(|| {
                    writing.write_all(&sent).unwrap();
                    writing.shutdown(Shutdown::Write).unwrap();
                });
                // How often the kernel has doubled the time to its next probe: each time that the window stayed closed.
                let probes = || {
                    let shown = sockets();
                    let (_, persists) = shown.split_once("timer:(persist,")?;
                    persists.split_once(" backoff:")?.1.split(' ').next()?.parse::<u32>().ok()
                };
                until("the kernel has sent three probes", || probes().is_some_and(|n| n >= 3));
                let mut read = Vec::new();
                stream.read_to_end(&mut read).unwrap();
                assert!(read == sent);
            });
        });
    });
}

/// Tiny windows at both ends.
#[test]
fn tiny_windows_pass_each_byte() {
    inside("options::tiny_windows_pass_each_byte", || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        let router = host("", "", "TCPEcho(tcp, PORT 7); source :: TCPSource(tcp, LIMIT 100000);");
        let tiny = router.replace("TCPStack(10.77.0.2)", "TCPStack(10.77.0.2, RCVBUF 2048, SNDBUF 2048)");
        assert_ne!(router, tiny);
        during(&tiny, |r| {
            let sent = data(200_000);
            assert!(echoed(connect(7), &sent, || ()) == sent);
            let listener = TcpListener::bind("10.77.0.1:9").unwrap();
            sockopt::set_socket_recv_buffer_size(&listener, 1).unwrap();
            r.write(Origin::Operator, Some("tcp"), "connect", "10.77.0.1:9 source").unwrap();
            let (mut stream, mut read): (_, Vec<u8>) = (listener.accept().unwrap().0, Vec::new());
            let mut piece = [0; 100];
            loop {
                match stream.read(&mut piece).unwrap() {
                    0 => break,
                    n => read.extend(&piece[..n]),
                }
            }
            let right = read.iter().enumerate().all(|(n, b)| *b == (n % 251) as u8);
            assert!(right && read.len() == 100_000, "{}", read.len());
        });
    });
}

/// Urgent data of the kernel stays in the stream, and is counted.
#[test]
fn urgent_data_of_the_kernel_is_data() {
    inside("options::urgent_data_of_the_kernel_is_data", || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        during(&host("", "", "echo :: TCPEcho(tcp, PORT 7);"), |r| {
            let mut stream = connect(7);
            stream.write_all(b"before ").unwrap();
            assert_eq!(send(&stream, b"urgenT", SendFlags::OOB), Ok(6));
            stream.write_all(b" after").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut read = String::new();
            stream.read_to_string(&mut read).unwrap();
            assert_eq!(read, "before urgenT after");
            assert_eq!(count(r, "echo", "urgent"), 1);
        });
    });
}

/// A connection begins at the address that the handler gets. Its packets have the codepoint of the stack, then that of the handler.
#[test]
fn addresses_and_codepoints_are_chosen() {
    inside("options::addresses_and_codepoints_are_chosen", || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        let back = "c :: IPClassifier(ip dscp 46, ip dscp 10, -) -> first :: Counter -> tun;
            c [1] -> second :: Counter -> tun; c [2] -> other :: Counter ->";
        let router =
            host("", back, "TCPEcho(tcp, PORT 7);").replace("(10.77.0.2)", "(10.77.0.2 10.77.0.3, DSCP 46)");
        let router = router.replace("TCPEcho", "echo :: TCPEcho");
        during(&router, |r| {
            let write =
                |handler: &str, value: &str| r.write(Origin::Operator, Some("tcp"), handler, value).unwrap();
            let listener = TcpListener::bind("10.77.0.1:0").unwrap();
            let ours = listener.local_addr().unwrap();
            write("connect", &format!("{ours} echo 10.77.0.3"));
            let (mut stream, peer) = listener.accept().unwrap();
            assert_eq!(peer.ip().to_string(), "10.77.0.3");
            let mut echo = |data: &[u8; 4]| {
                stream.write_all(data).unwrap();
                let mut back = [0; 4];
                stream.read_exact(&mut back).unwrap();
                assert_eq!(&back, data);
            };
            echo(b"one ");
            let counts = || ["first", "second", "other"].map(|c| count(r, c, "count") > 0);
            assert_eq!(counts(), [true, false, false]);
            write("dscp", &format!("{peer} {ours} 10"));
            echo(b"two ");
            assert_eq!(counts(), [true, true, false]);
        });
    });
}

/// Each end asks the other one whether it is alive, and the connection stays.
#[test]
fn keep_alives_are_answered() {
    inside("options::keep_alives_are_answered", || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        let router = host("", "", "TCPEcho(tcp, PORT 7);");
        let asking = router.replace("TCPStack(10.77.0.2)", "TCPStack(10.77.0.2, KEEPALIVE 1)");
        assert_ne!(router, asking);
        for (router, kernel_asks) in [(router, true), (asking, false)] {
            during(&router, |r| {
                let stream = connect(7);
                sockopt::set_socket_keepalive(&stream, kernel_asks).unwrap();
                sockopt::set_tcp_keepidle(&stream, Duration::from_secs(1)).unwrap();
                sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(1)).unwrap();
                until("the connection is open", || count(r, "tcp", "opened") == 1);
                // Without keep-alives an idle connection is silent.
                let [asked, answered] = if kernel_asks { ["received", "sent"] } else { ["sent", "received"] };
                let before = [asked, answered].map(|handler| count(r, "tcp", handler));
                until("a question has been answered", || {
                    count(r, "tcp", asked) > before[0] && count(r, "tcp", answered) > before[1]
                });
                assert!(echoed(stream, b"alive", || ()) == b"alive");
                assert_eq!(count(r, "tcp", "timed_out"), 0);
            });
        }
    });
}

/// A kernel's connection that is reset, in the middle of data or with data that was not read, ends that of the stack.
#[test]
fn the_kernel_resets_connections() {
    inside("options::the_kernel_resets_connections", || {
        if !has_tun() {
            return;
        }
        let _watchdog = Watchdog::arm();
        during(&host("", "", "TCPEcho(tcp, PORT 7); TCPSource(tcp, PORT 19);"), |r| {
            let stream = connect(19);
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
            until("the connection is open", || count(r, "tcp", "opened") == 1);
            drop(stream);
            until("the source is reset", || count(r, "tcp", "reset") == 1);
            let mut stream = connect(7);
            stream.write_all(b"not read").unwrap();
            until("data waits to be read", || stream.peek(&mut [0; 8]).is_ok_and(|n| n == 8));
            drop(stream);
            until("the echo is reset", || count(r, "tcp", "reset") == 2);
            assert_eq!(count(r, "tcp", "count"), 0);
            // The kernel learns of a connection that is gone.
            let mut stream: TcpStream = connect(7);
            let line = text(r, "tcp", "connections");
            let ends: Vec<&str> = line.split(' ').take(2).collect();
            r.write(Origin::Operator, Some("tcp"), "abort", &ends.join(" ")).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        });
    });
}
