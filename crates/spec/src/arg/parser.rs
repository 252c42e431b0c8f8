// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parser of a configuration string: assigns each argument to a declaration, and reads the values.

use super::{ArgCx, ArgError, ArgKind, ArgSpec, Args};
use crate::value::{ArgValue, ValueError};
use castanet_lang::args as text;
use std::borrow::Cow;
use std::ops::Range;

/// Arguments of one configuration string, assigned to their declarations.
pub struct Parser<'a> {
    config: &'a str,
    pub(super) specs: &'static [ArgSpec],
    /// For each declaration, the values given: only the last one for a positional or keyword argument, all of
    /// them for a rest argument. Empty if the configuration string is empty.
    pub(super) given: Vec<Vec<Range<usize>>>,
    cx: ArgCx<'a>,
    pub(super) errors: Vec<ArgError>,
    /// The index, among all declarations, of the first declaration of the struct that is being filled. It is above 0
    /// only for a flattened struct. The indices that callers pass are relative to it.
    base: usize,
}

/// An argument that does not begin with a keyword of the class.
struct Unnamed<'a> {
    range: Range<usize>,
    /// The first word, if it looks like a keyword.
    word: Option<&'a str>,
}

impl<'a> Parser<'a> {
    /// Splits a configuration string and assigns each argument to a declaration.
    pub fn new(config: &'a str, specs: &'static [ArgSpec], cx: ArgCx<'a>) -> Parser<'a> {
        let mut p = Parser { config, specs, given: Vec::new(), cx, errors: Vec::new(), base: 0 };
        if config.is_empty() {
            return p;
        }
        p.given.resize(specs.len(), Vec::new());
        let mut unnamed = Vec::new();
        for range in text::each(config) {
            let Some((word, value)) = text::keyword(config.get(range.clone()).unwrap_or("")) else {
                unnamed.push(Unnamed { range, word: None });
                continue;
            };
            match p.index_of(word) {
                Some(index) => p.assign_keyword(index, word, range.start, value),
                None => unnamed.push(Unnamed { range, word: Some(word) }),
            }
        }
        p.assign_positional(unnamed);
        p
    }

    /// Returns the index of the declaration whose name or alias is `keyword`.
    fn index_of(&self, keyword: &str) -> Option<usize> {
        self.specs
            .iter()
            .position(|s| s.kind != ArgKind::Rest && (s.name == keyword || s.aliases.contains(&keyword)))
    }

    /// Assigns an argument that begins with a keyword. `value` is relative to the `start` of the argument.
    fn assign_keyword(&mut self, index: usize, keyword: &str, start: usize, value: Range<usize>) {
        self.warn_of_deprecated(index, keyword, start..start + keyword.len());
        let Some(given) = self.given.get_mut(index) else { return };
        if let Some(first) = given.first().cloned() {
            let twice = ArgError::warning(format!("{keyword}: given twice"), first);
            self.errors.push(twice.help("the last value counts; remove the others"));
        }
        given.clear();
        given.push(start + value.start..start + value.end);
    }

    /// Warns when argument `i` is given by a deprecated keyword.
    fn warn_of_deprecated(&mut self, i: usize, keyword: &str, range: Range<usize>) {
        let Some(spec) = self.specs.get(i).filter(|s| s.deprecated.contains(&keyword)) else { return };
        let mut warning = ArgError::warning(format!("{keyword} is an old name of {}", spec.name), range);
        warning.classic = Some(format!("{keyword}: warning: argument deprecated"));
        self.errors.push(warning.did_you_mean(spec.name).help(format!("write {} instead", spec.name)));
    }

    /// Assigns arguments without a keyword to the positional declarations, in order. A rest argument takes those
    /// that are left over.
    fn assign_positional(&mut self, unnamed: Vec<Unnamed<'_>>) {
        let rest = self.specs.iter().position(|s| s.kind == ArgKind::Rest);
        let values = match rest {
            None if unnamed.iter().any(|u| u.word.is_some()) => self.without_unknown_keywords(unnamed),
            _ => unnamed.into_iter().map(|u| u.range).collect(),
        };
        let mut from = 0;
        let mut surplus: Option<Range<usize>> = None;
        for value in values {
            let free = self.free_positions(from).next();
            from = free.map_or(self.specs.len(), |index| index + 1);
            let Some(index) = free.or(rest) else {
                surplus = Some(surplus.map_or(value.start, |s| s.start)..value.end);
                continue;
            };
            if let Some(given) = self.given.get_mut(index) {
                given.push(value);
            }
        }
        if let Some(range) = surplus {
            self.too_many(range);
        }
    }

    /// Returns the positional declarations that have no value yet, from number `from` on.
    fn free_positions(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        let all = self.specs.iter().zip(&self.given).enumerate().skip(from);
        all.filter(|(_, (spec, given))| spec.kind == ArgKind::Positional && given.is_empty())
            .map(|(index, _)| index)
    }

    /// Reports the arguments that begin with an unknown keyword, and returns the others. If the others are too few to
    /// fill the free mandatory positions, the first arguments with an unknown keyword fill the gap: they are
    /// returned and not reported.
    fn without_unknown_keywords(&mut self, unnamed: Vec<Unnamed<'_>>) -> Vec<Range<usize>> {
        let plain = unnamed.iter().filter(|u| u.word.is_none()).count();
        let mandatory = |i: &usize| self.specs.get(*i).is_some_and(|s| s.mandatory);
        let mandatory = self.free_positions(0).filter(mandatory).count();
        let mut missing = mandatory.saturating_sub(plain);
        let mut values = Vec::with_capacity(unnamed.len());
        for Unnamed { range, word } in unnamed {
            match word {
                Some(word) if missing == 0 => self.unknown_keyword(word, range),
                Some(_) => {
                    missing -= 1;
                    values.push(range);
                }
                None => values.push(range),
            }
        }
        values
    }

    /// Reports an argument whose first word looks like a keyword, but is none of the class's keywords.
    fn unknown_keyword(&mut self, word: &str, argument: Range<usize>) {
        let names = self.specs.iter().filter(|s| s.kind != ArgKind::Rest).map(|s| s.name);
        let text = self.config.get(argument.clone()).unwrap_or("");
        let range = argument.start..argument.start.saturating_add(word.len());
        let error = ArgError::new(format!("{word}: unknown argument"), range);
        let takes_text =
            self.specs.iter().any(|s| s.kind == ArgKind::Positional && s.type_name == String::TYPE);
        let error = if let Some((help, meant)) = self.missing_comma(text) {
            ArgError { range: argument, replacement: Some(meant), ..error.help(help) }
        } else if let Some(near) = castanet_lang::nearest(word, names.clone()) {
            error.did_you_mean(near)
        } else if self.specs.is_empty() {
            error
        } else {
            let quoted = match takes_text {
                true => format!("a text of several words needs quotes: \"{text}\"; "),
                false => String::new(),
            };
            error.help(format!("{quoted}the arguments are {}", names.collect::<Vec<_>>().join(", ")))
        };
        self.errors.push(error);
    }

    fn too_many(&mut self, surplus: Range<usize>) {
        let names: Vec<_> =
            self.specs.iter().filter(|s| s.kind == ArgKind::Positional).map(|s| s.name).collect();
        let help = match names.len() {
            0 => "this class takes no positional arguments".to_string(),
            1 => format!("this class takes at most 1 positional argument: {}", names.join(", ")),
            n => format!("this class takes at most {n} positional arguments: {}", names.join(", ")),
        };
        self.errors.push(ArgError::new("too many arguments", surplus).help(help));
    }

    /// Adds an error.
    pub fn error(&mut self, error: ArgError) {
        self.errors.push(error);
    }

    /// The context for parsing arguments.
    pub fn cx(&self) -> &ArgCx<'a> {
        &self.cx
    }

