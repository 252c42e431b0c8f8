// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests spanning trees with random networks, disconnected ports, and false messages.
#![allow(clippy::unwrap_used)]

use super::bpdu::{Bpdu, BridgeId, Config, Priority, Times};
use super::lans::{Net, TIMES};
use super::protocol::{Bridge, MAX_PORTS, PortState, Role, SECOND};
use castanet_element::Random;
use castanet_wire::EtherAddr;

/// Connects the ports of bridges to random LANs. A bridge may have several ports on one LAN.
fn random_lans(random: &mut Random) -> Vec<Vec<Option<usize>>> {
    let bridges = 2 + random.below(8);
    let lans = 1 + random.below(12);
    (0..bridges)
        .map(|_| (0..1 + random.below(5)).map(|_| Some(random.below(lans) as usize)).collect())
        .collect()
}

fn check(net: &Net, what: &str) {
    assert_eq!(net.said(), net.tree(), "{what}");
    assert!(net.is_settled(), "{what}");
}

/// Enough time for all bridges to start, and for ports to pass from blocking to forwarding.
const SETTLED: i64 = 30 * SECOND;

#[test]
fn random_networks_become_trees_and_never_have_a_loop() {
    for seed in 0..100 {
        let mut random = Random::new(seed, "trees");
        let lans = random_lans(&mut random);
        let text = format!("seed {seed}: {lans:?}");
        let mut net = Net::new(lans, &mut random);
        net.run(SETTLED, |net| assert!(!net.has_loop(), "{text} at {}", net.now));
        check(&net, &text);
        // A port is disconnected from its LAN.
        let i = random.below(net.lans.len() as u64) as usize;
        let port = random.below(net.lans[i].len() as u64) as usize;
        net.lans[i][port] = None;
        net.run(3 * SETTLED, |net| assert!(!net.has_loop(), "{text}, cut {i} {port}, at {}", net.now));
        check(&net, &format!("{text}, cut {i} {port}"));
    }
}

#[test]
fn the_oracle_sees_a_loop() {
    // Without messages each bridge considers itself the root, and all ports forward.
    let mut random = Random::new(1, "loop");
    let mut net = Net::new(vec![vec![Some(0), Some(1)], vec![Some(0), Some(1)]], &mut random);
    net.run(10 * SECOND, |_| {});
    for b in net.bridges.iter_mut().flatten() {
        let id = b.id();
        *b = Bridge::new(id, TIMES, 1, 2, 0);
        b.expire(20 * SECOND);
        b.expire(40 * SECOND);
    }
    assert!(net.has_loop());
}

#[test]
fn few_messages_are_sent() {
    // In a ring of four bridges, one message per second is sent on each LAN, plus a few when the topology changes.
    let lans = (0..4).map(|i| vec![Some(i), Some((i + 1) % 4)]).collect();
    let mut net = Net::new(lans, &mut Random::new(1, "ring"));
    net.run(60 * SECOND, |_| {});
    let before = net.messages;
    net.run(160 * SECOND, |_| {});
    assert!((399..=404).contains(&(net.messages - before)), "{}", net.messages - before);
}

const ID: BridgeId = BridgeId::new(0x8000, EtherAddr([2, 0, 0, 0, 0, 5]));
const BETTER: BridgeId = BridgeId::new(0x8000, EtherAddr([2, 0, 0, 0, 0, 1]));
const LONG: Times = Times { max_age: 20 * SECOND, hello: 2 * SECOND, forward_delay: 15 * SECOND };

fn bridge(ports: usize) -> Bridge {
    Bridge::new(ID, LONG, 4, ports, 0)
}

fn claim(root: BridgeId) -> Config {
    let priority = Priority { root, cost: 0, bridge: root, port: 0x8001 };
    Config { priority, change: false, acknowledged: false, age: 0, times: LONG }
}

/// Makes a bridge perform all actions that are due up to a time.
fn pass(b: &mut Bridge, until: i64) {
    while let Some(t) = b.next().filter(|t| *t <= until) {
        b.expire(t);
    }
}

