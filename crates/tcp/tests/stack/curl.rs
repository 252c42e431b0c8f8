// SPDX-License-Identifier: MIT OR Apache-2.0
//! curl fetches and sends files through TCPRelay.

use super::kernel::{data, host};
use super::{count, during};
use castanet_testkit::namespace::{has_tun, inside, run};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

/// Answers the requests of a connection until the client closes: GET with `page`, and PUT with what was sent. Returns their number.
fn serve(stream: TcpStream, page: &[u8]) -> usize {
    let (mut to, mut from) = (stream.try_clone().unwrap(), BufReader::new(stream));
    for served in 0.. {
        let (mut request, mut line, mut length) = (String::new(), String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if from.read_line(&mut line).unwrap() == 0 {
                return served;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(n) = lower.strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            } else if lower.starts_with("expect: 100-continue") {
                to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
            }
            if request.is_empty() {
                request.clone_from(&line);
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).unwrap();
        let answer = if request.starts_with("GET") { page } else { &body[..] };
        to.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len()).as_bytes())
            .unwrap();
        to.write_all(answer).unwrap();
    }
    0
}

#[test]
fn curl_works_through_a_relay() {
    const NAME: &str = "curl::curl_works_through_a_relay";
    inside(NAME, || {
        if !has_tun() {
            return;
        }
        if let Err(e) = Command::new("curl").arg("--version").output() {
            return println!("SKIP: {NAME}: curl: {e}");
        }
        run("ip link set lo up");
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = format!("relay :: TCPRelay(tcp, PORT 80, TO {});", server.local_addr().unwrap());
        let (folder, page) = (tempfile::tempdir().unwrap(), data(3_000_000));
        let file = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(file("sent"), &page[1000..]).unwrap();
        during(&host("", "", &relay), |r| {
            let curl = |arguments: &str| run(&format!("curl -sS --max-time 100 --noproxy '*' {arguments}"));
            let answer = |requests: usize| assert_eq!(serve(server.accept().unwrap().0, &page), requests);
            std::thread::scope(|s| {
                // Two requests of one connection, then a file that goes there and back.
                s.spawn(|| {
                    curl(&format!("http://10.77.0.2/a -o {} http://10.77.0.2/b -o {}", file("a"), file("b")))
                });
                answer(2);
                s.spawn(|| curl(&format!("-T {} http://10.77.0.2/c -o {}", file("sent"), file("c"))));
                answer(1);
            });
            for (name, want) in [("a", &page[..]), ("b", &page), ("c", &page[1000..])] {
                assert!(std::fs::read(file(name)).unwrap() == want, "{name}");
            }
            assert_eq!((count(r, "relay", "opened"), count(r, "relay", "failed")), (2, 0));
            // The server is gone: curl says, according to when the RST comes, that it cannot connect (7), that there is no answer (52),
            // or that the connection was reset (56).
            drop(server);
            let out =
                Command::new("curl").args(["-sS", "--noproxy", "*", "http://10.77.0.2/"]).output().unwrap();
            assert!(matches!(out.status.code(), Some(7 | 52 | 56)), "{out:?}");
            assert_eq!(count(r, "relay", "failed"), 1);
        });
    });
}
