// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clients: short connections, long streams, and numbered datagrams.

use crate::bytes::{self, PATIENCE, STACK};
use crate::schedule::{self, Dice};
use castanet_io::namespace;
use nix::sys::socket::{setsockopt, sockopt};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum number of short connections open at a time.
const OPEN: usize = 768;
/// The maximum length of a message of a short connection, in bytes.
const MESSAGE: usize = 4000;
/// The send buffer of a stream, in bytes. It is so small that a single stream does not overflow a queue.
const SEND_BUFFER: usize = 64 << 10;
/// The number of bytes that a stream writes at once.
const BLOCK: u64 = 16 << 10;
/// One in this many datagrams is so long that it is sent in fragments.
const FRAGMENTED: u64 = 50;
/// How long the answer to the last datagram may take.
const LATE: Duration = Duration::from_secs(5);

/// Prints the report of a process.
pub fn report(value: &serde_json::Value) {
    println!("{value}");
}

/// The time since the start of the run. `start` is in milliseconds since 1970.
fn since(start: u64) -> Duration {
    Duration::from_millis(schedule::unix_ms().saturating_sub(start))
}

/// Sends the bytes of a stream at `rate` bytes per second, until `end` is true. Returns the number of bytes.
pub fn paced(to: &mut impl Write, id: u64, rate: u64, end: impl Fn() -> bool) -> io::Result<u64> {
    let (began, mut sent) = (Instant::now(), 0);
    while !end() {
        to.write_all(&bytes::bytes(id, sent, BLOCK as usize))?;
        sent += BLOCK;
        let due = Duration::from_secs_f64(sent as f64 / rate as f64);
        thread::sleep(due.saturating_sub(began.elapsed()).min(Duration::from_secs(1)));
    }
    Ok(sent)
}

/// Opens short connections at a rate for some seconds, and prints the results.
pub fn connect(start: u64, seconds: u64, per_minute: u64, seed: u64) -> Result<(), String> {
    namespace::end_with_parent().map_err(|e| e.to_string())?;
    let (next, done, moved, wrong) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let failures: Mutex<BTreeMap<String, u64>> = Mutex::default();
    let total = per_minute * seconds / 60;
    let one = |n: u64| -> io::Result<()> {
        let mut dice = Dice::new(seed ^ n, "connection");
        let port = bytes::SHORT_PORT + dice.below(bytes::SHORT_PORTS.into()) as u16;
        let to = bytes::server(dice.below(bytes::ADDRESSES.into()) as u8 + 1);
        let (id, length) = (dice.number(), dice.below(MESSAGE) as u64 + 1);
        let mut stream = TcpStream::connect((to, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let message = [&bytes::header(id, length)[..], &bytes::bytes(id, 0, length as usize)].concat();
        stream.write_all(&message)?;
        let (got, bad) = bytes::receive(&mut stream, bytes::answer(id), Some(length), |_| ())?;
        moved.fetch_add(got, Relaxed);
        wrong.fetch_add(bad, Relaxed);
        done.fetch_add(1, Relaxed);
        Ok(())
    };
    let worker = || {
        loop {
            let n = next.fetch_add(1, Relaxed);
            if n >= total {
                return;
            }
            let due = Duration::from_micros(n * 60_000_000 / per_minute);
            thread::sleep(due.saturating_sub(since(start)));
            if let Err(e) = one(n) {
                let at = since(start).as_secs();
                let why = format!("{e} (second {at})");
                *failures.lock().entry(why).or_default() += 1;
            }
        }
    };
    thread::scope(|s| {
        for _ in 0..OPEN {
            thread::Builder::new().stack_size(STACK).spawn_scoped(s, worker).map_err(|e| e.to_string())?;
        }
        Ok::<(), String>(())
    })?;
    let failures = failures.into_inner();
    report(&serde_json::json!({
        "asked": total,
        "done": done.into_inner(),
        "bytes": moved.into_inner(),
        "wrong": wrong.into_inner(),
        "failed": failures.values().sum::<u64>(),
        "failures": failures,
        "seconds": since(start).as_secs_f64(),
    }));
    Ok(())
}

/// Exchanges long streams with the server for some seconds, each at `rate` bytes per second in each direction.
pub fn streams(start: u64, seconds: u64, count: u64, rate: u64) -> Result<(), String> {
    namespace::end_with_parent().map_err(|e| e.to_string())?;
    let one = |id: u64| -> io::Result<(u64, u64, u64)> {
        let mut stream = TcpStream::connect((bytes::server(id as u8 + 1), bytes::STREAM_PORT))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        setsockopt(&stream, sockopt::SndBuf, &SEND_BUFFER)?;
        stream.write_all(&bytes::header(id, rate))?;
        let mut to = stream.try_clone()?;
        thread::scope(|s| {
            let sender = s.spawn(move || {
                let sent = paced(&mut to, id, rate, || since(start).as_secs() >= seconds)?;
                to.shutdown(Shutdown::Write)?;
                Ok::<u64, io::Error>(sent)
            });
            let (got, wrong) = bytes::receive(&mut stream, bytes::answer(id), None, |_| ())?;
            let sent = sender.join().unwrap_or_else(|_| Err(io::Error::other("the sender panicked")))?;
            Ok((sent, got, wrong))
        })
    };
    let ended: Vec<io::Result<(u64, u64, u64)>> = thread::scope(|s| {
        let threads: Vec<_> = (0..count).map(|id| s.spawn(move || one(id))).collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err(io::Error::other("a stream panicked"))))
            .collect()
    });
    let good = || ended.iter().flatten();
    let failures: Vec<String> =
        ended.iter().filter_map(|e| e.as_ref().err()).map(|e| e.to_string()).collect();
    report(&serde_json::json!({
        "streams": count,
        "sent": good().map(|e| e.0).sum::<u64>(),
        "received": good().map(|e| e.1).sum::<u64>(),
        "wrong": good().map(|e| e.2).sum::<u64>(),
        "failures": failures,
    }));
    Ok(())
}

