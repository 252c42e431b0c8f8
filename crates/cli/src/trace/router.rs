// SPDX-License-Identifier: MIT OR Apache-2.0
//! A router whose packets are observed: one that runs elsewhere, or one in this process.

use crate::ctl::Failure;
use castanet_control::Client;
use castanet_element::remote::Remote;
use castanet_runtime::Running;
use castanet_spec::Origin;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;

/// A router whose packets can be observed.
pub trait Observed {
    /// Reads a global handler with parameters, or a handler `ELEMENT.HANDLER` without.
    ///
    /// # Errors
    /// When the router refuses, or cannot be reached.
    fn read(&mut self, handler: &str, parameters: &str) -> Result<String, Failure>;
    /// Writes a global handler.
    ///
    /// # Errors
    /// When the router refuses, or cannot be reached.
    fn write(&mut self, handler: &str, value: &str) -> Result<(), Failure>;
}

impl Observed for Client {
    fn read(&mut self, handler: &str, parameters: &str) -> Result<String, Failure> {
        Ok(self.read_text(handler, parameters)?)
    }
    fn write(&mut self, handler: &str, value: &str) -> Result<(), Failure> {
        Client::write(self, handler, value.as_bytes())?;
        Ok(())
    }
}

impl Observed for Arc<Running> {
    fn read(&mut self, handler: &str, parameters: &str) -> Result<String, Failure> {
        let (element, handler) = match handler.rsplit_once('.') {
            Some((element, handler)) => (Some(element), handler),
            None => (None, handler),
        };
        Remote::read(self.as_ref(), element, handler, parameters).map_err(|e| Failure::Here(e.to_string()))
    }
    fn write(&mut self, handler: &str, value: &str) -> Result<(), Failure> {
        let done = Remote::write(self.as_ref(), Origin::Operator, None, handler, value);
        done.map(drop).map_err(|e| Failure::Here(e.to_string()))
    }
}

/// The lines that a trace or tap has recorded since the last reading.
pub struct Lines {
    /// The number of the first line.
    pub first: u64,
    /// The number of lines that were lost so far.
    pub lost: u64,
    /// The state of the trace or tap, as the router sends it.
    pub state: Vec<String>,
    pub lines: Vec<String>,
}

/// How many packets a trace has followed.
pub struct Progress {
    /// The number of packets that were chosen.
    pub chosen: u64,
    /// The number of packets to choose.
    pub wanted: u64,
    /// The number of chosen packets, and of parts of them, that are in the router.
    pub live: u64,
}

impl Progress {
    /// Whether as many packets as were wanted have been followed to their ends.
    pub fn is_over(&self) -> bool {
        self.chosen >= self.wanted && self.live == 0
    }
}

impl Lines {
    /// Reads the answer of the global handlers `trace` and `tap`.
    pub fn parse(text: &str) -> Lines {
        let mut lines = text.lines();
        let mut head = lines.next().unwrap_or_default().split('\t');
        let mut number = || head.next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        let (first, lost) = (number(), number());
        Lines {
            first,
            lost,
            state: head.map(String::from).collect(),
            lines: lines.map(String::from).collect(),
        }
    }
    /// The state of a trace.
    pub fn progress(&self) -> Progress {
        let number = |i: usize| self.state.get(i).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        Progress { chosen: number(0), wanted: number(1), live: number(2) }
    }
}

/// Returns a name for a trace or tap that no other client has.
pub fn trace_name() -> String {
    // The keys of `RandomState` are random.
    format!("{:016x}", RandomState::new().hash_one("trace"))
}

/// A trace or tap of a router. It ends when this value is dropped.
pub struct Session<'r, R: Observed> {
    pub router: &'r mut R,
    handler: &'static str,
    id: String,
    next: u64,
}

impl<'r, R: Observed> Session<'r, R> {
    /// Begins a trace or tap, with the request `request`.
    ///
    /// # Errors
    /// When the router refuses, or cannot be reached.
    pub fn begin(router: &'r mut R, handler: &'static str, request: &str) -> Result<Session<'r, R>, Failure> {
        let id = trace_name();
        router.write(handler, &format!("{id} {request}"))?;
        Ok(Session { router, handler, id, next: 0 })
    }
    /// Returns the lines since the last reading.
    ///
    /// # Errors
    /// When the router cannot be reached, or the trace has ended.
    pub fn read(&mut self) -> Result<Lines, Failure> {
        let lines = Lines::parse(&self.router.read(self.handler, &format!("{} {}", self.id, self.next))?);
        self.next = lines.first + lines.lines.len() as u64;
        Ok(lines)
    }
}

impl<R: Observed> Drop for Session<'_, R> {
    fn drop(&mut self) {
        // If the router has gone, nothing is left to end.
        let _ = self.router.write(self.handler, &format!("{} end", self.id));
    }
}
