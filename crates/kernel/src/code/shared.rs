// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of words that all processors and user level share.

use super::{Code, TableKind, TableSpec};
use crate::step::{Arithmetic, Base, Operand, Step, Value};

/// The number of epochs after which [`Code::decay`] changes nothing more, for averages below 2^56.
pub(crate) const DECAYED: i32 = 700;

impl TableSpec {
    /// The largest value of a shared table in bytes. Older kernels permit no more.
    pub const SHARED_LIMIT: u32 = 4 << 20;

    /// A shared table of some words of 64 bits, which are 0 at first.
    pub const fn shared(words: u32) -> TableSpec {
        let value = words.saturating_mul(8);
        TableSpec { kind: TableKind::Shared, key: 4, value, entries: 1, ordered: false }
    }
}

impl Code<'_> {
    /// The address of the words of a shared table of this element, for [`Code::load_entry`], [`Code::store_entry`] and
    /// [`Code::add_to_entry`] with offsets in bytes. An access to an aligned word is one step for all processors and user level;
    /// a load and a later store are two.
    pub fn shared(&mut self, table: u32, spec: TableSpec) -> Value {
        self.shared_at(table, spec, 0i64.into())
    }

    /// The address of a record in a shared table: one of `size` bytes, as those of an array. Both `size` and the size of the
    /// table must be powers of two. The index is taken modulo the number of records, so that the kernel's verifier knows its bound.
    pub fn shared_record(&mut self, table: u32, spec: TableSpec, index: Value, size: u32) -> Value {
        if !size.is_power_of_two() || !spec.value.is_power_of_two() || size > spec.value {
            self.fail("uses records whose size is not a power of two");
        }
        let last = (spec.value / size.max(1)).saturating_sub(1);
        let index = self.compute(Arithmetic::And, index, last);
        let offset = self.compute(Arithmetic::Multiply, index, size);
        self.shared_at(table, spec, offset.into())
    }

    fn shared_at(&mut self, table: u32, spec: TableSpec, offset: Operand) -> Value {
        if spec.kind != TableKind::Shared
            || spec.ordered
            || !(8..=TableSpec::SHARED_LIMIT).contains(&spec.value)
        {
            self.fail("uses a table as if it were shared, or one that is too large");
        }
        let map = self.table(table, spec);
        let to = self.value();
        self.step(Step::Address { to, map, offset });
        to
    }

    /// Adds to eight bytes of an entry in one step for all processors and user level. Returns the number before.
    pub fn add_to_entry(&mut self, entry: Value, offset: i32, by: impl Into<Operand>) -> Value {
        let to = self.value();
        self.step(Step::Increment { to, base: Base::Entry(entry), offset, by: by.into() });
        to
    }

    /// Lets an average below 2^56 decay for a number of epochs without events: in each, it becomes (15 average + 8) / 16, rounded
    /// down, as in an exponentially weighted moving average that is rounded to nearest and gives the newest epoch a weight of 1/16.
    pub fn decay(&mut self, average: Value, epochs: Value) {
        self.forget(average);
        self.step(Step::Decay { to: average, epochs });
    }
}
