// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARP flux: the kernel answers ARP requests for all of its addresses on each of its devices.

use super::super::finding::{Change, Finding, Severity};
use super::super::host::{Device, Host, same_network};
use super::super::scope::{Scope, Use};
use super::Check;
use std::net::IpAddr;

pub const CHECK: Check =
    Check { name: "arp", about: "ARP requests that the kernel answers on the wrong device", look };

/// The IPv4 addresses of a device.
fn addresses(device: &Device) -> impl Iterator<Item = (IpAddr, u8)> {
    device.relations.addresses.iter().copied().filter(|a| a.0.is_ipv4())
}

fn finding(host: &Host<'_>, scope: &Scope<'_>, of: &Use, device: &Device) -> Option<Finding> {
    let name = &of.device;
    let key = format!("net/ipv4/conf/{name}/arp_ignore");
    let why = "hosts learn two Ethernet addresses for one IP address, and their packets go astray";
    let change = Change::Sysctl { key, value: 1 };
    let others = || host.devices.iter().filter(|d| d.info.index != device.info.index && d.info.up);
    // The router answers for an address that the host has on another device.
    let shared = others().find_map(|d| {
        let (ip, _) = addresses(d).find(|a| of.is_shared() && scope.names(&a.0.to_string()))?;
        Some(format!(
            "the kernel answers ARP requests for {ip} on {name} too, because the host has it on {}: arp_ignore is 0",
            d.info.name
        ))
    });
    if let Some(what) = shared {
        return Some(Finding::mended_by(Severity::Error, what, why, change));
    }
    if of.hidden || of.xdp {
        return None;
    }
    let what = others().find_map(|d| {
        let common = addresses(device).find(|a| addresses(d).any(|b| same_network(*a, b)))?;
        let other = &d.info.name;
        Some(format!(
            "{name} and {other} are both in the network of {}/{}, and the kernel answers on each for both: arp_ignore is 0",
            common.0, common.1
        ))
    })?;
    Some(scope.graded(Finding::mended_by(Severity::Warning, what, why, change)))
}

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let answers = |u: &&Use| host.ipv4_conf(&u.device, "arp_ignore") == 0 && u.creates.is_empty();
    let with_device = scope.uses.iter().filter(answers).filter_map(|u| Some((u, host.device(&u.device)?)));
    Ok(with_device.filter_map(|(u, d)| finding(host, scope, u, d)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;

    #[test]
    fn requests_that_the_kernel_answers_on_other_devices_are_told() {
        let with = |all: &[(&str, &str)]| {
            let mut fake = Fake::default();
            for (device, ip) in all {
                fake.device(device)
                    .relations
                    .addresses
                    .push((ip.parse().unwrap_or(IpAddr::from([0; 4])), 24));
            }
            fake
        };
        let flux = || with(&[("eth0", "10.0.0.1"), ("eth1", "10.0.0.2")]);
        let elsewhere = || with(&[("eth1", "10.0.0.1")]);
        let text = "FromDevice(eth0) -> ARPResponder(10.0.0.1 2:0:0:0:0:1) -> Queue -> ToDevice(eth0)";
        let hidden = text.replace("(eth0) -> A", "(eth0, SNIFFER false) -> A");
        let listens = "FromDevice(eth0) -> Discard";
        let mend = "sysctl -w net.ipv4.conf.eth0.arp_ignore=1";
        let off: &[(&str, &str)] = &[("proc/sys/net/ipv4/conf/all/arp_ignore", "1")];
        table(
            &CHECK,
            vec![
                (
                    elsewhere(),
                    &[],
                    Some(text),
                    &[(Severity::Error, "10.0.0.1 on eth0 too, because the host has it on eth1", mend)],
                ),
                (elsewhere(), off, Some(text), &[]),
                (elsewhere(), &[("proc/sys/net/ipv4/conf/eth0/arp_ignore", "2")], Some(text), &[]),
                (elsewhere(), &[], Some(&hidden), &[]),
                (
                    flux(),
                    &[],
                    Some(listens),
                    &[(Severity::Warning, "eth0 and eth1 are both in the network of 10.0.0.1/24", mend)],
                ),
                (with(&[("eth0", "10.0.0.1"), ("eth1", "10.0.1.1")]), &[], Some(listens), &[]),
                (
                    flux(),
                    &[],
                    None,
                    &[
                        (Severity::Note, "eth0 and eth1", mend),
                        (Severity::Note, "eth1 and eth0", "eth1.arp_ignore=1"),
                    ],
                ),
            ],
        );
    }
}
