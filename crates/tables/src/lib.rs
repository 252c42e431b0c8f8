// SPDX-License-Identifier: MIT OR Apache-2.0
//! Route tables, rings, timer queues: the data structures of the router. They are independent of packets.
//!
//! - [`lpm`]: longest-prefix match for IPv4
//! - [`flow`]: index of flows by hash
//! - [`ring`]: bounded queue between workers. [`flag`]: records whether a queue may be non-empty. [`fifo`]:
//!   bounded queue for a single owner
//! - [`timer_queue`], [`stride`]: scheduling by time and by tickets
//! - [`ewma`], [`token_bucket`]: measuring and limiting rates
//!
//! Unsafe code is in [`ring`], in [`fifo`], in the vector comparison of [`StaticTable`], in the choice of processor
//! instructions of [`CompactTable`], and in `memory` (huge pages).
#![deny(unsafe_code)]

mod atomics;
pub mod ewma;
pub mod fifo;
pub mod flag;
#[cfg(test)]
mod flag_tests;
pub mod flow;
mod heap;
pub mod lpm;
mod memory;
#[cfg(test)]
mod models;
pub mod ring;
#[cfg(test)]
mod ring_tests;
pub mod stride;
pub mod timer_queue;
pub mod token_bucket;

pub use ewma::Ewma;
pub use fifo::Fifo;
pub use flag::Flag;
pub use flow::FlowIndex;
pub use lpm::{CompactTable, NotFound, Prefix, Route, StaticTable, TableError};
pub use ring::Ring;
pub use stride::Stride;
pub use timer_queue::TimerQueue;
pub use token_bucket::TokenBucket;
