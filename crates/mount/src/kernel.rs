// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mounting and unmounting: by system call if permitted, otherwise with `fusermount3`.

use crate::MountError;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

const DEVICE: &str = "/dev/fuse";
/// The programs that mount for unprivileged users: that of FUSE 3, then that of FUSE 2.
const HELPERS: [&str; 2] = ["fusermount3", "fusermount"];

/// Whether a system call failed for lack of privilege.
fn forbidden(e: Errno) -> bool {
    e == Errno::PERM || e == Errno::ACCESS
}

/// Mounts on a directory. The returned descriptor is the connection to the kernel.
pub(crate) fn mount(folder: &Path, source: &str) -> Result<OwnedFd, MountError> {
    let device = File::options().read(true).write(true).open(DEVICE).map_err(MountError::Device)?;
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let fd = device.as_raw_fd();
    // `default_permissions` lets the kernel check the permissions that `ls -l` shows.
    let data = format!("fd={fd},rootmode=40000,user_id={user},group_id={group},default_permissions");
    let data = CString::new(data).map_err(io::Error::from).map_err(|e| failed(folder, e))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::NOATIME;
    match rustix::mount::mount(source, folder, "fuse.castanet", flags, data.as_c_str()) {
        Ok(()) => Ok(device.into()),
        Err(e) if forbidden(e) => {
            drop(device);
            ask_to_mount(folder, source)
        }
        Err(e) => Err(failed(folder, e.into())),
    }
}

fn failed(folder: &Path, source: io::Error) -> MountError {
    MountError::Refused { folder: folder.display().to_string(), source }
}

/// Starts the first mount helper of `HELPERS` that is installed. `arrange` completes its command.
fn helper(
    folder: &Path,
    arrange: impl Fn(&mut Command) -> io::Result<()>,
) -> Result<std::process::Child, MountError> {
    for name in HELPERS {
        let mut command = Command::new(name);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        arrange(&mut command).map_err(|e| failed(folder, e))?;
        match command.spawn() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(folder, e)),
            Ok(child) => return Ok(child),
        }
    }
    Err(MountError::NoHelper { folder: folder.display().to_string() })
}

/// Mounts with `fusermount3`. The helper's standard input is a socket, through which it sends the descriptor.
fn ask_to_mount(folder: &Path, source: &str) -> Result<OwnedFd, MountError> {
    let (ours, theirs) = UnixStream::pair().map_err(|e| failed(folder, e))?;
    let child = helper(folder, |command| {
        let options =
            format!("default_permissions,nosuid,nodev,noexec,noatime,subtype=castanet,fsname={source}");
        command.args(["-o", &options, "--"]).arg(folder);
        command.env("_FUSE_COMMFD", "0").stdin(OwnedFd::from(theirs.try_clone()?));
        Ok(())
    })?;
    drop(theirs);
    let device = receive(&ours);
    let output = child.wait_with_output().map_err(|e| failed(folder, e))?;
    device.map_err(|e| failed(folder, e))?.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        failed(folder, io::Error::other(said))
    })
}

/// Receives a descriptor through a socket; `None` if the socket is closed without one.
fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let descriptors = control.drain().filter_map(|m| match m {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok(descriptors.flatten().next())
}

/// Unmounts a directory. The mount disappears immediately, even if files are open or the router has ended.
pub(crate) fn unmount(folder: &Path) -> Result<(), MountError> {
    match rustix::mount::unmount(folder, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(e) if forbidden(e) => {
            let child = helper(folder, |command| {
                command.args(["-u", "-z", "--"]).arg(folder).stdin(Stdio::null());
                Ok(())
            })?;
            let output = child.wait_with_output().map_err(|e| failed(folder, e))?;
            if output.status.success() {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
            Err(failed(folder, io::Error::other(said)))
        }
        Err(e) => Err(failed(folder, e.into())),
    }
}
