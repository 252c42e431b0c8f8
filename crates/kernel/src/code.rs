// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code of one element, while the element writes it.

mod ends;
mod order;
mod packet;
mod shared;
mod tables;
mod tidy;

use crate::compile::Reasons;
use crate::order::TRAILER;
use crate::state::State;
use crate::step::{Arithmetic, Base, Counter, Label, Operand, Size, Step, Test, Value};
pub(crate) use shared::DECAYED;
use tidy::{front, without_jumps, without_unused};

/// Offsets on the stack, from its end.
pub mod stack {
    /// The annotation bytes.
    pub const ANNOTATIONS: i32 = -48;
    /// The end of a packet that was shortened, from the start of the frame; 8 bytes.
    pub const END: i32 = -56;
    /// The ticket of a packet on its way up: the index of its slot, and its number; 8 bytes.
    pub const TICKET: i32 = -64;
    /// The keys of look-ups.
    pub const KEY: i32 = -96;
    /// The length of the longest key.
    pub const KEY_LENGTH: i32 = 32;
    /// Values for which no register is free, from here on downwards.
    pub const SPILLED: i32 = -104;
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
    /// Keys are the numbers from 0, of 32 bits in the order of the processor. All entries are there, with words of 0 at first, which user
    /// level sets one by one ([`Table::set_word`](crate::Table::set_word)).
    Array,
    /// No keys: one value of 64-bit words, which all processors and user level read and write ([`Code::shared`]).
    Shared,
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
    /// Whether packets that find an entry must not overtake others that are on their way up ([`order`](crate::order)).
    pub ordered: bool,
}

impl TableSpec {
    /// The length of values in the kernel: [`order::closed`](crate::order::closed) makes those of ordered tables.
    pub fn whole_value(&self) -> u32 {
        if self.ordered { self.value + TRAILER } else { self.value }
    }
}

/// An element that sends frames by a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The number of the device.
    pub device: u32,
    /// The element.
    pub element: u32,
    /// The element's count of sent packets.
    pub sent: &'static str,
    /// The element's count of packets that were not sent.
    pub unsent: &'static str,
}

/// Collects what all programs of a router share, while elements are lowered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// The counters, by their numbers. Those that are always counted together share a number.
    pub counters: Vec<Vec<Counter>>,
    /// The devices that frames leave by, by their numbers.
    pub devices: Vec<DeviceName>,
    /// The elements that send.
    pub senders: Vec<Sender>,
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

/// The facts known at a label, from all jumps to it so far.
#[derive(Clone)]
struct Reached {
    state: State,
    /// Whether anything was changed since the start.
    changed: bool,
    loaded: Vec<(i32, Size, Value)>,
}

impl Reached {
    /// Returns what is known in both places. None if they differ in more than present bytes, the destination and loads.
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
    /// The number of the device.
    device: u32,
    /// The name of the device; empty if it is not known.
    received_by: &'a str,
    /// Whether the code runs at user level, as machine code.
    pub(crate) is_at_user_level: bool,
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
        (device, received_by, connected, reasons): (u32, &'a str, &'a [bool], Reasons),
        state: &State,
        shared: &'a mut Shared,
    ) -> Code<'a> {
        Code {
            element,
            input,
            device,
            received_by,
            is_at_user_level: false,
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

    /// The state of the packet here.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The name of the device that has received the packet.
    pub fn received_by(&self) -> &str {
        self.received_by
    }

    /// Whether the code runs at user level, where packets that go up reach the element in their order.
    pub fn is_at_user_level(&self) -> bool {
        self.is_at_user_level
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

    /// A random number of 32 bits.
    pub fn random(&mut self) -> Value {
        let to = self.value();
        self.step(Step::Random { to });
        to
    }

    /// The time of CLOCK_MONOTONIC_COARSE in nanoseconds. [`Table::time`](crate::Table::time) reads the same clock at user level.
    pub fn time(&mut self) -> Value {
        let to = self.value();
        self.step(Step::Time { to, exact: false });
        to
    }

    /// The time of CLOCK_MONOTONIC in nanoseconds, which [`Table::exact_time`](crate::Table::exact_time) reads. Costs more than
    /// [`Code::time`], which is exact to one tick of the kernel.
    pub fn exact_time(&mut self) -> Value {
        let to = self.value();
        self.step(Step::Time { to, exact: true });
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
        self.state.rewritten |= self.state.network.is_some_and(|(header, _)| at <= header && header < end);
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
}
