// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet flow inside elements: ports as points of the graph, linked according to the flow codes.

use crate::csr::Csr;
use castanet_spec::ClassSpec;
use castanet_spec::codes::{Flow, Ports, Processing, ProcessingCode};
use std::ops::Range;

/// The port, processing and flow codes of a class, parsed once.
#[derive(Clone, Debug)]
pub(crate) struct Codes {
    pub(crate) ports: Ports,
    /// The processing code. `None` for an unknown class, whose ports are all agnostic and independent of each other.
    processing: Option<ProcessingCode>,
    flow: Option<Flow>,
    /// From this port number on, all inputs behave alike, and so do all outputs, except where the flow code has a `#`.
    distinct: usize,
}

impl Codes {
    pub(crate) fn new(spec: Option<&ClassSpec>) -> Codes {
        Codes {
            ports: spec.and_then(|s| Ports::parse(s.ports)).unwrap_or(Ports::ANY),
            processing: spec.and_then(|s| ProcessingCode::parse(s.processing)),
            flow: spec.and_then(|s| Flow::parse(s.flow)),
            distinct: spec.map_or(1, |s| s.flow.len()),
        }
    }
    pub(crate) fn input(&self, port: usize) -> Processing {
        self.processing.as_ref().map_or(Processing::Agnostic, |p| p.input(port))
    }
    pub(crate) fn output(&self, port: usize) -> Processing {
        self.processing.as_ref().map_or(Processing::Agnostic, |p| p.output(port))
    }
    pub(crate) fn opaque(&self) -> bool {
        self.processing.is_none()
    }
    /// Whether a packet that enters by `input` may leave by `output`. An unknown class may use any output.
    pub(crate) fn connects(&self, input: usize, output: usize) -> bool {
        self.flow.as_ref().is_none_or(|f| f.connects(input, output))
    }
}

/// What a point is: an input, an output or a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Input,
    Output,
    /// Joins many inputs with many outputs, so that the number of links stays linear in the number of ports.
    Hub,
}

/// All ports and hubs as points: inputs in element order, then outputs, then hubs.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    /// The first input and the first output of each element. INVARIANT: the limits on connections and ports keep the number of
    /// points far below 2^32.
    input_start: Vec<u32>,
    output_start: Vec<u32>,
    owner: Vec<u32>,
    hub_start: usize,
    /// Links from inputs to outputs, directly or through hubs.
    pub(crate) forward: Csr<u32>,
    /// The same links in reverse.
    pub(crate) backward: Csr<u32>,
}

/// An element gets hubs if the number of its inputs times the number of its outputs exceeds this.
const DIRECT: usize = 16;

