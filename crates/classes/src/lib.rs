// SPDX-License-Identifier: MIT OR Apache-2.0
//! All element classes that come with the router: those of `castanet-elements`, the control sockets of
//! `castanet-control`, and the TCP ends of `castanet-tcp`.
#![forbid(unsafe_code)]

use castanet_element::spec::{ClassNames, ClassSpec, ClassSpecs};
use castanet_element::{Class as _, ClassDef, Classes};
use castanet_elements::classify::fast_classifier;
use rustc_hash::FxHashMap;

/// The families of other crates.
const OTHERS: &[&[ClassDef]] = &[castanet_control::control::CLASSES, castanet_tcp::tcp::CLASSES];

/// Every class in the order of the manual: family by family.
fn all() -> impl Iterator<Item = &'static ClassDef> {
    castanet_elements::FAMILIES.iter().copied().chain(OTHERS.iter().copied()).flatten()
}

/// Returns the class of this name, at compile time. A program that gets its classes only this way, as constants, contains
/// no code of other classes. Aliases are not found.
///
/// # Panics
/// If there is no such class. In a constant, this is a compile error.
pub const fn class(name: &str) -> ClassDef {
    if let Some(def) = found(castanet_elements::FAMILIES, name) {
        return def;
    }
    match found(OTHERS, name) {
        Some(def) => def,
        None => panic!("there is no class of this name"),
    }
}

/// Returns the class of this name in families, if there is one.
const fn found(families: &[&[ClassDef]], name: &str) -> Option<ClassDef> {
    let mut f = 0;
    while f < families.len() {
        if let Some(def) = named(families[f], name) {
            return Some(def);
        }
        f += 1;
    }
    None
}

/// Returns the class of this name in a list, if there is one.
const fn named(classes: &[ClassDef], name: &str) -> Option<ClassDef> {
    let mut c = 0;
    while c < classes.len() {
        if same(classes[c].spec.name.as_bytes(), name.as_bytes()) {
            return Some(classes[c]);
        }
        c += 1;
    }
    None
}

/// Whether two names are equal. (Comparison with `==` is not possible in a constant.)
const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// The family of a class that comes with the router: the folder that contains its file, perhaps in a
/// subfolder. None for classes of packages.
pub fn family(spec: &ClassSpec) -> Option<&'static str> {
    let mut path = spec.module.split("::");
    let ours = matches!(path.next(), Some("castanet_elements" | "castanet_control" | "castanet_tcp"));
    path.next().filter(|_| ours)
}

/// The families in the order of the manual, with their classes by name.
pub fn families() -> Vec<(&'static str, Vec<&'static ClassSpec>)> {
    let mut families: Vec<(&str, Vec<&ClassSpec>)> = Vec::new();
    for spec in all().map(|d| d.spec) {
        let family = family(spec).unwrap_or_default();
        match families.iter_mut().find(|f| f.0 == family) {
            Some((_, classes)) => classes.push(spec),
            None => families.push((family, vec![spec])),
        }
    }
    families.iter_mut().for_each(|f| f.1.sort_by_key(|s| s.name.to_lowercase()));
    families
}

/// The class behind a class that an archive defines: `FastClassifier` for `FastClassifier@@NAME`. The element finds the
/// definition in the archive.
fn generated(name: &str) -> Option<&'static str> {
    name.starts_with(fast_classifier::PREFIX).then_some(fast_classifier::FastClassifier::SPEC.name)
}

/// Every class, found by name or alias.
#[derive(Clone, Default)]
pub struct Registry(FxHashMap<&'static str, ClassDef>);

impl Registry {
    /// The classes that come with the router.
    pub fn new() -> Registry {
        let mut r = Registry::default();
        all().for_each(|&def| r.add(def));
        r
    }
    /// Adds a class; one of the same name is replaced.
    pub fn add(&mut self, def: ClassDef) {
        for name in std::iter::once(def.spec.name).chain(def.spec.aliases.iter().copied()) {
            self.0.insert(name, def);
        }
    }
    /// Every class, sorted by name. A class with aliases appears once.
    pub fn classes(&self) -> Vec<&'static ClassSpec> {
        let mut all: Vec<_> =
            self.0.iter().filter(|(n, d)| **n == d.spec.name).map(|(_, d)| d.spec).collect();
        all.sort_by_key(|s| s.name);
        all
    }
}

impl ClassNames for Registry {
    fn knows(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
    fn names(&self) -> Vec<&str> {
        let mut all: Vec<_> = self.0.keys().copied().collect();
        all.sort_unstable();
        all
    }
}

impl ClassSpecs for Registry {
    fn spec(&self, name: &str) -> Option<&'static ClassSpec> {
        self.get(name).map(|d| d.spec)
    }
}

impl Classes for Registry {
    fn get(&self, name: &str) -> Option<ClassDef> {
        self.0.get(name).or_else(|| self.0.get(generated(name)?)).copied()
    }
    fn devices(&self) -> Option<castanet_element::spec::names::Devices> {
        Some(castanet_elements::device::addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_the_classes_of_the_registry() {
        const FIRST: ClassDef = class("InfiniteSource");
        const LAST: ClassDef = class("ChatterSocket");
        assert_eq!((FIRST.spec.name, LAST.spec.name), ("InfiniteSource", "ChatterSocket"));
        for spec in Registry::new().classes() {
            assert!(std::ptr::eq(class(spec.name).spec, spec), "{}", spec.name);
        }
        for (a, b) in [("", ""), ("Tee", "Tee"), ("Tee", "Te"), ("Te", "Tee"), ("Tee", "Ted"), ("", "T")] {
            assert_eq!(same(a.as_bytes(), b.as_bytes()), a == b, "{a} {b}");
        }
    }

    #[test]
    #[should_panic(expected = "no class of this name")]
    fn a_name_without_a_class_does_not_compile() {
        let _ = class("Teee");
    }
}
