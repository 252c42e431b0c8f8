// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of mounted handlers with shells, cat, find and other programs, over a fake router.
#![allow(clippy::unwrap_used)]

mod fake;
mod hostile;
mod place;
mod swaps;

use place::{apart, mount_on, mounted};
use std::process::Command;
use std::sync::Arc;

#[test]
fn files_have_the_permissions_of_handlers() {
    apart("files_have_the_permissions_of_handlers", || {
        let m = mounted(&["a", "b/c", "stop"]);
        let names = "find . | sort";
        let of = |e: &str| {
            ["", "/exact", "/handlers", "/long", "/name", "/no", "/reset", "/slow", "/value"]
                .map(|h| format!("./{e}{h}\n"))
                .concat()
        };
        let root = "./handlers\n./list\n";
        // An element hides the global handler of the same name.
        let all = format!(".\n{}./b\n{}{root}{}./value\n", of("a"), of("b/c"), of("stop"));
        assert_eq!(m.says(names), all);
        let listed = m.says("stat -c '%A %h %u %s %n' . a b a/value a/name a/reset 2");
        let owner = "0";
        assert_eq!(
            listed,
            format!(
                "dr-xr-xr-x 5 {owner} 0 .\ndr-xr-xr-x 2 {owner} 0 a\ndr-xr-xr-x 3 {owner} 0 b\n\
                -rw-r--r-- 1 {owner} 0 a/value\n-r--r--r-- 1 {owner} 0 a/name\n--w------- 1 {owner} 0 a/reset\n\
                lrwxrwxrwx 1 {owner} 3 2\n"
            )
        );
        assert_eq!(m.says("cat 1/name 2/name 3/name; ls -d 0 4 01 x 2>/dev/null"), "a\nb/c\nstop\n");
        assert_eq!(m.says("readlink 2 && cd -P 2 && cat name ../../a/name"), "b/c\nb/c\na\n");
    });
}

#[test]
fn values_are_read_when_a_file_is_opened() {
    apart("values_are_read_when_a_file_is_opened", || {
        let m = mounted(&["a"]);
        m.fake.open_gate();
        assert_eq!(m.says("cat value a/value"), "first of value\nfirst of a.value\n", "lines");
        assert_eq!(m.says("cat a/exact a/name"), "first of a.exacta\n", "to the byte");
        assert_eq!(
            m.says("exec 5<a/value; echo new >a/value; cat <&5; cat a/value"),
            "first of a.value\nnew\n"
        );
        assert_eq!(
            m.says("wc -c <a/long; tail -c 8 a/long; dd if=a/long bs=3 skip=1 count=1 2>/dev/null"),
            "700001\na.long \nong"
        );
        assert_eq!(m.says("cat a/no").replace("cat: ", ""), "a/no: Invalid argument\n");
        assert_eq!(
            m.says("cat a/reset a/nothing nothing/value").replace("cat: ", ""),
            "a/reset: Permission denied\na/nothing: No such file or directory\nnothing/value: No such file or directory\n"
        );
        assert_eq!(m.says("cp a/value /dev/stdout; grep -rsl 'first of a' . | sort"), "new\n./a/exact\n");
    });
}

#[test]
fn a_write_is_one_call() {
    apart("a_write_is_one_call", || {
        let m = mounted(&["a"]);
        for (script, written) in [
            ("echo x >a/value", "a.value=x"),
            ("echo x >>a/value", "a.value=x"),
            ("printf 'x\\n\\n' >a/value", "a.value=x\n"),
            ("echo x >a/exact", "a.exact=x\n"),
            ("printf x >a/reset", "a.reset=x"),
            ("{ echo x; echo y; } >a/value", "a.value=x\ny"),
            (": >a/reset", "a.reset="),
            ("echo x 1<>a/value", "a.value=x"),
            ("echo x >stop", "stop=x"),
            ("cp /dev/null a/reset", "a.reset="),
            ("echo x | tee a/value >/dev/null", "a.value=x"),
            ("printf 'a\\377' | tee a/value >/dev/null", "a.value=a\u{10ffff}"),
            ("echo x | dd of=a/value status=none", "a.value=x"),
            ("exec 5>a/value; echo x >&5; printf y >&5; exec 5>&-", "a.value=x a.value=y"),
            (
                "exec 5>>a/value; echo x >&5; truncate -s 0 a/value; printf y >&5; exec 5>&-",
                "a.value=x a.value=y",
            ),
            ("true <>a/value", ""),
            ("true >>a/value", ""),
            ("truncate -s 0 a/value", ""),
        ] {
            let out = m.run(script);
            assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
            // Wait for the write: the kernel sends the release of a file only after the last close has returned.
            let expected: usize = if written.is_empty() { 0 } else { written.matches('=').count() };
            while m.fake.written.lock().len() < expected {
                std::thread::yield_now();
            }
            assert_eq!(m.written().join(" "), written, "{script}");
        }
        let out = m.run("yes 'a line of some length' | head -c 3000000 | dd of=a/exact bs=1000 status=none");
        assert!(out.status.success());
        let [(name, text)] = &m.fake.take()[..] else { panic!("not one call") };
        assert_eq!((name.as_str(), text.len()), ("a.exact", 3_000_000));
        assert!(text.lines().all(|l| "a line of some length".starts_with(l)));
    });
}