#[test]
fn states_follow_in_time() {
    let mut b = bridge(2);
    assert_eq!(b.sent().count(), 2);
    for (at, state) in [
        (0, PortState::Listening),
        (15 * SECOND - 1, PortState::Listening),
        (15 * SECOND, PortState::Learning),
        (30 * SECOND - 1, PortState::Learning),
        (30 * SECOND, PortState::Forwarding),
        (1000 * SECOND, PortState::Forwarding),
    ] {
        pass(&mut b, at);
        assert_eq!([b.state(0), b.state(1)], [Some(state); 2], "{at}");
    }
    // Each of the two ports sends a message every two seconds.
    assert_eq!(b.sent().count(), 1000);
    assert_eq!((b.state(2), b.role(2), b.best(2)), (None, None, None));
}

#[test]
fn a_better_root_is_followed_and_forgotten() {
    let mut b = bridge(2);
    pass(&mut b, 40 * SECOND);
    b.sent().count();
    b.receive(0, Bpdu::Config(Config { age: 5 * SECOND, ..claim(BETTER) }), 40 * SECOND);
    assert_eq!((b.root(), b.role(0), b.role(1)), ((BETTER, 4), Some(Role::Root), Some(Role::Designated)));
    // The message is passed on with a greater age, immediately or after the hold time of the port.
    let sent: Vec<_> = b.sent().collect();
    let passed = sent.iter().find_map(|(port, m)| match m {
        Bpdu::Config(c) if *port == 1 => Some(*c),
        _ => None,
    });
    let passed = passed.or_else(|| {
        pass(&mut b, 41 * SECOND);
        b.sent().find_map(|(_, m)| if let Bpdu::Config(c) = m { Some(c) } else { None })
    });
    let passed = passed.unwrap();
    assert_eq!((passed.priority.root, passed.priority.cost, passed.priority.bridge), (BETTER, 4, ID));
    assert!((5 * SECOND + 1..=6 * SECOND + SECOND / 256).contains(&passed.age), "{}", passed.age);
    // The message was five seconds old. Fifteen seconds later it expires, and the bridge is the root again.
    pass(&mut b, 55 * SECOND - 1);
    assert_eq!(b.root(), (BETTER, 4));
    pass(&mut b, 55 * SECOND);
    assert_eq!((b.root(), b.role(0)), ((ID, 0), Some(Role::Designated)));
}

#[test]
fn a_change_hurries_addresses_until_it_is_over() {
    let mut b = bridge(1);
    pass(&mut b, 31 * SECOND);
    assert_eq!(b.hurry(), Some(15 * SECOND), "a port forwards that did not");
    pass(&mut b, 66 * SECOND);
    assert_eq!(b.hurry(), None);
    b.sent().count();
    // The next configuration message acknowledges a notification.
    b.receive(0, Bpdu::Change, 70 * SECOND);
    pass(&mut b, 71 * SECOND);
    let said: Vec<_> = b.sent().collect();
    assert!(said.iter().any(|m| matches!(m.1, Bpdu::Config(c) if c.acknowledged && c.change)), "{said:?}");
    // Under another root, the messages of that root say whether there is a change.
    b.receive(0, Bpdu::Config(Config { change: true, ..claim(BETTER) }), 72 * SECOND);
    assert_eq!(b.hurry(), Some(15 * SECOND));
    b.receive(0, Bpdu::Config(claim(BETTER)), 73 * SECOND);
    assert_eq!(b.hurry(), None);
}

#[test]
fn notifications_are_repeated_until_acknowledged() {
    let mut b = bridge(2);
    b.receive(0, Bpdu::Config(claim(BETTER)), 0);
    let changes = |b: &mut Bridge| b.sent().filter(|m| *m == (0, Bpdu::Change)).count();
    for s in 1..40 {
        b.receive(0, Bpdu::Config(claim(BETTER)), s * SECOND);
        pass(&mut b, s * SECOND);
    }
    assert!((4..=6).contains(&changes(&mut b)), "from the time when its ports forward");
    b.receive(0, Bpdu::Config(Config { acknowledged: true, ..claim(BETTER) }), 40 * SECOND);
    pass(&mut b, 50 * SECOND);
    assert_eq!(changes(&mut b), 0);
}

