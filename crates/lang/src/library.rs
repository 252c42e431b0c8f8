// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds libraries in the file system along a search path such as `CLICKPATH`.

use crate::elaborate::{Library, LibraryError};
use crate::read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Finds `require(library NAME)` along a `:`-separated list of directories. Each directory and its subdirectory
/// `conf` are searched. An empty entry or an unset path stands for the directory of the requiring file, without its
/// subdirectory `conf`.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    entries: Vec<String>,
}

impl SearchPath {
    /// Takes the value of `CLICKPATH`, if it is set.
    pub fn new(clickpath: Option<&str>) -> SearchPath {
        SearchPath { entries: clickpath.unwrap_or("").split(':').map(str::to_string).collect() }
    }
    /// The paths that `name` may refer to when `from` requires it, in search order.
    fn candidates(&self, name: &str, from: &str) -> Vec<PathBuf> {
        if Path::new(name).is_absolute() {
            return vec![PathBuf::from(name)];
        }
        let beside = Path::new(from).parent().unwrap_or(Path::new("")).to_path_buf();
        let folders = self.entries.iter().flat_map(|entry| match entry.as_str() {
            "" => vec![beside.clone()],
            entry => vec![PathBuf::from(entry), Path::new(entry).join("conf")],
        });
        folders.map(|folder| folder.join(name)).collect()
    }
}

impl Library for SearchPath {
    fn read(&self, name: &str, from: &str) -> Result<(String, Vec<u8>), LibraryError> {
        let mut why = None;
        for path in self.candidates(name, from) {
            match read::file(&path, read::MAX_CONFIGURATION) {
                // A file needs one canonical name, so that it is read only once: `./a` becomes `a`.
                Ok(bytes) => {
                    let plain: PathBuf = path.components().filter(|c| *c != Component::CurDir).collect();
                    return Ok((plain.to_string_lossy().into_owned(), bytes));
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => why = why.or(Some(e)),
            }
        }
        Err(why.map_or(LibraryError::Missing, LibraryError::Unreadable))
    }
}

/// Returns the path of the file that a client names. The path lies below `folder` and contains no symbolic
/// link. The file need not exist yet, but its directory must.
///
/// Returns `None` for absolute names, for `..`, and for symbolic links that lead out of the folder or to a missing
/// file. Also returns `None` if any user may write to a directory on the path, because that user could put a link
/// there before the file is opened.
pub fn below(folder: &Path, name: &Path) -> Option<PathBuf> {
    // Check this before accessing the file system. Otherwise, answers could reveal which files exist outside `folder`.
    if !name.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
        return None;
    }
    let (root, path) = (folder.canonicalize().ok()?, folder.join(name));
    let real = match path.symlink_metadata() {
        Ok(_) => path.canonicalize().ok()?,
        Err(_) => path.parent()?.canonicalize().ok()?.join(path.file_name()?),
    };
    let mut directories = real.ancestors().skip(1).take_while(|d| d.starts_with(&root));
    let inside = real != root && real.starts_with(&root) && directories.all(|d| !anyone_writes(d));
    inside.then_some(real)
}

/// Whether any user may write to a directory. Also true if this cannot be determined.
fn anyone_writes(directory: &Path) -> bool {
    directory.metadata().map_or(true, |m| m.mode() & 0o002 != 0)
}

/// Finds `require(library NAME)` in configurations sent by clients, but only below one directory that the
/// operator named. Diagnostics quote file contents, so a client that could name any file could read any file.
#[derive(Clone, Debug, Default)]
pub struct Confined {
    folder: Option<PathBuf>,
}

impl Confined {
    /// Confines libraries to a directory. `None` allows no libraries.
    pub fn new(folder: Option<&Path>) -> Confined {
        Confined { folder: folder.map(Path::to_path_buf) }
    }
}

impl Library for Confined {
    fn read(&self, name: &str, _: &str) -> Result<(String, Vec<u8>), LibraryError> {
        let Some(folder) = &self.folder else {
            return Err(LibraryError::NoneAllowed);
        };
        if !Path::new(name).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
            return Err(LibraryError::Outside);
        }
        // Only regular files are allowed, because reading a pipe might never end.
        let found = |name: &Path| below(folder, name).filter(|path| path.is_file());
        let path = found(Path::new(name))
            .or_else(|| found(&Path::new("conf").join(name)))
            .ok_or(LibraryError::Missing)?;
        let bytes = read::file(&path, read::MAX_CONFIGURATION).map_err(|_| LibraryError::Missing)?;
        Ok((path.to_string_lossy().into_owned(), bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_along_the_path() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let root = dir.path();
        for (name, text) in
            [("a/x", "ax"), ("b/conf/x", "bx"), ("b/y", "by"), ("main/x", "mx"), ("main/z", "mz")]
        {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(root))?;
            std::fs::write(path, text)?;
        }
        let at = |name: &str| root.join(name).to_string_lossy().into_owned();
        let main = at("main/m.click");
        let read = |path: Option<String>, name: &str| {
            let found = SearchPath::new(path.as_deref()).read(name, &main);
            found.map_or_else(|e| e.to_string(), |(_, bytes)| String::from_utf8_lossy(&bytes).into_owned())
        };
        let both = Some(format!("{}:{}", at("b"), at("a")));
        assert_eq!(read(None, "x"), "mx");
        assert_eq!(read(None, "y"), "no such file");
        assert_eq!(read(both.clone(), "x"), "bx");
        assert_eq!(read(both.clone(), "y"), "by");
        assert_eq!(read(both.clone(), "z"), "no such file");
        assert_eq!(read(Some(format!("{}:", at("b"))), "z"), "mz");
        assert_eq!(read(both, &at("a/x")), "ax");
        assert_ne!(read(None, "."), "no such file");
        let name = |n: &str| SearchPath::new(None).read(n, &main).map(|f| f.0).ok();
        assert_eq!(name("./x"), name("x"));
        Ok(())
    }

