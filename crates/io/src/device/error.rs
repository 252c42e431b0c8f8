// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of devices, with texts for users: what happened, and what to do about it.

use super::xdp::{ATTACH, LOAD, Refusal};
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
        /// The Linux capabilities that permit the operation and that this process lacks, for example `CAP_NET_ADMIN`.
        capability: String,
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
    /// The kernel refused a program.
    Unverified {
        /// The device.
        name: String,
        /// The refusal.
        refusal: Refusal,
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
                let needed: &[&'static str] = match doing {
                    OPEN_SOCKET => &["CAP_NET_RAW", "CAP_NET_ADMIN"],
                    ATTACH => &ATTACHES,
                    LOAD => &LOADS,
                    _ => &["CAP_NET_ADMIN"],
                };
                DeviceError::NotPermitted { name, doing, capability: wanted(needed) }
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
            DeviceError::Refused { .. } | DeviceError::Unverified { .. } => ErrorKind::Other,
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
            | DeviceError::Unverified { .. }
            | DeviceError::System { .. } => String::new(),
        }
    }
}

/// The capabilities that it takes to attach the program of AF_XDP sockets.
pub(crate) const ATTACHES: [&str; 3] = ["CAP_BPF", "CAP_NET_ADMIN", "CAP_NET_RAW"];
/// The capabilities that it takes to load a program of a router.
pub(crate) const LOADS: [&str; 3] = ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"];

/// The capabilities that devices need, with their numbers, and the numbers of those that include them (capabilities(7)).
const CAPABILITIES: [(&str, [u32; 2]); 4] = [
    ("CAP_NET_ADMIN", [12, 12]),
    ("CAP_NET_RAW", [13, 13]),
    ("CAP_PERFMON", [38, 21]),
    ("CAP_BPF", [39, 21]),
];

/// The capabilities of a list that this thread lacks.
pub(crate) fn lacking(needed: &[&'static str]) -> Vec<&'static str> {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let own = status.lines().find_map(|l| u64::from_str_radix(l.strip_prefix("CapEff:")?.trim(), 16).ok());
    lacking_of(own.unwrap_or(0), needed)
}

fn lacking_of(own: u64, needed: &[&'static str]) -> Vec<&'static str> {
    let has =
        |name: &&&str| CAPABILITIES.iter().any(|c| c.0 == **name && c.1.iter().any(|n| own >> n & 1 == 1));
    needed.iter().filter(|name| !has(name)).copied().collect()
}

/// Names the capabilities of a list that this thread lacks. Names all of them if it has all, but not in the initial user namespace,
/// which the kernel asks for some operations.
pub(crate) fn wanted(needed: &[&'static str]) -> String {
    let missing = lacking(needed);
    if missing.is_empty() { needed.join(" and ") } else { missing.join(" and ") }
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
            DeviceError::Unverified { name, refusal } => f.write_str(&refusal.text(name, None))?,
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
    fn missing_capabilities_are_named() {
        let (bpf, perfmon, admin, sys) = (1 << 39, 1 << 38, 1 << 12, 1 << 21);
        for (own, missing) in [
            (0, &LOADS[..]),
            (bpf | admin, &["CAP_PERFMON"]),
            (bpf | perfmon, &["CAP_NET_ADMIN"]),
            (perfmon | admin, &["CAP_BPF"]),
            (bpf, &["CAP_PERFMON", "CAP_NET_ADMIN"]),
            (sys, &["CAP_NET_ADMIN"]),
            (sys | admin, &[]),
            (bpf | perfmon | admin, &[]),
        ] {
            assert_eq!(lacking_of(own, &LOADS), missing);
        }
    }

    #[test]
    fn texts_say_what_to_do() {
        let here = vec!["eth0".to_string(), "lo".to_string()];
        let table = [
            (
                DeviceError::Missing { name: "eth9".into(), here },
                "eth9: no such device\n  help: devices here: eth0, lo",
            ),
            (
                DeviceError::NotPermitted {
                    name: "eth0".into(),
                    doing: OPEN_SOCKET,
                    capability: lacking_of(0, &["CAP_NET_RAW", "CAP_NET_ADMIN"]).join(" and "),
                },
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
