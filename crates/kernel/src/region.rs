// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements behind one input as code that processes packets at user level: the same intermediate code as for the kernel,
//! checked for a compiler of machine code.

mod check;

use crate::code::{Code, Refused, Shared};
use crate::compile::{Network, Point, Reasons};
use crate::state::State;
use crate::step::{Counter, Exit, Step};
use check::check;
use std::collections::HashMap;

/// The largest number of fragments of a region.
const FRAGMENTS: usize = 256;
/// The largest number of fragments that follow each other.
const DEPTH: usize = 48;
/// The largest number of steps of one fragment, so that compiling takes little time.
const STEPS: usize = 2000;

/// The code of an element for packets in one state.
#[derive(Debug)]
pub struct Fragment {
    /// The element.
    element: u32,
    /// The state of the packets at its start.
    state: State,
    steps: Vec<Step>,
    values: u32,
    ways: Vec<Way>,
}

impl Fragment {
    /// The number of the element.
    pub fn element(&self) -> u32 {
        self.element
    }
    /// The state of the packets at the start.
    pub fn state(&self) -> &State {
        &self.state
    }
    /// The steps. Jumps lead forward, and each path ends with an exit.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
    /// The number of values.
    pub fn values(&self) -> u32 {
        self.values
    }
    /// Where the exits lead, in the order of the steps that exit.
    pub fn ways(&self) -> &[Way] {
        &self.ways
    }
}

/// Where an exit of a fragment leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the fragment with this number.
    Fragment(usize),
    /// Out of the region, to the end with this number.
    End(usize),
}

/// A place where packets leave a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Where they continue, and in which state. None if they are dropped.
    pub to: Option<Point>,
    /// The element and the output from which they come. None if an element of the region is to process them itself.
    pub from: Option<(u32, u32)>,
}

/// The elements behind one input, as far as they can be compiled. Packets begin in fragment 0.
///
/// INVARIANT: all accesses to a packet are to bytes that the code has tested to be present, or to the first
/// [`ANNOTATIONS`](Region::ANNOTATIONS) annotation bytes; paths have at most 48 fragments and no loops.
#[derive(Debug)]
pub struct Region {
    fragments: Vec<Fragment>,
    ends: Vec<End>,
    counters: Vec<Vec<Counter>>,
}

impl Region {
    /// The number of annotation bytes that the code may access. The others need a flag of the packet.
    pub const ANNOTATIONS: usize = 24;

    /// Compiles the elements from a point on.
    ///
    /// # Errors
    /// The element at the point cannot be compiled: why.
    pub fn compile(network: &dyn Network, start: &Point, reasons: Reasons) -> Result<Region, Refused> {
        // Nothing may be known of the packet's length before the code has tested it.
        let state = State { present: 0, shortened: false, destination: None, ..start.state.clone() };
        let start = &Point { state, ..start.clone() };
        let region = Region { fragments: Vec::new(), ends: Vec::new(), counters: Vec::new() };
        let shared = Shared::default();
        let mut maker = Maker { network, reasons, region, shared, known: HashMap::new() };
        // Packets that the code cannot process, because they are shared, continue at end 0.
        maker.region.ends.push(End { to: Some(start.clone()), from: None });
        maker.fragment(start, 0)?;
        let Maker { mut region, shared, .. } = maker;
        region.counters = shared.counters;
        // The code says by a number of 16 bits how a packet leaves it.
        if region.ends.len() > usize::from(u16::MAX) {
            return Err("it has too many ends".into());
        }
        Ok(region)
    }
    /// The fragments.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }
    /// The ends. Packets that the code must not touch leave by the first one. The others are in the order in which the run
    /// loop moves the packets that an element has put on several outputs.
    pub fn ends(&self) -> &[End] {
        &self.ends
    }
    /// The counters, by their numbers. Those that are always counted together share a number.
    pub fn counters(&self) -> &[Vec<Counter>] {
        &self.counters
    }
}

/// Whether a fragment is complete.
#[derive(Clone, Copy)]
enum Known {
    /// Its exits are being followed.
    Open,
    Done(usize),
    Refused,
}

struct Maker<'a> {
    network: &'a dyn Network,
    reasons: Reasons,
    region: Region,
    shared: Shared,
    known: HashMap<Point, Known>,
}

