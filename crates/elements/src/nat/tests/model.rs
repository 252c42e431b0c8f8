// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares a rewriter with a slow, obvious model.

use super::*;
use crate::nat::udp_rewriter::UdpRewriter;
use castanet_element::kit::Kit;
use std::collections::HashMap;

type Side = ([u8; 4], u16);
/// The addresses and ports of a packet: source and destination.
type Ends = (Side, Side);

/// Flows by number. A flow is the time of its last packet, the ends of forward packets, and the ends of
/// replies.
#[derive(Default)]
struct Model {
    flows: HashMap<usize, (i64, Ends, Ends)>,
    next: usize,
}

const TIMEOUT: i64 = 10_000_000_000;
const CAPACITY: usize = 40;

impl Model {
    /// Returns the output of a packet, and its new source and destination. `gives` chooses the port of a new
    /// flow.
    fn packet(
        &mut self,
        from: Side,
        to: Side,
        now: i64,
        gives: impl FnOnce(&Model) -> Option<u16>,
    ) -> Option<(usize, Side, Side)> {
        self.flows.retain(|_, f| now - f.0 < TIMEOUT);
        for f in self.flows.values_mut() {
            if f.1 == (from, to) {
                f.0 = now;
                return Some((0, f.2.1, f.2.0));
            }
            if f.2 == (from, to) {
                f.0 = now;
                return Some((1, f.1.1, f.1.0));
            }
        }
        let port = gives(self)?;
        if self.flows.len() == CAPACITY {
            let oldest = *self.flows.iter().min_by_key(|(n, f)| (f.0, **n)).unwrap().0;
            self.flows.remove(&oldest);
        }
        let reply = (to, ([9, 9, 9, 9], port));
        self.flows.insert(self.next, (now, (from, to), reply));
        self.next += 1;
        Some((0, reply.1, reply.0))
    }
    fn taken(&self, remote: Side, port: u16) -> bool {
        // The port is taken if the replies or the forward packets of a flow have these ends.
        let answer = (remote, ([9, 9, 9, 9], port));
        self.flows.values().any(|f| f.1 == answer || f.2 == answer)
    }
}

#[test]
fn as_the_model_says() {
    let config =
        "pattern 9.9.9.9 100-119 - - 0 1, CAPACITY 40, GUARANTEE 0, TIMEOUT 10, STREAMING_TIMEOUT 10";
    let mut kit = Kit::<UdpRewriter>::with_ports(config, 1, 2).unwrap();
    let (mut model, mut random, mut now) = (Model::default(), Random::new(4, "model"), 0i64);
    let (mut through, mut refused) = (0, 0);
    for turn in 0..20_000 {
        // No two packets have the same time, so it is clear which flow is the oldest.
        now += 1 + random.below(300_000_000) as i64;
        kit.at(now);
        let remote = ([2, 0, 0, random.below(2) as u8], 20);
        let (from, to) = match random.below(3) {
            0 => (remote, ([9, 9, 9, 9], 98 + random.below(24) as u16)),
            _ => (([1, 0, 0, random.below(3) as u8], 95 + random.below(30) as u16), remote),
        };
        let out = kit.push(0, [udp(from.0, from.1, to.0, to.1)]);
        let got = out.first().map(|(o, p)| (*o, show(p)));
        // The rewriter chooses the port, and the model checks that the choice is right.
        let chosen = out.first().map(|(_, p)| u16::from_be_bytes([p.data()[20], p.data()[21]]));
        let want = model.packet(from, to, now, |m| {
            let free = (100..120).filter(|p| !m.taken(to, *p)).count();
            match chosen {
                None => {
                    assert_eq!(free, 0, "turn {turn}: dropped though a port was free");
                    None
                }
                Some(p) => {
                    assert!((100..120).contains(&p) && !m.taken(to, p), "turn {turn}: port {p}");
                    let own = (100..120).contains(&from.1) && !m.taken(to, from.1);
                    assert!(!own || p == from.1, "turn {turn}: its own port was free");
                    Some(p)
                }
            }
        });
        let ip = std::net::Ipv4Addr::from;
        let want = want.map(|(o, a, b)| (o, format!("{}:{} > {}:{}", ip(a.0), a.1, ip(b.0), b.1)));
        assert_eq!(got, want, "turn {turn}: {from:?} {to:?}");
        if got.is_some() { through += 1 } else { refused += 1 }
    }
    assert!(through > 10_000 && model.next > 1_000, "{through} {refused} {}", model.next);
}
