// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends of TCP connections in a router: the TCP of protocols/tcp, compiled to Rust, and the element classes on top of it.
//!
//! - [`protocol`]: the compiled TCP, one connection at a time
//! - [`engine`]: many connections: addresses and ports, buffers, timers, defence against floods of SYNs
//! - [`application`]: what uses the connections
//! - [`local`]: local sockets of relayed connections
//! - [`tcp`]: the element classes TCPStack, TCPEcho and others
#![forbid(unsafe_code)]

pub mod application;
pub mod engine;
pub mod local;
#[allow(clippy::all, unused_qualifications)]
pub mod protocol;
pub mod tcp;
