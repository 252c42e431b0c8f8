// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves files from the handlers of the router.

use crate::numbers::{Numbers, Part};
use crate::open::{Entry, File, Open, OpenFiles};
use crate::tree::{Folder, Handler, Node, Tree};
use castanet_element::CallError;
use castanet_element::remote::Remote;
use castanet_element::spec::{Origin, bytes};
use fuser::{Errno, FileAttr, FileHandle, FileType, INodeNo, OpenAccMode, OpenFlags, Request};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// The handlers of a router as files.
pub(crate) struct Handlers {
    remote: Arc<dyn Remote>,
    report: crate::Report,
    /// The name of the mounted directory in messages.
    folder: String,
    uid: u32,
    gid: u32,
    tree: Mutex<Arc<Tree>>,
    numbers: Mutex<Numbers>,
    pub(crate) open: OpenFiles,
}

impl Handlers {
    pub(crate) fn new(remote: Arc<dyn Remote>, report: crate::Report, folder: String) -> Handlers {
        let uid = rustix::process::getuid().as_raw();
        let gid = rustix::process::getgid().as_raw();
        // No configuration has the generation `u64::MAX`, so the first request builds the first tree.
        let mut numbers = Numbers::default();
        let tree = Mutex::new(Arc::new(Tree::new(u64::MAX, &[], &mut numbers)));
        let (numbers, open) = (Mutex::new(numbers), OpenFiles::default());
        Handlers { remote, report, folder, uid, gid, tree, numbers, open }
    }

    /// The tree of the current configuration.
    fn tree(&self) -> Arc<Tree> {
        let mut tree = self.tree.lock();
        let swaps = self.remote.swaps();
        // A router that has ended has no elements. The old tree stays for processes with open files.
        if tree.generation != swaps && !self.remote.has_ended() {
            let elements = self.remote.elements();
            // If the router was swapped after `swaps` was read, the elements read here are those of the next
            // configuration. In that case, the next request finds a higher number of swaps and builds the tree again.
            let mut numbers = self.numbers.lock();
            *tree = Arc::new(Tree::new(swaps, &elements, &mut numbers));
        }
        tree.clone()
    }

    /// Refuses requests by threads of this process: a worker that makes a request would wait for its own reply.
    fn admit(&self, request: &Request) -> Result<(), Errno> {
        let ours = Path::new(&format!("/proc/self/task/{}", request.pid())).exists();
        if ours { Err(Errno::EDEADLK) } else { Ok(()) }
    }

    /// Converts an error of the router to an error number. The request was for the configuration with the number
    /// `generation`, which is the number of hot swaps before that configuration.
    fn errno(&self, error: &CallError, generation: u64) -> Errno {
        if self.remote.has_ended() {
            return Errno::ENOTCONN;
        }
        match error {
            CallError::Missing(_) if self.remote.swaps() != generation => Errno::ESTALE,
            CallError::Missing(_) => Errno::ENOENT,
            CallError::Busy(_) => Errno::EBUSY,
            CallError::Denied(_) => Errno::EACCES,
            CallError::Parameters(_) | CallError::Panicked { .. } | CallError::Refused(_) => Errno::EINVAL,
        }
    }

