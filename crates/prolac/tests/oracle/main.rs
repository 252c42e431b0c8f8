// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiled programs do what the interpreter does, under every set of optimisations, and compile without a warning.
#![allow(clippy::unwrap_used)]

mod random;

use castanet_diagnostic::render::render_pretty;
use castanet_diagnostic::{Diagnostic, Sources};
use castanet_prolac::arith;
use castanet_prolac::interp::{Host, Machine, Memory, Stop, Value};
use castanet_prolac::load::{Extensions, NoFiles};
use castanet_prolac::optimise::Optimisations;
use castanet_prolac::program::{ModuleId, Program, Type};
use castanet_prolac::rust::compile;
use castanet_prolac::syntax::{SyntaxKind, SyntaxNode};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The functions of the host that all programs of the tests share.
const HOST: &str = "host log(n :> int);\nhost say(text :> string, n :> uint);\nhost pick(n :> uint) :> uint;
host packet(n :> uint) :> bytes;\n";

/// The packets of every run.
fn packets() -> Vec<Vec<u8>> {
    vec![(0..40).collect(), (0..40u32).map(|n| (n * 37 % 251) as u8).collect()]
}

/// All sets of optimisations.
fn sets() -> [Optimisations; 16] {
    std::array::from_fn(|n| Optimisations {
        hierarchy: n & 1 != 0,
        inline: n & 2 != 0,
        path_inline: n & 4 != 0,
        outline: n & 8 != 0,
    })
}

struct Log(String);

impl Host for Log {
    fn call(&mut self, _: &mut Memory, name: &str, args: &[Value]) -> Value {
        let number = |n: usize| args.get(n).map_or(0, Value::number);
        match (name, args.first()) {
            ("say", Some(Value::Text(text))) => {
                let _ = write!(self.0, "{text}{} ", number(1) as u32);
            }
            ("log", _) => {
                let _ = write!(self.0, "{} ", number(0) as i32);
            }
            ("pick", _) => {
                let _ = write!(self.0, "?{} ", number(0) as u32);
                return Value::Number((number(0) * 7 + 3) & 0xffff_ffff);
            }
            ("packet", _) => return Value::Bytes(number(0) as u32, 0),
            _ => {}
        }
        Value::Void
    }
}

/// The same host in Rust, and how results are shown.
const DRIVER: &str = r#"
pub trait Show { fn show(self) -> String; }
impl Show for () { fn show(self) -> String { "void".into() } }
impl Show for bool { fn show(self) -> String { u8::from(self).to_string() } }
macro_rules! shows { ($($t:ty)*) => {$(impl Show for $t { fn show(self) -> String { self.to_string() } })*} }
shows!(i8 u8 i16 u16 i32 u32 i64 u64);
impl<T: Show, E: std::fmt::Debug> Show for Result<T, E> {
    fn show(self) -> String { match self { Ok(v) => v.show(), Err(e) => format!("raises {e:?}") } }
}
pub enum Infallible {}
impl Show for std::convert::Infallible { fn show(self) -> String { match self {} } }
#[derive(Default)]
pub struct Log(pub std::cell::RefCell<String>);
"#;

