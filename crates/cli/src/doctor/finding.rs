// SPDX-License-Identifier: MIT OR Apache-2.0
//! The findings of checks, and how they are mended.

use castanet_io::device::Offload;
use castanet_io::device::xdp::XdpMode;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Severity {
    /// Slower than possible, or worth knowing.
    Note,
    /// Packets can be lost or changed.
    Warning,
    /// The router does not start, or its packets are wrong.
    Error,
}

impl Severity {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A change of this network namespace that mends a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets a value below `/proc/sys`. The key has slashes, because names of devices may contain dots.
    Sysctl { key: String, value: u32 },
    /// Switches an offload of a device off.
    Offload { device: String, offload: Offload },
    /// Sets the size of a device's receive ring.
    Ring { device: String, size: u32 },
    /// Sets the MTU of a device.
    Mtu { device: String, mtu: u32 },
    /// Brings a device up.
    Up { device: String },
    /// Takes a device out of its bridge or bond.
    Release { device: String },
    /// Detaches the XDP program of a device.
    DetachXdp { device: String, mode: XdpMode },
    /// Removes the filter that a router with this process ID left behind.
    Filter { device: String, pid: u32 },
}

impl Change {
    /// The command that does the same.
    pub fn command(&self) -> String {
        match self {
            Change::Sysctl { key, value } => {
                let key = if key.contains('.') { key.clone() } else { key.replace('/', ".") };
                format!("sysctl -w {key}={value}")
            }
            Change::Offload { device, offload } => format!("ethtool -K {device} {} off", offload.word()),
            Change::Ring { device, size } => format!("ethtool -G {device} rx {size}"),
            Change::Mtu { device, mtu } => format!("ip link set {device} mtu {mtu}"),
            Change::Up { device } => format!("ip link set {device} up"),
            Change::Release { device } => format!("ip link set {device} nomaster"),
            Change::DetachXdp { device, mode } => {
                let kind = if *mode == XdpMode::Generic { "xdpgeneric" } else { "xdp" };
                format!("ip link set {device} {kind} off")
            }
            Change::Filter { device, .. } => format!("tc filter del dev {device} ingress pref 1"),
        }
    }
}

/// How a finding is mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mend {
    /// `--mend` makes this change.
    Change(Change),
    /// The user has to do this; `reason` says why `--mend` does not.
    ByHand {
        /// A command, or a change of the configuration.
        what: String,
        /// Why `--mend` refuses.
        reason: &'static str,
    },
}

/// Reasons for which `--mend` leaves a change to the user.
pub mod refusal {
    pub const CONFIGURATION: &str = "the change is one of the configuration";
    pub const MACHINE: &str = "it concerns the whole machine, not only this network namespace";
    pub const OTHERS: &str = "another program may need it";
    pub const PROCESS: &str = "it concerns the process that starts the router";
    pub const ELSEWHERE: &str = "it is outside this network namespace";
    pub const WITHOUT_FILE: &str =
        "other programs may need it; with the FILE of a configuration, what stands in its way is changed";
}

/// Something that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// The fault in one sentence, with the value that was found.
    pub what: String,
    /// Why it matters.
    pub why: String,
    pub mend: Mend,
}

impl Finding {
    /// A finding that a change of this network namespace mends.
    pub fn mended_by(severity: Severity, what: String, why: impl Into<String>, change: Change) -> Finding {
        Finding { severity, what, why: why.into(), mend: Mend::Change(change) }
    }
    /// A finding that the user has to mend.
    pub fn by_hand(
        severity: Severity,
        what: String,
        why: impl Into<String>,
        mend: String,
        reason: &'static str,
    ) -> Finding {
        Finding { severity, what, why: why.into(), mend: Mend::ByHand { what: mend, reason } }
    }
    /// The same finding for a machine without a configuration: a note, whose change is left to the user.
    pub fn without_file(mut self) -> Finding {
        self.severity = Severity::Note;
        if let Mend::Change(change) = &self.mend {
            self.mend = Mend::ByHand { what: change.command(), reason: refusal::WITHOUT_FILE };
        }
        self
    }
    /// The command, or the change of the configuration, that mends it.
    pub fn help(&self) -> String {
        match &self.mend {
            Mend::Change(change) => change.command(),
            Mend::ByHand { what, .. } => what.clone(),
        }
    }
}
