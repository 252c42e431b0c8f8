// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fields, elements, bytes and variables: reading them, assigning to them.

use super::Printer;
use super::exprs::{ATOM, CAST, Code};
use crate::program::{FieldId, Type};
use crate::tree::{BinOp, Expr, ExprKind as K};
use std::fmt::Write;

/// A place whose object and index have been printed.
enum Target {
    /// A cell.
    Cell(String),
    /// A cell with a reference to an object.
    Reference(String),
    /// An element of an array of cells.
    Element { array: String, index: String },
    /// A field over bytes: the functions that read and write it, and the position of its object.
    Accessors { get: String, set: String, at: String },
    /// Bytes of a packet: the position, the offset, the order.
    Bytes { at: String, offset: String, big: bool },
}

impl Printer<'_> {
    /// The target of a place. The statements before it evaluate what may be evaluated only once, if `once`.
    fn target(&mut self, e: &Expr, once: bool) -> (String, Target) {
        match &e.kind {
            K::Local(local) => (String::new(), Target::Cell(self.variables[local].clone())),
            K::ByteAt(base, index) => {
                let (at, index) = (self.value(base).text, self.value(index).text);
                let offset = format!("u64::from({index})");
                self.bytes(at, offset, true, once, &[base])
            }
            K::Field { base, field, index } => {
                let f = self.p.field(*field).clone();
                let name = self.names.fields[field].clone();
                let object = self.object_of(base);
                match (f.place, index, &f.ty) {
                    (Some(_), None, _) => {
                        let module = &self.names.modules[&f.module];
                        let (get, set) = &self.names.accessors[field];
                        let (get, set) = (format!("{module}::{get}"), format!("{module}::{set}"));
                        match once && !self.is_simple(base) {
                            true => {
                                let at = "place".to_string();
                                (format!("let place = {object};\n"), Target::Accessors { get, set, at })
                            }
                            false => (String::new(), Target::Accessors { get, set, at: object }),
                        }
                    }
                    (Some(place), Some(index), ty) => {
                        let (width, count) = match ty {
                            Type::Array(element, n) => (crate::interp::width(element), *n),
                            _ => (1, 1),
                        };
                        let at = self.index(index);
                        let offset = format!("runtime::element({}, {width}, {count}, {at})", place.offset);
                        self.bytes(object, offset, place.big, once, &[base, index])
                    }
                    (None, None, _) => {
                        let cell = format!("{object}.{name}");
                        if self.is_reference(&f) {
                            return (String::new(), Target::Reference(cell));
                        }
                        match once && !self.is_simple(base) {
                            true => (format!("let place = &{cell};\n"), Target::Cell("place".into())),
                            false => (String::new(), Target::Cell(cell)),
                        }
                    }
                    (None, Some(index), _) => {
                        let index_text = self.index(index);
                        let array = format!("&{object}.{name}");
                        match once && !(self.is_simple(base) && self.is_simple(index)) {
                            true => {
                                let before = format!("let place = {array};\nlet index = {index_text};\n");
                                (before, Target::Element { array: "place".into(), index: "index".into() })
                            }
                            false => (String::new(), Target::Element { array, index: index_text }),
                        }
                    }
                }
            }
            _ => (String::new(), Target::Cell("unreachable".into())),
        }
    }

    fn bytes(
        &mut self,
        at: String,
        offset: String,
        big: bool,
        once: bool,
        parts: &[&Expr],
    ) -> (String, Target) {
        let simple = parts.iter().all(|e| self.is_simple(e)) && !offset.contains("u64::from");
        match once && !simple {
            true => {
                let before = format!("let place = {at};\nlet index = {offset};\n");
                (before, Target::Bytes { at: "place".into(), offset: "index".into(), big })
            }
            false => (String::new(), Target::Bytes { at, offset, big }),
        }
    }

    fn index(&mut self, e: &Expr) -> String {
        self.bare(e).text
    }

    fn read(&self, target: &Target, ty: &Type) -> Code {
        match target {
            Target::Cell(cell) => Code::atom(format!("{cell}.get()")),
            Target::Reference(cell) => {
                let index = if self.arena_of(ty).is_some() { ".id.get()" } else { "" };
                Code::atom(format!("{cell}.get(){index}"))
            }
            Target::Accessors { get, at, .. } => Code::atom(format!("{get}(cx, {at})")),
            Target::Element { array, index } => Code::atom(format!("runtime::load_at({array}, {index})")),
            Target::Bytes { at, offset, big } => {
                let load = format!("runtime::load(&cx.packets, {at}, {offset})");
                let order = if *big { "be" } else { "le" };
                match ty {
                    Type::Bool => Code::of(CAST - 7, format!("{load} != [0]")),
                    ty => Code::atom(format!("{}::from_{order}_bytes({load})", self.ty(ty))),
                }
            }
        }
    }

    /// The statement that writes a value, without its semicolon.
    fn write(&self, target: &Target, ty: &Type, value: &str) -> String {
        match target {
            Target::Cell(cell) => format!("{cell}.set({value})"),
            Target::Reference(cell) => match (self.arena_of(ty), value.strip_suffix(".id.get()")) {
                (Some(arena), None) => format!("{cell}.set(cx.{arena}({value}))"),
                (_, Some(object)) => format!("{cell}.set({object})"),
                (None, None) => format!("{cell}.set({value})"),
            },
            Target::Accessors { set, at, .. } => format!("{set}(cx, {at}, {value})"),
            Target::Element { array, index } => format!("runtime::store_at({array}, {index}, {value})"),
            Target::Bytes { at, offset, big } => {
                let order = if *big { "be" } else { "le" };
                let bytes = match ty {
                    Type::Bool => format!("[u8::from({value})]"),
                    ty => format!("{}::to_{order}_bytes({value})", self.ty(ty)),
                };
                format!("runtime::store(&cx.packets, {at}, {offset}, {bytes})")
            }
        }
    }

    /// The arena of the objects that pointers of a type lead to; none if they are variables.
    fn arena_of(&self, ty: &Type) -> Option<&str> {
        let root = self.root(self.p.target(ty)?);
        (!self.scoped.has(root)).then(|| self.names.arenas[&root].as_str())
    }

    /// The functions that read and write a field over bytes.
    pub(super) fn accessors(&self, out: &mut String, id: FieldId) {
        let f = self.p.field(id);
        let (Some((get, set)), Some(place)) = (self.names.accessors.get(&id), f.place) else { return };
        if matches!(f.ty, Type::Array(..)) {
            return;
        }
        let ty = self.ty(&f.ty);
        let target = Target::Bytes { at: "at".into(), offset: place.offset.to_string(), big: place.big };
        let (read, write) = (self.read(&target, &f.ty).text, self.write(&target, &f.ty, "value"));
        let name = format!("{}.{}", self.p.module(f.module).name, f.name);
        let _ = writeln!(
            out,
            "/// The field `{name}`.\n#[inline]\npub fn {get}<H: Host>(cx: &Cx<'_, H>, at: Bytes) -> {ty} {{\n{read}\n}}\n\n\
             /// Sets the field `{name}`.\n#[inline]\npub fn {set}<H: Host>(cx: &Cx<'_, H>, at: Bytes, value: {ty}) {{\n\
             {write};\n}}\n"
        );
    }

    /// The value of a field, element or byte.
    pub(super) fn load(&mut self, e: &Expr) -> Code {
        let (_, target) = self.target(e, false);
        self.read(&target, &e.ty)
    }

    /// The new value of an assignment with an operator. The old value is `old`.
    fn combined(&mut self, op: BinOp, ty: &Type, old: Code, value: &Expr) -> String {
        let old = OldValue { text: old.at_least(ATOM), ty: ty.clone() };
        self.combine(op, &old, value)
    }

    fn combine(&mut self, op: BinOp, old: &OldValue, value: &Expr) -> String {
        let v = self.bare(value);
        let text = &old.text;
        match (&old.ty, op) {
            (Type::Bytes, BinOp::Add) => format!("{text}.after({})", v.text),
            (Type::Bytes, _) => format!("{text}.before({})", v.text),
            (Type::Seq, BinOp::Max) => format!("runtime::seq_max({text}, {})", v.text),
            (Type::Seq, BinOp::Min) => format!("runtime::seq_min({text}, {})", v.text),
            (_, BinOp::And) => format!("{text} & {}", v.at_least(CAST)),
            (_, BinOp::Or) => format!("{text} | {}", v.at_least(CAST)),
            (_, BinOp::Xor) => format!("{text} ^ {}", v.at_least(CAST)),
            (_, op) => {
                let method = match op {
                    BinOp::Add => "wrapping_add",
                    BinOp::Sub => "wrapping_sub",
                    BinOp::Mul => "wrapping_mul",
                    BinOp::Div => "over",
                    BinOp::Rem => "modulo",
                    BinOp::Shl => "left",
                    BinOp::Shr => "right",
                    BinOp::Max => "max",
                    _ => "min",
                };
                format!("{text}.{method}({})", v.text)
            }
        }
    }

    /// An assignment, `++` or `--` whose value is not used.
    pub(super) fn assignment_statement(&mut self, e: &Expr) -> String {
        let (before, text) = match &e.kind {
            K::Assign { place, op: None, value } => {
                let (before, target) = self.target(place, false);
                let value = self.bare(value).text;
                (before, self.write(&target, &place.ty, &value))
            }
            K::Assign { place, op: Some(op), value } => {
                let (before, target) = self.target(place, true);
                let old = self.read(&target, &place.ty);
                let new = self.combined(*op, &place.ty, old, value);
                (before, self.write(&target, &place.ty, &new))
            }
            K::Step { place, up, .. } => {
                let (before, target) = self.target(place, true);
                let old = self.read(&target, &place.ty).at_least(ATOM);
                let method = step(&place.ty, *up);
                (before, self.write(&target, &place.ty, &format!("{old}.{method}(1)")))
            }
            _ => return String::new(),
        };
        if before.is_empty() { format!("{text};\n") } else { format!("{{\n{before}{text};\n}}\n") }
    }

    /// An assignment, `++` or `--` whose value is used.
    pub(super) fn assignment(&mut self, e: &Expr) -> Code {
        let (before, target, old, new) = match &e.kind {
            K::Assign { place, op: None, value } => {
                let (before, target) = self.target(place, true);
                (before, target, None, self.bare(value).text)
            }
            K::Assign { place, op: Some(op), value } => {
                let (before, target) = self.target(place, true);
                let old = self.read(&target, &place.ty);
                let new = self.combined(*op, &place.ty, old, value);
                (before, target, None, new)
            }
            K::Step { place, up, old } => {
                let (before, target) = self.target(place, true);
                let read = self.read(&target, &place.ty);
                let method = step(&place.ty, *up);
                match old {
                    true => (before, target, Some(read.text), format!("old.{method}(1)")),
                    false => (before, target, None, format!("{}.{method}(1)", read.at_least(ATOM))),
                }
            }
            _ => return Code::atom("()"),
        };
        let ty = self.ty(&e.ty);
        match (before.is_empty(), &target, old) {
            (true, Target::Cell(cell), None) => Code::atom(format!("{cell}.put({new})")),
            (_, target, None) => {
                let write = self.write(target, &e.ty, "new");
                Code::block(format!("{{\n{before}let new: {ty} = {new};\n{write};\nnew\n}}"))
            }
            (_, target, Some(old)) => {
                let write = self.write(target, &e.ty, &new);
                Code::block(format!("{{\n{before}let old: {ty} = {old};\n{write};\nold\n}}"))
            }
        }
    }
}

/// The method of `++` or `--`.
fn step(ty: &Type, up: bool) -> &'static str {
    match (ty, up) {
        (Type::Bytes, true) => "after",
        (Type::Bytes, false) => "before",
        (_, true) => "wrapping_add",
        (_, false) => "wrapping_sub",
    }
}

/// A value that an operator changes.
struct OldValue {
    text: String,
    ty: Type,
}

impl Printer<'_> {
    /// Whether an expression may be evaluated twice: it has no effect, and nothing can change it.
    fn is_simple(&self, e: &Expr) -> bool {
        match &e.kind {
            K::SelfPtr | K::Int(_) => true,
            K::Local(local) => !self.locals[local.0].assigned,
            K::Convert(inner) => self.is_simple(inner),
            _ => false,
        }
    }
}
