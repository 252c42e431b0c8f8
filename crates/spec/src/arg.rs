// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binding of arguments: assigns the arguments of a configuration string to those that a class declares (language
//! reference 1.9).

mod mend;

use crate::anno;
use crate::handler::HandlerSpec;
use crate::names::Names;
use crate::origin::Origin;
use crate::value::{ArgValue, Show, ValueError};
use castanet_lang::args as text;
use std::borrow::Cow;
use std::ops::Range;

/// How an argument is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// By position, or by its keyword.
    Positional,
    /// By its keyword only.
    Keyword,
    /// Takes all positional arguments that no other declaration takes.
    Rest,
}

/// One argument of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgSpec {
    /// The keyword.
    pub name: &'static str,
    /// Other keywords that old configurations use for the argument.
    pub aliases: &'static [&'static str],
    /// The aliases whose use causes a warning.
    pub deprecated: &'static [&'static str],
    /// How it is given.
    pub kind: ArgKind,
    /// Whether it must be given.
    pub mandatory: bool,
    /// The default as the manual shows it; empty for none.
    pub default: &'static str,
    /// The type as the manual names it.
    pub type_name: &'static str,
    /// One line for the manual.
    pub doc: &'static str,
}

impl ArgSpec {
    /// A declaration without content, to fill arrays with.
    pub const EMPTY: ArgSpec = ArgSpec {
        name: "",
        aliases: &[],
        deprecated: &[],
        kind: ArgKind::Keyword,
        mandatory: false,
        default: "",
        type_name: "",
        doc: "",
    };
}

/// An error or warning about an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgError {
    /// The message, such as `LENGTH: invalid number`.
    pub message: String,
    /// The offending bytes of the configuration string.
    pub range: Range<usize>,
    /// The line that the classic format shows, if it differs from the message.
    pub classic: Option<String>,
    /// How to fix the argument; empty if unknown.
    pub help: String,
    /// The text that the offending bytes were probably meant to be.
    pub replacement: Option<String>,
    /// Whether this is a warning, so that the configuration may still run.
    pub warning: bool,
}

impl ArgError {
    /// An error about a range of the configuration string.
    pub fn new(message: impl Into<String>, range: Range<usize>) -> ArgError {
        let (message, help) = (message.into(), String::new());
        ArgError { message, range, classic: None, help, replacement: None, warning: false }
    }
    /// A warning about a range of the configuration string.
    pub fn warning(message: impl Into<String>, range: Range<usize>) -> ArgError {
        ArgError { warning: true, ..ArgError::new(message, range) }
    }
    /// Adds a help text that says how to fix the argument.
    pub fn help(mut self, text: impl Into<String>) -> ArgError {
        self.help = text.into();
        self
    }
    /// Suggests another text for the offending bytes.
    pub fn did_you_mean(mut self, text: impl Into<String>) -> ArgError {
        let text = text.into();
        self.help = format!("did you mean '{text}'?");
        self.replacement = Some(text);
        self
    }
}

/// The context for parsing arguments: the names that the configuration defines, as seen from one element.
#[derive(Clone, Copy)]
pub struct ArgCx<'a> {
    /// The scope prefix of the element, such as `two/`.
    pub scope: &'a str,
    /// Names of addresses, ports and elements.
    pub names: &'a Names,
    /// The origin of the text.
    pub origin: Origin,
}

impl ArgCx<'_> {
    /// Returns the offset of an annotation of `size` bytes. `text` is a name that AnnotationInfo defined, a
    /// predefined name, or an offset.
    pub fn annotation(&self, text: &str, size: usize) -> Result<usize, ValueError> {
        match self.names.annotation(self.scope, text) {
            Some((offset, s)) if s == size => Ok(offset),
            Some((_, s)) => Err(format!("annotation '{text}' has {s} bytes, {size} wanted").into()),
            None => anno::find(text, size),
        }
    }
}

