// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reverse-path filtering of packets that the router gives to the host.

use super::super::finding::{Change, Finding, Severity};
use super::super::host::Host;
use super::super::scope::Scope;
use super::Check;

pub const CHECK: Check =
    Check { name: "rp_filter", about: "packets to the host that reverse-path filtering drops", look };

/// The value that drops packets unless the kernel would answer by the same device (RFC 3704 §2.2).
const STRICT: u32 = 1;
/// The value that drops packets only if the kernel could not answer at all (RFC 3704 §2.3).
const LOOSE: u32 = 2;

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let mut out = Vec::new();
    // The router gives packets to the host by devices that it creates.
    let matters = scope.uses.iter().filter(|u| scope.graph.is_none() || !u.creates.is_empty());
    for name in matters.map(|u| &u.device) {
        if host.ipv4_conf(name, "rp_filter") != STRICT {
            continue;
        }
        // A device that the router will create gets the value of `default`.
        let exists = host.device(name).is_some();
        let key = format!("net/ipv4/conf/{}/rp_filter", if exists { name } else { "default" });
        let will = if exists { "is" } else { "will be" };
        let finding = Finding::mended_by(
            Severity::Warning,
            format!("reverse-path filtering of {name} {will} strict: rp_filter is 1"),
            format!("the kernel drops packets from {name} whose senders it reaches by another device"),
            // The larger of this value and that of `all` holds.
            Change::Sysctl { key, value: LOOSE },
        );
        out.push(scope.graded(finding));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, device, table};
    use super::*;

    #[test]
    fn strict_filtering_matters_where_the_router_gives_packets_to_the_host() {
        let conf =
            |name: &str, value: &str| (format!("proc/sys/net/ipv4/conf/{name}/rp_filter"), value.to_string());
        let to_host = Some("FromHost(fake0, 10.0.0.1/24) -> Discard; Idle -> ToHost(fake0)");
        let there = || {
            let mut fake = Fake::default();
            fake.devices.push(device("fake0", 9));
            fake
        };
        let warning = Severity::Warning;
        for (kernel, files, text, want) in [
            (Fake::default(), vec![conf("all", "0"), conf("default", "0")], to_host, None),
            (
                Fake::default(),
                vec![conf("all", "0"), conf("default", "1")],
                to_host,
                Some((warning, "default")),
            ),
            (
                Fake::default(),
                vec![conf("all", "1"), conf("default", "0")],
                to_host,
                Some((warning, "default")),
            ),
            (Fake::default(), vec![conf("all", "1"), conf("default", "2")], to_host, None),
            (
                there(),
                vec![conf("all", "1"), conf("default", "2"), conf("fake0", "0")],
                to_host,
                Some((warning, "fake0")),
            ),
            (there(), vec![conf("all", "1"), conf("fake0", "2")], to_host, None),
            // Packets that FromDevice receives are not filtered.
            (Fake::default(), vec![conf("eth0", "1")], Some("FromDevice(eth0) -> Discard"), None),
            (Fake::default(), vec![conf("eth0", "1")], None, Some((Severity::Note, "eth0"))),
        ] {
            let files: Vec<(&str, &str)> = files.iter().map(|f| (f.0.as_str(), f.1.as_str())).collect();
            let mend = want.map(|(s, name)| (s, format!("sysctl -w net.ipv4.conf.{name}.rp_filter=2")));
            let want: Vec<_> =
                mend.iter().map(|(s, mend)| (*s, "strict: rp_filter is 1", mend.as_str())).collect();
            table(&CHECK, vec![(kernel, &files, text, &want)]);
        }
    }
}
