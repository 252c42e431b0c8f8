// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet new firewall`: a filter on a wire.

use super::checked;
use super::parts::{device, twice};
use clap::Args;
use std::fmt::Write as _;

/// What `--help` says first.
pub const ABOUT: &str = "Writes the configuration of a firewall that is put into a wire: what the rules allow passes between its two \
devices unchanged, and nobody sees that it is there.

Rules are those of IPFilter (`castanet doc IPFilter`): `allow` or `deny`, then what a packet must have. The first rule that fits \
decides, and what none fits is dropped. A rule sees one packet and knows no connections: `tcp opt ack` is every packet of a \
TCP connection but the one that opens it. Ports are in the first fragment of a packet only, so that the others fit no rule that \
names ports. ARP passes; what is neither ARP nor IPv4 does not.

The devices belong to the firewall, and the kernel must have no address on them:

  ip addr flush dev eth0; ip link set eth0 up";

/// What `--help` says last.
pub const EXAMPLES: &str = "Examples:
  castanet new firewall eth0 eth1 --in 'allow tcp opt ack' --in 'allow udp src port 53' > firewall.click
  castanet new firewall lan wan --in 'deny src net 10.0.0.0/8' --in 'allow dst host 10.0.0.80 and tcp dst port 443' \
--in 'allow tcp opt ack' --out 'allow src net 10.0.0.0/8'

Once it runs with --http or --unix, `in_rules.program` shows the decision tree that the rules became; counters count what passed \
and what did not.";

/// Arguments of `castanet new firewall`.
#[derive(Args)]
pub struct Firewall {
    /// The device inside.
    #[arg(value_name = "INSIDE", value_parser = device)]
    inside: String,
    /// The device outside.
    #[arg(value_name = "OUTSIDE", value_parser = device)]
    outside: String,
    /// A rule for what comes in from outside, in order; without any, nothing does.
    #[arg(short, long = "in", value_name = "RULE", value_parser = rule)]
    incoming: Vec<String>,
    /// A rule for what goes out from inside, in order; without any, everything does.
    #[arg(short = 'O', long = "out", value_name = "RULE", value_parser = rule)]
    outgoing: Vec<String>,
}

/// A rule of IPFilter that says `allow` or `deny`.
fn rule(text: &str) -> Result<String, String> {
    let text = text.trim();
    let (action, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if !matches!(action, "allow" | "deny") || rest.trim().is_empty() {
        return Err(
            "expected `allow` or `deny` and what a packet must have, as in 'allow tcp dst port 80'".into()
        );
    }
    // What would end the rule belongs to the configuration around it.
    if let Some(bad) = text.chars().find(|c| matches!(c, ',' | ';' | '"' | '\'' | '\\' | '$' | '\n' | '\r')) {
        return Err(format!(
            "'{}' has no place in a rule; give --in or --out once for each rule",
            bad.escape_default()
        ));
    }
    if text.contains("//") || text.contains("/*") {
        return Err("a rule holds no comment".into());
    }
    let depth = text.chars().try_fold(0u32, |depth, c| match c {
        '(' => depth.checked_add(1),
        ')' => depth.checked_sub(1),
        _ => Some(depth),
    });
    if depth != Some(0) {
        return Err("its parentheses are not paired".into());
    }
    let (_, errors) = checked(&format!("Idle -> IPFilter({text}) -> Discard;"));
    errors.into_iter().next().map_or_else(|| Ok(text.to_string()), Err)
}

impl Firewall {
    /// The configuration, or all that is wrong.
    pub fn configuration(&self) -> Result<String, Vec<String>> {
        let again = twice(&[&self.inside, &self.outside]);
        if again.is_empty() {
            Ok(self.text())
        } else {
            Err(again.iter().map(|d| format!("the device {d} is given twice")).collect())
        }
    }

    fn text(&self) -> String {
        let mut out =
            String::from("// A firewall in a wire. The kernel must have no address on the devices:\n//\n");
        for own in [&self.inside, &self.outside] {
            let _ = writeln!(out, "//     ip addr flush dev {own}; ip link set {own} up");
        }
        let rules = |own: &[String], otherwise: &str| {
            let mut lines: Vec<_> = own.iter().map(|r| format!("\n    {r}")).collect();
            // Nothing is left for a rule behind one for all.
            if !matches!(own.last().map(String::as_str), Some("allow all" | "deny all")) {
                lines.push(format!("\n    {otherwise}"));
            }
            lines.join(",")
        };
        let otherwise = if self.outgoing.is_empty() { "allow all" } else { "1 all" };
        let _ = write!(
            out,
            "\ndefine($INSIDE {}, $OUTSIDE {});\n\n\
             // A device: output 0 has IPv4 packets whose headers are right, output 1 ARP.\n\
             elementclass Side {{ $dev |\n    \
             FromDevice($dev, PROMISC true) -> kind :: Classifier(12/0800, 12/0806, -);\n    \
             kind[0] -> CheckIPHeader(OFFSET 14) -> [0] output;\n    \
             kind[1] -> [1] output;\n    \
             kind[2] -> other :: Counter -> Discard;\n    \
             input -> Queue -> ToDevice($dev);\n\
             }}\n\
             inside :: Side($INSIDE);\n\
             outside :: Side($OUTSIDE);\n\
             inside[1] -> outside;\n\
             outside[1] -> inside;\n\n\
             // The first rule that fits decides. `deny` drops; output 1 is for what no rule is about.\n\
             in_rules :: IPFilter({});\n\
             out_rules :: IPFilter({});\n\n\
             outside[0] -> in_rules -> in_passed :: Counter -> inside;\n\
             in_rules[1] -> in_stopped :: Counter -> Discard;\n\
             inside[0] -> out_rules -> out_passed :: Counter -> outside;\n\
             out_rules[1] -> out_stopped :: Counter -> Discard;\n",
            self.inside,
            self.outside,
            rules(&self.incoming, "1 all"),
            rules(&self.outgoing, otherwise)
        );
        out
    }
}

#[cfg(test)]
mod tests;
