// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use crate::arg::{ArgKind, ArgSpec};

const IP: Contents = Contents::Network(Some(ethertype::IP));

#[test]
fn phrases() {
    let code = PacketCode::parse("ip at OFFSET, ether arp/check OFFSET, ip unmarked,  strip 14").unwrap();
    let offset = Amount::Arg("OFFSET");
    assert_eq!((code.input(0), code.input(1)), (Wants::IpAt(offset), Wants::EtherArp));
    assert_eq!(code.input(9), Wants::EtherArp);
    assert_eq!(
        [code.output(0), code.output(1), code.output(2), code.output(7)],
        [
            Gives::Check(offset),
            Gives::Fixed(IP, Some(false)),
            Gives::Strip(Amount::Number(14)),
            Gives::Strip(Amount::Number(14))
        ]
    );
    assert_eq!(code.args().collect::<Vec<_>>(), ["OFFSET", "OFFSET"]);
    let one = |code| PacketCode::parse(code).unwrap().output(0);
    assert_eq!(one("/ip"), Gives::Fixed(IP, Some(true)));
    assert_eq!(one("/ether arp"), Gives::Fixed(Contents::Ether(Some(ethertype::ARP)), None));
    assert_eq!(one("any/"), Gives::Fixed(Contents::Any, None));
    assert_eq!(one("any/framed"), Gives::Framed(None));
}

#[test]
fn malformed_codes() {
    for bad in [
        "any",
        "any/same/",
        "same/any",
        "any/optional",
        "ip at/same",
        "ip at x/same",
        "ip at -1/same",
        "any,/same",
        "any/strip",
        "any/strip 1 2",
        "any/ip marked marked",
        "any/same same",
        "any/ether arp marked marked",
        "any/to",
        "any/strip 99999999999999999999",
    ] {
        assert_eq!(PacketCode::parse(bad), None, "{bad}");
    }
}

#[test]
fn conditions() {
    static SPECS: &[ArgSpec] = &[
        ArgSpec { name: "DEVNAME", kind: ArgKind::Positional, mandatory: true, ..ArgSpec::EMPTY },
        ArgSpec { name: "FORCE_IP", default: "false", ..ArgSpec::EMPTY },
    ];
    for (config, condition, want) in [
        ("eth0", "FORCE_IP true", false),
        ("eth0", "FORCE_IP false", true),
        ("eth0, FORCE_IP 1", "FORCE_IP true", true),
        ("eth0, FORCE_IP $x", "FORCE_IP true|false", false),
        ("tun3", "DEVNAME ppp*|tun*", true),
        ("\"tun3\"", "DEVNAME tun3", true),
        ("mytun3", "DEVNAME tun*", false),
        ("eth0", "DEVNAME *", true),
        ("", "DEVNAME *", false),
        ("1.0.0.1 2.0.0.2", "DEVNAME *.*", true),
        ("14", "DEVNAME *.*", false),
        ("abcbd", "DEVNAME a*b*d", true),
        ("abd", "DEVNAME a*b*bd", false),
        ("eth0", "NONE *", false),
    ] {
        assert_eq!(holds(condition, &Given::new(config, SPECS)), want, "{config}: {condition}");
    }
}

#[test]
fn arguments_are_filled_in() {
    static SPECS: &[ArgSpec] = &[
        ArgSpec { name: "OFFSET", kind: ArgKind::Positional, default: "0", ..ArgSpec::EMPTY },
        ArgSpec { name: "PATTERN", kind: ArgKind::Rest, ..ArgSpec::EMPTY },
    ];
    let code = PacketCode::parse("ip at OFFSET/mark OFFSET").unwrap();
    for (config, want) in [
        ("", Amount::Number(0)),
        ("14", Amount::Number(14)),
        ("OFFSET 0xe", Amount::Number(14)),
        ("$x", Amount::Unknown),
    ] {
        let given = Given::new(config, SPECS);
        assert_eq!(code.resolved(&given).input(0), Wants::IpAt(want), "{config}");
        assert_eq!(code.resolved(&given).output(0), Gives::Mark(want), "{config}");
    }
    let code = PacketCode::parse("any/classified").unwrap();
    let given = Given::new("0, 12/0806 20/0001, 12/0800%ff00, !12/0800, 12/86dd60, 12/?800, -", SPECS);
    let code = code.resolved(&given);
    let types: Vec<_> = (0..7).map(|o| code.output(o)).collect();
    let of = |t| Gives::OfType(t);
    assert_eq!(
        types,
        [of(Some(0x806)), of(None), of(None), of(Some(0x86dd)), of(None), of(None), Gives::Same]
    );
}
