// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of splitting and quoting.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn parts(config: &str) -> Vec<String> {
    split(config).into_iter().map(|r| cleaned(config, r).into_owned()).collect()
}

#[test]
fn splits_at_commas() {
    for (config, want) in [
        ("", &[] as &[&str]),
        (" \n", &[]),
        ("/* x */", &[]),
        ("a", &["a"]),
        (" a , b ", &["a", "b"]),
        ("a,", &["a"]),
        (",", &[""]),
        ("a,,", &["a", ""]),
        (",,a", &["", "", "a"]),
        ("f(a, b)", &["f(a", "b)"]),
        ("'a, b', c", &["'a, b'", "c"]),
        (r#""a\", b", c"#, &[r#""a\", b""#, "c"]),
        (r"'a\', b", &[r"'a\'", "b"]),
        (r"\<2c, 2c>, b", &[r"\<2c, 2c>", "b"]),
        (r"\<2c /* > */ 2c>, b", &[r"\<2c /* > */ 2c>", "b"]),
        ("a /* x, y */ b, c // d, e\n, f", &["a   b", "c", "f"]),
        ("a//x", &["a"]),
        ("a/b, /", &["a/b", "/"]),
        ("'open, b", &["'open, b"]),
        ("a\\, b", &["a\\", "b"]),
    ] {
        assert_eq!(parts(config), want, "{config:?}");
    }
    assert_eq!(split(" a /*b*/ c /*d*/ , e"), [1..10, 19..20]);
}

#[test]
fn splits_into_words() {
    for (arg, want) in [
        ("", &[] as &[&str]),
        (" a  b\tc\n", &["a", "b", "c"]),
        ("'a b'c \"d e\"", &["'a b'c", "\"d e\""]),
        ("a/**/b", &["a", "b"]),
        (r"\<0 1>2 3", &[r"\<0 1>2", "3"]),
    ] {
        let got: Vec<&str> = words(arg).into_iter().map(|r| &arg[r]).collect();
        assert_eq!(got, want, "{arg:?}");
    }
}

#[test]
fn removes_quotes() {
    for (arg, want) in [
        ("a b", &b"a b"[..]),
        ("'a'\"b\"c", b"abc"),
        (r"'\n'", br"\n"),
        (r#""\a\b\f\n\r\t\v\\\"\q\$""#, b"\x07\x08\x0c\n\r\t\x0b\\\"q$"),
        (r#""\1\12\123\1234\777""#, b"\x01\x0a\x53\x534\xff"),
        (r#""\x4\x41\x1241z\xzz""#, b"\x04\x41\x41zxzz"),
        (r#""\<41 4 2>\<4>\<>""#, b"AB"),
        (
            r"\<41/*44*/42//45
43>x",
            b"ABCx",
        ),
        ("\"a\\\nb\\\r\nc\"", b"abc"),
        (r"a\nb", br"a\nb"),
        ("\"\"", b""),
        ("\"é\"", "é".as_bytes()),
    ] {
        assert_eq!(data(arg).as_deref(), Some(want), "{arg:?}");
    }
    for open in ["'a", "\"a", "\"a\\\"", "\\<41", "\"\\<41\""] {
        assert_eq!(data(open), None, "{open:?}");
    }
    assert_eq!(unquote("'a"), "a");
    assert_eq!(unquote("\"\\xff\""), "\u{10ffff}");
    assert_eq!(data("a\u{10ffff}").as_deref(), Some(&b"a\xff"[..]));
    assert_eq!(quote("\u{10ffff}"), "\"\\377\"");
}

#[test]
fn quotes() {
    assert_eq!(quote(""), "\"\"");
    assert_eq!(quote("a\\\"$\t\r\n\u{1}é"), r#""a\\\"\$\t\r\n\001\303\251""#);
    assert_eq!(quote_bytes(&[0xff, b'1']), r#""\3771""#);
}

#[test]
fn finds_keywords() {
    for (arg, want) in [
        ("LIMIT 5", Some(("LIMIT", 6..7))),
        ("  a:b.c?! x y ", Some(("a:b.c?!", 10..13))),
        ("_x/**/y", Some(("_x", 6..7))),
        ("LIMIT", None),
        ("LIMIT ", None),
        ("5 LIMIT", None),
        ("LIMIT=5", None),
        ("a\"b\" c", None),
        ("K \"v\"", Some(("K", 2..5))),
        ("", None),
    ] {
        assert_eq!(keyword(arg), want, "{arg:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]
    #[test]
    fn quoting_is_undone(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let quoted = quote_bytes(&bytes);
        prop_assert_eq!(data(&quoted), Some(bytes));
        prop_assert_eq!(split(&quoted).len(), 1);
        prop_assert_eq!(words(&quoted).len(), 1);
    }
    #[test]
    fn any_text_is_taken(text in r#"([a-zA, "'\\</*>\n$é0-9]|\PC){0,60}"#) {
        let ranges = split(&text);
        // Without quotes and comments, the result equals a plain split at commas.
        if !text.contains(['"', '\'', '\\', '/']) {
            let mut plain: Vec<&str> = text.split(',').map(|p| p.trim_matches(|c: char| c.is_ascii() && is_space(c as u8))).collect();
            if plain.last() == Some(&"") { plain.pop(); }
            let got: Vec<&str> = ranges.iter().map(|r| &text[r.clone()]).collect();
            prop_assert_eq!(got, plain);
        }
        for r in ranges {
            let arg = cleaned(&text, r);
            for w in words(&arg) { let _ = unquote(&arg[w]); }
            let _ = (data(&arg), keyword(&arg).map(|(_, r)| &arg[r]));
        }
    }
}
