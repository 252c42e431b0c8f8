// SPDX-License-Identifier: MIT OR Apache-2.0
//! The function `sprintf` of scripts.

use super::number::value;
use castanet_element::prelude::ValueError;
use std::iter::Peekable;
use std::str::Chars;

/// The maximum width and precision. Larger values are reduced to it.
const WIDEST: usize = 1024;

#[derive(Default)]
struct Form {
    zero: bool,
    alternate: bool,
    left: bool,
    space: bool,
    plus: bool,
    width: usize,
    precision: Option<usize>,
    /// The size of the integer in bytes, from `h`, `l`, `ll` or `q`; `None` if the format gives no size.
    size: Option<u32>,
}

/// Parses a width or precision given in digits.
fn digits(format: &mut Peekable<Chars<'_>>) -> usize {
    let mut n = 0usize;
    while let Some(d) = format.peek().and_then(|c| c.to_digit(10)) {
        n = n.saturating_mul(10).saturating_add(d as usize).min(WIDEST);
        format.next();
    }
    n
}

fn star<'t>(words: &mut impl Iterator<Item = &'t str>) -> Result<i64, ValueError> {
    let word = words.next().ok_or("too few arguments")?;
    value(word).ok_or_else(|| format!("'{word}' is not an integer").into())
}

fn short(n: i64) -> usize {
    usize::try_from(n.unsigned_abs()).unwrap_or(WIDEST).min(WIDEST)
}

impl Form {
    fn parse<'t>(
        format: &mut Peekable<Chars<'_>>,
        words: &mut impl Iterator<Item = &'t str>,
    ) -> Result<Form, ValueError> {
        let mut f = Form::default();
        while let Some(c) = format.peek() {
            match c {
                '0' => f.zero = true,
                '#' => f.alternate = true,
                '-' => f.left = true,
                ' ' => f.space = true,
                '+' => f.plus = true,
                _ => break,
            }
            format.next();
        }
        if format.next_if_eq(&'*').is_some() {
            let n = star(words)?;
            f.left |= n < 0;
            f.width = short(n);
        } else {
            f.width = digits(format);
        }
        if format.next_if_eq(&'.').is_some() {
            f.precision = if format.next_if_eq(&'*').is_some() {
                // A negative precision is ignored.
                Some(star(words)?).filter(|&n| n >= 0).map(short)
            } else {
                Some(digits(format))
            };
        }
        while let Some(c) = format.next_if(|c| matches!(c, 'h' | 'l' | 'q')) {
            f.size = Some(match (c, f.size) {
                ('h', Some(2)) => 1,
                ('h', _) => 2,
                _ => 8,
            });
        }
        Ok(f)
    }

    /// Formats a number from its sign, base prefix and digits.
    fn number(&self, sign: &str, prefix: &str, digits: String) -> String {
        let least = self.precision.unwrap_or(1);
        let digits = if digits == "0" && least == 0 { String::new() } else { format!("{digits:0>least$}") };
        let used = sign.len() + prefix.len();
        if self.zero && !self.left && self.precision.is_none() {
            let room = self.width.saturating_sub(used);
            return format!("{sign}{prefix}{digits:0>room$}");
        }
        self.padded(format!("{sign}{prefix}{digits}"))
    }
    fn padded(&self, text: String) -> String {
        let width = self.width;
        if self.left { format!("{text:<width$}") } else { format!("{text:>width$}") }
    }

    fn signed(&self, word: &str) -> Option<String> {
        let n: i64 = value(word).or_else(|| value::<f64>(word).map(|v| v as i64))?;
        let n = match self.size {
            Some(1) => i64::from(n as i8),
            Some(2) => i64::from(n as i16),
            _ => n,
        };
        let sign = match (n < 0, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        Some(self.number(sign, "", n.unsigned_abs().to_string()))
    }

    fn unsigned(&self, word: &str, conversion: char) -> Option<String> {
        let n: u64 = match value::<u64>(word) {
            Some(n) => n,
            None => {
                let n: i64 = value(word).or_else(|| value::<f64>(word).map(|v| v as i64))?;
                // Without a size, a negative number is treated as 32 bits if it fits, as in C.
                match (self.size, i32::try_from(n)) {
                    (None, Ok(n)) => u64::from(n.cast_unsigned()),
                    _ => n.cast_unsigned(),
                }
            }
        };
        let n = match self.size {
            Some(1) => n & 0xff,
            Some(2) => n & 0xffff,
            _ => n,
        };
        let (prefix, digits) = match conversion {
            'x' => ("0x", format!("{n:x}")),
            'X' => ("0X", format!("{n:X}")),
            'o' => ("0", format!("{n:o}")),
            _ => ("", n.to_string()),
        };
        let prefix = if self.alternate && n != 0 { prefix } else { "" };
        Some(self.number("", prefix, digits))
    }

    fn text(&self, word: &str) -> String {
        let kept: String = match self.precision {
            Some(n) => word.chars().take(n).collect(),
            None => word.to_string(),
        };
        self.padded(kept)
    }
}

