// SPDX-License-Identifier: MIT OR Apache-2.0
//! RandomSwitch: chooses an output at random.

use castanet_element::kernel::{Arithmetic, Code, Lowered};
use castanet_element::prelude::*;

/// Sends each packet to one of the outputs, all equally likely.
///
/// Each element has its own random numbers, which depend only on the seed of the run and the name of the
/// element. In the kernel, they are the kernel's.
///
/// # Ports
/// Input 0: packets. Outputs 0, 1, ...: packets, each on one output.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 50, STOP true) -> s :: RandomSwitch -> Discard;
/// s [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "RandomSwitch", ports = "1/1-", processing = "h/h", packets = "any/same")]
#[class(workers = replicate, build, depends = order)]
#[class(kernel)]
pub struct RandomSwitch {
    outputs: u64,
    random: Random,
}

impl Build for RandomSwitch {
    fn build(_: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(RandomSwitch { outputs: cx.outputs.max(1) as u64, random: cx.random() })
    }
}

impl RandomSwitch {
    /// Draws the output of a packet.
    #[inline]
    fn output(&mut self) -> usize {
        self.random.below(self.outputs) as usize
    }
}

impl Element for RandomSwitch {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.emit_each(batch, Reason::NoPort, |_| Ok(self.output()));
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        cx.emit(self.output(), p);
    }
}

impl InKernel for RandomSwitch {
    /// The kernel has other random numbers than the element.
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let random = code.random();
        let scaled = code.compute(Arithmetic::Multiply, random, self.outputs as i64);
        let output = code.compute(Arithmetic::ShiftRight, scaled, 32u32);
        code.next_of(output, self.outputs as usize);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn outputs_are_equally_likely_and_do_not_depend_on_the_batch() {
        for outputs in 1..6usize {
            let run = |n: usize| {
                let mut kit = Kit::<RandomSwitch>::with_ports("", 1, outputs).unwrap();
                let mut all = vec![usize::MAX; 7680];
                for start in (0..all.len()).step_by(n) {
                    let end = all.len().min(start + n);
                    for (output, p) in kit.push(0, (start..end).map(|i| packet(&i.to_be_bytes()))) {
                        all[usize::from_be_bytes(p.data().try_into().unwrap())] = output;
                    }
                }
                assert_eq!(kit.all_dropped(), 0);
                all
            };
            let one = run(1);
            for n in [2, 3, 32, 256] {
                assert_eq!(run(n), one);
            }
            // Allow six standard deviations of a binomial distribution.
            let (n, p) = (one.len() as f64, 1.0 / outputs as f64);
            for output in 0..outputs {
                let count = one.iter().filter(|&&o| o == output).count() as f64;
                assert!((count - n * p).abs() <= 6.0 * (n * p * (1.0 - p)).sqrt(), "{count} of {n}");
            }
        }
        assert!(Kit::<RandomSwitch>::with_ports("2", 1, 2).is_err());
    }
}
