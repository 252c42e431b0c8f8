// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capture files and devices as plain Rust.
//!
//! - [`CaptureReader`] reads pcap and pcapng, plain or compressed, from files, standard input or memory.
//! - [`CaptureWriter`] writes them.
//! - [`summary`] reads and writes summary dumps: text or records with chosen fields of packets.
//! - [`socket`]: TCP, UDP, Unix, multicast and raw IP sockets that never block.
//!
//! All treat what they read as hostile: no file makes them panic, loop for ever, or allocate more than
//! [`MAX_CAPTURED`] bytes for a packet.
//!
//! [`device`] talks to network devices of Linux; [`opener`] is a process that opens them for one that gave its privileges up by
//! [`privilege`]. Unsafe code is in the files `sys`, `ring`, `send` and `bpf` of `device`, in `privilege`, and in [`namespace`],
//! which makes hosts of their own on one machine, only.
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
pub use writer::{CaptureFormat, CaptureWriter, WriterOptions};

/// Most bytes that one captured packet may have: the largest snapshot length that capture programs use.
pub const MAX_CAPTURED: u32 = 262_144;
