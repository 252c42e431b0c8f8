// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other programs on the devices: XDP programs, tc filters, packet sockets.

use super::super::finding::{Change, Finding, Severity, refusal};
use super::super::host::{Device, Host};
use super::super::scope::{Scope, Use};
use super::Check;
use castanet_io::device::xdp::XdpMode;

pub const CHECK: Check =
    Check { name: "programs", about: "XDP programs, tc filters and packet sockets of other programs", look };

fn xdp(device: &Device, of: &Use, mode: XdpMode) -> Finding {
    let name = &device.info.name;
    let place = if mode == XdpMode::Generic { "in generic mode" } else { "in the driver" };
    let (severity, why) = if of.xdp {
        (Severity::Error, "METHOD XDP attaches a program itself, and the router does not start")
    } else {
        (Severity::Warning, "frames that it drops or redirects do not reach the router")
    };
    let what = format!("an XDP program of another program is attached to {name} {place}");
    Finding::mended_by(severity, what, why, Change::DetachXdp { device: name.clone(), mode })
}

/// The numbers of packet sockets, by the interface index of their device (0: all devices), that receive all frames.
fn packet_sockets(host: &Host<'_>) -> Vec<u32> {
    let text = host.read("proc/net/packet").unwrap_or_default();
    let index = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let protocol = u32::from_str_radix(words.get(3)?, 16).ok()?;
        // A socket with protocol 0 only sends.
        (protocol != 0).then(|| words.get(4)?.parse().ok())?
    };
    text.lines().skip(1).filter_map(index).collect()
}

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let mut out = Vec::new();
    let sockets = packet_sockets(host);
    for of in &scope.uses {
        let Some(device) = host.device(&of.device) else { continue };
        let name = &of.device;
        if let Some(mode) = device.info.xdp {
            out.push(scope.graded(xdp(device, of, mode)));
        }
        let [received, _] = host.kernel.other_filters(device.info.index)?;
        // XDP takes frames before tc filters see them, and sockets that the router sends by bypass them.
        if !received.is_empty() && !of.xdp {
            out.push(Finding::by_hand(
                Severity::Note,
                format!(
                    "{name} has {} tc filters for received frames ({})",
                    received.len(),
                    received.join(", ")
                ),
                "they take time for each frame, and decide what the host receives besides the router",
                format!("tc filter del dev {name} ingress"),
                refusal::OTHERS,
            ));
        }
        let n = sockets.iter().filter(|i| **i == 0 || **i == device.info.index).count();
        if n > 0 {
            out.push(Finding::by_hand(
                Severity::Note,
                format!("packet sockets of other programs receive the frames of {name}: {n}"),
                "each gets a copy of each frame, which takes time",
                "end the programs that 'ss -0 -p' shows".into(),
                refusal::OTHERS,
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
    fn programs_on_the_devices_of_the_configuration_are_told() {
        let with = |mode| {
            let mut fake = Fake::default();
            fake.device("eth0").info.xdp = Some(mode);
            fake
        };
        let filters = || Fake { other_filters: [vec!["bpf".into()], vec!["u32".into()]], ..Fake::default() };
        let (packet, by_xdp) =
            (Some("FromDevice(eth0) -> Discard"), Some("FromDevice(eth0, METHOD XDP) -> Discard"));
        let head = "sk RefCnt Type Proto Iface R Rmem User Inode";
        let sockets = format!(
            "{head}\n0 3 3 0003 2 1 0 0 5\n0 3 3 0800 0 1 0 0 6\n0 3 3 0000 2 1 0 0 7\n0 3 3 0003 3 1 0 0 8\nx"
        );
        let (warning, note) = (Severity::Warning, Severity::Note);
        table(
            &CHECK,
            vec![
                (
                    with(XdpMode::Driver),
                    &[],
                    packet,
                    &[(warning, "eth0 in the driver", "ip link set eth0 xdp off")],
                ),
                (with(XdpMode::Generic), &[], by_xdp, &[(Severity::Error, "generic", "eth0 xdpgeneric off")]),
                (with(XdpMode::Driver), &[], Some("FromDevice(eth1) -> Discard"), &[]),
                (with(XdpMode::Driver), &[], None, &[(note, "eth0", "xdp off")]),
                (
                    filters(),
                    &[],
                    packet,
                    &[(note, "eth0 has 1 tc filters for received frames (bpf)", "tc filter del")],
                ),
                (filters(), &[], by_xdp, &[]),
                (Fake::default(), &[("proc/net/packet", head)], packet, &[]),
                (Fake::default(), &[("proc/net/packet", &sockets)], packet, &[(note, "eth0: 2", "ss -0 -p")]),
            ],
        );
    }
}
