// SPDX-License-Identifier: MIT OR Apache-2.0
//! The typed program: modules, features, types, and what the compiler knows about them.

use crate::tree::{Body, Local};
use castanet_diagnostic::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Declares numbers that index a vector of the program.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub usize);
    )*};
}

ids! {
    /// A module.
    ModuleId,
    /// A method definition.
    MethodId,
    /// A method under all its definitions: what dynamic dispatch chooses from.
    SlotId,
    /// A field.
    FieldId,
    /// An exception.
    ExceptionId,
    /// A function of the host.
    HostId,
    /// A view of a module: its features with what module operators make of them.
    ViewId,
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Int {
    /// 8, 16, 32 or 64.
    pub bits: u8,
    /// Whether it has negative numbers.
    pub signed: bool,
}

impl Int {
    /// `int`.
    pub const INT: Int = Int { bits: 32, signed: true };
    /// `uint`.
    pub const UINT: Int = Int { bits: 32, signed: false };
    /// `uchar`.
    pub const UCHAR: Int = Int { bits: 8, signed: false };
    /// `ulong`.
    pub const ULONG: Int = Int { bits: 64, signed: false };
    /// The name of the type in messages.
    pub fn name(self) -> &'static str {
        match (self.bits, self.signed) {
            (8, true) => "char",
            (8, false) => "uchar",
            (16, true) => "short",
            (16, false) => "ushort",
            (32, true) => "int",
            (32, false) => "uint",
            (_, true) => "long",
            (_, false) => "ulong",
        }
    }
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// No value, because evaluation raises an exception.
    Never,
    /// No value.
    Void,
    /// A truth value.
    Bool,
    /// An integer.
    Int(Int),
    /// A sequence number: 32 bits, compared modulo 2^32.
    Seq,
    /// A constant text, for host functions.
    Text,
    /// A position in a packet.
    Bytes,
    /// A pointer to a module, seen through a view.
    Pointer(ViewId),
    /// An object that lives until the end of its `let`.
    Object(ViewId),
    /// A value or none.
    Optional(Box<Type>),
    /// The type of `none`.
    NoneValue,
    /// An array in a field.
    Array(Box<Type>, usize),
    /// A type that is not known because of an error that has been reported.
    Unknown,
}

/// A feature of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureKind {
    /// A method, by the definition that the view's module has.
    Method(MethodId),
    /// A field.
    Field(FieldId),
    /// An exception.
    Exception(ExceptionId),
}

/// The directions to the compiler that module operators and expression operators give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Replace the call by the body.
    Inline,
    /// Replace the call by the body, and the calls in the body likewise.
    PathInline,
    /// Keep the call.
    NoInline,
    /// Keep the call, out of the way of the common case.
    Outline,
}

/// A feature as a view shows it.
#[derive(Clone, Debug)]
pub struct Feature {
    /// The feature.
    pub kind: FeatureKind,
    /// The operator that hides it, if it is hidden.
    pub hidden: Option<Span>,
    /// Whether names that are not found elsewhere are looked up in the module that this field points to.
    pub using: bool,
    /// The direction to the compiler for calls.
    pub hint: Option<Hint>,
}

/// A module with what operators make of it. The keys are the names of features, with their namespaces.
#[derive(Clone, Debug)]
pub struct View {
    /// The module.
    pub module: ModuleId,
    /// Its features.
    pub features: BTreeMap<String, Feature>,
}

/// The result of looking up a name in a view.
pub(crate) enum Found {
    Feature(String, Feature),
    Namespace(String),
}

impl View {
    /// Looks up a name with its namespaces. A namespace whose method has the namespace's name stands for the method.
    pub(crate) fn find(&self, key: &str) -> Option<Found> {
        if let Some(f) = self.features.get(key) {
            return Some(Found::Feature(key.to_string(), f.clone()));
        }
        let last = key.rsplit('.').next().unwrap_or(key);
        let answering = format!("{key}.{last}");
        if let Some(f) = self.features.get(&answering) {
            return Some(Found::Feature(answering, f.clone()));
        }
        self.is_namespace(key).then(|| Found::Namespace(key.to_string()))
    }
    pub(crate) fn is_namespace(&self, key: &str) -> bool {
        let prefix = format!("{key}.");
        self.features.range(prefix.clone()..).next().is_some_and(|(k, _)| k.starts_with(&prefix))
    }
}

/// Where a field of a punned module lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The first byte.
    pub offset: usize,
    /// Whether the first byte is the most significant one.
    pub big: bool,
}

/// A field.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name, with its namespaces.
    pub name: String,
    /// The module that declares it.
    pub module: ModuleId,
    /// The type.
    pub ty: Type,
    /// The position of the name.
    pub span: Span,
    /// The place in the bytes of the module, if it is punned.
    pub place: Option<Place>,
}

/// An exception.
#[derive(Clone, Debug)]
pub struct Exception {
    /// The name.
    pub name: String,
    /// The module that declares it.
    pub module: ModuleId,
    /// The position of the name.
    pub span: Span,
}

/// The kind of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// A method of an object.
    Method,
    /// A method without an object.
    Static,
    /// A constant.
    Constant,
    /// A constructor.
    Constructor,
}

/// A method definition.
#[derive(Clone, Debug)]
pub struct Method {
    /// The name, with its namespaces.
    pub name: String,
    /// The module that defines it.
    pub module: ModuleId,
    /// The method that it is a definition of.
    pub slot: SlotId,
    /// The kind.
    pub kind: MethodKind,
    /// The position of the name.
    pub span: Span,
    /// The types of the parameters, which are the first locals.
    pub params: Vec<Type>,
    /// The type of the result.
    pub result: Type,
    /// The variables.
    pub locals: Vec<Local>,
    /// The body.
    pub body: Body,
    /// The definition that this one replaces.
    pub overrides: Option<MethodId>,
}

