// SPDX-License-Identifier: MIT OR Apache-2.0
//! No packet overtakes another one of its flow, even when those that come up are delayed in the ring of their device.

use crate::world::World;
use crate::{finish, start};
use std::collections::HashMap;
use std::sync::Arc;

/// A UDP packet from a host of eth0 to 10.0.1.2, with a number.
fn frame(host: u8, number: u32) -> Vec<u8> {
    let mut ip = vec![0x45u8, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 10, 0, 1, 2];
    let sum = crate::frames::checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend([4, host, 0, 80, 0, 26, 0, 0]);
    ip.extend(number.to_be_bytes());
    ip.resize(46, 0);
    [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, host, 8, 0][..], &ip].concat()
}

/// Runs a router in the kernel. A frame comes each millisecond. User level reads the ring each `delay` milliseconds, at most
/// `most` frames each time.
/// Another host begins to send after each `period` frames. Returns the sent frames by their hosts, and the number of frames that came up.
fn run(router: &str, frames: u32, (delay, most): (i64, usize), period: u32) -> (HashMap<u8, Vec<u32>>, u64) {
    let world = World::default();
    world.delay(delay, most);
    // The station to which the frames go.
    let station = [&[2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 0, 0, 0x88, 0xb5][..], &[0; 46]].concat();
    (1..5).for_each(|i| world.receive("eth1", 150 * i, station.clone()));
    for number in 0..frames {
        // Flows begin one after the other, so that entries are made while packets of others are on their way.
        let host = 2 + (number % (2 + number / period)) as u8;
        world.receive("eth0", 1 + i64::from(number), frame(host, number));
    }
    let (mut router, log) = start(router, &world);
    router.start_in_kernel(Arc::new(world.clone())).unwrap();
    let seen = finish(router, &log, &world);
    assert_eq!(world.fault(), None);
    let mut sent: HashMap<u8, Vec<u32>> = HashMap::new();
    for (_, frame) in &seen.sent {
        let number = u32::from_be_bytes(frame[42..46].try_into().unwrap());
        sent.entry(frame[35]).or_default().push(number);
    }
    (sent, world.ways().0)
}

/// A table of Ethernet addresses, a rewriter with such a table, a switch, and one with a scheduler.
fn routers() -> [String; 4] {
    let arp = "arp :: ARPQuerier(10.0.1.1, 2:0:0:0:0:1); Script(write arp.insert 10.0.1.2 2:0:0:0:1:3);
        Idle -> [1] arp; arp -> Queue -> ToDevice(eth1);";
    [
        format!("{arp} FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> [0] arp;"),
        format!(
            "{arp} FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> rw :: IPRewriter(keep 0 1); rw [1] -> Discard;
             rw [0] -> [0] arp;"
        ),
        "s :: EtherSwitch; FromDevice(eth0) -> [0] s [0] -> Discard;
         FromDevice(eth1) -> [1] s [1] -> Queue -> ToDevice(eth1);"
            .to_string(),
        "s :: EtherSwitch; FromDevice(eth0) -> [0] s [0] -> Discard;
         FromDevice(eth1) -> [1] s [1] -> Queue -> [1] p :: PrioSched -> ToDevice(eth1); Idle -> Queue -> [0] p;"
            .to_string(),
    ]
}

/// Checks the order of each host's frames. Returns the number of all frames.
fn check_order(router: &str, sent: &HashMap<u8, Vec<u32>>) -> usize {
    for (host, numbers) in sent {
        assert!(numbers.is_sorted(), "{router}: host {host}: {numbers:?}");
    }
    sent.values().map(Vec::len).sum()
}

#[test]
fn nothing_overtakes() {
    for router in routers() {
        let (sent, up) = run(&router, 1000, (20, 1000), 100);
        assert_eq!(check_order(&router, &sent), 1000, "{router}");
        assert!((20..700).contains(&up), "{router}: {up} came up");
    }
}

