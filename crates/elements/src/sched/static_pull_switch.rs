// SPDX-License-Identifier: MIT OR Apache-2.0
//! StaticPullSwitch: pulls from one of several inputs, which the configuration chooses.

use super::selection::Selection;
use castanet_element::prelude::*;

/// Pulls from one input, which only the configuration can choose.
///
/// If INPUT is not the number of an input, pulls return no packets. Pulling tasks sleep while the chosen input has no
/// packets.
///
/// # Ports
/// Inputs 0, 1, ... (pull): packets. Output 0 (pull): the packets of the chosen input.
///
/// # Example
/// ```click
/// RatedSource(LIMIT 2) -> Queue -> [0] s :: StaticPullSwitch(1) -> Unqueue -> Discard;
/// InfiniteSource(LIMIT 20, STOP true) -> Queue -> [1] s;
/// ```
#[derive(Class)]
#[class(name = "StaticPullSwitch", ports = "-/1", processing = "l/l", packets = "any/same")]
#[class(workers = replicate, build, lifecycle, capabilities(EmptyNotifier))]
pub struct StaticPullSwitch {
    args: Args,
    selection: Selection,
}

/// Arguments of StaticPullSwitch.
#[derive(Args)]
pub struct Args {
    /// The chosen input; -1 gives no packets.
    input: i32,
}

impl Build for StaticPullSwitch {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(StaticPullSwitch { selection: Selection::new(args.input, cx.inputs), args })
    }
}

impl Element for StaticPullSwitch {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        self.selection.pull(max, into, cx);
    }
    // When a notifier upstream turns on, it schedules every element that subscribed to it. So `task` is called although
    // the class has no task.
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.selection.woken(cx);
        Turn::Sleep
    }
}

impl Lifecycle for StaticPullSwitch {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.selection.initialise(cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn one_input_alone() {
        for n in [1, 2, 3, 32, 256] {
            for input in -1..4i32 {
                let mut kit = Kit::<StaticPullSwitch>::with_ports(&input.to_string(), 3, 1).unwrap();
                for i in 0..30u8 {
                    kit.supply(usize::from(i % 3), packet(&[i]));
                }
                let mut got = Vec::new();
                loop {
                    let pulled = kit.pull(0, n);
                    got.extend(pulled.iter().map(|p| i32::from(p.data()[0])));
                    if pulled.is_empty() {
                        break;
                    }
                }
                let want = (0..30).filter(|i| i % 3 == input).collect::<Vec<_>>();
                assert_eq!(got, want);
                // The kit never turns the notifiers of inputs off.
                assert_eq!(kit.note(Capability::EmptyNotifier), (0..3).contains(&input));
            }
        }
        let error = ["INPUT: required argument missing"];
        assert_eq!(Kit::<StaticPullSwitch>::with_ports("", 1, 1).err().unwrap(), error);
    }

    #[test]
    fn wakes_for_its_input() {
        let mut kit = Kit::<StaticPullSwitch>::with_ports("0", 2, 1).unwrap();
        assert!(kit.pull(0, 1).is_empty() && !kit.note(Capability::EmptyNotifier));
        kit.supply(1, packet(b"x"));
        kit.task();
        assert!(!kit.note(Capability::EmptyNotifier));
        kit.supply(0, packet(b"x"));
        assert_eq!(kit.task().0, Turn::Sleep);
        assert!(kit.note(Capability::EmptyNotifier));
    }
}
