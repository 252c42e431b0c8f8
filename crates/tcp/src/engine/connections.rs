// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connections of an engine.

use super::{Connection, Memory};
use crate::application::Session;
use crate::protocol::{Ptr, Tcb};

/// A connection, and what its application keeps for it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) connection: Connection,
    pub(super) session: Session,
}

/// The connections, by the index of their TCB.
#[derive(Default)]
pub(super) struct Connections(Vec<Option<Box<Entry>>>);

impl Connections {
    #[inline]
    pub(super) fn entry(&mut self, tcb: Ptr<Tcb>) -> Option<&mut Entry> {
        self.0.get_mut(tcb.0 as usize)?.as_deref_mut()
    }
    #[inline]
    pub(super) fn get(&mut self, tcb: Ptr<Tcb>) -> Option<&mut Connection> {
        self.entry(tcb).map(|e| &mut e.connection)
    }
    /// The connection, for reading only.
    pub(super) fn peek(&self, tcb: Ptr<Tcb>) -> Option<&Connection> {
        self.0.get(tcb.0 as usize)?.as_ref().map(|e| &e.connection)
    }
    pub(super) fn add(&mut self, tcb: Ptr<Tcb>, connection: Connection) {
        let index = tcb.0 as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        if let Some(place) = self.0.get_mut(index) {
            *place = Some(Box::new(Entry { connection, session: Session::default() }));
        }
    }
    /// Removes a connection with its data. The memory of the data is given back.
    pub(super) fn remove(&mut self, tcb: Ptr<Tcb>, memory: &Memory) -> Option<Connection> {
        let mut entry = self.0.get_mut(tcb.0 as usize)?.take()?;
        entry.connection.clear(memory);
        Some(entry.connection)
    }
    /// The TCBs of all connections.
    pub(super) fn tcbs(&self) -> Vec<Ptr<Tcb>> {
        let used = self.0.iter().enumerate().filter(|(_, c)| c.is_some());
        used.filter_map(|(i, _)| u32::try_from(i).ok().map(Ptr::new)).collect()
    }
}
