// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the output and the errors of `castanet new ip-router`.
#![allow(clippy::unwrap_used)]

use super::super::checked;
use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    router: IpRouter,
}

/// Parses a command line, whose words are separated by spaces.
fn router(line: &str) -> Result<IpRouter, String> {
    let words = std::iter::once("new").chain(line.split_whitespace());
    Line::try_parse_from(words).map(|l| l.router).map_err(|e| e.to_string())
}

fn configuration(line: &str) -> String {
    router(line).unwrap().configuration().unwrap()
}

#[test]
fn every_size_checks_clean() {
    for n in [1, 2, 8, 40, 255] {
        let interfaces: Vec<_> = (0..n).map(|i| format!("eth{i}=10.0.{i}.1/24")).collect();
        let (elements, errors) = checked(&configuration(&interfaces.join(" ")));
        assert_eq!(errors, [""; 0]);
        // The router of TOCS 2000, section 6.2, has 19 elements per interface and 9 shared elements. This
        // router has three more per interface: two for errors that the figure leaves out (no ARP reply,
        // source route failed), and a Tee that passes the neighbours' ARP requests to the ARPQuerier as well.
        // It also has thirteen more shared elements: for packets to the router itself, which the figure leaves
        // to Linux, and for several workers.
        assert_eq!(elements, 22 * n + 22, "{n} interfaces");
    }
}

#[test]
fn routes_and_mtus_check_clean() {
    for line in [
        "eth0=10.0.0.1/24 eth1=10.0.1.1/24 --route 0.0.0.0/0=10.0.1.2 --mtu 9000 --mtu eth1=1400 --icmp-errors 5",
        "eth0=10.0.0.1/31 eth1=10.0.1.1/32 --route 10.9.0.0/16=10.0.0.0 --route 10.9.1.0/24=unreachable",
        "eth0=10.0.0.1/24 eth1=10.0.1.1/31 eth2=10.0.2.1/32 --route 0.0.0.0/0=10.0.1.0 --check-sources",
        "eth0=10.0.0.1/30 -r 10.0.0.0/8=10.0.0.2 -r 0.0.0.0/0=unreachable -m 68",
        "eth0=10.0.0.1/24 eth1=10.0.1.1/24 --source-routes follow --shield",
        "eth0=10.0.0.1/24 eth1=10.0.1.1/24 --advertise --check-sources --source-routes drop",
    ] {
        assert_eq!(checked(&configuration(line)).1, [""; 0], "{line}");
    }
}

#[test]
fn each_worker_receives_on_each_interface() {
    let text = configuration("a=10.0.0.1/24 b=10.0.1.1/24 -j 3 --shield --advertise");
    // `checked` places the elements on one worker, so the preferences for workers 1 and 2 are errors.
    let errors = checked(&text).1;
    assert!(errors.iter().all(|e| e.starts_with("thread preference")) && errors.len() == 4, "{errors:?}");
    assert_eq!(text.matches("FromDevice($dev, SNIFFER false, FANOUT $color)").count(), 3, "{text}");
    assert_eq!(text.matches("FromDevice").count(), 3);
    let homes = "StaticThreadSched(interface1/from0 0, interface1/from1 1, interface1/from2 2,\n                  interface2/from0 0,";
    assert!(text.contains(homes) && text.contains("castanet run -j 3 FILE"), "{text}");
    assert!(!configuration("a=10.0.0.1/24").contains("FANOUT"));
    assert!(router("a=10.0.0.1/24 -j 0").is_err());
}

#[test]
fn what_is_asked_for_is_written() {
    let plain = configuration("a=10.0.0.1/24 b=10.0.1.1/24");
    assert!(plain.contains("$SOURCE_ROUTES drop)") && !plain.contains("Advertiser"));
    assert!(configuration("a=10.0.0.1/24 --source-routes follow").contains("$SOURCE_ROUTES follow)"));
    let shielded = configuration("a=10.0.0.1/24 --shield");
    assert!(shielded.contains("FromDevice($dev, SNIFFER false)") && !plain.contains("SNIFFER"));
    assert!(shielded.contains("//     ip link set a up mtu 1500\n") && !shielded.contains("ip_forward"));
    assert!(plain.contains("//     ip addr flush dev a; ip link set a up mtu 1500\n"));
    // --advertise adds four elements per interface, and their connections.
    let more = configuration("a=10.0.0.1/24 b=10.0.1.1/24 --advertise");
    assert_eq!(checked(&more).0, checked(&plain).0 + 2 * 4);
    assert!(more.contains("ip link set b up mtu 1500 allmulticast on\n") && !plain.contains("allmulticast"));
    assert!(more.contains("kind [4] -> Paint($color) -> output;") && !more.contains("kind [2] -> Paint"));
}