/// Formats words. Conversions are `%d %i %u %x %X %o %s %c %%`, with the flags `0#- +`, width, precision, `*`, and
/// the sizes `h l ll q`. Words that are left over are ignored.
pub fn sprintf(format: &str, words: &[&str]) -> Result<String, ValueError> {
    let mut out = String::new();
    let mut words = words.iter().copied();
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let form = Form::parse(&mut rest, &mut words)?;
        let conversion = rest.next().ok_or("incomplete format")?;
        if conversion == '%' {
            out.push('%');
            continue;
        }
        if !"diuxXosc".contains(conversion) {
            return Err(format!("unknown format '%{conversion}'").into());
        }
        let word = words.next().ok_or("too few arguments")?;
        let text = match conversion {
            'd' | 'i' => form.signed(word),
            's' => Some(form.text(word)),
            'c' => Some(form.padded(word.chars().take(1).collect())),
            _ => form.unsigned(word, conversion),
        };
        out.push_str(&text.ok_or_else(|| format!("'{word}' is not an integer"))?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn forms() {
        for (format, words, out) in [
            ("%05d|%x|%s", &["42", "255", "hi"][..], "00042|ff|hi"),
            ("100%%", &[], "100%"),
            ("%5d|%-5d|%+d|% d", &["-3", "3", "3", "3"], "   -3|3    |+3| 3"),
            ("%05d|%+05d", &["-3", "3"], "-0003|+0003"),
            ("%.3d|%5.3d|%05.3d", &["7", "7", "7"], "007|  007|  007"),
            ("%.0d|%.0d", &["0", "1"], "|1"),
            ("%#x|%#X|%#o|%#x", &["255", "255", "8", "0"], "0xff|0XFF|010|0"),
            ("%#08x", &["255"], "0x0000ff"),
            ("%hd|%hhd|%hu", &["65537", "257", "-1"], "1|1|65535"),
            ("%u|%lu|%x", &["-1", "-1", "-1"], "4294967295|18446744073709551615|ffffffff"),
            ("%d|%llu", &["5000000000", "18446744073709551615"], "5000000000|18446744073709551615"),
            ("%*d|%-*d|%*d", &["4", "1", "4", "1", "-4", "1"], "   1|1   |1   "),
            ("%.*s|%.2s|%5.1s|%-3s|", &["3", "abcdef", "abc", "xyz", "a"], "abc|ab|    x|a  |"),
            ("%.*s", &["-1", "abc"], "abc"),
            ("%c|%qd|%ld", &["xyz", "1", "2"], "x|1|2"),
            ("%d", &["2.9"], "2"),
            ("é%s", &["ö", "left over"], "éö"),
        ] {
            assert_eq!(sprintf(format, words).unwrap(), out, "{format}");
        }
    }

    #[test]
    fn errors_and_bounds() {
        for (format, words) in
            [("%", &["1"][..]), ("%d", &[]), ("%d", &["x"]), ("%z", &["1"]), ("%*d", &["x", "1"])]
        {
            assert!(sprintf(format, words).is_err(), "{format}");
        }
        assert_eq!(sprintf("%9999999999999999999d", &["1"]).unwrap().len(), WIDEST);
        assert_eq!(sprintf("%.*d", &["9223372036854775807", "1"]).unwrap().len(), WIDEST);
        assert_eq!(sprintf("%-*s", &["-9223372036854775808", "1"]).unwrap().len(), WIDEST);
    }
}
