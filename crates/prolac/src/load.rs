// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a program: its files, the files that these include, and the extensions that are switched on.

use crate::resolve::nearest;
use crate::syntax::ast::{Item, Name, Text};
use crate::syntax::parse;
use castanet_diagnostic::{Diagnostic, FileId, Sources, Span};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

/// Limit on the number of files of a program.
const MAX_FILES: usize = 1_000;

/// Limit on the length of a file in bytes.
pub const MAX_LENGTH: u64 = 16 << 20;

/// Where the files of a program come from.
pub trait Files {
    /// Reads the file that `include` or `hookup` names in the file `from`. Returns a name for messages and the text, or
    /// the cause of failure. Files are told apart by this name.
    fn read(&self, from: &str, name: &str) -> Result<(String, String), String>;
}

/// No files: a program that consists of one text.
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str, _: &str) -> Result<(String, String), String> {
        Err("this program cannot include files".into())
    }
}

/// Reads files from disk. A name is relative to the folder of the file that includes it.
pub struct Folder;

impl Files for Folder {
    fn read(&self, from: &str, name: &str) -> Result<(String, String), String> {
        let folder = Path::new(from).parent().unwrap_or(Path::new(""));
        let path = plain(folder.join(name));
        // Opening a pipe would wait until something writes to it, and a device may have no end.
        if !std::fs::metadata(&path).map_err(|e| e.to_string())?.is_file() {
            return Err("this is not a regular file".into());
        }
        let mut text = Vec::new();
        let file = std::fs::File::open(&path).map_err(|e| e.to_string())?;
        let read = file.take(MAX_LENGTH + 1).read_to_end(&mut text).map_err(|e| e.to_string())?;
        if read as u64 > MAX_LENGTH {
            return Err(format!("the file is larger than {} MiB", MAX_LENGTH >> 20));
        }
        Ok((path.to_string_lossy().into_owned(), String::from_utf8_lossy(&text).into_owned()))
    }
}

/// A path without `.` and `..`, if that leads to the same file: then a file has one name, wherever it is included.
pub fn plain(path: PathBuf) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(plain.components().next_back(), Some(Component::Normal(_))) => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    // The folder before `..` may be a symbolic link.
    let same = plain.canonicalize().is_ok_and(|p| path.canonicalize().is_ok_and(|q| p == q));
    if same { plain } else { path }
}

/// The extensions that are switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extensions {
    /// All that the program declares.
    All,
    /// Those with these names; `all` stands for all of them.
    Named(Vec<String>),
}

/// The name that stands for all extensions.
const ALL: &str = "all";

impl Extensions {
    /// No extensions.
    pub fn none() -> Extensions {
        Extensions::Named(Vec::new())
    }
}

/// The items of all files of a program, in the order of inclusion.
pub(crate) struct Loaded {
    pub items: Vec<Item>,
    pub diagnostics: Vec<Diagnostic>,
    /// The declared extensions, in order, and whether each is switched on.
    pub extensions: Vec<(String, bool)>,
}

struct Loader<'a> {
    sources: &'a mut Sources,
    files: &'a dyn Files,
    extensions: &'a Extensions,
    out: Loaded,
    read: BTreeMap<String, FileId>,
    declared: BTreeMap<String, Span>,
}

/// Reads a program that begins with the file `main`, which `sources` holds already.
pub(crate) fn load(
    sources: &mut Sources,
    main: FileId,
    files: &dyn Files,
    extensions: &Extensions,
) -> Loaded {
    let out = Loaded { items: Vec::new(), diagnostics: Vec::new(), extensions: Vec::new() };
    let mut loader =
        Loader { sources, files, extensions, out, read: BTreeMap::new(), declared: BTreeMap::new() };
    loader.read.insert(loader.sources.name(main).to_string(), main);
    loader.file(main);
    loader.unknown_extensions();
    loader.out
}

