// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that the packet path does not allocate memory. They have a file of their own, because allocation_counter
//! replaces the allocator of the whole process.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_classes::Registry;
use castanet_testkit::{Log, number, router, simulated};

/// Returns the number of allocations while a configuration moves `packets` packets.
fn calls(text: &str, packets: u64, batch: usize) -> u64 {
    let (mut options, _) = simulated(batch);
    let log = Log::default();
    options.printer = log.printer();
    let mut r = router(&text.replace("PACKETS", &packets.to_string()), options);
    let taken = allocation_counter::measure(|| r.run().unwrap());
    assert_eq!(r.waiting(), 0);
    if r.find("out").is_some() {
        // The packets must reach the end, so that the test does not measure drops.
        assert_eq!(number(&mut r, "out", "count"), packets, "{:?}", r.drops());
    }
    assert_eq!(log.lines(), [""; 0], "a message is not steady state");
    taken.count_total
}

/// An Ethernet frame with IPv4 (correct header checksum) and UDP, from 10.0.0.1 to 10.1.0.2.
const FRAME: &str = "\\<02000000000b 02000000000a 0800 4500002e00000000401166bc0a0000010a010002 00010002001a0000 000000000000000000000000000000000000>";

#[test]
fn packets_of_several_slabs_return_without_allocations() {
    // A slab holds fewer than 1,100 chunks, so these packets need several slabs.
    let packets: Vec<_> = (0..4_000).map(|_| castanet_element::kit::packet(&[0; 60])).collect();
    let taken = allocation_counter::measure(|| drop(packets));
    assert_eq!(taken.count_total, 0);
    // The second time, all chunks come from the free list.
    let mut packets = Vec::with_capacity(4_000);
    let taken = allocation_counter::measure(|| {
        packets.extend((0..4_000).map(|_| castanet_element::kit::packet(&[0; 60])));
    });
    assert_eq!(taken.count_total, 0);
}

#[test]
fn steady_state_allocates_nothing() {
    let has = |class: &str| Registry::new().classes().iter().any(|s| s.name == class);
    let mut path = String::new();
    // The path of TOCS 2000, Figure 8, without ARP.
    for (class, text) in [
        ("Classifier", "-> Classifier(12/0800) "),
        ("Paint", "-> Paint(1) "),
        ("Strip", "-> Strip(14) "),
        ("CheckIPHeader", "-> CheckIPHeader "),
        ("GetIPAddress", "-> GetIPAddress(16) "),
        ("StaticIPLookup", "-> StaticIPLookup(10.1.0.0/16 0) "),
        ("DropBroadcasts", "-> DropBroadcasts "),
        ("CheckPaint", "-> CheckPaint(1) "),
        ("IPGWOptions", "-> IPGWOptions(10.0.0.254) "),
        ("FixIPSrc", "-> FixIPSrc(10.0.0.254) "),
        ("DecIPTTL", "-> DecIPTTL "),
        ("IPFragmenter", "-> IPFragmenter(1500) "),
        ("EtherEncap", "-> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) "),
    ] {
        if has(class) {
            path += text;
        }
    }
    let mut bad = Vec::new();
    for (name, text) in [
        (
            "queue",
            "InfiniteSource(LIMIT PACKETS, STOP true) -> Counter -> Queue -> Unqueue -> Discard;".to_string(),
        ),
        (
            "burst",
            "InfiniteSource(LIMIT PACKETS, BURST 64, STOP true) -> Queue -> Unqueue(64) -> Discard;"
                .to_string(),
        ),
        (
            "tee",
            "InfiniteSource(LIMIT PACKETS, BURST 8, STOP true) -> t :: Tee -> Queue -> Unqueue(8) -> Discard;
             t [1] -> Queue -> Discard(BURST 8);"
                .to_string(),
        ),
        (
            "router",
            format!(
                "MemSource({FRAME}, LIMIT PACKETS, STOP true) {path} -> out :: Counter -> Queue -> Unqueue(32) -> Discard;"
            ),
        ),
        (
            "router, one by one",
            format!(
                "MemSource({FRAME}, LIMIT PACKETS, BURST 1, STOP true) {path} -> out :: Counter -> Queue -> Unqueue -> Discard;"
            ),
        ),
    ] {
        for batch in [1, 32, 256] {
            // Starting and stopping a router allocates memory, and so does each buffer until it has reached its
            // final size. So compare two runs: the additional packets of the longer one must not allocate.
            let few = calls(&text, 10_000, batch);
            let many = calls(&text, 60_000, batch);
            if many > few + 20 {
                bad.push(format!("{name}, batch {batch}: {few} calls for 10,000 packets, {many} for 60,000"));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