const HOST_OF_PROGRAM: &str = r#"
impl Host for crate::Log {
    fn log(&self, _: &Cx<'_, Self>, n: i32) { self.0.borrow_mut().push_str(&format!("{n} ")); }
    fn say(&self, _: &Cx<'_, Self>, text: &str, n: u32) { self.0.borrow_mut().push_str(&format!("{text}{n} ")); }
    fn pick(&self, _: &Cx<'_, Self>, n: u32) -> u32 {
        self.0.borrow_mut().push_str(&format!("?{n} "));
        n.wrapping_mul(7).wrapping_add(3)
    }
    fn packet(&self, _: &Cx<'_, Self>, n: u32) -> Bytes { Bytes { packet: n, offset: 0 } }
}
pub fn run(packets: &[Vec<u8>; 2]) -> String {
    let mut packets = packets.clone();
    let (host, state) = (crate::Log::default(), State::default());
    let cells = packets.each_mut().map(|p| Cell::from_mut(p.as_mut_slice()).as_slice_of_cells());
    let cx = Cx { host: &host, state: &state, packets: Packets::new(cells) };
    let result = crate::Show::show(main::main(&cx, cx.main(main::create(&cx))));
    let bytes: Vec<String> = cells.iter().map(|p| p.iter().map(|b| format!("{:02x}", b.get())).collect()).collect();
    format!("{result} | {}| {}", host.0.borrow(), bytes.join(" "))
}
"#;

fn analyse(text: &str) -> (Program, Vec<Diagnostic>, Sources) {
    let mut sources = Sources::new();
    let file = sources.add("test.pc", text);
    let (program, diagnostics) = castanet_prolac::analyse(&mut sources, file, &NoFiles, &Extensions::none());
    (program, diagnostics, sources)
}

fn interpreted(program: &Program) -> String {
    let mut log = Log(String::new());
    let main = ModuleId(program.modules.iter().position(|m| m.name == "Main").unwrap());
    let mut machine = Machine::new(program, &mut log, 10_000_000);
    machine.memory.packets = packets();
    let object = machine.create(main, Vec::new()).unwrap();
    let result = machine.call(main, "main", object, Vec::new()).unwrap();
    let ty = program.methods.iter().find(|m| m.module == main && m.name == "main").unwrap().result.clone();
    let shown = match (&result, &ty) {
        (Ok(Value::Number(n)), Type::Int(i)) if i.bits == 64 && !i.signed => n.to_string(),
        (Ok(Value::Number(n)), ty) => arith::signed(*n, ty).to_string(),
        (Ok(_), _) => "void".into(),
        (Err(Stop::Raised(e)), _) => {
            let words = program.exceptions[e.0].name.split('-');
            format!("raises {}", words.map(|w| w[..1].to_uppercase() + &w[1..]).collect::<String>())
        }
        (Err(Stop::Limit), _) => "limit".into(),
    };
    let memory = machine.memory.packets.clone();
    let bytes: Vec<String> = memory.iter().map(|p| p.iter().map(|b| format!("{b:02x}")).collect()).collect();
    format!("{shown} | {}| {}", log.0, bytes.join(" "))
}

fn rustc(args: &[&str], folder: &Path) {
    let out =
        Command::new("rustc").args(["--edition", "2024"]).args(args).current_dir(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{}", errors.chars().take(6_000).collect::<String>());
}

/// Compiles programs under all sets of optimisations, runs them, and compares with the interpreter. `KEEP_PROGRAMS` names a
/// file for the compiled programs.
fn agree(programs: &[(String, Program)]) {
    let folder = tempfile::tempdir().unwrap();
    let (mut library, mut main) = (DRIVER.to_string(), String::new());
    // The sets that give the program the same text share one compiled module.
    let (mut wanted, mut modules) = (Vec::new(), BTreeMap::new());
    let mut runtime = String::new();
    for (n, (_, program)) in programs.iter().enumerate() {
        let want = interpreted(program);
        if std::env::var_os("KEEP_PROGRAMS").is_some() {
            println!("{n}: {want}");
        }
        for set in sets() {
            let compiled = compile(program, set).text;
            let (text, rest) = compiled.split_once("/// Runtime of compiled Prolac").unwrap();
            runtime = format!("/// Runtime of compiled Prolac{rest}");
            let module = modules.len();
            let module = *modules.entry((n, text.to_string())).or_insert(module);
            wanted.push((n, set, module, want.clone()));
        }
    }
    let mut texts: Vec<_> = modules.into_iter().map(|((_, text), module)| (module, text)).collect();
    texts.sort();
    for (module, text) in texts {
        let _ =
            writeln!(library, "pub mod p{module} {{\npub use crate::runtime;\n{text}\n{HOST_OF_PROGRAM}}}");
        let _ = writeln!(main, "println!(\"{{}}\", programs::p{module}::run(&packets));");
    }
    library.push_str(&runtime);
    std::fs::write(folder.path().join("programs.rs"), &library).unwrap();
    let bytes: String = packets().iter().map(|p| format!("vec!{p:?}, ")).collect();
    let main = format!("fn main() {{ let packets: [Vec<u8>; 2] = [{bytes}];\n{main} }}");
    std::fs::write(folder.path().join("main.rs"), main).unwrap();
    if let Ok(keep) = std::env::var("KEEP_PROGRAMS") {
        std::fs::copy(folder.path().join("programs.rs"), keep).unwrap();
    }
    rustc(
        &["--crate-type", "rlib", "-D", "warnings", "-C", "overflow-checks=on", "programs.rs"],
        folder.path(),
    );
    rustc(&["main.rs", "--extern", "programs=libprograms.rlib"], folder.path());
    let out = Command::new(folder.path().join("main")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let out = String::from_utf8(out.stdout).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(wanted.len(), programs.len() * 16);
    for (n, set, module, want) in wanted {
        assert_eq!(lines[module], want, "{set:?}\n{}", programs[n].0);
    }
}

/// The texts of the example programs, with the functions of the host.
fn example_texts() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/examples");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|p| format!("{HOST}{}", std::fs::read_to_string(p).unwrap())).collect()
}

/// The example programs of the folder, which have no diagnostics.
#[test]
fn examples() {
    let mut programs = Vec::new();
    for text in example_texts() {
        let (program, diagnostics, sources) = analyse(&text);
        assert!(diagnostics.is_empty(), "{text}\n{}", render_pretty(&sources, &diagnostics, false));
        programs.push((text, program));
    }
    agree(&programs);
}

/// The text of a node, with the declarations of each block in another order. Fields keep their order, because a field without
/// an offset follows the one before it.
fn shuffled(node: &SyntaxNode, random: &mut random::Random) -> String {
    let block = matches!(node.kind(), SyntaxKind::Root | SyntaxKind::Body);
    if !block {
        let parts = node.children_with_tokens().map(|e| match (e.as_node(), e.as_token()) {
            (Some(n), _) => shuffled(n, random),
            (_, Some(t)) => t.text().to_string(),
            _ => String::new(),
        });
        return parts.collect();
    }
    let (fields, mut others): (Vec<_>, Vec<_>) = node.children().partition(|n| n.kind() == SyntaxKind::Field);
    for i in 1..others.len() {
        others.swap(i, random.below(i + 1));
    }
    let all: Vec<String> = fields.iter().chain(&others).map(|n| shuffled(n, random)).collect();
    match node.kind() {
        SyntaxKind::Root => all.join("\n"),
        _ => format!("{{\n{}\n}}", all.join("\n")),
    }
}

#[test]
fn the_order_of_declarations_does_not_matter() {
    let mut random = random::Random::new(5);
    for text in example_texts() {
        let want = interpreted(&analyse(&text).0);
        for _ in 0..10 {
            let mut sources = Sources::new();
            let file = sources.add("test.pc", text.as_str());
            let other = shuffled(&castanet_prolac::syntax::tree(&sources, file).0, &mut random);
            let (program, diagnostics, sources) = analyse(&other);
            assert!(diagnostics.is_empty(), "{other}\n{}", render_pretty(&sources, &diagnostics, false));
            assert_eq!(interpreted(&program), want, "{other}");
        }
    }
}

/// Random programs. `PROLAC_SEED` sets the first seed, `PROLAC_PROGRAMS` the number.
#[test]
fn random_programs() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (first, count) = (number("PROLAC_SEED", 1), number("PROLAC_PROGRAMS", 16));
    let mut programs = Vec::new();
    for seed in first..first + count {
        let text = format!("{HOST}// seed {seed}\n{}", random::program(seed));
        let (program, diagnostics, sources) = analyse(&text);
        let errors: Vec<_> = diagnostics.into_iter().filter(Diagnostic::is_error).collect();
        assert!(errors.is_empty(), "{text}\n{}", render_pretty(&sources, &errors, false));
        programs.push((text, program));
    }
    agree(&programs);
}
