// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit congestion notification (RFC 3168) over a network that marks packets.

use super::{Ecn, Network, User, bytes, engine, header, packets, settings};
use castanet_wire::ipv4::Ipv4Header;
use castanet_wire::tcp::flag;

/// Exchanges data; each packet that may be marked is marked so often. Returns the numbers of packets that may be marked, those that have
/// data and may not, and the flags of all.
fn exchange(ecn: [Ecn; 2], every: usize, loss: u64) -> ([usize; 2], u8) {
    let users = [User::default(), User::default()];
    let ends = [0, 1].map(|n| {
        users[n].0.lock().write = bytes(200_000, n as u64);
        let settings = super::Settings { ecn: ecn[n], dscp: 10, ..settings(n) };
        engine(n, settings, users[n].clone())
    });
    let mut n = Network::new(ends, 1, [loss, 0, 0, 0]);
    n.marks = every;
    n.connect();
    n.run(200);
    let [a, b] = users.each_ref().map(|u| u.0.lock());
    assert!(a.read == b.write && b.read == a.write, "{ecn:?}: {} {}", a.read.len(), b.read.len());
    assert!(n.seen.iter().all(|(tos, ..)| tos >> 2 == 10));
    let count = |capable| n.seen.iter().filter(|(tos, _, data)| (tos & 3 == 2) == capable && *data).count();
    let marked: u64 = n.ends.iter().map(|e| e.counts().marked.get()).sum();
    assert_eq!(marked > 0, every > 0 && count(true) > 0);
    ([count(true), count(false)], n.seen.iter().fold(0, |all, (_, flags, _)| all | flags))
}

/// It is used if one end offers it and the other one accepts it.
#[test]
fn both_ends_have_to_agree() {
    for (offer, answer, used) in [
        (Ecn::Offer, Ecn::Accept, true),
        (Ecn::Offer, Ecn::Offer, true),
        (Ecn::Offer, Ecn::Off, false),
        (Ecn::Accept, Ecn::Offer, false),
        (Ecn::Off, Ecn::Accept, false),
    ] {
        for loss in [0, 3] {
            let ([capable, not], flags) = exchange([offer, answer], 20, loss);
            assert_eq!(capable > 50, used, "{offer:?} {answer:?} {capable}");
            // What is sent again may not be marked.
            assert!(!used || (not > 0) == (loss > 0), "{offer:?} {answer:?} {not}");
            let both = flag::ECE | flag::CWR;
            let offered = if offer == Ecn::Offer { both } else { 0 };
            assert_eq!(flags & both, offered);
        }
    }
}

/// A super-packet is marked as a whole, and all its segments may be.
#[test]
fn super_packets_keep_the_codepoint() {
    let user = User::default();
    user.0.lock().write = bytes(60_000, 1);
    let with = |n| super::Settings { ecn: Ecn::Offer, super_packets: true, ..settings(n) };
    let mut ends = [engine(0, with(0), user), engine(1, with(1), User::default())];
    let now = 1_000_000_000_000;
    ends.iter_mut().for_each(|e| e.pass_time(now));
    ends[0].connect(None, std::net::SocketAddrV4::new(super::address(1), 80), 0, now).unwrap();
    let mut joined = 0;
    for from in [0, 1, 0, 1, 0] {
        for packet in packets(&mut ends[from]) {
            joined +=
                usize::from(packet.len() > 1500 && Ipv4Header::from_prefix(&packet).unwrap().ecn() == 2);
            if packet.len() <= 1500 {
                assert_eq!(header(&packet).flags & flag::RST, 0);
                super::give(&mut ends[1 - from], &packet, now).unwrap();
            }
        }
    }
    assert!(joined > 0);
}
