// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on the memory and time of clients.

use std::time::Duration;

/// Limits on the memory and time that clients can use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum bytes of a command line. The reply to a longer line is 500.
    pub line: usize,
    /// Maximum bytes of data of one command. The reply to more data is 521, and the data is skipped as it
    /// arrives.
    pub data: usize,
    /// Maximum bytes of queued replies of a client. Beyond it, the client's next command waits.
    pub backlog: usize,
    /// Maximum bytes of queued messages of a client. Messages that do not fit are lost.
    pub messages: usize,
    /// Maximum buffered bytes of all clients together, input and output. Beyond it, the client with the most
    /// buffered bytes is disconnected.
    pub total: usize,
    /// Maximum number of clients. Further clients get an error and are disconnected.
    pub clients: usize,
    /// How long an incomplete command may wait for its next byte.
    pub half: Duration,
    /// How long a client may take to receive the next byte of a reply.
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