/// A queue is left out only if nothing watches its length, and a device pulls from it. If it does so by a scheduler, the scheduler's other
/// inputs have rare messages.
#[test]
fn queues_that_something_observes_stay_at_user_level() {
    let tree = "tree :: EtherSpanTree(2:0:0:0:0:1, a, b, s, BRIDGE_PRIORITY 1, FORWARD_DELAY 4, HELLO_TIME 1, MAX_AGE 6);
        a, b :: Suppressor; s :: EtherSwitch; Idle -> [0] s [0] -> Discard; Idle -> [1] s [1] -> Discard;
        Idle -> [0] a [0] -> Discard; Idle -> [1] a [1] -> Discard; Idle -> [0] b [0] -> Discard; Idle -> [1] b [1] -> Discard;
        Idle -> [1] tree [1] -> Discard;";
    for (text, in_kernel) in [
        ("Idle -> Queue -> [0] p :: PrioSched -> ToDevice(eth1); FromDevice(eth0) -> Queue -> [1] p;", true),
        ("FromDevice(eth0) -> Queue -> [0] p :: PrioSched -> ToDevice(eth1); Idle -> [1] p;", true),
        (
            &format!(
                "{tree} Idle -> [0] tree -> Queue -> [0] p :: PrioSched -> ToDevice(eth1); FromDevice(eth0) -> Queue -> [1] p; Script(wait 0.5, stop);"
            ),
            true,
        ),
        (
            "FromDevice(eth0) -> Queue -> [1] p :: PrioSched -> ToDevice(eth1); FromDevice(eth1) -> Queue -> [0] p;",
            false,
        ),
        (
            "FromDevice(eth0) -> Queue -> [1] p :: PrioSched -> ToDevice(eth1); InfiniteSource(LIMIT 3) -> Queue -> [0] p;",
            false,
        ),
        (
            "FromDevice(eth0) -> Queue -> [1] p :: PrioSched -> ToDevice(eth1, METHOD PACKET); Idle -> Queue -> [0] p;",
            false,
        ),
        (
            "FromDevice(eth0) -> Queue -> [1] p :: PrioSched -> Unqueue -> Queue -> ToDevice(eth1); Idle -> Queue -> [0] p;",
            false,
        ),
        (
            "FromDevice(eth0) -> Queue -> [1] p :: RoundRobinSched -> ToDevice(eth1); Idle -> Queue -> [0] p;",
            false,
        ),
        ("FromDevice(eth0) -> q :: Queue -> ToDevice(eth1); Idle -> Null -> Discard;", true),
        (
            "FromDevice(eth0) -> q :: Queue -> ToDevice(eth1); Idle -> RED(5, 50, 0.1, QUEUES q) -> Discard;",
            false,
        ),
        (
            "FromDevice(eth0) -> q :: Queue -> ToDevice(eth1); Idle -> AdaptiveRED(9, 0.1, QUEUES q) -> Discard;",
            false,
        ),
        (
            "FromDevice(eth0) -> q :: Queue -> ToDevice(eth1); Idle -> PI(170, 0.1, 0.1, 9, QUEUES q) -> Discard;",
            false,
        ),
    ] {
        let world = World::default();
        (1..50).for_each(|i| world.receive("eth0", i64::from(i), frame(2, i)));
        let (mut router, log) = start(text, &world);
        router.start_in_kernel(Arc::new(world.clone())).unwrap();
        let seen = finish(router, &log, &world);
        let data = seen.sent.iter().filter(|(_, f)| f.len() == 60).count();
        let (up, gone, _) = world.ways();
        assert_eq!((data >= 49, gone > 0, up > 0), (true, in_kernel, !in_kernel), "{text}: {up} {gone}");
    }
}

/// If user level is too slow for the ring, packets are dropped for a while, and then all stay in the kernel.
#[test]
fn the_kernel_takes_over_under_overload() {
    for router in routers() {
        let (sent, up) = run(&router, 12_000, (2, 1), 100_000);
        let total = check_order(&router, &sent);
        assert!((4000..12_000).contains(&total) && up < 9000, "{router}: {total} sent, {up} came up");
    }
}
