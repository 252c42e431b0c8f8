// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bulk over a connection in memory: one host sends as fast as it can, the other one forgets what it gets.

use super::echo::{START, connected};
use super::host::{HEADERS, Host, Options};
use crate::rounds::thread_time;

/// The bytes that the sender writes at a time.
const CHUNK: usize = 65_536;
/// The time between two turns of the hosts, in nanoseconds.
const APART: i64 = 10_000;
/// The turns without any packet after which the transfer has failed. They last longer than any timeout of a connection that works.
const PATIENCE: usize = 1_000_000;

/// The cost and the amount of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moved {
    /// Nanoseconds of the processor.
    pub ns: f64,
    /// Bytes of data that arrived.
    pub bytes: f64,
    /// Packets with data.
    pub segments: f64,
    /// Packets without data.
    pub acknowledgements: f64,
}

/// A transfer that can be repeated.
pub trait Transfer {
    /// Transfers at least so many bytes.
    ///
    /// # Errors
    /// The hosts do not do that.
    fn transfer(&mut self, bytes: usize) -> Result<Moved, String>;
}

/// Two hosts that are connected.
pub struct Bulk<H> {
    pair: [H; 2],
    /// The packets that arrive before the receiver reads.
    burst: usize,
    now: i64,
    chunk: Vec<u8>,
}

impl<H: Host> Bulk<H> {
    /// Connects the hosts, and transfers enough data to open all windows.
    ///
    /// # Errors
    /// The hosts do not do that.
    pub fn new(options: Options, burst: usize) -> Result<Self, String> {
        let chunk = (0..CHUNK).map(|n| (n % 251) as u8).collect();
        let mut bulk = Bulk { pair: connected(options, START), burst, now: START, chunk };
        bulk.transfer(20 * options.buffer)?;
        Ok(bulk)
    }
}

impl<H: Host> Transfer for Bulk<H> {
    fn transfer(&mut self, bytes: usize) -> Result<Moved, String> {
        let started = thread_time();
        let mut moved = transferred(self, bytes)?;
        moved.ns = (thread_time() - started) as f64;
        Ok(moved)
    }
}

/// Transfers data. callgrind counts this function.
#[inline(never)]
fn transferred<H: Host>(bulk: &mut Bulk<H>, bytes: usize) -> Result<Moved, String> {
    let [client, server] = &mut bulk.pair;
    let (mut read, mut segments, mut acknowledgements, mut idle) = (0, 0, 0, 0);
    while read < bytes {
        bulk.now += APART;
        client.send(&bulk.chunk, bulk.now);
        let before = (read, segments);
        loop {
            let mut arrived = 0;
            while let Some(packet) = client.take() {
                segments += usize::from(H::bytes(&packet).len() > HEADERS);
                server.input(packet, bulk.now);
                arrived += 1;
                if arrived == bulk.burst {
                    break;
                }
            }
            read += server.discard(bulk.now);
            while let Some(packet) = server.take() {
                acknowledgements += 1;
                client.input(packet, bulk.now);
            }
            if arrived == 0 {
                break;
            }
        }
        idle = if before == (read, segments) { idle + 1 } else { 0 };
        if idle == PATIENCE {
            return Err(format!("the transfer has stopped after {read} of {bytes} bytes"));
        }
    }
    let [bytes, segments, acknowledgements] = [read, segments, acknowledgements].map(|n| n as f64);
    Ok(Moved { ns: 0.0, bytes, segments, acknowledgements })
}
