// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions of scripts, and how they are parsed when the element is configured.

use super::function::first_word;
use super::substitute::is_name;
use castanet_element::spec::ValueError;
use castanet_element::spec::{ArgCx, ArgError, ArgValue};

/// One argument of a script as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line(pub String);

impl ArgValue for Line {
    const TYPE: &'static str = "script instruction";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Line, ValueError> {
        Ok(Line(text.to_string()))
    }
}

/// How a script or one run of it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By `end`, or after the last instruction.
    End,
    /// By `exit`.
    Exit,
    /// By `stop`.
    Stop,
    /// By `goto error`.
    Error,
}

/// Where a jump leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To an instruction.
    At(usize),
    /// Out of the script.
    End(Ending),
}

/// A file to print to, as it is written; `-` is standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The name of the file, before substitution and unquoting.
    pub name: String,
    /// Whether to append to the file. When false, each write replaces the contents of the file.
    pub append: bool,
}

/// The operation of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sets a variable to the text.
    Set(String),
    /// Sets a variable to the text when the element is initialised.
    Init {
        /// The name of the variable.
        variable: String,
        /// Whether the variable is also a read handler.
        export: bool,
    },
    /// Prints the text, or the value of the handler that the text calls.
    Print {
        /// The file to print to.
        file: File,
        /// Whether the text is a handler call, whose value is printed.
        call: bool,
        /// Whether a line end is added.
        newline: bool,
    },
    /// Writes to a file the value of the handler that the text calls.
    Save(File),
    /// Shows the value of the handler that the text calls.
    Read,
    /// Calls the write handler that the text names.
    Write,
    /// Waits for the given number of steps.
    Pause,
    /// Waits until a time has passed or the next step is granted.
    Wait,
    /// Marks a target of jumps.
    Label(String),
    /// Jumps to a label. The text is the condition; if it is empty, the jump is unconditional.
    Goto(String),
    /// Ends the run. The text is the value that the run returns.
    Return,
    /// Ends the run with an error. The text is the error message.
    Error,
    /// Ends the run or the script.
    End(Ending),
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The operation.
    pub op: Op,
    /// The text. Its variables and calls are replaced by their values when the instruction runs.
    pub text: String,
    /// Whether the text is unquoted after substitution (`setq` and the like).
    pub unquote: bool,
}

/// The names of all instructions.
pub const NAMES: &[&str] = &[
    "set",
    "setq",
    "init",
    "initq",
    "export",
    "exportq",
    "print",
    "printq",
    "printn",
    "printnq",
    "save",
    "append",
    "read",
    "readq",
    "write",
    "writeq",
    "pause",
    "wait",
    "wait_step",
    "wait_stop",
    "wait_time",
    "wait_for",
    "label",
    "goto",
    "loop",
    "return",
    "returnq",
    "error",
    "errorq",
    "end",
    "exit",
    "stop",
];

/// Splits `>FILE` or `>>FILE` off the start of a text to print. Returns the file (`-` if there is no `>`) and the rest;
/// `None` if no name follows the `>`.
fn redirection(text: &str) -> Option<(File, &str)> {
    let Some(rest) = text.strip_prefix('>') else {
        return Some((File { name: "-".into(), append: false }, text));
    };
    let (append, rest) = rest.strip_prefix('>').map_or((false, rest), |r| (true, r));
    let (name, rest) = first_word(rest);
    (!name.is_empty()).then(|| (File { name: name.into(), append }, rest))
}

