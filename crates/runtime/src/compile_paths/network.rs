// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements of a worker, as the compiler of paths sees them.

use crate::node::{Body, NONE};
use crate::nodes::Nodes;
use castanet_element::Object;
use castanet_graph::{Graph, PortKind};
use castanet_kernel::{Code, Lowered, Network};
use castanet_lang::flat::PortRef;
use castanet_spec::{Effects, Workers};

/// Elements that may be compiled.
pub(crate) trait Elements {
    fn graph(&self) -> &Graph;
    /// An element. None if it needs other elements while it runs, or is not here.
    fn object(&self, element: u32) -> Option<&dyn Object>;
    /// Whether the connection of an output closes a cycle.
    fn is_back(&self, element: u32, output: u32) -> bool;
    /// The place of an output in the order in which the packets on an element's outputs move.
    fn rank(&self, _element: u32, output: u32) -> u32 {
        output
    }
}

/// A network of elements.
pub(crate) struct Local<'a, T>(pub &'a T);

impl<T: Elements> Network for Local<'_, T> {
    fn lower(&self, element: u32, input: u32, code: &mut Code<'_>) -> Lowered {
        let (graph, e) = (self.0.graph(), element as usize);
        let pushes = (0..graph.inputs(e)).all(|i| graph.input_kind(e, i) == PortKind::Push)
            && (0..graph.outputs(e)).all(|o| graph.output_kind(e, o) == PortKind::Push);
        if graph.outputs(e) == 0 || !pushes {
            return Err("packets do not pass it by push".into());
        }
        if graph.spec(e).is_none_or(|s| s.workers == Workers::Share) {
            return Err("others may change its state at any time".into());
        }
        match self.0.object(element) {
            Some(object) => object.lower(input, code),
            None => Err("it needs other elements".into()),
        }
    }
    fn outputs(&self, element: u32) -> usize {
        self.0.graph().outputs(element as usize)
    }
    fn next(&self, element: u32, output: u32) -> Option<(u32, u32)> {
        let port = PortRef { element: element as usize, port: output as usize };
        self.0.graph().downstream(port).first().map(|p| (p.element as u32, p.port as u32))
    }
    fn is_passable(&self, element: u32, output: u32) -> bool {
        !self.0.is_back(element, output)
    }
    fn rank(&self, element: u32, output: u32) -> u32 {
        self.0.rank(element, output)
    }
}

/// Returns the edge of an output. None inside a chain.
pub(super) fn edge_of(nodes: &Nodes, element: u32, output: u32) -> Option<usize> {
    let &(n, member) = nodes.places.get(element as usize)?;
    let node = nodes.nodes.get(n as usize)?;
    let edge = match &node.body {
        Body::Chain(members) => {
            let m = members.get(member as usize)?;
            match output.checked_sub(1) {
                Some(side) if side < m.count => m.base + side,
                None if member as usize + 1 == members.len() => node.base,
                _ => return None,
            }
        }
        _ if output < node.count => node.base + output,
        _ => return None,
    };
    Some(edge as usize)
}

impl Elements for Nodes {
    fn graph(&self) -> &Graph {
        &self.shared.graph
    }
    fn object(&self, element: u32) -> Option<&dyn Object> {
        if self.shared.build_state.effects_of(element).contains(Effects::CALLS) {
            return None;
        }
        let &(n, member) = self.places.get(element as usize).filter(|p| p.0 != NONE)?;
        match &self.nodes.get(n as usize)?.body {
            Body::Chain(members) => Some(&*members.get(member as usize)?.action as &dyn Object),
            Body::Element(x) => Some(&**x as &dyn Object),
            Body::Reaching(..) | Body::Locked(..) | Body::Busy | Body::Meeting(_) => None,
        }
    }
    fn is_back(&self, element: u32, output: u32) -> bool {
        edge_of(self, element, output).and_then(|x| self.edges.get(x)).is_some_and(|edge| edge.back)
    }
    fn rank(&self, element: u32, output: u32) -> u32 {
        let node = self.places.get(element as usize).and_then(|p| self.nodes.get(p.0 as usize));
        match node {
            // Packets that leave a chain by a side output move before the others.
            Some(node) if matches!(node.body, Body::Chain(_)) => output.checked_sub(1).unwrap_or(u32::MAX),
            Some(node) if node.descending => u32::MAX - output,
            _ => output,
        }
    }
}
