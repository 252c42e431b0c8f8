// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs without errors. Methods call only methods that come after them, so that every program ends.

use std::fmt::Write;

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 24
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// The types of values in random programs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ty {
    Int,
    Uint,
    Uchar,
    Short,
    Long,
    Seq,
    Bool,
    Void,
}

const VALUES: [Ty; 7] = [Ty::Int, Ty::Uint, Ty::Uchar, Ty::Short, Ty::Long, Ty::Seq, Ty::Bool];

fn name(ty: Ty) -> &'static str {
    match ty {
        Ty::Int => "int",
        Ty::Uint => "uint",
        Ty::Uchar => "uchar",
        Ty::Short => "short",
        Ty::Long => "long",
        Ty::Seq => "seqint",
        Ty::Bool => "bool",
        Ty::Void => "void",
    }
}

/// The method with each number has the type with this number, modulo the number of types, and one parameter.
fn method_type(m: usize) -> Ty {
    [Ty::Int, Ty::Void, Ty::Uint, Ty::Bool, Ty::Uchar, Ty::Seq, Ty::Long, Ty::Short][m % 8]
}

const METHODS: usize = 12;

struct Writer {
    r: Random,
    /// The variables in scope.
    scope: Vec<(String, Ty)>,
    /// The number of the method that is written. It calls methods with greater numbers.
    method: usize,
    variables: usize,
    /// The depth of the inheritance of the module, for `super`.
    level: usize,
    calls: usize,
    /// Whether the method has an object of a module of the hierarchy.
    inside: bool,
}

impl Writer {
    fn type_of_value(&mut self) -> Ty {
        VALUES[self.r.below(VALUES.len())]
    }

    fn literal(&mut self, ty: Ty) -> String {
        match ty {
            Ty::Bool => self.r.pick(&["true", "false"]).to_string(),
            Ty::Uchar => self.r.below(256).to_string(),
            Ty::Short => (self.r.below(300)).to_string(),
            Ty::Uint | Ty::Seq => format!("({}) {}", name(ty), self.r.next() as u32),
            Ty::Long => format!("(long) {}", self.r.next()),
            _ => self.r.pick(&["0", "1", "2", "7", "-1", "100", "-2147483648", "65535"]).to_string(),
        }
    }

