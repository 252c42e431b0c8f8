// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for the control protocol.

use super::at_most;
use castanet_control::access::Access;
use castanet_control::session::{GREETING, Rules, Session, Step};
use castanet_control::{Limits, code};
use castanet_element::spec::Origin;
use castanet_element::{CallError, Listener, Remote};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// A fake router with two elements. It records all writes to handlers.
#[derive(Default)]
struct Two(Mutex<Vec<String>>);

impl Remote for Two {
    fn elements(&self) -> Vec<String> {
        vec!["c".into(), "p".into()]
    }
    fn read(&self, element: Option<&str>, handler: &str, parameters: &str) -> Result<String, CallError> {
        match (element, handler) {
            (Some("c"), "handlers") => {
                Ok("w\twb\nrw\trw\nfile\twF\necho\tr+\nkill\tr+p\nhandlers\tr.\n".into())
            }
            (Some("p"), "handlers") => Ok("*\trw\n".into()),
            (None, "handlers") => Ok("list\tr\nstop\tw\nhotconfig\twR\na.b\tr\n".into()),
            (Some("c"), "kill") => panic!("a private handler is called"),
            (Some("c"), "w") => panic!("a write handler is read"),
            (Some("c"), "echo") => Ok(parameters.into()),
            (Some("p"), h) => Ok(format!("{h} {parameters}")),
            _ => Err(CallError::Refused(format!("no\n{parameters}").into())),
        }
    }
    fn write(
        &self,
        from: Origin,
        element: Option<&str>,
        handler: &str,
        value: &str,
    ) -> Result<String, CallError> {
        let restricted =
            element == Some("c") && handler == "file" || element.is_none() && handler == "hotconfig";
        assert!(from.may_call() && (!restricted || from.may_reconfigure()), "it has not shown the token");
        let read = element == Some("c") && matches!(handler, "echo" | "kill");
        assert!(!read, "a read handler is written");
        let mut written = self.0.lock();
        written.push(format!("{element:?} {handler} {value}"));
        Ok(if handler == "hotconfig" { value.into() } else { String::new() })
    }
    fn swaps(&self) -> u64 {
        0
    }
    fn has_ended(&self) -> bool {
        false
    }
    fn listen(&self, _: &str, _: Weak<dyn Listener>) {}
}

/// The token that authorises clients.
const TOKEN: &str = "0123456789abcdef";

/// Passes bytes to a session in pieces of this size. Returns the replies and the recorded writes.
fn talk(bytes: &[u8], piece: usize, rules: &Rules, from: Origin, limits: &Limits) -> (Vec<u8>, Vec<String>) {
    let two = Arc::new(Two::default());
    let (mut access, mut session) = (Access::new(two.clone()), Session::new(limits.clone(), from));
    let mut out = Vec::new();
    // The first piece is empty, because the session sends its greeting before it receives any input.
    for piece in std::iter::once(&[][..]).chain(bytes.chunks(piece)) {
        session.feed(piece);
        loop {
            let step = session.step(rules, &mut access);
            while !session.output().is_empty() {
                let n = session.output().len();
                out.extend_from_slice(session.output());
                session.sent(n);
            }
            if step != Step::Done {
                break;
            }
        }
        // The memory in use may be larger than the limits: vectors grow by doubling, and one read can exceed a
        // limit.
        let most = 4 * (limits.line + limits.data + limits.backlog) + (1 << 17);
        assert!(session.held() <= most, "it holds {} bytes", session.held());
    }
    let written = two.0.lock().clone();
    (out, written)
}

/// Whether these bytes are complete replies, with the data that they announce.
fn are_replies(mut bytes: &[u8]) -> bool {
    const CODES: &[u16] = &[
        code::OK,
        code::SYNTAX,
        code::UNIMPLEMENTED,
        code::NO_ELEMENT,
        code::NO_HANDLER,
        code::HANDLER,
        code::TOO_BIG,
        code::PERMISSION,
    ];
    let mut first = None;
    while !bytes.is_empty() {
        let Some(end) = bytes.windows(2).position(|w| w == b"\r\n") else { return false };
        let (line, rest) = bytes.split_at(end);
        bytes = rest.get(2..).unwrap_or_default();
        // Messages repeat a client's bytes unchanged, even if they are not UTF-8.
        let line = castanet_lang::bytes::decode(line);
        if let (None, Some(n)) = (first, line.strip_prefix("DATA ")) {
            let Some(rest) = n.parse().ok().and_then(|n: usize| bytes.get(n..)) else { return false };
            bytes = rest;
            continue;
        }
        let Some((number, text)) = line.split_at_checked(3) else { return false };
        let Some(number) = number.parse::<u16>().ok().filter(|n| CODES.contains(n)) else { return false };
        if first.is_some_and(|f| f != number) || line.chars().any(|c| c.is_control() && c != '\t') {
            return false;
        }
        match text.bytes().next() {
            Some(b'-') => first = Some(number),
            Some(b' ') => first = None,
            _ => return false,
        }
    }
    first.is_none()
}

