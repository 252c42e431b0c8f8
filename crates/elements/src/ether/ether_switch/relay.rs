// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of switches, and the state that EtherSpanTree may change.

use super::copies::Copies;
use super::table::Table as Addresses;
use crate::ether::port_flags::PortFlags;
use castanet_element::prelude::*;
use castanet_wire::EtherAddr;
use castanet_wire::ether::EtherHeader;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

/// The state of a switch that all workers share and that EtherSpanTree may change. The table of addresses is stored
/// separately.
#[derive(Default)]
pub struct Control {
    timeout: AtomicI64,
    /// The maximum time for which addresses are remembered while the topology changes, in nanoseconds; 0: no limit.
    hurry: AtomicI64,
    /// The flags of ports that learn from frames but do not relay them.
    pub learning: PortFlags,
}

impl Control {
    /// Limits the time that addresses are remembered to `ns` nanoseconds; 0 removes the limit. Returns whether that was a change.
    pub fn hurry(&self, ns: i64) -> bool {
        self.hurry.swap(ns.max(0), Relaxed) != ns.max(0)
    }
    /// Returns how long addresses are remembered, in nanoseconds.
    #[inline]
    pub fn timeout(&self) -> i64 {
        let (timeout, hurry) = (self.timeout.load(Relaxed), self.hurry.load(Relaxed));
        if hurry > 0 { timeout.min(hurry) } else { timeout }
    }
}

/// Arguments of EtherSwitch and ListenEtherSwitch.
#[derive(Args)]
pub struct Args {
    /// How long addresses are remembered; 0: not at all.
    #[arg(keyword, default = Nanos(300_000_000_000), show = "300")]
    timeout: Nanos,
}

/// A learning bridge. It has one output for each port, and perhaps one more output, the listener, which gets every
/// frame.
#[derive(Counts)]
pub struct Relay {
    args: Args,
    table: Arc<Addresses>,
    pub(super) control: Arc<Control>,
    pub(super) learning: Arc<[AtomicBool]>,
    pub(super) ports: usize,
    pub(super) listener: Option<usize>,
    /// The addresses that the kernel knows, if it relays frames too.
    pub(super) copies: Option<Copies>,
}

impl Relay {
    /// Called for a frame that leaves on no port: sends it to the listener, or drops it if there is no listener.
    fn rest(&self, p: Packet, reason: Reason, cx: &mut Cx<'_>) {
        match self.listener {
            Some(listener) => cx.emit(listener, p),
            None => cx.drop(p, reason),
        }
    }

    /// Learns the port of an address.
    #[inline]
    fn learn(&self, address: EtherAddr, port: usize, now: i64) {
        match &self.copies {
            None => self.table.learn(address, port, now),
            Some(copies) => copies.learn(&self.table, address, port, now),
        }
    }

    /// The port of an address that is still remembered.
    #[inline]
    fn port(&self, address: EtherAddr, now: i64, timeout: i64) -> Option<usize> {
        match &self.copies {
            None => self.table.port(address, now, timeout),
            Some(copies) => copies.port(&self.table, address, now, timeout),
        }
    }

    /// Sends a frame to all outputs but that of the port it came from. The lowest output gets the packet
    /// itself, the others get copies.
    fn flood(&self, from: usize, mut p: Packet, cx: &mut Cx<'_>) {
        let last = usize::from(from == 0);
        let outputs = self.ports + usize::from(self.listener.is_some());
        for to in (last + 1..outputs).rev().filter(|to| *to != from) {
            copy(to, &mut p, cx);
        }
        cx.emit(last, p);
    }
}

impl Element for Relay {
    /// Relays all frames of a batch.
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            self.push_one(port, p, cx);
        }
    }
    /// Relays a frame: learns the port of its source, and sends the frame to the port of its destination.
    #[inline]
    fn push_one(&mut self, port: usize, mut p: Packet, cx: &mut Cx<'_>) {
        let Some(h) = EtherHeader::from_prefix(p.data()) else {
            return cx.drop(p, Reason::TooShort);
        };
        let (dst, src) = (h.dst, h.src);
        let (timeout, now) = (self.control.timeout(), p.timestamp());
        if timeout > 0 {
            self.learn(src, port, now);
        }
        if self.learning.get(port).is_some_and(|l| l.load(Relaxed)) {
            return self.rest(p, Reason::Suppressed, cx);
        }
        let known = if timeout > 0 && !dst.is_group() { self.port(dst, now, timeout) } else { None };
        match known {
            Some(to) if to == port => self.rest(p, Reason::SameSegment, cx),
            Some(to) => {
                if let Some(listener) = self.listener {
                    copy(listener, &mut p, cx);
                }
                cx.emit(to, p);
            }
            None => self.flood(port, p, cx),
        }
    }
}

#[handlers]
impl Relay {
    /// One line for each station: address and port.
    #[read]
    fn table(&self) -> Table {
        Table(self.table.list().iter().map(|(a, port)| format!("{a} {port}\n")).collect())
    }
    /// How long addresses are remembered, in seconds.
    #[read(unit = "seconds")]
    fn timeout(&self) -> Nanos {
        Nanos(self.control.timeout.load(Relaxed))
    }
    #[write]
    fn set_timeout(&mut self, timeout: Nanos) -> Result<(), HandlerError> {
        self.control.timeout.store(positive(timeout)?.0, Relaxed);
        Ok(())
    }
}

impl Engine for Relay {
    type Args = Args;
    /// Builds a bridge with as many ports as inputs. If there is one more output, it is the listener.
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let ports = cx.inputs;
        if ports > Addresses::MAX_PORTS {
            return Err(format!("at most {} ports", Addresses::MAX_PORTS).into());
        }
        let seed = cx.secret().next_u64();
        let control = cx.share(Control::default);
        control.timeout.store(positive(args.timeout)?.0, Relaxed);
        let learning = control.learning.of(ports);
        let listener = (cx.outputs > ports).then_some(ports);
        let table = cx.share(|| Addresses::new(seed));
        Ok(Relay { args, table, control, learning, ports, listener, copies: None })
    }
    fn args(&mut self) -> &mut Args {
        &mut self.args
    }
}

impl Lifecycle for Relay {
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if let Some(copies) = &old.copies {
            copies.refresh(&old.table, cx.now());
        }
        // Only the table of addresses moves. The spanning tree of the new router decides which ports relay.
        if !Arc::ptr_eq(&self.table, &old.table) {
            self.table.learn_from(&old.table, self.ports);
        }
        Ok(())
    }
}

fn positive(timeout: Nanos) -> Result<Nanos, ValueError> {
    if timeout.0 < 0 { Err("TIMEOUT: must be positive".into()) } else { Ok(timeout) }
}

fn copy(to: usize, p: &mut Packet, cx: &mut Cx<'_>) {
    cx.emit_copy(to, p);
}
