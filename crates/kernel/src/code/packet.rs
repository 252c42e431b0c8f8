// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations on a packet: its length, its start, its marks and annotations.

use super::{Code, stack};
use crate::state::ANNOTATIONS;
use crate::step::{Arithmetic, Base, Exit, Label, Operand, Size, Step, Test, Value};

impl Code<'_> {
    /// The length of the packet in bytes.
    pub fn length(&mut self) -> Value {
        let end = if self.state.shortened {
            self.load_from(Base::Stack, stack::END, Size::Double)
        } else {
            let to = self.value();
            self.step(Step::Length { to });
            to
        };
        let data = i64::from(self.state.data);
        if data == 0 { end } else { self.compute(Arithmetic::Subtract, end, data) }
    }

    /// Continues at the first label if the packet is shorter than a number of bytes below 2^16, and at the second if it is
    /// longer. Costs less than comparisons of [`Code::length`].
    pub fn branch_length(&mut self, than: impl Into<Operand>, shorter: Option<Label>, longer: Option<Label>) {
        let than = than.into();
        if let Operand::Constant(n) = than
            && n < 0
        {
            // Every packet is longer.
            return if let Some(longer) = longer {
                self.jump(longer)
            };
        }
        shorter.into_iter().chain(longer).for_each(|label| self.reach(label));
        let plus = self.state.data;
        if !self.state.shortened {
            return self.step(Step::BranchLength { than, plus, shorter, longer });
        }
        let end = self.load_from(Base::Stack, stack::END, Size::Double);
        let length = self.compute(Arithmetic::Subtract, end, i64::from(plus));
        for (test, to) in [(Test::Less, shorter), (Test::Greater, longer)] {
            if let Some(to) = to {
                self.step(Step::Branch { test, left: length, right: than, wide: false, to });
            }
        }
    }

    /// Removes bytes from the front of the packet. They must be present.
    pub fn strip(&mut self, n: u32) {
        let data = i64::from(self.state.data) + i64::from(n);
        if self.live && data > i64::from(self.state.present) {
            self.fail("strips bytes that may not be present");
        }
        self.state.data = i32::try_from(data).unwrap_or(i32::MAX);
    }

    /// Makes room for `n` bytes in front of the packet: bytes that were stripped before, otherwise headroom. Packets go up
    /// if there is none.
    pub fn unstrip(&mut self, n: u32) {
        let data = self.state.data.saturating_sub(i32::try_from(n).unwrap_or(i32::MAX));
        self.state.data = data.max(0);
        let by = -data;
        if by > 0 {
            let no_room = self.label();
            self.reach(no_room);
            self.step(Step::MoveStart { by: -by, otherwise: no_room });
            for at in self.state.mac.iter_mut() {
                *at += by;
            }
            if let Some((at, _)) = &mut self.state.network {
                *at += by;
            }
            if self.state.shortened {
                let end = self.load_from(Base::Stack, stack::END, Size::Double);
                let end = self.compute(Arithmetic::Add, end, i64::from(by));
                let from = Operand::Value(end);
                self.step(Step::Store { base: Base::Stack, offset: stack::END, size: Size::Double, from });
            }
            // The length of the frame must be tested again, and offsets have changed.
            let present = std::mem::take(&mut self.state.present).saturating_add(by.unsigned_abs());
            self.state.destination = None;
            self.loaded.clear();
            let (moved, absent) = (self.label(), self.label());
            self.need(n.max(present), absent);
            self.jump(moved);
            self.bind(no_room);
            self.up();
            self.bind(absent);
            self.exit(Exit::Drop);
            self.bind(moved);
            self.changed = true;
        }
    }

    /// Shortens the packet to `length` bytes, which it must have. `least` is a lower bound of this length.
    pub fn shorten(&mut self, length: Value, least: u32) {
        let data = i64::from(self.state.data);
        let end = if data == 0 { length } else { self.compute(Arithmetic::Add, length, data) };
        self.changed = true;
        self.step(Step::Store {
            base: Base::Stack,
            offset: stack::END,
            size: Size::Double,
            from: end.into(),
        });
        self.state.shortened = true;
        let least = data + i64::from(least);
        self.state.present = self.state.present.min(u32::try_from(least).unwrap_or(0));
    }

    /// Forgets whether bytes from an offset on are present, so that packets share the code of the elements behind with those of
    /// which these bytes were not tested.
    pub fn forget_present(&mut self, offset: i32) {
        let end = self.state.data.saturating_add(offset).max(0).cast_unsigned();
        self.state.present = self.state.present.min(end);
    }

    /// Marks the MAC header, `offset` bytes from the start of the data.
    pub fn mark_mac(&mut self, offset: i32) {
        self.state.mac = Some(self.state.data.saturating_add(offset));
    }

    /// Marks the network header, `offset` bytes from the start of the data.
    pub fn mark_network(&mut self, offset: i32, length: u32) {
        self.state.network = Some((self.state.data.saturating_add(offset), length));
        self.state.rewritten = false;
    }

    /// The offset of the network header from the start of the data, and its length, if it is marked.
    pub fn network(&self) -> Option<(i32, u32)> {
        self.state.network.map(|(at, len)| (at - self.state.data, len))
    }

    /// The offset of the IP header from the start of the data, if it is marked, has no options, and says so itself.
    pub fn plain_header(&self) -> Option<i32> {
        self.network().filter(|n| n.1 == 20 && !self.state.rewritten).map(|n| n.0)
    }

    /// Sets the packet type annotation, as the number that the kernel uses.
    pub fn set_packet_type(&mut self, kind: u8) {
        self.state.packet_type = kind;
    }

    /// The annotation bytes at an offset, if they are known.
    pub fn known_annotation<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let all = self.state.annotations.get(offset..)?.first_chunk::<N>()?;
        all.iter().all(Option::is_some).then(|| all.map(Option::unwrap_or_default))
    }

    /// The annotation of `size` bytes at an offset, in the order of memory.
    pub fn annotation(&mut self, offset: usize, size: Size) -> Value {
        let bytes = size.bytes() as usize;
        let Some(all) = self.state.annotations.get(offset..offset + bytes) else {
            self.fail("reads annotations that do not exist");
            return self.constant(0);
        };
        if all.iter().all(Option::is_some) {
            let n = all.iter().rev().fold(0, |n, b| n << 8 | i64::from(b.unwrap_or_default()));
            return self.constant(n);
        }
        self.settle(offset, bytes);
        self.settle_words(offset, bytes);
        self.load_annotation(offset, size)
    }

    /// Loads annotation bytes from the stack. Accesses to the stack must be aligned, so others are made of smaller ones.
    fn load_annotation(&mut self, offset: usize, size: Size) -> Value {
        let Some(half) = size.half().filter(|_| !offset.is_multiple_of(size.bytes() as usize)) else {
            return self.load_from(Base::Stack, stack::ANNOTATIONS + offset as i32, size);
        };
        let first = self.load_annotation(offset, half);
        let second = self.load_annotation(offset + half.bytes() as usize, half);
        let (low, high) = if cfg!(target_endian = "little") { (first, second) } else { (second, first) };
        let high = self.compute(Arithmetic::ShiftLeft, high, 8 * half.bytes());
        self.compute(Arithmetic::Or, low, high)
    }

    /// Stores annotation bytes on the stack, as [`Code::load_annotation`] loads them.
    fn store_annotation(&mut self, offset: usize, size: Size, from: Operand) {
        let Some(half) = size.half().filter(|_| !offset.is_multiple_of(size.bytes() as usize)) else {
            return self.step(Step::Store {
                base: Base::Stack,
                offset: stack::ANNOTATIONS + offset as i32,
                size,
                from,
            });
        };
        let bits = 8 * half.bytes();
        let high = match from {
            Operand::Constant(n) => Operand::Constant(n >> bits),
            Operand::Value(v) => self.compute(Arithmetic::ShiftRight, v, bits).into(),
        };
        let (first, second) = if cfg!(target_endian = "little") { (from, high) } else { (high, from) };
        self.store_annotation(offset, half, first);
        self.store_annotation(offset + half.bytes() as usize, half, second);
    }

    /// Settles annotation bytes: stores those that are known on the stack, and treats them as unknown from here on.
    fn settle(&mut self, offset: usize, bytes: usize) {
        for at in offset..(offset + bytes).min(ANNOTATIONS) {
            if let Some(Some(known)) = self.state.annotations.get_mut(at).map(Option::take) {
                // The stack may hold what this byte was at the start, which a packet that goes up needs.
                self.changed |= self.before.annotations.get(at) == Some(&None);
                let offset = stack::ANNOTATIONS + at as i32;
                let from = Operand::Constant(known.into());
                self.step(Step::Store { base: Base::Stack, offset, size: Size::Byte, from });
            }
        }
    }

    /// Sets annotation bytes to constants.
    pub fn set_known_annotation<const N: usize>(&mut self, offset: usize, bytes: [u8; N]) {
        for (at, byte) in (offset..).zip(bytes) {
            if let Some(place) = self.state.annotations.get_mut(at) {
                *place = Some(byte);
            }
        }
        let steps = self.steps.len();
        self.settle_words(offset, N);
        // The stack may have held a former value of these bytes.
        self.changed |= self.steps.len() > steps;
    }

    /// Sets an annotation of `size` bytes, in the order of memory.
    pub fn set_annotation(&mut self, offset: usize, size: Size, from: impl Into<Operand>) {
        let bytes = size.bytes() as usize;
        if offset + bytes > ANNOTATIONS {
            return self.fail("writes annotations that do not exist");
        }
        self.changed = true;
        self.store_annotation(offset, size, from.into());
        for at in offset..offset + bytes {
            if let Some(place) = self.state.annotations.get_mut(at) {
                *place = None;
            }
        }
        self.settle_words(offset, bytes);
    }

    /// Stores the known bytes of words that are not wholly known, because the hand-over copies whole words.
    fn settle_words(&mut self, offset: usize, bytes: usize) {
        for word in offset / 4..(offset + bytes).div_ceil(4) {
            let all = self.state.annotations.get(word * 4..word * 4 + 4).unwrap_or_default();
            if all.contains(&None) {
                self.settle(word * 4, 4);
            }
        }
    }
}
