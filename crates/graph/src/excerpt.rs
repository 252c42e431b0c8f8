// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes one element out of a configuration, so that it can run between other neighbours.

use crate::Graph;
use std::fmt::Write as _;

/// Whether a configuration string mentions an element of this name.
fn is_named(config: &str, name: &str) -> bool {
    config.split(|c: char| !(c.is_alphanumeric() || "_@/".contains(c))).any(|word| word == name)
}

/// Returns text that declares element `e` of a graph, under the name `name`, and the elements that `e` may refer to. The
/// ports of `e` are not connected. Returns an empty text if there is no such element.
///
/// Elements without ports are always included, because they define addresses and the like; scripts are not. Elements that
/// the configuration string of `e` mentions get no packets.
pub fn excerpt(graph: &Graph, e: usize, name: &str) -> String {
    let Some(element) = graph.element(e) else { return String::new() };
    let mut text = String::new();
    // Writing to a string cannot fail, so the results of `write!` are ignored.
    for (other, x) in graph.flat.elements.iter().enumerate().filter(|(other, _)| *other != e) {
        if graph.inputs(other) + graph.outputs(other) == 0 {
            if x.class != "Script" && x.class != "DriverManager" {
                let _ = writeln!(text, "{} :: {}({});", x.name.replace('@', "_"), x.class, x.config);
            }
        } else if is_named(&element.config, &x.name) {
            let _ = writeln!(text, "{} :: {}({});", x.name, x.class, x.config);
            for i in 0..graph.inputs(other) {
                let _ = writeln!(text, "Idle -> [{i}] {};", x.name);
            }
            for o in 0..graph.outputs(other) {
                let _ = writeln!(text, "{} [{o}] -> Discard;", x.name);
            }
        }
    }
    let _ = writeln!(text, "{name} :: {}({});", element.class, element.config);
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::graph;

    #[test]
    fn brings_what_the_element_refers_to() {
        let g = graph(
            "Script(stop); info :: Info; Source -> q :: Queue(3) -> Sink;
             Source -> t :: Strip(NEXT q, s_, NOT qq) -> s :: Strip -> qq :: Discard;",
        );
        let t = g.find("t").unwrap();
        assert_eq!(
            excerpt(&g, t, "x"),
            "info :: Info();\nq :: Queue(3);\nIdle -> [0] q;\nq [0] -> Discard;\nqq :: Discard();\nIdle -> [0] qq;\n\
             x :: Strip(NEXT q, s_, NOT qq);\n"
        );
        assert_eq!(excerpt(&g, g.find("s").unwrap(), "y"), "info :: Info();\ny :: Strip();\n");
        assert_eq!(excerpt(&g, 99, "x"), "");
    }
}
