// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code of one element, while the element writes it.

use crate::compile::Reasons;
use crate::state::{ANNOTATIONS, State};
use crate::step::{Arithmetic, Base, Counter, Exit, Label, MapName, Operand, Size, Step, Test, Value};

/// Offsets on the stack, from its end.
pub(crate) mod stack {
    /// The annotation bytes.
    pub const ANNOTATIONS: i32 = -48;
    /// The end of a packet that was shortened, from the start of the frame; 8 bytes.
    pub const END: i32 = -56;
    /// The keys of look-ups.
    pub const KEY: i32 = -88;
    /// The length of the longest key.
    pub const KEY_LENGTH: i32 = 32;
    /// Values for which no register is free, from here on downwards.
    pub const SPILLED: i32 = -96;
}

/// Why an element cannot run in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl From<&str> for Refused {
    fn from(why: &str) -> Refused {
        Refused(why.to_string())
    }
}

/// The result of lowering an element.
pub type Lowered = Result<(), Refused>;

/// A device that frames leave by: its name.
pub type DeviceName = String;

/// How a table finds keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// A key is equal to that of the entry.
    Exact,
    /// The entry with the longest prefix of the key. Keys begin with the length of the prefix in bits, as a number of 32 bits in
    /// the order of the processor; that of look-ups is the length of the rest.
    Prefixes,
}

/// A table that programs look up, and that the element fills at user level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableSpec {
    /// How keys are found.
    pub kind: TableKind,
    /// The length of keys in bytes, at most 32.
    pub key: u32,
    /// The length of values in bytes.
    pub value: u32,
    /// The largest number of entries.
    pub entries: u32,
}

/// Collects what all programs of a router share, while elements are lowered.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// The counters, by their numbers. Those that are always counted together share a number.
    pub counters: Vec<Vec<Counter>>,
    /// The devices that frames leave by, by their numbers.
    pub devices: Vec<DeviceName>,
    /// The tables, with the elements that fill them and their numbers in these elements.
    pub tables: Vec<((u32, u32), TableSpec)>,
}

/// The index of an item, which is added if it is missing.
pub(crate) fn position<T: PartialEq>(all: &mut Vec<T>, wanted: T) -> u32 {
    let at = all.iter().position(|x| *x == wanted).unwrap_or_else(|| {
        all.push(wanted);
        all.len() - 1
    });
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// What is known where a jump begins.
#[derive(Clone)]
struct Reached {
    state: State,
    /// Whether anything was changed since the start.
    changed: bool,
    loaded: Vec<(i32, Size, Value)>,
}

impl Reached {
    /// Returns what is known in both places. None if they differ in more than details.
    fn meet(self, other: &Reached) -> Option<Reached> {
        Some(Reached {
            state: self.state.meet(&other.state)?,
            changed: self.changed || other.changed,
            loaded: self.loaded.into_iter().filter(|l| other.loaded.contains(l)).collect(),
        })
    }
}

/// The code of an element for packets that arrive at one input in one [`State`].
///
/// An element describes what it does with a packet, in order. Offsets count from the start of the packet's data. Before
/// bytes are read or written, [`Code::need`] must have tested that they are present. Each path ends with one of
/// [`Code::next`], [`Code::up`], [`Code::drop`] and [`Code::send`]; what follows belongs to another path and begins with
/// [`Code::bind`].
pub struct Code<'a> {
    element: u32,
    input: u32,
    connected: &'a [bool],
    reasons: Reasons,
    pub(crate) shared: &'a mut Shared,
    /// The state at the start, for packets that go up before anything was changed.
    before: State,
    state: State,
    /// Whether a packet reaches this point.
    live: bool,
    /// Whether the frame or the stack was changed since the start.
    changed: bool,
    pub(crate) steps: Vec<Step>,
    /// For each value, what it is if it is known.
    values: Vec<Option<i64>>,
    /// Loads of the frame whose values are still right: offset, size, value.
    loaded: Vec<(i32, Size, Value)>,
    labels: Vec<Option<Reached>>,
    fault: Option<Refused>,
}

impl<'a> Code<'a> {
    /// Begins the code of an element. `connected` says for each output whether it leads anywhere.
    pub(crate) fn new(
        element: u32,
        input: u32,
        (connected, reasons): (&'a [bool], Reasons),
        state: &State,
        shared: &'a mut Shared,
    ) -> Code<'a> {
        Code {
            element,
            input,
            connected,
            reasons,
            shared,
            before: state.clone(),
            state: state.clone(),
            live: true,
            changed: false,
            steps: Vec::new(),
            values: Vec::new(),
            loaded: Vec::new(),
            labels: Vec::new(),
            fault: None,
        }
    }

