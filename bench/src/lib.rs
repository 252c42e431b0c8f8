// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benchmarks of routers against hand-written code and against the kernel.
//!
//! [`fig8`] measures the forwarding path of TOCS 2000, Figure 8: the configuration `conf/bench/fig8-path.click`, and
//! the [`Monolith`], which accepts the same frames and sends identical ones. The two alternate on one thread with one
//! packet pool. The element of [`rounds`] starts them from inside the router, so the time to build and start the router
//! does not count. Times are thread CPU times. callgrind counts instructions ([`instructions`]).
//!
//! [`control`] measures how much clients of a control socket slow down a router.
//!
//! [`aspl`] reproduces the figures of the papers on optimisation passes and on the cost of elements.
//!
//! [`classes`] measures what an element of each class costs.
//!
//! [`tcp`] reproduces the figures of the paper on TCP in Prolac, beside smoltcp and the kernel.
//!
//! [`routes`] measures full route tables.
//!
//! [`scale`] measures the cost of sharing elements between workers, and predicts the throughput with more workers.
//!
//! [`streams`] measures TCP streams across routers.
//!
//! [`veth`] compares a router between real devices with the kernel's router; [`swap`] measures hot swaps.
//! [`curves`] reproduces curves of the papers: the behaviour of configurations over a range of loads.
#![forbid(unsafe_code)]

pub mod aspl;
mod bars;
pub mod chart;
pub mod classes;
pub mod control;
pub mod curves;
pub mod fig8;
mod fragment;
pub mod frames;
pub mod instructions;
mod launch;
mod monolith;
mod options;
mod path;
mod process;
pub mod report;
pub mod rounds;
pub mod routes;
pub mod scale;
mod slow;
pub mod streams;
mod svg;
pub mod swap;
pub mod tcp;
pub mod veth;

pub use monolith::{Counts, Monolith};
pub use path::Mode;

#[cfg(test)]
mod tests;
