// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol language Prolac (Kohler, Kaashoek, Montgomery: A Readable TCP in the Prolac Protocol Language, SIGCOMM
//! 1999) and its compiler to Rust. Nothing of the router is in it.
#![forbid(unsafe_code)]

pub mod syntax;

#[cfg(test)]
mod random;