impl Instruction {
    /// Parses an instruction; `None` if the line is empty.
    pub fn parse(line: &str) -> Result<Option<Instruction>, ArgError> {
        let (name, text) = first_word(line);
        if name.is_empty() {
            return Ok(None);
        }
        let bad = |at: &str, help: String| {
            let start = at.as_ptr().addr().saturating_sub(line.as_ptr().addr());
            Err(ArgError::new(format!("syntax error at '{at}'"), start..start.saturating_add(at.len()))
                .help(help))
        };
        if !NAMES.contains(&name) {
            let near = castanet_lang::nearest(name, NAMES.iter().copied());
            return bad(
                name,
                near.map_or("this is no instruction".into(), |n| format!("did you mean '{n}'?")),
            );
        }
        let (word, rest) = first_word(text);
        let is_variable = !word.is_empty() && word.bytes().all(is_name);
        let mut kept = text;
        let op = match name.trim_end_matches('q') {
            "set" if !is_variable || rest.is_empty() => {
                return bad(
                    if is_variable { name } else { word },
                    format!("{name} needs a variable and a text"),
                );
            }
            "init" | "export" if !is_variable => {
                return bad(if word.is_empty() { name } else { word }, format!("{name} needs a variable"));
            }
            "set" => {
                kept = rest;
                Op::Set(word.into())
            }
            base @ ("init" | "export") => {
                kept = rest;
                Op::Init { variable: word.into(), export: base == "export" }
            }
            base @ ("print" | "printn") => {
                let Some((file, rest)) = redirection(text) else {
                    return bad(text, "'>' needs the name of a file".into());
                };
                kept = rest;
                let call = rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '@' | '_'));
                Op::Print { file, call, newline: base == "print" }
            }
            base @ ("save" | "append") => {
                // The first word names the handler, and the last word the file. The words between them are parameters.
                let words = super::function::words(text);
                let name = match *words.as_slice() {
                    [] => return bad(name, format!("{name} needs a handler")),
                    [_] => "-",
                    [.., file] => {
                        kept = text.get(..text.len().saturating_sub(file.len())).unwrap_or("").trim();
                        file
                    }
                };
                Op::Save(File { name: name.into(), append: base == "append" })
            }
            "read" | "write" if word.is_empty() => return bad(name, format!("{name} needs a handler")),
            "read" => Op::Read,
            "write" => Op::Write,
            "pause" | "wait_step" | "wait_stop" => Op::Pause,
            "wait" | "wait_time" | "wait_for" => Op::Wait,
            "label" | "goto" if word.is_empty() => return bad(name, format!("{name} needs a label")),
            "label" if rest.is_empty() => Op::Label(word.into()),
            "goto" => {
                kept = rest;
                Op::Goto(word.into())
            }
            "return" => Op::Return,
            "error" => Op::Error,
            // The other instructions take no text.
            _ if !rest.is_empty() || (!text.is_empty() && name != "label") => {
                return bad(
                    if name == "label" { rest } else { text },
                    format!("nothing can follow here after '{name}'"),
                );
            }
            "loop" => Op::Goto("loop".into()),
            "exit" => Op::End(Ending::Exit),
            "stop" => Op::End(Ending::Stop),
            _ => Op::End(Ending::End),
        };
        Ok(Some(Instruction { op, text: kept.to_string(), unquote: name.ends_with('q') }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn stdout() -> File {
        File { name: "-".into(), append: false }
    }

    #[test]
    fn forms() {
        let file = |name: &str, append| File { name: name.into(), append };
        let print = |file, call, newline| Op::Print { file, call, newline };
        for (line, op, text, unquote) in [
            ("set x  1 2 ", Op::Set("x".into()), "1 2", false),
            ("setq x \"a b\"", Op::Set("x".into()), "\"a b\"", true),
            ("init x", Op::Init { variable: "x".into(), export: false }, "", false),
            ("exportq x 1", Op::Init { variable: "x".into(), export: true }, "1", true),
            ("print", print(stdout(), false, true), "", false),
            ("print c.count", print(stdout(), true, true), "c.count", false),
            ("print @1.count", print(stdout(), true, true), "@1.count", false),
            ("print \"a\"", print(stdout(), false, true), "\"a\"", false),
            ("print $x", print(stdout(), false, true), "$x", false),
            ("printn 5", print(stdout(), false, false), "5", false),
            ("printnq >>f.txt c.count", print(file("f.txt", true), true, false), "c.count", true),
            ("print > \"a b\" 1", print(file("\"a b\"", false), false, true), "1", false),
            ("save c.count", Op::Save(stdout()), "c.count", false),
            ("save c.count f", Op::Save(file("f", false)), "c.count", false),
            ("append t.lookup 1.2.3.4 f", Op::Save(file("f", true)), "t.lookup 1.2.3.4", false),
            ("read c.count", Op::Read, "c.count", false),
            ("readq x \"1\"", Op::Read, "x \"1\"", true),
            ("write stop", Op::Write, "stop", false),
            ("writeq a.b c", Op::Write, "a.b c", true),
            ("pause", Op::Pause, "", false),
            ("wait_stop 2", Op::Pause, "2", false),
            ("wait_for 1s", Op::Wait, "1s", false),
            ("label a", Op::Label("a".into()), "a", false),
            ("goto a $(eq 1 2)", Op::Goto("a".into()), "$(eq 1 2)", false),
            ("loop", Op::Goto("loop".into()), "", false),
            ("return", Op::Return, "", false),
            ("returnq \"x\"", Op::Return, "\"x\"", true),
            ("error \"x\"", Op::Error, "\"x\"", false),
            ("end", Op::End(Ending::End), "", false),
            ("exit", Op::End(Ending::Exit), "", false),
            ("stop", Op::End(Ending::Stop), "", false),
        ] {
            let wanted = Instruction { op, text: text.into(), unquote };
            assert_eq!(Instruction::parse(line).unwrap().unwrap(), wanted, "{line}");
        }
        assert_eq!(Instruction::parse("  ").unwrap(), None);
        for name in NAMES {
            let full = format!("{name} x");
            let known = Instruction::parse(name).is_ok() || Instruction::parse(&full).is_ok();
            assert!(known || Instruction::parse(&(full + " y")).is_ok(), "{name}");
        }
    }

    #[test]
    fn errors_say_where() {
        for (line, message, range) in [
            ("foo bar", "syntax error at 'foo'", 0..3),
            ("pint x", "syntax error at 'pint'", 0..4),
            ("setqq x 1", "syntax error at 'setqq'", 0..5),
            ("set x", "syntax error at 'set'", 0..3),
            ("set a-b 1", "syntax error at 'a-b'", 4..7),
            ("init", "syntax error at 'init'", 0..4),
            ("print >", "syntax error at '>'", 6..7),
            ("save", "syntax error at 'save'", 0..4),
            ("write", "syntax error at 'write'", 0..5),
            ("goto", "syntax error at 'goto'", 0..4),
            ("label a b", "syntax error at 'b'", 8..9),
            ("stop now", "syntax error at 'now'", 5..8),
            ("endq", "syntax error at 'endq'", 0..4),
        ] {
            let e = Instruction::parse(line).unwrap_err();
            assert_eq!((e.message.as_str(), e.range), (message, range), "{line}");
        }
    }
}
