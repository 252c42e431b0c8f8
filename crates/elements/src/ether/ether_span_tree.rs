// SPDX-License-Identifier: MIT OR Apache-2.0
//! EtherSpanTree: the spanning tree protocol, which breaks cycles among switches.

mod args;
#[cfg(test)]
mod tests;

use super::ether_switch::relay::Control;
use super::port_flags::PortFlags;
use super::spanning_tree::bpdu::{Bpdu, BridgeId};
use super::spanning_tree::protocol::{Bridge, MAX_PORTS, PortState};
use castanet_element::prelude::*;
use castanet_wire::EtherAddr;
use parking_lot::Mutex;
use std::sync::Arc;

/// Takes part in the spanning tree protocol of Ethernet bridges (IEEE 802.1D-1998 section 8).
///
/// The bridges of a LAN agree on a tree, and ports that are not part of it block, so that frames do not circulate. When
/// a connection of the tree fails, another one replaces it. The bridge consists of this element, a switch, and two
/// Suppressors, one before and one after the switch. Port N of each of them is port N of the bridge. A port that is
/// blocking or listening is suppressed in both Suppressors. A learning port lets frames in: the switch learns from
/// them, but does not relay them. A forwarding port is active in both. While the topology changes, the switch forgets
/// an address if no frame has come from it during the forward delay that the root sets.
///
/// By default the bridge has a worse priority than most bridges, so another bridge becomes the root and sets the times.
/// Messages that are malformed or too old are dropped. Times in messages are limited to the range of the standard. At
/// most one configuration message a second leaves on each port, whatever is received.
///
/// # Ports
/// Inputs 0, 1, ...: frames to 01-80-C2-00-00-00 from each port. Outputs 0, 1, ...: messages for each port.
///
/// # Example
/// ```click
/// // Two ports on one wire: one of them blocks.
/// in, out :: Suppressor;
/// switch :: EtherSwitch;
/// tree :: EtherSpanTree(02:00:00:00:00:01, in, out, switch, FORWARD_DELAY 4, MAX_AGE 6);
/// Idle -> [0] in [0] -> [0] switch [0] -> [0] out [0] -> Discard;
/// Idle -> [1] in [1] -> [1] switch [1] -> [1] out [1] -> Discard;
/// tree [0] -> [1] tree;
/// tree [1] -> [0] tree;
/// DriverManager(wait 20, print tree.msgs, print $(out.active0) $(out.active1), stop);
/// ```
#[derive(Class)]
#[class(ledger(makes))]
#[class(name = "EtherSpanTree", ports = "-/=", processing = "h/h", packets = "ether/ether")]
#[class(takes_state = "roles and states of ports, when the bridge and its times are the same")]
#[class(workers = share, drops(BadBpdu, Consumed), build, lifecycle, handlers)]
pub struct EtherSpanTree {
    args: args::Args,
    shared: Arc<Shared>,
    ports: usize,
    /// Whether this replica is the one that sets the timer.
    first: bool,
    /// Whether the element has several replicas.
    several: bool,
}

/// The state that the replicas share. Messages are rare, so a lock is fast enough.
struct Shared {
    bridge: Mutex<Option<Bridge>>,
    input: Arc<PortFlags>,
    output: Arc<PortFlags>,
    switch: Arc<Control>,
}

/// The maximum time between two runs of the timer, in nanoseconds, if the element has several replicas. Only one
/// replica sets the timer, and a message that another replica receives may require an earlier run.
const LOOK: i64 = 1_000_000_000;

impl Build for EtherSpanTree {
    fn build(args: args::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if cx.inputs > MAX_PORTS {
            return Err(format!("at most {MAX_PORTS} ports").into());
        }
        args.check()?;
        let input = cx.share_as(args.input_suppressor.0, PortFlags::default);
        let output = cx.share_as(args.output_suppressor.0, PortFlags::default);
        let switch = cx.share_as(args.switch.0, Control::default);
        let (first, several, ports) = (cx.replica.0 == 0, cx.replica.1 > 1, cx.inputs);
        let shared = cx.share(|| Shared { bridge: Mutex::new(None), input, output, switch });
        Ok(EtherSpanTree { args, shared, ports, first, several })
    }
}

impl Shared {
    /// Opens and closes ports as the states of the bridge's ports require. `wake` is called with the notifiers of
    /// Suppressors whose ports were opened. Returns whether anything has changed.
    fn apply(&self, bridge: &Bridge, wake: impl FnMut(Note)) -> bool {
        let (mut opened, mut changed) = ([false; 2], false);
        let mut set = |flags: &PortFlags, port, value| {
            let before = flags.set(port, value);
            changed |= before != value;
            before
        };
        for port in 0..bridge.ports() {
            let state = bridge.state(port);
            let (learning, forwarding) =
                (state == Some(PortState::Learning), state == Some(PortState::Forwarding));
            // Close the output side of a port first and open it last, so that nothing is relayed while the other flags
            // change.
            if !forwarding {
                set(&self.output, port, true);
            }
            set(&self.switch.learning, port, !forwarding);
            let open = learning || forwarding;
            opened[0] |= set(&self.input, port, !open) && open;
            if forwarding {
                opened[1] |= set(&self.output, port, false);
            }
        }
        let flags = [&self.input, &self.output].into_iter().zip(opened);
        flags.filter(|f| f.1).filter_map(|f| f.0.to_wake()).for_each(wake);
        self.switch.hurry(bridge.hurry().unwrap_or(0)) || changed
    }
}

