// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variables in configuration strings: `$x`, `${x}`, `${x-default}`, `${x[N]}`, `${x[$n]}`.

use crate::syntax::lexer::{at_line_start, is_variable, line_end};
use crate::text::{at_comment, byte, comment_end, hex_end};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// The maximum depth of variables whose values refer to other variables.
const MAX_DEPTH: usize = 10;

/// The form of a variable use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form<'a> {
    Plain,
    Default(&'a str),
    Word(usize),
    /// `${x[$n]}`: a word of the value. Its number is the value of the variable `n`.
    WordOf(&'a str),
}

/// Parses the use of a variable. `at` is the position of its `$`. Returns the name and the form of the variable, and
/// the end of its use in the text. Name and form are `None` if the `$` starts no variable, as in `$$` or `$(…)`. `$(…)`
/// is a handler call in a script. Variables inside the call are substituted too, so the end is directly after the `$(`.
/// `last_brace` is the position of the last `}` in the text.
fn variable(text: &str, at: usize, last_brace: usize) -> (Option<(&str, Form<'_>)>, usize) {
    let bytes = text.as_bytes();
    let name_end = |from: usize| {
        let mut end = from;
        while is_variable(byte(bytes, end)) {
            end += 1;
        }
        end
    };
    match byte(bytes, at + 1) {
        b'{' => {
            let end = name_end(at + 2);
            let name = text.get(at + 2..end).unwrap_or("");
            if name.is_empty() || last_brace < end || !matches!(byte(bytes, end), b'}' | b'-' | b'[') {
                return (None, at + 2);
            }
            let Some(close) = text.get(end..).and_then(|t| t.find('}')).map(|n| end + n) else {
                return (None, at + 2);
            };
            let rest = text.get(end..close).unwrap_or("");
            let index = rest.strip_prefix('[').and_then(|r| r.strip_suffix(']'));
            let word = index.and_then(|n| match n.strip_prefix('$') {
                Some(name) if !name.is_empty() && name.bytes().all(is_variable) => Some(Form::WordOf(name)),
                Some(_) => None,
                None => n.parse().ok().map(Form::Word),
            });
            let form = match (rest, word) {
                ("", _) => Form::Plain,
                (_, Some(word)) => word,
                _ => match rest.strip_prefix('-') {
                    Some(default) => Form::Default(default),
                    None => return (None, close + 1),
                },
            };
            (Some((name, form)), close + 1)
        }
        b'(' | b'$' | b'?' | b'#' => (None, at + 2),
        b if is_variable(b) => {
            let end = name_end(at + 1);
            (text.get(at + 1..end).map(|n| (n, Form::Plain)), end)
        }
        _ => (None, at + 1),
    }
}

/// The variables that `text` uses, each with its range. Names that begin with a digit are left out, because
/// `$5` may be a price.
pub(super) fn uses(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut all = all_uses(text);
    all.retain(|(_, name)| !name.starts_with(|c: char| c.is_ascii_digit()));
    all
}

/// The variables that `text` uses, each with its range.
pub(super) fn all_uses(text: &str) -> Vec<(Range<usize>, &str)> {
    let bytes = text.as_bytes();
    let last_brace = text.rfind('}').unwrap_or(0);
    let (mut all, mut at, mut quote) = (Vec::new(), 0, 0u8);
    while let Some(&b) = bytes.get(at) {
        at = match b {
            b'\\' if quote == b'"' => at + 2,
            b'\\' if quote == 0 && byte(bytes, at + 1) == b'<' => hex_end(bytes, at).0,
            b'/' if quote == 0 && at_comment(bytes, at) => comment_end(bytes, at),
            b'\'' | b'"' if quote == 0 || quote == b => {
                quote ^= b;
                at + 1
            }
            b'$' if quote != b'\'' => {
                let (found, end) = variable(text, at, last_brace);
                all.extend(found.map(|(name, _)| (at..end, name)));
                end
            }
            _ => at + 1,
        };
    }
    all
}

/// The value of a variable, expanded on first use.
enum Value<'a> {
    Ready(Rc<str>),
    Defined(&'a str),
    /// The value is being expanded. A use of the variable in this state is a cycle.
    Busy,
    /// The value is not known, because the variable is a parameter of a compound that is not expanded. Uses of the
    /// variable stay as written.
    Parameter,
}

/// The variables of one scope, in one instance of the compound.
pub(super) struct Env<'a> {
    parent: Option<Rc<Env<'a>>>,
    /// The number of compounds that enclose the scope's text.
    depth: usize,
    values: HashMap<String, RefCell<Value<'a>>>,
}

/// The remaining text budget, and the errors met while substituting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// The number of bytes left.
    pub left: usize,
    /// Whether values refer to each other in a cycle or too deeply.
    pub cycle: bool,
    /// Whether the text exceeded the limit.
    pub spent: bool,
}

