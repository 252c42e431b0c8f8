// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of packages: building, refusing, loading, unloading.
#![allow(clippy::unwrap_used, clippy::panic)]

mod built;
mod common;
mod loaded;
mod refused;
