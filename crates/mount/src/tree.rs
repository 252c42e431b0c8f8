// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree of directories and files that represents a configuration.

use crate::numbers::{self, Numbers, Part};
use castanet_element::CallError;
use castanet_element::remote::Remote;
use castanet_element::spec::HandlerFlags;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The longest file name (Linux's NAME_MAX).
const LONGEST: usize = 255;

/// A handler, as its element's handler `handlers` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handler {
    pub(crate) name: String,
    /// The number that stands for the handler's name in inode numbers.
    pub(crate) number: u16,
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Whether the value of the handler is transferred byte for byte. Other values are lines of text.
    pub(crate) raw: bool,
}

impl Handler {
    /// The permissions of the handler's file.
    pub(crate) fn mode(&self) -> u16 {
        match (self.read, self.write) {
            (true, true) => 0o644,
            (true, false) => 0o444,
            (false, _) => 0o200,
        }
    }
}

/// A directory. It stands for an element, for the part of element names before a slash, or for both.
pub(crate) struct Folder {
    number: u32,
    /// The path, in the form of an element name; empty for the mount point.
    pub(crate) path: String,
    element: bool,
    pub(crate) parent: u32,
    /// The subdirectories: name and index, sorted by name.
    pub(crate) children: Vec<(String, u32)>,
    handlers: OnceLock<Vec<Handler>>,
}

/// What an inode number refers to: the index of a directory, and a part of that directory.
pub(crate) type Node = (u32, Part);

/// The files of one configuration.
pub(crate) struct Tree {
    /// The number of swaps of the router when the tree was built.
    pub(crate) generation: u64,
    pub(crate) made: SystemTime,
    epoch: u64,
    folders: Vec<Folder>,
    /// Maps a directory number, as inode numbers contain it, to the index of the directory in `folders`.
    indices: HashMap<u32, u32>,
    /// The directory of each element, in configuration order; `None` if its name is not a valid path.
    numbered: Vec<Option<u32>>,
}

/// Whether this is a valid file name.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && name != "." && name != ".." && !name.contains(['/', '\0'])
}

impl Tree {
    /// Builds the tree for elements with these names.
    pub(crate) fn new(generation: u64, elements: &[String], numbers: &mut Numbers) -> Tree {
        numbers.tidy(elements.len());
        let folder = |number, path: &str, parent| Folder {
            number,
            path: path.to_string(),
            element: false,
            parent,
            children: Vec::new(),
            handlers: OnceLock::new(),
        };
        let mut folders = vec![folder(0, "", 0)];
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut numbered = Vec::with_capacity(elements.len());
        for element in elements {
            if !element.split('/').all(is_file_name) {
                numbered.push(None);
                continue;
            }
            let mut here = Some(0u32);
            let ends = element.match_indices('/').map(|(at, _)| at).chain([element.len()]);
            let mut start = 0;
            for end in ends {
                let (Some(parent), Some(path)) = (here, element.get(..end)) else { break };
                here = known.get(path).copied().or_else(|| {
                    let index = u32::try_from(folders.len()).ok()?;
                    folders.push(folder(numbers.folder(path)?, path, parent));
                    let name = element.get(start..end)?.to_string();
                    folders.get_mut(parent as usize)?.children.push((name, index));
                    known.insert(path, index);
                    Some(index)
                });
                start = end + 1;
            }
            if let Some(f) = here.and_then(|f| folders.get_mut(f as usize)) {
                f.element = true;
            }
            numbered.push(here);
        }
        for f in &mut folders {
            f.children.sort();
        }
        let indices = folders.iter().map(|f| f.number).zip(0..).collect();
        Tree { generation, made: SystemTime::now(), epoch: numbers.epoch, folders, indices, numbered }
    }

    /// The inode number of a part of a directory: of the directory itself, of the link to the directory, or of a
    /// handler.
    pub(crate) fn inode(&self, (folder, part): Node) -> u64 {
        numbers::inode(self.epoch, self.folder(folder).map_or(0, |f| f.number), part)
    }

    /// The directory and the part of it that an inode number refers to; `None` if the directory no longer exists.
    pub(crate) fn place(&self, inode: u64) -> Option<Node> {
        let (number, part) = numbers::meaning(self.epoch, inode)?;
        Some((*self.indices.get(&number)?, part))
    }

    /// The directory with this index.
    pub(crate) fn folder(&self, folder: u32) -> Option<&Folder> {
        self.folders.get(folder as usize)
    }

    /// The directory of the element whose number, counting from 1, is `name`.
    pub(crate) fn numbered(&self, name: &str) -> Option<u32> {
        if name.starts_with('0') || !name.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let n: usize = name.parse().ok()?;
        *self.numbered.get(n.checked_sub(1)?)?
    }

    /// The handlers of a directory, sorted by name. They are queried once, because they stay the same until the
    /// next swap.
    pub(crate) fn handlers(
        &self,
        remote: &dyn Remote,
        folder: u32,
        numbers: &Mutex<Numbers>,
    ) -> Result<&[Handler], CallError> {
        let Some(f) = self.folder(folder) else { return Ok(&[]) };
        if let Some(known) = f.handlers.get() {
            return Ok(known);
        }
        if folder > 0 && !f.element {
            return Ok(&[]);
        }
        let listing = remote.read(f.element(), "handlers", "")?;
        let mut numbers = numbers.lock();
        Ok(f.handlers.get_or_init(|| f.shown(&listing, &mut numbers)))
    }
}

