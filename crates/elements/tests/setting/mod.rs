// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes an element out of the example of its class, with everything that it refers to.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)]

use castanet_element::spec::ClassSpec;
use castanet_graph::Graph;
use parking_lot::Mutex;
use std::fmt::Write as _;
use std::path::Path;

/// Returns the first configuration in the section `# Example` of a class's documentation.
pub fn example(spec: &ClassSpec) -> Option<String> {
    let (_, rest) = spec.doc.split_once("# Example")?;
    let (_, rest) = rest.split_once("```click\n")?;
    Some(rest.split_once("```")?.0.to_string())
}

/// Runs `f` in a temporary folder, from which the repository's folder conf can be reached. Only one call runs
/// at a time.
pub fn in_own_folder<R>(f: impl FnOnce() -> R) -> R {
    static FOLDER: Mutex<()> = Mutex::new(());
    let _guard = FOLDER.lock();
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    std::os::unix::fs::symlink(root.join("conf"), folder.path().join("conf")).unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    let out = f();
    std::env::set_current_dir(&root).unwrap();
    out
}

/// Whether a configuration string mentions an element of this name.
fn is_named(config: &str, name: &str) -> bool {
    config.split(|c: char| !(c.is_alphanumeric() || "_@/".contains(c))).any(|word| word == name)
}

/// Returns configuration text that declares element `e` of a graph, under the name `x`, and the elements that `e` may
/// refer to.
pub fn neighbours(graph: &Graph, e: usize) -> String {
    let element = graph.element(e).unwrap();
    let mut text = String::new();
    // Includes all elements without ports: information elements, and others that arguments may refer to.
    for (other, x) in graph.flat.elements.iter().enumerate() {
        if other != e
            && graph.inputs(other) + graph.outputs(other) == 0
            && x.class != "Script"
            && x.class != "DriverManager"
        {
            let _ = writeln!(text, "{} :: {}({});", x.name.replace('@', "_"), x.class, x.config);
        } else if other != e && is_named(&element.config, &x.name) {
            let _ = writeln!(text, "{} :: {}({});", x.name, x.class, x.config);
            for i in 0..graph.inputs(other) {
                let _ = writeln!(text, "Idle -> [{i}] {};", x.name);
            }
            for o in 0..graph.outputs(other) {
                let _ = writeln!(text, "{} [{o}] -> Discard;", x.name);
            }
        }
    }
    let _ = writeln!(text, "x :: {}({});", element.class, element.config);
    text
}
