// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the elements downstream of a device to a program.
//!
//! An element's code depends on what is known about the packets that reach it ([`State`]). So an element that packets reach in
//! several states has several fragments of code. Most of what elements would test or store at run time is decided here.

use crate::code::{Code, Lowered, Refused, Shared};
use crate::emit::{emit, emit_passage};
use crate::instruction::Instruction;
use crate::registers::{Place, assign};
use crate::state::State;
use crate::step::{Counter, Exit, MapName, Step};
use std::collections::{BTreeMap, HashMap};

/// The largest number of fragments of a program. Packets that would need more go up.
const FRAGMENTS: usize = 4096;
/// The largest number of fragments of one input of an element.
const STATES: usize = 64;

/// The router that programs are compiled from.
pub trait Network {
    /// Describes what an element does with packets that arrive at an input.
    ///
    /// # Errors
    /// The element cannot run in the kernel: why.
    fn lower(&self, element: u32, input: u32, code: &mut Code<'_>) -> Lowered;
    /// The device that an element receives from.
    fn receives(&self, _element: u32) -> Option<&str> {
        None
    }
    /// The number of outputs of an element.
    fn outputs(&self, element: u32) -> usize;
    /// The element and the input that an output leads to. For a pull output, the element that pulls.
    fn next(&self, element: u32, output: u32) -> Option<(u32, u32)>;
    /// The element that pulls from an element, and the input by which it does. Packets cannot go up to an element that pulls, so
    /// an element from which another one pulls runs in the kernel only if that one does.
    fn puller(&self, _element: u32) -> Option<(u32, u32)> {
        None
    }
    /// Whether packets on an output may continue in the same [`Region`](crate::Region).
    fn is_passable(&self, _element: u32, _output: u32) -> bool {
        true
    }
    /// The place of an output in the order in which the run loop moves the packets on an element's outputs.
    fn rank(&self, _element: u32, output: u32) -> u32 {
        output
    }
}

/// The numbers of the drop reasons that the compiler itself needs.
#[derive(Clone, Copy, Debug)]
pub struct Reasons {
    /// An output leads nowhere.
    pub no_port: u16,
    /// The kernel could not move the start or the end of the frame, or had no socket or device to pass it to.
    pub no_room: u16,
}

/// A place at which packets continue at user level.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// The element.
    pub element: u32,
    /// The input.
    pub input: u32,
    /// The state of the packets.
    pub state: State,
}

/// How an element runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of states in which packets reach the element in the kernel.
    pub states: usize,
    /// The number of instructions in all states.
    pub instructions: usize,
    /// Why packets that reach the element go up, if they do.
    pub up: Option<String>,
}

/// A compiled program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The parts. Frames begin in the first one. The others are called by their numbers in the map [`MapName::Parts`].
    pub parts: Vec<Part>,
    /// How the elements run that the program reaches, by their numbers.
    pub elements: BTreeMap<u32, Report>,
}

impl Program {
    /// The number of instructions of all parts.
    pub fn instructions(&self) -> usize {
        self.parts.iter().map(|p| p.instructions.len()).sum()
    }
    /// The element to which an instruction of a part belongs. None for the ends of paths, which elements share.
    pub fn element_of(&self, part: usize, instruction: usize) -> Option<u32> {
        let origins = &self.parts.get(part)?.origins;
        let next = origins.partition_point(|(from, _)| *from <= instruction);
        origins.get(next.checked_sub(1)?)?.1
    }
}

/// A part of a program, which the kernel loads as a program of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The instructions.
    pub instructions: Vec<Instruction>,
    /// The instructions that name maps.
    pub maps: Vec<(usize, MapName)>,
    /// The instructions at which the code of another element begins, in their order.
    pub origins: Vec<(usize, Option<u32>)>,
}

impl Part {
    /// The instructions, in which the constant of each instruction that names a map is `number` of this map.
    pub fn with_maps(&self, mut number: impl FnMut(MapName) -> i32) -> Vec<Instruction> {
        let mut instructions = self.instructions.clone();
        for &(at, name) in &self.maps {
            if let Some(i) = instructions.get_mut(at) {
                i.immediate = number(name);
            }
        }
        instructions
    }
}

