// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capabilities that the classes of a configuration need.

use super::super::finding::{Finding, Severity, refusal};
use super::super::host::Host;
use super::super::scope::{Scope, User};
use super::{Check, enumerated};
use castanet_graph::Graph;
use castanet_spec::{Given, HostUse};
use rustix::thread::CapabilitySet;

pub const CHECK: Check =
    Check { name: "privileges", about: "capabilities that classes of the configuration need", look };

/// The capabilities that matter, with their names.
const NAMES: [(CapabilitySet, &str); 4] = [
    (CapabilitySet::NET_RAW, "CAP_NET_RAW"),
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
    (CapabilitySet::BPF, "CAP_BPF"),
    (CapabilitySet::NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE"),
];

/// Whether an element listens on a port that only privileged programs may use.
fn listens_on_a_low_port(host: &Host<'_>, graph: &Graph, element: usize) -> bool {
    let first = host.sysctl("net/ipv4/ip_unprivileged_port_start").unwrap_or(1024);
    let (Some(of), Some(spec)) = (graph.element(element), graph.spec(element)) else { return false };
    let given = Given::new(&of.config, spec.args);
    let kind = given.text("TYPE").unwrap_or_default().to_ascii_uppercase();
    // ADDR and PORT of a socket that connects are those of the other host.
    let connects = given.flag("CLIENT").unwrap_or(spec.ports != "0/0" && graph.outputs(element) == 0);
    let port = given.number("PORT").or_else(|| given.number("PORTNUMBER"));
    kind != "UNIX" && !connects && port.is_some_and(|p| p > 0 && p < i64::from(first))
}

/// The capabilities that an element needs.
fn needed(host: &Host<'_>, graph: &Graph, user: &User) -> CapabilitySet {
    let mut needed = match user.what {
        HostUse::Receives | HostUse::Sends | HostUse::RawSocket => CapabilitySet::NET_RAW,
        HostUse::Creates | HostUse::Hides => CapabilitySet::NET_ADMIN,
        HostUse::Sockets if listens_on_a_low_port(host, graph, user.element) => {
            CapabilitySet::NET_BIND_SERVICE
        }
        HostUse::Sockets => CapabilitySet::empty(),
    };
    if user.xdp {
        needed |= CapabilitySet::NET_ADMIN | CapabilitySet::BPF;
    }
    if user.hides {
        needed |= CapabilitySet::NET_ADMIN;
    }
    needed
}

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let mut has = host.kernel.capabilities();
    // The older and wider capability includes this one.
    if has.contains(CapabilitySet::SYS_ADMIN) {
        has |= CapabilitySet::BPF;
    }
    let mut out = Vec::new();
    for (capability, name) in NAMES.into_iter().filter(|(c, _)| !has.contains(*c)) {
        let Some(graph) = scope.graph else {
            if capability == CapabilitySet::NET_RAW || capability == CapabilitySet::NET_ADMIN {
                out.push(Finding::by_hand(
                    Severity::Note,
                    format!("this process does not have {name}"),
                    match capability {
                        CapabilitySet::NET_RAW => "routers with FromDevice, ToDevice or RawSocket do not start",
                        _ => "routers with KernelTap or KernelTun, and those that hide frames from the host, do not start",
                    },
                    "sudo castanet run FILE".into(),
                    refusal::PROCESS,
                ));
            }
            continue;
        };
        let mut elements: Vec<usize> = scope
            .users
            .iter()
            .filter(|u| needed(host, graph, u).contains(capability))
            .map(|u| u.element)
            .collect();
        elements.dedup();
        let names: Vec<String> = elements.into_iter().map(|e| scope.declaration(e)).collect();
        if !names.is_empty() {
            let (verb, it) = if names.len() == 1 { ("needs", "it") } else { ("need", "them") };
            out.push(Finding::by_hand(
                Severity::Error,
                format!("{} {verb} {name}, which this process does not have", enumerated(&names)),
                format!("the kernel refuses what {it} would open, and the router does not start"),
                format!("sudo castanet run {}", scope.file),
                refusal::PROCESS,
            ));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;

    #[test]
    fn missing_capabilities_are_told_with_the_elements_that_need_them() {
        let with = |capabilities| Fake { capabilities, ..Fake::default() };
        let none = || with(CapabilitySet::empty());
        let devices = "in :: FromDevice(eth0) -> Queue -> out :: ToDevice(eth1)";
        let error = Severity::Error;
        table(
            &CHECK,
            vec![
                (none(), &[], Some("Idle -> Discard"), &[]),
                (
                    none(),
                    &[],
                    Some(devices),
                    &[(
                        error,
                        "in :: FromDevice and out :: ToDevice need CAP_NET_RAW",
                        "sudo castanet run a.click",
                    )],
                ),
                (with(CapabilitySet::NET_RAW), &[], Some(devices), &[]),
                (
                    with(CapabilitySet::NET_RAW),
                    &[],
                    Some("in :: FromDevice(eth0, SNIFFER false) -> Discard"),
                    &[(error, "in :: FromDevice needs CAP_NET_ADMIN", "sudo")],
                ),
                (
                    with(CapabilitySet::NET_RAW | CapabilitySet::NET_ADMIN),
                    &[],
                    Some("in :: FromDevice(eth0, METHOD XDP) -> Discard"),
                    &[(error, "needs CAP_BPF", "sudo")],
                ),
                (
                    with(CapabilitySet::NET_RAW | CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN),
                    &[],
                    Some("in :: FromDevice(eth0, METHOD XDP) -> Discard"),
                    &[],
                ),
                (none(), &[], Some("KernelTap(10.0.0.1/24) -> Discard"), &[(error, "CAP_NET_ADMIN", "sudo")]),
                (none(), &[], Some("RawSocket(UDP) -> Discard"), &[(error, "CAP_NET_RAW", "sudo")]),
                (
                    none(),
                    &[],
                    Some("Socket(UDP, 0.0.0.0, 53) -> Discard"),
                    &[(error, "CAP_NET_BIND_SERVICE", "sudo")],
                ),
                (
                    none(),
                    &[("proc/sys/net/ipv4/ip_unprivileged_port_start", "0")],
                    Some("Socket(UDP, 0.0.0.0, 53) -> Discard"),
                    &[],
                ),
                (none(), &[], Some("Socket(UDP, 0.0.0.0, 5353) -> Discard"), &[]),
                (none(), &[], Some("Idle -> Socket(UDP, 10.0.0.1, 53)"), &[]),
                (none(), &[], Some("ControlSocket(TCP, 80)"), &[(error, "CAP_NET_BIND_SERVICE", "sudo")]),
                (
                    none(),
                    &[],
                    None,
                    &[(Severity::Note, "CAP_NET_RAW", "sudo"), (Severity::Note, "CAP_NET_ADMIN", "sudo")],
                ),
            ],
        );
    }
}
