// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::{Kit, packet};
use castanet_spec::Names;
use etherparse::{ArpOperation, ArpPacketSlice, Ethernet2Slice, PacketBuilder};

const YOU: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn request(target: [u8; 4]) -> Vec<u8> {
    let arp = etherparse::ArpPacket::new(
        etherparse::ArpHardwareId::ETHERNET,
        etherparse::EtherType::IPV4,
        ArpOperation::REQUEST,
        &YOU,
        &[10, 0, 0, 9],
        &[0; 6],
        &target,
    );
    let mut data = Vec::new();
    PacketBuilder::ethernet2(YOU, [255; 6]).arp(arp.unwrap()).write(&mut data).unwrap();
    data
}

/// Returns the last byte of the Ethernet address in the reply for an IP address.
fn told(kit: &mut Kit<ArpResponder>, target: [u8; 4]) -> Option<u8> {
    let mut data = request(target);
    data.resize(60, 7);
    let mut p = packet(&data);
    p.set_timestamp(5);
    p.set_paint(3);
    p.set_anno(anno::VLAN, [1, 2]);
    let out = kit.act([p]).pop()?.1;
    assert_eq!((out.len(), out.timestamp(), out.paint(), out.anno(anno::VLAN)), (42, 0, 0, [1, 2]));
    let frame = Ethernet2Slice::from_slice_without_fcs(out.data()).unwrap();
    assert_eq!((frame.destination(), frame.ether_type()), (YOU, etherparse::EtherType::ARP));
    let arp = ArpPacketSlice::from_slice(&out.data()[14..]).unwrap();
    assert_eq!(arp.operation(), ArpOperation::REPLY);
    assert_eq!((arp.sender_protocol_addr(), arp.target_protocol_addr()), (&target[..], &[10, 0, 0, 9][..]));
    assert_eq!((arp.target_hw_addr(), arp.sender_hw_addr()), (&YOU[..], &frame.source()[..]));
    Some(frame.source()[5])
}

#[test]
fn longest_prefix_wins_in_any_order() {
    let config = "10.1.0.0/16 02-00-00-00-00-02, 02:00:00:00:00:03 10.1.2.3 10.2.0.0/255.255.0.0, 10.1.2.0/24 02-00-00-00-00-04";
    let mut kit = Kit::<ArpResponder>::new(config).unwrap();
    let table = [
        ([10, 1, 9, 9], Some(2)),
        ([10, 1, 2, 3], Some(3)),
        ([10, 1, 2, 4], Some(4)),
        ([10, 2, 0, 1], Some(3)),
    ];
    for (ip, want) in table.into_iter().chain([([10, 3, 0, 1], None)]) {
        assert_eq!(told(&mut kit, ip), want, "{ip:?}");
    }
    assert_eq!(kit.dropped(Reason::NotAnswered), 1);
    let text = "10.1.2.3/32 02-00-00-00-00-03\n10.1.2.0/24 02-00-00-00-00-04\n\
                10.1.0.0/16 02-00-00-00-00-02\n10.2.0.0/16 02-00-00-00-00-03\n";
    assert_eq!(kit.read("table").unwrap(), text);
}

#[test]
fn handlers() {
    let mut kit = Kit::<ArpResponder>::new("").unwrap();
    assert_eq!((kit.read("table").unwrap(), told(&mut kit, [1, 1, 1, 1])), (String::new(), None));
    kit.write("add", "1.1.1.0/24 02-00-00-00-00-01").unwrap();
    assert_eq!(told(&mut kit, [1, 1, 1, 1]), Some(1));
    kit.write("add", "1.1.1.0/24 02-00-00-00-00-02").unwrap();
    assert_eq!(told(&mut kit, [1, 1, 1, 1]), Some(2));
    assert_eq!(kit.read_with("lookup", "1.1.1.7").unwrap(), "02-00-00-00-00-02");
    assert_eq!(kit.read_with("lookup", "1.1.2.7").unwrap(), "");
    assert!(kit.read_with("lookup", "x").is_err());
    assert_eq!(kit.write("remove", "1.1.1.0/25").unwrap_err().to_string(), "1.1.1.0/25 not found");
    kit.write("remove", "1.1.1.0/24").unwrap();
    assert_eq!(kit.read("table").unwrap(), "");
}

#[test]
fn arguments() {
    let fails = |c: &str| Kit::<ArpResponder>::new(c).err().unwrap().join(" ");
    assert_eq!(fails("1.1.1.1"), "missing ETH");
    assert_eq!(fails("02-00-00-00-00-02"), "missing IP");
    assert_eq!(fails("1.1.1.1 2-0-0-0-0-2 2-0-0-0-0-3"), "more than one ETH");
    assert!(fails("1.1.1.1 nonsense").contains("'nonsense'"));
    let mut names = Names::new();
    let host = names.define_addresses("", "eth0");
    (host.ip, host.ether) = (Some([3, 3, 3, 3]), Some([2, 0, 0, 0, 0, 5]));
    let mut kit =
        Kit::<ArpResponder>::with_names("eth0, 4.4.4.4 eth0:eth, eth0 02-00-00-00-00-06", 1, 1, names)
            .unwrap();
    assert_eq!((told(&mut kit, [3, 3, 3, 3]), told(&mut kit, [4, 4, 4, 4])), (Some(6), Some(5)));
}

#[test]
fn everything_else_leaves_unchanged() {
    let good = request([1, 1, 1, 1]);
    let changed = |i: usize, v: u8| {
        let mut d = good.clone();
        d[i] = v;
        d
    };
    let others = [12, 13, 14, 16, 18, 19, 20].map(|i| changed(i, good[i] ^ 1));
    let others = others.into_iter().chain([changed(21, 2), changed(22, 3)]);
    for d in others.chain((0..42).map(|n| good[..n].to_vec())) {
        let mut kit = Kit::<ArpResponder>::with_ports("0/0 02-00-00-00-00-01", 1, 2).unwrap();
        let out = kit.act([packet(&d), packet(&good)]);
        assert_eq!((out.len(), out[0].0, out[1].0), (2, 0, 1));
        assert_eq!(out[1].1.data(), d);
    }
}