/// The data that all programs of a router share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Router {
    /// The mark of records: a random number, so that no frame from the network looks like a record.
    pub mark: u32,
    /// The number of the generation of programs, which records have.
    pub generation: u16,
    /// Counters, devices and tables.
    pub shared: Shared,
    /// The points at which packets go up, by their numbers.
    pub points: Vec<Point>,
}

/// The code of an element in one state.
pub(crate) struct Fragment {
    pub element: u32,
    pub input: u32,
    pub state: State,
    pub steps: Vec<Step>,
    pub places: Vec<Place>,
    /// The fragments or points that the exits lead to, in the order of the exits.
    pub ways: Vec<Way>,
}

/// Where an exit leads.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    Fragment(usize),
    /// To user level, at the point with this number.
    Up(u32),
    Send {
        device: u32,
        counter: u32,
        state: State,
    },
    Host {
        counter: u32,
        state: State,
    },
    Drop,
}

struct Compiler<'a> {
    network: &'a dyn Network,
    device: u32,
    received_by: &'a str,
    router: &'a mut Router,
    reasons: Reasons,
    fragments: Vec<Fragment>,
    numbers: HashMap<(u32, u32, State), Way>,
    states: HashMap<(u32, u32), usize>,
    elements: BTreeMap<u32, Report>,
}

impl Router {
    /// Compiles the program for the device that `element` receives from, and which has the number `device`. A program of more than
    /// `limit` instructions is cut into parts of about this size ([`PART`](crate::PART)).
    ///
    /// # Errors
    /// The element itself cannot run in the kernel, or the program is too large.
    pub fn compile(
        &mut self,
        network: &dyn Network,
        (element, device): (u32, u32),
        reasons: Reasons,
        limit: usize,
    ) -> Result<Program, Refused> {
        // A program that is refused leaves nothing behind.
        let mut router = self.clone();
        let program = router.try_compile(network, (element, device), reasons, limit)?;
        *self = router;
        Ok(program)
    }

    /// Makes the counters of packets that cannot go up the first ones, one for each element that receives.
    pub fn count_losses(&mut self, elements: impl Iterator<Item = u32>, reasons: Reasons) {
        self.shared.counters.extend(elements.map(|element| vec![lost(element, reasons)]));
    }

    /// Makes the program that passes all frames to user level as they are, for the device that `element` receives from.
    ///
    /// # Errors
    /// The router has too many counters.
    pub fn passage(&mut self, element: u32, reasons: Reasons) -> Result<Program, Refused> {
        emit_passage(self, (element, reasons))
    }

    fn try_compile(
        &mut self,
        network: &dyn Network,
        (element, device): (u32, u32),
        reasons: Reasons,
        limit: usize,
    ) -> Result<Program, Refused> {
        let mut compiler = Compiler {
            network,
            device,
            received_by: network.receives(element).unwrap_or(""),
            router: self,
            reasons,
            fragments: Vec::new(),
            numbers: HashMap::new(),
            states: HashMap::new(),
            elements: BTreeMap::new(),
        };
        match compiler.way(element, 0, State::received()) {
            Way::Fragment(_) => {}
            _ => {
                let why = compiler.elements.remove(&element).and_then(|r| r.up);
                return Err(Refused(why.unwrap_or_default()));
            }
        }
        // `way` appends fragments whose exits lead nowhere yet.
        let mut at = 0;
        while at < compiler.fragments.len() {
            compiler.follow(at);
            at += 1;
        }
        compiler.cut_cycles();
        let Compiler { fragments, elements, router, .. } = compiler;
        emit(&fragments, elements, router, (element, reasons), limit)
    }

