// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host with one TCP connection, whichever TCP it has.

use super::user::Socket;
use std::net::Ipv4Addr;

/// The addresses of the two hosts.
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
/// The port that is listened on.
pub const PORT: u16 = 80;

/// How a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Both ends have closed.
    Finished,
    /// An end has aborted it.
    Reset,
    /// Anything else.
    Failed,
}

/// A host. Times are in nanoseconds.
pub trait Host {
    /// Opens the connection. Returns its ports: its own, and that of the other end.
    fn open(&mut self, now: i64) -> [u16; 2];
    fn input(&mut self, packet: &[u8], now: i64);
    fn pass_time(&mut self, now: i64);
    /// When time must next be let pass.
    fn next_timeout(&mut self, now: i64) -> Option<i64>;
    /// Takes the packets to be sent.
    fn packets(&mut self) -> Vec<Vec<u8>>;
    /// Calls `f` with the connection. Returns false if there is none.
    fn with(&mut self, now: i64, f: &mut dyn FnMut(&mut dyn Socket)) -> bool;
    /// The name of the state in RFC 9293, section 3.3.2. An end that listens is in LISTEN while there is no connection.
    fn state(&mut self) -> &'static str;
    /// How the connection has ended, if it was established or opened by this end.
    fn ending(&self) -> Option<Ending>;
    /// Whether the other end has acknowledged everything, and this one waits for it.
    fn is_waiting(&mut self) -> bool;
    /// The counts of the host itself.
    fn counts(&self) -> Vec<(&'static str, u64)>;
    /// Checks what always holds.
    fn check(&mut self);
    /// Checks that nothing is left.
    fn check_end(&mut self);
}
