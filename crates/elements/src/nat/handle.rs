// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rewriter as other elements see it: its settings, and the store that holds its flows.

use super::flow::{RewriterKind, Timeouts};
use super::registry::Registry;
use super::store::Store;
use castanet_element::prelude::*;
use parking_lot::{Mutex, MutexGuard};
use std::sync::{Arc, OnceLock};

/// The names of the rewriter classes.
pub const CLASSES: &[&str] =
    &["IPRewriter", "TCPRewriter", "UDPRewriter", "IPAddrRewriter", "IPAddrPairRewriter", "ICMPPingRewriter"];

/// The argument CAPACITY: a number of flows, or a rewriter to share the capacity with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// At most this many flows.
    Flows(u32),
    /// The capacity of another rewriter, with this element number. The two rewriters share the capacity.
    Of(u32),
}

/// The default of CAPACITY: the element sets no limit. Only the limit of the store applies: 4,194,304 flows.
pub const UNBOUNDED: u32 = i32::MAX as u32;

impl ArgValue for Capacity {
    const TYPE: &'static str = "int or element";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Capacity, ValueError> {
        match i32::parse(text, cx) {
            Ok(n) => u32::try_from(n).map(Capacity::Flows).map_err(|_| "must be positive".into()),
            Err(e) => match rewriter(text, CLASSES, cx) {
                Ok(n) => Ok(Capacity::Of(n)),
                Err(_) if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => Err(e),
                Err(e) => Err(e),
            },
        }
    }
}

/// Returns the element number of rewriter `name`. The class of the rewriter must be in `classes`.
pub fn rewriter(name: &str, classes: &[&str], cx: &ArgCx<'_>) -> Result<u32, ValueError> {
    let ElementRef(e) = ElementRef::parse(name, cx)?;
    match cx.names.element_class(cx.scope, name) {
        Some((_, class)) if !classes.contains(&class) => {
            Err(format!("'{name}' is of class {class}, not {}", classes.join(" or ")).into())
        }
        _ => u32::try_from(e).map_err(|_| "no such element".into()),
    }
}

/// The state of a rewriter. All its replicas share it, and other elements use it.
pub struct Handle {
    kind: RewriterKind,
    timeouts: Timeouts,
    inputs: usize,
    capacity: Capacity,
    secret: Secret,
    /// The name and class of the element.
    label: String,
    link: OnceLock<Link>,
}

/// The store that holds the flows of a rewriter. Rewriters that share a capacity use the same store.
#[derive(Clone)]
pub struct Link {
    store: Arc<Mutex<Store>>,
    /// The rewriter's number in the store.
    pub space: u16,
}

impl Link {
    /// Locks the store. Callers hold the lock at most for the duration of a batch. Only a hot swap locks two
    /// stores at once, while no worker runs.
    #[inline]
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock()
    }
    /// Whether two rewriters have their flows in the same store.
    pub fn is_shared_with(&self, other: &Link) -> bool {
        Arc::ptr_eq(&self.store, &other.store)
    }
}

impl Handle {
    /// Makes the handle of a rewriter with `inputs` inputs.
    pub fn new(
        kind: RewriterKind,
        timeouts: Timeouts,
        inputs: usize,
        capacity: Capacity,
        cx: &BuildCx<'_>,
    ) -> Handle {
        let (secret, label) = (cx.secret(), format!("{} :: {}", cx.name, cx.spec.name));
        Handle { kind, timeouts, inputs, capacity, secret, label, link: OnceLock::new() }
    }
    /// The kind of the rewriter.
    pub fn kind(&self) -> RewriterKind {
        self.kind
    }
    /// Returns the link to the rewriter's store, if [`Handle::link`] has made it.
    #[inline]
    pub fn linked(&self) -> Option<&Link> {
        self.link.get()
    }
    /// Returns the link to the rewriter's store. The first call makes the store, or joins the store of the
    /// rewriter that CAPACITY names. Called only after all rewriters have been built.
    pub fn link(&self, registry: &Registry) -> Result<&Link, ElementError> {
        self.link_within(registry, 64)
    }
    fn link_within(&self, registry: &Registry, depth: u32) -> Result<&Link, ElementError> {
        if let Some(l) = self.link.get() {
            return Ok(l);
        }
        let Some(depth) = depth.checked_sub(1) else {
            return Err("CAPACITY: rewriters name each other in a circle".into());
        };
        let store = match self.capacity {
            Capacity::Flows(n) => Arc::new(Mutex::new(Store::new(n, self.secret.clone()))),
            Capacity::Of(e) => {
                let other = registry.rewriter(e).ok_or("CAPACITY: does not name a rewriter")?;
                other.link_within(registry, depth)?.store.clone()
            }
        };
        let space = {
            let mut store = store.lock();
            store.join(self.kind, self.timeouts, self.inputs, &self.label)
        };
        let space = space.ok_or("CAPACITY: too many rewriters share it")?;
        Ok(self.link.get_or_init(|| Link { store, space }))
    }
}
