// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client of a router's control socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Timeout of connecting and of a reply. It is long, because a disturbance may stop the router.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a router.
pub struct Client(BufReader<UnixStream>);

/// A reply: its code, and the text that follows it.
pub struct Reply {
    /// The code; 200 is success.
    pub code: u16,
    /// The lines of the reply.
    pub text: String,
}

impl Client {
    /// Connects, with retries for a minute: a router without a free descriptor accepts connections later.
    pub fn new(socket: &Path) -> io::Result<Client> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Client::once(socket) {
                Ok(client) => return Ok(client),
                Err(e) if Instant::now() > deadline => return Err(e),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Connects, without retries.
    pub fn once(socket: &Path) -> io::Result<Client> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut client = Client(BufReader::new(stream));
        let greeting = client.line()?;
        if greeting != "Click::ControlSocket/1.3" {
            return Err(io::Error::other(greeting));
        }
        Ok(client)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_string())
    }

    fn say(&mut self, text: &str) -> io::Result<Reply> {
        self.0.get_mut().write_all(text.as_bytes())?;
        let mut all = String::new();
        loop {
            let line = self.line()?;
            all.push_str(&line);
            // A hyphen follows the code on all lines but the last.
            if line.as_bytes().get(3) != Some(&b'-') {
                let code = line.get(..3).and_then(|c| c.parse().ok()).unwrap_or(0);
                return Ok(Reply { code, text: all });
            }
            all.push('\n');
        }
    }

    /// Requests a hot swap.
    pub fn swap(&mut self, text: &str) -> io::Result<Reply> {
        self.say(&format!("WRITEDATA hotconfig {}\r\n{text}", text.len()))
    }

    /// Reads a handler.
    pub fn read(&mut self, handler: &str) -> io::Result<(Reply, String)> {
        let reply = self.say(&format!("READ {handler}\r\n"))?;
        if reply.code != 200 {
            return Ok((reply, String::new()));
        }
        let length = self.line()?.strip_prefix("DATA ").and_then(|n| n.parse().ok());
        let mut data = vec![0; length.ok_or_else(|| io::Error::other("no DATA"))?];
        self.0.read_exact(&mut data)?;
        Ok((reply, String::from_utf8_lossy(&data).into_owned()))
    }
}
