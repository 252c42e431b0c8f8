// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typed expressions. The interpreter runs them; the compiler transforms and prints them.

use crate::program::{ExceptionId, FieldId, Hint, HostId, MethodId, ModuleId, SlotId, Type};
use castanet_diagnostic::Span;
use std::cell::Cell;

thread_local! {
    /// The number of operations whose operands this thread has visited.
    static VISITS: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread has visited the operands of an operation: a measure of the work that does not depend on the machine.
pub(crate) fn visits() -> u64 {
    VISITS.with(Cell::get)
}

/// A variable of a method, by its index in the method's locals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(pub usize);

/// A variable: a parameter, or one that `let` declares.
#[derive(Clone, Debug)]
pub struct Local {
    /// The name in the source.
    pub name: String,
    /// The type.
    pub ty: Type,
    /// Whether it is assigned to after its declaration.
    pub assigned: bool,
}

/// A typed expression. It is the body of a method as well.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The type of the value.
    pub ty: Type,
    /// The operation.
    pub kind: ExprKind,
    /// The position in the source.
    pub span: Span,
}

/// The body of a method.
pub type Body = Expr;

/// The definition that a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// The definition that the object's module has; the module is that of the receiver's type.
    Dynamic(SlotId, ModuleId),
    /// This definition.
    Direct(MethodId),
}

/// An operator on two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinOp {
    /// `+`.
    Add,
    /// `-`.
    Sub,
    /// `*`.
    Mul,
    /// `/`.
    Div,
    /// `%`.
    Rem,
    /// `<<`.
    Shl,
    /// `>>`.
    Shr,
    /// `&`.
    And,
    /// `|`.
    Or,
    /// `^`.
    Xor,
    /// `==`.
    Eq,
    /// `!=`.
    Ne,
    /// `<`.
    Lt,
    /// `<=`.
    Le,
    /// `>`.
    Gt,
    /// `>=`.
    Ge,
    /// The greater one, of `max=`.
    Max,
    /// The lesser one, of `min=`.
    Min,
}

/// A prefix operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// `-`.
    Neg,
    /// `!`.
    Not,
    /// `~`.
    BitNot,
}

/// An operation.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A number of an integer type, in the low bits.
    Int(u64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// No optional value.
    NoneValue,
    /// An optional value.
    Some(Box<Expr>),
    /// The value of a variable.
    Local(LocalId),
    /// The pointer to the object of the method.
    SelfPtr,
    /// A field of an object, or an element of a field.
    Field {
        /// The pointer to the object.
        base: Box<Expr>,
        /// The field.
        field: FieldId,
        /// The index, for an array.
        index: Option<Box<Expr>>,
    },
    /// A byte at a distance from a position in a packet.
    ByteAt(Box<Expr>, Box<Expr>),
    /// The number of bytes from a position to the end of the packet.
    Length(Box<Expr>),
    /// A call of a method.
    Call {
        /// The definition.
        callee: Callee,
        /// The pointer to the object; `None` for static methods.
        base: Option<Box<Expr>>,
        /// The arguments.
        args: Vec<Expr>,
        /// The direction to the compiler.
        hint: Option<Hint>,
    },
    /// A call of a function of the host.
    Host(HostId, Vec<Expr>),
    /// A new object that lives until it is deleted.
    New {
        /// The module of the object.
        module: ModuleId,
        /// Its constructor.
        constructor: Option<MethodId>,
        /// The arguments of the constructor.
        args: Vec<Expr>,
    },
    /// The end of an object.
    Delete(Box<Expr>),
    /// An object that lives until the end of the body.
    LetObject {
        /// The variable.
        local: LocalId,
        /// The creation, a [`ExprKind::New`].
        object: Box<Expr>,
        /// The expression with the variable.
        body: Box<Expr>,
    },
    /// A variable and an expression with it.
    Let(LocalId, Box<Expr>, Box<Expr>),
    /// A variable for the value in an optional one, the expression with it, and the expression without.
    LetSome(LocalId, Box<Expr>, Box<Expr>, Box<Expr>),
    /// A prefix operator.
    Prefix(Prefix, Box<Expr>),
    /// An operator on two values of the same type. The type of `left` decides about the operation.
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// A conversion to the type of this expression, between integers, truth values and pointers.
    Convert(Box<Expr>),
    /// Whether an optional value is one.
    IsSome(Box<Expr>),
    /// The value in an optional one, or another value.
    Default(Box<Expr>, Box<Expr>),
    /// A pointer to a derived module, if the object is of that module; else none.
    Downcast(ModuleId, Box<Expr>),
    /// An assignment, perhaps with an operator. Its value is the new one.
    Assign {
        /// The field, variable or byte.
        place: Box<Expr>,
        /// The operator.
        op: Option<BinOp>,
        /// The operand.
        value: Box<Expr>,
    },
    /// `++` or `--`.
    Step {
        /// The field, variable or byte.
        place: Box<Expr>,
        /// Whether it is `++`.
        up: bool,
        /// Whether the value is the old one.
        old: bool,
    },
    /// `&&`. `x ==> y` is `x && (y, true)`.
    And(Box<Expr>, Box<Expr>),
    /// `||`.
    Or(Box<Expr>, Box<Expr>),
    /// `? :`.
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Expressions one after the other. The value is that of the last one.
    Seq(Vec<Expr>),
    /// An exception.
    Raise(ExceptionId),
    /// An expression, and those that replace it if it raises an exception. `None` catches all of them.
    Try(Box<Expr>, Vec<(Option<ExceptionId>, Expr)>),
    /// An expression that is evaluated rarely.
    Outline(Box<Expr>),
    /// The body of a method in place of a call. Only the compiler writes it.
    Inlined {
        /// The method.
        method: MethodId,
        /// The variables of the object and the parameters, and their values.
        args: Vec<(LocalId, Expr)>,
        /// The body, with variables of the calling method.
        body: Box<Expr>,
    },
}

