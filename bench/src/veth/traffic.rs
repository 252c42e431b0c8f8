// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of traffic, and the routers that get them.

use super::{Contender, KERNEL, KernelTask, Settings, Way};

/// The bytes that a frame takes on a wire of Ethernet, in addition to those that a program sees: frame check sequence, preamble and the
/// gap between frames (HPSR 2005, section IV-A).
const ON_THE_WIRE: usize = 24;

/// The packets that a router is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The frame length in bytes.
    pub length: usize,
    /// The number of pairs of interfaces that packets cross, at equal rates.
    pub flows: usize,
    /// Whether packets also cross the pairs in the other direction.
    pub both_ways: bool,
}

impl Traffic {
    /// One flow in one direction, in frames of this length.
    pub fn plain(length: usize) -> Traffic {
        Traffic { length, flows: 1, both_ways: false }
    }

    /// The rate on a wire of Ethernet in Gbit/s, from packets per second.
    pub fn gbits(&self, rate: f64) -> f64 {
        rate * 8.0 * (self.length + ON_THE_WIRE) as f64 / 1e9
    }

    /// The words for what differs between this traffic and the others.
    fn label(&self, all: &[Traffic]) -> String {
        let differs = |of: fn(&Traffic) -> usize| all.iter().any(|t| of(t) != of(self));
        let mut label = String::new();
        if differs(|t| t.length) {
            label += &format!("-{}-bytes", self.length);
        }
        if differs(|t| t.flows) {
            label += &format!("-{}-flow{}", self.flows, if self.flows == 1 { "" } else { "s" });
        }
        if differs(|t| t.both_ways.into()) {
            label += if self.both_ways { "-both-ways" } else { "-one-way" };
        }
        label
    }
}

/// A router with its traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// The name in results: that of the router, and what differs between the kinds of traffic.
    pub name: String,
    /// The router's name.
    pub router: String,
    /// The traffic.
    pub traffic: Traffic,
}

impl Settings {
    /// The routers, beginning with the kernel.
    pub(super) fn contenders(&self) -> Vec<Contender> {
        let flows = self.traffic.iter().map(|t| t.flows);
        let kernel = Contender {
            name: KERNEL.into(),
            way: Way::Kernel(self.kernel),
            share: 1,
            pairs: flows.max().unwrap_or(1),
            switched: self.kernel == KernelTask::Receive,
            base: None,
        };
        std::iter::once(kernel).chain(self.routers.iter().cloned()).collect()
    }

    /// All routers with all kinds of traffic, each with the place of its router in [`Settings::contenders`].
    pub(super) fn subjects(&self) -> Vec<(usize, Subject)> {
        let mut all = Vec::new();
        for (place, contender) in self.contenders().into_iter().enumerate() {
            for traffic in &self.traffic {
                let router = contender.name.clone();
                let name = format!("{router}{}", traffic.label(&self.traffic));
                all.push((place, Subject { name, router, traffic: *traffic }));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_in_the_name() {
        let t = |length, flows, both_ways| Traffic { length, flows, both_ways };
        for (all, want) in [
            (vec![t(60, 1, false)], vec![""]),
            (vec![t(60, 1, false), t(1514, 1, false)], vec!["-60-bytes", "-1514-bytes"]),
            (vec![t(60, 1, false), t(60, 2, false)], vec!["-1-flow", "-2-flows"]),
            (vec![t(60, 4, false), t(60, 4, true)], vec!["-one-way", "-both-ways"]),
            (
                vec![t(60, 4, false), t(61, 2, true)],
                vec!["-60-bytes-4-flows-one-way", "-61-bytes-2-flows-both-ways"],
            ),
        ] {
            let labels: Vec<String> = all.iter().map(|t| t.label(&all)).collect();
            assert_eq!(labels, want);
        }
    }

    #[test]
    fn rates_fill_a_wire() {
        // The packet rates of a full link of 1 Gbit/s, HPSR 2005, section IV-A.
        for (length, rate) in [(60, 1_488_095.0), (1514, 81_274.0)] {
            assert!((Traffic::plain(length).gbits(rate) - 1.0).abs() < 1e-4);
        }
    }
}
