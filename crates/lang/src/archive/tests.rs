// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of archives.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn member(name: &str, size: &str, data: &[u8]) -> Vec<u8> {
    let mut all = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 100644).into_bytes();
    all.extend_from_slice(data);
    all
}

fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    [MAGIC.to_vec(), members.concat()].concat()
}

#[test]
fn written_archives_are_read() {
    let members: Vec<(String, Vec<u8>)> = [
        ("config", &b"Idle;"[..]),
        ("exactly14chars", b""),
        ("fifteen_letters", b"12"),
        ("with space", b"123"),
        ("#1", b"odd"),
        ("\u{e9}", b"\0\xff"),
    ]
    .map(|(n, d)| (n.to_string(), d.to_vec()))
    .to_vec();
    let bytes = write(&members).unwrap();
    assert_eq!(read(&bytes).unwrap(), members);
    assert!(bytes.windows(16).any(|w| w == b"exactly14chars  "));
    assert!(bytes.windows(5).any(|w| w == b"#1/15"));
    assert_eq!(bytes.len() % 2, 0);
}

#[test]
fn other_writers_are_understood() {
    let gnu = archive(&[
        member("/", "4", b"\0\0\0\0"),
        member("//", "40", b"a_name_that_is_long.uo/\nelementmap.xml/\n"),
        member("/0", "1", b"x\n"),
        member("/24", "2", b"yz"),
        member("config/", "3", b"abc\n"),
        member("#1/8", "10", b"bsd\0\0\0\0\0ok"),
        b"\n".to_vec(),
    ]);
    let got = read(&gnu).unwrap();
    let names: Vec<&str> = got.iter().map(|m| m.0.as_str()).collect();
    assert_eq!(names, ["a_name_that_is_long.uo", "elementmap.xml", "config", "bsd"]);
    assert_eq!(got.last().unwrap().1, b"ok");
}

#[test]
fn hostile_archives_are_refused() {
    use ArchiveError::*;
    for (bytes, want) in [
        (b"no".to_vec(), NotAnArchive),
        (archive(&[b"short".to_vec()]), BadHeader(8)),
        (archive(&[member("a", "0", b"")[..58].to_vec(), b"xx".to_vec()]), BadHeader(8)),
        (archive(&[member("a", "5", b"1234")]), BadSize(8)),
        (archive(&[member("a", "-1", b"")]), BadSize(8)),
        (archive(&[member("a", "", b"")]), BadSize(8)),
        (archive(&[member("a", "9999999999", b"")]), BadSize(8)),
        (archive(&[member("", "0", b"")]), BadName(8)),
        (archive(&[member("..", "0", b"")]), BadName(8)),
        (archive(&[member("../", "0", b"")]), BadName(8)),
        (archive(&[member("a/b", "0", b"")]), BadName(8)),
        (archive(&[member("/etc/passwd", "0", b"")]), BadName(8)),
        (archive(&[member("a\\b", "0", b"")]), BadName(8)),
        (archive(&[member("/0", "0", b"")]), BadName(8)),
        (archive(&[member("#1/9", "4", b"abcd")]), BadName(8)),
        (archive(&[member("#1/7", "8", b"/etc/x\0d")]), BadName(8)),
        (archive(&[member("#1/0", "0", b"")]), BadName(8)),
        (archive(&[member("//", "6", b"../x/\n"), member("/0", "0", b"")]), BadName(74)),
        (archive(&[member("//", "2", b"a\n"), member("/9", "0", b"")]), BadName(70)),
    ] {
        assert_eq!(read(&bytes), Err(want), "{}", String::from_utf8_lossy(&bytes));
    }
    for name in ["", "..", "a/b", "a\nb"] {
        assert!(matches!(write(&[(name.into(), Vec::new())]), Err(BadName(8))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]
    #[test]
    fn any_bytes_are_taken(tail in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..200, flip in 0usize..200) {
        let _ = read(&[MAGIC.to_vec(), tail].concat());
        let good = write(&[("config".into(), b"abc".to_vec()), ("a long member name".into(), vec![1; 40])]).unwrap();
        let mut bad = good.clone();
        bad.truncate(cut);
        let _ = read(&bad);
        bad = good;
        if let Some(b) = bad.get_mut(flip) { *b ^= 1 << (flip % 8); }
        if let Ok(members) = read(&bad) {
            prop_assert!(members.iter().all(|m| is_safe_name(&m.0)));
        }
    }
}
