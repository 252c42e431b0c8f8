// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets: pooled buffers, packet handles, annotations, batches.
//!
//! A [`Packet`] is a pointer-sized handle that owns a chunk of the thread's pool. A chunk is two cache lines of
//! metadata and a buffer; forwarding touches only the first line. A clone shares the buffer with the original until
//! either of them is written to. A chunk returns to the pool it came from, whichever thread frees it. A pool outlives
//! its thread as long as any of its packets exists.
//!
//! This crate is one of the few that may contain `unsafe`. Its interface consists of checked slices.

mod annotation;
mod batch;
mod chunk;
mod copy;
mod fresh;
pub mod layout;
mod offload;
mod packet;
pub mod pool;
pub mod region;

pub use annotation::PacketType;
pub use batch::Batch;
pub use offload::Offload;
pub use packet::{MAX_LENGTH, Packet};
pub use region::Region;

/// The default headroom of a packet. Existing configurations rely on this value.
pub const DEFAULT_HEADROOM: usize = 28;

/// The largest headroom that a configuration may ask for, in bytes.
pub const MAX_HEADROOM: u32 = 8192;

#[cfg(test)]
mod tests;
