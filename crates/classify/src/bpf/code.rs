// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates instructions from tests on bytes. A program is generated from its end, so that the distance of
//! every jump is known.

use super::{Instruction, TAKE};

/// The number of bytes that a load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Byte,
    Half,
    Word,
}

/// The address of the bytes to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An offset from the start of the frame.
    At(u32),
    /// An offset from the end of the IPv4 header that starts at `ip`.
    AfterIp { ip: u32, offset: u32 },
    /// A computed offset from `base`.
    Computed { base: u32, offset: Box<Number> },
    /// A computed offset from the end of the IPv4 header that starts at `ip`.
    ComputedAfterIp { ip: u32, offset: Box<Number> },
}

/// A numeric expression over a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Number {
    Constant(u32),
    Length,
    Load(Size, Address),
    Binary(Operator, Box<[Number; 2]>),
    Negative(Box<Number>),
}

/// An arithmetic operator, with its opcode bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Operator {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    Shl = 0x60,
    Shr = 0x70,
    Mod = 0x90,
    Xor = 0xa0,
}

/// A comparison, with its opcode bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Relation {
    Equal = 0x10,
    Greater = 0x20,
    GreaterEqual = 0x30,
    /// At least one bit is set in both numbers.
    Shares = 0x40,
}

/// The boolean expression of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Constant(bool),
    Test(Number, Relation, Number),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

impl Node {
    pub fn and(self, other: Node) -> Node {
        match self {
            Node::And(mut all) => {
                all.push(other);
                Node::And(all)
            }
            first => Node::And(vec![first, other]),
        }
    }
    pub fn or(self, other: Node) -> Node {
        match self {
            Node::Or(mut all) => {
                all.push(other);
                Node::Or(all)
            }
            first => Node::Or(vec![first, other]),
        }
    }
    pub fn negate(self) -> Node {
        match self {
            Node::Not(n) => *n,
            n => Node::Not(Box::new(n)),
        }
    }
}

/// The maximum nesting of numeric expressions. Each level needs one of the filter machine's 16 memory words.
pub const MAX_NUMBER_DEPTH: usize = 14;

const LD: u16 = 0x00;
const LDX: u16 = 0x01;
const ST: u16 = 0x02;
const ALU: u16 = 0x04;
const JMP: u16 = 0x05;
const RET: u16 = 0x06;
const MISC: u16 = 0x07;
const ABS: u16 = 0x20;
const IND: u16 = 0x40;
const MEM: u16 = 0x60;
const LEN: u16 = 0x80;
const MSH: u16 = 0xa0;
const X: u16 = 0x08;
const NEG: u16 = 0x80;
const BYTE: u16 = 0x10;

/// Generates the program of a filter.
pub fn program(node: &Node) -> Vec<Instruction> {
    let mut code = Code::default();
    let no = code.push(RET, 0);
    let yes = code.push(RET, TAKE);
    let entry = code.node(node, yes, no);
    code.reach(entry, 0);
    code.0.reverse();
    code.0
}

/// Instructions in reverse order.
#[derive(Default)]
struct Code(Vec<Instruction>);

/// A position in the program, as the number of instructions from there to the end.
type Label = usize;

