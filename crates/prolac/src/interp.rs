// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interpreter of the typed tree. It is the oracle for the compiler: it dispatches every call by the object's module
//! and knows no optimisation.

mod memory;
pub(crate) use memory::width;

use crate::arith;
use crate::program::{ExceptionId, Field, FieldId, MethodId, ModuleId, Program, SlotId, Type};
use crate::tree::{BinOp, Callee, Expr, ExprKind as K, LocalId, Prefix};
pub use memory::{Memory, Value};
use std::collections::BTreeSet;

/// The functions of the host.
pub trait Host {
    /// Calls a function by the name that the program declares.
    fn call(&mut self, memory: &mut Memory, name: &str, args: &[Value]) -> Value;
}

/// A host without effects: every function returns 0 or none.
pub struct NoHost;

impl Host for NoHost {
    fn call(&mut self, _: &mut Memory, _: &str, _: &[Value]) -> Value {
        Value::Void
    }
}

/// Why an evaluation ended without a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// An exception.
    Raised(ExceptionId),
    /// A limit of the interpreter: on the number of operations, or of calls inside each other.
    Limit,
}

/// The largest number of calls inside each other.
const MAX_DEPTH: usize = 2_000;

/// A program in execution.
pub struct Machine<'a> {
    program: &'a Program,
    host: &'a mut dyn Host,
    /// The objects and packets.
    pub memory: Memory,
    instantiated: BTreeSet<ModuleId>,
    /// The number of operations that are still allowed.
    fuel: u64,
    depth: usize,
}

struct Frame {
    this: Value,
    locals: Vec<Value>,
}

/// A place that is assigned to, with its object and index evaluated.
enum Target {
    Local(LocalId),
    Field(Value, FieldId, u64),
    Byte(Value, u64),
}

