// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the text form of requests and answers, including hostile text, and tests refusals.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::device::xdp::Refusal;
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn all() -> Vec<Request> {
    let setup = Setup {
        ip: Some((Ipv4Addr::new(10, 0, 0, 1), 24)),
        gateway: Some(Ipv4Addr::new(10, 0, 0, 2)),
        mtu: Some(1400),
        ether: Some([0, 0, 0, 0, 0, 9]),
        up: Some(true),
    };
    let device = || "eth0".to_string();
    vec![
        Request::Packet { device: device(), sends: true },
        Request::Packet { device: device(), sends: false },
        Request::Tun { device: String::new(), tap: true },
        Request::Tun { device: "tap%d".into(), tap: false },
        Request::SetUp { device: device(), setup: setup.clone() },
        Request::SetUp { device: device(), setup: Setup::default() },
        Request::TakeAway { device: device(), setup },
        Request::Raise { device: device() },
        Request::Lower { number: 7 },
        Request::XdpSocket { device: device() },
        Request::XdpAttach { device: device(), queues: 4 },
        Request::XdpStart { attachment: 1, queue: 2, socket: Some(3) },
        Request::XdpStart { attachment: 1, queue: 2, socket: None },
        Request::XdpForget { number: 9 },
        Request::XdpPin { map: 3, devices: 2 },
        Request::XdpUnpin,
        Request::HostPort { device: device() },
        Request::XdpCode {
            attachment: 1,
            part: 2,
            instructions: vec![Instruction::new(0x95, 1, 2, -3, -4); 3],
        },
        Request::XdpLoad { attachment: 1, runs: true },
        Request::Raw { protocol: 1 },
        Request::Seal,
    ]
}

#[test]
fn requests_are_read_as_they_are_written() {
    for request in all() {
        assert_eq!(Request::parse(&request.text()), Some(request));
    }
    for wrong in [
        "",
        " ",
        "packet eth0",
        "packet eth0 both",
        "packet ../x send",
        "packet averyveryverylongname send",
        "setup eth0 10.0.0.1 33 - - - -",
        "setup eth0 - - - - 12 -",
        "raw 256",
        "xdp-start 1 2",
        "xdp-attach eth0 -1",
        "xdp-code 1 2 123",
        "xdp-code 1 -2 9500000000000000",
        "seal now",
    ] {
        assert_eq!(Request::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn errors_come_back_as_they_were() {
    let missing = DeviceError::missing("eth9");
    let unsupported = DeviceError::Unsupported { name: "eth9".into(), what: "that, or this".into() };
    let busy = DeviceError::Busy { name: "eth9".into() };
    let refusal = Refusal::new(3, Errno::ACCESS, "7: (bf) r0 = r3\nR3 !read_ok\nprocessed 8 insns\n");
    let unverified = DeviceError::Unverified { name: "eth9".into(), refusal };
    let down = DeviceError::Down { name: "eth9".into() };
    for e in [missing, unsupported, busy, down, unverified] {
        let text = Reply::of(Err(e.clone())).text();
        assert_eq!(Reply::parse(&text).result("eth9", "try"), Err(e));
    }
}

proptest! {
    #[test]
    fn no_text_does_harm(text in ".{0,80}", words in prop::collection::vec("(packet|tun|setup|raise|xdp-attach|xdp-start|xdp-forget|xdp-socket|xdp-pin|xdp-unpin|-|[0-9.]{1,8}|eth0|tap)", 0..9)) {
        for text in [text, words.join(" ")] {
            if let Some(request) = Request::parse(&text) {
                prop_assert_eq!(Request::parse(&request.text()), Some(request));
            }
            let _ = Reply::parse(&text).result("eth0", "try");
        }
    }
}

/// A connection to an opener on another thread.
fn opener(devices: Option<&[&str]>) -> Client {
    let (ours, theirs) = pair().unwrap();
    let devices = devices.map(|d| d.iter().map(ToString::to_string).collect());
    std::thread::spawn(move || serve(&theirs, devices, std::process::id()));
    Client(Mutex::new(ours))
}

#[test]
fn later_configurations_get_no_more_than_the_listed_devices() {
    let setup = Setup { up: Some(true), ..Setup::default() };
    let client = opener(Some(&["listed"]));
    // Devices of the first configuration may be used again later. None of the devices named here exists, so an
    // allowed request returns `Missing`.
    assert!(matches!(client.set_up("first", &setup), Err(DeviceError::Missing { .. })));
    client.ask("", "", &Request::Seal).unwrap();
    for name in ["first", "listed"] {
        assert!(matches!(client.set_up(name, &setup), Err(DeviceError::Missing { .. })), "{name}");
    }
    let text = client.set_up("other", &setup).unwrap_err().to_string();
    assert!(text.starts_with("other: refused to set it up: it is not among the --devices"), "{text}");
    assert!(matches!(client.packet_socket("other", "open", false), Err(DeviceError::Refused { .. })));
    assert!(matches!(client.raise("other"), Err(DeviceError::Refused { .. })));
    assert!(matches!(client.tun("other", true), Err(DeviceError::Refused { .. })));
    assert!(matches!(client.take_away("other", &setup), Err(DeviceError::Refused { .. })));
    assert!(matches!(client.raw(1), Err(DeviceError::Refused { .. })));
    assert!(matches!(client.xdp_socket("other"), Err(DeviceError::Refused { .. })));
    assert!(matches!(client.attach("other", 1), Err(DeviceError::Refused { .. })));
    assert!(matches!(client.host_port("other"), Err(DeviceError::Refused { .. })));
    assert!(matches!(client.host_port("listed"), Err(DeviceError::Missing { .. })));
    // Numbers of nothing.
    assert!(client.start("listed", 1, 0, Some(2)).is_err());
    assert!(client.start("listed", 1, 0, None).is_err());
    client.forget("listed", 7).unwrap();
    assert!(client.pin("listed", 7, 1).is_err());
    client.unpin().unwrap();
    // Without a list of devices, later configurations may use any device.
    let client = opener(None);
    client.ask("", "", &Request::Seal).unwrap();
    assert!(matches!(client.set_up("other", &setup), Err(DeviceError::Missing { .. })));
}

#[test]
fn a_process_that_asks_nonsense_or_ends_does_no_harm() {
    let (ours, theirs) = pair().unwrap();
    let served = std::thread::spawn(move || serve(&theirs, None, std::process::id()));
    for text in [&b"\xff\xfe"[..], b"sealed", &[b'a'; LONGEST]] {
        send(&ours, text, SendFlags::empty()).unwrap();
        let mut answer = [0; LONGEST];
        let (n, _) = rustix::net::recv(&ours, &mut answer[..], RecvFlags::empty()).unwrap();
        assert!(answer[..n].starts_with(b"refused "));
    }
    drop(ours);
    served.join().unwrap().unwrap();
    let (ours, theirs) = pair().unwrap();
    drop(theirs);
    let client = Client(Mutex::new(ours));
    let text = client.raise("eth0").unwrap_err().to_string();
    assert!(text.contains("has ended; start the router again"), "{text}");
}
