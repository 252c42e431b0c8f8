// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every error about a pattern: its range and its message.
#![allow(clippy::unwrap_used)]

use castanet_classify::{NoNames, PatternError, Program, WarningKind};

/// Each pattern, with the faulty range between « », and the message.
const CLASSIFIER: &[(&str, &str)] = &[
    ("«»", "empty pattern"),
    ("  «»", "empty pattern"),
    ("«12»", "clause without '/'"),
    ("«!»", "clause without '/'"),
    ("12/0800 «foo»", "clause without '/'"),
    ("«!!»12/0800", "more than one '!'"),
    ("«/»0800", "no offset before '/'"),
    ("!«/»0800", "no offset before '/'"),
    ("«0x12»/0800", "bad offset"),
    ("«-1»/0800", "bad offset"),
    ("«99999999»/0800", "offset too large"),
    ("«99999999999999999999»/0800", "offset too large"),
    ("12/«»", "empty value"),
    ("12/«080»", "odd number of digits in value"),
    ("12/08«g»0", "bad digit in value"),
    ("12/0«é»", "bad digit in value"),
    ("12/0800%«»", "empty mask"),
    ("12/0800%«fff»", "odd number of digits in mask"),
    ("12/0800%f«z»ff", "bad digit in mask"),
    ("12/0800%«ff»", "mask and value differ in length"),
    ("12/0800%ff«%»ff", "bad digit in mask"),
    ("12/0800 «-»", "'-' matches every packet and stands alone"),
];

const IP: &[(&str, &str)] = &[
    ("«»", "expression ends early"),
    ("tcp and«»", "expression ends early"),
    ("«and» tcp", "nothing before the operator"),
    ("tcp or «or» udp", "nothing before the operator"),
    ("not«»", "expression ends early"),
    ("«(»tcp", "'(' without ')'"),
    ("tcp«)»", "')' without '('"),
    ("(«)»", "nothing between the parentheses"),
    ("tcp ? udp«»", "'?' without ':'"),
    ("tcp «:» udp", "':' without '?'"),
    ("tcp «&» udp", "'&' after a complete test"),
    ("src 1.2.3.4 «&» 5.6.7.8", "'&' after a complete test"),
    ("tcp «&» 1 = 1", "'&' after a complete test"),
    ("tcp «|» udp", "'|' is not an operator"),
    ("tcp «;» udp", "test is complete here"),
    ("tcp «]»", "test is complete here"),
    ("(tcp «;» udp)", "test is complete here"),
    ("«foo»", "unknown name 'foo'"),
    ("«prot» 6", "unknown name 'prot'"),
    ("«80»", "the type of 80 is unknown"),
    ("tcp «80»", "the type of 80 is unknown"),
    ("host 1.2.3.4 or «80»", "the type of 80 is unknown"),
    ("«echo»", "'echo' is ambiguous"),
    ("src host«»", "value missing"),
    ("src«»", "value missing"),
    ("src «and» tcp", "value missing"),
    ("port =«»", "value missing"),
    ("ip«»", "incomplete test"),
    ("src «dst» host 1.2.3.4", "duplicate direction"),
    ("host «net» 1.2.3.4", "duplicate field to compare"),
    ("tcp «udp» port 80", "a test cannot have two protocols"),
    ("ip «ether» host 1.2.3.4", "a test cannot have both 'ip' and 'ether'"),
    ("ether «port» 80", "not a part of the Ethernet header"),
    ("icmp «port» 80", "this protocol has no ports"),
    ("udp «opt» syn", "only TCP has this, but the test has another protocol"),
    ("tcp «type» 8", "only ICMP has this, but the test has another protocol"),
    ("«src» ttl 5", "a direction does not apply to this test"),
    ("src «frag»", "a direction does not apply here"),
    ("port «frag»", "no value before this word"),
    ("ip ttl «256»", "256 is out of range"),
    ("ip vers «16»", "16 is out of range"),
    ("port «65536»", "65536 is out of range"),
    ("port «99999999999»", "number too large"),
    ("port «nosuch»", "unknown name 'nosuch'"),
    ("port «1.2.3.4»", "'1.2.3.4' does not fit here"),
    ("host «1.2.3»", "bad IP address"),
    ("host «10.0.0.0/8»", "a prefix is not a single host"),
    ("net «10.0.0.0/33»", "bad prefix"),
    ("ether host «1:2:3»", "bad Ethernet address"),
    ("ip «1:2:3:4:5:6»", "an Ethernet address is not in the IP header"),
    ("ip tos & «»", "mask missing after '&'"),
    ("ip tos & «0» = 0", "a zero mask leaves nothing to compare"),
    ("ip tos & «256» = 0", "mask out of range"),
    ("ip tos & «foo» = 0", "bad mask 'foo'"),
    ("ip tos & 0xf0 = «1»", "the value has bits outside the mask, so it can never match"),
    ("net & «255.0.0.0» = 10.0.0.0/8", "duplicate mask"),
    ("host 1.2.3.4 mask«»", "mask missing after 'mask'"),
    ("port 80 «mask» 255", "'mask' follows addresses only"),
    ("tcp opt «&» 3 = 1", "TCP flags take no mask"),
    ("tcp opt «=» syn", "this relation does not apply here"),
    ("tcp opt «0»", "no flag is given"),
    ("host «<» 1.2.3.4", "this relation does not apply here"),
    ("ip proto «>» 5", "this relation does not apply here"),
    ("«>» 5", "nothing before the relation"),
    ("«[0:1]» 5", "no header named before '['"),
    ("ip«[»0:1 5", "'[' without ']'"),
    ("ip[«0:5»] 5", "LEN out of range"),
    ("ip[«0:0»] 5", "LEN out of range"),
    ("ip[«3:2»] 5", "the bytes extend over two aligned 4-byte words"),
    ("ip[«256»] 5", "POS out of range"),
    ("ip[«x»] 5", "bad number"),
    ("ip[«5,4»] 5", "END lies before POS"),
    ("tcp[0:2] = «65536»", "65536 is out of range"),
];

