// SPDX-License-Identifier: MIT OR Apache-2.0
//! Strings that share one text.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A string that is a part of a longer text, which it shares with other strings. Very many short strings take less memory
/// this way than with an allocation each.
#[derive(Clone, Default)]
pub struct SharedStr {
    text: Arc<str>,
    // INVARIANT: `start..end` is a range of `text` that begins and ends between characters.
    start: u32,
    end: u32,
}

impl SharedStr {
    /// The part of a text at a range of bytes. Empty if the text has no such part, or if the part ends beyond 2^32 bytes.
    pub fn new(text: Arc<str>, range: Range<usize>) -> SharedStr {
        let fits = text.get(range.clone()).is_some();
        match (u32::try_from(range.start), u32::try_from(range.end)) {
            (Ok(start), Ok(end)) if fits => SharedStr { text, start, end },
            _ => SharedStr::default(),
        }
    }
    /// The string.
    pub fn as_str(&self) -> &str {
        self.text.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

impl Deref for SharedStr {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for SharedStr {
    fn from(text: &str) -> SharedStr {
        SharedStr::new(text.into(), 0..text.len())
    }
}

impl fmt::Display for SharedStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for SharedStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_text() {
        let text: Arc<str> = "aébc".into();
        let part = |range| SharedStr::new(text.clone(), range).to_string();
        assert_eq!([part(0..3), part(3..5), part(5..5)], ["aé", "bc", ""]);
        assert_eq!([part(2..3), part(4..6)], ["", ""], "ranges that are no parts");
        assert_eq!((&*SharedStr::from("x/y"), SharedStr::default().as_str()), ("x/y", ""));
    }
}
