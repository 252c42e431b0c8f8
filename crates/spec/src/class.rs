// SPDX-License-Identifier: MIT OR Apache-2.0
//! The declaration of an element class.

use crate::arg::ArgSpec;
use crate::count::CountSpec;
use crate::handler::HandlerSpec;
use crate::reason::Reason;
use castanet_lang::ClassNames;

/// What happens when several workers reach an element of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// Each worker has its own replica. Read handlers are merged; write handlers go to all replicas.
    Replicate,
    /// All workers use one concurrent state, each through its own handle.
    Share,
    /// There is one instance. If several workers reach the element, each runs it under a lock. One of them is its
    /// home: it runs the task and timers, waits for descriptors, and answers the handlers.
    Exclusive,
}

/// What happens to an element that gets another configuration while the router runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconfigure {
    /// It accepts no other configuration: its handler `config` is read-only.
    Refused,
    /// It keeps its counts and what it holds, as in a hot swap.
    Keeps,
    /// It loses its counts and what it holds.
    Restarts,
}

/// How the class handles partial checksums and super-packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Passes partial checksums and super-packets on unchanged.
    Transparent,
    /// Handles partial checksums and super-packets.
    Aware,
    /// Can handle neither, so the element must get only packets with complete checksums, and no super-packets.
    None,
}

bitflags::bitflags! {
    /// Effects outside the packets.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Effects: u8 {
        /// Prints messages.
        const PRINTS = 1;
        /// Writes files.
        const FILES = 2;
        /// Calls handlers of elements from the data path.
        const CALLS = 4;
        /// May stop the driver.
        const STOPS = 8;
        /// Reads state that may change with each packet elsewhere in the router, such as the length of a storage
        /// downstream, or a value that packets on another input set.
        const LOOKS = 16;
    }

    /// The entries of the router's ledger that a class makes. The ledger balances: each packet that entered
    /// or was made has left, was dropped, or is held. A packet that arrives at an element and leaves it again
    /// needs no entry.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LedgerRole: u8 {
        /// It brings packets into the router: it generates, reads or receives them.
        const ENTERS = 1;
        /// It makes packets from others: copies, fragments, answers.
        const MAKES = 2;
        /// Packets end at the element: it sends them, writes them to a file, or counts and frees them.
        const LEAVES = 4;
        /// It holds packets from one call to the next.
        const HOLDS = 8;
    }
}

/// A property by which elements find each other through flow-based router context (TOCS 2000 §2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Stores packets; has a length and a capacity.
    Storage,
    /// Signals when it becomes non-empty, so that pullers can sleep until then.
    EmptyNotifier,
    /// Signals whether it is full, so that sources can sleep.
    FullNotifier,
    /// Emits packets with partial checksums, and super-packets.
    Offloads,
}

/// Everything a class declares.
#[derive(Clone, Copy, Debug)]
pub struct ClassSpec {
    /// The name in configurations, such as `DecIPTTL`.
    pub name: &'static str,
    /// Other names of the same class.
    pub aliases: &'static [&'static str],
    /// The Rust module that declares the class.
    pub module: &'static str,
    /// The documentation comment: a summary line, then Markdown.
    pub doc: &'static str,
    /// The port count code, such as `1/1-2`.
    pub ports: &'static str,
    /// The processing code, such as `a/ah`.
    pub processing: &'static str,
    /// The flow code, such as `x/x`.
    pub flow: &'static str,
    /// Packet types by port, with `/` between inputs and outputs: `ip/ip`, `ether/ether`, `any/same`. The
    /// last type of a side applies to all further ports.
    pub packets: &'static str,
    /// The alignment required on input and given on output, `MODULUS OFFSET / MODULUS OFFSET`. Empty if none
    /// is required and the alignment stays unchanged.
    pub alignment: &'static str,
    /// Arguments in order.
    pub args: &'static [ArgSpec],
    /// Handlers that the class declares itself.
    pub handlers: &'static [HandlerSpec],
    /// Handlers that belong to arguments.
    pub arg_handlers: &'static [HandlerSpec],
    /// Handlers of which an element has several, one for each of its ports or patterns: `pattern` stands for
    /// `pattern0`, `pattern1` and so on.
    pub indexed: &'static [HandlerSpec],
    /// What happens when several workers reach an element.
    pub workers: Workers,
    /// How it handles offloads.
    pub offload: Offload,
    /// Outside effects that an element of the class may have.
    pub effects: Effects,
    /// Whether and how an element takes another configuration while the router runs.
    pub reconfigure: Reconfigure,
    /// Whether `config` follows the handlers of arguments: a write to such a handler also changes the
    /// argument in the text of `config`.
    pub config_follows: bool,
    /// What a hot swap moves, in words; empty if nothing.
    pub takes_state: &'static str,
    /// The counts that its elements keep. The counts of replicas are added, and a hot swap moves them.
    pub counts: &'static [CountSpec],
    /// The reasons for which it may drop packets.
    pub drops: &'static [Reason],
    /// The entries of the ledger that it makes.
    pub ledger_role: LedgerRole,
    /// The drop reasons of packets that are meant to end here. These packets count as having left.
    pub ends: &'static [Reason],
    /// The capabilities by which other elements can find its elements.
    pub capabilities: &'static [Capability],
    /// Whether it runs a task.
    pub task: bool,
    /// Whether it may emit a copy of a packet in addition to the packet itself.
    pub copies: bool,
    /// Whether packets on its highest output are processed before those on lower ones, as when a switch floods a
    /// packet.
    pub descending: bool,
    /// Whether it is configured before all other classes, so that they can use its information
    /// (AddressInfo...).
    pub information: bool,
}

impl ClassSpec {
    /// The first line of the documentation, which is a summary.
    pub fn summary(&self) -> &'static str {
        self.doc.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("")
    }
    /// All handlers: those of the class, then those of arguments, each in order of declaration.
    pub fn all_handlers(&self) -> impl Iterator<Item = &'static HandlerSpec> {
        self.handlers.iter().chain(self.arg_handlers)
    }
    /// Returns the declaration of a handler. The name of an [indexed](ClassSpec::indexed) handler may have any number:
    /// the element need not have a port or pattern of this number.
    pub fn handler(&self, name: &str) -> Option<&'static HandlerSpec> {
        let indexed = || self.indexed.iter().find(|h| index(name, h.name).is_some());
        self.all_handlers().find(|h| h.name == name).or_else(indexed)
    }
    /// Whether the class has a capability.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}

/// Returns N if a handler's name is `base` followed by the decimal number N.
pub fn index(handler: &str, base: &str) -> Option<usize> {
    let digits = handler.strip_prefix(base)?;
    let n: usize = digits.parse().ok()?;
    // A number has only one valid spelling: no sign, no leading zeros.
    (digits.len() == n.checked_ilog10().map_or(1, |log| log as usize + 1)).then_some(n)
}

/// The declarations of the classes defined outside the configuration.
pub trait ClassSpecs: ClassNames {
    /// The declaration of the class with this name or alias.
    fn spec(&self, name: &str) -> Option<&'static ClassSpec>;
}
