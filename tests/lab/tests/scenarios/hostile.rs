// SPDX-License-Identifier: MIT OR Apache-2.0
//! Malicious and broken hosts. Their packets must not make the router fail, grow without bound, or miscount.
//!
//! Each attack takes one second, or one minute if CASTANET_SOAK is set. Attacks use all available CPU time, so
//! each has the machine to itself.

use crate::net::{A, B, R0, R1, castanet, hosts, ports};
use castanet_lab::frames::{self, address, arp_in};
use castanet_lab::{Host, Hostile, Lab, Router, Scene, router};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// The number of frames in a round. An attack sends a round repeatedly. A round has more frames than an ARP table has
/// entries.
const ROUND: usize = 15_000;
/// The permitted growth of the router's memory after its first packet, in bytes. Held packets and full tables
/// take memory.
const GROWTH: u64 = 24 << 20;
/// The maximum number of entries in an ARP table.
const ENTRIES: u64 = 8192;

const FROM_A: Scene = Scene {
    host: (A, Ipv4Addr::new(10, 0, 0, 2)),
    router: (R0, Ipv4Addr::new(10, 0, 0, 1)),
    beyond: Ipv4Addr::new(10, 0, 1, 2),
};

const FROM_B: Scene =
    Scene { host: (B, FROM_A.beyond), router: (R1, Ipv4Addr::new(10, 0, 1, 1)), beyond: FROM_A.host.1 };

/// The duration of an attack.
fn duration() -> Duration {
    Duration::from_secs(if std::env::var_os("CASTANET_SOAK").is_some() { 60 } else { 1 })
}

/// The frame counters of both links, first a's, then b's. `in_` counts frames to the router, `out` frames from the
/// router.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    in_: [u64; 2],
    out: [u64; 2],
}

/// Two hosts, and a router with counters where elements create or consume packets. `before` has the counters of
/// the devices at the time the router started.
struct Field {
    a: Host,
    b: Host,
    r: Router,
    before: Links,
    /// The counters of links that have been deleted.
    gone: Links,
    memory: u64,
    lab: Lab,
}

/// Returns the configuration, with counters wherever an element creates packets.
fn configuration(host: &Host) -> String {
    let mut text = router::configuration(host, castanet(), &ports(1500, 1500), &[], &[]);
    for (old, new) in [
        ("cut :: IPFragmenter($mtu)", "whole :: Counter -> cut :: IPFragmenter($mtu) -> cuts :: Counter"),
        ("back [1] ->", "back [1] -> copies :: Counter ->"),
        ("requests [1] ->", "requests [1] -> asks :: Counter ->"),
    ] {
        assert_eq!(text.matches(old).count(), 1, "{old} in\n{text}");
        text = text.replace(old, new);
    }
    text
}

/// Reads the counters at both ends of the links: devices of a or b, and of the router.
fn links(a: &Host, b: &Host, r: &Host) -> Links {
    let mut all = Links::default();
    for (i, (host, device)) in [(a, "eth0"), (b, "eth1")].into_iter().enumerate() {
        let count = |host: &Host, device, what| host.statistic(device, what);
        all.in_[i] = count(r, device, "rx/packets");
        all.out[i] = count(r, device, "tx/packets");
        // The other end must have the same counts.
        assert_eq!(count(host, "eth0", "tx/packets"), all.in_[i], "to the router's {device}");
        assert_eq!(count(host, "eth0", "rx/packets"), all.out[i], "from the router's {device}");
    }
    all
}

/// Makes the neighbour entry of the router permanent, so that the host sends no ARP requests while packets are
/// counted.
fn acquaint(host: &Host, router: &str, ether: [u8; 6]) {
    let ether = ether.map(|b| format!("{b:02x}")).join(":");
    host.ip(&format!("neigh replace {router} lladdr {ether} nud permanent dev eth0"));
}

/// The output of the router after it ended.
struct Account {
    /// Error messages.
    said: String,
    /// The summary of the run: numbers of packets by fate and element.
    summary: Value,
    /// Handler values by element and handler.
    handlers: BTreeMap<String, String>,
}