#[test]
fn refused_writes_are_errors() {
    apart("refused_writes_are_errors", || {
        let m = mounted(&["a"]);
        // `env echo` is used because the shell's built-in echo ignores the result of close(2).
        for (script, error) in [
            ("env echo x >a/no", "Invalid argument"),
            ("head -c 17000000 /dev/zero | dd of=a/exact bs=1M status=none", "File too large"),
            ("echo x >a/name", "Permission denied"),
            ("tee a/nothing </dev/null", "No such file or directory"),
            ("tee nothing </dev/null", "No such file or directory"),
            ("echo x >a", "Is a directory"),
            ("truncate -s 5 a/value", "Invalid argument"),
            ("chmod 666 a/name", "Operation not permitted"),
            ("rm a/name", "Operation not permitted"),
            ("mv a/name a/other", "Operation not permitted"),
            ("mkdir b", "Operation not permitted"),
            ("rmdir a", "Operation not permitted"),
            ("ln -s x y", "Operation not permitted"),
            ("ln a/name other", "Operation not permitted"),
        ] {
            let out = m.run(script);
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(said.contains(error), "{script}: {said}");
            assert!(!out.status.success() || script.contains('|'), "{script} went well");
            let written = m.written();
            assert!(written.is_empty(), "{script}: {written:?}");
        }
        let folder = m.folder.path().display();
        let said = m.said.lock().join("\n");
        assert_eq!(said, format!("{folder}/a/no: no means no"));
    });
}

#[test]
fn the_router_itself_is_refused() {
    apart("the_router_itself_is_refused", || {
        let m = mounted(&["a"]);
        // EDEADLK, which has no name in the standard library.
        let refused =
            |e: std::io::Error| assert_eq!(e.to_string(), "Resource deadlock avoided (os error 35)");
        refused(std::fs::read(m.folder.path().join("value")).unwrap_err());
        refused(std::fs::read_dir(m.folder.path()).unwrap_err());
        refused(std::thread::scope(|s| {
            s.spawn(|| std::fs::metadata(m.folder.path().join("a")).unwrap_err()).join().unwrap()
        }));
        assert_eq!(m.says("cat value"), "first of value\n");
    });
}

#[test]
fn a_folder_is_as_it_was_when_it_is_unmounted() {
    apart("a_folder_is_as_it_was_when_it_is_unmounted", || {
        let mut m = mounted(&["a"]);
        // The current directory of this shell is in the mount while it is unmounted.
        let mut guest = m
            .shell("cd a; exec 5<value; echo in; read x; cat <&5; cat value")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut said = std::io::BufReader::new(guest.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut said, &mut line).unwrap();
        assert_eq!(line, "in\n");
        m.unmount();
        drop(guest.stdin.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut said, &mut rest).unwrap();
        assert!(rest.starts_with("first of a.value\n"), "{rest}");
        guest.wait().unwrap();

        // If another mount was on the directory before, it is still there afterwards. If others have removed the mount
        // of the router, the router does not unmount again.
        let sh = |script: &str| {
            let out = Command::new("sh").arg("-ec").arg(script).output().unwrap();
            assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
        };
        let path = m.folder.path().to_str().unwrap().to_string();
        sh(&format!("mount -t tmpfs mine {path}"));
        let fake = fake::Fake::new(&["a"]);
        for ended_by_others in [false, true] {
            let (mount, _) = mount_on(m.folder.path(), &Arc::clone(&fake));
            sh(&format!("test -e {path}/a/value"));
            if ended_by_others {
                sh(&format!("umount {path}"));
            }
            drop(mount);
            sh(&format!("test ! -e {path}/a; grep -q ' {path} .* - tmpfs mine' /proc/self/mountinfo"));
        }
    });
}
