// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests quotes in arguments: a whole word or pattern may be quoted; numbers and addresses may not.
#![allow(clippy::unwrap_used)]

use castanet_testkit::{simulated, try_router};

/// Builds a configuration that has this element between a source and a sink, or alone.
fn build(element: &str) -> Result<(), String> {
    let text = match element.split_once('(').unwrap().0 {
        "ToDump" | "KernelFilter" => format!("Idle -> {element}"),
        "Script" | "ControlSocket" | "DriverManager" => format!("{element}; Idle -> Discard"),
        "Socket" => format!("Idle -> {element}"),
        "IPRateMonitor" | "IPFilter" => format!("Idle -> {element} -> Discard"),
        "IPClassifier" | "Classifier" => {
            format!("Idle -> c :: {element}; c [0] -> Discard; c [1] -> Discard")
        }
        _ => format!("Idle -> {element} -> Discard"),
    };
    try_router(&text, simulated(32).0).map(drop)
}

#[test]
fn words_and_patterns_may_be_quoted() {
    for element in [
        "Print(CONTENTS \"ASCII\")",
        "Print(\"a label\", CONTENTS \"NONE\")",
        "IPPrint(CONTENTS \"HEX\")",
        "SetPacketType(\"HOST\")",
        "VLANEncap(\"5\")",
        "VLANEncap(\"ANNO\")",
        "StoreEtherAddress(2:2:2:2:2:2, \"src\")",
        "Socket(\"UDP\", 127.0.0.1, 9)",
        "Script(TYPE \"PASSIVE\", return 1)",
        "Classifier(\"0/61\", \"-\")",
        "IPClassifier(\"tcp\", \"-\")",
        "IPFilter(\"allow all\")",
        "IPFilter(\"deny src 1.2.3.4\", allow all)",
        "SetTimestampDelta(TYPE \"RANGE\")",
        "IPEncap(\"udp\", 1.1.1.1, 2.2.2.2)",
    ] {
        assert_eq!(build(element), Ok(()), "{element}");
    }
}

#[test]
fn numbers_and_addresses_in_quotes_are_refused() {
    for (element, error) in [
        ("Strip(\"4\")", "LENGTH: invalid number"),
        ("SetIPAddress(\"1.2.3.4\")", "IPADDR: parse error"),
        ("Paint(\"x\")", "COLOR: invalid number"),
        ("SetPacketType(\"nobody\")", "\"nobody\""),
        ("IPFilter(\"allow alll\")", "alll"),
    ] {
        let told = build(element).unwrap_err();
        assert!(told.contains(error), "{element}: {told}");
    }
}
