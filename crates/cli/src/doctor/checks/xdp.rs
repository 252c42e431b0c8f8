// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether METHOD XDP works on the devices that use it.

use super::super::finding::{Finding, Severity, refusal};
use super::super::host::Host;
use super::super::scope::Scope;
use super::Check;
use castanet_io::LinkType;
use castanet_io::device::xdp::{HEADROOM, LINK_HEADER};
use castanet_packet::region::BUFFER;

pub const CHECK: Check = Check { name: "xdp", about: "whether METHOD XDP works, and how", look };

/// The largest MTU whose frames fit into one buffer.
const ONE_BUFFER: u32 = (BUFFER - HEADROOM - LINK_HEADER) as u32;

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let mut out = Vec::new();
    let packet = || "write METHOD PACKET".to_string();
    let version = host.version().unwrap_or((u32::MAX, 0));
    for of in scope.uses.iter().filter(|u| u.xdp) {
        let Some(device) = host.device(&of.device) else { continue };
        let (name, info) = (&of.device, &device.info);
        let mut add = |severity, what: String, why: &str, mend| {
            out.push(Finding::by_hand(severity, what, why, mend, refusal::CONFIGURATION));
        };
        if version < (5, 9) {
            let what =
                format!("METHOD XDP of {name} needs Linux 5.9, and this is {}.{}", version.0, version.1);
            add(Severity::Error, what, "the router does not start", packet());
            continue;
        }
        if info.link != LinkType::ETHERNET {
            let what = format!("METHOD XDP needs Ethernet, and the link type of {name} is {}", info.link);
            add(Severity::Error, what, "the router does not start", packet());
            continue;
        }
        if !host.is_initial_user_namespace() {
            let what =
                format!("METHOD XDP of {name} needs the initial user namespace, and this is another one");
            add(
                Severity::Error,
                what,
                "the kernel refuses the program, and the router does not start",
                packet(),
            );
            continue;
        }
        let abilities = host.kernel.abilities(info);
        let driver = abilities.driver.as_deref().unwrap_or("of the device");
        let Some(features) = abilities.xdp else { continue };
        if !(features.basic && features.redirect) {
            let what = format!(
                "the driver {driver} of {name} runs no XDP programs, so the kernel runs them (generic mode)"
            );
            add(Severity::Note, what, "this is not faster than a packet socket", packet());
        }
        if info.mtu > ONE_BUFFER && (version < (6, 6) || features.zero_copy && !features.several_buffers) {
            add(
                Severity::Warning,
                format!(
                    "{name} has MTU {}, and frames of more than {ONE_BUFFER} bytes need several buffers, which are not supported here",
                    info.mtu
                ),
                "longer frames are lost",
                format!("ip link set {name} mtu {ONE_BUFFER}, on all hosts of the link"),
            );
        }
        if abilities.queues == 1 && of.receives.len() > 1 {
            let what = format!("{} elements share the queues of {name}, which has one", of.receives.len());
            let mend = format!("ethtool -L {name} combined {}", of.receives.len());
            add(Severity::Warning, what, "all but one receive nothing", mend);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;
    use castanet_io::device::XdpFeatures;

    #[test]
    fn what_keeps_xdp_from_working_is_told() {
        let xdp = Some("FromDevice(eth0, METHOD XDP) -> Discard");
        let two = Some(
            "FromDevice(eth0, METHOD XDP, FANOUT 1) -> d :: Discard; FromDevice(eth0, METHOD XDP, FANOUT 1) -> d",
        );
        let features = |xdp| Fake { xdp, ..Fake::default() };
        let good = Fake::default().xdp;
        let jumbo = |several_buffers| {
            let mut fake = features(XdpFeatures { several_buffers, ..good });
            fake.device("eth0").info.mtu = 9000;
            fake
        };
        let ip = || {
            let mut fake = Fake::default();
            fake.device("eth0").info.link = LinkType::RAW_IP;
            fake
        };
        let (error, warning) = (Severity::Error, Severity::Warning);
        let old = |version| [("proc/sys/kernel/osrelease", version)];
        table(
            &CHECK,
            vec![
                (Fake::default(), &[], xdp, &[]),
                (Fake::default(), &old("5.4.0-9"), Some("FromDevice(eth0) -> Discard"), &[]),
                (
                    Fake::default(),
                    &old("5.4.0-9"),
                    xdp,
                    &[(error, "needs Linux 5.9, and this is 5.4", "METHOD PACKET")],
                ),
                (
                    Fake::default(),
                    &[("proc/self/uid_map", "0 1000 1")],
                    xdp,
                    &[(error, "user namespace", "METHOD PACKET")],
                ),
                (ip(), &[], xdp, &[(error, "needs Ethernet", "METHOD PACKET")]),
                (
                    features(XdpFeatures::default()),
                    &[],
                    xdp,
                    &[(Severity::Note, "generic mode", "METHOD PACKET")],
                ),
                (jumbo(true), &[], xdp, &[]),
                (jumbo(false), &[], xdp, &[(warning, "eth0 has MTU 9000", "mtu 1744")]),
                (jumbo(true), &old("6.1.0"), xdp, &[(warning, "eth0 has MTU 9000", "mtu 1744")]),
                (Fake::default(), &[], two, &[(warning, "2 elements share", "ethtool -L eth0 combined 2")]),
                (Fake { queues: 2, ..Fake::default() }, &[], two, &[]),
            ],
        );
    }
}
