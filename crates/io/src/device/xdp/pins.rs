// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that outlive the router: a folder of the BPF file system has a file for each attachment, one for the parts of each program that has
//! several, and one for the counters of the programs. If the router dies, the programs go on, and drop and count the packets that need the router.
//!
//! The files are `link-DEVICE` and `parts-DEVICE`, in which `:` stands for a dot of the device's name, and `counts-N`, in which N is the number of devices. The first N
//! counters of the programs are those of packets that could not go up.

use crate::device::bpf::{Map, device_of, pin, pinned, pinned_counters};
use crate::error::system_text;
use crate::opener;
use rustix::fs::{FlockOperation, flock, statfs};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The folder that is used if none is named.
pub const DEFAULT_FOLDER: &str = "/sys/fs/bpf/castanet";
/// The type of the BPF file system in statfs(2).
const BPF_FS: i64 = 0xcafe_4a11;
const LINK: &str = "link-";
const PARTS: &str = "parts-";
const COUNTS: &str = "counts-";
/// The prefix of files that are about to replace others.
const NEW: &str = "new-";

/// The folder of this process.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Whether this process has made the folder.
    made: bool,
    /// The lock on the folder, and the maps of counters of the dead router that had used it before.
    former: Option<(File, Vec<(Map, usize)>)>,
    /// Whether files of this router are in the folder.
    used: AtomicBool,
}

static FOLDER: OnceLock<Folder> = OnceLock::new();

fn failed(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::other(format!("{}: {why}", path.display()))
}

fn failed_by(path: &Path, e: Errno) -> Error {
    failed(path, system_text(&e.into()))
}

/// The names of the files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The number of devices in the name of a file of counters.
fn devices_in(name: &str) -> Option<usize> {
    name.strip_prefix(NEW).unwrap_or(name).strip_prefix(COUNTS)?.parse().ok()
}

/// The device, as it is written there, in the name of a file of an attachment or of parts.
fn device_in(name: &str) -> Option<&str> {
    name.strip_prefix(LINK).or_else(|| name.strip_prefix(NEW).unwrap_or(name).strip_prefix(PARTS))
}

/// Whether a name is that of a file that routers make.
fn is_ours(name: &str) -> bool {
    device_in(name).is_some() || devices_in(name).is_some()
}

/// Opens a folder of the BPF file system and keeps others from using it, until the result is dropped.
fn lock(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(|e| failed(path, system_text(&e)))?;
    let kind = statfs(path).map_err(|e| failed_by(path, e))?.f_type;
    #[allow(clippy::unnecessary_cast, reason = "the type differs between machines")]
    if kind as i64 != BPF_FS {
        let why =
            "not in a BPF file system; mount one: mount -t bpf bpf /sys/fs/bpf, and name a folder in it";
        return Err(failed(path, why));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(failed(path, "another router that runs uses it; name another folder")),
        Err(e) => Err(failed_by(path, e)),
    }
}

fn counters_in(path: &Path) -> Vec<(Map, usize)> {
    let found = names(path).into_iter().filter_map(|name| {
        let map = pinned_counters(&path.join(&name)).ok()?;
        Some((map, devices_in(&name)?))
    });
    found.collect()
}

/// The number of packets that programs have dropped because they could not go up.
fn dropped(counters: &[(Map, usize)]) -> u64 {
    let of =
        |(map, devices): &(Map, usize)| map.sums().unwrap_or_default().iter().take(*devices).sum::<u64>();
    counters.iter().map(of).sum()
}

/// Makes the programs of this process outlive it. The programs of a router that has died with the same folder go on until
/// those of this one replace them.
///
/// # Errors
/// When the folder is not in a BPF file system, cannot be made, or another router uses it.
pub fn pin_in(path: &Path) -> Result<()> {
    let made = match std::fs::create_dir(path) {
        Ok(()) => true,
        Err(e) if e.kind() == ErrorKind::AlreadyExists => false,
        Err(e) => return Err(failed(path, system_text(&e))),
    };
    let locked = lock(path);
    if locked.is_err() && made {
        let _ = std::fs::remove_dir(path);
    }
    let former = Some((locked?, counters_in(path)));
    let _ = FOLDER.set(Folder { path: path.to_owned(), made, former, used: AtomicBool::new(false) });
    Ok(())
}

