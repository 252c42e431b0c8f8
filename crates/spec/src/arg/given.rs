// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the arguments of an element without making the element, for checks and tools.

use super::{ArgCx, ArgKind, ArgSpec, Parser};
use crate::names::Names;
use crate::origin::Origin;
use crate::value::ArgValue;
use castanet_lang::args as text;
use std::ops::Range;

/// The arguments that a configuration string gives.
pub struct Given<'a> {
    config: &'a str,
    specs: &'static [ArgSpec],
    /// By declaration: the values given.
    given: Vec<Vec<Range<usize>>>,
}

impl<'a> Given<'a> {
    /// Assigns the arguments of a configuration string to declarations.
    pub fn new(config: &'a str, specs: &'static [ArgSpec]) -> Given<'a> {
        let names = Names::new();
        let cx = ArgCx { scope: "", names: &names, origin: Origin::default() };
        Given { config, specs, given: Parser::new(config, specs, cx).given }
    }
    /// Returns the text of an argument without quotes and comments. If the argument is not given, returns its default
    /// as the manual shows it. `None` if there is neither.
    pub fn text(&self, name: &str) -> Option<String> {
        let (i, spec) = self.specs.iter().enumerate().find(|(_, s)| s.name == name)?;
        match self.given.get(i).and_then(|g| g.last()) {
            Some(range) => Some(self.value(range)),
            None => Some(spec.default).filter(|d| !d.is_empty()).map(str::to_string),
        }
    }
    /// Whether an argument is given.
    pub fn is_given(&self, name: &str) -> bool {
        let i = self.specs.iter().position(|s| s.name == name);
        i.and_then(|i| self.given.get(i)).is_some_and(|g| !g.is_empty())
    }
    /// Returns the value of an argument that is an integer; `None` if it has none.
    pub fn number(&self, name: &str) -> Option<i64> {
        parsed(&self.text(name)?)
    }
    /// Returns the value of an argument that is a truth value; `None` if it has none.
    pub fn flag(&self, name: &str) -> Option<bool> {
        parsed(&self.text(name)?)
    }
    /// Returns the texts of the rest argument, in order.
    pub fn rest(&self) -> Vec<String> {
        let i = self.specs.iter().position(|s| s.kind == ArgKind::Rest);
        let given = i.and_then(|i| self.given.get(i)).map_or(&[][..], Vec::as_slice);
        given.iter().map(|range| self.value(range)).collect()
    }
    fn value(&self, range: &Range<usize>) -> String {
        text::unquote(&text::cleaned(self.config, range.clone())).trim().to_string()
    }
}

/// Parses a value that refers to no names of the configuration.
fn parsed<T: ArgValue>(value: &str) -> Option<T> {
    let names = Names::new();
    T::parse(value, &ArgCx { scope: "", names: &names, origin: Origin::default() }).ok()
}
