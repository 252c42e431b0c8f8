// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client: calls handlers of a router over its control socket.

use crate::{Token, code, reason};
use castanet_element::spec::bytes;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// The address of a control socket: `HOST:PORT`, `PORT`, or the file of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host and a TCP port.
    Tcp(String, u16),
    /// The file of a Unix socket.
    Unix(PathBuf),
}

/// The text is not an address of a control socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected HOST:PORT, PORT, or the file of a Unix socket")]
pub struct AddressError;

impl std::str::FromStr for Address {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Address, AddressError> {
        let port = |t: &str| t.parse::<u16>().ok().filter(|&p| p > 0);
        if text.is_empty() {
            return Err(AddressError);
        }
        if let Some(p) = port(text) {
            return Ok(Address::Tcp("127.0.0.1".into(), p));
        }
        match text.rsplit_once(':').and_then(|(host, p)| Some((host, port(p)?))) {
            // Text with a slash is a file. IPv6 addresses are in brackets.
            Some((host, p)) if !host.contains('/') && !host.is_empty() => {
                let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
                Ok(Address::Tcp(host.into(), p))
            }
            _ => Ok(Address::Unix(text.into())),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection could not be opened.
    #[error("{address}: {what}")]
    Connect {
        /// The address.
        address: Address,
        /// The reason, with advice.
        what: String,
    },
    /// The connection broke.
    #[error("the connection broke: {}", reason(.0))]
    Broken(#[from] std::io::Error),
    /// The other side does not speak the protocol.
    #[error("this is no control socket: {0}")]
    Protocol(String),
    /// The router refused the command.
    #[error("{text}")]
    Refused {
        /// The code of the reply.
        code: u16,
        /// The text of the reply, of one or more lines.
        text: String,
    },
}

impl ClientError {
    /// Returns whether the router refused the command. After a refusal the connection still works. After other errors
    /// it may be broken.
    pub fn is_refusal(&self) -> bool {
        matches!(self, ClientError::Refused { .. })
    }
}

/// A stream in both directions.
trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection to a control socket.
pub struct Client {
    stream: BufReader<Box<dyn Stream>>,
}

/// Largest length of one line of a reply, in bytes.
const LINE: u64 = 1 << 20;
/// Largest number of lines of a reply.
const LINES: usize = 1_000_000;

impl Client {
    /// Connects. `patience` is the timeout of connecting and of each read.
    ///
    /// # Errors
    /// When no router listens at that address.
    pub fn connect(address: &Address, patience: Duration) -> Result<Client, ClientError> {
        let stream = open(address, patience)
            .map_err(|e| ClientError::Connect { address: address.clone(), what: advice(address, &e) })?;
        let mut client = Client { stream: BufReader::with_capacity(1 << 16, stream) };
        let greeting = match client.line() {
            Ok(line) => line,
            Err(ClientError::Broken(e)) => {
                let what = match e.kind() {
                    std::io::ErrorKind::WouldBlock => "no greeting received".into(),
                    _ => reason(&e),
                };
                return Err(ClientError::Connect { address: address.clone(), what });
            }
            Err(e) => return Err(e),
        };
        if !greeting.starts_with("Click::ControlSocket/1.") {
            return Err(ClientError::Protocol(format!("it says '{}'", crate::access::shown(&greeting))));
        }
        Ok(client)
    }

    fn line(&mut self) -> Result<String, ClientError> {
        let mut bytes = Vec::new();
        (&mut self.stream).take(LINE).read_until(b'\n', &mut bytes)?;
        if bytes.pop() != Some(b'\n') {
            let e = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the other end closed it");
            return Err(ClientError::Broken(e));
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        Ok(bytes::decode_vec(bytes))
    }

    /// Sends a command, and returns the text of its reply.
    fn command(&mut self, line: &str, data: &[u8]) -> Result<String, ClientError> {
        let mut bytes = bytes::encode(&format!("{line}\r\n")).into_owned();
        bytes.extend_from_slice(data);
        let sent = self.stream.get_mut().write_all(&bytes).and_then(|()| self.stream.get_mut().flush());
        // Read the reply even if sending failed: a router that closed the connection may have sent the reason
        // before.
        let reply = self.reply();
        match (sent, reply) {
            (Err(e), Err(ClientError::Broken(_))) => Err(e.into()),
            (_, reply) => reply,
        }
    }

    fn reply(&mut self) -> Result<String, ClientError> {
        let mut text = String::new();
        for _ in 0..LINES {
            let line = self.line()?;
            let wrong = || ClientError::Protocol(format!("it says '{}'", crate::access::shown(&line)));
            let (number, rest) = line.split_at_checked(3).ok_or_else(wrong)?;
            let number: u16 = number.parse().map_err(|_| wrong())?;
            let last = match rest.bytes().next() {
                Some(b'-') => false,
                Some(b' ') | None => true,
                _ => return Err(wrong()),
            };
            text.push_str(rest.get(1..).unwrap_or_default());
            if !last {
                text.push('\n');
                continue;
            }
            return match number {
                code::OK | code::WARNINGS => Ok(text),
                code => Err(ClientError::Refused { code, text }),
            };
        }
        Err(ClientError::Protocol("the reply has too many lines".into()))
    }

    /// Sends a token, which lets this connection reconfigure the router and name files.
    ///
    /// # Errors
    /// When the token is wrong, or the router has ended.
    pub fn authorise(&mut self, token: &Token) -> Result<(), ClientError> {
        self.command(&format!("AUTH {}", token.secret()), b"").map(drop)
    }

    /// Reads a handler, with parameters of any length.
    ///
    /// # Errors
    /// When the router refuses, or has ended.
    pub fn read(&mut self, handler: &str, parameters: &str) -> Result<Vec<u8>, ClientError> {
        check(handler)?;
        match parameters {
            "" => self.command(&format!("READ {handler}"), b"")?,
            p => self.command(&format!("READDATA {handler} {}", bytes::length(p)), &bytes::encode(p))?,
        };
        let line = self.line()?;
        let length = line.strip_prefix("DATA ").and_then(|n| n.trim().parse::<u64>().ok());
        let Some(length) = length else {
            return Err(ClientError::Protocol(format!("it says '{}'", crate::access::shown(&line))));
        };
        let mut data = Vec::new();
        (&mut self.stream).take(length).read_to_end(&mut data)?;
        if data.len() as u64 != length {
            let e = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the other end closed it");
            return Err(ClientError::Broken(e));
        }
        Ok(data)
    }

    /// Reads a handler as text.
    ///
    /// # Errors
    /// See [`Client::read`].
    pub fn read_text(&mut self, handler: &str, parameters: &str) -> Result<String, ClientError> {
        let data = self.read(handler, parameters)?;
        Ok(String::from_utf8_lossy(&data).into_owned())
    }

    /// Writes a handler, with a value of any length. The first line of the result is the text of the reply; the other
    /// lines are the handler's answer.
    ///
    /// # Errors
    /// When the router refuses, or has ended.
    pub fn write(&mut self, handler: &str, value: &[u8]) -> Result<String, ClientError> {
        check(handler)?;
        match value {
            b"" => self.command(&format!("WRITE {handler}"), b""),
            v => self.command(&format!("WRITEDATA {handler} {}", v.len()), v),
        }
    }
}

/// Refuses names that cannot be sent as one word.
fn check(handler: &str) -> Result<(), ClientError> {
    match handler.is_empty() || handler.chars().any(|c| c.is_whitespace() || c.is_control()) {
        true => Err(ClientError::Refused {
            code: code::NO_HANDLER,
            text: format!("No handler named '{}'", crate::access::shown(handler)),
        }),
        false => Ok(()),
    }
}

fn open(address: &Address, patience: Duration) -> std::io::Result<Box<dyn Stream>> {
    match address {
        Address::Unix(path) => {
            let s = UnixStream::connect(path)?;
            s.set_read_timeout(Some(patience))?;
            s.set_write_timeout(Some(patience))?;
            Ok(Box::new(s))
        }
        Address::Tcp(host, port) => {
            let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "no such host");
            for a in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&a, patience) {
                    Ok(s) => {
                        s.set_nodelay(true)?;
                        s.set_read_timeout(Some(patience))?;
                        s.set_write_timeout(Some(patience))?;
                        return Ok(Box::new(s));
                    }
                    Err(e) => last = e,
                }
            }
            Err(last)
        }
    }
}

/// Why a connection failed, with advice.
fn advice(address: &Address, e: &std::io::Error) -> String {
    use std::io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
    match (address, e.kind()) {
        (Address::Tcp(_, port), ConnectionRefused) => format!(
            "no router listens there; 'castanet run -p {port} FILE' or ControlSocket(TCP, {port}) opens this port"
        ),
        (Address::Unix(p), ConnectionRefused) => {
            format!(
                "the router that listened there has ended; 'castanet run -u {} FILE' starts another",
                p.display()
            )
        }
        (Address::Unix(p), NotFound) => format!(
            "there is no such file; 'castanet run -u {0} FILE' or ControlSocket(UNIX, {0}) makes it",
            p.display()
        ),
        (Address::Unix(_), PermissionDenied) => {
            "permission denied: only the user who runs the router may use its socket".into()
        }
        _ => reason(e),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses() {
        let tcp = |h: &str, p| Address::Tcp(h.into(), p);
        for (text, want) in [
            ("7777", tcp("127.0.0.1", 7777)),
            ("localhost:1", tcp("localhost", 1)),
            ("[::1]:65535", tcp("::1", 65535)),
            ("65536", Address::Unix("65536".into())),
            ("0", Address::Unix("0".into())),
            ("/run/x:1", Address::Unix("/run/x:1".into())),
            ("./s", Address::Unix("./s".into())),
            (":1", Address::Unix(":1".into())),
        ] {
            assert_eq!(text.parse::<Address>().unwrap(), want, "{text}");
        }
        assert!("".parse::<Address>().is_err());
        assert_eq!(tcp("::1", 5).to_string(), "[::1]:5");
    }
}
