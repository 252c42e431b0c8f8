// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configurations in which a class is measured.

use crate::aspl::router::classes;
use crate::fig8::PACKETS;
use crate::frames::{self, Traffic};
use crate::path::{Defines, literal};
use castanet_element::spec::packets::Wants;
use castanet_element::spec::{ArgKind, ArgValue as _, ClassSpec, Effects, Filename, HandlerRef, PacketCode};
use castanet_graph::{Graph, PortKind, excerpt};
use castanet_lang::args;
use castanet_runtime::swap::Loaded;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// The name of the element that measures, as [`Counted`](crate::aspl::measure::Counted) expects it.
pub const ROUNDS: &str = "rounds";
/// The name of the element that is measured.
const ELEMENT: &str = "bench_element";

/// Which parts of a configuration are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestants {
    /// First the Nulls, then the element.
    Both,
    /// The Nulls.
    Null,
    /// The element.
    Element,
}

/// An input of the element.
#[derive(Clone, Debug)]
struct Input {
    pulls: bool,
    /// The class and the arguments of elements between the source and the input, with arrows behind them.
    before: String,
    arp: bool,
}

/// An element with a source on each input and a sink on each output.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The name of the class.
    pub class: &'static str,
    declarations: String,
    inputs: Vec<Input>,
    /// For each output, whether packets are pulled from it.
    outputs: Vec<bool>,
    capture: Option<String>,
}

/// The frames that the sources send: UDP in IP in Ethernet, of 60 to 64 bytes, of 64 flows.
pub fn frames() -> Vec<Vec<u8>> {
    frames::frames(Traffic::Four, 0)
}

