// SPDX-License-Identifier: MIT OR Apache-2.0
//! A VLAN (IEEE 802.1Q). The test builds the tagged frames, because the hosts' kernels may lack
//! VLAN support.

use crate::net::{A, QUIET, R0, castanet, hosts, lab};
use castanet_lab::frames::{self, BROADCAST, Ip, address, arp_in, ip_in};
use castanet_lab::{Frame, Process, Router};
use std::time::Duration;

/// VLAN 7, priority 5.
const TAG: [u8; 4] = [0x81, 0, 0xa0, 7];

fn tagged(mut frame: Vec<u8>, tag: [u8; 4]) -> Vec<u8> {
    frame.splice(12..12, tag);
    frame
}

/// Returns a frame of VLAN 7 without its tag; `None` for other frames.
fn untagged(frame: &Frame) -> Option<Vec<u8>> {
    let inside = frame.bytes.get(12..16).filter(|tag| tag[..2] == TAG[..2] && tag[3] == 7);
    inside.map(|_| [&frame.bytes[..12], &frame.bytes[16..]].concat())
}

#[test]
fn tags_come_off_and_go_on() {
    let Some(lab) = lab() else { return };
    let (a, r, b) = hosts(&lab);
    let mut new = a.command(castanet());
    new.args(["new", "ip-router", "eth0=10.0.0.1/24", "eth1=10.0.1.1/24"]);
    let text = Process::start(new).wait(Duration::from_secs(200)).good();
    // The first interface uses VLAN 7 only.
    let (from, to) = ("Interface(eth0, ", "Tagged(eth0, ");
    let definition: String = text
        .split("elementclass Interface")
        .nth(1)
        .and_then(|rest| rest.split_inclusive("\n}\n").next())
        .map(|body| {
            let inward = "FromDevice($dev) -> HostEtherFilter($dev:eth)";
            let outward = "queue :: Queue -> ToDevice($dev)";
            assert!(body.contains(inward) && body.contains(outward), "{body}");
            let body =
                body.replace(inward, &format!("{inward} -> Classifier(12/8100 14/0007%0fff) -> VLANDecap"));
            let body =
                body.replace(outward, "queue :: Queue -> VLANEncap(VLAN_ID 7, VLAN_PCP 5) -> ToDevice($dev)");
            format!("elementclass Tagged{body}\n")
        })
        .unwrap_or_default();
    let text = text.replace(from, to).replace("ip :: Strip(14)", &format!("{definition}\nip :: Strip(14)"));
    let _r = Router::run(r, castanet(), &["-e", &text], 2);
    let (mut at_a, mut at_b) = (a.wire("eth0"), b.wire("eth0"));
    // ARP in the VLAN: a request is answered with a tag. Requests without a tag or in another VLAN are ignored.
    // The router learns the Ethernet address of 10.0.0.9 from this host's request.
    let ask = frames::arp(1, (A, address("10.0.0.9")), ([0; 6], address("10.0.0.1")));
    let ask = frames::ethernet(BROADCAST, A, 0x0806, &ask);
    at_a.send_all(&[ask.clone(), tagged(ask.clone(), [0x81, 0, 0, 8]), tagged(ask, TAG)]);
    let of_router = |f: &Frame| f.bytes.get(6..12) == Some(&R0);
    let reply = at_a.expect("reply", |f| of_router(f).then(|| f.clone()));
    assert_eq!(reply.bytes.get(12..16), Some(&TAG[..]));
    assert!(untagged(&reply).is_some_and(|f| arp_in(&f).is_some_and(|arp| !arp.asks)));
    assert_eq!(at_a.rest(QUIET).iter().filter(|f| of_router(f)).count(), 0, "one reply");
    // From the VLAN outward, the tag is removed.
    let packet = Ip { id: 21, ..Ip::udp("10.0.0.2", "10.0.1.2", b"out of the VLAN") };
    let frame = frames::ethernet(R0, A, 0x0800, &packet.bytes());
    at_a.send_all(&[frame.clone(), tagged(frame, TAG)]);
    let came = at_b.expect("packet", |f| ip_in(&f.bytes).filter(|ip| ip.header.identification == 21));
    assert_eq!((came.payload, came.header.time_to_live), (packet.payload, 63));
    assert_eq!(at_b.rest(QUIET).iter().filter_map(|f| ip_in(&f.bytes)).count(), 0, "once");
    // Into the VLAN: b's answer (its port is closed) is held until a's Ethernet address is resolved. Both the
    // request and the answer are tagged.
    let asks = |f: &Frame| untagged(f).and_then(|f| arp_in(&f)).filter(|arp| arp.asks);
    at_a.expect("question", |f| asks(f).filter(|arp| arp.to.1 == [10, 0, 0, 2]));
    let answer = frames::arp(2, (A, address("10.0.0.2")), (R0, address("10.0.0.1")));
    at_a.send(&tagged(frames::ethernet(R0, A, 0x0806, &answer), TAG));
    let back = at_a.expect("answer of b", |f| untagged(f).and_then(|f| frames::icmp_in(&f)));
    assert_eq!((back.kind, back.ip.from), ((3, 3), address("10.0.1.2")));
}
