// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet new firewall`: a transparent packet filter.

use super::checked;
use super::parts::{device, twice};
use clap::Args;
use std::fmt::Write as _;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Writes the configuration of a transparent firewall, placed between two networks of one subnet: packets that the \
rules allow pass between its two devices unchanged, and hosts cannot detect it.

Rules are those of IPFilter (`castanet doc IPFilter`): `allow` or `deny`, then a condition. The first rule that matches \
decides, and packets that match no rule are dropped. Rules are stateless: `tcp opt ack` matches every packet of a \
TCP connection except the first. Only the first fragment of a packet has ports, so other fragments match no rule with \
ports. ARP passes; all other packets that are not IPv4 are dropped.

The firewall owns the devices, so the kernel must have no address on them:

  ip addr flush dev eth0; ip link set eth0 up";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet new firewall eth0 eth1 --in 'allow tcp opt ack' --in 'allow udp src port 53' > firewall.click
  castanet new firewall lan wan --in 'deny src net 10.0.0.0/8' --in 'allow dst host 10.0.0.80 and tcp dst port 443' \
--in 'allow tcp opt ack' --out 'allow src net 10.0.0.0/8'

With `castanet run -u FILE`, `castanet ctl FILE read in_rules.program` shows the decision tree that the rules compile to, and \
`in_passed.count` and `in_stopped.count` the packets that passed or matched no rule.";

/// Arguments of `castanet new firewall`.
#[derive(Args)]
pub struct Firewall {
    /// The inner device.
    #[arg(value_name = "INSIDE", value_parser = device)]
    inside: String,
    /// The outer device.
    #[arg(value_name = "OUTSIDE", value_parser = device)]
    outside: String,
    /// A rule for packets from outside; repeat the option for further rules, in order. Without rules, no packet may
    /// enter.
    #[arg(short, long = "in", value_name = "RULE", value_parser = rule)]
    incoming: Vec<String>,
    /// A rule for packets from inside; repeat the option for further rules, in order. Without rules, all packets may
    /// leave.
    #[arg(short = 'O', long = "out", value_name = "RULE", value_parser = rule)]
    outgoing: Vec<String>,
}

/// Parses a rule of IPFilter, with the action `allow` or `deny`.
fn rule(text: &str) -> Result<String, String> {
    let text = text.trim();
    let (action, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if !matches!(action, "allow" | "deny") || rest.trim().is_empty() {
        return Err("expected `allow` or `deny` and a condition, as in 'allow tcp dst port 80'".into());
    }
    // In a configuration, these characters would end the rule or change its meaning.
    if let Some(bad) = text.chars().find(|c| matches!(c, ',' | ';' | '"' | '\'' | '\\' | '$' | '\n' | '\r')) {
        return Err(format!(
            "a rule must not contain '{}'; give --in or --out once for each rule",
            bad.escape_default()
        ));
    }
    if text.contains("//") || text.contains("/*") {
        return Err("a rule must not contain a comment".into());
    }
    let depth = text.chars().try_fold(0u32, |depth, c| match c {
        '(' => depth.checked_add(1),
        ')' => depth.checked_sub(1),
        _ => Some(depth),
    });
    if depth != Some(0) {
        return Err("unbalanced parentheses".into());
    }
    let (_, errors) = checked(&format!("Idle -> IPFilter({text}) -> Discard;"));
    errors.into_iter().next().map_or_else(|| Ok(text.to_string()), Err)
}

impl Firewall {
    /// Returns the configuration, or all errors.
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
            String::from("// A transparent firewall. The kernel must have no address on the devices:\n//\n");
        for own in [&self.inside, &self.outside] {
            let _ = writeln!(out, "//     ip addr flush dev {own}; ip link set {own} up");
        }
        let rules = |own: &[String], otherwise: &str| {
            let mut lines: Vec<_> = own.iter().map(|r| format!("\n    {r}")).collect();
            // After a rule that matches all packets, a default rule would never be reached.
            if !matches!(own.last().map(String::as_str), Some("allow all" | "deny all")) {
                lines.push(format!("\n    {otherwise}"));
            }
            lines.join(",")
        };
        let otherwise = if self.outgoing.is_empty() { "allow all" } else { "1 all" };
        let _ = write!(
            out,
            "\ndefine($INSIDE {}, $OUTSIDE {});\n\n\
             // A device: output 0 has IPv4 packets with valid headers, output 1 ARP.\n\
             elementclass Side {{ $dev |\n    \
             FromDevice($dev, PROMISC true) -> kind :: Classifier(12/0800, 12/0806, -);\n    \
             kind [0] -> CheckIPHeader(OFFSET 14) -> [0] output;\n    \
             kind [1] -> [1] output;\n    \
             kind [2] -> other :: Counter -> Discard;\n    \
             input -> Queue -> ToDevice($dev);\n\
             }}\n\
             inside :: Side($INSIDE);\n\
             outside :: Side($OUTSIDE);\n\
             inside [1] -> outside;\n\
             outside [1] -> inside;\n\n\
             // The first rule that matches decides. `deny` drops; packets that match no rule go to output 1.\n\
             in_rules :: IPFilter({});\n\
             out_rules :: IPFilter({});\n\n\
             outside [0] -> in_rules -> in_passed :: Counter -> inside;\n\
             in_rules [1] -> in_stopped :: Counter -> Discard;\n\
             inside [0] -> out_rules -> out_passed :: Counter -> outside;\n\
             out_rules [1] -> out_stopped :: Counter -> Discard;\n",
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
