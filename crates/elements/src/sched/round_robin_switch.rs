// SPDX-License-Identifier: MIT OR Apache-2.0
//! RoundRobinSwitch: sends packets to the outputs in turn.

use castanet_element::Attached;
use castanet_element::kernel::{Arithmetic, Code, Lowered, Size, Table, TableKind, TableSpec, Test};
use castanet_element::prelude::*;
use std::sync::Arc;

/// Sends each packet to the next output: 0, 1, ..., and 0 again.
///
/// # Ports
/// Input 0: packets. Outputs 0, 1, ...: packets, each on one output.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> s :: RoundRobinSwitch -> Discard;
/// s [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "RoundRobinSwitch", ports = "1/1-", processing = "h/h", packets = "any/same")]
#[class(workers = replicate, build, lifecycle)]
#[class(takes_state = "whose turn it is", depends = order)]
#[class(kernel)]
pub struct RoundRobinSwitch {
    outputs: usize,
    next: usize,
    /// The turn that the kernel shares with this element.
    turn: Option<Arc<dyn Table>>,
}

/// The table with the turn: key 0, and the next output.
const TURN: TableSpec = TableSpec { kind: TableKind::Exact, key: 4, value: 4, entries: 1, ordered: false };
const KEY: [u8; 4] = [0; 4];

impl Build for RoundRobinSwitch {
    fn build(_: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(RoundRobinSwitch { outputs: cx.outputs, next: 0, turn: None })
    }
}

impl Lifecycle for RoundRobinSwitch {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        old.read_turn();
        self.next = if old.next < self.outputs { old.next } else { 0 };
        Ok(())
    }
}

impl RoundRobinSwitch {
    /// Returns the output of the next packet, and advances the turn.
    #[inline]
    fn output(&mut self) -> usize {
        self.read_turn();
        let output = self.next;
        self.next = if output + 1 < self.outputs { output + 1 } else { 0 };
        self.write_turn();
        output
    }
}

impl Element for RoundRobinSwitch {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.emit_each(batch, Reason::NoPort, |_| Ok(self.output()));
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        cx.emit(self.output(), p);
    }
}

impl RoundRobinSwitch {
    /// Reads the turn that the kernel shares.
    #[inline]
    fn read_turn(&mut self) {
        if let Some(turn) = &self.turn
            && let Some(next) = turn.get(&KEY).and_then(|t| Some(u32::from_ne_bytes(*t.first_chunk()?)))
        {
            self.next = next as usize;
        }
    }
    #[inline]
    fn write_turn(&self) {
        if let Some(turn) = &self.turn {
            turn.set(&KEY, &(self.next as u32).to_ne_bytes());
        }
    }
}

impl InKernel for RoundRobinSwitch {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let (up, kept) = (code.label(), code.label());
        let turn = code.look_up(0, TURN, &[(Size::Word, 0u32.into())], up);
        let output = code.load_entry(turn, 0, Size::Word);
        let next = code.compute(Arithmetic::Add, output, 1u32);
        code.branch(next, Test::Less, self.outputs as i64, kept);
        code.set(next, 0);
        code.bind(kept);
        code.store_entry(turn, 0, Size::Word, next);
        code.next_of(output, self.outputs);
        code.bind(up);
        code.up();
        Ok(())
    }
    fn attach(&mut self, to: Attached) {
        if let Attached::Table(_, table) = to {
            self.turn = Some(table);
            self.write_turn();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn packet_by_packet_whatever_the_batch() {
        for outputs in 1..6usize {
            for n in [1, 2, 3, 32, 256] {
                let mut kit = Kit::<RoundRobinSwitch>::with_ports("", 1, outputs).unwrap();
                let mut number = 0;
                while number < 300 {
                    let mut want: Vec<_> = (number..number + n).map(|i| (i % outputs, i)).collect();
                    want.sort_by_key(|w| w.0);
                    let got = kit.push(0, (number..number + n).map(|i| packet(&i.to_be_bytes())));
                    let at = |p: &Packet| usize::from_be_bytes(p.data().try_into().unwrap());
                    assert_eq!(got.iter().map(|(o, p)| (*o, at(p))).collect::<Vec<_>>(), want);
                    number += n;
                }
                assert_eq!(kit.all_dropped(), 0);
            }
        }
        assert!(Kit::<RoundRobinSwitch>::with_ports("2", 1, 2).is_err());
    }
}
