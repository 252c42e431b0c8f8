// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classes that configurations may use: those in this program, and those of packages.

use castanet_classes::Registry;
use castanet_element::ClassDef;
use castanet_lang::{Diagnostic, Flat};
use castanet_package::Packages;
use std::sync::Arc;

/// The classes in this program.
#[derive(Clone)]
pub struct BuiltIn {
    classes: Arc<Registry>,
    /// Whether this program is a minimal driver.
    minimal: bool,
}

impl BuiltIn {
    /// Returns all classes that come with the router.
    pub fn all() -> BuiltIn {
        BuiltIn::of(Registry::new())
    }
    /// Returns the classes of a registry.
    pub fn of(registry: Registry) -> BuiltIn {
        BuiltIn { classes: Arc::new(registry), minimal: false }
    }
    /// Returns these classes only: those of a minimal driver.
    pub fn only(classes: &[ClassDef]) -> BuiltIn {
        let mut registry = Registry::default();
        classes.iter().for_each(|&class| registry.add(class));
        BuiltIn { classes: Arc::new(registry), minimal: true }
    }
    /// Returns the classes by name.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.classes
    }
    /// Returns the names of the classes, sorted.
    pub fn names(&self) -> Vec<&'static str> {
        self.classes.classes().iter().map(|spec| spec.name).collect()
    }
    /// Makes the set of classes and packages of this process. `clickpath` is the search path for packages and
    /// libraries; default: the environment variable `CLICKPATH`.
    pub fn available(self, clickpath: Option<&str>) -> Arc<Available> {
        let environment = std::env::var("CLICKPATH").ok();
        let packages = Packages::new(clickpath.or(environment.as_deref()));
        Arc::new(Available { built_in: self, packages })
    }
}

/// The classes in this program, and the packages of this process.
pub struct Available {
    /// The classes in this program.
    pub built_in: BuiltIn,
    /// The packages.
    pub packages: Arc<Packages>,
}

impl Available {
    /// Whether this program is a minimal driver.
    pub fn is_minimal(&self) -> bool {
        self.built_in.minimal
    }
    /// Returns the error of a minimal driver for a configuration whose classes it lacks, and None if it has all of
    /// them. `flat` is the configuration, elaborated with unknown classes; `knows` also knows the classes of packages.
    pub fn lacking(&self, flat: &Flat, knows: impl Fn(&str) -> bool) -> Option<Diagnostic> {
        let mut lacking: Vec<&str> =
            flat.elements.iter().map(|e| e.class.as_str()).filter(|c| !knows(c)).collect();
        lacking.sort_unstable();
        lacking.dedup();
        if lacking.is_empty() {
            return None;
        }
        let (classes, them) = if lacking.len() == 1 { ("class", "it") } else { ("classes", "them") };
        let error = format!("this minimal driver does not have the {classes} {}", lacking.join(", "));
        let has = format!("it has {}", self.built_in.names().join(", "));
        let help = format!(
            "make a driver that has {them} with 'castanet mkmindriver -E {}', or run the configuration with castanet",
            lacking.join(",")
        );
        Some(Diagnostic::error(error, None).note(has, None).help(help))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::load::{Source, load_in};
    use castanet_element::Classes as _;
    use castanet_lang::Unknown;

    fn errors(text: &str) -> Vec<String> {
        let all = Registry::new();
        let classes = ["Idle", "Counter", "Discard"].map(|name| all.get(name).unwrap());
        let available = BuiltIn::only(&classes).available(Some(""));
        let loaded = load_in(&available, &Source::text("x", text, Vec::new()), Unknown::Error);
        loaded.diagnostics.iter().map(|d| d.message.clone()).collect()
    }

    #[test]
    fn a_minimal_driver_says_which_classes_it_lacks() {
        assert_eq!(errors("Idle -> Counter -> Discard"), [""; 0]);
        let lacks = "this minimal driver does not have the class Queue";
        assert_eq!(errors("Idle -> q :: Queue; q -> Discard").first().unwrap(), lacks);
        let lacks = "this minimal driver does not have the classes Null, Tee";
        let text = "elementclass X { input -> Null -> output } Idle -> X -> Tee -> Null -> Discard";
        assert_eq!(errors(text).first().unwrap(), lacks);
        // An error of another kind is not explained by the classes.
        assert!(!errors("Idle -> Counter -> -> Discard").concat().contains("minimal driver"));
        assert!(!errors("Idle -> Discard [1] -> Discard").concat().contains("minimal driver"));
    }
}