/// ARP requests of the hosts that send the frames.
fn arp_frames() -> Vec<Vec<u8>> {
    let request = |i: u8| {
        let mut frame = [&[255; 6][..], &[2, 0, 1, 0, 0, i], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
        frame.extend([2, 0, 1, 0, 0, i, 1, 0, 0, 10 + i, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1]);
        frame.resize(60, 0);
        frame
    };
    (0..64).map(request).collect()
}

/// Returns elements that turn Ethernet frames into what an input wants, with an arrow behind each. All set the destination
/// address annotation.
fn before(wants: Wants) -> String {
    match wants {
        Wants::EtherArp => String::new(),
        Wants::Any | Wants::Ether => "GetIPAddress(30) -> ".into(),
        Wants::Ip | Wants::IpOptional => "Strip(14) -> MarkIPHeader -> GetIPAddress(16) -> ".into(),
        Wants::IpAt(n) | Wants::NetworkAt(n) => {
            let n = n.number().unwrap_or(0).clamp(0, 128);
            let moved = match n - 14 {
                0 => String::new(),
                more @ 1.. => format!("Unstrip({more}) -> "),
                less => format!("Strip({}) -> ", -less),
            };
            format!("{moved}GetIPAddress({}) -> ", n + 16)
        }
    }
}

/// The type of arguments that name files.
const FILE: &str = Filename::TYPE;

/// Returns a configuration string without the keyword arguments that name files or handlers. The example of a class may use
/// them to write a file, or to stop the router.
fn without_effects(spec: &ClassSpec, config: &str) -> String {
    let acts = |name: &str| {
        let arg = spec.args.iter().find(|a| a.name == name);
        arg.is_some_and(|a| a.type_name == FILE || a.type_name.contains(HandlerRef::TYPE))
    };
    let all = args::split(config).into_iter().filter_map(|range| config.get(range));
    let kept = all.map(str::trim).filter(|arg| !args::keyword(arg).is_some_and(|(name, _)| acts(name)));
    kept.collect::<Vec<_>>().join(", ")
}

impl Setting {
    /// Makes the setting of a class from its example. `None` if its element has no inputs or no outputs.
    ///
    /// # Errors
    /// The reason why the class cannot be measured.
    pub fn of(spec: &'static ClassSpec, capture: Option<&Path>) -> Result<Option<Setting>, String> {
        let text = spec.example().ok_or("its documentation has no example")?;
        let loaded = Loaded::from_text("example", text.as_bytes(), &Vec::new(), Arc::new(classes()));
        let mut graph: Graph = loaded.map_err(|_| "its example needs what is not here")?.0.graph;
        let is_of_class = |e: &usize| graph.spec(*e).is_some_and(|s| s.name == spec.name);
        let e = (0..graph.len()).find(is_of_class).ok_or("its example does not use it")?;
        if graph.inputs(e) == 0 || graph.outputs(e) == 0 {
            return Ok(None);
        }
        if spec.module.contains("::device::") && spec.task {
            return Err("it needs a device".into());
        }
        if let Some(element) = graph.flat.elements.get_mut(e) {
            element.config = without_effects(spec, &element.config);
        }
        let files = spec.args.iter().any(|a| a.type_name == FILE && a.kind != ArgKind::Keyword);
        if spec.effects.contains(Effects::FILES) && (files || spec.args.iter().all(|a| a.type_name != FILE)) {
            return Err("it writes files".into());
        }
        let config = graph.element(e).map_or("", |x| &x.config);
        let code: PacketCode = spec.packet_code(config);
        let input = |i: usize| {
            let wants = code.input(i);
            Input {
                pulls: !graph.input_is_agnostic(e, i) && graph.input_kind(e, i) == PortKind::Pull,
                before: before(wants),
                arp: wants == Wants::EtherArp,
            }
        };
        let pulls = |o: usize| !graph.output_is_agnostic(e, o) && graph.output_kind(e, o) == PortKind::Pull;
        Ok(Some(Setting {
            class: spec.name,
            declarations: excerpt(&graph, e, ELEMENT),
            inputs: (0..graph.inputs(e)).map(input).collect(),
            outputs: (0..graph.outputs(e)).map(pulls).collect(),
            capture: capture.map(|file| file.display().to_string()),
        }))
    }

    /// The number of sources.
    pub fn sources(&self) -> usize {
        self.inputs.len()
    }

    /// The element, as the configuration declares it.
    pub fn element(&self) -> String {
        let line = self.declarations.lines().last().unwrap_or_default();
        line.rsplit_once(" :: ").map_or(line, |(_, class)| class).trim_end_matches(';').to_string()
    }

    /// The values of the variables in the text.
    pub fn defines(&self, batch: usize, rounds: u64) -> Defines {
        let numbers = [("LIMIT", PACKETS), ("BURST", batch as u64), ("ROUNDS", rounds)];
        let mut all: Defines = numbers.map(|(n, v)| (n.to_string(), v.to_string())).into();
        all.push(("FRAMES".into(), literal(&frames())));
        all.push(("ARP".into(), literal(&arp_frames())));
        all
    }

    /// The configuration.
    pub fn text(&self, contestants: Contestants) -> String {
        let mut text = String::new();
        let mut names = Vec::new();
        if contestants != Contestants::Element {
            names.push(self.add(&mut text, "null", |input, _| {
                if input.pulls { "Null -> Unqueue($BURST) -> Discard" } else { "Null -> Discard" }.into()
            }));
        }
        if contestants != Contestants::Null {
            text.push_str(&self.declarations);
            names.push(self.add(&mut text, "source", |_, i| format!("[{i}] {ELEMENT}")));
            for (o, pulled) in self.outputs.iter().enumerate() {
                let pull = if *pulled { "Unqueue($BURST) -> " } else { "" };
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{ELEMENT} [{o}] -> {pull}Discard;");
            }
        }
        let _ = writeln!(text, "{ROUNDS} :: Rounds({}, ROUNDS $ROUNDS);", names.join(" "));
        text
    }

    /// Adds a source for each input, with what follows it. Returns the names of the sources.
    fn add(&self, text: &mut String, name: &str, then: impl Fn(&Input, usize) -> String) -> String {
        let mut names = Vec::new();
        for (i, input) in self.inputs.iter().enumerate() {
            let frames = match &self.capture {
                Some(file) => format!("FILE {}", args::quote(file)),
                None => if input.arp { "$ARP" } else { "$FRAMES" }.to_string(),
            };
            let queue = if input.pulls { "Queue -> " } else { "" };
            let (before, then) = (&input.before, then(input, i));
            let _ = writeln!(
                text,
                "bench_{name}{i} :: MemSource({frames}, LIMIT $LIMIT, BURST $BURST, STOP true) -> {before}{queue}{then};"
            );
            names.push(format!("bench_{name}{i}"));
        }
        names.join("+")
    }
}
