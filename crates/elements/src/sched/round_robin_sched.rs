// SPDX-License-Identifier: MIT OR Apache-2.0
//! RoundRobinSched: pulls from the inputs in turn.

use castanet_element::prelude::*;

/// Each pull gives a packet of the next input that has one, starting after the input of the last packet.
///
/// Inputs whose notifiers are off are not pulled from. `SimpleRoundRobinSched` is another name for this
/// class.
///
/// # Ports
/// Inputs 0, 1, ... (pull): packets. Output 0 (pull): the packets chosen.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 20, STOP true) -> q :: Queue -> [0] s :: RoundRobinSched -> Unqueue -> Discard;
/// RatedSource(LIMIT 2) -> Queue -> [1] s;
/// ```
#[derive(Class)]
#[class(name = "RoundRobinSched", ports = "-/1", processing = "l/l", packets = "any/same", workers = replicate)]
#[class(takes_state = "whose turn it is")]
#[class(aliases("SimpleRoundRobinSched"), build, lifecycle)]
pub struct RoundRobinSched {
    inputs: usize,
    signals: Vec<Signal>,
    /// The input to try first.
    next: usize,
}

impl Build for RoundRobinSched {
    fn build(_: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(RoundRobinSched { inputs: cx.inputs, signals: Vec::new(), next: 0 })
    }
}

impl RoundRobinSched {
    #[inline]
    fn after(&self, input: usize) -> usize {
        if input + 1 < self.inputs { input + 1 } else { 0 }
    }
    fn is_on(&self, input: usize, cx: &Cx<'_>) -> bool {
        self.signals.get(input).is_some_and(|s| cx.is_on(s))
    }
    /// Pulls one packet. Returns whether there was one.
    #[inline]
    fn pull_one(&mut self, into: &mut Batch, cx: &mut Cx<'_>) -> bool {
        let mut input = self.next;
        for _ in 0..self.inputs {
            if self.is_on(input, cx) {
                let before = into.len();
                cx.pull(input, 1, into);
                if into.len() > before {
                    self.next = self.after(input);
                    return true;
                }
            }
            input = self.after(input);
        }
        false
    }
}

impl Element for RoundRobinSched {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        // If the notifier of only one input is on, all packets come from this input, so pull a whole batch from it.
        let mut on = (0..self.inputs).filter(|&i| self.is_on(i, cx));
        let (first, second) = (on.next(), on.next());
        match (first, second) {
            (None, _) => {}
            (Some(input), None) => {
                let before = into.len();
                cx.pull(input, max, into);
                if into.len() > before {
                    self.next = self.after(input);
                }
            }
            _ => {
                for _ in 0..max {
                    if !self.pull_one(into, cx) {
                        break;
                    }
                }
            }
        }
    }
}

impl Lifecycle for RoundRobinSched {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.signals = super::signals(self.inputs, cx);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.next = if old.next < self.inputs { old.next } else { 0 };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};
    use std::collections::VecDeque;

    #[test]
    fn any_batch_gives_what_single_pulls_give() {
        let mut random = Random::new(5, "rr");
        for n in [1, 2, 3, 32] {
            for inputs in 1..5usize {
                let mut kit = Kit::<RoundRobinSched>::with_ports("", inputs, 1).unwrap();
                let (mut model, mut next) = (vec![VecDeque::new(); inputs], 0);
                for round in 0..100u8 {
                    let input = random.below(inputs as u64) as usize;
                    for i in 0..random.below(9) as u8 {
                        kit.supply(input, packet(&[round, i]));
                        model[input].push_back([round, i]);
                    }
                    let mut want = Vec::new();
                    while want.len() < n {
                        let Some(i) =
                            (0..inputs).map(|i| (next + i) % inputs).find(|&i| !model[i].is_empty())
                        else {
                            break;
                        };
                        want.extend(model[i].pop_front());
                        next = (i + 1) % inputs;
                    }
                    let got: Vec<_> = kit.pull(0, n).iter().map(|p| [p.data()[0], p.data()[1]]).collect();
                    assert_eq!(got, want);
                }
            }
        }
    }

    #[test]
    fn inputs_that_are_off_are_not_asked() {
        let mut kit = Kit::<RoundRobinSched>::with_ports("", 3, 1).unwrap();
        for i in 0..9u8 {
            kit.supply(usize::from(i % 3), packet(&[i]));
        }
        kit.with(|_, cx| cx.clear_note(Note::new(2)));
        assert_eq!(kit.pull(0, 3).iter().map(|p| p.data()[0]).collect::<Vec<_>>(), [1, 2, 4]);
        kit.with(|_, cx| cx.clear_note(Note::new(4)));
        assert_eq!(kit.pull(0, 3).iter().map(|p| p.data()[0]).collect::<Vec<_>>(), [7]);
        assert!(Kit::<RoundRobinSched>::with_ports("", 0, 1).unwrap().pull(0, 9).is_empty());
    }
}
