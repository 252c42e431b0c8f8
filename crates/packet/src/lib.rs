// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets: buffers in pools, handles on them, annotations, batches.
//!
//! A [`Packet`] is a pointer-sized handle that owns a chunk of the thread's pool. A chunk is two cache lines of
//! metadata, the first of which is all that forwarding touches, and a buffer. A clone shares the buffer until one of the
//! two writes. Chunks go back to the pool they came from, from whichever thread; pools outlive their threads as long as
//! a packet of theirs is alive.
//!
//! This is one of the few crates that may hold `unsafe`; everything outside sees checked slices.

mod annotation;
mod batch;
mod chunk;
mod fresh;
mod offload;
mod packet;
pub mod pool;

pub use annotation::PacketType;
pub use batch::Batch;
pub use offload::Offload;
pub use packet::{MAX_LENGTH, Packet};

/// Bytes before the data of a fresh packet, as existing configurations see it.
pub const DEFAULT_HEADROOM: usize = 28;

#[cfg(test)]
mod tests;
