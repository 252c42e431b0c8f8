// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the host answers for the addresses that the router answers for.

use super::super::finding::{Finding, Severity, refusal};
use super::super::host::Host;
use super::super::scope::Scope;
use super::Check;
use std::net::IpAddr;

pub const CHECK: Check =
    Check { name: "answers", about: "whether the kernel answers for addresses of the router", look };

/// Whether an address is valid on its link only, so that no configuration forwards to it.
fn is_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local(),
    }
}

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let mut out = Vec::new();
    for of in scope.uses.iter().filter(|u| u.is_shared() && scope.sends_what_it_receives(u)) {
        let Some(device) = host.device(&of.device) else { continue };
        let name = &of.device;
        for (ip, _) in device.relations.addresses.iter().filter(|a| !is_local(a.0)) {
            // The name of a device stands for its addresses, as in ARPResponder(eth0).
            if scope.names(&ip.to_string()) || scope.names(name) {
                let request = if ip.is_ipv4() { "ARP requests" } else { "neighbour solicitations" };
                out.push(Finding::by_hand(
                    Severity::Error,
                    format!("the host has {ip} on {name}, and the router has it too"),
                    format!(
                        "both answer {request} and pings for it (ping says DUP!), and the host resets TCP connections to it"
                    ),
                    format!("write FromDevice({name}, SNIFFER false)"),
                    refusal::CONFIGURATION,
                ));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;

    #[test]
    fn addresses_that_host_and_router_share_are_told() {
        let with = |ip: &str| {
            let mut fake = Fake::default();
            fake.device("eth0").relations.addresses.push((ip.parse().unwrap_or(IpAddr::from([0; 4])), 24));
            fake
        };
        let text = |responder: &str, options: &str| {
            format!("FromDevice(eth0{options}) -> {responder} -> Queue -> ToDevice(eth0)")
        };
        let own = text("ARPResponder(10.0.0.1 2:0:0:0:0:1)", "");
        let named = text("ARPResponder(10.9.9.9 eth0)", "");
        let hidden = text("ARPResponder(10.0.0.1 2:0:0:0:0:1)", ", SNIFFER false");
        let other = text("ARPResponder(10.0.0.12 2:0:0:0:0:1)", "");
        let told: &[(Severity, &str, &str)] =
            &[(Severity::Error, "the host has 10.0.0.1 on eth0", "FromDevice(eth0, SNIFFER false)")];
        table(
            &CHECK,
            vec![
                (with("10.0.0.1"), &[], Some(&own), told),
                (with("10.0.0.1"), &[], Some(&named), told),
                (with("10.0.0.1"), &[], Some(&hidden), &[]),
                (with("10.0.0.1"), &[], Some(&other), &[]),
                (with("fe80::1"), &[], Some(&named), &[]),
                (with("10.0.0.1"), &[], None, &[]),
                (Fake::default(), &[], Some(&own), &[]),
            ],
        );
    }
}
