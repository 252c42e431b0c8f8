// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet doc`, `list` and `links`.
#![allow(clippy::unwrap_used)]

mod common;

use castanet_lang::{MissingFrom, missing_classes};
use common::{BINARY, Bench};
use std::path::Path;
use std::process::Stdio;

#[test]
fn the_element_reference_is_up_to_date() {
    let b = Bench::new();
    let ran = b.run("castanet", &["doc", "--markdown"], "");
    assert_eq!((ran.err.as_str(), ran.code), ("", 0));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/elements.md");
    if std::env::var_os("CASTANET_BLESS").is_some() {
        std::fs::write(&file, &ran.out).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == ran.out,
        "docs/elements.md is not what the declarations say; CASTANET_BLESS=1 writes it anew"
    );
}

/// Formats the list of missing classes for docs/compatibility.md.
fn missing_part() -> String {
    let mut out = String::new();
    for from in [MissingFrom::Click, MissingFrom::FastClick, MissingFrom::Radio] {
        let names: Vec<_> = missing_classes().filter(|m| m.0 == from).map(|m| format!("`{}`", m.1)).collect();
        let text = format!("Classes of {} ({}): {}.", from.words(), names.len(), names.join(", "));
        out.push_str(&format!(
            "\n{}\n",
            textwrap::fill(&text, textwrap::Options::new(130).break_words(false))
        ));
    }
    out
}