impl Account {
    /// Returns the sum of all values whose name `ELEMENT.HANDLER` ends with `handler`.
    fn sum(&self, handler: &str) -> u64 {
        let all: Vec<u64> = self
            .handlers
            .iter()
            .filter(|h| h.0.ends_with(handler))
            .filter_map(|h| h.1.parse().ok())
            .collect();
        assert!(!all.is_empty(), "no {handler} in {:?}", self.handlers);
        all.iter().sum()
    }
    /// Packets that entered or left through elements of a class.
    fn by(&self, way: &str, what: &str) -> u64 {
        let rows = self.summary[way].as_array().map(Vec::as_slice).unwrap_or_default();
        let rows = rows.iter().filter(|row| row["what"].as_str().is_some_and(|w| w.starts_with(what)));
        rows.filter_map(|row| row["packets"].as_u64()).sum()
    }
    /// Returns the sum of the packets of all elements in a section of the summary, which must exist.
    fn each(&self, section: &str) -> u64 {
        let all = self.summary[section].as_object();
        let all = all.unwrap_or_else(|| panic!("no {section} in {}", self.summary));
        all.values().filter_map(Value::as_u64).sum()
    }
    /// Packets dropped by elements whose name contains a text, for one reason or for all reasons.
    fn drops(&self, reason: Option<&str>, who: &str) -> u64 {
        let reasons = self.summary["drops"].as_object().into_iter().flatten();
        let reasons = reasons.filter(|(name, _)| reason.is_none_or(|r| r == *name));
        let all = reasons.filter_map(|(_, by)| by.as_object()).flatten();
        all.filter(|(element, _)| element.contains(who)).filter_map(|(_, n)| n.as_u64()).sum()
    }
    /// Returns the number of fragments that wait for reassembly. Each is shown as `(START,END)` after two
    /// pairs of addresses.
    fn fragments(&self) -> u64 {
        let dump = self.handlers.get("whole.dump").map_or("", String::as_str);
        let lines = dump.lines().filter(|line| line.starts_with(" ("));
        lines.map(|line| line.matches('(').count() as u64 - 1).sum()
    }
}

impl Field {
    fn new() -> Option<Field> {
        let lab = Lab::alone().inspect_err(|why| println!("SKIP: {why}")).ok()?;
        let (a, r, b) = hosts(&lab);
        acquaint(&a, "10.0.0.1", R0);
        acquaint(&b, "10.0.1.1", R1);
        let text = configuration(&r);
        let handlers = [
            "FromDevice.kernel_drops",
            "ToDevice.q",
            "ARPQuerier.queries",
            "ARPQuerier.length",
            "ARPQuerier.count",
            "Counter.count",
            "IPFragmenter.drops",
            "IPReassembler.dump",
        ];
        let mut arguments = vec!["--json", "-e", &text];
        handlers.iter().for_each(|h| arguments.extend(["-h", h]));
        let before = links(&a, &b, &r);
        let r = Router::run(r, castanet(), &arguments, 2);
        a.run("ping -c 1 -W 60 10.0.1.2").good();
        let memory = r.memory().map_or(0, |m| m.0);
        Some(Field { a, b, r, before, gone: Links::default(), memory, lab })
    }

    /// Sends frames for the duration of an attack. Every few seconds, `make` produces new ones.
    fn attack(&self, seed: u64, make: impl Fn(&mut Hostile) -> Vec<Vec<u8>>) {
        let mut hostile = Hostile::new(FROM_A, seed);
        let end = Instant::now() + duration();
        while Instant::now() < end {
            let mut frames = Vec::new();
            while frames.len() < ROUND {
                frames.extend(make(&mut hostile));
            }
            let left = end.saturating_duration_since(Instant::now());
            let left = left.clamp(Duration::from_millis(500), Duration::from_secs(3));
            let text = self.a.flood("eth0", &frames, left).wait(Duration::from_secs(200)).good();
            let sent: u64 = text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            assert!(sent > 0, "{text}");
        }
    }

    /// Waits until the router has processed its backlog, and checks that it forwards normally.
    fn recover(&self) {
        let there = || self.a.run("ping -c 1 -W 1 10.0.1.2").ok();
        assert!((0..100).any(|_| there()), "nothing gets through any more");
        // In the attack, the hosts had to reply to nonexistent hosts. While Linux resolves those addresses,
        // its neighbour queue has no room for other replies.
        for host in [&self.a, &self.b] {
            host.run("ip neigh flush dev eth0").good();
        }
        self.a.ping(20, "10.0.1.2");
    }