#[test]
fn lies_about_time_are_bounded() {
    let mut b = bridge(2);
    let times = |t| Times { max_age: t, hello: t, forward_delay: t };
    // Times near 0 would open ports immediately, so the bridge raises them to their lower limits.
    b.receive(0, Bpdu::Config(Config { times: times(1), ..claim(BETTER) }), 0);
    assert_eq!(b.root().0, BETTER);
    pass(&mut b, 2 * SECOND - 1);
    assert!((0..2).all(|p| b.state(p) == Some(PortState::Listening)));
    // A message that claims to be valid for ever expires after 40 seconds.
    b.receive(0, Bpdu::Config(Config { times: times(65535 * SECOND), ..claim(BETTER) }), 3 * SECOND);
    pass(&mut b, 43 * SECOND);
    assert_eq!(b.root(), (ID, 0));
    // Messages whose age is negative or too great are ignored.
    for age in [i64::MIN, -1, 40 * SECOND, i64::MAX] {
        b.receive(0, Bpdu::Config(Config { age, times: times(i64::MAX), ..claim(BETTER) }), 50 * SECOND);
        assert_eq!(b.root(), (ID, 0), "{age}");
    }
}

#[test]
fn its_own_messages_close_the_worse_port() {
    let mut b = bridge(2);
    let sent: Vec<_> = b.sent().collect();
    b.receive(1, sent[0].1, 1);
    b.receive(0, sent[1].1, 1);
    assert_eq!((b.role(0), b.role(1)), (Some(Role::Designated), Some(Role::Alternate)));
    assert_eq!((b.root(), b.state(1)), ((ID, 0), Some(PortState::Blocking)));
    // A port that hears its own message keeps its role and state.
    let mut b = bridge(1);
    let sent: Vec<_> = b.sent().collect();
    b.receive(0, sent[0].1, 1);
    assert_eq!((b.role(0), b.state(0)), (Some(Role::Designated), Some(PortState::Listening)));
}

#[test]
fn floods_of_random_messages_leave_it_sane() {
    let mut random = Random::new(5, "flood");
    let mut b = bridge(4);
    let (mut now, mut configs, mut received) = (0, 0, 0);
    for _ in 0..30_000 {
        now += random.below(20_000_000) as i64;
        pass(&mut b, now);
        let some =
            |random: &mut Random| [ID, BETTER, BridgeId(0), BridgeId(u64::MAX)][random.below(4) as usize];
        let priority = Priority {
            root: some(&mut random),
            cost: [0, 4, u32::MAX - 3, u32::MAX][random.below(4) as usize],
            bridge: some(&mut random),
            port: 0x8000 + random.below(6) as u16,
        };
        let mut time = || random.below(70) as i64 * SECOND;
        let times = Times { max_age: time(), hello: time(), forward_delay: time() };
        let (age, change) = (time(), random.below(2) == 0);
        let config = Config { priority, change, acknowledged: random.below(2) == 0, age, times };
        let message = if random.below(10) == 0 { Bpdu::Change } else { Bpdu::Config(config) };
        b.receive(random.below(5) as usize, message, now);
        received += 1;
        for (port, m) in b.sent() {
            assert!(port < 4);
            configs += usize::from(matches!(m, Bpdu::Config(_)));
        }
        let (root, cost) = b.root();
        assert!(root <= ID && (root == ID) == (cost == 0), "{root} {cost}");
        assert_eq!((0..4).filter(|p| b.role(*p) == Some(Role::Root)).count(), usize::from(root != ID));
        for p in 0..4 {
            let (role, state) = (b.role(p).unwrap(), b.state(p).unwrap());
            assert_eq!(role == Role::Alternate, state == PortState::Blocking, "{role:?} {state:?}");
        }
    }
    // Each port sends at most one configuration message a second, whatever is received (table 8-3).
    assert!(configs as i64 <= 4 * (now / SECOND + 1), "{configs} for {received} in {} s", now / SECOND);
}

#[test]
fn extremes() {
    assert_eq!(Bridge::new(ID, LONG, 0, 100_000, i64::MAX).ports(), MAX_PORTS);
    let mut b = Bridge::new(ID, LONG, u32::MAX, 0, i64::MIN);
    b.receive(0, Bpdu::Change, 0);
    b.expire(i64::MAX);
    assert_eq!((b.sent().count(), b.root()), (0, (ID, 0)));
}