/// Makes this process, which opens devices for a router that has called [`pin_in`], make the files of that router.
pub fn pin_for_router(path: &Path) {
    let folder = Folder { path: path.to_owned(), made: false, former: None, used: AtomicBool::new(false) };
    let _ = FOLDER.set(folder);
}

/// Whether programs of this process outlive it.
pub fn is_pinned() -> bool {
    FOLDER.get().is_some()
}

/// Whether the default folder has an attachment to a device, of a dead router or of one that runs.
pub(super) fn has_left(device: &str) -> bool {
    Path::new(DEFAULT_FOLDER).join(link_name(device)).exists()
}

/// Removes all files that a dead router has left in the folder, which ends its programs. Returns the number of packets that its programs have dropped, or
/// `None` if it left nothing.
///
/// # Errors
/// When a router that runs uses the folder, or files cannot be removed.
pub fn remove_left(path: &Path) -> Result<Option<u64>> {
    let ours: Vec<String> = names(path).into_iter().filter(|n| is_ours(n)).collect();
    if ours.is_empty() {
        return Ok(None);
    }
    let _locked = lock(path)?;
    let counters = counters_in(path);
    for name in &ours {
        let file = path.join(name);
        std::fs::remove_file(&file).map_err(|e| failed(&file, system_text(&e)))?;
    }
    // The folder may have files of others.
    let _ = std::fs::remove_dir(path);
    Ok(Some(dropped(&counters)))
}

/// After the programs of this router run on `devices`: ends what a former router with the same folder has left on others. Returns the
/// number of packets that its programs have dropped, or `None` if it left nothing.
pub fn take_over(devices: &[String]) -> Option<u64> {
    let folder = FOLDER.get()?;
    let (_, counters) = folder.former.as_ref()?;
    let mine: Vec<String> = devices.iter().map(|d| written(d)).collect();
    let others = |n: &&String| device_in(n).is_some_and(|d| !mine.iter().any(|m| m == d));
    for name in names(&folder.path).iter().filter(others) {
        let _ = std::fs::remove_file(folder.path.join(name));
    }
    (!counters.is_empty()).then(|| dropped(counters))
}

/// Removes the files of this router, because it ends in order.
pub fn end() {
    let Some(folder) = FOLDER.get() else { return };
    if let Some(opener) = opener::client() {
        let _ = opener.unpin();
    }
    folder.end();
}

/// A device's name as names of files have it: these must have no dots.
fn written(device: &str) -> String {
    device.replace('.', ":")
}

fn link_name(device: &str) -> String {
    format!("{LINK}{}", written(device))
}

impl Folder {
    fn end(&self) {
        if !self.used.load(Ordering::Relaxed) && !self.made {
            return;
        }
        self.remove_counts(None);
        // The folder may have files of others.
        let _ = std::fs::remove_dir(&self.path);
    }
    fn remove_counts(&self, except: Option<&str>) {
        let counts = |n: &&String| devices_in(n).is_some() && except != Some(n.as_str());
        for name in names(&self.path).iter().filter(counts) {
            let _ = std::fs::remove_file(self.path.join(name));
        }
    }
}

/// Keeps a map of counters alive instead of former ones.
pub(crate) fn pin_counts(map: BorrowedFd<'_>, devices: u32) -> std::result::Result<(), Errno> {
    let Some(folder) = FOLDER.get() else { return Ok(()) };
    folder.used.store(true, Ordering::Relaxed);
    let name = format!("{COUNTS}{devices}");
    let new = format!("{NEW}{name}");
    let _ = std::fs::remove_file(folder.path.join(&new));
    pin(map, &folder.path.join(&new))?;
    folder.remove_counts(Some(&new));
    rustix::fs::rename(folder.path.join(&new), folder.path.join(&name))
}