    /// Parses the value of declaration `index` at `range`, and checks it. Adds errors and warnings to `self.errors`.
    fn read<T: ArgValue>(
        &mut self,
        index: usize,
        range: Range<usize>,
        check: fn(&T) -> Result<(), ValueError>,
    ) -> Option<T> {
        let mut cleaned: Cow<'_, str> = text::cleaned(self.config, range.clone());
        if T::WORD && cleaned.trim_start().starts_with(['"', '\'']) {
            cleaned = text::unquote(cleaned.trim()).into();
        }
        let text = cleaned.trim();
        match T::parse(text, &self.cx) {
            Ok(value) => match check(&value) {
                Ok(()) => {
                    self.warn_of_doubt::<T>(index, &range, text);
                    self.warn_of_keyword_inside::<T>(index, range, text);
                    return Some(value);
                }
                Err(reason) => self.refused(index, range, &reason),
            },
            Err(reason) => {
                let error = ArgError::new(self.message(index, &range, T::NUMBERED, &reason), range);
                self.errors.push(self.mended(error, text, T::TYPE, &reason));
            }
        }
        None
    }

    /// Adds the warning that [`ArgValue::doubt`] returns about a valid value, if there is one.
    fn warn_of_doubt<T: ArgValue>(&mut self, index: usize, range: &Range<usize>, text: &str) {
        let Some(spec) = self.specs.get(index) else { return };
        let place = self.given.get(index).and_then(|g| g.iter().position(|r| r == range));
        let nth = place.filter(|_| spec.kind == ArgKind::Rest).map(|n| n.saturating_add(1));
        let Some(doubt) = T::doubt(text, nth) else { return };
        let (help, meant) = doubt.mend();
        let warning = ArgError::warning(doubt.about(spec.name), range.clone()).help(help);
        let replacement = meant.map(String::from);
        self.errors.push(ArgError { replacement, ..warning });
    }

