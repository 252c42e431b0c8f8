// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints a flat configuration as text, in the forms of the driver and of the tools.

use crate::args::quote;
use crate::flat::{Connection, Element, Flat};
use crate::source::Sources;
use std::collections::HashMap;
use std::fmt::Write;

/// Prints the driver's form: requirements, declarations, a blank line, connections.
pub fn driver(flat: &Flat) -> String {
    driver_with(flat, &[])
}

/// Prints the text that is kept for a configuration with `require(compact_config)`. The text is the output of `driver`
/// with a blank line after the requirements.
pub fn compact(flat: &Flat) -> String {
    let mut out = String::new();
    requirements(flat, &mut out);
    out.push('\n');
    body(flat, &mut out);
    out
}

/// Prints the driver's form of a configuration whose variables are not substituted, with their definitions.
pub fn driver_with(flat: &Flat, defines: &[(String, String)]) -> String {
    let mut out = String::new();
    requirements(flat, &mut out);
    definitions(defines, &mut out);
    body(flat, &mut out);
    out
}

/// Prints declarations, a blank line, and connections.
fn body(flat: &Flat, out: &mut String) {
    for e in &flat.elements {
        declaration(e, out);
    }
    if !flat.connections.is_empty() {
        out.push('\n');
        connections(flat, out);
    }
}

/// Prints the form that Click's tools exchange. Besides the parts of the driver's form, it has the variable
/// definitions, a line directive before each element, and one before the connections.
pub fn tool(flat: &Flat, defines: &[(String, String)], sources: &Sources) -> String {
    let mut out = String::new();
    requirements(flat, &mut out);
    definitions(defines, &mut out);
    for e in &flat.elements {
        let place = sources.place(e.span);
        let _ = writeln!(out, "# {} \"{}\"", place.line, place.file);
        declaration(e, &mut out);
    }
    if !flat.connections.is_empty() {
        let line = out.bytes().filter(|&b| b == b'\n').count() + 2;
        let _ = writeln!(out, "# {line} \"\"");
        connections(flat, &mut out);
    }
    out
}

fn requirements(flat: &Flat, out: &mut String) {
    for (kind, name) in &flat.requirements {
        let _ = match name.as_str() {
            "" => writeln!(out, "require({kind});"),
            name => writeln!(out, "require({kind} {});", quote(name)),
        };
    }
}

/// Prints a statement that defines variables, and a blank line.
fn definitions(defines: &[(String, String)], out: &mut String) {
    if !defines.is_empty() {
        let all: Vec<String> =
            defines.iter().map(|(n, v)| format!("${n} {v}").trim_end().to_string()).collect();
        let _ = writeln!(out, "define({});\n", all.join(", "));
    }
}

fn declaration(e: &Element, out: &mut String) {
    let _ = match e.config.as_str() {
        "" => writeln!(out, "{} :: {};", e.name, e.class),
        config => writeln!(out, "{} :: {}({config});", e.name, e.class),
    };
}

/// For each connection that enters input 0 of an element, the connection with which the printed statement continues.
/// The statement continues with the first connection from the element's output 0 to an input 0. If there is none, it
/// continues with the last connection from output 0.
fn continuations(all: &[Connection]) -> Vec<Option<usize>> {
    let mut onward: HashMap<usize, usize> = HashMap::new();
    for (i, c) in all.iter().enumerate().filter(|(_, c)| c.from.port == 0) {
        let best = onward.entry(c.from.element).or_insert(i);
        if all.get(*best).is_some_and(|b| b.to.port != 0) {
            *best = i;
        }
    }
    let next = |c: &Connection| if c.to.port == 0 { onward.get(&c.to.element).copied() } else { None };
    all.iter().map(next).collect()
}

/// Prints one statement for each chain. A chain starts at each connection that continues no other; a cycle
/// starts at its first connection.
fn connections(flat: &Flat, out: &mut String) {
    let all = &flat.connections;
    let next = continuations(all);
    let mut starts = vec![true; all.len()];
    for n in next.iter().flatten() {
        if let Some(start) = starts.get_mut(*n) {
            *start = false;
        }
    }
    let name = |element: usize| flat.elements.get(element).map_or("?", |e| e.name.as_str());
    let mut printed = vec![false; all.len()];
    // The first pass prints the chains. All connections that are left for the second pass belong to cycles.
    for cycles in [false, true] {
        for first in 0..all.len() {
            let fresh = |printed: &[bool], i: usize| printed.get(i) == Some(&false);
            if !fresh(&printed, first) || !(cycles || starts.get(first) == Some(&true)) {
                continue;
            }
            let mut at = Some(first);
            while let Some((i, c)) =
                at.filter(|&i| fresh(&printed, i)).and_then(|i| all.get(i).map(|c| (i, c)))
            {
                if i == first {
                    out.push_str(name(c.from.element));
                    if c.from.port != 0 {
                        let _ = write!(out, " [{}]", c.from.port);
                    }
                } else {
                    out.push_str("\n   ");
                }
                out.push_str(" -> ");
                if c.to.port != 0 {
                    let _ = write!(out, "[{}] ", c.to.port);
                }
                out.push_str(name(c.to.element));
                if let Some(done) = printed.get_mut(i) {
                    *done = true;
                }
                at = next.get(i).copied().flatten();
            }
            out.push_str(";\n");
        }
    }
}

#[cfg(test)]
mod tests;
