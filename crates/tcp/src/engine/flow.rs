// SPDX-License-Identifier: MIT OR Apache-2.0
//! The addresses and ports of a connection.

use std::fmt;
use std::net::SocketAddrV4;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// The end of this stack.
    pub local: SocketAddrV4,
    /// The end of the peer.
    pub remote: SocketAddrV4,
}

impl Flow {
    /// The flow as words, for hashes.
    pub(super) fn words(self) -> [u64; 2] {
        [self.local, self.remote].map(|e| u64::from(e.ip().to_bits()) << 16 | u64::from(e.port()))
    }
}

/// `LOCAL REMOTE`.
impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.local, self.remote)
    }
}