/// A function of the host.
#[derive(Clone, Debug)]
pub struct Host {
    /// The name.
    pub name: String,
    /// The names and types of the parameters.
    pub params: Vec<(String, Type)>,
    /// The type of the result.
    pub result: Type,
    /// The position of the name.
    pub span: Span,
}

/// A module.
#[derive(Clone, Debug)]
pub struct Module {
    /// The name with its namespaces.
    pub name: String,
    /// The position of the name.
    pub span: Span,
    /// The module that it extends.
    pub parent: Option<ModuleId>,
    /// Whether it or an ancestor extends something unknown, so that nobody knows all its names. That is an error.
    pub incomplete: bool,
    /// The outermost ancestor.
    pub root: ModuleId,
    /// The modules that extend it.
    pub children: Vec<ModuleId>,
    /// The view of the parent that it extends, with the operators applied.
    pub inherited: Option<ViewId>,
    /// The view that its own methods have.
    pub inner: ViewId,
    /// The view that other modules have.
    pub outer: ViewId,
    /// The definition of each method.
    pub vtable: BTreeMap<SlotId, MethodId>,
    /// The fields that it declares itself.
    pub fields: Vec<FieldId>,
    /// Its constructor, perhaps inherited.
    pub constructor: Option<MethodId>,
    /// The number of bytes, if the module is a view of the bytes of packets (punned, as the paper calls it).
    pub punned: Option<usize>,
}

/// A typed program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The modules. A parent stands before its children.
    pub modules: Vec<Module>,
    /// The method definitions.
    pub methods: Vec<Method>,
    /// The number of slots.
    pub slots: usize,
    /// The fields.
    pub fields: Vec<Field>,
    /// The exceptions.
    pub exceptions: Vec<Exception>,
    /// The functions of the host.
    pub hosts: Vec<Host>,
    /// The views.
    pub views: Vec<View>,
    /// The modules whose methods the host calls.
    pub exports: Vec<ModuleId>,
    /// The declared extensions, in order, and whether each is switched on.
    pub extensions: Vec<(String, bool)>,
}

impl Program {
    /// A module.
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }
    /// A method definition.
    pub fn method(&self, id: MethodId) -> &Method {
        &self.methods[id.0]
    }
    /// A field.
    pub fn field(&self, id: FieldId) -> &Field {
        &self.fields[id.0]
    }
    /// A view.
    pub fn view(&self, id: ViewId) -> &View {
        &self.views[id.0]
    }
    /// The name of a method with its module, such as `Base.TCB.send-hook`.
    pub fn full_name(&self, id: MethodId) -> String {
        let m = self.method(id);
        format!("{}.{}", self.module(m.module).name, m.name)
    }
    /// Whether `module` is `ancestor` or extends it, perhaps indirectly.
    pub fn extends(&self, module: ModuleId, ancestor: ModuleId) -> bool {
        std::iter::successors(Some(module), |m| self.module(*m).parent).any(|m| m == ancestor)
    }
    /// The module and all that extend it.
    pub fn family(&self, module: ModuleId) -> Vec<ModuleId> {
        let mut all = vec![module];
        let mut next = 0;
        while let Some(m) = all.get(next) {
            all.extend(self.module(*m).children.iter().copied());
            next += 1;
        }
        all
    }
    /// The module of the objects that a pointer to a punned module denotes. Bytes do not say of which module they are, so
    /// it is the only most derived one, or the module itself if there are several.
    pub fn punned_object(&self, module: ModuleId) -> ModuleId {
        let mut leaves = self.family(module).into_iter().filter(|m| self.module(*m).children.is_empty());
        match (leaves.next(), leaves.next()) {
            (Some(leaf), None) => leaf,
            _ => module,
        }
    }
    /// The module whose methods a pointer runs if it points to no object of `module`: one that objects may have, if there is
    /// one.
    pub fn fallback(&self, module: ModuleId, instantiated: &BTreeSet<ModuleId>) -> ModuleId {
        instantiated.iter().copied().find(|m| self.extends(*m, module)).unwrap_or(module)
    }
    /// The modules that objects may have: the exported ones, and those that some method creates.
    pub fn instantiated(&self) -> BTreeSet<ModuleId> {
        let mut all: BTreeSet<ModuleId> = self.exports.iter().copied().collect();
        for m in &self.methods {
            m.body.walk(&mut |e| all.extend(e.creates()));
        }
        all
    }
    /// The module that a pointer or object type points to.
    pub fn target(&self, ty: &Type) -> Option<ModuleId> {
        match ty {
            Type::Pointer(view) | Type::Object(view) => Some(self.view(*view).module),
            _ => None,
        }
    }
    /// The name of a type in messages.
    pub fn type_name(&self, ty: &Type) -> String {
        match ty {
            Type::Never => "no value (it raises an exception)".into(),
            Type::Void => "void".into(),
            Type::Bool => "bool".into(),
            Type::Int(int) => int.name().into(),
            Type::Seq => "seqint".into(),
            Type::Text => "string".into(),
            Type::Bytes => "bytes".into(),
            Type::Pointer(view) => format!("*{}", self.module(self.view(*view).module).name),
            Type::Object(view) => self.module(self.view(*view).module).name.clone(),
            Type::Optional(inner) => format!("?{}", self.type_name(inner)),
            Type::NoneValue => "none".into(),
            Type::Array(inner, n) => format!("{}[{n}]", self.type_name(inner)),
            Type::Unknown => "unknown".into(),
        }
    }
}
