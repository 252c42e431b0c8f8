// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets of a few flows through rewriters, in both directions, with all states of connections.

use crate::frames::{Random, checksum};
use crate::world::World;
use crate::{Frames, compare};

/// A frame of a flow, and the device that receives it: `eth0` from hosts inside, `eth1` from a host outside.
pub fn frame(random: &mut Random) -> (&'static str, Vec<u8>) {
    let inside = [[10, 0, 0, 2], [10, 0, 0, 3], [10, 0, 0, 255]];
    let (outside, nat) = ([10, 0, 1, 2], [9, 9, 9, 9]);
    let of_inside = inside[random.below(3) as usize];
    let from_inside = random.one_in(2);
    let to_nat = if random.one_in(8) { of_inside } else { nat };
    let (src, dst) = if from_inside { (of_inside, outside) } else { (outside, to_nat) };
    let proto = [1, 6, 6, 17, 17, 50][random.below(6) as usize];
    let (server, client) = ([0, 80], [4, random.below(4) as u8]);
    let (sport, dport) = if from_inside { (client, server) } else { (server, client) };
    let mut body = match proto {
        1 => {
            let kind = if random.one_in(8) { 3 } else { 8 * u8::from(from_inside != random.one_in(20)) };
            let id = [0, random.below(3) as u8];
            let id = if from_inside { id } else { [4, random.below(4) as u8] };
            let sum = [random.below(2) as u8 * 0xff, random.below(256) as u8];
            [kind, 0, sum[0], sum[1], id[0], id[1], 0, 1].to_vec()
        }
        6 => {
            let flags = match random.below(40) {
                0 => 0x02,
                1 => 0x12,
                2 => 0x11,
                3 => 0x04,
                4 => 0,
                n => 0x10 | (8 * (n as u8 & 1)),
            };
            let rest = [0, 0, 0, 7, 0, 0, 0, 9, 0x50, flags, 1, 0, random.below(256) as u8, 7, 0, 0];
            [&sport[..], &dport, &rest].concat()
        }
        _ => {
            let sum = match random.below(4) {
                0 => [0, 0],
                _ => [0xff, random.below(256) as u8],
            };
            [&sport[..], &dport, &[0, 20], &sum].concat()
        }
    };
    let payload = if random.one_in(2) { 0 } else { random.below(40) as usize };
    body.resize(body.len() + payload, 1);
    if random.one_in(30) {
        body.truncate(random.below(24) as usize);
    }
    let mut ip = vec![0x45, 0, 0, (20 + body.len()) as u8, 0, 1];
    ip.extend(if random.one_in(20) { [0x20, 0] } else { [0x40, 0] });
    ip.extend([64, proto, 0, 0]);
    ip.extend(src);
    ip.extend(dst);
    if random.one_in(30) {
        ip[0] = 0x46;
        ip[3] += 4;
        ip.extend([1; 4]);
    }
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 2, 8, 0][..], &ip, &body].concat();
    if random.one_in(20) {
        frame.resize(frame.len() + random.below(12) as usize, 9);
    }
    (if from_inside { "eth0" } else { "eth1" }, frame)
}

/// Rewriters with two inputs: from inside, and from outside.
pub const REWRITERS: &[&str] = &[
    "IPRewriter(pattern 9.9.9.9 1024-1027# - - 0 1, drop)",
    "IPRewriter(pattern 9.9.9.9 1024-1027# - - 0 1, pass 1, TCP_TIMEOUT 0.4, TCP_NODATA_TIMEOUT 0.1, TCP_DONE_TIMEOUT 0.05,
     UDP_TIMEOUT 0.1, UDP_STREAMING_TIMEOUT 0.3, GUARANTEE 0.02, REAP_INTERVAL 0.3)",
    "IPRewriter(pattern 9.9.9.9 1024-1027# - - 0 1, drop, CAPACITY 4, GUARANTEE 0.01, DST_ANNO false, REPLY_ANNO 20)",
    "IPRewriter(pattern 9.9.9.9 1024-1026 - - 0 1, pattern - - 10.0.0.2 - 1 0, UDP_TIMEOUT 0.05, REAP_INTERVAL 0)",
    "IPRewriter(keep 1 0, keep 0 0, TCP_TIMEOUT 0.2)",
    "TCPRewriter(pattern 9.9.9.9 1024-1027# - - 0 1, pass 1, TCP_DONE_TIMEOUT 0.05, TCP_GUARANTEE 0)",
    "UDPRewriter(pattern 9.9.9.9 1024-1027# - - 0 1, drop, TIMEOUT 0.05, STREAMING_TIMEOUT 0.2, REPLY_ANNO 20)",
    "IPAddrRewriter(pattern 9.9.9.9-9.9.9.10 - 0 1, drop)",
    "IPAddrRewriter(pattern 9.9.9.9 - 0 1, pattern 7.7.7.7 - 1 0, TIMEOUT 0.05, GUARANTEE 0)",
    "IPAddrRewriter(pattern 9.9.9.9-9.9.9.20# - 0 1, drop, CAPACITY 2, GUARANTEE 0, REAP_INTERVAL 0.1)",
    "IPAddrPairRewriter(pattern 9.9.9.9 - 0 1, drop)",
    "IPAddrPairRewriter(pattern 9.9.9.9 10.0.1.9 0 1, pass 1, TIMEOUT 0.05, GUARANTEE 0)",
    "ICMPPingRewriter(pattern 9.9.9.9 1024-1027# - - 0 1, drop)",
    "ICMPPingRewriter(keep 0 1, keep 1 0, TIMEOUT 0.05, GUARANTEE 0, DST_ANNO false)",
];

/// Handlers that are written while packets flow.
const CHANGES: &[&str] = &[
    "",
    "Script(wait 0.7, write rw.clear, wait 0.3, write rw.capacity 3, wait 0.3, write rw.capacity 100,
     wait 0.1, write rw.pattern0 drop);",
];

/// Each rewriter does the same in the kernel. `simulated` says that the time of programs is simulated, so that timeouts can end.
pub fn rewriters_in(world: fn() -> World, simulated: bool) {
    let mut seed = 0;
    for rewriter in REWRITERS.iter().filter(|r| simulated || !r.contains("TIMEOUT")) {
        for changes in CHANGES {
            for annotated in ["", "SetIPAddress(1.2.3.4) -> Paint(3, 20) ->"] {
                seed += 1;
                let mut random = Random::new(seed);
                let text = format!(
                    "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> {annotated} [0] rw :: {rewriter};
                     FromDevice(eth1) -> Strip(14) -> CheckIPHeader -> {annotated} [1] rw;
                     rw [0] -> Observe(a); rw [1] -> Observe(b); {changes}"
                );
                let frames: Frames = (0..1500).map(|_| frame(&mut random)).collect();
                compare(&text, &frames, world);
            }
        }
    }
}

/// Packets of known flows stay in the kernel.
#[test]
fn known_flows_stay_in_the_kernel() {
    for rewriter in REWRITERS {
        let mut random = Random::new(1);
        let frames: Frames = (0..600).map(|_| frame(&mut random)).collect();
        let text = format!(
            "FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> [0] rw :: {rewriter};
             FromDevice(eth1) -> Strip(14) -> CheckIPHeader -> [1] rw; rw [0] -> Discard; rw [1] -> Discard;"
        );
        let world = compare(&text, &frames, World::default);
        println!("{rewriter}: {:?}", world.ways());
        assert!(world.discarded() > 0, "{rewriter}: {}", world.discarded());
    }
}

#[test]
fn rewriters_do_the_same_in_the_kernel() {
    rewriters_in(World::default, true);
}