    /// Ends the code. An error if the element has described something impossible.
    pub(crate) fn end(self) -> Result<(Vec<Step>, u32), Refused> {
        match self.fault {
            Some(fault) => Err(fault),
            None if self.live => Err("a path does not end".into()),
            None => {
                let steps = without_unused(without_jumps(self.steps), self.values.len());
                Ok((steps, self.values.len() as u32))
            }
        }
    }

    fn fail(&mut self, why: &str) {
        self.fault.get_or_insert_with(|| why.into());
    }

    /// What is known about the packet here.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether an output is connected.
    pub fn is_connected(&self, output: usize) -> bool {
        self.connected.get(output).copied().unwrap_or(false)
    }

    fn step(&mut self, step: Step) {
        if self.live {
            self.steps.push(step);
        }
    }

    fn value(&mut self) -> Value {
        self.values.push(None);
        Value((self.values.len() - 1) as u32)
    }

    fn known(&self, operand: Operand) -> Option<i64> {
        match operand {
            Operand::Constant(n) => Some(n),
            Operand::Value(v) => self.values.get(v.0 as usize).copied().flatten(),
        }
    }

    /// Notes that a value is no longer known, because it is computed again.
    fn forget(&mut self, value: Value) {
        if let Some(known) = self.values.get_mut(value.0 as usize) {
            *known = None;
        }
        self.loaded.retain(|l| l.2 != value);
    }

    fn frame_offset(&mut self, offset: i32, size: u32) -> i32 {
        let at = self.state.data.saturating_add(offset);
        let end = i64::from(at) + i64::from(size);
        if self.live && (at < 0 || end > i64::from(self.state.present)) {
            self.fail("reads or writes bytes that may not be present");
        }
        at
    }

    // Labels and jumps.

