// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects and packets of the interpreter.

use crate::program::{Field, FieldId, ModuleId, Place, Program, Type};
use std::collections::BTreeMap;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Void,
    /// A number or truth value, in the low bits.
    Number(u64),
    /// A text.
    Text(String),
    /// A pointer to an object, by its index among those of its family.
    Pointer(u32),
    /// A position: the packet and the offset. Pointers to punned modules are positions as well.
    Bytes(u32, u32),
    /// No optional value.
    None,
    /// An optional value.
    Some(Box<Value>),
}

impl Value {
    /// The number; 0 for a value that is none.
    pub fn number(&self) -> u64 {
        if let Value::Number(n) = self { *n } else { 0 }
    }
}

/// The value of a field or variable that was never set.
pub(super) fn default(ty: &Type) -> Value {
    match ty {
        Type::Void | Type::Never | Type::Unknown | Type::Text => Value::Void,
        Type::Bool | Type::Int(_) | Type::Seq | Type::Array(..) => Value::Number(0),
        Type::Bytes => Value::Bytes(u32::MAX, 0),
        Type::Pointer(_) | Type::Object(_) => Value::Pointer(0),
        Type::Optional(_) | Type::NoneValue => Value::None,
    }
}

#[derive(Clone, Debug, Default)]
struct Object {
    /// `None` for the object at index 0, which pointers denote that were never set.
    module: Option<ModuleId>,
    fields: BTreeMap<(FieldId, usize), Value>,
    live: bool,
}

#[derive(Clone, Debug)]
struct Family {
    objects: Vec<Object>,
    free: Vec<u32>,
}

/// The objects and packets of a program.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The objects of each family, by the root module.
    families: BTreeMap<ModuleId, Family>,
    /// The bytes of the packets.
    pub packets: Vec<Vec<u8>>,
}

impl Memory {
    pub(super) fn new(program: &Program) -> Memory {
        let roots = program.modules.iter().map(|m| m.root);
        let family = || Family { objects: vec![Object::default()], free: Vec::new() };
        Memory { families: roots.map(|r| (r, family())).collect(), packets: Vec::new() }
    }

    /// Creates an object without running its constructor.
    pub(super) fn allocate(&mut self, program: &Program, module: ModuleId) -> Value {
        let Some(family) = self.families.get_mut(&program.module(module).root) else {
            return Value::Pointer(0);
        };
        let object = Object { module: Some(module), fields: BTreeMap::new(), live: true };
        let index = match family.free.pop() {
            Some(index) => index,
            None => {
                family.objects.push(Object::default());
                (family.objects.len() - 1) as u32
            }
        };
        if let Some(o) = family.objects.get_mut(index as usize) {
            *o = object;
        }
        Value::Pointer(index)
    }

    /// Ends an object. Its place is given to the next object of the family.
    pub(super) fn free(&mut self, root: ModuleId, pointer: &Value) {
        let (Some(family), Value::Pointer(index)) = (self.families.get_mut(&root), pointer) else { return };
        if let Some(o) = family.objects.get_mut(*index as usize).filter(|o| o.live) {
            o.live = false;
            family.free.push(*index);
        }
    }

    /// The number of objects of a family that have not ended.
    pub fn live(&self, root: ModuleId) -> usize {
        self.families.get(&root).map_or(0, |f| f.objects.iter().filter(|o| o.live).count())
    }

    pub(super) fn module_of(&self, root: ModuleId, index: u32) -> Option<ModuleId> {
        self.families.get(&root)?.objects.get(index as usize)?.module
    }

    pub(super) fn length(&self, at: &Value) -> u64 {
        let Value::Bytes(packet, offset) = at else { return 0 };
        let length = self.packets.get(*packet as usize).map_or(0, Vec::len);
        length.saturating_sub(*offset as usize) as u64
    }

    /// The bytes of a range, if all of them exist.
    fn range(&mut self, at: &Value, from: u64, n: usize) -> Option<&mut [u8]> {
        let Value::Bytes(packet, offset) = at else { return None };
        let start = usize::try_from(u64::from(*offset).checked_add(from)?).ok()?;
        self.packets.get_mut(*packet as usize)?.get_mut(start..start.checked_add(n)?)
    }

    pub(super) fn byte(&mut self, at: &Value, index: u64) -> u64 {
        self.range(at, index, 1).and_then(|b| b.first().copied()).map_or(0, u64::from)
    }

    pub(super) fn set_byte(&mut self, at: &Value, index: u64, value: u64) {
        if let Some([byte]) = self.range(at, index, 1) {
            *byte = value as u8;
        }
    }

    pub(super) fn load(&mut self, program: &Program, base: &Value, id: FieldId, index: u64) -> Value {
        let field = program.field(id);
        let Some((element, index)) = element(field, index) else { return Value::Number(0) };
        if let Some(place) = field.place {
            let n = width(element);
            let Some(bytes) = self.range(base, (place.offset + index * n) as u64, n) else {
                return Value::Number(0);
            };
            let value = ordered(place, bytes).fold(0u64, |n, b| n << 8 | u64::from(b));
            // A truth value is any byte but 0.
            return Value::Number(if *element == Type::Bool { u64::from(value != 0) } else { value });
        }
        let Value::Pointer(n) = base else { return default(element) };
        let root = program.module(field.module).root;
        let object = self.families.get(&root).and_then(|f| f.objects.get(*n as usize));
        object.and_then(|o| o.fields.get(&(id, index)).cloned()).unwrap_or_else(|| default(element))
    }

    pub(super) fn store(&mut self, program: &Program, base: &Value, id: FieldId, index: u64, value: Value) {
        let field = program.field(id);
        let Some((element, index)) = element(field, index) else { return };
        if let Some(place) = field.place {
            let n = width(element);
            if let Some(bytes) = self.range(base, (place.offset + index * n) as u64, n) {
                for (i, byte) in bytes.iter_mut().enumerate() {
                    let shift = if place.big { n - 1 - i } else { i };
                    *byte = (value.number() >> (8 * shift)) as u8;
                }
            }
            return;
        }
        let (Value::Pointer(n), root) = (base, program.module(field.module).root) else { return };
        if let Some(o) = self.families.get_mut(&root).and_then(|f| f.objects.get_mut(*n as usize)) {
            o.fields.insert((id, index), value);
        }
    }
}

/// The bytes of a number, the most significant one first.
fn ordered(place: Place, bytes: &[u8]) -> Box<dyn Iterator<Item = u8> + '_> {
    match place.big {
        true => Box::new(bytes.iter().copied()),
        false => Box::new(bytes.iter().rev().copied()),
    }
}

/// The type and index of an element of a field. `None` if the array has no such element.
fn element(field: &Field, index: u64) -> Option<(&Type, usize)> {
    match &field.ty {
        Type::Array(element, n) => usize::try_from(index).ok().filter(|i| i < n).map(|i| (&**element, i)),
        ty => Some((ty, 0)),
    }
}

/// The number of bytes of a type.
pub(crate) fn width(ty: &Type) -> usize {
    match ty {
        Type::Int(i) => usize::from(i.bits / 8),
        Type::Bool => 1,
        _ => 4,
    }
}
