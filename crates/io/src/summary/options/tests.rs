// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

fn tcp_text(bytes: &[u8], which: TcpOptions) -> String {
    let mut out = String::new();
    print_tcp(bytes, which, &mut out);
    out
}
fn ip_text(bytes: &[u8]) -> String {
    let mut out = String::new();
    print_ip(bytes, &mut out);
    out
}

#[test]
fn tcp_options_both_ways() {
    let table: &[(&str, &str, &str)] = &[
        ("mss1460;wscale3;sackok;ts5:6", "mss1460;wscale3;sackok", "sackok"),
        (".", ".", "."),
        ("sack1-2;sack3-4", "sack1-2;sack3-4", "sack1-2;sack3-4"),
        ("ts1:2;sack4294967295-0", "sack4294967295-0", "sack4294967295-0"),
        ("30=1:2:3;mss9", "30=1:2:3;mss9", "."),
        ("19", "19", "."),
    ];
    for (all, rest, sack) in table {
        let bytes = parse_tcp(all).unwrap();
        assert!(bytes.len().is_multiple_of(4));
        assert_eq!(tcp_text(&bytes, TcpOptions::All), *all);
        assert_eq!(tcp_text(&bytes, TcpOptions::NoTimestamp), *rest);
        assert_eq!(tcp_text(&bytes, TcpOptions::Sack), *sack);
    }
    assert_eq!(parse_tcp("mss1460;sackok").unwrap(), [2, 4, 5, 180, 4, 2, 0, 0], "RFC 9293 and RFC 2018");
    for bad in [&[2, 1][..], &[2, 9, 0], &[5], &[8, 0, 0, 0]] {
        assert_eq!(tcp_text(bad, TcpOptions::All), "?");
    }
    assert_eq!(tcp_text(&[1, 1, 2, 3, 9, 0, 2], TcpOptions::All), "2=9", "a wrong length has no words");
    for bad in ["mss", "mss70000", "?", "wscale300", "sack1", "ts1", "30=", "30=256", "x=1", "0=1"] {
        assert_eq!(parse_tcp(bad), None, "{bad}");
    }
    assert_eq!(parse_tcp(&["mss1"; 11].join(";")), None, "no room");
    assert_eq!(parse_tcp(&["sack1-2"; 50].join(";")), None, "no room");
}

#[test]
fn ip_options_both_ways() {
    for text in [
        ".",
        "rr{1.2.3.4,5.6.7.8}+2",
        "rr{}+9",
        "lsrr{1.2.3.4^5.6.7.8}",
        "ssrr{^5.6.7.8}",
        "lsrr{1.2.3.4^}",
        "ts{1,2,!3}+1;148=0:0",
        "ts.ip{1.2.3.4=7,5.6.7.8=!9}+1",
        "ts.preip{1.2.3.4=5^9.9.9.9}",
        "ts{}+3++15",
        "148=0:0",
    ] {
        let bytes = parse_ip(text).unwrap();
        assert!(bytes.len().is_multiple_of(4) && bytes.len() <= MOST);
        assert_eq!(ip_text(&bytes), text);
    }
    // RFC 791 section 3.1: a record route with one of two slots used.
    assert_eq!(parse_ip("rr{1.2.3.4}+1").unwrap(), [7, 11, 8, 1, 2, 3, 4, 0, 0, 0, 0, 0]);
    for bad in ["rr{", "rr{1.2.3}", "rr{}+300", "ts{x}", "ts.x{}", "ts{}++16", "rr{}x", "rr{}+20", "?"] {
        assert_eq!(parse_ip(bad), None, "{bad}");
    }
    assert_eq!(ip_text(&[7, 7, 5, 1, 2, 3, 4]), "7=5:1:2:3:4", "a pointer between slots");
    assert_eq!(ip_text(&[7, 200, 4]), "?");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// The text of any well-formed options can be parsed, and is the same when printed again.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0..12u8, Just(68u8)], 0..=40)) {
        for text in [tcp_text(&bytes, TcpOptions::All), tcp_text(&bytes, TcpOptions::Sack)] {
            if let Some(back) = parse_tcp(&text) {
                prop_assert_eq!(tcp_text(&back, TcpOptions::All), text);
            }
        }
        let text = ip_text(&bytes);
        match parse_ip(&text) {
            Some(back) => prop_assert_eq!(ip_text(&back), text),
            None => prop_assert!(text == "?", "{} cannot be read", text),
        }
    }

    #[test]
    fn any_text(text in ".{0,60}") {
        for bytes in [parse_tcp(&text), parse_ip(&text)].into_iter().flatten() {
            prop_assert!(bytes.len() <= MOST && bytes.len().is_multiple_of(4));
        }
    }
}
