// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapts the known classes to the traits that the language and the graph use.

use castanet_element::Classes;
use castanet_spec::ClassSpec;
use std::sync::Arc;

/// The known classes, as [`castanet_lang::ClassNames`] and [`castanet_graph::Classes`].
#[derive(Clone)]
pub struct Table(pub Arc<dyn Classes>);

impl castanet_lang::ClassNames for Table {
    fn knows(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }
    fn names(&self) -> Vec<&str> {
        self.0.names()
    }
}

impl castanet_graph::Classes for Table {
    fn spec(&self, name: &str) -> Option<&'static ClassSpec> {
        self.0.get(name).map(|d| d.spec)
    }
    fn names(&self) -> Vec<&'static str> {
        self.0.names()
    }
}
