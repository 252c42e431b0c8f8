// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients of the control sockets: those that read handlers, and hostile ones.

use crate::control::Client;
use crate::schedule::Dice;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Handlers that every element has.
const HANDLERS: [&str; 5] = ["class", "handlers", "config", "ports", "name"];
/// How many connections of hostile clients stay open.
const HELD: usize = 100;

/// What a reader has counted.
#[derive(Debug, Default)]
pub struct Reads {
    /// The number of reads that returned a value.
    pub good: u64,
    /// Descriptions of the reads that failed, with the reason.
    pub failed: Vec<String>,
    /// The duration of the slowest read.
    pub slowest: Duration,
}

/// Reads handlers of a router until `end`.
pub fn read(name: &str, socket: &Path, per_second: u32, start: Instant, end: Instant) -> Reads {
    let mut reads = Reads::default();
    let mut client = Client::new(socket);
    let list = names(&mut client);
    for n in 0u32.. {
        let due = start + Duration::from_secs(1) * n / per_second;
        if due >= end {
            break;
        }
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let (element, handler) = (n as usize / HANDLERS.len(), n as usize % HANDLERS.len());
        let handler = match list.get(element % list.len().max(1)) {
            Some(element) => format!("{element}.{}", HANDLERS[handler]),
            None => "list".to_string(),
        };
        let began = Instant::now();
        let answer = match &mut client {
            Ok(client) => client.read(&handler).map_err(|e| e.to_string()),
            Err(e) => Err(e.to_string()),
        };
        reads.slowest = reads.slowest.max(began.elapsed());
        match answer {
            Ok((reply, _)) if reply.code == 200 => reads.good += 1,
            Ok((reply, _)) => reads.failed.push(format!("{name}: {handler}: {}", reply.text)),
            Err(e) => {
                let at = start.elapsed().as_secs();
                reads.failed.push(format!("{name}: {handler}: {e} (second {at})"));
                client = Client::new(socket);
            }
        }
    }
    reads
}

/// The names of the elements of a router, from the handler `list`. Its first line is the number of elements; then each
/// line is a name.
fn names(client: &mut io::Result<Client>) -> Vec<String> {
    let text = client.as_mut().ok().and_then(|c| c.read("list").ok()).map(|v| v.1).unwrap_or_default();
    // A swap may renumber anonymous elements, whose generated names contain `@`.
    text.lines().skip(1).filter(|name| !name.contains('@')).map(str::to_string).collect()
}

/// Attacks the control sockets of all routers until the end. Returns the number of attacks.
pub fn attack(sockets: &[PathBuf], seed: u64, end: Instant) -> u64 {
    let mut dice = Dice::new(seed, "hostile clients");
    let mut held = VecDeque::new();
    let mut attacks = 0;
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(100));
        let Some(socket) = sockets.get(dice.below(sockets.len())) else { break };
        attacks += 1;
        let count = if dice.below(20) == 0 { 60 } else { 1 };
        for _ in 0..count {
            // The router may be stopped or have no free descriptor.
            let Ok(mut stream) = UnixStream::connect(socket) else { continue };
            let _ = stream.set_write_timeout(Some(Duration::from_millis(50)));
            let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
            let stays = one(&mut stream, &mut dice);
            if stays {
                held.push_back(stream);
            }
        }
        while held.len() > HELD {
            held.pop_front();
        }
    }
    attacks
}

/// Makes one attack. Returns whether the connection is to stay open.
fn one(stream: &mut UnixStream, dice: &mut Dice) -> bool {
    let garbage = |dice: &mut Dice, n: usize| -> Vec<u8> { (0..n).map(|_| dice.number() as u8).collect() };
    let text: Vec<u8> = match dice.below(10) {
        0 => {
            let n = dice.below(4096);
            garbage(dice, n)
        }
        // A command that is never complete.
        1 => b"READ list".to_vec(),
        2 => b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        // 64 MiB of data are announced, and 64 KiB follow.
        3 => [&b"WRITEDATA hotconfig 67108864\r\n"[..], &garbage(dice, 1 << 16)].concat(),
        // The client reads at most the first part of the 500 replies.
        4 => b"READ flatconfig\r\n".repeat(500),
        5 => b"READ rw.tcp_table\r\nREAD switch.table\r\nREAD interface2/arp.table\r\n".repeat(3),
        // A line that does not end.
        6 => vec![b'x'; 2 << 20],
        7 => b"READ 999999999999999999999.config\r\nREAD 0.config\r\nREAD .\r\nREAD a.b.c\r\n\r\nWRITE list x\r\n".to_vec(),
        8 => [&b"WRITE "[..], &garbage(dice, 200), b"\r\nREADDATA list -1\r\nREADUNTIL list\r\nx"].concat(),
        _ => b"WRITEDATA hotconfig 18446744073709551616\r\nCHECKWRITE hotconfig\r\nLLRPC x#1 99999999999\r\n".to_vec(),
    };
    // The router may close the connection at any point.
    let _ = stream.write_all(&text);
    if dice.below(2) == 0 {
        let _ = stream.read(&mut [0; 4096]);
    }
    dice.below(3) > 0
}
