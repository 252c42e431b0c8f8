// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of device information and of missing permissions.

use crate::ALL;
use castanet_io::device::{PacketSender, Setup, all, info, set_up};
use castanet_testkit::namespace::{inside, pair, run};

#[test]
fn facts_are_those_of_the_ip_command() {
    inside("facts::facts_are_those_of_the_ip_command", || {
        pair();
        let setup = Setup {
            ip: Some(([10, 2, 3, 4].into(), 20)),
            gateway: Some([10, 2, 0, 1].into()),
            mtu: Some(1300),
            ether: Some([2, 1, 1, 1, 1, 1]),
            up: Some(true),
        };
        set_up("va", &setup).unwrap();
        // The kernel reports the carrier of a link some time after the link was set up.
        castanet_testkit::until("va has a carrier", || info("va").unwrap().running);
        let a = info("va").unwrap();
        assert_eq!((a.ip, a.gateway, a.mtu), (setup.ip, setup.gateway, 1300));
        assert_eq!((a.ether, a.ether_broadcast), (setup.ether, Some(ALL)));
        assert_eq!(a.netmask().unwrap().to_string(), "255.255.240.0");
        assert_eq!(a.broadcast.unwrap().to_string(), "10.2.15.255");
        assert!(a.up && a.running);
        let shown = run("ip -o address show va; ip -o link show va; ip route");
        for word in
            ["10.2.3.4/20 brd 10.2.15.255", "mtu 1300", "02:01:01:01:01:01", "default via 10.2.0.1 dev va"]
        {
            assert!(shown.contains(word), "{word} in {shown}");
        }
        set_up("va", &Setup { up: Some(false), ..Setup::default() }).unwrap();
        assert!(!info("va").unwrap().up);
        assert_eq!(all().unwrap().len(), 3);
        let error = set_up("va", &Setup { mtu: Some(u32::MAX), ..Setup::default() }).unwrap_err();
        assert!(error.to_string().starts_with("va: cannot set its MTU"), "{error}");
    });
}

#[test]
fn without_privileges_the_mend_is_told() {
    inside("facts::without_privileges_the_mend_is_told", || {
        pair();
        let me = std::env::current_exe().unwrap();
        // Run the same program without capabilities.
        let out = run(&format!(
            "setpriv --bounding-set=-all --inh-caps=-all {} --exact facts::privileges --nocapture --ignored 2>&1 || true",
            me.display()
        ));
        assert!(out.contains("help: run as root, or grant CAP_NET_RAW"), "{out}");
    });
}

#[test]
#[ignore = "run by another test, without privileges"]
fn privileges() {
    println!("{}", PacketSender::open("va").unwrap_err());
}
