// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paths of a configuration that does not run, for `castanet explain`.

use crate::compile_paths::{Elements, Local};
use crate::kernel::REASONS;
use crate::options::Options;
use crate::prepare::built;
use castanet_element::Object;
use castanet_element::class::Classes;
use castanet_graph::{Graph, PortKind};
use castanet_kernel::{Point, Region, State};
use castanet_lang::flat::PortRef;
use castanet_spec::Effects;
use std::collections::HashSet;
use std::fmt::Write as _;

struct Built<'a> {
    graph: &'a Graph,
    objects: Vec<Option<&'a dyn Object>>,
    back: HashSet<PortRef>,
}

impl Elements for Built<'_> {
    fn graph(&self) -> &Graph {
        self.graph
    }
    fn object(&self, element: u32) -> Option<&dyn Object> {
        self.objects.get(element as usize).copied().flatten()
    }
    fn is_back(&self, element: u32, output: u32) -> bool {
        self.back.contains(&PortRef { element: element as usize, port: output as usize })
    }
}

impl Built<'_> {
    /// Compiles the path that begins at an input, for packets as devices and sources deliver them.
    fn path(&self, input: PortRef) -> Option<Region> {
        let annotations = [None; castanet_kernel::ANNOTATIONS];
        let state = State { mac: None, annotations, ..State::received() };
        let start = Point { element: input.element as u32, input: input.port as u32, state };
        Region::compile(&Local(self), &start, REASONS).ok()
    }
    /// Whether a path passes an output.
    fn passes(&self, output: PortRef) -> bool {
        let inputs = (0..self.graph.inputs(output.element)).map(|port| PortRef { port, ..output });
        !self.back.contains(&output) && inputs.into_iter().any(|i| self.path(i).is_some())
    }
}

/// Returns text that lists the paths of a configuration that become machine code where many packets pass, one line for each. Empty if
/// there are none. None if the configuration has errors.
pub fn explain_paths(graph: Graph, classes: &dyn Classes) -> Option<String> {
    let (graph, built) = built(graph, classes, &Options::default(), &mut Vec::new())?;
    let mut objects: Vec<Option<&dyn Object>> = vec![None; graph.len()];
    for (e, instance) in built.workers.iter().flatten() {
        let calls = built.effects.get(*e).is_some_and(|x| x.contains(Effects::CALLS));
        if let Some(object) = objects.get_mut(*e).filter(|_| !calls) {
            *object = Some(instance.common_ref());
        }
    }
    let closing = graph.flat.connections.iter().zip(graph.back_edges()).filter(|(_, back)| *back);
    let back = closing.map(|(c, _)| c.from).collect();
    let elements = Built { graph: &graph, objects, back };
    let mut text = String::new();
    for element in 0..graph.len() {
        for port in 0..graph.inputs(element) {
            let input = PortRef { element, port };
            let from = graph.upstream(input);
            // Inside of a path, no other one begins.
            if graph.input_kind(element, port) != PortKind::Push || from.iter().all(|o| elements.passes(*o)) {
                continue;
            }
            let Some(region) = elements.path(input) else { continue };
            let mut members: Vec<u32> = Vec::new();
            for fragment in region.fragments() {
                if !members.contains(&fragment.element()) {
                    members.push(fragment.element());
                }
            }
            let names: Vec<&str> = members.iter().map(|e| graph.name(*e as usize)).collect();
            let _ = writeln!(text, "  {}", names.join(" "));
        }
    }
    Some(if text.is_empty() { text } else { format!("machine code, once many packets pass:\n{text}") })
}
