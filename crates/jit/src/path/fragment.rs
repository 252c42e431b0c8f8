// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a fragment as cranelift's intermediate code.

use super::{MEMORY, Path};
use castanet_kernel::region::{Fragment, Way};
use castanet_kernel::{Arithmetic, Base, Exit, Label, Operand, Size, Step, Test, Value, stack};
use castanet_packet::layout;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Type, Value as Ir, types};
use cranelift_frontend::{FunctionBuilder, Variable};
use std::collections::HashMap;

/// The type of so many bytes.
fn kind(size: Size) -> Type {
    match size {
        Size::Byte => types::I8,
        Size::Half => types::I16,
        Size::Word => types::I32,
        Size::Double => types::I64,
    }
}

/// A constant of a type, from its lowest bytes.
pub(super) fn constant(b: &mut FunctionBuilder<'_>, kind: Type, n: i64) -> Ir {
    let n = match kind {
        types::I8 => i64::from(n as u8),
        types::I16 => i64::from(n as u16),
        types::I32 => i64::from(n as u32),
        _ => n,
    };
    b.ins().iconst(kind, n)
}

/// The values and labels of a fragment.
struct Names {
    values: Vec<Variable>,
    labels: HashMap<Label, Block>,
}

impl Path<'_, '_> {
    /// Fills the current block, and those of the labels, with the code of a fragment.
    pub(super) fn fragment(&mut self, fragment: &Fragment) {
        let b = &mut self.builder;
        let values = (0..fragment.values()).map(|_| b.declare_var(types::I64)).collect();
        let mut names = Names { values, labels: HashMap::new() };
        let mut ways = fragment.ways().iter();
        // Whether the current block is complete.
        let mut ended = false;
        for (i, step) in fragment.steps().iter().enumerate() {
            if let Step::Bind(label) = step {
                let block = self.label(&mut names, *label);
                if !ended {
                    self.builder.ins().jump(block, &[]);
                }
                self.builder.switch_to_block(block);
                // Few packets go where the next step is to leave the path unchanged, or to be dropped.
                let rest = fragment.steps().get(i + 1..).unwrap_or_default();
                if let [Step::Exit(Exit::Up(..)), ..] | [Step::Count { .. }, Step::Exit(Exit::Drop), ..] =
                    rest
                {
                    self.builder.set_cold_block(block);
                }
                ended = false;
                continue;
            }
            ended = match step {
                Step::Jump(to) => {
                    let block = self.label(&mut names, *to);
                    self.builder.ins().jump(block, &[]);
                    true
                }
                Step::Exit(exit) => {
                    let way = ways.next().copied().unwrap_or(Way::End(0));
                    self.exit(exit, way);
                    true
                }
                _ => {
                    self.step(step, &mut names);
                    false
                }
            };
        }
    }

    fn label(&mut self, names: &mut Names, label: Label) -> Block {
        *names.labels.entry(label).or_insert_with(|| self.builder.create_block())
    }

    fn exit(&mut self, exit: &Exit, way: Way) {
        match (way, exit) {
            (Way::Fragment(number), _) => {
                let block = self.fragments.get(number).copied().unwrap_or(self.next);
                self.builder.ins().jump(block, &[]);
            }
            (Way::End(number), Exit::Next(_, state) | Exit::Up(_, state)) => {
                self.close(state);
                self.leave(number);
            }
            // A dropped packet stays as it is.
            (Way::End(number), Exit::Drop | Exit::Send { .. } | Exit::Host { .. }) => self.leave(number),
        }
    }

    /// A value as a number of 64 bits.
    fn value(&mut self, names: &Names, value: Value) -> Ir {
        match names.values.get(value.0 as usize) {
            Some(variable) => self.builder.use_var(*variable),
            None => self.builder.ins().iconst(types::I64, 0),
        }
    }
    fn operand(&mut self, names: &Names, operand: Operand) -> Ir {
        match operand {
            Operand::Value(value) => self.value(names, value),
            Operand::Constant(n) => self.builder.ins().iconst(types::I64, n),
        }
    }
    fn define(&mut self, names: &Names, value: Value, ir: Ir) {
        if let Some(variable) = names.values.get(value.0 as usize) {
            self.builder.def_var(*variable, ir);
        }
    }

    /// Continues at a label if a condition holds, otherwise with the next step.
    fn branch(&mut self, names: &mut Names, holds: Ir, to: Label) {
        let there = self.label(names, to);
        let here = self.builder.create_block();
        self.builder.ins().brif(holds, there, &[], here, &[]);
        self.builder.switch_to_block(here);
    }

    /// The address of a packet's bytes, and an offset from it.
    fn place(&self, base: Base, offset: i32) -> (Ir, i32) {
        match base {
            Base::Stack => (self.packet.meta, layout::ANNOTATIONS as i32 + offset - stack::ANNOTATIONS),
            // Regions have no tables.
            Base::Frame | Base::Entry(_) => (self.packet.frame, offset),
        }
    }

