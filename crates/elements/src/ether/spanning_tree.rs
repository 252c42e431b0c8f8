// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spanning tree protocol (IEEE 802.1D-1998) apart from elements: its messages, and what one bridge does.

pub mod bpdu;
mod port;
pub mod protocol;

#[cfg(test)]
mod lans;
#[cfg(test)]
mod tests;
