// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of devices, with texts for users: what happened, and what to do about it.

use crate::error::system_text;
use rustix::io::Errno;
use std::fmt;
use std::io::ErrorKind;

/// An error of a device. Its text says what happened and, on a separate line after `help:`, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is no device of this name.
    Missing {
        /// The requested name.
        name: String,
        /// The names of the existing devices.
        here: Vec<String>,
    },
    /// The kernel refused permission.
    NotPermitted {
        /// The device.
        name: String,
        /// The operation that the kernel refused, for example `open a packet socket`.
        doing: &'static str,
        /// The Linux capabilities that permit the operation, for example `CAP_NET_ADMIN`.
        capability: &'static str,
    },
    /// Another program or element uses the device.
    Busy {
        /// The device.
        name: String,
    },
    /// The device is down or has vanished.
    Down {
        /// The device.
        name: String,
    },
    /// The kernel does not support a requested feature.
    Unsupported {
        /// The device.
        name: String,
        /// The feature that is not supported.
        what: String,
    },
    /// A setting of the device is invalid.
    Invalid {
        /// The device.
        name: String,
        /// The reason.
        what: String,
    },
    /// The process that opens devices for this process refused the request.
    Refused {
        /// The device.
        name: String,
        /// The operation that was requested.
        doing: &'static str,
        /// The reason.
        why: String,
    },
    /// Any other error of the kernel.
    System {
        /// The device.
        name: String,
        /// The operation that failed.
        doing: &'static str,
        /// The error.
        errno: Errno,
    },
}

impl std::error::Error for DeviceError {}

/// Wraps this error in a [`std::io::Error`] of the same kind.
impl From<DeviceError> for std::io::Error {
    fn from(e: DeviceError) -> Self {
        std::io::Error::new(e.kind(), e)
    }
}

impl DeviceError {
    /// Converts an error number of the kernel to an error.
    pub(crate) fn from_errno(name: &str, doing: &'static str, errno: Errno) -> DeviceError {
        let name = name.to_owned();
        match errno {
            Errno::PERM | Errno::ACCESS => {
                let capability =
                    if doing == OPEN_SOCKET { "CAP_NET_RAW and CAP_NET_ADMIN" } else { "CAP_NET_ADMIN" };
                DeviceError::NotPermitted { name, doing, capability }
            }
            Errno::BUSY => DeviceError::Busy { name },
            Errno::NETDOWN => DeviceError::Down { name },
            Errno::NXIO | Errno::NODEV => DeviceError::missing(&name),
            errno => DeviceError::System { name, doing, errno },
        }
    }

    /// The error for a missing device.
    pub(crate) fn missing(name: &str) -> DeviceError {
        DeviceError::Missing { name: name.to_owned(), here: super::facts::names() }
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            DeviceError::Missing { .. } => ErrorKind::NotFound,
            DeviceError::NotPermitted { .. } => ErrorKind::PermissionDenied,
            DeviceError::Busy { .. } => ErrorKind::ResourceBusy,
            DeviceError::Down { .. } => ErrorKind::NetworkDown,
            DeviceError::Unsupported { .. } => ErrorKind::Unsupported,
            DeviceError::Invalid { .. } => ErrorKind::InvalidInput,
            DeviceError::Refused { .. } => ErrorKind::Other,
            DeviceError::System { errno, .. } => errno.kind(),
        }
    }

    /// Advice for the user; empty if there is none.
    pub fn help(&self) -> String {
        match self {
            DeviceError::Missing { here, .. } if here.is_empty() => "there are no devices here".into(),
            DeviceError::Missing { here, .. } => format!("devices here: {}", here.join(", ")),
            DeviceError::NotPermitted { capability, .. } => {
                let caps = capability.to_ascii_lowercase().replace(" and ", ",");
                format!("run as root, or grant {capability}: setcap {caps}+ep PROGRAM")
            }
            DeviceError::Busy { name } => {
                format!("'{name}' is in use; end the program that has it, or name another device")
            }
            DeviceError::Down { name } => format!("bring it up: ip link set {name} up"),
            DeviceError::Unsupported { .. }
            | DeviceError::Invalid { .. }
            | DeviceError::Refused { .. }
            | DeviceError::System { .. } => String::new(),
        }
    }
}

/// The value of `doing` in errors about opening a packet socket.
pub(crate) const OPEN_SOCKET: &str = "open a packet socket";

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Missing { name, .. } => write!(f, "{name}: no such device")?,
            DeviceError::NotPermitted { name, doing, .. } => write!(f, "{name}: not permitted to {doing}")?,
            DeviceError::Busy { name } => write!(f, "{name}: device is busy")?,
            DeviceError::Down { name } => write!(f, "{name}: device is down")?,
            DeviceError::Unsupported { name, what } => write!(f, "{name}: no support for {what}")?,
            DeviceError::Invalid { name, what } => write!(f, "{name}: {what}")?,
            DeviceError::Refused { name, doing, why } => write!(f, "{name}: refused to {doing}: {why}")?,
            DeviceError::System { name, doing, errno } => {
                let text = system_text(&std::io::Error::from(*errno));
                write!(f, "{name}: cannot {doing}: {text}")?;
            }
        }
        match self.help() {
            help if help.is_empty() => Ok(()),
            help => write!(f, "\n  help: {help}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_to_do() {
        let here = vec!["eth0".to_string(), "lo".to_string()];
        let table = [
            (
                DeviceError::Missing { name: "eth9".into(), here },
                "eth9: no such device\n  help: devices here: eth0, lo",
            ),
            (
                DeviceError::from_errno("eth0", OPEN_SOCKET, Errno::PERM),
                "eth0: not permitted to open a packet socket\n  help: run as root, or grant CAP_NET_RAW and \
                 CAP_NET_ADMIN: setcap cap_net_raw,cap_net_admin+ep PROGRAM",
            ),
            (
                DeviceError::from_errno("tap0", "create the device", Errno::BUSY),
                "tap0: device is busy\n  help: 'tap0' is in use; end the program that has it, or name another device",
            ),
            (
                DeviceError::from_errno("eth0", "send", Errno::NETDOWN),
                "eth0: device is down\n  help: bring it up: ip link set eth0 up",
            ),
            (
                DeviceError::from_errno("eth0", "set its address", Errno::INVAL),
                "eth0: cannot set its address: Invalid argument",
            ),
        ];
        for (error, text) in table {
            assert_eq!(error.to_string(), text);
        }
    }
}