    /// Warns when a value probably contains another argument: `KEYWORD=value`, or a keyword without a comma before it.
    fn warn_of_keyword_inside<T: ArgValue>(&mut self, index: usize, range: Range<usize>, text: &str) {
        let comma = || T::TEXT.then(|| self.missing_comma(text)).flatten();
        let Some((help, meant)) = self.equals_sign(text).or_else(comma) else { return };
        let name = self.specs.get(index).map_or("", |s| s.name);
        let warning = ArgError::warning(format!("'{text}' is taken as {name}"), range).help(help);
        self.errors.push(ArgError { replacement: Some(meant), ..warning });
    }

    /// Reports a value that has the right type, but is not allowed.
    fn refused(&mut self, index: usize, range: Range<usize>, reason: &ValueError) {
        let (name, doc) = self.specs.get(index).map_or(("", ""), |s| (s.name, s.doc));
        self.errors.push(ArgError::new(reason.about(name), range).help(format!("{name}: {doc}")));
    }

    /// Returns the message about a value of the wrong type. A value of a rest argument is named by the word `numbered`
    /// and the number of the value, as in `input spec 3`. If `numbered` is empty, such a value is not named.
    fn message(&self, index: usize, range: &Range<usize>, numbered: &str, reason: &ValueError) -> String {
        let nth = self.given.get(index).and_then(|g| g.iter().position(|r| r == range));
        match (self.specs.get(index), nth) {
            (Some(s), Some(n)) if s.kind == ArgKind::Rest && !numbered.is_empty() => {
                reason.about(&format!("{numbered} {n}"))
            }
            (Some(s), _) if s.kind == ArgKind::Rest => reason.to_string(),
            (spec, _) => reason.about(spec.map_or("", |s| s.name)),
        }
    }

    /// Fills a flattened struct of arguments. Its declarations begin at `index` among those of the outer struct.
    pub fn nested<T: Args>(&mut self, index: usize) -> Option<T> {
        let before = self.base;
        self.base = before.saturating_add(index);
        let args = T::take(self);
        self.base = before;
        args
    }

    /// Returns the index of an argument among all declarations, and the range of the last value given for it, if any.
    fn last_given(&self, index: usize) -> (usize, Option<Range<usize>>) {
        let index = self.base.saturating_add(index);
        (index, self.given.get(index).and_then(|g| g.last()).cloned())
    }

