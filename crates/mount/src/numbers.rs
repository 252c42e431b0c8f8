// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inode numbers. The numbers of an element stay the same over a hot swap. So a process whose current directory is
//! that of an element can continue to work there.

use std::collections::HashMap;

/// The inode number of the mount point, fixed by FUSE.
pub(crate) const ROOT: u64 = 1;
/// Directory numbers are less than this: an inode number has 24 bits for the directory.
const MOST_FOLDERS: usize = 1 << 24;
/// The maximum number of handler names. An inode number has 16 bits for the handler name, but values below [`FIRST`]
/// stand for other parts of a directory.
const MOST_NAMES: usize = (1 << 16) - FIRST as usize;
/// The lowest number of a handler name. 0 stands for the directory itself, 1 for the link to the directory.
const FIRST: u16 = 2;

/// The part of a directory that an inode number refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The directory itself.
    Folder,
    /// The symbolic link to the directory. The name of the link is the number of the element.
    Link,
    /// The handler with this number.
    Handler(u16),
}

/// The inode number of a part of a directory. It is valid only in this epoch. A new epoch begins when all numbers are
/// assigned anew (see [`Numbers::tidy`]).
pub(crate) fn inode(epoch: u64, folder: u32, part: Part) -> u64 {
    let part = match part {
        Part::Folder if folder == 0 => return ROOT,
        Part::Folder => 0,
        Part::Link => 1,
        Part::Handler(h) => h,
    };
    (epoch << 40) | (u64::from(folder & 0xff_ffff) << 16) | u64::from(part)
}

/// Returns the number of the directory and the part that an inode number stands for. None if the inode number is not
/// valid in this epoch.
pub(crate) fn meaning(epoch: u64, inode: u64) -> Option<(u32, Part)> {
    if inode == ROOT {
        return Some((0, Part::Folder));
    }
    if inode >> 40 != (epoch << 40) >> 40 {
        return None;
    }
    let folder = u32::try_from((inode >> 16) & 0xff_ffff).ok()?;
    match u16::try_from(inode & 0xffff).ok()? {
        0 | 1 if folder == 0 => None,
        0 => Some((folder, Part::Folder)),
        1 => Some((folder, Part::Link)),
        h => Some((folder, Part::Handler(h))),
    }
}

/// The numbers assigned so far.
#[derive(Default)]
pub(crate) struct Numbers {
    pub(crate) epoch: u64,
    folders: HashMap<String, u32>,
    names: HashMap<String, u16>,
}

impl Numbers {
    /// Starts a new epoch if far more paths have been numbered than there are directories, or if all numbers for
    /// handler names are in use. This bounds memory over any number of configurations.
    pub(crate) fn tidy(&mut self, folders: usize) {
        let most = folders.saturating_mul(4).saturating_add(10_000).min(MOST_FOLDERS - 1);
        if self.folders.len() > most || self.names.len() >= MOST_NAMES {
            *self = Numbers { epoch: self.epoch.wrapping_add(1), ..Numbers::default() };
        }
    }
    /// The number of the directory with this path. A new path gets a new number; `None` if all numbers are in use. The
    /// number 0 is reserved for the mount point.
    pub(crate) fn folder(&mut self, path: &str) -> Option<u32> {
        if let Some(known) = self.folders.get(path) {
            return Some(*known);
        }
        let next = self.folders.len() + 1;
        let number = u32::try_from(next).ok().filter(|_| next < MOST_FOLDERS)?;
        self.folders.insert(path.to_string(), number);
        Some(number)
    }
    /// The number of a handler name. A new name gets a new number; `None` if all numbers are in use.
    pub(crate) fn name(&mut self, name: &str) -> Option<u16> {
        if let Some(known) = self.names.get(name) {
            return Some(*known);
        }
        let number = u16::try_from(self.names.len()).ok()?.checked_add(FIRST)?;
        self.names.insert(name.to_string(), number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn remaining_paths_keep_their_numbers() {
        let mut n = Numbers::default();
        assert_eq!((n.folder("a"), n.folder("b"), n.folder("a")), (Some(1), Some(2), Some(1)));
        assert_eq!((n.name("x"), n.name("y"), n.name("x")), (Some(2), Some(3), Some(2)));
        n.tidy(2);
        assert_eq!((n.epoch, n.folder("b")), (0, Some(2)));
        for i in 0..10_100 {
            n.folder(&i.to_string());
        }
        n.tidy(1_000);
        assert_eq!(n.epoch, 0);
        n.tidy(2);
        assert_eq!((n.epoch, n.folder("b"), n.name("y")), (1, Some(1), Some(2)));
    }

    #[test]
    fn names_may_run_out() {
        let mut n = Numbers::default();
        let last = (0..MOST_NAMES).map(|i| n.name(&i.to_string())).last().unwrap();
        assert_eq!((last, n.name("one more"), n.name("0")), (Some(u16::MAX), None, Some(2)));
        n.tidy(1);
        assert_eq!((n.epoch, n.name("one more")), (1, Some(2)));
    }

    proptest! {
        #[test]
        fn numbers_mean_one_thing(epoch: u64, folder in 0u32..1 << 24, h in FIRST.., any: u64) {
            for part in [Part::Folder, Part::Link, Part::Handler(h)] {
                if (folder, part) != (0, Part::Link) {
                    let inode = inode(epoch, folder, part);
                    prop_assert_eq!(meaning(epoch, inode), Some((folder, part)));
                    prop_assert!(inode == ROOT || meaning(epoch.wrapping_add(1), inode).is_none());
                }
            }
            if let Some((folder, part)) = meaning(epoch, any) {
                prop_assert_eq!(inode(epoch, folder, part), any);
            }
        }
    }
}
