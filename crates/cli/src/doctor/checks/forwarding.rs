// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the kernel forwards the packets that the router forwards.

use super::super::finding::{Change, Finding, Severity};
use super::super::host::Host;
use super::super::scope::Scope;
use super::Check;

pub const CHECK: Check =
    Check { name: "forwarding", about: "whether the kernel forwards what the router forwards", look };

/// Whether the kernel forwards IPv6 packets.
const IPV6: &str = "net/ipv6/conf/all/forwarding";

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let mut out = Vec::new();
    for of in &scope.uses {
        let Some(device) = host.device(&of.device) else { continue };
        let shared = of.is_shared() && scope.sends_what_it_receives(of);
        if !shared && scope.graph.is_some() {
            continue;
        }
        let name = &of.device;
        let why = if scope.graph.is_some() {
            "receivers get each packet twice, as the router forwards it too (ping says DUP!)"
        } else {
            "a router that receives from it duplicates packets, unless it uses SNIFFER false or METHOD XDP"
        };
        // The kernel forwards IPv6 packets of all devices or of none: the key of a device only says whether it behaves
        // as a host.
        let keys = [("IPv4", format!("net/ipv4/conf/{name}/forwarding")), ("IPv6", IPV6.to_string())];
        for (protocol, key) in keys.into_iter().filter(|k| host.sysctl(&k.1) == Some(1)) {
            let what =
                format!("the kernel forwards {protocol} packets from {name}: {} is 1", key.replace('/', "."));
            let change = Change::Sysctl { key, value: 0 };
            out.push(scope.graded(Finding::mended_by(Severity::Error, what, why, change)));
        }
        // Without a configuration, a port of a bridge is nothing special.
        if let Some(master) = host.master(device).filter(|_| shared) {
            let change = Change::Release { device: name.clone() };
            let what = format!("{name} is a port of {master}, which forwards its frames");
            out.push(Finding::mended_by(Severity::Error, what, why, change));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, device, table};
    use super::*;

    #[test]
    fn forwarding_by_the_kernel_matters_where_the_router_forwards() {
        let on: &[(&str, &str)] = &[
            ("proc/sys/net/ipv4/conf/eth0/forwarding", "1"),
            ("proc/sys/net/ipv6/conf/eth0/forwarding", "1"),
            ("proc/sys/net/ipv6/conf/all/forwarding", "0"),
        ];
        let six: &[(&str, &str)] = &[("proc/sys/net/ipv6/conf/all/forwarding", "1")];
        let forwards = |options: &str| format!("FromDevice(eth0{options}) -> Queue -> ToDevice(eth1)");
        let (plain, hidden, xdp) = (forwards(""), forwards(", SNIFFER false"), forwards(", METHOD XDP"));
        let filtered = format!("{plain} KernelFilter(drop dev eth0)");
        let error = Severity::Error;
        let bridged = || {
            let mut fake = Fake::default();
            fake.devices.push(device("br0", 9));
            fake.device("eth0").relations.master = Some(9);
            fake
        };
        table(
            &CHECK,
            vec![
                (Fake::default(), &[], Some(&plain), &[]),
                (
                    Fake::default(),
                    on,
                    Some(&plain),
                    &[(
                        error,
                        "net.ipv4.conf.eth0.forwarding is 1",
                        "sysctl -w net.ipv4.conf.eth0.forwarding=0",
                    )],
                ),
                (
                    Fake::default(),
                    six,
                    Some(&plain),
                    &[(error, "IPv6", "sysctl -w net.ipv6.conf.all.forwarding=0")],
                ),
                (Fake::default(), on, Some(&hidden), &[]),
                (Fake::default(), on, Some(&xdp), &[]),
                (Fake::default(), on, Some(&filtered), &[]),
                // A router that only listens, or receives elsewhere.
                (Fake::default(), on, Some("FromDevice(eth0) -> Discard"), &[]),
                (Fake::default(), on, Some("FromDevice(eth1) -> Queue -> ToDevice(eth0)"), &[]),
                (Fake::default(), on, None, &[(Severity::Note, "from eth0", "sysctl -w")]),
                (
                    bridged(),
                    &[],
                    Some(&plain),
                    &[(error, "eth0 is a port of br0", "ip link set eth0 nomaster")],
                ),
                (bridged(), &[], Some(&hidden), &[]),
                (bridged(), &[], None, &[]),
            ],
        );
    }

    #[test]
    fn names_with_dots_keep_the_slashes_of_keys() {
        let change = Change::Sysctl { key: "net/ipv4/conf/eth0.5/forwarding".into(), value: 0 };
        assert_eq!(change.command(), "sysctl -w net/ipv4/conf/eth0.5/forwarding=0");
    }
}