/// Runs a conversation between a client and a session. The first byte of the input determines the client's rights and
/// the size of the pieces in which its bytes arrive. Limits are small, so that a short input is enough to exceed them.
pub fn control(data: &[u8]) {
    let Some((&how, bytes)) = at_most(data, 1 << 14).split_first() else { return };
    let token = (how & 0x40 > 0).then(|| TOKEN.parse().ok()).flatten().map(Arc::new);
    let rules = Rules { readonly: how & 1 > 0, proxy: (how & 2 > 0).then(|| "p".to_string()), token };
    let from = match how & 0xa0 {
        0x80 => Origin::Anonymous,
        0xa0 => Origin::Network,
        _ => Origin::Authorised,
    };
    let limits = Limits { line: 100, data: 50, backlog: 200, ..Limits::default() };
    let whole = talk(bytes, usize::MAX, &rules, from, &limits);
    let pieces = talk(bytes, 1 + usize::from(how >> 2) % 16, &rules, from, &limits);
    assert_eq!(whole, pieces, "how the bytes are cut makes no difference");
    let replies = whole.0.strip_prefix(GREETING.as_bytes());
    assert!(replies.is_some_and(are_replies), "{}", whole.0.escape_ascii());
    assert!(!rules.readonly || whole.1.is_empty(), "it may only read: {:?}", whole.1);
}

/// Returns seed inputs: every command, data of every kind, too much data, too long lines, nonsense.
pub fn seeds() -> Vec<Vec<u8>> {
    let all: &[&[u8]] = &[
        b"\0READ c.echo a b\r\nGET 1.echo x\nread list\rWRITE c.w\nSET p.x y\nWRITE stop 1\nQUIT\n",
        b"\x04READDATA c.echo 3\na\r\nWRITEDATA c.rw 2\r\n\n\n\nSETDATA p.z 0\n",
        b"\x08READUNTIL c.echo\na\r\nb\n\nWRITEUNTIL p.q END\r\nx\nEND \r\nREADUNTIL p.a .\r.\r",
        b"\x0cCHECKREAD c.echo\nCHECKWRITE c.echo\nCHECKREAD a.b\nLLRPC c#0a 1\nxLLRPC x#1\nHELP\n",
        b"\x01WRITE c.w\nWRITEDATA c.rw 3\nabcREAD c.echo\nREAD c.rw 1\n",
        b"\x02READ x.y z\nWRITE kill 9\n",
        b"\x10WRITEDATA c.rw 51\n012345678901234567890123456789012345678901234567890READ c.echo\n",
        b"\x14READ c.echo 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\nFOO\n",
        b"\x18READ c.kill 9 1\nREAD 9.x\nREAD 0.x\nREADDATA c.echo 99999999999999999999999\n\xc3\xbf\x1b\n",
        b"\x1cREADUNTIL c.echo x\n0123456789012345678901234567890123456789012345678901234567890123456789\ny\nx\nREAD c.echo z\n",
        b"\xc0WRITE hotconfig x\nAUTH 0123456789abcdef\nWRITE hotconfig x\ny\nWRITE c.file z\nCHECKWRITE c.file\n",
        b"\xc1AUTH 0123456789abcdef\nWRITE c.file z\nAUTH\n",
        b"\xc4AUTH a\nAUTH b\nAUTH c\nAUTH 0123456789abcdef\n",
        b"\xe0READ c.echo x\nWRITE c.w\nWRITEDATA c.rw 1\nxAUTH 0123456789abcdef\nWRITE c.w\n",
        b"\x80POST / HTTP/1.1\r\nHost: h\r\n\r\nWRITE c.w\n",
        b"\x08GET / HTTP/1.1\r\n\r\nWRITE c.w\n",
        b"\x88EHLO a\nREAD c.echo\nB\nC\nWRITE c.w\n",
    ];
    all.iter().map(|s| s.to_vec()).collect()
}
