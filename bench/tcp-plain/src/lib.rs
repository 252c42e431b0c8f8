// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of castanet-tcp, from the same sources, on top of the TCP compiled without inlining. `castanet bench tcp`
//! compares the two (SIGCOMM 1999, Figure 6).
#![forbid(unsafe_code)]

#[path = "../../../crates/tcp/src/application.rs"]
pub mod application;
#[path = "../../../crates/tcp/src/engine/mod.rs"]
pub mod engine;
#[path = "../../../crates/tcp/src/local.rs"]
pub mod local;
#[allow(clippy::all, unused_qualifications)]
#[path = "../../../crates/tcp/src/protocol.rs"]
pub mod protocol;
