// SPDX-License-Identifier: MIT OR Apache-2.0
//! Substitution in the text of instructions: `$x`, `${x}`, `${x-default}`, `${x[N]}`, `${x[$n]}`, `$?`, `$$`, `$#`, `$(call)`.

use std::ops::Range;

/// The maximum length of a text after substitution, in bytes. A variable that doubles its length in a loop must not
/// exhaust the memory.
pub const LONGEST: usize = 1 << 20;
/// How deep `$(…)` may be nested.
const DEEPEST: usize = 32;
/// The maximum number of unclosed `$(` and `${` in a text. Each of them costs a search through the rest of the text, so
/// after this many, `$(` and `${` are taken literally.
const UNCLOSED: usize = 32;

/// Supplies the values that are substituted in a text.
pub trait Values {
    /// The value of a variable; `None` leaves the text as it is.
    fn variable(&mut self, name: &str) -> Option<String>;
    /// Called for a variable that has neither a value nor a default.
    fn undefined(&mut self, name: &str);
    /// The value of a handler call; `None` leaves the text as it is.
    fn call(&mut self, text: &str) -> Option<String>;
}

/// The text would become longer than [`LONGEST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Substitutes variables and calls in a text. Inside double quotes, values are escaped with backslashes, so that
/// unquoting restores them. Inside single quotes, nothing is substituted.
pub fn expand(text: &str, values: &mut dyn Values) -> Result<String, TooLong> {
    nested(text, values, 0)
}

fn byte(text: &str, at: usize) -> u8 {
    text.as_bytes().get(at).copied().unwrap_or(0)
}

/// Whether a byte is allowed in the name of a variable.
pub fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

fn name_end(text: &str, mut at: usize) -> usize {
    while is_name(byte(text, at)) {
        at += 1;
    }
    at
}

/// Returns the end of a quoted piece that starts at `at`, after the closing quote if there is one.
fn quoted_end(text: &str, at: usize) -> usize {
    let quote = byte(text, at);
    let mut end = at + 1;
    while end < text.len() {
        match byte(text, end) {
            b'\\' if quote == b'"' => end += 1,
            b if b == quote => return end + 1,
            _ => {}
        }
        end += 1;
    }
    text.len()
}

/// Returns the position of the `)` that closes the `(` just before `at`.
fn close(text: &str, mut at: usize) -> Option<usize> {
    let mut depth = 1usize;
    while at < text.len() {
        at = match byte(text, at) {
            b'(' => {
                depth += 1;
                at + 1
            }
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
                at + 1
            }
            b'"' | b'\'' => quoted_end(text, at),
            _ => at + 1,
        };
    }
    None
}

/// The meaning of a `$`.
enum Use<'t> {
    Variable(&'t str),
    Default(&'t str, &'t str),
    /// One word of a variable's value, as in `${x[N]}` or `${x[$n]}`. The fields are the name of the variable, `x`, and
    /// the text in brackets, `N` or `$n`.
    Word(&'t str, &'t str),
    Call(&'t str),
    Text,
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_whole_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_name)
}

/// Returns the meaning of the `$` at `at`, and the position after the text that belongs to it.
fn usage<'t>(text: &'t str, at: usize, unclosed: &mut usize) -> (Use<'t>, usize) {
    let piece = |r: Range<usize>| text.get(r).unwrap_or("");
    match byte(text, at + 1) {
        b'?' | b'$' | b'#' => (Use::Variable(piece(at + 1..at + 2)), at + 2),
        b'(' if *unclosed < UNCLOSED => match close(text, at + 2) {
            Some(end) => (Use::Call(piece(at + 2..end)), end + 1),
            None => {
                *unclosed += 1;
                (Use::Text, at + 2)
            }
        },
        b'{' if *unclosed < UNCLOSED => {
            let Some(end) = piece(at + 2..text.len()).find('}').map(|n| at + 2 + n) else {
                *unclosed += 1;
                return (Use::Text, at + 2);
            };
            let name = name_end(text, at + 2);
            let (variable, rest) = (piece(at + 2..name), piece(name..end));
            let index = rest.strip_prefix('[').and_then(|r| r.strip_suffix(']'));
            let index = index.filter(|n| is_number(n) || n.strip_prefix('$').is_some_and(is_whole_name));
            let what = match (variable, rest, index) {
                ("", ..) => return (Use::Text, at + 2),
                (_, "", _) => Use::Variable(variable),
                (_, _, Some(n)) => Use::Word(variable, n),
                _ => match rest.strip_prefix('-') {
                    Some(default) => Use::Default(variable, default),
                    None => Use::Text,
                },
            };
            (what, end + 1)
        }
        b if is_name(b) => {
            let end = name_end(text, at + 1);
            (Use::Variable(piece(at + 1..end)), end)
        }
        _ => (Use::Text, at + 1),
    }
}

/// Appends a value inside double quotes, escaped so that unquoting restores it.
fn escape(value: &str, out: &mut String) {
    for c in value.chars() {
        if matches!(c, '\\' | '"' | '$') {
            out.push('\\');
        }
        out.push(c);
    }
}

/// Returns the value of a variable that is used without a default. If the variable is not defined, reports it.
fn defined(name: &str, values: &mut dyn Values) -> Option<String> {
    let value = values.variable(name);
    if value.is_none() {
        values.undefined(name);
    }
    value
}

