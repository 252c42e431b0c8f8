// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for spanning tree messages from untrusted bridges.

use super::at_most;
use castanet_elements::ether::spanning_tree::bpdu::{
    Bpdu, BridgeId, Config, EtherAddr, FRAME, Priority, Times,
};
use castanet_elements::ether::spanning_tree::protocol::{Bridge, PortState, Role, SECOND};

/// The number of the bridge's ports.
const PORTS: usize = 3;
/// The address of the bridge itself.
const ME: EtherAddr = EtherAddr([2, 0, 0, 0, 0, 5]);

/// Passes frames to a bridge. Two bytes precede each frame. The low two bits of the first byte are the port. The other
/// bits of the first byte are the time to advance before the frame, in quarters of a second. The second byte is the
/// length of the frame.
pub fn bpdu(data: &[u8]) {
    let mut data = at_most(data, 1 << 14);
    let id = BridgeId::new(0x8000, ME);
    let times = Times { max_age: 20 * SECOND, hello: 2 * SECOND, forward_delay: 15 * SECOND };
    let mut bridge = Bridge::new(id, times, 4, PORTS, 0);
    let (mut now, mut configs) = (0, [0; PORTS]);
    while let [what, length, rest @ ..] = data {
        let (frame, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        data = rest;
        let until = now + i64::from(what >> 2) * SECOND / 4;
        while let Some(t) = bridge.next().filter(|t| *t <= until) {
            now = t.max(now);
            bridge.expire(now);
        }
        now = until;
        if let Some(message) = Bpdu::parse(frame) {
            let again = message.frame(ME);
            assert_eq!(Bpdu::parse(&again), Some(message), "it parses to the same message");
            assert_eq!(again.len(), FRAME);
            bridge.receive(usize::from(what & 3), message, now);
        }
        for (port, message) in bridge.sent() {
            if let (Some(n), Bpdu::Config(c)) = (configs.get_mut(port), message) {
                *n += 1;
                assert!(c.priority.bridge == id && c.priority.root <= id && c.age < c.times.max_age);
            }
        }
        sane(&bridge, id);
        // The hold time (IEEE 802.1D-1998 table 8-3) permits one configuration message per port and second.
        assert!(configs.iter().all(|n| i64::from(*n) <= now / SECOND + 1), "{configs:?} until {now}");
    }
}

/// Checks invariants that hold whatever messages were received.
fn sane(bridge: &Bridge, id: BridgeId) {
    let (root, cost) = bridge.root();
    assert_eq!(root == id, cost == 0);
    let roots = (0..PORTS).filter(|p| bridge.role(*p) == Some(Role::Root)).count();
    assert_eq!(roots, usize::from(root != id));
    for port in 0..PORTS {
        let blocks = bridge.state(port) == Some(PortState::Blocking);
        assert_eq!(bridge.role(port) == Some(Role::Alternate), blocks);
    }
}

/// Returns seed inputs: a root, a loop, topology changes, false times, truncated messages.
pub fn seeds() -> Vec<Vec<u8>> {
    let config = |n: u8, port: u16, seconds: [i64; 4]| {
        let root = BridgeId::new(0x8000, EtherAddr([2, 0, 0, 0, 0, n]));
        let [age, max_age, hello, forward_delay] = seconds.map(|s| s * SECOND);
        let times = Times { max_age, hello, forward_delay };
        let priority = Priority { root, cost: 0, bridge: root, port };
        Bpdu::Config(Config { priority, change: false, acknowledged: n == 1, age, times }).frame(ME)
    };
    let record = |port: u8, quarters: u8, frame: &[u8]| {
        [&[port | quarters << 2, u8::try_from(frame.len()).unwrap_or(u8::MAX)][..], frame].concat()
    };
    let (usual, change) = ([0, 20, 2, 15], Bpdu::Change.frame(ME));
    vec![
        [record(0, 4, &config(1, 0x8001, usual)), record(1, 8, &config(1, 0x8002, usual))].concat(),
        [record(1, 1, &config(5, 0x8001, usual)), record(0, 40, &config(5, 0x8002, usual))].concat(),
        [record(0, 63, &change), record(1, 63, &change), record(0, 0, &config(1, 0x8001, usual))].concat(),
        [record(0, 0, &config(0, 0, [0, 255, 0, 0])), record(2, 63, &config(1, 1, [5, 6, 200, 255]))]
            .concat(),
        [record(0, 1, &change[..20]), record(3, 1, &config(9, 1, usual)[..51])].concat(),
    ]
}
