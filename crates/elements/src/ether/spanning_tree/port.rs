// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ports of a bridge in the spanning tree protocol.

use super::bpdu::{BridgeId, Priority};

/// Priority of ports, in the upper byte of their identifier.
const PORT_PRIORITY: u16 = 0x8000;

/// The state of a port: what it does with frames (section 8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Nothing: another bridge, or another port, is nearer to the root.
    Blocking,
    /// Nothing yet, while messages of other bridges may still come.
    Listening,
    /// Learns where stations are.
    Learning,
    /// Learns and relays.
    Forwarding,
}

impl PortState {
    /// The word for it.
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
    /// The way to the root.
    Root,
    /// The way from the root for what is connected here.
    Designated,
    /// No part of the tree.
    Alternate,
}

impl Role {
    /// The word for it.
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
    /// Priority and number.
    pub(super) id: u16,
    /// Its state.
    pub(super) state: PortState,
    /// The best that was heard here, or what this bridge says here itself.
    pub(super) best: Priority,
    /// When what was heard had age 0.
    pub(super) born: Option<i64>,
    /// When the next state comes.
    pub(super) advance: Option<i64>,
    /// Until when no configuration message may be sent.
    pub(super) hold: Option<i64>,
    /// Whether one is to be sent then.
    pub(super) pending: bool,
    /// Whether a notification is to be acknowledged.
    pub(super) acknowledge: bool,
}

impl Port {
    /// Port number `index` of a bridge that has just been switched on and takes itself for the root.
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
