// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random configurations whose elements change where packet data starts, and a class that records packets.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use castanet_element::prelude::*;
use castanet_element::{Random, action};
use castanet_runtime::swap::Loaded;
use castanet_testkit::load_with;

/// The name of the class that records packets, and the first word of its records.
pub const WITNESS: &str = "Witness";

/// Records packets and passes them on: its argument, whether the IP header annotation is set, the first bytes, and the
/// address of the data modulo 64.
#[derive(Class)]
#[class(name = "Witness", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
pub struct Witness {
    args: Number,
}

/// Arguments of Witness.
#[derive(Args)]
pub struct Number {
    /// The number that records start with.
    number: u32,
}

impl Action for Witness {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let start: String = p.data().iter().take(16).map(|b| format!("{b:02x}")).collect();
        let (marked, address) = (p.network_offset().is_some(), p.data().as_ptr() as usize % 64);
        cx.message(&format!("{WITNESS} {} {marked} {start} {address}", self.args.number));
        Verdict::Next
    }
}

/// Checks a configuration, which may use the class that records packets.
pub fn load(text: &str) -> Loaded {
    load_with(text, |r| r.add(action::<Witness>())).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A random configuration: sources, a tree of random elements behind each, and a Witness on each connection.
pub fn random_configuration(seed: u64) -> String {
    const FRAME: &str = "02:0:0:0:0:1, 02:0:0:0:0:2";
    let mut r = Random::new(seed, "packet types");
    let mut below = move |n: usize| r.below(n as u64) as usize;
    let (mut text, mut open, mut witnesses, mut joins) = (String::new(), Vec::new(), 0, Vec::new());
    for s in 0..1 + below(3) {
        text += &format!("s{s} :: InfiniteSource(LENGTH 90, LIMIT 4);\n");
        open.push(format!("s{s}"));
    }
    for e in 0..8 + below(24) {
        if open.is_empty() {
            break;
        }
        let from = open.swap_remove(below(open.len()));
        let protocol = ["0x0800", "0x0806", "0x88b5"][below(3)];
        let (class, outputs) = match below(22) {
            0 | 1 => (format!("EtherEncap({protocol}, {FRAME})"), 1),
            2 => ("UDPIPEncap(1.0.0.1, 1, 2.0.0.2, 2)".into(), 1),
            3 => ("IPEncap(udp, 1.0.0.1, 2.0.0.2)".into(), 1),
            4 | 5 => (format!("Strip({})", [14, 14, 20, 3][below(4)]), 1),
            6 => (format!("Unstrip({})", [14, 14, 20, 3][below(4)]), 1),
            7 => (format!("MarkIPHeader({})", [0, 14][below(2)]), 1),
            8 | 9 => (format!("CheckIPHeader({}, CHECKSUM false)", [0, 14][below(2)]), 1 + below(2)),
            10 => ("StripToNetworkHeader".into(), 1),
            11 => ("DecIPTTL".into(), 1),
            12 => ("IPClassifier(udp, -)".into(), 2),
            13 | 14 => ("Classifier(12/0806, 12/0800, -)".into(), 3),
            15 => ("EtherMirror".into(), 1),
            16 => ("Tee".into(), 2),
            17 => (format!("Paint({})", below(2)), 1),
            18 => ("PaintSwitch".into(), 2),
            19 => ("Queue(1000) -> Unqueue".into(), 1),
            20 => ("Counter".into(), 1),
            _ => ("IPMirror".into(), 1),
        };
        // A path may join another one at an element with nothing behind it yet, so that there are no cycles.
        let ends = |join: &&(String, Vec<String>)| join.1.iter().all(|o| open.contains(o));
        let joinable: Vec<&String> = joins.iter().filter(ends).map(|join| &join.0).collect();
        let to = if below(4) == 0 && !joinable.is_empty() {
            String::clone(joinable[below(joinable.len())])
        } else {
            let (first, last) = class.split_once(" -> ").unwrap_or((&class, ""));
            let end = if last.is_empty() { format!("e{e}") } else { format!("f{e}") };
            text += &format!("e{e} :: {first};\n");
            if !last.is_empty() {
                text += &format!("e{e} -> {end} :: {last};\n");
            }
            let ports: Vec<String> = (0..outputs).map(|o| format!("{end}[{o}]")).collect();
            open.extend(ports.clone());
            joins.push((format!("e{e}"), ports));
            format!("e{e}")
        };
        text += &format!("{from} -> Witness({witnesses}) -> {to};\n");
        witnesses += 1;
    }
    for from in open {
        text += &format!("{from} -> Witness({witnesses}) -> Discard;\n");
        witnesses += 1;
    }
    text + "DriverManager(wait 1, stop);\n"
}
