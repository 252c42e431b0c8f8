// SPDX-License-Identifier: MIT OR Apache-2.0
//! The declaration of an element class.

use crate::arg::ArgSpec;
use crate::count::CountSpec;
use crate::handler::HandlerSpec;
use crate::reason::Reason;

/// What happens when several workers reach an element of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// Each worker has its own; read handlers are merged, write handlers go to all.
    Replicate,
    /// Each worker has a handle on one concurrent state.
    Share,
    /// One worker only; more is an error that names the element and the paths.
    Exclusive,
}

/// What becomes of an element that gets another configuration while the router runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconfigure {
    /// It takes none: its handler `config` is read only.
    Refused,
    /// It keeps what it counted and what it holds, as in a hot swap.
    Keeps,
    /// It begins anew.
    Restarts,
}

/// What the class makes of partial checksums and super-packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Passes them on.
    Transparent,
    /// Knows and handles them.
    Aware,
    /// Must see only complete packets.
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
        /// Looks at what other packets change one by one: the length of a storage downstream, what a packet of another input left.
        const LOOKS = 16;
    }

    /// The entries of the router's ledger that a class makes. The ledger balances: packets that entered or were made are packets
    /// that left, were dropped, or are held. Packets that arrive at an element and leave it again need no entry.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Books: u8 {
        /// Packets enter the router by it: it generates, reads or receives them.
        const ENTERS = 1;
        /// It makes packets from others: copies, fragments, answers.
        const MAKES = 2;
        /// Packets leave the router by it: it sends, writes or counts them.
        const LEAVES = 4;
        /// It holds packets from one call to the next.
        const HOLDS = 8;
    }
}

/// What elements find each other by through flow-based router context (TOCS 2000 §2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Stores packets; has a length and a capacity.
    Storage,
    /// Says when it becomes non-empty, so that pullers can sleep.
    EmptyNotifier,
    /// Says when it is full, so that sources can sleep.
    FullNotifier,
    /// Emits packets whose checksums are partial and which stand for many segments.
    Offloads,
}

/// Everything a class declares.
#[derive(Clone, Copy, Debug)]
pub struct ClassSpec {
    /// The name in configurations: `DecIPTTL`.
    pub name: &'static str,
    /// Other names of the same class.
    pub aliases: &'static [&'static str],
    /// The Rust module that it is declared in.
    pub module: &'static str,
    /// The documentation comment: a summary line, then Markdown.
    pub doc: &'static str,
    /// Port count code: `1/1-2`.
    pub ports: &'static str,
    /// Processing code: `a/ah`.
    pub processing: &'static str,
    /// Flow code: `x/x`.
    pub flow: &'static str,
    /// Packet types per port, `/` between inputs and outputs, the last repeated: `ip/ip`, `ether/ether`, `any/same`.
    pub packets: &'static str,
    /// Alignment wanted on input and given on output, `MODULUS OFFSET / MODULUS OFFSET`; empty: no wish, unchanged.
    pub alignment: &'static str,
    /// Arguments in order.
    pub args: &'static [ArgSpec],
    /// Handlers of the element's own.
    pub handlers: &'static [HandlerSpec],
    /// Handlers of arguments.
    pub arg_handlers: &'static [HandlerSpec],
    /// What several workers make of it.
    pub workers: Workers,
    /// What it makes of offloads.
    pub offload: Offload,
    /// Outside effects that an element of the class may have.
    pub effects: Effects,
    /// Whether elements take another configuration while they run.
    pub reconfigure: Reconfigure,
    /// Whether `config` follows its handlers: a write to one that sets an argument changes that argument in the text.
    pub config_follows: bool,
    /// What hot swap moves, in words; empty: nothing.
    pub takes_state: &'static str,
    /// The numbers that its elements keep. Replicas add theirs up, and hot swap moves them.
    pub counts: &'static [CountSpec],
    /// Why it may drop packets.
    pub drops: &'static [Reason],
    /// The entries of the ledger that it makes.
    pub books: Books,
    /// Those of its reasons for drops that end packets where they are meant to end: they count as packets that left.
    pub ends: &'static [Reason],
    /// What it exports to others.
    pub capabilities: &'static [Capability],
    /// Whether it runs a task.
    pub task: bool,
    /// Whether it may emit a copy of a packet beside the packet itself.
    pub copies: bool,
    /// Whether packets on its highest output go before those on lower ones, which is so for floods of switches.
    pub descending: bool,
    /// Whether it is configured before all others, so that they can use what it says (AddressInfo...).
    pub information: bool,
}

impl ClassSpec {
    /// The first sentence of the documentation.
    pub fn summary(&self) -> &'static str {
        self.doc.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("")
    }
    /// Every handler, the element's own and those of arguments, in order of declaration.
    pub fn all_handlers(&self) -> impl Iterator<Item = &'static HandlerSpec> {
        self.handlers.iter().chain(self.arg_handlers)
    }
    /// Whether it exports a capability.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}
