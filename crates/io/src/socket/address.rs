// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses of sockets: an IPv4 address and a port, or the path of a Unix socket.

use super::SocketError;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix};
use std::fmt;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketAddress {
    /// An IPv4 address and a port.
    Inet(SocketAddrV4),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for SocketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketAddress::Inet(a) => a.fmt(f),
            SocketAddress::Unix(p) => p.display().fmt(f),
        }
    }
}

impl SocketAddress {
    pub(super) fn family(&self) -> AddressFamily {
        match self {
            SocketAddress::Inet(_) => AddressFamily::INET,
            SocketAddress::Unix(_) => AddressFamily::UNIX,
        }
    }

    pub(super) fn to_kernel(&self) -> Result<SocketAddrAny, SocketError> {
        match self {
            SocketAddress::Inet(a) => Ok((*a).into()),
            SocketAddress::Unix(p) => SocketAddrUnix::new(p.as_path())
                .map(Into::into)
                .map_err(SocketError::of(|| format!("use '{self}' as the name of a socket"))),
        }
    }

    /// Whether the path is that of a Unix socket that no process has open.
    fn is_stale(&self, kind: rustix::net::SocketType) -> bool {
        let SocketAddress::Unix(path) = self else { return false };
        if !std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket()) {
            return false;
        }
        let probe = rustix::net::socket_with(
            AddressFamily::UNIX,
            kind,
            rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK,
            None,
        );
        let (Ok(probe), Ok(address)) = (probe, self.to_kernel()) else { return false };
        rustix::net::connect(&probe, &address) == Err(Errno::CONNREFUSED)
    }

    /// Binds a socket to the address. Replaces the file of another Unix socket if no process has that socket open.
    pub(super) fn bind(&self, fd: &OwnedFd, kind: rustix::net::SocketType) -> Result<File, SocketError> {
        let address = self.to_kernel()?;
        let what = || format!("bind to {self}");
        match rustix::net::bind(fd, &address) {
            Err(Errno::ADDRINUSE) if self.is_stale(kind) => {
                if let SocketAddress::Unix(path) = self {
                    // If the file cannot be removed, the second `bind` below returns the error.
                    let _ = std::fs::remove_file(path);
                }
                rustix::net::bind(fd, &address).map_err(SocketError::of(what))?;
            }
            other => other.map_err(SocketError::of(what))?,
        }
        Ok(match self {
            SocketAddress::Unix(path) => File::bound(path),
            SocketAddress::Inet(_) => File(None),
        })
    }
}

/// The file of a bound socket. The file is removed when the socket is closed, unless its path belongs to another
/// file by then.
///
/// INVARIANT: owners declare this field before the descriptor, so that it is dropped while the socket is
/// still open. As long as the socket is open, the inode number cannot be reused for another file.
#[derive(Debug)]
pub(super) struct File(Option<(PathBuf, Identity)>);

/// The device number and inode number of a file.
type Identity = (u64, u64);

fn identity(path: &Path) -> Option<Identity> {
    std::fs::symlink_metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

impl File {
    /// Returns the file of a socket that was just bound.
    fn bound(path: &Path) -> File {
        // Absolute, because the working directory may change before the file is removed.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let identity = identity(&path);
        File(identity.map(|identity| (path, identity)))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some((path, bound)) = &self.0
            && identity(path) == Some(*bound)
        {
            // If the file cannot be removed, the next socket that is bound there finds it stale.
            let _ = std::fs::remove_file(path);
        }
    }
}
