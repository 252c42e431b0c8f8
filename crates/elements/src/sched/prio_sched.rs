// SPDX-License-Identifier: MIT OR Apache-2.0
//! PrioSched: prefers the inputs with lower numbers.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Each pull gives the next packet of the lowest input that has one.
///
/// Inputs whose notifiers are off are not pulled from. Packets in the kernel do not wait, so they pass this element there only if its
/// other inputs have only rare messages, those of EtherSpanTree. `SimplePrioSched` is another name for this class.
///
/// # Ports
/// Inputs 0, 1, ... (pull): packets, the most urgent on input 0. Output 0 (pull): the packets chosen.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 20, STOP true) -> q :: Queue -> [0] s :: PrioSched -> Unqueue -> Discard;
/// RatedSource(LIMIT 2) -> Queue -> [1] s;
/// ```
#[derive(Class)]
#[class(name = "PrioSched", ports = "-/1", processing = "l/l", packets = "any/same", workers = replicate)]
#[class(aliases("SimplePrioSched"), build, lifecycle, kernel)]
pub struct PrioSched {
    inputs: usize,
    signals: Vec<Signal>,
}

impl Build for PrioSched {
    fn build(_: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(PrioSched { inputs: cx.inputs, signals: Vec::new() })
    }
}

impl Element for PrioSched {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        let end = into.len() + max;
        'from_the_first: while into.len() < end {
            // Whether an input gave fewer packets than requested although its notifier is still on. If so, packets are
            // pulled one at a time from the inputs after it. After each packet, all inputs are tried again from the
            // first.
            let mut missed = false;
            for (input, signal) in self.signals.iter().enumerate() {
                if !cx.is_on(signal) {
                    continue;
                }
                let before = into.len();
                cx.pull(input, if missed { 1 } else { end - before }, into);
                if into.len() == end || missed && into.len() > before {
                    continue 'from_the_first;
                }
                missed |= cx.is_on(signal);
            }
            return;
        }
    }
}

impl InKernel for PrioSched {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        // In the kernel, a packet is pulled as soon as it is pushed. The compiler has checked that the other inputs have only rare packets.
        code.next(0);
        Ok(())
    }
}

impl Lifecycle for PrioSched {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.signals = super::signals(self.inputs, cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn kit() -> Kit<PrioSched> {
        let mut kit = Kit::with_ports("", 3, 1).unwrap();
        for (input, data) in [(2, 30), (1, 20), (1, 21), (1, 22), (0, 10), (0, 11)] {
            kit.supply(input, packet(&[data]));
        }
        kit
    }

    #[test]
    fn any_batch_gives_what_single_pulls_give() {
        for n in [1, 2, 3, 32] {
            let mut kit = kit();
            let mut got = Vec::new();
            for _ in 0..6 {
                let pulled = kit.pull(0, n);
                assert!(pulled.len() <= n);
                got.extend(pulled.iter().map(|p| p.data()[0]));
            }
            assert_eq!(got, [10, 11, 20, 21, 22, 30], "{n}");
            kit.supply(1, packet(&[23]));
            kit.supply(0, packet(&[12]));
            assert_eq!(kit.pull(0, 1)[0].data(), [12]);
        }
    }

    #[test]
    fn inputs_that_are_off_are_not_asked() {
        let mut kit = kit();
        kit.with(|_, cx| cx.clear_note(Note::new(2)));
        assert_eq!(kit.pull(0, 2).iter().map(|p| p.data()[0]).collect::<Vec<_>>(), [20, 21]);
        assert!(kit.pull(0, 0).is_empty());
        assert!(Kit::<PrioSched>::with_ports("", 0, 1).unwrap().pull(0, 9).is_empty());
        assert!(Kit::<PrioSched>::with_ports("1", 2, 1).is_err());
    }
}
