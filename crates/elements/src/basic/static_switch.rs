// SPDX-License-Identifier: MIT OR Apache-2.0
//! StaticSwitch: sends packets to an output that is fixed by the configuration.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Sends all packets to one output that is fixed by the configuration, or drops them.
///
/// # Ports
/// Input 0: packets. Outputs 0, 1, ...: all packets on the output OUTPUT, none on the others.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> s :: StaticSwitch(1) -> Discard;
/// s [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "StaticSwitch", ports = "1/-", processing = "h/h", packets = "any/same", workers = replicate)]
#[class(build, drops(SwitchedOff), depends = packet)]
#[class(kernel)]
pub struct StaticSwitch {
    args: Args,
}

/// Arguments of StaticSwitch.
#[derive(Args)]
pub struct Args {
    /// The number of the output that gets all packets; -1 to drop them.
    output: i32,
}

impl Build for StaticSwitch {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if usize::try_from(args.output).is_ok_and(|o| o >= cx.outputs) {
            return Err(format!("output must be < {}", cx.outputs).into());
        }
        Ok(StaticSwitch { args })
    }
}

impl Element for StaticSwitch {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        match usize::try_from(self.args.output) {
            Ok(port) => cx.forward(port, batch),
            Err(_) => cx.drop_all(batch, Reason::SwitchedOff),
        }
    }
}

impl InKernel for StaticSwitch {
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
    fn goes_one_way() {
        for output in -1..3 {
            let mut kit = Kit::<StaticSwitch>::with_ports(&output.to_string(), 1, 3).unwrap();
            for n in [1, 2, 3, 32] {
                let out = kit.push(0, (0..n).map(|_| packet(b"x")));
                assert!(out.iter().all(|(o, _)| *o as i32 == output));
                assert_eq!(out.len(), if output < 0 { 0 } else { n });
            }
            assert_eq!(kit.dropped(Reason::SwitchedOff), if output < 0 { 38 } else { 0 });
        }
        assert_eq!(Kit::<StaticSwitch>::with_ports("3", 1, 3).err().unwrap(), ["output must be < 3"]);
        assert_eq!(
            Kit::<StaticSwitch>::with_ports("", 1, 3).err().unwrap(),
            ["OUTPUT: required argument missing"]
        );
    }
}
