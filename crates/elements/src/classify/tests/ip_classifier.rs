// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of IPClassifier.
#![allow(clippy::unwrap_used)]

use super::*;
use castanet_element::kit::{Kit, packet};
use castanet_element::spec::Names;

fn udp(src: [u8; 4], dport: u16, keep: usize) -> Packet {
    let mut data = Vec::new();
    let b = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(src, [9, 9, 9, 9], 64).udp(1000, dport);
    b.write(&mut data, &[0; 8]).unwrap();
    data.truncate(14 + keep);
    let mut p = packet(&data);
    p.set_mac_header(0);
    p.strip(14);
    p.set_network_header(0, 20.min(keep));
    p
}

#[test]
fn outputs_in_batches_of_any_size() {
    let config = "src 10.0.0.1, udp dst port 53, -";
    for size in [1usize, 2, 3, 32] {
        let mut kit = Kit::<IpClassifier>::with_ports(config, 1, 3).unwrap();
        let mut counts = [0; 3];
        let all: Vec<(u8, u16)> = (0..96).map(|i| (i % 5, if i % 3 == 0 { 53 } else { 54 })).collect();
        for some in all.chunks(size) {
            for (port, p) in kit.push(0, some.iter().map(|&(a, d)| udp([10, 0, 0, a], d, 36))) {
                let (a, d) = (p.data()[15], p.data()[23]);
                let want = if a == 1 { 0 } else { usize::from(d != 53) + 1 };
                assert_eq!(port, want);
                counts[port] += 1;
            }
        }
        assert_eq!(counts.iter().sum::<usize>(), 96);
    }
}

#[test]
fn short_packets() {
    for keep in 0..=36 {
        let mut kit = Kit::<IpClassifier>::with_ports("udp dst port 53, -", 1, 2).unwrap();
        let out = kit.push(0, [udp([1, 1, 1, 1], 53, keep)]);
        assert_eq!(out[0].0, usize::from(keep < 24), "{keep}");
    }
    let mut kit = Kit::<IpClassifier>::with_ports("-", 1, 1).unwrap();
    let unmarked = || packet(&[0x45; 40]);
    assert_eq!(kit.push(0, [unmarked(), udp([1, 1, 1, 1], 1, 36), unmarked()]).len(), 1);
    assert!(kit.push(0, [unmarked()]).is_empty());
    assert_eq!(kit.dropped(Reason::NoIpHeader), 3);
}

#[test]
fn ether_tests_look_at_the_mac_header() {
    let config = "src & ff:ff:ff:ff:ff:ff = 02:02:02:02:02:02, -";
    let mut kit = Kit::<IpClassifier>::with_ports(config, 1, 2).unwrap();
    assert_eq!(kit.push(0, [udp([1, 1, 1, 1], 1, 36)])[0].0, 0);
    let mut p = udp([1, 1, 1, 1], 1, 36);
    p.clear_mac_header();
    assert_eq!(kit.push(0, [p])[0].0, 1);
}

#[test]
fn patterns_can_be_changed() {
    let mut kit = Kit::<IpClassifier>::with_ports("tcp, -", 1, 2).unwrap();
    assert_eq!(kit.push(0, [udp([1, 1, 1, 1], 1, 36)])[0].0, 1);
    assert_eq!(kit.element.own_handlers().len(), 2);
    kit.write("pattern0", "udp").unwrap();
    assert_eq!(kit.read("pattern0").unwrap(), "udp");
    assert_eq!(kit.push(0, [udp([1, 1, 1, 1], 1, 36)])[0].0, 0);
    assert!(kit.write("pattern0", "udp port").is_err());
    assert!(kit.write("pattern7", "udp").is_err());
    assert_eq!(kit.read("pattern0").unwrap(), "udp", "a refused change leaves the pattern");
    assert!(kit.read("pattern2").is_err());
    assert!(kit.read("program").unwrap().ends_with("alignment offset 0\n"));
}

#[test]
fn names_of_the_configuration() {
    let mut names = Names::new();
    names.define_addresses("", "lan").net = Some(([10, 0, 0, 0], [255, 0, 0, 0]));
    names.define_addresses("", "gate").ip = Some([1, 1, 1, 1]);
    names.define_port("", "game", 17, 777);
    let config = "src net lan, src host gate and udp dst port game, -";
    let mut kit = Kit::<IpClassifier>::with_names(config, 1, 3, names).unwrap();
    let packets = [udp([10, 2, 3, 4], 777, 36), udp([1, 1, 1, 1], 777, 36), udp([1, 1, 1, 1], 778, 36)];
    let ports: Vec<_> = kit.push(0, packets).iter().map(|o| o.0).collect();
    assert_eq!(ports, [0, 1, 2]);
}

#[test]
fn errors() {
    let error = |config: &str| Kit::<IpClassifier>::with_ports(config, 1, 2).err().unwrap();
    assert_eq!(error("udp"), ["need 2 arguments, one per output port"]);
    assert_eq!(error("udp, tcp, -"), ["need 2 arguments, one per output port"]);
    assert_eq!(error("udp port, tcp porrt 3").len(), 2);
}