impl EtherSpanTree {
    /// Calls `f` with the bridge. Then applies the states of its ports, sends its messages, and sets the timer.
    fn with(&mut self, cx: &mut Cx<'_>, f: impl FnOnce(&mut Bridge)) {
        let mut guard = self.shared.bridge.lock();
        let Some(bridge) = guard.as_mut() else { return };
        f(bridge);
        if self.shared.apply(bridge, |note| cx.set_note(note)) {
            cx.renew_kernel();
        }
        for (port, message) in bridge.sent() {
            let frame = message.frame(self.args.addr);
            // If no buffer is free, this message is skipped. The bridge sends messages regularly.
            let Some(mut p) = Packet::copy_of(&frame) else { continue };
            p.set_mac_header(0);
            let now = cx.now();
            p.set_timestamp(now);
            cx.made(1);
            cx.emit(port, p);
        }
        if self.first {
            let now = cx.now();
            // A message that another worker receives may require an action before `bridge.next`, so this replica checks
            // again after LOOK at the latest.
            let look = self.several.then_some(now.saturating_add(LOOK));
            if let Some(next) = bridge.next().into_iter().chain(look).min() {
                cx.set_timer(0, next.max(now));
            }
        }
    }
}

impl Element for EtherSpanTree {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            let Some(message) = Bpdu::parse(p.data()) else {
                cx.drop(p, Reason::BadBpdu);
                continue;
            };
            cx.drop(p, Reason::Consumed);
            let now = cx.now();
            self.with(cx, |bridge| {
                bridge.expire(now);
                bridge.receive(port, message, now);
            });
        }
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.with(cx, |bridge| bridge.expire(now));
    }
}

#[handlers]
impl EtherSpanTree {
    /// The identifiers of the bridge and of the root, then one line for each port: role, state, best message.
    #[read]
    fn msgs(&self) -> Table {
        let guard = self.shared.bridge.lock();
        let Some(bridge) = guard.as_ref() else { return Table::default() };
        let (root, cost) = bridge.root();
        let mut text = format!("bridge {}, root {root}, cost {cost}\n", bridge.id());
        for port in 0..bridge.ports() {
            if let (Some(role), Some(state), Some(best)) =
                (bridge.role(port), bridge.state(port), bridge.best(port))
            {
                let (role, state) = (role.name(), state.name());
                let said = format!(
                    "root {}, cost {}, bridge {}, port {:04x}",
                    best.root, best.cost, best.bridge, best.port
                );
                text.push_str(&format!("{port} {role} {state}: {said}\n"));
            }
        }
        Table(text)
    }
}

impl Lifecycle for EtherSpanTree {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        let shared = &self.shared;
        for (name, flags) in [
            ("INPUT_SUPPRESSOR", shared.input.as_ref()),
            ("OUTPUT_SUPPRESSOR", shared.output.as_ref()),
            ("SWITCH", &shared.switch.learning),
        ] {
            if let Some(n) = flags.count().filter(|n| *n != self.ports) {
                return Err(format!("{name}: has {n} ports, but {} are wanted", self.ports).into());
            }
        }
        let mut bridge = self.shared.bridge.lock();
        if bridge.is_none() {
            let id = BridgeId::new(self.args.bridge_priority, self.args.addr);
            let made = Bridge::new(id, self.args.times(), self.args.path_cost, self.ports, cx.now());
            self.shared.apply(&made, |note| cx.set_note(note));
            *bridge = Some(made);
        }
        if self.first {
            let now = cx.now();
            cx.set_timer(0, now);
        }
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        // If the address, priority, path cost, times or number of ports differ, this is another bridge. Its ports then
        // start in the listening state, and the states of the old ports are not taken over.
        if Arc::ptr_eq(&self.shared, &old.shared) || self.ports != old.ports || !self.args.is_like(&old.args)
        {
            return Ok(());
        }
        let Some(bridge) = old.shared.bridge.lock().take() else { return Ok(()) };
        self.shared.apply(&bridge, |note| cx.set_note(note));
        *self.shared.bridge.lock() = Some(bridge);
        if self.first {
            let now = cx.now();
            cx.set_timer(0, now);
        }
        Ok(())
    }
}

/// The switch (if `SWITCH`) or Suppressor that an argument names, as an element number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<const SWITCH: bool>(u32);

impl<const SWITCH: bool> ArgValue for Named<SWITCH> {
    const TYPE: &'static str = if SWITCH { "EtherSwitch" } else { "Suppressor" };
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        let found = ElementRef::parse(text, cx)?;
        let wanted: &[&str] = if SWITCH { &["EtherSwitch", "ListenEtherSwitch"] } else { &["Suppressor"] };
        match cx.names.element_class(cx.scope, text) {
            Some((_, class)) if !wanted.contains(&class) => {
                Err(format!("'{text}' is of class {class}, not {}", Self::TYPE).into())
            }
            _ => u32::try_from(found.0).map(Named).map_err(|_| "no such element".into()),
        }
    }
}

/// Whether an address can identify a bridge: it must be neither a group address nor zero.
fn is_station(address: EtherAddr) -> bool {
    !address.is_group() && address != EtherAddr::ZERO
}
