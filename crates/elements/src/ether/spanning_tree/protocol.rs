// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spanning tree protocol of one bridge (IEEE 802.1D-1998 section 8). Its inputs are messages and the time, and its
//! outputs are messages and the states of ports. It is independent of elements and packets.

use super::bpdu::{Bpdu, BridgeId, Config, Priority, Times};
use super::port::Port;
pub use super::port::{PortState, Role};

/// One second, in nanoseconds.
pub const SECOND: i64 = 1_000_000_000;
/// The minimum time between two configuration messages on a port, in nanoseconds (table 8-3).
const HOLD: i64 = SECOND;
/// When a bridge passes the root's information on, it increases the age of the information by this value and by the
/// time since it received the information (section 8.10.2). The value is one unit of the age field, in nanoseconds.
const PASSED_ON: i64 = SECOND / 256;
/// The maximum number of ports of a bridge: a port identifier has 8 bits for the number (section 8.5.5.1).
pub const MAX_PORTS: usize = 255;

/// The state of the spanning tree protocol in one bridge.
#[derive(Clone, Debug)]
pub struct Bridge {
    id: BridgeId,
    /// The times that apply while this bridge is the root.
    own: Times,
    /// The times that apply now. The current root has set them.
    times: Times,
    path_cost: u32,
    ports: Vec<Port>,
    root: BridgeId,
    cost: u32,
    root_port: Option<usize>,
    /// Whether this bridge has detected a topology change that the root has not acknowledged yet.
    detected: bool,
    /// Whether the root says that the topology is changing.
    change: bool,
    hello: Option<i64>,
    notify: Option<i64>,
    change_end: Option<i64>,
    sent: Vec<(usize, Bpdu)>,
}

/// Returns the earlier of two times. `None` is later than any time.
fn earlier(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a.into_iter().chain(b).min()
}

/// Whether the time `at` has come. Never if `at` is `None`.
fn due(at: Option<i64>, now: i64) -> bool {
    at.is_some_and(|t| t <= now)
}

/// Limits times to those that a root may set for other bridges (table 8-3). As an exception, forward delays from 2
/// seconds on are allowed, because such delays are in use. Times outside the limits would let ports forward too early,
/// or keep messages valid for too long.
fn bounded(t: Times) -> Times {
    Times {
        max_age: t.max_age.clamp(6 * SECOND, 40 * SECOND),
        hello: t.hello.clamp(SECOND, 10 * SECOND),
        forward_delay: t.forward_delay.clamp(2 * SECOND, 30 * SECOND),
    }
}

impl Bridge {
    /// Makes a bridge that has just been switched on. All its ports listen, and it considers itself the root.
    pub fn new(id: BridgeId, times: Times, path_cost: u32, ports: usize, now: i64) -> Bridge {
        let mut bridge = Bridge {
            id,
            own: times,
            times,
            // The cost must be at least 1. With 0, this bridge would claim to be as near to the root as the neighbour
            // through which it reaches the root.
            path_cost: path_cost.max(1),
            ports: (0..ports.min(MAX_PORTS)).map(|i| Port::new(i, id)).collect(),
            root: id,
            cost: 0,
            root_port: None,
            detected: false,
            change: false,
            hello: None,
            notify: None,
            change_end: None,
            sent: Vec::new(),
        };
        bridge.select_states(now);
        bridge.send_configs(now);
        bridge.hello = Some(now.saturating_add(times.hello));
        bridge
    }