/// Removes the files of the router that this process opens devices for.
pub(crate) fn end_for_router() {
    if let Some(folder) = FOLDER.get() {
        folder.end();
    }
}

/// The file of an attachment. It is removed when this is dropped, unless the attachment is that of a router that has died and
/// no program of this one has run.
#[derive(Debug)]
pub(super) struct PinnedLink {
    file: PathBuf,
    /// The file of the parts of the program that runs, and that of the parts of the next one.
    parts: [PathBuf; 2],
    /// Whether the files may be removed.
    own: AtomicBool,
}

impl PinnedLink {
    /// The attachment that a router which has died has left at a device.
    pub fn left(device: &str, index: u32) -> Option<(PinnedLink, OwnedFd)> {
        let this = PinnedLink::in_folder(FOLDER.get()?, device);
        let link = pinned(&this.file).ok()?;
        if device_of(link.as_fd()) != Ok(index) {
            // The device that it was attached to is gone, so the files are removed.
            this.runs();
            return None;
        }
        Some((this, link))
    }
    fn in_folder(folder: &Folder, device: &str) -> PinnedLink {
        let parts = format!("{PARTS}{}", written(device));
        let parts = [folder.path.join(&parts), folder.path.join(format!("{NEW}{parts}"))];
        PinnedLink { file: folder.path.join(link_name(device)), parts, own: AtomicBool::new(false) }
    }
    /// Makes an attachment outlive this process, if that is wanted.
    pub fn new(device: &str, link: BorrowedFd<'_>) -> std::result::Result<Option<PinnedLink>, Errno> {
        let Some(folder) = FOLDER.get() else { return Ok(None) };
        folder.used.store(true, Ordering::Relaxed);
        let this = PinnedLink::in_folder(folder, device);
        pin(link, &this.file)?;
        this.own.store(true, Ordering::Relaxed);
        Ok(Some(this))
    }
    /// Keeps the parts of the program alive that will run next.
    pub fn prepare(&self, parts: Option<BorrowedFd<'_>>) -> std::result::Result<(), Errno> {
        let [_, next] = &self.parts;
        let _ = std::fs::remove_file(next);
        parts.map_or(Ok(()), |parts| pin(parts, next))
    }
    /// Notes that the program runs for which [`PinnedLink::prepare`] was called.
    pub fn runs(&self) {
        self.own.store(true, Ordering::Relaxed);
        let [now, next] = &self.parts;
        if std::fs::rename(next, now).is_err() {
            // The program has no parts.
            let _ = std::fs::remove_file(now);
        }
    }
}

impl Drop for PinnedLink {
    fn drop(&mut self) {
        if self.own.load(Ordering::Relaxed) {
            for file in self.parts.iter().chain([&self.file]) {
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_read_back() {
        assert_eq!(link_name("eth0.100"), "link-eth0:100");
        assert_eq!([devices_in("counts-2"), devices_in("new-counts-12")], [Some(2), Some(12)]);
        for other in ["counts-", "counts-x", "link-eth0", "count-2", ""] {
            assert_eq!(devices_in(other), None, "{other}");
        }
        assert_eq!(
            [device_in("parts-a"), device_in("new-parts-b:1"), device_in("link-c")],
            [Some("a"), Some("b:1"), Some("c")]
        );
        assert!(
            ["link-eth0", "counts-1", "new-counts-1", "parts-a", "new-parts-a"].iter().all(|n| is_ours(n))
        );
        assert!(["notes", "new-link-eth0", "counts"].iter().all(|n| !is_ours(n)));
    }

    #[test]
    fn folders_elsewhere_are_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let place = folder.path().join("pins");
        let error = pin_in(&place).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("mount -t bpf bpf /sys/fs/bpf"), "{error}");
        assert!(!place.exists() && !is_pinned());
        std::fs::write(folder.path().join("link-eth0"), "a file of somebody")
            .unwrap_or_else(|e| panic!("{e}"));
        assert!(remove_left(folder.path()).is_err());
        assert!(folder.path().join("link-eth0").exists());
        assert_eq!(remove_left(&place).ok(), Some(None));
    }
}
