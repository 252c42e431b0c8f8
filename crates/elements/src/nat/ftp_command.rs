// SPDX-License-Identifier: MIT OR Apache-2.0
//! FTP commands that tell a server where to connect to: `PORT` (RFC 959 section 4.1.2) and `EPRT` (RFC 2428 section 2).

use std::net::Ipv4Addr;
use std::ops::Range;

/// The syntax of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `PORT h1,h2,h3,h4,p1,p2`
    Port,
    /// `EPRT |1|h1.h2.h3.h4|port|`, with this byte as the delimiter `|`.
    Extended(u8),
}

/// A command in the text of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The syntax of the command.
    pub form: Form,
    /// The IPv4 address and the port in the command; `None` if its address is an IPv6 address.
    pub names: Option<(u32, u16)>,
    /// The offset of the command's argument in the text.
    pub start: usize,
    /// The length of the argument in bytes. The argument ends at white space; other text may follow.
    pub length: usize,
}

/// The result of the search for commands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No complete command.
    Nothing,
    /// One command.
    One(Command),
    /// Several commands. A client has no reason to send more than one at once.
    Several,
}

impl Form {
    /// Returns the argument, in this form, that names the given address and port.
    pub fn text(self, addr: u32, port: u16) -> String {
        let addr = Ipv4Addr::from_bits(addr);
        match self {
            Form::Port => {
                let ([a, b, c, d], [high, low]) = (addr.octets(), port.to_be_bytes());
                format!("{a},{b},{c},{d},{high},{low}")
            }
            Form::Extended(bar) => {
                let bar = char::from(bar);
                format!("{bar}1{bar}{addr}{bar}{port}{bar}")
            }
        }
    }
}

/// Looks for commands in the text of a segment. An incomplete last line is ignored.
pub fn find(text: &[u8]) -> Found {
    let (mut found, mut start) = (Found::Nothing, 0);
    for line in text.split_inclusive(|b| *b == b'\n') {
        let at = start;
        start += line.len();
        let Some((form, names, argument)) = command(line) else { continue };
        if found != Found::Nothing {
            return Found::Several;
        }
        found = Found::One(Command { form, names, start: at + argument.start, length: argument.len() });
    }
    found
}

type Names = Option<(u32, u16)>;

/// Parses a line: the form of its command, the address and port that it names, and the range of its argument.
fn command(line: &[u8]) -> Option<(Form, Names, Range<usize>)> {
    let (verb, rest) = line.strip_suffix(b"\n")?.split_first_chunk::<5>()?;
    let from = verb.len() + (rest.len() - rest.trim_ascii_start().len());
    // Text after the argument is left as it is.
    let words = rest.trim_ascii_start().split(u8::is_ascii_whitespace).next()?;
    let (form, names) = if verb.eq_ignore_ascii_case(b"PORT ") {
        (Form::Port, Some(port(words)?))
    } else if verb.eq_ignore_ascii_case(b"EPRT ") {
        extended(words)?
    } else {
        return None;
    };
    Some((form, names, from..from + words.len()))
}

/// Parses a decimal number of at most `most` digits, without a sign.
fn number<T: std::str::FromStr>(digits: &[u8], most: usize) -> Option<T> {
    let good = !digits.is_empty() && digits.len() <= most && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| good)?.parse().ok()
}

fn port(words: &[u8]) -> Option<(u32, u16)> {
    let mut numbers = [0u8; 6];
    let mut given = words.split(|b| *b == b',');
    for n in &mut numbers {
        *n = number(given.next()?, 3)?;
    }
    let [a, b, c, d, high, low] = numbers;
    given.next().is_none().then_some((u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([high, low])))
}

