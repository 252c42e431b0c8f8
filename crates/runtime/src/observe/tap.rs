// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taps: the packets that pass a connection, copied for a client.

use crate::observe::log::Log;
use crate::observe::trace::write_hex;
use castanet_element::HandlerError;
use castanet_graph::filter::Filter;
use castanet_graph::{Graph, PortKind};
use castanet_lang::PortRef;
use castanet_packet::Packet;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A side of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Input,
    Output,
}

/// A port of an element, as `element[2]` (an output) or `[2]element` (an input). Without a number, output 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub element: String,
    pub side: Side,
    pub port: usize,
}

impl Point {
    /// Reads a point.
    ///
    /// # Errors
    /// The text is not of this form.
    pub(crate) fn parse(text: &str) -> Result<Point, HandlerError> {
        let bad = || HandlerError::from(format!("'{text}': expected ELEMENT[OUTPUT] or [INPUT]ELEMENT"));
        let number = |n: &str| n.trim().parse().map_err(|_| bad());
        let (element, side, port) = if let Some(rest) = text.strip_prefix('[') {
            let (port, element) = rest.split_once(']').ok_or_else(bad)?;
            (element, Side::Input, number(port)?)
        } else if let Some((element, port)) = text.strip_suffix(']').and_then(|t| t.split_once('[')) {
            (element, Side::Output, number(port)?)
        } else {
            (text, Side::Output, 0)
        };
        let element = element.trim();
        match element.is_empty() || element.contains(['[', ']']) {
            true => Err(bad()),
            false => Ok(Point { element: element.to_string(), side, port }),
        }
    }

    /// Returns the ports where the packets of this point can be seen: an output for packets that are pulled, and the
    /// port itself for packets that are pushed.
    ///
    /// # Errors
    /// The graph has no such port.
    pub(crate) fn places(&self, graph: &Graph) -> Result<Vec<(usize, Side, usize)>, HandlerError> {
        let missing = |what: String| HandlerError::from(what);
        let e = graph
            .find(&self.element)
            .ok_or_else(|| missing(format!("no element named '{}'", self.element)))?;
        let (ports, word) = match self.side {
            Side::Input => (graph.inputs(e), "input"),
            Side::Output => (graph.outputs(e), "output"),
        };
        if self.port >= ports {
            return Err(missing(format!("'{}' has no {word} {}", self.element, self.port)));
        }
        let input = PortRef { element: e, port: self.port };
        Ok(match self.side {
            Side::Input if graph.input_kind(e, self.port) == PortKind::Pull => {
                graph.upstream(input).iter().map(|from| (from.element, Side::Output, from.port)).collect()
            }
            side => vec![(e, side, self.port)],
        })
    }
}

/// A request of a client to see the packets of a point.
pub(crate) struct Tap {
    /// The name that the client gave to the tap.
    pub id: String,
    pub point: Point,
    filter: Filter,
    /// The maximum number of bytes of each packet.
    snap: usize,
    /// The number of packets that the client still wants.
    left: AtomicU64,
    log: Mutex<Log>,
}

impl Tap {
    /// Makes a tap for `count` packets, 0 for any number, of which at most `snap` bytes are copied, 0 for all.
    pub(crate) fn new(id: &str, point: Point, count: u64, snap: usize, filter: Filter) -> Tap {
        let left = AtomicU64::new(if count == 0 { u64::MAX } else { count });
        let snap = if snap == 0 { usize::MAX } else { snap };
        Tap { id: id.to_string(), point, filter, snap, left, log: Mutex::new(Log::new()) }
    }
    /// Whether the tap still copies packets.
    pub(crate) fn is_on(&self) -> bool {
        self.left.load(Ordering::Relaxed) > 0
    }
    /// Copies a packet that passes the point, if it matches.
    pub(crate) fn see(&self, p: &Packet, worker: u32, now: i64) {
        if !self.is_on() || !self.filter.matches(p.data(), p.network()) {
            return;
        }
        let network = p.network_offset().map_or("-".to_string(), |n| n.to_string());
        let mut line = format!("{now}\t{worker}\t{network}\t{}\t", p.len());
        write_hex(&mut line, p.data().get(..self.snap).unwrap_or(p.data()));
        // A client that finds the tap over must find its last line too.
        let mut log = self.log.lock();
        let one = |n: u64| n.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one).is_ok() {
            log.push(line);
        }
    }
    /// Whether the client is considered disconnected at the time `now`.
    pub(crate) fn is_abandoned(&self, now: Instant) -> bool {
        self.log.lock().is_abandoned(now)
    }
    /// Returns the lines from number `from` on.
    pub(crate) fn read(&self, from: &str) -> Result<String, HandlerError> {
        let mut log = self.log.lock();
        log.read(from, if self.is_on() { "on" } else { "over" })
    }
}
