// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet explain`: which worker reaches which element, and why, which tasks get several turns at once, and which
//! elements become machine code.

use crate::args::Explain;
use crate::kernel::Driver;
use crate::load::{Source, complain, load, show, write_out};
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, Unknown};
use castanet_runtime::kernel::Programs;
use std::process::ExitCode;

/// Prints the placement of a configuration on workers.
pub fn main(args: &Explain) -> ExitCode {
    let source = match Source::read(&args.configuration) {
        Ok(s) => s,
        Err(e) => {
            complain(&e);
            return ExitCode::FAILURE;
        }
    };
    let mut loaded = load(&source, args.configuration.clickpath.as_deref(), Unknown::Error);
    let mut diagnostics = std::mem::take(&mut loaded.diagnostics);
    let mut text = String::new();
    if args.driver == Driver::Xdp && !diagnostics.iter().any(Diagnostic::is_error) {
        let graph = args.driver.apply(loaded.graph.clone(), loaded.classes.as_ref());
        match castanet_runtime::in_kernel::compile(graph, loaded.classes.as_ref()) {
            Some((graph, programs)) => text = in_kernel(&graph, &programs),
            None => diagnostics.extend(castanet_runtime::check(
                loaded.graph.clone(),
                loaded.classes.clone(),
                &castanet_runtime::Options::default(),
            )),
        }
    } else if !diagnostics.iter().any(Diagnostic::is_error) {
        // Add the CompleteOffload elements that `run` inserts, so that the placement includes them.
        let (graph, more) = castanet_graph::offload::complete(loaded.graph, loaded.classes.as_ref());
        diagnostics.extend(more);
        let (placement, more) = castanet_runtime::place(&graph, loaded.classes.as_ref(), args.workers);
        text = placement.explain(&graph);
        // Other workers may run between the turns of a worker.
        let paths = castanet_runtime::explain_paths(graph.clone(), loaded.classes.as_ref());
        if args.workers == 1
            && let Some((graph, quanta)) = castanet_runtime::several_turns(graph, loaded.classes.as_ref())
        {
            text = format!("{text}\n{}", quanta.explain(&graph));
        }
        if let Some(paths) = paths.filter(|p| !p.is_empty()) {
            text = format!("{text}\n{paths}");
        }
        diagnostics.extend(more);
    }
    show(&loaded.sources, &diagnostics, args.configuration.json);
    if let Err(e) = write_out(None, &text) {
        complain(&e);
        return ExitCode::FAILURE;
    }
    if diagnostics.iter().any(Diagnostic::is_error) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns a table of the elements that packets of devices reach by push: where each runs, and why not in the kernel.
fn in_kernel(graph: &Graph, programs: &Programs) -> String {
    let mut rows =
        vec![["element", "class", "runs", "instructions", "packets go up, because"].map(String::from)];
    let row = |e: u32, runs: &str, instructions: Option<usize>, why: Option<&String>| {
        let name = graph.name(e as usize).to_string();
        let class = graph.element(e as usize).map_or(String::new(), |x| x.class.to_string());
        let instructions = instructions.map_or("-".to_string(), |n| n.to_string());
        [name, class, runs.to_string(), instructions, why.cloned().unwrap_or_default()]
    };
    for (e, report) in programs.elements() {
        let (runs, instructions) = match report.states {
            0 => ("at user level", None),
            _ => ("in the kernel", Some(report.instructions)),
        };
        rows.push(row(e, runs, instructions, report.up.as_ref()));
    }
    rows.extend(programs.refused.iter().map(|(e, why)| row(*e, "at user level", None, Some(why))));
    let width = |column: usize| rows.iter().filter_map(|r| r.get(column)).map(String::len).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let mut text = String::new();
    for [name, class, runs, instructions, why] in &rows {
        let line = format!(
            "{name:a$}  {class:b$}  {runs:c$}  {instructions:>d$}  {why}",
            a = widths[0],
            b = widths[1],
            c = widths[2],
            d = widths[3]
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for (_, device, program) in &programs.programs {
        let parts = match program.parts.len() {
            0 | 1 => String::new(),
            n => format!(" in {n} parts"),
        };
        text.push_str(&format!("program for {device}: {} instructions{parts}\n", program.instructions()));
    }
    if rows.len() == 1 {
        return "no device can receive with METHOD XDP\n".into();
    }
    text
}