impl<'a> Machine<'a> {
    /// Prepares a program, which may take `fuel` operations.
    pub fn new(program: &'a Program, host: &'a mut dyn Host, fuel: u64) -> Machine<'a> {
        Machine::with(program, host, fuel, program.instantiated())
    }

    /// A machine for a program of whose `instantiated` modules objects are created.
    pub(crate) fn with(
        program: &'a Program,
        host: &'a mut dyn Host,
        fuel: u64,
        instantiated: BTreeSet<ModuleId>,
    ) -> Machine<'a> {
        Machine { program, host, memory: Memory::new(program), instantiated, fuel, depth: 0 }
    }

    /// Creates an object of a module.
    pub fn create(&mut self, module: ModuleId, args: Vec<Value>) -> Result<Value, Stop> {
        let pointer = self.memory.allocate(self.program, module);
        if let Some(constructor) = self.program.module(module).constructor {
            self.run(constructor, pointer.clone(), args)?;
        }
        Ok(pointer)
    }

    /// Calls a method of an object by its name. `None` if the module has no such method.
    pub fn call(
        &mut self,
        module: ModuleId,
        name: &str,
        this: Value,
        args: Vec<Value>,
    ) -> Option<Result<Value, Stop>> {
        let view = self.program.view(self.program.module(module).inner);
        let Some(crate::program::Found::Feature(_, f)) = view.find(name) else { return None };
        let crate::program::FeatureKind::Method(method) = f.kind else { return None };
        let m = self.program.method(method);
        let method = match m.kind {
            crate::program::MethodKind::Method => self.dispatch(m.slot, module, &this),
            _ => method,
        };
        Some(self.run(method, this, args))
    }

    /// The value of a field of an object whose family of modules `module` belongs to.
    pub fn field(&mut self, module: ModuleId, object: &Value, name: &str) -> Option<Value> {
        let root = self.program.module(module).root;
        let ours = |f: &Field| f.name == name && self.program.module(f.module).root == root;
        let id = FieldId(self.program.fields.iter().position(ours)?);
        Some(self.memory.load(self.program, object, id, 0))
    }

    /// Runs a method definition.
    fn run(&mut self, method: MethodId, this: Value, args: Vec<Value>) -> Result<Value, Stop> {
        if self.depth >= MAX_DEPTH {
            return Err(Stop::Limit);
        }
        self.depth += 1;
        let program = self.program;
        let m = program.method(method);
        let mut locals = args;
        let missing = m.locals.iter().skip(locals.len()).map(|l| memory::default(&l.ty));
        locals.extend(missing.collect::<Vec<_>>());
        let value = self.eval(&mut Frame { this, locals }, &m.body);
        self.depth -= 1;
        value
    }

    /// The definition that a dynamic call of a pointer of type `module` runs.
    fn dispatch(&self, slot: SlotId, module: ModuleId, this: &Value) -> MethodId {
        let actual = match this {
            Value::Bytes(..) => self.program.punned_object(module),
            Value::Pointer(n) => self
                .memory
                .module_of(self.program.module(module).root, *n)
                .filter(|m| self.program.extends(*m, module))
                .unwrap_or_else(|| self.program.fallback(module, &self.instantiated)),
            _ => module,
        };
        let table = |m: ModuleId| self.program.module(m).vtable.get(&slot).copied();
        table(actual).or_else(|| table(module)).unwrap_or(MethodId(0))
    }

    fn number(&mut self, f: &mut Frame, e: &Expr) -> Result<u64, Stop> {
        Ok(self.eval(f, e)?.number())
    }

    fn all(&mut self, f: &mut Frame, all: &[Expr]) -> Result<Vec<Value>, Stop> {
        all.iter().map(|e| self.eval(f, e)).collect()
    }

    fn eval(&mut self, f: &mut Frame, e: &Expr) -> Result<Value, Stop> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Stop::Limit)?;
        Ok(match &e.kind {
            K::Int(n) => Value::Number(*n),
            K::Bool(b) => Value::Number(u64::from(*b)),
            K::Text(text) => Value::Text(text.clone()),
            K::NoneValue => Value::None,
            K::Some(a) => Value::Some(Box::new(self.eval(f, a)?)),
            K::Local(LocalId(n)) => f.locals.get(*n).cloned().unwrap_or(Value::Void),
            K::SelfPtr => f.this.clone(),
            K::Field { .. } | K::ByteAt(..) => {
                let target = self.target(f, e)?;
                self.load(f, &target)
            }
            K::Length(a) => {
                let at = self.eval(f, a)?;
                Value::Number(self.memory.length(&at))
            }
            K::Call { callee, base, args, .. } => {
                let this = match base {
                    Some(base) => self.eval(f, base)?,
                    None => Value::Void,
                };
                let args = self.all(f, args)?;
                let method = match callee {
                    Callee::Direct(method) => *method,
                    Callee::Dynamic(slot, module) => self.dispatch(*slot, *module, &this),
                };
                self.run(method, this, args)?
            }
            K::Host(id, args) => {
                let args = self.all(f, args)?;
                let name = self.program.hosts.get(id.0).map_or("", |h| &h.name);
                match self.host.call(&mut self.memory, name, &args) {
                    Value::Void if e.ty != Type::Void => memory::default(&e.ty),
                    value => value,
                }
            }
            K::New { module, constructor, args } => {
                let args = self.all(f, args)?;
                let pointer = self.memory.allocate(self.program, *module);
                if let Some(constructor) = constructor {
                    self.run(*constructor, pointer.clone(), args)?;
                }
                pointer
            }
            K::Delete(a) => {
                let pointer = self.eval(f, a)?;
                if let Some(module) = self.program.target(&a.ty) {
                    self.memory.free(self.program.module(module).root, &pointer);
                }
                Value::Void
            }
            K::LetObject { local, object, body } => {
                let pointer = self.eval(f, object)?;
                self.set(f, *local, pointer.clone());
                let value = self.eval(f, body);
                if let Some(module) = self.program.target(&object.ty) {
                    self.memory.free(self.program.module(module).root, &pointer);
                }
                value?
            }
            K::Let(local, value, body) => {
                let value = self.eval(f, value)?;
                self.set(f, *local, value);
                self.eval(f, body)?
            }
            K::LetSome(local, value, body, otherwise) => match self.eval(f, value)? {
                Value::Some(value) => {
                    self.set(f, *local, *value);
                    self.eval(f, body)?
                }
                _ => self.eval(f, otherwise)?,
            },
            K::Prefix(op, a) => {
                let n = self.number(f, a)?;
                Value::Number(match op {
                    Prefix::Neg => arith::truncate(n.wrapping_neg(), &e.ty),
                    Prefix::Not => u64::from(n == 0),
                    Prefix::BitNot => arith::truncate(!n, &e.ty),
                })
            }
            K::Binary(op, a, b) => {
                let (x, y) = (self.eval(f, a)?, self.eval(f, b)?);
                combined(*op, &a.ty, &x, &y)
            }
            K::Convert(a) => {
                let value = self.eval(f, a)?;
                match value {
                    Value::Number(n) => Value::Number(arith::convert(n, &a.ty, &e.ty)),
                    other => other,
                }
            }
            K::IsSome(a) => Value::Number(u64::from(self.eval(f, a)? != Value::None)),
            K::Default(a, b) => match (self.eval(f, a)?, &e.ty) {
                (Value::None, _) => self.eval(f, b)?,
                (some @ Value::Some(_), Type::Optional(_)) => some,
                (Value::Some(value), _) => *value,
                (other, _) => other,
            },
            K::Downcast(module, a) => {
                let pointer = self.eval(f, a)?;
                let root = self.program.module(*module).root;
                let actual = match pointer {
                    Value::Pointer(n) => self.memory.module_of(root, n),
                    _ => Some(self.program.punned_object(*module)),
                };
                match actual.is_some_and(|m| self.program.extends(m, *module)) {
                    true => Value::Some(Box::new(pointer)),
                    false => Value::None,
                }
            }
            K::Assign { place, op, value } => {
                let target = self.target(f, place)?;
                let old = op.map(|_| self.load(f, &target));
                let value = self.eval(f, value)?;
                let value = match (op, old) {
                    (Some(op), Some(old)) => combined(*op, &place.ty, &old, &value),
                    _ => value,
                };
                self.store(f, &target, value.clone());
                value
            }
            K::Step { place, up, old } => {
                let target = self.target(f, place)?;
                let before = self.load(f, &target);
                let op = if *up { BinOp::Add } else { BinOp::Sub };
                let after = combined(op, &place.ty, &before, &Value::Number(1));
                self.store(f, &target, after.clone());
                if *old { before } else { after }
            }
            K::And(a, b) => match self.number(f, a)? {
                0 => Value::Number(0),
                _ => self.eval(f, b)?,
            },
            K::Or(a, b) => match self.number(f, a)? {
                0 => self.eval(f, b)?,
                _ => Value::Number(1),
            },
            K::Cond(c, a, b) => match self.number(f, c)? {
                0 => self.eval(f, b)?,
                _ => self.eval(f, a)?,
            },
            K::Seq(all) => {
                let mut last = Value::Void;
                for e in all {
                    last = self.eval(f, e)?;
                }
                last
            }
            K::Raise(exception) => return Err(Stop::Raised(*exception)),
            K::Try(body, arms) => {
                let depth = self.depth;
                match self.eval(f, body) {
                    Err(Stop::Raised(raised)) => {
                        self.depth = depth;
                        match arms.iter().find(|(e, _)| e.is_none_or(|e| e == raised)) {
                            Some((_, arm)) => self.eval(f, arm)?,
                            None => return Err(Stop::Raised(raised)),
                        }
                    }
                    value => value?,
                }
            }
            K::Outline(a) => self.eval(f, a)?,
            K::Inlined { args, body, .. } => {
                let mut values = Vec::new();
                for (local, e) in args {
                    values.push((*local, self.eval(f, e)?));
                }
                for (local, value) in values {
                    self.set(f, local, value);
                }
                self.eval(f, body)?
            }
        })
    }

    fn set(&mut self, f: &mut Frame, local: LocalId, value: Value) {
        if let Some(l) = f.locals.get_mut(local.0) {
            *l = value;
        }
    }

    fn target(&mut self, f: &mut Frame, e: &Expr) -> Result<Target, Stop> {
        Ok(match &e.kind {
            K::Local(local) => Target::Local(*local),
            K::Field { base, field, index } => {
                let base = self.eval(f, base)?;
                let index = match index {
                    Some(index) => self.number(f, index)?,
                    None => 0,
                };
                Target::Field(base, *field, index)
            }
            K::ByteAt(base, index) => {
                let base = self.eval(f, base)?;
                Target::Byte(base, self.number(f, index)?)
            }
            // The checker allows no other places.
            _ => Target::Byte(Value::Void, 0),
        })
    }

    fn load(&mut self, f: &Frame, target: &Target) -> Value {
        match target {
            Target::Local(LocalId(n)) => f.locals.get(*n).cloned().unwrap_or(Value::Void),
            Target::Field(base, field, index) => self.memory.load(self.program, base, *field, *index),
            Target::Byte(base, index) => Value::Number(self.memory.byte(base, *index)),
        }
    }

    fn store(&mut self, f: &mut Frame, target: &Target, value: Value) {
        match target {
            Target::Local(local) => self.set(f, *local, value),
            Target::Field(base, field, index) => self.memory.store(self.program, base, *field, *index, value),
            Target::Byte(base, index) => self.memory.set_byte(base, *index, value.number()),
        }
    }
}

/// The value of an operation on two values of a type.
fn combined(op: BinOp, ty: &Type, a: &Value, b: &Value) -> Value {
    match (ty, a) {
        (Type::Bytes, Value::Bytes(packet, offset)) => {
            let n = b.number() as u32;
            let offset = if op == BinOp::Add { offset.wrapping_add(n) } else { offset.wrapping_sub(n) };
            Value::Bytes(*packet, offset)
        }
        (Type::Pointer(_), _) => Value::Number(u64::from((a == b) == (op == BinOp::Eq))),
        _ => Value::Number(arith::binary(op, ty, a.number(), b.number())),
    }
}

#[cfg(test)]
mod tests;
