// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol language Prolac (Kohler, Kaashoek, Montgomery: A Readable TCP in the Prolac Protocol Language, SIGCOMM
//! 1999) and its compiler to Rust. The crate does not depend on the router.
#![forbid(unsafe_code)]

pub mod arith;
mod check;
pub mod format;
pub mod graph;
pub mod interp;
pub mod load;
pub mod optimise;
pub mod outline;
pub mod program;
mod resolve;
pub mod rust;
pub mod stats;
pub mod syntax;
pub mod tree;

#[cfg(test)]
mod random;

use castanet_diagnostic::{Diagnostic, FileId, Sources};
use load::{Extensions, Files};
use program::Program;

/// The size of the stack in bytes. Type inference recurses from a method to the methods that it calls.
const STACK: usize = 256 << 20;

/// Runs a function on a stack that is large enough for the recursion over any program. Returns none if no thread can be
/// started. A panic of the function goes on in the caller.
pub(crate) fn with_stack<R: Send>(f: impl FnOnce() -> R + Send) -> Option<R> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, f).ok()?;
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// A number of things, for messages: `1 module`, `2 modules`.
pub fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Reads and types the program that begins with the file `main`. The program can be run if no diagnostic is an error.
pub fn analyse(
    sources: &mut Sources,
    main: FileId,
    files: &(dyn Files + Sync),
    extensions: &Extensions,
) -> (Program, Vec<Diagnostic>) {
    let analysed = with_stack(|| {
        let loaded = load::load(sources, main, files, extensions);
        check::check(resolve::resolve(loaded))
    });
    let (program, mut diagnostics) = analysed.unwrap_or_else(|| {
        (
            Program::default(),
            vec![Diagnostic::error("the program could not be typed: no memory for a thread", None)],
        )
    });
    diagnostics.sort_by_key(|d| (d.span.map(|s| (s.file, s.start)), std::cmp::Reverse(d.severity)));
    diagnostics.dedup();
    (program, diagnostics)
}
