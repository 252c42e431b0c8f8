// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the handlers that the option `-h` names: `ELEMENT.HANDLER`, where ELEMENT may be a glob or a class.

use castanet_runtime::{DriverElement, Router};
use globset::Glob;

/// The values of handlers, and the errors.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The values, as text for standard output.
    pub text: String,
    /// The errors, as lines for standard error.
    pub errors: Vec<String>,
}

/// Returns a function that tests whether a text matches `glob`, which may have `*`, `?` and `[...]`. If `glob` is
/// invalid, for example `[`, only an equal text matches.
pub fn matcher(glob: &str) -> impl Fn(&str) -> bool {
    let found = Glob::new(glob).map(|g| g.compile_matcher());
    let glob = glob.to_string();
    move |text| found.as_ref().map_or(text == glob, |m| m.is_match(text))
}

/// An element that a request can match.
enum Found {
    /// An element of the configuration, by its number.
    Element(u32, String),
    /// An element of the driver.
    Driver(DriverElement),
}

impl Found {
    fn name(&self) -> &str {
        match self {
            Found::Element(_, name) => name,
            Found::Driver(e) => &e.name,
        }
    }
    fn read(&self, handler: &str, router: &mut Router) -> Result<String, String> {
        match self {
            Found::Element(e, _) => {
                router.read(Some(*e), handler, "").map_err(|_| wrong(router, Some(*e), handler))
            }
            Found::Driver(e) => e.read(handler, "").map_err(|e| e.to_string()),
        }
    }
}

/// Returns the elements that a request matches, and whether their values are printed in blocks.
fn elements(router: &Router, pattern: &str) -> Result<(Vec<Found>, bool), String> {
    let shared = router.shared();
    let of_graph = shared.graph.flat.elements.iter().zip(0..);
    let all = of_graph.map(|(e, n)| (Found::Element(n, e.name.clone()), e.class.to_string()));
    let of_driver = shared.driver_elements().into_iter().map(|e| {
        let class = e.class.to_string();
        (Found::Driver(e), class)
    });
    let mut all: Vec<_> = all.chain(of_driver).collect();
    if let Some(i) = all.iter().position(|(found, _)| found.name() == pattern) {
        return Ok((vec![all.swap_remove(i).0], false));
    }
    if pattern.contains(['*', '?', '[']) {
        let matches = matcher(pattern);
        all.retain(|(found, _)| matches(found.name()));
    } else {
        all.retain(|(_, class)| class == pattern);
        if all.is_empty() {
            return Err(format!("no element '{pattern}'"));
        }
    }
    Ok((all.into_iter().map(|(found, _)| found).collect(), true))
}

/// Answers requests in order. A single request for one element prints the raw value. Several requests, or a pattern,
/// print one block for each value: the handler's name and a colon, the value, and an empty line.
pub fn answer(router: &mut Router, requests: &[String]) -> Answers {
    let mut out = Answers::default();
    let mut values: Vec<(String, String)> = Vec::new();
    let mut blocks = requests.len() > 1;
    for request in requests {
        let Some((pattern, handler)) = request.rsplit_once('.') else {
            match router.read(None, request, "") {
                Ok(v) => values.push((request.clone(), v)),
                Err(_) => out.errors.push(wrong(router, None, request)),
            }
            continue;
        };
        match elements(router, pattern) {
            Ok((found, many)) => {
                blocks |= many;
                let before = values.len();
                for e in found {
                    match e.read(handler, router) {
                        Ok(v) => values.push((format!("{}.{handler}", e.name()), v)),
                        Err(_) if many => {}
                        Err(text) => out.errors.push(text),
                    }
                }
                if many && values.len() == before {
                    out.errors.push(format!("no read handler matches '{request}'"));
                }
            }
            Err(e) => out.errors.push(e),
        }
    }
    for (name, value) in values {
        if blocks {
            out.text += &format!("{name}:\n");
        }
        out.text += &value;
        // No line end is added to an empty value in a block, because the block ends with an empty line anyway.
        let is_line = value.ends_with('\n') || blocks && value.is_empty();
        if !is_line {
            out.text.push('\n');
        }
        if blocks {
            out.text.push('\n');
        }
    }
    out
}

fn wrong(router: &Router, element: Option<u32>, handler: &str) -> String {
    let shared = router.shared();
    let name = shared.handler_name(element, handler);
    let declared = element.and_then(|e| shared.spec(e)).and_then(|s| s.handler(handler));
    let global = element.is_none() && shared.globals().any(|g| g.name == handler);
    if declared.is_some_and(|h| !h.readable()) || global {
        format!("'{name}' is a write handler")
    } else {
        format!("no '{name}' handler")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (g, t, want) in [
            ("*", "", true),
            ("*", "abc", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("?", "", false),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a]x", "bx", true),
            ("[]]", "]", true),
            ("[", "[", true),
            ("c*.d*", "c.d", true),
            ("**", "x", true),
            ("", "x", false),
        ] {
            assert_eq!(matcher(g)(t), want, "{g} {t}");
        }
        let evil = "*a".repeat(200);
        assert!(!matcher(&evil)(&"a".repeat(150)));
    }
}