    fn load(&mut self, base: Base, offset: i32, size: Size) -> Ir {
        if let (Base::Stack, stack::END) = (base, offset) {
            return self.builder.use_var(self.end);
        }
        let (address, offset) = self.place(base, offset);
        let ins = self.builder.ins();
        match size {
            Size::Byte => ins.uload8(types::I64, MEMORY, address, offset),
            Size::Half => ins.uload16(types::I64, MEMORY, address, offset),
            Size::Word => ins.uload32(MEMORY, address, offset),
            Size::Double => ins.load(types::I64, MEMORY, address, offset),
        }
    }

    fn store(&mut self, names: &Names, (base, offset): (Base, i32), size: Size, from: Operand) {
        if let (Base::Stack, stack::END) = (base, offset) {
            let end = self.operand(names, from);
            return self.builder.def_var(self.end, end);
        }
        let (address, offset) = self.place(base, offset);
        let number = match from {
            Operand::Constant(n) => constant(&mut self.builder, kind(size), n),
            Operand::Value(value) => {
                let whole = self.value(names, value);
                if size == Size::Double { whole } else { self.builder.ins().ireduce(kind(size), whole) }
            }
        };
        self.builder.ins().store(MEMORY, number, address, offset);
    }

    fn compare(&mut self, test: Test, (left, right): (Ir, Ir)) -> Ir {
        let condition = match test {
            Test::Equal => IntCC::Equal,
            Test::Differ => IntCC::NotEqual,
            Test::Greater => IntCC::UnsignedGreaterThan,
            Test::AtLeast => IntCC::UnsignedGreaterThanOrEqual,
            Test::Less => IntCC::UnsignedLessThan,
            Test::AtMost => IntCC::UnsignedLessThanOrEqual,
            Test::Common => {
                let common = self.builder.ins().band(left, right);
                return self.builder.ins().icmp_imm_s(IntCC::NotEqual, common, 0);
            }
        };
        self.builder.ins().icmp(condition, left, right)
    }

    fn arithmetic(&mut self, operation: Arithmetic, left: Ir, right: Ir) -> Ir {
        let ins = self.builder.ins();
        match operation {
            Arithmetic::Add => ins.iadd(left, right),
            Arithmetic::Subtract => ins.isub(left, right),
            Arithmetic::Multiply => ins.imul(left, right),
            Arithmetic::Divide => ins.udiv(left, right),
            Arithmetic::Remainder => ins.urem(left, right),
            Arithmetic::And => ins.band(left, right),
            Arithmetic::Or => ins.bor(left, right),
            Arithmetic::Xor => ins.bxor(left, right),
            Arithmetic::ShiftLeft => ins.ishl(left, right),
            Arithmetic::ShiftRight => ins.ushr(left, right),
        }
    }

    fn step(&mut self, step: &Step, names: &mut Names) {
        match *step {
            Step::Constant { to, n } => {
                let number = self.builder.ins().iconst(types::I64, n);
                self.define(names, to, number);
            }
            Step::Load { to, base, offset, size } => {
                let loaded = self.load(base, offset, size);
                self.define(names, to, loaded);
            }
            Step::Store { base, offset, size, from } => self.store(names, (base, offset), size, from),
            Step::Arithmetic { operation, to, left, right } => {
                let (left, right) = (self.value(names, left), self.operand(names, right));
                let result = self.arithmetic(operation, left, right);
                self.define(names, to, result);
            }
            Step::Swap { to, from, size } => {
                let whole = self.value(names, from);
                let swapped = match size {
                    Size::Byte => {
                        let part = self.builder.ins().ireduce(types::I8, whole);
                        self.builder.ins().uextend(types::I64, part)
                    }
                    Size::Double => self.builder.ins().bswap(whole),
                    Size::Half | Size::Word => {
                        let part = self.builder.ins().ireduce(kind(size), whole);
                        let swapped = self.builder.ins().bswap(part);
                        self.builder.ins().uextend(types::I64, swapped)
                    }
                };
                self.define(names, to, swapped);
            }
            Step::Branch { test, left, right, wide, to } => {
                let (mut left, mut right) = (self.value(names, left), self.operand(names, right));
                if !wide {
                    [left, right] = [left, right].map(|n| self.builder.ins().ireduce(types::I32, n));
                }
                let holds = self.compare(test, (left, right));
                self.branch(names, holds, to);
            }
            Step::Present { end, otherwise } => {
                let length = self.packet.length;
                let short = self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThan, length, i64::from(end));
                self.branch(names, short, otherwise);
            }
            Step::Length { to } => self.define(names, to, self.packet.length),
            Step::BranchLength { than, plus, shorter, longer } => {
                let number = self.operand(names, than);
                let end = self.builder.ins().iadd_imm_s(number, i64::from(plus));
                let length = self.packet.length;
                for (condition, to) in
                    [(IntCC::UnsignedLessThan, shorter), (IntCC::UnsignedGreaterThan, longer)]
                {
                    if let Some(to) = to {
                        let holds = self.builder.ins().icmp(condition, length, end);
                        self.branch(names, holds, to);
                    }
                }
            }
            Step::Count { counter, by } => {
                let by = self.operand(names, by);
                let at = i32::try_from(counter * 8).unwrap_or(0);
                let before = self.builder.ins().load(types::I64, MEMORY, self.counters, at);
                let sum = self.builder.ins().iadd(before, by);
                self.builder.ins().store(MEMORY, sum, self.counters, at);
            }
            // `Region` has refused the others.
            _ => {}
        }
    }
}
