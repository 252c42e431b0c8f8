// SPDX-License-Identifier: MIT OR Apache-2.0
//! As much of FTP (RFC 959) as an active transfer needs: a client that retrieves a file, and a server that has one.

use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrIn, sockopt};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Longer than anything takes here, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn bad(what: impl std::fmt::Display) -> io::Error {
    io::Error::other(what.to_string())
}

/// What the file holds, whoever asks.
pub fn content() -> Vec<u8> {
    (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn patient(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// The IPv4 address of this end.
fn own(stream: &TcpStream) -> io::Result<Ipv4Addr> {
    match stream.local_addr()? {
        SocketAddr::V4(own) => Ok(*own.ip()),
        SocketAddr::V6(own) => Err(bad(own)),
    }
}

/// A data connection, from port 20 as RFC 959, section 3.2, wants it.
fn data(from: Ipv4Addr, to: SocketAddrV4) -> io::Result<TcpStream> {
    let fd = socket::socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // The last one from there may not be forgotten yet.
    socket::setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    socket::bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 20)))?;
    socket::connect(fd.as_raw_fd(), &SockaddrIn::from(to))?;
    patient(fd.into())
}

/// Serves one client, by the well-known ports; says `ready`, and what commands came.
pub fn serve() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 21))?;
    println!("ready");
    let (stream, from) = listener.accept()?;
    println!("from {}", from.ip());
    let mut replies = patient(stream.try_clone()?)?;
    let mut to = None;
    replies.write_all(b"220 a file is here\r\n")?;
    for line in BufReader::new(patient(stream)?).lines() {
        let line = line?;
        println!("{line}");
        let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let reply = match command {
            "USER" => "230 welcome",
            "PORT" => {
                to = Some(address(rest).ok_or_else(|| bad(format!("PORT {rest}")))?);
                "200 that is where it will go"
            }
            "RETR" => {
                replies.write_all(b"150 it comes\r\n")?;
                data(own(&replies)?, to.ok_or_else(|| bad("no PORT"))?)?.write_all(&content())?;
                "226 that was all"
            }
            "QUIT" => "221 good bye",
            _ => "502 not here",
        };
        replies.write_all(format!("{reply}\r\n").as_bytes())?;
    }
    Ok(())
}

/// `h1,h2,h3,h4,p1,p2` (RFC 959, section 4.1.2).
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
    /// Waits for a reply that begins so.
    fn expect(&mut self, code: &str) -> io::Result<()> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        if line.starts_with(code) {
            Ok(())
        } else {
            Err(bad(format!("'{}' instead of {code}", line.trim_end())))
        }
    }
    fn say(&mut self, command: &str, code: &str) -> io::Result<()> {
        self.commands.write_all(format!("{command}\r\n").as_bytes())?;
        self.expect(code)
    }
}

/// Retrieves the file several times, so that commands follow others that were rewritten; says how many bytes were right.
pub fn retrieve(server: &str) -> io::Result<()> {
    let server: Ipv4Addr = server.parse().map_err(bad)?;
    let stream = patient(TcpStream::connect((server, 21))?)?;
    let own = own(&stream)?;
    let mut control = Control { commands: stream.try_clone()?, lines: BufReader::new(stream) };
    control.expect("220")?;
    control.say("USER anonymous", "230")?;
    let mut right = 0;
    for _ in 0..3 {
        let listener = TcpListener::bind((own, 0))?;
        let [p, q] = listener.local_addr()?.port().to_be_bytes();
        let [a, b, c, d] = own.octets();
        control.say(&format!("PORT {a},{b},{c},{d},{p},{q}"), "200")?;
        control.say("RETR file", "150")?;
        let (mut data, _) = listener.accept()?;
        let mut got = Vec::new();
        data.read_to_end(&mut got)?;
        control.expect("226")?;
        right += if got == content() { got.len() } else { 0 };
    }
    control.say("QUIT", "221")?;
    println!("{right} bytes");
    Ok(())
}
