// SPDX-License-Identifier: MIT OR Apache-2.0
//! What files there are: the folders of a configuration, and the numbers under which the kernel knows them.

use castanet_element::CallError;
use castanet_element::remote::Remote;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The number of the mounted folder itself, whatever the configuration (FUSE fixes it).
pub(crate) const ROOT: u64 = 1;
/// How many elements get a folder: their index has 24 bits of an inode number.
const MOST_FOLDERS: usize = 1 << 24;
/// How many handlers of an element are shown: their index has 16 bits of an inode number, less those below [`FIRST`].
const MOST_HANDLERS: usize = (1 << 16) - FIRST as usize;
/// What stands for the first handler of a folder; 0 stands for the folder itself, 1 for the link to it.
const FIRST: u64 = 2;
/// The longest name of a file (Linux' NAME_MAX).
const LONGEST: usize = 255;

/// A handler, as the `handlers` listing tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handler {
    pub(crate) name: String,
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Its value is taken and given to the byte; others are lines.
    pub(crate) raw: bool,
}

impl Handler {
    /// The permissions of its file.
    pub(crate) fn mode(&self) -> u16 {
        match (self.read, self.write) {
            (true, true) => 0o644,
            (true, false) => 0o444,
            (false, _) => 0o200,
        }
    }
}

/// A folder: an element, or what the names of elements have before a slash, or both.
pub(crate) struct Folder {
    /// As elements are named; the mounted folder itself has none.
    pub(crate) path: String,
    element: bool,
    pub(crate) parent: u32,
    /// Folders in it: name and index, by name.
    pub(crate) children: Vec<(String, u32)>,
    handlers: OnceLock<Vec<Handler>>,
}

/// Something that an inode number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Folder(u32),
    /// The link by which a folder is found under the number of its element.
    Link(u32),
    Handler(u32, usize),
}

/// The files of one configuration.
pub(crate) struct Tree {
    /// How many swaps the router had seen.
    pub(crate) generation: u64,
    pub(crate) made: SystemTime,
    folders: Vec<Folder>,
    /// The folder of each element, in the order of the configuration; none where its name can be no path.
    numbered: Vec<Option<u32>>,
}

/// Whether a file may have this name.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && name != "." && name != ".." && !name.contains(['/', '\0'])
}

impl Tree {
    /// The tree of elements with these names.
    pub(crate) fn new(generation: u64, elements: &[String]) -> Tree {
        let folder = |path: &str, parent| Folder {
            path: path.to_string(),
            element: false,
            parent,
            children: Vec::new(),
            handlers: OnceLock::new(),
        };
        let mut folders = vec![folder("", 0)];
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
                    let index = u32::try_from(folders.len()).ok().filter(|_| folders.len() < MOST_FOLDERS)?;
                    folders.push(folder(path, parent));
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
        Tree { generation, made: SystemTime::now(), folders, numbered }
    }

    /// The inode number of a place; numbers of an earlier configuration mean nothing in this one.
    pub(crate) fn inode(&self, place: Place) -> u64 {
        let (folder, rest) = match place {
            Place::Folder(0) => return ROOT,
            Place::Folder(f) => (f, 0),
            Place::Link(f) => (f, 1),
            Place::Handler(f, h) => (f, h as u64 + FIRST),
        };
        (self.generation << 40) | (u64::from(folder) << 16) | (rest & 0xffff)
    }

    /// What an inode number stands for, unless it is one of another configuration.
    pub(crate) fn place(&self, inode: u64) -> Option<Place> {
        if inode == ROOT {
            return Some(Place::Folder(0));
        }
        let folder = u32::try_from((inode >> 16) & 0xff_ffff).ok()?;
        if inode >> 40 != (self.generation << 40) >> 40 || folder as usize >= self.folders.len() {
            return None;
        }
        match inode & 0xffff {
            0 if folder > 0 => Some(Place::Folder(folder)),
            1 if folder > 0 => Some(Place::Link(folder)),
            0 | 1 => None,
            h => Some(Place::Handler(folder, usize::try_from(h - FIRST).ok()?)),
        }
    }

    /// A folder by its index.
    pub(crate) fn folder(&self, folder: u32) -> Option<&Folder> {
        self.folders.get(folder as usize)
    }

    /// The folder of an element by its number, the first being 1.
    pub(crate) fn numbered(&self, name: &str) -> Option<u32> {
        if name.starts_with('0') || !name.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let n: usize = name.parse().ok()?;
        *self.numbered.get(n.checked_sub(1)?)?
    }

