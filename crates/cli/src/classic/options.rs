// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of the classic tools.
//!
//! clap parses the command line of `castanet`. This small parser reads the classic command lines, because they
//! have rules that clap lacks:
//!
//! - an abbreviation may match several synonyms of one long option
//! - an option `--X` can have an opposite `--no-X`
//! - `-h` and `-v` have other meanings than in clap
//! - options and files come in any order
//! - an error prints three fixed lines and exits with 1

use super::input::say;
use castanet_lang::bytes::decode_vec;
use castanet_runtime::global_handlers::CLICK_VERSION;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

/// Whether an option takes a value, and the name of the value in the help text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// No value.
    None,
    /// An optional value, only with `=` or attached to the letter.
    Optional(&'static str),
    /// A required value, attached or as the next word.
    Required(&'static str),
}

/// One option.
#[derive(Clone, Copy)]
pub struct Opt {
    /// The long names of the option; the first identifies the option.
    long: &'static [&'static str],
    /// The one-letter names of the option; `--help` shows the first.
    short: &'static str,
    value: Value,
    negatable: bool,
    /// Whether Click lacks this option. An abbreviation that matches both this option and an option of Click stands for
    /// the option of Click.
    own: bool,
    doc: &'static str,
}

impl Opt {
    /// Declares an option.
    pub const fn new(
        long: &'static [&'static str],
        short: &'static str,
        value: Value,
        doc: &'static str,
    ) -> Opt {
        Opt { long, short, value, negatable: false, own: false, doc }
    }
    /// Marks an option that Click lacks.
    pub const fn own(mut self) -> Opt {
        self.own = true;
        self
    }
    /// Declares that `--no-X` switches the option off.
    pub const fn negatable(mut self) -> Opt {
        self.negatable = true;
        self
    }
    fn name(&self) -> &'static str {
        self.long.first().copied().unwrap_or("")
    }
}

/// `--help`, which every tool has.
pub const HELP: Opt = Opt::new(&["help"], "", Value::None, "print this message and exit");
/// `--version`, which every tool has.
pub const VERSION: Opt = Opt::new(&["version"], "v", Value::None, "print the version and exit");

/// The description of a tool, for its messages and its help.
pub struct About {
    /// The name of the tool.
    pub name: &'static str,
    /// The usage line after the name.
    pub usage: &'static str,
    /// The purpose of the tool, in a sentence.
    pub summary: &'static str,
    /// The options of the tool.
    pub options: &'static [Opt],
}

/// A word of the command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Word {
    /// An option: its first long name, its value, and whether it is on (`--X`) or off (`--no-X`).
    Option(&'static str, Option<String>, bool),
    /// Anything else.
    Plain(String),
}

/// An error in a command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A usage error.
    Usage(String),
}

impl About {
    /// Prints the error and returns the exit code.
    pub fn complain(&self, wrong: &Wrong) -> ExitCode {
        match wrong {
            Wrong::Usage(text) => {
                say(text);
                say(&format!("Usage: {} {}", self.name, self.usage));
                say(&format!("Try '{} --help' for more information.", self.name));
            }
        }
        ExitCode::FAILURE
    }

    /// Returns the exit code of a tool that has ended well or not. Prints an error in the command line.
    pub fn exit(&self, ended: Result<bool, Wrong>) -> ExitCode {
        match ended {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(wrong) => self.complain(&wrong),
        }
    }

    /// Returns the output of `--help`.
    pub fn help(&self) -> String {
        let mut out = format!("{}\n\nUsage: {} {}\n\nOptions:\n", self.summary, self.name, self.usage);
        for o in self.options {
            let short = o.short.chars().next().map_or("    ".to_string(), |c| format!("-{c}, "));
            let no = if o.negatable { "[no-]" } else { "" };
            let value = match o.value {
                Value::None => String::new(),
                Value::Optional(v) => format!("[={v}]"),
                Value::Required(v) => format!(" {v}"),
            };
            let _ = writeln!(out, "  {:<32} {}", format!("{short}--{no}{}{value}", o.name()), o.doc);
        }
        out
    }

