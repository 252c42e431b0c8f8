// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of scripts that depend only on their arguments.

use super::number::{Number, value};
use super::sprintf::sprintf;
use castanet_element::prelude::ValueError;
use castanet_lang::args as text;
use std::cmp::Ordering;

/// Splits an argument text into words, as they are written.
pub fn words(arguments: &str) -> Vec<&str> {
    text::words(arguments).into_iter().filter_map(|r| arguments.get(r)).collect()
}

/// Splits a text into its first word and the rest.
pub fn first_word(arguments: &str) -> (&str, &str) {
    match text::words(arguments).first() {
        Some(r) => (arguments.get(r.clone()).unwrap_or(""), arguments.get(r.end..).unwrap_or("").trim()),
        None => ("", ""),
    }
}

/// Parses a truth value.
pub fn truth(word: &str) -> Result<bool, ValueError> {
    value(&text::unquote(word)).ok_or_else(|| format!("'{word}' is neither true nor false").into())
}

fn number(word: &str) -> Result<Number, ValueError> {
    Number::parse(&text::unquote(word)).ok_or_else(|| format!("'{word}' is not a number").into())
}

fn integer(word: &str) -> Result<i64, ValueError> {
    value(&text::unquote(word)).ok_or_else(|| format!("'{word}' is not an integer").into())
}

fn divisor(word: &str) -> Result<i64, ValueError> {
    match integer(word)? {
        0 => Err("division by zero".into()),
        n => Ok(n),
    }
}

fn exactly<'t, const N: usize>(words: &[&'t str]) -> Result<[&'t str; N], ValueError> {
    <[&str; N]>::try_from(words).map_err(|_| match N {
        1 => "expected one argument".into(),
        n => format!("expected {n} arguments").into(),
    })
}

/// Combines all numbers with `f`, from the first to the last; `None` if there are no numbers.
fn fold(words: &[&str], f: impl Fn(Number, Number) -> Number) -> Result<Option<Number>, ValueError> {
    let mut all = None;
    for w in words {
        let n = number(w).map_err(|_| "expected list of numbers")?;
        all = Some(all.map_or(n, |a| f(a, n)));
    }
    Ok(all)
}

fn some(n: Option<Number>) -> Result<Number, ValueError> {
    n.ok_or_else(|| "expected list of numbers".into())
}

fn arithmetic(name: &str, w: &[&str]) -> Result<Number, ValueError> {
    let pick =
        |a: Number, b: Number, first: Ordering| if a.compare(b) == Some(first.reverse()) { b } else { a };
    match name {
        "add" => Ok(fold(w, |a, b| a.combine(b, i64::checked_add, |a, b| a + b))?.unwrap_or(Number::Int(0))),
        "sub" => some(fold(w, |a, b| a.combine(b, i64::checked_sub, |a, b| a - b))?),
        "mul" => Ok(fold(w, |a, b| a.combine(b, i64::checked_mul, |a, b| a * b))?.unwrap_or(Number::Int(1))),
        "div" => some(fold(w, |a, b| Number::Real(a.real() / b.real()))?),
        "min" => some(fold(w, |a, b| pick(a, b, Ordering::Less))?),
        "max" => some(fold(w, |a, b| pick(a, b, Ordering::Greater))?),
        "idiv" => {
            let [first, divisors @ ..] = w else { return some(None) };
            divisors.iter().try_fold(Number::Int(integer(first)?), |a, b| {
                // The only quotient that does not fit 64 bits, -2^63 / -1, becomes a real number.
                let b = Number::Int(divisor(b)?);
                Ok(a.combine(b, i64::checked_div, |a, b| (a / b).trunc()))
            })
        }
        "mod" => {
            let [a, b] = exactly(w).map_err(|_| ValueError::from("expected two numbers"))?;
            let (a, b) = (integer(a)?, divisor(b)?);
            Ok(Number::Int(a.wrapping_rem(b)))
        }
        "rem" => {
            let [a, b] = exactly(w)?;
            let (a, b) = (number(a)?, number(b)?);
            if b.real() == 0.0 {
                return Err("division by zero".into());
            }
            Ok(a.combine(b, |a, b| Some(a.wrapping_rem(b)), |a, b| a % b))
        }
        "neg" => {
            let [a] = exactly(w)?;
            Ok(Number::Int(0).combine(number(a)?, i64::checked_sub, |_, a| -a))
        }
        "avg" => {
            let sum = some(fold(w, |a, b| a.combine(b, i64::checked_add, |a, b| a + b))?)?;
            Ok(Number::Real(sum.real() / w.len() as f64))
        }
        "ceil" => whole(w, f64::ceil),
        "floor" => whole(w, f64::floor),
        "round" => whole(w, f64::round),
        _ => {
            let [a] = exactly(w)?;
            let a = number(a)?;
            Ok(a.combine(a, |a, _| a.checked_abs(), |a, _| a.abs()))
        }
    }
}

