// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classes of a simulated network.

use crate::net_link::NetLink;
use castanet_element::spec::{ClassNames, ClassSpec, ClassSpecs};
use castanet_element::{ClassDef, Classes, element};
use std::sync::Arc;

const NET_LINK: &ClassDef = &element::<NetLink>();

/// The classes of routers and [`NetLink`], on a machine without devices: names of devices stand only for the addresses
/// that configurations give them.
pub struct NetClasses(Arc<dyn Classes>);

impl NetClasses {
    /// Adds the class of links to those of routers.
    pub fn new(routers: Arc<dyn Classes>) -> NetClasses {
        NetClasses(routers)
    }
}

impl ClassNames for NetClasses {
    fn knows(&self, name: &str) -> bool {
        name == NET_LINK.spec.name || self.0.knows(name)
    }
    fn names(&self) -> Vec<&str> {
        self.0.names()
    }
}

impl ClassSpecs for NetClasses {
    fn spec(&self, name: &str) -> Option<&'static ClassSpec> {
        self.get(name).map(|d| d.spec)
    }
}

impl Classes for NetClasses {
    fn get(&self, name: &str) -> Option<ClassDef> {
        if name == NET_LINK.spec.name { Some(*NET_LINK) } else { self.0.get(name) }
    }
}
