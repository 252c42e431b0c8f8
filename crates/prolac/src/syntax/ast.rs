// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plain syntax that resolution reads. The parser writes it beside the lossless tree.

pub(crate) use crate::tree::BinOp;
use castanet_diagnostic::Span;

/// A name at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub text: String,
    pub span: Span,
}

/// A name with dots. `global` paths begin with a dot and are looked up from the outermost namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub global: bool,
    pub parts: Vec<Name>,
    pub span: Span,
}

impl Path {
    pub fn text(&self) -> String {
        self.parts.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(".")
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    Module(ModuleDecl),
    Namespace(Name, Vec<Item>),
    Method(MethodDecl),
    /// `include "FILE";`
    Include(Text),
    /// `hookup NAME "FILE";`
    Extension(Name, Text),
    /// `hookup NAME :> MODULE;`
    HookName(Path, ModuleExpr),
    /// `module NAME = MODULE OPERATORS;`
    Alias(Path, ModuleExpr),
    Export(Vec<Path>),
    Host(HostDecl),
}

#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct ModuleDecl {
    pub name: Path,
    pub parent: Option<Parent>,
    pub members: Vec<Member>,
    pub after: Vec<Operator>,
    /// The head, from `module` to the name of the parent.
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Parent {
    /// Whether the module hooks itself up to the name, and becomes what the name denotes.
    pub hookup: bool,
    pub module: ModuleExpr,
}

#[derive(Clone, Debug)]
pub(crate) struct ModuleExpr {
    pub path: Path,
    pub ops: Vec<Operator>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatorKind {
    Hide,
    Show,
    Using,
    Rename,
    Inline,
    NoInline,
    PathInline,
    Outline,
}

#[derive(Clone, Debug)]
pub(crate) struct Operator {
    pub kind: OperatorKind,
    /// The names, each with the new name that `rename` gives. `None` is `all`.
    pub names: Option<Vec<(Path, Option<Name>)>>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum Member {
    Field(FieldDecl),
    Method(MethodDecl),
    Exceptions(Vec<Name>),
    Namespace(Name, Vec<Member>),
}

#[derive(Clone, Debug)]
pub(crate) struct FieldDecl {
    pub name: Name,
    pub ty: Type,
    pub at: Option<(u64, Span)>,
    pub big: Option<(bool, Span)>,
    pub using: bool,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MethodKind {
    Method,
    Static,
    Constant,
    Constructor,
}

#[derive(Clone, Debug)]
pub(crate) struct MethodDecl {
    pub kind: MethodKind,
    pub path: Path,
    pub params: Vec<Param>,
    pub result: Option<Type>,
    pub body: Expr,
    /// Whether the declaration has syntax errors. Its body is missing then, so that it gives no further errors.
    pub broken: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub name: Name,
    pub ty: Type,
}

#[derive(Clone, Debug)]
pub(crate) struct HostDecl {
    pub name: Name,
    pub params: Vec<Param>,
    pub result: Option<Type>,
}

#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub kind: TypeKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum TypeKind {
    /// A built-in type, or a module.
    Name(ModuleExpr),
    Pointer(Box<Type>),
    Optional(Box<Type>),
    Array(Box<Type>, u64),
    /// Not a type; reported.
    Missing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnOp {
    Plus,
    Neg,
    Not,
    BitNot,
    Deref,
    AddressOf,
    PreInc,
    PreDec,
}

/// Operators on expressions that direct the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    Inline,
    PathInline,
    NoInline,
    Outline,
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    /// The height of the expression, which the parser bounds.
    pub height: u16,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Number(u64),
    Bool(bool),
    Text(String),
    None,
    Name(Path),
    SelfPtr,
    /// `super`, only before `.` or `(`.
    Super,
    Member {
        base: Box<Expr>,
        name: Name,
        arrow: bool,
    },
    Call {
        callee: Box<Expr>,
        args: Vec<Expr>,
    },
    Index {
        base: Box<Expr>,
        index: Box<Expr>,
    },
    Unary(UnOp, Box<Expr>),
    /// `x++` (true) or `x--`.
    Postfix(bool, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    AndAnd(Box<Expr>, Box<Expr>),
    OrOr(Box<Expr>, Box<Expr>),
    Default(Box<Expr>, Box<Expr>),
    Assign(Option<BinOp>, Box<Expr>, Box<Expr>),
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    Then(Box<Expr>, Box<Expr>),
    Seq(Vec<Expr>),
    Let {
        bindings: Vec<Binding>,
        body: Box<Expr>,
        otherwise: Option<Box<Expr>>,
    },
    Try {
        body: Box<Expr>,
        arms: Vec<(Option<Path>, Expr)>,
    },
    New(Path, Vec<Expr>),
    Delete(Box<Expr>),
    Cast(Type, Box<Expr>),
    SizeOf(Type),
    Hint(Hint, Box<Expr>),
    /// Calls of host functions. The flag says whether the value of the last one is the value of the action.
    Action(Vec<Expr>, bool),
    Paren(Box<Expr>),
    /// Nothing: the body of `name ::= ;`.
    Empty,
    /// Not an expression; reported.
    Missing,
}

#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub name: Name,
    pub ty: Option<Type>,
    /// Whether the binding is `name ?= value`, which takes the value out of an optional one.
    pub optional: bool,
    pub value: Expr,
}
