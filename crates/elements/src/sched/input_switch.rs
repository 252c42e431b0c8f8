// SPDX-License-Identifier: MIT OR Apache-2.0
//! InputSwitch: passes the packets of one input, which a handler chooses.

use castanet_element::prelude::*;

/// Passes the packets of the chosen input, and drops those of the other inputs.
///
/// The handler `switch` chooses at run time. A number that is not an input counts as -1, which drops all
/// packets.
///
/// # Ports
/// Inputs 0, 1, ... (push): packets. Output 0 (push): the packets of the chosen input.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> [0] s :: InputSwitch(1) -> Discard;
/// InfiniteSource(LIMIT 5) -> [1] s;
/// ```
#[derive(Class)]
#[class(name = "InputSwitch", ports = "-/1", processing = "h/h", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, build, handlers, drops(SwitchedOff))]
pub struct InputSwitch {
    args: Args,
    inputs: usize,
}

/// Arguments of InputSwitch.
#[derive(Args)]
pub struct Args {
    /// The chosen input; -1 drops all packets.
    #[arg(default = 0, alias = "OUTPUT")]
    input: i32,
}

impl Build for InputSwitch {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if usize::try_from(args.input).is_ok_and(|i| i >= cx.inputs) {
            return Err(format!("input must be < {}", cx.inputs).into());
        }
        Ok(InputSwitch { args, inputs: cx.inputs })
    }
}

impl InputSwitch {
    #[inline]
    fn is_chosen(&self, port: usize) -> bool {
        usize::try_from(self.args.input) == Ok(port)
    }
}

impl Element for InputSwitch {
    #[inline]
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if self.is_chosen(port) {
            cx.forward(0, batch);
        } else {
            cx.drop_all(batch, Reason::SwitchedOff);
        }
    }
    #[inline]
    fn push_one(&mut self, port: usize, p: Packet, cx: &mut Cx<'_>) {
        if self.is_chosen(port) {
            cx.emit(0, p);
        } else {
            cx.drop(p, Reason::SwitchedOff);
        }
    }
}

#[handlers]
impl InputSwitch {
    /// The chosen input; -1 for none.
    #[read(merge = first)]
    fn switch(&self) -> i32 {
        self.args.input.max(-1)
    }
    #[write]
    fn set_switch(&mut self, input: i32) {
        let exists = usize::try_from(input).is_ok_and(|i| i < self.inputs);
        self.args.input = if exists { input } else { -1 };
    }
    /// The configuration string with the current INPUT.
    #[read(merge = first)]
    fn config(&self) -> String {
        self.switch().to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn switches() {
        for n in [1, 2, 3, 32] {
            let mut kit = Kit::<InputSwitch>::with_ports("1", 3, 1).unwrap();
            for (value, chosen) in [("1", 1), ("0", 0), ("2", 2), ("3", -1), ("1", 1), ("-7", -1)] {
                kit.write("switch", value).unwrap();
                assert_eq!(kit.read("switch").unwrap(), chosen.to_string());
                assert_eq!(kit.read("config").unwrap(), chosen.to_string());
                for input in 0..3 {
                    let before = kit.dropped(Reason::SwitchedOff);
                    let out = kit.push(input, (0..n).map(|_| packet(b"x")));
                    let passed = if input as i32 == chosen { n } else { 0 };
                    assert_eq!(out.len() as u64, passed);
                    assert_eq!(kit.dropped(Reason::SwitchedOff) - before, n - passed);
                }
            }
            assert!(kit.write("switch", "x").is_err());
        }
    }

    #[test]
    fn the_first_choice() {
        for (config, shown) in [("", "0"), ("2", "2"), ("OUTPUT 1", "1"), ("-1", "-1"), ("INPUT -5", "-1")] {
            let mut kit = Kit::<InputSwitch>::with_ports(config, 3, 1).unwrap();
            assert_eq!(kit.read("switch").unwrap(), shown, "{config}");
        }
        assert_eq!(Kit::<InputSwitch>::with_ports("3", 3, 1).err().unwrap(), ["input must be < 3"]);
    }
}
