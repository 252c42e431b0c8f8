// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for programs in Prolac: formatting, typing, interpreting, compiling.

use super::at_most;
use castanet_lang::render::render_pretty;
use castanet_lang::{Diagnostic, Sources};
use castanet_prolac::format::format;
use castanet_prolac::interp::{Machine, NoHost, Value};
use castanet_prolac::load::{Extensions, NoFiles};
use castanet_prolac::optimise::Optimisations;
use castanet_prolac::program::ModuleId;
use castanet_prolac::syntax::tree;
use castanet_prolac::{graph, outline, rust, stats};

/// The operations that the interpreter may take.
const FUEL: u64 = 5_000;

/// Takes bytes as a program. Its syntax tree must have the text, and a formatted program must be formatted. If it has no syntax
/// errors, it is drawn. If it has no errors, it is compiled with and without optimisations, and the method `main` of each
/// module runs.
pub fn prolac(data: &[u8]) {
    let text = String::from_utf8_lossy(at_most(data, 4096));
    let mut sources = Sources::new();
    let file = sources.add("input.pc", &*text);
    let (root, syntax_errors) = tree(&sources, file);
    assert_eq!(root.text().to_string(), text);
    if let Ok(formatted) = format(&sources, file) {
        let again = sources.add("formatted.pc", formatted.as_str());
        assert_eq!(format(&sources, again).as_deref(), Ok(formatted.as_str()));
    }
    let (program, diagnostics) = castanet_prolac::analyse(&mut sources, file, &NoFiles, &Extensions::All);
    render_pretty(&sources, &diagnostics, false);
    if syntax_errors.is_empty() {
        assert!(graph::svg(&program).starts_with("<svg "));
    }
    if diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    for set in [Optimisations::ALL, Optimisations::NONE] {
        assert!(rust::compile(&program, set).text.contains("pub trait Host"));
    }
    outline::outline(&program);
    let _ = stats::stats(&program, Optimisations::ALL).to_string();
    for m in (0..program.modules.len()).filter(|m| program.modules[*m].punned.is_none()) {
        let mut host = NoHost;
        let mut machine = Machine::new(&program, &mut host, FUEL);
        machine.memory.packets.push(at_most(data, 64).to_vec());
        let params = program.modules[m].constructor.map_or(0, |c| program.method(c).params.len());
        if let Ok(object) = machine.create(ModuleId(m), vec![Value::Number(1); params]) {
            let _ = machine.call(ModuleId(m), "main", object, Vec::new());
        }
    }
}
