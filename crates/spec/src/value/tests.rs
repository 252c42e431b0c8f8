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
fn words_of_a_list() {
    for (text, help) in [
        ("tpc", "did you mean 'TCP'?"),
        ("UNX", "did you mean 'UNIX'?"),
        ("unix", "did you mean 'UNIX'?"),
        ("serial", "'serial' is none of these"),
    ] {
        let e = ValueError::not_one_of(text, &["TCP", "UDP", "UNIX"]);
        assert_eq!((e.to_string().as_str(), e.mend().0), ("expected TCP, UDP or UNIX", help), "{text}");
    }
}

#[test]
fn capacities_have_a_limit() {
    assert_eq!(get::<Capacity>("16777216").map(Capacity::get), Ok(Capacity::MAX));
    assert_eq!(get::<Capacity>("0x10").map(|c| c.show()), Ok("16".into()));
    for large in ["16777217", "4294967295", "4294967296", "99999999999999999999999999999999999999999"] {
        assert_eq!(get::<Capacity>(large).unwrap_err(), "out of range, bound 16777216", "{large}");
    }
    assert_eq!(get::<Capacity>("-1").unwrap_err(), "must be positive");
    assert_eq!(Capacity::new(u32::MAX).get(), Capacity::MAX);
}

#[test]
fn limits_of_arguments() {
    use crate::within;
    let error = |r: Result<(), ValueError>| r.err().map_or(String::new(), String::from);
    for (value, min, max, off, message) in [
        (5, None, None, None, ""),
        (5, Some(5), Some(5), None, ""),
        (4, Some(5), None, None, "must be at least 5"),
        (6, None, Some(5), None, "must be at most 5"),
        (0, Some(5), Some(9), Some(0), ""),
        (-1, Some(5), Some(9), Some(0), "must be between 5 and 9, or 0 for none"),
        (10, Some(5), Some(9), Some(0), "must be between 5 and 9, or 0 for none"),
    ] {
        assert_eq!(error(within(&value, min, max, off)), message, "{value}");
    }
    let short = within(&Nanos(1), Some(Nanos::SHORTEST_PERIOD), None, None);
    assert_eq!(error(short), "must be at least 0.000001");
}

/// Returns the help for an invalid value, and the suggested replacement.
fn mend<T: ArgValue + std::fmt::Debug>(t: &str) -> (String, Option<String>) {
    let mut names = Names::new();
    names.define_addresses("", "host").ip = Some([10, 0, 0, 1]);
    names.define_element("queue", 3, "Queue");
    let error =
        T::parse(t, &ArgCx { scope: "", names: &names, origin: crate::Origin::Operator }).unwrap_err();
    let (help, meant) = error.mend();
    (help.to_string(), meant.map(String::from))
}

#[test]
fn replacements_are_values() {
    for (t, meant) in [("2e", "0x2e"), ("-1f", "-0x1f"), ("08", "8"), ("-09", "-9")] {
        assert_eq!(mend::<i32>(t).1.as_deref(), Some(meant), "{t}");
        get::<i32>(meant).unwrap();
    }
    for (t, meant) in [
        ("5 milliseconds", "5ms"),
        ("2 Seconds", "2s"),
        ("1.5 mins", "1.5min"),
        ("7 µs", "7us"),
        ("3 micros", "3us"),
        ("1 hour", "1h"),
        ("2 days", "2d"),
        ("9 nanos", "9ns"),
    ] {
        assert_eq!(mend::<Nanos>(t).1.as_deref(), Some(meant), "{t}");
        get::<Nanos>(meant).unwrap();
    }
    for (t, meant) in [
        ("10Mbit/s", "10Mbps"),
        ("10 mbps", "10Mbps"),
        ("1Gb", "1Gbps"),
        ("3 kB/sec", "3kBps"),
        ("5 MiB", "5MBps"),
        ("8 bits", "8bps"),
        ("2 Mbytes", "2MBps"),
    ] {
        assert_eq!(mend::<Bandwidth>(t).1.as_deref(), Some(meant), "{t}");
        get::<Bandwidth>(meant).unwrap();
    }
    assert_eq!(mend::<bool>("flase").1.as_deref(), Some("false"));
    assert_eq!(mend::<Prefix>("10.0.0.0/255.0.255.0").1.as_deref(), Some("10.0.0.0/8"));
    assert_eq!(mend::<Ipv4Addr>("hots").1.as_deref(), Some("host"));
    assert_eq!(mend::<EtherAddr>("hots:eth").1.as_deref(), Some("host:eth"));
    assert_eq!(mend::<ElementRef>("quue").1.as_deref(), Some("queue"));
    assert_eq!(mend::<HandlerRef>("quue.length").1.as_deref(), Some("queue.length"));
}