impl Loader<'_> {
    /// Adds the items of a file. Files are loaded one after the other, not recursively: an inclusion is replaced by the
    /// items of its file.
    fn file(&mut self, main: FileId) {
        let mut open: Vec<Item> = self.parse(main);
        open.reverse();
        while let Some(item) = open.pop() {
            match item {
                Item::Include(file) => {
                    if let Some(id) = self.include(&file) {
                        open.extend(self.parse(id).into_iter().rev());
                    }
                }
                Item::Extension(name, file) => {
                    if self.switched_on(&name)
                        && let Some(id) = self.include(&file)
                    {
                        open.extend(self.parse(id).into_iter().rev());
                    }
                }
                item => self.out.items.push(item),
            }
        }
    }

    fn parse(&mut self, file: FileId) -> Vec<Item> {
        let parsed = parse(file, self.sources.text(file));
        self.out.diagnostics.extend(parsed.diagnostics);
        parsed.items
    }

    /// Records an extension and returns whether it is switched on.
    fn switched_on(&mut self, name: &Name) -> bool {
        if let Some(first) = self.declared.insert(name.text.clone(), name.span) {
            let d = Diagnostic::error(format!("extension '{}' is declared twice", name.text), name.span);
            self.out.diagnostics.push(d.at("declared again").label("first declared here", first));
            return false;
        }
        let on = match self.extensions {
            Extensions::All => true,
            Extensions::Named(names) => names.iter().any(|n| n == ALL || *n == name.text),
        };
        self.out.extensions.push((name.text.clone(), on));
        on
    }

    /// Reads an included file. `None` if it was read before or cannot be read.
    fn include(&mut self, file: &Text) -> Option<FileId> {
        let from = self.sources.name(file.span.file).to_string();
        let (name, text) = match self.files.read(&from, &file.text) {
            Ok(read) => read,
            Err(e) => {
                let d = Diagnostic::error(format!("cannot read '{}'", file.text), file.span).at(e);
                self.out
                    .diagnostics
                    .push(d.help("names of files are relative to the file that includes them"));
                return None;
            }
        };
        if self.read.contains_key(&name) {
            return None;
        }
        if self.read.len() >= MAX_FILES {
            let d = Diagnostic::error(format!("more than {MAX_FILES} files"), file.span).at("not read");
            self.out.diagnostics.push(d);
            return None;
        }
        let id = self.sources.add(name.clone(), text);
        self.read.insert(name, id);
        Some(id)
    }

    fn unknown_extensions(&mut self) {
        let Extensions::Named(names) = self.extensions else { return };
        for name in names.iter().filter(|n| *n != ALL && !self.declared.contains_key(*n)) {
            let d = Diagnostic::error(format!("unknown extension '{name}'"), None);
            let declared: Vec<_> = self.declared.keys().map(String::as_str).collect();
            let d = match nearest(name, declared.iter().copied()) {
                Some(near) => d.did_you_mean(near),
                None => d,
            };
            self.out.diagnostics.push(match declared.is_empty() {
                true => d.help("the program declares no extension; write: hookup NAME \"FILE\";"),
                false => d.help(format!("the program declares: {}", declared.join(", "))),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_regular_files_are_included() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("a.pc").to_string_lossy().into_owned();
        let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe.pc")).status();
        assert!(made.unwrap().success());
        let large = std::fs::File::create(folder.path().join("large.pc")).unwrap();
        large.set_len(MAX_LENGTH + 1).unwrap();
        for name in ["/dev/zero", "/dev/null", "pipe.pc", "."] {
            assert_eq!(Folder.read(&from, name).unwrap_err(), "this is not a regular file", "{name}");
        }
        assert_eq!(Folder.read(&from, "large.pc").unwrap_err(), "the file is larger than 16 MiB");
        assert!(Folder.read(&from, "missing.pc").unwrap_err().contains("No such file"));
    }

    #[test]
    fn a_file_has_one_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/deep")).unwrap();
        std::fs::create_dir(at("b")).unwrap();
        for file in ["a/common.pc", "b/common.pc", "common.pc"] {
            std::fs::write(at(file), "").unwrap();
        }
        assert_eq!(plain(at("./b/../a/./common.pc")), at("a/common.pc"));
        assert_eq!(plain(at("a/deep/../../common.pc")), at("common.pc"));
        assert_eq!(plain(PathBuf::from("../../no-such-file")), PathBuf::from("../../no-such-file"));
        // Behind a link, `..` is the folder that the link leads to.
        std::os::unix::fs::symlink(at("a/deep"), at("b/link")).unwrap();
        assert_eq!(plain(at("b/link/../common.pc")), at("b/link/../common.pc"));
    }
}
