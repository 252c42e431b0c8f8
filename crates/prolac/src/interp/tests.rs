// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the language, feature by feature, as the interpreter runs it.

use super::*;
use crate::load::{Extensions, NoFiles};
use castanet_diagnostic::Sources;
use castanet_diagnostic::render::render_pretty;

/// Writes down the calls of the host.
#[derive(Default)]
struct Log(Vec<String>);

impl Host for Log {
    fn call(&mut self, _: &mut Memory, name: &str, args: &[Value]) -> Value {
        let show = |v: &Value| match v {
            Value::Text(text) => text.clone(),
            Value::Number(n) => n.to_string(),
            other => format!("{other:?}"),
        };
        self.0.push(format!("{name} {}", args.iter().map(show).collect::<Vec<_>>().join(" ")));
        Value::Number(7)
    }
}

/// Types a program, which must have no errors, and runs the method `main` of its module `Main`.
fn run(text: &str) -> (String, Vec<String>) {
    let mut sources = Sources::new();
    let file = sources.add("test.pc", text);
    let (program, diagnostics) = crate::analyse(&mut sources, file, &NoFiles, &Extensions::none());
    assert!(diagnostics.is_empty(), "{}", render_pretty(&sources, &diagnostics, false));
    let module = program.modules.iter().position(|m| m.name == "Main").map(ModuleId).expect("no module Main");
    let mut log = Log::default();
    let mut machine = Machine::new(&program, &mut log, 100_000);
    machine.memory.packets.push((0..32).collect());
    let object = machine.create(module, Vec::new());
    let result = object.and_then(|o| machine.call(module, "main", o, Vec::new()).expect("no method main"));
    let ty = |e: &ExceptionId| program.exceptions[e.0].name.clone();
    let shown = match &result {
        Ok(Value::Number(n)) => {
            let main =
                program.methods.iter().find(|m| m.name == "main").map_or(Type::Void, |m| m.result.clone());
            arith::signed(*n, &main).to_string()
        }
        Ok(other) => format!("{other:?}"),
        Err(Stop::Raised(e)) => format!("raises {}", ty(e)),
        Err(Stop::Limit) => "limit".into(),
    };
    (shown, log.0)
}

fn result(text: &str) -> String {
    run(text).0
}

fn value(e: &str) -> String {
    result(&format!("module Main {{ main ::= {e}; }}"))
}

#[test]
fn operators() {
    for (e, want) in [
        ("2 + 3 * 4", "14"),
        ("7 / 2 - 7 % 4", "0"),
        ("1 << 4 | 3", "19"),
        ("-5 / 2", "-2"),
        ("~0", "-1"),
        ("+5 - +-3", "8"),
        ("let a :> uchar = 200 in +a + (+ +a) end", "400"),
        ("let a :> short = -3 in -(+a) end", "3"),
        ("+(seqint) 0 - 1 > 0", "1"),
        ("sizeof(char) + sizeof(ushort) * 10 + sizeof(int32) * 100 + sizeof(ulong) * 1000", "8421"),
        ("sizeof(bool) + sizeof(seqint) + sizeof(uint[3])", "17"),
        ("let n = 3 in true ? n++, n * 2 : 0 end", "8"),
        (
            "let n = 1 in n <<= 5, n |= 3, n ^= 1, n &= ~(1 << 5), n %= 5, n /= 2, n -= 9, n *= -2, n >>= 1, n end",
            "8",
        ),
        ("3 < 4 && 4 <= 4", "1"),
        ("!(1 == 2) ? 10 : 20", "10"),
        ("(uchar) 300", "44"),
        ("(long) 5 / -1", "-5"),
        ("let a :> long = -1 in a end", "-1"),
        ("let a :> short = -1, b :> long = a in b + -1 end", "-2"),
        ("0x10 + 0b11", "19"),
        ("let a = 5 in a += 2, a *= 3, a end", "21"),
        ("let a = 5 in a max= 3, a min= 4, a end", "4"),
        ("let a = 5 in a++ * 10 + a end", "56"),
        ("let a = 1, b = a + 1 in --a, a + b end", "2"),
        ("false ==> 1", "0"),
        ("true ==> 0", "1"),
        ("false || (true ==> false)", "1"),
        ("let s = (seqint) 0xfffffff0 in s < s + 32 end", "1"),
        ("let s = (seqint) 5 in s - 10 > s end", "0"),
        ("let s = (seqint) 5, t = s + 100 in s - t end", "-100"),
        ("let x :> ?int = none in x ?? 3 end", "3"),
        ("let x :> ?int = 4 in (x ?? 3) + (x == none ? 1 : 0) end", "4"),
        ("let x :> ?int = 4 in let y ?= x in y + 1 else 0 end end", "5"),
        ("let x :> ?int = none in let y ?= x in y > 0 end end", "0"),
    ] {
        assert_eq!(value(e), want, "{e}");
    }
}