fn plain(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

impl Code {
    fn push(&mut self, code: u16, k: u32) -> Label {
        self.0.push(plain(code, k));
        self.0.len()
    }
    /// The number of instructions that the next pushed instruction must skip to reach `to`.
    fn distance(&self, to: Label) -> usize {
        self.0.len().saturating_sub(to)
    }
    /// Returns a label by which the next pushed instruction can jump to `to`, if it can skip at most `most`
    /// instructions. If `to` is near enough, the label is `to` itself. Otherwise, this function adds an unconditional
    /// jump to `to`, and returns the label of that jump.
    fn reach(&mut self, to: Label, most: usize) -> Label {
        match self.distance(to) {
            far if far <= most => to,
            far => self.push(JMP, u32::try_from(far).unwrap_or(u32::MAX)),
        }
    }

    fn node(&mut self, node: &Node, yes: Label, no: Label) -> Label {
        match node {
            Node::Constant(true) => yes,
            Node::Constant(false) => no,
            Node::Not(n) => self.node(n, no, yes),
            Node::And(all) => all.iter().rev().fold(yes, |next, n| self.node(n, next, no)),
            Node::Or(all) => all.iter().rev().fold(no, |next, n| self.node(n, yes, next)),
            Node::Test(left, relation, right) => self.test(left, *relation, right, yes, no),
        }
    }

    fn test(&mut self, left: &Number, relation: Relation, right: &Number, yes: Label, no: Label) -> Label {
        // A conditional jump skips at most 255 instructions. The limit for `yes` is one lower, because a jump
        // that is added for `no` would put `yes` one instruction further away.
        let yes = self.reach(yes, 254);
        let no = self.reach(no, 255);
        let (mut load, source, k) = (Vec::new(), source(right), constant(right));
        if source == X {
            both(left, right, 0, &mut load);
        } else {
            number(left, 0, &mut load);
        }
        let short = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
        let (jt, jf) = (short(self.distance(yes)), short(self.distance(no)));
        self.0.push(Instruction { code: JMP | relation as u16 | source, jt, jf, k });
        self.0.extend(load.into_iter().rev());
        self.0.len()
    }
}

/// The opcode bits for the second operand: 0 for a constant, which the instruction contains, or [`X`] for the register.
fn source(n: &Number) -> u16 {
    if matches!(n, Number::Constant(_)) { 0 } else { X }
}
fn constant(n: &Number) -> u32 {
    if let Number::Constant(k) = n { *k } else { 0 }
}

/// Generates instructions that leave a number in the accumulator. Memory words below `depth` are in use.
fn number(n: &Number, depth: u32, out: &mut Vec<Instruction>) {
    match n {
        Number::Constant(k) => out.push(plain(LD, *k)),
        Number::Length => out.push(plain(LD | LEN, 0)),
        Number::Load(size, place) => load(*size, place, depth, out),
        Number::Negative(n) => {
            number(n, depth, out);
            out.push(plain(ALU | NEG, 0));
        }
        Number::Binary(operator, operands) => {
            let [left, right] = &**operands;
            let (source, k) = (source(right), constant(right));
            if source == X {
                both(left, right, depth, out);
            } else {
                number(left, depth, out);
            }
            out.push(plain(ALU | *operator as u16 | source, k));
        }
    }
}

/// Generates instructions that leave the left number in the accumulator and the right one in X.
fn both(left: &Number, right: &Number, depth: u32, out: &mut Vec<Instruction>) {
    number(left, depth, out);
    out.push(plain(ST, depth));
    number(right, depth.saturating_add(1), out);
    out.push(plain(MISC, 0));
    out.push(plain(LD | MEM, depth));
}

fn load(size: Size, place: &Address, depth: u32, out: &mut Vec<Instruction>) {
    let width = match size {
        Size::Word => 0x00,
        Size::Half => 0x08,
        Size::Byte => BYTE,
    };
    match place {
        Address::At(k) => out.push(plain(LD | width | ABS, *k)),
        Address::AfterIp { ip, offset } => {
            out.push(plain(LDX | BYTE | MSH, *ip));
            out.push(plain(LD | width | IND, ip.wrapping_add(*offset)));
        }
        Address::Computed { base, offset } => {
            number(offset, depth, out);
            out.push(plain(MISC, 0));
            out.push(plain(LD | width | IND, *base));
        }
        Address::ComputedAfterIp { ip, offset } => {
            number(offset, depth, out);
            out.push(plain(LDX | BYTE | MSH, *ip));
            out.push(plain(ALU | Operator::Add as u16 | X, 0));
            out.push(plain(MISC, 0));
            out.push(plain(LD | width | IND, *ip));
        }
    }
}
