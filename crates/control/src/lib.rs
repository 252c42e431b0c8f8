// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control of a running router from outside: control sockets as clients of Click know them, sockets that show messages, and a
//! client.
//!
//! [`session`] is one client's conversation, without any input or output: bytes in, calls of a [`Remote`], bytes out.
//! [`gate`] says which handlers may be called. [`place`] is where a server listens, [`server`] the one thread that talks to all clients,
//! [`chatter`] what hears messages for them, [`token`] how a client of a TCP port shows who it is. [`client`] is the other side.
//!
//! Clients may be hostile: see [`Limits`].
//!
//! [`Remote`]: castanet_element::Remote
#![forbid(unsafe_code)]

pub mod chatter;
pub mod client;
pub mod gate;
pub mod limits;
pub mod place;
pub mod server;
pub mod session;
pub mod token;

pub use client::Client;
pub use limits::Limits;
pub use place::{Place, PlaceError};
pub use server::{Server, Settings};
pub use token::Token;

/// What a reply begins with (protocol version 1.3).
pub mod code {
    /// Done.
    pub const OK: u16 = 200;
    /// Done, with warnings.
    pub const WARNINGS: u16 = 220;
    /// The command is not understood.
    pub const SYNTAX: u16 = 500;
    /// There is no such command.
    pub const UNIMPLEMENTED: u16 = 501;
    /// There is no such element.
    pub const NO_ELEMENT: u16 = 510;
    /// There is no such handler.
    pub const NO_HANDLER: u16 = 511;
    /// The handler said no.
    pub const HANDLER: u16 = 520;
    /// More data than is taken.
    pub const TOO_BIG: u16 = 521;
    /// It is not permitted.
    pub const PERMISSION: u16 = 530;
    /// There is no router.
    pub const NO_ROUTER: u16 = 540;
    /// Anything else.
    pub const UNSPECIFIED: u16 = 590;
}

/// What the system says, without its number.
pub fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}