#[test]
fn void_last_operands() {
    let text = "host log(n :> int); module Main {
        say(n :> int) :> void ::= { log(n); };
        main ::= (false ==> say(1)) || (true ==> say(2)) || say(3);
    }";
    assert_eq!(run(text), ("1".into(), vec!["log 2".into()]));
    let text = "host log(n :> int); module Main { main ::= false || say; say :> void ::= { log(3); }; }";
    assert_eq!(run(text), ("1".into(), vec!["log 3".into()]));
}

#[test]
fn inheritance_and_super() {
    let text = "
        module Main { main ::= let c = Leaf(5) in c.twice end; }
        module Base { field n :> int; constructor(start :> int) ::= n = start; twice ::= 2 * hook; hook ::= n; }
        Middle { module M :> Base { hook ::= super.hook + 10; } }
        module Leaf :> Middle.M { hook ::= super.hook * 3; }";
    assert_eq!(result(text), "90");
    let text = "
        module Main { main ::= let p :> *A = new B, q = new A in p->m * 10 + q->m end; }
        module A { m ::= 1; } module B :> A { m ::= 2; }";
    assert_eq!(result(text), "21");
    let text = "module Main { main ::= let b = B(3) in b.x * 10 + b.y end; }
        module A { field x :> int; constructor(n :> int) ::= x = n; }
        module B :> A { field y :> int; constructor(n :> int) ::= super(n + 1), y = x + 1; }";
    assert_eq!(result(text), "45");
}

#[test]
fn methods_outside_modules_and_other_definitions() {
    let text = "
        Base.T.f(n :> int) ::= n + 1;
        module Main { main ::= let t = Ext.T in t.f(1) * 10 + t.Base.T.g end; }
        module Base.T { g ::= 3; }
        module Ext.T :> Base.T { }
        Ext.T.f(n :> int) ::= Base.T.f(n) + super.f(n);";
    let text = text.replace("t.Base.T.g", "t.g");
    assert_eq!(result(&text), "43");
}

#[test]
fn namespaces_answer_for_their_method() {
    let text = "module Main {
        main ::= trim + trim.inner + other;
        trim { trim ::= inner * 2; inner ::= 5; }
        deep { deep { deep ::= 100; } }
        other ::= deep.deep;
    }";
    assert_eq!(result(text), "115");
    let text = "module Main { main ::= let b = B in b.n end; }
        module A { n { n ::= part; part ::= 1; } }
        module B :> A { n { part ::= 7; } }";
    assert_eq!(result(text), "7");
}

#[test]
fn implicit_methods() {
    let text = "
        module Tcb { field una :> seqint; valid(n :> seqint) ::= n >= una; }
        module Seg { field left :> seqint; }
        module Main { main ::= let t = Tcb, s = Seg in t.una = 10, s.left = 20, let i = In(&t, &s) in i.run end end; }
        module In { field tcb :> *Tcb; field seg :> *Seg; constructor(t :> *Tcb, s :> *Seg) ::= tcb = t, seg = s;
            run ::= valid(left) && !valid(left - 11); } using (tcb, seg)";
    assert_eq!(result(text), "1");
}

