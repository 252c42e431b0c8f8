// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place of each field of a packet in memory, for machine code that is made while a router runs.
//!
//! A [`Packet`](crate::Packet) is a pointer to these fields. Code that changes them must keep the invariants of the packet: the data
//! lie in the buffer, and code that writes to the buffer must be the only one that uses it.

use crate::chunk::{COLD, KIND, Meta, UNSET};
use std::mem::offset_of;

/// The address of the buffer: a pointer.
pub const BUFFER: usize = offset_of!(Meta, buf);
/// The offset of the data in the buffer: 32 bits.
pub const DATA: usize = offset_of!(Meta, data);
/// The length of the data: 32 bits.
pub const LENGTH: usize = offset_of!(Meta, len);
/// The offset of the MAC header in the buffer: 32 bits.
pub const MAC: usize = offset_of!(Meta, mac);
/// The offset of the network header in the buffer: 32 bits.
pub const NETWORK: usize = offset_of!(Meta, network);
/// The offset of the transport header in the buffer: 32 bits.
pub const TRANSPORT: usize = offset_of!(Meta, transport);
/// The flags: 8 bits.
pub const FLAGS: usize = offset_of!(Meta, flags);
/// The annotations: 48 bytes. Only the first 24 are valid without a flag.
pub const ANNOTATIONS: usize = offset_of!(Meta, anno);

/// The offset of a header that is not set.
pub const NOT_SET: u32 = UNSET;
/// The flags that machine code ignores. A packet with another flag is shared, has offloads, is traced, or has a packet type other
/// than 0 (for this host).
pub const PLAIN: u8 = COLD;
/// The number of the lowest bit of the packet type in the flags.
pub const PACKET_TYPE: u32 = KIND;