    /// The number of a point.
    fn point(&mut self, point: Point) -> u32 {
        let at = self.points.iter().position(|p| *p == point).unwrap_or_else(|| {
            self.points.push(point);
            self.points.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }
}

impl Compiler<'_> {
    /// Returns where packets in this state go that reach an input: to a fragment, or to user level if the element cannot run
    /// in the kernel.
    fn way(&mut self, element: u32, input: u32, state: State) -> Way {
        let key = (element, input, state);
        if let Some(way) = self.numbers.get(&key) {
            return way.clone();
        }
        let (_, _, state) = key;
        let states = self.states.entry((element, input)).or_default();
        *states += 1;
        let lowered = if *states > STATES || self.fragments.len() >= FRAGMENTS {
            Err("packets reach it in too many states".into())
        } else {
            self.lower(element, input, &state)
        };
        let report = self.elements.entry(element).or_default();
        let key = (element, input, state.clone());
        let way = match lowered {
            Ok((steps, places)) => {
                report.states += 1;
                self.fragments.push(Fragment { element, input, state, steps, places, ways: Vec::new() });
                Way::Fragment(self.fragments.len() - 1)
            }
            Err(Refused(why)) => {
                report.up = Some(why);
                self.up(element, input, state)
            }
        };
        self.numbers.insert(key, way.clone());
        way
    }

    fn up(&mut self, element: u32, input: u32, state: State) -> Way {
        let state = State { present: 0, destination: None, ..state };
        Way::Up(self.router.point(Point { element, input, state }))
    }

    fn lower(&mut self, element: u32, input: u32, state: &State) -> Result<(Vec<Step>, Vec<Place>), Refused> {
        let connected: Vec<bool> = (0..self.network.outputs(element))
            .map(|o| self.network.next(element, o as u32).is_some())
            .collect();
        let mut code = Code::new(
            element,
            input,
            (self.device, self.received_by, &connected, self.reasons),
            state,
            &mut self.router.shared,
        );
        self.network.lower(element, input, &mut code)?;
        let (steps, values) = code.end()?;
        if let Some((puller, input)) = self.network.puller(element) {
            let refused =
                |Refused(why): Refused| Refused(format!("the element that pulls from it cannot: {why}"));
            self.lower(puller, input, state).map_err(refused)?;
        }
        let places = assign(&steps, values).ok_or(Refused("it computes too many values".into()))?;
        Ok((steps, places))
    }

    /// Finds where the exits of a fragment lead.
    fn follow(&mut self, number: usize) {
        let Some(fragment) = self.fragments.get_mut(number) else { return };
        let element = fragment.element;
        let exits: Vec<Exit> = fragment
            .steps
            .iter_mut()
            .filter_map(|s| if let Step::Exit(e) = s { Some(std::mem::replace(e, Exit::Drop)) } else { None })
            .collect();
        let ways = exits
            .into_iter()
            .map(|exit| match exit {
                Exit::Next(output, state) => match self.network.next(element, output) {
                    Some((next, input)) => self.way(next, input, state),
                    None => Way::Drop,
                },
                Exit::Up(input, state) => self.up(element, input, state),
                Exit::Send { device, counter, state } => Way::Send { device, counter, state },
                Exit::Host { counter, state } => Way::Host { counter, state },
                Exit::Drop => Way::Drop,
            })
            .collect();
        if let Some(fragment) = self.fragments.get_mut(number) {
            fragment.ways = ways;
        }
    }

    /// Makes packets go up that would reach a fragment again: programs have no loops.
    fn cut_cycles(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum Colour {
            New,
            Open,
            Done,
        }
        let mut colours = vec![Colour::New; self.fragments.len()];
        // Each entry is a fragment and the number of its ways that were followed.
        let mut stack = vec![(0, 0)];
        if let Some(c) = colours.first_mut() {
            *c = Colour::Open;
        }
        while let Some((number, at)) = stack.pop() {
            let way = self.fragments.get(number).and_then(|f| f.ways.get(at)).cloned();
            let Some(way) = way else {
                if let Some(c) = colours.get_mut(number) {
                    *c = Colour::Done;
                }
                continue;
            };
            stack.push((number, at + 1));
            let Way::Fragment(next) = way else { continue };
            match colours.get(next) {
                Some(Colour::New) => {
                    if let Some(c) = colours.get_mut(next) {
                        *c = Colour::Open;
                    }
                    stack.push((next, 0));
                }
                Some(Colour::Open) => {
                    let Some(f) = self.fragments.get(next) else { continue };
                    let (element, input, state) = (f.element, f.input, f.state.clone());
                    let up = self.up(element, input, state);
                    if let Some(w) = self.fragments.get_mut(number).and_then(|f| f.ways.get_mut(at)) {
                        *w = up;
                    }
                    let report = self.elements.entry(element).or_default();
                    report.up.get_or_insert_with(|| "packets may reach it again".into());
                }
                _ => {}
            }
        }
    }
}

/// Returns the counter for packets of the program that the kernel could not move.
pub(crate) fn lost(element: u32, reasons: Reasons) -> Counter {
    Counter::Dropped(element, reasons.no_room)
}