fn nested(text: &str, values: &mut dyn Values, depth: usize) -> Result<String, TooLong> {
    if !text.contains('$') {
        return Ok(text.to_string());
    }
    let (mut out, mut kept, mut at, mut quoted, mut unclosed) = (String::new(), 0, 0, false, 0);
    while at < text.len() {
        at = match byte(text, at) {
            b'\\' if quoted => at + 2,
            b'\'' if !quoted => quoted_end(text, at),
            b'"' => {
                quoted = !quoted;
                at + 1
            }
            b'$' => {
                let (what, end) = usage(text, at, &mut unclosed);
                let value = match what {
                    Use::Text => None,
                    Use::Variable(name) => defined(name, values),
                    Use::Default(name, default) => {
                        values.variable(name).or_else(|| Some(default.to_string()))
                    }
                    Use::Word(name, number) => {
                        let number = match number.strip_prefix('$') {
                            Some(variable) => defined(variable, values),
                            None => Some(number.to_string()),
                        };
                        let value =
                            number.and_then(|n| Some((n.trim().parse().ok()?, defined(name, values)?)));
                        value.map(|(n, v)| v.split_ascii_whitespace().nth(n).unwrap_or("").to_string())
                    }
                    Use::Call(_) if depth >= DEEPEST => None,
                    Use::Call(inner) => {
                        let inner = nested(inner, values, depth + 1)?;
                        values.call(inner.trim())
                    }
                };
                if let Some(value) = value {
                    out.push_str(text.get(kept..at).unwrap_or(""));
                    kept = end;
                    if out.len().saturating_add(value.len()) > LONGEST {
                        return Err(TooLong);
                    }
                    if quoted { escape(&value, &mut out) } else { out.push_str(&value) }
                }
                end
            }
            _ => at + 1,
        };
    }
    out.push_str(text.get(kept..).unwrap_or(""));
    if out.len() > LONGEST { Err(TooLong) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    struct Table(Vec<String>);

    impl Values for Table {
        fn variable(&mut self, name: &str) -> Option<String> {
            let known =
                [("x", "1"), ("words", "a  b c"), ("q", "a\"b$c\\"), ("?", "0"), ("#", "2"), ("$", "77")];
            known.iter().find(|k| k.0 == name).map(|k| k.1.to_string())
        }
        fn undefined(&mut self, name: &str) {
            assert!(self.variable(name).is_none(), "{name}");
        }
        fn call(&mut self, text: &str) -> Option<String> {
            self.0.push(text.to_string());
            text.strip_prefix("echo").map(|t| t.trim().to_string())
        }
    }

    #[test]
    fn forms() {
        for (text, out) in [
            ("", ""),
            ("no variable", "no variable"),
            ("$x", "1"),
            ("$x$x.$x", "11.1"),
            ("$y", "$y"),
            ("$xy ${x}y", "$xy 1y"),
            ("${y-no} ${x-no} ${y-}|", "no 1 |"),
            ("${words[1]} ${words[9]}|", "b |"),
            ("${words[$x]} ${words[$words]} ${words[$y]}", "b ${words[$words]} ${words[$y]}"),
            (
                "${words[]} ${words[$]} ${words[$x+1]} ${words[-1]}",
                "${words[]} ${words[$]} ${words[$x+1]} ${words[-1]}",
            ),
            ("${x", "${x"),
            ("${}", "${}"),
            ("${x+1}", "${x+1}"),
            ("$? $$ $#", "0 77 2"),
            ("$", "$"),
            ("a$ b", "a$ b"),
            ("'$x' \"$x\"", "'$x' \"1\""),
            ("'$x", "'$x"),
            ("$q \"$q\"", "a\"b$c\\ \"a\\\"b\\$c\\\\\""),
            ("\"\\$x\"", "\"\\$x\""),
            ("$(echo a)", "a"),
            ("$(echo $x $(echo (b)))", "1 (b)"),
            ("\"$(echo \"a)b\")\"", "\"\\\"a)b\\\"\""),
            ("$(nope)", "$(nope)"),
            ("$(nope $x)", "$(nope $x)"),
            ("$(echo", "$(echo"),
            ("$($(echo echo) z)", "z"),
            ("é$x✓\\é$x", "é1✓\\é1"),
        ] {
            assert_eq!(expand(text, &mut Table(Vec::new())).as_deref(), Ok(out), "{text}");
        }
    }

    #[test]
    fn nesting_and_length_are_bounded() {
        let deep = format!("{}x{}", "$(echo ".repeat(10_000), ")".repeat(10_000));
        let mut t = Table(Vec::new());
        let out = expand(&deep, &mut t).unwrap();
        assert_eq!(t.0.len(), DEEPEST);
        assert!(out.starts_with("$(echo $(echo"));
        let open = "$(".repeat(100_000) + &"${".repeat(100_000);
        assert_eq!(expand(&open, &mut t).unwrap(), open);
        let long = "$x ".repeat(LONGEST / 2 + 1);
        assert_eq!(expand(&long, &mut t), Err(TooLong));
    }

    #[test]
    fn garbage_never_panics() {
        let parts = ["$", "(", ")", "{", "}", "\"", "'", "\\", "x", "é", " ", "-", "[0]", "?", "echo "];
        let mut seed = 12_345u64;
        for _ in 0..5_000 {
            let mut text = String::new();
            for _ in 0..12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(parts[(seed >> 33) as usize % parts.len()]);
            }
            let _ = expand(&text, &mut Table(Vec::new()));
        }
    }
}
