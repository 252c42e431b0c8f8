// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registry through which the elements of this family find each other, whatever order they are built in.

use super::handle::Handle;
use super::mapper::Mapper;
use super::pattern::Pattern;
use castanet_element::prelude::*;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

/// Named patterns, mappers and rewriters of a router. Each element registers when it is built. It looks up
/// others at its initialisation or later, when all elements are built.
#[derive(Default)]
pub struct Registry(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    patterns: HashMap<String, Arc<Pattern>>,
    mappers: HashMap<u32, Arc<Mapper>>,
    rewriters: HashMap<u32, Arc<Handle>>,
}

impl Registry {
    /// Returns the registry of the router that is being built.
    pub fn of(cx: &mut BuildCx<'_>) -> Arc<Registry> {
        // The registry is shared under `u32::MAX`, which is no element's number.
        cx.share_as(u32::MAX, Registry::default)
    }
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock()
    }
    /// Adds a pattern under its full name. Returns false if the name is taken.
    pub fn add_pattern(&self, name: String, pattern: Arc<Pattern>) -> bool {
        let entries = &mut self.entries().patterns;
        let new = !entries.contains_key(&name);
        if new {
            entries.insert(name, pattern);
        }
        new
    }
    /// Finds a pattern by name, in `scope` first and then in the scopes around it.
    pub fn pattern(&self, scope: &str, name: &str) -> Option<Arc<Pattern>> {
        let entries = self.entries();
        let mut scope = scope.trim_end_matches('/');
        while !scope.is_empty() {
            if let Some(p) = entries.patterns.get(&format!("{scope}/{name}")) {
                return Some(p.clone());
            }
            scope = scope.rfind('/').and_then(|i| scope.get(..i)).unwrap_or("");
        }
        entries.patterns.get(name).cloned()
    }
    /// Adds a mapper under its element number.
    pub fn add_mapper(&self, element: u32, mapper: Arc<Mapper>) {
        self.entries().mappers.insert(element, mapper);
    }
    /// Returns the mapper with this element number. Its patterns are looked up here, because the mapper may
    /// be initialised later than the caller.
    pub fn mapper(&self, element: u32) -> Result<Option<Arc<Mapper>>, ValueError> {
        let found = self.entries().mappers.get(&element).cloned();
        if let Some(m) = &found {
            m.resolve(self)?;
        }
        Ok(found)
    }
    /// Adds the handle of a rewriter under its element number.
    pub fn add_rewriter(&self, element: u32, handle: Arc<Handle>) {
        self.entries().rewriters.insert(element, handle);
    }
    /// Returns the handle of the rewriter with this element number.
    pub fn rewriter(&self, element: u32) -> Option<Arc<Handle>> {
        self.entries().rewriters.get(&element).cloned()
    }
}