#[test]
fn exceptions() {
    let text = "module Main { exception drop, ack-drop; main ::= try 1 + risky(3) catch drop ==> 8 end;
        risky(n :> int) ::= (n > 2 ==> bad), n; bad ::= drop; }";
    assert_eq!(result(text), "8");
    assert_eq!(result(&text.replace("n > 2", "n > 3")), "4");
    assert_eq!(result(&text.replace("bad ::= drop", "bad ::= ack-drop")), "raises ack-drop");
    assert_eq!(result(&text.replace("catch drop", "catch ack-drop ==> 1 catch all")), "8");
}

#[test]
fn objects_end_with_their_let() {
    let text = "module Main { exception e; main ::= (try (let a = A in a.n = 5, e end) catch e ==> 0 end),
        let b = A in b.n end; } module A { field n :> int; }";
    assert_eq!(result(text), "0");
    let text = "module Main { main ::= let p = new A in p->n = 3, delete p, let q = new A in q->n + (p == q ? 1 : 0) end end; }
        module A { field n :> int; }";
    assert_eq!(result(text), "1");
}

#[test]
fn downcasts() {
    let text = "module Main { main ::= is(new B) * 10 + is(new A); is(p :> *A) ::= let b ?= p as *B in b->x else 2 end; }
        module A { } module B :> A { x ::= 1; }";
    assert_eq!(result(text), "12");
}

#[test]
fn layout_over_bytes() {
    let text = "host packet :> bytes; module Main { main ::= let h = ({ packet() }) as *H in h->sum end; }
        module H { field a :> ushort at 2; field b :> ushort little; field c :> uint; field d :> uchar[4] at 16;
            sum ::= a == 0x203 && b == 0x504 && c == 0x08090a0b && d[1] == 17 && d[4] == 0
                && sizeof(H) == 20 && (self as bytes)->length == 32 && (self as bytes + 5)[1] == 6
                && (a = 0x1234, (self as bytes)[2] == 0x12); }";
    // The log returns a number for every call, so the packet is the first one by another way.
    let mut sources = Sources::new();
    let file = sources.add("test.pc", text);
    let (program, diagnostics) = crate::analyse(&mut sources, file, &NoFiles, &Extensions::none());
    assert!(diagnostics.is_empty(), "{}", render_pretty(&sources, &diagnostics, false));
    struct Packet;
    impl Host for Packet {
        fn call(&mut self, _: &mut Memory, _: &str, _: &[Value]) -> Value {
            Value::Bytes(0, 0)
        }
    }
    let mut host = Packet;
    let mut machine = Machine::new(&program, &mut host, 10_000);
    machine.memory.packets.push((0..32).collect());
    let main = machine.create(ModuleId(0), vec![]).expect("created");
    assert_eq!(machine.call(ModuleId(0), "main", main, vec![]), Some(Ok(Value::Number(1))));
    assert_eq!(machine.memory.packets[0][2..4], [0x12, 0x34]);
}

#[test]
fn static_methods_and_constants() {
    let text =
        "module F { const ack ::= 1 << 3; const both :> uint ::= ack | 1; static twice(n :> int) ::= 2 * n; }
        module Main { main ::= F.both + F.twice(F.ack) + C.x; } C { module M { } }
        module C { const x ::= 1; }";
    assert_eq!(result(text), "26");
}

#[test]
fn hide_show_and_rename() {
    let text = "module A { x ::= 1; y ::= 2; z ::= 3; } hide (x, y)
        module B :> A show x rename (z = w) { m ::= x * 10 + w; }
        module Quiet = B hide all show m;
        module Main { main ::= let b = B in part(&b) end; part(q :> *Quiet) ::= q->m; }";
    assert_eq!(result(text), "13");
}

#[test]
fn recursion_is_bounded() {
    assert_eq!(result("module Main { main :> int ::= main; }"), "limit");
    assert_eq!(
        result("module Main { main ::= f(10); f(n :> int) :> int ::= n == 0 ? 0 : n + f(n - 1); }"),
        "55"
    );
}
