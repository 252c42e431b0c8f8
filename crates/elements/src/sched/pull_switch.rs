// SPDX-License-Identifier: MIT OR Apache-2.0
//! PullSwitch: pulls from one of several inputs, which a handler chooses.

use super::selection::Selection;
use castanet_element::prelude::*;

/// Pulls from the chosen input, while the packets of the other inputs wait.
///
/// The handler `switch` chooses at run time. A number that is not an input counts as -1, which gives no packets.
/// Pulling tasks sleep while the chosen input has no packets.
///
/// # Ports
/// Inputs 0, 1, ... (pull): packets. Output 0 (pull): the packets of the chosen input.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 20, STOP true) -> Queue -> [0] s :: PullSwitch(1) -> Unqueue -> Discard;
/// RatedSource(LIMIT 2) -> Queue -> [1] s;
/// ```
#[derive(Class)]
#[class(
    name = "PullSwitch",
    aliases("SimplePullSwitch"),
    ports = "-/1",
    processing = "l/l",
    packets = "any/same"
)]
#[class(workers = replicate, build, lifecycle, handlers, capabilities(EmptyNotifier))]
#[class(reconfigure = keeps)]
pub struct PullSwitch {
    args: Args,
    selection: Selection,
}

/// Arguments of PullSwitch.
#[derive(Args)]
pub struct Args {
    /// The chosen input; -1 gives no packets.
    #[arg(default = 0)]
    input: i32,
}

impl Build for PullSwitch {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(PullSwitch { selection: Selection::new(args.input, cx.inputs), args })
    }
}

impl Element for PullSwitch {
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

#[handlers]
impl PullSwitch {
    /// The chosen input; -1 for none.
    #[read(merge = first)]
    fn switch(&self) -> i64 {
        self.selection.number()
    }
    #[write]
    fn set_switch(&mut self, input: i32, cx: &mut Cx<'_>) {
        self.selection.choose(input, cx);
    }
    /// The configuration string with the current INPUT.
    #[read(merge = first)]
    fn config(&self) -> String {
        self.switch().to_string()
    }
}

impl Lifecycle for PullSwitch {
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

    fn kit(config: &str) -> Kit<PullSwitch> {
        let mut kit = Kit::with_ports(config, 3, 1).unwrap();
        for i in 0..30u8 {
            kit.supply(usize::from(i % 3), packet(&[i]));
        }
        kit
    }
    fn pull(kit: &mut Kit<PullSwitch>, n: usize) -> Vec<u8> {
        kit.pull(0, n).iter().map(|p| p.data()[0]).collect()
    }
    fn on(kit: &Kit<PullSwitch>) -> bool {
        kit.note(Capability::EmptyNotifier)
    }

    #[test]
    fn switches() {
        for n in [1, 2, 3, 32, 256] {
            let mut kit = kit("");
            let mut left = [0u8, 1, 2].map(|i| (0..10).map(|k| 3 * k + i).collect::<Vec<_>>());
            for (value, input, shown) in [
                ("0", Some(0), "0"),
                ("2", Some(2), "2"),
                ("3", None, "-1"),
                (" 1 ", Some(1), "1"),
                ("-7", None, "-1"),
                ("2", Some(2), "2"),
            ] {
                kit.write("switch", value).unwrap();
                assert_eq!(kit.read("switch").unwrap(), shown);
                let want = input.map_or(vec![], |i| left[i].drain(..n.min(left[i].len())).collect());
                assert_eq!(pull(&mut kit, n), want);
            }
            assert_eq!(kit.write("switch", "x").unwrap_err().to_string(), "invalid number");
        }
        assert!(kit("-1").pull(0, 9).is_empty() && kit("3").pull(0, 9).is_empty());
        assert!(Kit::<PullSwitch>::with_ports("", 0, 1).unwrap().pull(0, 9).is_empty());
        assert!(Kit::<PullSwitch>::with_ports("x", 1, 1).is_err());
    }

    #[test]
    fn the_notifier_tells_of_the_chosen_input() {
        let mut kit = kit("1");
        assert!(on(&kit));
        assert_eq!(pull(&mut kit, 32).len(), 10);
        assert!(on(&kit), "it was not found empty");
        kit.with(|_, cx| cx.clear_note(Note::new(3)));
        assert!(pull(&mut kit, 1).is_empty() && !on(&kit));
        kit.supply(0, packet(b"x"));
        assert_eq!(kit.task().0, Turn::Sleep);
        assert!(!on(&kit), "another input has something");
        kit.supply(1, packet(b"y"));
        kit.task();
        assert!(on(&kit));
        assert_eq!(pull(&mut kit, 2), b"y");
        kit.write("switch", "-1").unwrap();
        assert!(!on(&kit) && pull(&mut kit, 1).is_empty() && !on(&kit));
        kit.write("switch", "2").unwrap();
        assert!(on(&kit));
        assert!(pull(&mut kit, 0).is_empty() && on(&kit));
    }
}
