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

/// Which names to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// Classes and features.
    All,
    /// Classes only.
    Classes,
    /// Features only.
    Features,
}

/// Whether a class or feature of this name exists. `kinds` can limit the search to classes or to features.
pub fn has(classes: &dyn ClassNames, name: &str, kinds: Kinds) -> bool {
    kinds != Kinds::Classes && FEATURES.contains(&name) || kinds != Kinds::Features && classes.knows(name)
}

/// The names of all classes, all features, or both, sorted.
pub fn all(classes: &dyn ClassNames, kinds: Kinds) -> Vec<&str> {
    let mut all = if kinds == Kinds::Features { Vec::new() } else { classes.names() };
    all.extend(FEATURES.iter().filter(|_| kinds != Kinds::Classes));
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
            assert!(has(&classes, name, Kinds::All) && all(&classes, Kinds::All).contains(&name), "{name}");
            let class = name == "Discard";
            for (kinds, want) in [(Kinds::Classes, class), (Kinds::Features, !class)] {
                let found = (has(&classes, name, kinds), all(&classes, kinds).contains(&name));
                assert_eq!(found, (want, want), "{name}, {kinds:?}");
            }
        }
        assert!(!has(&classes, "linuxmodule", Kinds::All) && !has(&classes, "", Kinds::All));
    }
}