    /// Takes a mandatory argument.
    pub fn required<T: ArgValue>(&mut self, index: usize) -> Option<T> {
        self.required_if(index, |_| Ok(()))
    }

    /// Like [`Parser::required`], but `check` may refuse the value. The error puts the name of the argument before
    /// the message of `check`.
    pub fn required_if<T: ArgValue>(
        &mut self,
        index: usize,
        check: fn(&T) -> Result<(), ValueError>,
    ) -> Option<T> {
        match self.last_given(index) {
            (index, Some(range)) => self.read(index, range, check),
            (index, None) => {
                let spec = self.specs.get(index);
                let name = spec.map_or("", |s| s.name);
                let doc = spec.map_or("", |s| s.doc);
                let end = self.config.len();
                let help = format!("add {name}, of type {}: {doc}", spec.map_or("", |s| s.type_name));
                self.errors
                    .push(ArgError::new(format!("{name}: required argument missing"), end..end).help(help));
                None
            }
        }
    }

    /// Takes an argument that may be left out. Returns `None` after an error, and `Some(None)` if the argument was
    /// left out.
    pub fn optional<T: ArgValue>(&mut self, index: usize) -> Option<Option<T>> {
        self.optional_if(index, |_| Ok(()))
    }

    /// Like [`Parser::optional`], but `check` may refuse the value. The error puts the name of the argument before
    /// the message of `check`.
    pub fn optional_if<T: ArgValue>(
        &mut self,
        index: usize,
        check: fn(&T) -> Result<(), ValueError>,
    ) -> Option<Option<T>> {
        match self.last_given(index) {
            (index, Some(range)) => self.read(index, range, check).map(Some),
            (_, None) => Some(None),
        }
    }

    /// Takes all values of a rest argument. Returns none if one of them is invalid.
    pub fn rest<T: ArgValue>(&mut self, index: usize) -> Option<Vec<T>> {
        let index = self.base.saturating_add(index);
        let given = self.given.get(index).cloned().unwrap_or_default();
        let n = given.len();
        let values: Vec<T> = given.into_iter().filter_map(|r| self.read(index, r, |_| Ok(()))).collect();
        (values.len() == n).then_some(values)
    }

    /// Checks that at most one of several arguments is given, or exactly one if `mandatory` is true. Each entry of
    /// `arguments` is the index of an argument, and `true` if the value of the argument switches it off. An argument
    /// that is switched off counts as not given. If the check fails, adds an error and returns `None`.
    pub fn choose(&mut self, arguments: &[(usize, bool)], mandatory: bool) -> Option<()> {
        let name = |&(index, _): &(usize, bool)| {
            self.specs.get(self.base.saturating_add(index)).map_or("", |s| s.name)
        };
        let names: Vec<_> = arguments.iter().map(name).collect();
        let list = |word: &str| match names.as_slice() {
            [all @ .., last] => format!("{} {word} {last}", all.join(", ")),
            [] => String::new(),
        };
        let given = arguments.iter().filter(|(_, off)| !off).filter_map(|(index, _)| self.place(*index));
        let mut given: Vec<_> = given.collect();
        given.sort_by_key(|range| range.start);
        let error = match given.as_slice() {
            [] if mandatory => {
                let end = self.config.len();
                ArgError::new(format!("{}: required argument missing", list("or")), end..end)
                    .help(format!("add {}", list("or")))
            }
            [_, second, ..] => {
                ArgError::new(format!("specify at most one of {}", list("and")), second.clone())
                    .help("they exclude each other; remove all but one")
            }
            _ => return Some(()),
        };
        self.errors.push(error);
        None
    }

    /// Returns the ranges of all values of argument `index` in the configuration string.
    pub fn places(&self, index: usize) -> Vec<Range<usize>> {
        self.given.get(self.base.saturating_add(index)).cloned().unwrap_or_default()
    }

    /// Returns the range of argument `index` in the configuration string, if it was given.
    pub fn place(&self, index: usize) -> Option<Range<usize>> {
        self.last_given(index).1
    }
}
