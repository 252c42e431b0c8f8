// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flags of a handler.

use std::fmt;

bitflags::bitflags! {
    /// What can be done with a handler, and how clients show it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct HandlerFlags: u16 {
        /// The handler can be read.
        const READ = 1;
        /// The handler can be written.
        const WRITE = 1 << 1;
        /// A read takes parameters.
        const PARAMETERS = 1 << 2;
        /// The value is data: clients pass it on unchanged, and neither add nor remove quotes or line ends.
        const RAW = 1 << 3;
        /// The value changes only with the configuration, so clients need not read it again.
        const CALM = 1 << 4;
        /// A read takes long.
        const EXPENSIVE = 1 << 5;
        /// The handler is rarely needed, so clients may hide it.
        const UNCOMMON = 1 << 6;
        /// The handler exists for old clients only.
        const DEPRECATED = 1 << 7;
        /// A write without a value triggers something, like a button.
        const BUTTON = 1 << 8;
        /// The value is `true` or `false`, like a checkbox.
        const CHECKBOX = 1 << 9;
        /// Only elements and scripts may call the handler.
        const PRIVATE = 1 << 10;
        /// The handler opens a file that its caller names.
        const OPENS_FILES = 1 << 11;
        /// The handler replaces the configuration, plans a replacement, or loads code.
        const RECONFIGURES = 1 << 12;
    }
}

impl HandlerFlags {
    /// The letters of the flags in a `handlers` listing, in the order in which they are listed.
    pub const LETTERS: [(char, HandlerFlags); 13] = [
        ('r', HandlerFlags::READ),
        ('w', HandlerFlags::WRITE),
        ('+', HandlerFlags::PARAMETERS),
        ('%', HandlerFlags::RAW),
        ('.', HandlerFlags::CALM),
        ('$', HandlerFlags::EXPENSIVE),
        ('U', HandlerFlags::UNCOMMON),
        ('D', HandlerFlags::DEPRECATED),
        ('b', HandlerFlags::BUTTON),
        ('c', HandlerFlags::CHECKBOX),
        ('p', HandlerFlags::PRIVATE),
        ('F', HandlerFlags::OPENS_FILES),
        ('R', HandlerFlags::RECONFIGURES),
    ];
    /// The handler can be read and written.
    pub const READ_WRITE: HandlerFlags = HandlerFlags::READ.union(HandlerFlags::WRITE);

    /// Parses the letters of a `handlers` listing. Skips letters that this version does not know.
    pub fn parse(letters: &str) -> HandlerFlags {
        let known = |letter| HandlerFlags::LETTERS.iter().find(|l| l.0 == letter).map(|l| l.1);
        letters.chars().filter_map(known).collect()
    }
    /// Whether the handler can be read.
    pub const fn is_readable(self) -> bool {
        self.contains(HandlerFlags::READ)
    }
    /// Whether the handler can be written.
    pub const fn is_writable(self) -> bool {
        self.contains(HandlerFlags::WRITE)
    }
    /// Whether the handler can be read, and whether it can be written.
    pub const fn access(self) -> (bool, bool) {
        (self.is_readable(), self.is_writable())
    }
}

/// Shows the letters, as in a `handlers` listing.
impl fmt::Display for HandlerFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = HandlerFlags::LETTERS.iter().filter(|l| self.contains(l.1));
        set.map(|l| l.0).try_for_each(|letter| fmt::Write::write_char(f, letter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_one_letter() {
        let letters: HandlerFlags = HandlerFlags::LETTERS.iter().map(|l| l.1).collect();
        assert_eq!(letters, HandlerFlags::all());
        for bits in 0..=HandlerFlags::all().bits() {
            let flags = HandlerFlags::from_bits(bits).unwrap_or_default();
            assert_eq!(HandlerFlags::parse(&flags.to_string()), flags);
        }
        assert_eq!(HandlerFlags::parse("b?wU").to_string(), "wUb");
        assert_eq!(HandlerFlags::parse("w").access(), (false, true));
    }
}
