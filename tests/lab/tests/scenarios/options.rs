// SPDX-License-Identifier: MIT OR Apache-2.0
//! IP options: filled in by the router, or rejected with an error.

use crate::net::{Net, both, from_a, ours, through};
use castanet_lab::RouterKind;
use castanet_lab::frames::{Ip, address, icmp_in, ip_in};

#[test]
fn record_route_is_filled_in() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let text = net.a.run("ping -n -R -c 1 -W 60 10.0.1.2").good();
        let start = text.find("RR:").unwrap_or_else(|| panic!("{kind:?}: {text}"));
        let route: Vec<&str> =
            text[start + 3..].lines().map(str::trim).take_while(|l| !l.is_empty()).collect();
        // Each host and router records the address of the outgoing interface.
        assert_eq!(
            route,
            ["10.0.0.2", "10.0.1.1", "10.0.1.2", "10.0.1.2", "10.0.0.1", "10.0.0.2"],
            "{kind:?}"
        );
    }
}

#[test]
fn timestamps_are_filled_in() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        // Timestamp options (RFC 791, 3.1): timestamps only; with addresses; for given addresses of the
        // router and of other hosts.
        let only = vec![68, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let with_address = vec![68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let given = vec![68, 12, 5, 3, 10, 0, 0, 1, 0, 0, 0, 0];
        let of_other = vec![68, 12, 5, 3, 10, 0, 0, 9, 0, 0, 0, 0];
        let full = vec![68, 8, 9, 0, 1, 2, 3, 4];
        let all = [only, with_address, given, of_other, full];
        let frames: Vec<_> = all
            .iter()
            .map(|options| from_a(&Ip { options: options.clone(), ..Ip::udp("10.0.0.2", "10.0.1.2", b"") }))
            .collect();
        let now = {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            since.map_or(0, |d| d.as_millis() % 86_400_000)
        };
        let filled: Vec<Vec<u8>> = through(&mut a, &mut b, &frames)
            .iter()
            .filter_map(|f| ip_in(&f.bytes))
            .map(|ip| ip.header.options.as_slice().to_vec())
            .collect();
        assert_eq!(filled.len(), 5, "{kind:?}: {filled:?}");
        let close = |bytes: &[u8]| {
            let stamp = u128::from(u32::from_be_bytes(bytes.try_into().unwrap_or_default()));
            assert!(
                stamp.abs_diff(now) < 5_000 || stamp.abs_diff(now) > 86_395_000,
                "{kind:?}: {stamp} at {now}"
            );
        };
        assert_eq!((filled[0][2], filled[0][3]), (9, 0), "{kind:?}");
        close(&filled[0][4..8]);
        // The router records the address of the outgoing interface. Linux records that of the incoming interface.
        let address = if kind == RouterKind::Kernel { [10, 0, 0, 1] } else { [10, 0, 1, 1] };
        assert_eq!((filled[1][2], filled[1][3], &filled[1][4..8]), (13, 1, &address[..]), "{kind:?}");
        close(&filled[1][8..12]);
        assert_eq!((filled[2][2], &filled[2][4..8]), (13, &[10, 0, 0, 1][..]), "{kind:?}");
        close(&filled[2][8..12]);
        assert_eq!(filled[3], all[3], "{kind:?}: not for this router");
        // The option is full, so the overflow counter is incremented.
        assert_eq!(filled[4], [68, 8, 9, 0x10, 1, 2, 3, 4], "{kind:?}");
        a.rest(std::time::Duration::ZERO);
    }
}

#[test]
fn bad_options_are_answered_with_a_pointer() {
    // Malformed options, and the offset of the bad byte from the start of the header.
    let table: [(&[u8], u8); 7] = [
        // Record route options: too short for the pointer, with a pointer that is too small, longer than the header.
        (&[7, 2, 0, 0], 21),
        (&[7, 7, 3, 0, 0, 0, 0, 0], 22),
        (&[1, 7, 7, 3, 0, 0, 0, 0], 23),
        (&[7, 40, 4, 0, 0, 0, 0, 0], 21),
        // Timestamp options: with a pointer that is too small, too short for the flags.
        (&[68, 8, 4, 0, 0, 0, 0, 0], 22),
        (&[68, 3, 5, 0], 21),
        // An overflow counter that is already at its maximum (RFC 791, 3.1).
        (&[68, 8, 9, 0xf0, 0, 0, 0, 0], 23),
    ];
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, _) = net.wires();
        for (options, pointer) in table {
            let sent = Ip { options: options.to_vec(), ..Ip::udp("10.0.0.2", "10.0.1.2", b"payload") };
            a.send(&from_a(&sent));
            let error = a.expect("error", |f| icmp_in(&f.bytes).filter(|m| m.kind.0 == 12));
            assert_eq!(error.kind, (12, 0), "{kind:?}: {options:?}");
            // If an option exceeds the header, Linux reports the offset of the type byte, not of the length
            // byte.
            let pointer = if kind == RouterKind::Kernel && options[1] == 40 { 20 } else { pointer };
            assert_eq!(error.rest, [pointer, 0, 0, 0], "{kind:?}: {options:?}");
            assert_eq!(error.ip.from, address("10.0.0.1"));
            assert_eq!(error.payload, sent.bytes(), "{kind:?}: as it was");
        }
    }
}

#[test]
fn options_that_it_does_not_know_pass() {
    // RFC 1812, 4.2.2.1 and 5.2.4.
    let Some(net) = Net::new(ours()) else { return };
    let (mut a, mut b) = net.wires();
    let unknown = vec![0x94, 4, 0, 0];
    let full = vec![7, 7, 8, 1, 2, 3, 4, 0];
    for options in [unknown, full] {
        let ip = Ip { options: options.clone(), ..Ip::udp("10.0.0.2", "10.0.1.2", b"") };
        let got = through(&mut a, &mut b, &[from_a(&ip)]);
        let got: Vec<_> = got.iter().filter_map(|f| ip_in(&f.bytes)).collect();
        assert_eq!(got.len(), 1, "{options:?}");
        assert_eq!(got[0].header.options.as_slice(), options);
    }
}
