// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of the system, which routers read for each batch.

use super::super::finding::{Finding, Severity, refusal};
use super::super::host::Host;
use super::super::scope::Scope;
use super::Check;

pub const CHECK: Check = Check { name: "clock", about: "a clock that takes long to read", look };

const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
/// Clocks that only the kernel can read, by system calls and slow accesses to a device.
const SLOW: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];
/// Clocks that programs read without a system call, the best ones first.
const FAST: [&str; 4] = ["tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"];

fn look(host: &Host<'_>, _: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let current = host.read(&format!("{FOLDER}/current_clocksource")).unwrap_or_default();
    if !SLOW.contains(&current.as_str()) {
        return Ok(Vec::new());
    }
    let available = host.read(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let better = FAST.into_iter().find(|c| available.split_whitespace().any(|a| a == *c));
    let mend = match better {
        Some(clock) => format!("echo {clock} > /{FOLDER}/current_clocksource"),
        None => "boot with tsc=reliable, if the processor's clocks run evenly".into(),
    };
    Ok(vec![Finding::by_hand(
        Severity::Warning,
        format!("the clock of the system is {current}"),
        "each reading takes about a microsecond, and timestamps need one for each packet",
        mend,
        refusal::MACHINE,
    )])
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;

    #[test]
    fn slow_clocks_are_told() {
        let clock = |current, available| {
            [
                ("sys/devices/system/clocksource/clocksource0/current_clocksource", current),
                ("sys/devices/system/clocksource/clocksource0/available_clocksource", available),
            ]
        };
        let idle = Some("Idle -> Discard");
        let warning = Severity::Warning;
        table(
            &CHECK,
            vec![
                (Fake::default(), &clock("tsc", "tsc hpet"), idle, &[]),
                (Fake::default(), &[], idle, &[]),
                (
                    Fake::default(),
                    &clock("hpet", "hpet kvm-clock tsc"),
                    idle,
                    &[(warning, "is hpet", "echo tsc > /sys/")],
                ),
                (
                    Fake::default(),
                    &clock("acpi_pm", "acpi_pm"),
                    None,
                    &[(warning, "is acpi_pm", "tsc=reliable")],
                ),
            ],
        );
    }
}
