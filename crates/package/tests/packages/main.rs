// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages: built of crates, refused, loaded, unloaded.
#![allow(clippy::unwrap_used, clippy::panic)]

mod built;
mod common;
mod loaded;
mod refused;
