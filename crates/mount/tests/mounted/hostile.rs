// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of access at the wrong time, in excess, or with invalid data.

use super::place::{apart, mounted};
use castanet_element::spec::bytes;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

#[test]
fn ten_thousand_elements_are_listed() {
    apart("hostile::ten_thousand_elements_are_listed", || {
        let names: Vec<String> =
            (0..10_000).map(|i| format!("part{}/e{i}", i % 7)).chain(["top".into()]).collect();
        let m = mounted(&names.iter().map(String::as_str).collect::<Vec<_>>());
        // The mount point, 7 directories, 10,001 elements with 8 handlers each, 4 global handlers.
        assert_eq!(m.says("find . | wc -l"), format!("{}\n", 1 + 7 + 10_001 * 9 + 4));
        assert_eq!(
            m.says("cat 10001/name part3/e3/name 5001/name; ls part0 | wc -l"),
            "top\npart3/e3\npart2/e5000\n1429\n"
        );
        m.fake.swap(vec!["a".into()]);
        assert_eq!(
            m.says("find . -maxdepth 1 | sort | tr '\\n' ' '"),
            ". ./a ./handlers ./list ./stop ./value "
        );
    });
}

#[test]
fn a_slow_handler_blocks_no_other_request() {
    apart("hostile::a_slow_handler_blocks_no_other_request", || {
        let mut m = mounted(&["a", "b"]);
        let slow = |m: &super::place::Mounted, script: &str| -> Child {
            m.shell(script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let waiting: Vec<Child> = (0..3).map(|_| slow(&m, "cat a/slow")).collect();
        m.fake.wait_for(3);
        assert_eq!(m.says("cat a/value; echo x >a/value; cat b/name"), "first of a.value\nb\n");
        m.fake.open_gate();
        for w in waiting {
            assert_eq!(String::from_utf8(w.wait_with_output().unwrap().stdout).unwrap(), "at last\n");
        }
        // A process that still reads from a handler when the router ends does not prevent unmounting.
        let m2 = mounted(&["a"]);
        let waits = slow(&m2, "cat a/slow");
        m2.fake.wait_for(1);
        m2.fake.end();
        let out = waits.wait_with_output().unwrap();
        assert!(out.status.success() || String::from_utf8_lossy(&out.stderr).contains("not connected"));
        assert!(m2.says("cat a/value").contains("not connected"), "no value of a router that has ended");
        drop(m2);
        m.unmount();

        let mut m3 = mounted(&["a"]);
        let waits: Vec<Child> = (0..9).map(|_| slow(&m3, "exec cat a/slow")).collect();
        m3.fake.wait_for(4);
        let start = Instant::now();
        m3.unmount();
        // Unmounting does not wait for handlers that never return. The time limit is long, because it
        // must only detect a hang.
        assert!(start.elapsed() < Duration::from_secs(100), "{:?}", start.elapsed());
        m3.fake.end();
        for w in waits {
            w.wait_with_output().unwrap();
        }
    });
}

#[test]
fn many_clients_while_the_router_ends() {
    apart("hostile::many_clients_while_the_router_ends", || {
        let mut m = mounted(&["a", "b/c"]);
        m.fake.open_gate();
        let scripts = [
            "while cat a/value b/c/value list; do :; done",
            "while env echo \"number $$\" >a/value; do :; done",
            "while head -c 300000 /dev/urandom >b/c/exact; test -d b; do :; done",
            "while yes | head -c 100000 | dd of=b/c/value bs=777; do :; done",
            "while test -d b; do find . -type f -exec head -c 5 {} +; done",
            "while grep -r first .; do ls -lR; done",
            "while test -d b; do tail -c 9 a/long; sh -c 'exec 5<>a/value 6>>a/exact 7<b/c/long; kill -9 $$'; done",
        ];
        let mut crowd: Vec<Child> = scripts
            .iter()
            .cycle()
            .take(14)
            .map(|s| m.shell(s).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
            .collect();
        // 200 swaps take one second. On a busy machine, continue until more than five writes have arrived.
        let start = Instant::now();
        let mut swaps = 0;
        while swaps < 200 || m.fake.written() <= 5 && start.elapsed() < Duration::from_secs(100) {
            m.fake.swap(["a", "b/c"].map(String::from).to_vec());
            swaps += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
        m.fake.end();
        m.unmount();
        for c in &mut crowd {
            // Some processes may still run, although the file system is gone.
            let _ = c.kill();
            c.wait().unwrap();
        }
        let whole = |(name, text): &(String, String)| match name.as_str() {
            "a.value" => text.strip_prefix("number ").is_some_and(|n| n.parse::<u32>().is_ok()),
            // Any bytes are accepted. If a writer is killed, the handler receives what was written before, or nothing.
            "b/c.exact" => bytes::encode(text).len() <= 300_000,
            // If dd was killed or the router ended, only whole blocks arrived.
            "b/c.value" => text.bytes().all(|b| b == b'y' || b == b'\n'),
            _ => false,
        };
        let written = m.fake.take();
        assert!(written.len() > 5, "{}", written.len());
        assert_eq!(written.iter().find(|w| !whole(w)), None);
    });
}
