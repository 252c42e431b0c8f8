// SPDX-License-Identifier: MIT OR Apache-2.0
//! Echo over connections in memory: pairs of hosts exchange packets without loss. The phases of all pairs run one after the other, so
//! that the time of input and that of output can be told apart.

use super::host::{End, HEADERS, Host, MOST, Options};
use crate::rounds::thread_time;

/// The pairs of hosts.
pub const PAIRS: usize = 32;
/// The time between two exchanges, in nanoseconds. It is not the time that they take, so that all hosts see the same times.
const APART: i64 = 10_000;
/// The start of time, which the clocks of hosts divide.
pub const START: i64 = 1_000_000_000_000;
/// The time after which pairs are replaced by new ones, in nanoseconds. It is less than the 200 milliseconds after which a host sends
/// an acknowledgement that it has delayed, because the hosts are to exchange nothing but data.
const LASTING: i64 = 100_000_000;
/// The names of the phases, by which callgrind finds their functions.
pub const PHASES: [&str; 2] = ["inputs", "outputs"];

/// An echo that can be repeated.
pub trait Exchange {
    /// Sends data back and forth over each pair, `n` times. Returns the nanoseconds of input and of output per packet.
    ///
    /// # Errors
    /// The hosts send other packets than the data and its echo.
    fn exchange(&mut self, n: usize) -> Result<[f64; 2], String>;
}

/// Pairs of hosts that are connected.
pub struct Pairs<H: Host> {
    pairs: Vec<[H; 2]>,
    options: Options,
    now: i64,
    data: Vec<u8>,
    packets: Vec<H::Packet>,
}

/// Takes all packets that two hosts send each other, until there are none.
pub fn settle<H: Host>(pair: &mut [H; 2], now: i64) {
    let [client, server] = pair;
    loop {
        let mut moved = false;
        while let Some(packet) = client.take() {
            server.input(packet, now);
            // The server sends the rest that it did not send while it took the packet.
            server.discard(now);
            moved = true;
        }
        while let Some(packet) = server.take() {
            client.input(packet, now);
            client.discard(now);
            moved = true;
        }
        if !moved {
            return;
        }
    }
}

/// Connects a pair of hosts. All data is acknowledged afterwards.
pub fn connected<H: Host>(options: Options, now: i64) -> [H; 2] {
    let mut pair = [H::new(End::Client, options, now), H::new(End::Server, options, now)];
    settle(&mut pair, now);
    pair
}

impl<H: Host> Pairs<H> {
    /// Connects all pairs, which echo this many bytes of data.
    ///
    /// # Errors
    /// The hosts do not do that.
    pub fn new(size: usize, options: Options) -> Result<Self, String> {
        let data = (0..size.clamp(1, MOST)).map(|n| n as u8).collect();
        let mut all =
            Pairs { pairs: Vec::new(), options, now: START, data, packets: Vec::with_capacity(PAIRS) };
        all.begin()?;
        Ok(all)
    }

    /// Connects new pairs.
    fn begin(&mut self) -> Result<(), String> {
        self.now = START;
        self.pairs = (0..PAIRS).map(|_| connected(self.options, START)).collect();
        // The round-trip times of the first exchanges and the growth of buffers are not those of the others.
        self.echo(8).map(drop)
    }

    /// Checks the packets of a phase: one from each pair, with the data at its end.
    fn check(&self) -> Result<(), String> {
        let size = self.data.len();
        let is_right = |packet: &H::Packet| {
            let bytes = H::bytes(packet);
            bytes.len() <= size + HEADERS && bytes.ends_with(&self.data)
        };
        if self.packets.len() == PAIRS && self.packets.iter().all(is_right) {
            Ok(())
        } else {
            Err(format!(
                "{} hosts have sent {} packets, not all with {size} bytes",
                PAIRS,
                self.packets.len()
            ))
        }
    }
}

impl<H: Host> Exchange for Pairs<H> {
    fn exchange(&mut self, n: usize) -> Result<[f64; 2], String> {
        if self.now - START > LASTING {
            self.begin()?;
        }
        self.echo(n)
    }
}

impl<H: Host> Pairs<H> {
    fn echo(&mut self, n: usize) -> Result<[f64; 2], String> {
        let mut times = [0, 0];
        let [input, output] = &mut times;
        for _ in 0..n {
            self.now += APART;
            for end in [End::Client, End::Server] {
                let started = thread_time();
                outputs(&mut self.pairs, end, &self.data, &mut self.packets, self.now);
                *output += thread_time() - started;
                self.check()?;
                let started = thread_time();
                inputs(&mut self.pairs, end, &mut self.packets, self.now);
                *input += thread_time() - started;
            }
        }
        if self.pairs.iter_mut().flatten().any(|host| host.take().is_some()) {
            return Err("hosts have sent more packets than the data and its echo".into());
        }
        let packets = (2 * n.max(1) * PAIRS) as f64;
        Ok(times.map(|t| t as f64 / packets))
    }
}

/// One end of all pairs sends its data. callgrind counts this function.
#[inline(never)]
fn outputs<H: Host>(pairs: &mut [[H; 2]], end: End, data: &[u8], packets: &mut Vec<H::Packet>, now: i64) {
    for [client, server] in pairs {
        if end == End::Client {
            client.send(data, now);
            packets.extend(client.take());
        } else {
            server.echo(now);
            packets.extend(server.take());
        }
    }
}

/// The data from one end of all pairs arrives at the other one. callgrind counts this function.
#[inline(never)]
fn inputs<H: Host>(pairs: &mut [[H; 2]], from: End, packets: &mut Vec<H::Packet>, now: i64) {
    for ([client, server], packet) in pairs.iter_mut().zip(packets.drain(..)) {
        let host = if from == End::Client { server } else { client };
        host.input(packet, now);
    }
}
