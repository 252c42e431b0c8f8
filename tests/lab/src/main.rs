// SPDX-License-Identifier: MIT OR Apache-2.0
//! The helper of the lab. It runs in separate processes, because a multithreaded process cannot enter a user
//! namespace.
//!
//! - `castanet-lab hold` creates a user and a network namespace, prints `ready`, and keeps them until its input
//!   ends. `castanet-lab hold callers` stays in the caller's user namespace if it may create networks there.
//! - `castanet-lab hold PID` creates a network namespace inside the user namespace of another holder.
//! - `castanet-lab enter PID COMMAND...` runs a command in the namespaces of a holder.
//! - `castanet-lab wire DEVICE` sends the frames that it reads and prints those that arrive, in hexadecimal.
//! - `castanet-lab flood DEVICE MILLISECONDS [RATE]` reads frames, each preceded by its length in two bytes, until
//!   the end of input. It then sends them repeatedly, at most RATE a second, and prints how many the device accepted
//!   and refused.
//! - `castanet-lab ftp-server` and `castanet-lab ftp-client SERVER COMMAND...` transfer a file by FTP, once for
//!   each of the commands PORT, EPRT, PASV, EPSV.
//! - `castanet-lab ftp-say SERVER MILLISECONDS COMMAND...` sends a command and waits for the reply.
//! - `castanet-lab stream-server PORT BLOCKS` and `castanet-lab stream SERVER PORT BLOCKS` send blocks of 256
//!   kB in each direction by TCP, and compare the data they receive.
#![deny(unsafe_code)]

mod ftp;
mod packet_socket;
mod stream;

use castanet_io::namespace::{self, Origin};
use packet_socket::PacketSocket;
use parking_lot::Mutex;
use std::io::{self, BufRead, Read as _, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

type Done = Result<(), String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["hold"] => hold(None, Origin::OwnUsers),
        ["hold", "callers"] => hold(None, Origin::Callers),
        ["hold", pid] => hold(Some(pid), Origin::OwnUsers),
        ["enter", pid, program, ref arguments @ ..] => enter(pid, program, arguments),
        ["wire", device] => wire(device),
        ["flood", device, time] => flood(device, time, None),
        ["flood", device, time, rate] => number(rate).and_then(|rate| flood(device, time, Some(rate))),
        ["ftp-server"] => end_with_parent().and_then(|()| ftp::serve().map_err(said("FTP server"))),
        ["ftp-client", server, ref commands @ ..] => {
            ftp::retrieve(server, commands).map_err(said("FTP client"))
        }
        ["ftp-say", server, time, ref words @ ..] => number(time)
            .and_then(|ms| ftp::say(server, &words.join(" "), ms.into()).map_err(said("FTP client"))),
        ["stream-server", port, blocks] => number(port)
            .and_then(|port| Ok((port, number(blocks)?, end_with_parent()?)))
            .and_then(|(port, n, ())| stream::serve(port as u16, n.into()).map_err(said("stream server"))),
        ["stream", server, port, blocks] => number(port)
            .and_then(|port| Ok((port, number(blocks)?)))
            .and_then(|(port, n)| stream::exchange(server, port as u16, n.into()).map_err(said("stream"))),
        _ => Err("usage: castanet-lab hold [callers | PID] | enter PID COMMAND... | wire DEVICE | flood DEVICE MILLISECONDS [RATE] | \
                  ftp-server | ftp-client SERVER COMMAND... | ftp-say SERVER MILLISECONDS COMMAND... | \
                  stream-server PORT BLOCKS | stream SERVER PORT BLOCKS"
            .into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("castanet-lab: {e}");
            ExitCode::FAILURE
        }
    }
}

fn said(what: &str) -> impl Fn(io::Error) -> String + '_ {
    move |e| format!("{what}: {e}")
}

/// Creates namespaces and keeps them until the input ends.
fn hold(inside: Option<&str>, otherwise: Origin) -> Done {
    let origin = match inside {
        Some(pid) => Origin::SameAs(number(pid)?),
        None => otherwise,
    };
    namespace::hold(origin).map_err(|e| e.to_string())
}

