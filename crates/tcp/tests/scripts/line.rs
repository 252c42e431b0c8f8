// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a script.

use super::icmp::{Icmp, error};

/// When something happens, in nanoseconds since the start of the script.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    At(i64),
    After(i64),
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    Nop,
    Mss(u16),
    Scale(u8),
    SackOk,
    Sack(Vec<(u32, u32)>),
    /// The value, if it matters, and the echo.
    Timestamp(Option<u32>, u32),
    /// Bytes as they stand: options that the TCP does not know, and wrong ones.
    Raw(Vec<u8>),
}

/// A segment. Sequence numbers count from the initial ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The ECN bits of its packet (RFC 3168, section 5).
    pub ecn: u8,
    pub flags: String,
    pub seq: u32,
    pub length: u32,
    pub ack: Option<u32>,
    pub window: Option<u32>,
    pub urgent: u16,
    pub options: Option<Vec<TcpOption>>,
}

/// What a line says.
#[derive(Clone, Debug)]
pub enum Event {
    /// The peer sends.
    In(Segment),
    /// A router sends an ICMP error.
    Icmp(Icmp),
    /// The TCP sends.
    Out(Segment),
    /// The user calls a function, perhaps with a number, and gets a result.
    Call(String, Option<u32>, Option<i64>),
}

/// Reads a line: none if there is nothing in it.
pub fn parse(line: &str) -> Result<Option<(Time, Event)>, String> {
    let line = line.split("//").next().unwrap_or_default().trim();
    // Settings come before everything else: `setting` reads them.
    if line.is_empty() || line.starts_with('#') || line.starts_with("--") {
        return Ok(None);
    }
    let (time, rest) = line.split_once(' ').ok_or("no event")?;
    let time = match time.strip_prefix('+') {
        Some(t) => Time::After(seconds(t)?),
        None => Time::At(seconds(time)?),
    };
    let rest = rest.trim();
    let event = if let Some(s) = rest.strip_prefix('<').filter(|s| s.contains(" icmp")) {
        Event::Icmp(error(s)?)
    } else if let Some(s) = rest.strip_prefix('<') {
        Event::In(segment(s)?)
    } else if let Some(s) = rest.strip_prefix('>') {
        Event::Out(segment(s)?)
    } else {
        call(rest)?
    };
    Ok(Some((time, event)))
}

/// Reads a setting, `--NAME=NUMBER`, if the line is one.
pub fn setting(line: &str) -> Result<Option<(&str, u32)>, String> {
    let Some(setting) = line.strip_prefix("--") else { return Ok(None) };
    let (name, value) = setting.split_once('=').ok_or("no '=' in a setting")?;
    Ok(Some((name, number(value)?)))
}

fn seconds(text: &str) -> Result<i64, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole: i64 = if whole.is_empty() { 0 } else { number(whole)? };
    let part: i64 = number(&format!("{part:0<9}"))?;
    Ok(whole * 1_000_000_000 + part)
}

pub fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("'{text}' is no number"))
}

/// `FIRST:LAST(LENGTH)`: the first sequence number, and the length.
pub fn range(text: &str) -> Result<(u32, u32), String> {
    let (seq, rest) = text.split_once(':').ok_or("no ':' in sequence numbers")?;
    let (last, length) = rest.strip_suffix(')').and_then(|r| r.split_once('(')).ok_or("no length")?;
    let (seq, length): (u32, u32) = (number(seq)?, number(length)?);
    let right = seq.wrapping_add(length) == number::<u32>(last)?;
    if right { Ok((seq, length)) } else { Err(format!("{text}: the length is wrong")) }
}

/// The ECN bits, by their names in packetdrill. Without a name they are 0.
const ECN: [(&str, u8); 4] = [("[noecn]", 0), ("[ect1]", 1), ("[ect0]", 2), ("[ce]", 3)];

/// `[[ECN]] FLAGS FIRST:LAST(LENGTH) [ack N] [win N] [urg N] [<OPTIONS>]`
fn segment(text: &str) -> Result<Segment, String> {
    let text = text.trim();
    let named = ECN.iter().find_map(|(name, bits)| text.strip_prefix(name).map(|rest| (*bits, rest)));
    let (ecn, text) = named.unwrap_or((0, text));
    let (head, options) = match text.split_once('<') {
        Some((head, rest)) => (head, Some(rest.trim().strip_suffix('>').ok_or("no '>' after options")?)),
        None => (text, None),
    };
    let mut words = head.split_whitespace();
    let flags = words.next().ok_or("no flags")?.to_string();
    let (seq, length) = range(words.next().ok_or("no sequence numbers")?)?;
    let mut s = Segment {
        ecn,
        flags,
        seq,
        length,
        ack: None,
        window: None,
        urgent: 0,
        options: options.map(options_of).transpose()?,
    };
    while let Some(word) = words.next() {
        let value = words.next().ok_or("a number is missing")?;
        match word {
            "ack" => s.ack = Some(number(value)?),
            "win" => s.window = Some(number(value)?),
            "urg" => s.urgent = number(value)?,
            other => return Err(format!("'{other}'?")),
        }
    }
    Ok(s)
}

fn options_of(text: &str) -> Result<Vec<TcpOption>, String> {
    text.split(',').map(str::trim).filter(|o| !o.is_empty()).map(option).collect()
}

fn option(text: &str) -> Result<TcpOption, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["nop"] => Ok(TcpOption::Nop),
        ["mss", n] => Ok(TcpOption::Mss(number(n)?)),
        ["wscale", n] => Ok(TcpOption::Scale(number(n)?)),
        ["sackOK"] => Ok(TcpOption::SackOk),
        ["sack", ref ranges @ ..] => {
            let range = |r: &&str| {
                let (a, b) = r.split_once(':').ok_or("no ':' in a range")?;
                Ok::<_, String>((number(a)?, number(b)?))
            };
            Ok(TcpOption::Sack(ranges.iter().map(range).collect::<Result<_, _>>()?))
        }
        ["raw", ref bytes @ ..] => {
            let byte = |b: &&str| u8::from_str_radix(b, 16).map_err(|_| format!("'{b}' is no byte"));
            Ok(TcpOption::Raw(bytes.iter().map(byte).collect::<Result<_, _>>()?))
        }
        ["TS", "val", v, "ecr", e] => {
            let value = if v == "*" { None } else { Some(number(v)?) };
            Ok(TcpOption::Timestamp(value, number(e)?))
        }
        _ => Err(format!("'{text}' is no option")),
    }
}

/// `NAME(DESCRIPTOR, ..., N) [= RESULT]`
fn call(text: &str) -> Result<Event, String> {
    let (call, result) = text.split_once('=').map_or((text, None), |(c, r)| (c, Some(r)));
    let (name, rest) = call.split_once('(').ok_or("no event")?;
    let arguments: Vec<&str> =
        rest.trim().strip_suffix(')').ok_or("no ')'")?.split(',').map(str::trim).collect();
    // There is one connection, so the descriptor says nothing.
    let last = arguments.get(1..).unwrap_or_default().last();
    let result = result.map(|r| number(r.split_whitespace().next().unwrap_or_default())).transpose()?;
    Ok(Event::Call(name.trim().into(), last.and_then(|a| a.parse().ok()), result))
}
