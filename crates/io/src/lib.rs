// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capture files and devices as plain Rust.
