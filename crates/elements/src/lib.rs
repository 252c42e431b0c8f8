// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element classes, one file each, in families as the folders are called.
#![forbid(unsafe_code)]

use castanet_element::spec::ClassSpec;
use castanet_element::{ClassDef, Classes};
use std::collections::HashMap;

pub mod aqm;
pub mod arp;
pub mod basic;
pub mod classify;
pub mod control;
pub mod device;
pub mod ether;
mod handover;
pub mod icmp;
pub mod info;
pub mod ip;
pub mod measure;
pub mod nat;
pub mod sched;
pub mod shape;
pub mod source;
pub mod storage;
pub mod trace;
pub mod transport;

/// Every family's classes.
pub const FAMILIES: &[&[ClassDef]] = &[
    basic::CLASSES,
    source::CLASSES,
    storage::CLASSES,
    sched::CLASSES,
    aqm::CLASSES,
    shape::CLASSES,
    classify::CLASSES,
    ether::CLASSES,
    arp::CLASSES,
    ip::CLASSES,
    icmp::CLASSES,
    transport::CLASSES,
    nat::CLASSES,
    measure::CLASSES,
    trace::CLASSES,
    device::CLASSES,
    control::CLASSES,
    info::CLASSES,
];

/// Every class, found by name or alias.
#[derive(Clone, Default)]
pub struct Registry(HashMap<&'static str, ClassDef>);

impl Registry {
    /// The classes of this crate.
    pub fn new() -> Registry {
        let mut r = Registry::default();
        for &def in FAMILIES.iter().copied().flatten() {
            r.add(def);
        }
        r
    }
    /// Adds a class; one of the same name is replaced.
    pub fn add(&mut self, def: ClassDef) {
        for name in std::iter::once(def.spec.name).chain(def.spec.aliases.iter().copied()) {
            self.0.insert(name, def);
        }
    }
    /// Every class once, by name.
    pub fn classes(&self) -> Vec<&'static ClassSpec> {
        let mut all: Vec<_> =
            self.0.iter().filter(|(n, d)| **n == d.spec.name).map(|(_, d)| d.spec).collect();
        all.sort_by_key(|s| s.name);
        all
    }
}

impl Classes for Registry {
    fn get(&self, name: &str) -> Option<ClassDef> {
        self.0.get(name).copied()
    }
    fn names(&self) -> Vec<&'static str> {
        let mut all: Vec<_> = self.0.keys().copied().collect();
        all.sort_unstable();
        all
    }
    fn devices(&self) -> Option<castanet_element::spec::names::Devices> {
        Some(device::addresses)
    }
}