#[test]
fn routes_are_where_they_should_be() {
    let line = "a=10.0.0.1/24 b=10.0.1.1/24 c=10.0.2.1/31 -r 10.9.0.0/16=10.0.1.2 -r 10.8.0.0/16=unreachable";
    let table = router(line).unwrap().table();
    assert_eq!(
        table,
        [
            "a:ip 0, b:ip 0, c:ip 0",
            "a:net 1, b:net 2, c:net 3",
            "10.9.0.0/16 10.0.1.2 2",
            "10.8.0.0/16 5",
            "a:bcast 4, b:bcast 4, 0.0.0.0/8 4, 127.0.0.0/8 4, 224.0.0.0/3 4",
            "0.0.0.0/0 5",
        ]
    );
    let line = "a=10.0.0.1/24 -r 0.0.0.0/0=10.0.0.2";
    let table = router(line).unwrap().table();
    assert_eq!(
        table.last().map(String::as_str),
        Some("a:bcast 2, 0.0.0.0/8 2, 127.0.0.0/8 2, 224.0.0.0/3 2")
    );
}

#[test]
fn the_last_mtu_of_a_device_wins() {
    let r = router("a=10.0.0.1/24 b=10.0.1.1/24 -m 9000 -m b=1400 -m b=1300").unwrap();
    assert_eq!((r.mtu("a"), r.mtu("b")), (9000, 1300));
    assert_eq!(router("a=10.0.0.1/24").unwrap().mtu("a"), 1500);
}

#[test]
fn words_that_cannot_be() {
    for (line, message) in [
        ("", "required"),
        ("eth0", "expected DEVICE=ADDRESS/LENGTH, as in eth0=10.0.0.1/24"),
        ("eth0=10.0.0.1", "'10.0.0.1' has no prefix length"),
        ("eth0=10.0.0/24", "'10.0.0' is not an IPv4 address"),
        ("eth0=10.0.0.1/33", "the prefix length of '10.0.0.1/33' is not a number from 0 to 32"),
        ("eth0=10.0.0.1/0", "would make all addresses one network"),
        ("eth0=10.0.0.0/24", "10.0.0.0/24 is the address of the network"),
        ("eth0=10.0.0.255/24", "10.0.0.255/24 is the broadcast address of its network"),
        ("eth0=127.0.0.1/8", "127.0.0.1 is not a valid host address"),
        ("eth0=224.0.0.1/24", "224.0.0.1 is not a valid host address"),
        ("=10.0.0.1/24", "'' is not a device name"),
        ("e,h=10.0.0.1/24", "'e,h' is not a device name"),
        ("abcdefghijklmnop=10.0.0.1/24", "longer than 15 characters"),
        ("a=10.0.0.1/24 --route 10.9.0.0/16", "expected NETWORK/LENGTH=GATEWAY"),
        ("a=10.0.0.1/24 --route 10.9.0.1/16=10.0.0.2", "did you mean 10.9.0.0/16?"),
        ("a=10.0.0.1/24 --route 10.9.0.0/16=g", "'g' is not an IPv4 address or 'unreachable'"),
        ("a=10.0.0.1/24 --mtu 67", "expected 68 to 65535 bytes"),
        ("a=10.0.0.1/24 --mtu a=65536", "expected 68 to 65535 bytes"),
        ("a=10.0.0.1/24 --icmp-errors 0", "0 is not in 1.."),
        ("a=10.0.0.1/24 --source-routes obey", "possible values: drop, follow"),
    ] {
        let error = router(line).err().unwrap_or_default();
        assert!(error.contains(message), "{line}: {error}");
    }
}

#[test]
fn contradictions_are_told_all_at_once() {
    let line = "a=10.0.0.1/24 a=10.0.1.1/24 b=10.0.0.9/16 --mtu c=900 -r 10.9.0.0/16=10.7.7.7 -r 10.9.0.0/16=10.0.0.1 \
                -r 10.0.0.0/24=unreachable -r 10.8.0.0/16=10.0.0.255";
    assert_eq!(
        router(line).unwrap().configuration().unwrap_err(),
        [
            "the device a is given twice",
            "the networks of a=10.0.0.1/24 and b=10.0.0.9/16 overlap, so routes cannot distinguish them",
            "the networks of a=10.0.1.1/24 and b=10.0.0.9/16 overlap, so routes cannot distinguish them",
            "the gateway 10.7.7.7 to 10.9.0.0/16 is not in a network of the router; a gateway must be a neighbour",
            "there are two routes to 10.9.0.0/16",
            "the gateway 10.0.0.1 to 10.9.0.0/16 is the router itself",
            "the route to 10.0.0.0/24 is not needed: it is the network of a",
            "the gateway 10.0.0.255 to 10.8.0.0/16 is the broadcast address of a",
            "--mtu c=900: there is no interface c",
        ]
    );
}

#[test]
fn the_configuration_in_conf_has_the_same_interfaces() {
    let conf = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/ip-router.click");
    let text = std::fs::read_to_string(conf).unwrap();
    assert!(text.contains(INTERFACE), "{conf} has another elementclass Interface than new/interface.click");
    assert!(text.lines().count() < 60);
    assert_eq!(checked(&text), (22 * 2 + 22, Vec::new()));
}
