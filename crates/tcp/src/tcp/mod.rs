// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element classes, of the family `tcp`: a host's end of TCP connections, and applications that use them.

mod attach;
mod ip_notes;
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

/// The number of bytes after which the bytes of TCPSource repeat. No power of two divides it, so data that is moved shows.
const PERIOD: usize = 251;

/// The bytes of TCPSource from the start of a connection on.
static BYTES: [u8; 64 * PERIOD] = {
    let mut bytes = [0; 64 * PERIOD];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = (at % PERIOD) as u8;
        at += 1;
    }
    bytes
};

/// Some of the bytes that TCPSource writes from a position of a connection on, at most `n`.
fn pattern(from: u64, n: usize) -> &'static [u8] {
    let bytes = BYTES.get((from % PERIOD as u64) as usize..).unwrap_or_default();
    bytes.get(..n).unwrap_or(bytes)
}
