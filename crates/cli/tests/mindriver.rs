// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes minimal drivers with `castanet mkmindriver` and compares them with castanet.
#![allow(clippy::unwrap_used)]

use castanet_classes::Registry;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The castanet command.
fn castanet() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_castanet"))
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Exit code, standard output and standard error of a program.
type Ran = (i32, String, String);

fn ran(program: &Path, words: &[&str], folder: &Path) -> Ran {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).env_remove("CLICKPATH").env_remove("CASTANET_SDK");
    let out = command.env("NO_COLOR", "1").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
}

fn router() -> String {
    root().join("conf/ip-router-trace.click").display().to_string()
}

/// The folder of a driver for the IP router, made once for all tests, and the report of its making.
fn made() -> &'static (tempfile::TempDir, Ran) {
    static MADE: OnceLock<(tempfile::TempDir, Ran)> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let words = ["mkmindriver", "-v", &router(), "-E", "Print", "-o", "router"];
        let report = ran(castanet(), &words, folder.path());
        std::os::unix::fs::symlink("router", folder.path().join("routerclick")).unwrap();
        (folder, report)
    })
}

fn driver(words: &[&str]) -> Ran {
    let folder = made().0.path();
    ran(&folder.join("router"), words, folder)
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut all: Vec<_> = all.filter(|p| p.extension() == Some(OsStr::new(extension))).collect();
    all.sort();
    all
}

#[test]
fn it_routes_like_castanet() {
    let (folder, made) = made();
    assert_eq!(made.0, 0, "{made:?}");
    let traces = format!("TRACES={}", root().join("conf/traces").display());
    let router = router();
    let run = |program: &Path, out: &str| {
        std::fs::create_dir(folder.path().join(out)).unwrap();
        let to = format!("OUT={out}");
        let words = [
            "run",
            "-q",
            "--simtime",
            "--seed",
            "1",
            &router,
            &traces,
            &to,
            "-h",
            "*.count",
            "-h",
            "*.drops",
        ];
        let ran = ran(program, &words, folder.path());
        let captures: Vec<_> = files(&folder.path().join(out), "pcap");
        let captures: Vec<_> = captures.iter().map(|p| std::fs::read(p).unwrap()).collect();
        (ran, captures)
    };
    let full = run(castanet(), "full");
    assert!(full.0.0 == 0 && full.1.len() == 3 && full.1.iter().all(|c| c.len() > 1000), "{:?}", full.0);
    assert!(run(&folder.path().join("router"), "minimal") == full);
    // Under a name that ends in `click`, the driver has the options of Click's driver.
    let classic = folder.path().join("routerclick");
    let text = format!("FromDump({}, STOP true) -> q :: Queue(5) -> Discard", traces_file());
    let words = ["-e", &text, "-q", "-h", "q.capacity"];
    assert_eq!(ran(&classic, &words, folder.path()), (0, "5\n".into(), String::new()));
    let (code, _, err) = ran(&classic, &["-e", "Idle -> Discard"], folder.path());
    assert!(
        code == 1 && err.starts_with("this minimal driver does not have the class Idle\nit has ARP"),
        "{err}"
    );
}

fn traces_file() -> String {
    root().join("conf/traces/ip-router-eth0.pcap").display().to_string()
}