const FILTER: &[(&str, &str)] = &[
    ("«»", "empty rule"),
    ("«permit» all", "unknown action"),
    ("«(» all", "unknown action"),
    ("«99999999999» all", "output number too large"),
    ("allow«»", "expression ends early"),
    ("deny tcp «80»", "the type of 80 is unknown"),
];

fn check(table: &[(&str, &str)], compile: fn(&[&str]) -> Vec<PatternError>) {
    for (marked, message) in table {
        let start = marked.find('«').unwrap();
        let end = marked.find('»').unwrap() - '«'.len_utf8();
        let text = marked.replace(['«', '»'], "");
        let errors = compile(&["-", &text]);
        let [error] = &errors[..] else { panic!("{text:?}: {errors:?}") };
        assert_eq!((error.message.as_str(), error.range.clone()), (*message, start..end), "{text:?}");
        assert_eq!(error.pattern, 1);
        assert!(text.get(error.range.clone()).is_some());
        assert_eq!(error.to_string(), format!("pattern 1: {message}"));
    }
}

#[test]
fn classifier_errors() {
    check(CLASSIFIER, |p| Program::from_classifier(p).unwrap_err());
}

#[test]
fn ip_errors() {
    check(IP, |p| Program::from_ip_classifier(p, &NoNames).unwrap_err());
}

#[test]
fn filter_errors() {
    check(FILTER, |p| Program::from_ip_filter(&["allow all", p[1]], &NoNames, 1).unwrap_err());
}