#[test]
fn helps_say_what_to_write() {
    for (help, part) in [
        (mend::<u32>("five"), "whole number, such as"),
        (mend::<u32>("5k"), "without a unit"),
        (mend::<u8>("300"), "from 0 to 255"),
        (mend::<u32>("-1"), "0, the largest 4294967295"),
        (mend::<Nanos>("5 fortnights"), "with a unit: s, ms"),
        (mend::<Bandwidth>("5 parsecs"), "such as 10Mbps"),
        (mend::<bool>("j"), "'true' or 'false'"),
        (mend::<Ipv4Addr>("10.0.0.256"), "four numbers"),
        (mend::<Ipv4Addr>("eth77"), "AddressInfo(eth77 ADDRESS)"),
        (mend::<EtherAddr>("host"), "'host' has no Ethernet address"),
        (mend::<EtherAddr>("00:11:22:33:44"), "six hexadecimal numbers"),
        (mend::<EtherAddr>("aa:bb:cc:dd:ee"), "six hexadecimal numbers"),
        (mend::<Prefix>("10.0.0.0/33"), "a length of 0 to 32"),
    ] {
        assert!(help.0.contains(part) && help.1.is_none(), "{help:?} {part}");
    }
}

#[test]
fn devices_that_cannot_be_read_are_not_taken_for_missing() {
    let mut names = Names::new();
    names.set_devices(|| Err(std::sync::Arc::new(std::io::Error::other("too many files are open"))));
    let cx = ArgCx { scope: "", names: &names, origin: crate::Origin::Operator };
    let e = EtherAddr::parse("lan", &cx).unwrap_err();
    assert!(e.mend().0.contains("unknown, because too many files are open"), "{e:?}");
}

#[test]
fn moments_and_spans_are_shown_as_clients_expect_them() {
    for (ns, text) in [
        (1_795_256_785_643_236_346, "1795256785.643236346"),
        (1_500_000_000, "1.500000"),
        (1_000_000_004, "1.000000004"),
        (0, "0.000000"),
        (-1_000, "-0.000001"),
        (-2_500_000_000, "-2.500000"),
    ] {
        assert_eq!(Timestamp(ns).show(), text);
    }
    for (ns, text) in [
        (0, "0s"),
        (500_000_000, "500ms"),
        (10_000_000, "10ms"),
        (1_000, "1us"),
        (1_500, "1500ns"),
        (1_000_000_000, "1s"),
        (2_500_000_000, "2.5s"),
        (-3_000_000, "-3ms"),
    ] {
        assert_eq!(Interval(ns).show(), text);
        assert_eq!(get::<Interval>(text), Ok(Interval(ns)));
    }
    for (bytes, text) in [
        (125_000, "1Mbps"),
        (1_000, "8kbps"),
        (10_000, "80kbps"),
        (1_234, "9.872kbps"),
        (5, "40bps"),
        (0, "0bps"),
        (1_250_000_000, "10Gbps"),
    ] {
        assert_eq!(Bandwidth(bytes).show(), text);
        assert_eq!(get::<Bandwidth>(text), Ok(Bandwidth(bytes)));
    }
}

#[test]
fn a_bandwidth_without_a_unit_is_doubtful() {
    let doubt = |t: &str, nth| Bandwidth::doubt(t, nth).map(|d| (d.about("RATE"), d.mend().0.to_string()));
    for (text, nth, message, help) in [
        ("1000", None, "RATE: no units on bandwidth 1000, assuming Bps", "write 1000Bps or 8kbps"),
        ("5k", None, "RATE: no units on bandwidth 5k, assuming Bps", "write 5kBps or 40kbps"),
        ("20", Some(1), "no units for bandwidth argument 1, assuming Bps", "write 20Bps or 160bps"),
    ] {
        assert_eq!(doubt(text, nth), Some((message.to_string(), help.to_string())), "{text}");
        assert_eq!(Option::<Bandwidth>::doubt(text, nth), Bandwidth::doubt(text, nth), "{text}");
    }
    for text in ["0", "0k", "8bps", "1kBps", "2MB/s", "3 baud", "x", ""] {
        assert_eq!(doubt(text, None), None, "{text}");
    }
}
