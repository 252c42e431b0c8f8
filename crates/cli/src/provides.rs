// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes and features that this binary provides, for configurations that require them.

use castanet_lang::ClassNames;

/// Features other than classes, by the names that `require` and scripts use.
const FEATURES: &[&str] = &[
    "int64",
    #[cfg(target_os = "linux")]
    "linux",
    "umultithread",
    "userlevel",
    std::env::consts::ARCH,
];

/// Whether a class or feature of that name exists.
pub fn has(classes: &dyn ClassNames, name: &str) -> bool {
    FEATURES.contains(&name) || classes.knows(name)
}

/// The names of all classes and features, sorted.
pub fn all(classes: &dyn ClassNames) -> Vec<&str> {
    let mut all = classes.names();
    all.extend(FEATURES);
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_features() {
        let classes = castanet_classes::Registry::new();
        for name in ["userlevel", "Discard", std::env::consts::ARCH] {
            assert!(has(&classes, name) && all(&classes).contains(&name), "{name}");
        }
        assert!(!has(&classes, "linuxmodule") && !has(&classes, ""));
    }
}
