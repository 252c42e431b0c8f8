// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spanning tree protocol (IEEE 802.1D-1998), independent of elements: its messages, and the behaviour of
//! one bridge.

pub mod bpdu;
mod port;
pub mod protocol;

#[cfg(test)]
mod lans;
#[cfg(test)]
mod tests;