/// Rounds a number with `f`. Numbers beyond 64 bits stay real.
fn whole(w: &[&str], f: impl Fn(f64) -> f64) -> Result<Number, ValueError> {
    let [a] = exactly(w)?;
    Ok(match number(a)? {
        Number::Int(n) => Number::Int(n),
        Number::Real(v) => {
            let rounded = f(v);
            // Every rounded number below this bound fits in an `i64`.
            let fits = rounded.abs() < 9.0e18;
            if fits { Number::Int(rounded as i64) } else { Number::Real(rounded) }
        }
    })
}

fn comparison(name: &str, w: &[&str]) -> Result<bool, ValueError> {
    let [a, b] = exactly(w)?;
    let (a, b) = (text::unquote(a), text::unquote(b));
    let order = match (Number::parse(&a), Number::parse(&b)) {
        (Some(a), Some(b)) => a.compare(b),
        _ => Some(a.cmp(&b)),
    };
    Ok(match name {
        "eq" => order == Some(Ordering::Equal),
        "ne" => order != Some(Ordering::Equal),
        "lt" => order == Some(Ordering::Less),
        "le" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        "gt" => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    })
}

fn logic(name: &str, w: &[&str]) -> Result<bool, ValueError> {
    let all: Vec<bool> = w.iter().map(|w| truth(w)).collect::<Result<_, _>>()?;
    Ok(match name {
        "and" => all.iter().all(|&b| b),
        "nand" => !all.iter().all(|&b| b),
        "or" => all.iter().any(|&b| b),
        _ => !all.iter().any(|&b| b),
    })
}