    /// Returns the output of `--version`. Scripts parse its first line.
    pub fn version(&self) -> String {
        let own = env!("CARGO_PKG_VERSION");
        format!("{} (Click) {CLICK_VERSION}\nCastanet {own} under a classic name\n", self.name)
    }

    /// Parses a command line.
    ///
    /// # Errors
    /// The first error.
    pub fn read(&self, words: Vec<OsString>) -> Result<Vec<Word>, Wrong> {
        let mut out = Vec::new();
        let mut words = words.into_iter().map(|w| Ok(decode_vec(w.into_vec())));
        let mut options = true;
        while let Some(word) = words.next() {
            let word = word?;
            if !options || word == "-" || !word.starts_with('-') {
                out.push(Word::Plain(word));
            } else if word == "--" {
                options = false;
            } else if let Some(long) = word.strip_prefix("--") {
                self.long(long, &mut words, &mut out)?;
            } else {
                self.letters(word.get(1..).unwrap_or(""), &mut words, &mut out)?;
            }
        }
        Ok(out)
    }

    fn long(
        &self,
        word: &str,
        rest: &mut dyn Iterator<Item = Result<String, Wrong>>,
        out: &mut Vec<Word>,
    ) -> Result<(), Wrong> {
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v.to_string())));
        let (option, on) = self.find(name)?;
        let written = format!("--{name}");
        let value = match (option.value, value) {
            _ if !on => None,
            (Value::None, Some(_)) => {
                return Err(Wrong::Usage(format!("option '{written}' takes no argument")));
            }
            (Value::Required(_), None) => Some(required(&written, rest)?),
            (_, value) => value,
        };
        out.push(Word::Option(option.name(), value, on));
        Ok(())
    }

    /// Finds an option by its long name or an unambiguous abbreviation. Returns the option, and whether it
    /// is switched on.
    fn find(&self, name: &str) -> Result<(&'static Opt, bool), Wrong> {
        let mut near: Vec<(&'static Opt, bool, String)> = Vec::new();
        for o in self.options {
            for long in o.long {
                let forms = [(true, (*long).to_string()), (false, format!("no-{long}"))];
                for (on, form) in forms.into_iter().filter(|f| f.0 || o.negatable) {
                    if form == name {
                        return Ok((o, on));
                    }
                    if form.starts_with(name) {
                        near.push((o, on, form));
                    }
                }
            }
        }
        if near.iter().any(|n| !n.0.own) {
            near.retain(|n| !n.0.own);
        }
        match near.as_slice() {
            [] => Err(Wrong::Usage(format!("unrecognized option '--{name}'"))),
            [first, others @ ..] if others.iter().all(|o| o.0.name() == first.0.name() && o.1 == first.1) => {
                Ok((first.0, first.1))
            }
            all => {
                let all: Vec<String> = all.iter().map(|n| format!("'--{}'", n.2)).collect();
                Err(Wrong::Usage(format!("option '--{name}' is ambiguous; possibilities: {}", all.join(" "))))
            }
        }
    }

    fn letters(
        &self,
        word: &str,
        rest: &mut dyn Iterator<Item = Result<String, Wrong>>,
        out: &mut Vec<Word>,
    ) -> Result<(), Wrong> {
        for (i, c) in word.char_indices() {
            let written = format!("-{c}");
            let Some(option) = self.options.iter().find(|o| o.short.contains(c)) else {
                return Err(Wrong::Usage(format!("unrecognized option '{written}'")));
            };
            let attached = word.get(i + c.len_utf8()..).filter(|a| !a.is_empty());
            match option.value {
                Value::None => out.push(Word::Option(option.name(), None, true)),
                Value::Optional(_) => {
                    let value = attached.map(|a| a.strip_prefix('=').unwrap_or(a).to_string());
                    out.push(Word::Option(option.name(), value, true));
                    return Ok(());
                }
                Value::Required(_) => {
                    let value = match attached {
                        Some(a) => a.to_string(),
                        None => required(&written, rest)?,
                    };
                    out.push(Word::Option(option.name(), Some(value), true));
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Returns the required value of an option: the next word.
fn required(written: &str, rest: &mut dyn Iterator<Item = Result<String, Wrong>>) -> Result<String, Wrong> {
    match rest.next() {
        Some(value) => value,
        None => Err(Wrong::Usage(format!("option '{written}' requires an argument"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: About = About {
        name: "tool",
        usage: "[OPTION]... [FILE]",
        summary: "For tests.",
        options: &[
            Opt::new(&["file"], "f", Value::Required("FILE"), "a file"),
            Opt::new(&["quit"], "q", Value::None, "quit"),
            Opt::new(&["time"], "t", Value::None, "time"),
            Opt::new(&["warnings"], "", Value::None, "warn").negatable(),
            Opt::new(&["simtime", "simulation-time"], "", Value::Optional("SEC"), "simulate"),
            Opt::new(&["simtick"], "", Value::Required("N"), "tick").own(),
            Opt::new(&["port"], "p", Value::Required("PORT"), "a port"),
            Opt::new(&["socket"], "", Value::Required("FD"), "a socket").negatable(),
            HELP,
            VERSION,
        ],
    };

    fn read(line: &str) -> Result<Vec<Word>, Wrong> {
        TOOL.read(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn what_is_understood() {
        let on = |n, v: Option<&str>| Word::Option(n, v.map(ToString::to_string), true);
        let word = |w: &str| Word::Plain(w.into());
        for (line, want) in [
            ("", vec![]),
            ("a X=1 -", vec![word("a"), word("X=1"), word("-")]),
            ("-f a b", vec![on("file", Some("a")), word("b")]),
            ("-fa", vec![on("file", Some("a"))]),
            ("-qtfa", vec![on("quit", None), on("time", None), on("file", Some("a"))]),
            ("-f -q", vec![on("file", Some("-q"))]),
            ("b --file=a=b", vec![word("b"), on("file", Some("a=b"))]),
            ("--fi a", vec![on("file", Some("a"))]),
            ("--sim", vec![on("simtime", None)]),
            ("--simtime=5 5", vec![on("simtime", Some("5")), word("5")]),
            ("--simt=5", vec![on("simtime", Some("5"))]),
            ("--simtic 5", vec![on("simtick", Some("5"))]),
            ("--simu=", vec![on("simtime", Some(""))]),
            ("--warnings", vec![on("warnings", None)]),
            ("--no-w", vec![Word::Option("warnings", None, false)]),
            ("--no-socket", vec![Word::Option("socket", None, false)]),
            ("-q -- -q --", vec![on("quit", None), word("-q"), word("--")]),
        ] {
            assert_eq!(read(line), Ok(want), "{line}");
        }
    }

    #[test]
    fn what_is_not() {
        for (line, want) in [
            ("--foo", "unrecognized option '--foo'"),
            ("-qz", "unrecognized option '-z'"),
            ("--no-quit", "unrecognized option '--no-quit'"),
            ("-f", "option '-f' requires an argument"),
            ("--fil", "option '--fil' requires an argument"),
            ("--quit=1", "option '--quit' takes no argument"),
            ("--s", "option '--s' is ambiguous; possibilities: '--simtime' '--simulation-time' '--socket'"),
            (
                "--=",
                "option '--' is ambiguous; possibilities: '--file' '--quit' '--time' '--warnings' '--no-warnings' \
              '--simtime' '--simulation-time' '--port' '--socket' '--no-socket' '--help' '--version'",
            ),
        ] {
            assert_eq!(read(line), Err(Wrong::Usage(want.into())), "{line}");
        }
    }
}
