// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses packet type codes, at compile time too.

use super::{Amount, Contents, Gives, Wants, ethertype};
use crate::codes::sides;

impl Amount {
    /// Parses a decimal number or the name of an argument.
    const fn parse(word: &'static [u8]) -> Option<Amount> {
        let (mut n, mut digits, mut i) = (0i64, true, 0);
        while i < word.len() {
            match word[i] {
                b @ b'0'..=b'9' if i < 9 => n = n * 10 + (b - b'0') as i64,
                b'A'..=b'Z' | b'_' => digits = false,
                _ => return None,
            }
            i += 1;
        }
        match (digits, std::str::from_utf8(word)) {
            (true, Ok(_)) if !word.is_empty() => Some(Amount::Number(n)),
            (false, Ok(name)) => Some(Amount::Arg(name)),
            _ => None,
        }
    }
}

impl Wants {
    /// Parses the words of an input.
    pub(super) const fn parse(words: [&'static [u8]; 3]) -> Option<Wants> {
        Some(match words {
            [b"any", b"", b""] => Wants::Any,
            [b"ether", b"", b""] => Wants::Ether,
            [b"ether", b"arp", b""] => Wants::EtherArp,
            [b"ip", b"", b""] => Wants::Ip,
            [b"ip", b"optional", b""] => Wants::IpOptional,
            [b"ip", b"at", n] => match Amount::parse(n) {
                Some(n) => Wants::IpAt(n),
                None => return None,
            },
            [b"network", b"at", n] => match Amount::parse(n) {
                Some(n) => Wants::NetworkAt(n),
                None => return None,
            },
            _ => return None,
        })
    }
}

impl Gives {
    /// Parses the words of an output.
    pub(super) const fn parse(words: [&'static [u8]; 3]) -> Option<Gives> {
        let amount = match words {
            [_, b"", b""] => None,
            [_, n, b""] => Amount::parse(n),
            _ => None,
        };
        Some(match (words, amount) {
            ([b"same", b"", b""], _) => Gives::Same,
            ([b"changed", b"", b""], _) => Gives::Changed,
            ([b"to", b"network", b""], _) => Gives::ToNetwork,
            ([b"classified", b"", b""], _) => Gives::Classified,
            ([b"framed", b"", b""], _) => Gives::Framed(None),
            ([b"framed", ..], Some(n)) => Gives::Framed(Some(n)),
            ([b"strip", ..], Some(n)) => Gives::Strip(n),
            ([b"unstrip", ..], Some(n)) => Gives::Unstrip(n),
            ([b"mark", ..], Some(n)) => Gives::Mark(n),
            ([b"check", ..], Some(n)) => Gives::Check(n),
            ([b"ip", b"", b""], _) => Gives::Fixed(Contents::Network(Some(ethertype::IP)), Some(true)),
            ([b"ether", b"arp", mark], _) => match marked(mark) {
                Some(mark) => Gives::Fixed(Contents::Ether(Some(ethertype::ARP)), mark),
                None => return None,
            },
            ([contents, mark, b""], _) => match (Contents::parse(contents), marked(mark)) {
                (Some(contents), Some(mark)) => Gives::Fixed(contents, mark),
                _ => return None,
            },
            _ => return None,
        })
    }
}

impl Contents {
    const fn parse(word: &[u8]) -> Option<Contents> {
        Some(match word {
            b"any" => Contents::Any,
            b"ether" => Contents::Ether(None),
            b"network" => Contents::Network(None),
            b"ip" => Contents::Network(Some(ethertype::IP)),
            _ => return None,
        })
    }
}

/// Parses the word about the annotation, which may be absent.
const fn marked(word: &[u8]) -> Option<Option<bool>> {
    match word {
        b"" => Some(None),
        b"marked" => Some(Some(true)),
        b"unmarked" => Some(Some(false)),
        _ => None,
    }
}

/// Splits a phrase at its blanks. A phrase of more than three words gives words that no code has.
pub(super) const fn words(phrase: &'static [u8]) -> [&'static [u8]; 3] {
    let mut out: [&'static [u8]; 3] = [b""; 3];
    let (mut rest, mut n) = (phrase.trim_ascii(), 0);
    while !rest.is_empty() {
        let mut end = 0;
        while end < rest.len() && !rest[end].is_ascii_whitespace() {
            end += 1;
        }
        let (word, more) = rest.split_at(end);
        if n == out.len() {
            return [b"?"; 3];
        }
        out[n] = word;
        (rest, n) = (more.trim_ascii(), n + 1);
    }
    out
}

/// Whether `PacketCode::parse` accepts a code. For checks at compile time.
pub const fn packets_are_valid(code: &'static str) -> bool {
    let mut slashes = 0;
    let mut i = 0;
    while i < code.len() {
        slashes += (code.as_bytes()[i] == b'/') as usize;
        i += 1;
    }
    let (inputs, outputs) = sides(code.as_bytes());
    slashes == 1 && side_is_valid(inputs, true) && side_is_valid(outputs, false)
}

/// Whether each phrase of a side has a meaning. A blank side stands for no ports.
const fn side_is_valid(side: &'static [u8], input: bool) -> bool {
    let mut rest = side;
    if rest.trim_ascii().is_empty() {
        return true;
    }
    loop {
        let mut end = 0;
        while end < rest.len() && rest[end] != b',' {
            end += 1;
        }
        let (phrase, more) = rest.split_at(end);
        let words = words(phrase);
        let valid = if input { Wants::parse(words).is_some() } else { Gives::parse(words).is_some() };
        match more {
            _ if !valid => return false,
            [] => return true,
            [_, after @ ..] => rest = after,
        }
    }
}