    fn handlers<'a>(&self, tree: &'a Tree, folder: u32) -> Result<&'a [Handler], Errno> {
        tree.handlers(&*self.remote, folder, &self.numbers).map_err(|e| {
            match self.errno(&e, tree.generation) {
                Errno::ENOTCONN => Errno::ENOTCONN,
                // Every element has the handler `handlers`. So an error means that the element belonged to an
                // earlier configuration.
                _ => Errno::ESTALE,
            }
        })
    }

    fn attributes(
        &self,
        inode: u64,
        kind: FileType,
        perm: u16,
        size: u64,
        nlink: u32,
        t: SystemTime,
    ) -> FileAttr {
        let (uid, gid) = (self.uid, self.gid);
        FileAttr {
            ino: INodeNo(inode),
            size,
            blocks: 0,
            atime: t,
            mtime: t,
            ctime: t,
            crtime: t,
            kind,
            perm,
            nlink,
            uid,
            gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// The handler with this number in a directory.
    fn handler<'a>(&self, tree: &'a Tree, folder: u32, number: u16) -> Result<&'a Handler, Errno> {
        self.handlers(tree, folder)?.iter().find(|h| h.number == number).ok_or(Errno::ESTALE)
    }

    fn attributes_of(&self, tree: &Tree, place: Node) -> Result<FileAttr, Errno> {
        let inode = tree.inode(place);
        let (f, part) = place;
        let folder = tree.folder(f).ok_or(Errno::ESTALE)?;
        Ok(match part {
            Part::Folder => {
                let folders = u32::try_from(folder.children.len()).unwrap_or(u32::MAX - 2);
                self.attributes(inode, FileType::Directory, 0o555, 0, folders + 2, tree.made)
            }
            Part::Link => {
                let size = folder.path.len() as u64;
                self.attributes(inode, FileType::Symlink, 0o777, size, 1, tree.made)
            }
            Part::Handler(number) => {
                let handler = self.handler(tree, f, number)?;
                self.attributes(inode, FileType::RegularFile, handler.mode(), 0, 1, tree.made)
            }
        })
    }

    pub(crate) fn found(&self, request: &Request, parent: INodeNo, name: &OsStr) -> Result<FileAttr, Errno> {
        self.admit(request)?;
        let tree = self.tree();
        let (f, Part::Folder) = tree.place(parent.0).ok_or(Errno::ESTALE)? else {
            return Err(Errno::ENOTDIR);
        };
        let name = name.to_str().ok_or(Errno::ENOENT)?;
        let folder = tree.folder(f).ok_or(Errno::ESTALE)?;
        if let Some(child) = folder.child(name) {
            return self.attributes_of(&tree, (child, Part::Folder));
        }
        let handlers = self.handlers(&tree, f)?;
        let at = handlers.binary_search_by(|h| h.name.as_str().cmp(name)).ok();
        let place = match at.and_then(|at| handlers.get(at)) {
            Some(handler) => (f, Part::Handler(handler.number)),
            None if f == 0 => (tree.numbered(name).ok_or(Errno::ENOENT)?, Part::Link),
            None => return Err(Errno::ENOENT),
        };
        self.attributes_of(&tree, place)
    }

    pub(crate) fn stat(&self, inode: INodeNo) -> Result<FileAttr, Errno> {
        let tree = self.tree();
        let there =
            tree.place(inode.0).ok_or(Errno::ESTALE).and_then(|place| self.attributes_of(&tree, place));
        there.or_else(|e| {
            // The inode may belong to a file that was opened in an earlier configuration and is still open.
            let mode = self.open.mode(inode.0).ok_or(e)?;
            Ok(self.attributes(inode.0, FileType::RegularFile, mode, 0, 1, tree.made))
        })
    }

    pub(crate) fn open_file(
        &self,
        request: &Request,
        inode: INodeNo,
        flags: OpenFlags,
    ) -> Result<u64, Errno> {
        self.admit(request)?;
        let tree = self.tree();
        let (f, number) = match tree.place(inode.0).ok_or(Errno::ESTALE)? {
            (_, Part::Folder) => return Err(Errno::EISDIR),
            (_, Part::Link) => return Err(Errno::ELOOP),
            (f, Part::Handler(number)) => (f, number),
        };
        let folder = tree.folder(f).ok_or(Errno::ESTALE)?;
        let handler = self.handler(&tree, f, number)?;
        let mode = flags.acc_mode();
        let (reads, writes) = (mode != OpenAccMode::O_WRONLY, mode != OpenAccMode::O_RDONLY);
        // Check here too, because the kernel does not check permissions for privileged users.
        if (reads && !handler.read) || (writes && !handler.write) {
            return Err(Errno::EACCES);
        }
        let contents = match reads {
            true => Some(self.contents(&tree, folder, handler)?),
            false => None,
        };
        let flags = OFlags::from_bits_retain(flags.0 as u32);
        self.open.file(File {
            inode: inode.0,
            mode: handler.mode(),
            generation: tree.generation,
            element: folder.element().map(String::from),
            handler: handler.name.clone(),
            raw: handler.raw,
            contents,
            append: flags.contains(OFlags::APPEND),
            emptied: writes && flags.contains(OFlags::TRUNC),
        })
    }

    fn contents(&self, tree: &Tree, folder: &Folder, handler: &Handler) -> Result<Vec<u8>, Errno> {
        let mut value = self
            .remote
            .read(folder.element(), &handler.name, "")
            .map_err(|e| self.errno(&e, tree.generation))?;
        if !handler.raw && !value.is_empty() && !value.ends_with('\n') {
            value.push('\n');
        }
        Ok(bytes::encode(&value).into_owned())
    }

    /// Writes a text to the handler of a file.
    pub(crate) fn give(&self, file: &File, text: Vec<u8>) -> Result<(), Errno> {
        let text = bytes::decode_vec(text);
        let value = if file.raw { &text } else { text.strip_suffix('\n').unwrap_or(&text) };
        // The mount is accessible only to the router's own user, who has all rights.
        let from = Origin::User;
        self.remote.write(from, file.element.as_deref(), &file.handler, value).map(drop).map_err(|e| {
            let errno = self.errno(&e, file.generation);
            // A write that fails because the router has ended is not reported.
            if errno != Errno::ENOTCONN {
                self.complain(file, &e.to_string());
            }
            errno
        })
    }

    fn complain(&self, file: &File, text: &str) {
        let slash = if file.element.is_some() { "/" } else { "" };
        let element = file.element.as_deref().unwrap_or_default();
        (self.report)(&format!("{}/{element}{slash}{}: {text}", self.folder, file.handler));
    }

    pub(crate) fn flushed(&self, request: &Request, handle: FileHandle) -> Result<(), Errno> {
        match &*self.open.get(handle.0)? {
            Open::File(file, pending) => match pending.take()? {
                None => Ok(()),
                Some(text) => {
                    self.admit(request)?;
                    self.give(file, text)
                }
            },
            Open::Folder(_) => Ok(()),
        }
    }

    pub(crate) fn open_folder(&self, request: &Request, inode: INodeNo) -> Result<u64, Errno> {
        self.admit(request)?;
        let tree = self.tree();
        let (f, Part::Folder) = tree.place(inode.0).ok_or(Errno::ESTALE)? else {
            return Err(Errno::ENOTDIR);
        };
        let folder = tree.folder(f).ok_or(Errno::ESTALE)?;
        let dots = [(f, "."), (folder.parent, "..")];
        let entry = |place, kind, name: &str| -> Entry { (tree.inode(place), kind, name.to_string()) };
        let folders = dots.into_iter().chain(folder.children.iter().map(|(name, f)| (*f, name.as_str())));
        let folders = folders.map(|(f, name)| entry((f, Part::Folder), FileType::Directory, name));
        let handlers = self.handlers(&tree, f)?.iter();
        let files = handlers.map(|h| entry((f, Part::Handler(h.number)), FileType::RegularFile, &h.name));
        self.open.folder(folders.chain(files).collect())
    }

    pub(crate) fn target(&self, inode: INodeNo) -> Result<String, Errno> {
        let tree = self.tree();
        let Some((f, Part::Link)) = tree.place(inode.0) else { return Err(Errno::EINVAL) };
        Ok(tree.folder(f).ok_or(Errno::ESTALE)?.path.clone())
    }
}
