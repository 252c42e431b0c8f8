// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::{Kit, packet};

const S: i64 = 1_000_000_000;

fn at(second: i64) -> Packet {
    let mut p = packet(b"x");
    p.set_timestamp(second * S);
    p
}
/// Pushes packets with these timestamps. Returns the timestamps of those that pass, all in seconds.
fn inside(kit: &mut Kit<TimeFilter>, seconds: &[i64]) -> Vec<i64> {
    let out = kit.push(0, seconds.iter().map(|s| at(*s)));
    out.iter().filter(|o| o.0 == 0).map(|o| o.1.timestamp() / S).collect()
}

#[test]
fn spans() {
    let all: Vec<i64> = (10..20).collect();
    for (config, want) in [
        ("", 10..20),
        ("12", 12..20),
        ("12, 15", 12..15),
        ("END 13", 10..13),
        ("START_AFTER 3, END_AFTER 5", 13..15),
        ("START_AFTER 3, INTERVAL 2", 13..15),
        ("INTERVAL 2", 10..12),
        ("START 25", 0..0),
    ] {
        for batch in [1, 2, 3, 32] {
            let mut kit = Kit::<TimeFilter>::with_ports(config, 1, 2).unwrap();
            let got: Vec<i64> = all.chunks(batch).flat_map(|c| inside(&mut kit, c)).collect();
            assert_eq!(got, want.clone().collect::<Vec<_>>(), "{config}");
        }
    }
    let mut kit = Kit::<TimeFilter>::new("START_DELAY 0.5, END_DELAY 2.5").unwrap();
    assert_eq!(inside(&mut kit, &[1000, 1001, 1002, 1003]), [1001, 1002], "the kit starts at 1000 s");
    assert_eq!(kit.dropped(Reason::OutsideTime), 2);
}

#[test]
fn the_end_is_reached_once() {
    let mut kit = Kit::<TimeFilter>::new("END 5, STOP true").unwrap();
    inside(&mut kit, &[4]);
    assert_eq!(kit.stops(), 0);
    inside(&mut kit, &[5, 6]);
    assert_eq!(kit.stops(), 1);
    kit.write("extend_interval", "5").unwrap();
    assert_eq!((inside(&mut kit, &[9]), kit.read("end").unwrap()), (vec![9], "10.000000".into()));
    inside(&mut kit, &[10]);
    assert_eq!(kit.stops(), 2);
    let mut kit = Kit::<TimeFilter>::new("1, 5, END_CALL go 3").unwrap();
    inside(&mut kit, &[7]);
    assert_eq!(kit.calls(), [(None, "go".into(), "3".into())]);
    assert_eq!((kit.read("start").unwrap(), kit.read("interval").unwrap()), ("1.000000".into(), "4".into()));
    for bad in ["1, START_AFTER 2", "END 1, INTERVAL 2", "STOP true, END_CALL x", "x"] {
        assert!(Kit::<TimeFilter>::new(bad).is_err(), "{bad}");
    }
}

/// A call gets the timestamp of the packet that caused it, in place of `$t`.
#[test]
fn the_call_gets_the_time_of_the_packet() {
    for (value, time, want) in [
        ("$t", 3 * S, "3.000000"),
        ("a $t ${t} $tt $x $", 3 * S + 5, "a 3.000000005 3.000000005 $tt $x $"),
        ("", S, ""),
        ("5", S, "5"),
    ] {
        assert_eq!(with_time(value, time), want);
    }
}

/// A packet whose time is the end of the span waits for the call. The packets behind it wait too, in order.
#[test]
fn packets_wait_for_the_call() {
    let names = |kit: &mut Kit<TimeFilter>| kit.calls().into_iter().map(|c| (c.1, c.2)).collect::<Vec<_>>();
    let seconds =
        |out: &[(usize, Packet)]| out.iter().map(|o| (o.0, o.1.timestamp() / S)).collect::<Vec<_>>();
    let kit = || {
        let mut names = Names::new();
        names.define_element("tf", 0, "TimeFilter");
        names.define_element("s", 1, "Script");
        Kit::<TimeFilter>::with_names("END 3, END_CALL s.run $t", 1, 2, names).unwrap()
    };
    let mut k = kit();
    let out = k.push(0, [1, 3, 4, 2, 9].map(at));
    assert_eq!((seconds(&out), k.with(|e, _| e.held())), (vec![(0, 1)], 4));
    assert_eq!(names(&mut k), [("run".into(), "3.000000".into()), ("resume".into(), "".into())]);
    k.write("extend_interval", "1").unwrap();
    k.write("resume", "").unwrap();
    // Packet 3 is inside now. Packet 4 causes the next call. It is outside, because that call does not move the end.
    assert_eq!(seconds(&k.push(0, [])), [(0, 3)]);
    assert_eq!(names(&mut k), [("run".into(), "4.000000".into()), ("resume".into(), "".into())]);
    k.write("resume", "").unwrap();
    assert_eq!(seconds(&k.push(0, [])), [(0, 2), (1, 4), (1, 9)]);
    assert_eq!((names(&mut k).len(), k.with(|e, _| e.held())), (0, 0));
    // Pulled packets wait for the next pull.
    let mut k = kit();
    k.with(|e, _| e.push = false);
    for second in [1, 3, 2] {
        k.supply(0, at(second));
    }
    let pulled = |k: &mut Kit<TimeFilter>| k.pull(0, 9).iter().map(|p| p.timestamp() / S).collect::<Vec<_>>();
    assert_eq!(pulled(&mut k), [1]);
    assert_eq!(names(&mut k), [("run".into(), "3.000000".into())]);
    k.write("end", "4").unwrap();
    assert_eq!(pulled(&mut k), [3, 2]);
}
