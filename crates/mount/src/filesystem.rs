// SPDX-License-Identifier: MIT OR Apache-2.0
//! The FUSE requests of the kernel and the replies to them.

use crate::handlers::Handlers;
use crate::open::{File, Open};
use fuser::{
    BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How long the kernel may cache names and attributes: not at all, because the configuration may change at
/// any time.
const NOTHING: Duration = Duration::ZERO;
/// The longest write that the kernel sends in one request, in bytes. The kernel splits longer writes.
const MOST_AT_ONCE: u32 = 1 << 20;

impl Filesystem for Handlers {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Without this capability, a request to open a file does not show whether the flag O_TRUNC was given.
        let _ = config.add_capabilities(InitFlags::FUSE_ATOMIC_O_TRUNC);
        // The result is ignored: if fuser refuses the value, its default applies. A kernel with a smaller limit uses
        // its own limit.
        let _ = config.set_max_write(MOST_AT_ONCE);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.found(request, parent, name) {
            Ok(a) => reply.entry(&NOTHING, &a, Generation(0)),
            Err(e) => reply.error(e),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.stat(inode) {
            Ok(a) => reply.attr(&NOTHING, &a),
            Err(e) => reply.error(e),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let done = match size {
            _ if mode.is_some() || uid.is_some() || gid.is_some() => Err(Errno::EPERM),
            None => Err(Errno::EPERM),
            Some(0) => {
                if let Some(Open::File(_, pending)) = handle.and_then(|h| self.open.get(h.0).ok()).as_deref()
                {
                    pending.clear();
                }
                self.stat(inode)
            }
            Some(_) => Err(Errno::EINVAL),
        };
        match done {
            Ok(a) => reply.attr(&NOTHING, &a),
            Err(e) => reply.error(e),
        }
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match self.target(inode) {
            Ok(path) => reply.data(path.as_bytes()),
            Err(e) => reply.error(e),
        }
    }

    fn open(&self, request: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.open_file(request, inode, flags) {
            Ok(handle) => {
                // Direct I/O bypasses the page cache. The page cache would end all reads at the file's reported size,
                // which is 0.
                let mut how = FopenFlags::FOPEN_DIRECT_IO;
                // A descriptor opened only for reading has no writes to flush when it is closed.
                how.set(FopenFlags::FOPEN_NOFLUSH, flags.acc_mode() == OpenAccMode::O_RDONLY);
                reply.opened(FileHandle(handle), how);
            }
            Err(e) => reply.error(e),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.open.get(handle.0).as_deref() {
            Ok(Open::File(File { contents: Some(c), .. }, _)) => {
                let rest = usize::try_from(offset).ok().and_then(|at| c.get(at..)).unwrap_or_default();
                reply.data(rest.get(..size as usize).unwrap_or(rest));
            }
            Ok(_) => reply.error(Errno::EBADF),
            Err(e) => reply.error(*e),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.open.get(handle.0).and_then(|open| match &*open {
            Open::File(file, pending) => pending.write(offset, data, file.append),
            Open::Folder(_) => Err(Errno::EBADF),
        });
        match written {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX)),
            Err(e) => reply.error(e),
        }
    }

    fn flush(&self, request: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        answer(self.flushed(request, handle), reply);
    }

    fn fsync(&self, request: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(self.flushed(request, handle), reply);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        // No process waits for the reply to this request, so an error of the handler can only be reported as a message.
        reply.ok();
        if let Some(Open::File(file, pending)) = self.open.close(handle.0).as_deref() {
            match pending.take() {
                Ok(None) if file.emptied && pending.unused() => drop(self.give(file, Vec::new())),
                Ok(Some(text)) => drop(self.give(file, text)),
                _ => {}
            }
        }
    }

    fn opendir(&self, request: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.open_folder(request, inode) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(e) => reply.error(e),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        match self.open.get(handle.0).as_deref() {
            Ok(Open::Folder(entries)) => {
                let seen = usize::try_from(offset).unwrap_or(usize::MAX);
                for (i, (inode, kind, name)) in entries.iter().enumerate().skip(seen) {
                    if reply.add(INodeNo(*inode), i as u64 + 1, *kind, name) {
                        break;
                    }
                }
                reply.ok();
            }
            Ok(_) => reply.error(Errno::ENOTDIR),
            Err(e) => reply.error(*e),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.open.close(handle.0);
        reply.ok();
    }

    // The requests below would create, remove or rename files. Only the configuration determines which files
    // exist.

    fn create(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: i32, reply: ReplyCreate) {
        // A write to a nonexistent handler arrives as a request to create the file.
        reply.error(Errno::ENOENT);
    }
    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }
    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }
    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }
    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }
    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &Path, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }
    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EPERM);
    }
    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }
}

fn answer(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(e),
    }
}
