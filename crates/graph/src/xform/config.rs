// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration strings of patterns, and the values of their variables.

use castanet_lang::args;
use castanet_lang::elaborate::variables_of;
use castanet_spec::{ArgKind, ClassSpec};
use std::net::{Ipv4Addr, Ipv6Addr};

/// An argument of a configuration string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    words: Vec<String>,
    /// Whether it begins with a keyword of the class, and can only be given so.
    by_keyword: bool,
}

/// Splits a configuration string into arguments, and these into words. Comments are left out.
pub(super) fn arguments(config: &str, spec: Option<&ClassSpec>) -> Vec<Argument> {
    let specs = spec.map_or(&[][..], |s| s.args);
    let is_keyword = |word: &str| {
        specs.iter().any(|s| s.kind == ArgKind::Keyword && (s.name == word || s.aliases.contains(&word)))
    };
    let argument = |arg: &str| Argument {
        words: args::words(arg).into_iter().filter_map(|r| arg.get(r)).map(str::to_string).collect(),
        by_keyword: args::keyword(arg).is_some_and(|(word, _)| is_keyword(word)),
    };
    args::split(config).into_iter().map(|r| argument(&args::cleaned(config, r))).collect()
}

/// The variables of a rule. A variable is known by its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables {
    names: Vec<String>,
    /// The variables that stand for all remaining arguments (`__REST__`).
    rest: Vec<String>,
}

