// SPDX-License-Identifier: MIT OR Apache-2.0
//! Closed and open entries of tables.

use super::{Code, TableSpec, stack};
use crate::order::{DEVICES, ENTRY, MOST, PAUSE, SLOTS, at, trailer};
use crate::step::{Arithmetic, Base, Operand, Size, Step, Test, Value};

impl Code<'_> {
    /// Lets packets go up that find an entry of an ordered table closed, unless they open it. `spec` is that of the table.
    pub fn wait_for(&mut self, entry: Value, spec: TableSpec) {
        let length = spec.value.cast_signed();
        let place = length + trailer::OPEN + (self.device % DEVICES).cast_signed();
        let open = self.label();
        let is_open = self.load_from(Base::Entry(entry), place, Size::Byte);
        self.branch(is_open, Test::Differ, 0u32, open);
        let (up, agreed, late, drop, probe) =
            (self.label(), self.label(), self.label(), self.label(), self.label());
        let slot = self.slot(entry, length);
        let sent = self.load_from(Base::Entry(slot), at::SENT, Size::Double);
        let done = self.load_from(Base::Entry(slot), at::DONE, Size::Double);
        self.branch(sent, Test::Equal, done, agreed);
        let since = self.load_from(Base::Entry(slot), at::SINCE, Size::Double);
        self.branch_wide(since, Test::Differ, 0i64, late);
        let behind = self.compute(Arithmetic::Subtract, sent, done);
        self.branch(behind, Test::Less, MOST, up);
        let now = self.time();
        self.store_entry(slot, at::SINCE, Size::Double, now);
        self.jump(drop);
        self.bind(late);
        let now = self.time();
        let passed = self.compute(Arithmetic::Subtract, now, since);
        self.branch_wide(passed, Test::Greater, PAUSE, probe);
        self.bind(drop);
        let full = self.reasons.no_room;
        self.drop(full);
        self.bind(probe);
        self.store_entry(slot, at::SINCE, Size::Double, now);
        self.bind(up);
        self.up_with_ticket(slot);
        self.bind(agreed);
        self.store_entry(slot, at::SINCE, Size::Double, 0i64);
        self.store_entry(entry, place, Size::Byte, 1i64);
        self.bind(open);
    }

    /// Lets a packet go up that has found an entry of an ordered table, and closes the entry, so that no later packet overtakes it. `spec` is that
    /// of the table.
    pub fn up_in_order(&mut self, entry: Value, spec: TableSpec) {
        let length = spec.value.cast_signed();
        let place = length + trailer::OPEN + (self.device % DEVICES).cast_signed();
        let slot = self.slot(entry, length);
        self.store_entry(entry, place, Size::Byte, 0i64);
        self.up_with_ticket(slot);
    }

    /// Returns the slot of an entry for this device. Its index stays on the stack as the first half of the ticket.
    fn slot(&mut self, entry: Value, length: i32) -> Value {
        let slot = self.load_from(Base::Entry(entry), length + trailer::SLOT, Size::Word);
        // The mask tells the kernel's verifier that the slot exists.
        let slot = self.compute(Arithmetic::And, slot, SLOTS - 1);
        let index = self.compute(Arithmetic::Multiply, slot, DEVICES);
        let index = self.compute(Arithmetic::Add, index, self.device % DEVICES);
        let from = Operand::Value(index);
        self.step(Step::Store { base: Base::Stack, offset: stack::TICKET, size: Size::Word, from });
        let offset = self.compute(Arithmetic::Multiply, index, ENTRY);
        let to = self.value();
        self.step(Step::Slot { to, offset });
        to
    }

    fn up_with_ticket(&mut self, slot: Value) {
        let before = self.value();
        self.step(Step::Increment { to: before, base: Base::Entry(slot), offset: at::SENT });
        let number = self.compute(Arithmetic::Add, before, 1u32);
        let from = Operand::Value(number);
        self.step(Step::Store { base: Base::Stack, offset: stack::TICKET + 4, size: Size::Word, from });
        self.up_as(true);
    }
}