    #[test]
    fn libraries_of_clients_are_those_of_the_folder() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let root = dir.path();
        for (name, text) in [("lib/a", "a"), ("lib/conf/b", "b"), ("secret", "s")] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(root))?;
            std::fs::write(path, text)?;
        }
        std::os::unix::fs::symlink(root.join("secret"), root.join("lib/out"))?;
        std::os::unix::fs::symlink("a", root.join("lib/in"))?;
        let confined = Confined::new(Some(&root.join("lib")));
        let secret = root.join("secret").to_string_lossy().into_owned();
        for (name, want) in [
            ("a", Some("a")),
            ("./a", Some("a")),
            ("in", Some("a")),
            ("b", Some("b")),
            ("c", None),
            ("out", None),
            ("conf", None),
            ("../secret", None),
            ("conf/../../secret", None),
            (secret.as_str(), None),
        ] {
            let found = confined.read(name, &secret).ok();
            assert_eq!(found.map(|f| f.1), want.map(|w| w.as_bytes().to_vec()), "{name}");
        }
        assert!(Confined::new(None).read("a", "").is_err());
        Ok(())
    }

    #[test]
    fn files_below_a_folder() -> std::io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir()?;
        let root = dir.path().canonicalize()?;
        let (lib, out) = (root.join("lib"), root.join("out"));
        std::fs::create_dir_all(lib.join("sub"))?;
        std::fs::create_dir(&out)?;
        for name in ["lib/a", "lib/sub/b", "out/secret", "lib2"] {
            std::fs::write(root.join(name), name)?;
        }
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, lib.join(name));
        link(&out, "leads")?;
        link(&out.join("secret"), "file")?;
        link(&out.join("missing"), "dangling")?;
        link(Path::new("loop"), "loop")?;
        link(Path::new("sub"), "inside")?;
        link(Path::new("a"), "same")?;
        for (name, want) in [
            ("a", Some("a")),
            ("./a", Some("a")),
            ("sub/b", Some("sub/b")),
            ("inside/b", Some("sub/b")),
            ("same", Some("a")),
            ("new", Some("new")),
            ("sub/new", Some("sub/new")),
            ("inside/new", Some("sub/new")),
            ("", None),
            (".", None),
            ("..", None),
            ("../lib2", None),
            ("../lib/a", None),
            ("sub/../a", None),
            ("sub/../../out/secret", None),
            ("leads", None),
            ("leads/secret", None),
            ("leads/new", None),
            ("file", None),
            ("dangling", None),
            ("loop", None),
            ("loop/new", None),
            ("no/new", None),
        ] {
            assert_eq!(below(&lib, Path::new(name)), want.map(|w| lib.join(w)), "{name}");
        }
        assert_eq!(below(&lib, &lib.join("a")), None);
        assert_eq!(below(&root.join("missing"), Path::new("a")), None);
        // In a directory that any user may write to, a link could replace a file after it was checked, so files
        // there are refused.
        let mode = |d: &Path, mode| std::fs::set_permissions(d, std::fs::Permissions::from_mode(mode));
        mode(&lib.join("sub"), 0o1777)?;
        assert_eq!(below(&lib, Path::new("sub/b")), None);
        assert_eq!(below(&lib, Path::new("a")), Some(lib.join("a")));
        mode(&lib.join("sub"), 0o755)?;
        mode(&lib, 0o757)?;
        assert_eq!((below(&lib, Path::new("a")), below(&lib, Path::new("sub/b"))), (None, None));
        mode(&lib, 0o775)?;
        assert_eq!(below(&lib, Path::new("sub/b")), Some(lib.join("sub/b")));
        // The folder itself may be a symbolic link.
        std::os::unix::fs::symlink(&lib, root.join("alias"))?;
        assert_eq!(below(&root.join("alias"), Path::new("a")), Some(lib.join("a")));
        Ok(())
    }
}
