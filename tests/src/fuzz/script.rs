// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for scripts under simulated time.

use super::{at_most, load};
use castanet_lang::Diagnostic;
use castanet_lang::args::split;

/// Words of instructions that access files or send signals to processes, and characters from which such words could be
/// composed.
const OUTSIDE: &[&str] =
    &["kill", "cat", "save", "append", "handlers", "list", "classes", ">", "\\", "%c", "$$"];

/// Keeps only the harmless instructions of a script. Output goes to /dev/null.
fn harmless(text: &str) -> String {
    let mut kept = Vec::new();
    for range in split(text) {
        let instruction = text.get(range).unwrap_or("").trim();
        if OUTSIDE.iter().any(|w| instruction.contains(w)) {
            continue;
        }
        let printed = ["printnq", "printq", "printn", "print"].iter().find_map(|w| {
            let rest = instruction.strip_prefix(w)?;
            (rest.is_empty() || rest.starts_with(char::is_whitespace))
                .then(|| format!("{w} >/dev/null {rest}"))
        });
        kept.push(printed.unwrap_or_else(|| instruction.to_string()));
    }
    kept.join(", ")
}

/// The classes of the elements in the test configuration. Inputs may not add others.
const CLASSES: &[&str] =
    &["InfiniteSource", "Counter", "Queue", "Unqueue", "Script", "Discard", "DriverManager", "Fuse"];

/// Runs two scripts. The input is a driver script up to a zero byte, then a script that processes packets and has an
/// exported variable.
pub fn script(data: &[u8]) {
    let text = String::from_utf8_lossy(at_most(data, 2048));
    let (driver, packet) = text.split_once('\0').unwrap_or((&text, ""));
    let (driver, packet) = (harmless(driver), harmless(packet));
    let text = format!(
        "InfiniteSource(LIMIT 5) -> c :: Counter -> q :: Queue(3) -> Unqueue
            -> s :: Script(TYPE PACKET, export v 1, {packet}\n) -> d :: Discard;
        DriverManager({driver}\n);
        Fuse(2048);"
    );
    let (graph, sources, diagnostics) = load::graph(&text);
    if diagnostics.iter().any(Diagnostic::is_error) {
        load::show(&sources, &diagnostics);
        return;
    }
    let mut classes: Vec<_> = graph.flat.elements.iter().map(|e| e.class.as_str()).collect();
    classes.sort_unstable();
    let mut expected = CLASSES.to_vec();
    expected.sort_unstable();
    if classes != expected {
        return;
    }
    if let Ok(mut router) = load::router_of(graph, &sources, 32, 1) {
        load::run(&mut router);
    }
}
