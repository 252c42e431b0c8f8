// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places of declarations.

use std::fmt;
use std::sync::Arc;

/// Where an element is declared: `FILE:LINE`. By default it is not known, and shown as an empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place(Option<(Arc<str>, u32)>);

impl Place {
    /// A line of a file. The places in a file share its name.
    pub fn new(file: Arc<str>, line: u32) -> Place {
        Place(Some((file, line)))
    }
    /// Whether the place is known.
    pub fn is_known(&self) -> bool {
        self.0.is_some()
    }
    /// Returns the place as messages begin with it: `FILE:LINE: `. Empty if it is not known.
    pub fn heading(&self) -> String {
        if self.is_known() { format!("{self}: ") } else { String::new() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(file, line)| write!(f, "{file}:{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_places_are_not_shown() {
        let (known, unknown) = (Place::new("a.click".into(), 3), Place::default());
        assert_eq!((known.to_string(), known.heading()), ("a.click:3".into(), "a.click:3: ".into()));
        assert_eq!((unknown.to_string(), unknown.heading()), (String::new(), String::new()));
    }
}
