// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this binary provides to configurations that require it: classes and features.

use crate::load::Table;
use castanet_lang::{ClassNames, Diagnostic, Flat};

/// Features beside classes, as `require` and scripts name them.
const FEATURES: &[&str] = &[
    "int64",
    #[cfg(target_os = "linux")]
    "linux",
    "umultithread",
    "userlevel",
    std::env::consts::ARCH,
];

/// Whether a class or feature of that name is there.
pub fn has(classes: &Table, name: &str) -> bool {
    FEATURES.contains(&name) || classes.knows(name)
}

/// Every name of a class, and every feature, sorted.
pub fn all(classes: &Table) -> Vec<&str> {
    let mut all = ClassNames::names(classes);
    all.extend(FEATURES);
    all.sort_unstable();
    all.dedup();
    all
}

/// Errors for what a configuration requires and is not there.
pub fn missing(flat: &Flat, classes: &Table) -> Vec<Diagnostic> {
    let wanted = flat.requirements.iter().filter(|(kind, name)| kind == "package" && !has(classes, name));
    wanted
        .flat_map(|(_, name)| {
            let package = Diagnostic::error(format!("can't find required package '{name}.uo'"), None)
                .context(format!("While loading package '{name}':"), None)
                .help("packages cannot be loaded yet: if the classes used are known without it, remove the requirement");
            [package, Diagnostic::error(format!("requirement '{name}' not available"), None)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_features() {
        let classes = crate::load::known();
        for name in ["userlevel", "Discard", std::env::consts::ARCH] {
            assert!(has(&classes, name) && all(&classes).contains(&name), "{name}");
        }
        assert!(!has(&classes, "linuxmodule") && !has(&classes, ""));
        let mut flat = Flat::default();
        for name in ["userlevel", "nosuch"] {
            flat.requirements.push(("package".into(), name.into()));
        }
        let errors: Vec<String> = missing(&flat, &classes).into_iter().map(|d| d.message).collect();
        assert_eq!(errors, ["can't find required package 'nosuch.uo'", "requirement 'nosuch' not available"]);
    }
}
