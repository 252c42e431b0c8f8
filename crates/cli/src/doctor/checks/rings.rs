// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receive rings of devices that are small.

use super::super::finding::{Change, Finding, Severity};
use super::super::host::Host;
use super::super::scope::Scope;
use super::Check;

pub const CHECK: Check = Check { name: "rings", about: "receive rings that are small", look };

/// A ring of this many frames is large enough: at 1.5 million packets a second it lasts for 0.7 ms.
const ENOUGH: u32 = 1024;

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let receives = scope.uses.iter().filter(|u| scope.graph.is_none() || !u.receives.is_empty());
    let small = receives.filter_map(|u| {
        let ring = host.kernel.receive_ring(&u.device)?;
        let size = ring.most.min(ENOUGH);
        (ring.size < size).then(|| {
            let finding = Finding::mended_by(
                Severity::Note,
                format!("the receive ring of {} holds {} frames of up to {}", u.device, ring.size, ring.most),
                "the device drops frames that arrive while the processor is busy for a moment",
                Change::Ring { device: u.device.clone(), size },
            );
            scope.graded(finding)
        })
    });
    Ok(small.collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;
    use castanet_io::device::ReceiveRing;

    #[test]
    fn small_rings_are_told_if_they_can_be_larger() {
        let with =
            |size, most| Fake { rings: [("eth0", ReceiveRing { size, most })].into(), ..Fake::default() };
        let text = Some("FromDevice(eth0) -> Discard");
        table(
            &CHECK,
            vec![
                (Fake::default(), &[], text, &[]),
                (with(256, 256), &[], text, &[]),
                (with(1024, 4096), &[], text, &[]),
                (
                    with(256, 4096),
                    &[],
                    text,
                    &[(Severity::Note, "eth0 holds 256 frames of up to 4096", "ethtool -G eth0 rx 1024")],
                ),
                (with(256, 512), &[], text, &[(Severity::Note, "up to 512", "ethtool -G eth0 rx 512")]),
                (with(256, 512), &[], Some("Idle -> ToDevice(eth0)"), &[]),
                (with(256, 512), &[], None, &[(Severity::Note, "up to 512", "ethtool -G eth0 rx 512")]),
            ],
        );
    }
}
