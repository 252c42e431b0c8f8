// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices of a configuration that are missing, down, or without a carrier.

use super::super::finding::{Change, Finding, Severity, refusal};
use super::super::host::{Device, Host};
use super::super::scope::Scope;
use super::{Check, enumerated};

pub const CHECK: Check =
    Check { name: "devices", about: "devices that are missing, down or without a carrier", look };

fn down(name: &str, what: String) -> Finding {
    let change = Change::Up { device: name.into() };
    Finding::mended_by(Severity::Warning, what, "it receives and sends nothing", change)
}

fn without_carrier(host: &Host<'_>, device: &Device) -> Finding {
    let name = &device.info.name;
    match host.peer(device) {
        Some(peer) if !peer.info.up => {
            let other = &peer.info.name;
            down(other, format!("{name} has no carrier: its other end {other} is down"))
        }
        _ => Finding::by_hand(
            Severity::Warning,
            format!("{name} has no carrier"),
            "it receives and sends nothing",
            "connect the cable, or bring the other end up".into(),
            refusal::ELSEWHERE,
        ),
    }
}

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    if scope.graph.is_none() {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    for name in scope.uses.iter().filter(|u| u.is_needed()).map(|u| &u.device) {
        let Some(device) = host.device(name) else {
            // The loopback device is not among the devices of the host.
            if name != "lo" {
                let here: Vec<String> = host.devices.iter().map(|d| d.info.name.clone()).collect();
                let here = if here.is_empty() { "none".into() } else { enumerated(&here) };
                out.push(Finding::by_hand(
                    Severity::Error,
                    format!("there is no device {name}; devices here: {here}"),
                    "the router does not start",
                    "name another device in the configuration".into(),
                    refusal::CONFIGURATION,
                ));
            }
            continue;
        };
        if !device.info.up {
            out.push(down(name, format!("{name} is down")));
        } else if !device.info.running {
            out.push(without_carrier(host, device));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;

    #[test]
    fn devices_that_cannot_work_are_told() {
        let text = Some("FromDevice(eth0) -> Discard");
        let down = |name: &str| {
            let mut fake = Fake::default();
            fake.device(name).info.up = false;
            fake.device("eth0").info.running = false;
            fake
        };
        let warning = Severity::Warning;
        table(
            &CHECK,
            vec![
                (Fake::default(), &[], text, &[]),
                (Fake::default(), &[], Some("FromDevice(lo) -> Discard"), &[]),
                (Fake::default(), &[], Some("KernelTap(10.0.0.1/24, DEVNAME tap0) -> Discard"), &[]),
                (
                    Fake::default(),
                    &[],
                    Some("FromDevice(eth7) -> Discard"),
                    &[(Severity::Error, "no device eth7; devices here: eth0 and eth1", "another device")],
                ),
                (down("eth0"), &[], text, &[(warning, "eth0 is down", "ip link set eth0 up")]),
                (down("eth0"), &[], None, &[]),
                (down("eth1"), &[], text, &[(warning, "eth0 has no carrier", "cable")]),
                (
                    down("eth1").pair("eth0", "eth1"),
                    &[],
                    text,
                    &[(warning, "its other end eth1 is down", "ip link set eth1 up")],
                ),
            ],
        );
    }
}
