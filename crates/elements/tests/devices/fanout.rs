// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests FANOUT: several elements share the packets of one device. All packets of a flow go to the same element.

use super::{during_calls, inside, number, pair, run, send, until};

/// An Ethernet frame with a UDP packet of one flow, and a number in its data.
pub fn udp_frame(flow: u16, number: u32) -> Vec<u8> {
    let ether = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 9], &[8, 0]].concat();
    let ip = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let udp = [&flow.to_be_bytes()[..], &[0, 53, 0, 26, 0, 0]].concat();
    [&ether[..], &ip, &udp, &number.to_be_bytes(), &[0; 14]].concat()
}

/// Parses a line that Print writes about a frame of [`udp_frame`]. Returns the label, the flow and the number; none for
/// any other line.
fn shown(line: &str) -> Option<(u8, String, u32)> {
    let hex = line.split('|').nth(1)?.replace(' ', "");
    Some((line.as_bytes()[0], hex[68..72].to_string(), u32::from_str_radix(&hex[84..92], 16).unwrap()))
}

#[test]
fn several_elements_share_the_flows_of_a_device() {
    const FLOWS: u16 = 64;
    const EACH: u32 = 10;
    inside("fanout::several_elements_share_the_flows_of_a_device", || {
        pair();
        let router = "a :: FromDevice(vb, FANOUT 7, PROTOCOL 0x0800) -> Print(a, 46) -> Discard;
            b :: FromDevice(vb, FANOUT 7, PROTOCOL 0x0800) -> Print(b, 46) -> Discard;
            StaticThreadSched(a 0, b 1);";
        // A device that is down at the start is shared from the moment when it is up.
        for up_first in [true, false] {
            if !up_first {
                run("ip link set vb down");
            }
            let (mut r, messages) = during_calls(router, 2, |log, running| {
                if !up_first {
                    run("ip link set vb up");
                    // Each element checks with a timer whether the device is up. When each has received a packet, both
                    // have joined.
                    until("both have joined", || {
                        let frames: Vec<_> = (0..FLOWS).map(|flow| udp_frame(flow, u32::MAX)).collect();
                        send(&frames);
                        let got = |e: &str| running.read(Some(e), "count", "").unwrap() != "0";
                        got("a") && got("b")
                    });
                }
                let of_test =
                    || log.lines().iter().filter_map(|l| shown(l)).filter(|s| s.2 != u32::MAX).count();
                let frames = (0..EACH).flat_map(|n| (0..FLOWS).map(move |flow| udp_frame(flow, n)));
                for burst in frames.collect::<Vec<_>>().chunks(64) {
                    send(burst);
                }
                until("all frames", || of_test() >= usize::from(FLOWS) * EACH as usize);
            });
            let mut last = std::collections::HashMap::new();
            let mut found = [0, 0];
            for (label, flow, number) in messages.iter().filter_map(|l| shown(l)) {
                if number == u32::MAX {
                    continue;
                }
                found[usize::from(label - b'a')] += 1;
                let before = last.insert(flow.clone(), (label, number));
                let want = number.checked_sub(1).map(|n| (label, n));
                assert_eq!(before, want, "flow {flow}: each frame once, in order, at one element");
            }
            assert_eq!(last.len(), usize::from(FLOWS));
            assert!(found.iter().all(|n| *n > 0), "{found:?}");
            assert_eq!(found[0] + found[1], u32::from(FLOWS) * EACH);
            assert_eq!(number(&mut r, "a", "kernel_drops") + number(&mut r, "b", "kernel_drops"), 0);
        }
    });
}
