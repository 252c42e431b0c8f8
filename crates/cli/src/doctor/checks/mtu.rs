// SPDX-License-Identifier: MIT OR Apache-2.0
//! MTUs that do not fit: of the two ends of a pair, of the devices that packets pass, of fragmenters.

use super::super::finding::{Change, Finding, Mend, Severity, refusal};
use super::super::host::{Device, Host};
use super::super::scope::{Scope, Use};
use super::Check;
use castanet_graph::{Graph, Visit};
use castanet_spec::{Given, HostUse};
use std::collections::BTreeMap;

pub const CHECK: Check = Check { name: "mtu", about: "MTUs that do not fit each other", look };

/// The MTU that an element cuts packets to.
fn cuts_to(graph: &Graph, e: usize) -> Option<u32> {
    let (element, spec) = (graph.element(e)?, graph.spec(e)?);
    // The MTU of a class that creates a device is that of the device.
    if !spec.host.is_empty() || spec.args.iter().all(|a| a.name != "MTU") {
        return None;
    }
    u32::try_from(Given::new(&element.config, spec.args).number("MTU")?).ok()
}

/// The devices that packets from an element reach without being cut, as elements that send.
fn reached(graph: &Graph, e: usize) -> Vec<usize> {
    graph.downstream_filter(e, None, |f| match graph.spec(f) {
        Some(s) if s.uses(HostUse::Sends) => Visit::Take,
        Some(_) if cuts_to(graph, f).is_some() => Visit::Stop,
        _ => Visit::Pass,
    })
}

/// The device that an element sends to.
fn device_of<'a>(host: &'a Host<'_>, scope: &Scope<'_>, element: usize) -> Option<&'a Device> {
    let of = scope.uses.iter().find(|u| u.sends.contains(&element))?;
    host.device(&of.device)
}

/// Gives all findings about a device the largest MTU that one of them asks for, so that no change undoes another one.
fn agree(findings: &mut [Finding]) {
    let mut wanted: BTreeMap<String, u32> = BTreeMap::new();
    for f in &*findings {
        if let Mend::Change(Change::Mtu { device, mtu }) = &f.mend {
            let most = wanted.entry(device.clone()).or_default();
            *most = (*most).max(*mtu);
        }
    }
    for f in findings {
        if let Mend::Change(Change::Mtu { device, mtu }) = &mut f.mend {
            *mtu = wanted.get(device).copied().unwrap_or(*mtu);
        }
    }
}

fn raised(device: &Device, mtu: u32) -> Change {
    Change::Mtu { device: device.info.name.clone(), mtu }
}

/// Compares the two ends of a pair.
fn pair(host: &Host<'_>, scope: &Scope<'_>, of: &Use) -> Option<Finding> {
    let device = host.device(&of.device)?;
    let peer = host.peer(device)?;
    let told_already = peer.info.name < of.device && scope.uses.iter().any(|u| u.device == peer.info.name);
    let is_veth = || host.kernel.abilities(&device.info).driver.as_deref() == Some("veth");
    if device.info.mtu == peer.info.mtu || told_already || !is_veth() {
        return None;
    }
    let (small, large) = if device.info.mtu < peer.info.mtu { (device, peer) } else { (peer, device) };
    let (a, b) = (&large.info, &small.info);
    Some(scope.graded(Finding::mended_by(
        Severity::Warning,
        format!(
            "the two ends of a pair have different MTUs: {} has {}, {} has {}",
            a.name, a.mtu, b.name, b.mtu
        ),
        format!("{} drops packets of more than {} bytes without a word", b.name, b.mtu),
        raised(small, a.mtu),
    )))
}

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let mut out = found(host, scope);
    agree(&mut out);
    Ok(out)
}

