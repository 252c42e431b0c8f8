// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses that a server listens on: TCP ports, Unix sockets, inherited descriptors.

use crate::reason;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with, sockopt,
};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The maximum number of waiting connections (the backlog of listen(2)).
const WAITING: i32 = 1024;
/// How long to wait for the lock on the folder while another program replaces a socket file in it.
const PATIENCE: Duration = Duration::from_millis(500);

/// An address that a server listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP port on an IP address.
    Tcp {
        /// The IP address.
        address: IpAddr,
        /// The port; 0 lets the kernel choose.
        port: u16,
        /// Whether to try the following ports if `port` is in use.
        following: bool,
    },
    /// A Unix socket. Only its owner can open the file.
    Unix(PathBuf),
    /// A descriptor of this process: a listening socket, or a connection.
    Descriptor(i32),
}

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// A system call failed.
    #[error("cannot listen on {0}: {reason}", reason = reason(.1))]
    System(String, #[source] std::io::Error),
    /// The file exists and is not a socket.
    #[error("cannot listen on {0}: there is a file that is no socket")]
    NoSocket(String),
    /// Another program listens on the address.
    #[error("cannot listen on {0}: another program listens there")]
    Live(String),
    /// The descriptor is not a stream socket.
    #[error("{0} is neither a listening stream socket nor a connection")]
    Descriptor(String),
}

/// Converts to an I/O error that contains this error.
impl From<ListenError> for std::io::Error {
    fn from(e: ListenError) -> Self {
        let kind = match &e {
            ListenError::System(_, source) => source.kind(),
            ListenError::NoSocket(_) | ListenError::Descriptor(_) => ErrorKind::InvalidInput,
            ListenError::Live(_) => ErrorKind::AddrInUse,
        };
        std::io::Error::new(kind, e)
    }
}

/// A listening socket, or a connection.
pub struct Listening {
    pub(crate) fd: OwnedFd,
    /// Whether the descriptor is a connection, not a listening socket.
    pub(crate) connected: bool,
    pub(crate) port: Option<u16>,
    /// The file of a Unix socket. Dropping this value removes the file.
    pub(crate) file: Option<SocketFile>,
}

/// The file of a Unix socket. Dropping this value removes the file, unless another file has replaced it.
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path) == Some(self.identity) {
            // If the file cannot be removed, the next server finds it stale and replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

impl std::fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ListenAddress::Tcp { address, port, .. } if address.is_loopback() || address.is_unspecified() => {
                write!(f, "TCP port {port}")
            }
            ListenAddress::Tcp { address, port, .. } => write!(f, "TCP port {port} of {address}"),
            ListenAddress::Unix(path) => write!(f, "Unix socket {}", path.display()),
            ListenAddress::Descriptor(fd) => write!(f, "descriptor {fd}"),
        }
    }
}

impl ListenAddress {
    /// Returns the key of the address for hot swaps: a new server takes over the socket of an old server with
    /// the same key.
    pub fn key(&self) -> String {
        match self {
            ListenAddress::Tcp { address, port, following } => {
                format!("tcp {address} {port}{}", if *following { "+" } else { "" })
            }
            ListenAddress::Unix(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                format!("unix {}", path.display())
            }
            ListenAddress::Descriptor(fd) => format!("descriptor {fd}"),
        }
    }
    fn failed(&self, e: impl Into<std::io::Error>) -> ListenError {
        ListenError::System(self.to_string(), e.into())
    }

    /// Opens the listening socket, or duplicates the descriptor.
    ///
    /// # Errors
    /// When another program listens on the address, or a system call fails.
    pub fn listen(&self) -> Result<Listening, ListenError> {
        match self {
            ListenAddress::Tcp { address, port, following } => self.tcp(*address, *port, *following),
            ListenAddress::Unix(path) => self.unix(path),
            ListenAddress::Descriptor(fd) => self.descriptor(*fd),
        }
    }

