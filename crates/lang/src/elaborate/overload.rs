// SPDX-License-Identifier: MIT OR Apache-2.0
//! Overload resolution: selects the alternative of a compound class that fits a use.

use super::body::{Body, Class, Definition, Formal};
use crate::args;
use std::collections::HashMap;
use std::ops::Range;

/// A use of a compound class.
pub(super) struct Use<'u> {
    pub args: &'u [String],
    pub inputs: usize,
    pub outputs: usize,
}

/// The result of overload resolution.
pub(super) enum Choice<'c, 'a> {
    /// A class defined outside the configuration.
    Plain(&'a str),
    /// The alternative that fits, and the values of its parameters.
    Body { class: &'c Definition<'a>, body: &'c Body<'a>, args: Vec<(&'a str, String)> },
    /// The class has only one alternative. Its parameters fit the use, but its port counts do not.
    Ports { class: &'c Definition<'a>, body: &'c Body<'a>, args: Vec<(&'a str, String)> },
    /// No alternative fits. The variant holds the alternatives that were tried.
    None(Vec<(&'c Definition<'a>, &'c Body<'a>)>),
}

/// Chooses the first alternative that fits. If a class extends another one by `...`, the alternatives of the
/// other class come after its own.
pub(super) fn choose<'c, 'a>(classes: &'c [Definition<'a>], class: usize, of: &Use<'_>) -> Choice<'c, 'a> {
    let mut candidates = Vec::new();
    let mut next = classes.get(class);
    while let Some(class) = next {
        for body in &class.alternatives {
            if body.inputs == of.inputs
                && body.outputs == of.outputs
                && let Some(args) = assign(&body.formals, of.args)
            {
                return Choice::Body { class, body, args };
            }
            candidates.push((class, body));
        }
        // A class can only extend an earlier class, so the loop ends.
        next = match class.extends {
            Some(Class::Defined(i)) => classes.get(i),
            Some(Class::Plain(name)) => return Choice::Plain(name),
            None => None,
        };
    }
    if let [(class, body)] = candidates.as_slice()
        && let Some(args) = assign(&body.formals, of.args)
    {
        return Choice::Ports { class, body, args };
    }
    Choice::None(candidates)
}

/// Binds arguments to parameters: keywords first, then positional parameters, then `__REST__`. Returns `None`
/// if the arguments do not fit the parameters.
fn assign<'a>(formals: &[Formal<'a>], given: &[String]) -> Option<Vec<(&'a str, String)>> {
    let mut free: Vec<Option<&String>> = given.iter().map(Some).collect();
    // For each keyword, the arguments with this keyword: the index in `given`, and the range of the value in the
    // argument. If a keyword occurs several times, the last occurrence wins, as in the arguments of any class.
    let mut keywords: HashMap<&str, Vec<(usize, Range<usize>)>> = HashMap::new();
    if formals.iter().any(|f| f.keyword.is_some()) {
        for (i, arg) in given.iter().enumerate() {
            if let Some((word, value)) = args::keyword(arg) {
                keywords.entry(word).or_default().push((i, value));
            }
        }
    }
    let mut bound = Vec::with_capacity(formals.len());
    for formal in formals {
        let Some(keyword) = formal.keyword.filter(|k| *k != "__REST__") else { continue };
        let mut value = None;
        for (i, range) in keywords.remove(keyword).unwrap_or_default() {
            value = free.get_mut(i).and_then(Option::take).and_then(|a| a.get(range)).map(str::to_string);
        }
        bound.push((formal.name, value?));
    }
    let mut left = free.into_iter().flatten();
    for formal in formals.iter().filter(|f| f.keyword.is_none()) {
        bound.push((formal.name, left.next()?.clone()));
    }
    let rest: Vec<&str> = left.map(String::as_str).collect();
    match formals.iter().find(|f| f.keyword == Some("__REST__")) {
        Some(formal) => bound.push((formal.name, rest.join(", "))),
        None if !rest.is_empty() => return None,
        None => {}
    }
    Some(bound)
}

/// Formats a count: `1 input`, `2 inputs`.
pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Formats a use: `X[1 argument, 1 input, 1 output]`.
pub(super) fn use_signature(name: &str, of: &Use<'_>) -> String {
    let (args, inputs, outputs) =
        (count(of.args.len(), "argument"), count(of.inputs, "input"), count(of.outputs, "output"));
    format!("{name}[{args}, {inputs}, {outputs}]")
}

/// Formats an alternative: `X(<arg>, KEY <arg>, ...)[1 input, 1 output]`.
pub(super) fn body_signature(name: &str, body: &Body<'_>) -> String {
    let formals: Vec<String> = body
        .formals
        .iter()
        .map(|f| match f.keyword {
            None => "<arg>".to_string(),
            Some("__REST__") => "...".to_string(),
            Some(k) => format!("{k} <arg>"),
        })
        .collect();
    let list = if formals.is_empty() { String::new() } else { format!("({})", formals.join(", ")) };
    format!("{name}{list}[{}, {}]", count(body.inputs, "input"), count(body.outputs, "output"))
}

/// Formats a use of an alternative, with its own parameters as the arguments: `X($rate, BURST $burst)`.
pub(super) fn body_form(name: &str, body: &Body<'_>) -> String {
    let formals = body.formals.iter().map(|f| match f.keyword {
        None => format!("${}", f.name),
        Some("__REST__") => "...".to_string(),
        Some(k) => format!("{k} ${}", f.name),
    });
    format!("{name}({})", formals.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_bound() {
        let f = |name, keyword| Formal { name, keyword };
        let formals = [f("a", None), f("b", None), f("k", Some("K")), f("r", Some("__REST__"))];
        let given =
            |s: &str| -> Vec<String> { args::split(s).into_iter().map(|r| s[r].to_string()).collect() };
        let bind = |n: usize, s: &str| {
            let bound = assign(&formals[..n], &given(s))?;
            Some(bound.into_iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(";"))
        };
        for (n, args, want) in [
            (0, "", Some("")),
            (0, "1", None),
            (1, "1", Some("a=1")),
            (2, "1", None),
            (2, "1, , 2", None),
            (2, "1, 2", Some("a=1;b=2")),
            (3, "1, 2", None),
            (3, "K 3, 1, 2", Some("k=3;a=1;b=2")),
            (3, "K 3, 1, K 4, 2", Some("k=4;a=1;b=2")),
            (4, "1, 2, K 3", Some("k=3;a=1;b=2;r=")),
            (4, "1, K 3, 2, 4, L 5", Some("k=3;a=1;b=2;r=4, L 5")),
        ] {
            assert_eq!(bind(n, args).as_deref(), want, "{n} {args}");
        }
    }
}
