// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP errors about packets of the flows in `flows`, some of them malformed.

use crate::flows;
use crate::frames::{Random, checksum};
use crate::world::World;
use crate::{Frames, compare};

/// An IP packet with a right checksum in its header.
fn ip(random: &mut Random, protocol: u8, src: [u8; 4], dst: [u8; 4], length: usize) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, (20 + length) as u8, 0, random.below(9) as u8, 0, 0, 60, protocol, 0, 0];
    ip.extend([src, dst].concat());
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip
}

/// An error, and the device that receives it: `eth0` from hosts inside, `eth1` from outside.
fn error(random: &mut Random) -> (&'static str, Vec<u8>) {
    let (outside, nat, inside) = ([10, 0, 1, 2], [9, 9, 9, 9], [10, 0, 0, 2 + random.below(2) as u8]);
    let from_inside = random.one_in(3);
    // The sender of the quoted packet and its receiver.
    let (sender, receiver) = if from_inside { (outside, inside) } else { (nat, outside) };
    let (server, client) = ([0, 80], [4, random.below(4) as u8]);
    let (sport, dport) = if from_inside { (server, client) } else { (client, server) };
    let protocol = [6, 6, 17, 1, 50][random.below(5) as usize];
    let sum = |random: &mut Random| match random.below(4) {
        0 => [0, 0],
        1 => [0xff, 0xff],
        _ => [random.below(256) as u8, random.below(256) as u8],
    };
    let mut body = match protocol {
        1 => {
            let kind = if from_inside { 0 } else { 8 };
            let kind = if random.one_in(9) { 8 - kind } else { kind };
            [&[kind, 0], &sum(random)[..], &client, &[0, 1]].concat()
        }
        _ => {
            let rest: Vec<u8> = (0..16).map(|_| random.below(256) as u8).collect();
            [&sport[..], &dport, &rest].concat()
        }
    };
    match protocol {
        17 => body[6..8].copy_from_slice(&sum(random)),
        6 => body[16..18].copy_from_slice(&sum(random)),
        _ => {}
    }
    body.resize(8 + random.below(33) as usize, 3);
    let mut quoted = ip(random, protocol, sender, receiver, body.len());
    if random.one_in(4) {
        let any = sum(random);
        quoted[10..12].copy_from_slice(&any);
    }
    if random.one_in(20) {
        let at = random.below(20) as usize;
        quoted[at] ^= 1 << random.below(8);
    }
    quoted.extend(body);
    let reporter = if random.one_in(2) { receiver } else { [10, 0, 1, 9] };
    let kind = [3, 3, 3, 11, 12, 4, 5, 13][random.below(8) as usize];
    let any = sum(random);
    let message = [&[kind, 1], &any[..], &[0; 4], &quoted].concat();
    let to = if random.one_in(20) { [10, 0, 1, 3] } else { sender };
    let outer = ip(random, 1, reporter, to, message.len());
    let mut frame = [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 2, 8, 0][..], &outer, &message].concat();
    match random.below(20) {
        0 => frame.truncate(34 + random.below(60) as usize),
        1 => frame.extend([7; 5]),
        _ => {}
    }
    (if from_inside { "eth0" } else { "eth1" }, frame)
}

/// Elements with the names of the rewriters.
pub const ICMP_REWRITERS: &[&str] = &[
    "ICMPRewriter(rw ping)",
    "ICMPRewriter(ping rw, DST_ANNO false, REPLY_ANNO 20)",
    "ICMPRewriter(ping:0 rw)",
    "ICMPRewriter(addr rw)",
];

const REWRITERS: &[&str] = &[
    "rw :: IPRewriter(pattern 9.9.9.9 1024-1027# - - 0 1, drop); ping :: ICMPPingRewriter(pattern 9.9.9.9 1024-1027# - - 0 1, drop);",
    "rw :: IPRewriter(pattern 9.9.9.9 1024-1027# - - 0 1, pass 1, TCP_TIMEOUT 0.4, TCP_DONE_TIMEOUT 0.05, UDP_TIMEOUT 0.1,
     UDP_STREAMING_TIMEOUT 0.3, GUARANTEE 0.02, REAP_INTERVAL 0.3, REPLY_ANNO 20);
     ping :: ICMPPingRewriter(keep 0 1, keep 1 0, TIMEOUT 0.05, GUARANTEE 0);",
];

fn config(rewriters: &str, icmp: &str, end: &str) -> String {
    let classes =
        "IPClassifier(icmp type 3 or icmp type 4 or icmp type 5 or icmp type 11 or icmp type 12, icmp, -)";
    format!(
        "{rewriters} e :: {icmp}; addr :: IPAddrRewriter(pattern 8.8.8.8 - 0 1); Idle -> addr -> Discard; addr [1] -> Discard;
         FromDevice(eth0) -> Strip(14) -> CheckIPHeader -> a :: {classes}; a [0] -> e; a [1] -> [0] ping; a [2] -> [0] rw;
         FromDevice(eth1) -> Strip(14) -> CheckIPHeader -> Paint(7, 20) -> b :: {classes}; b [0] -> e; b [1] -> [1] ping; b [2] -> [1] rw;
         e -> {end}; e [1] -> Observe(e1);
         rw [0] -> Observe(a); rw [1] -> Observe(b); ping [0] -> Observe(c); ping [1] -> Observe(d);"
    )
}

fn frames(seed: u64) -> Frames {
    let mut random = Random::new(seed);
    (0..1500).map(|_| if random.one_in(3) { error(&mut random) } else { flows::frame(&mut random) }).collect()
}

/// Each ICMPRewriter does the same in the kernel. `simulated` says that the time of programs is simulated, so that timeouts can end.
pub fn rewriters_in(world: fn() -> World, simulated: bool) {
    for (i, icmp) in ICMP_REWRITERS.iter().enumerate() {
        for rewriters in REWRITERS.iter().filter(|r| simulated || !r.contains("TIMEOUT")) {
            compare(&config(rewriters, icmp, "Observe(e)"), &frames(i as u64), world);
        }
    }
}

#[test]
fn errors_are_rewritten_as_at_user_level() {
    rewriters_in(World::default, true);
}

#[test]
fn errors_about_known_flows_stay_in_the_kernel() {
    for (icmp, least) in ICMP_REWRITERS.iter().zip([100, 100, 50, 0]) {
        let world = compare(&config(REWRITERS[0], icmp, "Discard"), &frames(1), World::default);
        println!("{icmp}: {} errors in the kernel", world.discarded());
        assert!(world.discarded() >= least, "{icmp}: {}", world.discarded());
    }
}