impl Expr {
    /// An expression.
    pub fn new(ty: Type, kind: ExprKind, span: Span) -> Expr {
        Expr { ty, kind, span }
    }
    /// Calls a function on each operand, in the order of evaluation.
    pub fn each_operand<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        use ExprKind as K;
        VISITS.with(|n| n.set(n.get() + 1));
        match &self.kind {
            K::Int(_) | K::Bool(_) | K::Text(_) | K::NoneValue | K::Local(_) | K::SelfPtr | K::Raise(_) => {}
            K::Some(a) | K::Length(a) | K::Delete(a) | K::Prefix(_, a) | K::Convert(a) | K::IsSome(a) => f(a),
            K::Downcast(_, a) | K::Outline(a) | K::Step { place: a, .. } => f(a),
            K::Field { base, index, .. } => std::iter::once(&**base).chain(index.as_deref()).for_each(f),
            K::ByteAt(a, b) | K::Binary(_, a, b) | K::Default(a, b) | K::And(a, b) | K::Or(a, b) => {
                [a, b].into_iter().for_each(|e| f(e));
            }
            K::Let(_, a, b)
            | K::LetObject { object: a, body: b, .. }
            | K::Assign { place: a, value: b, .. } => {
                [a, b].into_iter().for_each(|e| f(e));
            }
            K::LetSome(_, a, b, c) | K::Cond(a, b, c) => [a, b, c].into_iter().for_each(|e| f(e)),
            K::Call { base, args, .. } => base.as_deref().into_iter().chain(args).for_each(f),
            K::Host(_, args) | K::New { args, .. } | K::Seq(args) => args.iter().for_each(f),
            K::Try(a, arms) => std::iter::once(&**a).chain(arms.iter().map(|a| &a.1)).for_each(f),
            K::Inlined { args, body, .. } => args.iter().map(|a| &a.1).chain([&**body]).for_each(f),
        }
    }
    /// The operands, in the order of evaluation.
    pub fn operands(&self) -> Vec<&Expr> {
        let mut all = Vec::new();
        self.each_operand(&mut |e| all.push(e));
        all
    }
    /// The operands, in the order of evaluation.
    pub fn operands_mut(&mut self) -> Vec<&mut Expr> {
        use ExprKind as K;
        VISITS.with(|n| n.set(n.get() + 1));
        match &mut self.kind {
            K::Int(_) | K::Bool(_) | K::Text(_) | K::NoneValue | K::Local(_) | K::SelfPtr | K::Raise(_) => {
                vec![]
            }
            K::Some(a) | K::Length(a) | K::Delete(a) | K::Prefix(_, a) | K::Convert(a) | K::IsSome(a) => {
                vec![a]
            }
            K::Downcast(_, a) | K::Outline(a) | K::Step { place: a, .. } => vec![a],
            K::Field { base, index, .. } => {
                std::iter::once(&mut **base).chain(index.as_deref_mut()).collect()
            }
            K::ByteAt(a, b) | K::Binary(_, a, b) | K::Default(a, b) | K::And(a, b) | K::Or(a, b) => {
                vec![a, b]
            }
            K::Let(_, a, b)
            | K::LetObject { object: a, body: b, .. }
            | K::Assign { place: a, value: b, .. } => {
                vec![a, b]
            }
            K::LetSome(_, a, b, c) | K::Cond(a, b, c) => vec![a, b, c],
            K::Call { base, args, .. } => base.as_deref_mut().into_iter().chain(args).collect(),
            K::Host(_, args) | K::New { args, .. } | K::Seq(args) => args.iter_mut().collect(),
            K::Try(a, arms) => std::iter::once(&mut **a).chain(arms.iter_mut().map(|a| &mut a.1)).collect(),
            K::Inlined { args, body, .. } => args.iter_mut().map(|a| &mut a.1).chain([&mut **body]).collect(),
        }
    }
    /// Calls a function on this expression and all expressions in it.
    pub fn walk(&self, f: &mut dyn FnMut(&Expr)) {
        f(self);
        self.each_operand(&mut |e| e.walk(f));
    }
    /// The number of operations.
    pub fn size(&self) -> usize {
        let mut n = 0;
        self.walk(&mut |_| n += 1);
        n
    }
    /// The module of which this operation creates an object.
    pub fn creates(&self) -> Option<ModuleId> {
        match self.kind {
            ExprKind::New { module, .. } => Some(module),
            _ => None,
        }
    }
}