/// The arguments of a class; `#[derive(Args)]` implements this.
pub trait Args: Sized {
    /// The declarations of the arguments: positional ones first, in order.
    const SPECS: &'static [ArgSpec];
    /// Handlers that read and write single arguments.
    const HANDLERS: &'static [HandlerSpec];
    /// Takes the values from a parser that was made with [`Args::SPECS`]. Errors are left in the parser.
    fn take(parser: &mut Parser<'_>) -> Option<Self>;
    /// Returns the value that a handler shows; none if the handler does not belong to an argument.
    fn read(&self, handler: &str) -> Option<String>;
    /// Changes the value that a handler sets; none if the handler does not belong to an argument.
    fn write(&mut self, handler: &str, text: &str, cx: &ArgCx<'_>) -> Option<Result<(), ValueError>>;

    /// Parses a configuration string. Returns all errors and warnings at once.
    fn parse(config: &str, cx: ArgCx<'_>) -> (Option<Self>, Vec<ArgError>) {
        let mut parser = Parser::new(config, Self::SPECS, cx);
        let args = Self::take(&mut parser);
        let failed = parser.errors.iter().any(|e| !e.warning);
        (args.filter(|_| !failed), parser.errors)
    }
}

/// Returns the configuration string with a new value for the argument that `handler` is named after. An
/// argument that was given keeps its position or keyword; an argument that was not given is added with its
/// keyword at the end. For a rest argument such as TICKETS, the handler `tickets2` stands for its third
/// value. Returns none if the handler is not named after an argument, or if the rest argument has no such value.
pub fn with_value(
    config: &str,
    specs: &'static [ArgSpec],
    cx: ArgCx<'_>,
    handler: &str,
    value: &str,
) -> Option<String> {
    let named = |name: &str| specs.iter().enumerate().find(|(_, s)| s.name.eq_ignore_ascii_case(name));
    let stem = handler.trim_end_matches(|c: char| c.is_ascii_digit());
    let (i, nth) = match named(handler) {
        Some((i, s)) if s.kind != ArgKind::Rest => (i, 0),
        _ => {
            let (i, _) = named(stem).filter(|(_, s)| s.kind == ArgKind::Rest)?;
            (i, handler.get(stem.len()..)?.parse().ok()?)
        }
    };
    let parser = Parser::new(config, specs, cx);
    let spec = specs.get(i)?;
    match parser.given.get(i)?.get(nth) {
        Some(range) => Some(format!("{}{value}{}", config.get(..range.start)?, config.get(range.end..)?)),
        None if spec.kind == ArgKind::Rest => None,
        None if config.trim().is_empty() => Some(format!("{} {value}", spec.name)),
        None => Some(format!("{}, {} {value}", config.trim_end(), spec.name)),
    }
}

/// Checks a value against the limits of its declaration. The limits themselves are allowed. `off`, a value
/// that switches something off, is allowed outside the limits. The text of the error does not contain the name of
/// the argument; messages put the name and a colon before it.
pub fn within<T: PartialOrd + Show>(
    value: &T,
    min: Option<T>,
    max: Option<T>,
    off: Option<T>,
) -> Result<(), ValueError> {
    let or = off.as_ref().map_or(String::new(), |off| format!(", or {} for none", off.show()));
    match (min, max) {
        _ if off.as_ref() == Some(value) => Ok(()),
        (Some(min), _) if *value < min => Err(format!("must be at least {}{or}", min.show()).into()),
        (_, Some(max)) if *value > max => Err(format!("must be at most {}{or}", max.show()).into()),
        _ => Ok(()),
    }
}

/// The arguments of a class that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoArgs;

impl Args for NoArgs {
    const SPECS: &'static [ArgSpec] = &[];
    const HANDLERS: &'static [HandlerSpec] = &[];
    fn take(_: &mut Parser<'_>) -> Option<Self> {
        Some(NoArgs)
    }
    fn read(&self, _: &str) -> Option<String> {
        None
    }
    fn write(&mut self, _: &str, _: &str, _: &ArgCx<'_>) -> Option<Result<(), ValueError>> {
        None
    }
}

/// Arguments of one configuration string, assigned to their declarations.
pub struct Parser<'a> {
    config: &'a str,
    specs: &'static [ArgSpec],
    /// For each declaration, the values given: only the last one for a positional or keyword argument, all of
    /// them for a rest argument.
    given: Vec<Vec<Range<usize>>>,
    cx: ArgCx<'a>,
    errors: Vec<ArgError>,
    /// The index of the first declaration of the struct that is being filled: above 0 for a flattened struct.
    /// The indices that callers pass are relative to it.
    base: usize,
}

impl<'a> Parser<'a> {
    /// Splits a configuration string and assigns each argument to a declaration.
    pub fn new(config: &'a str, specs: &'static [ArgSpec], cx: ArgCx<'a>) -> Parser<'a> {
        let mut p =
            Parser { config, specs, given: vec![Vec::new(); specs.len()], cx, errors: Vec::new(), base: 0 };
        let mut positional = Vec::new();
        let mut maybe_keyword: Vec<(Range<usize>, String)> = Vec::new();
        let rest = specs.iter().position(|s| s.kind == ArgKind::Rest);
        for range in text::split(config) {
            let argument = config.get(range.clone()).unwrap_or("");
            match text::keyword(argument) {
                Some((word, value)) => {
                    let found = specs.iter().position(|s| {
                        s.kind != ArgKind::Rest && (s.name == word || s.aliases.contains(&word))
                    });
                    match found {
                        Some(i) => {
                            let keyword = range.start..range.start + word.len();
                            let value = range.start + value.start..range.start + value.end;
                            p.warn_of_deprecated(i, word, keyword);
                            if let Some(g) = p.given.get_mut(i) {
                                if let Some(first) = g.first().cloned() {
                                    let twice = ArgError::warning(format!("{word}: given twice"), first);
                                    p.errors.push(twice.help("the last value counts; remove the others"));
                                }
                                *g = vec![value];
                            }
                        }
                        None => {
                            maybe_keyword.push((range.clone(), word.to_string()));
                            positional.push((range, true));
                        }
                    }
                }
                None => positional.push((range, false)),
            }
        }
        p.assign_positional(positional, &maybe_keyword, rest);
        p
    }

    /// Warns when argument `i` is given by a deprecated keyword.
    fn warn_of_deprecated(&mut self, i: usize, keyword: &str, range: Range<usize>) {
        let Some(spec) = self.specs.get(i).filter(|s| s.deprecated.contains(&keyword)) else { return };
        let mut warning = ArgError::warning(format!("{keyword} is an old name of {}", spec.name), range);
        warning.classic = Some(format!("{keyword}: warning: argument deprecated"));
        self.errors.push(warning.did_you_mean(spec.name).help(format!("write {} instead", spec.name)));
    }

    /// Assigns positional arguments to declarations in order. An argument that begins like a keyword, but not with
    /// a known one, is an error, with two exceptions: the class has a rest argument, or a mandatory position would
    /// be left without an argument.
    fn assign_positional(
        &mut self,
        positional: Vec<(Range<usize>, bool)>,
        unknown: &[(Range<usize>, String)],
        rest: Option<usize>,
    ) {
        let slots: Vec<usize> = (0..self.specs.len())
            .filter(|&i| {
                self.specs.get(i).is_some_and(|s| s.kind == ArgKind::Positional)
                    && self.given.get(i).is_some_and(Vec::is_empty)
            })
            .collect();
        let plain = positional.iter().filter(|p| !p.1).count();
        // `wanted_keywords` is the number of arguments with unknown keywords that are accepted as positional
        // arguments.
        let mandatory = slots.iter().filter(|&&i| self.specs.get(i).is_some_and(|s| s.mandatory)).count();
        let mut wanted_keywords = if rest.is_some() { usize::MAX } else { mandatory.saturating_sub(plain) };
        let mut next = slots.into_iter();
        let mut surplus: Option<Range<usize>> = None;
        for (range, looks) in positional {
            if looks {
                if wanted_keywords == 0 {
                    self.unknown_keyword(&range, unknown);
                    continue;
                }
                wanted_keywords -= 1;
            }
            match next.next().or(rest) {
                Some(i) => {
                    if let Some(g) = self.given.get_mut(i) {
                        g.push(range);
                    }
                }
                None => surplus = Some(surplus.map_or(range.clone(), |s| s.start..range.end)),
            }
        }
        if let Some(range) = surplus {
            let names: Vec<_> =
                self.specs.iter().filter(|s| s.kind == ArgKind::Positional).map(|s| s.name).collect();
            let help = match names.len() {
                0 => "this class takes no positional arguments".to_string(),
                1 => format!("this class takes at most 1 positional argument: {}", names.join(", ")),
                n => format!("this class takes at most {n} positional arguments: {}", names.join(", ")),
            };
            self.errors.push(ArgError::new("too many arguments", range).help(help));
        }
    }

    fn unknown_keyword(&mut self, range: &Range<usize>, unknown: &[(Range<usize>, String)]) {
        let word = unknown.iter().find(|u| u.0 == *range).map_or("", |u| u.1.as_str());
        let names = self.specs.iter().filter(|s| s.kind != ArgKind::Rest).map(|s| s.name);
        let mut error = ArgError::new(
            format!("{word}: unknown argument"),
            range.start..range.start.saturating_add(word.len()),
        );
        if let Some(near) = castanet_lang::nearest(word, names.clone()) {
            error = error.did_you_mean(near);
        } else {
            let all: Vec<_> = names.collect();
            if !all.is_empty() {
                error = error.help(format!("the arguments are {}", all.join(", ")));
            }
        }
        self.errors.push(error);
    }

    /// Adds an error.
    pub fn error(&mut self, error: ArgError) {
        self.errors.push(error);
    }

    /// The context for parsing arguments.
    pub fn cx(&self) -> &ArgCx<'a> {
        &self.cx
    }