    /// The handlers of a folder, by name; asked for once, as they stay until the configuration is swapped.
    pub(crate) fn handlers(&self, remote: &dyn Remote, folder: u32) -> Result<&[Handler], CallError> {
        let Some(f) = self.folder(folder) else { return Ok(&[]) };
        if let Some(known) = f.handlers.get() {
            return Ok(known);
        }
        if folder > 0 && !f.element {
            return Ok(&[]);
        }
        let listing = remote.read(f.element(), "handlers", "")?;
        Ok(f.handlers.get_or_init(|| f.shown(&listing)))
    }
}

impl Folder {
    /// The element that it is; none: global handlers.
    pub(crate) fn element(&self) -> Option<&str> {
        self.element.then_some(self.path.as_str())
    }
    /// The folder of this name in it.
    pub(crate) fn child(&self, name: &str) -> Option<u32> {
        let at = self.children.binary_search_by(|c| c.0.as_str().cmp(name)).ok()?;
        self.children.get(at).map(|c| c.1)
    }
    /// The handlers of a listing that have a file here. One that is called as a folder beside it has none.
    fn shown(&self, listing: &str) -> Vec<Handler> {
        let mut handlers: Vec<Handler> = listing
            .lines()
            .filter_map(|l| l.split_once('\t'))
            .map(|(name, flags)| Handler {
                name: name.to_string(),
                read: flags.contains('r'),
                write: flags.contains('w'),
                raw: flags.contains('.'),
            })
            .filter(|h| (h.read || h.write) && is_file_name(&h.name) && self.child(&h.name).is_none())
            .collect();
        handlers.sort_by(|a, b| a.name.cmp(&b.name));
        handlers.dedup_by(|a, b| a.name == b.name);
        handlers.truncate(MOST_HANDLERS);
        handlers
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn tree(names: &[&str]) -> Tree {
        Tree::new(7, &names.iter().map(ToString::to_string).collect::<Vec<_>>())
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
        let listing = "b\trw\na\tr.\nw\tw%\na\tw\nneither\t%\nx/y\tr\n..\tr\ncount\tr\nno tab\n\tr\n";
        let shown = t.folder(0).unwrap().shown(listing);
        let modes: Vec<_> = shown.iter().map(|h| (h.name.as_str(), h.mode(), h.raw)).collect();
        assert_eq!(modes, [("a", 0o444, true), ("b", 0o644, false), ("w", 0o200, false)]);
        let many: String = (0..70_000).map(|i| format!("h{i}\tr\n")).collect();
        assert_eq!(t.folder(0).unwrap().shown(&many).len(), MOST_HANDLERS);
    }

    #[test]
    fn numbers_of_other_configurations_mean_nothing() {
        let old = tree(&["a"]);
        let new = Tree::new(8, &["a".to_string()]);
        for place in [Place::Folder(1), Place::Link(1), Place::Handler(0, 0), Place::Handler(1, 65_533)] {
            assert_eq!(old.place(old.inode(place)), Some(place));
            assert_eq!(new.place(old.inode(place)), None);
        }
        for t in [old, new] {
            assert_eq!(t.inode(Place::Folder(0)), ROOT);
            assert_eq!(t.place(ROOT), Some(Place::Folder(0)));
        }
    }

    proptest! {
        #[test]
        fn every_element_is_found_by_its_path(
            names in proptest::collection::vec("[ab./]{0,6}", 0..12), generation: u64, inode: u64,
        ) {
            let t = Tree::new(generation, &names);
            for (i, name) in names.iter().enumerate() {
                let walk = name.split('/').try_fold(0, |f, part| t.folder(f)?.child(part));
                prop_assert_eq!(walk, t.numbered(&(i + 1).to_string()));
                prop_assert_eq!(walk.is_some(), name.split('/').all(is_file_name));
                if let Some(f) = walk {
                    prop_assert_eq!(t.folder(f).unwrap().element(), Some(name.as_str()));
                    for place in [Place::Folder(f), Place::Link(f), Place::Handler(f, 3)] {
                        prop_assert_eq!(t.place(t.inode(place)), Some(place));
                    }
                }
            }
            // Any number is a place of this tree or none.
            if let Some(place) = t.place(inode) {
                prop_assert_eq!(t.inode(place), inode);
            }
        }
    }
}