#[test]
fn every_error_is_reported() {
    let errors = Program::from_classifier(&["12/0800 x y", "-", "1/2"]).unwrap_err();
    assert_eq!(
        errors.iter().map(|e| (e.pattern, e.range.start)).collect::<Vec<_>>(),
        [(0, 8), (0, 10), (2, 2)]
    );
    let errors = Program::from_ip_classifier(&["foo", "tcp", "bar"], &NoNames).unwrap_err();
    assert_eq!(errors.iter().map(|e| e.pattern).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(errors[0].expected.as_deref(), Some("a test such as 'tcp', 'src port 80' or '10.0.0.0/8'"));
}

#[test]
fn misspellings_get_a_suggestion() {
    for (text, near) in [("ttcp", "tcp"), ("udo", "udp"), ("hots 1.2.3.4", "host"), ("smpt", "smtp")] {
        let errors = Program::from_ip_classifier(&[text], &NoNames).unwrap_err();
        assert_eq!(errors[0].expected, Some(format!("'{near}', perhaps")), "{text}");
    }
}

#[test]
fn warnings_of_ip_languages() {
    let classifier = |p: &[&str]| -> Vec<String> {
        Program::from_ip_classifier(p, &NoNames).unwrap().1.iter().map(ToString::to_string).collect()
    };
    assert_eq!(classifier(&["ip proto 6 and ip proto 17"]), ["output 0 matches no packets"]);
    assert_eq!(classifier(&["ip ttl >= 0", "-"]), ["relation '>= 0' is always true"]);
    assert_eq!(
        classifier(&["ip ttl < 0", "-"]),
        ["relation '< 0' is always false", "output 0 matches no packets"]
    );
    assert_eq!(classifier(&["ip tos & 0xf0 <= 0xf0", "-"]), ["relation '<= 240' is always true"]);
    assert_eq!(classifier(&["port > 65534", "-"]), [] as [&str; 0]);
    assert_eq!(classifier(&["tcp", "not tcp", "udp"]), ["output 2 matches no packets"]);
    assert_eq!(classifier(&["false", "-"]), ["output 0 matches no packets"]);
    let rules = ["allow tcp", "3 udp", "deny tcp port 80", "deny all"];
    let (_, warnings) = Program::from_ip_filter(&rules, &NoNames, 2).unwrap();
    let texts: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["output 3 does not exist, its packets are dropped", "pattern 2 matches no packets"]);
    assert_eq!((warnings[0].kind, warnings[0].range.clone()), (WarningKind::NoSuchOutput, 0..1));
    assert_eq!((warnings[1].kind, warnings[1].pattern), (WarningKind::RuleMatchesNothing, 2));
}

#[test]
fn bombs_end_in_errors() {
    let error = |text: &str| {
        let e = Program::from_ip_classifier(&[text], &NoNames).unwrap_err().remove(0);
        assert!(e.range.end <= text.len());
        e.message
    };
    assert_eq!(error(&"(".repeat(10_000_000)), "nested deeper than 200 levels");
    assert_eq!(error(&"tcp ? ".repeat(100_000)), "nested deeper than 200 levels");
    assert_eq!(error(&"!".repeat(1_000_000)), "expression ends early");
    assert_eq!(error(&"tcp and ".repeat(200_000)), "the pattern needs more than 131072 tests");
    let errors = Program::from_classifier(&["12/0800 ".repeat(140_000).as_str()]).unwrap_err();
    assert_eq!(errors[0].message, "the patterns up to here need more than 131072 tests");
    // Alternatives and negations nested almost as deep as the limit allows.
    let deep = format!("{}tcp{}", "not (udp or (".repeat(99), "))".repeat(99));
    assert!(Program::from_ip_classifier(&[&deep], &NoNames).is_ok());
}

#[test]
fn garbage_never_panics() {
    const PARTS: [&str; 40] = [
        "src",
        "dst",
        "ip",
        "ether",
        "host",
        "net",
        "port",
        "proto",
        "opt",
        "type",
        "tcp",
        "udp",
        "icmp",
        "transp",
        "[",
        "]",
        "(",
        ")",
        "0:4",
        "1",
        "80",
        "1.2.3.4",
        "10/8",
        "&",
        "&&",
        "||",
        "=",
        "!=",
        "<",
        ">=",
        "!",
        "?",
        ":",
        ",",
        "mask",
        "syn",
        "echo",
        "frag",
        "é",
        "0xffffffff",
    ];
    let mut state = 0x5eed_0003u64;
    let mut valid = 0;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text += PARTS[(state >> 33) as usize % PARTS.len()];
            text += if state >> 60 == 0 { "" } else { " " };
            if (state >> 40).is_multiple_of(4) {
                break;
            }
        }
        match Program::from_ip_classifier(&[&text], &NoNames) {
            Ok((program, _)) => {
                valid += 1;
                program.classify_ip(&[0x4f; 30]);
            }
            Err(errors) => assert!(text.get(errors[0].range.clone()).is_some(), "{text}: {errors:?}"),
        }
        let _ = Program::from_classifier(&[&text]);
    }
    assert!(valid > 100, "{valid}");
}