    /// Stops the router, and compares its counters with those of the devices and with each other.
    fn settle(self) -> Account {
        // After the links are down, the hosts send nothing more, and all frames have arrived.
        for host in [&self.a, &self.b] {
            host.ip("link set eth0 down");
        }
        std::thread::sleep(Duration::from_millis(100));
        let (resident, most) = self.r.memory().unwrap_or_default();
        let now = links(&self.a, &self.b, &self.r.host);
        let ended = self.r.stop();
        let ended = ended.unwrap_or_else(|| panic!("the kernel routes"));
        assert!(ended.ok(), "{ended:?}");
        let (said, json) = ended.stderr.split_at(ended.stderr.find('{').unwrap_or(0));
        let summary: Value = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
        let values = ended.stdout.split("\n\n").filter_map(|part| part.split_once(":\n"));
        let handlers = values.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let account = Account { said: said.to_string(), summary, handlers };

        // Compares the devices with the router: every frame received was read or is counted as dropped, and every
        // packet sent was transmitted.
        let total = |now: [u64; 2], before: [u64; 2], gone: [u64; 2]| {
            now.iter().sum::<u64>() + gone.iter().sum::<u64>() - before.iter().sum::<u64>()
        };
        let (read, kernel_drops) = (account.by("in", "FromDevice"), account.sum(".kernel_drops"));
        assert_eq!(account.each("system_drops"), kernel_drops, "{}", account.summary);
        assert_eq!(account.summary["missing"], 0, "{}", account.summary);
        let came = total(now.in_, self.before.in_, self.gone.in_);
        assert_eq!(came, read + kernel_drops, "in: {}\n{:?}", account.summary, account.handlers);
        let sent = account.by("out", "ToDevice");
        assert_eq!(total(now.out, self.before.out, self.gone.out), sent, "out: {}", account.summary);

        // Compares the elements with each other: every packet that entered or was created has left, was dropped,
        // or is held.
        let (whole, cut) = (account.sum("/whole.count"), account.sum("/cuts.count"));
        let made = account.sum(".queries") + account.sum("/copies.count") + account.sum("/asks.count") + cut
            - (whole - account.sum("/cut.drops") - account.drops(None, "/cut"));
        let left = sent + account.by("out", "Discard");
        // The number of held packets that handlers show. More packets may be held elsewhere.
        let shown = account.sum(".length") + account.sum(".q") + account.fragments();
        let waits = account.each("held");
        assert!(shown <= waits, "{shown} packets wait\n{}", account.summary);
        let dropped = account.drops(None, "");
        assert_eq!(
            read + made,
            left + dropped + waits,
            "{read} read, {made} made, {left} left, {dropped} dropped, {waits} wait\n{}\n{:?}",
            account.summary,
            account.handlers
        );
        println!(
            "{came} frames came, {kernel_drops} not read in time, {read} read, {made} made, {sent} sent, {dropped} \
             dropped, {waits} wait; memory {} KiB, at start {} KiB, most {} KiB",
            resident >> 10,
            self.memory >> 10,
            most >> 10
        );
        assert!(most < self.memory + GROWTH, "grew from {} to {most} bytes", self.memory);
        account
    }
}

#[test]
fn random_and_mutated_frames_are_accounted_for() {
    let Some(field) = Field::new() else { return };
    field.attack(1, |h| vec![h.noise(), h.mutated(), h.mutated(), h.mutated()]);
    field.recover();
    let account = field.settle();
    // Bad headers are reported once. ICMP errors may overflow their queue.
    let said = account.said.lines().filter(|line| *line != "errors :: Queue: overflow");
    assert_eq!(said.count(), 1, "{}", account.said);
    for reason in ["bad-ip-header", "no-match", "other-host", "over-rate", "no-icmp-error"] {
        assert!(account.drops(Some(reason), "") > 0, "nothing dropped as {reason}: {}", account.summary);
    }
}

#[test]
fn arp_floods_and_spoofs_are_bounded() {
    let Some(field) = Field::new() else { return };
    field.attack(2, |h| vec![h.arp(), h.spoof(), h.spoof(), h.spoof()]);
    // The attack may have changed the entry of host `a` in the ARP table. The next packet to `a` makes the router
    // send an ARP request for it.
    field.recover();
    let account = field.settle();
    assert_eq!(account.said, "");
    let entries = account.sum("interface1/arp.count");
    assert!(entries <= ENTRIES, "{entries} entries");
    // Most of these packets are addressed to other hosts, and the router learns nothing from those (RFC 826).
    assert!(account.drops(Some("bad-arp"), "") > 0, "{}", account.summary);
}