impl Folder {
    /// The name of the element of this directory; `None` for a directory without an element, such as the mount point.
    pub(crate) fn element(&self) -> Option<&str> {
        self.element.then_some(self.path.as_str())
    }
    /// The subdirectory with this name.
    pub(crate) fn child(&self, name: &str) -> Option<u32> {
        let at = self.children.binary_search_by(|c| c.0.as_str().cmp(name)).ok()?;
        self.children.get(at).map(|c| c.1)
    }
    /// The handlers that become files of this directory, from the text of a `handlers` listing. A handler with the
    /// name of a subdirectory is left out.
    fn shown(&self, listing: &str, numbers: &mut Numbers) -> Vec<Handler> {
        let lines = listing.lines().filter_map(|l| l.split_once('\t'));
        let lines = lines.map(|(name, flags)| (name, HandlerFlags::parse(flags)));
        let usable = lines.filter(|(name, flags)| {
            flags.intersects(HandlerFlags::READ_WRITE) && is_file_name(name) && self.child(name).is_none()
        });
        let mut handlers: Vec<Handler> = usable
            .filter_map(|(name, flags)| {
                Some(Handler {
                    name: name.to_string(),
                    number: numbers.name(name)?,
                    read: flags.is_readable(),
                    write: flags.is_writable(),
                    raw: flags.contains(HandlerFlags::RAW),
                })
            })
            .collect();
        handlers.sort_by(|a, b| a.name.cmp(&b.name));
        handlers.dedup_by(|a, b| a.name == b.name);
        handlers
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn tree(names: &[&str]) -> Tree {
        Tree::new(7, &names.iter().map(ToString::to_string).collect::<Vec<_>>(), &mut Numbers::default())
    }

    #[test]
    fn slashes_make_folders() {
        let t = tree(&["a/b/c", "a", "x@1", "a/b2"]);
        let names = |f: u32| t.folder(f).unwrap().children.iter().map(|c| c.0.clone()).collect::<Vec<_>>();
        assert_eq!(names(0), ["a", "x@1"]);
        let a = t.folder(0).unwrap().child("a").unwrap();
        assert_eq!(names(a), ["b", "b2"]);
        assert_eq!(t.folder(a).unwrap().element(), Some("a"));
        let b = t.folder(a).unwrap().child("b").unwrap();
        assert_eq!(t.folder(b).unwrap().element(), None, "a prefix is no element");
        assert_eq!(t.folder(b).unwrap().parent, a);
        let path = |n: &str| t.numbered(n).map(|f| t.folder(f).unwrap().path.clone());
        assert_eq!(path("1").as_deref(), Some("a/b/c"));
        assert_eq!(path("2").as_deref(), Some("a"));
        assert_eq!(path("4").as_deref(), Some("a/b2"));
        for none in ["0", "5", "01", "", "+1", "-1", "99999999999999999999999", "1 "] {
            assert_eq!(path(none), None, "{none:?}");
        }
    }

    #[test]
    fn names_that_are_no_paths_keep_their_number_free() {
        let long = "x".repeat(256);
        let t = tree(&["a//b", "/a", "a/", "..", "a/./b", "", "nul\0", &long, "ok"]);
        assert_eq!(t.folder(0).unwrap().children, [("ok".to_string(), 1)]);
        assert_eq!((t.numbered("1"), t.numbered("9")), (None, Some(1)));
    }

    #[test]
    fn handlers_are_shown_by_their_flags() {
        let t = tree(&["count"]);
        let listing = "b\trw\na\tr%\nw\tw.\na\tw\nneither\t%\nx/y\tr\n..\tr\ncount\tr\nno tab\n\tr\n";
        let shown = t.folder(0).unwrap().shown(listing, &mut Numbers::default());
        let modes: Vec<_> = shown.iter().map(|h| (h.name.as_str(), h.mode(), h.raw)).collect();
        assert_eq!(modes, [("a", 0o444, true), ("b", 0o644, false), ("w", 0o200, false)]);
    }

    #[test]
    fn remaining_elements_keep_their_inode_numbers() {
        let mut numbers = Numbers::default();
        let mut tree = |names: &[&str]| {
            Tree::new(0, &names.iter().map(ToString::to_string).collect::<Vec<_>>(), &mut numbers)
        };
        let (old, new) = (tree(&["goes", "stays/a", "stays"]), tree(&["comes", "stays/a"]));
        let inode = |t: &Tree, name: &str| {
            let f = name.split('/').try_fold(0, |f, part| t.folder(f)?.child(part)).unwrap();
            t.inode((f, Part::Handler(5)))
        };
        assert_eq!(inode(&old, "stays/a"), inode(&new, "stays/a"));
        assert_eq!(inode(&old, "stays"), inode(&new, "stays"));
        assert_ne!(inode(&old, "goes"), inode(&new, "comes"));
        assert_eq!(new.place(inode(&old, "goes")), None);
        assert_eq!(old.place(inode(&new, "comes")), None);
    }

    proptest! {
        #[test]
        fn every_element_is_found_by_its_path(
            names in proptest::collection::vec("[ab./]{0,6}", 0..12), generation: u64, inode: u64,
        ) {
            let t = Tree::new(generation, &names, &mut Numbers::default());
            for (i, name) in names.iter().enumerate() {
                let walk = name.split('/').try_fold(0, |f, part| t.folder(f)?.child(part));
                prop_assert_eq!(walk, t.numbered(&(i + 1).to_string()));
                prop_assert_eq!(walk.is_some(), name.split('/').all(is_file_name));
                if let Some(f) = walk {
                    prop_assert_eq!(t.folder(f).unwrap().element(), Some(name.as_str()));
                    for place in [(f, Part::Folder), (f, Part::Link), (f, Part::Handler(3))] {
                        prop_assert_eq!(t.place(t.inode(place)), Some(place));
                    }
                }
            }
            // Every number is either invalid, or the inode number of the place that it refers to.
            if let Some(place) = t.place(inode) {
                prop_assert_eq!(t.inode(place), inode);
            }
        }
    }
}
