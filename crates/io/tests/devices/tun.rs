// SPDX-License-Identifier: MIT OR Apache-2.0
//! TUN and TAP devices, whose other end is the host's stack.

use castanet_io::device::{DeviceError, Outgoing, Refusal, Setup, Tun, TunOptions, VnetHeader, info, set_up};
use castanet_testkit::namespace::{has_tun, inside, pair, run};
use std::time::Duration;

#[test]
fn a_tap_device_speaks_with_the_host() {
    inside("tun::a_tap_device_speaks_with_the_host", || {
        if !has_tun() {
            return;
        }
        let options = TunOptions { name: Some("tap%d".into()), tap: true, queues: 2, ..Default::default() };
        let t = Tun::open(&options).unwrap();
        assert_eq!((t.name(), t.queues().len()), ("tap0", 2));
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/tap0/disable_ipv6", "1");
        let setup = Setup { ip: Some(([10, 9, 0, 1].into(), 24)), up: Some(true), ..Setup::default() };
        set_up("tap0", &setup).unwrap();
        run("ip neighbour add 10.9.0.2 lladdr 02:00:00:00:00:02 dev tap0");
        let udp = std::net::UdpSocket::bind("10.9.0.1:5000").unwrap();
        udp.send_to(b"to the program", "10.9.0.2:6000").unwrap();
        let mut buffer = [0; 2000];
        // Only a hanging test reaches this limit.
        let (vnet, n) = (0..20_000)
            .find_map(|i| {
                std::thread::sleep(Duration::from_millis(5));
                t.receive(i % 2, &mut buffer).unwrap()
            })
            .unwrap();
        assert_eq!(vnet, VnetHeader::NONE, "without offloads the host completes checksums");
        assert_eq!(&buffer[42..n], b"to the program");
        let mut answer = Vec::new();
        let host = buffer[6..12].try_into().unwrap();
        etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 2], host)
            .ipv4([10, 9, 0, 2], [10, 9, 0, 1], 9)
            .udp(6000, 5000)
            .write(&mut answer, b"to the host")
            .unwrap();
        assert_eq!(t.send(0, Outgoing::plain(&answer)), Ok(()));
        udp.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
        let n = udp.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..n], b"to the host");
        assert_eq!(t.receive(0, &mut buffer), Ok(None));
        run("ip link set tap0 down");
        assert_eq!(t.send(0, Outgoing::plain(&answer)), Err(Refusal::Down));
        run("ip link del tap0");
        let gone = t.receive(0, &mut buffer);
        assert!(matches!(gone, Err(DeviceError::Missing { .. } | DeviceError::Down { .. })), "{gone:?}");
        assert_eq!(t.send(0, Outgoing::plain(&answer)), Err(Refusal::Down));
    });
}

#[test]
fn tun_devices_stay_when_they_are_to() {
    inside("tun::tun_devices_stay_when_they_are_to", || {
        if !has_tun() {
            return;
        }
        let options = TunOptions { name: Some("mine".into()), persistent: true, ..Default::default() };
        let t = Tun::open(&options).unwrap();
        assert!(!info("mine").unwrap().link.is_ethernet());
        assert_eq!(t.index(), Ok(info("mine").unwrap().index));
        drop(t);
        assert!(info("mine").is_ok());
        assert!(Tun::open(&TunOptions { tap: true, ..options.clone() }).is_err(), "it is of the other kind");
        let t = Tun::open(&TunOptions { persistent: false, ..options.clone() }).unwrap();
        t.forget().unwrap();
        drop(t);
        assert!(info("mine").is_err());
        for name in ["x".repeat(16), "a/b".into(), "a b".into()] {
            let bad = Tun::open(&TunOptions { name: Some(name), ..Default::default() }).unwrap_err();
            assert!(bad.to_string().contains("is no name for a device"), "{bad}");
        }
        pair();
        let bad = Tun::open(&TunOptions { name: Some("va".into()), ..Default::default() }).unwrap_err();
        assert!(bad.to_string().contains("no TUN or TAP device"), "{bad}");
    });
}
