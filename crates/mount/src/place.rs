// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mount point, and the existing mount on it.

use crate::MountError;
use crate::kernel;
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The prefix of the source of every mount by a router. The process id follows.
pub(crate) const SOURCE: &str = "castanet-";

/// The topmost mount on a directory, from the mount table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// The source of the mount.
    pub(crate) source: OsString,
}

impl Mounted {
    /// Whether a router made this mount.
    fn is_routers(&self) -> bool {
        self.source.as_bytes().starts_with(SOURCE.as_bytes())
    }
}

/// Decodes a field of the mount table, in which blanks and some other characters are `\` and three octal digits
/// (proc_pid_mountinfo(5)).
fn unescaped(field: &[u8]) -> OsString {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|_| first == b'\\').and_then(|digits| {
            digits.iter().try_fold(0u8, |n, d| {
                let d = d.checked_sub(b'0').filter(|d| *d < 8)?;
                n.checked_mul(8)?.checked_add(d)
            })
        });
        out.push(octal.unwrap_or(first));
        rest = if octal.is_some() { tail.get(3..).unwrap_or_default() } else { tail };
    }
    OsString::from_vec(out)
}

/// The topmost mount on a directory in a mount table. Later lines are mounted on top of earlier ones.
fn on(table: &[u8], folder: &Path) -> Option<Mounted> {
    let mut found = None;
    for line in table.split(|b| *b == b'\n') {
        // `36 35 98:0 /root /point options optional... - type source superoptions`
        let mut fields = line.split(|b| *b == b' ');
        let Some(point) = fields.nth(4) else { continue };
        if unescaped(point) != folder.as_os_str() {
            continue;
        }
        let mut behind = fields.skip_while(|f| *f != b"-").skip(2);
        found = behind.next().map(|source| Mounted { source: unescaped(source) });
    }
    found
}

/// The topmost mount on a directory, as this process sees it.
pub(crate) fn mounted(folder: &Path) -> io::Result<Option<Mounted>> {
    Ok(on(&fs::read("/proc/self/mountinfo")?, folder))
}

/// Whether the error is that of a mount whose server has ended.
fn is_dead(e: &io::Error) -> bool {
    let dead = [Errno::NOTCONN, Errno::CONNABORTED];
    e.raw_os_error().is_some_and(|code| dead.iter().any(|d| d.raw_os_error() == code))
}

/// The full path of a directory, which may be a dead mount.
fn full(folder: &Path) -> io::Result<PathBuf> {
    match folder.canonicalize() {
        Err(e) if is_dead(&e) => {
            let name = folder.file_name().ok_or(e)?;
            let parent = folder.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Ok(parent.canonicalize()?.join(name))
        }
        other => other,
    }
}

/// Checks that handlers can be mounted on a directory, and returns its full path. Unmounts a dead mount of an
/// earlier router.
pub(crate) fn prepare(folder: &Path, report: &dyn Fn(&str)) -> Result<PathBuf, MountError> {
    let shown = || folder.display().to_string();
    let unusable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => MountError::Missing { folder: shown() },
        _ => MountError::Unusable { folder: shown(), source },
    };
    let path = full(folder).map_err(unusable)?;
    let there = mounted(&path).map_err(unusable)?;
    match fs::metadata(&path) {
        Ok(m) if !m.is_dir() => return Err(MountError::NoFolder { folder: shown() }),
        Ok(_) => {}
        Err(e) if is_dead(&e) => {
            match &there {
                Some(m) if m.is_routers() => kernel::unmount(&path)?,
                _ => return Err(MountError::Dead { folder: shown() }),
            }
            report(&format!("{}: unmounted the handlers of a router that was killed", shown()));
        }
        Err(e) => return Err(unusable(e)),
    }
    if let Some(m) = mounted(&path).map_err(unusable)?.filter(Mounted::is_routers) {
        let mounted = m.source.to_string_lossy().into_owned();
        return Err(MountError::Taken { folder: shown(), mounted });
    }
    let mut entries = fs::read_dir(&path).map_err(unusable)?;
    if entries.next().is_some() {
        return Err(MountError::NotEmpty { folder: shown() });
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_table_is_understood() {
        let table = b"22 1 254:0 / / rw,relatime - ext4 /dev/root rw\n\
            30 22 0:50 / /mnt/a\\040b rw shared:1 master:2 - fuse.castanet castanet-17 rw,user_id=0\n\
            31 22 0:51 / /mnt/two rw - tmpfs - rw\n\
            32 22 0:52 / /mnt/two rw - fuse.castanet castanet-18 rw\n\
            33 22 0:53 / /mnt/short rw\nnothing\n\n";
        let source = |folder: &str| on(table, Path::new(folder)).map(|m| m.source.into_string().unwrap());
        assert_eq!(source("/").as_deref(), Some("/dev/root"));
        assert_eq!(source("/mnt/a b").as_deref(), Some("castanet-17"));
        assert_eq!(source("/mnt/two").as_deref(), Some("castanet-18"), "the topmost");
        assert_eq!(source("/mnt/short"), None);
        assert_eq!(source("/mnt"), None);
    }

    #[test]
    fn escapes_end_where_they_end() {
        for (field, path) in [
            ("a\\134b", "a\\b"),
            ("\\011", "\t"),
            ("\\04", "\\04"),
            ("\\999", "\\999"),
            ("\\777", "\\777"),
            ("\\", "\\"),
        ] {
            assert_eq!(unescaped(field.as_bytes()), OsString::from(path), "{field}");
        }
    }

    #[test]
    fn folders_that_cannot_be_used_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "").unwrap();
        fs::create_dir_all(path("full/something")).unwrap();
        fs::create_dir(path("empty")).unwrap();
        let refused = |name: &str| {
            let e = prepare(&path(name), &|_| panic!("nothing to clean up")).unwrap_err();
            e.to_string().strip_prefix(&format!("{}: ", path(name).display())).unwrap().to_string()
        };
        assert_eq!(refused("missing"), "no such directory; create it first with mkdir");
        assert_eq!(refused("file"), "not a directory; handlers are mounted on an empty directory");
        assert_eq!(refused("full"), "the directory is not empty; handlers are mounted on an empty directory");
        let full = prepare(&path("full/../empty"), &|_| panic!("nothing to clean up")).unwrap();
        assert_eq!(full, path("empty").canonicalize().unwrap());
    }
}