/// Ends this process when its parent ends.
fn end_with_parent() -> Done {
    namespace::end_with_parent().map_err(|e| e.to_string())
}

fn number(word: &str) -> Result<u32, String> {
    word.parse().map_err(|e| format!("'{word}': {e}"))
}

/// Executes a command in the namespaces of a holder.
fn enter(pid: &str, program: &str, arguments: &[&str]) -> Done {
    namespace::enter(number(pid)?).map_err(|e| e.to_string())?;
    let program = if program == "castanet-lab" { "/proc/self/exe" } else { program };
    Err(said(program)(Command::new(program).args(arguments).exec()))
}

/// Sends frames at full rate, or at most `rate` of them a second. Frames that the device rejects are not retried.
fn flood(device: &str, milliseconds: &str, rate: Option<u32>) -> Done {
    end_with_parent()?;
    let time = milliseconds.parse().map_err(|e| format!("{milliseconds}: {e}"))?;
    let socket = PacketSocket::open(device).map_err(said(device))?;
    let mut all = Vec::new();
    io::stdin().lock().read_to_end(&mut all).map_err(said("standard input"))?;
    let (mut frames, mut rest) = (Vec::new(), &all[..]);
    while let Some((length, behind)) = rest.split_first_chunk() {
        let Some((frame, behind)) = behind.split_at_checked(u16::from_be_bytes(*length).into()) else {
            break;
        };
        frames.push(frame);
        rest = behind;
    }
    let (start, end) = (Instant::now(), Instant::now() + Duration::from_millis(time));
    let (mut sent, mut refused) = (0u64, 0u64);
    while Instant::now() < end && !frames.is_empty() {
        for frame in &frames {
            if let Some(rate) = rate {
                let due = start + Duration::from_secs_f64((sent + refused) as f64 / f64::from(rate.max(1)));
                thread::sleep(due.min(end).saturating_duration_since(Instant::now()));
                if due >= end {
                    break;
                }
            }
            match socket.send(frame) {
                Ok(()) => sent += 1,
                Err(_) => refused += 1,
            }
        }
    }
    println!("{sent} sent, {refused} refused");
    Ok(())
}

/// Sends the frames that it reads, and prints those that arrive. If it reads the line `sync`, it first prints all
/// frames that have arrived, then `synced`.
fn wire(device: &str) -> Done {
    end_with_parent()?;
    let socket = PacketSocket::open(device).map_err(said(device))?;
    println!("ready");
    let sender = socket.try_clone().map_err(said(device))?;
    // The printing thread takes the lock before it reads a frame from the socket, and releases it when the frame has
    // been printed. The value is true when no more frames will be printed.
    let ended = Arc::new(Mutex::new(false));
    let printing = ended.clone();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 17];
        loop {
            if !matches!(socket.ready(true), Ok(true)) {
                continue;
            }
            let mut ended = printing.lock();
            let Ok(Some(frame)) = socket.receive(&mut buffer) else {
                *ended = true;
                return;
            };
            let (seconds, partial) = (frame.seconds, u8::from(frame.partial));
            let hex: String = frame.bytes.iter().map(|b| format!("{b:02x}")).collect();
            if writeln!(io::stdout(), "{seconds:.6} {partial} {hex}").is_err() {
                return;
            }
        }
    });
    for line in io::stdin().lock().lines() {
        let line = line.map_err(said("standard input"))?;
        if line == "sync" {
            while {
                let ended = ended.lock();
                !*ended && matches!(sender.ready(false), Ok(true))
            } {
                thread::yield_now();
            }
            println!("synced");
            continue;
        }
        let digit = |i: usize| line.get(i..i + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
        let frame: Vec<u8> = (0..line.len()).step_by(2).map_while(digit).collect();
        if let Err(e) = sender.send(&frame) {
            eprintln!("castanet-lab: {device}: {} bytes: {e}", frame.len());
        }
    }
    Ok(())
}
