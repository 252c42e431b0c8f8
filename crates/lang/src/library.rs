// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds libraries in the file system along a search path such as `CLICKPATH`.

use crate::elaborate::Library;
use crate::read;
use std::path::{Component, Path, PathBuf};

/// Finds `require(library NAME)` along a `:`-separated list of directories. Each directory and its subdirectory
/// `conf` are searched. An empty entry or an unset path stands for the directory of the requiring file.
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
    fn read(&self, name: &str, from: &str) -> Result<(String, Vec<u8>), String> {
        let mut why = None;
        for path in self.candidates(name, from) {
            match read::file(&path, read::MAX_CONFIGURATION) {
                // A file needs one canonical name, because it is read once: `./a` is `a`.
                Ok(bytes) => {
                    let plain: PathBuf = path.components().filter(|c| *c != Component::CurDir).collect();
                    return Ok((plain.to_string_lossy().into_owned(), bytes));
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => why = why.or(Some(e.to_string())),
            }
        }
        Err(why.unwrap_or_else(|| "no such file".into()))
    }
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
    fn read(&self, name: &str, _: &str) -> Result<(String, Vec<u8>), String> {
        let Some(folder) = &self.folder else {
            return Err(
                "a configuration from a client may require no library; the operator allows those of a \
                        folder by --library-path"
                    .into(),
            );
        };
        // Checked before the file system is accessed, because the response would reveal which files exist.
        if !Path::new(name).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
            return Err(
                "a configuration from a client may require libraries from the operator's directory only"
                    .into(),
            );
        }
        let none = || String::from("no such file");
        let within = |path: PathBuf| {
            // A symbolic link in the directory may lead out of it.
            let (root, real) = (folder.canonicalize().ok()?, path.canonicalize().ok()?);
            real.starts_with(root).then_some(real)
        };
        let path = within(folder.join(name)).or_else(|| within(folder.join("conf").join(name)));
        let path = path.ok_or_else(none)?;
        // Reading a pipe might never end.
        if !std::fs::metadata(&path).is_ok_and(|m| m.is_file()) {
            return Err(none());
        }
        let bytes = read::file(&path, read::MAX_CONFIGURATION).map_err(|_| none())?;
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
            found.map_or_else(|e| e, |(_, bytes)| String::from_utf8_lossy(&bytes).into_owned())
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
        let name = |n: &str| SearchPath::new(None).read(n, &main).map(|f| f.0);
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
}
