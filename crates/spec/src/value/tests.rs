// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use crate::names::Names;
use castanet_wire::ether::EtherAddr;
use std::net::Ipv4Addr;

fn get<T: ArgValue>(t: &str) -> Result<T, String> {
    let mut names = Names::new();
    let host = names.define_addresses("", "host");
    host.ip = Some([10, 0, 0, 1]);
    host.net = Some(([10, 0, 0, 0], [255, 255, 255, 0]));
    host.ether = Some([2, 0, 0, 0, 0, 1]);
    names.define_element("q", 3, "Queue");
    T::parse(t, &ArgCx { scope: "", names: &names, origin: crate::Origin::Operator }).map_err(String::from)
}

#[test]
fn integers() {
    for (t, v) in [
        ("0", 0),
        ("12", 12),
        ("0x1F", 31),
        ("017", 15),
        ("+5", 5),
        ("1_000", 1000),
        ("4294967295", u32::MAX),
    ] {
        assert_eq!(get::<u32>(t), Ok(v), "{t}");
    }
    for t in ["", "-", "0x", "08", "1a", "1__0", "_1", "1_", "1.0", "\u{661}"] {
        assert_eq!(get::<u32>(t).unwrap_err(), "invalid number", "{t}");
    }
    assert!(get::<u32>("-1").unwrap_err().contains("positive"));
    assert!(get::<u8>("256").unwrap_err().contains("255"));
    assert_eq!(get::<i32>("-2147483648"), Ok(i32::MIN));
    assert!(get::<i64>(&"9".repeat(5000)).unwrap_err().contains("out of range"));
}

#[test]
fn times_are_exact() {
    for (t, v) in [
        ("1", 1_000_000_000),
        ("0.1", 100_000_000),
        ("1.5s", 1_500_000_000),
        ("20ms", 20_000_000),
        ("2 min", 120_000_000_000),
        ("1000000000.123456789", 1_000_000_000_123_456_789),
        ("5us", 5_000),
        ("7ns", 7),
        ("1e-3", 1_000_000),
        ("-0.5", -500_000_000),
    ] {
        assert_eq!(get::<Nanos>(t).map(|n| n.0), Ok(v), "{t}");
    }
    for t in ["", "s", "1x", "1 fortnight", "nan", "inf", "1e400", "99999999999999999999"] {
        assert!(get::<Nanos>(t).is_err(), "{t}");
    }
    assert_eq!(Nanos(1_500_000_000).show(), "1.5");
    assert_eq!(Nanos(-1).show(), "-0.000000001");
}

#[test]
fn bandwidths_are_bytes_a_second() {
    for (t, v) in
        [("100", 100), ("8kbps", 1000), ("1 MBps", 1_000_000), ("10Gb/s", 1_250_000_000), ("9600baud", 1200)]
    {
        assert_eq!(get::<Bandwidth>(t).map(|b| b.0), Ok(v), "{t}");
    }
    for t in ["", "k", "-1", "1kx", "1e99"] {
        assert!(get::<Bandwidth>(t).is_err(), "{t}");
    }
}

#[test]
fn addresses_and_prefixes() {
    assert_eq!(get::<Ipv4Addr>("1.2.3.4"), Ok(Ipv4Addr::new(1, 2, 3, 4)));
    assert_eq!(get::<Ipv4Addr>("host"), Ok(Ipv4Addr::new(10, 0, 0, 1)));
    assert_eq!(get::<Ipv4Addr>("host:BCAST"), Ok(Ipv4Addr::new(10, 0, 0, 255)));
    for t in ["", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1..2.3", "nobody", "1.2.3.+4"] {
        assert!(get::<Ipv4Addr>(t).is_err(), "{t}");
    }
    for (t, v) in [
        ("18.26/16", "18.26.0.0/16"),
        ("10.0.0.7/255.255.255.0", "10.0.0.0/24"),
        ("0/0", "0.0.0.0/0"),
        ("1.2.3.4", "1.2.3.4/32"),
        ("host:net", "10.0.0.0/24"),
        ("host/8", "10.0.0.0/8"),
        ("0.0.0.0/0.0.0.0", "0.0.0.0/0"),
    ] {
        assert_eq!(get::<Prefix>(t).unwrap().show(), v, "{t}");
    }
    for t in ["1.2.3.4/33", "1.2.3.4/", "18.26/17", "1.2.3.4/255.0.255.0", "/8", "1.2.3.4/-1", "1.2.3.4/+8"] {
        assert!(get::<Prefix>(t).is_err(), "{t}");
    }
    let p = get::<Prefix>("10.1.2.3/24").unwrap();
    assert!(p.contains(Ipv4Addr::new(10, 1, 2, 255)) && !p.contains(Ipv4Addr::new(10, 1, 3, 0)));
    assert_eq!(p.broadcast(), Ipv4Addr::new(10, 1, 2, 255));
    assert_eq!(get::<EtherAddr>("host").unwrap(), EtherAddr([2, 0, 0, 0, 0, 1]));
    assert_eq!(get::<IpList>("1.2.3.4  host").unwrap().0.len(), 2);
}

#[test]
fn references() {
    assert_eq!(get::<ElementRef>("q"), Ok(ElementRef(3)));
    assert!(get::<ElementRef>("p").unwrap_err().contains("does not name an element"));
    let h = get::<HandlerRef>("q.reset  a b").unwrap();
    assert_eq!((h.element, h.handler.as_str(), h.value.as_str()), (Some(3), "reset", "a b"));
    assert_eq!(get::<HandlerRef>("stop").unwrap().element, None);
    assert!(get::<HandlerRef>("zz.x").is_err());
    assert_eq!(get::<Filename>("\"a//b\"").unwrap().0, "a/b");
    assert_eq!(get::<Filename>("-").unwrap().0, "-");
}

#[test]
fn capacities_have_a_limit() {
    assert_eq!(get::<Capacity>("16777216").map(Capacity::get), Ok(Capacity::MAX));
    assert_eq!(get::<Capacity>("0x10").map(|c| c.show()), Ok("16".into()));
    for large in ["16777217", "4294967295", "4294967296", "99999999999999999999999999999999999999999"] {
        assert_eq!(
            get::<Capacity>(large).unwrap_err(),
            "out of range, the limits are 0 and 16777216",
            "{large}"
        );
    }
    assert_eq!(get::<Capacity>("-1").unwrap_err(), "must be positive");
    assert_eq!(Capacity::new(u32::MAX).get(), Capacity::MAX);
}

#[test]
fn limits_of_arguments() {
    use crate::within;
    let error = |r: Result<(), String>| r.err().unwrap_or_default();
    for (value, min, max, off, message) in [
        (5, None, None, None, ""),
        (5, Some(5), Some(5), None, ""),
        (4, Some(5), None, None, "must be at least 5"),
        (6, None, Some(5), None, "must be at most 5"),
        (0, Some(5), Some(9), Some(0), ""),
        (-1, Some(5), Some(9), Some(0), "must be at least 5, or 0 for none"),
        (10, Some(5), Some(9), Some(0), "must be at most 9, or 0 for none"),
    ] {
        assert_eq!(error(within(&value, min, max, off)), message, "{value}");
    }
    let short = within(&Nanos(1), Some(Nanos::SHORTEST_PERIOD), None, None);
    assert_eq!(error(short), "must be at least 0.000001");
}
