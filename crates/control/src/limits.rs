// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much clients may ask of a server.

use std::time::Duration;

/// How much clients may ask of a server: none of them can make it hold, or wait, without bound.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a command line; a longer one is answered with 500.
    pub line: usize,
    /// Bytes of the data of one command; more are answered with 521, and skipped as they come.
    pub data: usize,
    /// Bytes of replies that may wait for a client before its next command is looked at.
    pub backlog: usize,
    /// Bytes of messages that may wait for a client before it loses some.
    pub messages: usize,
    /// Bytes that all clients together may have waiting, in and out; the one with the most goes when they are more.
    pub total: usize,
    /// Clients at a time; the others are told so and sent away.
    pub clients: usize,
    /// How long half a command may wait for its next byte.
    pub half: Duration,
    /// How long a reply may wait for the client to take a byte of it.
    pub stalled: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            line: 1 << 20,
            data: 64 << 20,
            backlog: 64 << 10,
            messages: 256 << 10,
            total: 256 << 20,
            clients: 2048,
            half: Duration::from_secs(120),
            stalled: Duration::from_secs(60),
        }
    }
}
