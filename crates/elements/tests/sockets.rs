// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests sockets in running routers: their tasks wake by themselves, nothing is lost, and an idle router sleeps.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_runtime::Router;
use castanet_testkit::{FEW_ROUNDS, number, real, rounds_while_idle, router};
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

/// Returns a port that is free at the moment, for TCP and for UDP.
fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Lets only one test run at a time, so that no other test takes a port that was free.
fn alone() -> parking_lot::MutexGuard<'static, ()> {
    static ONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
    ONE.lock()
}

/// Runs a router until it stops itself. Fails if the router hangs.
fn run(r: &mut Router) {
    let shared = r.shared().clone();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let late =
            wait.recv_timeout(Duration::from_secs(100)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        if late {
            shared.end();
        }
        late
    });
    let ended = r.run();
    drop(done);
    assert!(!watch.join().unwrap() && ended.is_ok(), "it did not stop by itself");
}

#[test]
fn a_stream_through_small_buffers() {
    let _alone = alone();
    for workers in [1, 2] {
        let port = free_port();
        let text = format!(
            "server :: Socket(TCP, 127.0.0.1, {port}) -> c :: Counter(BYTE_COUNT_CALL 2000000 stop) -> Discard;
             InfiniteSource(LENGTH 1000, LIMIT 2000) -> Queue(3000) -> client :: Socket(TCP, 127.0.0.1, {port}, SNDBUF 5000);"
        );
        let mut r = router(&text, real(workers).0);
        run(&mut r);
        assert_eq!((number(&mut r, "c", "byte_count"), number(&mut r, "client", "sent")), (2_000_000, 2000));
        assert!(r.cleanup().is_empty());
    }
}

#[test]
fn answers_behind_a_push_input() {
    let _alone = alone();
    let port = free_port();
    let text = format!(
        "server :: Socket(UDP, 127.0.0.1, {port}) -> Queue -> server;
         RatedSource(LENGTH 10, RATE 500, LIMIT 20)
             -> client :: Socket(UDP, 127.0.0.1, {port}, CLIENT true) -> Counter(COUNT_CALL 20 stop) -> Discard;"
    );
    let mut r = router(&text, real(1).0);
    run(&mut r);
    for (element, handler) in
        [("server", "received"), ("server", "sent"), ("client", "sent"), ("client", "received")]
    {
        assert_eq!(number(&mut r, element, handler), 20, "{element}.{handler}");
    }
}

#[test]
fn waiting_sockets_sleep() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "Idle -> Socket(UNIX, {0}/s) -> Discard;
         Idle -> Queue -> Socket(UDP, 127.0.0.1, {1}) -> Discard;
         Idle -> McastSocket(239.255.77.3, {1}, 127.0.0.1) -> Discard;",
        folder.path().display(),
        free_port()
    );
    let rounds = rounds_while_idle(&mut router(&text, real(1).0));
    assert!((1..=FEW_ROUNDS).contains(&rounds), "{rounds} rounds while there was nothing to do");
}
