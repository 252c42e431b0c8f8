// SPDX-License-Identifier: MIT OR Apache-2.0
//! A live host is reachable again within a second, whatever others have claimed, and even after its Ethernet
//! address has changed.
#![allow(clippy::unwrap_used)]
use super::*;

const MS: i64 = S / 1000;

/// A forged reply for one of 200 hosts of the subnet.
fn forged(i: u32) -> Packet {
    reply(host(0) + 20 + i % 200, 100 + (i % 50) as u8)
}

/// Sends a packet to host 9 every 10 ms from time `from` on. The host answers broadcast queries, and those to
/// its Ethernet address `ether`. Returns the time until the first packet is sent to the host, in nanoseconds;
/// `None` if that takes a second or longer.
fn back_after(k: &mut Kit<ArpQuerier>, from: i64, ether: u8) -> Option<i64> {
    for t in (0..100).map(|i| i * 10 * MS) {
        k.at(from + t);
        let out = sent(k, [to(host(9), 1)]);
        if out.split(' ').any(|o| o == format!("1>{ether}")) {
            return Some(t);
        }
        if out.split(' ').any(|o| o == "q9" || o == format!("q9>{ether}"))
            && !names(k.push(1, [reply(host(9), ether)])).is_empty()
        {
            // The reply has released waiting packets.
            return Some(t);
        }
    }
    None
}

#[test]
fn a_host_is_back_at_once_after_a_flood_of_claims() {
    // The flood removes the host from the table, or changes its address.
    for (capacity, claimed) in [(16, false), (16, true), (0, true)] {
        let mut k = kit(&format!(", ENTRY_CAPACITY {capacity}"));
        k.push(1, [reply(host(9), 9)]);
        for i in 0..2000 {
            k.at(i64::from(i) * MS);
            // Meanwhile packets are sent to the forged addresses and to the host.
            sent(&mut k, [to(host(0) + 20 + i % 200, 2), to(host(9), 3)]);
            let claim = (claimed && i % 10 == 0).then(|| reply(host(9), 99));
            k.push(1, claim.into_iter().chain([forged(i), forged(i * 7)]));
        }
        let back = back_after(&mut k, 2000 * MS, 9);
        assert!(back.is_some_and(|t| t < 1000 * MS), "{capacity} {claimed}: {back:?}");
        let entries: usize = k.read("count").unwrap().parse().unwrap();
        assert!(capacity == 0 || entries <= capacity, "{entries} entries");
        // A packet for a host whose address was not forged causes a query at once.
        assert_eq!(sent(&mut k, [to(host(8), 4)]), "q8");
        assert_eq!(names(k.push(1, [reply(host(8), 8)])), "4>8");
    }
}

#[test]
fn a_host_is_back_at_once_after_a_scan_of_hosts_that_are_not_there() {
    let mut k = kit(", ENTRY_CAPACITY 16, CAPACITY 32");
    k.push(1, [reply(host(9), 9)]);
    (0..2000).for_each(|i| drop(k.push(0, [to(host(0) + 20 + i % 200, 2)])));
    // The scan has not removed the host's entry. A new host is learnt even while the scan continues.
    assert_eq!(sent(&mut k, [to(host(9), 1)]), "1>9");
    assert_eq!(sent(&mut k, [to(host(8), 1)]), "q8");
    (0..2000).for_each(|i| drop(k.push(0, [to(host(0) + 20 + i % 200, 2)])));
    k.push(1, [reply(host(8), 8)]);
    assert_eq!(sent(&mut k, [to(host(8), 2)]), "2>8");
}

#[test]
fn a_host_that_changed_its_address_without_a_word_is_found_when_it_is_asked_for_again() {
    // The host is found within a second of traffic, once its entry is older than POLL_TIMEOUT (60 s).
    let mut k = kit("");
    k.push(1, [reply(host(9), 9)]);
    let back = back_after(&mut k, 60 * S + MS, 8);
    // Two queries go to the old address, 100 ms apart, and then one is broadcast.
    assert!(back.is_some_and(|t| (200 * MS..300 * MS).contains(&t)), "{back:?}");
    // With a shorter POLL_TIMEOUT it is found within a second of the change.
    let mut k = kit(", POLL_TIMEOUT 0.5");
    k.push(1, [reply(host(9), 9)]);
    let back = back_after(&mut k, MS, 8);
    assert!(back.is_some_and(|t| (500 * MS..1000 * MS).contains(&t)), "{back:?}");
    // A host that was away for longer than TIMEOUT is queried when the first packet comes.
    let mut k = kit("");
    k.push(1, [reply(host(9), 9)]);
    assert_eq!(back_after(&mut k, 301 * S, 8), Some(0));
}
