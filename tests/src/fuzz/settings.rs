// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes one element of each class from the example in its documentation, and builds small routers around it.

use super::load;
use castanet_classes::Registry;
use castanet_graph::{Graph, PortKind};
use castanet_spec::ClassSpec;
use std::fmt::Write as _;
use std::sync::OnceLock;

/// An element of an example.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The class.
    pub spec: &'static ClassSpec,
    /// The configuration string.
    pub config: String,
    /// Whether each input is pulled.
    pub inputs: Vec<bool>,
    /// Whether each output is pulled.
    pub outputs: Vec<bool>,
    /// Declarations of other elements that the configuration string may refer to. No packets reach these elements.
    pub others: String,
}

/// Returns the first configuration in the `# Example` section of the documentation.
pub fn example(spec: &ClassSpec) -> Option<&'static str> {
    let (_, rest) = spec.doc.split_once("# Example")?;
    let (_, rest) = rest.split_once("```click\n")?;
    Some(rest.split_once("```")?.0)
}

fn is_script(spec: &ClassSpec) -> bool {
    matches!(spec.name, "Script" | "DriverManager")
}

/// Whether a configuration string mentions an element name.
fn is_named(config: &str, name: &str) -> bool {
    config.split(|c: char| !(c.is_alphanumeric() || "_@/".contains(c))).any(|word| word == name)
}

/// Returns a configuration string of an example for use in the current folder: its paths are relative to the root of the repository.
fn here(config: &str) -> String {
    config.replace("conf/", concat!(env!("CARGO_MANIFEST_DIR"), "/../conf/"))
}

/// Returns the setting of element `e`. Other elements of the example are part of it if the configuration string mentions them,
/// or if `all` is true.
fn setting(graph: &Graph, e: usize, spec: &'static ClassSpec, all: bool) -> Option<Setting> {
    let element = graph.element(e)?;
    let mut others = String::new();
    for (o, x) in graph.flat.elements.iter().enumerate() {
        let other = graph.spec(o)?;
        if o != e && graph.inputs(o) + graph.outputs(o) == 0 && !is_script(other) && other.name != "Fuse" {
            let _ = writeln!(others, "{} :: {}({});", x.name.replace('@', "_"), x.class, x.config);
        } else if o != e && (all && !is_script(other) || is_named(&element.config, &x.name)) {
            let name = x.name.replace('@', "_");
            let _ = writeln!(others, "{name} :: {}({});", x.class, here(&x.config));
            for i in 0..graph.inputs(o) {
                let _ = writeln!(others, "Idle -> [{i}] {name};");
            }
            for p in 0..graph.outputs(o) {
                let _ = writeln!(others, "{name} [{p}] -> Discard;");
            }
        }
    }
    let config = match spec.name {
        "DriverManager" => "set x 1, label a, pause, set x $(add $x 1), goto a".into(),
        _ => here(&element.config),
    };
    Some(Setting {
        spec,
        config,
        inputs: (0..graph.inputs(e)).map(|p| graph.input_kind(e, p) == PortKind::Pull).collect(),
        outputs: (0..graph.outputs(e)).map(|p| graph.output_kind(e, p) == PortKind::Pull).collect(),
        others,
    })
}

/// Returns the element from the example of each class, sorted by class name.
pub fn settings() -> &'static [Setting] {
    static ALL: OnceLock<Vec<Setting>> = OnceLock::new();
    ALL.get_or_init(|| {
        let of = |spec: &'static ClassSpec| {
            // Classes that open devices or sockets of the machine are left out. So is Error, because a router with an
            // Error element never starts.
            let opens = matches!(spec.name, "ControlSocket" | "ChatterSocket");
            if spec.module.contains("::device::") || opens || spec.name == "Error" {
                return None;
            }
            let (graph, ..) = load::graph(example(spec)?);
            let e = (0..graph.len()).find(|&e| graph.spec(e).is_some_and(|s| s.name == spec.name))?;
            let loads = |s: &Setting| load::router(&s.router(&s.config, 1, |_| "Idle".into()), 1).is_ok();
            let mut some = setting(&graph, e, spec, false)?;
            if loads(&some) {
                return Some(some);
            }
            // The class needs elements that its configuration string does not mention, such as the only TCPStack.
            let all = setting(&graph, e, spec, true)?;
            if loads(&all) {
                return Some(all);
            }
            // If the configuration string refers to elements of the example that are missing here, an empty string
            // replaces it.
            some.config = String::new();
            Some(some)
        };
        Registry::new().classes().into_iter().filter_map(of).collect()
    })
}

/// Hashes the name of a class to a position on a ring of 65536 positions.
pub fn place(name: &str) -> u16 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    (hash ^ hash >> 16) as u16
}

/// Returns the setting that the first two bytes select, and the remaining bytes. The two bytes are a position
/// on the ring of [`place`], and the first usable class from there on is selected. So existing inputs usually
/// keep their class when classes are added.
pub fn chosen(data: &[u8], usable: impl Fn(&Setting) -> bool) -> Option<(&'static Setting, &[u8])> {
    let (&start, rest) = data.split_first_chunk()?;
    let start = u16::from_be_bytes(start);
    let all = settings().iter().filter(|s| usable(s));
    Some((all.min_by_key(|s| place(s.spec.name).wrapping_sub(start))?, rest))
}

impl Setting {
    /// Returns the text of a router with the element `x` and whatever `x` needs. The router stops after `turns` task
    /// runs of its `Fuse`. `from` returns the elements before each input.
    pub fn router(&self, config: &str, turns: u32, from: impl Fn(usize) -> String) -> String {
        let mut text = format!("{}x :: {}({config});\nFuse({turns});\n", self.others, self.spec.name);
        for (i, pulled) in self.inputs.iter().enumerate() {
            let queue = if *pulled { "-> Queue(1000) " } else { "" };
            let _ = writeln!(text, "{} {queue}-> [{i}] x;", from(i));
        }
        for (o, pulled) in self.outputs.iter().enumerate() {
            let unqueue = if *pulled { "-> Unqueue " } else { "" };
            let _ = writeln!(text, "x [{o}] {unqueue}-> Discard;");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_setting_is_a_router() {
        for s in settings() {
            let text = s.router(&s.config, 1, |_| "Idle".into());
            if let Err(e) = load::router(&text, 1) {
                panic!("{text}\n{e}");
            }
        }
    }
}
