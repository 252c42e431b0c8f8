// SPDX-License-Identifier: MIT OR Apache-2.0
//! HTTP requests of tests, byte by byte, so that they can be wrong.
#![allow(clippy::unwrap_used, dead_code)]

use super::{Bench, Live};
use castanet_testkit::until;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

/// The time after which a test fails rather than wait for a server.
const PATIENCE: Duration = Duration::from_secs(100);

/// A server and what it has printed at the start.
pub struct Served {
    pub live: Live,
    pub port: u16,
    /// The token, if it printed one.
    pub token: String,
}

/// Starts castanet with these arguments, and waits until it listens.
pub fn serve(b: &Bench, log: &str, args: &[&str]) -> Served {
    let mut c = b.command("castanet");
    c.args(args).stdin(Stdio::null()).stdout(Stdio::null());
    c.stderr(std::fs::File::create(b.path(log)).unwrap());
    let live = Live(c.spawn().unwrap());
    let link = || {
        let text = std::fs::read_to_string(b.path(log)).unwrap();
        let (_, rest) = text.split_once("listening on http://127.0.0.1:")?;
        rest.split_once('\n').map(|line| line.0.to_string())
    };
    until("it listens", || link().is_some());
    let link = link().unwrap();
    let (port, rest) = link.split_once('/').unwrap();
    let token = rest.strip_prefix("#token=").unwrap_or_default().to_string();
    Served { live, port: port.parse().unwrap(), token }
}

/// Connects to a port of this host.
pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Whether a text is a whole answer, by its field Content-Length. Not every server ends the connection after it.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|w| w == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|l| l.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    length.is_some_and(|n| answer.len() >= end + 4 + n)
}

/// Sends bytes, and returns the answer, or all that comes until the end of the connection.
pub fn send(port: u16, request: &[u8]) -> String {
    let mut stream = connect(port);
    // The server may end the connection before it has read all.
    let _ = stream.write_all(request);
    let mut all = Vec::new();
    let mut part = [0; 4096];
    while let Ok(n @ 1..) = stream.read(&mut part) {
        all.extend_from_slice(&part[..n]);
        if is_whole(&all) {
            break;
        }
    }
    String::from_utf8(all).unwrap()
}

/// Returns the head and the body of a page.
pub fn get(port: u16, path: &str) -> (String, String) {
    let all = send(
        port,
        format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n").as_bytes(),
    );
    let (head, body) = all.split_once("\r\n\r\n").unwrap();
    (head.to_string(), body.to_string())
}

/// Sends a request with further header fields, and returns the status and the body.
pub fn ask(port: u16, method: &str, path: &str, fields: &[(&str, &str)], body: &str) -> (u16, String) {
    let fields: String = fields.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    );
    let all = send(port, text.as_bytes());
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: {all}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_string())
}

impl Served {
    /// Sends JSON with the token, and returns the status and the answer.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let token = format!("Bearer {}", self.token);
        let mut fields = vec![("Content-Type", "application/json")];
        if !self.token.is_empty() {
            fields.push(("Authorization", &token));
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = ask(self.port, method, path, &fields, &body);
        (status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{method} {path}: {e}: {text}")))
    }
    /// Returns an answer that must be good.
    pub fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }
}
