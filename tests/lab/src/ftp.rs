// SPDX-License-Identifier: MIT OR Apache-2.0
//! A minimal FTP client and server (RFC 959, RFC 2428) that transfer one file in active or passive mode.

use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrIn, sockopt};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Timeout, longer than any operation needs even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(200);

fn bad(what: impl std::fmt::Display) -> io::Error {
    io::Error::other(what.to_string())
}

/// Generates the contents of the file, the same on client and server.
pub fn content() -> Vec<u8> {
    (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn patient(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// The local IPv4 address of a connection.
fn own(stream: &TcpStream) -> io::Result<Ipv4Addr> {
    match stream.local_addr()? {
        SocketAddr::V4(own) => Ok(*own.ip()),
        SocketAddr::V6(own) => Err(bad(own)),
    }
}

/// Opens a data connection from port 20 (RFC 959, section 3.2).
fn data(from: Ipv4Addr, to: SocketAddrV4) -> io::Result<TcpStream> {
    let fd = socket::socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // An earlier connection from this port may still be in TIME_WAIT.
    socket::setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    socket::bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 20)))?;
    socket::connect(fd.as_raw_fd(), &SockaddrIn::from(to))?;
    patient(fd.into())
}

/// How the data connection is made: the server connects to the client, or accepts a connection.
enum DataConnection {
    Unknown,
    Connect(SocketAddrV4),
    Accept(TcpListener),
}

impl DataConnection {
    /// Opens the data connection.
    fn open(self, own: Ipv4Addr) -> io::Result<TcpStream> {
        match self {
            DataConnection::Unknown => Err(bad("no data address was given")),
            DataConnection::Connect(to) => data(own, to),
            DataConnection::Accept(listener) => patient(listener.accept()?.0),
        }
    }
}

/// Serves one client on the well-known ports. Prints `ready` and the commands received.
pub fn serve() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 21))?;
    println!("ready");
    let (stream, from) = listener.accept()?;
    println!("from {}", from.ip());
    let mut replies = patient(stream.try_clone()?)?;
    let own = own(&replies)?;
    let mut way = DataConnection::Unknown;
    replies.write_all(b"220 a file is here\r\n")?;
    for line in BufReader::new(patient(stream)?).lines() {
        let line = line?;
        println!("{line}");
        let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let reply = match command {
            "USER" => "230 welcome".to_string(),
            "PORT" | "EPRT" => {
                let to = if command == "PORT" { address(rest) } else { extended(rest) };
                way = DataConnection::Connect(to.ok_or_else(|| bad(&line))?);
                "200 that is where it will go".into()
            }
            "PASV" | "EPSV" => {
                let listener = TcpListener::bind((own, 0))?;
                let port = listener.local_addr()?.port();
                way = DataConnection::Accept(listener);
                if command == "PASV" {
                    let ([a, b, c, d], [p, q]) = (own.octets(), port.to_be_bytes());
                    format!("227 Entering Passive Mode ({a},{b},{c},{d},{p},{q})")
                } else {
                    format!("229 Entering Extended Passive Mode (|||{port}|)")
                }
            }
            "RETR" => {
                replies.write_all(b"150 it comes\r\n")?;
                std::mem::replace(&mut way, DataConnection::Unknown).open(own)?.write_all(&content())?;
                "226 that was all".into()
            }
            "QUIT" => "221 good bye".into(),
            _ => "502 not here".into(),
        };
        replies.write_all(format!("{reply}\r\n").as_bytes())?;
    }
    Ok(())
}

/// Parses `|1|h1.h2.h3.h4|port|` (RFC 2428, section 2).
fn extended(text: &str) -> Option<SocketAddrV4> {
    match text.split('|').collect::<Vec<_>>()[..] {
        ["", "1", addr, port, ""] => Some(SocketAddrV4::new(addr.parse().ok()?, port.parse().ok()?)),
        _ => None,
    }
}

/// Parses `h1,h2,h3,h4,p1,p2` (RFC 959, section 4.1.2).
fn address(text: &str) -> Option<SocketAddrV4> {
    let bytes: Vec<u8> = text.split(',').map(|b| b.parse().ok()).collect::<Option<_>>()?;
    let [a, b, c, d, p, q] = bytes.try_into().ok()?;
    Some(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([p, q])))
}

