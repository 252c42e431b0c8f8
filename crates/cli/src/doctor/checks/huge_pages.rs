// SPDX-License-Identifier: MIT OR Apache-2.0
//! Huge pages, which large route tables ask for.

use super::super::finding::{Finding, Severity, refusal};
use super::super::host::Host;
use super::super::scope::Scope;
use super::Check;

pub const CHECK: Check =
    Check { name: "huge-pages", about: "whether large route tables get huge pages", look };

fn look(host: &Host<'_>, scope: &Scope<'_>) -> Result<Vec<Finding>, String> {
    let looks_up = scope
        .graph
        .is_none_or(|g| (0..g.len()).any(|e| g.spec(e).is_some_and(|s| s.name.ends_with("IPLookup"))));
    let enabled = host.read("sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if !looks_up || !enabled.contains("[never]") {
        return Ok(Vec::new());
    }
    Ok(vec![Finding::by_hand(
        Severity::Note,
        "transparent huge pages are off: /sys/kernel/mm/transparent_hugepage/enabled is never".into(),
        "lookups in route tables of more than 4 MiB take longer",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".into(),
        refusal::MACHINE,
    )])
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Fake, table};
    use super::*;

    #[test]
    fn huge_pages_matter_to_route_tables() {
        let enabled = |text| [("sys/kernel/mm/transparent_hugepage/enabled", text)];
        let (routes, none) = (Some("Idle -> RadixIPLookup(0.0.0.0/0 0) -> Discard"), Some("Idle -> Discard"));
        let told: &[(Severity, &str, &str)] = &[(Severity::Note, "huge pages are off", "echo madvise >")];
        let never = enabled("always madvise [never]");
        table(
            &CHECK,
            vec![
                (Fake::default(), &never, routes, told),
                (Fake::default(), &never, None, told),
                (Fake::default(), &never, none, &[]),
                (Fake::default(), &enabled("always [madvise] never"), routes, &[]),
                (Fake::default(), &[], routes, &[]),
            ],
        );
    }
}
