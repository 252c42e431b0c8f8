// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of EtherSpanTree.

use super::{Named, is_station};
use crate::ether::spanning_tree::bpdu::Times;
use crate::ether::spanning_tree::protocol::SECOND;
use castanet_element::prelude::*;
use castanet_wire::EtherAddr;

/// Arguments of EtherSpanTree.
#[derive(Args)]
pub struct Args {
    /// The Ethernet address of the bridge.
    pub(super) addr: EtherAddr,
    /// The Suppressor that frames pass before the switch.
    pub(super) input_suppressor: Named<false>,
    /// The Suppressor that frames pass after the switch.
    pub(super) output_suppressor: Named<false>,
    /// The switch, an EtherSwitch or ListenEtherSwitch.
    pub(super) switch: Named<true>,
    /// The priority of the bridge; the bridge with the lowest priority number becomes the root.
    #[arg(keyword, default = 0xdead, show = "0xdead")]
    pub(super) bridge_priority: u16,
    /// The path cost of each port: 19 for 100 Mb/s, 4 for 1 Gb/s, 2 for 10 Gb/s.
    #[arg(keyword, default = 4, min = 1)]
    pub(super) path_cost: u32,
    /// The forward delay if this bridge is the root, 2 to 30 seconds: how long a port listens, and then how long it
    /// learns, before it forwards.
    #[arg(keyword, default = Nanos(15 * SECOND), show = "15", min = Nanos(2 * SECOND), max = Nanos(30 * SECOND))]
    forward_delay: Nanos,
    /// The time between messages if this bridge is the root, 1 to 10 seconds.
    #[arg(keyword, default = Nanos(2 * SECOND), show = "2", min = Nanos(SECOND), max = Nanos(10 * SECOND))]
    hello_time: Nanos,
    /// How long a message is valid if this bridge is the root, 6 to 40 seconds.
    #[arg(keyword, default = Nanos(20 * SECOND), show = "20", min = Nanos(6 * SECOND), max = Nanos(40 * SECOND))]
    max_age: Nanos,
}

impl Args {
    /// Checks the arguments, except for the ranges of the times. These ranges are declared as `min` and `max` above,
    /// and are those of IEEE 802.1D-1998 section 8.10.2 and table 8-3.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !is_station(self.addr) {
            return Err("ADDR: must be the address of one station".into());
        }
        if self.input_suppressor == self.output_suppressor {
            return Err("INPUT_SUPPRESSOR and OUTPUT_SUPPRESSOR must be two elements".into());
        }
        Ok(())
    }
    /// Whether other arguments describe the same bridge, so that it can keep its state in a hot swap.
    pub(super) fn is_like(&self, other: &Args) -> bool {
        let bridge = |a: &Args| {
            (a.addr, a.bridge_priority, a.path_cost, [a.forward_delay, a.hello_time, a.max_age].map(|t| t.0))
        };
        bridge(self) == bridge(other)
    }
    /// Returns the times that apply while this bridge is the root.
    pub(super) fn times(&self) -> Times {
        Times { max_age: self.max_age.0, hello: self.hello_time.0, forward_delay: self.forward_delay.0 }
    }
}