    fn tcp(&self, address: IpAddr, port: u16, following: bool) -> Result<Listening, ListenError> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let mut port = port;
        loop {
            let fd = stream(family).map_err(|e| self.failed(e))?;
            sockopt::set_socket_reuseaddr(&fd, true).map_err(|e| self.failed(e))?;
            let bound = bind(&fd, &SocketAddr::new(address, port)).and_then(|()| listen(&fd, WAITING));
            match (bound, port.checked_add(1)) {
                (Ok(()), _) => {
                    let name = rustix::net::getsockname(&fd).map_err(|e| self.failed(e))?;
                    let port = SocketAddr::try_from(name).ok().map(|a| a.port());
                    return Ok(Listening { fd, connected: false, port, file: None });
                }
                (Err(Errno::ADDRINUSE), Some(next)) if following && port > 0 => port = next,
                (Err(e), _) => return Err(self.failed(e)),
            }
        }
    }

    fn unix(&self, path: &Path) -> Result<Listening, ListenError> {
        let address = SocketAddrUnix::new(path).map_err(|e| self.failed(e))?;
        // Use an absolute path, because the process may change its directory before the file is removed.
        let path = std::path::absolute(path).map_err(|e| self.failed(e))?;
        let fd = stream(AddressFamily::UNIX).map_err(|e| self.failed(e))?;
        // The file inherits its mode from the socket (unix(7)), so no other user can open it, not even for a moment.
        // Changing the umask would affect all threads.
        rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR).map_err(|e| self.failed(e))?;
        match bind(&fd, &address) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => self.replace(&fd, &path, &address)?,
            Err(e) => return Err(self.failed(e)),
        }
        let identity = identity(&path);
        let file = identity.map(|identity| SocketFile { path, identity });
        listen(&fd, WAITING).map_err(|e| self.failed(e))?;
        Ok(Listening { fd, connected: false, port: None, file })
    }

    /// Replaces the socket file at `path` if the program that made it has ended.
    fn replace(&self, fd: &OwnedFd, path: &Path, address: &SocketAddrUnix) -> Result<(), ListenError> {
        use std::os::unix::fs::FileTypeExt;
        // Hold a lock: otherwise two programs could find the file stale, and the second would remove the new
        // file of the first.
        let folder = path.parent().unwrap_or(Path::new("/"));
        let lock = open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| self.failed(e))?;
        let start = std::time::Instant::now();
        while let Err(e) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            if start.elapsed() > PATIENCE {
                return Err(self.failed(e));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        match std::fs::symlink_metadata(path) {
            Ok(m) if !m.file_type().is_socket() => return Err(ListenError::NoSocket(self.to_string())),
            Ok(_) => {
                let probe = stream(AddressFamily::UNIX).map_err(|e| self.failed(e))?;
                match connect(&probe, address) {
                    Err(Errno::CONNREFUSED) => {
                        std::fs::remove_file(path).map_err(|e| self.failed(e))?;
                    }
                    // AGAIN means that the backlog of the socket is full, so its program is alive.
                    Ok(()) | Err(Errno::AGAIN) => return Err(ListenError::Live(self.to_string())),
                    Err(e) => return Err(self.failed(e)),
                }
            }
            // The file was removed before this program had the lock.
            Err(_) => {}
        }
        bind(fd, address).map_err(|e| match e {
            Errno::ADDRINUSE => ListenError::Live(self.to_string()),
            e => self.failed(e),
        })
    }

    /// Duplicates a descriptor of this process. The original stays open.
    fn descriptor(&self, number: i32) -> Result<Listening, ListenError> {
        // The system call wrapper asserts that the number is not negative.
        if number < 0 {
            return Err(self.failed(Errno::BADF));
        }
        let me = pidfd_open(getpid(), PidfdFlags::empty()).map_err(|e| self.failed(e))?;
        let fd = pidfd_getfd(&me, number, PidfdGetfdFlags::empty()).map_err(|e| self.failed(e))?;
        let wrong = |_| ListenError::Descriptor(self.to_string());
        if sockopt::socket_type(&fd).map_err(wrong)? != SocketType::STREAM {
            return Err(ListenError::Descriptor(self.to_string()));
        }
        let connected = !sockopt::socket_acceptconn(&fd).map_err(wrong)?;
        if connected {
            rustix::net::getpeername(&fd).map_err(wrong)?;
        }
        rustix::io::ioctl_fionbio(&fd, true).map_err(|e| self.failed(e))?;
        let name = rustix::net::getsockname(&fd).map_err(|e| self.failed(e))?;
        let port = SocketAddr::try_from(name).ok().map(|a| a.port());
        Ok(Listening { fd, connected, port, file: None })
    }
}

