// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet new bridge`: an Ethernet switch with a spanning tree.

use super::parts::{device, twice};
use clap::Args;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Writes the configuration of an Ethernet switch: it learns the ports of stations, and takes part in the \
spanning tree protocol (IEEE 802.1D), so cables may form cycles.

The switch is that of conf/ethernet-switch-devices.click, after Figure 16 of \"The Click Modular Router\"; docs/ethernet-switch.md \
explains it. The switch owns the devices, so the kernel must have no address on them:

  ip addr flush dev eth0; ip link set eth0 up";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet new bridge eth0 eth1 eth2 > switch.click && castanet run switch.click
  castanet new bridge eth0 eth1 --priority 0x1000 --forward-delay 4 --hello 1 --max-age 6

Ports forward after two forward delays. With `castanet run -u FILE`, `castanet ctl FILE read tree.msgs` shows the tree, and \
`switch.table` the stations.";

/// Largest port number in the spanning tree protocol.
const MOST: usize = 255;

/// Arguments of `castanet new bridge`.
#[derive(Args)]
pub struct Bridge {
    /// The devices of the ports, in order. The switch uses the Ethernet address of the first.
    #[arg(value_name = "DEVICE", required = true, value_parser = device)]
    devices: Vec<String>,
    /// Bridge priority. The switch with the lowest value becomes the root, and the root's times apply to all switches.
    #[arg(short, long, value_name = "NUMBER", default_value = "0xdead", value_parser = priority)]
    priority: String,
    /// Seconds that a port spends in each of the states listening and learning before it forwards.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..=30))]
    forward_delay: u32,
    /// Seconds between configuration messages of the root.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=10))]
    hello: u32,
    /// Seconds after which received configuration messages expire.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(6..=40))]
    max_age: u32,
}

/// Checks a priority. Returns the text as it is, because both decimal and hexadecimal are common.
fn priority(text: &str) -> Result<String, String> {
    const VALID: RangeInclusive<u32> = 0..=0xffff;
    let number = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u32::from_str_radix(hex, 16));
    match number {
        Ok(n) if VALID.contains(&n) => Ok(text.to_string()),
        _ => Err("expected a number from 0 to 65535, or from 0x0 to 0xffff".into()),
    }
}

impl Bridge {
    /// A switch between devices, with the shortest forward delay that its messages permit: they are valid for at least six seconds.
    pub fn between(devices: &[&str]) -> Bridge {
        Bridge {
            devices: devices.iter().map(ToString::to_string).collect(),
            priority: "0xdead".into(),
            forward_delay: 4,
            hello: 1,
            max_age: 6,
        }
    }

    /// Returns messages about contradictory arguments.
    fn errors(&self) -> Vec<String> {
        let devices: Vec<&str> = self.devices.iter().map(String::as_str).collect();
        let mut errors: Vec<_> =
            twice(&devices).iter().map(|d| format!("the device {d} is given twice")).collect();
        if devices.len() > MOST {
            errors.push(format!("{} devices are more than {MOST}", devices.len()));
        }
        if devices.len() < 2 {
            errors.push("a switch has at least two devices".into());
        }
        // 2 * (forward_delay - 1) >= max_age >= 2 * (hello + 1): required by IEEE 802.1D-1998, section
        // 8.10.2. If this does not hold, the spanning tree may not converge.
        let Bridge { forward_delay, hello, max_age, .. } = *self;
        if 2 * (forward_delay - 1) < max_age {
            errors
                .push(format!("--max-age {max_age} is more than 2 * (--forward-delay {forward_delay} - 1)"));
        }
        if max_age < 2 * (hello + 1) {
            errors.push(format!("--max-age {max_age} is less than 2 * (--hello {hello} + 1)"));
        }
        errors
    }

    /// Returns the configuration, or all errors.
    pub fn configuration(&self) -> Result<String, Vec<String>> {
        let errors = self.errors();
        if errors.is_empty() { Ok(self.text()) } else { Err(errors) }
    }

    fn text(&self) -> String {
        let mut out = String::from(
            "// An Ethernet switch with a spanning tree, after Figure 16 of TOCS 2000 (\"The Click Modular Router\").\n\
             // The kernel must have no address on the devices:\n//\n",
        );
        for device in &self.devices {
            let _ = writeln!(out, "//     ip addr flush dev {device}; ip link set {device} up");
        }
        let names = self.devices.iter().enumerate().map(|(i, d)| format!("$DEV{i} {d}"));
        let _ = write!(
            out,
            "\ndefine({});\n\n\
             // The tree opens and closes the ports of the suppressors before and after the switch.\n\
             in, out :: Suppressor;\n\
             switch :: EtherSwitch;\n\
             tree :: EtherSpanTree($DEV0:eth, in, out, switch, BRIDGE_PRIORITY {},\n    \
             FORWARD_DELAY {}, HELLO_TIME {}, MAX_AGE {});\n\n\
             // A device: output 0 has messages of bridges, output 1 all other frames; input 0 has priority.\n\
             elementclass Port {{ $dev |\n    \
             FromDevice($dev, PROMISC true) -> kind :: Classifier(0/0180c2000000, -);\n    \
             kind [0] -> [0] output;\n    kind [1] -> [1] output;\n    \
             input [0] -> Queue(50) -> [0] first :: PrioSched -> ToDevice($dev);\n    \
             input [1] -> Queue -> [1] first;\n\
             }}\n",
            names.collect::<Vec<_>>().join(", "),
            self.priority,
            self.forward_delay,
            self.hello,
            self.max_age
        );
        for i in 0..self.devices.len() {
            let _ = write!(
                out,
                "\nport{i} :: Port($DEV{i});\n\
                 port{i} [0] -> [{i}] tree [{i}] -> [0] port{i};\n\
                 port{i} [1] -> [{i}] in [{i}] -> [{i}] switch [{i}] -> [{i}] out [{i}] -> [1] port{i};\n"
            );
        }
        out
    }
}

#[cfg(test)]
mod tests;