fn found(host: &Host<'_>, scope: &Scope<'_>) -> Vec<Finding> {
    let mut out: Vec<Finding> = scope.uses.iter().filter_map(|u| pair(host, scope, u)).collect();
    let Some(graph) = scope.graph else { return out };
    for of in &scope.uses {
        let Some(from) = host.device(&of.device) else { continue };
        for to in
            of.receives.iter().flat_map(|&e| reached(graph, e)).filter_map(|f| device_of(host, scope, f))
        {
            let (a, b) = (&from.info, &to.info);
            let finding = Finding::mended_by(
                Severity::Warning,
                format!(
                    "{} has MTU {}, and packets go uncut to {}, which has {}",
                    a.name, a.mtu, b.name, b.mtu
                ),
                format!("packets of more than {} bytes are dropped; IPFragmenter would cut them", b.mtu),
                raised(to, a.mtu),
            );
            if b.mtu < a.mtu && !out.contains(&finding) {
                out.push(finding);
            }
        }
    }
    for (e, mtu) in (0..graph.len()).filter_map(|e| Some((e, cuts_to(graph, e)?))) {
        for to in reached(graph, e).into_iter().filter_map(|f| device_of(host, scope, f)) {
            let b = &to.info;
            if b.mtu < mtu {
                out.push(Finding::by_hand(
                    Severity::Warning,
                    format!("{} has MTU {mtu}, and {} has {}", graph.declaration(e), b.name, b.mtu),
                    format!("packets of more than {} bytes are dropped instead of being cut", b.mtu),
                    format!("write {}({})", graph.element(e).map_or("", |x| &x.class), b.mtu),
                    refusal::CONFIGURATION,
                ));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;

    #[test]
    fn lengths_that_do_not_fit_are_told() {
        let with = |eth0, eth1| {
            let mut fake = Fake::default();
            fake.device("eth0").info.mtu = eth0;
            fake.device("eth1").info.mtu = eth1;
            fake
        };
        let text = |between: &str| format!("FromDevice(eth0) -> {between} -> Queue -> ToDevice(eth1)");
        let (plain, cut) = (text("Counter"), text("Strip(14) -> CheckIPHeader -> IPFragmenter(1500)"));
        let warning = Severity::Warning;
        let pair = |a, b| with(a, b).pair("eth0", "eth1");
        table(
            &CHECK,
            vec![
                (with(1500, 1500), &[], Some(&plain), &[]),
                (with(1500, 9000), &[], Some(&plain), &[]),
                (
                    with(9000, 1500),
                    &[],
                    Some(&plain),
                    &[(
                        warning,
                        "eth0 has MTU 9000, and packets go uncut to eth1, which has 1500",
                        "ip link set eth1 mtu 9000",
                    )],
                ),
                (with(9000, 1500), &[], Some(&cut), &[]),
                (
                    with(9000, 1400),
                    &[],
                    Some(&cut),
                    &[(warning, "MTU 1500, and eth1 has 1400", "write IPFragmenter(1400)")],
                ),
                (with(9000, 1500), &[], None, &[]),
                (
                    pair(1500, 1400),
                    &[],
                    Some("FromDevice(eth0) -> Discard"),
                    &[(warning, "eth0 has 1500, eth1 has 1400", "ip link set eth1 mtu 1500")],
                ),
                // The peer of eth1 asks for 4000, and the way from eth0 for 9000.
                (
                    {
                        let mut fake = with(9000, 1500);
                        let mut eth2 = fake.device("eth1").clone();
                        (eth2.info.name, eth2.info.index, eth2.info.mtu) = ("eth2".into(), 4, 4000);
                        fake.devices.push(eth2);
                        fake.pair("eth1", "eth2")
                    },
                    &[],
                    Some(&plain),
                    &[
                        (warning, "eth2 has 4000, eth1 has 1500", "ip link set eth1 mtu 9000"),
                        (warning, "eth0 has MTU 9000", "ip link set eth1 mtu 9000"),
                    ],
                ),
                // A pair of which both ends are examined is told once.
                (
                    pair(1500, 1400),
                    &[],
                    None,
                    &[(Severity::Note, "different MTUs", "ip link set eth1 mtu 1500")],
                ),
                (pair(1500, 1500), &[], None, &[]),
            ],
        );
    }
}
