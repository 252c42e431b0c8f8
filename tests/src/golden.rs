// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goldens: a configuration, the commands that run it, and the expected output, in one readable file.
//!
//! ```text
//! # What this golden checks, in a sentence or two.
//! --- file router.click
//! InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard;
//! --- run
//! click router.click -h c.count
//! --- stdout
//! 5
//! --- exit 0
//! ```
//!
//! - A line that starts with `--- ` starts a section. Text before the first section is a comment.
//! - `file NAME` creates a file in the empty directory in which the golden runs. (In files named `*.bin`,
//!   `\xHH` stands for a byte.)
//! - `run` is a script for `sh`. `castanet` and the classic command names are in its path. Its standard input
//!   is empty.
//! - `stdout`, `stderr` and `exit` are the expected results. An omitted output is empty, and an omitted `exit` is 0.
//! - A line of expected output may contain `{{REGEX}}`. A last line `\ no newline at end` states that the
//!   output has no final newline.

use regex_lite::Regex;

/// A section of a golden: its heading and the lines below it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    heading: String,
    body: String,
}

/// A parsed golden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Golden {
    comment: String,
    sections: Vec<Section>,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The script's standard output.
    pub stdout: String,
    /// The script's standard error.
    pub stderr: String,
    /// Exit code; 128 plus the signal number if a signal ended the script.
    pub exit: i32,
}

const MARK: &str = "--- ";
const CUT: &str = "\\ no newline at end\n";

impl Golden {
    /// Parses a golden.
    ///
    /// # Errors
    /// A heading is unknown or duplicated, or there is nothing to run.
    pub fn parse(text: &str) -> Result<Golden, String> {
        let mut golden = Golden { comment: String::new(), sections: Vec::new() };
        for line in text.split_inclusive('\n') {
            if let Some(heading) = line.strip_prefix(MARK) {
                let heading = heading.trim_end().to_string();
                let known = matches!(heading.as_str(), "run" | "stdout" | "stderr")
                    || heading.strip_prefix("file ").is_some_and(|name| !name.trim().is_empty())
                    || heading.strip_prefix("exit ").is_some_and(|code| code.parse::<i32>().is_ok());
                let kind = |s: &str| s.split(' ').next().unwrap_or_default().to_string();
                let twice = golden.sections.iter().any(|s| {
                    s.heading == heading || (kind(&heading) == "exit" && kind(&s.heading) == "exit")
                });
                if !known || twice {
                    return Err(format!("'{MARK}{heading}' is unknown, or stands twice"));
                }
                golden.sections.push(Section { heading, body: String::new() });
            } else {
                golden.sections.last_mut().map_or(&mut golden.comment, |s| &mut s.body).push_str(line);
            }
        }
        if golden.body("run").trim().is_empty() {
            return Err("there is nothing to run".into());
        }
        Ok(golden)
    }

    fn body(&self, heading: &str) -> &str {
        self.sections.iter().find(|s| s.heading == heading).map_or("", |s| &s.body)
    }

    /// Returns the script.
    pub fn script(&self) -> &str {
        self.body("run")
    }

    /// Returns the files to create, with their contents.
    pub fn files(&self) -> impl Iterator<Item = (&str, Vec<u8>)> {
        self.sections.iter().filter_map(|s| {
            let name = s.heading.strip_prefix("file ")?.trim();
            Some((name, if name.ends_with(".bin") { bytes(&s.body) } else { s.body.clone().into_bytes() }))
        })
    }

    /// Returns the expected exit code.
    pub fn exit(&self) -> i32 {
        self.sections.iter().find_map(|s| s.heading.strip_prefix("exit ")?.parse().ok()).unwrap_or(0)
    }