#[test]
fn scans_of_a_silent_network_are_bounded() {
    // Packets for nonexistent hosts: each creates an ARP entry and a request, and is held.
    let Some(field) = Field::new() else { return };
    let ask = |h: &mut Hostile| vec![h.scan()];
    field.attack(3, ask);
    field.recover();
    let account = field.settle();
    // Many packets expire at once. If the queue of errors overflows, the excess is dropped and counted like
    // other packets.
    assert!(["", "errors :: Queue: overflow\n"].contains(&account.said.as_str()), "{}", account.said);
    assert!(account.drops(Some("arp-queue-full"), "") > 0, "{}", account.summary);
    assert!(account.sum(".length") <= 2 * 2048);
}

#[test]
fn fragments_of_no_packet_are_bounded() {
    let Some(field) = Field::new() else { return };
    field.attack(4, Hostile::fragments);
    // Complete packets are still reassembled and answered.
    field.a.ping(3, "-s 5000 10.0.0.1");
    field.recover();
    let account = field.settle();
    assert_eq!(account.said, "");
    assert!(account.drops(Some("bad-fragment"), "whole") > 0, "{}", account.summary);
}

#[test]
fn links_that_flap_and_devices_that_vanish() {
    let Some(mut field) = Field::new() else { return };
    let r = field.r.host.clone();
    let back = |a: &Host| {
        acquaint(a, "10.0.0.1", R0);
        a.ip("route replace default via 10.0.0.1");
    };
    // A device is deleted and another takes its place. The counters of the old one are kept.
    field.gone = links(&field.a, &field.b, &r);
    (field.gone.in_[1], field.gone.out[1]) = (0, 0);
    r.ip("link del eth0");
    assert!(!field.a.run("ping -c 1 -W 0.05 10.0.1.2").ok());
    field.lab.link_again(1, (&field.a, "eth0"), (&r, "eth0"));
    field.r.wait_for("interface1/FromDevice", "eth0: device is back");
    field.a.address("eth0", "10.0.0.2/24");
    back(&field.a);
    field.recover();
    // Sets the host's end of a link down and up, then the router's end.
    for (host, device) in [(&field.a, "eth0"), (&r, "eth0")] {
        host.ip(&format!("link set {device} down"));
        assert!(!field.a.run("ping -c 1 -W 0.05 10.0.1.2").ok());
        host.ip(&format!("link set {device} up"));
        back(&field.a);
        field.recover();
    }
    // The link goes down and up repeatedly while frames are sent to it at full rate.
    let mut hostile = Hostile::new(FROM_B, 5);
    let frames: Vec<_> = (0..ROUND).map(|_| hostile.mutated()).collect();
    let flood = field.b.flood("eth0", &frames, duration());
    for _ in 0..5 {
        for state in ["down", "up"] {
            std::thread::sleep(duration() / 12);
            r.ip(&format!("link set eth0 {state}"));
        }
    }
    flood.wait(Duration::from_secs(200)).good();
    field.recover();
    let account = field.settle();
    // Each change is reported twice, by the receiving and by the sending element. The other device is not
    // affected.
    let told = |what: &str| account.said.lines().filter(|line| line.contains(what)).count();
    assert_eq!(told("eth1"), 0, "{}", account.said);
    assert!((4..=14).contains(&told("eth0: device is back")), "{}", account.said);
    assert_eq!(told("eth0"), 2 * told("eth0: device is back"), "{}", account.said);
}

#[test]
fn a_lie_is_undone_by_the_question_that_it_causes() {
    // A false claim replaces the Ethernet address of a host in the ARP table. The next packet to that host makes
    // the router broadcast an ARP request, and the host answers.
    let Some(field) = Field::new() else { return };
    let mut a = field.a.wire("eth0");
    let liar = [2, 0, 0, 0, 6, 6];
    let claim = |ether| {
        let body = frames::arp(2, (ether, address("10.0.0.2")), (R0, address("10.0.0.1")));
        frames::ethernet(R0, ether, 0x0806, &body)
    };
    a.send(&claim(liar));
    // Ensures that the frame is on the link before the request.
    a.rest(Duration::ZERO);
    assert!(!field.a.run("ping -c 1 -W 0.1 10.0.1.2").ok());
    field.recover();
    assert!(a.rest(Duration::ZERO).iter().any(|f| arp_in(&f.bytes).is_some()));
    field.settle();
}
