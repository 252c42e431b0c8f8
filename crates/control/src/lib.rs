// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control of a running router from outside: control sockets with the protocol of Click, sockets that send
//! messages, and a client.
//!
//! - [`session`]: the protocol for one client, without sockets: it takes bytes, calls a [`Remote`], and
//!   returns bytes
//! - [`access`]: which handlers clients may call
//! - [`address`]: the addresses that a server listens on
//! - [`server`]: the thread that serves all clients
//! - [`chatter`]: the messages for clients of a ChatterSocket
//! - [`token`]: the secret that lets TCP clients reconfigure the router and name files
//! - [`client`]: a client of control sockets
//! - [`control`]: the element classes ControlSocket and ChatterSocket
//!
//! Clients may be hostile: see [`Limits`].
//!
//! [`Remote`]: castanet_element::Remote
#![forbid(unsafe_code)]

pub mod access;
pub mod address;
pub mod chatter;
pub mod client;
pub mod control;
pub mod limits;
pub mod server;
pub mod session;
pub mod token;

pub use address::{ListenAddress, ListenError};
pub use castanet_element::error::reason;
pub use client::Client;
pub use limits::Limits;
pub use server::{Server, Settings};
pub use token::{Token, TokenError};

/// Reply codes (protocol version 1.3).
pub mod code {
    /// Success.
    pub const OK: u16 = 200;
    /// Success, with warnings.
    pub const WARNINGS: u16 = 220;
    /// Syntax error.
    pub const SYNTAX: u16 = 500;
    /// Unknown command.
    pub const UNIMPLEMENTED: u16 = 501;
    /// Unknown element.
    pub const NO_ELEMENT: u16 = 510;
    /// Unknown handler.
    pub const NO_HANDLER: u16 = 511;
    /// The handler returned an error.
    pub const HANDLER: u16 = 520;
    /// Too much data.
    pub const TOO_BIG: u16 = 521;
    /// The LLRPC returned an error.
    pub const LLRPC: u16 = 522;
    /// Not permitted.
    pub const PERMISSION: u16 = 530;
    /// The router has ended.
    pub const NO_ROUTER: u16 = 540;
    /// Any other error.
    pub const UNSPECIFIED: u16 = 590;
}