#[test]
fn it_has_only_the_classes_that_it_needs() {
    let (folder, (_, out, err)) = made();
    let (code, list, _) = driver(&["list"]);
    let has: Vec<&str> = list.lines().collect();
    assert!(code == 0 && has.len() > 10 && has.is_sorted(), "{list}");
    for class in ["ARPQuerier", "DecIPTTL", "FromDump", "Print", "ToDump"] {
        assert!(has.contains(&class), "{class}: {list}");
    }
    // The report: classes and sizes.
    let all = Registry::new().classes();
    assert!(out.starts_with(&format!("router: {} of {} classes\n", has.len(), all.len())), "{out}");
    let row = |name: &str| -> Vec<usize> {
        let row = out.lines().find(|l| l.split(' ').next() == Some(name)).unwrap();
        row.split_whitespace().skip(1).map(|n| n.parse().unwrap()).collect()
    };
    let (small, full) = (row("router"), row("castanet"));
    assert!(small[1] < small[0] && small[0] < full[0] && small[1] < full[1] * 3 / 4, "{out}");
    let needs: Vec<_> = has.iter().copied().filter(|c| *c != "Print").collect();
    assert!(err.contains(&format!("ip-router-trace.click needs {}\n", needs.join(", "))), "{err}");
    // The declarations of the other classes are not in the executable.
    let bytes = std::fs::read(folder.path().join("router")).unwrap();
    assert_eq!(bytes.len(), small[0]);
    let text = String::from_utf8_lossy(&bytes);
    let found: Vec<_> = all.iter().filter(|s| text.contains(s.doc)).map(|s| s.name).collect();
    assert_eq!(found, has);
}

#[test]
fn it_names_the_classes_that_it_lacks() {
    let (code, out, err) =
        driver(&["run", "-e", "Queue -> t :: Tee(2) -> Discard; t [1] -> Unheard -> Discard"]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    let (_, list, _) = driver(&["list"]);
    for part in [
        "this minimal driver does not have the classes Tee, Unheard",
        &format!("it has {}", list.trim().replace('\n', ", ")),
        "castanet mkmindriver -E Tee,Unheard",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    // An error of another kind is reported as by castanet.
    let words = ["run", "-e", "Print -> [1] Discard"];
    assert_eq!(driver(&words), ran(castanet(), &words, made().0.path()));
}

/// Returns the names of the files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut all: Vec<_> = all.collect();
    all.sort();
    all
}

#[test]
fn crates_for_packages_are_not_enough() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| ran(castanet(), words, folder.path());
    let make = ["mkmindriver", "-E", "Idle,Discard", "-o", "tiny", "--sdk", "kept"];
    let (code, _, err) = run(&make);
    let none = "castanet: kept: it does not contain castanet's compiled crates\n";
    assert!(code == 1 && err.ends_with(none), "{err}");
    // `castanet sdk` looks at names only.
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    for file in ["libcastanet_element-1.rlib", "libclap-2.rlib", "castanet-3.d"] {
        std::fs::write(source.join(file), file).unwrap();
    }
    assert_eq!(run(&["sdk", "kept", "--from", "source"]), (0, "kept: 0 MB\n".into(), String::new()));
    assert_eq!(names(&folder.path().join("kept")), ["libcastanet_element-1.rlib"]);
    let (code, _, err) = run(&make);
    assert!(code == 1 && err.contains("copy all with 'castanet sdk --drivers'"), "{err}");
    assert_eq!(run(&["sdk", "kept", "--drivers", "--from", "source"]).0, 0);
    assert_eq!(names(&folder.path().join("kept")), ["libcastanet_element-1.rlib", "libclap-2.rlib"]);
}

#[test]
fn crates_elsewhere_and_no_symbols() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let crates = castanet().with_file_name("deps");
    for path in files(&crates, "rlib").iter().chain(&files(&crates, "so")) {
        std::os::unix::fs::symlink(path, kept.join(path.file_name().unwrap())).unwrap();
    }
    let words = ["mkmindriver", "-E", "InfiniteSource Discard", "-o", "tiny", "--sdk", "kept", "--strip"];
    let (code, out, err) = ran(castanet(), &words, folder.path());
    assert!(code == 0 && out.starts_with("tiny: 2 of "), "{out}{err}");
    let sizes: Vec<usize> = out.lines().nth(2).unwrap().split_whitespace().flat_map(str::parse).collect();
    assert!(sizes[0] - sizes[1] < 16 << 10, "{out}");
    let words = ["run", "-q", "-e", "InfiniteSource(LIMIT 3, STOP true) -> d :: Discard", "-h", "d.count"];
    assert_eq!(ran(&folder.path().join("tiny"), &words, folder.path()), (0, "3\n".into(), String::new()));
}
