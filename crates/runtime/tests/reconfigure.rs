// SPDX-License-Identifier: MIT OR Apache-2.0
//! Live reconfiguration: elements that get another configuration through their handler `config`.
#![allow(clippy::unwrap_used, missing_docs)]

use castanet_element::remote::Remote as _;
use castanet_element::{CallError, Missing};
use castanet_spec::Origin;
use castanet_testkit::{number, real, router, run, simulated, until, value, watched};

#[test]
fn a_script_configures_elements_anew() {
    let (mut r, lines) = run(
        "s :: InfiniteSource(LIMIT 9, STOP true) -> cl :: Classifier(0/41, -); cl [0] -> a :: Counter -> q :: Queue(20) -> Idle;
         cl [1] -> b :: Counter -> Discard;
         DriverManager(print cl.config, writeq cl.config \"0/00, -\", print cl.config, print q.config,
             pause, print a.count, print b.count,
             writeq s.config \"LIMIT 3, DATA \\<00>, STOP true\", print s.count, pause,
             print a.count, print q.length, write q.config 2, print q.capacity, print q.length, print q.config)",
        32,
    );
    assert_eq!((number(&mut r, "a", "count"), number(&mut r, "b", "count")), (3, 9), "{lines:?}");
    assert_eq!(
        (value(&mut r, "q", "length").as_str(), value(&mut r, "q", "config").as_str()),
        ("2", "2"),
        "the oldest stay"
    );
    assert_eq!(value(&mut r, "cl", "config"), "0/00, -");
    let flat = r.read(None, "flatconfig", "").unwrap();
    assert!(flat.contains("Classifier(0/00, -)") && flat.contains("Queue(2)"), "{flat}");
}

#[test]
fn a_failed_write_leaves_the_element_as_it_was() {
    let (options, log) = simulated(32);
    let text = "Idle -> p :: Paint(7) -> q :: Queue(5) -> Idle; Idle -> cl :: Classifier(0/41, -); cl [0] -> Discard; cl [1] -> Discard";
    let mut r = router(text, options);
    for (element, config, error) in [
        ("p", "x", "COLOR"),
        ("p", "1, 2, 3", "too many arguments"),
        ("q", "-1", "CAPACITY"),
        ("cl", "-", "need 2 arguments, one per output port"),
    ] {
        let e = r.find(element);
        let before = value(&mut r, element, "config");
        match r.write(e, "config", config) {
            Err(CallError::Refused(told)) => {
                assert!(told.to_string().contains(error), "{element} {config}: {told}")
            }
            other => panic!("{element} {config}: {other:?}"),
        }
        assert_eq!(value(&mut r, element, "config"), before);
    }
    assert_eq!((value(&mut r, "p", "color").as_str(), number(&mut r, "q", "capacity")), ("7", 5));
    assert!(log.lines().is_empty(), "{:?}", log.lines());
}

#[test]
fn config_is_read_only_elsewhere() {
    let (mut r, _) = run("Idle -> c :: Counter -> q :: Queue -> Idle; DriverManager(stop)", 32);
    let (c, q) = (r.find("c"), r.find("q"));
    let refused = r.write(c, "config", "");
    assert_eq!(refused, Err(CallError::Missing(Missing::Write("c.config".into()))));
    assert!(value(&mut r, "c", "handlers").contains("config\tr.\n"));
    assert!(value(&mut r, "q", "handlers").contains("config\trw.\n"));
    assert_eq!(r.write(q, "config", "CAPACITY 12"), Ok(()));
    assert_eq!(value(&mut r, "q", "config"), "CAPACITY 12");
}

