// SPDX-License-Identifier: MIT OR Apache-2.0
//! The intermediate code of lowered elements: steps on values. Jumps lead forward only.

use crate::state::State;
use std::collections::BTreeMap;

/// A value of 64 bits that a program computes. Loads of fewer bytes are extended by zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// The second operand of arithmetic and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A computed value.
    Value(Value),
    /// A constant. Constants above 31 bits take two instructions.
    Constant(i64),
}

impl From<Value> for Operand {
    fn from(value: Value) -> Operand {
        Operand::Value(value)
    }
}

impl From<i64> for Operand {
    fn from(n: i64) -> Operand {
        Operand::Constant(n)
    }
}

impl From<u32> for Operand {
    fn from(n: u32) -> Operand {
        Operand::Constant(i64::from(n))
    }
}

/// The number of bytes that a load or a store moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// One byte.
    Byte,
    /// Two bytes.
    Half,
    /// Four bytes.
    Word,
    /// Eight bytes.
    Double,
}

impl Size {
    /// The number of bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Size::Byte => 1,
            Size::Half => 2,
            Size::Word => 4,
            Size::Double => 8,
        }
    }
    /// The size of a half. None for a byte.
    pub(crate) const fn half(self) -> Option<Size> {
        match self {
            Size::Byte => None,
            Size::Half => Some(Size::Byte),
            Size::Word => Some(Size::Half),
            Size::Double => Some(Size::Word),
        }
    }
}

/// Where a load or a store finds its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The frame.
    Frame,
    /// The stack; offsets are negative.
    Stack,
    /// The value of a table's entry.
    Entry(Value),
}

/// Arithmetic on 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Addition.
    Add,
    /// Subtraction.
    Subtract,
    /// Multiplication.
    Multiply,
    /// Unsigned division.
    Divide,
    /// Remainder of an unsigned division.
    Remainder,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift to the left.
    ShiftLeft,
    /// Logical shift to the right.
    ShiftRight,
}

/// A comparison of unsigned numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// The operands are equal.
    Equal,
    /// The operands differ.
    Differ,
    /// The first operand is greater.
    Greater,
    /// The first operand is at least the second.
    AtLeast,
    /// The first operand is less.
    Less,
    /// The first operand is at most the second.
    AtMost,
    /// The operands have a bit in common.
    Common,
}

impl Test {
    /// Whether the test holds for two numbers.
    pub fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Test::Equal => left == right,
            Test::Differ => left != right,
            Test::Greater => left > right,
            Test::AtLeast => left >= right,
            Test::Less => left < right,
            Test::AtMost => left <= right,
            Test::Common => left & right != 0,
        }
    }
}

/// A place in the code of an element that jumps lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(pub u32);

/// A number that programs count, and the handlers and the ledger show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Counter {
    /// A count that an element declares: its name, and the index of the number if the count has a label.
    Own(u32, &'static str, u32),
    /// Packets that an element dropped for a reason.
    Dropped(u32, u16),
    /// Packets that entered the router at an element.
    Entered(u32),
    /// Packets that left the router at an element.
    Left(u32),
    /// Packets that went up to continue at an element.
    Raised(u32),
}

/// The sum of each counter, from the numbers that programs have counted ([`Shared::counters`](crate::Shared::counters)).
pub fn counts(counters: &[Vec<Counter>], numbers: impl IntoIterator<Item = u64>) -> Vec<(Counter, u64)> {
    let mut sums: BTreeMap<Counter, u64> = BTreeMap::new();
    for (together, n) in counters.iter().zip(numbers) {
        for counter in together {
            let sum = sums.entry(*counter).or_default();
            *sum = sum.wrapping_add(n);
        }
    }
    sums.into_iter().collect()
}

