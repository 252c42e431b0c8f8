// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element classes, of the family `tcp`: a host's end of TCP connections, and applications that use them.

mod attach;
pub mod tcp_discard;
pub mod tcp_echo;
pub mod tcp_relay;
pub mod tcp_sink;
pub mod tcp_source;
pub mod tcp_stack;
#[cfg(test)]
mod tests;
mod values;

use castanet_element::{ClassDef, element};

/// The classes.
pub const CLASSES: &[ClassDef] = &[
    element::<tcp_discard::TcpDiscard>(),
    element::<tcp_echo::TcpEcho>(),
    element::<tcp_relay::TcpRelay>(),
    element::<tcp_sink::TcpSink>(),
    element::<tcp_source::TcpSource>(),
    element::<tcp_stack::TcpStack>(),
];

/// The byte that TCPSource writes `n` bytes after position `from` of a connection. No power of two divides 251, so data that
/// is moved shows.
fn pattern(from: u64, n: usize) -> u8 {
    ((from % 251 + n as u64 % 251) % 251) as u8
}
