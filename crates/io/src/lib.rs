// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to capture files, sockets and network devices, independent of the router.
//!
//! - [`CaptureReader`] reads pcap and pcapng, plain or compressed, from files, standard input or memory.
//! - [`CaptureWriter`] writes pcap and pcapng.
//! - [`summary`] reads and writes summary dumps: text or records with chosen fields of packets.
//! - [`socket`]: TCP, UDP, Unix, multicast and raw IP sockets that never block.
//! - [`device`]: network devices of Linux
//! - [`opener`]: a process that opens devices for another process, which has dropped its privileges
//! - [`privilege`]: dropping capabilities
//! - [`namespace`]: hosts in network namespaces, for tests and measurements
//!
//! All input is treated as hostile: no file causes a panic, an endless loop, or an allocation of more than
//! [`MAX_CAPTURED`] bytes for a packet.
//!
//! Unsafe code is only in the files `sys`, `ethtool`, `ring`, `send` and `bpf` of `device`, in `privilege`, and in `namespace`.
#![deny(unsafe_code)]

pub mod device;
mod error;
mod link;
pub mod namespace;
pub mod opener;
mod pcap;
mod pcapng;
pub mod privilege;
mod reader;
mod source;
pub mod summary;
mod writer;

pub mod socket;

pub use error::CaptureError;
pub use link::LinkType;
pub use reader::{CaptureReader, Frame};
pub use writer::{CaptureFormat, CaptureRecords, CaptureWriter, WriterOptions};

/// Largest length of a captured packet, in bytes. It is the largest snapshot length that capture programs
/// use.
pub const MAX_CAPTURED: u32 = 262_144;
