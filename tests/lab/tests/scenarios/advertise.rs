// SPDX-License-Identifier: MIT OR Apache-2.0
//! Router advertisements (RFC 1256).

use crate::net::{A, Net, QUIET, ours};
use castanet_lab::frames::{self, Ip, address, icmp_in};
use std::time::Duration;

/// The all-routers multicast address, in IP and Ethernet form.
const ROUTERS: (&str, [u8; 6]) = ("224.0.0.2", [1, 0, 0x5e, 0, 0, 2]);

fn ask(from: &str, to: (&str, [u8; 6])) -> Vec<u8> {
    let packet = Ip { ttl: 1, ..Ip::icmp(from, to.0, 10, 0, [0; 4], b"") };
    frames::ethernet(to.1, A, 0x0800, &packet.bytes())
}

#[test]
fn solicitations_are_answered() {
    // RFC 1812, 4.3.3.10. The answer comes within 2 s and is multicast to all hosts.
    let Some(net) = Net::asked(ours(), &[], &["--advertise"]) else { return };
    for to in [ROUTERS, ("255.255.255.255", frames::BROADCAST)] {
        let (mut a, mut b) = net.wires();
        a.send(&ask("10.0.0.2", to));
        let found = a.find(Duration::from_secs(200), |f| {
            let told = icmp_in(&f.bytes).filter(|m| m.kind == (9, 0))?;
            assert_eq!(f.bytes.first_chunk(), Some(&[1, 0, 0x5e, 0, 0, 1]));
            Some(told)
        });
        let told = found.unwrap_or_else(|| panic!("nobody answers {to:?}"));
        assert_eq!((told.ip.from, told.ip.to), (address("10.0.0.1"), address("224.0.0.1")));
        assert_eq!((told.ip.header.time_to_live, told.rest), (1, [1, 2, 7, 8]), "one address, for 1800 s");
        assert_eq!(told.payload, [10, 0, 0, 1, 0, 0, 0, 0]);
        // Advertisements are specific to their network, and solicitations are not forwarded.
        let wrong = b.rest(QUIET).into_iter().filter_map(|f| icmp_in(&f.bytes));
        assert!(wrong.filter(|m| m.kind.0 == 10).count() == 0);
    }
    // Other packets are forwarded as before.
    net.a.ping(2, "10.0.1.2");
    net.a.ping(2, "10.0.1.1");
}
