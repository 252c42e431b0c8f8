// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of several receive queues that all go to one processor.

use super::super::finding::{Finding, Severity, refusal};
use super::super::host::{Device, Host, numbers};
use super::super::scope::Scope;
use super::Check;
use std::collections::BTreeSet;

pub const CHECK: Check = Check { name: "interrupts", about: "interrupts that all go to one processor", look };

/// The numbers of the interrupts of a device's queues, in the order of their numbers.
fn interrupts(host: &Host<'_>, device: &Device) -> Vec<u32> {
    let name = &device.info.name;
    let folder = format!("sys/class/net/{name}/device");
    let bus_name = host.link(&folder);
    let text = host.read("proc/interrupts").unwrap_or_default();
    let of_device: BTreeSet<u32> =
        host.list(&format!("{folder}/msi_irqs")).iter().filter_map(|n| n.parse().ok()).collect();
    let number = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let number: u32 = number.trim().parse().ok()?;
        let action = rest.split_whitespace().last()?;
        // The kernel names interrupts after the device (eth0-rx-0) or its bus device (virtio2-input.0).
        let named = [Some(name.as_str()), bus_name.as_deref()]
            .into_iter()
            .flatten()
            .find_map(|n| action.strip_prefix(n).filter(|rest| rest.starts_with('-')));
        let kind = named.unwrap_or(action);
        // Interrupts that tell changes of the configuration are rare, and those of sent frames matter less.
        let of_queue = !["config", "output", "-tx", "misc", "async"].iter().any(|w| kind.contains(w));
        ((named.is_some() || of_device.contains(&number)) && of_queue).then_some(number)
    };
    text.lines().skip(1).filter_map(number).collect()
}

/// The processors that an interrupt goes to.
fn processors(host: &Host<'_>, interrupt: u32) -> Vec<u32> {
    let list = |file: &str| host.read(&format!("proc/irq/{interrupt}/{file}")).filter(|t| !t.is_empty());
    let list = list("effective_affinity_list").or_else(|| list("smp_affinity_list"));
    numbers(&list.unwrap_or_default())
}

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let mut out = Vec::new();
    let online = host.processors();
    for of in scope.uses.iter().filter(|u| scope.graph.is_none() || !u.receives.is_empty()) {
        let Some(device) = host.device(&of.device) else { continue };
        if online.len() < 2 || !host.sys_shows(device) {
            continue;
        }
        let all = interrupts(host, device);
        let places: BTreeSet<Vec<u32>> = all.iter().map(|i| processors(host, *i)).collect();
        let first = places.first();
        if all.len() < 2 || places.len() != 1 || first.is_none_or(|p| p.len() != 1) {
            continue;
        }
        let to = |(n, p): (&u32, &u32)| format!("echo {p} > /proc/irq/{n}/smp_affinity_list");
        let commands: Vec<String> = all.iter().zip(online.iter().cycle()).map(to).collect();
        let processor = first.and_then(|p| p.first()).copied().unwrap_or(0);
        out.push(Finding::by_hand(
            Severity::Note,
            format!(
                "the interrupts of {} queues of {} all go to processor {processor}",
                all.len(),
                of.device
            ),
            "one processor receives all frames, while others are idle",
            commands.join("; "),
            refusal::MACHINE,
        ));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;

    #[test]
    fn queues_that_share_a_processor_are_told() {
        let text = Some("FromDevice(eth0) -> Discard");
        let interrupts = "           CPU0       CPU1\n 24: 1 0 PCI-MSI virtio2-config\n 25: 1 0 PCI-MSI virtio2-input.0\n \
            26: 1 0 PCI-MSI virtio2-output.0\n 27: 1 0 PCI-MSI virtio2-input.1\n 28: 1 0 PCI-MSI virtio20-input.1\nNMI: 0 0 x";
        let own = interrupts.replace("virtio2-input.", "eth0-TxRx-");
        let host = |interrupts: &'static str, second: &'static str| {
            vec![
                ("sys/devices/system/cpu/online", "0-1"),
                ("sys/class/net/eth0/ifindex", "2"),
                ("sys/class/net/eth0/address", "02:00:00:00:00:02"),
                ("sys/class/net/eth0/device", "->../../../virtio2"),
                ("proc/interrupts", interrupts),
                ("proc/irq/25/effective_affinity_list", "0"),
                ("proc/irq/27/smp_affinity_list", second),
            ]
        };
        let with = |change: (&'static str, &'static str)| {
            let mut files = host(interrupts, "0");
            files.retain(|f| f.0 != change.0);
            files.push(change);
            files
        };
        let told: &[(Severity, &str, &str)] = &[(
            Severity::Note,
            "the interrupts of 2 queues of eth0 all go to processor 0",
            "echo 0 > /proc/irq/25/smp_affinity_list; echo 1 > /proc/irq/27/smp_affinity_list",
        )];
        let offline: &[(Severity, &str, &str)] = &[(
            Severity::Note,
            "all go to processor 0",
            "echo 0 > /proc/irq/25/smp_affinity_list; echo 2 > /proc/irq/27/smp_affinity_list",
        )];
        table(
            &CHECK,
            vec![
                (Fake::default(), &host(interrupts, "0"), text, told),
                (Fake::default(), &host(interrupts, "0"), None, told),
                (Fake::default(), &with(("proc/interrupts", own.leak())), text, told),
                (Fake::default(), &host(interrupts, "1"), text, &[]),
                (Fake::default(), &host(interrupts, "0-1"), text, &[]),
                (Fake::default(), &with(("sys/devices/system/cpu/online", "0")), text, &[]),
                (Fake::default(), &with(("sys/devices/system/cpu/online", "0,2")), text, offline),
                // The folder shows a device of another network namespace.
                (Fake::default(), &with(("sys/class/net/eth0/ifindex", "9")), text, &[]),
                (Fake::default(), &with(("sys/class/net/eth0/address", "02:00:00:00:00:09")), text, &[]),
                (Fake::default(), &host(interrupts, "0"), Some("FromDevice(eth1) -> Discard"), &[]),
            ],
        );
    }
}
