// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of scripts that depend only on their arguments.

use super::number::{Number, value};
use super::sprintf::sprintf;
use castanet_element::prelude::ValueError;
use castanet_lang::args as text;
use std::cmp::Ordering;

/// Splits an argument text into words. Quotes stay in the words.
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

fn exactly<const N: usize>(arguments: &str) -> Result<[&str; N], ValueError> {
    <[&str; N]>::try_from(words(arguments)).map_err(|_| match N {
        1 => "expected one argument".into(),
        n => format!("expected {n} arguments").into(),
    })
}

/// Combines all numbers with `f`, from the first to the last; `None` if there are no numbers.
fn fold(arguments: &str, f: impl Fn(Number, Number) -> Number) -> Result<Option<Number>, ValueError> {
    let mut all = None;
    for w in words(arguments) {
        let n = number(w).map_err(|_| "expected list of numbers")?;
        all = Some(all.map_or(n, |a| f(a, n)));
    }
    Ok(all)
}

fn some(n: Option<Number>) -> Result<Number, ValueError> {
    n.ok_or_else(|| "expected list of numbers".into())
}

fn plus(a: Number, b: Number) -> Number {
    a.combine(b, i64::checked_add, |a, b| a + b)
}

pub fn add(numbers: &str) -> Result<Number, ValueError> {
    Ok(fold(numbers, plus)?.unwrap_or(Number::Int(0)))
}

pub fn sub(numbers: &str) -> Result<Number, ValueError> {
    some(fold(numbers, |a, b| a.combine(b, i64::checked_sub, |a, b| a - b))?)
}

pub fn mul(numbers: &str) -> Result<Number, ValueError> {
    Ok(fold(numbers, |a, b| a.combine(b, i64::checked_mul, |a, b| a * b))?.unwrap_or(Number::Int(1)))
}

pub fn div(numbers: &str) -> Result<Number, ValueError> {
    some(fold(numbers, |a, b| Number::Real(a.real() / b.real()))?)
}

/// Returns the smallest of the numbers if `first` is `Less`, and the greatest if `first` is `Greater`.
pub fn extreme(numbers: &str, first: Ordering) -> Result<Number, ValueError> {
    some(fold(numbers, |a, b| if a.compare(b) == Some(first.reverse()) { b } else { a })?)
}

pub fn idiv(integers: &str) -> Result<Number, ValueError> {
    let all = words(integers);
    let [first, divisors @ ..] = all.as_slice() else { return some(None) };
    divisors.iter().try_fold(Number::Int(integer(first)?), |a, b| {
        // The only quotient that does not fit 64 bits, -2^63 / -1, becomes a real number.
        let b = Number::Int(divisor(b)?);
        Ok(a.combine(b, i64::checked_div, |a, b| (a / b).trunc()))
    })
}

pub fn modulo(integers: &str) -> Result<Number, ValueError> {
    let [a, b] = exactly(integers).map_err(|_| ValueError::from("expected two numbers"))?;
    let (a, b) = (integer(a)?, divisor(b)?);
    Ok(Number::Int(a.wrapping_rem(b)))
}

pub fn rem(numbers: &str) -> Result<Number, ValueError> {
    let [a, b] = exactly(numbers)?;
    let (a, b) = (number(a)?, number(b)?);
    if b.real() == 0.0 {
        return Err("division by zero".into());
    }
    Ok(a.combine(b, |a, b| Some(a.wrapping_rem(b)), |a, b| a % b))
}

pub fn neg(word: &str) -> Result<Number, ValueError> {
    let [a] = exactly(word)?;
    Ok(Number::Int(0).combine(number(a)?, i64::checked_sub, |_, a| -a))
}

pub fn abs(word: &str) -> Result<Number, ValueError> {
    let [a] = exactly(word)?;
    let a = number(a)?;
    Ok(a.combine(a, |a, _| a.checked_abs(), |a, _| a.abs()))
}

pub fn avg(numbers: &str) -> Result<Number, ValueError> {
    let sum = some(fold(numbers, plus)?)?;
    Ok(Number::Real(sum.real() / words(numbers).len() as f64))
}

/// Rounds a number with `f`. Numbers beyond 64 bits stay real.
pub fn whole(word: &str, f: impl Fn(f64) -> f64) -> Result<Number, ValueError> {
    let [a] = exactly(word)?;
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

pub fn popcount(word: &str) -> Result<u32, ValueError> {
    let [a] = exactly(word)?;
    Ok(integer(a)?.count_ones())
}

/// Whether two values compare as `f` says. If both are numbers, they are compared as numbers. If one of
/// them is NaN, `f` gets `None`.
pub fn compare(arguments: &str, f: impl Fn(Option<Ordering>) -> bool) -> Result<bool, ValueError> {
    let [a, b] = exactly(arguments)?;
    let (a, b) = (text::unquote(a), text::unquote(b));
    Ok(f(match (Number::parse(&a), Number::parse(&b)) {
        (Some(a), Some(b)) => a.compare(b),
        _ => Some(a.cmp(&b)),
    }))
}

/// Whether all words are true.
pub fn all(arguments: &str) -> Result<bool, ValueError> {
    Ok(truths(arguments)?.iter().all(|&b| b))
}

/// Whether at least one word is true.
pub fn any(arguments: &str) -> Result<bool, ValueError> {
    Ok(truths(arguments)?.iter().any(|&b| b))
}

fn truths(arguments: &str) -> Result<Vec<bool>, ValueError> {
    words(arguments).into_iter().map(truth).collect()
}

pub fn not(word: &str) -> Result<bool, ValueError> {
    let [a] = exactly(word)?;
    Ok(!truth(a)?)
}

/// Returns the second word if the first is true, else the third, which may be missing.
pub fn choose(arguments: &str) -> Result<&str, ValueError> {
    let (condition, yes, no) = match *words(arguments) {
        [condition, yes] => (condition, yes, ""),
        [condition, yes, no] => (condition, yes, no),
        _ => return Err("expected a condition and one or two values".into()),
    };
    Ok(if truth(condition)? { yes } else { no })
}

/// Whether the first word is among the others.
pub fn contains(arguments: &str) -> Result<bool, ValueError> {
    let all = words(arguments);
    let (x, list) = all.split_first().ok_or("expected a word and a list")?;
    let x = text::unquote(x);
    Ok(list.iter().any(|w| text::unquote(w) == x))
}

/// Formats words as `sprintf` does: the first word is the format.
pub fn format(arguments: &str) -> Result<String, ValueError> {
    let all: Vec<String> = words(arguments).into_iter().map(text::unquote).collect();
    let (format, rest) = all.split_first().ok_or("expected a format")?;
    sprintf(format, &rest.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Converts a 16-bit number to network byte order, or back.
pub fn swap16(word: &str) -> Result<u16, ValueError> {
    let [a] = exactly(word)?;
    let n: u16 = value(&text::unquote(a)).ok_or_else(|| format!("'{a}' is not a 16-bit number"))?;
    Ok(n.to_be())
}

/// Converts a 32-bit number to network byte order, or back.
pub fn swap32(word: &str) -> Result<u32, ValueError> {
    let [a] = exactly(word)?;
    let n: u32 = value(&text::unquote(a)).ok_or_else(|| format!("'{a}' is not a 32-bit number"))?;
    Ok(n.to_be())
}
