// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the functions that depend only on their arguments.

use super::script;
use crate::control::script::function::first_word;
use castanet_element::prelude::*;

fn call(text: &str) -> Result<String, HandlerError> {
    let (name, arguments) = first_word(text);
    script("TYPE PASSIVE").0.read_with(name, arguments)
}

#[test]
fn values() {
    for (text, out) in [
        ("add", "0"),
        ("add 1 2 3", "6"),
        ("add 1 2.5", "3.5"),
        ("add 9223372036854775807 1", "9.22337203685e+18"),
        ("sub 5", "5"),
        ("sub 5 2 1", "2"),
        ("mul", "1"),
        ("mul 1.5 2", "3"),
        ("mul 0x10 010", "128"),
        ("div 6 2", "3"),
        ("div 7 2", "3.5"),
        ("div 1 0", "inf"),
        ("idiv 7 2", "3"),
        ("idiv -7 2", "-3"),
        ("idiv 60", "60"),
        ("idiv 60 2 5", "6"),
        ("idiv 7 2 2", "1"),
        ("idiv -9223372036854775808 -1 2", "4.61168601843e+18"),
        ("idiv -9223372036854775808 -1", "9.22337203685e+18"),
        ("mod -7 3", "-1"),
        ("mod -9223372036854775808 -1", "0"),
        ("rem 7 3", "1"),
        ("rem 7.5 2", "1.5"),
        ("neg 3", "-3"),
        ("avg 1 2", "1.5"),
        ("avg 4", "4"),
        ("ceil 1.2", "2"),
        ("ceil -1.2", "-1"),
        ("floor 1.8", "1"),
        ("floor -1.2", "-2"),
        ("round 2.5", "3"),
        ("round -2.5", "-3"),
        ("round 1e300", "1e+300"),
        ("floor 9223372036854775807", "9223372036854775807"),
        ("count", "0"),
        ("count a \"b c\" d", "3"),
        ("popcount 255", "8"),
        ("popcount -1", "64"),
        ("neg -9223372036854775808", "9.22337203685e+18"),
        ("neg 1.5", "-1.5"),
        ("abs -3", "3"),
        ("abs -3.25", "3.25"),
        ("min 3 1 2", "1"),
        ("max 3 1.5 4.0", "4"),
        ("eq 1 1.0", "true"),
        ("eq 1 01", "true"),
        ("eq a a", "true"),
        ("eq \"a b\" 'a b'", "true"),
        ("eq 9007199254740993 9007199254740992", "false"),
        ("ne a b", "true"),
        ("lt 10 9", "false"),
        ("lt 10 9x", "true"),
        ("le 1 1", "true"),
        ("gt b a", "true"),
        ("ge 1 2", "false"),
        ("and", "true"),
        ("and true yes 1", "true"),
        ("and true false", "false"),
        ("or false no", "false"),
        ("or", "false"),
        ("nand true true", "false"),
        ("nand true false", "true"),
        ("nor false false", "true"),
        ("nor false true", "false"),
        ("not false", "true"),
        ("if true a b", "a"),
        ("if false a b", "b"),
        ("if false a", ""),
        ("in a b a", "true"),
        ("in a b \"a\"", "true"),
        ("in a", "false"),
        ("first \"a b c\"", "\"a b c\""),
        ("first a b", "a"),
        ("first", ""),
        ("length a b", "3"),
        ("length", "0"),
        ("unquote \"a\\tb\"", "a\tb"),
        ("sprintf \"%05d|%x|%s\" 42 255 hi", "00042|ff|hi"),
        ("htons 1", if cfg!(target_endian = "little") { "256" } else { "1" }),
        ("ntohl 1", if cfg!(target_endian = "little") { "16777216" } else { "1" }),
    ] {
        assert_eq!(call(text).as_deref(), Ok(out), "{text}");
    }
}

#[test]
fn errors() {
    for text in [
        "add x",
        "sub",
        "div",
        "min",
        "idiv",
        "idiv 4 2 0",
        "idiv 1 0",
        "idiv 1.5 1",
        "mod 1 0",
        "mod 1 2 3",
        "rem 1 0",
        "neg",
        "neg 1 2",
        "abs x",
        "eq 1",
        "lt 1 2 3",
        "and perhaps",
        "not",
        "not 2",
        "if true",
        "if x a b",
        "in",
        "sprintf",
        "sprintf %d",
        "htons 65536",
        "htonl -1",
        "htons",
    ] {
        assert!(call(text).is_err(), "{text}");
    }
}
