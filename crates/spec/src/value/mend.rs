// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suggestions for invalid values: what to write instead and, if it is clear, the text that was probably
//! meant.

use super::ValueError;
use super::address::kind;
use crate::arg::ArgCx;

/// Adds a suggestion for a text that is not a whole number.
pub(super) fn integer(text: &str, error: ValueError) -> ValueError {
    let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
    let hexadecimal =
        digits.bytes().all(|b| b.is_ascii_hexdigit()) && digits.bytes().any(|b| b.is_ascii_digit());
    let octal = digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    match () {
        () if octal => {
            let meant = format!("{sign}{}", digits.trim_start_matches('0'));
            let help = format!("numbers that begin with 0 are octal; did you mean '{meant}'?");
            error.replacement(meant).help(help)
        }
        () if hexadecimal => {
            let meant = format!("{sign}0x{digits}");
            let help = format!("hexadecimal numbers begin with 0x; did you mean '{meant}'?");
            error.replacement(meant).help(help)
        }
        () if digits.starts_with(|c: char| c.is_ascii_digit()) => {
            error.help("write a whole number without a unit, such as 10 or 0x0a")
        }
        () => error.help("write a whole number, such as 10 or 0x0a"),
    }
}

/// Adds a suggestion for a text that is neither true nor false.
pub(super) fn boolean(text: &str, error: ValueError) -> ValueError {
    match castanet_lang::nearest(text, ["true", "false", "yes", "no"]).filter(|_| text.len() > 1) {
        Some(near) => error.did_you_mean(near),
        None => error.help("write 'true' or 'false'"),
    }
}

/// Adds a suggestion for a number whose unit is not a unit of time.
pub(super) fn time(number_and_unit: Option<(f64, &str)>, error: ValueError) -> ValueError {
    let unit = number_and_unit.and_then(|(n, unit)| {
        let small = unit.to_lowercase();
        let begins = |word: &str| small.starts_with(word);
        let unit = match () {
            () if begins("mil") || begins("msec") => "ms",
            () if begins("mic") || begins("usec") || begins("µ") || begins("μ") => "us",
            () if begins("n") => "ns",
            () if begins("s") => "s",
            () if begins("min") => "min",
            () if begins("h") => "h",
            () if begins("d") => "d",
            () => return None,
        };
        Some(format!("{n}{unit}"))
    });
    match unit {
        Some(meant) => error.did_you_mean(meant),
        None => error.help(
            "write a number with a unit: s, ms, us, ns, min, h or d, such as 5ms; seconds without a unit",
        ),
    }
}

/// Adds a suggestion for a number whose unit is not a unit of bandwidth.
pub(super) fn bandwidth(number_and_unit: Option<(f64, &str)>, error: ValueError) -> ValueError {
    let meant = number_and_unit.and_then(|(n, unit)| {
        let prefixed = unit.get(..1).filter(|p| "kKmMgG".contains(*p));
        let prefix = match prefixed {
            Some("k" | "K") => "k",
            Some("m" | "M") => "M",
            Some(_) => "G",
            None => "",
        };
        let rest = unit.get(prefix.len()..)?.trim_start_matches('i');
        let small = rest.to_ascii_lowercase();
        let bytes = small.starts_with("byte") || rest.starts_with('B') && !small.starts_with("bit");
        let known = bytes || small.starts_with('b');
        known.then(|| format!("{n}{prefix}{}", if bytes { "Bps" } else { "bps" }))
    });
    match meant {
        Some(meant) => {
            let help = format!("did you mean '{meant}'? bps counts bits, Bps bytes a second");
            error.replacement(meant).help(help)
        }
        None => error.help("write a number with a unit, such as 10Mbps for bits or 10MBps for bytes a second; k, M and G are the prefixes"),
    }
}

/// Adds a suggestion for a name that has no address of this sort, or for a malformed address. `form` explains
/// the notation.
pub(super) fn address(text: &str, cx: &ArgCx<'_>, sort: &str, form: &str, error: ValueError) -> ValueError {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().filter(|&b| b == b':').nth(1).is_none();
    if !is_name {
        return error.help(form);
    }
    let (name, suffix) = kind(text);
    if let Some(why) = cx.names.device_failure() {
        return error
            .help(format!("if '{name}' is a device: the addresses of devices are unknown, because {why}"));
    }
    if cx.names.addresses(cx.scope, name).is_some() {
        return error.help(format!("'{name}' has no {sort}; add one: AddressInfo({name} ADDRESS)"));
    }
    let suffix = suffix.map_or(String::new(), |s| format!(":{s}"));
    match cx.names.nearest_address(name) {
        Some(near) => error.did_you_mean(format!("{near}{suffix}")),
        None => {
            error.help(format!("'{name}' is neither a device here nor a defined name; write AddressInfo({name} ADDRESS) to define it"))
        }
    }
}