    /// Makes a label. Jumps may lead to it before [`Code::bind`] says where it is.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label((self.labels.len() - 1) as u32)
    }

    /// Notes that a packet in this state reaches a label.
    fn reach(&mut self, label: Label) {
        if !self.live {
            return;
        }
        let now = Reached { state: self.state.clone(), changed: self.changed, loaded: self.loaded.clone() };
        let Some(place) = self.labels.get_mut(label.0 as usize) else { return };
        match place.take() {
            None => *place = Some(now),
            Some(before) => match before.meet(&now) {
                Some(both) => *place = Some(both),
                None => self.fail("paths in different states meet"),
            },
        }
    }

    /// Continues here from all jumps to the label, and from the code before if that does not end.
    pub fn bind(&mut self, label: Label) {
        self.reach(label);
        let reached = self.labels.get_mut(label.0 as usize).and_then(Option::take);
        self.live = reached.is_some();
        self.step(Step::Bind(label));
        if let Some(Reached { state, changed, loaded }) = reached {
            (self.state, self.changed, self.loaded) = (state, changed, loaded);
        }
    }

    /// Continues at a label.
    pub fn jump(&mut self, to: Label) {
        self.reach(to);
        self.step(Step::Jump(to));
        self.live = false;
    }

    /// Continues at a label if the test holds for the lower 32 bits of the operands.
    pub fn branch(&mut self, left: Value, test: Test, right: impl Into<Operand>, to: Label) {
        let right = right.into();
        if let (Some(l), Some(r)) = (self.known(left.into()), self.known(right)) {
            // The result is known, so there is nothing to test.
            return if test.holds(l as u32, r as u32) {
                self.jump(to)
            };
        }
        self.reach(to);
        self.step(Step::Branch { test, left, right, wide: false, to });
    }

    /// Continues at a label if the test holds.
    pub fn branch_wide(&mut self, left: Value, test: Test, right: impl Into<Operand>, to: Label) {
        self.reach(to);
        self.step(Step::Branch { test, left, right: right.into(), wide: true, to });
    }

    /// Continues at a label if the packet has less than `length` bytes.
    pub fn need(&mut self, length: u32, otherwise: Label) {
        self.need_at(0, length, otherwise);
    }

    /// Continues at a label if the packet has less than `length` bytes from an offset on.
    pub fn need_at(&mut self, offset: i32, length: u32, otherwise: Label) {
        let end = i64::from(self.state.data) + i64::from(offset) + i64::from(length);
        let Ok(end) = u32::try_from(end) else { return };
        if end <= self.state.present {
            return;
        }
        if end > 0xffff {
            return self.jump(otherwise);
        }
        if self.state.shortened {
            let own = self.load_from(Base::Stack, stack::END, Size::Double);
            self.branch(own, Test::Less, end, otherwise);
        }
        self.reach(otherwise);
        self.step(Step::Present { end, otherwise });
        self.state.present = end;
    }

    // Values.

    /// A constant.
    pub fn constant(&mut self, n: i64) -> Value {
        let to = self.value();
        self.step(Step::Constant { to, n });
        if let Some(known) = self.values.last_mut() {
            *known = Some(n);
        }
        to
    }

    fn load_from(&mut self, base: Base, offset: i32, size: Size) -> Value {
        let to = self.value();
        self.step(Step::Load { to, base, offset, size });
        to
    }

    /// Loads bytes of the packet in the order of memory: numbers of a header are not converted.
    pub fn load(&mut self, offset: i32, size: Size) -> Value {
        let at = self.frame_offset(offset, size.bytes());
        if let Some((.., value)) = self.loaded.iter().find(|l| (l.0, l.1) == (at, size)) {
            return *value;
        }
        let value = self.load_from(Base::Frame, at, size);
        self.loaded.push((at, size, value));
        value
    }

    /// Loads a number of a header.
    pub fn load_number(&mut self, offset: i32, size: Size) -> Value {
        let raw = self.load(offset, size);
        self.swapped(raw, size)
    }

    /// Converts between network order and the order of the processor.
    pub fn swapped(&mut self, from: Value, size: Size) -> Value {
        if size == Size::Byte {
            return from;
        }
        let to = self.value();
        self.step(Step::Swap { to, from, size });
        to
    }

    /// Stores bytes into the packet, in the order of memory.
    pub fn store(&mut self, offset: i32, size: Size, from: impl Into<Operand>) {
        let at = self.frame_offset(offset, size.bytes());
        let end = at + size.bytes() as i32;
        self.loaded.retain(|(from, size, _)| end <= *from || from + size.bytes() as i32 <= at);
        if at < 6 {
            self.state.destination = None;
        }
        self.changed = true;
        self.step(Step::Store { base: Base::Frame, offset: at, size, from: from.into() });
    }

    /// Computes a value.
    pub fn compute(&mut self, operation: Arithmetic, left: Value, right: impl Into<Operand>) -> Value {
        let to = self.value();
        self.step(Step::Arithmetic { operation, to, left, right: right.into() });
        to
    }

    /// Computes a value again: `to` gets the result. For values that several paths compute. A value that [`Code::load`] has
    /// returned for bytes that were loaded before must not be computed again, because both loads are one.
    pub fn compute_into(&mut self, to: Value, operation: Arithmetic, left: Value, right: impl Into<Operand>) {
        self.forget(to);
        self.step(Step::Arithmetic { operation, to, left, right: right.into() });
    }

    /// Gives `to` a constant value. For values that several paths compute.
    pub fn set(&mut self, to: Value, n: i64) {
        self.forget(to);
        self.step(Step::Constant { to, n });
    }

    /// Updates the Internet checksum at an offset after bytes that it covers have changed (RFC 1624, equation 3): two bytes
    /// (`Half`) or four (`Word`) at an even offset, in the order of memory.
    pub fn update_checksum(&mut self, offset: i32, size: Size, old: Value, new: impl Into<Operand>) {
        let ones = if size == Size::Half { 0xffff } else { 0xffff_ffffu32 };
        let at = self.frame_offset(offset, 2);
        // Not shared with a load of the caller, because the value is computed again.
        let sum = self.load_from(Base::Frame, at, Size::Half);
        self.compute_into(sum, Arithmetic::Xor, sum, 0xffffu32);
        let inverse = self.compute(Arithmetic::Xor, old, ones);
        self.compute_into(sum, Arithmetic::Add, sum, inverse);
        self.compute_into(sum, Arithmetic::Add, sum, new);
        self.fold_checksum(sum);
        self.compute_into(sum, Arithmetic::Xor, sum, 0xffffu32);
        self.store(offset, Size::Half, sum);
    }

    /// Folds a sum of fewer than 2^15 words of four bytes to its Internet checksum, without the complement at the end (RFC 1071).
    pub fn fold_checksum(&mut self, sum: Value) {
        // The sum has at most 47 bits, after one round 32, after two 17, and after three 16.
        for _ in 0..3 {
            let high = self.compute(Arithmetic::ShiftRight, sum, 16u32);
            self.compute_into(sum, Arithmetic::And, sum, 0xffffu32);
            self.compute_into(sum, Arithmetic::Add, sum, high);
        }
    }

    /// Compares bytes of the packet with constants, and continues at a label if they differ.
    pub fn expect_bytes(&mut self, offset: i32, bytes: &[u8], otherwise: Label) {
        let at_start = self.state.data.saturating_add(offset) == 0;
        if let (true, Some(known)) = (at_start && bytes.len() == 6, self.state.destination) {
            return if known != bytes {
                self.jump(otherwise)
            };
        }
        let mut at = offset;
        let mut rest = bytes;
        while let Some((size, n, after)) = front(rest) {
            let found = self.load(at, size);
            self.branch(found, Test::Differ, i64::from(n), otherwise);
            at += size.bytes() as i32;
            rest = after;
        }
        if at_start {
            self.state.destination = bytes.try_into().ok();
        }
    }

    /// Stores constant bytes into the packet.
    pub fn store_bytes(&mut self, offset: i32, bytes: &[u8]) {
        let mut at = offset;
        let mut rest = bytes;
        while let Some((size, n, after)) = front(rest) {
            self.store(at, size, i64::from(n));
            at += size.bytes() as i32;
            rest = after;
        }
    }

    // The packet.

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

    /// Marks the MAC header, `offset` bytes from the start of the data.
    pub fn mark_mac(&mut self, offset: i32) {
        self.state.mac = Some(self.state.data.saturating_add(offset));
    }

    /// Marks the network header, `offset` bytes from the start of the data.
    pub fn mark_network(&mut self, offset: i32, length: u32) {
        self.state.network = Some((self.state.data.saturating_add(offset), length));
    }

    /// The offset of the network header from the start of the data, and its length, if it is marked.
    pub fn network(&self) -> Option<(i32, u32)> {
        self.state.network.map(|(at, len)| (at - self.state.data, len))
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

    /// Stores the known bytes among these annotation bytes on the stack.
    fn settle(&mut self, offset: usize, bytes: usize) {
        for at in offset..(offset + bytes).min(ANNOTATIONS) {
            if let Some(Some(known)) = self.state.annotations.get_mut(at).map(Option::take) {
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

    // Tables.

    /// Looks up a key in a table of this element, and continues at a label if it is not there. Returns the entry.
    pub fn look_up(&mut self, table: u32, spec: TableSpec, key: &[(Size, Operand)], missing: Label) -> Value {
        let mut at = stack::KEY;
        for &(size, from) in key {
            self.step(Step::Store { base: Base::Stack, offset: at, size, from });
            at += size.bytes() as i32;
        }
        let length = at - stack::KEY;
        if length > stack::KEY_LENGTH || length != spec.key as i32 {
            self.fail("looks up a key of the wrong length");
        }
        let name = (self.element, table);
        match self.shared.tables.iter().find(|t| t.0 == name) {
            Some((_, other)) if *other != spec => self.fail("uses a table in two ways"),
            Some(_) => {}
            None => self.shared.tables.push((name, spec)),
        }
        let to = self.value();
        self.step(Step::LookUp { table: MapName::Table(name.0, name.1), key: stack::KEY, to });
        self.branch_wide(to, Test::Equal, 0i64, missing);
        to
    }

    /// Loads bytes of an entry.
    pub fn load_entry(&mut self, entry: Value, offset: i32, size: Size) -> Value {
        self.load_from(Base::Entry(entry), offset, size)
    }

    /// Stores bytes into an entry.
    pub fn store_entry(&mut self, entry: Value, offset: i32, size: Size, from: impl Into<Operand>) {
        self.step(Step::Store { base: Base::Entry(entry), offset, size, from: from.into() });
    }

    // Counting.

    fn add(&mut self, counter: Counter, by: Operand) {
        if !self.live {
            return;
        }
        // Numbers that are counted one after the other are one number in the program.
        let mut together = Vec::new();
        if let Some(&Step::Count { counter: before, by: same }) = self.steps.last()
            && same == by
        {
            together.clone_from(self.shared.counters.get(before as usize).unwrap_or(&Vec::new()));
            self.steps.pop();
        }
        together.push(counter);
        let counter = position(&mut self.shared.counters, together);
        self.step(Step::Count { counter, by });
    }

    /// Adds 1 to a count that the element declares.
    pub fn count(&mut self, name: &'static str) {
        self.count_at(name, 0, 1i64);
    }

    /// Adds to number `at` of a count that the element declares.
    pub fn count_at(&mut self, name: &'static str, at: u32, by: impl Into<Operand>) {
        self.changed = true;
        self.add(Counter::Own(self.element, name, at), by.into());
    }

    // Ends of paths.

    fn exit(&mut self, exit: Exit) {
        self.step(Step::Exit(exit));
        self.live = false;
    }

    /// The packet enters the router at this element.
    pub fn enter(&mut self) {
        self.add(Counter::Entered(self.element), 1i64.into());
    }

    /// The packet continues at an output. If the output is not connected, it is dropped.
    pub fn next(&mut self, output: usize) {
        if !self.is_connected(output) {
            return self.drop(self.reasons.no_port);
        }
        let state = self.state.clone();
        self.exit(Exit::Next(output as u32, state));
    }

    /// The packet continues at an output, or is dropped for a reason if the output is not connected.
    pub fn next_or(&mut self, output: usize, reason: u16) {
        if self.is_connected(output) { self.next(output) } else { self.drop(reason) }
    }

    /// The element at user level processes the packet. Nothing may have been changed or counted before.
    pub fn up(&mut self) {
        if self.live && self.changed {
            self.fail("passes a packet up after it has changed it");
        }
        let state = State { present: 0, ..self.before.clone() };
        self.exit(Exit::Up(self.input, state));
    }

    /// The packet is dropped, for the reason with this number.
    pub fn drop(&mut self, reason: u16) {
        self.add(Counter::Dropped(self.element, reason), 1i64.into());
        self.exit(Exit::Drop);
    }

    /// The packet leaves the router by a device, and 1 is added to a count that the element declares.
    pub fn send(&mut self, device: &str, counted: &'static str) {
        let counters = vec![Counter::Own(self.element, counted, 0), Counter::Left(self.element)];
        let counter = position(&mut self.shared.counters, counters);
        let device = position(&mut self.shared.devices, device.to_string());
        let state = self.state.clone();
        self.exit(Exit::Send { device, counter, state });
    }

    /// The host's own network stack gets the packet.
    pub fn host(&mut self) {
        let counter = position(&mut self.shared.counters, vec![Counter::Left(self.element)]);
        let state = self.state.clone();
        self.exit(Exit::Host { counter, state });
    }
}

/// Removes jumps to the next step, and turns branches around that skip only a jump.
fn without_jumps(steps: Vec<Step>) -> Vec<Step> {
    let mut kept: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        if let Step::Bind(here) = step {
            if kept.last() == Some(&Step::Jump(here)) {
                kept.pop();
            } else if let [.., branch, Step::Jump(other)] = kept.as_slice()
                && let Some(turned) = branch.turned(here, *other)
            {
                kept.truncate(kept.len() - 2);
                kept.push(turned);
            }
        }
        kept.push(step);
    }
    kept
}

/// Removes steps that compute values which no other step uses.
fn without_unused(steps: Vec<Step>, values: usize) -> Vec<Step> {
    let mut used = vec![false; values];
    let mut kept = Vec::with_capacity(steps.len());
    for step in steps.into_iter().rev() {
        let wanted = |v: Value| used.get(v.0 as usize).copied().unwrap_or(true);
        if step.calls() || step.computed().is_none_or(wanted) {
            for v in step.used().into_iter().flatten() {
                if let Some(u) = used.get_mut(v.0 as usize) {
                    *u = true;
                }
            }
            kept.push(step);
        }
    }
    kept.reverse();
    kept
}

/// The longest part of some bytes that one comparison or store can have as a constant, as a number in the order of memory.
fn front(bytes: &[u8]) -> Option<(Size, u32, &[u8])> {
    if let Some((word, rest)) = bytes.split_first_chunk::<4>() {
        return Some((Size::Word, u32::from_ne_bytes(*word), rest));
    }
    if let Some((half, rest)) = bytes.split_first_chunk::<2>() {
        return Some((Size::Half, u16::from_ne_bytes(*half).into(), rest));
    }
    bytes.split_first().map(|(byte, rest)| (Size::Byte, u32::from(*byte), rest))
}
