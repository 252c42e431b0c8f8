// SPDX-License-Identifier: MIT OR Apache-2.0
//! Closed and open entries of tables.

use super::{Code, TableSpec, stack};
use crate::order::{DEVICES, ENTRY, LIMIT, PAUSE, SLOTS, at, trailer};
use crate::step::{Arithmetic, Base, MapName, Operand, Size, Step, Test, Value};

impl Code<'_> {
    /// If an entry of an ordered table is closed, sends the packet up with a ticket, or opens the entry if no earlier packet is on its way up; drops
    /// the packet under overload. `spec` is that of the table.
    pub fn wait_for(&mut self, entry: Value, spec: TableSpec) {
        let place = self.open_flag(spec);
        let open = self.label();
        let is_open = self.load_entry(entry, place, Size::Byte);
        self.branch(is_open, Test::Differ, 0u32, open);
        let (up, drained, overloaded, drop, probe) =
            (self.label(), self.label(), self.label(), self.label(), self.label());
        let slot = self.slot(entry, spec);
        let sent = self.load_entry(slot, at::SENT, Size::Double);
        let done = self.load_entry(slot, at::DONE, Size::Double);
        self.branch(sent, Test::Equal, done, drained);
        let probed = self.load_entry(slot, at::PROBED, Size::Double);
        self.branch_wide(probed, Test::Differ, 0i64, overloaded);
        let behind = self.compute(Arithmetic::Subtract, sent, done);
        self.branch(behind, Test::Less, LIMIT, up);
        let now = self.time();
        self.store_entry(slot, at::PROBED, Size::Double, now);
        self.jump(drop);
        self.bind(overloaded);
        let now = self.time();
        let passed = self.compute(Arithmetic::Subtract, now, probed);
        self.branch_wide(passed, Test::Greater, PAUSE, probe);
        self.bind(drop);
        let full = self.reasons.no_room;
        self.drop(full);
        self.bind(probe);
        self.store_entry(slot, at::PROBED, Size::Double, now);
        self.bind(up);
        self.up_with_ticket(slot);
        self.bind(drained);
        self.store_entry(slot, at::PROBED, Size::Double, 0i64);
        self.store_entry(entry, place, Size::Byte, 1i64);
        self.bind(open);
    }

    /// Lets a packet go up that has found an entry of an ordered table, and closes the entry, so that no overloadedr packet overtakes it. `spec` is that
    /// of the table.
    pub fn up_in_order(&mut self, entry: Value, spec: TableSpec) {
        let place = self.open_flag(spec);
        let slot = self.slot(entry, spec);
        self.store_entry(entry, place, Size::Byte, 0i64);
        self.up_with_ticket(slot);
    }

    /// The offset of the byte in an entry that says whether it is open for this device.
    fn open_flag(&mut self, spec: TableSpec) -> i32 {
        if !spec.ordered {
            self.fail("orders packets by a table that is not ordered");
        }
        spec.value.cast_signed() + trailer::OPEN + (self.device % DEVICES).cast_signed()
    }

    /// Returns the slot of an entry for this device. Its index stays on the stack as the first half of the ticket.
    fn slot(&mut self, entry: Value, spec: TableSpec) -> Value {
        let slot = self.load_entry(entry, spec.value.cast_signed() + trailer::SLOT, Size::Word);
        // The mask tells the kernel's verifier that the slot exists.
        let slot = self.compute(Arithmetic::And, slot, SLOTS - 1);
        let index = self.compute(Arithmetic::Multiply, slot, DEVICES);
        let index = self.compute(Arithmetic::Add, index, self.device % DEVICES);
        let from = Operand::Value(index);
        self.step(Step::Store { base: Base::Stack, offset: stack::TICKET, size: Size::Word, from });
        let offset = self.compute(Arithmetic::Multiply, index, ENTRY);
        let to = self.value();
        self.step(Step::Address { to, map: MapName::Slots, offset: offset.into() });
        to
    }

    fn up_with_ticket(&mut self, slot: Value) {
        let before = self.add_to_entry(slot, at::SENT, 1i64);
        let number = self.compute(Arithmetic::Add, before, 1u32);
        let from = Operand::Value(number);
        self.step(Step::Store { base: Base::Stack, offset: stack::TICKET + 4, size: Size::Word, from });
        self.up_as(true);
    }
}
