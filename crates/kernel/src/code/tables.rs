// SPDX-License-Identifier: MIT OR Apache-2.0
//! Look-ups in tables.

use super::{Code, TableKind, TableSpec, stack};
use crate::step::{Base, Label, MapName, Operand, Size, Step, Test, Value};

impl Code<'_> {
    /// Looks up a key in a table of this element, and continues at a label if it is not there. Returns the entry. If it is an
    /// entry of an ordered table, also does what [`Code::wait_for`] does.
    pub fn look_up(&mut self, table: u32, spec: TableSpec, key: &[(Size, Operand)], missing: Label) -> Value {
        let entry = self.find(table, spec, key, missing);
        if spec.ordered {
            self.wait_for(entry, spec);
        }
        entry
    }

    /// Looks up a key as [`Code::look_up`] does, but does not wait for an open entry.
    pub fn find(&mut self, table: u32, spec: TableSpec, key: &[(Size, Operand)], missing: Label) -> Value {
        self.find_of(self.element, table, spec, key, missing)
    }

    /// Looks up a key as [`Code::find`] does, in a table that another element fills. `spec` is that of the other element.
    pub fn find_of(
        &mut self,
        element: u32,
        table: u32,
        spec: TableSpec,
        key: &[(Size, Operand)],
        missing: Label,
    ) -> Value {
        let mut at = stack::KEY;
        for &(size, from) in key {
            self.step(Step::Store { base: Base::Stack, offset: at, size, from });
            at += size.bytes() as i32;
        }
        let length = at - stack::KEY;
        if length > stack::KEY_LENGTH || length != spec.key as i32 {
            self.fail("looks up a key of the wrong length");
        }
        if spec.kind == TableKind::Shared {
            self.fail("looks up a key in a table without keys");
        }
        let table = self.table_of(element, table, spec);
        let to = self.value();
        self.step(Step::LookUp { table, key: stack::KEY, to });
        self.branch_wide(to, Test::Equal, 0i64, missing);
        to
    }

    /// The name of a table of this element, which is made if it is new.
    pub(super) fn table(&mut self, table: u32, spec: TableSpec) -> MapName {
        self.table_of(self.element, table, spec)
    }

    fn table_of(&mut self, element: u32, table: u32, spec: TableSpec) -> MapName {
        let name = (element, table);
        match self.shared.tables.iter().find(|t| t.0 == name) {
            Some((_, other)) if *other != spec => self.fail("uses a table in two ways"),
            Some(_) => {}
            None => self.shared.tables.push((name, spec)),
        }
        MapName::Table(name.0, name.1)
    }

    /// Loads bytes of an entry.
    pub fn load_entry(&mut self, entry: Value, offset: i32, size: Size) -> Value {
        self.load_from(Base::Entry(entry), offset, size)
    }

    /// Stores bytes into an entry.
    pub fn store_entry(&mut self, entry: Value, offset: i32, size: Size, from: impl Into<Operand>) {
        self.step(Step::Store { base: Base::Entry(entry), offset, size, from: from.into() });
    }
}