/// A map that programs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MapName {
    /// The numbers that the program counts: an array with one value for each processor.
    Counters,
    /// The AF_XDP sockets of the device, by receive queue.
    Sockets,
    /// The devices that frames leave by, by the numbers in [`Shared::devices`](crate::Shared::devices).
    Devices,
    /// The slots of ordered tables ([`order`](crate::order)).
    Slots,
    /// The parts of the program, by their numbers.
    Parts,
    /// The data that a part passes to another one: an array with one value of [`PASSED`](crate::PASSED) bytes for each processor.
    Passed,
    /// A table of an element: the number of the element, and that of the table in the element.
    Table(u32, u32),
}

/// The way of a packet when the code of an element ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It continues at an output of the element.
    Next(u32, State),
    /// It continues in the router at user level, at an input of the element.
    Up(u32, State),
    /// It leaves by a device, and is counted.
    Send {
        /// The number of the device.
        device: u32,
        /// The number of the counter.
        counter: u32,
        /// The state of the packet.
        state: State,
    },
    /// It ends.
    Drop,
    /// The host's own network stack gets it, and it is counted.
    Host {
        /// The number of the counter.
        counter: u32,
        /// The state of the packet.
        state: State,
    },
}

/// A step of the code of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A constant.
    Constant {
        /// The result.
        to: Value,
        /// The number.
        n: i64,
    },
    /// Loads bytes, extended by zeros.
    Load {
        /// The result.
        to: Value,
        /// Where the bytes are.
        base: Base,
        /// The offset in bytes.
        offset: i32,
        /// The number of bytes.
        size: Size,
    },
    /// Stores the lowest bytes of a number.
    Store {
        /// Where the bytes are.
        base: Base,
        /// The offset in bytes.
        offset: i32,
        /// The number of bytes.
        size: Size,
        /// The number to store.
        from: Operand,
    },
    /// Computes a value.
    Arithmetic {
        /// The operation.
        operation: Arithmetic,
        /// The result.
        to: Value,
        /// The first operand.
        left: Value,
        /// The second operand.
        right: Operand,
    },
    /// Converts between network order and the order of the processor.
    Swap {
        /// The result.
        to: Value,
        /// The number to convert.
        from: Value,
        /// The number of bytes.
        size: Size,
    },
    /// Jumps if the test holds. Compares 32 bits, or 64 if `wide`.
    Branch {
        /// The test.
        test: Test,
        /// The first operand.
        left: Value,
        /// The second operand.
        right: Operand,
        /// Whether 64 bits are compared, not 32.
        wide: bool,
        /// Where to continue.
        to: Label,
    },
    /// Continues at a label.
    Jump(Label),
    /// The place of a label.
    Bind(Label),
    /// Jumps if the frame is shorter than `end` bytes.
    Present {
        /// The number of bytes.
        end: u32,
        /// Where to continue otherwise.
        otherwise: Label,
    },
    /// The length of the frame.
    Length {
        /// The result.
        to: Value,
    },
    /// Jumps to the first label if the frame is shorter than the number, of which `plus` is a constant part, and to the second if
    /// it is longer.
    BranchLength {
        /// The number.
        than: Operand,
        /// A constant that is added to the number.
        plus: i32,
        /// Where shorter frames continue.
        shorter: Option<Label>,
        /// Where longer frames continue.
        longer: Option<Label>,
    },
    /// The time of the clock that [`Table::time`](crate::Table::time) reads, or of [`Table::exact_time`](crate::Table::exact_time).
    Time {
        /// The result.
        to: Value,
        /// Whether the clock is the exact one.
        exact: bool,
    },
    /// A random number of 32 bits.
    Random {
        /// The result.
        to: Value,
    },
    /// The address of the byte at an offset in the value of a map with one value.
    Address {
        /// The result.
        to: Value,
        /// The map.
        map: MapName,
        /// The offset in bytes.
        offset: Operand,
    },
    /// Adds a number to eight bytes in one step. The value is the number before.
    Increment {
        /// The result.
        to: Value,
        /// Where the bytes are.
        base: Base,
        /// The offset in bytes.
        offset: i32,
        /// The number to add.
        by: Operand,
    },
    /// Lets an average decay for a number of epochs ([`Code::decay`](crate::Code::decay)).
    Decay {
        /// The result.
        to: Value,
        /// The number of epochs.
        epochs: Value,
    },
    /// Looks up the key at `key` on the stack. The value is the address of the entry, or 0.
    LookUp {
        /// The table.
        table: MapName,
        /// The offset of the key on the stack.
        key: i32,
        /// The result.
        to: Value,
    },
    /// Moves the start of the frame by `by` bytes. Jumps if there is no room.
    MoveStart {
        /// The number of bytes.
        by: i32,
        /// Where to continue otherwise.
        otherwise: Label,
    },
    /// Adds to a counter.
    Count {
        /// The number of the counter.
        counter: u32,
        /// The number to add.
        by: Operand,
    },
    /// The end of a path.
    Exit(Exit),
}