    /// An expression of exactly this type.
    fn value(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 {
            return self.leaf(ty);
        }
        let d = depth - 1;
        let cast = |text: String| format!("({}) ({text})", name(ty));
        match self.r.below(16) {
            0..=2 => self.leaf(ty),
            3 | 4 if ty == Ty::Bool => {
                let operand = self.type_of_value();
                let ops: &[&str] = if operand == Ty::Bool {
                    &["==", "!=", "&", "|", "^"]
                } else {
                    &["<", "<=", ">", ">=", "==", "!="]
                };
                let (a, op, b) = (self.value(operand, d), self.r.pick(ops), self.value(operand, d));
                format!("(({a}) {op} ({b}))")
            }
            3 | 4 => {
                let op = self.r.pick(&["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]);
                let (x, y) = (self.number_type(), self.number_type());
                let (a, b) = (self.value(x, d), self.value(y, d));
                cast(format!("({a}) {op} ({b})"))
            }
            5 if ty == Ty::Bool => {
                let (a, b) = (self.value(Ty::Bool, d), self.value(Ty::Bool, d));
                let op = self.r.pick(&["&&", "||"]);
                format!("(({a}) {op} ({b}))")
            }
            5 | 6 if ty == Ty::Bool => {
                let (a, b) = (self.value(Ty::Bool, d), self.action(d));
                format!("(({a}) ==> {b})")
            }
            5 if ty != Ty::Bool => {
                let a = self.value(ty, d);
                let op = self.r.pick(&["-", "~"]);
                cast(format!("{op}({a})"))
            }
            6 | 7 => {
                let (c, a, b) = (self.value(Ty::Bool, d), self.value(ty, d), self.value(ty, d));
                format!("(({c}) ? ({a}) : ({b}))")
            }
            8 | 9 => {
                let (a, b) = (self.action(d), self.value(ty, d));
                format!("({a}, {b})")
            }
            10 => self.let_value(ty, d),
            11 => self.assignment(ty, d).map_or_else(|| self.leaf(ty), |a| format!("({a})")),
            12 | 13 => self.call(ty, d).unwrap_or_else(|| self.leaf(ty)),
            14 => {
                let (a, b, c) = (self.value(ty, d), self.value(ty, d), self.value(Ty::Bool, d));
                let exception = self.r.pick(&["@drop", "@ack-drop", "all"]);
                format!(
                    "(try (({c}) ==> {}), ({a}) catch {exception} ==> ({b}) end)",
                    self.r.pick(&["@drop", "@ack-drop"])
                )
            }
            _ => {
                let (a, b) = (self.value(ty, d), self.value(ty, d));
                let option = match self.r.below(2) {
                    0 => "none".to_string(),
                    _ => format!("({a})"),
                };
                let x = self.fresh();
                match self.r.below(2) {
                    0 => format!("(let {x} :> ?{} = {option} in {x} ?? ({b}) end)", name(ty)),
                    _ => {
                        let y = self.fresh();
                        format!("(let {x} :> ?{} = {option}, {y} ?= {x} in {y} else ({b}) end)", name(ty))
                    }
                }
            }
        }
    }

    fn number_type(&mut self) -> Ty {
        match self.type_of_value() {
            Ty::Bool => Ty::Int,
            ty => ty,
        }
    }

    fn fresh(&mut self) -> String {
        self.variables += 1;
        format!("v-{}", ["a", "b", "c"][self.variables % 3].to_string() + &self.variables.to_string())
    }

    fn field(ty: Ty) -> String {
        format!("f-{}", name(ty))
    }

    fn leaf(&mut self, ty: Ty) -> String {
        let all: Vec<String> = self.scope.iter().filter(|v| v.1 == ty).map(|v| v.0.clone()).collect();
        match self.r.below(6) {
            0 | 1 if !all.is_empty() => all[self.r.below(all.len())].clone(),
            2 if self.inside => Self::field(ty),
            3 if ty == Ty::Uchar && self.inside => format!("arr[{}]", self.r.below(6)),
            3 if ty == Ty::Uchar => format!("({{ packet(1) }} + {})[{}]", self.r.below(50), self.r.below(5)),
            // The field of a packet, perhaps by its name alone.
            4 => self.packet_field(ty),
            5 if self.inside => format!("w-{}", name(ty)),
            _ => self.literal(ty),
        }
    }

    fn packet_field(&mut self, ty: Ty) -> String {
        format!("(({{ packet({}) }} + {}) as *W)->w-{}", self.r.below(3), self.r.below(12), name(ty))
    }

    fn let_value(&mut self, ty: Ty, d: usize) -> String {
        let (inner, x) = (self.type_of_value(), self.fresh());
        let value = self.value(inner, d);
        self.scope.push((x.clone(), inner));
        let body = self.value(ty, d);
        let action = self.action(d);
        self.scope.pop();
        format!("(let {x} :> {} = {value} in {action}, {body} end)", name(inner))
    }

    fn assignment(&mut self, ty: Ty, d: usize) -> Option<String> {
        let locals: Vec<String> = self.scope.iter().filter(|v| v.1 == ty).map(|v| v.0.clone()).collect();
        let place = match self.r.below(4) {
            0 | 1 if !locals.is_empty() => locals[self.r.below(locals.len())].clone(),
            2 if ty == Ty::Uchar && self.inside => {
                let index = self.value(Ty::Uint, d.min(1));
                format!("arr[({index}) % 5]")
            }
            3 if ty == Ty::Uchar => format!("({{ packet(1) }})[{}]", self.r.below(44)),
            3 => self.packet_field(ty),
            2 if self.inside => format!("w-{}", name(ty)),
            _ if self.inside => Self::field(ty),
            _ => return None,
        };
        if ty != Ty::Bool && self.r.below(4) == 0 {
            return Some(match self.r.below(2) {
                0 => format!("{}{place}", self.r.pick(&["++", "--"])),
                _ => format!("{place}{}", self.r.pick(&["++", "--"])),
            });
        }
        let op = match ty {
            Ty::Bool => self.r.pick(&["=", "&=", "|=", "^="]),
            _ => self
                .r
                .pick(&["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "max=", "min="]),
        };
        let value = self.value(ty, d);
        Some(format!("{place} {op} ({value})"))
    }

    /// A call of a method of this type, if there is one after the current method.
    fn call(&mut self, ty: Ty, d: usize) -> Option<String> {
        let all: Vec<usize> = (self.method + 1..METHODS).filter(|m| method_type(*m) == ty).collect();
        if all.is_empty() || self.calls == 0 {
            return None;
        }
        self.calls -= 1;
        let m = all[self.r.below(all.len())];
        let arg = self.value(Ty::Int, d.min(1));
        let hint = self.r.pick(&["", "", "", "inline ", "noinline ", "pathinline ", "outline "]);
        Some(match self.r.below(4) {
            0 if self.level > 0 && self.inside => format!("({hint}super.m{m}({arg}))"),
            1 => {
                let x = self.fresh();
                let module = self.r.below(4);
                format!("(let {x} = H{module} in {hint}{x}.m{m}({arg}) end)")
            }
            2 => format!("({hint}({{ pick(0); }}, new H{})->m{m}({arg}))", self.r.below(4))
                .replace("({ pick(0); }, new", "(new"),
            _ if self.inside => format!("({hint}m{m}({arg}))"),
            _ => format!("({hint}(new H{})->m{m}({arg}))", self.r.below(4)),
        })
    }

    /// An expression whose value is not used.
    fn action(&mut self, depth: usize) -> String {
        if depth == 0 {
            return format!("{{ log({}); }}", self.r.below(100));
        }
        let d = depth - 1;
        match self.r.below(8) {
            0 => {
                let value = self.value(Ty::Int, d);
                format!("{{ log({value}); }}")
            }
            1 => {
                let value = self.value(Ty::Uint, d);
                format!("{{ say(\"x\\\"{{\", pick({})); say(\"y\", {value}); }}", self.r.below(9))
                    .replace("pick(", "(")
            }
            2 | 3 => {
                let ty = self.type_of_value();
                match self.assignment(ty, d) {
                    Some(a) => format!("({a})"),
                    None => self.action(d),
                }
            }
            4 => self.call(Ty::Void, d).unwrap_or_else(|| self.action(d)),
            5 => {
                let (c, a, b) = (self.value(Ty::Bool, d), self.action(d), self.action(d));
                format!("(({c}) ? ({a}, {{}}) : ({b}, {{}}))")
            }
            6 => {
                let (c, a) = (self.value(Ty::Bool, d), self.action(d));
                match self.r.below(3) {
                    0 => format!("(({c}) || {a})"),
                    1 => format!("(({c}) ==> outline ({a}, {a}))"),
                    _ => format!("(({c}) ==> {a})"),
                }
            }
            _ => {
                let ty = self.type_of_value();
                self.value(ty, d)
            }
        }
    }

    fn body(&mut self, m: usize, level: usize, inside: bool) -> String {
        (self.method, self.level, self.calls, self.inside) = (m, level, 3, inside);
        self.scope = vec![("p".into(), Ty::Int)];
        let ty = method_type(m);
        match ty {
            Ty::Void => format!("{}, {}", self.action(3), self.action(2)),
            ty => self.value(ty, 4),
        }
    }
}

/// A program: a hierarchy of modules H0 to H3 with the methods m0 to m11, some of which each module defines, and a main
/// module.
pub fn program(seed: u64) -> String {
    let r = Random::new(seed);
    let mut w = Writer { r, scope: Vec::new(), method: 0, variables: 0, level: 0, calls: 0, inside: true };
    let mut out = String::new();
    let parents = [0, 0, w.r.below(2), w.r.below(3)];
    for (module, parent) in parents.into_iter().enumerate() {
        let head = if module == 0 {
            "module H0 {\n".into()
        } else {
            format!("module H{module} :> H{} {{\n", parent)
        };
        out.push_str(&head);
        if module == 0 {
            out.push_str("exception drop, ack-drop;\nfield arr :> uchar[4];\nfield wire :> *W using;\n");
            out.push_str("constructor ::= wire = { packet(0) } as *W;\n");
            for ty in VALUES {
                let _ = writeln!(out, "field {} :> {};", Writer::field(ty), name(ty));
            }
        }
        let level = usize::from(module > 0);
        for m in 0..METHODS {
            if module == 0 || w.r.below(4) == 0 {
                let body = w.body(m, level, true);
                let _ = writeln!(out, "m{m}(p :> int) :> {} ::= {body};", name(method_type(m)));
            }
        }
        out.push('}');
        if w.r.below(2) == 0 {
            let _ = write!(
                out,
                " {} m{}",
                w.r.pick(&["inline", "noinline", "pathinline", "outline"]),
                w.r.below(METHODS)
            );
        }
        out.push('\n');
    }
    let ty = w.type_of_value();
    out = out.replace('@', "");
    out.push_str("module Main {\n");
    let body = {
        (w.method, w.level, w.calls, w.inside) = (0, 0, 4, false);
        w.scope = vec![];
        w.value(ty, 4)
    };
    let _ = writeln!(out, "main :> {} ::= let h = H3 in {{ log(h.m0(3)); }}, {body} end;\n}}", name(ty));
    out = out.replace('@', "Top.");
    // A view of packets, with fields of every type.
    out.push_str("module W {\n");
    for (i, ty) in VALUES.into_iter().enumerate() {
        let order = w.r.pick(&["", " little", " big"]);
        let place = if i == 0 || w.r.below(3) == 0 { format!(" at {}", 16 * i / 3) } else { String::new() };
        let _ = writeln!(out, "field w-{} :> {}{place}{order};", name(ty), name(ty));
    }
    out.push_str("}\n");
    out.push_str("module Top { exception drop, ack-drop; }\n");
    out.replace("exception drop, ack-drop;\nfield", "field").replace("module H0 {", "module H0 :> Top {")
}
