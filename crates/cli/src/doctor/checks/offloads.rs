// SPDX-License-Identifier: MIT OR Apache-2.0
//! Offloads of devices that change or hide parts of packets.

use super::super::finding::{Change, Finding, Severity, refusal};
use super::super::host::{Device, Host};
use super::super::scope::Scope;
use super::Check;
use castanet_io::device::{Abilities, Offload, Peer};

pub const CHECK: Check =
    Check { name: "offloads", about: "offloads that hide parts of packets from the router", look };

fn off(severity: Severity, what: String, why: &str, device: &str, offload: Offload) -> Finding {
    Finding::mended_by(severity, what, why, Change::Offload { device: device.into(), offload })
}

/// Finds offloads of the sender whose frames a device receives with METHOD XDP. Only the other end of a virtual device
/// leaves work undone; frames from a wire are complete.
fn of_the_sender(host: &Host<'_>, device: &Device) -> Vec<Finding> {
    let name = &device.info.name;
    let why = "METHOD XDP passes frames as they are: pings work, and TCP does not";
    let Some(peer) = host.peer(device) else {
        let place = match device.relations.peer {
            Peer::Elsewhere => "in another network namespace",
            _ => "outside this system",
        };
        return vec![Finding::by_hand(
            Severity::Note,
            format!("the sender to {name} is {place}, and may leave checksums and VLAN tags to its device"),
            why,
            "there: ethtool -K DEVICE tx off txvlan off".into(),
            refusal::ELSEWHERE,
        )];
    };
    let other = &peer.info.name;
    let on = |offload: &Offload| host.kernel.offload(other, *offload) == Some(true);
    let all = [(Offload::TxChecksums, "checksums and segmentation"), (Offload::TxVlan, "VLAN tags")];
    let told = all.into_iter().filter(|(offload, _)| on(offload));
    told.map(|(offload, what)| {
        off(
            Severity::Error,
            format!("{other} leaves {what} of frames to {name} undone: its offload {} is on", offload.word()),
            why,
            other,
            offload,
        )
    })
    .collect()
}

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let mut out = Vec::new();
    for of in &scope.uses {
        let Some(device) = host.device(&of.device) else { continue };
        let name = &of.device;
        if scope.graph.is_some() && of.receives.is_empty() {
            continue;
        }
        let on = |offload| host.kernel.offload(name, offload) == Some(true);
        if on(Offload::LargeReceive) {
            let finding = off(
                Severity::Warning,
                format!("{name} joins received TCP segments: its offload lro is on"),
                "the lengths of the segments are lost, and joined packets do not fit into the next link",
                name,
                Offload::LargeReceive,
            );
            out.push(scope.graded(finding));
        }
        if !of.xdp {
            continue;
        }
        if Abilities::may_carry_offloads(host.kernel.abilities(&device.info).driver.as_deref()) {
            out.extend(of_the_sender(host, device));
        } else if on(Offload::RxVlan) {
            out.push(off(
                Severity::Warning,
                format!("{name} strips VLAN tags: its offload rxvlan is on"),
                "with METHOD XDP the tags are lost",
                name,
                Offload::RxVlan,
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
    fn offloads_that_harm_are_told() {
        let with = |offloads| Fake { offloads, ..Fake::default() };
        let (packet, xdp) =
            (Some("FromDevice(eth0) -> Discard"), Some("FromDevice(eth0, METHOD XDP) -> Discard"));
        let sends = Some("Idle -> ToDevice(eth0)");
        let all = || {
            with(vec![("eth0", Offload::RxVlan), ("eth1", Offload::TxChecksums), ("eth1", Offload::TxVlan)])
        };
        let lro = || with(vec![("eth0", Offload::LargeReceive)]);
        let (error, warning, note) = (Severity::Error, Severity::Warning, Severity::Note);
        let elsewhere = || {
            let mut fake = Fake { driver: "veth", ..Fake::default() };
            fake.device("eth0").relations.peer = Peer::Elsewhere;
            fake
        };
        table(
            &CHECK,
            vec![
                (lro(), &[], packet, &[(warning, "lro is on", "ethtool -K eth0 lro off")]),
                (lro(), &[], sends, &[]),
                (lro(), &[], None, &[(note, "lro is on", "ethtool -K eth0 lro off")]),
                // A packet socket shows checksums and tags that are left undone.
                (all().pair("eth0", "eth1"), &[], packet, &[]),
                (all(), &[], xdp, &[(warning, "rxvlan is on", "ethtool -K eth0 rxvlan off")]),
                (
                    all().pair("eth0", "eth1"),
                    &[],
                    xdp,
                    &[
                        (error, "eth1 leaves checksums", "ethtool -K eth1 tx off"),
                        (error, "VLAN tags", "ethtool -K eth1 txvlan off"),
                    ],
                ),
                (Fake::default().pair("eth0", "eth1"), &[], xdp, &[]),
                (
                    elsewhere(),
                    &[],
                    xdp,
                    &[(note, "in another network namespace", "ethtool -K DEVICE tx off")],
                ),
                (
                    Fake { driver: "virtio_net", ..Fake::default() },
                    &[],
                    xdp,
                    &[(note, "outside this system", "ethtool")],
                ),
            ],
        );
    }
}