impl Variables {
    /// Makes an empty list. `rest` are the names of the variables that stand for all remaining arguments.
    pub fn new(rest: Vec<String>) -> Variables {
        Variables { names: Vec::new(), rest }
    }
    pub fn len(&self) -> usize {
        self.names.len()
    }
    pub fn name(&self, variable: usize) -> &str {
        self.names.get(variable).map_or("", String::as_str)
    }
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }
    pub fn is_rest(&self, name: &str) -> bool {
        self.rest.iter().any(|n| n == name)
    }
    fn number(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Text(String),
    Variable(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Arg {
    /// Words, of which at most one is a variable. The variable stands for all words between the others, at least for one
    /// if there are others.
    Open(Vec<Word>),
    /// Words, of which several are variables. Each variable stands for one word.
    Words(Vec<Word>),
    /// All remaining arguments.
    Rest(usize),
}

/// The configuration string of an element of a pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfigPattern {
    args: Vec<Arg>,
}

/// Returns the name of the variable that a word consists of: `$x` or `${x}`.
pub(super) fn whole_variable(word: &str) -> Option<&str> {
    let name = word.strip_prefix('$')?;
    let name = name.strip_prefix('{').and_then(|n| n.strip_suffix('}')).unwrap_or(name);
    (!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')).then_some(name)
}

impl ConfigPattern {
    /// Parses a configuration string of a pattern, and adds its variables to `variables`. An error is a message.
    pub fn parse(config: &str, variables: &mut Variables) -> Result<ConfigPattern, String> {
        let mut all = Vec::new();
        let given = arguments(config, None);
        for (i, Argument { words: arg, .. }) in given.iter().enumerate() {
            let rest = match arg.as_slice() {
                [word] => whole_variable(word).filter(|name| variables.is_rest(name)),
                _ => None,
            };
            if let Some(name) = rest {
                if i + 1 < given.len() {
                    return Err(format!(
                        "'${name}' stands for all remaining arguments, so it must be the last"
                    ));
                }
                all.push(Arg::Rest(variables.number(name)));
                continue;
            }
            let mut words = Vec::with_capacity(arg.len());
            for word in arg {
                words.push(match (whole_variable(word), variables_of(word).first()) {
                    (Some(name), _) => Word::Variable(variables.number(name)),
                    (None, None) => Word::Text(word.clone()),
                    (None, Some(name)) => {
                        return Err(format!(
                            "'${name}' is only part of the word '{word}'; a variable of a pattern must be a whole word"
                        ));
                    }
                });
            }
            let count = words.iter().filter(|w| matches!(w, Word::Variable(_))).count();
            all.push(if count > 1 { Arg::Words(words) } else { Arg::Open(words) });
        }
        Ok(ConfigPattern { args: all })
    }

    /// Whether the arguments of an element match. Variables without a value get theirs from the arguments. `scope` is the
    /// scope of the element. After a mismatch, the caller takes the new values back ([`Values::undo`]).
    pub fn matches(&self, given: &[Argument], scope: &str, values: &mut Values) -> bool {
        let mut at = 0;
        for arg in &self.args {
            let ok = match (arg, given.get(at)) {
                (Arg::Rest(v), _) => {
                    let rest = given.get(at..).unwrap_or(&[]);
                    at = given.len();
                    let text: Vec<String> = rest.iter().map(|arg| arg.words.join(" ")).collect();
                    values.set(*v, text.join(", "), scope)
                }
                (_, None) => false,
                (Arg::Open(words), Some(found)) => {
                    at += 1;
                    open(words, found, scope, values)
                }
                (Arg::Words(words), Some(found)) => {
                    at += 1;
                    words.len() == found.words.len() && one_by_one(words, &found.words, scope, values)
                }
            };
            if !ok {
                return false;
            }
        }
        at == given.len()
    }
}

fn one_by_one(words: &[Word], found: &[String], scope: &str, values: &mut Values) -> bool {
    words.iter().zip(found).all(|(word, found)| match word {
        Word::Text(text) => text == found,
        Word::Variable(v) => values.set(*v, found.clone(), scope),
    })
}

/// Matches words of which at most one is a variable.
fn open(words: &[Word], found: &Argument, scope: &str, values: &mut Values) -> bool {
    // A variable in the place of a positional argument does not stand for an argument that is given by its keyword.
    if found.by_keyword && matches!(words.first(), Some(Word::Variable(_))) {
        return false;
    }
    let found = found.words.as_slice();
    let Some(at) = words.iter().position(|w| matches!(w, Word::Variable(_))) else {
        return words.len() == found.len() && one_by_one(words, found, scope, values);
    };
    let (before, after) = words.split_at(at);
    let Some((Word::Variable(variable), after)) = after.split_first() else { return false };
    // A variable that is the whole argument matches an empty argument, too.
    let least = usize::from(words.len() > 1);
    let Some(middle) = found.len().checked_sub(before.len() + after.len()).filter(|&n| n >= least) else {
        return false;
    };
    let (first, rest) = found.split_at(before.len());
    let (middle, last) = rest.split_at(middle);
    one_by_one(before, first, scope, values)
        && one_by_one(after, last, scope, values)
        && values.set(*variable, middle.join(" "), scope)
}

/// The value of a variable, and the scope of the element from which it was taken.
#[derive(Clone, Debug)]
struct Value {
    text: String,
    scope: String,
}

/// The values of the variables during a search.
#[derive(Clone, Debug)]
pub(super) struct Values {
    values: Vec<Option<Value>>,
    /// The variables that have a value, in the order in which they got it.
    order: Vec<usize>,
}

impl Values {
    /// Makes a list of `n` variables without values.
    pub fn new(n: usize) -> Values {
        Values { values: vec![None; n], order: Vec::new() }
    }
    /// Gives a variable a value, or compares it with the value that it has. Returns false if they differ, or if the text
    /// may mean something else in the scope of the other one.
    fn set(&mut self, variable: usize, text: String, scope: &str) -> bool {
        let Some(value) = self.values.get_mut(variable) else { return false };
        match value {
            Some(v) => {
                let nested = v.scope.starts_with(scope) || scope.starts_with(v.scope.as_str());
                v.text == text && (nested || is_literal(&text))
            }
            None => {
                *value = Some(Value { text, scope: scope.to_string() });
                self.order.push(variable);
                true
            }
        }
    }
    /// Returns the number of variables that have a value, for [`Values::undo`].
    pub fn mark(&self) -> usize {
        self.order.len()
    }
    /// Takes back all values given since `mark`.
    pub fn undo(&mut self, mark: usize) {
        for variable in self.order.drain(mark.min(self.order.len())..) {
            if let Some(value) = self.values.get_mut(variable) {
                *value = None;
            }
        }
    }
    /// Returns the configuration string that consists of `args`, with the values of the variables, for an element in
    /// `scope`. None if a value that is needed may mean something else in this scope.
    pub fn substitute(&self, args: &[String], variables: &Variables, scope: &str) -> Option<String> {
        let mut all = Vec::with_capacity(args.len());
        for arg in args {
            let mut used = Vec::new();
            for name in variables_of(arg) {
                let Some(value) = variables.find(name).and_then(|v| self.values.get(v)?.as_ref()) else {
                    continue;
                };
                if !scope.starts_with(value.scope.as_str()) && !is_literal(&value.text) {
                    return None;
                }
                used.push((name.to_string(), value.text.clone()));
            }
            let text = castanet_lang::elaborate::substitute(arg, &used);
            // Where no arguments remain, none are written.
            if !(text.is_empty() && whole_variable(arg).is_some_and(|name| variables.is_rest(name))) {
                all.push(text);
            }
        }
        Some(all.join(", "))
    }
}

/// Whether a text means the same in each scope: all its words are numbers or addresses, not names.
fn is_literal(text: &str) -> bool {
    let ether = |w: &str| {
        let parts: Vec<&str> = w.split([':', '-']).collect();
        parts.len() == 6
            && parts.iter().all(|p| (1..=2).contains(&p.len()) && u8::from_str_radix(p, 16).is_ok())
    };
    let number = |w: &str| w.starts_with(|c: char| c.is_ascii_digit()) && w.parse::<f64>().is_ok();
    let address = |w: &str| w.parse::<Ipv4Addr>().is_ok() || w.parse::<Ipv6Addr>().is_ok();
    let single = |w: &str| number(w) || address(w) || ether(w);
    let literal = |w: &str| single(w) || w.split_once('/').is_some_and(|(a, n)| address(a) && single(n));
    text.split([' ', ',']).filter(|w| !w.is_empty()).all(literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(pattern: &str, config: &str) -> Option<Vec<String>> {
        let mut variables = Variables::new(vec!["rest".into()]);
        let pattern = ConfigPattern::parse(pattern, &mut variables).ok()?;
        let mut values = Values::new(variables.len());
        let found = pattern.matches(&arguments(config, None), "", &mut values);
        found.then(|| values.values.into_iter().flatten().map(|v| v.text).collect())
    }

    #[test]
    fn wildcards() {
        for (pattern, config, want) in [
            ("", "", Some(&[][..])),
            ("", "1", None),
            ("14", "14", Some(&[])),
            ("14", "15", None),
            ("14", "", None),
            ("14 /* bytes */", " 14 ", Some(&[])),
            ("$a", "x y", Some(&["x y"])),
            ("${a}", "x y", Some(&["x y"])),
            ("$a", "", None),
            ("$a", "x, y", None),
            ("$a, 2", ", 2", Some(&[""])),
            ("$a, $a", "1, 1", Some(&["1"])),
            ("$a, $a", "1, 2", None),
            ("$a, $b", "1, 2", Some(&["1", "2"])),
            ("MTU $m", "MTU  1500", Some(&["1500"])),
            ("MTU $m", "MTU", None),
            ("MTU $m", "1500", None),
            ("src net $n", "src net a b", Some(&["a b"])),
            ("src net $n and tcp", "src net a and tcp", Some(&["a"])),
            ("src net $n and tcp", "src net and tcp", None),
            ("$ip $eth", "1.0.0.1 0:1:2:3:4:5", Some(&["1.0.0.1", "0:1:2:3:4:5"])),
            ("$ip $eth", "1.0.0.1 2.0.0.1 0:1:2:3:4:5", None),
            ("$rest", "", Some(&[""])),
            ("1, $rest", "1", Some(&[""])),
            ("1, $rest", "1, a  b, c", Some(&["a b, c"])),
            ("1, $rest", "2, a", None),
            ("\"a, b\"", "\"a, b\"", Some(&[])),
            ("$$", "$$", Some(&[])),
        ] {
            let want = want.map(|w| w.iter().map(|s| (*s).to_string()).collect());
            assert_eq!(matched(pattern, config), want, "{pattern} against {config}");
        }
        let parse =
            |text: &str| ConfigPattern::parse(text, &mut Variables::new(vec!["rest".into()])).is_err();
        assert!(parse("$dev:ip") && parse("$rest, 1") && !parse("'$dev:ip'"));
    }

    #[test]
    fn values_in_other_scopes() {
        let mut variables = Variables::default();
        let pattern = ConfigPattern::parse("$a", &mut variables).unwrap_or_default();
        for (text, literal) in [
            ("10", true),
            ("0.5", true),
            ("10.0.0.1", true),
            ("10.0.0.0/8 ::1/64, 1", true),
            ("0:1:2:3:4:ff", true),
            ("00-01-02-03-04-05", true),
            ("", true),
            ("eth0", false),
            ("eth0:ip", false),
            ("inf", false),
            ("0:1:2:3:4:fff", false),
            ("10.0.0.1 eth0", false),
        ] {
            let mut values = Values::new(1);
            let set = |values: &mut Values, scope: &str| {
                pattern.matches(&[Argument { words: vec![text.into()], by_keyword: false }], scope, values)
            };
            assert!(set(&mut values, "A/"));
            assert!(set(&mut values, "A/b/") && set(&mut values, ""));
            assert_eq!(set(&mut values, "B/"), literal, "{text}");
            let arg = ["$a".to_string()];
            for (scope, inner) in [("A/", true), ("A/b/", true), ("", false), ("B/", false)] {
                let want = (inner || literal).then(|| text.to_string());
                assert_eq!(values.substitute(&arg, &variables, scope), want, "{text} in {scope}");
            }
        }
    }

    #[test]
    fn replacements() {
        let mut variables = Variables::new(vec!["rest".into()]);
        let pattern = ConfigPattern::parse("$a, $rest", &mut variables).unwrap_or_default();
        for (given, args, want) in [
            ("1", vec!["$a", "$rest"], "1"),
            ("1", vec!["$rest", "MTU $a"], "MTU 1"),
            ("x, 2, 3", vec!["$a:ip", "$rest", "$b"], "x:ip, 2, 3, $b"),
        ] {
            let mut values = Values::new(variables.len());
            assert!(pattern.matches(&arguments(given, None), "", &mut values));
            let args: Vec<String> = args.into_iter().map(str::to_string).collect();
            assert_eq!(values.substitute(&args, &variables, "").as_deref(), Some(want));
        }
    }
}
