// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes with the kernel's TCP: a server, and a client that measures.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The ports of echo, discard, and a source of data.
pub const ECHO: u16 = 7;
/// See [`ECHO`].
pub const DISCARD: u16 = 9;
/// See [`ECHO`].
pub const SOURCE: u16 = 19;
/// The round trips of a connection before those that are measured.
const FIRST: usize = 50;
/// The bytes of a read or write of bulk data.
const CHUNK: usize = 65_536;

/// Serves the three ports, a connection at a time each. Prints a line when it is ready, and ends with its input.
///
/// # Errors
/// A port is in use.
pub fn serve() -> Result<(), String> {
    for (port, service) in [(ECHO, echo as fn(TcpStream)), (DISCARD, discard), (SOURCE, source)] {
        let listener =
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(|e| format!("port {port}: {e}"))?;
        std::thread::spawn(move || listener.incoming().flatten().for_each(service));
    }
    println!("ready");
    // The measurement is over when the input ends, whatever was read.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}

// The services end with their connection, however it ends.
fn echo(mut stream: TcpStream) {
    let mut some = [0; 2048];
    let _ = stream.set_nodelay(true);
    while let Ok(n @ 1..) = stream.read(&mut some) {
        if stream.write_all(some.get(..n).unwrap_or_default()).is_err() {
            return;
        }
    }
}
fn discard(mut stream: TcpStream) {
    let mut some = vec![0; CHUNK];
    while let Ok(1..) = stream.read(&mut some) {}
}
fn source(mut stream: TcpStream) {
    let some = vec![0; CHUNK];
    while stream.write_all(&some).is_ok() {}
}

/// A request to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Echoes of 4 bytes; the answer is the nanoseconds of a round trip.
    Echo(usize),
    /// Data to the server for a time; the answer is bits per second.
    Send(Duration),
    /// Data from the server for a time; the answer is bits per second.
    Receive(Duration),
}

impl Request {
    /// Formats the request to a server as `KIND N ADDRESS`.
    pub fn line(self, server: Ipv4Addr) -> String {
        let (kind, n) = match self {
            Request::Echo(n) => ("echo", n as u128),
            Request::Send(time) => ("send", time.as_millis()),
            Request::Receive(time) => ("receive", time.as_millis()),
        };
        format!("{kind} {n} {server}")
    }
    /// Parses what `line` returned.
    pub fn parse(line: &str) -> Option<(Request, Ipv4Addr)> {
        let mut words = line.split_whitespace();
        let (kind, n) = (words.next()?, words.next()?.parse::<u32>().ok()?);
        let time = Duration::from_millis(n.into());
        let request = match kind {
            "echo" => Request::Echo(n as usize),
            "send" => Request::Send(time),
            "receive" => Request::Receive(time),
            _ => return None,
        };
        let server = words.next()?.parse().ok()?;
        words.next().is_none().then_some((request, server))
    }
    /// Carries out the request.
    fn answer(self, server: Ipv4Addr) -> std::io::Result<f64> {
        let connect = |port| {
            let stream = TcpStream::connect((server, port))?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.set_write_timeout(Some(Duration::from_secs(5)))?;
            Ok::<TcpStream, std::io::Error>(stream)
        };
        let mut some = vec![0; CHUNK];
        match self {
            Request::Echo(n) => {
                let mut stream = connect(ECHO)?;
                stream.set_nodelay(true)?;
                let mut data = *b"echo";
                let mut trips = |n| {
                    (0..n).try_for_each(|_| {
                        stream.write_all(&data)?;
                        stream.read_exact(&mut data)
                    })
                };
                trips(FIRST)?;
                let started = Instant::now();
                trips(n)?;
                Ok(started.elapsed().as_nanos() as f64 / n.max(1) as f64)
            }
            Request::Send(time) => {
                let mut stream = connect(DISCARD)?;
                let (started, mut bytes) = (Instant::now(), 0);
                while started.elapsed() < time {
                    bytes += stream.write(&some)?;
                }
                // The server closes when it has read everything.
                stream.shutdown(Shutdown::Write)?;
                stream.read_to_end(&mut Vec::new())?;
                Ok(8.0 * bytes as f64 / started.elapsed().as_secs_f64())
            }
            Request::Receive(time) => {
                let mut stream = connect(SOURCE)?;
                let (started, mut bytes) = (Instant::now(), 0);
                while started.elapsed() < time {
                    match stream.read(&mut some)? {
                        0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                        n => bytes += n,
                    }
                }
                Ok(8.0 * bytes as f64 / started.elapsed().as_secs_f64())
            }
        }
    }
}

/// Answers requests, one per line of the input, with a number or with `error` and the reason.
///
/// # Errors
/// A line is not a request.
pub fn measure() -> Result<(), String> {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let (request, server) = Request::parse(&line).ok_or_else(|| format!("'{line}' is not a request"))?;
        let mut answer = String::new();
        // Writing to a string cannot fail.
        let _ = match request.answer(server) {
            Ok(number) => write!(answer, "{number:.0}"),
            Err(e) => write!(answer, "error {e}"),
        };
        println!("{answer}");
    }
    Ok(())
}
