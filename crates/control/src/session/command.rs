// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses lines into commands, executes commands, and makes the replies.

use super::{Rules, llrpc, unimplemented};
use crate::access::{Access, Refusal, shown};
use crate::code;
use castanet_element::spec::{Origin, bytes};

/// The reply to `HELP`.
pub const HELP: &str = "Commands supported:
READ handler [arguments...]
READDATA handler n          [followed by n bytes of arguments]
READUNTIL handler [end]     [followed by lines of arguments, then the line end]
WRITE handler [value...]
WRITEDATA handler n         [followed by n bytes of value]
WRITEUNTIL handler [end]    [followed by lines of value, then the line end]
CHECKREAD handler
CHECKWRITE handler
LLRPC element#number [n]    [followed by n bytes of data]
AUTH token
HELP
QUIT
A handler is element.handler, or a global handler. An element may be given by its number, counted from 1.";

/// HTTP methods that are not commands of this protocol. They end the session, because a web page can make a browser
/// send requests to a port of the browser's host, with commands in the body.
const HTTP: &[&str] = &["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "PRI"];

/// The kinds of commands for handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Read,
    Write,
    CheckRead,
    CheckWrite,
    Llrpc,
}

/// A command for a handler.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    pub verb: Verb,
    /// The name of the handler as written.
    pub name: String,
    /// The rest of the line.
    pub argument: Vec<u8>,
}

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A blank line.
    Nothing,
    /// A syntax error.
    Wrong(Refusal),
    /// An unknown command.
    Unknown(Refusal),
    /// The first line of an HTTP request: the other side is not a control client.
    Foreign(Refusal),
    /// `AUTH` with a token.
    Token(Vec<u8>),
    /// `QUIT`.
    Quit,
    /// `HELP`.
    Help,
    /// A complete command.
    Call(Call),
    /// A command that is followed by this number of bytes.
    Data(Call, u64),
    /// A command that is followed by lines up to this terminator.
    Until(Call, Vec<u8>),
}

/// Splits off the first word; blanks after it are removed.
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.trim_ascii_start();
    let n = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (word, rest) = line.split_at(n);
    (word, rest.trim_ascii_start())
}

impl Parsed {
    /// Parses a line.
    pub fn of(line: &[u8]) -> Parsed {
        use Verb::{CheckRead, CheckWrite, Llrpc, Read, Write};
        let (verb, rest) = word(line.trim_ascii_end());
        let verb = bytes::decode(verb);
        let (name, argument) = word(rest);
        let call = |verb| Call { verb, name: bytes::decode(name).into_owned(), argument: argument.to_vec() };
        let upper = verb.to_ascii_uppercase();
        let named = |parsed: Parsed| match name {
            [] => Parsed::Wrong(Refusal(code::SYNTAX, "Wrong number of arguments".into())),
            _ => parsed,
        };
        let data = |verb, usual: Option<u64>| match (std::str::from_utf8(argument), usual) {
            (Ok(""), Some(n)) => Parsed::Data(call(verb), n),
            // A number beyond u64 is not a syntax error: the reply is that the data is too big.
            (Ok(n), _) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => {
                Parsed::Data(call(verb), n.parse().unwrap_or(u64::MAX))
            }
            _ => Parsed::Wrong(Refusal(code::SYNTAX, "Expected the number of bytes".into())),
        };
        let alone = |verb| match argument {
            [] => Parsed::Call(call(verb)),
            _ => Parsed::Wrong(Refusal(code::SYNTAX, "Wrong number of arguments".into())),
        };
        let last = line.trim_ascii_end().rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
        match upper.as_str() {
            "" => Parsed::Nothing,
            v if HTTP.contains(&v) || name.starts_with(b"/") && last.starts_with(b"HTTP/") => {
                Parsed::Foreign(unimplemented(&verb))
            }
            "AUTH" => named(Parsed::Token(name.to_vec())),
            "QUIT" | "CLOSE" => Parsed::Quit,
            "HELP" => Parsed::Help,
            "READ" | "GET" => named(Parsed::Call(call(Read))),
            "WRITE" | "SET" => named(Parsed::Call(call(Write))),
            "READDATA" | "GETDATA" => named(data(Read, None)),
            "WRITEDATA" | "SETDATA" => named(data(Write, None)),
            "READUNTIL" | "GETUNTIL" => named(Parsed::Until(call(Read), argument.to_vec())),
            "WRITEUNTIL" | "SETUNTIL" => named(Parsed::Until(call(Write), argument.to_vec())),
            "CHECKREAD" => named(alone(CheckRead)),
            "CHECKWRITE" => named(alone(CheckWrite)),
            "LLRPC" => named(data(Llrpc, Some(0))),
            _ => Parsed::Unknown(unimplemented(&verb)),
        }
    }
}

impl Call {
    /// Executes the command. Returns the code and the text of the reply, and the value that follows it.
    pub fn answer(
        &self,
        argument: &[u8],
        rules: &Rules,
        from: Origin,
        access: &mut Access,
    ) -> Result<(u16, String, Option<String>), Refusal> {
        if !from.may_call() {
            return Err(self.refused());
        }
        let proxy = rules.proxy.as_deref();
        match self.verb {
            Verb::Read => {
                let t = access.readable(&self.name, proxy)?;
                let value = access.read(&t, &bytes::decode(argument))?;
                Ok((code::OK, format!("Read handler '{}' OK", shown(&t.name)), Some(value)))
            }
            Verb::Write => {
                let t = access.writable(&self.name, proxy, rules.readonly, from)?;
                let answer = access.write(from, &t, &bytes::decode(argument))?;
                let end = if answer.is_empty() { "" } else { "\n" };
                // The answer of `swapplan` is a plan. The answer of any other handler consists of warnings.
                let plan = t.element.is_none() && t.handler == "swapplan";
                let code = if plan || answer.is_empty() { code::OK } else { code::WARNINGS };
                Ok((code, format!("Write handler '{}' OK{end}{answer}", shown(&t.name)), None))
            }
            Verb::CheckRead => {
                let t = access.readable(&self.name, proxy)?;
                Ok((code::OK, format!("Read handler '{}' OK", shown(&t.name)), None))
            }
            Verb::CheckWrite => {
                let t = access.writable(&self.name, proxy, rules.readonly, from)?;
                Ok((code::OK, format!("Write handler '{}' OK", shown(&t.name)), None))
            }
            Verb::Llrpc => {
                let (text, data) = llrpc::answer(self, argument, rules, from, access)?;
                Ok((code::OK, text, Some(data)))
            }
        }
    }

    /// Returns the reply to a client that is on another host and has not sent the token. The reply does not reveal
    /// which names exist.
    fn refused(&self) -> Refusal {
        let text =
            format!("Permission denied for '{}': clients of other hosts need the token", shown(&self.name));
        Refusal(code::PERMISSION, text)
    }
}
