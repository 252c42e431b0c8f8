// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the messages of a bridge, and its effects on the elements that it names.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::ether::spanning_tree::bpdu::{Config, Priority, Times};
use crate::ether::spanning_tree::protocol::SECOND;
use castanet_element::kit::{Kit, packet};
use castanet_element::spec::Names;

const CONFIG: &str = "02:00:00:00:00:05, in, out, sw";

fn names() -> Names {
    let mut names = Names::new();
    names.define_element("e", 0, "EtherSpanTree");
    names.define_element("in", 1, "Suppressor");
    names.define_element("out", 2, "Suppressor");
    names.define_element("sw", 3, "EtherSwitch");
    names
}

/// Makes an element whose suppressors and switch have `ports` ports.
fn kit(config: &str, ports: usize) -> Kit<EtherSpanTree> {
    let kit = Kit::<EtherSpanTree>::with_names(config, ports, ports, names()).unwrap();
    let shared = &kit.element.shared;
    for flags in [shared.input.as_ref(), shared.output.as_ref(), &shared.switch.learning] {
        flags.of(ports);
    }
    kit
}

/// Returns, for each port, whether its input side is closed, whether its output side is closed, and whether it
/// only learns.
fn flags(kit: &Kit<EtherSpanTree>) -> Vec<[bool; 3]> {
    let s = &kit.element.shared;
    (0..kit.element.ports).map(|i| [s.input.get(i), s.output.get(i), s.switch.learning.get(i)]).collect()
}

fn better() -> Config {
    let root = BridgeId::new(0x8000, EtherAddr([2, 0, 0, 0, 0, 1]));
    let times = Times { max_age: 6 * SECOND, hello: SECOND, forward_delay: 2 * SECOND };
    let priority = Priority { root, cost: 0, bridge: root, port: 0x8001 };
    Config { priority, change: false, acknowledged: false, age: 0, times }
}

fn message(c: Config) -> Packet {
    packet(&Bpdu::Config(c).frame(EtherAddr([2, 0, 0, 0, 0, 1])))
}

#[test]
fn alone_it_opens_its_ports() {
    let mut kit = kit(CONFIG, 2);
    let first = kit.expire().unwrap();
    assert_eq!(first.iter().map(|o| o.0).collect::<Vec<_>>(), [0, 1]);
    let Some(Bpdu::Config(c)) = Bpdu::parse(first[0].1.data()) else { panic!("no message") };
    assert_eq!(c.priority.bridge, BridgeId::new(0xdead, EtherAddr([2, 0, 0, 0, 0, 5])));
    assert_eq!(first[0].1.data()[6..12], [2, 0, 0, 0, 0, 5]);
    assert_eq!(flags(&kit), [[true, true, true]; 2]);
    let mut seen = Vec::new();
    while kit.next_timer().unwrap() < 40 * SECOND {
        kit.expire();
        if seen.last() != Some(&flags(&kit)[0]) {
            seen.push(flags(&kit)[0]);
        }
    }
    let (listening, learning, forwarding) = ([true; 3], [false, true, true], [false; 3]);
    assert_eq!(seen, [listening, learning, forwarding]);
    assert!(kit.element.shared.switch.timeout() == 0, "no switch has said its timeout");
    assert_eq!(kit.all_dropped(), 0);
}

#[test]
fn it_blocks_and_tells() {
    let mut kit = kit(CONFIG, 2);
    kit.expire();
    // Both ports receive messages from the same better bridge. The first becomes the root port, and the other is
    // blocked.
    let out = kit.push(0, [message(better())]);
    assert!(out.iter().all(|o| o.0 == 1));
    let second = Config { priority: Priority { port: 0x8002, ..better().priority }, ..better() };
    kit.push(1, [message(second)]);
    for s in 1..20 {
        while kit.next_timer().unwrap() < s * SECOND {
            kit.expire();
        }
        kit.at(s * SECOND);
        kit.push(0, [message(better())]);
        kit.push(1, [message(second)]);
    }
    assert_eq!(flags(&kit), [[false; 3], [true; 3]]);
    let root = "8000.02-00-00-00-00-01";
    assert_eq!(
        kit.read("msgs").unwrap(),
        format!(
            "bridge dead.02-00-00-00-00-05, root {root}, cost 4\n\
             0 root forwarding: root {root}, cost 0, bridge {root}, port 8001\n\
             1 alternate blocking: root {root}, cost 0, bridge {root}, port 8002\n"
        )
    );
    assert_eq!((kit.dropped(Reason::Consumed), kit.all_dropped()), (40, 40));
}

#[test]
fn anything_else_is_dropped() {
    let mut kit = kit(CONFIG, 1);
    let frame = Bpdu::Config(better()).frame(EtherAddr([2, 0, 0, 0, 0, 1]));
    for len in 0..=60 {
        kit.push(0, [packet(&frame[..len])]);
    }
    assert_eq!((kit.dropped(Reason::BadBpdu), kit.dropped(Reason::Consumed)), (52, 9));
}

#[test]
fn argument_errors() {
    for (config, error) in [
        ("", "ADDR: required argument missing"),
        ("02:00:00:00:00:05, in, out", "SWITCH: required argument missing"),
        ("02:00:00:00:00:05, in, nix, sw", "OUTPUT_SUPPRESSOR: 'nix' does not name an element"),
        ("02:00:00:00:00:05, in, sw, sw", "OUTPUT_SUPPRESSOR: 'sw' is of class EtherSwitch, not Suppressor"),
        ("02:00:00:00:00:05, in, out, in", "SWITCH: 'in' is of class Suppressor, not EtherSwitch"),
        ("02:00:00:00:00:05, in, in, sw", "INPUT_SUPPRESSOR and OUTPUT_SUPPRESSOR must be two elements"),
        ("01:00:00:00:00:05, in, out, sw", "ADDR: must be the address of one station"),
        ("00:00:00:00:00:00, in, out, sw", "ADDR: must be the address of one station"),
        ("02:00:00:00:00:05, in, out, sw, MAX_AGE 5", "MAX_AGE: must be between 6 and 40"),
        ("02:00:00:00:00:05, in, out, sw, PATH_COST 0", "PATH_COST: must be at least 1"),
        ("02:00:00:00:00:05, in, out, sw, FORWARD_DELAY 1", "FORWARD_DELAY: must be between 2 and 30"),
        ("02:00:00:00:00:05, in, out, sw, HELLO_TIME 11", "HELLO_TIME: must be between 1 and 10"),
    ] {
        let got = Kit::<EtherSpanTree>::with_names(config, 2, 2, names()).err().unwrap();
        assert!(got[0].starts_with(error), "{config}: {got:?}");
    }
    assert!(Kit::<EtherSpanTree>::with_names(CONFIG, 256, 256, names()).is_err());
}
