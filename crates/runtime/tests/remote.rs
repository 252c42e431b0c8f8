// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls to a running router from threads that are not workers.
#![allow(clippy::unwrap_used, missing_docs)]

use castanet_element::remote::{Listener, Remote};
use castanet_element::spec::Origin;
use castanet_element::{CallError, Messages as _, Missing};
use castanet_runtime::Options;
use castanet_testkit::*;
use parking_lot::Mutex;
use std::sync::Arc;

#[derive(Default)]
struct Subscriber(Mutex<Vec<String>>);
impl Listener for Subscriber {
    fn hear(&self, text: &str) {
        self.0.lock().push(text.into());
    }
}

const TEXT: &str = "a :: InfiniteSource -> c :: Counter -> Discard; b :: InfiniteSource -> d :: Counter -> Discard;
     q :: Queue(7); Idle -> q -> Idle; both :: Tee(1); ja :: InfiniteSource -> both; jb :: InfiniteSource -> both;
     both -> sum :: Counter -> Discard";

#[test]
fn handlers_are_called_while_packets_move() {
    for workers in [1, 2] {
        let _watchdog = Watchdog::arm();
        let (options, _) = real(workers);
        let mut r = router(TEXT, options);
        let running = r.running().clone();
        let shared = r.shared().clone();
        std::thread::scope(|s| {
            s.spawn(|| r.run().unwrap());
            let read = |e: &str, h: &str| running.read(Some(e), h, "");
            assert_eq!(running.elements().len(), running.read(None, "list", "").unwrap().lines().count() - 1);
            let count = || read("sum", "count").unwrap().parse::<u64>().unwrap();
            let first = count();
            while count() < first + 1000 {}
            assert_eq!(read("q", "capacity").unwrap(), "7");
            running.write(Origin::Operator, Some("q"), "capacity", "9").unwrap();
            assert_eq!(read("q", "capacity").unwrap(), "9");
            // When the sources are inactive, a reset sets the count of each replica to 0.
            running.write(Origin::Operator, Some("a"), "active", "false").unwrap();
            running.write(Origin::Operator, Some("ja"), "active", "false").unwrap();
            running.write(Origin::Operator, Some("jb"), "active", "false").unwrap();
            running.write(Origin::Operator, Some("sum"), "reset_counts", "").unwrap();
            assert_eq!(read("sum", "count").unwrap(), "0");
            assert_eq!(running.read(None, "timewarp", "").unwrap(), "1");
            assert_eq!(running.flags(Some("q"), "capacity").map(|f| f.to_string()).as_deref(), Some("rw."));
            assert_eq!(running.flags(None, "stop"), Some(castanet_spec::HandlerFlags::WRITE));
            for (e, h) in [(Some("x"), "count"), (Some("q"), "nothing"), (None, "nothing")] {
                assert!(matches!(running.read(e, h, ""), Err(CallError::Missing(_))), "{e:?} {h}");
                assert!(
                    matches!(running.write(Origin::Operator, e, h, ""), Err(CallError::Missing(_))),
                    "{e:?} {h}"
                );
            }
            assert!(matches!(
                running.write(Origin::Operator, Some("q"), "capacity", "x"),
                Err(CallError::Refused(_))
            ));
            assert!(!running.has_ended() && running.swaps() == 0);
            running.write(Origin::Operator, None, "stop", "1").unwrap();
        });
        assert!(running.has_ended());
        assert!(matches!(running.read(Some("q"), "length", ""), Err(CallError::Missing(Missing::Router))));
        drop((r, shared));
        assert!(running.elements().is_empty());
    }
}

#[test]
fn listeners_hear_their_channel_as_long_as_they_exist() {
    let (options, log) = real(1);
    let r = router("Idle -> Discard", options);
    let (subscriber, other) = (Arc::new(Subscriber::default()), Arc::new(Subscriber::default()));
    r.running().listen("default", Arc::downgrade(&subscriber) as _);
    r.running().listen("news", Arc::downgrade(&other) as _);
    r.shared().message("one");
    r.shared().message_on("news", "two");
    let heard = |e: &Subscriber| e.0.lock().join(" ");
    assert_eq!(
        (heard(&subscriber), heard(&other), log.lines().join(" ")),
        ("one".into(), "two".into(), "one".into())
    );
    drop(subscriber);
    r.shared().message("three");
    assert_eq!(log.len(), 2);
}