/// Keywords and handlers that classes have in other versions of Click but not here: version of Click, kind, class,
/// name.
fn missing_words() -> impl Iterator<Item = [&'static str; 4]> {
    let lines = include_str!("missing.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| <[&str; 4]>::try_from(line.split(' ').collect::<Vec<_>>()).unwrap())
}

/// Formats the list of missing keywords and handlers for docs/compatibility.md.
fn missing_words_part() -> String {
    let mut out = String::new();
    for (from, name) in [("click", "Click"), ("fastclick", "FastClick"), ("radio", "Click's radio packages")]
    {
        for (kind, kinds) in [("keyword", "Keywords"), ("handler", "Handlers")] {
            let all: Vec<_> = missing_words().filter(|w| w[0] == from && w[1] == kind).collect();
            let mut classes: Vec<_> = all.iter().map(|w| w[2]).collect();
            classes.dedup();
            let of = |class: &str| {
                let words: Vec<_> =
                    all.iter().filter(|w| w[2] == class).map(|w| format!("`{}`", w[3])).collect();
                format!("{class} {}", words.join(", "))
            };
            let list: Vec<_> = classes.into_iter().map(of).collect();
            let list = if list.is_empty() { "none".to_string() } else { list.join("; ") };
            let text = format!("{kinds} of {name} ({}): {list}.", all.len());
            let options = textwrap::Options::new(130).break_words(false);
            out.push_str(&format!("\n{}\n", textwrap::fill(&text, options)));
        }
    }
    out
}

#[test]
fn no_missing_keyword_or_handler_exists() {
    let ran = Bench::new().run("castanet", &["doc", "--json"], "");
    let manual: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    for [_, kind, class, name] in missing_words() {
        let mut entries = manual.as_array().unwrap().iter();
        let entry =
            entries.find(|e| e["name"] == class).unwrap_or_else(|| panic!("there is no class {class}"));
        let list = if kind == "keyword" { "arguments" } else { "handlers" };
        let here = |e: &serde_json::Value| {
            let mut other = e["aliases"].as_array().into_iter().flatten();
            e["name"] == name || other.any(|a| a == name)
        };
        let found = entry[list].as_array().unwrap().iter().any(here);
        assert!(!found, "{class} has {kind} {name}: remove it from missing.txt");
    }
}

#[test]
fn the_lists_of_what_is_missing_are_up_to_date() {
    list_is_up_to_date("missing classes", &missing_part());
    list_is_up_to_date("missing keywords and handlers", &missing_words_part());
}

/// Compares a generated list with the list in docs/compatibility.md. With `CASTANET_BLESS`, first writes the list
/// there.
fn list_is_up_to_date(of: &str, want: &str) {
    let begin = format!("<!-- The list of {of} is generated. -->\n");
    const END: &str = "\n<!-- End of the list. -->\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    // The text before the list, the list, and the text after it.
    let parts = || {
        let kept = std::fs::read_to_string(&file).unwrap();
        let (before, rest) = kept.split_once(&begin).unwrap();
        let (list, after) = rest.split_once(END).unwrap();
        [before, list, after].map(str::to_string)
    };
    if std::env::var_os("CASTANET_BLESS").is_some() {
        let [before, _, after] = parts();
        std::fs::write(&file, format!("{before}{begin}{want}{END}{after}")).unwrap();
    }
    assert!(
        parts()[1] == want,
        "docs/compatibility.md does not list the {of}; CASTANET_BLESS=1 writes the list anew"
    );
}

#[test]
fn a_missing_class_is_said_to_be_missing() {
    let b = Bench::new();
    b.file(
        "a.click",
        "InfiniteSource(LIMIT 1, STOP true)\n  -> CheckIP6Header -> c :: CheckIP6Header -> Discard;\n",
    );
    let text = "'CheckIP6Header' is a class of Click that Castanet does not have yet";
    for command in ["check", "run"] {
        let ran = b.run("castanet", &[command, "a.click"], "");
        assert_eq!((ran.out.as_str(), ran.code, ran.err.matches("error").count()), ("", 1, 2), "{}", ran.err);
        assert!(ran.err.starts_with(&format!("error: {text}\n --> a.click:2:6\n")), "{}", ran.err);
        assert!(!ran.err.contains("did you mean") && ran.err.ends_with("1 error\n"), "{}", ran.err);
    }
    let ran = b.run("castanet", &["doc", "CheckIP6Header"], "");
    assert_eq!((ran.err.as_str(), ran.code), (format!("castanet: {text}\n").as_str(), 1));
}

#[test]
fn sources_of_offloads_name_what_completes_them() {
    let doc = Bench::new().run("castanet", &["doc", "FromDevice"], "").out;
    assert!(
        doc.contains("pass unchanged; CompleteOffload") && !doc.contains("checksums are completed"),
        "{doc}"
    );
}

#[test]
fn a_class() {
    let b = Bench::new();
    let ran = b.run("castanet", &["doc", "DecIPTTL"], "");
    assert_eq!((ran.err.as_str(), ran.code), ("", 0));
    let want = "DecIPTTL: Decrements the IPv4 time to live.\n\n  DecIPTTL(ACTIVE bool = true, MULTICAST bool = true)\n\nDescription\n";
    assert!(ran.out.starts_with(want), "{}", ran.out);
    let ports = "Ports\n  input 0   agnostic  IP, header marked\n  output 0  agnostic  as input\n  output 1  push      as input           optional\n";
    assert!(ran.out.contains(ports), "{}", ran.out);
    let args = "Arguments\n  ACTIVE     bool  = true  keyword  If false, every packet passes unchanged.\n";
    assert!(ran.out.contains(args), "{}", ran.out);
    assert!(
        ran.out.contains(
            "\nHandlers\n  drops         read            counter, packets  Packets whose time to live was\n"
        ),
        "{}",
        ran.out
    );
    for section in ["Behaviour", "Drop reasons", "Example"] {
        assert!(ran.out.contains(&format!("\n{section}\n  ")), "{section}: {}", ran.out);
    }
    // For an alias, the manual of its class is printed. For a wrong name, the error suggests the nearest name.
    assert!(b.run("castanet", &["doc", "FullNoteQueue"], "").out.starts_with("Queue (also FullNoteQueue"));
    for (name, err) in [
        ("DecIPTL", "castanet: no class 'DecIPTL'; did you mean 'DecIPTTL'?\n"),
        ("decipttl", "castanet: no class 'decipttl'; did you mean 'DecIPTTL'?\n"),
        ("Xyzzyplughfoo", "castanet: no class 'Xyzzyplughfoo'; 'castanet doc' lists all classes\n"),
    ] {
        let ran = b.run("castanet", &["doc", name], "");
        assert_eq!((ran.out.as_str(), ran.err.as_str(), ran.code), ("", err, 1));
    }
}

#[test]
fn every_class_in_every_form() {
    let b = Bench::new();
    let all: serde_json::Value =
        serde_json::from_str(&b.run("castanet", &["list", "--json"], "").out).unwrap();
    let manual: serde_json::Value =
        serde_json::from_str(&b.run("castanet", &["doc", "--json"], "").out).unwrap();
    let (names, manual) = (all.as_array().unwrap(), manual.as_array().unwrap());
    assert!(names.len() > 10 && names.len() == manual.len());
    let overview = b.run("castanet", &["doc"], "");
    assert_eq!(overview, b.run("castanet", &["list", "classes"], ""));
    let markdown = b.run("castanet", &["doc", "--markdown"], "").out;
    for (class, entry) in names.iter().zip(manual) {
        let name = class["name"].as_str().unwrap();
        assert_eq!(entry["name"], name);
        assert!(
            !entry["summary"].as_str().unwrap().is_empty()
                && !entry["handlers"].as_array().unwrap().is_empty(),
            "{name}"
        );
        assert!(overview.out.contains(&format!("\n  {name} ")), "{name}");
        assert!(markdown.contains(&format!("\n### {name}\n")), "{name}");
    }
    // Each manual is printed at every width.
    for columns in ["1", "60", "1000"] {
        let mut c = b.command("castanet");
        c.args(["doc", names[0]["name"].as_str().unwrap()]).env("COLUMNS", columns);
        assert_eq!(common::run(c, "").code, 0);
    }
}

#[test]
fn lists() {
    let b = Bench::new();
    for (what, first, json) in [
        (
            "annotations",
            "DST_IP ",
            "{\"doc\":\"IPv4 destination or next hop, network byte order\",\"name\":\"DST_IP\",\"offset\":0,\"size\":4}",
        ),
        (
            "reasons",
            "discarded ",
            "{\"doc\":\"Discarded on purpose, by an element such as Discard.\",\"name\":\"discarded\"}",
        ),
        (
            "handlers",
            "version ",
            "{\"access\":\"read\",\"doc\":\"The version of Click whose language and interfaces this program has.\",\"name\":\"version\"}",
        ),
    ] {
        let ran = b.run("castanet", &["list", what], "");
        assert!(ran.out.starts_with(first) && ran.code == 0, "{ran:?}");
        let ran = b.run("castanet", &["list", what, "--json"], "");
        let value: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(value[0].to_string(), json);
    }
    assert_eq!(b.run("castanet", &["list", "nonsense"], "").code, 2);
}

#[test]
fn colours_only_where_wanted() {
    let b = Bench::new();
    for (set, coloured) in
        [(&[][..], false), (&["CLICOLOR_FORCE"], true), (&["CLICOLOR_FORCE", "NO_COLOR"], false)]
    {
        for args in [&["doc", "Discard"][..], &["doc"], &["doc", "Discard", "--markdown"]] {
            let mut c = b.command("castanet");
            c.args(args).envs(set.iter().map(|n| (n, "1")));
            let ran = common::run(c, "");
            assert_eq!(
                ran.out.contains('\x1b'),
                coloured && !args.contains(&"--markdown"),
                "{set:?} {args:?}"
            );
        }
    }
}

#[test]
fn a_reader_that_goes_away_has_read_enough() {
    let b = Bench::new();
    for args in [&["doc"][..], &["doc", "Discard"], &["doc", "--markdown"], &["list", "reasons", "--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut c = b.command("castanet");
        let child = c.args(args).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        drop(c);
        let done = child.wait_with_output().unwrap();
        assert_eq!(
            (String::from_utf8(done.stderr).unwrap().as_str(), done.status.code()),
            ("", Some(0)),
            "{args:?}"
        );
    }
}

#[test]
fn links() {
    let b = Bench::new();
    let bin = b.path("made/bin");
    let folder = bin.to_str().unwrap();
    let ran = b.run("castanet", &["links", folder], "");
    let real = std::fs::canonicalize(BINARY).unwrap();
    assert_eq!((ran.err.as_str(), ran.code), ("", 0));
    assert_eq!(ran.out.lines().count(), 21);
    assert_eq!(ran.out.lines().next(), Some(format!("{folder}/click -> {}", real.display()).as_str()));
    for name in ["click", "click-check", "click2xml", "xml2click"] {
        assert_eq!(std::fs::read_link(bin.join(name)).unwrap(), real);
    }
    // A binary that is called by the name of a link acts as the tool of that name.
    let mut c = std::process::Command::new(bin.join("click-pretty"));
    c.arg("--help");
    assert!(common::run(c, "").out.contains("\nUsage: click-pretty [OPTION]"));
    // The second time there is nothing to do.
    let ran = b.run("castanet", &["links", folder], "");
    assert!(ran.code == 0 && ran.out.lines().all(|l| l.ends_with(" exists already")), "{ran:?}");
    // If another file has the name of one link, it is kept, and none of the links is made.
    std::fs::remove_file(bin.join("click-check")).unwrap();
    std::fs::remove_file(bin.join("click")).unwrap();
    std::fs::write(bin.join("click-check"), "mine").unwrap();
    let ran = b.run("castanet", &["links", folder], "");
    let err = format!("castanet: {folder}/click-check is another file; --force replaces it\n");
    assert_eq!((ran.out.as_str(), ran.err.as_str(), ran.code), ("", err.as_str(), 1));
    assert!(!bin.join("click").exists());
    assert_eq!(std::fs::read_to_string(bin.join("click-check")).unwrap(), "mine");
    let ran = b.run("castanet", &["links", "--force", folder], "");
    assert_eq!((ran.err.as_str(), ran.code), ("", 0));
    assert_eq!(std::fs::read_link(bin.join("click-check")).unwrap(), real);
    // A link to an older copy of the program is updated; a folder is never replaced.
    std::fs::remove_file(bin.join("click")).unwrap();
    std::os::unix::fs::symlink("/nowhere/castanet", bin.join("click")).unwrap();
    assert_eq!(b.run("castanet", &["links", folder], "").code, 0);
    assert_eq!(std::fs::read_link(bin.join("click")).unwrap(), real);
    std::fs::remove_file(bin.join("click")).unwrap();
    std::fs::create_dir(bin.join("click")).unwrap();
    let ran = b.run("castanet", &["links", "--force", folder], "");
    assert_eq!((ran.err.as_str(), ran.code), (format!("castanet: {folder}/click is a folder\n").as_str(), 1));
    // A hard link to the binary counts as a link. It can only be made if both folders are on one file system.
    std::fs::remove_dir(bin.join("click")).unwrap();
    if std::fs::hard_link(&real, bin.join("click")).is_ok() {
        let ran = b.run("castanet", &["links", folder], "");
        assert!(ran.out.starts_with(&format!("{folder}/click exists already\n")), "{ran:?}");
    }
    b.file("plain", "");
    let ran = b.run("castanet", &["links", "plain"], "");
    assert_eq!((ran.err.as_str(), ran.code), ("castanet: plain: File exists\n", 1));
}
