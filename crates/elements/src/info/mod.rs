// SPDX-License-Identifier: MIT OR Apache-2.0
//! Information classes: they handle no packets, and only define names and settings for other elements.

use castanet_element::prelude::*;
use castanet_element::{ClassDef, information};
use castanet_lang::args as text;
use std::ops::Range;

pub mod address_info;
pub mod alignment_info;
pub mod annotation_info;
pub mod clicky_info;
pub mod devirtualize_info;
pub mod port_info;
pub mod random_seed;
pub mod schedule_info;
pub mod static_thread_sched;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    information::<address_info::AddressInfo>(),
    information::<alignment_info::AlignmentInfo>(),
    information::<annotation_info::AnnotationInfo>(),
    information::<clicky_info::ClickyInfo>(),
    information::<devirtualize_info::DevirtualizeInfo>(),
    information::<port_info::PortInfo>(),
    information::<random_seed::RandomSeed>(),
    information::<schedule_info::ScheduleInfo>(),
    information::<static_thread_sched::StaticThreadSched>(),
];

/// One argument of an information class. Its text is not stored here: `inform` reads it from the configuration string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition;

impl ArgValue for Definition {
    const TYPE: &'static str = "definition";
    fn parse(_: &str, _: &ArgCx<'_>) -> Result<Self, ValueError> {
        Ok(Definition)
    }
}

/// Calls `define` with the words of each argument that is not empty. Returns all errors, each with the
/// position of its argument.
fn each_argument(
    config: &str,
    mut define: impl FnMut(&[String]) -> Result<(), ValueError>,
) -> Result<(), ConfigError> {
    each_with_warnings(config, |words, _| define(words))
}

/// Like [`each_argument`], for classes that also give warnings. `define` appends each warning, as a message and a help
/// text, to its second argument.
fn each_with_warnings(
    config: &str,
    mut define: impl FnMut(&[String], &mut Vec<(String, String)>) -> Result<(), ValueError>,
) -> Result<(), ConfigError> {
    let mut errors = Vec::new();
    for range in text::split(config) {
        let words = words(config, range.clone());
        if words.is_empty() {
            continue;
        }
        let mut warnings = Vec::new();
        let defined = define(&words, &mut warnings);
        let warn = |(message, help): (String, String)| ArgError::warning(message, range.clone()).help(help);
        errors.extend(warnings.into_iter().map(warn));
        if let Err(message) = defined {
            errors.push(ArgError::new(message, range));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(ConfigError(errors)) }
}

fn words(config: &str, range: Range<usize>) -> Vec<String> {
    let argument = text::cleaned(config, range);
    text::words(&argument).into_iter().filter_map(|r| argument.get(r)).map(text::unquote).collect()
}

/// Returns the error message for a name that is not an element.
fn no_element(name: &str, names: &Names) -> String {
    unknown(name, "", names)
}

/// Returns the error message for a name that stands for neither an element nor a compound. As in Click, the message
/// appends a `/` to the name, because the name may have been meant for a compound.
fn no_element_or_compound(name: &str, names: &Names) -> String {
    unknown(name, "/", names)
}

fn unknown(name: &str, end: &str, names: &Names) -> String {
    let near = names.nearest_element(name);
    let hint = near.map(|n| format!(", did you mean '{n}'?")).unwrap_or_default();
    format!("'{name}{end}' does not name an element{hint}")
}

#[cfg(test)]
fn messages(result: Result<(), ConfigError>) -> Vec<String> {
    result.err().map_or(Vec::new(), |e| e.0.into_iter().map(|e| e.message).collect())
}