impl Listening {
    /// The TCP port of the socket; `None` for other sockets.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

fn stream(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::Ipv4Addr;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn tcp(port: u16, following: bool) -> ListenAddress {
        ListenAddress::Tcp { address: Ipv4Addr::LOCALHOST.into(), port, following }
    }
    fn text(r: Result<Listening, ListenError>) -> String {
        r.err().unwrap().to_string()
    }

    #[test]
    fn a_port_that_is_taken_is_an_error_or_the_next_one_is_tried() {
        let first = tcp(0, false).listen().unwrap();
        let port = first.port().unwrap();
        let error = text(tcp(port, false).listen());
        assert_eq!(error, format!("cannot listen on TCP port {port}: Address already in use"));
        let next = tcp(port, true).listen().unwrap();
        assert!(next.port().unwrap() > port && !next.connected);
        assert_ne!(tcp(1, true).key(), tcp(1, false).key());
    }

    #[test]
    fn files_of_sockets_are_for_their_owner_and_go_with_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let place = ListenAddress::Unix(path.clone());
        let mode = |p: &Path| std::fs::symlink_metadata(p).unwrap().permissions().mode() & 0o777;
        let socket = place.listen().unwrap();
        assert_eq!(mode(&path), 0o600);
        UnixStream::connect(&path).unwrap();
        assert!(text(place.listen()).ends_with("another program listens there"));
        assert!(path.exists(), "the file of a live socket stays");
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn stale_files_are_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let place = ListenAddress::Unix(path.clone());
        drop(UnixListener::bind(&path).unwrap());
        let socket = place.listen().unwrap();
        UnixStream::connect(&path).unwrap();
        // The file of another socket at the same path is not removed.
        std::fs::remove_file(&path).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        drop(socket);
        assert!(path.exists());
        drop(other);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "text").unwrap();
        assert!(text(place.listen()).ends_with("there is a file that is no socket"));
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
        let long = ListenAddress::Unix(folder.path().join("x".repeat(200)));
        assert!(text(long.listen()).ends_with("File name too long"), "{}", text(long.listen()));
        let nowhere = ListenAddress::Unix(folder.path().join("no/s"));
        assert!(text(nowhere.listen()).ends_with("No such file or directory"));
    }

    #[test]
    fn many_at_once_find_a_stale_file_and_one_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        let all: Vec<_> = std::thread::scope(|s| {
            let threads: Vec<_> =
                (0..8).map(|_| s.spawn(|| ListenAddress::Unix(path.clone()).listen().ok())).collect();
            threads.into_iter().filter_map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(all.len(), 1);
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn descriptors_that_listen_or_are_connected() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let l = ListenAddress::Descriptor(listener.as_raw_fd()).listen().unwrap();
        assert_eq!((l.connected, l.port()), (false, Some(listener.local_addr().unwrap().port())));
        let (a, _b) = UnixStream::pair().unwrap();
        assert!(ListenAddress::Descriptor(a.as_raw_fd()).listen().unwrap().connected);
        for number in [-1, 99_999] {
            assert!(text(ListenAddress::Descriptor(number).listen()).ends_with("Bad file descriptor"));
        }
        let file = std::fs::File::open("/dev/null").unwrap();
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for other in [file.as_raw_fd(), datagrams.as_raw_fd()] {
            assert!(text(ListenAddress::Descriptor(other).listen()).contains("neither"));
        }
    }
}
