// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binding of arguments: what a class declares about its arguments, and the values that a configuration string
//! gives them (language reference 1.9). [`Parser`] assigns the values to the declarations.

mod given;
mod mend;
mod parser;

pub use given::Given;
pub use parser::Parser;

use crate::anno;
use crate::handler::HandlerSpec;
use crate::names::Names;
use crate::origin::Origin;
use crate::value::{Show, ValueError};
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
    /// How the argument is given: by position, by keyword only, or as a rest argument.
    pub kind: ArgKind,
    /// Whether the argument must be given.
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
    /// The text to show instead of `message` in the format of Click's messages. `None` to show `message`.
    pub classic: Option<String>,
    /// How to fix the argument; empty if unknown.
    pub help: String,
    /// The text that the offending bytes were probably meant to be.
    pub replacement: Option<String>,
    /// Whether this is a warning, so that the configuration may still run.
    pub warning: bool,
    /// Whether this warning is shown only if the configuration also has errors.
    pub beside_errors: bool,
}

impl ArgError {
    /// An error about a range of the configuration string.
    pub fn new(message: impl Into<String>, range: Range<usize>) -> ArgError {
        let (message, help) = (message.into(), String::new());
        ArgError {
            message,
            range,
            classic: None,
            help,
            replacement: None,
            warning: false,
            beside_errors: false,
        }
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
    /// The origin of the arguments' text. Handler calls and file names in the text have the rights of this origin.
    pub origin: Origin,
}

impl ArgCx<'_> {
    /// Returns the offset of an annotation of `size` bytes. `text` is a name that AnnotationInfo defined, a
    /// predefined name, or an offset.
    pub fn annotation(&self, text: &str, size: usize) -> Result<usize, ValueError> {
        match self.names.annotation(self.scope, text) {
            Some((_, Some(s))) if s != size => {
                Err(format!("annotation '{text}' has {s} bytes, {size} wanted").into())
            }
            Some((offset, _)) => anno::find(&offset.to_string(), size),
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
    /// Takes the values from a parser that was made with [`Args::SPECS`]. Returns none if a value is missing or
    /// invalid. The errors are left in the parser.
    fn take(parser: &mut Parser<'_>) -> Option<Self>;
    /// Returns the value that a handler shows; none if the handler does not belong to an argument.
    fn read(&self, handler: &str) -> Option<String>;
    /// Sets the argument that a handler belongs to. Returns none if the handler does not belong to an argument.
    fn write(&mut self, handler: &str, text: &str, cx: &ArgCx<'_>) -> Option<Result<(), ValueError>>;

    /// Returns a warning about a valid text that was written to a handler.
    fn doubt(_handler: &str, _text: &str) -> Option<ValueError> {
        None
    }

    /// Parses a configuration string. Returns the arguments, or none after an error, and all errors and warnings.
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
    let is = |s: &ArgSpec, name: &str| {
        s.name.eq_ignore_ascii_case(name) || s.aliases.iter().any(|a| a.eq_ignore_ascii_case(name))
    };
    let named = |name: &str| specs.iter().enumerate().find(|(_, s)| is(s, name));
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
    match parser.given.get(i).and_then(|g| g.get(nth)) {
        Some(range) => Some(format!("{}{value}{}", config.get(..range.start)?, config.get(range.end..)?)),
        None if spec.kind == ArgKind::Rest => None,
        None if config.trim().is_empty() => Some(format!("{} {value}", spec.name)),
        None => Some(format!("{}, {} {value}", config.trim_end(), spec.name)),
    }
}

/// Checks a value against the limits of its declaration. The limits themselves are allowed. `off` is a value that
/// switches something off. It is allowed even outside the limits. The text of the error does not contain the name of
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
        (Some(min), Some(max)) if *value < min || *value > max => {
            Err(format!("must be between {} and {}{or}", min.show(), max.show()).into())
        }
        (Some(min), _) if *value < min => Err(format!("must be at least {}{or}", min.show()).into()),
        (_, Some(max)) if *value > max => Err(format!("must be at most {}{or}", max.show()).into()),
        _ => Ok(()),
    }
}

/// The empty list of arguments, for classes without arguments.
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
