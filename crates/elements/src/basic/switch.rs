// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switch: sends packets to an output chosen at run time.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Sends all packets to the chosen output, or drops them.
///
/// The handler `switch` chooses the output at run time. The number -1, or any number without an output, drops all
/// packets.
///
/// # Ports
/// Input 0: packets. Outputs 0, 1, ...: each output emits all packets while it is chosen.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> s :: Switch(1) -> Discard;
/// s [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Switch", ports = "1/-", processing = "h/h", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, build, handlers, drops(SwitchedOff), depends = packet)]
#[class(kernel)]
pub struct Switch {
    args: Args,
    outputs: usize,
}

/// Arguments of Switch.
#[derive(Args)]
pub struct Args {
    /// The number of the chosen output at the start; -1 to drop all packets.
    #[arg(default = 0)]
    output: i32,
}

impl Build for Switch {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if usize::try_from(args.output).is_ok_and(|o| o >= cx.outputs) {
            return Err(format!("output must be < {}", cx.outputs).into());
        }
        Ok(Switch { args, outputs: cx.outputs })
    }
}

impl Element for Switch {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        match usize::try_from(self.args.output) {
            Ok(port) => cx.forward(port, batch),
            Err(_) => cx.drop_all(batch, Reason::SwitchedOff),
        }
    }
}

#[handlers]
impl Switch {
    /// The number of the chosen output; -1 if packets are dropped.
    #[read(merge = first)]
    fn switch(&self) -> i32 {
        self.args.output.max(-1)
    }
    #[write]
    fn set_switch(&mut self, output: i32) {
        let exists = usize::try_from(output).is_ok_and(|o| o < self.outputs);
        self.args.output = if exists { output } else { -1 };
    }
    /// The configuration string, with the current OUTPUT.
    #[read(merge = first)]
    fn config(&self) -> String {
        self.switch().to_string()
    }
}

impl InKernel for Switch {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        match usize::try_from(self.args.output) {
            Ok(port) => code.next(port),
            Err(_) => code.drop(Reason::SwitchedOff as u16),
        }
        Ok(())
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
            let mut kit = Kit::<Switch>::with_ports("", 1, 3).unwrap();
            for (value, port, shown) in [
                ("0", Some(0), "0"),
                ("2", Some(2), "2"),
                ("3", None, "-1"),
                ("1", Some(1), "1"),
                ("-7", None, "-1"),
            ] {
                kit.write("switch", value).unwrap();
                let before = kit.dropped(Reason::SwitchedOff);
                let out = kit.push(0, (0..n).map(|_| packet(b"x")));
                assert!(out.iter().all(|(o, _)| Some(*o) == port));
                assert_eq!(out.len() as u64 + kit.dropped(Reason::SwitchedOff) - before, n);
                assert_eq!(kit.read("switch").unwrap(), shown);
            }
            assert_eq!(kit.write("switch", "x").unwrap_err().to_string(), "invalid number");
        }
    }

    #[test]
    fn the_output_must_exist() {
        assert_eq!(Kit::<Switch>::with_ports("2", 1, 2).err().unwrap(), ["output must be < 2"]);
        let mut off = Kit::<Switch>::with_ports("-1", 1, 0).unwrap();
        assert!(off.push(0, [packet(b"x")]).is_empty());
        assert_eq!(off.all_dropped(), 1);
    }
}
