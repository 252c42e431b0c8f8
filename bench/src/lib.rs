// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benchmarks: of the engine against hand-written code that does the same work, of a router against the kernel's.
//!
//! [`fig8`] measures the forwarding path of TOCS 2000, Figure 8: the configuration `conf/bench/fig8-path.click` and the
//! [`Monolith`], which takes the same frames and sends byte for byte the same ones. Both run in turns on one thread, with
//! one pool of packets, driven from inside the router by [`rounds`], so that neither building nor starting is timed.
//! What a run takes is thread processor time; what it costs in instructions is counted by callgrind ([`instructions`]).
//!
//! [`control`] measures what clients of a control socket cost a router.
//!
//! [`veth`] measures a router between real devices, against the kernel's; [`swap`] hot swaps. [`curves`] are those of the
//! papers: what configurations do over a range of loads.
#![forbid(unsafe_code)]

mod chart;
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
mod slow;
mod svg;
pub mod swap;
pub mod veth;

pub use monolith::{Counts, Monolith};

#[cfg(test)]
mod tests;