impl Points {
    pub(crate) fn new<'a>(counts: &[(usize, usize)], codes: impl Fn(usize) -> &'a Codes) -> Points {
        let n = counts.len();
        let (mut input_start, mut output_start) = (Vec::with_capacity(n + 1), Vec::with_capacity(n + 1));
        let mut owner = Vec::with_capacity(counts.iter().map(|c| c.0 + c.1).sum());
        let mut total = 0;
        for (e, c) in counts.iter().enumerate() {
            input_start.push(total as u32);
            total += c.0;
            owner.resize(total, e as u32);
        }
        input_start.push(total as u32);
        for (e, c) in counts.iter().enumerate() {
            output_start.push(total as u32);
            total += c.1;
            owner.resize(total, e as u32);
        }
        output_start.push(total as u32);
        let hub_start = total;
        let mut links: Vec<(usize, usize)> = Vec::new();
        for (e, &(inputs, outputs)) in counts.iter().enumerate() {
            let (first_input, first_output) = (input_start[e] as usize, output_start[e] as usize);
            let codes = codes(e);
            if inputs.saturating_mul(outputs) <= DIRECT {
                for i in 0..inputs {
                    let connected = (0..outputs).filter(|&o| codes.connects(i, o));
                    links.extend(connected.map(|o| (first_input + i, first_output + o)));
                }
            } else {
                let all_inputs = first_input..first_input + inputs;
                let all_outputs = first_output..first_output + outputs;
                link_by_hubs(codes, all_inputs, all_outputs, owner.len(), &mut links);
                owner.resize(owner.len() + hubs_of(codes, inputs) + hubs_of(codes, outputs), e as u32);
            }
        }
        let forward = Csr::new(owner.len(), links.iter().map(|&(a, b)| (a, b as u32)));
        let backward = Csr::new(owner.len(), links.iter().map(|&(a, b)| (b, a as u32)));
        Points { input_start, output_start, owner, hub_start, forward, backward }
    }

    pub(crate) fn len(&self) -> usize {
        self.owner.len()
    }
    /// The number of elements.
    pub(crate) fn elements(&self) -> usize {
        self.input_start.len() - 1
    }
    #[inline]
    pub(crate) fn inputs(&self, e: usize) -> Range<usize> {
        match (self.input_start.get(e), self.input_start.get(e.saturating_add(1))) {
            (Some(&a), Some(&b)) => a as usize..b as usize,
            _ => 0..0,
        }
    }
    #[inline]
    pub(crate) fn outputs(&self, e: usize) -> Range<usize> {
        match (self.output_start.get(e), self.output_start.get(e.saturating_add(1))) {
            (Some(&a), Some(&b)) => a as usize..b as usize,
            _ => 0..0,
        }
    }
    #[inline]
    pub(crate) fn input(&self, e: usize, port: usize) -> Option<usize> {
        self.inputs(e).nth(port)
    }
    #[inline]
    pub(crate) fn output(&self, e: usize, port: usize) -> Option<usize> {
        self.outputs(e).nth(port)
    }
    #[inline]
    pub(crate) fn owner(&self, point: usize) -> usize {
        self.owner[point] as usize
    }
    #[inline]
    pub(crate) fn side(&self, point: usize) -> Side {
        if point >= self.hub_start {
            Side::Hub
        } else if point < self.output_start[0] as usize {
            Side::Input
        } else {
            Side::Output
        }
    }
    /// The port number of an input or output.
    #[inline]
    pub(crate) fn port(&self, point: usize) -> usize {
        let e = self.owner(point);
        match self.side(point) {
            Side::Input => point - self.input_start[e] as usize,
            Side::Output => point - self.output_start[e] as usize,
            Side::Hub => 0,
        }
    }
    /// The number of the first hub. Hubs are the last points.
    pub(crate) fn hub_start(&self) -> usize {
        self.hub_start
    }
}

/// The number of hubs on one side: one for each port with a code of its own, and one for all others.
fn hubs_of(codes: &Codes, ports: usize) -> usize {
    ports.min(codes.distinct + 1)
}

/// Links inputs to outputs through hubs. Without hubs, 1000 inputs and 1000 outputs would need a million links.
///
/// Ports from `distinct` on repeat the last letter of the code, so one hub serves them all. These are
/// the links for `distinct` 1 and a code that connects everything:
///
/// ```text
/// input 0 ----- input hub 0 ----- output hub 0 ----- output 0
///                           \   /
///                            \ /
///                             X
///                            / \
/// input 1 --.               /   \               .--- output 1
/// input 2 ----- input hub 1 ----- output hub 1 ----- output 2
/// input 3 --'                                   '--- output 3
/// ```
///
/// A hub cannot express the letter `#`: where this letter applies, inputs and outputs with equal numbers are
/// linked directly.
fn link_by_hubs(
    codes: &Codes,
    inputs: Range<usize>,
    outputs: Range<usize>,
    first_hub: usize,
    links: &mut Vec<(usize, usize)>,
) {
    let distinct = codes.distinct;
    let (input_hubs, output_hubs) = (hubs_of(codes, inputs.len()), hubs_of(codes, outputs.len()));
    let input_hub = |port: usize| first_hub + port.min(distinct);
    let output_hub = |port: usize| first_hub + input_hubs + port.min(distinct);
    links.extend(inputs.clone().enumerate().map(|(port, input)| (input, input_hub(port))));
    links.extend(outputs.clone().enumerate().map(|(port, output)| (output_hub(port), output)));
    // Whether the last letters of the code connect each input only to the output with the same number.
    let equal_only = codes.connects(distinct, distinct) && !codes.connects(distinct, distinct + 1);
    for i in 0..input_hubs {
        for o in 0..output_hubs {
            let by_port = equal_only && i == distinct && o == distinct;
            if codes.connects(i, o) && !by_port {
                links.push((input_hub(i), output_hub(o)));
            }
        }
    }
    if equal_only {
        links.extend(inputs.zip(outputs).skip(distinct));
    }
}