    /// Takes the messages that are to be sent, each with its port.
    pub fn sent(&mut self) -> std::vec::Drain<'_, (usize, Bpdu)> {
        self.sent.drain(..)
    }
    /// Returns the state of a port.
    pub fn state(&self, port: usize) -> Option<PortState> {
        self.ports.get(port).map(|p| p.state)
    }
    /// Returns the role of a port in the tree.
    pub fn role(&self, port: usize) -> Option<Role> {
        let p = self.ports.get(port)?;
        Some(match self.root_port == Some(port) {
            true => Role::Root,
            false if self.is_designated(p) => Role::Designated,
            false => Role::Alternate,
        })
    }
    /// Returns the best priority vector known at a port.
    pub fn best(&self, port: usize) -> Option<Priority> {
        self.ports.get(port).map(|p| p.best)
    }
    /// Returns the number of ports.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }
    /// Returns the identifier of this bridge.
    pub fn id(&self) -> BridgeId {
        self.id
    }
    /// Returns the bridge that this bridge considers the root, and the cost of the path to it.
    pub fn root(&self) -> (BridgeId, u32) {
        (self.root, self.cost)
    }
    /// Returns how long addresses may be remembered, in nanoseconds, while the topology changes (section 7.9.2). `None`
    /// while it does not change.
    pub fn hurry(&self) -> Option<i64> {
        self.change.then_some(self.times.forward_delay)
    }

    /// Returns the time at which [`Bridge::expire`] must be called next.
    pub fn next(&self) -> Option<i64> {
        let max_age = self.times.max_age;
        let ports = self.ports.iter().flat_map(|p| {
            let old = p.born.map(|b| b.saturating_add(max_age));
            [old, p.advance, p.hold.filter(|_| p.pending)]
        });
        let bridge = [self.hello, self.notify, self.change_end];
        ports.chain(bridge).fold(None, earlier)
    }

    /// Performs all actions that are due (sections 8.7.3 to 8.7.8).
    pub fn expire(&mut self, now: i64) {
        for i in 0..self.ports.len() {
            let Some(p) = self.ports.get_mut(i) else { return };
            let old = p.born.map(|b| b.saturating_add(self.times.max_age));
            let (held, advances) = (due(p.hold, now), due(p.advance, now));
            if held {
                p.hold = None;
            }
            if due(old, now) {
                self.forget(i, now);
            }
            if advances {
                self.advance(i, now);
            }
            if held && self.ports.get(i).is_some_and(|p| p.pending) {
                self.send_config(i, now);
            }
        }
        if due(self.hello, now) {
            self.hello = Some(now.saturating_add(self.times.hello));
            self.send_configs(now);
        }
        if due(self.notify, now) {
            self.notify = Some(now.saturating_add(self.own.hello));
            self.send_change();
        }
        if due(self.change_end, now) {
            (self.detected, self.change, self.change_end) = (false, false, None);
        }
    }

    /// Receives a message (sections 8.7.1 and 8.7.2).
    pub fn receive(&mut self, port: usize, message: Bpdu, now: i64) {
        let Some(p) = self.ports.get(port) else { return };
        match message {
            Bpdu::Change if self.is_designated(p) => {
                self.detect_change(now);
                if let Some(p) = self.ports.get_mut(port) {
                    p.acknowledge = true;
                }
                self.send_config(port, now);
            }
            Bpdu::Change => {}
            Bpdu::Config(c) => {
                let c = Config { times: bounded(c.times), ..c };
                if c.age < 0 || c.age >= c.times.max_age {
                    return;
                }
                if self.supersedes(p, c.priority) {
                    self.believe(port, c, now);
                } else if self.is_designated(p) {
                    self.send_config(port, now);
                }
            }
        }
    }

    fn is_root(&self) -> bool {
        self.root_port.is_none()
    }
    fn is_designated(&self, p: &Port) -> bool {
        p.best.bridge == self.id && p.best.port == p.id
    }

    /// Whether the priority vector of a message is at least as good as the one known at a port (section 8.6.2.2).
    fn supersedes(&self, p: &Port, said: Priority) -> bool {
        let rank = |p: Priority| (p.root, p.cost, p.bridge);
        match rank(said).cmp(&rank(p.best)) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => said.bridge != self.id || said.port <= p.best.port,
            std::cmp::Ordering::Greater => false,
        }
    }

    /// Stores the information of a message as the best known at a port, and acts on it (section 8.7.1.1).
    fn believe(&mut self, port: usize, c: Config, now: i64) {
        let was_root = self.is_root();
        if let Some(p) = self.ports.get_mut(port) {
            p.best = c.priority;
            p.born = Some(now.saturating_sub(c.age));
        }
        self.update(now);
        if was_root && !self.is_root() {
            self.hello = None;
            if self.detected {
                self.change_end = None;
                self.send_change();
                self.notify = Some(now.saturating_add(self.own.hello));
            }
        }
        if self.root_port == Some(port) {
            self.times = c.times;
            self.change = c.change;
            self.send_configs(now);
            if c.acknowledged {
                (self.detected, self.notify) = (false, None);
            }
        }
    }

    /// Discards the information that a port has from a message, because the message is too old (section 8.7.5). The
    /// port becomes designated.
    fn forget(&mut self, port: usize, now: i64) {
        let was_root = self.is_root();
        let own = Priority { root: self.root, cost: self.cost, bridge: self.id, port: 0 };
        if let Some(p) = self.ports.get_mut(port) {
            p.best = Priority { port: p.id, ..own };
            p.born = None;
        }
        self.update(now);
        if !was_root && self.is_root() {
            self.times = self.own;
            self.detect_change(now);
            self.notify = None;
            self.send_configs(now);
            self.hello = Some(now.saturating_add(self.times.hello));
        }
    }

    /// Chooses the root, the root port, and the designated ports (section 8.6.7).
    fn update(&mut self, now: i64) {
        let candidates = self.ports.iter().enumerate().filter_map(|(i, p)| {
            let cost = p.best.cost.checked_add(self.path_cost)?;
            let wanted = !self.is_designated(p) && p.best.root < self.id;
            wanted.then_some(((p.best.root, cost, p.best.bridge, p.best.port, p.id), i))
        });
        (self.root, self.cost, self.root_port) = match candidates.min() {
            Some(((root, cost, ..), i)) => (root, cost, Some(i)),
            None => (self.id, 0, None),
        };
        let (root, cost, bridge) = (self.root, self.cost, self.id);
        for p in &mut self.ports {
            let own = Priority { root, cost, bridge, port: p.id };
            let designated = p.best.bridge == bridge && p.best.port == p.id;
            if designated || p.best.root != root || own <= p.best {
                p.best = own;
            }
        }
        self.select_states(now);
    }

    /// Sets the states of ports as their roles in the tree require (section 8.6.11).
    fn select_states(&mut self, now: i64) {
        let (id, root_port, delay) = (self.id, self.root_port, self.times.forward_delay);
        let mut lost = false;
        for (i, p) in self.ports.iter_mut().enumerate() {
            let designated = p.best.bridge == id && p.best.port == p.id;
            if designated && root_port != Some(i) {
                p.born = None;
            } else {
                p.pending = false;
                p.acknowledge = false;
            }
            if designated || root_port == Some(i) {
                if p.state == PortState::Blocking {
                    p.state = PortState::Listening;
                    p.advance = Some(now.saturating_add(delay));
                }
            } else {
                lost |= matches!(p.state, PortState::Learning | PortState::Forwarding);
                p.state = PortState::Blocking;
                p.advance = None;
            }
        }
        if lost {
            self.detect_change(now);
        }
    }

    /// Moves a port to its next state if the time for that has come (section 8.7.6).
    fn advance(&mut self, port: usize, now: i64) {
        let delay = self.times.forward_delay;
        let Some(p) = self.ports.get_mut(port) else { return };
        // Check `p.advance` again: a message may have expired at the same time, and that may have changed `p.advance`.
        if !due(p.advance, now) {
            return;
        }
        (p.state, p.advance) = match p.state {
            PortState::Listening => (PortState::Learning, Some(now.saturating_add(delay))),
            PortState::Learning => (PortState::Forwarding, None),
            other => (other, None),
        };
        let forwards = p.state == PortState::Forwarding;
        if forwards && self.ports.iter().any(|p| p.best.bridge == self.id) {
            self.detect_change(now);
        }
    }

    /// Records that the topology has changed (section 8.6.14).
    fn detect_change(&mut self, now: i64) {
        if self.is_root() {
            self.change = true;
            let time = self.own.max_age.saturating_add(self.own.forward_delay);
            self.change_end = Some(now.saturating_add(time));
        } else if !self.detected {
            self.send_change();
            self.notify = Some(now.saturating_add(self.own.hello));
        }
        self.detected = true;
    }

    /// Sends a topology change notification towards the root (section 8.6.6).
    fn send_change(&mut self) {
        if let Some(port) = self.root_port {
            self.sent.push((port, Bpdu::Change));
        }
    }

    /// Sends configuration messages on all designated ports (section 8.6.4).
    fn send_configs(&mut self, now: i64) {
        for i in 0..self.ports.len() {
            if self.ports.get(i).is_some_and(|p| self.is_designated(p)) {
                self.send_config(i, now);
            }
        }
    }

    /// Sends a configuration message, or records that it is to be sent after the hold time (section 8.6.1).
    fn send_config(&mut self, port: usize, now: i64) {
        let heard = self.root_port.and_then(|r| self.ports.get(r)?.born);
        let age = heard.map_or(0, |born| now.saturating_sub(born).max(0).saturating_add(PASSED_ON));
        let Some(p) = self.ports.get_mut(port) else { return };
        if p.hold.is_some_and(|h| h > now) {
            p.pending = true;
            return;
        }
        p.pending = false;
        if age >= self.times.max_age {
            return;
        }
        let priority = Priority { root: self.root, cost: self.cost, bridge: self.id, port: p.id };
        let acknowledged = std::mem::take(&mut p.acknowledge);
        p.hold = Some(now.saturating_add(HOLD));
        let config = Config { priority, change: self.change, acknowledged, age, times: self.times };
        self.sent.push((port, Bpdu::Config(config)));
    }
}
