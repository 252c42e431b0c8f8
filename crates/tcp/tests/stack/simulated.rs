// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacks that talk to each other, in simulated time.

use castanet_testkit::{number, run, simulated, try_router, value};

/// Two stacks, through the classes between them.
fn pair(there: &str, back: &str, applications: &str, end: &str) -> String {
    format!(
        "a :: TCPStack(10.0.0.1) -> {there} b :: TCPStack(10.0.0.2) -> {back} a;
         {applications}
         DriverManager({end}, stop);"
    )
}

#[test]
fn an_echo_comes_back() {
    let text = pair(
        "",
        "",
        "e :: TCPEcho(b, PORT 7); s :: TCPSource(a, CONNECT 10.0.0.2:7, LIMIT 50000);",
        "wait 90s",
    );
    for batch in [1, 32] {
        let (mut r, log) = run(&text, batch);
        println!("{log:?}");
        println!("{}{}", value(&mut r, "a", "connections"), value(&mut r, "b", "connections"));
        for (element, handler, want) in [
            ("e", "received", 50_000),
            ("e", "sent", 50_000),
            ("s", "received", 50_000),
            ("a", "opened", 1),
            ("b", "opened", 1),
            ("a", "finished", 1),
            ("b", "finished", 1),
            ("a", "count", 0),
            ("b", "count", 0),
            ("a", "data", 0),
            ("b", "data", 0),
        ] {
            assert_eq!(number(&mut r, element, handler), want, "{element}.{handler}");
        }
    }
}

/// Each byte arrives over a line that loses, delays and repeats packets, whatever the batch size, and the same happens each
/// time with the same batch size.
#[test]
fn a_bad_line_costs_no_byte() {
    let line = "elementclass Line {
            input -> RandomSample(0.9) -> twice :: Tee -> late :: RandomSample(0.9) -> output;
            late [1] -> Queue -> DelayUnqueue(30ms) -> output;
            twice [1] -> RandomSample(0.1) -> output;
        }";
    let applications = "sink :: TCPSink(b, PORT 9); TCPSource(a, CONNECT 10.0.0.2:9, LIMIT 300000);";
    let text = format!("{line} {}", pair("Line ->", "Line ->", applications, "wait 900s"));
    for batch in [1, 3, 32] {
        let seen = [(); 2].map(|()| {
            let (mut r, _) = run(&text, batch);
            assert_eq!((number(&mut r, "sink", "received"), number(&mut r, "sink", "wrong")), (300_000, 0));
            assert_eq!((number(&mut r, "a", "count"), number(&mut r, "b", "count")), (0, 0));
            (number(&mut r, "a", "sent"), number(&mut r, "b", "sent"))
        });
        assert_eq!(seen[0], seen[1]);
    }
}

/// Listeners and connections may also be named on the side of the stack.
#[test]
fn the_stack_names_its_applications() {
    let text = "a :: TCPStack(10.0.0.1, CONNECT 10.0.0.2:9 source 10.0.0.2:7 source)
            -> b :: TCPStack(10.0.0.2, LISTEN 9 sink 7 echo) -> a;
        sink :: TCPSink(b); echo :: TCPEcho(b); source :: TCPSource(a, LIMIT 1000);
        DriverManager(wait 90s, stop);";
    let (mut r, _) = run(text, 32);
    assert_eq!(value(&mut r, "b", "listeners"), "7 echo\n9 sink\n");
    let counts = ["sink", "echo", "source"].map(|e| number(&mut r, e, "received"));
    assert_eq!((counts, number(&mut r, "source", "sent")), ([1000, 1000, 1000], 2000));
}

#[test]
fn wrong_configurations_say_so() {
    for (applications, message) in [
        ("TCPEcho(nobody, PORT 7);", "'nobody' does not name an element"),
        ("i :: Idle; TCPEcho(i, PORT 7);", "'i' is of class Idle, not TCPStack"),
        ("TCPEcho(b, PORT 7); d :: TCPDiscard(b, PORT 7);", "port 7: the port has a listener already"),
        ("TCPEcho(b, CONNECT 10.0.0.1);", "expected ADDR:PORT"),
        ("TCPEcho(b, CONNECT 10.0.0.1:7@224.0.0.1);", "224.0.0.1 is no host"),
        ("TCPEcho(b, CONNECT 10.0.0.1:7!1.1.1.1!a);", "'a'"),
        ("TCPEcho;", "STACK"),
        (
            "Idle -> TCPStack(10.0.0.3, LISTEN 7 e) -> Discard; e :: TCPEcho(b);",
            "not an application of this stack",
        ),
    ] {
        let (options, _) = simulated(32);
        let text = pair("", "", applications, "wait 1s");
        let error = try_router(&text, options).err().unwrap_or_default();
        assert!(error.contains(message), "{applications}: {error}");
    }
}