impl Maker<'_> {
    /// Returns the number of the fragment for packets at a point.
    fn fragment(&mut self, at: &Point, depth: usize) -> Result<usize, Refused> {
        match self.known.get(at) {
            Some(Known::Done(number)) => return Ok(*number),
            Some(Known::Refused) => return Err("it was refused before".into()),
            Some(Known::Open) => return Err("packets may reach it again".into()),
            None if depth >= DEPTH || self.region.fragments.len() >= FRAGMENTS => {
                return Err("too many elements follow each other".into());
            }
            None => {}
        }
        let (steps, values) = match self.lower(at) {
            Ok(lowered) => lowered,
            Err(why) => {
                self.known.insert(at.clone(), Known::Refused);
                return Err(why);
            }
        };
        self.known.insert(at.clone(), Known::Open);
        let number = self.region.fragments.len();
        let exits: Vec<Exit> =
            steps.iter().filter_map(|s| if let Step::Exit(e) = s { Some(e.clone()) } else { None }).collect();
        let Point { element, state, .. } = at.clone();
        self.region.fragments.push(Fragment { element, state, steps, values, ways: Vec::new() });
        // Follow the outputs in the order of the run loop, so that the ends get their numbers in this order.
        let mut order: Vec<usize> = (0..exits.len()).collect();
        order.sort_by_key(|&i| match exits.get(i) {
            Some(Exit::Next(output, _)) => self.network.rank(element, *output),
            _ => 0,
        });
        let mut ways = vec![Way::End(0); exits.len()];
        for i in order {
            let (Some(exit), Some(way)) = (exits.get(i), ways.get_mut(i)) else { continue };
            *way = self.way(at, exit, depth);
        }
        if let Some(fragment) = self.region.fragments.get_mut(number) {
            fragment.ways = ways;
        }
        self.known.insert(at.clone(), Known::Done(number));
        Ok(number)
    }

    fn lower(&mut self, at: &Point) -> Result<(Vec<Step>, u32), Refused> {
        let Point { element, input, state } = at;
        let outputs = self.network.outputs(*element) as u32;
        let connected: Vec<bool> = (0..outputs).map(|o| self.network.next(*element, o).is_some()).collect();
        // The counters of a refused element must not stay behind.
        let mut shared = self.shared.clone();
        let mut code = Code::new(*element, *input, (0, "", &connected, self.reasons), state, &mut shared);
        code.is_at_user_level = true;
        self.network.lower(*element, *input, &mut code)?;
        let (steps, values) = code.end()?;
        if steps.len() > STEPS {
            return Err("it has too many steps".into());
        }
        let passes = |s: &Step| matches!(s, Step::Exit(exit) if !matches!(exit, Exit::Up(..)));
        if !steps.iter().any(passes) {
            return Err("it processes all packets itself".into());
        }
        check(&steps, state, shared.counters.len())?;
        self.shared = shared;
        Ok((steps, values))
    }

    fn way(&mut self, at: &Point, exit: &Exit, depth: usize) -> Way {
        match exit {
            Exit::Next(output, state) => {
                let Some((element, input)) = self.network.next(at.element, *output) else {
                    return self.end(End { to: None, from: None });
                };
                let to = Point { element, input, state: state.clone() };
                if self.network.is_passable(at.element, *output)
                    && let Ok(number) = self.fragment(&to, depth + 1)
                {
                    return Way::Fragment(number);
                }
                let state = State { present: 0, destination: None, ..to.state };
                self.end(End { to: Some(Point { state, ..to }), from: Some((at.element, *output)) })
            }
            Exit::Up(input, state) => {
                let to = Point { element: at.element, input: *input, state: state.clone() };
                self.end(End { to: Some(to), from: None })
            }
            // `check` has refused the others.
            Exit::Drop | Exit::Send { .. } | Exit::Host { .. } => self.end(End { to: None, from: None }),
        }
    }

    /// The number of an end, which is added if it is new.
    fn end(&mut self, end: End) -> Way {
        let ends = &mut self.region.ends;
        let found = ends.iter().skip(1).position(|e| *e == end).map(|at| at + 1);
        Way::End(found.unwrap_or_else(|| {
            ends.push(end);
            ends.len() - 1
        }))
    }
}

#[cfg(test)]
mod tests;