    fn read<T: ArgValue>(
        &mut self,
        index: usize,
        range: Range<usize>,
        check: fn(&T) -> Result<(), ValueError>,
    ) -> Option<T> {
        let name = self.specs.get(index).map_or("", |s| s.name);
        let mut cleaned: Cow<'_, str> = text::cleaned(self.config, range.clone());
        if T::WORD && cleaned.trim_start().starts_with(['"', '\'']) {
            cleaned = text::unquote(cleaned.trim()).into();
        }
        match T::parse(cleaned.trim(), &self.cx) {
            Ok(v) => match check(&v) {
                Ok(()) => {
                    if let Some((help, meant)) = self.equals_sign(cleaned.trim()) {
                        let message = format!("'{}' is taken as {name}", cleaned.trim());
                        let warning = ArgError::warning(message, range).help(help);
                        self.errors.push(ArgError { replacement: Some(meant), ..warning });
                    }
                    Some(v)
                }
                Err(message) => {
                    let doc = self.specs.get(index).map_or("", |s| s.doc);
                    let error = ArgError::new(message.about(name), range);
                    self.errors.push(error.help(format!("{name}: {doc}")));
                    None
                }
            },
            Err(wrong) => {
                let rest = self.specs.get(index).is_some_and(|s| s.kind == ArgKind::Rest);
                let nth = self.given.get(index).and_then(|g| g.iter().position(|r| *r == range));
                let message = match (rest, nth) {
                    (true, Some(n)) if !T::NUMBERED.is_empty() => {
                        wrong.about(&format!("{} {n}", T::NUMBERED))
                    }
                    (true, _) => wrong.to_string(),
                    (false, _) => wrong.about(name),
                };
                let error = ArgError::new(message, range);
                let error = self.mended(error, cleaned.trim(), T::TYPE, &wrong);
                self.errors.push(error);
                None
            }
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

    /// Returns the index of an argument among all declarations, and the last value given for it.
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

    /// Takes all remaining arguments.
    pub fn rest<T: ArgValue>(&mut self, index: usize) -> Option<Vec<T>> {
        let index = self.base.saturating_add(index);
        let given = self.given.get(index).cloned().unwrap_or_default();
        let n = given.len();
        let values: Vec<T> = given.into_iter().filter_map(|r| self.read(index, r, |_| Ok(()))).collect();
        (values.len() == n).then_some(values)
    }

    /// Returns the range of argument `index` in the configuration string, if it was given.
    pub fn place(&self, index: usize) -> Option<Range<usize>> {
        self.last_given(index).1
    }
}
