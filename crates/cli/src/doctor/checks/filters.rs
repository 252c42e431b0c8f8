// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filters with which routers that were killed still hide the frames of devices from the host.

use super::super::finding::{Change, Finding, Severity, refusal};
use super::super::host::{Filter, Host};
use super::super::scope::Scope;
use super::Check;
use castanet_io::device::owner::Fate;

pub const CHECK: Check = Check { name: "filters", about: "filters that killed routers left behind", look };

fn finding(filter: Filter) -> Option<Finding> {
    let Filter { device, pid, fate } = filter;
    let about = format!("the host receives nothing from {device} because of a filter of process {pid}");
    let why = "the host's own network stack is cut off from the device";
    match fate {
        // A router hides the frames of its device from the host.
        Fate::Alive => None,
        Fate::Ended => {
            let change = Change::Filter { device, pid };
            Some(Finding::mended_by(Severity::Error, format!("{about}, which has ended"), why, change))
        }
        Fate::Unknown => Some(Finding::by_hand(
            Severity::Note,
            format!("{about}, which cannot be seen from here and may run"),
            why,
            format!("tc qdisc del dev {device} clsact"),
            refusal::OTHERS,
        )),
    }
}

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let matters = |f: &Filter| scope.graph.is_none() || scope.uses.iter().any(|u| u.device == f.device);
    Ok(host.kernel.filters()?.into_iter().filter(matters).filter_map(finding).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;

    #[test]
    fn filters_of_killed_routers_are_told() {
        let with = |fate| {
            let filter = Filter { device: "eth0".into(), pid: 77, fate };
            Fake { filters: vec![filter], ..Fake::default() }
        };
        let ended: &[(Severity, &str, &str)] = &[(
            Severity::Error,
            "from eth0 because of a filter of process 77, which has ended",
            "tc filter del",
        )];
        table(
            &CHECK,
            vec![
                (with(Fate::Alive), &[], None, &[]),
                (with(Fate::Ended), &[], None, ended),
                (with(Fate::Ended), &[], Some("FromDevice(eth0) -> Discard"), ended),
                (with(Fate::Ended), &[], Some("FromDevice(eth1) -> Discard"), &[]),
                (with(Fate::Unknown), &[], None, &[(Severity::Note, "may run", "tc qdisc del dev eth0")]),
            ],
        );
    }
}
