// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ports of a bridge in the spanning tree protocol.

use super::bpdu::{BridgeId, Priority};

/// Priority of ports, in the upper byte of their identifier.
const PORT_PRIORITY: u16 = 0x8000;

/// The state of a port: what it does with frames (section 8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Ignores frames, because another bridge or port is nearer to the root.
    Blocking,
    /// Ignores data frames, to leave time for messages of other bridges that could change the port's role.
    Listening,
    /// Learns where stations are, but relays nothing.
    Learning,
    /// Learns and relays.
    Forwarding,
}

impl PortState {
    /// Returns the name of the state.
    pub fn name(self) -> &'static str {
        match self {
            PortState::Blocking => "blocking",
            PortState::Listening => "listening",
            PortState::Learning => "learning",
            PortState::Forwarding => "forwarding",
        }
    }
}

/// The role of a port in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The port that leads to the root.
    Root,
    /// The port that connects its LAN to the root.
    Designated,
    /// Not part of the tree.
    Alternate,
}

impl Role {
    /// Returns the name of the role.
    pub fn name(self) -> &'static str {
        match self {
            Role::Root => "root",
            Role::Designated => "designated",
            Role::Alternate => "alternate",
        }
    }
}

/// A port of a bridge.
#[derive(Clone, Debug)]
pub(super) struct Port {
    /// The identifier of the port: its priority in the upper byte, its number in the lower.
    pub(super) id: u16,
    /// Its state.
    pub(super) state: PortState,
    /// The best values that were heard on this port. If the port is designated: the values that this bridge
    /// itself sends on it.
    pub(super) best: Priority,
    /// When the message with the values in `best` had age 0: the time of its arrival minus its age. `None`
    /// while the port is designated.
    pub(super) born: Option<i64>,
    /// When the port enters its next state; `None` if it stays in its state.
    pub(super) advance: Option<i64>,
    /// When the next configuration message may be sent; `None` if one may be sent now.
    pub(super) hold: Option<i64>,
    /// Whether a configuration message is to be sent when `hold` is over.
    pub(super) pending: bool,
    /// Whether a notification is to be acknowledged.
    pub(super) acknowledge: bool,
}

impl Port {
    /// Makes port number `index` of a bridge that has just been switched on and considers itself the root.
    pub(super) fn new(index: usize, bridge: BridgeId) -> Port {
        let id = PORT_PRIORITY | (index as u16).saturating_add(1);
        Port {
            id,
            state: PortState::Blocking,
            best: Priority { root: bridge, cost: 0, bridge, port: id },
            born: None,
            advance: None,
            hold: None,
            pending: false,
            acknowledge: false,
        }
    }
}
