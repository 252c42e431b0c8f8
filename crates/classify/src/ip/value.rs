// SPDX-License-Identifier: MIT OR Apache-2.0
//! Literal values: numbers, addresses, prefixes.

/// The form of a literal, before its type is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(u32),
    Ip(u32),
    /// Address and mask.
    Prefix(u32, u32),
    Ether(u64),
}

/// Why a literal is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) message: &'static str,
    /// The form that was expected.
    pub(super) form: &'static str,
}

const PREFIX: Malformed =
    Malformed { message: "bad prefix", form: "an address and a length from 0 to 32: 10.0.0.0/8" };
const ADDRESS: Malformed =
    Malformed { message: "bad IP address", form: "four numbers from 0 to 255: 10.0.0.1" };
const ETHER: Malformed = Malformed {
    message: "bad Ethernet address",
    form: "six hexadecimal numbers, 02-00-00-00-00-01; for a range of ports, 'port >= 80 && port <= 90'",
};

/// Parses a literal. `Ok(None)` means that the word is a name, `Err` that it is a malformed literal.
pub(super) fn literal(word: &str) -> Result<Option<Value>, Malformed> {
    if let Some(ether) = ether(word) {
        return Ok(Some(Value::Ether(ether)));
    }
    if !word.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(None);
    }
    if let Some((address, length)) = word.split_once('/') {
        return match (octets(address), prefix_mask(length)) {
            (Some((address, _)), Some(mask)) => Ok(Some(Value::Prefix(address, mask))),
            _ => Err(PREFIX),
        };
    }
    if word.contains('.') {
        return match octets(word) {
            Some((address, 4)) => Ok(Some(Value::Ip(address))),
            _ => Err(ADDRESS),
        };
    }
    if word.contains([':', '-']) {
        return Err(ETHER);
    }
    let form = "a decimal number, or a hexadecimal one after 0x";
    number(word).map(|n| Some(Value::Number(n))).map_err(|message| Malformed { message, form })
}

/// Parses a number: decimal, `0x` hexadecimal, or octal with a leading 0.
pub(super) fn number(word: &str) -> Result<u32, &'static str> {
    let (digits, radix) = match (word.strip_prefix("0x").or(word.strip_prefix("0X")), word.strip_prefix('0'))
    {
        (Some(hex), _) => (hex, 16),
        (None, Some(octal)) if !octal.is_empty() => (octal, 8),
        _ => (word, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err("bad number");
    }
    u32::from_str_radix(digits, radix).map_err(|_| "number too large")
}

/// Parses one to four decimal octets. Returns the address, with missing octets zero, and the number of octets.
fn octets(text: &str) -> Option<(u32, usize)> {
    let mut address = [0u8; 4];
    let mut count = 0;
    for part in text.split('.') {
        if part.is_empty() || part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *address.get_mut(count)? = part.parse().ok()?;
        count += 1;
    }
    Some((u32::from_be_bytes(address), count))
}

fn prefix_mask(text: &str) -> Option<u32> {
    if text.contains('.') {
        return octets(text).filter(|o| o.1 == 4).map(|o| o.0);
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let length: u32 = text.parse().ok().filter(|l| *l <= 32)?;
    Some(u32::MAX.checked_shl(32 - length).unwrap_or(0))
}

/// Parses six hexadecimal bytes separated by colons or dashes.
fn ether(text: &str) -> Option<u64> {
    let sign = if text.contains(':') { ':' } else { '-' };
    let mut address = 0u64;
    let mut count = 0;
    for part in text.split(sign) {
        if part.is_empty() || part.len() > 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        address = address << 8 | u64::from_str_radix(part, 16).ok()?;
        count += 1;
        if count > 6 {
            return None;
        }
    }
    (count == 6).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals() {
        for (word, value) in [
            ("0", Ok(Some(Value::Number(0)))),
            ("4294967295", Ok(Some(Value::Number(u32::MAX)))),
            ("4294967296", Err("number too large")),
            ("0x1F", Ok(Some(Value::Number(31)))),
            ("010", Ok(Some(Value::Number(8)))),
            ("08", Err("bad number")),
            ("0x", Err("bad number")),
            ("12ab", Err("bad number")),
            ("1.2.3.4", Ok(Some(Value::Ip(0x01020304)))),
            ("1.2.3", Err("bad IP address")),
            ("1.2.3.256", Err("bad IP address")),
            ("1.2.3.4.5", Err("bad IP address")),
            ("18.26/16", Ok(Some(Value::Prefix(0x121a0000, 0xffff0000)))),
            ("10/8", Ok(Some(Value::Prefix(0x0a000000, 0xff000000)))),
            ("0/0", Ok(Some(Value::Prefix(0, 0)))),
            ("1.2.3.4/255.255.0.0", Ok(Some(Value::Prefix(0x01020304, 0xffff0000)))),
            ("1.2.3.4/33", Err("bad prefix")),
            ("1.2.3.4/", Err("bad prefix")),
            ("0:1:2:a:b:ff", Ok(Some(Value::Ether(0x0001020a0bff)))),
            ("AA-BB-CC-DD-EE-FF", Ok(Some(Value::Ether(0xaabbccddeeff)))),
            ("0:1:2:a:b", Err("bad Ethernet address")),
            ("0:1:2:a:b:c:d", Err("bad Ethernet address")),
            ("www", Ok(None)),
            ("fe", Ok(None)),
            ("", Ok(None)),
        ] {
            assert_eq!(literal(word).map_err(|e| e.message), value, "{word}");
        }
    }
}
