// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of refused files: not a package, or built for another castanet. They are refused before any of their
//! code runs. The message shows the differing build parameters of both the package and castanet.

use castanet_package::header::{Header, check, seal};
use castanet_package::{Packages, Refusal};
use std::path::Path;
use std::process::Command;

/// The package without its checksum.
fn library() -> Vec<u8> {
    let _alone = super::common::alone();
    let mut bytes = std::fs::read(super::common::tally()).unwrap();
    bytes.truncate(bytes.len() - 32);
    bytes
}

/// A package with a changed header value, padded with line ends to the same length.
fn forged(key: &str, value: &str) -> Vec<u8> {
    let mut bytes = library();
    let own = Header::own();
    let line = format!("\n{key}={}\n", own.get(key));
    // Searches after the package name, to find the header and not another copy of the text.
    let start = bytes.windows(27).position(|w| w.starts_with(b"castanet-package") && w.ends_with(b"name=ta"));
    let start = start.unwrap();
    let at = start + bytes[start..].windows(line.len()).position(|w| w == line.as_bytes()).unwrap();
    let mut new = format!("\n{key}={value}").into_bytes();
    assert!(new.len() < line.len(), "{value} is longer than what it replaces");
    new.resize(line.len(), b'\n');
    bytes[at..at + new.len()].copy_from_slice(&new);
    seal(bytes)
}

fn refusal(bytes: &[u8]) -> Refusal {
    check("x.castanet", bytes).err().unwrap_or_else(|| panic!("accepted"))
}

#[test]
fn differences_name_both_sides() {
    assert!(check("x", &seal(library())).is_ok());
    let own = Header::own();
    for (key, value, called) in [
        ("compiler", "rustc 1.94.0 (4a4ef493e 2026-03-02)", "compiler: "),
        ("api", "00000000000000000000000000000000"[1..].into(), "API: "),
        ("target", "aarch64-unknown-linux", "target: "),
        ("features", "sse9", "target features: "),
        ("panic", "abort", "panic strategy: "),
        ("profile", "release, opt 3", "profile: "),
    ] {
        let refused = refusal(&forged(key, value));
        assert_eq!(refused.message, "x.castanet: the package was built for another castanet");
        let expected = format!("{called}the package has {value}; this castanet has {}", own.get(key));
        assert_eq!(refused.notes, [expected]);
        assert!(refused.help.contains("castanet build-package"), "{refused}");
        let text = refused.to_string();
        assert!(text.contains(value) && text.contains(own.get(key)) && text.contains("help: "), "{text}");
    }
}

#[test]
fn other_files_are_refused() {
    let library = library();
    let whole = seal(library.clone());
    let no = |bytes: &[u8], why: &str| {
        let refused = refusal(bytes);
        assert!(refused.message.contains(why), "{refused}");
        assert!(refused.help.contains("castanet build-package"), "{refused}");
    };
    no(b"", "it is not a shared library");
    no(b"require(package tally);\n", "it is not a shared library");
    no(&whole[..40], "it is not a shared library");
    no(&library, "damaged");
    let test = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(check("x", &test).is_err());
    // The file is truncated at several positions.
    for n in 1..40 {
        assert!(check("x", &whole[..whole.len() * n / 40]).is_err(), "{n}/40");
    }
    // One bit is flipped at several positions.
    for n in 0..40 {
        let mut damaged = whole.clone();
        let at = damaged.len() * n / 40;
        damaged[at] ^= 1 << (n % 8);
        assert!(check("x", &damaged).is_err(), "byte {at}");
    }
}

/// A simple random number generator (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn random_bytes_are_read_without_harm() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..500 {
        let length = numbers.next() % 4096;
        let mut bytes: Vec<u8> = (0..length).map(|_| numbers.next() as u8).collect();
        assert!(check("x", &bytes).is_err());
        for (to, from) in bytes.iter_mut().zip(b"\x7fELF\x02\x01\x01") {
            *to = *from;
        }
        assert!(check("x", &bytes).is_err());
    }
    // Damage the tables of a real library. A valid checksum would not protect the reader from wrong numbers in them.
    let library = library();
    for _ in 0..300 {
        let mut bytes = library.clone();
        for _ in 0..8 {
            let at = numbers.next() as usize % 64;
            let end = bytes.len() - 1 - numbers.next() as usize % 4096;
            bytes[at] = numbers.next() as u8;
            bytes[end] = numbers.next() as u8;
        }
        let _ = Header::read(&bytes);
    }
}

/// A library in C whose constructor creates a file.
fn foreign(folder: &Path, header: Option<&[u8]>) -> (std::path::PathBuf, std::path::PathBuf) {
    let trace = folder.join("it-ran");
    let library = folder.join("foreign.so");
    let mut source = format!(
        "#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ FILE *f = fopen(\"{}\", \"w\"); \
         if (f) fclose(f); }}\n",
        trace.display()
    );
    if let Some(header) = header {
        let bytes: Vec<String> = header.iter().map(u8::to_string).collect();
        source += &format!("const unsigned char CASTANET_PACKAGE_HEADER[] = {{{}}};\n", bytes.join(","));
        source += "const long CASTANET_PACKAGE[16] = {0};\n";
    }
    let c = folder.join("foreign.c");
    std::fs::write(&c, source).unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&c).status().unwrap();
    assert!(made.success());
    (library, trace)
}

#[test]
fn nothing_runs_in_refused_files() {
    let header = |text: &str| {
        let mut header = b"castanet-package".to_vec();
        header.extend(u32::try_from(20 + text.len()).unwrap().to_le_bytes());
        header.extend(text.bytes());
        header
    };
    let mut wrong_length = header("name=x\n");
    wrong_length[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
    for (header, why) in [
        (None, "not a package of classes"),
        (Some(header("name=x\ncompiler=cc\n")), "API: the package has nothing known"),
        (Some(header("\u{fffd}")), "its header is broken"),
        (Some(wrong_length), "its header is broken"),
        (Some(b"castanet".to_vec()), "its header is broken"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (library, trace) = foreign(folder.path(), header.as_deref());
        let error = Packages::new(None).load_file(&library.display().to_string()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(!trace.exists(), "{error}");
    }
}

#[test]
fn special_files_are_not_read() {
    let packages = Packages::new(None);
    for (path, why) in
        [("/dev/zero", "it is not a file"), ("/", "it is not a file"), ("./nosuch.so", "No such file")]
    {
        let error = packages.load_file(path).unwrap_err().to_string();
        assert!(error.contains(path) && error.contains(why), "{error}");
    }
}
