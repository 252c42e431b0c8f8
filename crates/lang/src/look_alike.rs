// SPDX-License-Identifier: MIT OR Apache-2.0
//! Characters that editors and web pages substitute for ASCII ones, and invisible characters.

use crate::text::{Unit, unit};
use std::ops::Range;

/// The group of a character. It decides in which places the character is probably a mistake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LookAlike {
    Quote,
    Dash,
    Invisible,
}

/// Describes a character: its kind, its name, and what to do about it.
fn known(c: char) -> Option<(LookAlike, &'static str, &'static str)> {
    use LookAlike::{Dash, Invisible, Quote};
    let dash = "write '-' for it, and '->' to connect elements";
    Some(match c {
        '\u{201c}' | '\u{201d}' | '\u{201e}' => (Quote, "a typographic quote", "write '\"' for it"),
        '\u{2018}' | '\u{2019}' | '\u{201a}' => (Quote, "a typographic quote", "write '\"' or \"'\" for it"),
        '\u{2013}' => (Dash, "an en dash", dash),
        '\u{2014}' => (Dash, "an em dash", dash),
        '\u{2212}' => (Dash, "a minus sign of mathematics", dash),
        '\u{a0}' | '\u{202f}' => (Invisible, "a no-break space", "write a space for it"),
        '\u{200b}' => (Invisible, "a zero-width space", "remove it"),
        '\u{200c}' => (Invisible, "a zero-width non-joiner", "remove it"),
        '\u{200d}' => (Invisible, "a zero-width joiner", "remove it"),
        '\u{2060}' => (Invisible, "a word joiner", "remove it"),
        '\u{200e}' | '\u{200f}' => (Invisible, "a direction mark", "remove it"),
        '\u{ad}' => (Invisible, "a soft hyphen", "remove it"),
        '\u{feff}' => (Invisible, "a byte order mark", "remove it"),
        _ => return None,
    })
}

/// Returns help for text that starts with a look-alike or invisible character; `None` for any other text.
pub(crate) fn help(text: &str) -> Option<String> {
    let c = text.chars().next()?;
    let (_, name, mend) = known(c)?;
    Some(format!("the character U+{:04X} is {name}: {mend}", u32::from(c)))
}

/// Finds look-alike and invisible characters where they are probably a mistake: a quote at the start of a word, a dash
/// at the start of a word and before a digit, an invisible character in any position. Quoted strings and comments are
/// not searched. Returns the range of each character, and help on it.
pub fn in_arguments(config: &str) -> Vec<(Range<usize>, String)> {
    let bytes = config.as_bytes();
    let (mut found, mut at, mut starts_word) = (Vec::new(), 0, true);
    while at < bytes.len() {
        let (what, mut end) = unit(bytes, at);
        let rest = config.get(at..).unwrap_or("");
        if let (Unit::Byte(_), Some(c)) = (what, rest.chars().next()) {
            end = at + c.len_utf8();
            let before_digit = config.get(end..).is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()));
            let wrong = known(c).is_some_and(|(kind, ..)| match kind {
                LookAlike::Quote => starts_word,
                LookAlike::Dash => starts_word && before_digit,
                LookAlike::Invisible => true,
            });
            found.extend(help(rest).filter(|_| wrong).map(|help| (at..end, help)));
        }
        starts_word = matches!(what, Unit::Blank | Unit::Comment | Unit::Byte(b',' | b'('));
        at = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_they_are_probably_a_mistake() {
        for (config, want) in [
            ("\u{201c}a b\u{201d}", &["\u{201c}"][..]),
            ("5, \u{2018}x\u{2019}", &["\u{2018}"]),
            ("LIMIT \u{2212}5", &["\u{2212}"]),
            ("LIMIT \u{2013}1, a \u{2013} b", &["\u{2013}"]),
            ("LIMIT\u{a0}5", &["\u{a0}"]),
            ("a\u{200b}b", &["\u{200b}"]),
            ("don\u{2019}t, \"\u{201c}x\u{201d}\u{a0}\", naïve // \u{a0}", &[]),
        ] {
            let found: Vec<_> = in_arguments(config).into_iter().filter_map(|(r, _)| config.get(r)).collect();
            assert_eq!(found, want, "{config}");
        }
        assert_eq!(
            help("\u{201c}x").as_deref(),
            Some("the character U+201C is a typographic quote: write '\"' for it")
        );
    }
}
