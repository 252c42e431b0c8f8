// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests on bytes, and the instructions that carry them out. Programs are written from their end, so that every jump knows
//! how far it goes.

use super::{Instruction, TAKE};

/// How many bytes a load takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Byte,
    Half,
    Word,
}

/// Where the bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At an offset from the start of the frame.
    At(u32),
    /// At an offset behind the IPv4 header that starts at `ip`.
    Behind { ip: u32, offset: u32 },
    /// At an offset that is computed, from `base`.
    Computed { base: u32, offset: Box<Number> },
    /// The same behind the IPv4 header that starts at `ip`.
    ComputedBehind { ip: u32, offset: Box<Number> },
}

/// A number that is computed from a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Number {
    Constant(u32),
    Length,
    Load(Size, Place),
    Binary(Operator, Box<[Number; 2]>),
    Negative(Box<Number>),
}

/// An operation, by the number that the filter machine has for it.
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

/// A comparison, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Relation {
    Equal = 0x10,
    Greater = 0x20,
    GreaterEqual = 0x30,
    /// Some bit is in both.
    Shares = 0x40,
}

/// What a filter asks.
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

/// How deep numbers may nest: each level keeps one in the filter machine's memory of 16 words.
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

/// The program of a filter.
pub fn program(node: &Node) -> Vec<Instruction> {
    let mut code = Code::default();
    let no = code.push(RET, 0);
    let yes = code.push(RET, TAKE);
    let entry = code.node(node, yes, no);
    code.reach(entry, usize::MAX);
    code.0.reverse();
    code.0
}

/// Instructions from the last to the first.
#[derive(Default)]
struct Code(Vec<Instruction>);

/// A place in the program: how many instructions there are from it to the end.
type Label = usize;

impl Code {
    fn push(&mut self, code: u16, k: u32) -> Label {
        self.0.push(Instruction { code, jt: 0, jf: 0, k });
        self.0.len()
    }
    /// How many instructions one that is pushed next skips to get to `to`.
    fn distance(&self, to: Label) -> usize {
        self.0.len().saturating_sub(to)
    }
    /// A label for `to` that the next instruction reaches by skipping at most `most`.
    fn reach(&mut self, to: Label, most: usize) -> Label {
        let far = self.distance(to);
        if far == 0 || far <= most && most != usize::MAX {
            return to;
        }
        self.push(JMP, u32::try_from(far).unwrap_or(u32::MAX))
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
        // Conditional jumps skip at most 255; the second label may still move by the jump for the first.
        let yes = self.reach(yes, 254);
        let no = self.reach(no, 255);
        let jump = |code: &mut Code, source: u16, k: u32| {
            let (jt, jf) = (code.distance(yes), code.distance(no));
            let short = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
            code.0.push(Instruction { code: JMP | relation as u16 | source, jt: short(jt), jf: short(jf), k });
        };
        match right {
            Number::Constant(k) => {
                jump(self, 0, *k);
                self.number(left, 0);
            }
            right => {
                jump(self, X, 0);
                self.number(left, 1);
                self.push(LDX | MEM, 0);
                // The left number is computed after the right one, which waits in memory.
                self.0.pop();
                self.0.pop_last_number(left, right);
            }
        }
        self.0.len()
    }
}