fn extended(words: &[u8]) -> Option<(Form, Names)> {
    let bar = *words.first().filter(|b| b.is_ascii_graphic() && !b.is_ascii_alphanumeric())?;
    let mut parts = words.split(|b| *b == bar).skip(1);
    let [family, addr, port, end] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let port = number(port, 5).filter(|_| end.is_empty() && parts.next().is_none())?;
    let names = match family {
        b"1" => Some((std::str::from_utf8(addr).ok()?.parse::<Ipv4Addr>().ok()?.to_bits(), port)),
        // The client uses IPv4, so an IPv6 address cannot be its own.
        b"2" => None,
        // The server itself refuses unknown protocols, with reply 522 (RFC 2428 section 2).
        _ => return None,
    };
    Some((Form::Extended(bar), names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found() {
        let here = Some((0x0100_0001, 5001));
        let one = |form, names, start, length| Found::One(Command { form, names, start, length });
        let bar = Form::Extended(b'|');
        for (text, want) in [
            ("PORT 1,0,0,1,19,137\r\n", one(Form::Port, here, 5, 14)),
            ("port  1,0,0,1,19,137 \n", one(Form::Port, here, 6, 14)),
            ("PORT 1,0,0,1,19,137 foo\r\n", one(Form::Port, here, 5, 14)),
            ("PORT \t1,0,0,1,19,137\tPORT 1,0,0,1,1,1\n", one(Form::Port, here, 6, 14)),
            ("EPRT |1|1.0.0.1|5001|\r\n", one(bar, here, 5, 16)),
            ("EPRT |1|1.0.0.1|5001| |\r\n", one(bar, here, 5, 16)),
            ("eprt !1!1.0.0.1!05001!\n", one(Form::Extended(b'!'), here, 5, 17)),
            ("EPRT |2|::1|5001|\r\n", one(bar, None, 5, 12)),
            ("NOOP\r\nPORT 1,0,0,1,19,137\r\nNOOP\r\n", one(Form::Port, here, 11, 14)),
            ("PORT 1,0,0,1,19,137\r\nEPRT |1|1.0.0.1|5001|\r\n", Found::Several),
        ] {
            assert_eq!(find(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn other_text_is_left_alone() {
        for text in [
            "",
            "\n",
            "P",
            "PORT \n",
            "PORT 1,0,0,1,19,137",
            "PORT 1,0,0,1,19\r\n",
            "PORT 1,0,0,1,19,137,1\r\n",
            "PORT 1,0,0,1,19 ,137\r\n",
            "PORT 1,0,0,1,19,137foo\r\n",
            "PORT 1,0,0,256,19,137\r\n",
            "PORT 1,0,,1,19,137\r\n",
            "PORT +1,0,0,1,19,137\r\n",
            "XPORT 1,0,0,1,4,0\r\n",
            "EPRT \r\n",
            "EPRT |\r\n",
            "EPRT |1|1.0.0.1|5001\r\n",
            "EPRT |1|1.0.0.1|5001||\r\n",
            "EPRT |1|1.0.0.1|5001|x\r\n",
            "EPRT |1|1.0.0.1|65536|\r\n",
            "EPRT |1|1.0.0.1||\r\n",
            "EPRT |1|1.0.0|5001|\r\n",
            "EPRT |3|1.0.0.1|5001|\r\n",
            "EPRT 111.0.0.115001\r\n",
            "EPSV\r\n",
            "\u{fffd}\u{fffd}\u{fffd}\r\n",
        ] {
            assert_eq!(find(text.as_bytes()), Found::Nothing, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_found_again() {
        for form in [Form::Port, Form::Extended(b'|'), Form::Extended(b'$')] {
            for (addr, port) in [(0, 0), (u32::MAX, u16::MAX), (0x0a01_02fe, 1024)] {
                let argument = form.text(addr, port);
                let verb = if form == Form::Port { "PORT" } else { "EPRT" };
                let text = format!("{verb} {argument}\r\n");
                let want = Command { form, names: Some((addr, port)), start: 5, length: argument.len() };
                assert_eq!(find(text.as_bytes()), Found::One(want), "{text}");
            }
        }
    }
}