/// What became of a datagram.
#[derive(Clone, Copy, Default)]
struct Fate {
    /// The time at which the datagram was sent, in milliseconds after the start of the run.
    sent: u32,
    answers: u8,
}

/// Sends numbered datagrams at a rate and counts those that come back. Those sent in calm stretches are also counted
/// separately.
pub fn datagrams(start: u64, seconds: u64, rate: u64, seed: u64) -> Result<(), String> {
    namespace::end_with_parent().map_err(|e| e.to_string())?;
    let failed = |e: io::Error| e.to_string();
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed)?;
    socket.connect((bytes::server(1), bytes::DATAGRAM_PORT)).map_err(failed)?;
    socket.set_read_timeout(Some(Duration::from_millis(100))).map_err(failed)?;
    // The default receive buffer is too small on a busy machine. The kernel may limit the size.
    let _ = setsockopt(&socket, sockopt::RcvBuf, &(4 << 20));
    let fates: Mutex<Vec<Fate>> = Mutex::default();
    let (end, wrong, reordered) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let receiver = || {
        let mut buffer = vec![0; 1 << 16];
        let mut highest = 0;
        while !end.load(Relaxed) {
            let Ok(n) = socket.recv(&mut buffer) else { continue };
            let Some((head, data)) = buffer.get(..n).and_then(|d| d.split_at_checked(8)) else { continue };
            let number = bytes::number(head);
            let mut fates = fates.lock();
            match fates.get_mut(number as usize) {
                Some(fate) if data == bytes::bytes(number, 0, data.len()) => {
                    fate.answers = fate.answers.saturating_add(1);
                    let calm = schedule::is_calm(Duration::from_millis(fate.sent.into()));
                    // Fragments and whole packets may overtake each other, so the order is checked among whole packets
                    // only.
                    if calm && number < highest && !number.is_multiple_of(FRAGMENTED) {
                        reordered.fetch_add(1, Relaxed);
                    }
                }
                _ => drop(wrong.fetch_add(1, Relaxed)),
            }
            if !number.is_multiple_of(FRAGMENTED) {
                highest = highest.max(number);
            }
        }
    };
    let mut refused = 0u64;
    thread::scope(|s| {
        s.spawn(receiver);
        let mut dice = Dice::new(seed, "datagrams");
        for number in 0..rate * seconds {
            let due = Duration::from_micros(number * 1_000_000 / rate);
            thread::sleep(due.saturating_sub(since(start)));
            let length = if number.is_multiple_of(FRAGMENTED) { 4000 } else { dice.below(1400) };
            let datagram = [&number.to_le_bytes()[..], &bytes::bytes(number, 0, length)].concat();
            let sent = since(start).as_millis() as u32;
            fates.lock().push(Fate { sent, answers: 0 });
            // The first call may send nothing and report an ICMP error about an earlier datagram. In that case the
            // datagram is sent again.
            if socket.send(&datagram).is_err() && socket.send(&datagram).is_err() {
                refused += 1;
            }
        }
        thread::sleep(LATE);
        end.store(true, Relaxed);
    });
    let fates = fates.into_inner();
    let calm = |f: &&Fate| schedule::is_calm(Duration::from_millis(f.sent.into()));
    let lost: Vec<&Fate> = fates.iter().filter(|f| f.answers == 0).collect();
    let mut seconds_lost: BTreeMap<String, u64> = BTreeMap::new();
    for fate in lost.iter().copied().filter(calm) {
        *seconds_lost.entry((fate.sent / 1000).to_string()).or_default() += 1;
    }
    report(&serde_json::json!({
        "sent": fates.len(),
        "refused": refused,
        "calm": fates.iter().filter(calm).count(),
        "lost": lost.len(),
        "lost_calm": seconds_lost.values().sum::<u64>(),
        "lost_calm_seconds": seconds_lost,
        "twice": fates.iter().filter(|f| f.answers > 1).count(),
        "twice_calm": fates.iter().filter(calm).filter(|f| f.answers > 1).count(),
        "reordered_calm": reordered.into_inner(),
        "wrong": wrong.into_inner(),
    }));
    Ok(())
}
