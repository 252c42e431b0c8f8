// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ports of a bridge in the spanning tree protocol.

use super::bpdu::{BridgeId, Priority};

/// The priority of ports, as the upper byte of a port identifier.
const PORT_PRIORITY: u16 = 0x8000;

/// The state of a port: what it does with frames (section 8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Ignores data frames, because the port is not part of the tree.
    Blocking,
    /// Ignores data frames, and waits: messages from other bridges could still change the port's role.
    Listening,
    /// Learns the ports of stations from frames, but relays no frames.
    Learning,
    /// Learns, and relays frames.
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

/// The role of a port in the spanning tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The bridge's port with the best path to the root.
    Root,
    /// The port through which its LAN reaches the root.
    Designated,
    /// A port that is not part of the tree.
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
    /// The identifier of the port: the priority in the upper byte, the port's number in the lower byte.
    pub(super) id: u16,
    /// The current state of the port.
    pub(super) state: PortState,
    /// The best priority vector received on this port. If the port is designated, the vector that this bridge sends on
    /// it.
    pub(super) best: Priority,
    /// The time at which the message with the vector `best` had age 0: its arrival time minus its age. `None` while the
    /// port is designated.
    pub(super) born: Option<i64>,
    /// The time at which the port enters its next state; `None` if it stays in its state.
    pub(super) advance: Option<i64>,
    /// The time at which the next configuration message may be sent; `None` if one may be sent now.
    pub(super) hold: Option<i64>,
    /// Whether a configuration message must be sent at the time `hold`.
    pub(super) pending: bool,
    /// Whether the next configuration message must acknowledge a notification.
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