#[test]
fn a_source_that_stopped_begins_anew() {
    let (mut r, lines) = run(
        "s :: InfiniteSource(LIMIT 4, STOP true) -> c :: Counter -> Discard;
         DriverManager(pause, writeq s.config \"LIMIT 2, STOP true\", pause, writeq s.config \"LIMIT 5, END_CALL stop\", pause)",
        32,
    );
    assert_eq!(number(&mut r, "c", "count"), 11, "{lines:?}");
}

#[test]
fn a_source_gets_calls_that_it_did_not_have() {
    // The call (END_CALL) resets the counter only after the counter has counted all packets sent before the call.
    for source in [
        "s :: InfiniteSource(LIMIT 40, ACTIVE false) ->",
        "s :: InfiniteSource(LIMIT 40, ACTIVE false) -> Unqueue ->",
    ] {
        let text = format!(
            "{source} c :: Counter -> Discard;
             DriverManager(wait 0.1s, writeq s.config \"LIMIT 40, END_CALL c.reset\", wait 0.1s, print c.count)"
        );
        let (mut r, lines) = run(&text, 32);
        assert_eq!(
            (number(&mut r, "c", "count"), number(&mut r, "s", "count")),
            (0, 40),
            "{text}: {lines:?}"
        );
    }
}

#[test]
fn every_worker_configures_its_replica() {
    watched(|| {
        let (options, log) = real(2);
        let text = "a :: InfiniteSource(BURST 1) -> p :: Paint(1) -> q :: Queue(50) -> u :: Unqueue -> c :: Counter -> Discard;
                    b :: InfiniteSource(BURST 1) -> p; StaticThreadSched(a 0, b 1, u 0)";
        let mut r = router(text, options);
        let running = r.running().clone();
        let thread = std::thread::spawn(move || {
            let write =
                |e: &str, text: &str| running.write(Origin::Operator, Some(e), "config", text).map(drop);
            let done: Vec<_> = (1..40)
                .flat_map(|n| {
                    [write("q", &(n % 7 * 10 + 1).to_string()), write("p", &n.to_string()), write("p", "x")]
                })
                .collect();
            let told = ["q.capacity", "q.config", "p.color", "p.config"].map(|h| {
                let (e, h) = h.split_once('.').unwrap();
                running.read(Some(e), h, "").unwrap()
            });
            running.write(Origin::Operator, None, "stop", "").unwrap();
            (done, told)
        });
        r.run().unwrap();
        let (done, told) = thread.join().unwrap();
        assert!(done.iter().enumerate().all(|(i, d)| d.is_ok() == (i % 3 < 2)), "{done:?}");
        assert_eq!(told, ["41", "41", "39", "39"], "{:?}", log.lines());
        assert_eq!(r.ledger().missing(), 0);
    });
}

#[test]
fn config_follows_the_handlers_that_set_arguments() {
    let (mut r, _) = run(
        "Idle -> a :: Queue -> Unqueue -> b :: Queue(CAPACITY 5) -> Unqueue -> c :: Queue(5) -> u :: RatedUnqueue(100) -> Discard;
         Idle -> e :: EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> w :: EtherRewrite(4:4:4:4:4:4, 6:6:6:6:6:6) -> Discard;
         Idle -> k :: IPClassifier(tcp, -); k [0] -> s :: Switch(0); s [0] -> Discard; s [1] -> Discard; k [1] -> Discard;
         Idle -> t :: StrideSwitch(7, 1); t [0] -> Discard; t [1] -> Discard; Idle -> p :: Paint(3) -> v :: SetVLANAnno(VLAN_ID 5) -> Discard;
         DriverManager(stop)",
        32,
    );
    for (element, handler, text, config) in [
        ("a", "capacity", "10", "CAPACITY 10"),
        ("b", "capacity", " 10 ", "CAPACITY 10"),
        ("c", "capacity", "10", "10"),
        ("c", "reset", "", "10"),
        ("u", "rate", "50", "50"),
        ("e", "ethertype", "0x86dd", "0x86dd, 1:1:1:1:1:1, 2:2:2:2:2:2"),
        ("e", "src", "3:3:3:3:3:3", "0x86dd, 3:3:3:3:3:3, 2:2:2:2:2:2"),
        ("e", "etht", "0x806", "0x806, 3:3:3:3:3:3, 2:2:2:2:2:2"),
        ("e", "etht", "0x86dd", "0x86dd, 3:3:3:3:3:3, 2:2:2:2:2:2"),
        ("w", "dst", "5:5:5:5:5:5", "4:4:4:4:4:4, 5:5:5:5:5:5"),
        ("k", "pattern0", "udp", "udp, -"),
        ("s", "switch", "1", "1"),
        ("t", "tickets1", "2", "7, 2"),
        ("p", "color", "4", "3"),
        ("v", "vlan_id", "9", "VLAN_ID 9, VLAN_PCP 0"),
    ] {
        let e = r.find(element);
        r.write(e, handler, text).unwrap();
        assert_eq!(value(&mut r, element, "config"), config, "{element}.{handler} {text}");
    }
    let e = r.find("a");
    assert!(r.write(e, "capacity", "many").is_err());
    assert_eq!(value(&mut r, "a", "config"), "CAPACITY 10");
    let flat = r.read(None, "flatconfig", "").unwrap();
    assert!(flat.contains("EtherEncap(0x86dd, 3:3:3:3:3:3, 2:2:2:2:2:2)"), "{flat}");
}

#[test]
fn a_configuration_has_the_rights_of_the_client_that_wrote_it() {
    watched(|| {
        let (options, log) = real(1);
        let mut r = router("s :: InfiniteSource(ACTIVE false) -> c :: Counter -> Discard;", options);
        let running = r.running().clone();
        running.allow_swaps();
        let messages = log.clone();
        let thread = std::thread::spawn(move || {
            let config = "LIMIT 1, END_CALL hotconfig Idle -> d :: Discard";
            let done = running.write(Origin::Anonymous, Some("s"), "config", config).map(drop);
            until("a message", || done.is_err() || messages.len() > 0);
            let names = running.elements();
            running.write(Origin::Operator, None, "stop", "").unwrap();
            (done, names)
        });
        r.run().unwrap();
        let (done, names) = thread.join().unwrap();
        assert_eq!(names, ["s", "c", "Discard@3"]);
        assert_eq!(done, Ok(()));
        let lines = log.lines();
        assert!(lines.iter().any(|l| l.contains("permission denied for 'hotconfig'")), "{lines:?}");
    });
}