/// A control connection.
struct Control {
    lines: BufReader<TcpStream>,
    commands: TcpStream,
}

impl Control {
    /// Waits for a reply that begins with a code. Returns the rest of the line.
    fn expect(&mut self, code: &str) -> io::Result<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        match line.strip_prefix(code) {
            Some(rest) => Ok(rest.trim().to_string()),
            None => Err(bad(format!("'{}' instead of {code}", line.trim_end()))),
        }
    }
    fn say(&mut self, command: &str, code: &str) -> io::Result<String> {
        self.commands.write_all(format!("{command}\r\n").as_bytes())?;
        self.expect(code)
    }

    /// Retrieves the file, with a data connection opened by this command.
    fn retrieve(&mut self, command: &str, own: Ipv4Addr, server: Ipv4Addr) -> io::Result<Vec<u8>> {
        let between = |text: &str| Some(text.split_once('(')?.1.split_once(')')?.0.to_string());
        let way = match command {
            "PASV" => {
                let reply = self.say(command, "227")?;
                let to = between(&reply).and_then(|t| address(&t)).ok_or_else(|| bad(&reply))?;
                DataConnection::Connect(to)
            }
            "EPSV" => {
                let reply = self.say(command, "229")?;
                let port = between(&reply).and_then(|t| t.trim_matches('|').parse().ok());
                DataConnection::Connect(SocketAddrV4::new(server, port.ok_or_else(|| bad(&reply))?))
            }
            _ => {
                let listener = TcpListener::bind((own, 0))?;
                let port = listener.local_addr()?.port();
                let ([a, b, c, d], [p, q]) = (own.octets(), port.to_be_bytes());
                let words = match command {
                    "PORT" => format!("PORT {a},{b},{c},{d},{p},{q}"),
                    _ => format!("EPRT |1|{own}|{port}|"),
                };
                self.say(&words, "200")?;
                DataConnection::Accept(listener)
            }
        };
        let mut got = Vec::new();
        // In passive mode the client connects before it requests the file, because the server waits for the
        // connection.
        if let DataConnection::Connect(to) = way {
            let mut data = patient(TcpStream::connect(to)?)?;
            self.say("RETR file", "150")?;
            data.read_to_end(&mut got)?;
        } else {
            self.say("RETR file", "150")?;
            way.open(own)?.read_to_end(&mut got)?;
        }
        self.expect("226")?;
        Ok(got)
    }
}

/// Retrieves the file once for each command (PORT, EPRT, PASV or EPSV), all on one control connection. So a
/// gateway that changes the length of a command must also handle the commands after it. Prints the number of
/// correct bytes.
pub fn retrieve(server: &str, commands: &[&str]) -> io::Result<()> {
    let server: Ipv4Addr = server.parse().map_err(bad)?;
    let stream = patient(TcpStream::connect((server, 21))?)?;
    let own = own(&stream)?;
    let mut control = Control { commands: stream.try_clone()?, lines: BufReader::new(stream) };
    control.expect("220")?;
    control.say("USER anonymous", "230")?;
    let mut right = 0;
    for command in commands {
        let got = control.retrieve(command, own, server)?;
        right += if got == content() { got.len() } else { 0 };
    }
    control.say("QUIT", "221")?;
    println!("{right} bytes");
    Ok(())
}

/// Sends a command to a server, waits for a reply up to a time limit, and prints the reply.
pub fn say(server: &str, command: &str, milliseconds: u64) -> io::Result<()> {
    let server: Ipv4Addr = server.parse().map_err(bad)?;
    let stream = patient(TcpStream::connect((server, 21))?)?;
    let mut control = Control { commands: stream.try_clone()?, lines: BufReader::new(stream) };
    control.expect("220")?;
    control.commands.set_read_timeout(Some(Duration::from_millis(milliseconds)))?;
    match control.say(command, "") {
        Ok(reply) => println!("{reply}"),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            println!("no answer")
        }
        Err(e) => return Err(e),
    }
    Ok(())
}
