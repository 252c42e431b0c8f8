// SPDX-License-Identifier: MIT OR Apache-2.0
//! PullTee: copies packets that are pulled.

use castanet_element::prelude::*;

/// Passes packets that are pulled, and pushes a copy of each to the other outputs.
///
/// The copies leave on outputs 1, 2, ... before the packet itself reaches the element that pulls. If no buffer is
/// free, a copy is left out and counted as dropped.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (pull): the same packets. Outputs 1, 2, ... (push): copies.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Queue -> t :: PullTee -> Unqueue -> Discard;
/// t [1] -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(makes))]
#[class(name = "PullTee", ports = "1/1-", processing = "l/lh", packets = "any/same", workers = replicate)]
#[class(build, copies, drops(NoBuffer))]
pub struct PullTee {
    args: Args,
    outputs: usize,
}

/// Arguments of PullTee.
#[derive(Args)]
pub struct Args {
    /// Number of outputs; must equal the number of outputs in use.
    n: Option<u32>,
}

impl Build for PullTee {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        match args.n {
            Some(n) if n as usize != cx.outputs => Err(cx.wrong_outputs("N", n)),
            _ => Ok(PullTee { args, outputs: cx.outputs }),
        }
    }
}

impl PullTee {
    #[inline]
    fn copy(&self, p: &mut Packet, cx: &mut Cx<'_>) {
        for port in 1..self.outputs {
            cx.emit_copy(port, p);
        }
    }
}

impl Element for PullTee {
    fn pull(&mut self, port: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        if port > 0 {
            return;
        }
        let before = into.len();
        cx.pull(0, max, into);
        for p in into.iter_mut().skip(before) {
            self.copy(p, cx);
        }
    }
    fn pull_one(&mut self, port: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut p = if port == 0 { cx.pull_one(0)? } else { return None };
        self.copy(&mut p, cx);
        Some(p)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_other_output_gets_every_packet() {
        for outputs in 1..5 {
            for n in [1, 2, 3, 32, 256] {
                let mut kit = Kit::<PullTee>::with_ports(&outputs.to_string(), 1, outputs).unwrap();
                (0..100u8).for_each(|i| kit.supply(0, packet(&[i; 100])));
                let (mut main, mut copies) = (Vec::new(), vec![Vec::new(); outputs]);
                while main.len() < 100 {
                    main.extend(kit.pull(0, n).iter_mut().map(|p| {
                        p.data_mut()[0] = 255;
                        p.data()[99]
                    }));
                    for (port, p) in kit.push(0, []) {
                        assert_eq!(p.data()[0], p.data()[99], "copies do not see the changes");
                        copies[port].push(p.data()[99]);
                    }
                    assert!(copies.iter().skip(1).all(|c| *c == main));
                }
                assert_eq!(main, (0..100).collect::<Vec<_>>());
                assert!(copies[0].is_empty() && kit.pull(0, n).is_empty() && kit.pull(1, n).is_empty());
                assert_eq!(kit.all_dropped(), 0);
            }
        }
    }

    #[test]
    fn what_was_pulled_before_is_not_copied() {
        let mut kit = Kit::<PullTee>::with_ports("", 1, 2).unwrap();
        kit.supply(0, packet(b"new"));
        let mut batch: Batch = [packet(b"old")].into_iter().collect();
        kit.with(|e, cx| e.pull(0, 9, &mut batch, cx));
        assert_eq!(batch.iter().map(|p| p.data().to_vec()).collect::<Vec<_>>(), [b"old", b"new"]);
        let copies = kit.push(0, []);
        assert_eq!((copies.len(), copies[0].0, copies[0].1.data()), (1, 1, &b"new"[..]));
        let single = kit.with(|e, cx| (e.pull_one(0, cx).is_none(), e.pull_one(1, cx).is_none()));
        assert_eq!(single, (true, true));
    }

    #[test]
    fn the_number_must_be_right() {
        assert_eq!(
            Kit::<PullTee>::with_ports("3", 1, 2).err().unwrap(),
            ["N: 3 outputs wanted, but 2 in use"]
        );
    }
}