impl Budget {
    /// Takes some bytes from the budget. Returns false once the budget is exceeded.
    pub fn take(&mut self, bytes: usize) -> bool {
        self.spent |= bytes > self.left;
        self.left = self.left.saturating_sub(bytes);
        !self.spent
    }
}

impl<'a> Env<'a> {
    /// The variables at file scope. Those from the command line (`given`) override definitions.
    pub fn top(defines: &[(&'a str, &'a str)], given: &[(String, String)]) -> Rc<Env<'a>> {
        let mut values: HashMap<String, RefCell<Value<'a>>> = HashMap::new();
        values.extend(defines.iter().map(|&(n, v)| (n.to_string(), RefCell::new(Value::Defined(v)))));
        values.extend(given.iter().map(|(n, v)| (n.clone(), RefCell::new(Value::Ready(v.as_str().into())))));
        Rc::new(Env { parent: None, depth: 0, values })
    }
    /// Returns the variables of a compound that is used in the scope `from`. `depth` is the nesting depth of the text
    /// that defines the compound.
    pub fn inner(
        from: &Rc<Env<'a>>,
        depth: usize,
        args: Vec<(&'a str, String)>,
        defines: &[(&'a str, &'a str)],
    ) -> Rc<Env<'a>> {
        // The parent is the scope around the compound's definition, not the scope around its use.
        let mut parent = from.clone();
        while parent.depth >= depth {
            let Some(up) = parent.parent.clone() else { break };
            parent = up;
        }
        if args.is_empty() && defines.is_empty() {
            return parent;
        }
        let mut values: HashMap<String, RefCell<Value<'a>>> = HashMap::new();
        values.extend(defines.iter().map(|&(n, v)| (n.to_string(), RefCell::new(Value::Defined(v)))));
        values.extend(args.into_iter().map(|(n, v)| (n.to_string(), RefCell::new(Value::Ready(v.into())))));
        Rc::new(Env { parent: Some(parent), depth, values })
    }
    /// Returns the variables of a compound that is not expanded.
    pub fn unexpanded(
        from: &Rc<Env<'a>>,
        parameters: impl Iterator<Item = &'a str>,
        defines: &[(&'a str, &'a str)],
    ) -> Rc<Env<'a>> {
        let mut values: HashMap<String, RefCell<Value<'a>>> = HashMap::new();
        values.extend(defines.iter().map(|&(n, v)| (n.to_string(), RefCell::new(Value::Defined(v)))));
        values.extend(parameters.map(|n| (n.to_string(), RefCell::new(Value::Parameter))));
        Rc::new(Env { parent: Some(from.clone()), depth: from.depth + 1, values })
    }
    /// Whether a variable is a parameter of a compound that is not expanded.
    fn is_parameter(&self, name: &str) -> bool {
        match self.values.get(name) {
            Some(cell) => matches!(*cell.borrow(), Value::Parameter),
            None => self.parent.as_ref().is_some_and(|p| p.is_parameter(name)),
        }
    }
    fn value(&self, name: &str, level: usize, budget: &mut Budget) -> Option<Rc<str>> {
        let mut env = self;
        let cell = loop {
            match env.values.get(name) {
                Some(cell) => break cell,
                None => env = env.parent.as_deref()?,
            }
        };
        let text = match &*cell.borrow() {
            Value::Ready(text) => return Some(text.clone()),
            Value::Busy => {
                budget.cycle = true;
                return None;
            }
            Value::Parameter => return None,
            Value::Defined(text) => *text,
        };
        if level >= MAX_DEPTH {
            budget.cycle = true;
            return None;
        }
        cell.replace(Value::Busy);
        // A definition is expanded with the variables of its own scope.
        let value: Rc<str> = match env.pieces(text, level + 1, budget) {
            Some(pieces) => pieces.iter().map(|p| p.text.as_ref()).collect::<String>().into(),
            None => text.into(),
        };
        cell.replace(Value::Ready(value.clone()));
        Some(value)
    }
    /// Replaces [`Form::WordOf`] by [`Form::Word`] with the number that is the value of the variable; returns
    /// other forms unchanged. Returns `None` if this value is not a number.
    fn numbered<'t>(&self, form: Form<'t>, level: usize, budget: &mut Budget) -> Option<Form<'t>> {
        match form {
            Form::WordOf(name) => self.value(name, level, budget)?.trim_ascii().parse().ok().map(Form::Word),
            other => Some(other),
        }
    }
    /// Substitutes the variables of `text`. Returns `None` if the text stays as it is.
    pub fn substitute<'t>(&self, text: &'t str, budget: &mut Budget) -> Option<Vec<Piece<'t>>> {
        self.pieces(text, 0, budget)
    }
    fn pieces<'t>(&self, text: &'t str, level: usize, budget: &mut Budget) -> Option<Vec<Piece<'t>>> {
        let bytes = text.as_bytes();
        let directives = level == 0 && bytes.windows(2).any(|w| matches!(w, b"\n#" | b"\r#"));
        if !text.contains('$') && !directives {
            return None;
        }
        let last_brace = text.rfind('}').unwrap_or(0);
        let (mut all, mut kept, mut at, mut quote) = (Vec::new(), 0, 0, 0u8);
        if !budget.take(text.len()) {
            return None;
        }
        while let Some(&b) = bytes.get(at) {
            at = match b {
                b'\\' if quote == b'"' => at + 2,
                b'\\' if quote == 0 && byte(bytes, at + 1) == b'<' => hex_end(bytes, at).0,
                b'/' if quote == 0 && at_comment(bytes, at) => comment_end(bytes, at),
                b'\'' | b'"' if quote == 0 || quote == b => {
                    quote ^= b;
                    at + 1
                }
                // The parser has already read this line directive, so its line becomes empty.
                b'#' if directives && quote == 0 && at > 0 && at_line_start(bytes, at) => {
                    let end = line_end(bytes, at);
                    push(&mut all, text, kept..at);
                    all.push(Piece { from: at..end, text: "".into(), replaced: true });
                    kept = end;
                    end
                }
                b'$' if quote != b'\'' => {
                    let (found, end) = variable(text, at, last_brace);
                    let new = found.filter(|(name, _)| !self.is_parameter(name)).and_then(|(name, form)| {
                        let form = self.numbered(form, level, budget)?;
                        let value = self.value(name, level, budget);
                        // Splitting a value into words takes time proportional to its length, so its length counts
                        // against the budget.
                        budget.take(value.as_ref().map_or(0, |v| v.len() + 1));
                        if budget.spent {
                            return None;
                        }
                        in_form(value, form, quote == b'"')
                    });
                    if let Some(new) = new {
                        push(&mut all, text, kept..at);
                        all.push(Piece { from: at..end, text: new.into(), replaced: true });
                        kept = end;
                    }
                    end
                }
                _ => at + 1,
            };
        }
        if all.is_empty() {
            return None;
        }
        push(&mut all, text, kept..bytes.len());
        Some(all)
    }
}

/// The replacement for a use of a variable. `None` if the use stays as written.
fn in_form(value: Option<Rc<str>>, form: Form<'_>, quoted: bool) -> Option<String> {
    let value = match (value, form) {
        (None, Form::Default(text)) => return Some(text.to_string()),
        (None, _) => return None,
        (Some(v), Form::Word(n)) => v.split_ascii_whitespace().nth(n).unwrap_or("").to_string(),
        (Some(v), _) => v.to_string(),
    };
    if !quoted {
        return Some(value);
    }
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | '"' | '$') {
            out.push('\\');
        }
        out.push(c);
    }
    Some(out)
}

fn push<'t>(all: &mut Vec<Piece<'t>>, text: &'t str, range: Range<usize>) {
    if let Some(t) = text.get(range.clone()).filter(|t| !t.is_empty()) {
        all.push(Piece { from: range, text: t.into(), replaced: false });
    }
}

/// A piece of the text after substitution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece<'t> {
    /// The range of the original text that this piece stands for.
    pub from: Range<usize>,
    pub text: std::borrow::Cow<'t, str>,
    pub replaced: bool,
}
