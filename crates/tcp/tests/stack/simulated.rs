// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacks that talk to each other, in simulated time.

use castanet_testkit::{number, run, value};

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
