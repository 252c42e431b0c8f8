// SPDX-License-Identifier: MIT OR Apache-2.0
//! The declaration of an element class.

use crate::arg::{ArgSpec, Given};
use crate::count::CountSpec;
use crate::handler::HandlerSpec;
use crate::packets::{PacketCode, holds};
use crate::reason::Reason;
use castanet_lang::ClassNames;

/// What happens when several workers reach an element of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// Each worker has its own replica. Read handlers are merged; write handlers go to all replicas.
    Replicate,
    /// All workers use one concurrent state, each through its own handle.
    Share,
    /// There is one instance. If several workers reach the element, each runs it under a lock. One of these workers is
    /// the element's home, which runs the task and timers, waits for descriptors, and answers the handlers.
    Exclusive,
}

/// What happens to an element that gets another configuration while the router runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconfigure {
    /// The element accepts no other configuration: its handler `config` is read-only.
    Refused,
    /// The element keeps its counts and the packets and state that it holds, as in a hot swap.
    Keeps,
    /// The element loses its counts and the packets and state that it holds.
    Restarts,
}

/// What the work of an element on a packet depends on, besides its configuration and its handlers. The run loop may give
/// several tasks some turns at once, each as one batch, if nobody can tell this from turns one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depends {
    /// On anything: other elements, files, devices.
    Anything,
    /// On the packets that it has got, in their order.
    Order,
    /// On each packet by itself. Counts may go on, because their order does not matter.
    Packet,
}

/// How the class handles partial checksums and super-packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Passes partial checksums and super-packets on unchanged.
    Transparent,
    /// Handles partial checksums and super-packets.
    Aware,
    /// Cannot handle partial checksums or super-packets. An element of the class must get only packets with complete
    /// checksums, and no super-packets.
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
        /// Reads state that packets elsewhere in the router may change. Examples: the length of a queue downstream, or
        /// a value set by packets on another input.
        const LOOKS = 16;
    }

    /// The entries of the router's ledger that a class makes. The ledger balances: each packet that entered
    /// or was made has left, was dropped, or is held. A packet that arrives at an element and leaves it again
    /// needs no entry.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LedgerRole: u8 {
        /// Brings packets into the router: generates, reads or receives them.
        const ENTERS = 1;
        /// Makes packets from other packets: copies, fragments, answers.
        const MAKES = 2;
        /// Ends the path of packets: sends them, writes them to a file, or counts and frees them.
        const LEAVES = 4;
        /// Holds packets from one call to the next.
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

/// What elements of a class use of the host, besides files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostUse {
    /// The frames that a device of the host receives. An argument names the device.
    Receives,
    /// A device of the host, to send frames. An argument names the device.
    Sends,
    /// A device of the host that the router creates. An argument names the device.
    Creates,
    /// Filters that hide the frames of devices from the host's own network stack.
    Hides,
    /// A raw socket, which gets packets beside the host's own network stack.
    RawSocket,
    /// Sockets of the host: TCP, UDP or Unix.
    Sockets,
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
    /// The name of the Rust type in this module.
    pub type_name: &'static str,
    /// The documentation comment: a summary line, then Markdown.
    pub doc: &'static str,
    /// The port count code, such as `1/1-2`.
    pub ports: &'static str,
    /// The processing code, such as `a/ah`.
    pub processing: &'static str,
    /// The flow code, such as `x/x`.
    pub flow: &'static str,
    /// The packet type code, such as `ip/same` (see [`packets`](crate::packets)).
    pub packets: &'static str,
    /// Other packet type codes, each with the condition on an element's arguments under which it applies in place of
    /// `packets` (see [`crate::packets::holds`]). The first condition that holds decides.
    pub packets_if: &'static [(&'static str, &'static str)],
    /// The alignment code, such as `4 0` (see [`alignment`](crate::alignment)). Empty if the alignment of packets that
    /// leave follows from `packets`.
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
    /// How the class handles partial checksums and super-packets.
    pub offload: Offload,
    /// Outside effects that an element of the class may have.
    pub effects: Effects,
    /// Whether and how an element takes another configuration while the router runs.
    pub reconfigure: Reconfigure,
    /// Whether `config` follows the handlers of arguments: a write to such a handler also changes the
    /// argument in the text of `config`.
    pub config_follows: bool,
    /// The state that a hot swap moves to the new element, in words; empty if there is none.
    pub takes_state: &'static str,
    /// The counts that elements of the class keep. The counts of replicas are added, and a hot swap moves counts.
    pub counts: &'static [CountSpec],
    /// The reasons for which elements of the class may drop packets.
    pub drops: &'static [Reason],
    /// The entries that elements of the class make in the ledger.
    pub ledger_role: LedgerRole,
    /// The drop reasons that mark the intended end of a packet, such as [`Reason::Discarded`]. Packets dropped for
    /// these reasons count as having left.
    pub ends: &'static [Reason],
    /// The capabilities by which other elements can find elements of the class.
    pub capabilities: &'static [Capability],
    /// What elements of the class use of the host.
    pub host: &'static [HostUse],
    /// Whether elements of the class run a task.
    pub task: bool,
    /// Whether elements of the class may emit a copy of a packet in addition to the packet itself.
    pub copies: bool,
    /// Whether packets on an element's last output are processed before those on the outputs before it, as when a
    /// switch floods a packet.
    pub descending: bool,
    /// Whether elements of the class are queues that a task may pull from, first in, first out, without side outputs for
    /// pulled packets.
    pub fifo: bool,
    /// What the work of an element on a packet depends on.
    pub depends: Depends,
    /// Whether the work of an element on packets may also depend on the time. Matters only if `depends` is not
    /// [`Depends::Anything`].
    pub clock: bool,
    /// Whether elements of the class are configured before all others. They hold information that the others can use,
    /// such as the addresses of AddressInfo.
    pub information: bool,
}

impl ClassSpec {
    /// The first line of the documentation, which is a summary.
    pub fn summary(&self) -> &'static str {
        self.doc.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("")
    }
    /// The first configuration in the section `# Example` of the documentation.
    pub fn example(&self) -> Option<&'static str> {
        let (_, rest) = self.doc.split_once("# Example")?;
        let (_, rest) = rest.split_once("```click\n")?;
        rest.split_once("```").map(|(example, _)| example)
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
    /// Returns the packet type code of an element with this configuration string. The code refers to no arguments.
    /// Returns [`PacketCode::ANY`] if the declared code is malformed.
    pub fn packet_code(&self, config: &str) -> PacketCode {
        let given = Given::new(config, self.args);
        let other = self.packets_if.iter().find(|(condition, _)| holds(condition, &given));
        let code = other.map_or(self.packets, |(_, code)| code);
        PacketCode::parse(code).map_or(PacketCode::ANY, |code| code.resolved(&given))
    }
    /// Whether the packet type code of an element depends on its arguments.
    pub fn packet_code_varies(&self) -> bool {
        !self.packets_if.is_empty()
            || PacketCode::parse(self.packets).is_some_and(|code| code.depends_on_args())
    }
    /// Whether elements of the class use this of the host.
    pub fn uses(&self, what: HostUse) -> bool {
        self.host.contains(&what)
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