    /// Describes the differences from the expected results; empty if there are none.
    pub fn differences(&self, ran: &Ran) -> String {
        let mut out = String::new();
        for (name, got) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            let expected = self.body(name);
            if expected == mark(got) {
                continue;
            }
            let (expected, got) = (lines(expected), lines(&mark(got)));
            if expected.len() == got.len() && expected.iter().zip(&got).all(|(e, g)| fits(e, g)) {
                continue;
            }
            out += &format!("  {name}: expected (-), printed (+)\n");
            let same = expected.iter().zip(&got).take_while(|(e, g)| fits(e, g)).count();
            let tail = (expected.iter().rev().zip(got.iter().rev()))
                .take(expected.len().min(got.len()) - same)
                .take_while(|(e, g)| fits(e, g))
                .count();
            let middle = |all: &[String]| all.get(same..all.len() - tail).unwrap_or_default().to_vec();
            for line in expected.iter().take(same) {
                out += &format!("      {line}\n");
            }
            for line in middle(&expected) {
                out += &format!("    - {line}\n");
            }
            for line in middle(&got) {
                out += &format!("    + {line}\n");
            }
            for line in expected.iter().skip(expected.len() - tail) {
                out += &format!("      {line}\n");
            }
        }
        if self.exit() != ran.exit {
            out += &format!("  exit code: expected {}, was {}\n", self.exit(), ran.exit);
        }
        out
    }

    /// Returns the golden with the results of a run as its expectations. Lines that already match stay
    /// unchanged, so that patterns survive.
    pub fn blessed(&self, ran: &Ran) -> String {
        let mut out = self.comment.clone();
        for s in self.sections.iter().filter(|s| s.heading == "run" || s.heading.starts_with("file ")) {
            out += &format!("{MARK}{}\n{}", s.heading, s.body);
            if !out.ends_with('\n') {
                out.push('\n');
            }
        }
        for (name, got) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            let old = lines(self.body(name));
            let got = lines(&mark(got));
            if !got.is_empty() {
                out += &format!("{MARK}{name}\n");
            }
            for (i, line) in got.iter().enumerate() {
                // If lines were inserted or removed, the matching pattern may be on another line.
                let kept =
                    old.get(i).filter(|e| fits(e, line)).or_else(|| old.iter().find(|e| fits(e, line)));
                out += kept.unwrap_or(line);
                out.push('\n');
            }
        }
        if ran.exit != 0 {
            out += &format!("{MARK}exit {}\n", ran.exit);
        }
        out
    }
}

/// Returns the text, followed by a marker line if it has no final newline.
fn mark(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.into() } else { format!("{text}\n{CUT}") }
}

/// Splits a text into lines. (A carriage return is part of its line.)
fn lines(text: &str) -> Vec<String> {
    text.split_terminator('\n').map(String::from).collect()
}

/// Whether a line of output matches a line of the golden, in which patterns may occur.
fn fits(expected: &str, line: &str) -> bool {
    if expected == line {
        return true;
    }
    let mut pattern = String::from("^");
    let mut rest = expected;
    while let Some((before, regex, after)) = pattern_in(rest) {
        pattern += &format!("{}(?:{regex})", regex_lite::escape(before));
        rest = after;
    }
    if rest.len() == expected.len() {
        return false;
    }
    pattern += &format!("{}$", regex_lite::escape(rest));
    Regex::new(&pattern).is_ok_and(|r| r.is_match(line))
}

/// Finds the first pattern in a text. Returns it with the text before and after it. (A pattern may itself end
/// in braces.)
fn pattern_in(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let mut end = rest.find("}}")?;
    while rest.get(end + 2..).is_some_and(|after| after.starts_with('}')) {
        end += 1;
    }
    Some((before, rest.get(..end)?, rest.get(end + 2..)?))
}

/// Decodes a text in which `\xHH` stands for a byte and line breaks are ignored.
fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.strip_prefix(b"x").and_then(|h| std::str::from_utf8(h.get(..2)?).ok());
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) if first == b'\\' => {
                out.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                if first != b'\n' {
                    out.push(first);
                }
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(stdout: &str, stderr: &str, exit: i32) -> Ran {
        Ran { stdout: stdout.into(), stderr: stderr.into(), exit }
    }

    #[test]
    fn reads_compares_and_blesses() {
        let text = "# Why.\n--- file a.click\nx\n\ny\n--- file b.bin\n\\x00a\n\\xffb\n--- run\ngo\n--- stdout\na {{[0-9]{1,2}}} b\n.\n";
        let golden = Golden::parse(text).unwrap_or_else(|e| panic!("{e}"));
        let files: Vec<_> = golden.files().collect();
        assert_eq!(files, [("a.click", b"x\n\ny\n".to_vec()), ("b.bin", b"\0a\xffb".to_vec())]);
        assert_eq!((golden.script(), golden.exit()), ("go\n", 0));
        assert_eq!(golden.differences(&ran("a 17 b\n.\n", "", 0)), "");
        for (stdout, stderr, exit) in
            [("a x b\n.\n", "", 0), ("a 1 b\nx\n", "", 0), ("a 1 b\n.", "", 0), ("a 1 b\n.\n", "e", 0)]
        {
            assert_ne!(golden.differences(&ran(stdout, stderr, exit)), "", "{stdout:?} {stderr:?} {exit}");
        }
        assert_eq!(golden.blessed(&ran("a 1 b\n.\n", "", 0)), text);
        let new = golden.blessed(&ran("new\na 2 b", "oh\n", 3));
        assert!(new.ends_with(
            "--- stdout\nnew\na {{[0-9]{1,2}}} b\n\\ no newline at end\n--- stderr\noh\n--- exit 3\n"
        ));
        let golden = Golden::parse(&new).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(golden.differences(&ran("new\na 2 b", "oh\n", 3)), "");
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for text in ["", "--- run\n", "--- runs\nx\n", "--- run\nx\n--- run\ny\n", "--- exit x\n--- run\nx\n"]
        {
            assert!(Golden::parse(text).is_err(), "{text}");
        }
    }
}