/// Calls a function by name; `None` if there is no such function.
pub fn call(name: &str, arguments: &str) -> Option<Result<String, ValueError>> {
    let w = words(arguments);
    let is = |b: Result<bool, ValueError>| b.map(|b| b.to_string());
    Some(match name {
        "add" | "sub" | "mul" | "div" | "idiv" | "mod" | "rem" | "neg" | "abs" | "min" | "max" | "avg"
        | "ceil" | "floor" | "round" => arithmetic(name, &w).map(|n| n.to_string()),
        "eq" | "ne" | "lt" | "le" | "gt" | "ge" => is(comparison(name, &w)),
        "and" | "or" | "nand" | "nor" => is(logic(name, &w)),
        "not" => is(exactly(&w).and_then(|[a]| truth(a)).map(|b| !b)),
        "if" => match *w {
            [condition, yes] => truth(condition).map(|c| if c { yes } else { "" }.to_string()),
            [condition, yes, no] => truth(condition).map(|c| if c { yes } else { no }.to_string()),
            _ => Err("expected a condition and one or two values".into()),
        },
        "in" => match w.split_first() {
            Some((x, list)) => {
                let x = text::unquote(x);
                Ok(list.iter().any(|w| text::unquote(w) == x).to_string())
            }
            None => Err("expected a word and a list".into()),
        },
        "first" => Ok(w.first().map_or(String::new(), ToString::to_string)),
        "length" => Ok(castanet_lang::bytes::length(arguments).to_string()),
        "count" => Ok(w.len().to_string()),
        "popcount" => exactly(&w).and_then(|[a]| Ok(integer(a)?.count_ones().to_string())),
        "unquote" => Ok(text::unquote(arguments)),
        "sprintf" => match w.split_first() {
            Some((format, rest)) => {
                let rest: Vec<String> = rest.iter().map(|w| text::unquote(w)).collect();
                sprintf(&text::unquote(format), &rest.iter().map(String::as_str).collect::<Vec<_>>())
            }
            None => Err("expected a format".into()),
        },
        "htons" | "ntohs" => exactly(&w).and_then(|[a]| {
            let n: u16 = value(&text::unquote(a)).ok_or_else(|| format!("'{a}' is not a 16-bit number"))?;
            Ok(n.to_be().to_string())
        }),
        "htonl" | "ntohl" => exactly(&w).and_then(|[a]| {
            let n: u32 = value(&text::unquote(a)).ok_or_else(|| format!("'{a}' is not a 32-bit number"))?;
            Ok(n.to_be().to_string())
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn f(call_text: &str) -> Result<String, ValueError> {
        let (name, arguments) = first_word(call_text);
        call(name, arguments).unwrap()
    }

    #[test]
    fn values() {
        for (text, out) in [
            ("add", "0"),
            ("add 1 2 3", "6"),
            ("add 1 2.5", "3.5"),
            ("add 9223372036854775807 1", "9.22337203685e+18"),
            ("sub 5", "5"),
            ("sub 5 2 1", "2"),
            ("mul", "1"),
            ("mul 1.5 2", "3"),
            ("mul 0x10 010", "128"),
            ("div 6 2", "3"),
            ("div 7 2", "3.5"),
            ("div 1 0", "inf"),
            ("idiv 7 2", "3"),
            ("idiv -7 2", "-3"),
            ("idiv 60", "60"),
            ("idiv 60 2 5", "6"),
            ("idiv 7 2 2", "1"),
            ("idiv -9223372036854775808 -1 2", "4.61168601843e+18"),
            ("idiv -9223372036854775808 -1", "9.22337203685e+18"),
            ("mod -7 3", "-1"),
            ("mod -9223372036854775808 -1", "0"),
            ("rem 7 3", "1"),
            ("rem 7.5 2", "1.5"),
            ("neg 3", "-3"),
            ("avg 1 2", "1.5"),
            ("avg 4", "4"),
            ("ceil 1.2", "2"),
            ("ceil -1.2", "-1"),
            ("floor 1.8", "1"),
            ("floor -1.2", "-2"),
            ("round 2.5", "3"),
            ("round -2.5", "-3"),
            ("round 1e300", "1e+300"),
            ("floor 9223372036854775807", "9223372036854775807"),
            ("count", "0"),
            ("count a \"b c\" d", "3"),
            ("popcount 255", "8"),
            ("popcount -1", "64"),
            ("neg -9223372036854775808", "9.22337203685e+18"),
            ("neg 1.5", "-1.5"),
            ("abs -3", "3"),
            ("abs -3.25", "3.25"),
            ("min 3 1 2", "1"),
            ("max 3 1.5 4.0", "4"),
            ("eq 1 1.0", "true"),
            ("eq 1 01", "true"),
            ("eq a a", "true"),
            ("eq \"a b\" 'a b'", "true"),
            ("eq 9007199254740993 9007199254740992", "false"),
            ("ne a b", "true"),
            ("lt 10 9", "false"),
            ("lt 10 9x", "true"),
            ("le 1 1", "true"),
            ("gt b a", "true"),
            ("ge 1 2", "false"),
            ("and", "true"),
            ("and true yes 1", "true"),
            ("and true false", "false"),
            ("or false no", "false"),
            ("or", "false"),
            ("nand true true", "false"),
            ("nand true false", "true"),
            ("nor false false", "true"),
            ("nor false true", "false"),
            ("not false", "true"),
            ("if true a b", "a"),
            ("if false a b", "b"),
            ("if false a", ""),
            ("in a b a", "true"),
            ("in a b \"a\"", "true"),
            ("in a", "false"),
            ("first \"a b c\"", "\"a b c\""),
            ("first a b", "a"),
            ("first", ""),
            ("length a b", "3"),
            ("length", "0"),
            ("unquote \"a\\tb\"", "a\tb"),
            ("sprintf \"%05d|%x|%s\" 42 255 hi", "00042|ff|hi"),
            ("htons 1", if cfg!(target_endian = "little") { "256" } else { "1" }),
            ("ntohl 1", if cfg!(target_endian = "little") { "16777216" } else { "1" }),
        ] {
            assert_eq!(f(text).as_deref(), Ok(out), "{text}");
        }
        assert!(call("nope", "").is_none());
    }

    #[test]
    fn errors() {
        for text in [
            "add x",
            "sub",
            "div",
            "min",
            "idiv",
            "idiv 4 2 0",
            "idiv 1 0",
            "idiv 1.5 1",
            "mod 1 0",
            "mod 1 2 3",
            "rem 1 0",
            "neg",
            "neg 1 2",
            "abs x",
            "eq 1",
            "lt 1 2 3",
            "and perhaps",
            "not",
            "not 2",
            "if true",
            "if x a b",
            "in",
            "sprintf",
            "sprintf %d",
            "htons 65536",
            "htonl -1",
            "htons",
        ] {
            assert!(f(text).is_err(), "{text}");
        }
    }
}