impl Step {
    /// For a branch to `here`: the branch to `other` with the opposite test, if there is one.
    pub fn turned(&self, here: Label, other: Label) -> Option<Step> {
        let opposite = |test: Test| match test {
            Test::Equal => Some(Test::Differ),
            Test::Differ => Some(Test::Equal),
            Test::Greater => Some(Test::AtMost),
            Test::AtLeast => Some(Test::Less),
            Test::Less => Some(Test::AtLeast),
            Test::AtMost => Some(Test::Greater),
            Test::Common => None,
        };
        match *self {
            Step::Branch { test, left, right, wide, to } if to == here => {
                Some(Step::Branch { test: opposite(test)?, left, right, wide, to: other })
            }
            _ => None,
        }
    }
    /// The value that the step computes.
    pub fn computed(&self) -> Option<Value> {
        match *self {
            Step::Constant { to, .. }
            | Step::Load { to, .. }
            | Step::Arithmetic { to, .. }
            | Step::Swap { to, .. }
            | Step::Length { to }
            | Step::Time { to, .. }
            | Step::Random { to }
            | Step::Increment { to, .. }
            | Step::Address { to, .. }
            | Step::Decay { to, .. }
            | Step::LookUp { to, .. } => Some(to),
            _ => None,
        }
    }

    /// The values that the step uses.
    pub fn used(&self) -> [Option<Value>; 2] {
        let of = |o: &Operand| if let Operand::Value(v) = o { Some(*v) } else { None };
        let base = |b: &Base| if let Base::Entry(v) = b { Some(*v) } else { None };
        match self {
            Step::Load { base: b, .. } => [base(b), None],
            Step::Store { base: b, from: n, .. } | Step::Increment { base: b, by: n, .. } => [base(b), of(n)],
            Step::Arithmetic { left, right, .. } | Step::Branch { left, right, .. } => {
                [Some(*left), of(right)]
            }
            Step::Swap { from, .. } => [Some(*from), None],
            Step::Address { offset, .. } => [of(offset), None],
            Step::Decay { to, epochs } => [Some(*to), Some(*epochs)],
            Step::Count { by, .. } => [of(by), None],
            Step::BranchLength { than, .. } => [of(than), None],
            _ => [None, None],
        }
    }

    /// The labels that the step may jump to.
    pub fn targets(&self) -> [Option<Label>; 2] {
        match *self {
            Step::Branch { to, .. } | Step::Jump(to) => [Some(to), None],
            Step::Present { otherwise, .. } | Step::MoveStart { otherwise, .. } => [Some(otherwise), None],
            Step::BranchLength { shorter, longer, .. } => [shorter, longer],
            _ => [None, None],
        }
    }

    /// Whether the step calls a function of the kernel, which changes registers 0 to 5.
    pub fn calls(&self) -> bool {
        matches!(
            self,
            Step::LookUp { .. }
                | Step::MoveStart { .. }
                | Step::Length { .. }
                | Step::Time { .. }
                | Step::Random { .. }
        )
    }
}
