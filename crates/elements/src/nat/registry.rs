// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registry by which the elements of this family find each other, in any order of building.

use super::handle::Handle;
use super::mapper::Mapper;
use super::pattern::Pattern;
use castanet_element::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Named patterns, mappers and rewriters of a router. Each element enters itself when it is built, and looks others up when
/// all are: at its initialisation or later.
#[derive(Default)]
pub struct Registry(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    patterns: HashMap<String, Arc<Pattern>>,
    mappers: HashMap<u32, Arc<Mapper>>,
    rewriters: HashMap<u32, Arc<Handle>>,
}

impl Registry {
    /// The one of the router that is being built.
    pub fn of(cx: &mut BuildCx<'_>) -> Arc<Registry> {
        // No element has this number.
        cx.share_as(u32::MAX, Registry::default)
    }
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Enters a pattern by its full name; false if there is one of that name.
    pub fn add_pattern(&self, name: String, pattern: Arc<Pattern>) -> bool {
        let entries = &mut self.entries().patterns;
        let new = !entries.contains_key(&name);
        if new {
            entries.insert(name, pattern);
        }
        new
    }
    /// The pattern of a name, as seen from a scope.
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
    /// Enters a mapper.
    pub fn add_mapper(&self, element: u32, mapper: Arc<Mapper>) {
        self.entries().mappers.insert(element, mapper);
    }
    /// The mapper that an element is, ready for use: it may be initialised later than the element that asks for it.
    pub fn mapper(&self, element: u32) -> Result<Option<Arc<Mapper>>, ValueError> {
        let found = self.entries().mappers.get(&element).cloned();
        if let Some(m) = &found {
            m.resolve(self)?;
        }
        Ok(found)
    }
    /// Enters a rewriter.
    pub fn add_rewriter(&self, element: u32, handle: Arc<Handle>) {
        self.entries().rewriters.insert(element, handle);
    }
    /// The rewriter that an element is.
    pub fn rewriter(&self, element: u32) -> Option<Arc<Handle>> {
        self.entries().rewriters.get(&element).cloned()
    }
}