#[test]
fn a_long_burst_keeps_neither_mail_nor_stop_waiting() {
    for batch in [1, 32] {
        let _watchdog = Watchdog::arm();
        let (options, _) = real(1);
        let text = "s :: InfiniteSource(BURST 2000000000) -> c :: Counter -> Discard;
             t :: InfiniteSource(BURST 2000000000) -> d :: Counter -> Discard; u :: TimedSource(0.000001) -> e :: Counter -> Discard";
        let mut r = router(text, Options { batch, ..options });
        let running = r.running().clone();
        std::thread::scope(|s| {
            s.spawn(|| r.run().unwrap());
            let read = |e: &str, h: &str| running.read(Some(e), h, "").unwrap();
            let count = |e: &str| read(e, "count").parse::<u64>().unwrap();
            // The other source sends and the timer expires before the first burst ends.
            while count("d") == 0 || count("e") == 0 {}
            assert!(count("c") < 1_000_000_000);
            running.write(Origin::Operator, None, "stop", "1").unwrap();
        });
        assert!(running.has_ended());
    }
}

/// Stops a router at the end of a test, even if the test fails.
struct Stop<'a>(&'a castanet_runtime::Running);
impl Drop for Stop<'_> {
    fn drop(&mut self) {
        let _ = self.0.write(Origin::Operator, None, "stop", "1");
    }
}

#[test]
fn a_call_has_the_rights_of_the_one_who_makes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let text = format!(
        "i :: InfiniteSource(LIMIT 10, ACTIVE false) -> c :: Counter -> agg :: AggregateCounter -> Discard;
         s :: Script(TYPE PASSIVE, write agg.write_file $args, print >{} \"done\")",
        path("printed")
    );
    for workers in [1, 2] {
        let _watchdog = Watchdog::arm();
        let (options, log) = real(workers);
        let mut r = router(&text, options);
        let running = r.running().clone();
        std::thread::scope(|scope| {
            scope.spawn(|| r.run().unwrap());
            let _stop = Stop(&running);
            let write = |from, e: &str, h: &str, v: &str| running.write(from, Some(e), h, v);
            let is_there = |name: &str| std::fs::remove_file(path(name)).is_ok();
            for h in ["write_file", "write_text_file", "write_ascii_file", "write_ip_file", "write_pdf_file"]
            {
                let refused = write(Origin::Anonymous, "agg", h, &path("file"));
                assert!(matches!(refused, Err(CallError::Denied(_))), "{h}: {refused:?}");
                assert!(!is_there("file"), "{h}");
                // The operator named no folder for clients, so they may name no file.
                let refused = write(Origin::Authorised, "agg", h, &path("file"));
                let told = matches!(&refused, Err(CallError::Refused(e)) if e.to_string().contains("--library-path"));
                assert!(told && !is_there("file"), "{h}: {refused:?}");
                assert_eq!(write(Origin::User, "agg", h, &path("file")), Ok(String::new()));
                assert!(is_there("file"), "{h}");
            }
            // A call that a client configures in an element has only the rights of the client.
            let call = format!("1 agg.write_file {}", path("file"));
            write(Origin::Anonymous, "c", "count_call", &call).unwrap();
            write(Origin::Anonymous, "i", "active", "true").unwrap();
            while running.read(Some("c"), "count", "").unwrap() != "10" {}
            assert!(!is_there("file"));
            assert!(log.lines().iter().any(|l| l.contains("permission denied for 'agg.write_file'")));
            // A script has the rights of the configuration, even if a client runs it.
            write(Origin::Anonymous, "s", "run", &path("file")).unwrap();
            assert!(is_there("file") && is_there("printed"));
            // A read handler must not open files for its caller, either.
            std::fs::write(path("secret"), "secret").unwrap();
            let cat = running.read(Some("s"), "cat", &path("secret"));
            assert!(
                matches!(&cat, Err(CallError::Refused(e)) if e.to_string().contains("may not name files")),
                "{cat:?}"
            );
        });
    }
}
