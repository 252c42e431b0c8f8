// SPDX-License-Identifier: MIT OR Apache-2.0
//! Port-to-port transfer: the hosts behave as on one link.

use crate::net::{castanet, lab};
use castanet_lab::Router;
use castanet_lab::frames::ethernet;
use std::time::Duration;

#[test]
fn all_frames_cross_as_they_are() {
    let Some(lab) = lab() else { return };
    let (a, b, r) = (lab.host("a"), lab.host("b"), lab.host("r"));
    lab.link((&a, "eth0"), (&r, "eth0"));
    lab.link((&b, "eth0"), (&r, "eth1"));
    a.address("eth0", "10.0.0.1/24");
    b.address("eth0", "10.0.0.2/24");
    // conf/transfer.click describes several pairs of simulated devices. Keep one pair, and replace it by real devices.
    let conf = castanet_tests::binary::root().join("conf/transfer.click");
    let conf = std::fs::read_to_string(conf).unwrap_or_else(|e| panic!("{e}"));
    let class = |line: &str, name: &str| line.starts_with(&format!("elementclass {name} "));
    let line = |line: &str| match line {
        l if class(l, "From") => {
            "elementclass From { $device | FromDevice($device, PROMISC true) -> output; }\n".into()
        }
        l if class(l, "To") => {
            "elementclass To { $device | input -> sent :: Counter -> ToDevice($device); }\n".into()
        }
        l if l.starts_with("From(eth2)") || l.starts_with("From(eth3)") || l.starts_with("DriverManager") => {
            String::new()
        }
        l => format!("{l}\n"),
    };
    let text: String = conf.lines().map(line).collect();
    let router = Router::run(r, castanet(), &["-q", "-e", &text, "-h", "to1/sent.count"], 2);
    // ARP packets also cross the router.
    a.ping(3, "10.0.0.2");
    // Frames of an unknown protocol, addressed to other stations, arrive exactly once and in order.
    let (mut from, mut at) = (a.wire("eth0"), b.wire("eth0"));
    let frame = |i: u16| {
        let text: Vec<u8> = i.to_be_bytes().into_iter().chain((0..98).map(|k| k as u8 ^ i as u8)).collect();
        ethernet([2, 9, 9, 9, 9, 9], [2, 8, 8, 8, 8, 8], 0x88b5, &text)
    };
    let sent: Vec<Vec<u8>> = (0..1000).map(frame).collect();
    for some in sent.chunks(100) {
        from.send_all(some);
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut seen = Vec::new();
    while seen.len() < sent.len() {
        seen.push(
            at.expect("frame", |f| (f.bytes.get(12..14) == Some(&[0x88, 0xb5])).then(|| f.bytes.clone())),
        );
    }
    assert!(seen == sent, "frames changed, or came in another order");
    let more = at.rest(Duration::from_millis(200));
    assert!(more.iter().all(|f| f.bytes.get(12..14) != Some(&[0x88, 0xb5])), "frames came twice");
    let ended = router.stop();
    let count =
        ended.as_ref().and_then(|o| o.stdout.lines().filter_map(|l| l.parse::<u32>().ok()).next_back());
    assert!(ended.as_ref().is_some_and(|o| o.ok() && o.stderr.is_empty()), "{ended:?}");
    assert!(count.is_some_and(|n| n >= 1003), "{count:?}");
}
