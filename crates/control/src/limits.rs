// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on the memory and time of clients.

use std::time::Duration;

/// Limits on the memory and time that clients can use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a command line; the reply to a longer one is 500.
    pub line: usize,
    /// Bytes of the data of one command; the reply to more is 521, and the data is skipped as it arrives.
    pub data: usize,
    /// Bytes of queued replies of a client. Beyond it, the next command waits.
    pub backlog: usize,
    /// Bytes of queued messages of a client. Beyond it, messages are lost.
    pub messages: usize,
    /// Buffered bytes of all clients together, input and output. Beyond it, the client with the most is disconnected.
    pub total: usize,
    /// Number of clients; further ones get an error and are disconnected.
    pub clients: usize,
    /// How long an incomplete command may wait for its next byte.
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
