// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of files over a hot swap.

use super::place::{apart, mounted};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

#[test]
fn a_swap_changes_the_files_at_once() {
    apart("swaps::a_swap_changes_the_files_at_once", || {
        let m = mounted(&["stays", "goes/far"]);
        let mut shell = m
            .shell("exec sh 2>&1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .env("PS4", "")
            .spawn()
            .unwrap();
        let mut input = shell.stdin.take().unwrap();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        // Sends a command to a shell that runs throughout the test, and returns its output.
        let mut ask = |command: &str| {
            writeln!(input, "{command}\necho ---").unwrap();
            let mut all = String::new();
            loop {
                let mut line = String::new();
                assert!(output.read_line(&mut line).unwrap() > 0, "{command}: {all}");
                if line == "---\n" {
                    return all;
                }
                all += &line;
            }
        };
        ask("cd stays; exec 4<../stays/value 5<../goes/far/value 6>>value 7>>../goes/far/value");
        assert_eq!(
            ask("cd ..; ls -d */ | tr '\\n' ' '; cat 1/name 2/name; cd stays"),
            "goes/ stays/ stays\ngoes/far\n"
        );
        m.fake.swap(vec!["comes".into(), "stays".into()]);
        // A process whose current directory is an element stays in it.
        assert_eq!(ask("cat name"), "stays\n");
        ask("cd ..");
        assert_eq!(ask("ls -d */ | tr '\\n' ' '; cat 1/name 2/name"), "comes/ stays/ comes\nstays\n");
        assert_eq!(
            ask("test -e goes || echo gone; cat comes/value stays/name"),
            "gone\nfirst of comes.value\nstays\n"
        );
        assert_eq!(ask("cat <&4; cat <&5"), "first of stays.value\nfirst of goes/far.value\n");
        // Open files of elements that still exist continue to work; those of others are stale.
        assert_eq!(ask("env echo x >&6 && env stat -L -c %A /dev/fd/6"), "-rw-r--r--\n");
        assert!(ask("env echo x >&7").contains("Stale file handle"));
        assert_eq!(m.written(), ["stays.value=x"]);
        assert!(m.said.lock().join("\n").contains("/goes/far/value: no element named"));
        drop(input);
        assert!(shell.wait().unwrap().success());
    });
}

#[test]
fn readers_during_swaps_see_one_configuration_or_the_other() {
    apart("swaps::readers_during_swaps_see_one_configuration_or_the_other", || {
        let m = mounted(&["both", "old"]);
        let mut readers: Vec<_> = (0..4)
            .map(|_| {
                let script = "for i in $(seq 25); do cat both/name; ls -d old new 2>/dev/null | tr '\\n' ' '; \
                    cat old/name new/name 2>/dev/null; echo; find . -name value >/dev/null || echo; done";
                m.shell(script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        let mut swaps = 0;
        while readers.iter_mut().any(|r| r.try_wait().unwrap().is_none()) {
            swaps += 1;
            let other = if swaps % 2 == 0 { "old" } else { "new" };
            m.fake.swap(vec!["both".into(), other.into()]);
            std::thread::sleep(std::time::Duration::from_micros(700));
        }
        for r in readers {
            let out = r.wait_with_output().unwrap();
            let (said, errors) =
                (String::from_utf8(out.stdout).unwrap(), String::from_utf8_lossy(&out.stderr).into_owned());
            assert_eq!(said.lines().filter(|l| *l == "both").count(), 25, "{said}{errors}");
            // `find` may report that files have disappeared, but no other error.
            let other = errors
                .lines()
                .find(|l| !l.ends_with("No such file or directory") && !l.ends_with("Stale file handle"));
            assert_eq!(other, None);
        }
        assert!(swaps > 20, "{swaps}");
    });
}
